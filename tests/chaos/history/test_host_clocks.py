"""A host's offset is within its bound of the truth, whatever the network does; what a clock cannot do is found."""

import math
import random
from collections.abc import Callable

import pytest

from nemesrv.chaos.history.host_clocks import DRIFT, ClockReading, HostClock, reading_of

Clock = Callable[[float], float]


def readings(
    shows: Clock, *, seconds: int, seed: int, every_ms: float = 250.0, slow: float = 0.1
) -> list[ClockReading]:
    """Questions to a host that shows `shows(t)`: each way takes 0.2 to 2 ms, and now and then up to 80 ms."""
    rng = random.Random(f"{seed} readings")
    found = []
    for number in range(int(seconds * 1000 / every_ms)):
        sent_ms = number * every_ms
        there, back = (rng.uniform(0.2, 2.0) + (rng.uniform(0, 80) if rng.random() < slow else 0) for _ in range(2))
        found.append(ClockReading.of(sent_ms, shows(sent_ms + there), sent_ms + there + back))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_corrected_times_are_within_the_bound_of_the_truth(seed: int) -> None:
    rng = random.Random(f"{seed} truth")
    offset_ms, drift = rng.uniform(-1e6, 1e6), rng.uniform(-0.9, 0.9) * DRIFT

    def shows(at_ms: float) -> float:
        return at_ms + offset_ms + drift * at_ms

    clock = HostClock.of(readings(shows, seconds=60, seed=seed))
    correct = clock.correction()
    assert not clock.jumps
    before_ms = -math.inf
    for number in range(-1_000, 61_000, 37):
        at_ms = correct(shows(number))
        (bound,) = clock.bounds(number, number + 0.001)
        assert abs(at_ms - number) <= bound.bound_ms
        assert at_ms > before_ms
        before_ms = at_ms


def test_on_a_quiet_network_the_bound_is_below_a_millisecond() -> None:
    clock = HostClock.of(readings(lambda at_ms: at_ms + 700, seconds=30, seed=1, slow=0.0))
    assert max(bound.bound_ms for bound in clock.bounds(0, 30_000)) < 1.0


@pytest.mark.parametrize("by_ms", [700.0, 40.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_jump_is_found_and_all_times_but_those_near_it_are_right(by_ms: float, seed: int) -> None:
    def shows(at_ms: float) -> float:
        return at_ms + 5_000 + (by_ms if at_ms >= 20_000 else 0.0)

    clock = HostClock.of(readings(shows, seconds=40, seed=seed))
    (jump,) = clock.jumps
    assert jump.from_ms <= 20_000 <= jump.to_ms
    assert jump.to_ms - jump.from_ms < 1_000
    assert jump.by_ms == pytest.approx(by_ms, abs=80)
    correct, before_ms = clock.correction(), -math.inf
    for number in range(0, 40_000, 50):
        at_ms = correct(shows(number))
        assert at_ms >= before_ms
        before_ms = at_ms
        bounds = clock.bounds(number, number + 0.001)
        assert all(abs(at_ms - number) <= bound.bound_ms for bound in bounds)


def test_a_host_that_stood_still_has_jumped_back_and_shows_no_time_twice() -> None:
    def shows(at_ms: float) -> float:
        return min(at_ms, max(20_000, at_ms - 3_000))

    clock = HostClock.of(readings(shows, seconds=40, seed=3))
    assert clock.jumps[0].from_ms <= 20_000
    assert clock.jumps[-1].to_ms >= 23_000
    correct = clock.correction()
    for number in (*range(0, 19_000, 50), *range(25_000, 40_000, 50)):
        assert correct(shows(number)) == pytest.approx(number, abs=2)


def test_a_clock_that_drifts_more_than_any_does_is_not_believed() -> None:
    clock = HostClock.of(readings(lambda at_ms: at_ms * 1.002, seconds=30, seed=5))
    assert len(clock.jumps) > 3


def test_without_a_reading_nothing_is_known() -> None:
    clock = HostClock.of([])
    assert [bound.bound_ms for bound in clock.bounds(0, 10)] == [math.inf]
    assert clock.correction()(7.0) == 7.0


def test_the_bound_grows_between_readings_and_beyond_them() -> None:
    clock = HostClock.of([ClockReading(0.0, 700.0, 0.5), ClockReading(10_000.0, 700.2, 0.5)])
    assert [bound.bound_ms for bound in clock.bounds(2_000, 3_000)] == [pytest.approx(0.5 + DRIFT * 5_000)]
    (later,) = clock.bounds(20_000, 30_000)
    assert later.bound_ms == pytest.approx(0.5 + DRIFT * 20_000)


def test_a_better_reading_counts_as_long_as_it_is_better() -> None:
    good, bad = ClockReading(0.0, 700.0, 0.5), ClockReading(10_000.0, 702.0, 9.0)
    clock = HostClock.of([bad, good])
    assert clock.correction()(10_700.0) == pytest.approx(10_000.0)
    assert clock.bounds(9_000, 10_000)[0].bound_ms < 4.0


def test_what_is_told_when_it_is_over_keeps_its_moment() -> None:
    """As of Apache's programs, of which a log line says later what the wire had shown."""
    correct = HostClock.of([ClockReading(0.0, 700.0, 0.5), ClockReading(10_000.0, 700.0, 0.5)]).correction()
    assert [correct(ms) for ms in (5_700, 8_700, 6_200, 8_800)] == pytest.approx([5_000, 8_000, 5_500, 8_100])


def test_a_recorded_reading_is_read_back_at_the_harnesss_own_time() -> None:
    reading = ClockReading.of(1_000.0, 1_701.0, 1_002.0)
    row = {"host_ms": reading.host_ms, "offset_ms": reading.offset_ms, "bound_ms": reading.bound_ms}
    assert reading_of(row) == reading == (1_001.0, 700.0, 1.0)
