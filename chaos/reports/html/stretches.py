"""Stretches of time on a lane, and how many of them are thinned without hiding what was wrong.

A lane of the page is some hundred pixels wide, so that a thousand stretches on it cannot be told apart. `thin` joins
neighbours in one slice of time to one stretch that shows the gravest of them and says how many it stands for. What was
over stays over: a joined stretch is never drawn as better than any of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ...verdict import seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStretch:
    """From `start_ms` to `end_ms` this lane was in the state `kind`; `text` says it in words."""

    start_ms: float
    end_ms: float
    kind: str
    text: str
    count: int = 1
    """How many recorded stretches or events it stands for."""

    @classmethod
    def said(cls, kind: str, start_ms: float, end_ms: float, says: str, tail: str = "", count: int = 1) -> LaneStretch:
        """`says` and from when to when, and behind that the `tail`."""
        text = f"{says} {span(start_ms, end_ms)}{tail}"
        return cls(start_ms=start_ms, end_ms=end_ms, kind=kind, text=text, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneMark:
    """Something at one moment of a lane that must be seen at every zoom."""

    at_ms: float
    kind: str
    text: str
    count: int = 1
    is_below: bool = False
    """Whether it is one of what is drawn below the lane's bars."""


@dataclass(slots=True, kw_only=True)
class Lane:
    """One row of the page. `key` is what links name: `ns-0/broker-a`, `producer-0/broker-a`, `producer-0`."""

    key: str
    label: str
    group: str
    bars: Sequence[LaneStretch] = ()
    windows: Sequence[LaneStretch] = ()
    """What the oracle demands and allows, drawn below the bars."""
    marks: Sequence[LaneMark] = ()

    @property
    def troubled(self) -> bool:
        return bool(self.marks) or any(s.kind in ("over", "late", "failed") for s in (*self.bars, *self.windows))


SEVERITY: Mapping[str, int] = {"over": 5, "failed": 4, "late": 3, "missing": 2, "partly": 1}
"""Kinds by how much they must not be hidden; all others 0."""


def gravest(kinds: Iterable[str]) -> str:
    """The kind that must be seen; the first among equals."""
    return max(kinds, key=lambda kind: SEVERITY.get(kind, 0))


def thin(stretches: Sequence[LaneStretch], most: int) -> list[LaneStretch]:
    """At most about `most` stretches, in order of time; long ones stay as they are."""
    if len(stretches) <= most:
        return list(stretches)
    ordered = sorted(stretches, key=lambda s: s.start_ms)
    begin_ms = ordered[0].start_ms
    slice_ms = max((max(s.end_ms for s in ordered) - begin_ms) / max(most // 2, 1), 1e-9)
    found: list[LaneStretch] = []
    for _, group in groupby(ordered, key=lambda s: int((s.start_ms - begin_ms) / slice_ms)):
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
        text=f"{count} stretches too close to be told apart, the gravest: {shown.text}",
        count=count,
    )


def thin_marks(marks: Sequence[LaneMark], most: int) -> list[LaneMark]:
    """At most `most` marks: in each slice of time the gravest, which says how many it stands for."""
    if len(marks) <= most:
        return list(marks)
    ordered = sorted(marks, key=lambda m: m.at_ms)
    begin_ms = ordered[0].at_ms
    slice_ms = max((ordered[-1].at_ms - begin_ms) / most, 1e-9)
    found = []
    for _, group in groupby(ordered, key=lambda m: min(int((m.at_ms - begin_ms) / slice_ms), most - 1)):
        parts = list(group)
        kind = gravest(part.kind for part in parts)
        shown = next(part for part in parts if part.kind == kind)
        count = sum(part.count for part in parts)
        text = shown.text if count == shown.count else f"{shown.text} (and {count - shown.count} more here)"
        found.append(replace(shown, text=text, count=count))
    return found


def span(start_ms: float, end_ms: float) -> str:
    """`from 77.8 s to 232.7 s (154.9 s)`."""
    return f"from {seconds(start_ms)} to {seconds(end_ms)} ({seconds(end_ms - start_ms)})"
