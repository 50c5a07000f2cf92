"""Rules about the times of look-ups: the poll's period, and look-ups after a changed list, without a route of the
topic, and after all NameServers refused."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from ...chaos.fronts.behaviour import PASSES
from ...chaos.fronts.observed import Asked, Behaved, By, Closed, Dialled, Foreign, Happened
from ...chaos.oracle.choosing.start_choice import ALPHA
from ...chaos.topology import ADDRESS_SERVER
from ..situations import GET_ROUTEINFO, NAME_SERVER_LIST, Watched
from .lookups import TryOutcome, goes_anywhere, label_in, lookups, tries
from .rule import LeftOut, Measured, Rules, Samples

RATE, DELAY = "fixed rate", "fixed delay"
NOT_AGAIN, NOT_TAKEN, NOT_ASKED = "not again", "not taken", "not asked again"
_SLOW = ("quiet", "slow")
ROUND_MS = 2_000.0
"""Look-ups nearer than this are one round, or of the start; no known client polls this often."""
SLOWER_S = (0.25, 0.5)
"""Answers that take 1 s lengthen the period by at least 1 s, or not at all."""

rules = Rules()


def _rounds_ms(watched: Watched) -> list[float]:
    """Return when the poll asked for the topic, or for its most frequent topic if it never asked for this topic."""
    asked = lookups(watched, watched.topic) or lookups(watched)
    began: list[float] = []
    last = -float("inf")
    for one in asked:
        assert one.asked_ms is not None
        if one.asked_ms - last > ROUND_MS:
            began.append(one.asked_ms)
        last = one.asked_ms
    return began


def _periods_s(watched: Watched) -> list[float]:
    """Return the times between the poll's rounds, without the time from a send's look-up to the first poll, which may
    be shorter or longer than the period."""
    gaps = [(b - a) / 1000 for a, b in pairwise(_rounds_ms(watched))]
    if len(gaps) > 1 and abs(gaps[0] - (period_s := median(gaps[1:]))) > 0.2 * period_s:
        gaps = gaps[1:]
    return gaps


ONCE_S = 60.0
"""Who asked but once so long ago has not just begun: twice the longest period of a client of RocketMQ's."""


@rules("quiet", unit="s", words=(NOT_AGAIN,), tolerance=0.5)
def poll_period_s(watched: Sequence[Watched]) -> Measured:
    """the median time between two look-ups of the topic's route without a fault"""
    gaps = [gap for one in watched for gap in _periods_s(one)]
    rounds = [(one, _rounds_ms(one)) for one in watched]
    left_s = max(((one.stopping_ms - began[0]) / 1000 for one, began in rounds if began), default=0.0)
    if not gaps and left_s >= ONCE_S:
        return Measured(value=NOT_AGAIN, count=len(rounds), why=f"one round, and none in the {left_s:.0f} s after it")
    return Measured.median(gaps, "the topic's route was asked for in one round only")


@rules(*_SLOW, words=(RATE, DELAY), by_time=True)
def poll_kind(watched: Sequence[Watched]) -> Measured:
    """whether the period of polls counts from the begin or the end of the last poll, measured while answers take 1 s

    By the shortest period: a topic that comes later in its round than before makes one period longer at a fixed rate,
    and with a fixed delay none is shorter than 31 s."""

    def periods(name: str) -> list[list[float]]:
        return [_periods_s(one) for one in watched if one.situation == name]

    of = {name: [gap for gaps in periods(name) for gap in gaps] for name in _SLOW}
    missing = [name for name in _SLOW if not any(one.situation == name for one in watched)]
    if missing:
        return LeftOut(why=f"not run: {', '.join(missing)}")
    if not all(of.values()):
        return Measured.undecided("too few rounds to compare")
    # the first may be from a send's look-up to the first poll
    later = {name: [gap for gaps in periods(name) for gap in (gaps[1:] if len(gaps) > 2 else gaps)] for name in _SLOW}
    quiet_s, slow_s = median(of["quiet"]), min(later["slow"])
    count = sum(map(len, of.values()))
    why = f"every {quiet_s:.1f} s; {slow_s:.1f} s or more while answers take 1 s"
    differ_s = max(later["quiet"]) - min(later["quiet"])
    if differ_s > SLOWER_S[0]:
        return Measured.undecided(f"{why}; but without that, too, its periods differ by {differ_s:.1f} s", count)
    if slow_s - quiet_s >= SLOWER_S[1]:
        return Measured(value=DELAY, count=count, why=why)
    if slow_s - quiet_s <= SLOWER_S[0]:
        return Measured(value=RATE, count=count, why=why)
    return Measured.undecided(why, count)


@rules.seconds("quiet", tolerance=0.2)
def poll_jitter_s(watched: Sequence[Watched]) -> Measured:
    """the largest difference between a poll's period and the median period"""
    of = [_periods_s(one) for one in watched]
    # the first look-up may be a send's, seconds after the poll's first round knew no topic (Java, Go)
    gaps = [gap for each in of for gap in (each[1:] if len(each) > 2 and each[0] < each[1] else each)]
    if len(gaps) < 2:
        return Measured.undecided("fewer than three rounds", len(gaps))
    middle = median(gaps)
    return Measured(value=round(max(abs(gap - middle) for gap in gaps), 3), count=len(gaps))


@rules.seconds("list_changes", words=(NOT_TAKEN,))
def list_change_s(watched: Sequence[Watched]) -> Measured:
    """the time from when the list by HTTP lost the NameServer in use until the client uses a NameServer of the new
    list"""
    found = Samples("the list never changed")
    label = label_in(watched)
    for one in watched:
        change = next((each for each in one.of(Happened) if each.what == NAME_SERVER_LIST), None)
        if change is None:
            continue
        if one.at_work_ms is None:
            return LeftOut(why="it takes no list by HTTP")
        asked = [each.front for each in lookups(one) if each.began_ms > change.at_ms]
        moves = sum(a != b for a, b in pairwise(asked))
        if label.takes_turns or (label.word is None and moves > 1):  # its next NameServer is in the old list, too
            return LeftOut(why="the client changes its NameServer also without a failure")
        now = set(change.whom.split(";"))
        made = tries(one)
        before = [tried.front for tried in made if tried.began_ms < change.at_ms]
        last = before[-1] if before else None
        # the one in use has left the list: who turns to one of the new list has taken it; else who turns to a new one
        meant = now if last not in now else now - {*before} - set(one.name_servers)
        taken = next((tried for tried in made if tried.began_ms > change.at_ms and tried.front in meant), None)
        if _gave_up_on_the_list(one, change.at_ms, one.stopping_ms if taken is None else taken.began_ms):
            return Measured.undecided("nemesrv's address server was too slow to tell the client the new list")
        if taken is not None:
            found.add(round((taken.began_ms - change.at_ms) / 1000, 1), one, change.at_ms, front=taken.front)
        elif last in now:
            found.why = "the one in use is in the new list, too"
        else:
            found.why = "it has taken no NameServer of the new list"
            found.add(None, one, change.at_ms, still=last)
    return found.longest(NOT_TAKEN, of_any=True)


def _gave_up_on_the_list(watched: Watched, from_ms: float, to_ms: float) -> bool:
    """Return whether the client ended a request for the list: the address server closes each connection that it has
    answered."""
    asked = {each.connection for each in watched.of(Foreign) if each.front == ADDRESS_SERVER}
    closed = (each for each in watched.of(Closed) if each.by is By.CLIENT and each.connection in asked)
    return any(from_ms < each.at_ms <= to_ms for each in closed)


@rules("empty", unit="look-ups", tolerance=0.0, is_bound=True)
def storm(watched: Sequence[Watched]) -> Measured:
    """how many look-ups the client makes in the first second at NameServers that know no route of the topic"""
    found = Samples("it asked no NameServer")
    for one in watched:
        asked = [each for each in one.of(Asked) if each.code == GET_ROUTEINFO and each.front in one.name_servers]
        asked = [each for each in asked if each.at_ms <= one.stopping_ms]
        if asked:
            since = [math.floor((each.at_ms - asked[0].at_ms) / 1000) for each in asked]
            seconds = range(max(1, math.floor((one.stopping_ms - asked[0].at_ms) / 1000)))
            counts = [since.count(second) for second in seconds]
            topics = sorted({each.fields.get("topic", "") for each in asked[: counts[0]]})
            more = {"least": min(counts), "most": max(counts)}
            found.add(float(counts[0]), one, first_second=counts[0], all=len(asked), topics=topics, **more)
    longest, examples = found.longest(""), found.examples
    if not examples:
        return longest
    interval = float(min(one["least"] for one in examples)), float(max(one["most"] for one in examples))
    return replace(longest, count=sum(one["all"] for one in examples), interval=interval)


@rules.seconds("all_gone", words=(NOT_ASKED,))
def back_after_all_gone_s(watched: Sequence[Watched]) -> Measured:
    """after all NameServers refused: the time from the return of one NameServer until it answers a look-up"""
    found = Samples("no NameServer came back")
    for one in watched:
        back = next((b for b in one.of(Behaved) if b.behaviour == PASSES and b.at_ms > one.began_ms), None)
        if back is None or one.at_work_ms is None:
            continue
        later = (each for each in tries(one) if each.front == back.front and each.began_ms >= back.at_ms)
        again = next((each for each in later if each.outcome is TryOutcome.ANSWERED), None)
        if again is None:
            dials = sum(each.at_ms > back.at_ms and each.front in one.name_servers for each in one.of(Dialled))
            chance = (1 - 1 / len(one.name_servers)) ** dials
            if dials and chance > ALPHA:
                if goes_anywhere(label_in(watched)):  # those that met it by chance do not say how long it takes
                    return LeftOut(
                        why="it draws a NameServer for each request, so chance decides when it asks that one"
                    )
                found.why = f"none of {dials} connects was to it: who draws for each looks so with p = {chance:.2g}"
                continue
            found.why = "it was not asked again" if dials or one.dials_unseen else "nothing was dialled any more"
        after_s = None if again is None else round((again.began_ms - back.at_ms) / 1000, 1)
        found.add(after_s, one, back.at_ms, front=back.front, after_s=after_s)
    return found.longest(NOT_ASKED, of_any=True)
