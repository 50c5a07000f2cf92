"""`nemesrv defects`: lists the planted defects (chaos/proof/defects/)."""

import json

import click

from ..reports.text import rows_fitting, width_of_output
from .options import json_option


@click.command()
@json_option
def defects(as_json: bool) -> None:
    """List the planted defects, each with what it makes wrong.

    A planted defect is a fault that nemesrv puts into its own nodes to prove that the checks find it. `nemesrv run
    SCENARIO --defect NAME` plants the defect NAME; SCENARIO is in brackets, or the command that plants the defect.
    `--json` says which checks find each defect.
    """
    from ..scenarios.defect import shipped_defects

    known = shipped_defects()
    if as_json:
        told = [
            {"name": name, "what": one.what, "scenario": one.scenario, "found_by": sorted(one.caught_by)}
            for name, one in known.items()
        ]
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    longest = max(map(len, known))
    rows = [(name.ljust(longest), f"{one.what} [{one.scenario or 'nemesrv museum'}]") for name, one in known.items()]
    for line in rows_fitting(rows, width_of_output()):
        click.echo(line)
