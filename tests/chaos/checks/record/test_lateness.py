"""Whose lateness counts for a window: the node's own, and that of the proxies everything goes through."""

from collections.abc import Sequence

import pytest

from nemesrv.chaos.checks.record.control import told_by
from nemesrv.chaos.checks.tolerance import tolerance
from nemesrv.chaos.history.rows import to_table
from tests.chaos.builder import HistoryBuilder, address_of


def lateness(builder: HistoryBuilder, until_ms: float = 20_000) -> list[float | None]:
    """Of ns-0 and of ns-1, from 10 s on."""
    control, world = builder.facts()
    return [control.lateness.largest(world, [node], 10_000, until_ms) for node in ("ns-0", "ns-1")]


def test_the_proxies_lateness_counts_for_every_node_that_measured_its_own() -> None:
    builder = HistoryBuilder(profile="4.9")
    builder.at(15).event("ns-0", "timer_lag", lag_ms=5.0, duration_ms=1000.0)
    builder.at(16).event("toxiproxy", "timer_lag", lag_ms=3000.0, duration_ms=3000.0)
    assert lateness(builder) == [3000.0, None]  # of ns-1 nobody knows


def test_the_larger_lateness_counts_and_only_within_the_window() -> None:
    builder = HistoryBuilder(profile="4.9")
    builder.at(15).event("ns-0", "timer_lag", lag_ms=70.0, duration_ms=1000.0)
    builder.at(15).event("ns-1", "timer_lag", lag_ms=1.0, duration_ms=1000.0)
    builder.at(15).event("toxiproxy", "timer_lag", lag_ms=20.0, duration_ms=1000.0)
    builder.at(30).event("toxiproxy", "timer_lag", lag_ms=900.0, duration_ms=1000.0)
    assert lateness(builder) == [70.0, 20.0]


def test_what_a_paused_node_measured_is_left_out_up_to_a_second_past_its_resume() -> None:
    builder = HistoryBuilder(profile="4.9")
    builder.at(9).fault("f1", "pause", "sigstop", "ns-0", until_s=12)
    builder.at(12.5).event("ns-0", "timer_lag", lag_ms=3000.0, duration_ms=3500.0)
    builder.at(15).event("ns-0", "timer_lag", lag_ms=2.0, duration_ms=1000.0)
    assert lateness(builder) == [2.0, None]


def killed(*, gone_s: float | None) -> HistoryBuilder:
    """ns-0 is killed at 15 s; broker-a is 700 ms late just then, and 9,000 ms long after."""
    builder = HistoryBuilder(profile="4.9")
    builder.node("ns-0").node("broker-a").at(14).event("ns-0", "timer_lag", lag_ms=2.0, duration_ms=1000.0)
    builder.at(15).fault("f1", "kill", "sigkill", "ns-0")
    if gone_s is not None:
        builder.at(gone_s).event("harness", "gone", fault_id="f1", source="ns-0")
    builder.at(15.8).event("broker-a", "timer_lag", lag_ms=700.0, duration_ms=1000.0)
    return builder.at(19).event("broker-a", "timer_lag", lag_ms=9_000.0, duration_ms=1000.0)


def test_how_long_a_killed_process_took_to_be_gone_is_its_lateness() -> None:
    assert lateness(killed(gone_s=16.25)) == [1_250.0, None]


def test_a_death_that_nobody_timed_may_have_taken_what_any_node_was_late_just_then() -> None:
    assert lateness(killed(gone_s=None)) == [700.0, None]


def test_a_death_before_the_window_does_not_count_in_it() -> None:
    assert lateness(killed(gone_s=16.25), until_ms=14_500) == [2.0, None]


def of_broker(implementation: str | None, profile: str = "5.x") -> HistoryBuilder:
    """A broker of that implementation beside ns-0, each 1.6 s late at 15 s."""
    builder = HistoryBuilder(profile=profile, time_scale=1).node("ns-0")
    value = {"kind": "broker", **({} if implementation is None else {"implementation": implementation})}
    builder.event("harness", "node", source="broker-a", address=address_of("broker-a"), value=value)
    for node in ("ns-0", "broker-a"):
        builder.at(15).event(node, "timer_lag", lag_ms=1_600.0, duration_ms=1_000.0)
    return builder


def explained(builder: HistoryBuilder) -> bool:
    control, world = builder.facts()
    return control.lateness.explains(world, ("ns-0", "broker-a"), 16_000, 20_000)


def test_apaches_5_x_broker_gives_up_what_it_asks_its_name_server_after_3_s_and_closes_the_channel() -> None:
    assert explained(of_broker("apache-5.3.3"))
    assert not explained(of_broker("apache-4.9.7", "4.9"))  # it asks nothing but to be registered: 6 s
    assert not explained(of_broker(None))


def stood_still(builder: HistoryBuilder) -> list[tuple[str, float, float]]:
    _, world = builder.facts()
    return [(fault.source, fault.start_ms, fault.end_ms) for fault in world.faults if fault.stood_still]


def test_a_process_stood_still_from_when_its_timer_was_due_where_that_is_long_enough_for_a_time_out() -> None:
    """A is 3 s: a call times out where both its ends are 1,475 ms late."""
    builder = HistoryBuilder(profile="4.9").node("ns-0").node("broker-a")
    builder.at(15).event("ns-0", "timer_lag", lag_ms=2_500.0, duration_ms=3_400.0)
    builder.at(16).event("broker-a", "timer_lag", lag_ms=1_400.0, duration_ms=2_000.0)
    assert stood_still(builder) == [("ns-0", 12_500.0, 15_000.0)]


def test_while_toxiproxy_stood_still_every_node_did_to_whoever_asked() -> None:
    builder = HistoryBuilder(profile="4.9").node("ns-0").node("broker-a")
    builder.at(17).event("toxiproxy", "timer_lag", lag_ms=4_000.0, duration_ms=4_000.0)
    assert stood_still(builder) == [(node, 13_000.0, 17_000.0) for node in ("broker-a", "ns-0")]


def test_neither_a_pause_of_the_timeline_nor_an_inexact_log_of_apaches_is_a_stall() -> None:
    builder = HistoryBuilder(profile="4.9").node("ns-0").node("broker-a").made_by("apache-4.9.8", "broker-a")
    builder.at(9).fault("f1", "pause", "sigstop", "ns-0", until_s=12)
    builder.at(12.5).event("ns-0", "timer_lag", lag_ms=3_000.0, duration_ms=3_500.0)
    builder.at(30).event("broker-a", "timer_lag", f="inexact", lag_ms=5_000.0, duration_ms=10_000.0)
    assert stood_still(builder) == []
    builder.event("broker-a", "timer_lag", lag_ms=5_000.0, duration_ms=5_000.0)  # its process was stopped
    assert stood_still(builder) == [("broker-a", 25_000.0, 30_000.0)]


@pytest.mark.parametrize(("ran_s", "end_s"), [((), 30.0), ((10.5, 11.5), 30.0), (range(22, 30), 22.0)])
def test_a_pause_lasts_until_its_process_runs_again(ran_s: Sequence[float], end_s: float) -> None:
    builder = HistoryBuilder(profile="4.9").node("ns-0")
    builder.at(10).fault("f1", "pause", "sigstop", "ns-0", until_s=30)
    for at_s in ran_s:
        builder.at(at_s).event("ns-0", "timer_lag", lag_ms=0.0, duration_ms=1_000.0)
    _, world = told_by(to_table(builder.rows))
    (pause,) = (fault for fault in world.faults if fault.fault_id == "f1")
    assert (pause.end_ms, pause.ended_by_others) == (1000 * end_s, end_s < 30)


def test_each_chained_timer_may_be_as_late_as_was_measured_and_a_machine_later_than_r_says_nothing() -> None:
    _, world = HistoryBuilder(profile="4.9").facts()
    late, later = tolerance(world.timers, 4_000.0, 2), tolerance(world.timers, 40_000.0, 1)
    assert late.valid_up_to_ms == late.unknown_up_to_ms == world.timers.delivery_ms + 8_000
    assert later.valid_up_to_ms == world.timers.delivery_ms + world.timers.R_ms
    assert later.unknown_up_to_ms == world.timers.delivery_ms + 40_000


@pytest.mark.parametrize(("last_s", "stood_still_ms"), [(11, [8_000.0]), (18, [])])
def test_a_process_killed_at_a_stall_was_late_from_its_last_row_on(last_s: int, stood_still_ms: list[float]) -> None:
    builder = HistoryBuilder(profile="4.9").node("ns-0")
    for at_s in range(1, last_s + 1):
        builder.at(at_s).event("ns-0", "timer_lag", lag_ms=2.0, duration_ms=1000.0)
    builder.at(19).fault("f1", "kill", "sigkill", "ns-0")
    control, world = told_by(to_table(builder.rows))
    assert [fault.end_ms - fault.start_ms for fault in world.faults if fault.stood_still] == stood_still_ms
    assert control.lateness.largest(world, ["ns-0"], 12_000, 15_000) == (2.0 if last_s == 18 else 8_000.0)


def in_pieces(times: int) -> HistoryBuilder:
    """ns-0 stood still 600 ms in each of so many seconds."""
    builder = HistoryBuilder(profile="4.9")
    for second in range(11, 11 + times):
        builder.at(second).event("ns-0", "timer_lag", lag_ms=600.0, duration_ms=900.0)
        builder.at(second).event("ns-0", "timer_lag", lag_ms=400.0, duration_ms=400.0)  # the same stall, seen twice
    return builder


def test_a_process_that_stood_still_for_half_of_a_window_was_late_by_all_of_it() -> None:
    assert lateness(in_pieces(9)) == [10_000.0, None]


def test_a_process_that_stood_still_for_less_was_late_by_its_longest_stall() -> None:
    assert lateness(in_pieces(8)) == [600.0, None]
