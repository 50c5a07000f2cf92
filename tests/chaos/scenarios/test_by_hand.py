"""Acts by hand in a scenario: who acts, and what `explain` makes of it."""

from typing import Any

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.explain import explanation
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

REGISTER = {"at_s": 5, "do": "register", "nodes": ["ns-0"], "broker": "broker-x", "address": "10.9.9.9:10911"}


def of(*timeline: dict[str, Any], **more: Any) -> Scenario:
    document = {"cluster": {"name_servers": 2, "brokers": 2}, "checks": ["done_by_hand"], "timeline": list(timeline)}
    return parse({**document, **more}, file="x.yaml")


def test_who_acts_by_hand_is_a_node_only_where_somebody_does() -> None:
    assert "admin" not in of().topology().nodes
    assert "admin" in of(REGISTER).topology().nodes
    assert [str(link) for link in of(REGISTER).topology().parse_links("admin -> ns-1")] == ["admin->ns-1"]


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
