"""Which node is on which host, as a scenario says it; and what is done to hosts, taken apart."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.explain import explanation
from nemesrv.chaos.faults.process_faults import HOST_ACTIONS
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.scenarios.placement import Offer, PlacementModel, placed
from nemesrv.chaos.topology import Topology

ABC = (Offer("a", {"disk": "ssd"}, {"load": 2.0}), Offer("b", {"disk": "ssd"}), Offer("c", {}, {"load": 1.0}))


def placement(**said: Any) -> PlacementModel:
    return PlacementModel.model_validate(said)


def where(topology: Topology, said: PlacementModel | None = None, offers: tuple[Offer, ...] = ABC) -> dict[str, str]:
    return placed(topology, said or placement(), offers, file="s")


def scenario(*timeline: dict[str, Any], **more: Any) -> Scenario:
    document: dict[str, Any] = {
        "cluster": {"name_servers": 3, "brokers": 2},
        "workload": {"producers": 2, "consumers": 1, "client_starts": 0},
        "placement": {"hosts": ["a", "b", "c"]},
        "checks": ["routes_converge"],
        "timeline": list(timeline),
        **more,
    }
    return parse(document, file="s")


def test_nodes_of_a_kind_are_on_hosts_in_turn_and_the_harness_own_are_on_the_first():
    topology = Topology(name_servers=3, brokers=2, producers=2, consumers=1, external=True)
    assert where(topology) == {
        "ns-0": "a",
        "ns-1": "b",
        "ns-2": "c",
        "broker-a": "a",
        "broker-b": "b",
        "producer-0": "a",
        "producer-1": "b",
        "consumer-0": "a",
        "prober": "a",
    }


def test_a_slave_is_not_with_its_master_where_there_is_another_host():
    topology = Topology(name_servers=1, brokers=2, slaves=("broker-a/1", "broker-b/1", "broker-b/2"))
    found = where(topology, offers=ABC[:2])
    assert (found["broker-a"], found["broker-a/1"]) == ("a", "b")
    assert (found["broker-b"], found["broker-b/1"], found["broker-b/2"]) == ("b", "a", "a")


def test_with_more_slaves_than_other_hosts_none_is_with_its_master():
    found = where(Topology(name_servers=1, brokers=1, slaves=("broker-a/1", "broker-a/2", "broker-a/3")))
    others = [found[f"broker-a/{number}"] for number in (1, 2, 3)]
    assert found["broker-a"] not in others
    assert others[2] == others[0] != others[1]


def test_without_spread_all_are_on_the_first_host():
    assert set(where(Topology(), placement(spread=False, hosts=["b", "a"])).values()) == {"b"}


def test_a_node_is_where_it_is_placed_and_its_own_place_counts_before_its_groups():
    said = placement(**{"ns-0": {"host": "c"}, "name_servers": {"host": "b"}, "brokers": {"labels": {"disk": "ssd"}}})
    found = where(Topology(name_servers=2, brokers=3), said)
    assert [found[name] for name in ("ns-0", "ns-1")] == ["c", "b"]
    assert [found[f"broker-{x}"] for x in "abc"] == ["a", "b", "a"]


def test_a_place_by_resources_is_on_hosts_that_offer_so_much():
    found = where(Topology(name_servers=3), placement(name_servers={"resources": {"load": 2}}))
    assert {found[f"ns-{i}"] for i in range(3)} == {"a"}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"ns-0": {"host": "d"}}, "s: placement.ns-0.host: d is not allowed; expected a host that there is: a, b, c"),
        ({"hosts": ["a", "d"]}, "s: placement.hosts.1: d is not allowed; expected a host that there is: a, b, c"),
        (
            {"brokers": {"labels": {"disk": "tape"}}},
            "s: placement.brokers.labels: {disk: tape} is not allowed; expected "
            "labels that one of the hosts a, b, c has",
        ),
        (
            {"brokers": {"resources": {"load": 3}}},
            "s: placement.brokers.resources: {load: 3.0} is not allowed; expected "
            "resources that one of the hosts a, b, c has",
        ),
    ],
)
def test_what_no_host_can_give_is_refused_in_a_sentence(said: dict[str, Any], sentence: str):
    with pytest.raises(ScenarioError) as told:
        where(Topology(), placement(**said))
    assert str(told.value) == sentence


def test_a_host_is_refused_where_there_is_this_machine_only():
    with pytest.raises(ScenarioError, match="more hosts are those of a Ray cluster, --ray"):
        where(Topology(), placement(hosts=["a"]), (Offer("this-machine"),))


def test_a_scenario_with_placement_is_the_same_when_it_is_written_and_read_again():
    before = scenario(
        {"at_s": 1, "do": "lose_host", "hosts": ["b"]}, placement={"hosts": ["a", "b"], "ns-0": {"host": "b"}}
    )
    document = __import__("yaml").safe_load(before.to_yaml())
    assert document["placement"] == {"hosts": ["a", "b"], "spread": True, "ns-0": {"host": "b"}}
    assert parse(document, file="s") == before


def test_a_lost_host_is_a_black_hole_to_all_others_and_a_kill_of_its_nodes():
    hole, kill, heal, restart = scenario(
        {"at_s": 20, "do": "lose_host", "hosts": ["b"]}, {"at_s": 90, "do": "return_host", "hosts": ["b"]}
    ).unfolded()
    assert (hole.at_s, hole.do, hole.name) == (20, "black_hole", "lose_host-1")
    assert set(hole.links) == {
        "broker-b -> ns-0",
        "broker-b -> ns-2",
        "producer-1 -> ns-0",
        "producer-1 -> ns-2",
        "producer-1 -> broker-a",
        *(f"{node} -> {peer}" for node in ("producer-0", "consumer-0", "prober") for peer in ("ns-1", "broker-b")),
        "broker-a -> ns-1",
    }
    assert kill.at_s > hole.at_s
    assert (kill.do, kill.nodes) == ("kill", ("ns-1", "broker-b", "producer-1"))
    assert (heal.at_s, heal.do, heal.what.model_dump()["faults"]) == (90, "heal", ("lose_host-1",))
    assert (restart.do, restart.nodes) == ("restart", ("ns-1", "broker-b", "producer-1"))


def test_a_host_that_is_isolated_or_paused_comes_back_as_it_went():
    done = scenario(
        {"at_s": 1, "do": "isolate_host", "hosts": ["b"]},
        {"at_s": 2, "do": "return_host", "hosts": ["b"]},
        {"at_s": 3, "do": "pause_host", "hosts": ["b", "c"]},
        {"at_s": 4, "do": "return_host", "hosts": ["c", "b"]},
    ).unfolded()
    assert [one.do for one in done] == ["black_hole", "heal", "pause", "pause", "resume", "resume"]
    assert done[4].nodes == ("ns-2",)


def test_explain_says_who_is_where_and_when_routes_to_the_lost_host_must_be_gone():
    lost = {"at_s": 20, "do": "lose_host", "hosts": ["b"]}
    told = explanation(scenario(lost, {"at_s": 220, "do": "heal"}, settle_s=200))
    assert told["hosts"]["b"] == ["ns-1", "broker-b", "producer-1"]
    gone = [one for one in told["name_servers"] if one["broker"] == "broker-b" and one["demand"] == "must not hold"]
    assert {one["name_server"] for one in gone} >= {"ns-0", "ns-2"}


def test_the_page_says_what_every_fault_of_a_host_consists_of():
    page = (Path(__file__).parents[3] / "docs/scenarios.md").read_text(encoding="utf-8")
    for do, kind in HOST_ACTIONS.items():
        assert f"| `{do}` | {kind.consists_of} |" in page
