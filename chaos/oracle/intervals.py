"""Stretches of time: joined where they overlap, and what they leave free. In one place, because every rule needs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Stretch(NamedTuple):
    start_ms: float
    end_ms: float


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time as disjoint stretches in order."""
    found: list[Stretch] = []
    for start_ms, end_ms in sorted(stretches):
        if start_ms >= end_ms:
            continue
        if found and start_ms <= found[-1].end_ms:
            found[-1] = Stretch(found[-1].start_ms, max(found[-1].end_ms, end_ms))
        else:
            found.append(Stretch(start_ms, end_ms))
    return found


def without(start_ms: float, end_ms: float, taken: Iterable[Stretch]) -> list[Stretch]:
    """What is left of [start_ms, end_ms) outside of `taken`."""
    left: list[Stretch] = []
    for stretch in merged(taken):
        if stretch.start_ms > start_ms:
            left.append(Stretch(start_ms, min(stretch.start_ms, end_ms)))
        start_ms = max(start_ms, stretch.end_ms)
        if start_ms >= end_ms:
            break
    else:
        left.append(Stretch(start_ms, end_ms))
    return [stretch for stretch in left if stretch.start_ms < stretch.end_ms]
