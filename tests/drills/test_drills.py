"""What drills on real clusters measured is inside the windows that RocketMQ's timers allow, and so is what we do."""

from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import find, shipped
from tests.drills.intervals import FIELD_EXACT_S, INTERVALS, OURS, Interval, Recorded
from tests.drills.page import key_of, measured

names = pytest.mark.parametrize("interval", INTERVALS, ids=key_of)


@names
def test_the_fields_number_is_inside_what_rocketmqs_timers_allow(interval: Interval) -> None:
    assert interval.allows_all(interval.field, FIELD_EXACT_S)


@names
def test_what_was_measured_here_is_inside_too(interval: Interval) -> None:
    for implementation, found in measured().items():
        values = found["values"].get(key_of(interval))
        assert values is not None or implementation != OURS
        assert values is None or interval.on(implementation).allows_all(values, FIELD_EXACT_S), implementation


def test_an_interval_outside_its_window_is_told() -> None:
    by_what = {key_of(each): each for each in INTERVALS}
    drop = by_what["drill-3-power-off: power off of broker-a to its drop"]
    assert not drop.allows_all([89.0])
    assert not drop.allows_all([100.0, 131.0])
    assert not drop.allows_all([])
    stop = by_what["drill-2-stop: stop of broker-a to its drop"]
    assert not stop.on(OURS).allows_all([1.1])
    assert stop.on("apache-4.9.7").allows_all([2.5])
    assert not stop.on("apache-4.9.7").allows_all([5.1])
    never = by_what["drill-1-hang: a master frozen for 47 s to its drop"]
    assert not never.allows_all([46.0])
    assert never.allows_all([])


def test_every_drill_has_intervals() -> None:
    assert {interval.drill for interval in INTERVALS} == set(shipped("drills"))


@pytest.mark.nightly("test_what_was_measured_here_is_inside_too")
@pytest.mark.parametrize("name", list(shipped("drills")))
def test_a_drill_on_our_nodes_gives_the_fields_intervals(name: str, tmp_path: Path) -> None:
    scenario = find(name)
    folder = record_virtual(scenario, 1, tmp_path / "run").path
    run = Recorded.of(folder)
    for interval in INTERVALS:
        if interval.drill == name:
            assert interval.allows_all(interval.read(run)), interval.what
    judged = {verdict.name: str(verdict.verdict) for verdict in verdicts(folder) if verdict.name in scenario.checks}
    assert set(judged.values()) == {"VALID"}, judged
