"""`nemesrv import`: logs read, an incident reconstructed, its faults inferred, and a run folder of it, judged.

LOGS ─► gather (Spark) ─► reconstruct ─► episodes_of ─► history/, incident.json, scenario.yaml ─► judge ─► report
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...chaos.checks import CHECKS
from ...chaos.errors import ScenarioError
from ...chaos.experiment.run_folder import RunFolder, refuse_used
from ...chaos.logs.files import LogError
from ..inferring.episodes import episodes_of
from ..logs_to_rows.line import FileAbout, Line, zone_ms_of
from ..logs_to_rows.reconstruct import Reconstructed, reconstruct
from ..logs_to_rows.timeline import wall_text
from ..logs_to_rows.writing import numbered
from .fault_rows import fault_rows, unknown_rows
from .folder import counted_scenario, write_folder
from .supports import logs_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Imported:
    """An incident in a run folder."""

    folder: RunFolder
    found: Reconstructed
    document: Mapping[str, Any]
    """What incident.json has."""
    rows: int
    reading: Sequence[str] = ()
    """What is to be said of files that could not be read whole."""


def zones_given(given: Sequence[str]) -> dict[str, int]:
    """`ns-0=+08:00` … ScenarioError for what is no zone."""
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
    """`ns-0=+1.5s` in milliseconds. ScenarioError for what is none."""
    units = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
    found = {}
    for text in given:
        source, _, offset = text.rpartition("=")
        said = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)(ms|s|m|h|d)", offset.strip())
        if said is None or not source:
            raise ScenarioError(
                "--offset", "", repr(text), "SOURCE=+1.5s, how far that source's clock is ahead, in ms, s, m, h or d"
            )
        found[source] = float(said[1]) * units[said[2]]
    return found


def config_lines(files: Sequence[Path]) -> list[Line]:
    """The settings of broker.conf and namesrv.conf files, each as a line of a log. ScenarioError for what is none."""
    found: list[Line] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise ScenarioError(
                "--config", "", str(path), "a readable file of RocketMQ's settings, KEY=VALUE a line"
            ) from exc
        before = len(found)
        for number, line in enumerate(text.splitlines(), 1):
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith("#") and re.fullmatch(r"[A-Za-z][\w.]*\s*", key):
                fields = {"key": key.strip(), "value": value.strip()}
                found.append(Line(str(path), "", number, 0.0, 1000, None, "main", "config", "setting", fields))
        if len(found) == before:
            raise ScenarioError(
                "--config", "", str(path), "a file of RocketMQ's settings, KEY=VALUE a line; none is in it"
            )
    return found


def import_logs(
    spark: SparkSession,
    places: Sequence[Path | str],
    out: Path,
    *,
    zones: Mapping[str, int],
    offsets: Mapping[str, float],
    configs: Sequence[Line] = (),
) -> Imported:
    """The run folder of the incident that these logs tell. HarnessError where they tell none."""
    from ..logs_to_rows.gather import gather

    read = gather(spark, places)
    return written(
        out,
        read.lines,
        read.files,
        zones=zones,
        offsets=offsets,
        configs=configs,
        reading=read.notes,
        shapes=read.shapes,
    )


def written(
    out: Path,
    lines: Sequence[Line],
    files: Sequence[FileAbout] = (),
    *,
    zones: Mapping[str, int] | None = None,
    offsets: Mapping[str, float] | None = None,
    configs: Sequence[Line] = (),
    reading: Sequence[str] = (),
    shapes: Sequence[tuple[int, str]] = (),
) -> Imported:
    """The same from lines that were read already. No Spark."""
    refuse_used(out)
    name = re.sub(r"[^a-z0-9-]+", "-", out.resolve().name.lower()).strip("-")
    name = name if name[:1].isalpha() else f"imported-{name}".strip("-")
    found = reconstruct(lines, files, zones=zones, offsets=offsets, configs=configs, name=name[:60])
    if not found.found:
        raise LogError(
            " ".join(f"{note}." if not note.endswith(".") else note for note in reading)
            + (" " if reading else "")
            + "no line of these logs is one that a RocketMQ server or client writes of itself: allowed are "
            "namesrv.log, broker.log, remoting.log, rocketmq_client.log and logs of programs with RocketMQ's loggers"
        )
    inferred = episodes_of(found.rows, timers=found.timers_used).to_json()
    end_ms = max(row["time_ms"] for row in found.rows)
    faults, stretches = fault_rows(found.nodes.roles, inferred["episodes"], end_ms)
    unknown = unknown_rows(found, stretches, end_ms)
    rows = numbered([*found.rows, *faults, *unknown])
    document = {
        **found.to_json(),
        **inferred,
        "checks_need": logs_for(found.nodes.roles, {source.name for source in found.found}),
        "not_understood": [{"lines": count, "shape": shape} for count, shape in shapes],
        "reading": list(reading),
    }
    folder = RunFolder.create(name, out)
    learnt = f"Imported from logs, whose time 0 is {wall_text(found.origin_ms)}"
    scenario = counted_scenario(
        name[:60], learnt, found.nodes.roles.values(), found.timers_used.profile, checks=CHECKS, prober=True
    )
    write_folder(folder, rows, scenario, document)
    _remove_empty(folder)
    return Imported(folder, found, document, len(rows), reading)


def _remove_empty(folder: RunFolder) -> None:
    """An import has no processes of its own, and none of their files."""
    for inner in ("history/_raw", "data", "logs"):
        place = folder.path / inner
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
