"""Matches a replay's transitions (changes) with the original run's, at the least distance in time. No I/O."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from .transitions import Transition

APART_MAX_MS = 120_000.0
"""Transitions further apart are different ones: E, after which a NameServer has dropped a silent broker."""
_ALIGNED_MAX = 400
"""Up to so many of one key are aligned optimally; more are matched greedily in order of time."""


class TransitionPair(NamedTuple):
    """A transition of the original run and its match in the replay; None stands for a missing transition."""

    original: Transition | None
    replay: Transition | None

    @property
    def apart_ms(self) -> float | None:
        """Return how much later the replay's transition came; None if either transition is missing."""
        return None if self.original is None or self.replay is None else self.replay.at_ms - self.original.at_ms

    @property
    def what(self) -> Transition:
        found = self.original or self.replay
        assert found is not None
        return found


def matched(original: Sequence[Transition], replay: Sequence[Transition]) -> list[TransitionPair]:
    """Return every transition of both runs once, in order of time. Matched transitions have equal keys, and equal keys
    keep their order. If the original does not know `how` a transition came, keys are compared without `how`."""
    vague = {one.key[:3] for one in original if one.how == "unknown"}

    def key(one: Transition) -> tuple[str, ...]:
        return one.key[:3] if one.key[:3] in vague else one.key

    ours: dict[tuple[str, ...], list[Transition]] = defaultdict(list)
    theirs: dict[tuple[str, ...], list[Transition]] = defaultdict(list)
    for of, found in ((original, ours), (replay, theirs)):
        for one in of:
            found[key(one)].append(one)
    pairs: list[TransitionPair] = []
    for each in dict.fromkeys((*ours, *theirs)):
        pairs += _aligned(ours[each], theirs[each])
    return sorted(pairs, key=lambda pair: (pair.what.at_ms, pair.what.key))


def _aligned(a: Sequence[Transition], b: Sequence[Transition]) -> list[TransitionPair]:
    if len(a) > _ALIGNED_MAX or len(b) > _ALIGNED_MAX:
        return _next_in_time(a, b)
    gap = APART_MAX_MS / 2
    cost = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            if not i or not j:
                cost[i][j] = (i + j) * gap
                continue
            apart = abs(a[i - 1].at_ms - b[j - 1].at_ms)
            cost[i][j] = min(cost[i - 1][j - 1] + apart, cost[i - 1][j] + gap, cost[i][j - 1] + gap)
    found: list[TransitionPair] = []
    i, j = len(a), len(b)
    while i or j:
        both = i and j and cost[i][j] == cost[i - 1][j - 1] + abs(a[i - 1].at_ms - b[j - 1].at_ms)
        if both:
            i, j = i - 1, j - 1
            found.append(TransitionPair(a[i], b[j]))
        elif i and cost[i][j] == cost[i - 1][j] + gap:
            i -= 1
            found.append(TransitionPair(a[i], None))
        else:
            j -= 1
            found.append(TransitionPair(None, b[j]))
    return found


def _next_in_time(a: Sequence[Transition], b: Sequence[Transition]) -> list[TransitionPair]:
    found: list[TransitionPair] = []
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and abs(a[i].at_ms - b[j].at_ms) <= APART_MAX_MS:
            found.append(TransitionPair(a[i], b[j]))
            i, j = i + 1, j + 1
        elif j == len(b) or (i < len(a) and a[i].at_ms < b[j].at_ms):
            found.append(TransitionPair(a[i], None))
            i += 1
        else:
            found.append(TransitionPair(None, b[j]))
            j += 1
    return found
