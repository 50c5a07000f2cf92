"""`nemesrv check`: recorded histories judged again (runner.py, judging.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .ending import supervised
from .options import check_names, json_option, summary_option
from .values import SparkMaster


@click.command()
@click.argument("run_dir", nargs=-1, required=True)
@click.option("--spark-master", type=SparkMaster(), help="Judge on this Spark cluster instead of in this process.")
@click.option(
    "--checks",
    metavar="NAME,...",
    help="These checks instead of the scenario's; all: every one.",
    shell_complete=check_names,
)
@summary_option
@json_option
@supervised
def check(
    run_dir: tuple[str, ...], spark_master: str | None, checks: str | None, summary: Path | None, as_json: bool
) -> None:
    """Judge recorded histories again.

    RUN_DIR is a run folder, or whatever Spark can read: a folder of Parquet files, hdfs://..., s3a://.... Verdicts and
    reports are written to run folders of this machine; beyond some 400,000 events no report is drawn.
    """
    from ..judging import named_checks
    from ..runner import check_all

    sys.exit(check_all(run_dir, named_checks(checks, "--checks"), spark_master, summary, as_json=as_json))
