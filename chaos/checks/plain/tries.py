"""The tries of each send beside each other: after a failed try a send goes to another broker, but only while it has
tries and time left.

    without sendLatencyFaultEnable      another broker than the one that failed, where the route has one
    with it                             one that is not isolated: in 5.x another one than the one that failed, in 4.9
                                        while the one that failed is isolated; if all are, 4.9 takes one of the half
                                        with the lower latencies

Each try that failed, or was slow by latencyMax, leaves a `broker_isolated` row. How long a failed try isolates its
broker is counted by the producer's table (oracle/time_outs.py), and not by what it says; whom an outside client
isolates nobody knows.

Upstream: `DefaultMQProducerImpl.sendDefaultImpl`, `MQFaultStrategy`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from ....remoting.node.profile import Profile
from ...arrow import np, pa, pc
from ...oracle.intervals import grouped
from ...oracle.link import MOMENT_MS
from ...oracle.time_outs import NOT_STORED, STORED, avoidance, avoids, isolation_ms, send_rules
from ...oracle.world import World
from ...verdict import Finding
from ..check import Found, foremost
from ..findings import at_a_moment
from ..record.timer_acts import by_process
from ..record.turns import client_routes
from ..record.uses import isolated, least_left_ms, ran_out, slave_addresses
from .part import OP, Part, Reading, Row, Together, codes, floats, is_one_of, op_of, rows_in

OTHER = "selectOneMessageQueue: a retry avoids the broker that failed"
ISOLATES = "MQFaultStrategy.updateFaultItem: each try that failed, or was slow by latencyMax, isolates its broker"
_MASTER = "topicRouteData2TopicPublishInfo: only broker names with an id 0 are published to"
_AVOIDS = "LatencyFaultToleranceImpl.FaultItem: no send to an isolated broker while another broker is available"
_HALF = "LatencyFaultToleranceImpl.pickOneAtLeast: while all brokers are isolated, one of the half with lower latencies"
_TRIED = "sendDefaultImpl: a message is sent again while it is not stored, and a try and time are left"
ELSEWHERE = "acknowledged in another queue"
SAME, NOT_ISOLATED = "tried again on the same broker", "not isolated"
_NEAR_MS = 50.0

Op = tuple[str, int, str]
"""Which send: node, incarnation and op_id."""


def tries(part: Part, world: World) -> Found:
    """What the tries of each send say beside each other: how many followed a failed one (retries), and how many of
    these its broker (on_same); after how many a producer has to isolate their broker (isolating); and how many broke a
    rule, by the kind of the finding."""
    return _Tries(part, world).counted()


TRIES = Reading(
    Together.OPERATION,
    ("send", "send_attempt"),
    ("type", "op_id", "topic", "broker_name", "address", "queue_id", "attempt", "code", "duration_ms"),
    tries,
)


class _Tries:
    """Those of one part."""

    def __init__(self, part: Part, world: World) -> None:
        self._world, self._control, self._rules = world, part.control, send_rules(world)
        self._routes, self._away = client_routes(part.control), isolated(part.control, world)
        attempts, self._begun = part.of("send_attempt"), part.of("send_attempt", types=("invoke",))
        self._ended = attempts.filter(pc.not_equal(attempts["type"], "invoke"))
        lost, self._sent = part.of("send", types=("fail", "info")), part.of("send", types=("ok",))
        self._failed, self._lost = _ops(self._ended.filter(pc.not_equal(self._ended["type"], "ok"))), rows_in(lost)
        # Of all others each send had one try, which nothing is beside.
        again = self._begun.filter(pc.greater(pc.fill_null(self._begun["attempt"], 0), 0))
        tried = _by_send(_of_ops(self._begun, again))
        self._ends = _by_send(_of_ops(self._ended, pa.concat_tables([_ops(again), _ops(lost), self._failed])))
        self._retries = [
            (row, of[n - 1], self._ends.get(op, {}).get(n - 1))
            for op, of in tried.items()
            for n, row in of.items()
            if n - 1 in of
        ]
        """Each with the try before, and its end."""

    def counted(self) -> Found:
        # Of what was stored, `_odd` tells.
        unstored = [(row, before) for row, before, end in self._retries if end is None or end["type"] != "ok"]
        same = [row for row, before in unstored if row["broker_name"] == before["broker_name"]]
        isolating, odd = self._isolating(), {(*op_of(row), row["attempt"]): (row, kind) for row, kind in self._odd()}
        at_same = (row for row in same if (*op_of(row), row["attempt"]) not in odd and self._has_another(row))
        findings = [
            *(_finding(row, SAME, OTHER) for row in at_same),
            *(_finding(row, kind, _TRIED) for row, kind in odd.values()),
            *self._not_stored(),
            *self._elsewhere(),
            *self._given_up(),
            *self._at_slaves(),
            *self._to_isolated(),
            *self._to_the_worse_half(),
            *(_finding(row, NOT_ISOLATED, ISOLATES) for row in isolating if not self._is_isolated(row)),
        ]
        counts = {"retries": len(unstored), "on_same": len(same), "isolating": len(isolating)}
        return Found({**counts, **Counter(one.kind for one in findings)}, foremost(findings))

    def _has_another(self, row: Row) -> bool:
        """Whether the producer's route had a broker that it could try instead."""
        world, at_ms, (node, incarnation, _) = self._world, row["time_ms"], op_of(row)
        # For all its tries a send goes by the route that it began with, T ago at the earliest.
        began_ms = at_ms - world.timers_of(node).T_ms
        named = (self._routes.brokers(node, incarnation, ms) for ms in (began_ms, at_ms))
        others = set.intersection(*named) - {row["broker_name"]}
        if not avoids(world, node):
            return bool(others)
        until_ms = self._away.until_ms(node, incarnation, at_ms)
        surely_ms = self._away.until_ms(node, incarnation, at_ms, surely=True).get(row["broker_name"], 0.0)
        is_isolated = surely_ms > at_ms + MOMENT_MS
        is_avoided = is_isolated or world.timers.profile is Profile.V5_X
        return is_avoided and any(until_ms.get(name, 0.0) < at_ms - MOMENT_MS for name in others)

    def _elsewhere(self) -> Iterator[Finding]:
        """The sends that were acknowledged in another queue than the one that their last try asked for."""
        stored = self._ended.filter(pc.equal(self._ended["type"], "ok"))
        asked = stored.select([*OP, "queue_id", "attempt"]).rename_columns([*OP, "asked", "number"])
        sent = self._sent.select([*OP, "queue_id", "broker_name", "time_ms"])
        both = sent.join(asked, [*OP], join_type="inner")
        for row in rows_in(both.filter(pc.not_equal(both["queue_id"], both["asked"]))):
            yield _finding({**row, "attempt": row["number"]}, ELSEWHERE, _TRIED)

    def _odd(self) -> Iterator[tuple[Row, str]]:
        """Tries that should not have been at any broker, by how the one before ended."""
        over = ran_out(self._control, self._rules)
        for row, _, before in self._retries:
            if before is not None and row["node"] in self._rules:
                is_over = (*op_of(row), row["attempt"] - 1) in over
                how, code, rules = before["type"], before["code"], self._rules[row["node"]]
                if kind := rules.odd(row["attempt"], before=how, code=code, ran_out=is_over):
                    yield row, kind

    def _not_stored(self) -> Iterator[Finding]:
        """Sends that were reported as sent and had a try that failed: those no try of which a broker acknowledged."""
        for send in rows_in(_of_ops(self._sent, self._failed)):
            of = self._ends.get(op_of(send), {}) if send["node"] in self._rules else {}
            if of and not any(row["type"] == "ok" or row["code"] in STORED for row in of.values()):
                yield _finding(of[max(of)], NOT_STORED, _TRIED)

    def _given_up(self) -> Iterator[Finding]:
        """Sends that failed, at their last try that ended, though they had another left, and the time for it."""
        for send in (send for send in self._lost if send["node"] in self._rules):
            rule, of = self._rules[send["node"]], self._ends.get(op_of(send))
            began_ms = send["time_ms"] - (send["duration_ms"] or 0.0)
            last = of[max(of)] if of else send
            left_ms = rule.time_ms - (last["time_ms"] - began_ms)
            if left_ms <= least_left_ms(self._world):
                continue  # a process that stood still has no time left for a try
            if not of and self._is_routed(send, left_ms):
                untried = {**send, "attempt": 0, "broker_name": ""}
                yield _finding(untried, "given up without a try", _TRIED, left_ms)
            is_last = last["type"] == "ok" or rule.ends(last["code"]) or max(of or (0,)) + 1 >= rule.tries
            if of and not is_last and not self._asked_in_vain(last, left_ms):
                yield _finding(last, "given up too soon", _TRIED, left_ms)

    def _is_routed(self, send: Row, left_ms: float) -> bool:
        """Whether the producer had a route with a queue to write to when the send that it never tried began and
        ended."""
        node, incarnation, _ = op_of(send)
        times_ms = send["time_ms"] - self._world.timers_of(node).T_ms + left_ms, send["time_ms"]
        return all(self._routes.brokers(node, incarnation, at_ms) for at_ms in times_ms)

    def _asked_in_vain(self, last: Row, left_ms: float) -> bool:
        """Whether a look-up failed just then: a send that needs an address ends with it."""
        calls = by_process(self._control, "name_server_call").get((last["node"], last["incarnation"]), ())
        from_ms, until_ms = last["time_ms"] - _NEAR_MS, last["time_ms"] + left_ms + _NEAR_MS
        return any(from_ms <= call.ended_ms <= until_ms and call.row.type != "ok" for call in calls)

    def _at_slaves(self) -> Iterator[Finding]:
        """Tries at the address of a slave, or of one that may have become a master: none of the addresses that the node
        has had is one that the producer's routes have named under id 0."""
        owners = self._world.owners
        for row in rows_in(self._begun.filter(is_one_of(self._begun["address"], slave_addresses(self._world)))):
            slave = owners[row["address"]]
            masters = self._routes.masters(row["node"], row["incarnation"], row["time_ms"])
            if not masters.intersection(address for address, node in owners.items() if node == slave):
                yield _finding({**row, "broker_name": slave}, "sent to a slave", _MASTER)

    # -- isolations

    def _isolating(self) -> list[Row]:
        """The tries that failed, or took so long, that their producer avoids the broker (`MQFaultStrategy`). An
        exception counts by the profile's latency; without an address of the broker (`MQClientException`) in 5.x by its
        own."""
        world, avoided = self._world, avoidance(self._world)
        if avoided is None or world.workload.get("ordered"):
            return []
        producers = {node.name for node in world.ours("producer")}
        slow = floats(self._ended["duration_ms"], 0.0) >= avoided.slow_ms
        isolating = []
        for row in rows_in(self._ended.filter(pc.not_equal(self._ended["type"], "ok").to_numpy() | slow)):
            failed = row["type"] != "ok" and row["code"] not in STORED
            failed &= row["address"] is not None or world.timers.profile is Profile.V4_9
            node, took_ms = row["node"], (row["duration_ms"] or 0.0) - MOMENT_MS
            if node in producers and avoids(world, node) and isolation_ms(world, node, took_ms, failed=failed) > 0:
                isolating.append(row)
        return isolating

    def _to_isolated(self) -> Iterator[Finding]:
        """The first tries at a broker that their producer of ours had isolated by then, and whose clock went right."""
        world, begun = self._world, self._begun
        at_ms, is_in = floats(begun["time_ms"]), np.zeros(len(begun), bool)
        ours = {node.name for node in world.ours("producer") if not world.clocks.get(node.name)}
        spans = (((node, broker), span) for node, broker, *span in self._away.spans() if node in ours)
        for (node, broker), of in grouped(spans).items():
            is_there = pc.and_(pc.equal(begun["node"], node), pc.equal(begun["broker_name"], broker))
            at = np.flatnonzero(pc.fill_null(is_there, False).to_numpy())
            from_, until_ = np.array([(-np.inf, -np.inf), *sorted(of)]).T
            before = np.searchsorted(from_, at_ms[at]) - 1
            is_in[at] = at_ms[at] < np.maximum.accumulate(until_)[before]
        for row in rows_in(begun.filter(is_in & (floats(begun["attempt"]) == 0))):
            before_ms = math.nextafter(row["time_ms"], -math.inf)  # a refused dial isolates in the same moment
            away = self._away.until_ms(row["node"], row["incarnation"], before_ms, surely=True)
            until_ms = away.get(row["broker_name"], 0.0)
            if until_ms > row["time_ms"] + world.timers.delivery_ms and self._has_another(row):
                yield _finding(row, "sent to an isolated broker", _AVOIDS)

    def _to_the_worse_half(self) -> Iterator[Finding]:
        """The tries of 4.9 at one of the slower brokers, while all brokers of the route were isolated, and no others
        were ever slow."""
        world, late_ms = self._world, self._world.timers.delivery_ms
        ours = {node.name for node in world.ours("producer") if avoids(world, node.name)}
        if world.timers.profile is not Profile.V4_9 or not ours:
            return
        for row in rows_in(self._begun.filter(is_one_of(self._begun["node"], sorted(ours)))):
            process, at_ms = (row["node"], row["incarnation"]), row["time_ms"]
            latency_ms = self._away.latency_ms(*process, row["seq"])
            named = [self._routes.brokers(*process, ms) for ms in (at_ms - world.timers_of(process[0]).T_ms, at_ms)]
            if row["broker_name"] not in latency_ms or any(names != latency_ms.keys() for names in named):
                continue
            until_ms = self._away.until_ms(*process, at_ms, surely=True)
            quicker = [took for took in latency_ms.values() if took < latency_ms[row["broker_name"]] - MOMENT_MS]
            is_worse = len(quicker) >= max(len(latency_ms) // 2, 1)
            are_isolated = all(until_ms.get(name, 0.0) > at_ms + late_ms for name in latency_ms)
            if is_worse and are_isolated:
                yield _finding(row, "sent to the slower half", _HALF)

    def _is_isolated(self, row: Row) -> bool:
        """Whether it is at once, or need not be: its process ended."""
        world, at_ms, process = self._world, row["time_ms"], (row["node"], row["incarnation"])
        allowed = self._control.lateness.tolerance(world, (row["node"],), at_ms, at_ms, 1)
        latest_ms = at_ms + allowed.valid_up_to_ms
        if latest_ms > min(world.ended_ms(*process), world.end_ms):
            return True
        rows, ended = by_process(self._control, "broker_isolated").get(process, ()), attrgetter("ended_ms")
        near = rows[bisect_left(rows, at_ms - MOMENT_MS, key=ended) : bisect_right(rows, latest_ms, key=ended)]
        return any(run.row.f == "isolated" and run.row.broker_name == row["broker_name"] for run in near)


def _finding(row: Row, kind: str, rule: str, left_ms: float | None = None) -> Finding:
    """`left_ms`: for how much longer a send might have gone on that was given up."""
    left = {} if left_ms is None else {"left_ms": round(left_ms, 3)}
    more = {"op_id": row["op_id"], "attempt": row["attempt"] or 0, **left}
    return at_a_moment(row["node"], row["broker_name"], kind, row["time_ms"], rule, more)


def _by_send(rows: pa.Table) -> dict[Op, dict[int, Row]]:
    """The tries of each send, by their numbers."""
    of = grouped((op_of(row), (row["attempt"], row)) for row in rows_in(rows))
    return {op: {number: row for number, row in rows if number is not None} for op, rows in of.items()}


def _ops(rows: pa.Table) -> pa.Table:
    return rows.select(OP)


def _of_ops(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of the operations that the others are of."""
    rows = rows.filter(pc.is_in(rows["op_id"], value_set=others["op_id"].combine_chunks()))
    both = codes(pa.concat_tables([_ops(rows), _ops(others)]), *OP)
    return rows.filter(np.isin(both[: len(rows)], both[len(rows) :]))
