"""How a diagnosis of logs speaks: a cause with its lines, addresses by name, moments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from .causes import Cause
from .told import NO_ANSWER, Failure, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCause(Cause):
    lines: tuple[str, ...]
    """`FILE:LINE` of what it rests on."""


def called(told: Told, address: str) -> str:
    name = told.names.get(address)
    return address if name is None or name == address else f"{address} ({name})"


def span(failure: Failure) -> str:
    if failure.last.ms - failure.first.ms < 1_000:
        return f"at {clock(failure.first.ms)}"
    return f"from {clock(failure.first.ms)} to {clock(failure.last.ms)}"


def clock(ms: float) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S}"


def spoken(told: Told, failure: Failure) -> str:
    """A failure as a person reads it."""
    day = f"{datetime.fromtimestamp(failure.first.ms / 1000, UTC):%Y-%m-%d}"
    asked = "a NameServer" if failure.name_server is None else called(told, failure.name_server)
    if failure.kind == NO_ANSWER:
        look_ups = "1 look-up" if failure.times == 1 else f"{failure.times} look-ups"
        return f"{failure.client}: {look_ups} without an answer of {asked}, {day} {span(failure)} UTC"
    times = "once" if failure.times == 1 else f"{failure.times} times"
    what = f"{failure.topic} looked up {times} at {asked}, code 17"
    return f"{failure.client}: {what}, {day} {span(failure)} UTC"
