"""The computed bounds against the figures of the project's failure-detection table, at default timers."""

from __future__ import annotations

import pytest

from nemesrv.chaos.windows import (
    NEVER,
    Loss,
    Timers,
    client_leave_window,
    drop_window,
    failed_calls,
    return_window,
    staleness_window,
    topic_window,
)
from nemesrv.remoting.profile import Profile

V4 = Timers.for_profile("4.9")
V5 = Timers.for_profile("5.x")
ACTING = Timers.for_profile("5.x", acting_master=True)


@pytest.mark.parametrize(
    ("timers", "loss", "bounds_s"),
    [
        (V4, Loss.CRASH, (0, 0)),
        (V5, Loss.CRASH, (0, 0)),
        (V4, Loss.CLOSED, (0, 0)),
        (V4, Loss.SILENT, (90, 130)),
        (V5, Loss.SILENT, (90, 125)),
        (ACTING, Loss.SILENT, (9, 15)),
        (V4, Loss.BACKWARD_PACKETS, (120, 160)),
        (V5, Loss.BACKWARD_PACKETS, (120, 155)),
        (ACTING, Loss.BACKWARD_PACKETS, (10, 16)),
        (V4, Loss.BACKWARD_PROXY, (0, NEVER)),
        (V4, Loss.SLOW, (0, NEVER)),
    ],
)
def test_a_name_server_drops_a_lost_broker_within_the_tables_bounds(
    timers: Timers, loss: Loss, bounds_s: tuple[float, float]
) -> None:
    window = drop_window(timers, loss)
    assert (window.earliest_ms / 1000, window.latest_ms / 1000) == bounds_s


def test_a_clean_stop_waits_three_seconds_for_each_dead_name_server() -> None:
    assert [drop_window(V4, Loss.GRACEFUL, dead_name_servers=n).latest_ms for n in range(3)] == [0, 3000, 6000]


def test_a_timeout_toxic_drops_as_soon_as_the_broker_gives_up_its_registration() -> None:
    assert drop_window(V4, Loss.DROPPED).latest_ms == 36_000
    assert drop_window(V5, Loss.DROPPED).latest_ms == 54_000


@pytest.mark.parametrize(("timers", "topic_s"), [(V4, 36), (V5, 54)])
def test_a_broker_is_back_after_a_tick_and_a_connect_and_a_topic_after_a_tick_and_a_time_out(
    timers: Timers, topic_s: float
) -> None:
    assert return_window(timers).latest_ms == 33_000
    assert topic_window(timers).latest_ms == topic_s * 1000


@pytest.mark.parametrize(
    ("timers", "loss", "producer_s", "consumer_s"),
    [
        (V4, Loss.CRASH, 30, 50),
        (V4, Loss.SILENT, 160, 180),
        (V5, Loss.SILENT, 155, 175),
        (ACTING, Loss.SILENT, 45, 65),
        (V4, Loss.SLOW, NEVER, NEVER),
    ],
)
def test_a_client_leaves_a_dead_broker_one_poll_and_a_consumer_one_rebalance_after_its_removal(
    timers: Timers, loss: Loss, producer_s: float, consumer_s: float
) -> None:
    removal = drop_window(timers, loss)
    assert client_leave_window(timers, removal).latest_ms / 1000 == producer_s
    assert client_leave_window(timers, removal, consumer=True).latest_ms / 1000 == consumer_s


def test_hung_brokers_and_failed_name_server_calls_delay_the_poll() -> None:
    removal = drop_window(V4, Loss.SILENT)
    window = client_leave_window(V4, removal, hung_brokers=1, failed_calls=1)
    assert window.latest_ms == 160_000 + 3_000 + 33_000
    assert window.formula == "(E - R .. E + S) + P + J (A·1 hung brokers) + 1·P + A"


def test_a_failed_call_costs_one_poll_of_staleness() -> None:
    assert [staleness_window(V4, k).latest_ms for k in (0, 1, 2)] == [3_000, 33_000, 63_000]
    assert [failed_calls(profile, Loss.CRASH) for profile in Profile] == [0, 1]
    assert [failed_calls(profile, Loss.SILENT) for profile in Profile] == [1, 1]


@pytest.mark.parametrize(
    ("fault", "injection", "stream", "value", "loss"),
    [
        ("kill", "sigkill", None, {}, Loss.CRASH),
        ("stop", "sigterm", None, {}, Loss.GRACEFUL),
        ("pause", "sigstop", None, {}, Loss.SILENT),
        ("cut", "toxiproxy.disabled", "both", {}, Loss.CLOSED),
        ("black_hole", "toxiproxy.bandwidth.rate=0", "both", {}, Loss.SILENT),
        ("black_hole", "toxiproxy.bandwidth.rate=0", "upstream", {}, Loss.SILENT),
        ("black_hole", "toxiproxy.bandwidth.rate=0", "downstream", {}, Loss.BACKWARD_PROXY),
        ("black_hole", "toxiproxy.timeout", "both", {}, Loss.DROPPED),
        ("black_hole", "packet_drop", "downstream", {}, Loss.BACKWARD_PACKETS),
        ("reset", "toxiproxy.reset_peer", "both", {}, Loss.RESET),
        ("latency", "toxiproxy.latency", "both", {"latency_ms": 100, "jitter_ms": 50}, Loss.HARMLESS),
        ("latency", "toxiproxy.latency", "both", {"latency_ms": 2000}, Loss.SLOW),
        ("latency", "toxiproxy.latency", "both", {}, Loss.SLOW),
        ("bandwidth", "toxiproxy.bandwidth", "both", {"rate_kb_s": 10}, Loss.SLOW),
        ("solar_flare", "the sun", None, {}, Loss.OTHER),
    ],
)
def test_the_injection_of_a_fault_decides_its_row(
    fault: str, injection: str, stream: str | None, value: dict[str, float], loss: Loss
) -> None:
    assert Loss.of(fault, injection, stream, value, V4) is loss


def test_timers_travel_through_the_begin_of_a_run() -> None:
    timers = Timers.for_profile("5.x", time_scale=10, P_ms=10_000)
    document = {"profile": "5.x", "time_scale": 10, "timers": timers.to_json()}
    assert Timers.from_json(document) == timers
    assert Timers.from_json({}) == V4


def test_an_unknown_or_impossible_timer_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown timer 'X_ms'"):
        Timers.for_profile("4.9", X_ms=1)
    with pytest.raises(ValueError, match="timer R_ms is 0"):
        Timers.for_profile("4.9", R_ms=0)
    with pytest.raises(ValueError, match="acting-master"):
        Timers.for_profile("4.9", acting_master=True)
