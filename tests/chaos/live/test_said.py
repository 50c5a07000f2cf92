"""What `nemesrv up --json` says: the cluster first, then a line a verdict with its type, each an object of its own."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nemesrv.chaos.judging import Engine, History, Judged
from nemesrv.chaos.live.up import Up, _ended, _to_decide, scenario_of
from nemesrv.chaos.verdict import Verdict
from tests.chaos.builder import invalid, valid

CLUSTER: Any = SimpleNamespace(
    name_servers=("127.0.0.1:9876",),
    name_server_list="127.0.0.1:9876",
    brokers={"broker-a": "127.0.0.1:10911"},
    slaves={},
    run_dir=Path("runs/up/1"),
    experiment=SimpleNamespace(pids={"ns-0": 7}),
)
FAULT_DOOR: Any = SimpleNamespace(open=lambda: None)
RIGHT = valid("routes_converge", examined=3)
WRONG = invalid("no_false_eviction", examined=2, why="ns-0 dropped it")


def test_each_line_is_an_object_and_after_the_cluster_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = scenario_of(name_servers=1, brokers=1, profile=None, time_scale=1.0)
    up = Up(scenario=scenario, as_json=True, judged=True)
    up._say(1_000.0, RIGHT)  # before anybody was told where the cluster is
    up._announce(CLUSTER, "http://127.0.0.1:8474", FAULT_DOOR)
    up._say(2_000.04, WRONG)
    cluster, *verdicts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert cluster["name_servers"] == ["127.0.0.1:9876"]
    assert cluster["brokers"] == {"broker-a": {"0": "127.0.0.1:10911"}}
    assert "type" not in cluster
    assert [(line["type"], line["at_ms"], line["name"], line["verdict"]) for line in verdicts] == [
        ("verdict", 1_000.0, "routes_converge", "VALID"),
        ("verdict", 2_000.0, "no_false_eviction", "INVALID"),
    ]


def test_the_end_of_a_judged_cluster_says_why_a_check_is_not_valid() -> None:
    idle = Verdict.nothing_examined("no broker was killed", name="no_resurrection")
    judged = Judged(History(where="up2", checks=()), [RIGHT, idle], Engine.PLAIN)
    assert _ended(judged) == "verdicts: UNKNOWN   up2\n  no_resurrection UNKNOWN: no broker was killed"
    assert _to_decide(judged) == (
        "To decide no_resurrection, inject such a fault (`nemesrv fault --help`), or leave the check out: --check "
        "routes_converge"
    )
    assert _to_decide(Judged(History(where="up2", checks=()), [RIGHT], Engine.PLAIN)) == ""
