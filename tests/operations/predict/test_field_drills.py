"""Predictions held against what drills on real clusters measured: three NameServers, default timers, client 4.9.7."""

from __future__ import annotations

import random
from collections.abc import Iterable
from statistics import median

import pytest

from nemesrv.chaos.oracle.timers import Timers
from nemesrv.operations.predict.distribution import quantile
from nemesrv.operations.predict.prediction import Prediction, predict
from nemesrv.operations.predict.quantities import DROPPED, LAST_FAILED, Quantity
from nemesrv.operations.predict.subject import Asked, scenario_of
from tests.drills.intervals import FIELD_EXACT_S, INTERVALS, THREADS

DROP = Quantity("ns-0", DROPPED, "broker-a")
CLEAN = Quantity("producers", LAST_FAILED, "")
"""The field's eight threads shared a client, and so its polls: eight clients had not all polled 10 s after a stop."""
NEW_LEADER_S = (5, 28)
"""Drill 8: from a true table to clients that use it, after a DLedger leader was frozen and another took over."""
FLAT_OUT = 1_000.0
"""The field's threads sent as fast as they could."""


def of(fault: str, lasts_s: float, sends_per_s: float = 5, retries: int = 0) -> Prediction:
    asked = Asked(fault=fault, lasts_s=lasts_s, producers=THREADS, sends_per_s=sends_per_s, retries=retries)
    (prediction,) = predict(fault, scenario_of(asked), draws=200).predictions
    return prediction


def seconds(prediction: Prediction, quantity: Quantity) -> list[float]:
    assert prediction.model is not None
    return [value / 1000 for value in prediction.model.told[quantity].values]


@pytest.fixture(scope="module")
def power_off() -> Prediction:
    return of("black-hole", 250)


@pytest.fixture(scope="module")
def stop() -> Prediction:
    return of("stop", 90)


def field(what: str) -> list[float]:
    found = [value for interval in INTERVALS if what in interval.what for value in interval.field]
    assert found, what
    return found


def pairs(power_off: Prediction, stop: Prediction) -> list[tuple[float, list[float]]]:
    """Each measured interval of the field with what is predicted of it."""
    dropped, clean, left = seconds(power_off, DROP), seconds(power_off, CLEAN), seconds(stop, CLEAN)
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


def test_the_fields_median_is_as_far_from_the_predicted_as_ten_values_scatter(
    power_off: Prediction, stop: Prediction
) -> None:
    """4.5 s, 15 % of the poll period, where nine in ten such sets of ten lie within more: a tenth cannot be asked of
    them. Of the hundreds of values of virtual runs it is (test_runs.py)."""
    found, rng = pairs(power_off, stop), random.Random(1)
    centres = [quantile(predicted, 0.5) for _, predicted in found]

    def apart(values: Iterable[float]) -> float:
        return abs(median(value - centre for value, centre in zip(values, centres, strict=True)))

    by_chance = [apart(rng.choice(predicted) for _, predicted in found) for _ in range(1_000)]
    assert apart(value for value, _ in found) <= quantile(by_chance, 0.9)
    assert quantile(by_chance, 0.9) > Timers.for_profile("4.9").P_ms / 1000 / 10


def test_a_stop_is_seen_at_once(stop: Prediction) -> None:
    for value in field("stop of broker-a to its drop"):
        assert abs(value - quantile(seconds(stop, DROP), 0.5)) <= FIELD_EXACT_S


@pytest.mark.parametrize(("frozen_s", "failed"), [(47.5, 128), (54.5, 152)])
def test_a_frozen_master_is_never_dropped_and_costs_the_fields_sends(frozen_s: float, failed: int) -> None:
    """Its times are known to the second. 125 and 144 are n·f/T."""
    prediction = of("hang", frozen_s, FLAT_OUT)
    assert set(seconds(prediction, DROP)) == {float("inf")}
    assert prediction.model is not None
    assert prediction.model.sends is not None
    assert prediction.model.sends.failed == pytest.approx(failed, rel=0.1)
