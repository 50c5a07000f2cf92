"""Nodes of one kind are apart as far as hosts go."""

from __future__ import annotations

from nemesrv.chaos.hosts.placement import spread
from nemesrv.chaos.topology import Topology


def test_nodes_of_a_kind_are_on_hosts_in_turn_and_the_harness_own_are_with_the_driver():
    topology = Topology(name_servers=3, brokers=2, producers=2, consumers=1, external=True)
    placed = spread(topology, ("a", "b", "c"), "c")
    assert placed == {
        "ns-0": "a",
        "ns-1": "b",
        "ns-2": "c",
        "broker-a": "a",
        "broker-b": "b",
        "producer-0": "a",
        "producer-1": "b",
        "consumer-0": "a",
        "prober": "c",
        "external": "c",
    }


def test_a_slave_is_not_with_its_master_where_there_is_another_host():
    topology = Topology(name_servers=1, brokers=2, slaves=("broker-a/1", "broker-b/1", "broker-b/2"))
    placed = spread(topology, ("a", "b"), "a")
    assert (placed["broker-a"], placed["broker-a/1"]) == ("a", "b")
    assert (placed["broker-b"], placed["broker-b/1"], placed["broker-b/2"]) == ("b", "a", "b")


def test_on_one_host_all_are_there():
    assert set(spread(Topology(), ("a",), "a").values()) == {"a"}
