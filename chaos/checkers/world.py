"""What the harness did to whom: when each node lived, and when each fault of a process or a link lasted.

Derived in Spark from the rows `node`, `started`, `stopped`, `fault`, `phase`, `run_begin` and `run_end`, with window
functions, and collected in one action: these tables are as large as the scenario, not as the history.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..windows import Loss, Timers


@dataclass(frozen=True, slots=True)
class NodeInfo:
    name: str
    kind: str
    address: str | None


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a node: from the moment it was started until it ended (inf: it did not)."""

    node: str
    incarnation: int
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a process (`target` None) or of a directed link, `source` being the one that dials."""

    fault_id: str
    fault: str
    injection: str
    source: str
    target: str | None
    stream: str | None
    start_ms: float
    end_ms: float
    value: Mapping[str, Any] = field(default_factory=dict)

    def loss(self, timers: Timers) -> Loss:
        return Loss.of(self.fault, self.injection, self.stream, self.value, timers)

    def overlaps(self, from_ms: float, to_ms: float) -> bool:
        return self.start_ms < to_ms and self.end_ms > from_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The environment of one run."""

    timers: Timers
    nodes: tuple[NodeInfo, ...] = ()
    lives: tuple[Life, ...] = ()
    faults: tuple[Fault, ...] = ()
    end_ms: float = 0.0
    """Where judging ends: before the harness takes the cluster down."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """What `run_begin` says of the run: scenario, seed, profile, client_profile …"""

    @classmethod
    def observe(cls, history: DataFrame, timers: Timers | None = None) -> World:
        """From the history's rows. `timers` None takes those that `run_begin` names."""
        rows = [row.asDict() for row in _environment(history).collect()]
        begin = next((row for row in rows if row["what"] == "run_begin"), None)
        last_ms = next((row["start_ms"] for row in rows if row["what"] == "last"), None) or 0.0
        ends = [row["start_ms"] for row in rows if row["what"] == "end"]
        end_ms = min(ends, default=last_ms)
        faults = tuple(
            sorted(
                (
                    Fault(
                        fault_id=row["fault_id"] or "",
                        fault=row["fault"] or "",
                        injection=row["injection"] or "",
                        source=row["source"],
                        target=row["target"],
                        stream=row["stream"],
                        start_ms=row["start_ms"],
                        end_ms=_or_inf(row["end_ms"]),
                        value=_object(row["value"]),
                    )
                    for row in rows
                    if row["what"] == "fault"
                ),
                key=lambda fault: (fault.start_ms, fault.fault_id, fault.source, fault.target or ""),
            )
        )
        run = _object(begin["value"]) if begin else {}
        if timers is None:
            timers = Timers.from_json(run)
        nodes = tuple(
            NodeInfo(row["source"], str(_object(row["value"]).get("kind", "")), row["address"])
            for row in sorted((row for row in rows if row["what"] == "node"), key=lambda row: str(row["source"]))
        )
        lives = _lives(rows, nodes, faults)
        return cls(timers=timers, nodes=nodes, lives=lives, faults=faults, end_ms=end_ms, run=run)

    def of_kind(self, *kinds: str) -> tuple[NodeInfo, ...]:
        return tuple(node for node in self.nodes if node.kind in kinds)

    def lives_of(self, node: str) -> tuple[Life, ...]:
        return tuple(life for life in self.lives if life.node == node)

    def process_faults(self, node: str) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.source == node and fault.target is None)

    def link_faults(self, source: str, target: str) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.source == source and fault.target == target)

    def pauses(self) -> tuple[Fault, ...]:
        """The faults that stop a process without ending it: its timers are late by design."""
        return tuple(f for f in self.faults if f.target is None and f.loss(self.timers) is Loss.SILENT)


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else float(value)


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


_EVENTS = ("run_begin", "run_end", "phase", "node", "started", "stopped", "fault")


def _environment(history: DataFrame) -> DataFrame:
    """what (run_begin|end|last|node|life|fault), start_ms, end_ms and the harness's columns.

    A fault ends at the `end` row of its fault_id, source and target; a life at the next row of its node.
    """
    event, phase = F.col("event"), F.col("phase")
    is_life = event.isin("started", "stopped")
    source = F.when(is_life, F.col("node")).otherwise(F.col("source"))
    what = (
        F.when(event == "started", "life")
        .when((event == "fault") & (phase == "start"), "fault")
        .when((event == "run_end") | ((event == "phase") & (phase == "end")), "end")
        .when(event.isin("run_begin", "node"), event)
    )
    of_one = Window.partitionBy("kind", "fault_id", "source", "target").orderBy("time_ms", "seq")
    ends = (F.col("kind") == "life") | (F.lead("phase").over(of_one) == "end")
    columns = ("source", "target", "incarnation", "fault_id", "fault", "injection", "stream", "address", "value")
    rows = (
        history.where(event.isin(*_EVENTS))
        .withColumns({"source": source, "what": what, "kind": F.when(is_life, "life").otherwise(event)})
        .withColumn("end_ms", F.when(ends, F.lead("time_ms").over(of_one)))
        .where(F.col("what").isNotNull())
        .select("what", F.col("time_ms").alias("start_ms"), "end_ms", *columns)
    )
    last = history.agg(F.max("time_ms").alias("start_ms")).select(F.lit("last").alias("what"), "start_ms")
    return rows.unionByName(last, allowMissingColumns=True)


def _lives(rows: list[dict[str, Any]], nodes: tuple[NodeInfo, ...], faults: tuple[Fault, ...]) -> tuple[Life, ...]:
    """Each `started` until `stopped`, the next `started`, or the fault that ended the process, whichever is first."""
    lives: list[Life] = []
    for row in rows:
        if row["what"] != "life":
            continue
        start_ms, end_ms = float(row["start_ms"]), _or_inf(row["end_ms"])
        for fault in faults:
            ends_process = fault.target is None and (
                fault.fault in ("kill", "stop", "restart") or fault.injection in ("sigkill", "sigterm")
            )
            if ends_process and fault.source == row["source"] and start_ms <= fault.start_ms < end_ms:
                end_ms = fault.start_ms
        lives.append(Life(row["source"], int(row["incarnation"] or 0), start_ms, end_ms))
    return tuple(sorted(lives, key=lambda life: (life.node, life.start_ms)))
