"""`nemesrv explain` says before a run what the checks judge after it: from the same windows, with the same times."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from nemesrv.chaos import explain
from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.lost_brokers import absences
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import find, load, parse, shipped

EXPLAINED = yaml.safe_load(Path(__file__).with_name("explained.yaml").read_text(encoding="utf-8"))
SLACK_MS = 100.0
"""A fault on the virtual clock takes effect some milliseconds after its time."""


def test_what_is_explained_is_what_a_run_is_judged_by(tmp_path: Path) -> None:
    timeline = [
        {"at_s": 60, "do": "black_hole", "links": ["broker-a <-> ns-0"]},
        {"at_s": 70, "do": "kill", "nodes": ["broker-b"]},
        {"at_s": 150, "do": "restart", "nodes": ["broker-b"]},
        {"at_s": 215, "do": "heal"},
        {"at_s": 220, "do": "kill", "nodes": ["ns-1"]},
        {"at_s": 230, "do": "restart", "nodes": ["ns-1"]},
        {"at_s": 400, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 500, "do": "restart", "nodes": ["broker-a"]},
    ]
    document = {"checks": ["routes_are_true"], "cluster": {"name_servers": 2, "brokers": 2}, "timeline": timeline,
                "workload": {"client_starts": 0}}  # fmt: skip
    scenario = parse(document, file="x.yaml")
    expected = expected_world(scenario).world
    recorded = World.of_rows(read_rows(record_virtual(scenario, 1, tmp_path / "run").path))
    told = [o for o in obligations(expected) if str(o.label) != "begin"]
    judged = [o for o in obligations(recorded) if str(o.label) != "begin"]
    pairs = [(o.name_server, o.incarnation, o.broker, o.demand, o.window.formula) for o in told]
    assert pairs == [(o.name_server, o.incarnation, o.broker, o.demand, o.window.formula) for o in judged]
    assert {o.demand for o in told} == set(ObligationKind)
    for before, after in zip(told, judged, strict=True):
        assert after.from_ms - recorded.timeline_ms == pytest.approx(before.from_ms, abs=SLACK_MS)
        assert after.to_ms - recorded.timeline_ms == pytest.approx(before.to_ms, abs=1_000)
    lost = [(one.client, one.broker) for one in absences(expected)]
    assert lost
    assert lost == [(one.client, one.broker) for one in absences(recorded)]


@pytest.mark.parametrize("what", EXPLAINED)
def test_a_scenario_is_explained_in_these_words(what: str, tmp_path: Path) -> None:
    scenario = parse({"checks": ["routes_are_true"], **EXPLAINED[what]["scenario"]}, file="x.yaml")
    file = tmp_path / "x.yaml"
    file.write_text(scenario.to_yaml(), encoding="utf-8")
    assert load(file) == scenario
    told = CliRunner().invoke(cli, ["explain", str(file)], catch_exceptions=False).output
    assert [text for text in EXPLAINED[what]["says"] if text not in told] == [], told


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_scenario_can_be_explained(name: str) -> None:
    plain = CliRunner().invoke(cli, ["explain", name], catch_exceptions=False)
    assert plain.exit_code == 0
    assert "must hold" in plain.output
    told = json.loads(CliRunner().invoke(cli, ["explain", name, "--json"], catch_exceptions=False).output)
    scenario = find(name)
    held = {(one["name_server"], one["broker"]) for one in told["name_servers"]}
    assert len(held) == scenario.cluster.name_servers * scenario.cluster.brokers * (1 + scenario.cluster.slaves)
    for name_server, broker in held:  # from 0 to the end without a gap
        mine = [one for one in told["name_servers"] if (one["name_server"], one["broker"]) == (name_server, broker)]
        assert [one["from_s"] for one in mine] == [0.0, *(one["to_s"] for one in mine[:-1])]
        assert mine[-1]["to_s"] == told["end_s"]
    assert told["too_short"] == {}, "it settles for too short a time for a check that it names"


def test_what_only_a_run_can_tell_is_named() -> None:
    document = {
        "checks": ["routes_are_true"],
        "timeline": [{"at_s": 20, "do": "cut", "links": ["clients <-> chosen"]}, {"at_s": 50, "do": "heal"}],
    }
    assert expected_world(parse(document, file="x.yaml")).unknown == ("cut of clients <-> chosen at 20 s",)


def test_of_many_changes_the_first_are_told_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "MOMENTS_MAX", 2)
    cut = {"do": "cut", "links": ["broker-a <-> ns-0"], "for_s": 5}
    timeline = [{"at_s": at_s, **cut} for at_s in (10, 20, 30)]
    scenario = parse({"checks": ["routes_are_true"], "timeline": timeline}, file="x.yaml")
    told = explain.explanation(scenario)
    assert {one["after"] for one in told["recovery"]} == {"cut-1 start", "cut-1 end"}
    assert "  and after 4 more changes, of which this says nothing" in explain._lines(told, scenario)


def test_a_bound_behind_the_end_of_the_run_says_how_long_it_must_settle() -> None:
    timeline = [{"at_s": 20, "do": "kill", "nodes": ["ns-0"]}, {"at_s": 30, "do": "restart", "nodes": ["ns-0"]}]
    scenario = parse({"checks": ["recovery_time"], "timeline": timeline, "settle_s": 5}, file="x.yaml")
    lines = "\n".join(explain._lines(explain.explanation(scenario), scenario))
    assert "within 60.0 s, by 80.0, after the end of this run: 45 s more of `settle_s` let the run see it" in lines
