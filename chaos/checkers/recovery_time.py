"""How long each client went without a success after each fault and each heal, against what RocketMQ's timers allow.

    fault, or heal ──── first good operation that began after it ──┬─ ok
                                                        bound ─────┘

Per client and operation, q being the queues of the brokers lost to it, k the failed calls of its lost NameServers:

| operation | bound                                                                                          |
|-----------|------------------------------------------------------------------------------------------------|
| send      | (q + 2)·(T + 1/rate): the send under way, one on each lost queue in turn, and the good one;    |
|           | or, if sooner, when the producer has left the lost brokers (t_rm + P), and two sends; with so  |
|           | few queues that each failure's retry takes a good one away (`passed_over`), only that          |
| pull      | two long polls of 15 + 5 s; where a broker is lost, t_rm + P + Qr before: it may hold no other  |
| look-up   | P + (k·P + A) + J                                                                              |

A client that has lost every broker, or every NameServer, is bounded only from the heal on, R + C + P later; a consumer
whose group has fewer queues left than consumers, from R + C + P + Qr after the heal on. What ends
in another fault before its bound is not judged, nor is a client that is itself stopped or paused. The percentiles are
over all that recovered, judged or not.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from ..oracle.reach import Moment, lost, moments, undisturbed
from ..oracle.windows import (
    NEVER,
    Window,
    client_leave_window,
    drop_window,
    failed_calls,
    poll_delay_ms,
    return_window,
    staleness_window,
)
from ..oracle.world import World
from ..verdict import Finding, Verdict
from .dataframes.operations import Slot, Stalls, passed_over, shared_slots, turns_lost
from .findings import finding, rounded, verdict_of
from .tolerance import LagWindow, Tolerance, measure, tolerance

NAME = "recovery_time"
HOLD_MS = 20_000.0
"""A pull is held 15 s (`brokerSuspendMaxTimeMillis`), and the broker looks at held ones every 5 s."""
_SHOWN = 60
LOOK_UP = "name_server_call"
_NAMES = {"send": "send", "pull": "pull", LOOK_UP: "look-up"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One client's operation after one moment. `after_ms` None: no success before the run, or its work, ended."""

    id: int
    client: str
    operation: str
    moment: Moment
    bound: Window
    until_ms: float
    """The next fault or heal, or the last sign of work."""
    after_ms: float | None

    @property
    def due_ms(self) -> float:
        return self.moment.at_ms + self.bound.latest_ms

    @property
    def judged(self) -> bool:
        if math.isinf(self.bound.latest_ms):
            return False
        return self.due_ms <= self.until_ms or (self.after_ms is not None and self.after_ms <= self.bound.latest_ms)

    @property
    def over_ms(self) -> float:
        """How far past its bound it was still without success."""
        end_ms = self.until_ms if self.after_ms is None else self.moment.at_ms + self.after_ms
        return max(0.0, end_ms - self.due_ms)


def recovery_time(history: DataFrame, world: World) -> Verdict:
    """Examined: (client, operation, fault or heal) with a bound. Violations: those without success until past it."""
    found_moments = moments(world)
    if not found_moments:
        return Verdict.nothing_examined(NAME, "there was no fault, so there is nothing to recover from")
    edges, seen = shared_slots(history, world)
    found = recoveries(world, found_moments, seen, edges)
    judged = [recovery for recovery in found if recovery.judged]
    servers = [node.name for node in world.of_kind("name_server", "broker")]
    lags = measure(
        history,
        world,
        [
            LagWindow(recovery.id, node, recovery.moment.at_ms, min(recovery.due_ms, recovery.until_ms))
            for recovery in judged
            for node in (recovery.client, *servers)
        ],
    )
    stalls = Stalls(world, seen)
    findings = []
    for recovery in judged:
        lag_ms = lags.get(recovery.id)
        if lag_ms is not None:
            lag_ms = max(lag_ms, stalls.worst_ms(recovery.moment.at_ms, recovery.due_ms, but=recovery.client))
        findings.append(_finding(recovery, tolerance(world.timers, lag_ms, recovery.bound.timers)))
    nothing = "no client had the time that its bound allows after any fault or heal"
    noun = "recoveries were later than allowed"
    return verdict_of(NAME, findings, measured=_measured(found), nothing=nothing, noun=noun)


def recoveries(
    world: World, found: Sequence[Moment], seen: Sequence[Slot], edges: Sequence[float] | None = None
) -> list[Recovery]:
    """One for every client, operation that it did at all, and moment.

    `edges` are those of the slots, every moment among them; None: the moments and no others.
    """
    edges = [moment.at_ms for moment in found] if edges is None else edges
    first: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    works_until: dict[str, float] = defaultdict(float)
    for slot in seen:
        works_until[slot.operation] = max(works_until[slot.operation], slot.last_ms)
        segments = first[slot.node, slot.operation]
        if slot.first_good_ms is not None:
            segments[slot.segment] = min(segments.get(slot.segment, math.inf), slot.first_good_ms)
    recoveries_: list[Recovery] = []
    for (client, operation), segments in sorted(first.items()):
        for index, moment in enumerate(found):
            after = bisect_right(edges, moment.at_ms)  # as many edges have passed for what begins from here on
            success_ms = min((at_ms for segment, at_ms in segments.items() if segment >= after), default=math.inf)
            after_ms = None if math.isinf(success_ms) else max(0.0, success_ms - moment.at_ms)
            next_ms = min((m.at_ms for m in found[index + 1 :] if m.at_ms > moment.at_ms), default=math.inf)
            until_ms = min(next_ms, works_until[operation], world.end_ms)
            if not undisturbed(world, client, moment.at_ms, max(until_ms, moment.at_ms)):
                continue
            recoveries_.append(
                Recovery(
                    id=len(recoveries_),
                    client=client,
                    operation=operation,
                    moment=moment,
                    bound=bound(world, client, operation, moment),
                    until_ms=until_ms,
                    after_ms=after_ms,
                )
            )
    return recoveries_


def bound(world: World, client: str, operation: str, moment: Moment) -> Window:
    """How long after the moment the client's first good operation may take; NEVER where nothing bounds it."""
    if operation == LOOK_UP:
        return _look_up_bound(world, client, moment)
    timers, brokers = world.timers, world.of_kind("broker")
    k = _calls(world)
    back = _back(world, k)
    gone = lost(world, client, "broker", moment.at_ms)
    missing = lost(world, client, "broker", moment.at_ms, for_ms=back.latest_ms)  # healed, but not yet in the routes
    if brokers and len(gone) == len(brokers):
        return Window(0, NEVER, "never", "every broker is lost to the client")
    hung = sum(not loss.closes for loss in gone.values())
    waits = Window(0, 0, "", "", 2)
    if brokers and len(missing) == len(brokers):
        waits = back
    leaving = [
        client_leave_window(
            timers, drop_window(timers, loss), consumer=operation == "pull", hung_brokers=hung, failed_calls=k
        )
        for loss in missing.values()
    ]
    leave = max(leaving, key=lambda window: window.latest_ms, default=None)
    workload = world.run.get("workload") or {}
    queues = int(workload.get("queues") or 4)
    if operation == "pull":
        consumers = 1 if workload.get("broadcasting") else max(1, len(world.of_kind("consumer")))
        if idle := _may_stay_idle(world, client, moment, queues, consumers, missing, gone):
            return Window(0, NEVER, "never", idle)
        if brokers and queues * (len(brokers) - len(missing)) < consumers:  # one without a queue until they are back
            shares = Window(0, back.latest_ms + timers.Qr_ms, f"{back.formula} + Qr", "", 5)
            waits = max(waits, shares, key=lambda window: window.latest_ms)
        latest_ms, formula, chained = 2 * HOLD_MS, f"2·{HOLD_MS / 1000:g} s", waits.timers
        if leave is not None and not waits.latest_ms:
            latest_ms, formula = latest_ms + leave.latest_ms, f"{leave.formula} + {formula}"
            chained = leave.timers + 1
        return _after(waits, latest_ms, formula, "consumer's first answered pull", chained)
    each_ms = timers.T_ms + 1000.0 / float(workload.get("sends_per_s") or 1.0)
    tried = turns_lost(world, len(brokers), len(missing), queues) if brokers else 0
    latest_ms, formula, chained = (tried + 2) * each_ms, f"({tried} lost queues + 2)·(T + 1/rate)", waits.timers
    none_left = bool(brokers) and passed_over(len(brokers), len(missing), queues) >= 1
    if leave is not None and (none_left or leave.latest_ms + 2 * each_ms < latest_ms):
        latest_ms, formula = leave.latest_ms + 2 * each_ms, f"{leave.formula} + 2·(T + 1/rate)"
        chained = leave.timers + 1
    return _after(waits, latest_ms, formula, "producer's first good send", chained)


def _back(world: World, k: int) -> Window:
    """When a client has a broker in its routes that has just been healed; `k`: calls that fail meanwhile."""
    timers, brokers, table = world.timers, len(world.of_kind("broker")), return_window(world.timers)
    latest_ms = table.latest_ms + timers.P_ms + poll_delay_ms(timers, brokers)
    formula = f"{table.formula} + P + J (A·{brokers} brokers)"
    if k:
        stale = staleness_window(timers, k)
        latest_ms, formula = latest_ms + stale.latest_ms, f"{formula} + {stale.formula}"
    return Window(0, latest_ms, formula, "client has a healed broker in its routes", 4 + k)


def _after(waits: Window, latest_ms: float, formula: str, row: str, chained: int) -> Window:
    before = f"{waits.formula} + " if waits.latest_ms else ""
    return Window(0, waits.latest_ms + latest_ms, before + formula, row, chained)


def _may_stay_idle(
    world: World,
    client: str,
    moment: Moment,
    queues: int,
    consumers: int,
    missing: Mapping[str, Any],
    gone: Mapping[str, Any],
) -> str:
    """Why the consumer may have no queue that it can pull from, for as long as the fault lasts; empty: it will have.

    Queues are handed out in stretches (AllocateMessageQueueAveragely), so one stretch may lie on the lost brokers; only
    a broker that the NameServers drop loses its queues to others.
    """
    brokers = len(world.of_kind("broker"))
    if not brokers:
        return ""
    if queues * brokers < consumers:
        return "the group has fewer queues than consumers, so one may have none to pull"
    cut_off = any(
        fault.start_ms <= moment.at_ms < fault.end_ms
        for broker in missing
        for fault in world.link_faults(client, broker)
    )
    if cut_off and queues * brokers // consumers <= queues * len(missing):
        return "all its queues may lie on brokers that only it cannot reach, and those stay in the routes"
    if gone and queues * (brokers - len(missing)) < consumers:
        return "fewer queues than consumers are left, so one may have none to pull"
    return ""


def _look_up_bound(world: World, client: str, moment: Moment) -> Window:
    timers = world.timers
    servers = world.of_kind("name_server")
    now = lost(world, client, "name_server", moment.at_ms)
    if servers and len(now) == len(servers):
        return Window(0, NEVER, "never", "every NameServer is lost to the client")
    lately = lost(world, client, "name_server", moment.at_ms, for_ms=timers.P_ms + timers.A_ms)
    # A crash costs 4.9 no call that it has yet to make, but the one in flight when the connection closes.
    calls = sum(max(1, failed_calls(timers.profile, loss)) for loss in lately.values())
    stale = staleness_window(timers, calls)
    hung = len(lost(world, client, "broker", moment.at_ms, for_ms=timers.P_ms))
    latest_ms = timers.P_ms + stale.latest_ms + poll_delay_ms(timers, hung)
    formula = f"P + ({stale.formula})" + (f" + J (A·{hung} brokers)" if hung else "")
    return Window(0, latest_ms, formula, "client's first answered look-up", stale.timers + 1)


def _calls(world: World) -> int:
    """k for a removal that a client must learn while NameServers are lost as well; the scenario's worst."""
    hit = {fault.source if fault.target is None else fault.target for fault in world.faults}
    return sum(node.name in hit for node in world.of_kind("name_server"))


def _finding(recovery: Recovery, tolerance_: Tolerance) -> Finding:
    over_ms = recovery.over_ms
    wrong = int(over_ms > tolerance_.unknown_up_to_ms)
    late = int(not wrong and over_ms > tolerance_.valid_up_to_ms)
    example = None
    if wrong or late:
        example = {
            **_row(recovery),
            "at_ms": rounded(recovery.moment.at_ms),
            "to_ms": rounded(recovery.moment.at_ms + (recovery.after_ms or recovery.until_ms - recovery.moment.at_ms)),
            "due_ms": rounded(recovery.due_ms),
            "over_ms": rounded(over_ms),
        }
    return finding(
        bound_ms=recovery.bound.latest_ms,
        formula=recovery.bound.formula,
        row=recovery.bound.row,
        tolerance=tolerance_,
        measured_ms=recovery.after_ms,
        examined=1,
        wrong=wrong,
        late=late,
        example=example,
    )


def _row(recovery: Recovery) -> dict[str, Any]:
    bounded = math.isfinite(recovery.bound.latest_ms)
    return {
        "client": recovery.client,
        "operation": _NAMES[recovery.operation],
        "fault_id": recovery.moment.fault_id,
        "phase": recovery.moment.phase,
        "after_ms": rounded(recovery.after_ms),
        "bound_ms": rounded(recovery.bound.latest_ms) if bounded else None,
    }


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile: the smallest value that at least `share` of all do not exceed; None without any."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _measured(found: Sequence[Recovery]) -> Mapping[str, Any]:
    """p50, p99 and the longest of all, the same of each operation, and the slowest ones."""
    recovered = [recovery for recovery in found if recovery.after_ms is not None]

    def spread(those: Sequence[Recovery]) -> dict[str, Any]:
        values = [recovery.after_ms for recovery in those if recovery.after_ms is not None]
        shares = {"p50_ms": percentile(values, 0.5), "p99_ms": percentile(values, 0.99), "max_ms": max(values)}
        return {"recoveries": len(values), **{name: rounded(value) for name, value in shares.items()}}

    if not recovered:
        return {"recoveries": 0}
    operations = sorted({recovery.operation for recovery in recovered})
    slowest = sorted(recovered, key=lambda recovery: -(recovery.after_ms or 0.0))[:_SHOWN]
    whole = spread(recovered)
    whole["longest_ms"] = whole.pop("max_ms")  # `max_ms` is that of the recovery nearest to its own bound (findings.py)
    return {
        **whole,
        "never": sum(recovery.judged and recovery.after_ms is None for recovery in found),
        "by_operation": {_NAMES[name]: spread([r for r in recovered if r.operation == name]) for name in operations},
        "slowest": [_row(recovery) for recovery in slowest],
    }
