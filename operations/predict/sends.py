"""One producer that sends to its queues in turn, of which some are at a broker that does not answer. Pure.

    a0 a1 a2 a3 b0 b1 … │ a0 a1 …      each send takes its time, and a producer sends one after the other

A round that meets nothing new takes as long as the last one, so that whole rounds are counted and not walked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Sends:
    """What came of the sends within some time. Times are milliseconds from the start of the fault."""

    begun: int = 0
    failed: int = 0
    last_failed_ms: float = 0.0
    """When the last was given up; 0: none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What a send meets at one queue: how long it takes, all its tries together, and whether it fails."""

    takes_ms: float
    fails: bool = False
    isolates_ms: float = 0.0
    """For how long its producer then sends to other brokers only (sendLatencyFaultEnable)."""
    skips: int = 0
    """How many queues the next send leaves out: those of the same broker that follow, and the one that a retry took, or
    took too late (`TopicPublishInfo.selectOneMessageQueue`: the place in the round moves on with every choice)."""


def sends(
    round_: Sequence[Attempt],
    *,
    from_ms: float,
    to_ms: float,
    period_ms: float,
    first: int,
    released_ms: float = math.inf,
) -> Sends:
    """The sends begun in [from_ms, to_ms), each `period_ms` after the last or when that is done, from queue `first`.

    `released_ms`: a send that is on its way then succeeds, for what kept its answer is over.
    """
    found = Sends()
    if to_ms <= from_ms:
        return found
    if any(each.isolates_ms for each in round_):
        return _with_isolation(round_, from_ms, to_ms, period_ms, first, released_ms)
    before, turns = _turns(round_, first)
    at_ms = _walked(before, from_ms, to_ms, period_ms, released_ms, found)
    steps = [max(period_ms, each.takes_ms) for each in turns]
    round_ms, fails = sum(steps), sum(each.fails for each in turns)
    whole = max(0, int((to_ms - at_ms) // round_ms) - 1)
    if whole:
        found.begun += whole * len(turns)
        found.failed += whole * fails
        walk_ms = at_ms + (whole - 1) * round_ms
        for each, step_ms in zip(turns, steps, strict=True):  # when the last of them was given up
            if each.fails:
                found.last_failed_ms = walk_ms + each.takes_ms
            walk_ms += step_ms
        at_ms += whole * round_ms
    while at_ms < to_ms:
        at_ms = _walked(turns, at_ms, to_ms, period_ms, released_ms, found)
    return found


def _turns(round_: Sequence[Attempt], first: int) -> tuple[list[Attempt], list[Attempt]]:
    """The queues in the order in which sends take them from `first` on: those before it repeats, and those that do."""
    met: dict[int, int] = {}
    place = first % len(round_)
    while place not in met:
        met[place] = len(met)
        place = (place + 1 + round_[place].skips) % len(round_)
    order = [round_[each] for each in met]
    return order[: met[place]], order[met[place] :]


def _walked(
    turns: Sequence[Attempt], at_ms: float, to_ms: float, period_ms: float, released_ms: float, found: Sends
) -> float:
    """When the send after these begins; what came of those that began before `to_ms` is added to `found`."""
    for each in turns:
        if at_ms >= to_ms:
            break
        found.begun += 1
        done_ms = at_ms + each.takes_ms
        if each.fails and done_ms <= released_ms:
            found.failed += 1
            found.last_failed_ms = done_ms
        at_ms += max(period_ms, each.takes_ms if done_ms <= released_ms else released_ms - at_ms)
    return at_ms


def _with_isolation(
    round_: Sequence[Attempt], at_ms: float, to_ms: float, period_ms: float, place: int, released_ms: float
) -> Sends:
    """The same of a producer that avoids a broker for a while after each send that met it in vain."""
    found, until_ms = Sends(), 0.0
    others = any(not each.isolates_ms for each in round_)
    while at_ms < to_ms:
        each = round_[place % len(round_)]
        place += 1
        if others and each.isolates_ms and at_ms < until_ms:
            continue
        found.begun += 1
        done_ms = at_ms + each.takes_ms
        if each.isolates_ms:
            until_ms = done_ms + each.isolates_ms
        if each.fails and done_ms <= released_ms:
            found.failed += 1
            found.last_failed_ms = done_ms
        at_ms += max(period_ms, min(each.takes_ms, max(0.0, released_ms - at_ms)))
    return found
