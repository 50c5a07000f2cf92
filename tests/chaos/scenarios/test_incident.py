"""`incident:` and `promises:` of a scenario: what is refused, and what the fix makes of it."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios.loading import fixed, load, parse, shipped
from tests.refusals import refusal

INCIDENT: dict[str, Any] = {
    "upstream": ["apache/rocketmq#7056"],
    "reported": "Route queries never succeed.",
    "breaks": "NS-FAILOVER",
    "found_by": ["recovery_time"],
    "fixed": {"by": "5.1.4", "sets": {"cluster.profile": "5.x"}},
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"found_by": ["recovry_time"]}, "incident.found_by.0: 'recovry_time' is not allowed; expected "
        "one of the scenario's"),
        ({"found_by": ["recovry_time"]}, "did you mean recovery_time?"),
        ({"found_by": ["one_master"]}, "one of the scenario's checks (recovery_time)"),
        ({"found_by": []}, "incident.found_by: [] is not allowed"),
        ({"upstream": []}, "incident.upstream: [] is not allowed"),
        ({"fixed": {"by": "5.1.4"}}, "incident.fixed.sets: expected"),
        ({"fixed": {"by": "5.1.4", "sets": {"cluster.profile": "6"}}}, "incident.fixed.sets.cluster.profile: '6' is"),
        ({"fixed": {"by": "5.1.4", "sets": {"cluster.profil": "5.x"}}}, "incident.fixed.sets.cluster.profil: '5.x' is"),
        ({"fixed": {"by": "x", "sets": {"timeline.4.at_s": 1}}}, "incident.fixed.sets.timeline.4.at_s: 4 is not"),
        ({"cause": "x"}, "incident.cause: 'x' is not allowed; expected one of the keys breaks, fixed, found_by, rep"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(changed: dict[str, Any], said: str) -> None:
    timeline = [{"at_s": 20, "do": "kill", "nodes": ["broker-a"]}]
    document = {"checks": ["recovery_time"], "timeline": timeline, "incident": {**INCIDENT, **changed}}
    with pytest.raises(ScenarioError) as error:
        parse(document, file="x.yaml")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("promises", "said"),
    [
        ({"tables_agree_within_s": 0}, "promises.tables_agree_within_s: 0 is not allowed; expected a number above 0"),
        (
            {"delivered_within_s": 4},
            "promises.delivered_within_s: 4 is not allowed; expected a number from 5 to 100,000",
        ),
        ({"masters_stay": "perhaps"}, "promises.masters_stay: 'perhaps' is not allowed; expected true or false"),
        ({"wipes_lasts": 5}, "did you mean wipes_last?"),
    ],
)
def test_a_promise_that_cannot_be_is_said(promises: dict[str, Any], said: str) -> None:
    with refusal(said):
        parse({"checks": ["routes_converge"], "promises": promises}, file="x.yaml")


@pytest.mark.parametrize("name", shipped("incidents"))
def test_a_shipped_incident_and_its_fix_are_scenarios_and_say_the_same_when_written_out(
    name: str, tmp_path: Path
) -> None:
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
