"""A history is kept while it grows: everything near a change at once, a long rest rarely and in little room."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.files import part_files
from nemesrv.chaos.live.changes import Pace
from nemesrv.chaos.live.growing import LiveWatch

from .test_segments import Raw


@dataclass
class Clock:
    now_s: float = 0.0
    scale: float = 1.0

    def monotonic_s(self) -> float:
        return self.now_s

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody waits here: {name}")


def no_spark() -> NoReturn:
    raise AssertionError("nothing is judged")


QUIET_S = 300


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path)


class Kept:
    """One NameServer's rows, a second after the other."""

    def __init__(self, raw: Raw) -> None:
        self.raw, self.clock = raw, Clock()
        self.watch = LiveWatch(
            run_dir=raw.run_dir,
            clock=self.clock,  # type: ignore[arg-type]
            checks=(),
            say=lambda _at_ms, _verdict: None,
            quiet_after_ms=QUIET_S * 1_000.0,
            spark=no_spark,
            pace=Pace(every_s=10, rarely_s=100),
        )

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.clock.now_s += 1
            self.raw.rows("ns-0.0", self.clock.now_s * 1_000, lag_ms=1.0, duration_ms=1_000.0)
            self.watch.step(self.clock.now_s)

    def change(self) -> None:
        self.raw.rows("ns-0.0", self.clock.now_s * 1_000, event="broker_dropped")

    def times_s(self) -> list[float]:
        return [t / 1_000 for part in part_files(self.raw.run_dir) for t in pq.read_table(part)["time_ms"].to_pylist()]


def test_after_a_change_all_is_kept_and_a_long_rest_is_thinned(raw: Raw) -> None:
    kept = Kept(raw)
    kept.change()
    kept.seconds(3_600)
    times_s = kept.times_s()
    assert times_s[: QUIET_S + 1] == list(range(QUIET_S + 1)), "near the change every row"
    rest = times_s[QUIET_S + 1 :]
    assert rest[-1] >= 3_600 - QUIET_S - 101
    assert len(rest) <= 3_600 / 60 + 3_600 / 100
    assert len(part_files(raw.run_dir)) < 45


def test_what_came_before_a_change_is_not_thinned(raw: Raw) -> None:
    kept = Kept(raw)
    kept.change()
    kept.seconds(1_000)
    kept.change()
    kept.seconds(11)
    assert kept.times_s()[-QUIET_S:] == sorted(kept.times_s()[-QUIET_S:])
    assert set(range(1_000 - QUIET_S, 1_001)) <= set(kept.times_s())
    assert kept.watch.finish() == ()
    assert kept.times_s()[-1] == 1_011
