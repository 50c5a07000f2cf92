"""`nemesrv scenarios`: what ships."""

from __future__ import annotations

import json

import click

from .options import json_option, scenario_names


@click.command()
@click.argument("name", required=False, shell_complete=scenario_names)
@json_option
def scenarios(name: str | None, as_json: bool) -> None:
    """List the scenarios that ship, one line each, and the field drills apart; with a NAME, show that file."""
    from ..scenarios.model import drills, find, load, roles, shipped, version_changes

    apart, changes, apaches = drills(), version_changes(), roles()
    known = {**shipped(), **apart, **changes, **apaches}
    if as_json and name is None:
        told = [
            {"name": each, "description": load(path).description, "drill": each in apart}
            for each, path in known.items()
        ]
        click.echo(json.dumps(told))
    elif as_json and name is not None:
        click.echo(json.dumps(find(name).model_dump(mode="json"), ensure_ascii=False))
    elif name is None:
        width = max(map(len, known))
        for each, path in known.items():
            if each == next(iter(apart)):
                click.echo("\nField drills, beside what was measured on real clusters (docs/drills.md):")
            if each == next(iter(changes)):
                click.echo("\nUpgrades of Apache's servers (docs/apache.md):")
            if each == next(iter(apaches)):
                click.echo("\nRoles that Apache's brokers alone have (docs/apache.md):")
            click.echo(f"{each:<{width}}  {load(path).description}")
    elif name in known:
        click.echo(known[name].read_text(encoding="utf-8"), nl=False)
    else:
        click.echo(find(name).to_yaml(), nl=False)
