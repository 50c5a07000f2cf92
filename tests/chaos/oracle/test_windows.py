"""The computed bounds against the figures of the project's failure-detection table, at RocketMQ's default timers.

Each row of its sections 1 to 4 is a row here: its name, the profile, what is computed, and the figure it must be.
"""

from typing import Any

import pytest

from nemesrv.chaos.faults.fault import Delay, Loss
from nemesrv.chaos.oracle.lost_name_servers import Reach, leave_window
from nemesrv.chaos.oracle.windows import (
    NEVER,
    Timers,
    Window,
    calls_to_leave,
    client_leave_window,
    drop_window,
    return_window,
    staleness_window,
    topic_window,
)
from nemesrv.remoting.node.profile import Profile

V4 = Timers.for_profile("4.9")
V5 = Timers.for_profile("5.x")
ACTING = Timers.for_profile("5.x", E_ms=10_000, h_ms=1_000)
GO = V4.with_(A_ms=6_000.0, C_ms=6_000.0, Z=False)  # takes the next NameServer at every request
V5_PATIENT = V5.with_(E_ms=180_000, I_ms=150_000)  # its brokers close their idle channels after 120 s as ever
PATIENT = V4.with_(A_ms=40_000.0)
V4_KEEPS = Timers.for_profile("4.9", Z=False)  # up to 4.9.0 a time-out leaves the socket open


def seconds(window: Window) -> tuple[float, float]:
    return window.earliest_ms / 1000, window.latest_ms / 1000


def drop(timers: Timers, loss: Loss, **more: Any) -> Any:
    return seconds(drop_window(timers, loss, **more))


def leave(timers: Timers, loss: Loss, **more: Any) -> float:
    return client_leave_window(timers, drop_window(timers, loss), **more).latest_ms / 1000


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
    ("the broker's own idle channel is closed", V5_PATIENT, drop(V5_PATIENT, Loss.SILENT), (90, 185)),
    ("the broker's own idle channel is closed", V5_PATIENT, V5_PATIENT.with_(i_ms=160_000).silence_ms / 1000, 150),
    ("host loss, hang, two-way or broker→NS loss", ACTING, drop(ACTING, Loss.SILENT), (9, 15)),
    ("NS→broker loss, packets", V4, drop(V4, Loss.BACKWARD_PACKETS), (120, 160)),
    ("NS→broker loss, packets", V5, drop(V5, Loss.BACKWARD_PACKETS), (120, 155)),
    ("NS→broker loss, packets", ACTING, drop(ACTING, Loss.BACKWARD_PACKETS), (10, 16)),
    ("NS→broker loss, byte proxy, Z=false", V4_KEEPS, drop(V4_KEEPS, Loss.BACKWARD_PROXY), (NEVER, NEVER)),
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
    ("consumer releases dead queues, hang", V4, leave(V4, Loss.SILENT, consumer=True), 180),
    ("consumer releases dead queues, hang", V5, leave(V5, Loss.SILENT, consumer=True), 175),
    ("consumer releases dead queues: + 50", V4, leave(V4, Loss.CRASH, consumer=True), 50),
    ("J: 3 s for each unreachable broker", V4, leave(V4, Loss.CRASH, hung_brokers=2), 36),
]


REFUSED, SYN, DEAF, RESETS = Reach
SECTION_4: list[tuple[str, Timers, Any, Any]] = [
    ("staleness k·P + A, k = 0", V4, staleness_window(V4, 0).latest_ms, 3_000),
    ("staleness k·P + A, k = 1", V5, staleness_window(V5, 1).latest_ms, 33_000),
    ("staleness k·P + A, k = 2", V5, staleness_window(V5, 2).latest_ms, 63_000),
    ("staleness of a client that never leaves", V4, staleness_window(V4, NEVER).latest_ms, NEVER),
    ("left: the call resets the channel", V4, leave_window(V4, RESETS).latest_ms, 60_000),
    ("left: a refused port", V4, leave_window(V4, REFUSED).latest_ms, 30_000),
    ("left: a refused port", V5, leave_window(V5, REFUSED).latest_ms, 30_000),
    ("left: one call fails first", V4, leave_window(V4, DEAF).latest_ms, 60_000),
    ("left: one call fails first", V5, leave_window(V5, DEAF).latest_ms, 60_000),
    ("left: the failed call outlasts the next poll", PATIENT, leave_window(PATIENT, DEAF).latest_ms, 70_000),
    ("left: SYN dropped", V4, leave_window(V4, SYN).latest_ms, 63_000),
    ("left: it takes the next one anyhow", GO, leave_window(GO, REFUSED, each_request=True).latest_ms, 30_000),
    ("left: one try fails first", GO, leave_window(GO, DEAF, each_request=True).latest_ms, 36_000),
    ("left: SYN dropped at one try", V4, leave_window(V4, SYN, each_request=True).latest_ms, 33_000),
]


def named(rows: list[tuple[str, Any, Any, Any]]) -> list[Any]:
    return [
        pytest.param(computed, figure, id=f"{row} [{_profile(of)}] {number}")
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
    ("loss", "delay", "reach"),
    [
        (Loss.CLOSED, None, REFUSED),
        (Loss.CRASH, None, REFUSED),
        (Loss.GRACEFUL, None, REFUSED),
        (Loss.RESET, None, RESETS),
        (Loss.SILENT, None, DEAF),
        (Loss.BACKWARD_PROXY, None, DEAF),
        (Loss.SLOW, Delay(2000, 2000, 0), DEAF),
        (Loss.SLOW, Delay(1400, 1400, 200), None),
        (Loss.SLOW, None, None),
        (Loss.OTHER, None, None),
    ],
)
def test_how_a_lost_name_server_looks_to_a_client(loss: Loss, delay: Delay | None, reach: Reach | None) -> None:
    assert Reach.of(loss, delay, V4) is reach


def test_lost_packets_drop_the_dial_that_a_proxy_would_accept() -> None:
    for loss in (Loss.SILENT, Loss.BACKWARD_PACKETS):
        assert (Reach.of(loss, None, V4), Reach.of(loss, None, V4, packets=True)) == (DEAF, SYN)


def test_hung_brokers_and_failed_name_server_calls_delay_the_poll() -> None:
    removal = drop_window(V4, Loss.SILENT)
    window = client_leave_window(V4, removal, hung_brokers=1, failed_calls=1)
    assert window.latest_ms == 160_000 + 3_000 + 33_000
    assert window.formula == "(E - R .. E + S) + P + J (A·1 hung brokers) + 1·P + A"


def test_the_profiles_clients_lose_calls_by_the_kind_of_loss() -> None:
    assert [calls_to_leave(profile, Loss.CRASH) for profile in Profile] == [0, 1]
    assert [calls_to_leave(profile, Loss.SILENT) for profile in Profile] == [1, 1]


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
