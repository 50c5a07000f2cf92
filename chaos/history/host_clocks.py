"""Measures the offset of a host's clock from the harness's clock, and the error, by requests and answers as in NTP.

    harness  ── sent ──┐                      ┌── received ──►     middle = (sent + received) / 2
    host               └──► it shows host_ms ─┘                    offset = host_ms - middle, to ± half the round trip

A reading's error grows with time, by DRIFT. At each moment the reading with the smallest error is used. Readings that
differ by more than their grown errors prove that the clock jumped, because the host stood still. Near a jump the
clock's error is infinite. No I/O. All times are RocketMQ milliseconds.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..arrow import pa, pc, pq
from .files import part_files, process_of, read_raw
from .schema import Row, raw_dir

DRIFT = 2e-4
"""Most that two clocks drift apart per unit of time: each is wrong by at most 100 millionths, as a bare crystal is."""


Correction = Callable[[float], float]


class ClockReading(NamedTuple):
    """A reading of a host's clock: at `at_ms` of the harness's clock, the host's clock was ahead by `offset_ms` ±
    `bound_ms`."""

    at_ms: float
    offset_ms: float
    bound_ms: float

    @classmethod
    def of(cls, sent_ms: float, host_ms: float, received_ms: float) -> ClockReading:
        """Make a reading of a host's clock from one request and its answer."""
        at_ms = (sent_ms + received_ms) / 2
        return cls(at_ms, host_ms - at_ms, (received_ms - sent_ms) / 2)

    @property
    def host_ms(self) -> float:
        return self.at_ms + self.offset_ms


def reading_of(value: Mapping[str, Any]) -> ClockReading:
    offset_ms, host_ms = float(value["offset_ms"]), float(value["host_ms"])
    return ClockReading(host_ms - offset_ms, offset_ms, float(value["bound_ms"]))


class Jump(NamedTuple):
    """A jump of the host's clock, between `from_ms` and `to_ms`, by `by_ms` (negative: the clock stood still)."""

    from_ms: float
    to_ms: float
    by_ms: float


class Bound(NamedTuple):
    """The largest error of corrected times between `from_ms` and `to_ms`."""

    from_ms: float
    to_ms: float
    bound_ms: float


@dataclass(frozen=True, slots=True)
class HostClock:
    """The offset and error of one host's clock over a run."""

    stretches: tuple[tuple[ClockReading, ...], ...] = ()
    """Stretches between jumps, in order of time; each reading has the smallest error that is known of its moment."""
    jumps: tuple[Jump, ...] = ()
    _knots: tuple[ClockReading, ...] = field(init=False, repr=False)
    _times: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        knots = tuple(known for stretch in self.stretches for known in stretch)
        object.__setattr__(self, "_knots", knots)
        object.__setattr__(self, "_times", tuple(known.at_ms for known in knots))

    @classmethod
    def of(cls, readings: Iterable[ClockReading]) -> HostClock:
        """Make a host's clock from all its readings, in any order. Without readings the clock's offset is unknown."""
        stretches, jumps = _split(sorted(readings))
        return cls(tuple(map(_best, stretches)), jumps)

    def bounds(self, from_ms: float, to_ms: float) -> list[Bound]:
        """Return the clock's error in [from_ms, to_ms], piece by piece; infinite where the clock may have jumped."""
        if not self._knots:
            return [Bound(from_ms, to_ms, math.inf)]
        edges = {from_ms, to_ms, *(at for at in self._times if from_ms < at < to_ms)}
        edges |= {at for jump in self.jumps for at in jump[:2] if from_ms < at < to_ms}
        return [Bound(one, other, self._bound_ms(one, other)) for one, other in pairwise(sorted(edges))]

    def _bound_ms(self, from_ms: float, to_ms: float) -> float:
        if any(jump.from_ms < to_ms and jump.to_ms > from_ms for jump in self.jumps):
            return math.inf
        after = bisect_left(self._times, to_ms)
        if 0 < after < len(self._knots):
            one, other = self._knots[after - 1], self._knots[after]
            return max(one.bound_ms, other.bound_ms) + DRIFT * (other.at_ms - one.at_ms) / 2
        nearest = self._knots[min(after, len(self._knots) - 1)]
        return nearest.bound_ms + DRIFT * max(abs(from_ms - nearest.at_ms), abs(to_ms - nearest.at_ms))

    def correction(self) -> Correction:
        """Return the correction from the host's clock to the harness's time: linear between readings, constant before
        the first and after the last. CLOCK_MONOTONIC never goes back, so each of its times occurs once."""
        shows: list[float] = []
        late: list[float] = []
        """By how much the harness's clock showed more then."""
        for known in self._knots:
            if not shows or (known.host_ms > shows[-1] and known.at_ms > shows[-1] + late[-1]):
                shows.append(known.host_ms)
                late.append(-known.offset_ms)

        def corrected(host_ms: float) -> float:
            after = bisect_right(shows, host_ms)
            if not 0 < after < len(shows):
                return host_ms + (late[min(after, len(late) - 1)] if late else 0.0)
            share = (host_ms - shows[after - 1]) / (shows[after] - shows[after - 1])
            return host_ms + late[after - 1] + share * (late[after] - late[after - 1])

        return corrected


def _grown(low: float, high: float, by_ms: float, reading: ClockReading) -> tuple[float, float]:
    """Return the range of possible offsets after this time, narrowed by the new reading. The readings contradict each
    other if the lowest possible offset is above the highest."""
    offset_ms, bound_ms, drift_ms = reading.offset_ms, reading.bound_ms, DRIFT * by_ms
    return max(low - drift_ms, offset_ms - bound_ms), min(high + drift_ms, offset_ms + bound_ms)


def _split(readings: Sequence[ClockReading]) -> tuple[list[list[ClockReading]], tuple[Jump, ...]]:
    """Return the readings, split where the clock jumped. A reading that fits both sides of a jump is left out."""
    stretches: list[list[ClockReading]] = []
    jumps: list[Jump] = []
    low, high = -math.inf, math.inf
    for number, reading in enumerate(readings):
        if not stretches:
            stretches.append([])
        by_ms = reading.at_ms - readings[number - 1].at_ms if number else 0.0
        low, high = _grown(low, high, by_ms, reading)
        if low > high:
            low, high = reading.offset_ms - reading.bound_ms, reading.offset_ms + reading.bound_ms
            last = _last_before(readings[:number], reading)
            old = readings[last]
            while stretches[-1] and stretches[-1][-1].at_ms > old.at_ms:
                stretches[-1].pop()
            by = reading.offset_ms - old.offset_ms
            jumps.append(Jump(old.at_ms - old.bound_ms, reading.at_ms + reading.bound_ms, by))
            stretches.append([])
        stretches[-1].append(reading)
    return stretches, tuple(jumps)


def _last_before(readings: Sequence[ClockReading], after: ClockReading) -> int:
    low, high, at_ms = after.offset_ms - after.bound_ms, after.offset_ms + after.bound_ms, after.at_ms
    for number in range(len(readings) - 1, -1, -1):
        low, high = _grown(low, high, at_ms - readings[number].at_ms, readings[number])
        if low > high:
            return number
        at_ms = readings[number].at_ms
    return len(readings) - 1


def _best(readings: Sequence[ClockReading]) -> tuple[ClockReading, ...]:
    """Return for each reading's time the reading that has the smallest error at that time."""
    forth: list[ClockReading] = []
    for reading in readings:
        forth.append(min((reading, *forth[-1:]), key=lambda one: one.bound_ms + DRIFT * (reading.at_ms - one.at_ms)))
    back: list[ClockReading] = []
    for reading in reversed(readings):
        back.append(min((reading, *back[-1:]), key=lambda one: one.bound_ms + DRIFT * (one.at_ms - reading.at_ms)))
    found = []
    for reading, before, after in zip(readings, forth, reversed(back), strict=True):
        grown = [(one.bound_ms + DRIFT * abs(reading.at_ms - one.at_ms), one.offset_ms) for one in (before, after)]
        bound_ms, offset_ms = min(grown)
        found.append(ClockReading(reading.at_ms, offset_ms, bound_ms))
    return tuple(found)


# -- the rows of many hosts on one time axis, the harness's: each is corrected by its host's clock when it is merged
#
#     _raw/clocks.0.jsonl ── host_clock: each host's offset, again and again ─┐
#     _raw/harness.0.jsonl ── node: which node is on which host ──────────────┴─► Axis ─► the rows of ns-2, corrected
#
# A run of one host has no file of clocks, and its rows stay as they are.

CLOCKS = "clocks"
"""The node of `host_clock` rows, with the harness's role."""

HARNESS = "harness"

_RECENT = 240
"""Number of a host's readings that determine its current clock."""


class Axis:
    """The common time axis of a run: the host of each node, and the hosts' clocks."""

    def __init__(self) -> None:
        self._host_of: dict[str, str] = {}
        self._readings: dict[str, list[ClockReading]] = defaultdict(list)

    def heed(self, row: Mapping[str, Any]) -> None:
        """Take a node's host or a clock reading from the row, if the row has one. `value` can be an object or JSON
        text."""
        if row["event"] not in ("node", "host_clock"):
            return
        value = row.get("value") or {}
        value = orjson.loads(value) if isinstance(value, str) else value
        if row["event"] == "host_clock":
            self._readings[str(row["source"])].append(reading_of(value))
        elif value.get("host"):
            self._host_of[str(row["source"])] = str(value["host"])

    def correction_of(self, node: str) -> Correction | None:
        """Return the time correction for the rows of one process; None if its rows need no correction."""
        readings = self._readings.get(self._host_of.get(node, ""))
        return HostClock.of(readings).correction() if readings else None

    def corrected(self, path: Path) -> Iterator[Row | None]:
        """Return the rows of `read_raw`, each with its time on the common axis."""
        correction = self.correction_of(process_of(path)[0])
        for row in read_raw(path):
            if row is not None and correction is not None:
                row["time_ms"] = correction(row["time_ms"])
            yield row


class LiveAxis(Axis):
    """The common time axis while a run is still recorded: each row is corrected by the readings known so far."""

    def __init__(self) -> None:
        super().__init__()
        self._corrections: dict[tuple[str, int], Correction | None] = {}
        self._last: dict[tuple[str, int], tuple[float, float]] = {}
        """Of each process the latest row's time: by its host's clock, and on the axis."""
        self._told = False

    def heed(self, row: Mapping[str, Any]) -> None:
        super().heed(row)
        if row["event"] == "host_clock":
            self._told = True
            self._corrections.clear()
            del self._readings[str(row["source"])][:-_RECENT]

    def correct(self, row: Row) -> None:
        """Put the row's time on the common axis."""
        if not self._told:
            return
        process = row["node"], row["incarnation"]
        if process not in self._corrections:
            self._corrections[process] = self.correction_of(row["node"])
        correction = self._corrections[process]
        if correction is None:
            return
        host_ms, (last_host_ms, last_ms) = row["time_ms"], self._last.get(process, (-math.inf, -math.inf))
        row["time_ms"] = correction(host_ms)
        if host_ms >= last_host_ms:  # what was known a moment ago may have put the row before it a little later
            row["time_ms"] = max(row["time_ms"], last_ms)
            self._last[process] = host_ms, row["time_ms"]


def axis_of(run_dir: Path | str) -> Axis | None:
    """Return the common time axis of a run on several hosts, from its raw rows and parts; None for a run on one host,
    or if no clock was measured."""
    own = [path for path in raw_dir(run_dir).glob("*.jsonl") if process_of(path)[0] == CLOCKS]
    if not own:
        return None
    axis = Axis()
    for row in _of_parts(part_files(run_dir)):
        axis.heed(row)
    for path in (*own, *raw_dir(run_dir).glob(f"{HARNESS}.*.jsonl")):
        for raw in read_raw(path):
            if raw is not None:
                axis.heed(raw)
    return axis


def _of_parts(parts: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    for part in parts:
        table = pq.read_table(part, columns=["event", "source", "value"])
        yield from table.filter(pc.is_in(table["event"], pa.array(["node", "host_clock"]))).to_pylist()
