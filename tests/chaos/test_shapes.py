"""Partitions by name: which links each separates, and what is said of one that cannot be."""

from collections.abc import Iterable

import pytest
import yaml

from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.shapes import LinkExpressionError
from nemesrv.chaos.topology import Link, Topology
from tests.refusals import refusal

CLUSTER = Topology(name_servers=3, brokers=3, producers=2, consumers=2)


def reaches(expression: str, topology: Topology = CLUSTER) -> dict[str, set[str]]:
    """Dialler to the peers that it still reaches both ways."""
    gone = topology.parse_streams(expression)
    return {
        node: {link.peer for link in topology.links if link.node == node and link not in gone}
        for node in (link.node for link in topology.links)
    }


def of(links: Iterable[Link]) -> list[str]:
    return [str(link) for link in links]


def test_who_is_isolated_reaches_nobody_and_nobody_reaches_it() -> None:
    assert set(of(CLUSTER.parse_links("isolate ns-0"))) == set(of(CLUSTER.parse_links("* -> ns-0")))
    assert set(of(CLUSTER.parse_links("isolate broker-a"))) == set(of(CLUSTER.parse_links("broker-a <-> *")))


def test_one_way_in_and_one_way_out_are_the_two_directions_of_the_same_links() -> None:
    inward, outward = CLUSTER.parse_streams("into broker-a"), CLUSTER.parse_streams("out_of broker-a")
    assert inward.keys() == outward.keys() == CLUSTER.parse_streams("isolate broker-a").keys()
    assert (inward[Link("producer-0", "broker-a")], inward[Link("broker-a", "ns-0")]) == ("upstream", "downstream")
    assert (outward[Link("producer-0", "broker-a")], outward[Link("broker-a", "ns-0")]) == ("downstream", "upstream")
    assert set(CLUSTER.parse_streams("into broker-a", "out_of broker-a").values()) == {"both"}


def test_halves_have_some_of_each_kind_and_reach_only_their_own() -> None:
    seen = reaches("halves")
    assert seen["broker-a"] == {"ns-0"}
    assert seen["broker-b"] == seen["broker-c"] == {"ns-1", "ns-2"}
    assert seen["producer-0"] == {"ns-0", "broker-a"}
    assert seen["consumer-1"] == {"ns-1", "ns-2", "broker-b", "broker-c"}
    assert len(seen["prober"]) == 6, "the harness's own client is on nobody's side"


def test_a_majority_is_more_than_half_of_each_kind() -> None:
    seen = reaches("majority")
    assert seen["broker-a"] == seen["broker-b"] == {"ns-0", "ns-1"}
    assert seen["broker-c"] == {"ns-2"}
    even = reaches("majority", Topology(name_servers=4, brokers=2, producers=2, consumers=0))
    assert even["producer-0"] == even["producer-1"] == {"ns-0", "ns-1", "ns-2", "broker-a", "broker-b"}


def test_a_bridge_reaches_both_halves() -> None:
    seen = reaches("bridge ns-1")
    assert (seen["broker-a"], seen["broker-b"]) == ({"ns-0", "ns-1"}, {"ns-1", "ns-2"})


def test_on_a_ring_each_reaches_a_majority_of_name_servers_and_neighbours_another_one() -> None:
    seen = {node: peers & {"ns-0", "ns-1", "ns-2"} for node, peers in reaches("ring").items()}
    assert [sorted(seen[f"broker-{letter}"]) for letter in "abc"] == [
        ["ns-1", "ns-2"],
        ["ns-0", "ns-2"],
        ["ns-0", "ns-1"],
    ]
    five = Topology(name_servers=5, brokers=5, producers=1, consumers=1)
    assert all(len(reaches("ring", five)[f"broker-{letter}"]) == 3 for letter in "abcde")


def test_a_split_list_shows_disjoint_name_servers_to_every_second_client() -> None:
    seen = reaches("split_list")
    brokers = {"broker-a", "broker-b", "broker-c"}
    assert seen["producer-0"] == seen["consumer-0"] == {"ns-0"} | brokers
    assert seen["producer-1"] == seen["consumer-1"] == {"ns-1", "ns-2"} | brokers
    assert seen["broker-a"] == {"ns-0", "ns-1", "ns-2"}


def test_groups_are_apart_and_who_is_in_none_reaches_all() -> None:
    seen = reaches("groups ns-0 broker-a | ns-1 broker-b")
    assert (seen["broker-a"], seen["broker-b"]) == ({"ns-0", "ns-2"}, {"ns-1", "ns-2"})
    assert len(seen["producer-0"]) == 6
    assert reaches("groups name_servers | producers")["producer-0"] == {"broker-a", "broker-b", "broker-c"}


def test_zones_are_apart_each_from_the_others() -> None:
    zones = {"eu": ("ns-0", "broker-a"), "us": ("ns-1", "broker-b", "producer-0")}
    seen = reaches("zones", Topology(name_servers=3, brokers=3, producers=2, consumers=2, zones=zones))
    assert (seen["broker-a"], seen["producer-0"]) == ({"ns-0", "ns-2"}, {"ns-1", "ns-2", "broker-b", "broker-c"})


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("zones", "needs two `zones:` of the scenario or more"),
        ("isolate", "'isolate' names no node: write `isolate ns-0`"),
        ("isolate ns-7", "names ns-7, which is no node (ns-0"),
        ("halves ns-0", "'halves ns-0' says too much"),
        ("groups ns-0 broker-a", "names one group: write `groups ns-0 broker-a | ns-1 broker-b`"),
        ("groups ns-0 | brokers ns-0", "has ns-0 in two groups"),
        ("groups ns-0 | ns-1", "separates nobody"),
        ("triangle", "nor a shape (isolate, into, out_of, halves, majority, ring, bridge, split_list, groups, zones)"),
    ],
)
def test_a_shape_that_cannot_be_says_what_is_allowed(expression: str, says: str) -> None:
    with refusal(says, by=LinkExpressionError):
        CLUSTER.parse_links(expression)


def test_a_ring_needs_three_name_servers_and_a_split_list_two() -> None:
    with pytest.raises(LinkExpressionError, match="a majority of 2 is all of them"):
        Topology(name_servers=2).parse_links("ring")
    with pytest.raises(LinkExpressionError, match="two NameServers and two clients or more"):
        Topology(name_servers=1).parse_links("split_list")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{do: cut, links: [into broker-a]}", "black_hole in place of cut, which is of both directions"),
        ("{do: black_hole, stream: upstream, links: [out_of ns-0]}", "no `stream` beside it"),
    ],
)
def test_a_shape_of_one_direction_goes_with_faults_that_have_one(entry: str, says: str) -> None:
    document = {"checks": ["routes_are_true"], "timeline": [{"at_s": 5, **yaml.safe_load(entry)}]}
    with refusal(says):
        parse(document, file="x.yaml")
