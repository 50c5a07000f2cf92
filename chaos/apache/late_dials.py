"""Dials and what came of them, in the order in which they are to be heard. Sans-IO.

Who sees a program's connect() calls tells each after the kernel may have made it, over a pipe; so the front may have
let it in before. What is heard as it comes is right, but for such a dial: it was let in already, and is nothing more.
"""

from __future__ import annotations

from collections import defaultdict

from ..fronts.behaviour import Dials
from ..fronts.observed import Behaved, Dialled, GaveUp, Observation, Opened


class LateDials:
    """`is_news` of each observation of one program, as it comes."""

    def __init__(self) -> None:
        self._refusing: set[str] = set()
        self._waiting: dict[str, list[float]] = defaultdict(list)
        """By front, when those dials were made of which nothing has come yet."""
        self._let_in: dict[str, list[float]] = defaultdict(list)
        """By front, when those were let in that nobody has told of yet."""

    def is_news(self, one: Observation) -> bool:
        """False for what has been heard already, or goes to no front."""
        match one:
            case Behaved():
                refuses = one.behaviour.dials is Dials.REFUSED
                (self._refusing.add if refuses else self._refusing.discard)(one.front)
            case Dialled():
                return one.front is not None and self._dialled(one.front, one.at_ms)
            case GaveUp():
                return one.front is not None and bool(self._waiting[one.front]) and self._over(one.front)
            case Opened():
                if not (self._waiting[one.front] and self._over(one.front)):
                    self._let_in[one.front].append(one.at_ms)
            case _:
                pass
        return True

    def _dialled(self, front: str, at_ms: float) -> bool:
        let_in = next((opened_ms for opened_ms in self._let_in[front] if opened_ms >= at_ms), None)
        if let_in is not None:
            self._let_in[front].remove(let_in)
            return False
        if front not in self._refusing:
            self._waiting[front].append(at_ms)
        return True

    def _over(self, front: str) -> bool:
        self._waiting[front].pop(0)
        return True
