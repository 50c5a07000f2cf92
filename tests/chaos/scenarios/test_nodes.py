"""`nodes:`: lists of their own, late comers, clusters; what the nodes do, what checks ask."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Validity


def ran(document: dict[str, Any], tmp_path: Path) -> tuple[list[dict[str, Any]], World]:
    workload = {"client_starts": 0, "sends_per_s": 2, **document.pop("workload", {})}
    scenario = parse({"checks": ["routes_are_true"], "workload": workload, **document}, file="x.yaml")
    rows = list(read_rows(record_virtual(scenario, 1, tmp_path / "run").path))
    return rows, World.of_rows(rows)


def verdict(name: str, rows: list[dict[str, Any]], world: World) -> Validity:
    return CHECKS[name].judge(Control.of_rows(rows), world).verdict


def test_a_broker_registers_with_its_own_list_only_and_is_expected_there_only(tmp_path: Path) -> None:
    cluster = {"name_servers": 2, "brokers": 2}
    nodes = {"broker-b": {"name_servers": ["ns-1", "10.9.9.9:9876"], "cluster_name": "eu"}}
    rows, world = ran({"cluster": cluster, "nodes": nodes}, tmp_path)
    registered = {(row["node"], row["broker_name"]) for row in rows if row["event"] == "registration"}
    assert registered == {("ns-0", "broker-a"), ("ns-1", "broker-a"), ("ns-1", "broker-b")}
    demands = {(o.name_server, o.broker): o.demand for o in obligations(world)}
    assert demands["ns-0", "broker-b"] is ObligationKind.DROP
    assert demands["ns-1", "broker-b"] is ObligationKind.RETURN
    assert verdict("routes_are_true", rows, world) is Validity.VALID
    # a broker that registers with more than its list is found, and so is one that leaves out part of it
    for listed in (["ns-0"], ["ns-0", "ns-1"]):
        said = {**world.run, "nodes": {"broker-b": {"name_servers": listed}}}
        other = [{**row, "value": said} if row["event"] == "run_begin" else row for row in rows]
        assert verdict("routes_are_true", other, World.of_rows(other)) is Validity.INVALID


def test_a_client_asks_its_own_list_only_and_is_judged_by_it(tmp_path: Path) -> None:
    cluster = {"name_servers": 3, "brokers": 1}
    nodes = {"producer-0": {"name_servers": ["ns-2", "10.9.9.9:9876", "ns-0"]}}
    rows, world = ran({"cluster": cluster, "nodes": nodes}, tmp_path)
    lists = [row["value"] for row in rows if row["event"] == "name_server_list" and row["node"] == "producer-0"]
    assert "10.9.9.9:9876" in str(lists[0])
    assert world.addresses_of("producer-0")[1] == "10.9.9.9:9876"
    called = {row["name_server"] for row in rows if row["event"] == "name_server_call" and row["node"] == "producer-0"}
    assert called <= set(world.addresses_of("producer-0"))
    assert verdict("name_server_selection", rows, world) is Validity.VALID
    found = CHECKS["name_server_selection"].judge(Control.of_rows(rows), world)
    assert found.measured["own_lists"] == ["producer-0"]
    # the same history is wrong for a client that has all three on its list
    other = [{**row, "value": {**world.run, "nodes": {}}} if row["event"] == "run_begin" else row for row in rows]
    assert verdict("name_server_selection", other, World.of_rows(other)) is Validity.INVALID


def test_a_client_that_keeps_to_the_order_of_its_list_begins_with_its_first_entry(tmp_path: Path) -> None:
    listed = ["ns-2", "ns-0", "ns-1"]
    nodes = {name: {"name_servers": listed, "in_order": True} for name in ("producer-0", "producer-1", "consumer-0")}
    rows, world = ran({"cluster": {"name_servers": 3, "brokers": 1}, "nodes": nodes}, tmp_path)
    address = {row["source"]: row["address"] for row in rows if row["event"] == "node"}
    in_use = {row["node"]: row["value"] for row in rows if row["event"] == "name_server_list" and row["node"] in nodes}
    expected = [address[name] for name in listed]
    assert in_use == dict.fromkeys(nodes, expected)
    first = {row["node"]: row["name_server"] for row in rows if row["event"] == "name_server_chosen"}
    assert {first[name] for name in nodes} == {address["ns-2"]}
    assert verdict("name_server_selection", rows, world) is Validity.VALID


def test_a_run_goes_on_until_the_last_node_has_joined_and_everything_settled(tmp_path: Path) -> None:
    document = {"cluster": {"name_servers": 2, "brokers": 3}, "nodes": {"broker-c": {"joins_at_s": 60}}, "settle_s": 40}
    document["timeline"] = [{"at_s": 10, "do": "cut", "links": ["broker-a <-> ns-0"], "for_s": 5}]
    rows, world = ran(document, tmp_path)
    (joined,) = (row["time_ms"] for row in rows if row["event"] == "started" and row["node"] == "broker-c")
    assert joined - world.timeline_ms == pytest.approx(60_000, abs=100)
    assert world.end_ms - joined == pytest.approx(40_000, abs=1_000)
    expected = expected_world(parse({"checks": ["routes_are_true"], **document}, file="x.yaml")).world
    assert expected.end_ms == 100_000


def test_who_joins_later_is_asked_for_from_then_on(tmp_path: Path) -> None:
    nodes = {"broker-c": {"joins_at_s": 60}, "producer-1": {"joins_at_s": 30}, "consumer-1": {"joins_at_s": 50}}
    document = {"cluster": {"name_servers": 2, "brokers": 3}, "nodes": nodes, "steady_s": 80, "settle_s": 60}
    rows, world = ran(document, tmp_path)
    began = {row["node"]: row["time_ms"] - world.timeline_ms for row in rows if row["event"] == "started"}
    assert began["broker-c"] == pytest.approx(60_000, abs=100)
    sends = [
        row["time_ms"] - world.timeline_ms for row in rows if row["event"] == "send" and row["node"] == "producer-1"
    ]
    assert 30_000 <= min(sends) < 32_000
    used = [row["time_ms"] for row in rows if row["event"] == "send" and row.get("broker_name") == "broker-c"]
    assert 60_000 < min(used) - world.timeline_ms < 92_000
    demands = [o for o in obligations(world) if o.broker == "broker-c" and o.name_server == "ns-0"]
    assert [o.demand for o in demands] == [ObligationKind.DROP, ObligationKind.RETURN]
    assert demands[1].from_ms == pytest.approx(world.timeline_ms + 93_000, abs=100)
    assert verdict("routes_are_true", rows, world) is Validity.VALID
    assert {row["node"] for row in rows if row["event"] == "receive"} == {"consumer-0", "consumer-1"}


def test_where_lists_split_the_consumers_views_nothing_is_said_of_who_owns_what(tmp_path: Path) -> None:
    nodes = {"broker-b": {"name_servers": ["ns-1"]}}
    rows, world = ran({"cluster": {"name_servers": 2, "brokers": 2}, "nodes": nodes}, tmp_path)
    assert world.views_differ
    found = CHECKS["queue_ownership"].judge(Control.of_rows(rows), world)
    assert found.verdict is Validity.UNKNOWN
    assert "consumers may see different brokers" in found.why
