"""What a NameServer acknowledged stays in its table, and no longer than its broker may be silent.

The broker's own record (`register`) says when each registration was acknowledged, and when one was not:

    ok ─────┬──────────────────────────── ok ──── …         from each on the broker is in every topic that it has …
            │ must hold                                     … until it stops, a fault or its own time-out closes the
            │                                               channel, or it was silent for min(E, I, i)
    last ───┤ black hole, hang ┤├ must hold no more         silence counts from the last registration that can have
                           min(E, I)   scan after E, or I   arrived, not from the fault

    taken ──┤ gone, and not dropped ├── dropped            what a NameServer of ours says of itself agrees: a master is
                                                         in its topics' routes until the row that drops it

No stretch after a heal or a resume is excused: what the NameServer acknowledged then it has. Presence is read from the
NameServer's `route` rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ....remoting.node.profile import Profile
from ...faults.fault import Loss
from ...oracle.causes import Cause, link_causes, process_causes, resend_ms
from ...oracle.obligations import told_by_hand
from ...oracle.recorded import OURS, Life
from ...oracle.roles import elects, taken_over
from ...oracle.slaves import slaves_of
from ...oracle.timers import Timers
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, at_no_time, counted, finding, verdict_of
from ..record.control import Control
from ..record.lateness import Missing
from ..record.registered_rows import RegisteredRows, Sent, registered_rows
from ..record.route_tables import RouteTables, route_tables
from ..tolerance import Tolerance, tolerance

NAME = "registrations_are_kept"
_HOLD_ROW = "an acknowledged registration stays until unregistered, closed or silent for min(E, I, i)"
_EXPIRY_ROW = "silence counts from the last registration that arrived"
_DROP_ROW = "RouteInfoManager: a broker's rows go when it is dropped, and with them no others"
_FIRST_SCAN_MS = {Profile.V4_9: 5_000.0, Profile.V5_X: 5.0}


class _Hold(NamedTuple):
    """In [from_ms, to_ms) the NameServer has what the broker registered `acknowledged` times."""

    from_ms: float
    to_ms: float
    topics: tuple[str, ...]
    acknowledged: int


class _Expiry(NamedTuple):
    """In [due_ms, to_ms) the NameServer has the broker no more, whose last registration arrived by `last_ms`."""

    last_ms: float
    due_ms: float
    to_ms: float
    formula: str
    fault_id: str


def judge(control: Control, world: World) -> Verdict:
    """Examined: acknowledged registrations, and silences. Violations: where the broker was missing, or still there."""
    tables, rows = route_tables(control, world), registered_rows(control, world)
    holds: list[Finding] = []
    expiries: list[Finding] = []
    drops: list[Finding] = []
    for name_server in world.of_kind("name_server"):
        for life in world.lives_of(name_server.name):
            for broker in world.of_kind("broker", "slave"):
                pair = _Pair(control, world, tables, rows, life, broker.name)
                holds += map(pair.hold_finding, pair.holds())
                expiries += map(pair.expiry_finding, pair.expiries())
                if name_server.implementation == OURS and broker.kind == "broker":
                    drops += pair.left()
    return verdict_of(
        NAME,
        [*holds, *expiries, *drops],
        measured={"acknowledged": sum(f.examined for f in holds), "silences": len(expiries)},
        nothing="no NameServer acknowledged a registration, or no broker recorded it",
        noun="acknowledged registrations or silences were not kept",
    )


CHECK = Check(
    name=NAME,
    says="an acknowledged registration stays until its broker leaves, its channel closes or it was silent for E",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS, Needs.ACKNOWLEDGEMENTS),
    judge=judge,
    tells=lambda m: f"{m.get('acknowledged', 0):,} acknowledged; dropped for silence: {m.get('silences', 0):,}",
)


class _Pair:
    """One NameServer process and one broker."""

    def __init__(
        self, control: Control, world: World, tables: RouteTables, rows: RegisteredRows, life: Life, broker: str
    ) -> None:
        self.control, self.world, self.tables, self.rows = control, world, tables, rows
        self.life, self.broker = life, broker
        self.timers: Timers = world.timers_of(broker, life.node)
        self.end_ms = min(life.end_ms, world.end_ms)
        self.asks_between = world.made_by(broker) != OURS and self.timers.profile is Profile.V5_X
        """Apache's 5.x broker asks the NameServer that it has chosen for its group each 5 s (`refreshMetadata`), so its
        channel is not idle since its last registration, and the scan is first."""
        self.sent = [
            one for one in rows.sent(broker, life.node) if one.ended_ms > life.start_ms and one.began_ms < self.end_ms
        ]
        pauses = [c for c in process_causes(world, life.node, "name_server") if not c.loss.closes]
        causes = [*process_causes(world, broker), *link_causes(world, broker, life.node), *pauses]
        self.elected = elects(world, broker)
        causes += [Cause(*one, "link", Loss.OTHER, "") for one in taken_over(world, broker)]
        self.causes = sorted((c for c in causes if c.start_ms < c.end_ms), key=lambda cause: cause.start_ms)

    # -- acknowledged

    def holds(self) -> list[_Hold]:
        """The stretches that acknowledged registrations cover, those that touch as one."""
        found: list[_Hold] = []
        for number, one in enumerate(self.sent):
            if not one.is_ok or (self.elected and one.id_):  # topics are taken of a master only
                continue
            from_ms, to_ms = self._from_ms(one), self._until_ms(one, number)
            after = range(number + 1, len(self.sent))
            later = next((self.sent[at].ended_ms for at in after if self.sent[at].is_ok), math.inf)
            topics = self.rows.topics(self.broker, one.version)
            if from_ms >= to_ms or not topics:
                continue
            hold = _Hold(from_ms, min(to_ms, max(later, from_ms)), topics, 1)
            if found and found[-1].to_ms >= hold.from_ms and found[-1].topics == topics:
                found[-1] = found[-1]._replace(to_ms=hold.to_ms, acknowledged=found[-1].acknowledged + 1)
            else:
                found.append(hold)
        return [hold for hold in found if hold.from_ms < hold.to_ms]

    def _from_ms(self, one: Sent) -> float:
        """From when on it counts: never while a fault lasts, and when what a fault held has arrived."""
        from_ms = one.ended_ms
        for cause in self.causes:
            if cause.start_ms <= one.ended_ms and cause.end_ms > one.began_ms:
                return math.inf
            if cause.end_ms <= one.began_ms:
                delay = cause.delay
                late_ms = self.timers.delivery_ms + (delay.round_trip_max_ms if delay else 0.0)
                from_ms = max(from_ms, cause.end_ms + late_ms)
            if resend_ms(cause, one.ended_ms):
                return math.inf  # an older registration may come yet, and the close of its channel behind it
        return from_ms

    def _until_ms(self, one: Sent, number: int) -> float:
        """Until when nothing can have made the broker leave."""
        to_ms = min(self.end_ms, one.ended_ms + self.timers.silence_ms)
        for cause in self.causes[bisect_right(self.causes, one.ended_ms, key=lambda cause: cause.start_ms) :]:
            if cause.start_ms >= to_ms:
                break
            # A silent broker, or a silent link, lets no close through; what its end lets out may be one.
            # Who was elected meanwhile has its id.
            is_kept = cause.loss is Loss.SILENT and not self.elected
            to_ms = min(to_ms, cause.end_ms if is_kept else cause.start_ms)
        for at in range(number + 1, len(self.sent)):
            other = self.sent[at]
            if other.is_ok or other.ended_ms >= to_ms:
                break
            if not self._is_silent(other.began_ms, other.ended_ms):
                to_ms = other.ended_ms  # it closed its channel
        return to_ms

    def _is_silent(self, from_ms: float, to_ms: float) -> bool:
        return any(c.loss is Loss.SILENT and c.start_ms <= from_ms and to_ms <= c.end_ms for c in self.causes)

    # -- silent

    def expiries(self) -> Iterator[_Expiry]:
        """When the broker's silence was too long. None where anything else could close the channel or get through, nor
        of a broker that says it lives by more than its registrations."""
        if self.timers.h_ms is not None or self.timers.F_ms is not None:
            return
        yield from self._by_its_clock()
        for cause in self.causes:
            if cause.loss is not Loss.SILENT or cause.on == "name_server" or cause.start_ms <= self.life.start_ms:
                continue
            until_ms = min(cause.end_ms, self.end_ms)
            last_ms = self._last_ms(cause)
            if last_ms is None or self._others(cause, last_ms, until_ms):
                continue
            scanned_ms = self._scan_after(last_ms + self.timers.E_ms)
            idle_ms = last_ms + self.timers.I_ms
            formula = "I" if idle_ms <= scanned_ms else "the scan after E"
            due_ms = min(idle_ms, scanned_ms)
            if self.asks_between:
                formula, due_ms = "E + S", last_ms + self.timers.E_ms + self.timers.S_ms
            if due_ms < until_ms:
                yield _Expiry(last_ms, due_ms, until_ms, formula, cause.fault_id)

    def _by_its_clock(self) -> Iterator[_Expiry]:
        """When a registration was older than E by a wall clock that was changed, and the next was not begun yet."""
        changes = self.world.clocks.get(self.life.node, ())
        for one, following in pairwise([*self.sent, None]) if changes else ():
            to_ms = self.end_ms if following is None else following.began_ms
            if one is None or not one.is_ok or self._others_but_its_clock(one.began_ms, to_ms):
                continue
            scan_ms = self._scan_after(one.ended_ms)
            while scan_ms < to_ms and self._wall_ms(scan_ms) - self._wall_ms(one.ended_ms) <= self.timers.E_ms:
                scan_ms += self.timers.S_ms
            last = next((change for change in reversed(changes) if change.time_ms <= scan_ms), None)
            if scan_ms < to_ms and last is not None and last.time_ms > one.ended_ms:
                yield _Expiry(one.ended_ms, scan_ms, to_ms, "the scan after E by its wall clock", last.change_id)

    def _wall_ms(self, at_ms: float) -> float:
        return self.world.wall_ms(self.life.node, at_ms)

    def _last_ms(self, cause: Cause) -> float | None:
        """By when the last registration before the silence arrived; None where the broker did not keep its ticks."""
        start_ms = cause.start_ms + cause.begins_late_ms  # until then it may not have the list without this NameServer
        begun = [one for one in self.sent if one.began_ms < start_ms]
        if not begun or cause.start_ms - begun[-1].began_ms > self.timers.R_ms + self.timers.B_ms:
            return None
        unanswered = any(not one.is_ok for one in begun[-2:])
        return start_ms if unanswered else begun[-1].ended_ms

    def _others(self, cause: Cause, from_ms: float, to_ms: float) -> bool:
        return any(other is not cause and other.start_ms < to_ms and other.end_ms > from_ms for other in self.causes)

    def _others_but_its_clock(self, from_ms: float, to_ms: float) -> bool:
        changes = {change.change_id for change in self.world.clocks.get(self.life.node, ())}
        others = (cause for cause in self.causes if cause.fault_id not in changes)
        return any(other.start_ms < to_ms and other.end_ms > from_ms for other in others)

    def _scan_after(self, at_ms: float) -> float:
        first_ms = self.life.start_ms + _FIRST_SCAN_MS[self.timers.profile]
        return first_ms + self.timers.S_ms * max(0, math.ceil((at_ms - first_ms) / self.timers.S_ms))

    # -- gone from a topic's route

    def left(self) -> Iterator[Finding]:
        """Where it left a topic's route at a NameServer that had taken it in, and says of no drop, nor of a
        registration that changed its topics. One finding of all; the longest stands for them."""
        process, name = (self.life.node, self.life.incarnation), broker_name(self.broker)
        taken, changed_ms = list[float](), list[float]()
        for row in self.control.rows("registration", "broker_dropped"):
            if row.process == process and row.broker_name == name:
                changed_ms.append(row.time_ms)
                if row.event == "registration" and not row.code:
                    taken.append(row.time_ms)
        if not taken or slaves_of(self.world, self.broker):
            return
        by_hand, found = told_by_hand(self.world), list[tuple[float, str, float]]()
        for topic in self.tables.topics:
            for before, after in pairwise(self.tables.presence(process, topic, self.broker, anywhere=True)):
                at_ms = after.s
                if after.present or not before.present or at_ms < taken[0] or at_ms >= self.end_ms:
                    continue
                if by_hand.is_deleted(self.life.node, topic, at_ms - self.timers.delivery_ms, at_ms + 1.0):
                    continue
                at = bisect_left(changed_ms, at_ms)
                near_ms = [abs(ms - at_ms) for ms in changed_ms[max(at - 1, 0) : at + 1]]
                found.append((min([*near_ms, after.e - at_ms]), topic, at_ms))
        if not found:
            return
        over_ms, topic, at_ms = max(found)
        tolerance_ = self._tolerance(at_ms - 1000.0, at_ms + over_ms, 1)
        yield finding(
            (self.life.node, self.broker, topic),
            "left without being dropped",
            (at_ms, at_ms + over_ms),
            at_no_time(_DROP_ROW),
            out=(at_ms, at_ms + over_ms),
            tolerance=tolerance_,
            measured_ms=over_ms,
            over_ms=over_ms,
            examined=len(found),
        )

    # -- findings

    def hold_finding(self, hold: _Hold) -> Finding:
        tolerance_ = self._tolerance(hold.from_ms - self.timers.R_ms, hold.to_ms, 1)
        over_ms, topic, stretch = self._missing(hold)
        said: dict[str, Any] = counted(over_ms, tolerance_)
        if said["wrong"] and stretch is not None:
            missing = Missing((self.life.node, self.broker), stretch[0], min(stretch[1], hold.to_ms))
            if self.control.lateness.stalled(self.world, {0: missing}):
                said = {"wrong": 0, "late": 1}
        return finding(
            (self.life.node, self.broker, topic if over_ms else ""),
            "must hold what it acknowledged",
            (hold.from_ms, hold.to_ms),
            at_no_time(_HOLD_ROW),
            out=(stretch[0], stretch[1]) if stretch else None,
            tolerance=tolerance_,
            examined=hold.acknowledged,
            **said,
        )

    def expiry_finding(self, expiry: _Expiry) -> Finding:
        tolerance_ = self._tolerance(expiry.last_ms - self.timers.R_ms, expiry.due_ms, 2)
        process, due_ms = (self.life.node, self.life.incarnation), expiry.due_ms
        held = [
            (min(stretch.e, expiry.to_ms), topic, max(stretch.s, due_ms))
            for topic in self.tables.topics
            for stretch in self.tables.presence(process, topic, self.broker, anywhere=True)
            if stretch.present and stretch.s < due_ms and stretch.e > expiry.last_ms  # later ones are another's matter
        ]
        gone_ms, topic, since_ms = max(held, default=(None, "", 0.0))
        over_ms = max((gone_ms or 0.0) - due_ms, 0.0)
        return finding(
            (self.life.node, self.broker, topic if over_ms else ""),
            "must not hold what was silent",
            (due_ms, expiry.to_ms),
            Rule(_EXPIRY_ROW, expiry.formula, due_ms - expiry.last_ms),
            out=(since_ms, gone_ms) if over_ms else None,
            tolerance=tolerance_,
            measured_ms=None if gone_ms is None else gone_ms - expiry.last_ms,
            over_ms=over_ms,
            after=f"{expiry.fault_id} start",
            times={"last registered": expiry.last_ms},
        )

    def _tolerance(self, from_ms: float, to_ms: float, timers: int) -> Tolerance:
        lag_ms = self.control.lateness.largest(self.world, (self.life.node, self.broker), from_ms, to_ms)
        return tolerance(self.timers, lag_ms, timers)

    def _missing(self, hold: _Hold) -> tuple[float, str, tuple[float, float] | None]:
        """The longest time for which a topic lacked the broker: how long, which topic, from when to when."""
        worst: tuple[float, str, tuple[float, float] | None] = (0.0, "", None)
        by_hand, process = told_by_hand(self.world), (self.life.node, self.life.incarnation)
        moves = len({self.world.address_at(self.broker, at_ms) for at_ms in (hold.from_ms, hold.to_ms)}) > 1
        for topic in hold.topics:
            if by_hand.is_deleted(self.life.node, topic, hold.from_ms, hold.to_ms):
                continue
            for held in self.tables.presence(process, topic, self.broker, anywhere=moves):
                s, e = max(held.s, hold.from_ms), min(held.e, hold.to_ms)
                if not held.present and e - s > worst[0]:
                    worst = e - s, topic, (s, e)
        return worst
