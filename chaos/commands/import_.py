"""`nemesrv import`: logs of a real cluster become a history with the faults that explain it (operations/importing/)."""

import sys
from pathlib import Path

import click

from .ending import supervised
from .options import SPARK_MASTER, json_option, offset_option, zone_option


@click.command(name="import")
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Run folder to write. The folder must be new or empty.",
)
@zone_option
@offset_option
@click.option("--spark-master", type=SPARK_MASTER, help="URL of the Spark cluster that reads and judges the logs.")
@json_option
@supervised
def import_logs(
    logs: tuple[str, ...],
    out: Path,
    zones: tuple[str, ...],
    offsets: tuple[str, ...],
    spark_master: str | None,
    as_json: bool,
) -> None:
    """Reconstruct an incident from LOGS: files, folders and globs of namesrv.log, broker.log, remoting.log,
    rocketmq_client.log …, also gzipped, zipped and rotated files.

    \b
    nemesrv import collected/ --out runs/incident
    nemesrv import 'ns-*/*.log*' app.log --zone app.log=+00:00 --out runs/incident     app.log has UTC times
    nemesrv import - --out runs/incident     read from standard input

    The run folder gets a history (history/), the verdicts, and incident.json with topology, clocks, timers, time line,
    ranked faults, and what clients suffered. Printed times of day are in the time zone that most of the logs use.
    `nemesrv replay` runs the incident again. Exit status: 0 VALID, 1 INVALID, 2 a wrong argument or log, 3 UNKNOWN,
    4 nemesrv failed.
    """
    from ...operations.importing.importing import import_and_judge
    from ..logs.files import with_standard_input

    with with_standard_input(logs, sys.stdin.buffer) as here:
        sys.exit(import_and_judge(here, out, zones, offsets, spark_master, as_json=as_json))
