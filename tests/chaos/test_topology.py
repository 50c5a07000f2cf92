"""Who dials whom, and what a link expression names."""

from typing import Any

import pytest

from nemesrv.chaos.shapes import LinkExpressionError
from nemesrv.chaos.topology import Link, NodeKind, Topology
from nemesrv.remoting.node.file_names import file_name, of_file_name
from tests.refusals import refusal

SMALL = Topology(name_servers=2, brokers=2, producers=1, consumers=1)


def names(topology: Topology, *expressions: str) -> list[str]:
    return [str(link) for link in topology.parse_links(*expressions)]


def test_every_node_is_named_by_its_kind_and_number():
    topology = Topology(name_servers=2, brokers=3, producers=2, consumers=1, external=True)
    assert topology.nodes == (*topology.servers, *topology.clients)
    assert topology.servers == ("ns-0", "ns-1", "broker-a", "broker-b", "broker-c")
    assert topology.clients == ("producer-0", "producer-1", "consumer-0", "prober")
    assert topology.kinds["external"] is NodeKind.EXTERNAL


def test_a_broker_dials_name_servers_only_and_a_client_dials_brokers_too():
    topology = Topology(name_servers=1, brokers=2, producers=1, consumers=0, prober=False)
    assert topology.links == (
        Link("broker-a", "ns-0"),
        Link("broker-b", "ns-0"),
        Link("producer-0", "ns-0"),
        Link("producer-0", "broker-a"),
        Link("producer-0", "broker-b"),
    )


def test_a_slave_is_called_by_its_master_and_its_id_and_both_dial_one_another():
    topology = Topology(name_servers=1, brokers=2, slaves=("broker-a/1",), producers=0, consumers=0, prober=False)
    assert topology.kinds["broker-a/1"] is NodeKind.SLAVE
    assert topology.servers == ("ns-0", "broker-a", "broker-b", "broker-a/1")
    assert names(topology, "broker-a/1 <-> broker-a") == ["broker-a->broker-a/1", "broker-a/1->broker-a"]
    assert names(topology, "slaves -> ns-0") == ["broker-a/1->ns-0"]
    assert names(topology, "masters -> ns-0") == ["broker-a->ns-0", "broker-b->ns-0"]
    assert names(topology, "brokers -> ns-0") == ["broker-a->ns-0", "broker-b->ns-0", "broker-a/1->ns-0"]
    with pytest.raises(LinkExpressionError, match="names no link"):
        topology.parse_links("broker-a/1 <-> broker-b")


@pytest.mark.parametrize("slave", ["broker-c/1", "broker-a", "broker-a/0", "broker-a/x"])
def test_a_slave_of_nobody_or_without_an_id_above_0_is_refused(slave: str):
    with pytest.raises(ValueError, match="need masters of their names"):
        Topology(brokers=2, slaves=(slave,))


def test_a_slave_s_files_and_proxies_have_no_slash_and_are_known_again():
    assert file_name("broker-a/1->ns-0") == "broker-a@1->ns-0"
    assert of_file_name(file_name("broker-a/1")) == "broker-a/1"


def test_nobody_dials_itself_and_a_name_server_dials_nobody():
    links = Topology(external=True).links
    assert all(link.node != link.peer and not link.node.startswith("ns-") for link in links)
    assert len(links) == len(set(links))


def test_the_external_dialler_has_links_to_every_server():
    topology = Topology(name_servers=2, brokers=1, producers=0, consumers=0, external=True)
    assert names(topology, "external -> *") == ["external->ns-0", "external->ns-1", "external->broker-a"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("broker-a <-> ns-1", ["broker-a->ns-1"]),
        ("ns-1 <-> broker-a", ["broker-a->ns-1"]),
        ("producer-0 -> broker-a", ["producer-0->broker-a"]),
        ("broker-a <- producer-0", ["producer-0->broker-a"]),
        ("producer-0->broker-a", ["producer-0->broker-a"]),
        ("clients <-> ns-0", ["producer-0->ns-0", "consumer-0->ns-0", "prober->ns-0"]),
        ("brokers -> ns-0", ["broker-a->ns-0", "broker-b->ns-0"]),
        ("broker-b -> name_servers", ["broker-b->ns-0", "broker-b->ns-1"]),
        ("* -> ns-1", ["broker-a->ns-1", "broker-b->ns-1", "producer-0->ns-1", "consumer-0->ns-1", "prober->ns-1"]),
        (
            "broker-a <-> *",
            ["broker-a->ns-0", "broker-a->ns-1", "producer-0->broker-a", "consumer-0->broker-a", "prober->broker-a"],
        ),
        ("producers -> brokers", ["producer-0->broker-a", "producer-0->broker-b"]),
    ],
)
def test_an_expression_names_the_links_between_its_sides(expression: str, expected: list[str]):
    assert names(SMALL, expression) == expected


def test_everything_to_everything_is_every_link():
    assert SMALL.parse_links("* <-> *") == SMALL.links


def test_several_expressions_name_each_link_once():
    assert names(SMALL, "broker-a <-> ns-0", "brokers <-> ns-0") == ["broker-a->ns-0", "broker-b->ns-0"]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("broker-a ns-1", "is not `A -> B`"),
        ("", "is not `A -> B`"),
        ("broker-a -> ns-1 -> ns-0", "is not `A -> B`"),
        ("broker-z <-> ns-1", "broker-z, which is no node (ns-0, ns-1, broker-a"),
        ("broker-a <-> servers", "no group (name_servers, brokers, masters, slaves, producers, consumers, clients, *)"),
        ("ns-0 <-> ns-1", "ns-0 never dials ns-1"),
        ("ns-0 -> broker-a", "only the other way round; write `ns-0 <-> broker-a`"),
        ("broker-a <-> broker-b", "broker-a never dials broker-b"),
        ("broker-a <-> broker-a", "names no link"),
    ],
)
def test_an_expression_that_names_nothing_says_what_is_allowed(expression: str, says: str):
    with refusal(says, by=LinkExpressionError):
        SMALL.parse_links(expression)


ZONES = Topology(
    name_servers=2, brokers=2, zones={"east": ("ns-0", "broker-a"), "west": ("ns-1", "broker-b", "producer-0")}
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("zone:east <-> zone:west", ["broker-a->ns-1", "broker-b->ns-0", "producer-0->ns-0", "producer-0->broker-a"]),
        ("zone: west -> zone: east", ["broker-b->ns-0", "producer-0->ns-0", "producer-0->broker-a"]),
        ("zone:east <-> brokers", ["broker-b->ns-0", "broker-a->ns-0"]),
        ("broker-b -> zone:west", ["broker-b->ns-1"]),
    ],
)
def test_a_zone_stands_for_its_nodes(expression: str, expected: list[str]):
    assert sorted(names(ZONES, expression)) == sorted(expected)


@pytest.mark.parametrize(
    ("topology", "expression", "says"),
    [
        (ZONES, "zone:north <-> zone:west", "names the zone north, which is none; zones: has east, west"),
        (SMALL, "zone:east <-> ns-0", "names the zone east, which is none; the scenario has no `zones:`"),
        (ZONES, "east <-> west", "east, which is no node"),
        (ZONES, "east <-> west", "write zone:east for the zone"),
        (ZONES, "zone:east -> zone:east -> ns-0", "a group, zone:NAME or *"),
    ],
)
def test_a_zone_that_is_none_is_named(topology: Topology, expression: str, says: str):
    with refusal(says, by=LinkExpressionError):
        topology.parse_links(expression)


def test_a_group_without_members_is_named():
    with pytest.raises(LinkExpressionError, match="names producers, and this cluster has none"):
        Topology(producers=0).parse_links("producers -> ns-0")


@pytest.mark.parametrize("counts", [{"name_servers": 0}, {"brokers": 27}, {"producers": -1}])
def test_a_cluster_that_cannot_be_is_refused(counts: dict[str, Any]):
    with pytest.raises(ValueError, match="at least one NameServer"):
        Topology(**counts)
