"""The window model: each fault's distribution has the ends, and the middle, that windows.md gives."""

from __future__ import annotations

import math

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios.loading import find, parse
from nemesrv.operations.predict.distribution import NEVER, by_chance, distance, quantile
from nemesrv.operations.predict.prediction import Prediction, Told, Way, predict
from nemesrv.operations.predict.quantities import BACK, DROPPED, LAST_FAILED, LEFT, RELEASED, ROUTE, Quantity
from nemesrv.operations.predict.sends import Attempt, sends
from nemesrv.operations.predict.subject import KINDS, Asked, scenario_of, subjects_of
from nemesrv.operations.predict.thread import Job, first_run_ms


def told(fault: str, *sets: str, **asked: object) -> dict[Quantity, Told]:
    return way(fault, *sets, **asked).told


def way(fault: str, *sets: str, **asked: object) -> Way:
    scenario = scenario_of(Asked(fault=fault, **asked), sets)  # type: ignore[arg-type]
    (prediction,) = predict(fault, scenario, draws=200).predictions
    assert prediction.model is not None, prediction.no_figure
    return prediction.model


def ends_s(found: Told) -> tuple[float, float, float]:
    """Least, median and most, in seconds."""
    return tuple(value / 1000 for value in (min(found.values), quantile(found.values, 0.5), max(found.values)))  # type: ignore[return-value]


def near(value: float, tolerance: float = 3.0) -> object:
    return pytest.approx(value, abs=tolerance)


def test_every_fault_that_is_named_has_a_figure() -> None:
    for fault in KINDS:
        (prediction,) = predict(fault, scenario_of(Asked(fault=fault, producers=1)), draws=10).predictions
        assert prediction.model is not None, prediction.no_figure
        assert prediction.model.told, fault


def test_a_crash_is_seen_at_once_and_left_at_the_next_poll() -> None:
    found = told("crash", retries=0)
    assert ends_s(found[Quantity("ns-1", DROPPED, "broker-a")]) == (0, 0, 0)
    assert ends_s(found[Quantity("producers", ROUTE, "broker-a")]) == (near(0, 1), near(15), near(30, 1))
    released = ends_s(found[Quantity("consumers", RELEASED, "broker-a")])
    assert released[0] >= 0
    assert released[1] == near(25, 4)
    assert released[2] <= 50


def test_retries_mask_a_crash_and_do_not_mask_a_hang() -> None:
    crash, hang = way("crash", retries=2), way("hang", retries=2)
    assert crash.sends is not None
    assert crash.sends.failed == 0
    assert hang.sends is not None
    assert hang.sends.failed > 50


def test_a_hang_is_dropped_between_e_minus_r_and_i_by_the_idle_channel() -> None:
    found = told("hang")
    assert ends_s(found[Quantity("ns-0", DROPPED, "broker-a")]) == (near(90, 1), near(105), near(120, 1))
    assert ends_s(found[Quantity("producers", ROUTE, "broker-a")]) == (near(92, 5), near(120), near(149, 3))


def test_a_short_hang_is_never_dropped() -> None:
    found = told("hang", lasts_s=47)
    assert set(found[Quantity("ns-0", DROPPED, "broker-a")].values) == {NEVER}
    assert 40_000 < quantile(found[Quantity("producers", LAST_FAILED, "")].values, 0.5) <= 47_000


def test_what_the_broker_does_not_hear_is_dropped_after_its_next_registration() -> None:
    found = told("one-way-back", lasts_s=240)
    assert ends_s(found[Quantity("ns-0", DROPPED, "broker-a")]) == (near(120, 1), near(135), near(150, 1))
    assert Quantity("ns-1", DROPPED, "broker-a") not in found


def test_commits_to_a_lost_host_hold_up_its_consumers_poll() -> None:
    """J: four queues and the retry topic's, C each, every 5 s; of a hung process, that accepts, nothing is held up."""
    lost, hung = (told(fault)[Quantity("consumers", ROUTE, "broker-a")] for fault in ("power-off", "hang"))
    assert quantile(lost.values, 0.9) > 160_000 > quantile(hung.values, 0.99)


def test_a_name_server_that_hangs_costs_one_poll_more_than_one_that_is_gone() -> None:
    gone, hung = (
        told(fault)[Quantity("producers", LEFT, "ns-0")] for fault in ("name-server-crash", "name-server-hang")
    )
    assert ends_s(gone) == (near(0, 1), near(15), near(30, 1))
    assert ends_s(hung) == (near(30, 1), near(45), near(60, 1))


def test_a_name_server_started_empty_is_filled_at_each_brokers_next_tick() -> None:
    found = told("name-server-restart")[Quantity("ns-0", BACK, "")]
    assert ends_s(found) == (near(0, 1), near(15), near(30, 1))


def test_the_only_broker_of_a_topic_is_never_left() -> None:
    found = told("crash", brokers=1)
    assert set(found[Quantity("producers", ROUTE, "broker-a")].values) == {NEVER}


def test_a_slow_broker_that_answers_in_time_fails_no_send_and_a_short_budget_fails_them_all() -> None:
    fine, short = way("slow"), way("slow", "sendMsgTimeout=1000", retries=0)
    assert fine.sends is not None
    assert fine.sends.failed == 0
    assert short.sends is not None
    assert short.sends.share == pytest.approx(1 / 3, abs=0.15)


def test_settings_and_phases_count() -> None:
    fast = told("crash", "pollNameServerInterval=10000")
    assert max(fast[Quantity("producers", ROUTE, "broker-a")].values) <= 10_000
    fixed = told("hang", "phases.broker-a=25")
    assert set(fixed[Quantity("ns-0", DROPPED, "broker-a")].values) == {95_000}
    isolated = way("hang", "sendLatencyFaultEnable=true").sends
    assert isolated is not None
    assert isolated.failed <= 8


def test_slave_acting_master_is_dropped_within_ten_seconds() -> None:
    found = told("hang", "brokers.enableSlaveActingMaster=true", profile="5.x")
    least, _, most = ends_s(found[Quantity("ns-0", DROPPED, "broker-a")])
    assert least >= 8.9
    assert most <= 15.1


def test_what_the_table_has_no_figure_for_is_told_by_runs_only() -> None:
    scenario = find("drill-3-power-off")
    first, second = predict("as it is", scenario).predictions
    assert first.model is None
    assert "2 faults" in first.no_figure
    assert second.subject.start_ms == 67_000
    reset = parse(
        {
            "cluster": {"brokers": 2},
            "timeline": [
                {"at_s": 20, "do": "reset", "links": ["broker-a <-> ns-0"]},
                {"at_s": 80, "do": "heal"},
            ],
            "checks": ["exercised"],
        },
        file="reset.yaml",
    )
    (prediction,) = predict("as it is", reset).predictions
    assert prediction.model is None
    assert "reset" in prediction.no_figure


def test_a_scenario_without_a_fault_is_refused() -> None:
    with pytest.raises(ScenarioError, match="smoke: timeline: allowed is at least one fault"):
        subjects_of(find("smoke"))


def test_whole_rounds_are_counted_as_if_they_were_walked() -> None:
    round_ = [Attempt(takes_ms=3000, fails=True), Attempt(takes_ms=2), Attempt(takes_ms=2)]
    for to_ms in (1, 250, 3_300, 40_000, 47_123):
        for first in range(3):
            quick = sends(round_, from_ms=7, to_ms=to_ms, period_ms=200, first=first, released_ms=to_ms)
            at_ms, begun, failed, last_ms, place = 7.0, 0, 0, 0.0, first
            while at_ms < to_ms:
                each = round_[place % 3]
                begun += 1
                if each.fails and at_ms + each.takes_ms <= to_ms:
                    failed, last_ms = failed + 1, at_ms + each.takes_ms
                at_ms += max(200, each.takes_ms)
                place += 1
            assert (quick.begun, quick.failed, quick.last_failed_ms) == (begun, failed, last_ms), (to_ms, first)


def test_a_retry_that_comes_too_late_leaves_out_the_lost_brokers_other_queues() -> None:
    lost, good = [Attempt(takes_ms=3000, fails=True, skips=4 - number) for number in range(4)], Attempt(takes_ms=2)
    found = sends([*lost, *[good] * 8], from_ms=0, to_ms=47_500, period_ms=250, first=0)
    assert (found.begun, found.failed) == (80, 10), "seven in between: one of the next broker's was the late retry's"
    assert found.last_failed_ms == 9 * 4_750 + 3_000
    late = sends([*lost, *[good] * 8], from_ms=0, to_ms=4_751, period_ms=250, first=2)
    assert (late.begun, late.failed) == (9, 2), "who stands within the lost broker's queues leaves out fewer"


def test_a_thread_runs_one_job_at_a_time_and_catches_up() -> None:
    jobs = [Job("poll", 0, 30_000), Job("persist", 9_990, 5_000)]
    assert first_run_ms(jobs, "poll", 1, 100_000, lambda job, at_ms: 0) == 30_000
    held = first_run_ms(jobs, "poll", 1, 100_000, lambda job, at_ms: 12_000 if job == "persist" else 0)
    assert held == 9_990 + 5 * 12_000  # those due at 9.99, 14.99 .. 29.99 s, before the poll that is due at 30 s
    assert first_run_ms(jobs, "poll", 1, 20_000, lambda job, at_ms: 0) == math.inf


def test_samples_that_differ_are_told_from_samples_of_one_kind() -> None:
    even = [30 * number / 100 for number in range(100)]
    assert by_chance(even, [value + 0.1 for value in even[::5]]) > 0.5
    assert by_chance(even, [value + 15 for value in even[::5]]) < 0.001
    assert by_chance([0.0] * 20, [1.0] * 20, grain=2.0) == 1.0
    assert by_chance(even, [NEVER] * 10) < 0.001
    assert distance([1, 2, 3], [1, 2, 3]) == 0
    assert math.isnan(quantile([], 0.5))


def test_runs_far_from_the_model_are_named() -> None:
    (prediction,) = predict("crash", scenario_of(Asked(fault="crash")), draws=200).predictions
    assert prediction.model is not None
    name = Quantity("producers", ROUTE, "broker-a")
    late = Told(
        tuple(v + 20_000 for v in prediction.model.told[name].values[:40]), tuple(20_000.0 + n for n in range(40))
    )
    prediction.runs = Way(40, 1.0, {name: late})
    assert prediction.disagreements() == ["producers: broker-a out of the route"]
    same = Prediction(prediction.subject, prediction.model, "", Way(40, 1.0, {name: prediction.model.told[name]}))
    assert same.disagreements() == []
