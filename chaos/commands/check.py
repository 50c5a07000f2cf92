"""`nemesrv check`: judges recorded histories again (runner.py, judging.py)."""

import sys
from typing import Any

import click

from . import options
from .ending import supervised


@click.command()
@click.argument("run_dir", nargs=-1, required=True)
@options.engine_option
@click.option("--spark-master", type=options.SPARK_MASTER, help="URL of the Spark cluster on which the checks run.")
@click.option(
    "--checks",
    metavar="NAME,...",
    help="Checks to run instead of the scenario's checks: names separated by commas, or `all`.",
    shell_complete=options.check_names,
)
@options.short_option
@options.summary_option
@options.full_option
@options.json_option
@supervised
def check(
    run_dir: tuple[str, ...], engine: str | None, spark_master: str | None, checks: str | None, **shown: Any
) -> None:
    """Judge the recorded history of each RUN_DIR again.

    RUN_DIR is a run folder, a folder of Parquet files, or another place that Spark can read: hdfs://..., s3a://....
    Spark judges all histories if Spark is installed, also the small ones of the virtual clock. For a small history
    `--engine plain` is faster; `nemesrv run` uses plain Python for small histories. Verdicts and reports are written
    into run folders on this machine. A history of more than about 400,000 events gets no report. The exit status is
    the same as that of `nemesrv run`."""
    from ..judging import named_checks
    from ..runner import check_all

    names = named_checks(checks, "--checks")
    sys.exit(check_all(run_dir, names, spark_master, engine=options.engine_asked(engine, spark_master), **shown))
