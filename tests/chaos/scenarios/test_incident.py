"""`incident:` and `promises:` of a scenario: what the fix makes of it, and what is judged."""

from pathlib import Path

import pytest

from nemesrv.chaos.scenarios.loading import fixed, load, parse, shipped


@pytest.mark.parametrize("name", shipped("incidents"))
def test_a_shipped_incident_and_its_fix_stay_the_same_when_written_out(name: str, tmp_path: Path) -> None:
    path = shipped("incidents")[name]
    as_it_was, with_its_fix = load(path), fixed(path)
    assert as_it_was.incident is not None
    assert with_its_fix.incident is None
    assert as_it_was != with_its_fix.model_copy(update={"name": name, "incident": as_it_was.incident})
    for scenario in (as_it_was, with_its_fix):
        copy = tmp_path / f"{scenario.name}.yaml"
        copy.write_text(scenario.to_yaml(), encoding="utf-8")
        assert load(copy) == scenario


def test_a_promise_is_judged_even_if_the_scenario_lists_other_checks() -> None:
    scenario = parse({"checks": ["routes_converge"], "promises": {"brokers_left_within_s": 20}}, file="x.yaml")
    assert scenario.checks == ("routes_converge", "dead_brokers_avoided")


def test_a_floor_is_judged_as_a_promise_is() -> None:
    scenario = parse({"checks": ["routes_converge"], "availability_floor": 0.9999}, file="x.yaml")
    assert scenario.checks == ("routes_converge", "availability")
    assert parse({"checks": list(scenario.checks), "availability_floor": 0}, file="x.yaml").checks == scenario.checks
    assert parse({"checks": ["routes_converge"]}, file="x.yaml").promised == ()
