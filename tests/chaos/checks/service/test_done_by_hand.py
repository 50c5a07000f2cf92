"""done_by_hand over hand-written histories: what somebody did shows, for as long as it must, and then no longer."""

from typing import Any

import pytest

from nemesrv.chaos.checks.service.done_by_hand import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HistoryBuilder, address_of, cluster, judging

STRANGE = "10.9.9.9:10911"

check = judging(judge)


def story(**run: Any) -> HistoryBuilder:
    """One NameServer, which holds broker-a from 1 s on, as broker-a registered it and does again each 30 s."""
    builder = cluster(name_servers=1, brokers=("broker-a",), **run).at(1).topic("broker-a", "orders").registers(*OF_A)
    for at_s in (31, 61):
        builder.at(at_s).registers(*OF_A)
    return builder


CODES = {
    "register": "REGISTER_BROKER",
    "unregister": "UNREGISTER_BROKER",
    "wipe_write_perm": "WIPE_WRITE_PERM_OF_BROKER",
    "delete_topic": "DELETE_TOPIC_IN_NAMESRV",
}


def act(builder: HistoryBuilder, at_s: float, f: str, **more: Any) -> HistoryBuilder:
    value = {"topics": {"orders": 4}, "perm": 6, **more.pop("value", {})}
    broker, topic, target = more.get("broker_name", ""), more.get("topic"), more.pop("target", "ns-0")
    if f == "register":
        builder.at(at_s - 0.002).registers("ns-0", broker, address=more["address"])
    elif target == "ns-0":
        said = {"cluster": value["cluster_name"]} if "cluster_name" in value else None
        builder.at(at_s - 0.002).read("ns-0", CODES[f], broker, topic=topic, value=said)
    return builder.at(at_s).act(f, target, value=value, **{"broker_id": 0, **more})


def holds(builder: HistoryBuilder, at_s: float, **addresses: str) -> HistoryBuilder:
    """ns-0's route of orders from then on: broker (a, x) to its address."""
    if not addresses:
        return builder.at(at_s).event("ns-0", "route", topic="orders", value=None)
    brokers = {f"broker-{name}": {"0": address} for name, address in addresses.items()}
    queues = {f"broker-{name}": [4, 4, 6, 0] for name in addresses}
    return builder.at(at_s).event("ns-0", "route", topic="orders", value={"brokers": brokers, "queues": queues})


OF_A = "ns-0", "broker-a"
OWN = address_of("broker-a")


def test_a_stranger_that_is_registered_is_there_until_it_is_silent_and_then_not() -> None:
    builder = act(story(), 10, "register", broker_name="broker-x", address=STRANGE)
    holds(builder, 9.999, a=OWN, x=STRANGE)
    builder.at(130.2).event("ns-0", "scheduled_task", f="scanNotActiveBroker")
    holds(builder, 130.2, a=OWN).end(140)
    verdict = check(builder)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 1)


def test_a_broker_that_is_unregistered_is_gone_until_it_registers_again() -> None:
    gone = act(story(), 40, "unregister", broker_name="broker-a", address=OWN)
    holds(gone, 39.999)
    holds(gone, 61.005, a=OWN)
    assert check(gone.end(90)).verdict is Validity.VALID
    kept = act(story(), 40, "unregister", broker_name="broker-a", address=OWN).end(90)
    verdict = check(kept)
    assert (verdict.verdict, verdict.examples[0].over_ms) == (Validity.INVALID, 21_002.0)


@pytest.mark.parametrize("leaves", [True, False])
def test_of_a_name_of_two_clusters_that_left_nobody_knows_which_cluster_still_has_it(*, leaves: bool) -> None:
    told = story()
    said = {"version": [0, 0, 1], "topics": {"orders": [4, 4, 6, 0]}, "cluster": "eu", "timeout_ms": None}
    told.at(40).read("ns-0", "REGISTER_BROKER", "broker-a", value={"registers": {**said, "acting": None}})
    if leaves:
        told.at(45).read("ns-0", "UNREGISTER_BROKER", "broker-a").at(46).registers(*OF_A)
    told = act(told, 70, "delete_topic", topic="orders", value={"cluster_name": "eu"})
    assert check(told.end(90)).verdict is (Validity.VALID if leaves else Validity.INVALID)


@pytest.mark.parametrize(("took_ms", "is_judged"), [(5.0, True), (6_000.0, False)])
def test_of_two_acts_at_one_time_nobody_knows_the_last(took_ms: float, is_judged: bool) -> None:
    asked: dict[str, Any] = {"target": "broker-a", "topic": "orders", "fault_id": "act-2", "duration_ms": took_ms}
    both = act(story(), 40, "delete_topic", target="broker-a", topic="orders", fault_id="act-1")
    judged = check(act(both, 45, "update_topic", **asked, value={"read_queues": 8, "write_queues": 8}).end(90))
    assert (judged.verdict is Validity.INVALID) is is_judged


@pytest.mark.parametrize(
    ("profile", "perm", "is_valid"), [("4.9", 2, True), ("4.9", 0, False), ("5.x", 0, True), ("5.x", 2, False)]
)
def test_a_topic_to_read_has_its_brokers_permission(*, profile: str, perm: int, is_valid: bool) -> None:
    told = story().run_says(profile=profile)
    for at_s, has in ((10, 4), (40, perm)):
        told.at(at_s).event("broker-a", "topic", topic="fresh", value={"read": 2, "write": 2, "perm": has})
    told.event("broker-a", "topic", topic="orders", value={"read": 4, "write": 4, "perm": 2})
    act(told, 40, "update_config", target="broker-a", value={"settings": {"brokerPermission": 2}})
    wrong = [one.topic for one in check(told.end(90)).findings if one.wrong]
    assert wrong == ([] if is_valid else ["fresh"])


@pytest.mark.parametrize(("stops_s", "wrong"), [(None, ["refused by hand"]), (40.5, [])])
def test_a_name_server_refuses_no_wipe_but_while_it_stops(stops_s: float | None, wrong: list[str]) -> None:
    """5.5.1 answers code 1 from SIGTERM to its end (apache/rocketmq#11072)."""
    told = act(story(), 40, "wipe_write_perm", broker_name="broker-a", code=1, type="fail")
    if stops_s is not None:
        told.at(stops_s).fault("f1", "stop", "sigterm", "ns-0", until_s=60)
    assert [one.more["kind"] for one in check(told.end(90)).examples] == wrong


def test_a_late_machine_is_an_excuse_that_is_said() -> None:
    builder = act(story(), 40, "unregister", broker_name="broker-a", address=OWN)
    holds(builder, 43.5).at(0).lag(4000.0, until_s=90)
    holds(builder, 61.005, a=OWN)
    assert check(builder.end(90, lag_ms=None)).verdict is Validity.VALID


@pytest.mark.parametrize(("who", "back_s", "wrong"), [("broker-a", 60, True), ("broker-a", None, False)])
def test_a_topic_that_was_deleted_at_its_broker_does_not_come_back(who: str, back_s: float | None, wrong: bool) -> None:
    told = story().at(2).topic(who, "spare")
    told.at(40).event(who, "topic", topic="spare", value=None)
    act(told, 40.001, "delete_topic", topic="spare", target=who)
    if back_s is not None:
        told.at(back_s).topic(who, "spare")
    assert [one.more["kind"] for one in check(told.end(90)).examples] == (["comes back"] if wrong else [])


@pytest.mark.parametrize(("creates", "wrong"), [(True, []), (False, ["comes back"])])
def test_only_auto_create_topic_enable_lets_a_send_create_a_topic_again(creates: bool, wrong: list[str]) -> None:
    settings = {"broker-a": {"autoCreateTopicEnable": creates}}
    told = story(clients=("producer-0",), workload={"topic": "orders"}, settings=settings)
    told.at(40).event("broker-a", "topic", topic="orders", value=None)
    act(told, 40.001, "delete_topic", topic="orders", target="broker-a").at(60).topic("broker-a", "orders")
    assert [one.more["kind"] for one in check(told.end(90)).examples] == wrong


@pytest.mark.parametrize(("at_s", "wrong"), [(60, []), (80, ["broker-a/1"])])
def test_a_slave_registers_no_topic_that_its_master_had_deleted_when_it_copied(at_s: float, wrong: list[str]) -> None:
    told = cluster(1, ("broker-a", "broker-a/1")).at(1).topic("broker-a", "orders").registers(*OF_A)
    told.at(2).topic("broker-a", "spare").at(40).event("broker-a", "topic", topic="spare", value=None)
    act(told, 40.001, "delete_topic", topic="spare", target="broker-a")
    said = {"version": [0, 0, 1], "topics": {"spare": [2, 2, 6, 0]}, "cluster": "eu"}
    told.at(at_s).read("ns-0", "REGISTER_BROKER", "broker-a/1", value={"registers": said})
    assert [one.who for one in check(told.end(90)).examples] == wrong
