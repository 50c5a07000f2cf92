"""What recorded runs measured, as samples to compare: recovery time, availability, staleness. Spark reads, no verdicts.

    recovery time   per client, operation and moment (a fault or a heal): until the first good operation begun after it
    availability    per client: the share of its operations that succeeded from the first fault to the end (without a
                    fault: of all)
    staleness       per NameServer or client, broker and change (the broker came or went; a NameServer process began
                    with an empty table): until the observer's route of the topic said so. 0 when it already did.
                    What never came right counts as long as it was watched, and is counted as cut short

Moments, operations and recoveries are those of the checks `recovery_time` and `availability`. Times are RocketMQ's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...checks.dataframes.gathering import gather
from ...checks.dataframes.operations import slots
from ...checks.dataframes.small_tables import frame
from ...checks.record.slots import Slot
from ...checks.service.recovery_time import recoveries
from ...oracle.causes import Cause, link_causes, process_causes
from ...oracle.intervals import Stretch, merged
from ...oracle.reach import moments
from ...oracle.recorded import Life
from ...oracle.world import World
from .measured import EVENTS, routes_of, windows_of
from .two_samples import Kind

METRICS: Mapping[str, Kind] = {
    "recovery time, send": Kind.TIMES,
    "recovery time, pull": Kind.TIMES,
    "availability, send": Kind.SHARES,
    "availability, pull": Kind.SHARES,
    "staleness, NameServers": Kind.TIMES,
    "staleness, clients": Kind.TIMES,
}
_OPERATIONS = {"send": "send", "pull": "pull"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSamples:
    """One run's samples by metric: milliseconds, or shares of 1."""

    run: str
    scenario: str
    settings: Mapping[str, object] = field(default_factory=dict)
    """profile, time_scale, timers and workload, as far as the history names them."""
    samples: Mapping[str, tuple[float, ...]]
    cut_short: Mapping[str, int] = field(default_factory=dict)
    """How many of a metric's samples ended before what they waited for."""
    windows: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """What is described and not tested (measured.py): milliseconds."""
    routes: Mapping[str, str] = field(default_factory=dict)
    """NameServer to what it held at the end."""


class Change(NamedTuple):
    """From `at_ms` to `until_ms` the observer's routes should (`present`) or should not name the broker."""

    id: int
    observer: str
    incarnation: int
    broker: str
    present: bool
    at_ms: float
    until_ms: float


def samples_of(run: str, history: DataFrame, world: World | None = None) -> RunSamples:
    """All samples of one history."""
    world = gather(history)[1] if world is None else world
    found = moments(world)
    seen = slots(history, world, [moment.at_ms for moment in found])
    samples: dict[str, list[float]] = {metric: [] for metric in METRICS}
    cut_short: dict[str, int] = defaultdict(int)
    for recovery in recoveries(world, found, seen):
        metric = f"recovery time, {recovery.operation}"
        watched_ms = recovery.until_ms - recovery.moment.at_ms
        if metric not in samples or (recovery.after_ms is None and watched_ms <= 0):
            continue
        if recovery.after_ms is None:
            cut_short[metric] += 1
        samples[metric].append(watched_ms if recovery.after_ms is None else recovery.after_ms)
    for operation in _OPERATIONS:
        samples[f"availability, {operation}"] += _shares(seen, operation, after=1 if found else 0)
    kinds = {node.name: "NameServers" for node in world.of_kind("name_server")}
    moved: dict[str, list[float]] = defaultdict(list)
    for change, stale_ms, done in _stale(history, world, changes(world)):
        kind = kinds.get(change.observer, "clients")
        metric = f"staleness, {kind}"
        samples[metric].append(stale_ms)
        cut_short[metric] += not done
        if done and stale_ms:
            moved[f"{'return' if change.present else 'drop'}, {kind}"].append(stale_ms)
    told = [row.asDict() for row in _told(history).collect()]
    timers = world.timers
    return RunSamples(
        run=run,
        scenario=str(world.run.get("scenario") or ""),
        settings={
            "profile": str(timers.profile),
            "time_scale": timers.time_scale,
            **timers.to_json(),
            **world.workload,
            **_implementations(world),
        },
        samples={metric: tuple(values) for metric, values in samples.items()},
        cut_short={metric: count for metric, count in cut_short.items() if count},
        windows={
            **windows_of(told),
            **{name: tuple(values) for name, values in moved.items()},
            "good send": tuple(_good_sends(history)),
        },
        routes=routes_of(told, list(kinds)),
    )


def _told(history: DataFrame) -> DataFrame:
    """The rows that measured.py reads, in order of time."""
    rows = history.where(F.col("event").isin(*EVENTS)).orderBy("time_ms", "seq")
    return rows.select("node", "event", "time_ms", "address", "code", "topic", "value")


def _good_sends(history: DataFrame) -> list[float]:
    """Of each producer the median, in milliseconds."""
    good = history.where((F.col("event") == "send") & (F.col("type") == "ok") & F.col("duration_ms").isNotNull())
    return [
        row["ms"] for row in good.groupBy("node").agg(F.median("duration_ms").alias("ms")).orderBy("node").collect()
    ]


def _implementations(world: World) -> dict[str, str]:
    """Kind to whose programs its nodes are."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in world.of_kind("name_server", "broker", "producer", "consumer"):
        found[node.kind].add(node.implementation)
    return {f"implementation of {kind}s": ", ".join(sorted(names)) for kind, names in found.items()}


def _shares(seen: Sequence[Slot], operation: str, *, after: int) -> list[float]:
    """Each client's share of good operations among those begun after so many moments."""
    good: dict[str, int] = defaultdict(int)
    all_: dict[str, int] = defaultdict(int)
    for slot in seen:
        if slot.operation == operation and slot.segment >= after:
            good[slot.node] += slot.good
            all_[slot.node] += slot.good + slot.bad
    return [good[node] / count for node, count in sorted(all_.items()) if count]


def changes(world: World) -> list[Change]:
    """Every change of what an observer's routes should name, as long as the observer lives undisturbed."""
    found: list[Change] = []
    for observer in world.of_kind("name_server", "producer", "consumer"):
        lives = world.lives_of(observer.name)
        for life in lives:
            starts_empty = observer.kind == "name_server" and life is not lives[0]
            for broker in world.of_kind("broker"):
                # A client's link to the broker tells it nothing of the routes.
                links = link_causes(world, broker.name, observer.name) if observer.kind == "name_server" else ()
                edges = _edges(world, life, broker.name, links, starts_empty=starts_empty)
                end_ms = min(life.end_ms, world.end_ms)
                for (at_ms, present), (until_ms, _) in pairwise([*edges, (end_ms, True)]):
                    if not _disturbed(world, life, at_ms, until_ms):
                        change = (observer.name, life.incarnation, broker.name, present, at_ms, until_ms)
                        found.append(Change(len(found), *change))
    return found


def _edges(
    world: World, life: Life, broker: str, links: Sequence[Cause], *, starts_empty: bool
) -> list[tuple[float, bool]]:
    """(when, whether the broker is there from then on) within this life; its first start is no change."""
    gone = merged(Stretch(cause.start_ms, cause.end_ms) for cause in (*process_causes(world, broker), *links))
    first_ms = min((other.start_ms for other in world.lives_of(broker)), default=math.inf)
    begin_ms, end_ms = max(life.start_ms, first_ms), min(life.end_ms, world.end_ms)
    edges = [(stretch.start_ms, False) for stretch in gone] + [(stretch.end_ms, True) for stretch in gone]
    edges = sorted(edge for edge in edges if begin_ms < edge[0] < end_ms)
    if starts_empty and not any(stretch.start_ms <= life.start_ms < stretch.end_ms for stretch in gone):
        edges.insert(0, (life.start_ms, True))
    return edges


def _disturbed(world: World, life: Life, from_ms: float, to_ms: float) -> bool:
    """Whether anything was done to this process then; what ended the one before it does not count."""
    faults = world.process_faults(life.node)
    return any(fault.start_ms >= life.start_ms and fault.overlaps(from_ms, to_ms) for fault in faults)


def _stale(history: DataFrame, world: World, found: Sequence[Change]) -> list[tuple[Change, float, bool]]:
    """How long each observer's route of the workload's topic was wrong after each change, and whether it came right.

    An observer that never had a route of the topic is left out: it does not ask for it.
    """
    if not found:
        return []
    schema = "id int, observer string, incarnation_ int, broker string, present boolean, at_ms double, until_ms double"
    asked = frame(history, list(found), schema)
    topic = world.workload.get("topic")
    rows = history.where(F.col("event").isin("route", "route_changed"))
    rows = rows.where(F.col("topic") == topic) if topic else rows
    named = F.map_keys(F.from_json("value", "brokers map<string, map<string, string>>")["brokers"])
    right = F.coalesce(F.array_contains(named, F.col("broker")), F.lit(False)) == F.col("present")
    moment = F.struct("time_ms", "seq")
    judged = (
        rows.join(asked, (F.col("node") == F.col("observer")) & (F.col("time_ms") < F.col("until_ms")))
        .withColumn("same_life", F.col("incarnation") == F.col("incarnation_"))
        .withColumn("right", right)
        .withColumn("before", F.col("time_ms") < F.col("at_ms"))
        .groupBy("id")
        .agg(
            F.max_by("right", F.when(F.col("before") & F.col("same_life"), moment)).alias("was_right"),
            F.min(F.when(~F.col("before") & F.col("same_life") & F.col("right"), F.col("time_ms"))).alias("right_ms"),
        )
    )
    by_id = {row["id"]: row for row in judged.collect()}
    stale: list[tuple[Change, float, bool]] = []
    for change in found:
        row = by_id.get(change.id)
        if row is None:
            continue
        if row["was_right"]:
            stale.append((change, 0.0, True))
        elif row["right_ms"] is None:
            stale.append((change, change.until_ms - change.at_ms, False))
        else:
            stale.append((change, row["right_ms"] - change.at_ms, True))
    return stale
