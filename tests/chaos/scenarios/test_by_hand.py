"""Acts by hand in a scenario: what may be said, what is refused and how, and what `explain` makes of it."""

from typing import Any

import pytest

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.explain import explanation
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from tests.refusals import refusal

REGISTER = {"at_s": 5, "do": "register", "nodes": ["ns-0"], "broker": "broker-x", "address": "10.9.9.9:10911"}


def of(*timeline: dict[str, Any], **more: Any) -> Scenario:
    document = {"cluster": {"name_servers": 2, "brokers": 2}, "checks": ["done_by_hand"], "timeline": list(timeline)}
    return parse({**document, **more}, file="x.yaml")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"do": "register", "nodes": ["broker-a"]}, "REGISTER_BROKER (103) is asked of ns-0, ns-1"),
        ({"do": "register", "nodes": []}, "needs `nodes`, e.g. nodes: [ns-0]"),
        ({"do": "register", "address": "nowhere"}, "one of broker-a, broker-b, or host:port"),
        ({"do": "register", "address": "broker-aa"}, "did you mean broker-a?"),
        ({"do": "register", "every_s": 0.5}, "every_s: 0.5 is not allowed; expected a number from 1 to 600, or null"),
        ({"do": "register", "topics": {"orders": 99}}, "topics.orders: 99 is not allowed"),
        ({"do": "register", "perm": 5}, "perm: 5 is not allowed; expected one of 2, 4, 6"),
        ({"do": "register", "borker": "b"}, "did you mean broker?"),
        ({"do": "unregister", "broker": "broker-x"}, "the address that it has: broker-x is no broker of the scenario"),
        ({"do": "wipe_write_perm", "broker": "broker-z"}, "one of broker-a, broker-b; did you mean broker-"),
        ({"do": "wipe_write_perm", "nodes": ["broker-a"], "broker": "broker-a"}, "is asked of ns-0, ns-1"),
        ({"do": "update_topic", "nodes": ["ns-0"], "topic": "t"}, "is asked of broker-a, broker-b"),
        ({"do": "update_topic", "nodes": ["broker-a"]}, "topic: expected"),
        ({"do": "update_topic", "nodes": ["broker-a"], "topic": "t", "read_queues": 0}, "a whole number from 1 to 64"),
        ({"do": "update_topic", "nodes": ["broker-a"], "topic": "t", "order": 3}, "true or false"),
        ({"do": "delete_topic", "nodes": ["broker-a"], "topic": "t", "cluster_name": "eu"}, "entry are NameServers"),
        ({"do": "update_config", "settings": {}}, "settings: {} is not allowed"),
        ({"do": "update_config", "settings": {"brokerPermission": 4}}, "settings.brokerPermission: 4 is not allowed"),
        ({"do": "update_config", "settings": {"orderMessageEnable": 3}}, "3 is not allowed; expected true or false"),
        ({"do": "update_config", "settings": {"scanNotActiveBrokerInterval": 9}}, "said in `config:` only"),
        ({"do": "wipe_write_prem", "broker": "broker-a"}, "did you mean wipe_write_perm?"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_sentence(entry: dict[str, Any], said: str) -> None:
    whole = {**REGISTER, **entry} if entry["do"] == "register" else {"at_s": 5, "nodes": ["ns-0"], **entry}
    with refusal(said):
        of(whole)


def test_who_acts_by_hand_is_a_node_only_where_somebody_does() -> None:
    assert "admin" not in of().topology().nodes
    assert "admin" in of(REGISTER).topology().nodes
    assert [str(link) for link in of(REGISTER).topology().parse_links("admin -> ns-1")] == ["admin->ns-1"]


def test_what_is_written_back_is_the_same() -> None:
    said = of(REGISTER, {"at_s": 6, "do": "update_config", "nodes": ["ns-0"], "settings": {"orderMessageEnable": True}})
    assert said.to_yaml() == parse(__import__("yaml").safe_load(said.to_yaml()), file="x.yaml").to_yaml()


def test_explain_says_who_need_not_be_held_and_until_when() -> None:
    told = explanation(of({"at_s": 20, "do": "unregister", "nodes": ["ns-0"], "broker": "broker-a"}, settle_s=60))
    at_ns_0 = [
        (one["demand"], one["from_s"], one["to_s"])
        for one in told["name_servers"]
        if (one["name_server"], one["broker"]) == ("ns-0", "broker-a")
    ]
    assert at_ns_0 == [("must hold", 0.0, 20.0), ("may hold", 20.0, 53.001), ("must hold", 53.001, 80.0)]


def test_a_process_that_goes_on_registering_does_so_until_it_is_unregistered() -> None:
    undone = {**REGISTER, "at_s": 70, "do": "unregister"}
    world = expected_world(of({**REGISTER, "every_s": 30}, undone)).world
    assert [(act.f, round(act.ended_ms)) for act in world.acts] == [
        ("register", 5001),
        ("register", 35001),
        ("register", 65001),
        ("unregister", 70001),
    ]
