"""Rules about brokers that die, hang, refuse, are cut off, leave the route or return, and about sends in that time.

A client uses a broker when it sends to the broker, pulls from it or connects to it. Sends are known from the program's
reports (docs/conform-protocol.md), or else from the frames on the wire. On the wire, a send counts as lost if no try is
answered with success. By chance up to QUEUES sends in a row choose the failed broker, so `send_stall_s` has an
interval.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...chaos.fronts.behaviour import PASSES, Behaviour, Dials
from ...chaos.fronts.instances import topics_of
from ...chaos.fronts.observed import Answered, Asked, Behaved, Dialled, Happened, Reported
from ...chaos.fronts.rows import PULLS, SENDS, STORED
from ...remoting.message_properties import parse_properties
from ..situations import KILL, QUEUES, RESTART, Watched
from .rule import LeftOut, Measured, Rule, Rules, Samples

STILL_USED, NOT_USED = "still used", "not used again"
ELSEWHERE, SAME, NONE = "another broker", "the same broker", "none"
USES = frozenset({*SENDS, 325, *PULLS})
LAST_S = 10.0
"""A broker used within the last so many seconds is still used. Heartbeats, each 30 s, are mostly outside."""
AVOIDED_S = 0.5
"""A client with sendLatencyFaultEnable does not send to a broker for 30 s and more after a send that took 0.55 s
(latencyMax and notAvailableDuration of MQFaultStrategy)."""
NO_BROKER = LeftOut(why="it neither sends nor pulls")
_FAILS = ("broker_killed", "broker_silent", "broker_refuses", "broker_unreachable")

rules = Rules()


def _uses(watched: Watched, front: str | None = None) -> Iterator[Asked]:
    for one in watched.of(Asked):
        if one.code not in USES or one.front not in watched.brokers or one.at_ms > watched.stopping_ms:
            continue
        if front in (None, one.front):
            yield one


def _lost_broker(watched: Watched) -> tuple[float, str, Behaviour] | None:
    since_ms = watched.at_work_ms or watched.began_ms
    for one in watched.seen:
        if one.at_ms < since_ms:
            continue
        if isinstance(one, Happened) and one.what == KILL and one.whom in watched.brokers:
            return one.at_ms, one.whom, Behaviour(dials=Dials.REFUSED)
        if isinstance(one, Behaved) and one.behaviour != PASSES:
            if one.front in watched.brokers:
                return one.at_ms, one.front, one.behaviour
            if one.behaviour.without:
                return one.at_ms, next(iter(one.behaviour.without)), one.behaviour
    return None


def _last_use(watched: Sequence[Watched]) -> Measured:
    if not any(True for one in watched for _ in _uses(one)):
        return NO_BROKER
    found = Samples("no broker failed while it was at work")
    for one in watched:
        lost = _lost_broker(one)
        if lost is None:
            continue
        since_ms, front, behaviour = lost
        if behaviour.dials is Dials.REFUSED and one.dials_unseen:
            found.why = one.dials_unseen
            continue
        dials = [d.at_ms for d in one.of(Dialled) if d.front == front and since_ms <= d.at_ms <= one.stopping_ms]
        uses = [each.at_ms for each in _uses(one, front) if each.at_ms >= since_ms]
        last_ms = max([*dials, *uses], default=since_ms)
        is_still = one.stopping_ms - last_ms <= LAST_S * 1000
        after_s = None if is_still else round((last_ms - since_ms) / 1000, 1)
        more = {"dials": len(dials), "requests": len(uses), "last_after_ms": round(last_ms - since_ms)}
        found.add(after_s, one, since_ms, front=front, **more)
    return found.longest(STILL_USED)


rules += (
    Rule(name, f"the last use of a broker that {what}", (situation,), _last_use, "s", (STILL_USED,), 1.0, is_bound=True)
    for name, what, situation in (
        ("killed_broker_s", "died and that NameServers dropped", "broker_killed"),
        ("silent_broker_s", "answers nothing and is still in the route", "broker_silent"),
        ("refusing_broker_s", "refuses and is still in the route", "broker_refuses"),
        ("unreachable_broker_s", "is cut off and is still in the route", "broker_unreachable"),
        ("unrouted_broker_s", "left the route and still answers", "route_changes"),
    )
)


# -- sends


@dataclass(slots=True)
class Send:
    """The send of one message, known from the tries on the wire or from the program's report."""

    began_ms: float
    ended_ms: float | None = None
    ok: bool = False
    tries: list[tuple[str, int | None]] | None = None
    """(front, response code) of each try on the wire."""


def _key(asked: Asked) -> str:
    properties = parse_properties(asked.fields.get("properties") or asked.fields.get("i"))
    return properties.get("UNIQ_KEY") or asked.body.hex()


def sends_on_the_wire(watched: Watched) -> list[Send]:
    """Return a Send for each message of the topic that the program sent to a broker, in order of first tries. Oneway
    sends are left out, and trace messages, because they have another topic."""
    found: dict[str, Send] = {}
    open_: dict[tuple[int, int], tuple[Send, int]] = {}
    for one in watched.seen:
        if isinstance(one, Asked) and one.code in SENDS and one.front in watched.brokers and not one.oneway:
            if all(topic.rpartition("%")[2] != watched.topic for topic in topics_of(one)):
                continue
            if one.at_ms > watched.stopping_ms:
                break
            send = found.setdefault(_key(one), Send(began_ms=one.at_ms, tries=[]))
            assert send.tries is not None
            send.tries.append((one.front, None))
            open_[one.connection, one.opaque] = (send, len(send.tries) - 1)
        elif isinstance(one, Answered) and (one.connection, one.opaque) in open_:
            send, number = open_.pop((one.connection, one.opaque))
            assert send.tries is not None
            send.tries[number] = (one.front, one.code)
            send.ended_ms, send.ok = one.at_ms, send.ok or one.code in STORED
    return sorted(found.values(), key=lambda send: send.began_ms)


def sends_told(watched: Watched) -> list[Send]:
    found: dict[str, Send] = {}
    for one in watched.of(Reported):
        key = str(one.value.get("id"))
        if one.f == "send" and one.at_ms <= watched.stopping_ms:
            found.setdefault(key, Send(began_ms=one.at_ms))
        elif one.f == "sent" and (key in found or one.at_ms <= watched.stopping_ms):
            send = found.setdefault(key, Send(began_ms=one.at_ms))  # who only says how it ended
            send.ended_ms, send.ok = one.at_ms, one.value.get("type") == "ok"
    return [*found.values()]


def _sends(watched: Watched) -> tuple[list[Send], str]:
    told = sends_told(watched)
    return (told, "as the program tells") if told else (sends_on_the_wire(watched), "as seen on the wire")


def _meanwhile(watched: Sequence[Watched]) -> Iterator[tuple[Watched, float, list[Send], str]]:
    """Return the sends since a broker failed, without a send that was under way when the program was told to stop."""
    for one in watched:
        lost = _lost_broker(one)
        if lost is not None:
            sends, by = _sends(one)
            done = [send for send in sends if send.ended_ms is not None or one.stopping_ms - send.began_ms > 10_000]
            yield one, lost[0], done, by


@rules(*_FAILS, unit="of all", tolerance=0.1, is_bound=True)
def sends_lost(watched: Sequence[Watched]) -> Measured:
    """the share of sends that failed after a broker died, hung, refused or was cut off"""
    total = count = 0
    examples: list[Mapping[str, Any]] = []
    why = ""
    for one, since_ms, sends, by in _meanwhile(watched):
        mine = [send for send in sends if send.began_ms >= since_ms]
        lost = [send for send in mine if not send.ok]
        total, count, why = total + len(lost), count + len(mine), by
        examples.append(one.example(lost=len(lost), sends=len(mine)))
    if not count:
        return _no_sends(watched)
    share = round(total / count, 4)
    said = f"{total} of {count}, {why}"
    return Measured(value=share, count=count, why=said, examples=examples)


def _no_sends(watched: Sequence[Watched]) -> Measured:
    if not any(one.code in SENDS for each in watched for one in _uses(each)):
        return LeftOut(why="it sends nothing")
    return Measured.undecided("no broker failed while it sent")


@rules.seconds(*_FAILS)
def send_stall_s(watched: Sequence[Watched]) -> Measured:
    """the longest time without a successful send, after a broker died, hung, refused or was cut off"""
    longest, longest_send, count = 0.0, 0.0, 0
    examples = []
    for one, since_ms, sends, by in _meanwhile(watched):
        stored = sorted(send.ended_ms for send in sends if send.ok and send.ended_ms is not None)
        moments = [since_ms, *(moment for moment in stored if moment > since_ms), one.stopping_ms]
        if len(moments) == 2 and not any(send.began_ms >= since_ms for send in sends):
            continue
        stall_s = max(b - a for a, b in pairwise(moments)) / 1000
        took_ms = (send.ended_ms - send.began_ms for send in sends if send.ended_ms and send.ended_ms > since_ms)
        longest_send = max(longest_send, max(took_ms, default=0.0) / 1000)
        longest, count = max(longest, stall_s), count + len(moments) - 2
        examples.append(one.example(stall_s=round(stall_s, 2), by=by))
    if not examples:
        return _no_sends(watched)
    interval = round(min(longest, longest_send), 2), round(max(longest, QUEUES * longest_send), 2)
    return Measured(value=round(longest, 2), count=count, interval=interval, examples=examples)


@rules("broker_busy", words=(ELSEWHERE, SAME, NONE))
def send_retries(watched: Sequence[Watched]) -> Measured:
    """where a send goes next after a broker answered it with SERVICE_NOT_AVAILABLE 14"""
    found = Samples("")
    most = 1
    slow: tuple[str, float] | None = None
    for one in watched:
        lost = _lost_broker(one)
        sends = sends_on_the_wire(one) if lost is not None else []
        for send in sends:
            made = send.tries or []
            if lost is None or made[0][0] != lost[1] or made[0][1] in (None, *STORED):
                continue
            how = NONE if len(made) == 1 else SAME if made[1][0] == lost[1] else ELSEWHERE
            avoided = _slow_before(sends, send, lost[1]) if how == SAME else None
            if avoided is not None:
                slow = avoided
                continue
            most = max(most, len(made))
            found.add(how, one, send.began_ms, tries=[front for front, _ in made])
    if not found.values and slow is not None:
        return Measured.undecided(
            f"the same broker; {slow[0]} had taken {slow[1]:.2f} s to answer a send, and a client may avoid a broker "
            "that was so slow: run again alone"
        )
    if not found.values:
        return _no_sends(watched)
    counts = Counter(found.values)
    said = ", ".join(f"{how} {counts[how]}" for how in (ELSEWHERE, SAME, NONE) if counts[how])
    shown = f" ({said})" if len(counts) > 1 else ""
    return found.commonest(
        f"{counts.total()} sends{shown}, each at most {most} {'attempt' if most == 1 else 'attempts'}"
    )


def _slow_before(sends: Sequence[Send], then: Send, busy: str) -> tuple[str, float] | None:
    """Return a broker other than `busy` that had answered an earlier send only after AVOIDED_S, and that time."""
    for one in sends:
        took_s = ((one.ended_ms or one.began_ms) - one.began_ms) / 1000
        fronts = [front for front, _ in one.tries or ()]
        if one.began_ms < then.began_ms and len(fronts) == 1 and fronts[0] != busy and took_s >= AVOIDED_S:
            return fronts[0], took_s
    return None


@rules.seconds("broker_returns", words=(NOT_USED,))
def returned_broker_s(watched: Sequence[Watched]) -> Measured:
    """the time from the return of a broker that had died until the client uses the broker again"""
    if not any(True for one in watched for _ in _uses(one)):
        return NO_BROKER
    found = Samples("no broker returned while it was at work")
    for one in watched:
        back = next((each for each in one.of(Happened) if each.what == RESTART), None)
        if back is not None:
            used = (each.at_ms for each in _uses(one, back.whom) if each.at_ms >= back.at_ms)
            after_s = next((round((used_ms - back.at_ms) / 1000, 1) for used_ms in used), None)
            found.add(after_s, one, back.at_ms, front=back.whom, after_s=after_s)
    return found.longest(NOT_USED)
