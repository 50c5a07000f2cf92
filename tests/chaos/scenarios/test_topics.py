"""Several topics and groups, and thousands by a pattern: who uses which, what checks ask."""

from pathlib import Path
from typing import Any

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.verdict import Validity

PAYMENTS = {"payments": {"queues": 2}}


def scenario(workload: dict[str, Any], nodes: dict[str, Any] | None = None, **rest: Any) -> Scenario:
    return parse({"checks": ["routes_are_true"], "workload": workload, "nodes": nodes or {}, **rest}, file="x.yaml")


def test_a_pattern_is_as_many_topics_as_it_says() -> None:
    topics = scenario({"topics": {"bulk-{1..2000}": {"queues": 1}, "pay-{8..9}-x": {}}}).topics()
    assert len(topics) == 2003
    assert topics["orders"] == 4
    assert topics["bulk-2000"] == 1
    assert {"pay-8-x", "pay-9-x"} <= topics.keys()


def test_each_client_uses_its_own_topic_in_its_own_group_and_is_judged_there(tmp_path: Path) -> None:
    nodes = {
        "producer-1": {"topic": "payments"},
        "consumer-1": {"topic": "payments"},
        "consumer-2": {"topic": "payments", "group": "audit"},
    }
    workload = {
        "topics": {**PAYMENTS, "bulk-{1..40}": {"queues": 1}},
        "consumers": 3,
        "client_starts": 0,
        "sends_per_s": 2,
    }
    cluster = {"name_servers": 2, "brokers": 2}
    folder = record_virtual(scenario(workload, nodes, cluster=cluster, settle_s=120), 1, tmp_path / "run")
    rows = list(read_rows(folder.path))
    world = World.of_rows(rows)
    sent = {(row["node"], row["topic"]) for row in rows if row["event"] == "send"}
    assert sent == {("producer-0", "orders"), ("producer-1", "payments")}
    took = {(row["node"], row["topic"]) for row in rows if row["event"] == "receive"}
    assert took == {("consumer-0", "orders"), ("consumer-1", "payments"), ("consumer-2", "payments")}
    got = {node: [r["msg_key"] for r in rows if r["event"] == "receive" and r["node"] == node] for node, _ in took}
    assert set(got["consumer-1"]) == set(got["consumer-2"])  # each group all messages
    assert len(got["consumer-2"]) == len(set(got["consumer-2"]))
    assert {row["topic"] for row in rows if row["event"] == "read_done"} == {"orders", "payments"}
    for server in ("ns-0", "ns-1"):
        held = {row["topic"] for row in rows if row["event"] == "route" and row["node"] == server}
        assert {f"bulk-{n}" for n in range(1, 41)} <= held
    assert (world.queues_of("producer-1"), world.queues_of("producer-0")) == (2, 4)
    assert world.groups == {
        "nemesrv-consumers": ("consumer-0",),
        "nemesrv-consumers-payments": ("consumer-1",),
        "audit": ("consumer-2",),
    }
    control = Control.of_rows(rows)
    owned = CHECKS["queue_ownership"].judge(control, world)
    assert (owned.verdict, owned.measured["groups"]) == (Validity.VALID, 3)
    assert CHECKS["routes_are_true"].judge(control, world).verdict is Validity.VALID
    # in one group each queue of payments would have two owners
    one = {
        **world.run,
        "group_of": {c: "all" for c in world.run["group_of"] if c != "consumer-0"} | {"consumer-0": "x"},
    }
    other = [{**row, "value": one} if row["event"] == "run_begin" else row for row in rows]
    told = CHECKS["queue_ownership"].judge(Control.of_rows(other), World.of_rows(other))
    assert told.verdict is Validity.INVALID


def test_a_broker_that_joins_late_brings_every_topic(tmp_path: Path) -> None:
    nodes = {"broker-b": {"joins_at_s": 20}}
    document = scenario(
        {"topics": {"bulk-{1..5}": {}}, "client_starts": 0, "sends_per_s": 1},
        nodes,
        cluster={"name_servers": 1, "brokers": 2},
    )
    rows = list(read_rows(record_virtual(document, 1, tmp_path / "run").path))
    made = {row["topic"] for row in rows if row["event"] == "topic" and row["node"] == "broker-b"}
    assert {"orders", *(f"bulk-{n}" for n in range(1, 6))} <= made
