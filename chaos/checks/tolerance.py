"""The tolerance of checks: the measured lateness of the machine, and what it allows.

Each node records how late its own timers fired (`timer_lag`), and the harness how late Toxiproxy is, through which all
bytes go. For each window of a check the largest lateness of the nodes concerned and of Toxiproxy, times the timers that
stand one behind the other in the window's formula, is added to the bound: a process that did not run has read late, and
its timers have fired late.

    overshoot ≤ delivery + min(lateness, R)     fine
    overshoot ≤ delivery + lateness             UNKNOWN: so late a machine says nothing
    beyond                                      INVALID

Who measured what, and when, is lateness.py.
"""

from dataclasses import dataclass

from ..oracle.windows import Timers

UNLIMITED_MS = 1e15
"""Stands for "any lateness" in DataFrames, where infinity is awkward."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far past its bound a window may be. `lag_ms` None: no node concerned measured its lateness."""

    lag_ms: float | None
    timers: int
    delivery_ms: float
    cap_ms: float

    @property
    def lateness_ms(self) -> float:
        return UNLIMITED_MS if self.lag_ms is None else self.lag_ms * self.timers

    @property
    def valid_up_to_ms(self) -> float:
        """Up to here the overshoot is fine."""
        lateness_ms = 0.0 if self.lag_ms is None else self.lateness_ms
        return self.delivery_ms + min(lateness_ms, self.cap_ms)

    @property
    def unknown_up_to_ms(self) -> float:
        """Up to here the machine's lateness may explain the overshoot; never less than `valid_up_to_ms`."""
        return self.delivery_ms + self.lateness_ms


def tolerance(timers: Timers, lag_ms: float | None, chained: int) -> Tolerance:
    """For a window whose formula chains `chained` timers."""
    return Tolerance(lag_ms, chained, timers.delivery_ms, timers.R_ms)
