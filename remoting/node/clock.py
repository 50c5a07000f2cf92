"""A node's only source of time, counted in seconds of RocketMQ time.

The clock makes an experiment faster: with `scale` 10 a sleep of 30 s takes 3 s of the machine's time, but 30 s in the
history.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time as a node sees it. All durations are seconds on this clock, which can run faster than real time."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970 (Java's currentTimeMillis)."""

    def monotonic_s(self) -> float:
        """Seconds since the experiment began; they never go back, and are the times in the history."""

    async def sleep(self, delay_s: float) -> None: ...

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timer: ...

    def timeout(self, delay_s: float | None) -> AbstractAsyncContextManager[object]:
        """Return a context that raises TimeoutError if its body takes longer; None means no limit."""


class AdjustableClock:
    """A node's clock whose wall clock can be changed without changing other nodes. An adjustment does not affect the
    monotonic time."""

    def __init__(self, clock: Clock) -> None:
        self.real = clock
        """The clock without what was changed of it."""
        self.scale = float(getattr(clock, "scale", 1.0))
        self.monotonic_s, self.sleep = clock.monotonic_s, clock.sleep
        self.call_later, self.timeout = clock.call_later, clock.timeout
        self._at_ms = self._shows_ms = 0.0
        self._rate = 1.0
        self._is_right = True

    def now_ms(self) -> int:
        now_ms = self.real.now_ms()
        return now_ms if self._is_right else int(self._shows_ms + (now_ms - self._at_ms) * self._rate)

    def adjust(self, step_ms: float | None, rate: float) -> None:
        """Move the wall clock by `step_ms` (None: to the right time), and run it `rate` times as fast from now on."""
        right_ms, shows_ms = self.real.now_ms(), self.now_ms()
        self._shows_ms = right_ms if step_ms is None else shows_ms + step_ms
        self._at_ms, self._rate = right_ms, rate
        self._is_right = step_ms is None and rate == 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RealClock:
    """The machine's clock, `scale` times as fast. All processes of one experiment use the same origin and the same
    scale. All processes of a Linux host share CLOCK_MONOTONIC, so their events have one time axis."""

    scale: float = 1.0
    origin_monotonic_ns: int
    origin_wall_ms: int

    @classmethod
    def starting_now(cls, scale: float = 1.0) -> RealClock:
        return cls(scale=scale, origin_monotonic_ns=time.monotonic_ns(), origin_wall_ms=time.time_ns() // 1_000_000)

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1000:
            raise ValueError(f"time scale {self.scale} is not in (0, 1000]")

    def monotonic_s(self) -> float:
        return (time.monotonic_ns() - self.origin_monotonic_ns) * self.scale / 1e9

    def now_ms(self) -> int:
        return self.origin_wall_ms + int(self.monotonic_s() * 1000)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s / self.scale)

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s / self.scale, callback, *args)

    def timeout(self, delay_s: float | None) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(None if delay_s is None else delay_s / self.scale)
