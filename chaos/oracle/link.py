"""The link, the only part of the oracle that knows faults: when the receiver handles what a process sends, if ever.

    sent ──┬─ open: within its delay ───────────► handled      Handled: at one moment of [first_ms, last_ms], for sure
           ├─ shut: when it opens again, or its kernel sends again, or never
           └─ receiver stands still: when it runs on

Why a node may not reach another (`Cause`): faults of its process, gaps between its lives, and faults of the link. Which
brokers do not answer a client and do not refuse it either, so that they hold up its only scheduler thread (one whose
process is gone refuses at once); when a process stood still; and when its calls may have waited for their time-outs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import NamedTuple, Self

from ...remoting.top_addressing import FIRST_S, TIMEOUT_S
from ..faults.fault import Delay, Loss
from ..faults.process_faults import Stop
from ..topology import ADDRESS_SERVER
from .intervals import Stretch, merged
from .lists import fetch_ms, late_ms, out_of_reach
from .recorded import Fault, Life, NodeInfo, Served
from .timers import UNREGISTER_MS, Timers
from .world import World, once

SECOND_ROUND_MS = 10_000.0
"""How long after its first round of registrations a broker begins its second."""
MOMENT_MS = 1.0
"""Clients' and brokers' own stamps are whole milliseconds; what is no further apart may be in any order."""
EXACT_MS = 1e-3
"""How exact a row's begin is, which is reckoned from the row's end and duration."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a broker not to reach a NameServer (or a client)."""

    start_ms: float
    end_ms: float
    on: str
    """broker, link or name_server"""
    loss: Loss
    fault_id: str
    lost_for_ms: float | None = None
    """For how long packets had been lost when it ended, which kernels send again; None: no single packet was lost."""
    stream: str | None = None
    delay: Delay | None = None
    """How late a latency fault makes what passes."""
    begins_late_ms: float = 0.0
    """How much later its beginning may show: a list by HTTP is fetched now and then, a clean stop takes its time."""
    ends_late_ms: float = 0.0
    """How much later its end may."""
    ended_by: str = ""
    """What ended it, where that has a name of its own."""
    begins_from_ms: float = math.inf
    heals_from_ms: float = math.inf
    """From when on it may be in force, and may be over, where that is before: what does it takes its time."""

    @classmethod
    def of(cls, fault: Fault, on: str, timers: Timers) -> Cause:
        """What closes connections has closed them, however soon it is over: it lasts at least a moment. The moment lies
        before its end, where the next process begins."""
        kind, loss = fault.kind, fault.loss(timers)
        lost_for_ms, delay = fault.lost_for_ms if kind.loses_packets else None, kind.delay
        start_ms = min(fault.start_ms, fault.end_ms - MOMENT_MS) if loss.closes else fault.start_ms
        of = start_ms, fault.end_ms, on, loss, fault.fault_id, lost_for_ms, fault.stream, delay
        return cls(*of, begins_from_ms=fault.begins_from_ms, heals_from_ms=fault.heals_from_ms)

    def active(self, at_ms: float) -> bool:
        return self.start_ms <= at_ms < self.end_ms

    @property
    def is_for_ever(self) -> bool:
        """Whether the link is none: the NameServer is on no list that the broker ever has."""
        return self.on == "link" and self.start_ms == -math.inf and self.end_ms == math.inf


def healed_from_ms(causes: Iterable[Cause], at_ms: float) -> float:
    """From when on one of these may be over, of those that may be when `at_ms` is; that moment itself without any."""
    return min((c.heals_from_ms for c in causes if c.start_ms <= c.heals_from_ms < at_ms <= c.end_ms), default=at_ms)


RESEND_MAX_MS = 120_000.0
"""The longest that a kernel waits before it sends unanswered data again (Linux, TCP_RTO_MAX), in the machine's time."""


def resent_after_ms(fault: Fault) -> float:
    """How long after its end what the fault lost may still arrive, behind what was sent later by another connection."""
    return min(fault.lost_for_ms, RESEND_MAX_MS) if fault.kind.loses_packets else 0.0


def resend_ms(cause: Cause, at_ms: float) -> float:
    """How long after `at_ms` what was sent before may still wait, because a fault lost its packets. Each time the
    kernel waits twice as long, so no longer than the fault has lasted. 0 for what a proxy did."""
    if cause.lost_for_ms is None or at_ms < cause.end_ms:
        return 0.0
    return max(0.0, cause.end_ms - at_ms + min(cause.lost_for_ms, RESEND_MAX_MS))


def leave_ms(world: World) -> float:
    """How long a clean stop may have been under way when it is recorded: it unregisters at each NameServer in turn, and
    Apache's broker then has more to end (13 s of RocketMQ's were seen); the longest of the run, where that is known."""
    asked = ((fault.start_ms, fault.value.get("asked_ms")) for fault in world.faults if isinstance(fault.kind, Stop))
    took_ms = [start_ms - float(asked_ms) for start_ms, asked_ms in asked if asked_ms is not None]
    return max([UNREGISTER_MS * len(world.of_kind("name_server")), *took_ms])


def earliest_effect_ms(world: World, fault: Fault) -> float:
    """When the fault may have been felt first: a broker or NameServer that stops cleanly serves nobody on its way."""
    leaves = fault.loss(world.timers) is Loss.GRACEFUL and "asked_ms" not in fault.value
    return fault.begins_from_ms - (leave_ms(world) if leaves else 0.0)


@once
def process_causes(world: World, node: str, on: str = "broker") -> Sequence[Cause]:
    """When this node's process is not running or not answering: its faults, and the gaps between its lives.

    A clean stop of a broker begins before its row, but not before its process did; the row is its end. The end of the
    run is not one of them.
    """
    lives, faults = world.lives_of(node), world.process_faults(node)

    def begun(cause: Cause, asked_ms: float) -> Cause:
        if on != "broker" or cause.loss is not Loss.GRACEFUL or not -math.inf < cause.start_ms < world.end_ms:
            return cause
        asked_ms = max([asked_ms, *(life.start_ms for life in lives if life.start_ms < cause.start_ms)])
        return replace(cause, start_ms=asked_ms, begins_late_ms=cause.start_ms - asked_ms)

    causes = [begun(Cause.of(fault, on, world.timers), earliest_effect_ms(world, fault)) for fault in faults]
    by_start = {fault.start_ms: fault for fault in reversed(faults)}
    gap_ms = -math.inf
    for start_ms, end_ms in [*((life.start_ms, life.end_ms) for life in lives), (math.inf, math.inf)]:
        if start_ms > gap_ms:
            ended_by = by_start.get(gap_ms)
            loss, fault_id = (ended_by.loss(world.timers), ended_by.fault_id) if ended_by else (Loss.GRACEFUL, "")
            asked_ms = earliest_effect_ms(world, ended_by) if ended_by else gap_ms - leave_ms(world)
            causes.append(begun(Cause(gap_ms, start_ms, on, loss, fault_id), asked_ms))
        gap_ms = end_ms
    return causes


@once
def link_causes(world: World, source: str, target: str) -> Sequence[Cause]:
    """When the link by which `source` dials `target` is not as it should be."""
    timers = world.timers_of(source)
    causes = (Cause.of(fault, "link", timers) for fault in world.link_faults(source, target))
    found = [cause for cause in causes if cause.loss is not Loss.HARMLESS]
    if world.kind_of(target) != "name_server":
        return found
    if not world.lists(source, target):
        found.append(Cause(-math.inf, math.inf, "link", Loss.SILENT, ""))
    found += off(world, source, target)
    return [*found, *(_without_list(world, source) if world.kind_of(source) in ("broker", "slave") else ())]


def off(world: World, node: str, name_server: str) -> list[Cause]:
    """When the list that is served to this node does not name this NameServer."""
    if not world.asks_for_list(node):
        return []
    turns = [next(of) for _, of in groupby(world.served, key=lambda one: name_server in one.entries)]
    return [
        Cause(
            since.from_ms,
            back.from_ms,
            "link",
            Loss.SILENT,
            since.change_id,
            begins_late_ms=late_ms(world, node, since),
            ends_late_ms=late_ms(world, node, back),
            ended_by=back.change_id,
        )
        for since, back in pairwise([*turns, Served(math.inf, ())])
        if name_server not in since.entries
    ]


def certainly_off(world: World, node: str, name_server: str) -> list[Stretch]:
    """When the NameServer cannot be on the node's list."""
    found = (Stretch(one.start_ms + one.begins_late_ms, one.end_ms) for one in off(world, node, name_server))
    return [stretch for stretch in found if stretch.start_ms < stretch.end_ms]


_NOTHING_FETCHED = frozenset(
    {Loss.CRASH, Loss.GRACEFUL, Loss.CLOSED, Loss.SILENT, Loss.DROPPED, Loss.RESET, Loss.UNDIALLED}
    | {Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY}
)
"""No new connection brings an answer."""


def _without_list(world: World, node: str) -> Iterator[Cause]:
    """When a process of the broker may have no list at all, for it could not ask the address server when it first
    would; its next turn to ask is up to a period after the end of each. Over a link that is slow, or was not lost yet
    as it began, it may have got one all the same (OTHER)."""
    if not world.asks_for_list(node):
        return
    late = fetch_ms(world, node)
    faults = (*world.process_faults(ADDRESS_SERVER), *world.link_faults(node, ADDRESS_SERVER))
    lost = [one for one in faults if one.loss(world.timers_of(node)) in _NOTHING_FETCHED]
    certain = merged(Stretch(one.start_ms, one.end_ms) for one in lost)
    for life in world.lives_of(node):
        until_ms, ends_ms = life.start_ms + 1000 * (FIRST_S + TIMEOUT_S), life.start_ms
        for stretch in out_of_reach(world, node):
            if stretch.start_ms <= until_ms and stretch.end_ms > life.start_ms:
                ends_ms, until_ms = stretch.end_ms, stretch.end_ms + late
        ends_ms = min(ends_ms, life.end_ms)
        sure = (min(one.end_ms, ends_ms) for one in certain if one.start_ms <= life.start_ms < one.end_ms)
        sure_ms = next(sure, life.start_ms)
        for start_ms, end_ms, loss in ((life.start_ms, sure_ms, Loss.SILENT), (sure_ms, ends_ms, Loss.OTHER)):
            if start_ms < end_ms:
                yield Cause(start_ms, end_ms, "link", loss, "", ends_late_ms=late)


def timers_of_rounds(world: World, broker: str, name_server: str) -> Timers:
    """Those of the two. Where a NameServer may hang, a round takes B: if that is more than R, the next follows at once,
    and B is R. A process's first round comes before its heartbeats, and 10 s before its second
    (`BrokerController.start`): a NameServer whose E is less than B drops the broker meanwhile, and has it back B + 10 s
    after the start."""
    timers = world.timers_of(broker, name_server)
    round_ms = timers.B_ms + (SECOND_ROUND_MS if timers.E_ms < timers.B_ms else 0.0)
    if round_ms <= timers.R_ms or not _may_hang(world, broker):
        return timers
    return timers.with_(R_ms=round_ms)


@once
def _may_hang(world: World, broker: str) -> bool:
    """Whether any NameServer leaves the broker without an answer at some time."""
    return any(
        not cause.loss.closes
        for node in world.of_kind("name_server")
        for cause in (*process_causes(world, node.name, "name_server"), *link_causes(world, broker, node.name))
    )


def hung_brokers(world: World, client: str, start_ms: float, end_ms: float) -> int:
    """How many brokers did not answer this client at some time in the stretch, their connections being open."""
    return hung(world, client, world.of_kind("broker", "slave"), start_ms, end_ms)


def hung(world: World, client: str, nodes: Iterable[NodeInfo], start_ms: float, end_ms: float) -> int:
    """The same of these nodes."""
    timers = world.timers_of(client)

    def hangs(cause: Cause) -> bool:
        answers_late = cause.delay is not None and cause.delay.round_trip_max_ms < timers.A_ms
        silent = not cause.loss.closes and cause.loss is not Loss.HARMLESS and not answers_late
        return cause.start_ms < end_ms and cause.end_ms > start_ms and silent

    def causes(node: str) -> Iterator[Cause]:  # without those of lists, which make no node hang
        yield from process_causes(world, node)
        yield from (Cause.of(fault, "link", timers) for fault in world.link_faults(client, node))

    return sum(any(map(hangs, causes(node.name))) for node in nodes)


@once
def most_hung_brokers(world: World) -> int:
    """The same for the client that it is most for, at any time."""
    clients = world.of_kind("producer", "consumer")
    return max((hung_brokers(world, client.name, -math.inf, math.inf) for client in clients), default=0)


class Handled(NamedTuple):
    """The receiver handles it at one moment of [first_ms, last_ms]; where that is not `sure`, perhaps never."""

    first_ms: float
    last_ms: float
    sure: bool
    sent_ms: float
    """When it left the sender: the end of a channel takes away what was sent before it."""

    @classmethod
    def at(cls, at_ms: float, *, sure: bool = True) -> Self:
        """Handled at that very moment."""
        return cls(at_ms, at_ms, sure, at_ms)


_LOSES = frozenset({Loss.CLOSED, Loss.RESET, Loss.DROPPED, Loss.OTHER, Loss.STALE, Loss.SLOW})
"""What is under way, or its whole channel, may be lost with it."""
_PASSES = frozenset({Loss.HARMLESS, Loss.BACKWARD_PROXY, Loss.UNDIALLED})
"""What the sender sends comes at once."""


class Way:
    """From a broker to one process of a NameServer."""

    def __init__(self, world: World, source: str, life: Life) -> None:
        self._timers = timers = world.timers_of(source, life.node)
        self.pauses = [cause for cause in process_causes(world, life.node, "name_server") if not cause.loss.closes]
        """When the receiver stands still."""
        faults = (Cause.of(fault, "link", timers) for fault in world.link_faults(source, life.node))
        lists = (cause for cause in link_causes(world, source, life.node) if cause.is_for_ever or cause.begins_late_ms)
        self._causes = sorted([*faults, *lists, *self.pauses], key=lambda cause: cause.start_ms)
        self._sender = [cause for cause in process_causes(world, source) if cause.start_ms > -math.inf]

    def is_shut(self, from_ms: float, to_ms: float) -> bool:
        """Whether a fault of the sender, or of the link, kept it from being heard at some time in between."""
        causes = (cause for cause in (*self._causes, *self._sender) if cause not in self.pauses)
        return any(cause.start_ms < to_ms and cause.end_ms > from_ms for cause in causes)

    def arrives(self, at_ms: float) -> Handled:
        """When what the sender sends then is handled."""
        first_ms, last_ms, sure = at_ms, at_ms + self._timers.delivery_ms, True
        for cause in self._causes:
            over_ms = cause.end_ms + cause.ends_late_ms
            if cause.loss in _PASSES or cause.start_ms > last_ms or over_ms + resend_ms(cause, cause.end_ms) < at_ms:
                continue
            delay = cause.delay
            late_ms = resend_ms(cause, max(at_ms, cause.end_ms)) + (delay.upstream_ms + delay.jitter_ms if delay else 0)
            last_ms = max(last_ms, over_ms + late_ms + self._timers.delivery_ms)
            sure = sure and cause.loss not in _LOSES
            if cause.loss is Loss.SILENT and cause.start_ms + cause.begins_late_ms <= first_ms < cause.end_ms:
                first_ms = min(cause.end_ms, cause.heals_from_ms)
        return Handled(first_ms, last_ms, sure, at_ms)

    def registered(self, began_ms: float, ended_ms: float, is_ok: bool) -> Handled:
        """The same of a request that was begun then; its answer proves that it came, and by when."""
        came = self.arrives(began_ms)
        return came._replace(last_ms=ended_ms, sure=True) if is_ok else came._replace(sure=False)

    def unrecorded(self) -> Iterator[Handled]:
        """What the sender may have sent last, and did not live to record."""
        yield from (self.arrives(c.start_ms)._replace(sure=False) for c in self._sender if c.loss.closes)

    def ends(self, failed_ms: Iterable[float]) -> Iterator[Handled]:
        """When channels of the sender end at the receiver, or may: by its own time-outs (Z), its end, or the link.
        `failed_ms`: when its calls failed."""
        yield from (self.arrives(at_ms)._replace(sure=False) for at_ms in failed_ms)
        yield from map(self._end_of, self._sender)
        for cause in self._causes:
            start_ms, until_ms = cause.start_ms, cause.end_ms + self._timers.delivery_ms
            if cause.loss is Loss.CLOSED:
                yield Handled(start_ms, start_ms + self._timers.delivery_ms, True, start_ms)
            if cause.loss in _LOSES:
                round_trip_ms = cause.delay.round_trip_max_ms if cause.delay else 0.0
                yield Handled(start_ms, until_ms + round_trip_ms, False, start_ms)
            elif cause.loss not in _PASSES:  # what it held comes now
                yield Handled(cause.end_ms, until_ms + resend_ms(cause, cause.end_ms), False, cause.end_ms)

    def _end_of(self, cause: Cause) -> Handled:
        if not cause.loss.closes:  # the sender runs on, and gives up what it was waiting for
            return self.arrives(cause.end_ms)._replace(sure=False)
        leaves_ms = cause.begins_late_ms
        begun, over = self.arrives(cause.start_ms), self.arrives(cause.start_ms + leaves_ms)
        last_ms = max(begun.last_ms, over.last_ms)  # behind all that was sent before
        return Handled(cause.start_ms, last_ms, over.sure, cause.start_ms + max(leaves_ms, MOMENT_MS))


RESUME_GRACE_MS = 1_000.0
"""How long after a stop a process is still catching up."""


class Stops:
    """When one process stood still, and what was due then."""

    def __init__(self, world: World, life: Life) -> None:
        self.world, self.life, self.timers = world, life, world.timers_of(life.node)
        self.pauses = [cause for cause in process_causes(world, life.node, "itself") if not cause.loss.closes]

    def after_pauses(self, at_ms: float) -> float:
        """That moment, or when the process was itself again."""
        for pause in self.pauses:
            if pause.start_ms <= at_ms + self.timers.delivery_ms and at_ms < pause.end_ms + RESUME_GRACE_MS:
                at_ms = pause.end_ms + RESUME_GRACE_MS
        return at_ms

    def before_pauses(self, at_ms: float) -> float:
        """That moment, or when the process began to stand still: what it read then may have come any time since."""
        for pause in reversed(self.pauses):
            if pause.start_ms <= at_ms < pause.end_ms + RESUME_GRACE_MS:
                at_ms = pause.start_ms
        return at_ms

    def held(self, from_ms: float, to_ms: float) -> bool:
        return any(p.start_ms <= to_ms and p.end_ms + RESUME_GRACE_MS >= from_ms for p in self.pauses)

    def held_ms(self, from_ms: float, to_ms: float) -> float:
        """For how long of that time it stood still."""
        ends = ((max(p.start_ms, from_ms), min(p.end_ms + RESUME_GRACE_MS, to_ms)) for p in self.pauses)
        return sum(max(0.0, end_ms - start_ms) for start_ms, end_ms in ends)


class Troubles:
    """When calls of one node to another may have waited for their time-outs."""

    def __init__(self, world: World, node: str) -> None:
        self._world, self._node, timers = world, node, world.timers_of(node)
        look_up_ms = max(timers.A_ms, timers.C_ms * len(world.of_kind("name_server")), timers.B_ms)
        self._waits_ms = 2 * look_up_ms
        """How long a call that began in the fault waits on: for its lock, and for its answer."""

    def among(self, targets: Iterable[str], from_ms: float, to_ms: float) -> list[str]:
        """Those of the targets that something kept from answering at some time in [from_ms, to_ms]."""
        return [name for name in targets if self._met(name, from_ms, to_ms, self._waits_ms)]

    def between(self, target: str, from_ms: float, to_ms: float) -> bool:
        """Whether what the target sends this node may be lost or late that it sends at some time in [from_ms, to_ms].
        Older calls that still wait for their time-outs are no matter here."""
        return self._met(target, from_ms, to_ms, 0.0)

    def _met(self, target: str, from_ms: float, to_ms: float, tail_ms: float) -> bool:
        """Whether the target, or a link to it, was not as it should be then, or up to `tail_ms` before."""
        spans = _troubles(self._world, self._node, target)
        return any(one.start_ms <= to_ms and one.end_ms + max(tail_ms, late_ms) >= from_ms for one, late_ms in spans)


@once
def _troubles(world: World, node: str, target: str) -> Sequence[tuple[Stretch, float]]:
    """When the target, or the link to it, was not as it should be, and how long after that what it held up may come."""
    links = [Cause.of(fault, "link", world.timers_of(node)) for fault in world.link_faults(node, target)]
    found = []
    for cause in (*process_causes(world, target), *links):
        late_ms = resend_ms(cause, cause.end_ms) + (cause.delay.round_trip_max_ms if cause.delay else 0.0)
        if cause.end_ms > 0:
            start_ms = min(cause.begins_from_ms, cause.start_ms)
            found.append((Stretch(start_ms, cause.end_ms), 0.0 if math.isinf(cause.end_ms) else late_ms))
    return found
