"""`nemesrv scenarios`: what ships."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ..errors import ScenarioError
from ..reports.rows import rows_fitting, width_of_output
from .options import json_option, scenario_names


@click.command()
@click.argument("name", required=False, shell_complete=scenario_names)
@click.option("--incidents", "of_incidents", is_flag=True, help="Reported incidents, with their upstream numbers.")
@json_option
def scenarios(name: str | None, of_incidents: bool, as_json: bool) -> None:
    """List the scenarios that ship, one line each, and the field drills apart; with a NAME, show that file."""
    from ..scenarios.model import drills, find, incidents, load, roles, shipped, version_changes

    if of_incidents and name is not None:
        raise ScenarioError("scenarios", "--incidents", name, "no NAME beside it")
    if of_incidents:
        _list_incidents(incidents(), as_json=as_json)
        return
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
        longest = max(map(len, known))
        for title, of_title in (
            ("", shipped()),
            ("Field drills, beside what was measured on real clusters (docs/drills.md):", apart),
            ("Upgrades of Apache's servers and clients (docs/apache.md):", changes),
            ("Roles that Apache's brokers alone have (docs/apache.md):", apaches),
        ):
            if title:
                click.echo()
                _print([(title,)])
            _print([(each.ljust(longest), load(path).description) for each, path in of_title.items()])
        click.echo()
        _print([(f"{len(incidents())} reported incidents: nemesrv scenarios --incidents",)])
    elif name in (files := {**known, **incidents()}):
        click.echo(files[name].read_text(encoding="utf-8"), nl=False)
    else:
        click.echo(find(name).to_yaml(), nl=False)


def _list_incidents(files: Mapping[str, Path], *, as_json: bool) -> None:
    from ..scenarios.model import load

    known = {name: load(path) for name, path in files.items()}
    if as_json:
        told = [
            {"name": name, "description": one.description, **one.incident.model_dump(mode="json")}
            for name, one in known.items()
            if one.incident is not None
        ]
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    _print(
        [
            (name, f"{one.description} ({', '.join(one.incident.upstream)})")
            for name, one in known.items()
            if one.incident is not None
        ]
    )


def _print(rows: Sequence[Sequence[str]]) -> None:
    for line in rows_fitting(rows, width_of_output()):
        click.echo(line)
