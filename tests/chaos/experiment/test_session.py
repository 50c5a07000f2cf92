"""An experiment conducted step by step, below a whole run: on the virtual clock, judged by nobody."""

from pathlib import Path

import pytest

from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.session import session
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.faults.link_faults import Heal
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Verdict

SMALL = {"name": "small", "checks": ["routes_converge"], "seed": 1, "cluster": {"name_servers": 1, "brokers": 1}}
NOBODY = {"producers": 0, "consumers": 0, "client_starts": 0, "prober": False}


def scenario(**workload: object) -> Scenario:
    return parse({**SMALL, "settle_s": 5, "timers": {"time_scale": 1}, "workload": workload}, file="a test")


def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create("small", tmp_path / "run")


def nobody_judges(_run: RunFolder, _as_run: Scenario) -> list[Verdict]:
    return [Verdict.nothing_examined("nobody judges here", name="routes_converge")]


def test_without_a_workload_there_are_only_servers_and_no_topic_and_the_end_heals_nothing(tmp_path: Path) -> None:
    with session(scenario(**NOBODY), folder(tmp_path), VirtualStage(), nobody_judges) as cluster:
        cluster.wait(40)
        assert cluster.act("cut", links=["broker-a <-> ns-0"]) == ("cut-1",)
        cluster.experiment.end()
        assert [v.name for v in cluster.leave()] == ["routes_converge"]
        with pytest.raises(HarnessError, match="has been judged"):
            cluster.heal()
    rows = read_rows(tmp_path / "run")
    assert {row["source"] for row in rows if row["event"] == "node"} == {"ns-0", "broker-a"}
    assert [row["event"] for row in rows].count("run_begin") == 1
    end_ms = next(row["time_ms"] for row in rows if row["event"] == "run_end")
    ends = [row["time_ms"] for row in rows if row["event"] == "fault" and row["phase"] == "end"]
    assert min(ends) >= end_ms, "it is healed on the way out only, which nobody judges"
    assert not any(row["event"] == "phase" and row["phase"] in ("settle", "final_reads") for row in rows)


def test_the_steps_of_a_session_are_its_scenarios_timeline(tmp_path: Path) -> None:
    with session(scenario(**NOBODY), folder(tmp_path), VirtualStage(), nobody_judges) as cluster:
        cluster.wait(10)
        cluster.black_hole("broker-a <-> ns-0", for_s=20)
        (late,) = cluster.act("latency", links=["broker-a <-> ns-0"], latency_ms=3)
        cluster.end_link_fault(late)
        cluster.end_link_fault(late)
        cluster.check()
    again = RunFolder(tmp_path / "run").scenario()
    assert [action.do for action in again.timeline] == ["black_hole", "heal", "latency", "heal", "heal"]
    assert again.timeline[3].what == Heal(faults=("latency-2",))
    assert again.timeline[0].at_s == pytest.approx(10, abs=0.1)


def test_a_workload_without_its_prober_has_no_clients_either() -> None:
    with pytest.raises(ScenarioError, match="`prober: false` goes with producers: 0, consumers: 0"):
        scenario(prober=False)


def test_nobody_acts_by_hand_in_a_session_and_a_clock_can_be_changed(tmp_path: Path) -> None:
    with session(scenario(**NOBODY), folder(tmp_path), VirtualStage(), nobody_judges) as cluster:
        with pytest.raises(
            ScenarioError, match="this step: do: unregister is not allowed; expected an entry of a scenario's"
        ):
            cluster.act("unregister", nodes=["ns-0"], broker="broker-a")
        cluster.act("clock_step", nodes=["ns-0"], by_s=130)
        cluster.wait(12)
        cluster.check()
    rows = read_rows(tmp_path / "run")
    assert next(row["value"]["step_ms"] for row in rows if row["event"] == "clock") == 130_000
    assert "expired" in {row["value"]["reason"] for row in rows if row["event"] == "broker_dropped"}
