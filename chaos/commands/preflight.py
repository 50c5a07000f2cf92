"""`nemesrv preflight`: has this machine what a run needs (chaos/preflight.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .ending import EXIT_HARNESS
from .options import scenario_names


@click.command()
@click.argument("scenario", default="broker-partition", shell_complete=scenario_names)
@click.option("--out", type=click.Path(path_type=Path), default="runs", help="Where the run folder is to be.")
def preflight(scenario: str, out: Path) -> None:
    """Has this machine what SCENARIO needs: Java, open files, memory, disk, ports, Toxiproxy. Starts nothing.

    Every run looks first, too. Exit status: 0 all is there, 4 something is missing; the line says how to mend it.
    """
    from ..installation import has
    from ..machine import measure
    from ..preflight import Needs, findings
    from ..scenarios.loading import find

    asked = find(scenario)
    virtual = asked.clock == "virtual"
    needs = Needs.of_judging(spark=False) if virtual else Needs.of_run(asked, spark=has("spark"))
    found = findings(measure(out), needs)
    for finding in found:
        click.echo(f"{finding.part:<16}  {'MISSING: ' + finding.mend if finding.mend else finding.found}")
    sys.exit(EXIT_HARNESS if any(finding.mend for finding in found) else 0)
