"""One fault of a part shows in several checks: one node is named, with the guarantee that it broke."""

from dataclasses import replace

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.cause import cause_of, followed, guilty_nodes
from nemesrv.chaos.checks.check import Group
from nemesrv.chaos.checks.findings import at_no_time, finding, verdict_of
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Example, Validity, Verdict
from tests.chaos.builder import example


def verdict(name: str, validity: Validity, who: str = "") -> Verdict:
    one = example(who, "broker-a", topic="orders", from_s=1, to_s=3, kind="must hold an acknowledged broker")
    return Verdict(name=name, verdict=validity, examined=1, violations=1, examples=(one,), why="")


def test_a_run_that_is_not_invalid_has_no_cause() -> None:
    assert cause_of([verdict("routes_are_true", Validity.VALID), verdict("availability", Validity.UNKNOWN)]) is None


def test_the_part_that_broke_its_own_guarantee_comes_before_what_followed_from_it() -> None:
    followed = verdict("availability", Validity.INVALID, "producer-0")
    found = cause_of([followed, verdict("registrations_are_kept", Validity.INVALID, "ns-0")])
    assert found is not None
    assert found.node == "ns-0"
    assert found.guarantee == CHECKS["registrations_are_kept"].says
    told = "ns-0 acknowledged broker-a's registration, but did not list broker-a (topic orders), from 1.0 to 3.0 s"
    assert found.sentence == f"{told} (2.0 s)."


def test_an_act_that_a_node_did_wrongly_comes_before_the_table_that_is_wrong_from_then_on() -> None:
    wrong = [verdict("registrations_are_kept", Validity.INVALID, "ns-0")]
    for node, first in (("ns-0", "done_by_hand"), ("ns-1", "registrations_are_kept")):
        found = cause_of([*wrong, verdict("done_by_hand", Validity.INVALID, node)])
        assert found is not None
        assert found.guarantee == CHECKS[first].says


@pytest.mark.parametrize(
    ("who", "what", "from_s", "leads"),
    [
        ("ns-0", "broker-a", 1.0, True),
        ("ns-1", "broker-a", 1.0, False),
        ("ns-0", "broker-b", 1.0, False),
        ("ns-0", "broker-a", 2.0, False),
    ],
)
def test_a_drop_comes_before_the_table_that_lacks_the_broker(who: str, what: str, from_s: float, leads: bool) -> None:
    drop = example(who, what, from_s=from_s, to_s=3, kind="dropped too soon", reason="expired")
    drop = replace(drop, measured_ms=61_000.0, earliest_ms=120_000.0, over_ms=59_000.0)
    wrong = [
        verdict("registrations_are_kept", Validity.INVALID, "ns-0"),
        replace(verdict("no_false_eviction", Validity.INVALID), examples=(drop,)),
    ]
    found = cause_of(wrong)
    assert found is not None
    assert found.guarantee == CHECKS["no_false_eviction" if leads else "registrations_are_kept"].says
    assert found.sentence.startswith("ns-0 dropped broker-a at 1.0 s (expired)") == leads
    assert not leads or [v.name for v in followed(wrong)] == ["registrations_are_kept"]


def test_every_node_that_broke_a_guarantee_is_named_the_nearest_to_the_cause_first() -> None:
    wrong = [
        verdict("client_routes_are_true", Validity.INVALID, "producer-1"),
        verdict("timers_kept", Validity.VALID, "consumer-0"),
        verdict("registrations_are_kept", Validity.INVALID, "ns-0"),
        verdict("routes_are_true", Validity.INVALID, "ns-0"),
    ]
    assert guilty_nodes(wrong) == {
        "ns-0": ["registrations_are_kept", "routes_are_true"],
        "producer-1": ["client_routes_are_true"],
    }
    assert guilty_nodes([verdict("timers_kept", Validity.VALID, "consumer-0")]) == {}


def test_a_broker_that_forgot_a_message_comes_before_the_order_that_the_loss_upset() -> None:
    lost = Example(who="broker-a", what="producer-0", from_ms=1_000.0, more={"kind": "forgotten at a start"})
    forgot = replace(verdict("no_acknowledged_loss", Validity.INVALID), examples=(lost,))
    found = cause_of([verdict("order_kept", Validity.INVALID, "consumer-0"), forgot])
    assert found is not None
    assert (found.node, found.guarantee) == ("broker-a", CHECKS["no_acknowledged_loss"].says)


def test_a_look_up_that_nothing_asked_for_comes_behind_what_made_the_client_ask() -> None:
    asked = Example(who="consumer-0", what="look-up", from_ms=1_000.0, more={"kind": "looks up at polls only"})
    timers = replace(verdict("timers_kept", Validity.INVALID), examples=(asked,))
    unread = verdict("living_are_used", Validity.INVALID, "consumer-0")
    for wrong, first in (([timers, unread], "living_are_used"), ([timers], "timers_kept")):
        found = cause_of(wrong)
        assert found is not None
        assert found.guarantee == CHECKS[first].says


@pytest.mark.parametrize(
    ("kind", "first"),
    [("answered a wrong next offset", "order_kept"), ("answered a wrong end", "no_acknowledged_loss")],
)
def test_a_message_that_a_broker_sent_its_consumer_past_is_not_called_lost(kind: str, first: str) -> None:
    lost = Example(who="producer-0", what="broker-a", from_ms=1_000.0, more={"kind": "lost"})
    sent_past = Example(who="consumer-0", what="broker-a", from_ms=2_000.0, more={"kind": kind})
    wrong = [
        replace(verdict("no_acknowledged_loss", Validity.INVALID), examples=(lost,)),
        replace(verdict("order_kept", Validity.INVALID), examples=(sent_past,)),
    ]
    found = cause_of(wrong)
    assert found is not None
    assert (found.node, found.guarantee) == ("broker-a", CHECKS[first].says)


def test_who_only_a_promise_of_the_whole_names_is_guilty_where_no_part_is() -> None:
    late = verdict("dead_brokers_avoided", Validity.INVALID, "producer-1")
    assert guilty_nodes([late]) == {"producer-1": ["dead_brokers_avoided"]}
    assert list(guilty_nodes([late, verdict("registrations_are_kept", Validity.INVALID, "ns-0")])) == ["ns-0"]


def test_where_tables_are_what_was_read_a_broker_that_they_lack_is_guilty() -> None:
    missing = Example(who="ns-0", what="broker-a", from_ms=1_000.0, more={"kind": "must hold"})
    lacks = replace(verdict("routes_are_true", Validity.INVALID), examples=(missing,))
    for kept, guilty in ((Validity.VALID, "broker-a"), (Validity.INVALID, "ns-0"), (Validity.UNKNOWN, "ns-0")):
        found = cause_of([lacks, verdict("registrations_are_kept", kept, "ns-0")])
        assert found is not None
        assert found.node == guilty
        assert found.sentence.startswith("broker-a did not register with ns-0") == (guilty == "broker-a")


def test_what_a_client_saw_and_its_broker_did_accuses_the_broker() -> None:
    saw = Example(who="producer-0", what="broker-a", from_ms=1_000.0, more={"kind": "lost"})
    found = cause_of([replace(verdict("no_acknowledged_loss", Validity.INVALID), examples=(saw,))])
    assert found is not None
    assert found.node == "broker-a"


def test_who_holds_an_unread_queue_is_guilty_else_another_check_knows() -> None:
    def guilty(holder: str) -> str:
        unread = Example(who="nemesrv-consumers", what="broker-a", more={"kind": "read by nobody", "holder": holder})
        shared = verdict("queue_ownership", Validity.INVALID, "consumer-1")
        found = cause_of([replace(verdict("living_are_used", Validity.INVALID), examples=(unread,)), shared])
        return found.node if found is not None else ""

    assert (guilty("consumer-0"), guilty("")) == ("consumer-0", "consumer-1")


def test_of_findings_that_are_as_bad_that_of_a_users_topic_is_told_first() -> None:
    topics, about = ("DefaultCluster_REPLY_TOPIC", "broker-a", "orders"), ("lists a broker", (0.0, 9.0))
    wrong = [finding(("ns-0", "broker-a", of), *about, at_no_time("-"), out=(0.0, 9.0), wrong=1) for of in topics]
    found = replace(verdict_of(wrong, measured={}, nothing="", noun="routes"), name="routes_as_registered")
    assert [example.topic for example in found.examples] == ["orders", "DefaultCluster_REPLY_TOPIC", "broker-a"]


@pytest.mark.parametrize("group", Group)
def test_a_scenario_may_name_a_group_for_all_of_its_checks(group: Group) -> None:
    of = {check.name for check in CHECKS.values() if check.group is group}
    named = parse({"timeline": [], "settle_s": 60, "checks": [str(group)]}, file="mine.yaml").checks
    assert set(named) == of
