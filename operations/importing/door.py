"""The one door of `nemesrv import`: options first, then Spark, the folder, the verdicts, and what is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ...chaos.experiment.harness import Harness
from ...chaos.experiment.run_folder import refuse_used
from ...chaos.installation import require_extras
from ...chaos.judging import exit_status, find, judge, reasons, show
from ...chaos.logs.files import LogError, planned
from ...chaos.preflight import Needs, require
from ...chaos.reports.summary import INCIDENT
from .importing import config_lines, import_logs, offsets_given, zones_given
from .printing import lines_of, undecided_lines

LARGE_LOGS = 256 * 1024 * 1024
"""Bytes of logs from which on their history may be more than a session for a small one holds."""


def import_and_judge(
    logs: Sequence[str],
    out: Path,
    configs: Sequence[Path],
    zones: Sequence[str],
    offsets: Sequence[str],
    spark_master: str | None,
    *,
    as_json: bool = False,
) -> int:
    """The exit status. ScenarioError for a wrong option, before anything is started."""
    given_zones, given_offsets = zones_given(zones), offsets_given(offsets)
    settings = config_lines(configs)
    refuse_used(out)
    require_extras("nemesrv import", "spark")
    require(Needs(), out.parent if out.parent.exists() else Path())
    with Harness(spark_master=spark_master, gentle=False, large=_are_large(logs)) as harness:
        spark = harness.spark()
        one = import_logs(spark, logs, out, zones=given_zones, offsets=given_offsets, configs=settings)
        if not as_json:
            for line in lines_of(one):
                click.echo(line)
        judged = judge(find(str(one.folder.path), None, harness.spark), spark)
    left_out = reasons(judged.left_out)
    if as_json:
        document = {
            "run_dir": str(one.folder.path),
            "incident": str(one.folder.path / INCIDENT),
            "verdict": str(judged.verdict),
            "checks": [verdict.to_json() for verdict in judged.verdicts],
            "left_out": left_out,
            **one.document,
        }
        click.echo(json.dumps(document, ensure_ascii=False, default=str))
    else:
        show(judged)
        for line in undecided_lines(left_out):
            click.echo(line)
    return exit_status([judged])


def _are_large(logs: Sequence[str]) -> bool:
    """Whether Spark is to be started for a large history; what is wrong with the places, who reads them says."""
    try:
        sizes = {part.path: part.size for part in planned(logs).parts}
    except LogError:
        return any("://" in place for place in logs)
    return sum(sizes.values()) > LARGE_LOGS
