"""Masters and slaves in runs on the virtual clock, judged by all checks that need no Spark."""

from dataclasses import replace
from pathlib import Path

import pytest

from nemesrv.actors.broker.server import Broker
from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.remoting.node.node import Node

SMALL = {
    "cluster": {"name_servers": 2, "brokers": 2, "slaves": 1},
    "workload": {"producers": 1, "consumers": 1, "queues": 1, "sends_per_s": 1, "client_starts": 0},
    "timeline": [
        {"at_s": 20, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 180, "do": "restart", "nodes": ["broker-a"]},
    ],
    "settle_s": 130,
    "checks": ["routes_are_true"],
}


@pytest.mark.nightly_but("5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_a_slave_is_named_and_read_while_its_master_is_gone_and_nothing_is_wrong(tmp_path: Path, profile: str) -> None:
    document = {**SMALL, "cluster": {**SMALL["cluster"], "profile": profile}}  # type: ignore[dict-item]
    folder = record_virtual(parse(document, file="small.yaml"), 1, tmp_path / "run").path
    assert found_wrong(folder) == {}
    rows = read_rows(folder)
    address = {row["source"]: row["address"] for row in rows if row["event"] == "node"}
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
    gone = [row for row in rows if 60_000 < row["time_ms"] - begin_ms < 180_000]
    pulled = {row["address"] for row in gone if row["event"] == "pull" and row["broker_name"] == "broker-a"}
    assert pulled == {address["broker-a/1"]}
    sent = {row["broker_name"] for row in gone if row["event"] == "send" and row["type"] == "ok"}
    assert sent == {"broker-b"}
    held = [row["value"]["brokers"]["broker-a"] for row in rows if row["event"] == "route" and row["topic"] == "orders"]
    assert {"1": address["broker-a/1"]} in held
    assert held[-1] == {"0": address["broker-a"], "1": address["broker-a/1"]}


@pytest.mark.nightly_but("5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_a_slave_that_is_made_master_is_told_and_sent_to(tmp_path: Path, profile: str) -> None:
    document = {
        **SMALL,
        "cluster": {**SMALL["cluster"], "profile": profile},  # type: ignore[dict-item]
        "timeline": [
            {"at_s": 20, "do": "kill", "nodes": ["broker-a"]},
            {"at_s": 60, "do": "switch", "nodes": ["broker-a/1"]},
        ],
        "settle_s": 90,
    }
    folder = record_virtual(parse(document, file="switch.yaml"), 1, tmp_path / "run").path
    assert found_wrong(folder) == {}
    rows = read_rows(folder)
    address = {row["source"]: row["address"] for row in rows if row["event"] == "node"}
    held = [row["value"]["brokers"]["broker-a"] for row in rows if row["event"] == "route" and row["topic"] == "orders"]
    assert held[-1] == {"0": address["broker-a/1"]}
    sent = {row["address"] for row in rows if row["event"] == "send_attempt" and row["broker_name"] == "broker-a"}
    assert sent == {address["broker-a"], address["broker-a/1"]}


SWITCHED_AND_STARTED_AGAIN = {
    **SMALL,
    "timeline": [
        {"at_s": 20, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 60, "do": "switch", "nodes": ["broker-a/1"]},
        {"at_s": 100, "do": "kill", "nodes": ["broker-a/1"]},
        {"at_s": 130, "do": "restart", "nodes": ["broker-a/1"]},
    ],
    "settle_s": 90,
}


@pytest.mark.nightly("test_a_slave_that_is_made_master_is_told_and_sent_to")
def test_a_slave_that_was_made_master_is_one_when_it_is_started_again(tmp_path: Path) -> None:
    folder = record_virtual(parse(dict(SWITCHED_AND_STARTED_AGAIN), file="again.yaml"), 1, tmp_path / "run").path
    assert found_wrong(folder) == {}
    rows = read_rows(folder)
    (address,) = (row["address"] for row in rows if row["event"] == "node" and row["source"] == "broker-a/1")
    held = [row["value"]["brokers"].get("broker-a") for row in rows if row["event"] == "route" and row["value"]]
    assert held[-1] == {"0": address}


def _forgets_its_role(node: Node) -> None:
    assert isinstance(node, Broker)
    node._keeps_role = False


def test_one_that_is_a_slave_again_then_is_found(tmp_path: Path) -> None:
    defect = replace(DEFECTS["slave-keeps-its-role"], name="forgets", plant=_forgets_its_role, source=Path(__file__))
    folder = record_virtual(parse(dict(SWITCHED_AND_STARTED_AGAIN), file="again.yaml"), 1, tmp_path / "run", defect)
    assert set(found_wrong(folder.path)) == {"routes_as_registered"}
