"""All differences of what two logs tell of like things, as tables: of two logs of a day some 100,000. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .clocks import Mark

_MOST = 400
"""So many marks of a kind are compared; of more, those that do not recur."""
_NEAR_MS = 1_500.0


class Told(NamedTuple):
    """What two logs tell of one key: each mark of the one beside each of the other."""

    kind: int
    """Which key it is; -1: of what both may tell at different times."""
    mine: npt.NDArray[np.float64]
    theirs: npt.NDArray[np.float64]

    def apart(self) -> npt.NDArray[np.float64]:
        import numpy as np

        found: npt.NDArray[np.float64] = np.subtract.outer(self.theirs[:, 0], self.mine[:, 0]).ravel()
        return found

    def weights(self) -> npt.NDArray[np.float64]:
        import numpy as np

        found: npt.NDArray[np.float64] = np.minimum.outer(self.theirs[:, 1], self.mine[:, 1]).ravel()
        return found


def times_of(
    told: Sequence[Told], chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """When it was by either clock, and the kind, of these pairs: of a few of very many."""
    import numpy as np

    begins = np.cumsum([0, *(len(one.mine) * len(one.theirs) for one in told)])
    which = np.searchsorted(begins, chosen, side="right") - 1
    times, kinds = np.empty((len(chosen), 2)), np.empty(len(chosen), dtype=np.int64)
    for number in np.unique(which):
        own, one = which == number, told[number]
        at = chosen[own] - begins[number]
        times[own, 0], times[own, 1] = one.theirs[at // len(one.mine), 0], one.mine[at % len(one.mine), 0]
        kinds[own] = one.kind
    return times, kinds


def moments_of(times: npt.NDArray[np.float64]) -> int:
    """How many moments these are in either log: what was held comes all at once, and says one thing."""
    import numpy as np

    return min(1 + int((np.diff(np.sort(times[:, which])) > _NEAR_MS).sum()) for which in (0, 1))


def first_of(are: npt.NDArray[np.bool_]) -> int:
    """Where the first of them is that are, of some of which all are from there on."""
    return len(are) - int(are.sum())


def few(marks: Sequence[Mark]) -> npt.NDArray[np.float64]:
    """at_ms, weight a row; of too many those that weigh most, then those that break the rhythm."""
    import numpy as np

    table = np.array([(mark.at_ms, mark.weight) for mark in marks], dtype=np.float64)
    if len(table) <= _MOST:
        return table
    table = table[np.argsort(table[:, 0], kind="stable")]
    gaps = np.diff(table[:, 0], prepend=table[0, 0])
    usual = float(np.median(gaps[1:]))
    strange = np.abs(gaps - usual) > max(2_000.0, 0.1 * usual)
    rank = table[:, 1] + strange * 10
    kept = np.sort(np.argsort(-rank, kind="stable")[:_MOST])
    return table[kept]
