"""`nemesrv import` reads logs, reconstructs the incident, infers its faults, writes a run folder and judges the run.

LOGS ─► gather (Spark) ─► reconstruct ─► episodes_of ─► history/, incident.json, scenario.yaml ─► judge ─► report
"""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...chaos.checks import CHECKS
from ...chaos.errors import ScenarioError
from ...chaos.experiment.harness import Harness
from ...chaos.experiment.run_folder import RunFolder, refuse_used
from ...chaos.history.rows import write_parquet
from ...chaos.installation import require_extras
from ...chaos.judging import Engine, exit_status, find, judge, reasons, show
from ...chaos.logs.files import LogError
from ...chaos.logs.reading import OF_A_RUN, are_large
from ...chaos.preflight import MachineNeeds, require
from ...chaos.reports.ci import INCIDENT
from ...chaos.scenarios.model import ClusterModel, Scenario, TimersModel, WorkloadModel
from ..inferring.conditions import conditions, episodes_said, shared
from ..inferring.episodes import episodes_of
from ..inferring.said import Hearing, all_heard
from ..inferring.suffering import suffered
from ..logs_to_rows.gather import Gathered, gather, not_quoted
from ..logs_to_rows.line import zone_ms_of
from ..logs_to_rows.reconstruct import Reconstructed, reconstruct
from ..logs_to_rows.writing import numbered
from .fault_rows import fault_rows, unknown_rows
from .printing import lines_of, undecided_lines


def import_and_judge(
    logs: Sequence[str],
    out: Path,
    zones: Sequence[str],
    offsets: Sequence[str],
    spark_master: str | None,
    *,
    as_json: bool = False,
) -> int:
    """Import the logs and judge the incident in them. Returns the exit status. Raises ScenarioError for a wrong option
    before anything is started."""
    given_zones, given_offsets = zones_given(zones), offsets_given(offsets)
    refuse_used(out)
    require_extras("nemesrv import", "spark")
    require(MachineNeeds(), out.parent if out.parent.exists() else Path())
    with Harness(spark_master=spark_master, gentle=False, large=are_large(logs)) as harness:
        spark = harness.spark()
        one = written(out, gather(spark, logs, listens=Hearing), zones=given_zones, offsets=given_offsets)
        if not as_json:
            for line in lines_of(one.document):
                click.echo(line)
        judged = judge(find(str(one.folder.path), None, harness.spark), Engine.SPARK, harness.spark)
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
        show(judged, names_left_out=False)
        for line in undecided_lines(left_out, one.document):
            click.echo(line)
    return exit_status([judged])


def zones_given(given: Sequence[str]) -> dict[str, int]:
    """Return the time zones that `--zone` gives (`ns-0=+08:00`), in milliseconds. Raises ScenarioError for a text that
    is no zone."""
    found = {}
    for text in given:
        source, _, zone = text.rpartition("=")
        zone_ms = zone_ms_of(zone)
        if zone_ms is None:
            raise ScenarioError(
                "--zone", "", repr(text), "SOURCE=+08:00, or +08:00 for all sources; a zone from -14:00 to +14:00"
            )
        found[source or "*"] = zone_ms
    return found


def offsets_given(given: Sequence[str]) -> dict[str, float]:
    """Return the clock offsets that `--offset` gives (`ns-0=+1.5s`), in milliseconds. Raises ScenarioError for a text
    that is no offset."""
    units = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
    found = {}
    for text in given:
        source, _, offset = text.rpartition("=")
        said = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)(ms|s|m|h|d)", offset.strip())
        ahead_ms = math.inf if said is None or not source else float(said[1]) * units[said[2]]
        if abs(ahead_ms) > 36_500 * units["d"]:
            allowed = "SOURCE=+1.5s, how far that source's clock is ahead, in ms, s, m, h or d, up to 36500d"
            raise ScenarioError("--offset", "", repr(text), allowed)
        found[source] = ahead_ms
    return found


@dataclass(frozen=True, slots=True)
class Imported:
    folder: RunFolder
    found: Reconstructed
    document: Mapping[str, Any]
    """The contents of incident.json."""


def written(
    out: Path,
    read: Gathered,
    *,
    zones: Mapping[str, int] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> Imported:
    """Write the run folder of the incident in these log lines, without Spark. Raises LogError if no log is
    RocketMQ's."""
    texts = all_heard(read.listeners)
    refuse_used(out)
    name = re.sub(r"[^a-z0-9-]+", "-", out.resolve().name.lower()).strip("-")
    name = name if name[:1].isalpha() else f"imported-{name}".strip("-")
    found = reconstruct(read.lines, read.files, zones=zones, offsets=offsets, name=name[:60])
    if not found.found:
        if own := [note.partition(": none of its ")[0] for note in read.notes if note.endswith(OF_A_RUN)]:
            more = f" and {len(own) - 1} more are logs" if own[1:] else " is a log"
            raise LogError(
                f"{own[0]}{more} of a run of nemesrv, and import reads only logs of RocketMQ's programs: "
                "`nemesrv check RUN_DIR` judges a run, and `nemesrv replay RUN_DIR` repeats it"
            )
        first = shared(conditions(texts.said))[:1]
        outright = (f"one line says: {one.sentence} ({one.lines[0][0]}; `nemesrv doctor` reads it)" for one in first)
        said = [*outright, *read.notes, *found.notes]
        raise LogError(
            " ".join(f"{note}." if not note.endswith(".") else note for note in said)
            + (" " if said else "")
            + "no line of these logs is one that a NameServer, a broker or a client writes of itself; expected "
            "namesrv.log, broker.log, remoting.log, rocketmq_client.log and logs of programs with RocketMQ's loggers"
        )
    told = episodes_of(found.rows, timers=found.timers_used)
    told.episodes += episodes_said(found, texts, told.episodes)
    told.episodes.sort(key=lambda one: (one.follows is not None, one.from_ms))
    inferred = told.to_json()
    end_ms = max(row["time_ms"] for row in found.rows)
    faults, stretches = fault_rows(found.nodes.roles, inferred["episodes"], end_ms)
    unknown = unknown_rows(found, stretches, end_ms)
    signs = (sign for one in told.episodes for sign in one.hypotheses[0].speaks_for)
    quoted = {sign["file"] for sign in signs if "file" in sign}
    rows = numbered([*found.rows, *faults, *unknown])
    document = {
        **found.to_json(),
        **inferred,
        "suffered": [one.to_json(found.zone) for one in suffered(found, texts)],
        "checks_need": logs_for(found.nodes.roles, {source.name for source in found.found}),
        "not_understood": [{"lines": count, "shape": shape} for count, shape in read.shapes],
        "reading": not_quoted(read.notes, quoted),
    }
    folder = RunFolder.create(name, out)
    write_parquet(rows, folder.path)
    folder.scenario_file.write_text(_scenario(name[:60], found).to_yaml(), encoding="utf-8")
    (folder.path / INCIDENT).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    folder.remove_empty("history/_raw", "data", "logs")
    return Imported(folder, found, document)


_LOG = {
    "name_server": "namesrv.log",
    "broker": "broker.log and remoting.log",
    "slave": "broker.log and remoting.log",
    "producer": "rocketmq_client.log",
    "consumer": "rocketmq_client.log",
}


def logs_for(roles: Mapping[str, str], logged: Collection[str]) -> dict[str, str]:
    """Return for each node without a log which of its log files would help the checks."""
    missing = sorted(node for node in roles if node not in logged)
    return {node: _LOG[roles[node]] for node in missing if roles[node] in _LOG}


def _scenario(name: str, found: Reconstructed) -> Scenario:
    """Return a scenario with the number of nodes of each role, within a scenario's limits."""
    kinds = [*found.nodes.roles.values()]
    masters = max(kinds.count("broker"), 1)
    return Scenario(
        name=name,
        description=f"Imported from logs. No run: see {INCIDENT}.",
        cluster=ClusterModel(
            name_servers=min(max(kinds.count("name_server"), 1), 9),
            brokers=min(masters, 26),
            slaves=min(-(-kinds.count("slave") // masters), 3),
            profile=found.timers_used.profile.value,
        ),
        timers=TimersModel(time_scale=1),
        workload=WorkloadModel(
            producers=kinds.count("producer"), consumers=kinds.count("consumer"), client_starts=0, prober=True
        ),
        checks=tuple(CHECKS),
        seed=0,
    )
