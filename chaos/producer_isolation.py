"""How long a producer with `sendLatencyFaultEnable` keeps away from a broker that was slow or failed it.

    latency of an attempt ──► highest threshold not above it ──► isolation; a failure counts as a fixed latency

By the versions of the Java client, from the project's failure-detection table (`MQFaultStrategy`,
`LatencyFaultToleranceImpl`). An isolated broker is used all the same when no other is available; the switch is off by
default. It is a bound on clients, not their program, which has a table of its own (clients/producer/fault_strategy.py).
"""

from __future__ import annotations

from typing import NamedTuple

from .oracle.windows import Window


class Isolation(NamedTuple):
    """A latency table. Both tuples are as long, all in milliseconds."""

    thresholds_ms: tuple[float, ...]
    isolated_ms: tuple[float, ...]
    failure_counts_as_ms: float

    def of(self, latency_ms: float | None) -> float:
        """How long a broker is avoided after an attempt of `latency_ms`; None is a failed one."""
        counted_ms = self.failure_counts_as_ms if latency_ms is None else latency_ms
        reached = (
            isolated_ms
            for threshold_ms, isolated_ms in zip(self.thresholds_ms, self.isolated_ms, strict=True)
            if counted_ms >= threshold_ms
        )
        return max(reached, default=0)


UP_TO_5_1_3 = Isolation(
    (50, 100, 550, 1_000, 2_000, 3_000, 15_000),
    (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000),
    30_000,
)
FROM_5_1_4 = Isolation(
    (50, 100, 550, 1_800, 3_000, 5_000, 15_000),
    (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000),
    10_000,
)
DETECTOR_ROUND_MS = 3_000.0
DETECTOR_TIMEOUT_MS = 200.0


def isolation_ms(version: str, latency_ms: float | None) -> float:
    """The isolation by a client of `version`, e.g. 4.9.8; `latency_ms` None is a failed attempt. ValueError."""
    try:
        number = tuple(int(part) for part in version.split("."))
    except ValueError:
        raise ValueError(f"client version {version!r}: allowed are three numbers, e.g. 5.1.3") from None
    return (FROM_5_1_4 if number >= (5, 1, 4) else UP_TO_5_1_3).of(latency_ms)


def detector_window() -> Window:
    """When a broker that answers again counts as reachable, with `startDetectorEnable` (5.1.4 and later).

    Every round probes each such broker, since its own pause of 2 s is shorter than a round.
    """
    row = "unreachable until a probe succeeds"
    return Window(0, DETECTOR_ROUND_MS + DETECTOR_TIMEOUT_MS, "probe round + probe time-out", row, 2)
