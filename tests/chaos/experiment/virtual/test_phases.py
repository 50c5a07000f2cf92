"""Each node's timer meets the timeline at a phase of its own: set by the scenario, or drawn from the seed."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.virtual.stage import drawn_starts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import Options, record_virtual, run_all
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario


def scenario(phases: dict[str, float], **more: Any) -> Scenario:
    document = {
        "cluster": {"name_servers": 2, "brokers": 2},
        "workload": {"client_starts": 0, "sends_per_s": 1},
        "phases": phases,
        "steady_s": 40,
        "settle_s": 0,
        "checks": ["routes_are_true"],
        **more,
    }
    return parse(document, file="phases.yaml")


def test_a_broker_registers_and_a_client_polls_when_the_scenario_says(tmp_path: Path) -> None:
    # 5.x: in 4.9 the first check of half messages, 60 s after a broker's start, makes a topic, and tells of it
    cluster = {"name_servers": 2, "brokers": 2, "profile": "5.x"}
    asked = scenario({"broker-a": 3, "broker-b": 29.5, "producer-0": 12, "consumer-1": 0.5}, cluster=cluster)
    rows = read_rows(record_virtual(asked, 1, tmp_path / "run").path)
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")

    def after_s(node: str, event: str) -> list[float]:
        at_ms = (
            row["time_ms"] - (row["duration_ms"] or 0) for row in rows if (row["node"], row["event"]) == (node, event)
        )
        return sorted({round((ms - begin_ms) / 1000, 2) for ms in at_ms if ms > begin_ms})

    assert after_s("broker-a", "register") == [3, 33]
    assert after_s("broker-b", "register") == [29.5]
    assert after_s("producer-0", "name_server_call")[-1] == 12  # before it, its first send asked
    assert after_s("consumer-1", "name_server_call")[0] == 0.5


def test_a_name_server_looks_for_silent_brokers_when_the_scenario_says(tmp_path: Path) -> None:
    lost = [{"at_s": 5, "do": "packet_loss", "links": ["broker-a <-> name_servers"]}]
    quiet = {"config": {"name_servers": {"serverChannelMaxIdleTimeSeconds": 600}}}
    asked = scenario({"broker-a": 4, "ns-0": 1, "ns-1": 7}, timeline=lost, settle_s=150, **quiet)
    kept = [*asked.timeline, asked.timeline[0].model_copy(update={"at_s": 160.0})]
    rows = read_rows(record_virtual(asked.model_copy(update={"timeline": tuple(kept)}), 1, tmp_path / "run").path)
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
    dropped_s = {
        row["node"]: round((row["time_ms"] - begin_ms) / 1000, 1) for row in rows if row["event"] == "broker_dropped"
    }
    assert dropped_s == {"ns-0": 131.0, "ns-1": 127.0}  # the first look from 124 s on


def test_the_seed_draws_the_phases_that_the_scenario_leaves_open() -> None:
    open_, set_ = scenario({}), scenario({"broker-a": 3})
    assert drawn_starts(open_, 1) == drawn_starts(open_, 1)
    assert drawn_starts(open_, 1).of.keys() == {
        f"{kind}-{n}" for kind in ("ns", "producer", "consumer") for n in (0, 1)
    } | {"broker-a", "broker-b"}
    assert all(drawn_starts(open_, 1).of[node] != drawn_starts(open_, 2).of[node] for node in drawn_starts(open_, 1).of)
    different = {node for node, at_s in drawn_starts(set_, 1).of.items() if drawn_starts(open_, 1).of[node] != at_s}
    assert different == {"broker-a"}


def test_phases_are_of_nodes_that_have_a_timer_and_of_the_virtual_clock(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"phases.*broker-c.*one of ns-0"):
        scenario({"broker-c": 3})
    with pytest.raises(ScenarioError, match=r"phases.*--clock virtual"):
        run_all([scenario({"broker-a": 3})], Options(seed=1, out=tmp_path / "run"))
