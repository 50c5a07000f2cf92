"""`nemesrv defects`: lists the planted defects (chaos/proof/defects/)."""

import json

import click

from ..reports.text import rows_fitting, width_of_output
from .options import json_option


@click.command()
@json_option
def defects(as_json: bool) -> None:
    """List the defects that `nemesrv run --defect` can plant, and what each defect makes wrong.

    A defect is a bug that nemesrv plants in its own nodes to prove that the checks find the bug. The line
    below each defect names the nodes that get the defect, and a command that runs a scenario in which the checks find
    the defect. `--json` also names the checks that must find each defect, and the checks that may.
    """
    from ..scenarios.defect import shipped_defects

    known = shipped_defects()
    if as_json:
        told = [
            {"name": name, "what": one.what, "scenario": one.scenario, "found_by": sorted(one.caught_by)}
            | {"may_find": sorted(one.also), "planted_in": one.where, "command": one.command}
            for name, one in known.items()
        ]
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    for name, one in known.items():
        for line in rows_fitting([(f"{name}:", one.what)], width_of_output()):
            click.echo(line)
        click.echo("    " + ": ".join(filter(None, (f"in {one.where}", one.command))))
