"""Predictions by virtual runs: each quantity is read from the record, and is what RocketMQ's timers give."""

import math
from functools import cache
from unittest.mock import Mock

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.faults.fault import Loss
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.chaos.oracle.windows import drop_window
from nemesrv.chaos.scenarios.loading import find
from nemesrv.operations.predict.faults import KINDS, PredictOptions, faults_of, scenario_of
from nemesrv.operations.predict.prediction import Prediction, predict
from nemesrv.operations.predict.recovery_times import (
    BACK,
    DROPPED,
    LAST_FAILED,
    LEFT,
    NEVER,
    RELEASED,
    ROUTE,
    Quantity,
    _Run,
)

P_S = Timers.for_profile("4.9").P_ms / 1000
BROKER_IS_GONE = Quantity("producers", ROUTE, "broker-a")


@cache
def predicted(fault: str, *sets: str, runs: int = 1, seed: int = 1, **asked: float) -> Prediction:
    scenario = scenario_of(PredictOptions(fault=fault, **asked), sets)  # type: ignore[arg-type]
    (prediction,) = predict(fault, scenario, runs=runs, seed=seed).predictions
    return prediction


def seconds(prediction: Prediction, who: str, what: str, whom: str = "") -> list[float]:
    return [value / 1000 for value in prediction.quantities[Quantity(who, what, whom)]]


def test_a_run_with_fixed_phases_recovers_when_they_say() -> None:
    sets = ("phases.producer-0=32", "phases.consumer-0=37", "phases.consumer-1=41", "settle_s=5")
    found = predicted("crash", *sets, lasts_s=45, producers=1, brokers=2, retries=0, sends_per_s=10)
    assert seconds(found, "ns-0", DROPPED, "broker-a") == [pytest.approx(0, abs=0.01)]
    assert seconds(found, "ns-2", BACK, "broker-a") == [pytest.approx(0, abs=0.01)]
    assert seconds(found, "producers", ROUTE, "broker-a") == [pytest.approx(12, abs=0.05)]  # 32 s, and the crash at 20
    assert seconds(found, "consumers", ROUTE, "broker-a") == [pytest.approx(17, abs=0.05), pytest.approx(21, abs=0.05)]
    assert seconds(found, "producers", LAST_FAILED) == [pytest.approx(11.7, abs=0.5)]
    assert 17 <= seconds(found, "consumers", RELEASED, "broker-a")[0] <= 41.1
    failed, begun = found.sends
    assert failed == pytest.approx(12 * 10 / 2, abs=6)  # every second queue is at the broker that is gone
    assert begun == pytest.approx(450, abs=5)


def test_who_sat_on_a_name_server_that_hangs_leaves_it_at_its_second_poll() -> None:
    sets = ("phases.producer-0=32", "phases.producer-1=38", "settle_s=5")
    asked = {"lasts_s": 65, "producers": 2, "consumers": 0, "name_servers": 2, "brokers": 1}
    found = seconds(predicted("name-server-hang", *sets, runs=3, **asked), "producers", LEFT, "ns-0")
    assert found
    assert all(any(value == pytest.approx(at_s, abs=0.05) for at_s in (42, 48)) for value in found)


@pytest.mark.parametrize(
    ("fault", "lasts_s", "dropped_s", "back_s"),
    [
        ("one-way", 150, 105, 15),  # heard last 15 s before; the channel is idle for I = E before a scan sees it
        ("one-way-back", 160, 135, 5),  # its registration 15 s later still comes, and the channel is idle for I then
        ("name-server-restart", 1, None, 14),
    ],
)
def test_a_broker_with_a_fixed_phase_is_dropped_and_back_when_its_timers_say(
    fault: str, lasts_s: float, dropped_s: float | None, back_s: float
) -> None:
    phases = ("phases.broker-a=35", "phases.ns-0=1", "settle_s=30")
    found = predicted(fault, *phases, lasts_s=lasts_s, brokers=1, producers=1, consumers=0, sends_per_s=1)
    if dropped_s is not None:
        assert seconds(found, "ns-0", DROPPED, "broker-a") == [pytest.approx(dropped_s, abs=0.1)]
    whom = "" if dropped_s is None else "broker-a"
    assert seconds(found, "ns-0", BACK, whom) == [pytest.approx(back_s, abs=0.1)]


def test_late_registrations_whose_channel_closes_in_the_same_moment_bring_no_broker_back() -> None:
    """A black hole keeps registrations back; at its end they arrive with the end of their channels."""
    late = [148_738.1, 148_738.3]
    run = Mock(
        _fault=Mock(lasts_ms=148_738.0),
        _transitions={
            ("ns-0", "came"): [(at_ms, "broker-a", "") for at_ms in (-9e3, *late, 165_002.0)],
            ("ns-0", "lost"): [(at_ms, "broker-a", "closed") for at_ms in (105_000.0, *late)],
        },
        _held={("ns-0", "broker-a"): [(165_002.0, math.inf, "broker-a")]},
    )
    assert _Run._back_ms(run, "ns-0", "broker-a") == pytest.approx(16_264)


def test_a_broker_that_hangs_is_dropped_within_the_oracles_window_and_left_a_poll_later() -> None:
    found = predicted("hang", runs=3, lasts_s=160, consumers=0, producers=2, sends_per_s=0.5)
    window = drop_window(Timers.for_profile("4.9"), Loss.SILENT)
    dropped = seconds(found, "ns-0", DROPPED, "broker-a")
    assert len(dropped) == 3
    assert all(window.earliest_ms / 1000 <= value <= window.latest_ms / 1000 for value in dropped)
    assert all(min(dropped) <= value <= max(dropped) + P_S for value in seconds(found, "producers", ROUTE, "broker-a"))


def test_a_wipe_is_seen_in_the_route_at_the_next_poll_and_a_short_hang_never() -> None:
    wiped = predicted("wipe-write-permission", lasts_s=60, producers=2, consumers=0, sends_per_s=0.5)
    assert all(0 <= value <= P_S + 1 for value in seconds(wiped, "producers", ROUTE, "broker-a"))
    short = predicted("hang", lasts_s=47, producers=1, consumers=0)
    assert set(short.quantities[Quantity("ns-0", DROPPED, "broker-a")]) == {NEVER}
    assert set(short.quantities[BROKER_IS_GONE]) == {NEVER}


def test_every_fault_that_is_named_takes_somebody_from_somebody() -> None:
    for kind in KINDS:
        (fault,) = faults_of(scenario_of(PredictOptions(fault=kind)))
        assert fault.brokers or fault.silent, kind
        assert fault.start_ms == 20_000


def test_a_scenarios_word_names_the_same_fault() -> None:
    words = {"kill": "crash", "stop": "stop", "pause": "hang", "black_hole": "black-hole", "packet_loss": "power-off"}
    for word, kind in words.items():
        assert scenario_of(PredictOptions(fault=word)) == scenario_of(PredictOptions(fault=kind))


def test_two_faults_are_told_apart_and_a_scenario_without_one_is_refused() -> None:
    first, second = faults_of(find("drill-3-power-off"))
    assert (first.start_ms < second.start_ms, second.start_ms) == (True, 67_000)
    with pytest.raises(ScenarioError, match="smoke: timeline: expected at least one fault"):
        faults_of(find("smoke"))
