"""Computes how similar a replay is to the original run: a number from 0 to 1, as product of three parts. Pure: no I/O.

came   2·matched / (original's + replay's transitions)  missing and additional transitions lower it
order  share of pairs of matched transitions with the same order in both runs, if the original's stamps show it
time   1 − (distance − error) / R, the mean of all matched transitions; 0 for a distance of one period (R)
similarity = came · order · time
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...chaos.checks.record.recoveries import percentile
from ...chaos.history.matching import TransitionPair, matched
from ...chaos.history.transitions import Transition

EXACT_MS = 500.0
"""Smaller distances are ignored: stamps have whole seconds, and machines are sometimes that late."""
AGAIN = 0.9
IN_PART = 0.5
_ORDERED_MAX = 1200
"""Most matched transitions whose order is compared, evenly spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """How similar two runs are. `similarity` is None if neither run has a transition (a recorded change)."""

    similarity: float | None
    came: float
    order: float
    time: float
    originals: int
    replays: int
    matched: int
    median_ms: float
    p90_ms: float
    worst_ms: float
    exact_ms: float
    """The error of half of the nodes at least."""
    pairs: Sequence[TransitionPair]
    of_logs: bool = False
    """Whether the original was imported, so that logs show only a part of its transitions."""

    @property
    def worst(self) -> str:
        """The matched transition whose times in the two runs differ most, in words; "" if none matched."""
        pair = max(self.pairs, key=lambda pair: abs(pair.apart_ms or 0.0), default=None)
        return pair.what.words if pair is not None and self.matched else ""

    @property
    def missing(self) -> int:
        """The number of transitions of the recorded run that the replay lacks."""
        return self.originals - self.matched

    @property
    def extra(self) -> int:
        """The number of transitions of the replay that the recorded run lacks."""
        return self.replays - self.matched

    @property
    def happens(self) -> str:
        """Whether the incident happened again in the replay: `again`, `in part`, `not`, or `nothing` to compare."""
        if self.similarity is None:
            return "nothing"
        return "again" if self.similarity >= AGAIN else "in part" if self.similarity >= IN_PART else "not"

    @property
    def sentence(self) -> str:
        if self.similarity is None:
            return "Nothing changed in the original, nor in the replay: there is nothing to compare."
        said = {"again": "It happens again", "in part": "It happens again in part", "not": "It does not happen again"}
        shown = " that the logs show" if self.of_logs else ""
        came = f"{self.matched} of {self.originals} transitions{shown} came"
        if self.matched:
            order = "in the same order" if self.order >= 1 else f"{100 * self.order:.0f} % of them in the same order"
            worst = f": {self.worst}" if self.worst_ms > self.exact_ms else ""
            came += f", {order}, {_s(self.median_ms)} apart in the median"
            came += f" ({_s(self.p90_ms)} for 90 %, {_s(self.worst_ms)} at worst{worst})"
        beside = f"; {self.extra} came that the original has not" if self.extra else ""
        exact = f"; the original's stamps are exact to {_s(self.exact_ms)}"
        similar = math.floor(100 * self.similarity) / 100  # 0.896 is not 0.9, and not `again`
        return (
            f"{said[self.happens]}: {came}{beside}{exact}. Similarity {similar:.2f} (from {AGAIN:g} on it happens "
            f"again, from {IN_PART:g} on in part)."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "similarity": None if self.similarity is None else round(self.similarity, 4),
            "parts": {"came": round(self.came, 4), "order": round(self.order, 4), "time": round(self.time, 4)},
            "happens": self.happens,
            "sentence": self.sentence,
            "originals": self.originals,
            "replays": self.replays,
            "matched": self.matched,
            "missing": self.missing,
            "extra": self.extra,
            "apart_ms": {"median": self.median_ms, "p90": self.p90_ms, "worst": self.worst_ms},
            "exact_ms": self.exact_ms,
        }


def similarity(
    original: Sequence[Transition],
    replay: Sequence[Transition],
    *,
    tick_ms: float = 30_000.0,
    exact_ms: Callable[[str], float] = lambda _node: EXACT_MS,
    of_logs: bool = False,
) -> Similarity:
    """Return the similarity of two runs. `tick_ms` is the registration period (R): transitions that far apart agree
    only by chance. `exact_ms` returns the error of a node's times."""
    pairs = matched(original, replay)
    both = [pair for pair in pairs if pair.original is not None and pair.replay is not None]
    exact = {node: max(EXACT_MS, exact_ms(node)) for node in {one.node for one in original}}
    came = 2 * len(both) / (len(original) + len(replay)) if original or replay else 0.0
    order = _order(both, exact)
    apart = [abs(pair.apart_ms or 0.0) for pair in both]
    parts = [_in_time(pair, exact, tick_ms) for pair in both]
    time = sum(parts) / len(parts) if parts else 0.0
    return Similarity(
        similarity=came * order * time if original or replay else None,
        came=came,
        order=order,
        time=time,
        originals=len(original),
        replays=len(replay),
        matched=len(both),
        median_ms=percentile(apart, 0.5) or 0.0,
        p90_ms=percentile(apart, 0.9) or 0.0,
        worst_ms=max(apart, default=0.0),
        exact_ms=percentile([*exact.values()], 0.5) or EXACT_MS,
        pairs=pairs,
        of_logs=of_logs,
    )


def _in_time(pair: TransitionPair, exact: dict[str, float], tick_ms: float) -> float:
    beyond_ms = max(0.0, abs(pair.apart_ms or 0.0) - exact[pair.what.node])
    return max(0.0, 1 - beyond_ms / tick_ms)


def _order(both: Sequence[TransitionPair], exact: dict[str, float]) -> float:
    """The share of pairs of transitions that have the same order in the original and the replay; 1 if there are no
    pairs. Pairs whose order the original's stamps do not show are left out."""
    some = [(a.at_ms, b.at_ms, exact[a.node]) for a, b in both if a is not None and b is not None]
    if len(some) > _ORDERED_MAX:
        step = len(some) / _ORDERED_MAX
        some = [some[int(at * step)] for at in range(_ORDERED_MAX)]
    decided = same = 0
    for at, (a_ms, b_ms, exact_ms) in enumerate(some):
        for later_ms, its_ms, its_exact_ms in some[at + 1 :]:
            told_ms = exact_ms + its_exact_ms
            if abs(later_ms - a_ms) <= told_ms:
                continue
            decided += 1
            same += (its_ms - b_ms) * (later_ms - a_ms) > 0 or abs(its_ms - b_ms) <= told_ms
    return same / decided if decided else 1.0


def _s(ms: float) -> str:
    return f"{ms / 1000:.1f} s"
