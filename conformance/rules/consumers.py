"""Rules about two consumers of one group, one of which ends: when the ended consumer's queues have an owner again, and
what is received twice.

A consumer owns the queues that it pulls. Messages received twice are counted from the programs' reports; without
reports, from the offsets that both consumers pulled.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ...chaos.fronts.instances import HEART_BEAT
from ...chaos.fronts.observed import Answered, Asked, Happened, Reported
from ...chaos.fronts.rows import PULLS, consumes
from ..situations import KILL, STOP, Watched
from .rule import LeftOut, Measured, Rules, Samples

Queue = tuple[str, str]
NEVER = "never"
_ENDS = ("consumer_dies", "consumer_stops")
TWICE_BY_CHANCE = 25.0
"""Ten messages come a second and offsets are committed each 5 s, so half of 50 are the ended consumer's."""
NO_CONSUMER = LeftOut(why="it pulls nothing")

rules = Rules()


def _pulls(watched: Watched) -> Iterator[tuple[Queue, Asked]]:
    for one in watched.of(Asked):
        if one.code in PULLS and one.fields.get("topic") == watched.topic and one.at_ms <= watched.stopping_ms:
            yield (one.front, one.fields.get("queueId", "")), one


def _pairs(watched: Sequence[Watched], situation: str) -> Iterator[tuple[Watched, Watched, float]]:
    of = sorted((one for one in watched if one.situation == situation), key=lambda one: one.number)
    for first, second in zip(of[::2], of[1::2], strict=False):
        end = next((one for one in second.of(Happened) if one.what in (KILL, STOP)), None)
        if end is not None:
            gone, stays = (first, second) if end.whom == str(first.number) else (second, first)
            yield gone, stays, end.at_ms


def _taken(situation: str, watched: Sequence[Watched]) -> Measured:
    if not any(True for one in watched for _ in _pulls(one)):
        return _no_pulls(watched)
    found = Samples(_by_itself(watched) or "the one that ended owned no queue")
    for gone, stays, end_ms in _pairs(watched, situation):
        owned = {queue: asked.at_ms for queue, asked in _pulls(gone)}
        later = {queue: asked.at_ms for queue, asked in reversed([*_pulls(stays)]) if asked.at_ms >= end_ms}
        before = {queue: asked.at_ms for queue, asked in _pulls(stays) if asked.at_ms < end_ms}
        for queue, last_ms in sorted(owned.items()):
            if before.get(queue, -1.0) > last_ms:
                continue  # it had been handed over before
            after_s = None if queue not in later else round((later[queue] - end_ms) / 1000, 2)
            if after_s is None and _by_itself([stays]):
                continue  # nobody was there to take it
            found.add(after_s, stays, end_ms, queue="/".join(queue), after_s=after_s)
    found.examples.sort(key=lambda one: -(float("inf") if one["after_s"] is None else float(one["after_s"])))
    return found.longest(NEVER)


@rules.seconds("consumer_dies", words=(NEVER,))
def queues_of_killed_s(watched: Sequence[Watched]) -> Measured:
    """the time until the other consumer of the group pulls every queue of a consumer that was killed"""
    return _taken("consumer_dies", watched)


@rules.seconds("consumer_stops", words=(NEVER,))
def queues_of_stopped_s(watched: Sequence[Watched]) -> Measured:
    """the time until the other consumer of the group pulls every queue of a consumer that stopped"""
    return _taken("consumer_stops", watched)


def _by_itself(watched: Sequence[Watched]) -> str:
    """Return why a consumer ended before nemesrv told it to end; "" if no consumer did."""
    one = next((one for one in watched if one.ended_by_itself), None)
    if one is None:
        return ""
    return f"a consumer ended by itself ({one.ended}) after {(one.ended_ms - one.began_ms) / 1000:.1f} s"


def _no_pulls(watched: Sequence[Watched]) -> Measured:
    """Why there are no pulls: a program that sends, or does nothing, when it is told to consume is no consumer."""
    asked = [one for each in watched for one in each.of(Asked) if one.front in each.brokers]
    if any(one.code == HEART_BEAT and consumes(one.body) for one in asked):
        return Measured.undecided("its consumers pulled nothing")
    return NO_CONSUMER


def _told_twice(gone: Watched, stays: Watched) -> tuple[int, int] | None:
    """Return (messages received again, messages received); None if the programs report nothing."""
    ids = Counter(
        str(one.value.get("id")) for each in (gone, stays) for one in each.of(Reported) if one.f == "received"
    )
    return (sum(count - 1 for count in ids.values()), len(ids)) if ids else None


def _pulled_twice(gone: Watched, stays: Watched) -> tuple[int, int]:
    found: Counter[tuple[Queue, int]] = Counter()
    for each in (gone, stays):
        waiting = {(asked.connection, asked.opaque): (queue, asked) for queue, asked in _pulls(each)}
        for answer in each.of(Answered):
            queue_and_asked = waiting.get((answer.connection, answer.opaque))
            if queue_and_asked is None or answer.code != 0:
                continue
            queue, asked = queue_and_asked
            from_, to = asked.fields.get("queueOffset", ""), answer.fields.get("nextBeginOffset", "")
            if from_.isdigit() and to.isdigit():
                found.update((queue, offset) for offset in range(int(from_), int(to)))
    return sum(count - 1 for count in found.values()), len(found)


@rules(*_ENDS, unit="messages", tolerance=TWICE_BY_CHANCE, is_bound=True)
def received_twice(watched: Sequence[Watched]) -> Measured:
    """how many messages were received again when one of two consumers of a group ended"""
    if not any(True for one in watched for _ in _pulls(one)):
        return _no_pulls(watched)
    again = all_ = 0
    by = "pulled"
    for situation in _ENDS:
        for gone, stays, _ in _pairs(watched, situation):
            told = _told_twice(gone, stays)
            by = "pulled" if told is None else "received"
            twice, whole = _pulled_twice(gone, stays) if told is None else told
            again, all_ = again + twice, all_ + whole
    if not all_:
        return Measured.undecided(_by_itself(watched) or "nothing was received")
    return Measured(value=float(again), count=all_, why=f"{again} of {all_} messages {by} twice")
