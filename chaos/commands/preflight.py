"""`nemesrv preflight`: whether this machine has what a run needs (chaos/preflight.py)."""

import sys
from pathlib import Path

import click

from .ending import EXIT_HARNESS
from .options import scenario_names


@click.command()
@click.argument("scenario", default="broker-partition", shell_complete=scenario_names)
@click.option(
    "--out", type=click.Path(path_type=Path), default="runs", help="Folder whose disk must have space (default: runs)."
)
def preflight(scenario: str, out: Path) -> None:
    """Say whether this machine has what SCENARIO needs: Java, open files, processes, memory, disk, ports, Toxiproxy.

    Every run makes the same tests before its start. Exit status: 0 nothing is missing; 4 something is missing, and a
    printed line for each missing thing says what to do.
    """
    from ..installation import has
    from ..machine import measure
    from ..preflight import MachineNeeds, machine_parts
    from ..scenarios.loading import find

    asked = find(scenario)
    virtual = asked.clock == "virtual"
    needs = MachineNeeds.of_judging(spark=False) if virtual else MachineNeeds.of_run(asked, spark=has("spark"))
    found = machine_parts(measure(out), needs)
    for each in found:
        click.echo(f"{each.part:<16}  {'MISSING: ' + each.mend if each.mend else each.found}")
    sys.exit(EXIT_HARNESS if any(each.mend for each in found) else 0)
