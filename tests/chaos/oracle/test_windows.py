"""The computed bounds against the figures of the project's failure-detection table, at RocketMQ's default timers.

Each row of its sections 1 to 4 is a row here: its name, the profile, what is computed, and the figure it must be.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from nemesrv.chaos.oracle.name_server_windows import TCP_ABORT_MS, ClientEra, Reach, calls_failed, leave_window
from nemesrv.chaos.oracle.windows import (
    NEVER,
    Delay,
    Flapping,
    Loss,
    Survival,
    Timers,
    Window,
    client_leave_window,
    drop_window,
    failed_calls,
    flapping_of,
    partition_length,
    pause_window,
    restart_window,
    return_window,
    staleness_window,
    topic_window,
)
from nemesrv.chaos.producer_isolation import detector_window, isolation_ms
from nemesrv.clients.producer.fault_strategy import MQFaultStrategy
from nemesrv.remoting.node.profile import Profile

V4 = Timers.for_profile("4.9")
V5 = Timers.for_profile("5.x")
ACTING = Timers.for_profile("5.x", acting_master=True)
V4_KEEPS = Timers.for_profile("4.9", Z=False)  # up to 4.9.0 a time-out leaves the socket open


def seconds(window: Window) -> tuple[float, float]:
    return window.earliest_ms / 1000, window.latest_ms / 1000


def drop(timers: Timers, loss: Loss, **more: Any) -> Any:
    return seconds(drop_window(timers, loss, **more))


def leave(timers: Timers, loss: Loss, **more: Any) -> float:
    return client_leave_window(timers, drop_window(timers, loss), **more).latest_ms / 1000


def turn(timers: Timers, loss: Loss = Loss.BACKWARD_PROXY) -> Any:
    pulse = flapping_of(timers, loss)
    return pulse and (pulse.held_ms / 1000, pulse.missing_ms / 1000)


def survives(timers: Timers, length_s: float) -> Survival:
    return partition_length(timers, length_s * 1000).survival


K4, D4, L4 = Survival.KEPT, Survival.DEPENDS, Survival.LOST
SECTION_2: list[tuple[str, Timers, Any, Any]] = [
    ("process crash", V4, drop(V4, Loss.CRASH), (0, 0)),
    ("process crash", V5, drop(V5, Loss.CRASH), (0, 0)),
    ("process crash", ACTING, drop(ACTING, Loss.CRASH), (0, 0)),
    ("proxy disabled is a crash", V4, drop(V4, Loss.CLOSED), (0, 0)),
    ("graceful shutdown, every NameServer alive", V4, drop(V4, Loss.GRACEFUL), (0, 0)),
    ("graceful shutdown, one dead", V4, drop(V4, Loss.GRACEFUL, dead_name_servers=1), (0, 3)),
    ("graceful shutdown, two dead", V5, drop(V5, Loss.GRACEFUL, dead_name_servers=2), (0, 6)),
    ("graceful shutdown, two dead", ACTING, drop(ACTING, Loss.GRACEFUL, dead_name_servers=2), (0, 6)),
    ("host loss, hang, two-way or broker→NS loss", V4, drop(V4, Loss.SILENT), (90, 130)),
    ("host loss, hang, two-way or broker→NS loss", V5, drop(V5, Loss.SILENT), (90, 125)),
    ("host loss, hang, two-way or broker→NS loss", ACTING, drop(ACTING, Loss.SILENT), (9, 15)),
    ("NS→broker loss, packets", V4, drop(V4, Loss.BACKWARD_PACKETS), (120, 160)),
    ("NS→broker loss, packets", V5, drop(V5, Loss.BACKWARD_PACKETS), (120, 155)),
    ("NS→broker loss, packets", ACTING, drop(ACTING, Loss.BACKWARD_PACKETS), (10, 16)),
    ("NS→broker loss, byte proxy, Z=false", V4_KEEPS, drop(V4_KEEPS, Loss.BACKWARD_PROXY), (NEVER, NEVER)),
    ("NS→broker loss, byte proxy, Z=false", V4_KEEPS, turn(V4_KEEPS), None),
    ("NS→broker loss, byte proxy: 6 of every 30", V4, turn(V4), (6, 24)),
    ("NS→broker loss, byte proxy: 24 of every 30", V5, turn(V5), (24, 6)),
    ("NS→broker loss, byte proxy: no figure", ACTING, turn(ACTING), None),
    ("broker threads stuck", V4, drop(V4, Loss.STUCK), (NEVER, NEVER)),
    ("broker threads stuck", V5, drop(V5, Loss.STUCK), (NEVER, NEVER)),
    ("broker threads stuck", ACTING, drop(ACTING, Loss.STUCK), (NEVER, NEVER)),
    ("NameServer restart: empty up to R + C", V4, seconds(restart_window(V4)), (0, 33)),
    ("NameServer restart: empty up to R + C", V5, seconds(restart_window(V5)), (0, 33)),
    ("NameServer restart: heartbeats re-create nothing", ACTING, seconds(restart_window(ACTING)), (0, 33)),
    ("NameServer pause of 89.9 s", V4, pause_window(V4, 89_900).latest_ms, NEVER),
    ("NameServer pause of 90 s", V4, pause_window(V4, 90_000).latest_ms, 10_000),
    ("NameServer pause of 89.9 s", V5, pause_window(V5, 89_900).latest_ms, NEVER),
    ("NameServer pause of 90 s", V5, pause_window(V5, 90_000).latest_ms, 5_000),
    ("NameServer pause of 8.9 s", ACTING, pause_window(ACTING, 8_900).latest_ms, NEVER),
    ("NameServer pause of 9 s", ACTING, pause_window(ACTING, 9_000).latest_ms, 5_000),
    ("partition of 60 s", V4, survives(V4, 60), K4),
    ("partition of 60 s", V5, survives(V5, 60), K4),
    ("partition of 61 s", V4, survives(V4, 61), D4),
    ("partition of 90 s", V5, survives(V5, 90), D4),
    ("partition of 61 to 90 s: lost when φ + D > 90", V4, partition_length(V4, 75_000).lost_above_ms, 90_000),
    ("partition of 91 s", V4, survives(V4, 91), L4),
    ("partition of 100 s, as measured", V5, survives(V5, 100), L4),
    ("partition of 150 s, as measured", V4, survives(V4, 150), L4),
    ("partition of 8 s", ACTING, survives(ACTING, 8), K4),
    ("partition of 9.5 s", ACTING, survives(ACTING, 9.5), L4),
    ("timeout toxic: the broker gives up", V4, drop(V4, Loss.DROPPED), (0, 36)),
    ("timeout toxic: the broker gives up", V5, drop(V5, Loss.DROPPED), (0, 54)),
    ("reset toxic: at the next registration", V4, drop(V4, Loss.RESET), (0, 30)),
    ("slow link", V4, drop(V4, Loss.SLOW), (0, NEVER)),
    ("a fault without a row", V4, drop(V4, Loss.OTHER), (0, NEVER)),
    ("heal: back on the next tick", V4, seconds(return_window(V4)), (0, 33)),
    ("a new topic: at once or at the next tick", V4, seconds(topic_window(V4)), (0, 36)),
    ("a new topic: at once or at the next tick", V5, seconds(topic_window(V5)), (0, 54)),
]

SECTION_3: list[tuple[str, Timers, Any, Any]] = [
    ("crash with close", V4, leave(V4, Loss.CRASH), 30),
    ("crash with close", V5, leave(V5, Loss.CRASH), 30),
    ("partition, host loss, hang", V4, leave(V4, Loss.SILENT), 160),
    ("partition, host loss, hang", V5, leave(V5, Loss.SILENT), 155),
    ("partition, host loss, hang", ACTING, leave(ACTING, Loss.SILENT), 45),
    ("stuck broker, registration alive", V4, leave(V4, Loss.STUCK), NEVER),
    ("stuck broker, registration alive", V5, leave(V5, Loss.STUCK), NEVER),
    ("last broker of a topic", V4, leave(V4, Loss.CRASH, last_broker=True), NEVER),
    ("last broker of a topic", V5, leave(V5, Loss.SILENT, last_broker=True), NEVER),
    ("consumer releases dead queues, hang", V4, leave(V4, Loss.SILENT, consumer=True), 180),
    ("consumer releases dead queues, hang", V5, leave(V5, Loss.SILENT, consumer=True), 175),
    ("consumer releases dead queues: + 50", V4, leave(V4, Loss.CRASH, consumer=True), 50),
    ("consumer reads from slave: + 30", V4, leave(V4, Loss.CRASH, consumer=True, reads_from_slave=True), 30),
    ("consumer reads from slave, hang", V5, leave(V5, Loss.SILENT, consumer=True, reads_from_slave=True), 155),
    ("J: 3 s for each unreachable broker", V4, leave(V4, Loss.CRASH, hung_brokers=2), 36),
]


def k(era: ClientEra, reach: Reach, n: int, dead: int = 1, apart_s: float = 30) -> float:
    return calls_failed(era, reach, name_servers=n, dead=dead, calls_apart_ms=apart_s * 1000)


OLD, V491, V500, V514, V530 = ClientEra
REFUSED, SYN, DEAF, CLOSES, RESETS = Reach
SECTION_4: list[tuple[str, ClientEra, Any, Any]] = [
    *(("port refused", era, k(era, REFUSED, 3), 0) for era in (OLD, V491, V500, V514)),
    ("port refused: one failed call per dead entry met", V530, k(V530, REFUSED, 3), 1),
    ("port refused: 2 dead of 3, up to 2", V530, k(V530, REFUSED, 3, dead=2), 2),
    ("SYN dropped, n = 2", OLD, k(OLD, SYN, 2), 1),
    ("SYN dropped, n = 2: never recovers", V491, k(V491, SYN, 2), NEVER),
    ("SYN dropped, n = 2, calls 0.5 s apart", V500, k(V500, SYN, 2, apart_s=0.5), NEVER),
    ("SYN dropped, n = 2, calls 5 s apart", V500, k(V500, SYN, 2, apart_s=5), 1),
    ("SYN dropped, n = 2: fixed, a late but good channel is kept", V514, k(V514, SYN, 2), 1),
    ("SYN dropped, n = 2", V530, k(V530, SYN, 2), 1),
    ("SYN dropped, n ≥ 3: ≤ 1", OLD, k(OLD, SYN, 3), 1),
    ("SYN dropped, n ≥ 3: ≤ 1", OLD, k(OLD, SYN, 5, dead=3), 1),
    ("SYN dropped, n ≥ 3: two live neighbours", V491, k(V491, SYN, 3), 1),
    ("SYN dropped, n ≥ 3: two live neighbours", V491, k(V491, SYN, 5, dead=2), 2),
    ("SYN dropped, n ≥ 3: no two live neighbours", V491, k(V491, SYN, 3, dead=2), NEVER),
    ("SYN dropped, n ≥ 3: two live neighbours", V500, k(V500, SYN, 3, apart_s=0.5), 1),
    ("SYN dropped, n ≥ 3: two live neighbours", V514, k(V514, SYN, 3), 1),
    ("SYN dropped, n ≥ 3: 1 per dead entry", V530, k(V530, SYN, 3, dead=2), 2),
    ("accepts, never answers: never leaves it", OLD, k(OLD, DEAF, 3), NEVER),
    ("accepts, never answers: 1 failed call", V491, k(V491, DEAF, 3), 1),
    ("accepts, never answers: never, calls ≥ 3 s apart", V500, k(V500, DEAF, 3, apart_s=3), NEVER),
    ("accepts, never answers: calls closer than the probe", V500, k(V500, DEAF, 3, apart_s=2.9), 1),
    ("accepts, never answers: same code", V514, k(V514, DEAF, 3), NEVER),
    ("accepts, never answers: 1 failed call", V530, k(V530, DEAF, 3), 1),
    *(("closes", era, k(era, CLOSES, 3), 0) for era in ClientEra),
    *(("reset by the call itself: 1 failed call", era, k(era, RESETS, 3), 1) for era in ClientEra),
    *(("every NameServer lost", era, k(era, CLOSES, 3, dead=3), NEVER) for era in ClientEra),
    ("staleness k·P + A, k = 0", V491, staleness_window(V4, 0).latest_ms, 3_000),
    ("staleness k·P + A, k = 1", V530, staleness_window(V5, 1).latest_ms, 33_000),
    ("staleness k·P + A, k = 2", V530, staleness_window(V5, 2).latest_ms, 63_000),
    ("staleness of a client that never leaves", OLD, staleness_window(V4, NEVER).latest_ms, NEVER),
    ("up to 4.5.2 a failed call costs A", OLD, staleness_window(V4, 1, ends_round=False).latest_ms, 6_000),
    ("left: a channel that closes", V491, leave_window(V4, CLOSES).latest_ms, 33_000),
    ("left: the call resets the channel", V491, leave_window(V4, RESETS).latest_ms, 63_000),
    ("left: a refused port", V530, leave_window(V5, REFUSED).latest_ms, 33_000),
    ("left: one call fails first", V491, leave_window(V4, DEAF).latest_ms, 63_000),
    ("left: one call fails first", V530, leave_window(V5, DEAF).latest_ms, 63_000),
    ("left: never", OLD, leave_window(V4, DEAF, OLD).latest_ms, NEVER),
    ("left: never, probes", V500, leave_window(V5, DEAF, V500).latest_ms, NEVER),
    ("left: there is no other", V530, leave_window(V5, DEAF, name_servers=1).latest_ms, NEVER),
    ("the kernel gives up after 924.6 s", OLD, TCP_ABORT_MS, 924_600),
]


def named(rows: list[tuple[str, Any, Any, Any]]) -> list[Any]:
    return [
        pytest.param(computed, figure, id=f"{row} [{of if isinstance(of, ClientEra) else _profile(of)}] {number}")
        for number, (row, of, computed, figure) in enumerate(rows)
    ]


def _profile(timers: Timers) -> str:
    return f"{timers.profile}{' acting master' if timers.h_ms else ''}"


@pytest.mark.parametrize(("computed", "figure"), named(SECTION_2))
def test_when_a_name_server_drops_a_broker_is_what_the_table_says(computed: object, figure: object) -> None:
    assert computed == figure


@pytest.mark.parametrize(("computed", "figure"), named(SECTION_3))
def test_when_a_client_leaves_a_broker_is_what_the_table_says(computed: object, figure: object) -> None:
    assert computed == figure


@pytest.mark.parametrize(("computed", "figure"), named(SECTION_4))
def test_when_a_client_leaves_a_name_server_is_what_the_table_says(computed: object, figure: object) -> None:
    assert computed == figure


@pytest.mark.parametrize(
    ("version", "latency_ms", "isolated_s"),
    [
        ("5.1.3", [50, 99, 100, 549, 550, 1000, 2000, 3000, 15000], [0, 0, 0, 0, 30, 60, 120, 180, 600]),
        ("5.1.4", [50, 99, 100, 549, 550, 1800, 3000, 5000, 15000], [0, 0, 0, 0, 2, 5, 6, 10, 30]),
    ],
)
def test_a_slow_broker_is_isolated_as_long_as_the_latency_table_says(
    version: str, latency_ms: list[float], isolated_s: list[float]
) -> None:
    assert [isolation_ms(version, latency) / 1000 for latency in latency_ms] == isolated_s
    assert isolation_ms(version, 49) == 0


def test_a_send_that_failed_isolates_for_ten_minutes_up_to_5_1_3_and_for_ten_seconds_from_then_on() -> None:
    assert [isolation_ms(version, None) / 1000 for version in ("4.9.8", "5.1.3", "5.1.4", "5.3.3")] == [
        600,
        600,
        10,
        10,
    ]


@pytest.mark.parametrize(("profile", "version"), [(Profile.V4_9, "4.9.8"), (Profile.V5_X, "5.3.3")])
def test_the_oracle_and_the_producer_agree_on_how_long_a_broker_is_isolated(profile: Profile, version: str) -> None:
    strategy = MQFaultStrategy(profile, random.Random(1))
    for latency_ms in (0, 49, 50, 549, 550, 999, 1000, 1799, 1800, 2999, 3000, 5000, 14_999, 15_000, 99_000):
        assert strategy.isolation_ms(latency_ms) == isolation_ms(version, latency_ms)
    assert strategy.isolation_ms(7, failed=True) == isolation_ms(version, None)


def test_a_detected_broker_is_reachable_again_after_one_round_of_probes() -> None:
    assert detector_window().latest_ms == 3_200


def test_a_latency_toxic_that_outlasts_the_registration_makes_the_route_come_and_go_as_one_way_loss_does() -> None:
    assert flapping_of(V4, Loss.SLOW, "both", Delay(4_000, 4_000, 0)) == Flapping(
        first_ms=40_000,
        held_ms=6_000,
        missing_ms=28_000,
        formula="at most B of every R, each later by the latency",
        row="slow link, a round trip longer than B: NameServer→broker loss only, byte proxy",
    )
    assert flapping_of(V5, Loss.SLOW, "both", Delay(4_000, 4_000, 0)) is None
    assert flapping_of(V4, Loss.SLOW) is None


def test_a_delay_adds_up_over_the_directions_it_acts_on() -> None:
    value = {"latency_ms": 1000, "jitter_ms": 100}
    delays = [Delay.of("toxiproxy.latency", stream, value) for stream in (None, "upstream", "downstream")]
    assert [(d and d.round_trip_min_ms, d and d.round_trip_max_ms) for d in delays] == [
        (1800, 2200),
        (900, 1100),
        (900, 1100),
    ]
    assert Delay.of("toxiproxy.bandwidth", "both", value) is None
    assert Delay.of("toxiproxy.latency", "both", {}) is None


@pytest.mark.parametrize(
    ("version", "era"),
    [
        *(("4.3.0", OLD), ("4.9.0", OLD), ("4.9.1", V491), ("5.0.0", V500), ("5.1.3", V500)),
        *(("5.1.4", V514), ("5.2.0", V514), ("5.3.0", V530), ("5.3.3", V530)),
    ],
)
def test_each_client_version_has_its_column(version: str, era: ClientEra) -> None:
    assert ClientEra.of_version(version) is era


def test_the_profiles_are_4_9_8_and_5_3_3_and_no_version_is_refused_by_name() -> None:
    assert [ClientEra.of_profile(profile) for profile in Profile] == [V491, V530]
    for refuse in (ClientEra.of_version, lambda version: isolation_ms(version, 1)):
        with pytest.raises(ValueError, match="client version 'newest'"):
            refuse("newest")


@pytest.mark.parametrize(
    ("loss", "injection", "delay", "reach"),
    [
        (Loss.CLOSED, "toxiproxy.disabled", None, REFUSED),
        (Loss.CRASH, "sigkill", None, CLOSES),
        (Loss.GRACEFUL, "sigterm", None, CLOSES),
        (Loss.RESET, "toxiproxy.reset_peer", None, RESETS),
        (Loss.SILENT, "sigstop", None, DEAF),
        (Loss.SILENT, "toxiproxy.bandwidth.rate=0", None, DEAF),
        (Loss.BACKWARD_PROXY, "toxiproxy.bandwidth.rate=0", None, DEAF),
        (Loss.SILENT, "packet_drop", None, SYN),
        (Loss.SLOW, "toxiproxy.latency", Delay(2000, 2000, 0), DEAF),
        (Loss.SLOW, "toxiproxy.latency", Delay(1400, 1400, 200), None),
        (Loss.SLOW, "toxiproxy.bandwidth", None, None),
        (Loss.OTHER, "the sun", None, None),
    ],
)
def test_how_a_lost_name_server_looks_to_a_client(
    loss: Loss, injection: str, delay: Delay | None, reach: Reach | None
) -> None:
    assert Reach.of(loss, injection, delay, V4) is reach


def test_hung_brokers_and_failed_name_server_calls_delay_the_poll() -> None:
    removal = drop_window(V4, Loss.SILENT)
    window = client_leave_window(V4, removal, hung_brokers=1, failed_calls=1)
    assert window.latest_ms == 160_000 + 3_000 + 33_000
    assert window.formula == "(E - R .. E + S) + P + J (A·1 hung brokers) + 1·P + A"


def test_the_profiles_clients_lose_calls_by_the_kind_of_loss() -> None:
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
