"""Each client stops using a broker that died, hung or became unreachable, within the window of its route's removal.

    broker lost ── t_rm ── P ── (Qr) ──┬──────────── no use ────────────┬─ broker back
       removed at every NameServer     └ last use must be before this   ┘

Judged per (client, broker, stretch without the broker), where every NameServer that the client can reach has dropped
the broker: one that only the client cannot reach stays in the routes, and nothing bounds its use (the table says ∞).
Nor does anything bound the use of a topic's last broker, because a client keeps its old route when there is none.
A use is a send attempt or a pull at its beginning. A retry belongs to a send that began up to T earlier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..verdict import Verdict
from ..windows import Loss, Window, client_leave_window, failed_calls, return_window
from .findings import Finding, rounded, verdict_of
from .lag import LagWindow, Tolerance, frame, measure, tolerance
from .pairs import Cause, State, link_causes, pair_states, process_causes
from .world import World

NAME = "dead_brokers_avoided"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Absence:
    """A broker is lost to a client in [start_ms, end_ms); from `from_ms` on the client must not use it."""

    id: int
    client: str
    broker: str
    fault_id: str
    start_ms: float
    from_ms: float
    end_ms: float
    window: Window
    others: tuple[str, ...]
    """Brokers that were there throughout: a topic that one of them has does not lose its last broker."""


def dead_brokers_avoided(history: DataFrame, world: World) -> Verdict:
    """Examined: absences that outlasted their window, of clients that did something then. Violations: later uses."""
    found = absences(world)
    nothing = "no broker was lost for longer than the window of its clients, so there is nothing to examine"
    if not found:
        return Verdict.nothing_examined(NAME, nothing)
    name_servers = [node.name for node in world.of_kind("name_server")]
    windows = [
        LagWindow(absence.id, node, absence.start_ms - world.timers.R_ms, absence.from_ms)
        for absence in found
        for node in (absence.client, absence.broker, *name_servers)
    ]
    lags = measure(history, world, windows)
    tolerances = {a.id: tolerance(world.timers, lags.get(a.id), a.window.timers) for a in found}
    seen = {row["id"]: row.asDict() for row in _judged(history, world, found).collect()}
    findings = [_finding(absence, tolerances[absence.id], seen.get(absence.id)) for absence in found]
    measured = {"last_use": _last_uses(found, seen)}
    nothing = "no client did anything after the window of a lost broker"
    noun = "clients used a lost broker after its window"
    return verdict_of(NAME, findings, measured=measured, nothing=nothing, noun=noun)


def absences(world: World) -> list[Absence]:
    """Every stretch of every (client, broker) that can be judged."""
    found: list[Absence] = []
    states = pair_states(world)
    brokers = [node.name for node in world.of_kind("broker")]
    processes = {broker: process_causes(world, broker) for broker in brokers}
    for client in world.of_kind("producer", "consumer"):
        for broker in brokers:
            causes = [*processes[broker], *link_causes(world, client.name, broker)]
            for start_ms, end_ms, fault_id in _merged(causes, world.end_ms):
                judged = _absence(world, states, client.name, broker, start_ms, end_ms)
                if judged is None:
                    continue
                removal_ms, window = judged
                others = tuple(
                    other
                    for other in brokers
                    if other != broker
                    and not any(c.start_ms < end_ms and c.end_ms > start_ms for c in processes[other])
                )
                consumes = client.kind == "consumer"
                hung = _hung(world, client.name, processes, start_ms, end_ms)
                failed = _failed_calls(world, client.name, start_ms, removal_ms)
                leave = client_leave_window(
                    world.timers, window, consumer=consumes, hung_brokers=hung, failed_calls=failed
                )
                from_ms = removal_ms + leave.latest_ms - window.latest_ms
                bound = leave._replace(latest_ms=from_ms - start_ms)
                if from_ms < end_ms and _alive(world, client.name, start_ms, end_ms):
                    found.append(
                        Absence(len(found), client.name, broker, fault_id, start_ms, from_ms, end_ms, bound, others)
                    )
    return found


def _hung(world: World, client: str, processes: Mapping[str, Sequence[Cause]], start_ms: float, end_ms: float) -> int:
    """How many brokers did not answer this client at some time in the stretch, their connections being open."""
    return sum(
        any(
            cause.start_ms < end_ms and cause.end_ms > start_ms and not cause.loss.closes
            for cause in (*causes, *link_causes(world, client, broker))
        )
        for broker, causes in processes.items()
    )


def _merged(causes: Sequence[Cause], until_ms: float) -> list[tuple[float, float, str]]:
    """The stretches in which any of these causes held, with the fault that began each; the run's own start is none."""
    merged: list[tuple[float, float, str]] = []
    for cause in sorted(causes, key=lambda cause: (cause.start_ms, -cause.end_ms)):
        end_ms = min(cause.end_ms, until_ms)
        if cause.start_ms >= end_ms:
            continue
        if merged and cause.start_ms <= merged[-1][1]:
            start_ms, before_ms, fault_id = merged[-1]
            merged[-1] = (start_ms, max(before_ms, end_ms), fault_id or cause.fault_id)
        else:
            merged.append((cause.start_ms, end_ms, cause.fault_id))
    return [stretch for stretch in merged if stretch[0] > -math.inf]


def _absence(
    world: World, states: Sequence[State], client: str, broker: str, start_ms: float, end_ms: float
) -> tuple[float, Window] | None:
    """When the last NameServer that this client may ask has dropped the broker, and by which window; None: never."""
    latest: tuple[float, Window] | None = None
    refill = return_window(world.timers)
    for state in states:
        if state.broker != broker or state.end_ms <= start_ms or state.start_ms >= end_ms:
            continue
        unreachable = any(
            fault.start_ms <= max(state.start_ms, start_ms) and fault.end_ms >= min(state.end_ms, end_ms)
            for fault in world.link_faults(client, state.name_server)
        )
        if unreachable:
            continue
        if state.up:
            return None
        if not state.judged:
            if any(f.overlaps(state.start_ms, state.end_ms) for f in world.process_faults(state.name_server)):
                continue  # a stopped NameServer tells nobody anything; what it does afterwards is another state
            return None
        settled_ms, window = max(state.settled_ms, start_ms), state.window
        refilled_ms = _restarted_ms(world, state) + refill.latest_ms
        if refilled_ms > settled_ms:  # until then it has no route to give, and a client keeps the old one
            settled_ms, window = refilled_ms, refill
        if latest is None or settled_ms > latest[0]:
            latest = (settled_ms, window)
    return latest


def _restarted_ms(world: World, state: State) -> float:
    """When this NameServer process was started, if it is not the node's first: the run began with filled tables."""
    later = world.lives_of(state.name_server)[1:]
    return next((life.start_ms for life in later if life.incarnation == state.incarnation), -math.inf)


def _failed_calls(world: World, client: str, start_ms: float, removal_ms: float) -> int:
    """k: calls that fail because NameServers are lost to the client from one poll before until one after removal."""
    timers, calls = world.timers, 0
    for node in world.of_kind("name_server"):
        faults = [*world.process_faults(node.name), *world.link_faults(client, node.name)]
        losses = [f.loss(timers) for f in faults if f.overlaps(start_ms - timers.P_ms, removal_ms + timers.P_ms)]
        calls += max((_calls_lost(world, loss) for loss in losses), default=0)
    return calls


def _calls_lost(world: World, loss: Loss) -> int:
    # A crash costs 4.9 no call that it has yet to make, but the one in flight when the connection closes.
    return 0 if loss is Loss.HARMLESS else max(1, failed_calls(world.timers.profile, loss))


def _alive(world: World, client: str, start_ms: float, end_ms: float) -> bool:
    """Whether the client ran undisturbed all the time."""
    disturbed = any(fault.overlaps(start_ms, end_ms) for fault in world.process_faults(client))
    running = any(life.start_ms <= start_ms and life.end_ms >= end_ms for life in world.lives_of(client))
    return running and not disturbed


def _judged(history: DataFrame, world: World, found: Sequence[Absence]) -> DataFrame:
    """One row per absence: uses after its window, of the lost broker (late_uses) or any; the last and the worst use."""
    rows = [(a.id, a.client, a.broker, a.start_ms, a.from_ms, a.end_ms) for a in found]
    schema = "id int, client string, lost string, start_ms double, from_ms double, end_ms double"
    absent = frame(history, rows, schema)
    event = F.col("event")
    began = history.where(event.isin("send_attempt", "pull") & (F.col("type") == "invoke"))
    # A retry chooses from the route that its send began with.
    grace_ms = F.when(F.coalesce("attempt", F.lit(0)) > 0, F.lit(world.timers.T_ms)).otherwise(F.lit(0.0))
    uses = (
        began.join(absent, F.col("node") == F.col("client"))
        .withColumn("at_ms", F.col("time_ms") - grace_ms)
        .where((F.col("time_ms") >= F.col("start_ms")) & (F.col("time_ms") < F.col("end_ms")))
        .select("id", "client", "lost", "op_id", "topic", "broker_name", "time_ms", "at_ms", "from_ms", "end_ms")
    )
    of_lost = uses.where(F.col("broker_name") == F.col("lost"))
    sends = (
        history.where((event == "send") & (F.col("type") == "invoke"))
        .select(F.col("node").alias("client"), "op_id", F.col("topic").alias("send_topic"))
        .dropDuplicates(["client", "op_id"])
    )
    bounded = _bounded_topics(history, found)
    over = F.least(F.col("at_ms") - F.col("from_ms"), F.col("end_ms") - F.col("time_ms"))
    of_lost = (
        of_lost.join(sends, ["client", "op_id"], "left")
        .withColumn("topic", F.coalesce("topic", "send_topic"))
        .join(bounded, ["id", "topic"], "left_semi")
        .withColumn("over_ms", F.greatest(over, F.lit(0.0)))
        .groupBy("id")
        .agg(
            F.max("time_ms").alias("last_ms"),
            F.max("over_ms").alias("over_ms"),
            F.count(F.when(F.col("over_ms") > 0, True)).alias("late_uses"),
            F.max_by(F.struct("time_ms", "topic", "op_id"), "over_ms").alias("use"),
        )
    )
    active = uses.groupBy("id").agg(F.count(F.when(F.col("time_ms") >= F.col("from_ms"), True)).alias("uses_after"))
    return active.join(of_lost, "id", "left")


def _bounded_topics(history: DataFrame, found: Sequence[Absence]) -> DataFrame:
    """id, topic: the topics that another broker, there all the time, had as well."""
    others = frame(history, [(a.id, other) for a in found for other in a.others], "id int, other string")
    held = history.where((F.col("event") == "topic") & F.col("value").isNotNull() & (F.col("value") != "null"))
    return held.select(F.col("node").alias("other"), "topic").distinct().join(others, "other").select("id", "topic")


def _finding(absence: Absence, tolerance_: Tolerance, row: Mapping[str, Any] | None) -> Finding:
    examined = int(bool(row and row["uses_after"]))
    over_ms = (row or {}).get("over_ms") or 0.0
    wrong = int(over_ms > tolerance_.possible_ms)
    late = int(not wrong and over_ms > tolerance_.fine_ms)
    last_ms = (row or {}).get("last_ms")
    example = None
    if row and (wrong or late):
        example = {
            "client": absence.client,
            "broker_name": absence.broker,
            "fault_id": absence.fault_id,
            "topic": row["use"]["topic"],
            "op_id": row["use"]["op_id"],
            "lost_ms": rounded(absence.start_ms),
            "due_ms": rounded(absence.from_ms),
            "used_ms": rounded(row["use"]["time_ms"]),
            "late_uses": row["late_uses"],
            "over_ms": rounded(over_ms),
        }
    return Finding(
        bound_ms=absence.window.latest_ms,
        formula=absence.window.formula,
        row=absence.window.row,
        tolerance=tolerance_,
        measured_ms=None if last_ms is None else last_ms - absence.start_ms,
        examined=examined,
        wrong=wrong,
        late=late,
        example=example,
    )


def _last_uses(found: Sequence[Absence], seen: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """When each client used the lost broker last, counted from its loss; the latest first."""
    rows: list[dict[str, Any]] = [
        {
            "client": absence.client,
            "broker_name": absence.broker,
            "fault_id": absence.fault_id,
            "after_ms": rounded(seen[absence.id]["last_ms"] - absence.start_ms),
            "bound_ms": rounded(absence.window.latest_ms),
        }
        for absence in found
        if seen.get(absence.id, {}).get("last_ms") is not None
    ]
    return sorted(rows, key=lambda row: -row["after_ms"])[:_SHOWN]
