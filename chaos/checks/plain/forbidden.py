"""Requests that a broker answered with success though its own topic forbids them, and sends that a master refused as
if it were none (availability).

    broker's `topic`   perm 6, 4 queues ──┬── perm 2 ────┬── 2 queues ──────
    sends              may be stored      │              │ to queue 2: are refused
    pulls              may be answered    │ are refused  │ of queue 2: are refused

A broker's own permission (brokerPermission) is in these rows, too. No permission of the topic, and none of the broker
but for ordered topics, forbids a send: only routes keep producers away (`AbstractSendMessageProcessor.msgCheck`).
Upstream of pulls: `PullMessageProcessor.processRequest`.

Only a queue id from max(read, write) on is illegal. So a send to a lower queue id is not answered with SYSTEM_ERROR
(5.x: INVALID_PARAMETER), also while a fault lasts. The code of a refusal decides whether a producer tries another
broker: an illegal queue id is refused with SYSTEM_ERROR (5.x: INVALID_PARAMETER), a lacking permission with
NO_PERMISSION.

A master's store refuses nothing with SERVICE_NOT_AVAILABLE (14) that a slave's does, but stores nothing while its disk
is full (`DefaultMessageStore.checkStoreStatus`). A SYNC_MASTER without a slave answers SLAVE_NOT_AVAILABLE (11), and
never FLUSH_SLAVE_TIMEOUT (12), for it waits for nobody (`CommitLog.handleHA`). With a slave it answers SEND_OK no
sooner than the slave can have the message, and 12 no sooner than syncFlushTimeout (`GroupTransferService`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ....remoting.codes import PERM_READ, PERM_WRITE, ResponseCode
from ....remoting.node.profile import Profile
from ...arrow import pa, pc
from ...oracle.intervals import Stretch, merged, without
from ...oracle.link import MOMENT_MS
from ...oracle.recorded import NodeInfo
from ...oracle.roles import elects
from ...oracle.slaves import slave_processes_gone, waits_for_slaves
from ...oracle.world import World
from ..check import Facts
from ..record.control import Control, Row
from ..record.registered_rows import row_of
from ..record.slots import TRY, Tally
from .part import Part, Reading, Together, began_ms, floats, is_one_of

SENDS, PULLS, TO_A_MASTER, WITHOUT_SLAVE = "sends", "pulls", "sends to a master", "sends without a slave"
TO_A_FULL_DISK, CODES_OF_A_FULL_DISK = "sends to a full disk", "codes of sends to a full disk"
TO_ITS_QUEUES = "sends to its queues"
ACKNOWLEDGED, GIVEN_UP = "sends acknowledged too soon", "sends given up too soon"
CODES_OF_SENDS, CODES_OF_PULLS = "codes of refused sends", "codes of refused pulls"
_WRONG_CODES = {
    TO_A_MASTER: (ResponseCode.SERVICE_NOT_AVAILABLE,),
    TO_ITS_QUEUES: (ResponseCode.SYSTEM_ERROR, ResponseCode.INVALID_PARAMETER),
    WITHOUT_SLAVE: (ResponseCode.FLUSH_SLAVE_TIMEOUT,),
}
_BEFORE = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST})
"""A broker refuses with these codes before the broker looks at the topic."""
_OF_A_FULL_DISK = _BEFORE | {ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.NO_PERMISSION}
_CHANGES = ("update_topic", "update_config")


class Refusal(NamedTuple):
    """What a broker has to refuse in this time: requests for a queue from `from_queue` on. TO_ITS_QUEUES: what the
    broker must not refuse, requests for a queue below `to_queue`. TO_A_MASTER, WITHOUT_SLAVE: what the broker must not
    answer with code 14, or 12, whatever the topic."""

    broker: str
    addresses: tuple[str, ...]
    topic: str
    what: str
    from_queue: int
    stretch: Stretch
    to_queue: float = math.inf
    codes: frozenset[ResponseCode] = frozenset()
    """CODES_OF_SENDS, CODES_OF_PULLS, CODES_OF_A_FULL_DISK: the codes with which the broker may refuse. ACKNOWLEDGED,
    GIVEN_UP: the code with which the broker must not answer sooner than `least_ms`."""
    least_ms: float = 0.0


@dataclass(frozen=True)
class Forbidden(Facts):
    """By broker, topic and what (sends, pulls): good is what was refused, bad what was done all the same; of the other
    kinds, bad is what was answered with a wrong code."""

    asked: Mapping[tuple[str, str, str], Tally] = field(default_factory=dict)


def forbidden(part: Part, world: World) -> Forbidden:
    found: dict[tuple[str, str, str], list[Tally]] = {}
    for refusal in _refusals(part.control, world):
        rows = _asked(part, world, refusal)
        if len(rows):
            about = refusal.broker, refusal.topic, refusal.what
            found.setdefault(about, []).append(_tally(rows, refusal))
    return Forbidden({key: Tally.total(tallies) for key, tallies in found.items()})


FORBIDDEN = Reading(
    Together.ROW,
    (TRY, "pull"),
    ("type", "address", "topic", "queue_id", "code", "duration_ms"),
    forbidden,
    types=("ok", "fail", "info"),
)


def _refusals(control: Control, world: World) -> Iterator[Refusal]:
    """From when an operator's change was in force until the next change began to be."""
    for broker in world.ours("broker", "slave"):
        if not elects(world, broker.name):
            from_ms = -math.inf if broker.kind == "broker" else world.heard_ms(broker.name)
            its_own = broker.name, tuple(broker.addresses), ""
            full = [disk for disk in world.full_disks if disk.broker == broker.name]
            for stretch in without(from_ms, world.end_ms, merged(disk.perhaps for disk in full)):
                yield Refusal(*its_own, TO_A_MASTER, 0, stretch)
            for disk in full:
                yield Refusal(*its_own, TO_A_FULL_DISK, 0, disk.surely)
                yield Refusal(*its_own, CODES_OF_A_FULL_DISK, 0, disk.surely, codes=_OF_A_FULL_DISK)
    for broker in world.of_kind("broker"):
        of_sends = broker.name, tuple(broker.addresses), "", WITHOUT_SLAVE, 0
        yield from (Refusal(*of_sends, gone) for gone in slave_processes_gone(world, broker.name))
        for stretch, code, least_ms in waits_for_slaves(world, broker.name):
            what = ACKNOWLEDGED if code is ResponseCode.SUCCESS else GIVEN_UP
            of_sends = broker.name, tuple(broker.addresses), "", what, 0
            yield Refusal(*of_sends, stretch, codes=frozenset({code}), least_ms=least_ms)
        settings: dict[str, list[tuple[float, tuple[int, int, int]]]] = {}
        rows = [row for row in control.rows("topic") if row.node == broker.name]
        for row in rows:
            if (has := row_of(row.decoded)) is not None:
                settings.setdefault(row.topic or "", []).append((row.time_ms, has))
        if broker in world.ours("broker"):
            yield from _of_its_queues(world, broker, rows)
        changes = [act for act in world.acts if act.node == broker.name]
        for topic, of in settings.items():
            about = [act for act in changes if act.topic == topic or act.broker_permission is not None]
            for (at_ms, (read, write, perm)), (until_ms, _) in pairwise([*of, (math.inf, of[-1][1])]):
                done = (act for act in about if act.ended_ms >= at_ms - 1.0 and act.is_done and act.f in _CHANGES)
                from_ms = next((act.ended_ms for act in done), math.inf)
                ends = (act.began_ms for act in about if act.began_ms > from_ms)
                stretch = Stretch(from_ms, min(until_ms, *ends, world.end_ms))
                if from_ms < stretch.end_ms:
                    of_topic = broker.name, tuple(broker.addresses), topic
                    yield Refusal(*of_topic, SENDS, max(read, write), stretch)
                    yield Refusal(*of_topic, PULLS, read if perm & PERM_READ else 0, stretch)
                    if broker in world.ours("broker"):
                        yield from _with_codes(world, of_topic, (read, write, perm), stretch)


def _with_codes(
    world: World, of_topic: tuple[str, tuple[str, ...], str], has: tuple[int, int, int], stretch: Stretch
) -> Iterator[Refusal]:
    """What the broker refuses in that time, with the codes that RocketMQ has for it."""
    read, write, perm = has
    is_5x = world.timers.profile is Profile.V5_X
    illegal = ResponseCode.INVALID_PARAMETER if is_5x else ResponseCode.SYSTEM_ERROR
    of_sends = {illegal} if perm & PERM_WRITE else {illegal, ResponseCode.NO_PERMISSION}  # of an ordered topic
    yield Refusal(*of_topic, CODES_OF_SENDS, max(read, write), stretch, codes=_BEFORE | of_sends)
    code, from_queue = (illegal, read) if perm & PERM_READ else (ResponseCode.NO_PERMISSION, 0)
    yield Refusal(*of_topic, CODES_OF_PULLS, from_queue, stretch, codes=_BEFORE | {code})


def _of_its_queues(world: World, broker: NodeInfo, rows: Sequence[Row]) -> Iterator[Refusal]:
    """Of each topic that producers send to, from when the broker had these queues until it said so again, or had
    others; whose disk may be full, refuses with a code of its own."""
    full = merged(disk.perhaps for disk in world.full_disks if disk.broker == broker.name)
    for topic in sorted({world.topic_of(node.name) for node in world.of_kind("producer")}):
        of = [(row.time_ms, row_of(row.decoded)) for row in rows if row.topic == topic]
        for (at_ms, has), (until_ms, _) in pairwise([*of, (world.end_ms, None)]):
            if has is not None:
                for stretch in without(at_ms, until_ms, full):
                    yield Refusal(broker.name, tuple(broker.addresses), topic, TO_ITS_QUEUES, 0, stretch, max(has[:2]))


def _asked(part: Part, world: World, refusal: Refusal) -> pa.Table:
    """The answered requests that the broker read and answered in that time."""
    is_send = refusal.what not in (PULLS, CODES_OF_PULLS)
    rows = part.of(TRY if is_send else "pull", types=FORBIDDEN.types)
    senders = [node.name for node in world.of_kind("producer") if world.topic_of(node.name) == refusal.topic]
    is_of_topic = is_one_of(rows["node"], senders) if is_send else pc.equal(rows["topic"], refusal.topic)
    is_of_topic = pc.or_(is_of_topic, not refusal.topic)
    is_asked = pc.and_(is_one_of(rows["address"], refusal.addresses), is_of_topic)
    is_asked = pc.and_(is_asked, pc.greater_equal(rows["queue_id"], refusal.from_queue))
    is_asked = pc.and_(is_asked, pc.less(rows["queue_id"], refusal.to_queue))
    rows = rows.filter(pc.fill_null(pc.and_(is_asked, pc.is_valid(rows["code"])), False))
    late_ms = world.timers_of(refusal.broker).clocks_ms or 0.0
    is_within = (began_ms(rows) > refusal.stretch.start_ms + late_ms) & (
        floats(rows["time_ms"]) < refusal.stretch.end_ms - late_ms
    )
    return rows.filter(is_within)


def _tally(rows: pa.Table, refusal: Refusal) -> Tally:
    if refusal.least_ms:
        is_bad = pc.less(rows["duration_ms"], refusal.least_ms - MOMENT_MS)
        is_bad = pc.and_(is_bad, is_one_of(rows["code"], tuple(refusal.codes)))
    elif refusal.codes:
        is_bad = pc.and_not(pc.not_equal(rows["type"], "ok"), is_one_of(rows["code"], tuple(refusal.codes)))
    elif refusal.what in _WRONG_CODES:
        is_bad = is_one_of(rows["code"], _WRONG_CODES[refusal.what])
    else:
        is_bad = pc.equal(rows["type"], "ok")
    bad = floats(rows.filter(is_bad)["time_ms"])
    return Tally(
        good=len(rows) - len(bad),
        bad=len(bad),
        first_bad_ms=float(bad.min()) if len(bad) else None,
        last_bad_ms=float(bad.max()) if len(bad) else None,
        last_ms=float(floats(rows["time_ms"]).max()),
    )
