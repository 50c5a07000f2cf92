"""`nemesrv scenarios`: lists and prints the shipped scenarios."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ..errors import ScenarioError
from ..reports.text import rows_fitting, width_of_output
from .options import json_option, scenario_names

_TITLES = {
    "": "",
    "drills": "Field drills, which were also run on real clusters (docs/drills.md):",
    "upgrades": "Upgrades of Apache's servers and clients (docs/apache.md):",
    "roles": "Roles that only Apache's brokers have (docs/apache.md):",
    "selftest": "Scenarios in which planted defects are found (nemesrv defects):",
}


@click.command()
@click.argument("name", required=False, shell_complete=scenario_names)
@click.option("--incidents", "of_incidents", is_flag=True, help="List the reported incidents with their issue numbers.")
@json_option
def scenarios(name: str | None, of_incidents: bool, as_json: bool) -> None:
    """List the shipped scenarios, or print the YAML file of the scenario NAME."""
    from ..scenarios.loading import all_shipped, find, load, shipped

    if of_incidents and name is not None:
        raise ScenarioError("scenarios", "--incidents", name, "no NAME beside it")
    incidents = shipped("incidents")
    if of_incidents:
        _list_incidents(incidents, as_json=as_json)
    elif name is not None and as_json:
        click.echo(json.dumps(find(name).model_dump(mode="json"), ensure_ascii=False))
    elif name is not None:
        path = all_shipped().get(name)
        click.echo(find(name).to_yaml() if path is None else path.read_text(encoding="utf-8"), nl=False)
    elif as_json:
        listed = [
            {"name": each, "description": load(path).description, "drill": kind == "drills"}
            for kind in _TITLES
            for each, path in shipped(kind).items()
        ]
        click.echo(json.dumps(listed))
    else:
        longest = max(len(each) for kind in _TITLES for each in shipped(kind))
        for kind, title in _TITLES.items():
            if title:
                click.echo()
                _print([(title,)])
            _print([(each.ljust(longest), load(path).description) for each, path in shipped(kind).items()])
        click.echo()
        _print([(f"{len(incidents)} reported incidents: nemesrv scenarios --incidents",)])


def _list_incidents(files: Mapping[str, Path], *, as_json: bool) -> None:
    from ..scenarios.loading import load

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
