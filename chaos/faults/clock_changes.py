"""What a timeline does to a node's wall clock: Java's System.currentTimeMillis, and no other.

Timers, time-outs and idle channels go by System.nanoTime, there as here, and so does the history: a NameServer alone
compares two readings of its wall clock, a registration's and a scan's. Each node is handed its clock, so that nothing
has to be done to the machine's own, on either clock of a run: `faketime` would not be noticed, because our nodes never
read it.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, field_validator

from .fault import Action, by_do


class ClockAction(Action):
    acts_on = "nodes"


class ClockStep(ClockAction):
    """The wall clock shows so many seconds more, or less, from now on."""

    do: Literal["clock_step"] = "clock_step"
    by_s: float = Field(ge=-100_000, le=100_000)

    @field_validator("by_s")
    @classmethod
    def _is_a_step(cls, by_s: float) -> float:
        if not by_s:
            raise ValueError("a number from -100,000 to 100,000 that is not 0")
        return by_s

    @property
    def about(self) -> str:
        return f"by {self.by_s:g} s at"


class ClockDrift(ClockAction):
    """The wall clock goes so many times as fast from now on."""

    do: Literal["clock_drift"] = "clock_drift"
    rate: float = Field(gt=0, le=100)

    @property
    def about(self) -> str:
        return f"{self.rate:g} times as fast at"


class ClockFreeze(ClockAction):
    """The wall clock stands still from now on."""

    do: Literal["clock_freeze"] = "clock_freeze"


class ClockSync(ClockAction):
    """The wall clock shows the right time again, and goes with it."""

    do: Literal["clock_sync"] = "clock_sync"


AnyClockAction = ClockStep | ClockDrift | ClockFreeze | ClockSync
CLOCK_ACTIONS: dict[str, type[ClockAction]] = by_do(*get_args(AnyClockAction))


def changed(what: ClockAction, rate: float) -> tuple[float | None, float]:
    """By how many milliseconds the clock is stepped (None: to the right time), and how fast it goes then; `rate` is
    how fast it went before."""
    match what:
        case ClockStep(by_s=by_s):
            return by_s * 1000, rate
        case ClockDrift(rate=now):
            return 0.0, now
        case ClockFreeze():
            return 0.0, 0.0
    return None, 1.0
