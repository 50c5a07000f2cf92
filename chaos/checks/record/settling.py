"""The result for a stretch in which topics' routes had to be right: how long they took to be right, and the worst
topic.

change ── at_ms ────── window ─────── from_ms ──── due ──── to_ms
wrong     ├─────── settles ──────┤                                     measured against the window
          ├──────────────────────────────┤                             out of bounds from from_ms on
                                               ├────┤                  out of bounds for as long as it is
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...oracle.windows import Window
from ..findings import lasted
from ..tolerance import Tolerance


class Due(NamedTuple):
    """In [from_ms, to_ms) the topic's route must be right."""

    topic: str
    from_ms: float
    to_ms: float
    at_ms: float
    """The change that it counts from."""
    window: Window


class Wrong(NamedTuple):
    """In [s, e) it was not."""

    s: float
    e: float
    about: Any = None


class Settled(NamedTuple):
    """How long a change took, against its bound."""

    margin_ms: float
    after_ms: float
    window: Window


@dataclass(slots=True)
class Settling:
    """The worst topic is that which was out of bounds furthest."""

    allowed: Tolerance
    examined: int = 0
    wrong: int = 0
    late: int = 0
    settled: Settled | None = None
    """Of what had to change, and did, the topic nearest to its bound."""
    ends: list[tuple[Due, float]] = field(default_factory=list)
    """When each wrong stretch was over that was no moment at the far end."""
    reaches_ms: float = 0.0
    """How far the worst stretch reaches into what is due from the nearer end: what lateness may explain."""
    due: Due | None = None
    worst: Wrong | None = None

    @property
    def is_out(self) -> bool:
        return self.reaches_ms > self.allowed.valid_up_to_ms

    def add(self, due: Due, stretches: Iterable[Wrong]) -> None:
        """One topic."""
        farthest_ms, worst = 0.0, None
        for one in stretches:
            reaches_ms = max(min(min(one.e, due.to_ms) - due.from_ms, due.to_ms - max(one.s, due.from_ms)), 0.0)
            # One that began later was no change that took its time: it is wrong, or a moment at the far end, which
            # belongs to the next change, that took effect before its row was written.
            if one.s < due.from_ms:
                after_ms = min(one.e, due.to_ms) - due.at_ms
                settled = Settled(after_ms - due.window.latest_ms, after_ms, due.window)
                self.settled = max(self.settled or settled, settled, key=lambda each: each.margin_ms)
            if one.s < due.from_ms or reaches_ms > self.allowed.valid_up_to_ms:
                self.ends.append((due, one.e))
            if worst is None or (reaches_ms, one.s) > (farthest_ms, worst.s):
                farthest_ms, worst = reaches_ms, one
        if due.from_ms < due.to_ms:
            self.examined += 1
            self.wrong += farthest_ms > self.allowed.unknown_up_to_ms
            self.late += self.allowed.valid_up_to_ms < farthest_ms <= self.allowed.unknown_up_to_ms
        if self.due is None or (farthest_ms, due.topic) >= (self.reaches_ms, self.due.topic):
            self.reaches_ms, self.due, self.worst = farthest_ms, due, worst

    @property
    def counts(self) -> dict[str, Any]:
        """The tolerance, and how many were examined, wrong and late, as the fields of a finding."""
        return {"tolerance": self.allowed, "examined": self.examined, "wrong": self.wrong, "late": self.late}

    def excuse(self) -> None:
        """The machine explains what is wrong."""
        self.wrong, self.late = 0, self.wrong + self.late

    def out(self) -> tuple[float, float] | None:
        """The worst stretch within what was due, where it was out of bounds."""
        if not self.is_out or self.due is None or self.worst is None:
            return None
        return max(self.worst.s, self.due.from_ms), min(self.worst.e, self.due.to_ms)

    def measured(self, window: Window) -> dict[str, Any]:
        """Against which end: how late it was, or how long it was what it may never be; `window` where nothing was."""
        out, due = self.out(), self.due
        if out is None or due is None:
            of = self.settled or Settled(0.0, 0.0, window)
            against = {"bound_ms": of.window.latest_ms, "formula": of.window.formula, "over_ms": max(of.margin_ms, 0.0)}
            return {**against, "measured_ms": self.settled and of.after_ms}
        s, e = out
        if self.worst is not None and self.worst.s >= due.from_ms:
            return lasted(s, e)
        against = {"bound_ms": due.from_ms - due.at_ms, "formula": due.window.formula}
        return {**against, "measured_ms": e - due.at_ms, "over_ms": e - s}
