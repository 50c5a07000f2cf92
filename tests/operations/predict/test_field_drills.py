"""Predictions held against what drills on real clusters measured: three NameServers, default timers, client 4.9.7."""

import random
from collections.abc import Iterable
from statistics import median

import pytest

from nemesrv.chaos.checks.record.recoveries import percentile
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.operations.predict.faults import PredictOptions, scenario_of
from nemesrv.operations.predict.prediction import Prediction, predict
from nemesrv.operations.predict.recovery_times import DROPPED, LAST_FAILED
from tests.drills.intervals import FIELD_EXACT_S, INTERVALS, THREADS

CLEAN = LAST_FAILED, "producers"
"""The field's eight threads shared a client, and so its polls: eight clients had not all polled 10 s after a stop."""
NEW_LEADER_S = (5, 28)
"""Drill 8: from a true table to clients that use it, after a DLedger leader was frozen and another took over."""
FLAT_OUT = 100.0
"""The field's threads sent as fast as they could: against the 3 s of a send that nobody answers this is as good."""


def of(fault: str, lasts_s: float, *, runs: int, producers: int = THREADS, sends_per_s: float = 1) -> Prediction:
    asked = PredictOptions(
        fault=fault, lasts_s=lasts_s, producers=producers, consumers=0, sends_per_s=sends_per_s, retries=0
    )
    (prediction,) = predict(fault, scenario_of(asked, ("settle_s=5",)), runs=runs).predictions
    return prediction


def seconds(prediction: Prediction, what: str, who: str = "ns-") -> list[float]:
    """Of all whose name begins so."""
    return [
        value / 1000
        for quantity, values in prediction.quantities.items()
        if quantity.what == what and quantity.who.startswith(who)
        for value in values
    ]


@pytest.fixture(scope="module")
def power_off() -> Prediction:
    return of("black-hole", 160, runs=8)


@pytest.fixture(scope="module")
def stop() -> Prediction:
    return of("stop", 40, runs=8)


def middle(values: list[float]) -> float:
    found = percentile(values, 0.5)
    assert found is not None
    return found


def field(what: str) -> list[float]:
    found = [value for interval in INTERVALS if what in interval.what for value in interval.field]
    assert found, what
    return found


def pairs(power_off: Prediction, stop: Prediction) -> list[tuple[float, list[float]]]:
    """Each measured interval of the field with what is predicted of it."""
    dropped, clean, left = seconds(power_off, DROPPED), seconds(power_off, *CLEAN), seconds(stop, *CLEAN)
    return [
        *((value, dropped) for value in field("power off of broker")),
        *((value, clean) for value in field("power off of the master to the last failed send")),
        *((value, left) for value in field("stop of the master to the last failed send")),
        *((value, left) for value in NEW_LEADER_S),
    ]


def test_every_measured_interval_is_inside_the_predicted_range(power_off: Prediction, stop: Prediction) -> None:
    found = pairs(power_off, stop)
    assert len(found) == 10
    for value, predicted in found:
        assert min(predicted) - FIELD_EXACT_S <= value <= max(predicted) + FIELD_EXACT_S, value


def test_the_fields_median_is_within_ten_values_of_the_predicted(power_off: Prediction, stop: Prediction) -> None:
    """4.5 s, 15 % of the poll period, where nine in ten such sets of ten lie within more: a tenth cannot be asked of
    them."""
    found, rng = pairs(power_off, stop), random.Random(1)
    centres = [middle(predicted) for _, predicted in found]

    def apart(values: Iterable[float]) -> float:
        return abs(median(value - centre for value, centre in zip(values, centres, strict=True)))

    by_chance = sorted(apart(rng.choice(predicted) for _, predicted in found) for _ in range(1_000))
    assert apart(value for value, _ in found) <= by_chance[900]
    assert by_chance[900] > Timers.for_profile("4.9").P_ms / 1000 / 10


def test_a_stop_is_seen_at_once(stop: Prediction) -> None:
    for value in field("stop of broker-a to its drop"):
        assert abs(value - middle(seconds(stop, DROPPED))) <= FIELD_EXACT_S


@pytest.mark.parametrize(("frozen_s", "failed"), [(47.5, 128), (54.5, 152)])
def test_a_frozen_master_is_never_dropped_and_costs_the_fields_sends(frozen_s: float, failed: int) -> None:
    """Its times are known to the second. 125 and 144 are n·f/T."""
    some = 2
    prediction = of("hang", frozen_s, runs=1, producers=some, sends_per_s=FLAT_OUT)
    assert set(seconds(prediction, DROPPED)) == {float("inf")}
    assert prediction.sends[0] * THREADS / some == pytest.approx(failed, rel=0.1)
