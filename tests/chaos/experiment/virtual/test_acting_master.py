"""A slave of 5.x that acts for its master, on the virtual clock: what NameServers then tell, and how soon."""

from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse

SMALL: dict[str, Any] = {
    "cluster": {"profile": "5.x", "name_servers": 2, "brokers": 2, "slaves": 1},
    "config": {
        "name_servers": {"supportActingMaster": True, "notifyMinBrokerIdChanged": True},
        "brokers": {"enableSlaveActingMaster": True},
    },
    "workload": {"producers": 1, "consumers": 1, "queues": 1, "sends_per_s": 1, "client_starts": 0},
    "timeline": [{"at_s": 20, "do": "pause", "nodes": ["broker-a"], "for_s": 70}],
    "settle_s": 60,
    "checks": ["one_master"],
}


def test_a_frozen_master_is_dropped_within_15_s_its_slave_acts_read_only_and_it_is_writable_when_back(
    tmp_path: Path,
) -> None:
    folder = record_virtual(parse(SMALL, file="small.yaml"), 1, tmp_path / "run").path
    assert found_wrong(folder) == {}
    rows = read_rows(folder)
    address = {row["source"]: row["address"] for row in rows if row["event"] == "node"}
    pause_ms, resume_ms = (row["time_ms"] for row in rows if row["event"] == "fault")
    drops = [row["time_ms"] - pause_ms for row in rows if row["event"] == "broker_dropped"]
    assert len(drops) == 2  # of the one master, by each NameServer; 1 s heartbeats keep everybody else
    assert all(9_000 <= late_ms <= 15_000 for late_ms in drops)
    shown = [
        (row["time_ms"], row["value"]["brokers"]["broker-a"], row["value"]["queues"]["broker-a"][2])
        for row in rows
        if row["event"] == "route" and row["topic"] == "orders" and row["node"] == "ns-0" and row["value"]
    ]
    acting = [(ids, perm) for at_ms, ids, perm in shown if pause_ms < at_ms < resume_ms]
    assert ({"0": address["broker-a/1"]}, 4) in acting
    assert shown[-1][1:] == ({"0": address["broker-a"], "1": address["broker-a/1"]}, 6)
    sent = {
        row["broker_name"]
        for row in rows
        if row["event"] == "send" and row["type"] == "ok" and pause_ms + 50_000 < row["time_ms"] < resume_ms
    }
    assert sent == {"broker-b"}
