"""Which acknowledged messages a consumer group did not have within D, or not as they were sent; the others are counted.

send (ok) ─┐                 ┌─ once, received within D, the same digest: counted ─┐
receive,   ├─► by message ───┴─ the others: looked at one by one ──────────────────┴─► Prompt
sent_back ─┘
pull ────────► of their queues: the last ones at or below such a message, and the first one beyond it
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...arrow import Flags, Floats, Numbers, np, pa, pc
from ...history.schema import row_order
from ...oracle.deliveries import PROMPT_MS, Asker, askers, delivered
from ...oracle.intervals import Stretch, grouped
from ...oracle.world import World
from ..check import Facts, joined, largest
from .part import (
    PLACE,
    QUEUE,
    Part,
    Reading,
    Row,
    Together,
    began_ms,
    codes,
    floats,
    is_one_of,
    least_of,
    rows_in,
    value_of,
)

PULLS_KEPT = 8
BEHIND_MS = 1_100.0
"""`pullTimeDelayMillsWhenException`, and a moment."""


class Pull(NamedTuple):
    """One request of a message's queue, and its answer."""

    began_ms: float
    ended_ms: float
    """inf: it had no answer."""
    code: int | None
    consumer: str
    address: str
    next_offset: int = 0
    """From which offset it was told to go on."""
    failed: bool = False


class Slow(NamedTuple):
    """An acknowledged message and one group that did not have it within D, or not as it was sent."""

    acked_ms: float
    msg_key: str
    producer: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    group: str
    """Which one should have it; with broadcasting a consumer."""
    received_ms: float | None = None
    receiver: str | None = None
    changed: bool = False
    """Whether what was received is not what was sent."""
    tries: int = 1
    """How many the send had; of somebody else's producer: how many may have stored it."""
    pulls: tuple[Pull, ...] = ()
    """The last ones of its group at or below its offset, begun before it was received; in order of time."""
    delay_ms: float = 0.0
    """For how long its broker has to keep it."""
    early_ms: float = 0.0
    """How much too early it was received."""
    stored_ms: float | None = None
    """Of a delayed message: when its broker put it into its queue."""
    passed_ms: float | None = None
    """When the group first pulled beyond it after it was acknowledged."""


@dataclass(frozen=True)
class Prompt(Facts):
    """What was had within D, once a group, and all others."""

    prompt: int = 0
    prompt_ms: float | None = largest()
    """The longest that one of the prompt ones took."""
    slow: tuple[Slow, ...] = joined()


_COLUMNS = (
    *PLACE,
    "msg_key",
    "node",
    "time_ms",
    "seq",
    "incarnation",
    "digest",
    "attempt",
    "f",
    "duration_ms",
    "born_ms",
    "value",
)
LAST = 2**62
"""The offset of a delayed message that nobody received: behind all others of its queue."""
_UNKNOWN = -1


def deliveries(part: Part, world: World) -> Prompt:
    """How many were prompt, and the others; once a group."""
    groups, near_ms = askers(world), near_its_time_ms(world)
    sends = part.of("send", types=("ok",)).select(_COLUMNS)
    is_delayed = pc.is_valid(sends["f"])
    delayed, sends = sends.filter(is_delayed), sends.filter(pc.invert(is_delayed))
    members = {member: group.name for group in groups for member in group.members}
    receipts = _reached(part.of("receive", "sent_back").select(_COLUMNS))
    receipts = receipts.filter(is_one_of(receipts["node"], [*members]))
    born_ms = floats(receipts["born_ms"])
    sent, received, count = _messages(sends, receipts, PLACE)
    stored_ms = born_ms + np.where(pc.is_valid(receipts["f"]).to_numpy(), np.nan, floats(receipts["duration_ms"]))
    is_other = _is_other(sends, receipts, (sent, received, count), (born_ms, stored_ms), near_ms)
    if len(delayed):
        is_other |= _is_other(delayed, receipts, _messages(delayed, receipts, QUEUE), (born_ms,), near_ms)
    receipts = receipts.append_column("is_other", pa.array(is_other))
    acked_ms, is_plain = least_of(sent, floats(sends["time_ms"]), count), np.bincount(sent, minlength=count) == 1
    is_plain[received[is_other]] = False
    took, asked = np.full(count, -np.inf), np.zeros(count, np.int64)
    for group in groups:
        asks = np.ones(count, bool)
        if group.topic:
            asks[sent] = pc.equal(sends["topic"], group.topic).to_numpy()
        of_group = is_one_of(receipts["node"], sorted(group.members)).to_numpy()
        took_ms = least_of(received[of_group], floats(receipts["time_ms"])[of_group], count) - acked_ms
        is_plain &= ~asks | (took_ms <= PROMPT_MS)  # without a receipt it is neither
        took, asked = np.where(asks, np.fmax(took, took_ms), took), asked + asks
    is_plain &= acked_ms == acked_ms
    others = pa.concat_tables([sends.filter(~is_plain[sent]), delayed])
    found = _one_by_one(rows_in(others), rows_in(receipts.filter(~is_plain[received])), groups, world)
    plain_ms = took[is_plain & (asked > 0)]
    found = replace(found, slow=tuple(_with_pulls(found.slow, part, members)))
    return Prompt(int(asked[is_plain].sum()), float(plain_ms.max()) if len(plain_ms) else None).plus(found)


DELIVERIES = Reading(
    Together.QUEUE,
    ("send", "receive", "sent_back", "pull"),
    ("type", "f", "offset", "msg_key", "digest", "attempt", "code", "address", "duration_ms", "born_ms", "value"),
    deliveries,
    types=("ok", "invoke", "fail", "info"),
)


def _reached(receipts: pa.Table) -> pa.Table:
    """With the time at which each message reached its listener: the row of a failed one (f) comes when it was taken
    back, or was not."""
    took_ms = np.where(pc.is_valid(receipts["f"]).to_numpy(), floats(receipts["duration_ms"], 0.0), 0.0)
    reached_ms = pa.array(floats(receipts["time_ms"]) - took_ms)
    at = receipts.schema.get_field_index("time_ms")
    return receipts.set_column(at, receipts.schema.field(at), reached_ms)


def near_its_time_ms(world: World) -> float:
    """How near to its send the stamps of a message must be; inf where not all clocks are ours and right."""
    is_ours = all(node.is_ours for node in world.of_kind("producer", "consumer", "broker", "slave"))
    return world.timers.delivery_ms + world.timers.clocks_ms if is_ours and not world.clocks else math.inf


def _messages(sends: pa.Table, receipts: pa.Table, place: Sequence[str]) -> tuple[Numbers, Numbers, int]:
    """The number of each send's message, and of each receipt's; and how many there are."""
    message = codes(pa.concat_tables([sends, receipts]), *place, "msg_key")
    return message[: len(sends)], message[len(sends) :], int(message.max()) + 1 if len(message) else 0


def _is_other(
    sends: pa.Table, receipts: pa.Table, of: tuple[Numbers, Numbers, int], stamps_ms: Sequence[Floats], near_ms: float
) -> Flags:
    """Of each receipt, whether it is not what was sent: another content, or with stamps of a time without a try of the
    send."""
    (sent, received, count), digest = of, np.full(of[2], _UNKNOWN)
    digest[sent] = pc.fill_null(sends["digest"], _UNKNOWN).to_numpy()
    came = pc.fill_null(receipts["digest"], _UNKNOWN).to_numpy()
    found: Flags = (came != _UNKNOWN) & (digest[received] != _UNKNOWN) & (came != digest[received])
    from_ms = least_of(sent, began_ms(sends), count)[received] - near_ms
    to_ms = least_of(sent, floats(sends["time_ms"]), count)[received] + near_ms
    for stamp_ms in stamps_ms:
        found |= (stamp_ms < from_ms) | (stamp_ms > to_ms)
    return found


def stored_ms(came: Row) -> float | None:
    """When its broker put what was received into its queue; None where no row says so, as that of a failed message."""
    return (
        None if came["f"] or None in (came["born_ms"], came["duration_ms"]) else came["born_ms"] + came["duration_ms"]
    )


def _with_pulls(slow: Sequence[Slow], part: Part, members: Mapping[str, str]) -> Iterator[Slow]:
    rows = part.of("pull") if slow else part.table.slice(0, 0)
    rows = rows.filter(is_one_of(rows["broker_name"], sorted({one.broker_name for one in slow})))
    asked: dict[tuple[Any, ...], list[tuple[int, Pull]]] = defaultdict(list)
    begun: dict[tuple[Any, ...], int] = {}
    for row in sorted(rows_in(rows.filter(is_one_of(rows["node"], [*members]))), key=row_order):
        queue = *(row[name] for name in QUEUE), members[row["node"]]
        process = *queue, row["node"], row["incarnation"]
        if row["type"] == "invoke":
            pull = Pull(row["time_ms"], math.inf, None, row["node"], row["address"] or "")
            begun[process] = len(asked[queue])
            asked[queue].append((row["offset"] or 0, pull))
        elif process in begun:
            place = begun.pop(process)
            offset, pull = asked[queue][place]
            told = {"code": row["code"], "next_offset": value_of(row).get("next", 0), "failed": row["type"] != "ok"}
            asked[queue][place] = offset, pull._replace(ended_ms=row["time_ms"], **told)
    for one in slow:
        pulls = asked.get((one.topic, one.broker_name, one.queue_id, one.group), ())
        until_ms = math.inf if one.received_ms is None else one.received_ms
        here = (pull for offset, pull in pulls if offset <= one.offset and pull.began_ms < until_ms)
        beyond = (pull.began_ms for offset, pull in pulls if offset > one.offset and pull.began_ms > one.acked_ms)
        yield one._replace(pulls=tuple(_joined(here)[-PULLS_KEPT:]), passed_ms=next(beyond, None))


def _joined(pulls: Iterable[Pull]) -> list[Pull]:
    """Those that one consumer began one behind the other, and that were all answered alike, without a message, are one
    for so long."""
    found: list[Pull] = []
    for pull in pulls:
        if found and pull.code and pull[2:] == found[-1][2:] and pull.began_ms - found[-1].ended_ms <= BEHIND_MS:
            found[-1] = found[-1]._replace(ended_ms=pull.ended_ms)
        else:
            found.append(pull)
    return found


def _one_by_one(sends: Sequence[Row], receipts: Sequence[Row], groups: Sequence[Asker], world: World) -> Prompt:
    """Of delayed messages, too, whose offsets only their receipts tell."""
    group_of, near_ms = {member: group.name for group in groups for member in group.members}, near_its_time_ms(world)
    in_order = sorted(receipts, key=row_order)
    got = grouped(((_message(row, of), group_of[row["node"]]), row) for row in in_order for of in (PLACE, QUEUE))
    first: dict[tuple[Any, ...], Row] = {}
    for row in sorted(sends, key=row_order):
        first.setdefault(_message(row, PLACE if row["f"] is None else QUEUE), row)
    prompt, slow = list[float](), list[Slow]()
    for message, send in first.items():
        acked_ms, is_delayed = send["time_ms"], send["f"] is not None
        due: Stretch | None = Stretch(-math.inf, acked_ms)
        if is_delayed:
            sent_ms = acked_ms - (send["duration_ms"] or 0.0)
            due = delivered(world, send["broker_name"], send["f"], sent_ms, acked_ms)
        for group in (one for one in groups if due is not None and one.topic in ("", send["topic"])):
            from_ms, due_ms = due or (0.0, 0.0)
            came = got.get((message, group.name), [])
            one = Slow(
                acked_ms,
                send["msg_key"],
                producer=send["node"],
                **{name: send[name] for name in QUEUE},
                offset=LAST if is_delayed else send["offset"],
                group=group.name,
                changed=any(row["is_other"] for row in came),
                tries=value_of(send).get("tries", send["attempt"] or 0),
                delay_ms=due_ms - acked_ms,
            )
            found = against(one, came, Stretch(from_ms, due_ms), near_ms if is_delayed else math.inf)
            if isinstance(found, Slow):
                slow.append(found)
            else:
                prompt.append(found)
    return Prompt(len(prompt), max(prompt, default=None), tuple(slow))


def against(one: Slow, came: Sequence[Row], due: Stretch, near_ms: float) -> Slow | float:
    """The message with what became of it; how long it took if the first of these receipts was in time and as sent.
    `near_ms`: from what on a delayed message was kept too long; inf where that cannot be said."""
    if not came:
        return one
    got_ms, put_ms = came[0]["time_ms"], stored_ms(came[0]) if near_ms < math.inf else None
    early_ms, is_late = max(due.start_ms - got_ms, 0.0), got_ms - due.end_ms > PROMPT_MS
    if not (early_ms or is_late or one.changed or (put_ms or 0.0) > due.end_ms + near_ms):
        return float(max(got_ms - due.end_ms, 0.0))
    one = one._replace(offset=came[0]["offset"], received_ms=got_ms, receiver=came[0]["node"])
    return one._replace(early_ms=early_ms, stored_ms=put_ms)


def _message(row: Row, place: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (*place, "msg_key"))
