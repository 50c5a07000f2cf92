"""Changes of a node's wall clock, which is Java's System.currentTimeMillis.

Timers, time-outs, idle channels and the history use System.nanoTime, which these changes do not affect. Only
NameServers are affected: a NameServer compares its wall clock at a broker's registration with its wall clock at a scan.
A node's clock is an object that the harness gives to the node, so the machine's clock does not change.
"""

from typing import Literal, get_args

from pydantic import Field, field_validator

from .fault import Action, by_do


class ClockAction(Action):
    acts_on = "nodes"


class ClockStep(ClockAction):
    """From now on the node's wall clock is this many seconds ahead (negative: behind)."""

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
    """From now on the node's wall clock runs at this rate."""

    do: Literal["clock_drift"] = "clock_drift"
    rate: float = Field(gt=0, le=100)

    @property
    def about(self) -> str:
        return f"{self.rate:g} times as fast at"


class ClockFreeze(ClockAction):
    """From now on the node's wall clock shows the same time."""

    do: Literal["clock_freeze"] = "clock_freeze"


class ClockSync(ClockAction):
    """From now on the node's wall clock is right again and runs at the normal rate."""

    do: Literal["clock_sync"] = "clock_sync"


AnyClockAction = ClockStep | ClockDrift | ClockFreeze | ClockSync
CLOCK_ACTIONS: dict[str, type[ClockAction]] = by_do(*get_args(AnyClockAction))


def changed(what: ClockAction, rate: float) -> tuple[float | None, float]:
    """Return the step of the wall clock in milliseconds (None: to the right time), and the clock's rate after the step.
    `rate` is the clock's rate before the change."""
    match what:
        case ClockStep(by_s=by_s):
            return by_s * 1000, rate
        case ClockDrift(rate=now):
            return 0.0, now
        case ClockFreeze():
            return 0.0, 0.0
    return None, 1.0
