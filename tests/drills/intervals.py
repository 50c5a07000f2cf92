"""The intervals of the field drills: what the field measured, what RocketMQ's timers allow, and how a run's is read.

The field: Apache's 4.9.7, three NameServers, default timers; times of faults are known to the second, and so are those
of server log lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nemesrv.chaos.faults.fault import Loss
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.chaos.oracle.windows import drop_window

TIMERS = Timers.for_profile("4.9")
THREADS = 8
FIELD_EXACT_S = 1.0
"""Two moments of the field, each known to the second."""
OURS = "ours"
_EVENT_POLL_S, _STORE_SLEEP_S = 3.0, 1.0
_SILENT = drop_window(TIMERS, Loss.SILENT)
_SEND_S = TIMERS.T_ms / 1000
POLL_S = TIMERS.P_ms / 1000


class Recorded:
    """The rows of one run, by what the intervals ask for. Times are seconds."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    @classmethod
    def of(cls, folder: Path) -> Recorded:
        return cls(read_rows(folder))

    @cached_property
    def lateness_s(self) -> float:
        """How late the run's processes were at worst: what a measured time may be wrong by."""
        late_ms = [row["lag_ms"] for row in self._rows if row["event"] == "timer_lag"]
        return max(late_ms, default=0.0) / 1000

    def fault(self, fault_id: str, phase: str = "start") -> float:
        """When it was asked for, as in the field (a broker that is stopped unregisters before its process ends), or was
        last taken back."""
        wanted = ("fault", fault_id, phase)
        found = [
            row["time_ms"] for row in self._rows if (row["event"], row.get("fault_id"), row.get("phase")) == wanted
        ]
        if phase == "end":
            return float(max(found)) / 1000
        asked = [row["time_ms"] for row in self._rows if (row["event"], row.get("phase")) == ("phase", "fault")]
        return float(max(at_ms for at_ms in asked if at_ms <= min(found))) / 1000

    def dropped(self, broker: str, broker_id: int, from_s: float, to_s: float) -> list[float]:
        """The first drop at each NameServer."""
        first: dict[str, float] = {}
        for row in self._rows:
            if row["event"] == "broker_dropped" and (row["broker_name"], row.get("broker_id") or 0) == (
                broker,
                broker_id,
            ):
                at_s = row["time_ms"] / 1000
                if from_s <= at_s < to_s:
                    first.setdefault(row["node"], at_s)
        return sorted(first.values())

    def failed(self, from_s: float, to_s: float) -> list[float]:
        """When each send that did not succeed was given up."""
        return sorted(
            row["time_ms"] / 1000
            for row in self._rows
            if row["event"] == "send" and row["type"] in ("fail", "info") and from_s <= row["time_ms"] / 1000 < to_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One number of a drill. `read` gives the values of a run: one, or one a NameServer; none: it never happened."""

    drill: str
    what: str
    field: tuple[float, ...]
    """What was measured there; nothing: it never happened."""
    allowed: tuple[float, float] | None
    """From, to; None: it must never happen."""
    formula: str
    unit: str = "s"
    of_jvm_s: float = 0.0
    """What a JVM may take longer, and why (`why_of_jvm`)."""
    why_of_jvm: str = ""
    read: Callable[[Recorded], list[float]]

    def on(self, implementation: str) -> Interval:
        """What is allowed of that one's programs."""
        if implementation == OURS or self.allowed is None:
            return self
        return replace(self, allowed=(self.allowed[0], self.allowed[1] + self.of_jvm_s))

    def allows(self, value: float, tolerance: float = 0.0) -> bool:
        """Whether one value is inside, give or take."""
        return self.allowed is not None and self.allowed[0] - tolerance <= value <= self.allowed[1] + tolerance

    def allows_all(self, values: Sequence[float], tolerance: float = 0.0) -> bool:
        """Whether these are what is allowed: nothing where it must never happen, else something, all of it inside."""
        return bool(values) == (self.allowed is not None) and all(self.allows(value, tolerance) for value in values)


def _dropped(fault: str, broker: str, broker_id: int = 0) -> Callable[[Recorded], list[float]]:
    def read(run: Recorded) -> list[float]:
        at_s = run.fault(fault)
        return [drop_s - at_s for drop_s in run.dropped(broker, broker_id, at_s, run.fault(fault, "end"))]

    return read


def _clean(fault: str) -> Callable[[Recorded], list[float]]:
    """From the fault to the last send that failed before the heal."""

    def read(run: Recorded) -> list[float]:
        at_s = run.fault(fault)
        return [failed_s - at_s for failed_s in run.failed(at_s, run.fault(fault, "end"))[-1:]]

    return read


def _failures(fault: str) -> Callable[[Recorded], list[float]]:
    def read(run: Recorded) -> list[float]:
        failed = run.failed(run.fault(fault), run.fault(fault, "end") + _SEND_S)
        return [float(len(failed))] if failed else []

    return read


def _power_off(drill: str, fault: str, broker: str, field_s: float, broker_id: int = 0) -> Interval:
    name = f"{broker}/{broker_id}" if broker_id else broker
    return Interval(
        drill=drill,
        what=f"power off of {name} to its drop",
        field=(field_s,),
        allowed=(_SILENT.earliest_ms / 1000, _SILENT.latest_ms / 1000),
        formula=_SILENT.formula,
        read=_dropped(fault, "broker-a", 0),
    )


def _clean_after_power_off(drill: str, fault: str, field_s: float) -> Interval:
    return Interval(
        drill=drill,
        what="power off of the master to the last failed send",
        field=(field_s,),
        allowed=(0, _SILENT.latest_ms / 1000 + POLL_S + _SEND_S),
        formula="E + S + P + T",
        read=_clean(fault),
    )


def _stop(drill: str, fault: str, field_s: float) -> Interval:
    return Interval(
        drill=drill,
        what="stop of broker-a to its drop",
        field=(field_s,),
        # Ours that is stopped unregisters first. Apache's 4.9.7 unregisters late in BrokerController.shutdown:
        # behind NettyEventExecutor, which notices within its poll of 3 s, and DefaultMessageStore, which sleeps 1 s.
        # The field's 8 s was a slave's own shutdown.
        allowed=(0, FIELD_EXACT_S),
        of_jvm_s=_EVENT_POLL_S + _STORE_SLEEP_S,
        why_of_jvm="its event thread's poll, and its store's sleep, come before it unregisters",
        formula="RTT + event thread, no NameServer is dead",
        read=_dropped(fault, "broker-a", 0),
    )


def _clean_after_stop(drill: str, field_s: float) -> Interval:
    return Interval(
        drill=drill,
        what="stop of the master to the last failed send",
        field=(field_s,),
        allowed=(0, POLL_S + _SEND_S),
        formula="P + T",
        read=_clean("stop-1"),
    )


def _hang(drill: str, frozen_s: float, field: float, *, retries: int) -> list[Interval]:
    most = THREADS * (frozen_s / _SEND_S + 1)
    return [
        Interval(
            drill=drill,
            what=f"a master frozen for {frozen_s:g} s to its drop",
            field=(),
            allowed=None,
            formula="E - R = 90 s at least",
            read=_dropped("pause-1", "broker-a"),
        ),
        Interval(
            drill=drill,
            what=f"failed sends of {THREADS} threads with {retries} retries",
            field=(field,),
            allowed=(1, most),
            formula=f"{THREADS}·(f / T + 1)",
            unit="",
            read=_failures("pause-1"),
        ),
    ]


INTERVALS = (
    *_hang("drill-1-hang", 47, 128, retries=0),
    _stop("drill-2-stop", "stop-1", 1),
    _clean_after_stop("drill-2-stop", 10),
    _power_off("drill-3-power-off", "black_hole-1", "broker-a", 108),
    _power_off("drill-3-power-off", "black_hole-2", "broker-b", 104, 1),
    _clean_after_power_off("drill-3-power-off", "black_hole-1", 135),
    *_hang("drill-4-zones-hang", 54, 107, retries=2),
    _stop("drill-5-zones-stop", "stop-1", 1),
    _clean_after_stop("drill-5-zones-stop", 29),
    _power_off("drill-6-zones-power-off", "black_hole-1", "broker-a", 111),
    _power_off("drill-6-zones-power-off", "black_hole-2", "broker-b", 115, 1),
    _clean_after_power_off("drill-6-zones-power-off", "black_hole-1", 124),
)
