"""Scenario files: what is shipped is sound, and what is wrong is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios import model


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_scenarios_that_ship() -> None:
    assert set(model.shipped()) == {
        "smoke",
        "broker-partition",
        "broker-crash",
        "broker-hang",
        "name-server-crash",
        "name-server-partition",
        "starts",
    }


@pytest.mark.parametrize("name", sorted(model.shipped()))
def test_a_scenario_written_with_its_defaults_loads_as_the_same_scenario(name: str, tmp_path: Path) -> None:
    scenario = model.find(name)
    assert model.load(write(tmp_path, scenario.to_yaml())) == scenario
    assert scenario.description


@pytest.mark.parametrize(
    ("text", "key", "value", "allowed"),
    [
        ("checks: [routes_converge]\nclustr: {}", "clustr", "{}", "cluster"),
        ("checks: [no_such]", "checks.0", "'no_such'", "routes_converge"),
        ("checks: []", "checks", "[]", "at least 1"),
        ("{}", "checks", "", "required"),
        ("checks: [routes_converge]\ncluster: {brokers: 0}", "cluster.brokers", "0", "greater than or equal to 1"),
        ("checks: [routes_converge]\ncluster: {profile: '6'}", "cluster.profile", "'6'", "'4.9' or '5.x'"),
        ("checks: [routes_converge]\ncluster: {bokers: 3}", "cluster.bokers", "3", "brokers, external, name_servers"),
        ("checks: [routes_converge]\ntimers: {time_scale: 0}", "timers.time_scale", "0", "greater than 0"),
        (
            "checks: [routes_converge]\ntimeline: [{at_s: 5, do: explode}]",
            "timeline.0.do",
            "'explode'",
            "'black_hole'",
        ),
        (
            "checks: [routes_converge]\ntimeline: [{at_s: 5, do: kill, nodes: [broker-z]}]",
            "timeline.0.nodes",
            "'broker-z'",
            "broker-a",
        ),
        (
            "checks: [routes_converge]\ntimeline: [{at_s: 5, do: kill}]",
            "timeline.0",
            "",
            "needs `nodes`",
        ),
        (
            "checks: [routes_converge]\ntimeline: [{at_s: 5, do: cut, links: ['broker-a <-> ns-9']}]",
            "timeline.0.links",
            "'broker-a <-> ns-9'",
            "ns-9",
        ),
        (
            "checks: [routes_converge]\ntimeline: [{at_s: 9, do: heal}, {at_s: 5, do: heal}]",
            "timeline.1.at_s",
            "5",
            "ascending",
        ),
        ("[1, 2]", "", "list", "mapping"),
        ("a: [", "line", "", "well-formed YAML"),
    ],
)
def test_a_wrong_scenario_names_file_key_value_and_what_is_allowed(
    text: str, key: str, value: str, allowed: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ScenarioError) as error:
        model.load(path)
    assert error.value.file == str(path)
    assert key in error.value.key
    assert value in error.value.value
    assert allowed in error.value.allowed
    assert "\n" not in str(error.value)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(ScenarioError, match="broker-partition"):
        model.find("broker-partitoin")


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        model.find(str(tmp_path / "absent.yaml"))
