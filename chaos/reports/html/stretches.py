"""Thins the stretches of time on a lane (plot row) of report.html without hiding violations.

A lane is some hundred pixels wide, too narrow for a thousand stretches. `thin` joins short stretches that begin in one
slice of time. The joined stretch shows the gravest stretch and the number of joined stretches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...verdict import seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStretch:
    """A time in which a lane has one state, `kind`; `text` describes the state in words. A mark is a stretch that ends
    when it begins; it is drawn at the same size at every zoom."""

    start_ms: float
    end_ms: float
    kind: str
    text: str
    count: int = 1
    """Number of recorded stretches or events that it stands for."""

    @classmethod
    def said(cls, kind: str, start_ms: float, end_ms: float, says: str, tail: str = "") -> LaneStretch:
        """Return a stretch whose text is `says`, then start, end and length, then `tail`."""
        text = f"{says} {span(start_ms, end_ms)}{tail}"
        return cls(start_ms=start_ms, end_ms=end_ms, kind=kind, text=text)

    @classmethod
    def mark(cls, kind: str, at_ms: float, text: str, count: int = 1) -> LaneStretch:
        return cls(start_ms=at_ms, end_ms=at_ms, kind=kind, text=text, count=count)


@dataclass(slots=True, kw_only=True)
class Lane:
    """One row of a plot. URLs of the page name a row by `key`: `ns-0/broker-a`, `producer-0/broker-a`, `producer-0`."""

    key: str
    label: str
    group: str
    bars: Sequence[LaneStretch] = ()
    windows: Sequence[LaneStretch] = ()
    """The oracle's requirements, drawn below the bars."""
    marks: Sequence[LaneStretch] = ()
    marks_below: Sequence[LaneStretch] = ()
    """Marks that are drawn below the bars."""

    @property
    def troubled(self) -> bool:
        return bool(self.marks) or any(s.kind in ("over", "late", "failed") for s in (*self.bars, *self.windows))


SEVERITY: Mapping[str, int] = {"over": 5, "failed": 4, "late": 3, "missing": 2, "partly": 1}
"""Kinds by gravity; all others 0."""


def gravest(kinds: Iterable[str]) -> str:
    """Return the gravest kind by SEVERITY; of equally grave kinds the first."""
    return max(kinds, key=lambda kind: SEVERITY.get(kind, 0))


def thin(stretches: Sequence[LaneStretch], most: int) -> list[LaneStretch]:
    """Join short neighbouring stretches until about `most` stretches are left, in order of time."""
    if len(stretches) <= most:
        return list(stretches)
    ordered = sorted(stretches, key=lambda s: s.start_ms)
    begin_ms, slices = ordered[0].start_ms, max(most // 2, 1)
    slice_ms = max((max(s.end_ms for s in ordered) - begin_ms) / slices, 1e-9)
    found: list[LaneStretch] = []
    for _, group in groupby(ordered, key=lambda s: min(int((s.start_ms - begin_ms) / slice_ms), slices - 1)):
        short: list[LaneStretch] = []
        for stretch in group:
            if stretch.end_ms - stretch.start_ms > slice_ms:
                found.append(stretch)
            else:
                short.append(stretch)
        if short:
            found.append(_joined(short))
    return found


def _joined(parts: Sequence[LaneStretch]) -> LaneStretch:
    if len(parts) == 1:
        return parts[0]
    kind = gravest(part.kind for part in parts)
    shown = next(part for part in parts if part.kind == kind)
    count = sum(part.count for part in parts)
    return LaneStretch(
        start_ms=parts[0].start_ms,
        end_ms=max(part.end_ms for part in parts),
        kind=kind,
        text=f"{count} too close to be told apart, the gravest: {shown.text}",
        count=count,
    )


def span(start_ms: float, end_ms: float) -> str:
    """Return start, end and length in words: `from 77.8 s to 232.7 s (154.9 s)`."""
    return f"from {seconds(start_ms)} to {seconds(end_ms)} ({seconds(end_ms - start_ms)})"
