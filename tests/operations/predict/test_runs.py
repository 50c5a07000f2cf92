"""Predictions by runs on the virtual clock: read from the record, and as the window model has them."""

from __future__ import annotations

import math

import pytest

from nemesrv.operations.predict.distribution import quantile
from nemesrv.operations.predict.prediction import Told, predict
from nemesrv.operations.predict.quantities import BACK, DROPPED, LAST_FAILED, LEFT, RELEASED, ROUTE, Quantity
from nemesrv.operations.predict.runs import virtual_runs
from nemesrv.operations.predict.subject import KINDS, Asked, scenario_of, subjects_of

P_MS = 30_000


def test_a_run_with_fixed_phases_recovers_when_they_say() -> None:
    sets = ("phases.producer-0=32", "phases.consumer-0=37", "phases.consumer-1=41", "settle_s=5")
    asked = Asked(fault="crash", lasts_s=45, producers=1, brokers=2, retries=0, sends_per_s=10)
    scenario = scenario_of(asked, sets)
    ((sample,),) = virtual_runs(scenario, subjects_of(scenario), 1)
    found = {quantity: [value / 1000 for value in values] for quantity, values in sample.values.items()}
    assert found[Quantity("ns-0", DROPPED, "broker-a")] == [pytest.approx(0, abs=0.01)]
    assert found[Quantity("ns-2", BACK, "broker-a")] == [pytest.approx(0, abs=0.01)]
    assert found[Quantity("producers", ROUTE, "broker-a")] == [pytest.approx(12, abs=0.05)]  # 32 s, and the crash at 20
    assert found[Quantity("consumers", ROUTE, "broker-a")] == [pytest.approx(17, abs=0.05), pytest.approx(21, abs=0.05)]
    assert found[Quantity("producers", LAST_FAILED, "")] == [pytest.approx(11.7, abs=0.5)]
    assert 17 <= found[Quantity("consumers", RELEASED, "broker-a")][0] <= 41.1
    failed, begun = sample.counts["failed sends"]
    assert failed == pytest.approx(12 * 10 / 2, abs=6)  # every second queue is at the broker that is gone
    assert begun == pytest.approx(450, abs=5)


def test_who_sat_on_a_name_server_that_hangs_leaves_it_at_its_second_poll() -> None:
    sets = ("phases.producer-0=32", "phases.producer-1=38", "settle_s=5")
    asked = Asked(fault="name-server-hang", lasts_s=65, producers=2, consumers=0, name_servers=2, brokers=1)
    scenario = scenario_of(asked, sets)
    found: list[float] = []
    for seed in range(1, 4):
        ((sample,),) = virtual_runs(scenario, subjects_of(scenario), 1, seed)
        found += sample.values.get(Quantity("producers", LEFT, "ns-0"), [])
    assert found
    assert all(any(value == pytest.approx(at_ms, abs=50) for at_ms in (42_000, 48_000)) for value in found)


@pytest.mark.parametrize(
    ("fault", "lasts_s", "dropped_s", "back_s"),
    [
        ("one-way", 150, 105, 15),  # heard last 15 s before; the channel is idle for I = E before a scan sees it
        ("one-way-back", 160, 135, 5),  # its registration 15 s later still comes, and the channel is idle for I then
        ("name-server-restart", 1, None, 14),
    ],
)
def test_a_run_with_fixed_phases_is_what_the_model_says(
    fault: str, lasts_s: float, dropped_s: float | None, back_s: float
) -> None:
    phases = ("phases.broker-a=35", "phases.ns-0=1", "settle_s=30")
    asked = Asked(fault=fault, lasts_s=lasts_s, brokers=1, producers=1, consumers=0, sends_per_s=1)
    scenario = scenario_of(asked, phases)
    (prediction,) = predict(fault, scenario, draws=5, runs=1).predictions
    assert prediction.model is not None
    assert prediction.runs is not None
    expected = {DROPPED: dropped_s, BACK: back_s}
    for what, seconds in expected.items():
        quantity = Quantity("ns-0", what, "" if dropped_s is None else "broker-a")
        if seconds is not None:
            for told in (prediction.model.told[quantity], prediction.runs.told[quantity]):
                assert {round(value / 1000, 1) for value in told.values} == {seconds}, quantity.words


@pytest.mark.parametrize("fault", list(KINDS))
def test_model_and_runs_differ_by_no_more_than_chance(fault: str) -> None:
    """And their medians by a tenth of the poll period and what 12 runs scatter."""
    scenario = scenario_of(Asked(fault=fault, retries=0))
    (prediction,) = predict(fault, scenario, runs=12).predictions
    assert prediction.model is not None
    assert prediction.runs is not None
    assert prediction.disagreements() == []
    for quantity, told in prediction.model.told.items():
        runs = prediction.runs.told.get(quantity)
        if runs is None:  # nobody sat on that NameServer
            continue
        middle, other = quantile(told.values, 0.5), quantile(runs.values, 0.5)
        if not math.isfinite(middle) or not math.isfinite(other):
            continue
        assert abs(middle - other) <= P_MS / 10 + _scatter_ms(told, len(runs.by_draw)), quantity.words


def _scatter_ms(told: Told, runs: int) -> float:
    """Three standard deviations of the median of so many draws, whose values are spread as these."""
    half = quantile(told.by_draw, 0.75) - quantile(told.by_draw, 0.25)
    return 3 * 1.25 * (half / 1.35) / math.sqrt(runs)
