"""Requests that a broker answered with success though its own topic forbids them, and sends that a master refused as
if it were none (availability).

    broker's `topic`   perm 6, 4 queues ──┬── perm 2 ────┬── 2 queues ──────
    sends              may be stored      │              │ to queue 2: are refused
    pulls              may be answered    │ are refused  │ of queue 2: are refused

A broker's own permission (brokerPermission) is in these rows, too. No permission of the topic, and none of the broker
but for ordered topics, forbids a send: only routes keep producers away (`AbstractSendMessageProcessor.msgCheck`).
Upstream of pulls: `PullMessageProcessor.processRequest`.

Only a queue id from max(read, write) on is illegal. So a send to a lower queue id is not answered with SYSTEM_ERROR
(5.x: INVALID_PARAMETER), also while a fault lasts; nor is a pull of a readable queue. The code of a refusal decides
whether a producer tries another broker: an illegal queue id is refused with SYSTEM_ERROR (5.x: INVALID_PARAMETER), a
lacking permission with NO_PERMISSION.

A master's store refuses nothing with SERVICE_NOT_AVAILABLE (14) that a slave's does, but stores nothing while its disk
is full (`DefaultMessageStore.checkStoreStatus`). A SYNC_MASTER without a slave answers SLAVE_NOT_AVAILABLE (11), and
never FLUSH_SLAVE_TIMEOUT (12), for it waits for nobody (`CommitLog.handleHA`). With a slave it answers SEND_OK no
sooner than the slave can have the message, and 12 no sooner than syncFlushTimeout (`GroupTransferService`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from ....remoting.codes import PERM_READ, PERM_WRITE, ResponseCode
from ....remoting.node.profile import Profile
from ...arrow import pa, pc
from ...oracle.intervals import Stretch, merged, without
from ...oracle.link import MOMENT_MS
from ...oracle.recorded import NodeInfo
from ...oracle.roles import elects
from ...oracle.slaves import slave_processes_gone, waits_for_slaves
from ...oracle.world import World
from ..check import Table
from ..record.control import Control, Row
from ..record.registered_rows import row_of
from ..record.slots import TRY, Tally
from .part import Part, Reading, Together, began_ms, floats, is_one_of

_BEFORE = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST})
"""A broker refuses with these codes before the broker looks at the topic."""
_OF_A_FULL_DISK = _BEFORE | {ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.NO_PERMISSION}
_CHANGES = ("update_topic", "update_config")


class Duty(NamedTuple):
    """What a broker must refuse, must not refuse, or must not answer so: the object, kind and row of its finding."""

    what: str
    kind: str
    row: str


_REFUSES = (
    "refuses forbidden requests",
    "msgCheck, PullMessageProcessor: what the topic's permission or queues forbid is refused",
)
_CODE = (
    "refuses with its code",
    "msgCheck, PullMessageProcessor: a refusal has code 16 (permission) or 1 (queueId; 5.x: 29)",
)
SENDS, PULLS = Duty("sends", *_REFUSES), Duty("pulls", *_REFUSES)
CODES_OF_SENDS, CODES_OF_PULLS = Duty("sends", *_CODE), Duty("pulls", *_CODE)
TO_A_FULL_DISK = Duty(
    "sends to a full disk",
    "refuses messages while its disk is full",
    "DefaultMessageStore.checkStoreStatus: a store whose disk is full takes no message",
)
CODES_OF_A_FULL_DISK = Duty(
    "sends to a full disk",
    "refuses for its full disk with its code",
    "SendMessageProcessor.handlePutMessageResult: a full disk is code 14",
)
TO_A_MASTER = Duty(
    "sends to a master",
    "takes what it is sent",
    "DefaultMessageStore.checkStoreStatus: a master's store takes messages",
)
TO_ITS_QUEUES = Duty(
    "sends to its queues",
    "takes messages for its queues",
    "msgCheck: only a queueId that the topic lacks is illegal, and brokerPermission forbids ordered topics alone",
)
FROM_ITS_QUEUES = Duty(
    "pulls of its queues",
    "answers pulls of its queues",
    "PullMessageProcessor.processRequest: only a queueId that the topic lacks is illegal",
)
WITHOUT_SLAVE = Duty(
    "sends without a slave",
    "waits for a slave that is there",
    "CommitLog.handleHA: without a slave a SYNC_MASTER answers SLAVE_NOT_AVAILABLE",
)
ACKNOWLEDGED = Duty(
    "sends acknowledged too soon",
    "acknowledges what a slave has",
    "GroupTransferService: SEND_OK waits for a slave",
)
GIVEN_UP = Duty(
    "sends given up too soon",
    "waits for its slaves",
    "GroupTransferService: a SYNC_MASTER waits syncFlushTimeout for a slave",
)

IsBad: TypeAlias = "Callable[[pa.Table], Any]"
"""Of each answered request, whether its answer is wrong."""


def _is_done(rows: pa.Table) -> Any:
    return pc.equal(rows["type"], "ok")


def _has_code(*codes: ResponseCode) -> IsBad:
    return lambda rows: is_one_of(rows["code"], codes)


def _is_refused_but_by(codes: frozenset[ResponseCode]) -> IsBad:
    return lambda rows: pc.and_not(pc.not_equal(rows["type"], "ok"), is_one_of(rows["code"], tuple(codes)))


def _is_sooner(least_ms: float, code: ResponseCode) -> IsBad:
    return lambda rows: pc.and_(pc.less(rows["duration_ms"], least_ms - MOMENT_MS), is_one_of(rows["code"], (code,)))


class Refusal(NamedTuple):
    """The duty of a broker in this time, towards requests for a queue from `from_queue` on, and below `to_queue`; for
    any topic if none is named."""

    broker: NodeInfo
    topic: str
    duty: Duty
    stretch: Stretch
    is_bad: IsBad = _is_done
    from_queue: int = 0
    to_queue: float = math.inf


def forbidden(part: Part, world: World) -> Table[tuple[str, str, Duty], Tally]:
    """By broker, topic and duty; bad is what was answered against it."""
    found: dict[tuple[str, str, Duty], list[Tally]] = {}
    for refusal in _refusals(part.control, world):
        rows = _asked(part, world, refusal)
        if len(rows):
            about = refusal.broker.name, refusal.topic, refusal.duty
            found.setdefault(about, []).append(_tally(rows, refusal.is_bad(rows)))
    return Table({key: Tally.total(tallies) for key, tallies in found.items()})


FORBIDDEN = Reading(
    Together.ROW,
    (TRY, "pull"),
    ("type", "address", "topic", "queue_id", "code", "duration_ms"),
    forbidden,
    types=("ok", "fail", "info"),
)


def _refusals(control: Control, world: World) -> Iterator[Refusal]:
    """From when an operator's change was in force until the next change began to be."""
    ours = world.ours("broker")
    for broker in (one for one in world.ours("broker", "slave") if not elects(world, one.name)):
        from_ms = -math.inf if broker in ours else world.heard_ms(broker.name)
        full = [disk for disk in world.full_disks if disk.broker == broker.name]
        for stretch in without(from_ms, world.end_ms, merged(disk.perhaps for disk in full)):
            yield Refusal(broker, "", TO_A_MASTER, stretch, _has_code(ResponseCode.SERVICE_NOT_AVAILABLE))
        for disk in full:
            yield Refusal(broker, "", TO_A_FULL_DISK, disk.surely)
            is_bad, queues = _is_refused_but_by(_OF_A_FULL_DISK), _fewest_queues(control, world, broker.name)
            yield Refusal(broker, "", CODES_OF_A_FULL_DISK, disk.surely, is_bad, 0, queues)
    for broker in world.of_kind("broker"):
        for gone in slave_processes_gone(world, broker.name):
            yield Refusal(broker, "", WITHOUT_SLAVE, gone, _has_code(ResponseCode.FLUSH_SLAVE_TIMEOUT))
        for stretch, code, least_ms in waits_for_slaves(world, broker.name):
            duty = ACKNOWLEDGED if code is ResponseCode.SUCCESS else GIVEN_UP
            yield Refusal(broker, "", duty, stretch, _is_sooner(least_ms, code))
        settings: dict[str, list[tuple[float, tuple[int, int, int]]]] = {}
        rows = [row for row in control.rows("topic") if row.node == broker.name]
        for row in rows:
            if (has := row_of(row.decoded)) is not None:
                settings.setdefault(row.topic, []).append((row.time_ms, has))
        if broker in ours:
            yield from _of_its_queues(world, broker, rows)
        changes = [act for act in world.acts if act.node == broker.name]
        for topic, of in settings.items():
            about = [act for act in changes if act.topic == topic or act.broker_permission is not None]
            for (at_ms, has), (until_ms, _) in pairwise([*of, (math.inf, of[-1][1])]):
                done = (act for act in about if act.ended_ms >= at_ms - 1.0 and act.is_done and act.f in _CHANGES)
                from_ms = next((act.ended_ms for act in done), math.inf)
                ends = (act.began_ms for act in about if act.began_ms > from_ms)
                stretch = Stretch(from_ms, min(until_ms, *ends, world.end_ms))
                if from_ms < stretch.end_ms:
                    yield from _of_topic(world, broker, topic, has, stretch)


def _fewest_queues(control: Control, world: World, broker: str) -> float:
    """How many queues each topic of producers had at this broker at any time: a broker refuses others before it looks
    at its disk."""
    sent_to = {world.topic_of(node.name) for node in world.of_kind("producer")}
    rows = (row_of(r.decoded) for r in control.rows("topic") if r.node == broker and r.topic in sent_to)
    return min((max(has[:2]) for has in rows if has is not None), default=math.inf)


def _of_topic(
    world: World, broker: NodeInfo, topic: str, has: tuple[int, int, int], stretch: Stretch
) -> Iterator[Refusal]:
    """What the broker refuses in that time, and ours with the codes that RocketMQ has for it."""
    read, write, perm = has
    queues, readable = max(read, write), read if perm & PERM_READ else 0
    yield Refusal(broker, topic, SENDS, stretch, from_queue=queues)
    yield Refusal(broker, topic, PULLS, stretch, from_queue=readable)
    if broker in world.ours("broker"):
        is_5x = world.timers.profile is Profile.V5_X
        illegal = ResponseCode.INVALID_PARAMETER if is_5x else ResponseCode.SYSTEM_ERROR
        of_sends = {illegal} if perm & PERM_WRITE else {illegal, ResponseCode.NO_PERMISSION}  # of an ordered topic
        of_pulls = {illegal if perm & PERM_READ else ResponseCode.NO_PERMISSION}
        yield Refusal(broker, topic, CODES_OF_SENDS, stretch, _is_refused_but_by(_BEFORE | of_sends), queues)
        yield Refusal(broker, topic, CODES_OF_PULLS, stretch, _is_refused_but_by(_BEFORE | of_pulls), readable)


def _of_its_queues(world: World, broker: NodeInfo, rows: Sequence[Row]) -> Iterator[Refusal]:
    """Of each topic, from when the broker had these queues until it said so again, or had others. Of sends only to what
    producers send to; with a disk that may be full it refuses by another code. brokerPermission forbids ordered topics
    alone."""
    sent_to = {world.topic_of(node.name) for node in world.of_kind("producer")}
    full = merged(disk.perhaps for disk in world.full_disks if disk.broker == broker.name)
    illegal = ResponseCode.SYSTEM_ERROR, ResponseCode.INVALID_PARAMETER
    ordered = {act.topic for act in world.acts if act.value.get("order")}
    is_open = world.run.get("scenario") == "up"  # anybody may have made a topic an ordered one
    for topic in sorted({row.topic for row in rows}):
        of = [(row.time_ms, row_of(row.decoded)) for row in rows if row.topic == topic]
        wrong = illegal if is_open or topic in ordered else (*illegal, ResponseCode.NO_PERMISSION)
        for (at_ms, has), (until_ms, _) in pairwise([*of, (world.end_ms, None)]):
            queues = max(has[:2]) if has is not None else 0
            if has is not None and has[2] & PERM_READ:
                of_pulls = _has_code(*illegal, ResponseCode.NO_PERMISSION, ResponseCode.TOPIC_NOT_EXIST)
                yield Refusal(broker, topic, FROM_ITS_QUEUES, Stretch(at_ms, until_ms), of_pulls, 0, has[0])
            for stretch in without(at_ms, until_ms, full) if queues and topic in sent_to else ():
                yield Refusal(broker, topic, TO_ITS_QUEUES, stretch, _has_code(*wrong), 0, queues)


def _asked(part: Part, world: World, refusal: Refusal) -> pa.Table:
    """The answered requests that the broker read and answered in that time."""
    is_send = refusal.duty not in (PULLS, CODES_OF_PULLS, FROM_ITS_QUEUES)
    rows = part.of(TRY if is_send else "pull", types=FORBIDDEN.types)
    senders = [node.name for node in world.of_kind("producer") if world.topic_of(node.name) == refusal.topic]
    is_of_topic = is_one_of(rows["node"], senders) if is_send else pc.equal(rows["topic"], refusal.topic)
    is_of_topic = pc.or_(is_of_topic, not refusal.topic)
    is_asked = pc.and_(is_one_of(rows["address"], refusal.broker.addresses), is_of_topic)
    is_asked = pc.and_(is_asked, pc.greater_equal(rows["queue_id"], refusal.from_queue))
    is_asked = pc.and_(is_asked, pc.less(rows["queue_id"], refusal.to_queue))
    rows = rows.filter(pc.fill_null(pc.and_(is_asked, pc.is_valid(rows["code"])), False))
    late_ms = world.timers_of(refusal.broker.name).clocks_ms
    is_within = (began_ms(rows) > refusal.stretch.start_ms + late_ms) & (
        floats(rows["time_ms"]) < refusal.stretch.end_ms - late_ms
    )
    return rows.filter(is_within)


def _tally(rows: pa.Table, is_bad: Any) -> Tally:
    bad = floats(rows.filter(is_bad)["time_ms"])
    return Tally(
        good=len(rows) - len(bad),
        bad=len(bad),
        first_bad_ms=float(bad.min()) if len(bad) else None,
        last_bad_ms=float(bad.max()) if len(bad) else None,
        last_ms=float(floats(rows["time_ms"]).max()),
    )
