"""Offsets are as exact as all logs together allow, and no more is claimed."""

import pytest

from nemesrv.operations.logs_to_rows.clocks import LogClock, Mark, commonest, refined

EVENTS_S = (3.0, 34.4, 61.7, 97.2, 130.9, 171.3)
HALF_MS = 500.0


def servers(**ahead_ms: float) -> list[LogClock]:
    """Logs of whole seconds that tell of the same moments; stamps stand for the middle of their second."""
    found = []
    for name, ahead in ahead_ms.items():
        stamps = [(at_s * 1000 + ahead) // 1000 * 1000 + HALF_MS for at_s in EVENTS_S]
        found.append(
            LogClock(name, 1000, [Mark(f"reg {at}", stamp) for at, stamp in zip(EVENTS_S, stamps, strict=True)])
        )
    return found


def exact(clocks: list[LogClock], near: dict[int, float]) -> tuple[dict[int, float], dict[int, float]]:
    return refined(clocks, {number: clock.marks for number, clock in enumerate(clocks)}, near)


def test_moments_in_many_parts_of_a_second_narrow_what_one_leaves_open() -> None:
    shift, bound = exact(servers(a=0.0, b=700.0), {0: 0.0, 1: 0.0})
    assert shift[1] - shift[0] == pytest.approx(700.0, abs=bound[1])
    assert bound[1] <= 1_040.0


def test_a_third_log_of_milliseconds_says_what_two_of_whole_seconds_do_not() -> None:
    clocks = servers(a=0.0, b=700.0)
    known = [Mark(f"reg {at}", at * 1000) for at in EVENTS_S]
    _, without = exact(clocks, {0: 0.0, 1: 0.0})
    shift, with_it = exact([*clocks, LogClock("c", 1, known)], {0: 0.0, 1: 0.0, 2: 0.0})
    assert with_it[1] <= without[1]
    assert shift[1] - shift[0] == pytest.approx(700.0, abs=with_it[1])


def test_clocks_that_may_be_right_are_right() -> None:
    """Of 40 ms stamps of whole seconds tell nothing, and servers set their clocks alike."""
    shift, _ = exact(servers(a=0.0, b=40.0, c=-30.0), {0: 0.0, 1: 300.0, 2: -400.0})
    assert len(set(shift.values())) == 1


def test_a_clock_that_cannot_be_right_is_not() -> None:
    shift, bound = exact(servers(a=0.0, b=0.0, c=2_700.0), {0: 0.0, 1: 0.0, 2: 2_000.0})
    assert shift[2] - shift[0] == pytest.approx(2_700.0, abs=bound[2])


def test_what_contradicts_the_surer_ones_is_left_out() -> None:
    """By a dozen moments three clocks are alike; by one of a and c a second apart."""
    known = [Mark(f"reg {at}", at * 1000) for at in EVENTS_S]
    a = LogClock("a", 1, [*known[:3], Mark("odd", 50_000.0)])
    b, c = LogClock("b", 1, known), LogClock("c", 1, [*known[3:], Mark("odd", 51_000.0)])
    shift, bound = exact([a, b, c], {0: 0.0, 1: 0.0, 2: 0.0})
    assert len(set(shift.values())) == 1
    assert bound[2] <= 100.0


def test_logs_that_share_nothing_stay_where_they_were_and_nothing_is_claimed() -> None:
    clocks = [LogClock("a", 1000, [Mark("x", 0.0)]), LogClock("b", 1000, [Mark("y", 0.0)])]
    shift, bound = exact(clocks, {0: 0.0, 1: 5_000.0})
    assert shift == {0: 0.0, 1: 5_000.0}
    assert 1 not in bound


def test_what_a_client_hears_up_to_a_poll_later_bounds_nothing() -> None:
    clocks = [LogClock(name, 1, [Mark("~told-x", 0.0), Mark("gone x", 0.0)]) for name in "ab"]
    _, bound = exact(clocks, {0: 0.0, 1: 400.0})
    assert 1 not in bound


def test_the_commonest_shift_is_that_of_most() -> None:
    assert commonest([3_600_000.0, 0.0, 200.0, -100.0]) == 0.0


def test_what_one_log_has_two_seconds_before_the_other_is_of_something_else() -> None:
    """A dial that is given up and tried again. With what is of one moment it would leave but -1 s ± 40 ms open."""
    one, other = servers(a=0.0, b=0.0)
    one.marks = [*one.marks, Mark("disc h", 150_500.0)]
    other.marks = [*other.marks, Mark("disc h", 148_500.0)]
    shift, bound = exact([one, other], {0: 0.0, 1: 0.0})
    assert shift[1] - shift[0] == pytest.approx(0.0, abs=bound[1])
    assert bound[1] == pytest.approx(1_040.0)
