"""A history is kept while it grows: everything near a change at once, a long rest rarely and in little room. Where
checks are named, all of it is judged after each change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.files import part_files
from nemesrv.chaos.live import growing
from nemesrv.chaos.live.changes import Pace
from nemesrv.chaos.live.growing import LiveWatch
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import cluster

from .test_segments import Raw

CHECK = "no_false_eviction"


@dataclass
class Clock:
    now_s: float = 0.0
    scale: float = 1.0

    def monotonic_s(self) -> float:
        return self.now_s

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody waits here: {name}")


QUIET_S = 300


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path)


class Kept:
    """One NameServer's rows, a second after the other."""

    def __init__(self, raw: Raw, checks: tuple[str, ...] = ()) -> None:
        self.raw, self.clock = raw, Clock()
        self.said: list[tuple[float, Validity]] = []
        self.watch = LiveWatch(
            run_dir=raw.run_dir,
            clock=self.clock,  # type: ignore[arg-type]
            checks=checks,
            say=lambda at_ms, verdict: self.said.append((at_ms, verdict.verdict)),
            quiet_after_ms=QUIET_S * 1_000.0,
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
    assert kept.times_s()[-1] == 1_011


def test_what_has_changed_since_the_last_judging_is_said_and_nothing_twice(raw: Raw) -> None:
    kept = Kept(raw, (CHECK,))
    story = cluster()
    for at_s in (1, 31, 61, 91):
        story.at(at_s).registration("ns-0", "broker-a")
    story.at(100).drops("ns-0", "broker-a")

    def judged_at(now_s: float) -> None:
        story.at(now_s - 20).lag(1.0, until_s=now_s)
        kept.clock.now_s = now_s
        for row in [row for row in story.rows if row["time_ms"] <= now_s * 1_000.0]:
            raw.row(row)
            story.rows.remove(row)
        kept.watch.step(now_s)

    for now_s in range(20, 161, 20):
        judged_at(now_s)
    verdicts = [verdict for _, verdict in kept.said]
    assert verdicts == [Validity.UNKNOWN, Validity.VALID, Validity.INVALID]
    assert kept.said[-1][0] == 120_000.0


def test_a_history_that_has_grown_too_large_is_judged_at_the_end_only(
    raw: Raw, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(growing, "ROWS_MAX", 5)
    kept = Kept(raw, (CHECK,))
    kept.change()
    kept.seconds(40)
    assert kept.said, "as long as it was small"
    assert ["more than 5 rows" in record.message for record in caplog.records] == [True]
