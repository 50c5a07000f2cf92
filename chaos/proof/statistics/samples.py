"""Computes the samples of a run that `nemesrv compare` compares (recovery time, availability, staleness), and the times
that it only shows.

    recovery time   per client, operation and moment (a fault or a heal): until the first good operation begun after
                    it, at any broker
    availability    per client: the share of its operations that succeeded from the first fault to the end (without a
                    fault: of all)
    staleness       per NameServer or client, broker and change (the broker came or went; a NameServer process began
                    with an empty table): until the observer's route of the topic said so. 0 when it already did. A
                    route that never became right counts until the end of the run, as cut short
    longest time without a broker
                    of all clients, the longest time in which one broker answered none of a client's sends and pulls
                    (reports/cost.py); 0 if no client was without a broker

Times that are shown, but not tested.

    registration period      per NameServer and broker: from one accepted registration to the next
    silence before a drop    per drop for silence at a NameServer: since the broker's last registration there
    drop, return             staleness of changes that came right, but not at once
    good send                per producer: the median of its sends that succeeded

Moments, operations and recoveries are defined as in the checks `recovery_time` and `availability`. Times are
RocketMQ's.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from ...checks.plain.slots import slots_between
from ...checks.plain.verdicts import in_memory
from ...checks.record.recoveries import recoveries
from ...checks.record.slots import OPERATIONS, Slot, Tally
from ...history.rows import to_table
from ...history.schema import object_of
from ...history.transitions import seen
from ...oracle.intervals import Stretch, merged
from ...oracle.link import Cause, link_causes, process_causes
from ...oracle.reach import moments
from ...oracle.recorded import Life
from ...oracle.world import ENVIRONMENT_EVENTS, World
from ...reports.cost import Cost
from ...topology import broker_name

EVENTS = (
    *ENVIRONMENT_EVENTS,
    *OPERATIONS,
    "registration",
    "broker_dropped",
    "route",
    "started",
    "stopped",
    "route_changed",
)
"""The rows that are read."""

SHARES = ("availability, send", "availability, pull")
"""Of 1; the other metrics are times in milliseconds."""
WITHOUT = "longest time without a broker"
METRICS = (
    *("recovery time, send", "recovery time, pull"),
    *SHARES,
    *("staleness, NameServers", "staleness, clients"),
    WITHOUT,
)


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
    """Times in milliseconds that are shown, but not compared by a test."""
    routes: Mapping[str, str] = field(default_factory=dict)
    """NameServer to what it held at the end."""


class RouteChange(NamedTuple):
    """From `at_ms` to `until_ms` the observer's routes should name the broker (`present`), or should not."""

    observer: str
    life_ms: float
    """When the observer's process began."""
    broker: str
    present: bool
    at_ms: float
    until_ms: float


def samples_of(run: str, rows: Sequence[Mapping[str, Any]], cost: Cost | None = None) -> RunSamples:
    world = World.of_rows(rows)
    found = moments(world)
    history, _ = in_memory(to_table([dict(row) for row in rows if row["event"] in EVENTS]))
    edges = [moment.at_ms for moment in found]
    counted = slots_between(history.part, world, edges).of
    of_clients = dict(sorted(counted.items()))
    samples: dict[str, list[float]] = {metric: [] for metric in METRICS}
    cut_short: dict[str, int] = defaultdict(int)
    for recovery in recoveries(world, found, of_clients, edges):
        metric = f"recovery time, {recovery.operation}"
        watched_ms = recovery.until_ms - recovery.moment.at_ms
        if metric not in samples or (recovery.after_ms is None and watched_ms <= 0):
            continue
        if recovery.after_ms is None:
            cut_short[metric] += 1
        samples[metric].append(watched_ms if recovery.after_ms is None else recovery.after_ms)
    for operation in ("send", "pull"):
        samples[f"availability, {operation}"] += _shares(of_clients, operation, after=1 if found else 0)
    kinds = {node.name: "NameServers" for node in world.of_kind("name_server")}
    moved: dict[str, list[float]] = defaultdict(list)
    for change, stale_ms, done in _stale(rows, world):
        kind = kinds.get(change.observer, "clients")
        metric = f"staleness, {kind}"
        samples[metric].append(stale_ms)
        cut_short[metric] += not done
        if done and stale_ms:
            moved[f"{'return' if change.present else 'drop'}, {kind}"].append(stale_ms)
    if cost is not None:
        samples[WITHOUT].append(cost.longest_without_broker_ms)
        cut_short[WITHOUT] = sum(not gap.came_back for gap in cost.without_broker[:1])
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
            **windows_of(rows),
            **{name: tuple(values) for name, values in moved.items()},
            "good send": tuple(_good_sends(rows)),
        },
        routes=routes_of(rows, list(kinds)),
    )


def _good_sends(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return each producer's median duration of a successful send, in milliseconds."""
    good: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["event"] == "send" and row["type"] == "ok" and row.get("duration_ms") is not None:
            good[row["node"]].append(row["duration_ms"])
    return [median(times) for _, times in sorted(good.items())]


_NO_SILENCE = ("closed", "exception", "unregistered")
"""Reasons of drops that do not wait for silence."""


def windows_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Return the registration periods and the silences before drops, from one run's rows in order of time."""
    last: dict[tuple[str, str], float] = {}
    found = defaultdict[str, list[float]](list)
    for row in rows:
        key = (str(row["node"]), str(row.get("address")))
        if row["event"] == "registration" and not row.get("code"):
            if key in last:
                found["registration period"].append(row["time_ms"] - last[key])
            last[key] = row["time_ms"]
        elif row["event"] == "broker_dropped" and key in last:
            silent_ms = row["time_ms"] - last.pop(key)
            if object_of(row.get("value")).get("reason") not in _NO_SILENCE:
                found["silence before a drop"].append(silent_ms)
    return {name: tuple(values) for name, values in found.items()}


def routes_of(rows: Iterable[Mapping[str, Any]], name_servers: Sequence[str]) -> dict[str, str]:
    """Return each NameServer's routes at the run's end, without ports: topic, brokers with their ids, and queues."""
    held: dict[str, dict[str, object]] = {name: {} for name in name_servers}
    for row in rows:
        if row["node"] not in held:
            continue
        if row["event"] == "started":
            held[row["node"]] = {}
        elif row["event"] == "route":
            value = object_of(row.get("value"))
            brokers = {name: sorted(ids) for name, ids in (value.get("brokers") or {}).items()}
            topics = held[row["node"]]
            if brokers:
                topics[row["topic"]] = {"brokers": brokers, "queues": value.get("queues")}
            else:
                topics.pop(row["topic"], None)
    return {name: json.dumps(topics, sort_keys=True) for name, topics in held.items()}


def topics_that_differ(a: Iterable[Mapping[str, str]], b: Iterable[Mapping[str, str]]) -> dict[str, tuple[int, int]]:
    """Return the topics for which NameServers had different routes at the end, with the number of routes on each side.
    Empty if all NameServers of both sides ended with the same routes."""
    sides = [[json.loads(held) for run in side for held in run.values()] for side in (a, b)]
    topics = {topic for side in sides for held in side for topic in held}
    found = {}
    for topic in sorted(topics):
        routes = [{json.dumps(held.get(topic), sort_keys=True) for held in side} for side in sides]
        if len(routes[0] | routes[1]) > 1:
            found[topic] = (len(routes[0]), len(routes[1]))
    return found


def _implementations(world: World) -> dict[str, str]:
    found: dict[str, set[str]] = defaultdict(set)
    for node in world.of_kind("name_server", "broker", "producer", "consumer"):
        found[node.kind].add(node.implementation)
    return {f"implementation of {kind}s": ", ".join(sorted(names)) for kind, names in found.items()}


def _shares(seen: Mapping[Slot, Tally], operation: str, *, after: int) -> list[float]:
    """Return each client's share of good operations among the operations that began after this number of moments."""
    good: dict[str, int] = defaultdict(int)
    all_: dict[str, int] = defaultdict(int)
    for slot, tally in seen.items():
        if slot.operation == operation and slot.segment >= after:
            good[slot.node] += tally.good
            all_[slot.node] += tally.ended
    return [good[node] / count for node, count in sorted(all_.items()) if count]


def changes(world: World) -> list[RouteChange]:
    """Return when each broker should enter or leave each observer's routes, unless a fault affects the observer."""
    found: list[RouteChange] = []
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
                        began_ms = -math.inf if life is lives[0] else life.start_ms
                        found.append(RouteChange(observer.name, began_ms, broker.name, present, at_ms, until_ms))
    return found


def _edges(
    world: World, life: Life, broker: str, links: Sequence[Cause], *, starts_empty: bool
) -> list[tuple[float, bool]]:
    """Return when the broker came and went within this lifetime of the observer; its first start is no change."""
    gone = merged(Stretch(cause.start_ms, cause.end_ms) for cause in (*process_causes(world, broker), *links))
    first_ms = min((other.start_ms for other in world.lives_of(broker)), default=math.inf)
    begin_ms, end_ms = max(life.start_ms, first_ms), min(life.end_ms, world.end_ms)
    edges = [(stretch.start_ms, False) for stretch in gone] + [(stretch.end_ms, True) for stretch in gone]
    edges = sorted(edge for edge in edges if begin_ms < edge[0] < end_ms)
    if starts_empty and not any(stretch.start_ms <= life.start_ms < stretch.end_ms for stretch in gone):
        edges.insert(0, (life.start_ms, True))
    return edges


def _disturbed(world: World, life: Life, from_ms: float, to_ms: float) -> bool:
    """Whether a fault affected this process then; the end of the process before it does not count."""
    faults = world.process_faults(life.node)
    return any(fault.start_ms >= life.start_ms and fault.overlaps(from_ms, to_ms) for fault in faults)


def _stale(rows: Sequence[Mapping[str, Any]], world: World) -> list[tuple[RouteChange, float, bool]]:
    """Return how long each observer's route of the workload's topic was wrong after each change, and if it came right.
    An observer that never had a route of the topic is left out, because it does not ask for the topic."""
    held = seen(rows, -math.inf, math.inf, zero_ms=0, blink_ms=0).held
    topics = {row["topic"] for row in rows if row["event"] in ("route", "route_changed")}
    if topic := world.workload.get("topic"):
        topics &= {topic}
    stale: list[tuple[RouteChange, float, bool]] = []
    for change in changes(world):
        routes = sorted(one for topic in topics for one in held.get((change.observer, str(topic)), ()))
        if not any(from_ms < change.until_ms for from_ms, _, _ in routes):
            continue
        now = [
            (from_ms, (change.broker in {broker_name(one.split(" ")[0]) for one in told.split(", ")}) == change.present)
            for from_ms, _, told in routes
            if change.life_ms <= from_ms < change.until_ms
        ]
        before = [right for from_ms, right in now if from_ms < change.at_ms]
        if before and before[-1]:
            stale.append((change, 0.0, True))
            continue
        right_ms = next((from_ms for from_ms, right in now if right and from_ms >= change.at_ms), change.until_ms)
        stale.append((change, right_ms - change.at_ms, right_ms < change.until_ms))
    return stale
