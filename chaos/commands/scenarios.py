"""`nemesrv scenarios`: what ships."""

from __future__ import annotations

import json

import click

from .options import json_option, scenario_names


@click.command()
@click.argument("name", required=False, shell_complete=scenario_names)
@json_option
def scenarios(name: str | None, as_json: bool) -> None:
    """List the scenarios that ship, one line each; with a NAME, show that file."""
    from ..scenarios.model import find, load, shipped

    known = shipped()
    if as_json and name is None:
        click.echo(json.dumps([{"name": each, "description": load(path).description} for each, path in known.items()]))
    elif as_json and name is not None:
        click.echo(json.dumps(find(name).model_dump(mode="json"), ensure_ascii=False))
    elif name is None:
        width = max(map(len, known))
        for each, path in known.items():
            click.echo(f"{each:<{width}}  {load(path).description}")
    elif name in known:
        click.echo(known[name].read_text(encoding="utf-8"), nl=False)
    else:
        click.echo(find(name).to_yaml(), nl=False)
