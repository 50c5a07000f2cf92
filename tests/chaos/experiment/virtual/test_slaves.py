"""A slave that was made master keeps its role over a restart, on the virtual clock."""

from dataclasses import replace
from pathlib import Path

import pytest

from nemesrv.actors.broker.server import Broker
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.remoting.node.node import Node
from tests.chaos.judged import found_wrong

SWITCHED_AND_STARTED_AGAIN = {
    "cluster": {"name_servers": 2, "brokers": 2, "slaves": 1},
    "workload": {"producers": 1, "consumers": 1, "queues": 1, "sends_per_s": 1, "client_starts": 0},
    "timeline": [
        {"at_s": 20, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 60, "do": "switch", "nodes": ["broker-a/1"]},
        {"at_s": 100, "do": "kill", "nodes": ["broker-a/1"]},
        {"at_s": 130, "do": "restart", "nodes": ["broker-a/1"]},
    ],
    "settle_s": 90,
    "checks": ["routes_are_true"],
}


@pytest.mark.nightly("test_one_that_is_a_slave_again_then_is_found")
def test_a_slave_that_was_made_master_is_one_when_it_is_started_again(tmp_path: Path) -> None:
    folder = record_virtual(parse(SWITCHED_AND_STARTED_AGAIN, file="again.yaml"), 1, tmp_path / "run").path
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
    folder = record_virtual(parse(SWITCHED_AND_STARTED_AGAIN, file="again.yaml"), 1, tmp_path / "run", defect)
    assert set(found_wrong(folder.path)) == {"routes_as_registered"}
