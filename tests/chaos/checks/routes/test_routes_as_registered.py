"""routes_as_registered over hand-written histories: names, ids, addresses and rows that no broker has."""

from typing import Any

import pytest

from nemesrv.chaos.checks.routes.routes_as_registered import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import BOTH, KILL, HistoryBuilder, address_of, cluster, judging, route_of

A, B = address_of("broker-a"), address_of("broker-b")

check = judging(judge)


def story() -> HistoryBuilder:
    """One NameServer holds the route of two brokers; nobody recorded what it read."""
    return cluster(name_servers=1)


def told(at_s: float = 40, brokers: Any = (), queues: Any = (), **run: Any) -> Verdict:
    """From then on ns-0 has a route with other addresses or rows than the right one."""
    route = route_of(*BOTH)
    route["brokers"].update(brokers)
    route["queues"].update(queues)
    builder = story().run_says(**run).at(at_s).event("ns-0", "route", topic="orders", value=route)
    return check(builder.end(60))


def test_routes_of_the_runs_brokers_are_valid() -> None:
    verdict = check(story().end(60))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 1, 0)


@pytest.mark.parametrize(
    ("brokers", "queues", "kind", "what"),
    [
        ({"broker-z": {"0": "10.9.9.9:1"}}, {"broker-z": [4, 4, 6, 0]}, "no broker has this name", "broker-z"),
        ({}, {"broker-z": [4, 4, 6, 0]}, "no broker has this name", "broker-z"),
        ({"broker-a": {"0": "10.9.9.9:1"}}, {}, "registered by nobody", "broker-a"),
        ({"broker-a": {"0": B}}, {}, "registered by nobody", "broker-a"),
        ({"broker-a": {"0": A, "1": "10.9.9.9:1"}}, {}, "registered by nobody", "broker-a"),
        ({"broker-a": {"1": A}}, {}, "registered by nobody", "broker-a"),
        ({}, {"broker-a": [3, 4, 6, 0]}, "not as registered", "broker-a"),
        ({}, {"broker-a": [4, 4, 4, 0]}, "not as registered", "broker-a"),
    ],
)
def test_what_no_broker_is_or_has_is_told_as_what_it_is(brokers: Any, queues: Any, kind: str, what: str) -> None:
    verdict = told(brokers=brokers, queues=queues)
    assert verdict.verdict is Validity.INVALID
    example = next(example for example in verdict.examples if example.what == what)
    assert (example.who, example.more["kind"], example.topic) == ("ns-0", kind, "orders")
    assert (example.from_ms, example.to_ms) == (40_000.0, 60_000.0)


def test_queues_of_a_broker_that_the_route_gives_no_address_of_are_told() -> None:
    route = route_of("broker-a")
    route["queues"]["broker-b"] = [4, 4, 6, 0]
    builder = story().at(40).event("ns-0", "route", topic="orders", value=route)
    (found,) = [one for one in check(builder.end(60)).findings if one.wrong]
    assert (found.subject, found.object, found.kind) == ("ns-0", "broker-b", "queues without an address")


def test_a_row_that_is_right_only_later_was_wrong_while_it_was_held_and_no_longer() -> None:
    """ns-0 shows 8 queues from 40 s to 41 s, which broker-a registers only at 50 s."""
    new = route_of(*BOTH)
    new["queues"]["broker-a"] = [8, 8, 6, 0]
    builder = story().at(0.5).register("broker-a", version=0)
    builder.at(40).event("ns-0", "route", topic="orders", value=new)
    builder.at(41).route("ns-0", "orders", *BOTH)
    builder.at(50).event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6, "version": 1})
    builder.at(50.2).register("broker-a", version=1).event("ns-0", "route", topic="orders", value=new)
    verdict = check(builder.end(60))
    assert verdict.verdict is Validity.INVALID
    (example,) = verdict.examples
    assert (example.from_ms, example.to_ms, example.over_ms) == (40_000.0, 41_000.0, 1_000.0)


@pytest.mark.parametrize("killed", [True, False])
def test_a_route_may_show_what_a_broker_sent_in_its_last_moment(*, killed: bool) -> None:
    """Random scenario 90732: the link was slow, and broker-a died before the answer came."""
    new = route_of(*BOTH)
    new["queues"]["broker-a"] = [8, 8, 6, 0]
    builder = story().at(0.5).register("broker-a", version=0)
    builder.at(39).event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6, "version": 1})
    builder.at(40).event("ns-0", "route", topic="orders", value=new)
    if killed:
        builder.at(42).fault(*KILL).fault(*KILL, end=True).restarted("broker-a")
    builder.at(50).register("broker-a", version=1)
    assert check(builder.end(60)).verdict is (Validity.VALID if killed else Validity.INVALID)


def test_a_broker_that_others_brought_into_a_cluster_that_is_up_is_theirs() -> None:
    def joined(scenario: str) -> Validity:
        route = route_of(*BOTH)
        route["brokers"]["theirs"], route["queues"]["theirs"] = {"0": "10.1.1.1:10911"}, [8, 8, 6, 0]
        builder = story().run_says(scenario=scenario).at(30)
        builder.registration("ns-0", "broker-x", broker_name="theirs", address="10.1.1.1:10911")
        builder.event("ns-0", "route", topic="orders", value=route)
        return check(builder.end(60)).verdict

    assert joined("up") is Validity.VALID
    assert joined("smoke") is Validity.INVALID


def read(*said: tuple[float, int, dict[str, list[int]]], at: str = A) -> HistoryBuilder:
    """ns-0 reads of broker-a: at which time which version of which topics; and shows 4 queues all the time."""
    builder = cluster(1, ("broker-a",)).at(0)
    for at_s, version, topics in said:
        builder.at(at_s).registers("ns-0", "broker-a", topics, version, address=at)
    return builder


def kinds(builder: HistoryBuilder) -> list[tuple[str, str]]:
    return [(one.subject, one.kind) for one in check(builder.end(60)).findings if one.wrong]


ORDERS = {"orders": [4, 4, 6, 0]}
MORE = {"orders": [4, 4, 6, 0], "more": [4, 4, 6, 0]}


def test_a_name_server_that_shows_what_it_read_is_right_and_one_that_shows_another_row_is_not() -> None:
    assert kinds(read((1, 1, ORDERS))) == []
    shows = read((1, 1, ORDERS)).at(20).event("ns-0", "route", topic="orders", value=None)
    route = {"brokers": {"broker-a": {"0": A}}, "queues": {"broker-a": [3, 4, 6, 0]}}
    assert kinds(shows.at(21).event("ns-0", "route", topic="orders", value=route)) == [("ns-0", "not as registered")]


@pytest.mark.parametrize(
    ("builder", "kind"),
    [
        (read((1, 1, ORDERS), at=B), "registers an address that it does not have"),
        (read((1, 1, MORE)), "registers other topics than it has at that data version"),
        (read((1, 1, {**ORDERS, "a": [1, 1, 6, 0]}), (9, 1, {**ORDERS, "b": [1, 1, 6, 0]})), "registers other topics"),
        (
            read((1, 1, ORDERS)).registers("ns-0", "broker-a", ORDERS, broker_id=3),
            "registers an id that it does not have",
        ),
        (
            read((1, 1, ORDERS))
            .registers("ns-0", "broker-a", ORDERS, broker_id=3)
            .at(31)
            .read("ns-0", "REGISTER_BROKER", "broker-a"),
            "registers an id that it does not have",
        ),
    ],
)
def test_a_broker_that_registers_what_it_is_not_or_has_not_is_guilty(builder: HistoryBuilder, kind: str) -> None:
    found = [one for one in kinds(builder) if one[0] == "broker-a"]
    assert len(found) == 1
    assert found[0][1].startswith(kind)


@pytest.mark.parametrize("f", ["QUERY_DATA_VERSION", "BROKER_HEARTBEAT"])
@pytest.mark.parametrize(
    ("cluster_name", "address", "wrong"),
    [
        ("DefaultCluster", A, []),
        ("OtherCluster", A, ["another clusterName than its own"]),
        ("DefaultCluster", address_of("broker-a/1"), ["an address that it does not have"]),
    ],
)
def test_a_broker_names_itself_in_all_that_it_asks(f: str, cluster_name: str, address: str, wrong: list[str]) -> None:
    builder = cluster(1, ("broker-a", "broker-a/1")).at(1).registers("ns-0", "broker-a")
    builder.at(5).read("ns-0", f, "broker-a", address=address, value={"cluster": cluster_name})
    asks = "questions (322)" if f == "QUERY_DATA_VERSION" else "heartbeats (904)"
    found = [kind for who, kind in kinds(builder) if who == "broker-a"]
    assert found == [f"names in {asks} {one}" for one in wrong]


@pytest.mark.parametrize(("queues", "is_wrong"), [(4, False), (6, False), (8, True)])
def test_a_topic_that_was_deleted_has_as_many_queues_as_a_first_send_gives_it(queues: int, is_wrong: bool) -> None:
    told = cluster(1, ("broker-a",), clients=("producer-0",), workload={"topic": "orders", "queues": 6})
    told.at(5).act("delete_topic", "broker-a", topic="orders")
    told.at(9).registers("ns-0", "broker-a", {"orders": [queues, queues, 6, 0]})
    found = [kind for who, kind in kinds(told) if who == "broker-a"]
    assert ("registers another number of queues than a first send gives a topic" in found) is is_wrong


def test_a_slave_that_unregisters_its_masters_id_is_guilty_and_somebody_by_hand_is_not() -> None:
    def unregisters(id_: int, *, by_hand: bool = False) -> list[tuple[str, str]]:
        builder = cluster(1, ("broker-a", "broker-a/1")).at(1).registers("ns-0", "broker-a")
        about = {"broker_id": id_, "address": address_of("broker-a/1")}
        builder.at(20).read("ns-0", "UNREGISTER_BROKER", "broker-a/1", **about)
        if by_hand:
            builder.act("unregister", "ns-0", broker_name="broker-a", **about)
        return [one for one in kinds(builder) if one[0] == "broker-a/1"]

    assert unregisters(1) == []
    assert unregisters(0) == [("broker-a/1", "unregisters an id that it does not have")]
    assert unregisters(0, by_hand=True) == []


@pytest.mark.parametrize(
    ("master", "wrong"), [(A, ["registers other topics than its master has"]), ("127.0.0.1:1", []), (None, [])]
)
def test_a_slave_has_its_masters_topics_if_it_knew_the_address(master: str | None, wrong: list[str]) -> None:
    builder = cluster(1, ("broker-a", "broker-a/1")).at(1).registers("ns-0", "broker-a", ORDERS)
    for at_s in (100, 130):
        builder.at(at_s).event("broker-a/1", "register", type="ok", name_server="127.0.0.1:1", value={"master": master})
    builder.at(160).registers("ns-0", "broker-a/1", {"TBW102": [8, 8, 7, 0], "own": [1, 1, 6, 0]})
    found = check(builder.end(200)).findings
    assert [one.kind for one in found if one.wrong and one.subject == "broker-a/1"] == wrong


@pytest.mark.parametrize(
    ("made_s", "wrong"), [(20, []), (25, ["makes a retry topic"]), (None, ["makes a retry topic"])]
)
def test_a_retry_topic_is_made_when_its_first_member_beats(made_s: float | None, wrong: list[str]) -> None:
    builder = story().node("consumer-0").at(20).hears("broker-a", "consumer-0", versions={"%RETRY%group": 1})
    if made_s is not None:
        builder.at(made_s).event("broker-a", "topic", topic="%RETRY%group", value={"read": 1, "write": 1, "perm": 6})
    assert [kind for who, kind in kinds(builder) if who == "broker-a"] == wrong


@pytest.mark.parametrize(("creates", "wrong"), [(True, ["one queue for a group"]), (False, [])])
def test_a_send_may_make_the_retry_topic_of_a_group_that_no_heartbeat_makes(creates: bool, wrong: list[str]) -> None:
    builder = cluster(name_servers=1, settings={"broker-a": {"autoCreateSubscriptionGroup": creates}}).at(20)
    builder.event("broker-a", "topic", topic="%RETRY%group", value={"read": 4, "write": 4, "perm": 6})
    assert [kind for who, kind in kinds(builder) if who == "broker-a"] == wrong


@pytest.mark.parametrize(("switched", "wrong"), [(True, []), (False, ["one queue for a group"])])
def test_a_send_may_make_the_retry_topic_at_a_slave_that_was_made_master(switched: bool, wrong: list[str]) -> None:
    """Random seed 1806320."""
    builder = cluster(1, ("broker-a", "broker-a/1")).at(20)
    if switched:
        builder.act("switch", "broker-a/1")
    builder.at(21).event("broker-a/1", "topic", topic="%RETRY%group", value={"read": 4, "write": 4, "perm": 6})
    assert [kind for who, kind in kinds(builder) if who == "broker-a/1"] == wrong


@pytest.mark.parametrize(("paused", "wrong"), [(True, []), (False, ["registers an id that it does not have"])])
def test_a_name_server_that_stood_still_reads_what_was_before_a_switch(paused: bool, wrong: list[str]) -> None:
    """Random seed 1790037."""
    builder = cluster(1, ("broker-a", "broker-a/1")).at(5).fault(*KILL)
    if paused:
        builder.at(6).fault("f2", "pause", "sigstop", "ns-0", until_s=200)
    builder.at(20).act("switch", "broker-a/1").at(200.001).registers("ns-0", "broker-a/1", broker_id=1)
    found = check(builder.end(300)).findings
    assert [one.kind for one in found if one.wrong and one.subject == "broker-a/1"] == wrong


def test_a_broker_that_registers_at_a_name_server_of_no_list_of_it_is_guilty() -> None:
    def registers(*listed: str) -> list[str]:
        builder = cluster(2, ("broker-a",), nodes={"broker-a": {"name_servers": [*listed]}})
        return [kind for who, kind in kinds(builder.at(1).registers("ns-0", "broker-a")) if who == "broker-a"]

    assert registers("ns-0", "ns-1") == []
    assert registers("ns-1") == ["registers at a NameServer that is on no list of the broker"]


def test_a_broker_that_leaves_a_topic_out_of_its_registration_is_told_with_that_topic() -> None:
    builder = read((1, 1, MORE)).at(0.5)
    for topic in (*MORE, "late"):
        builder.event("broker-a", "topic", topic=topic, value={"read": 4, "write": 4, "perm": 6, "version": 1})
    found = check(builder.end(60)).findings
    assert [one.more["came"] for one in found if one.subject == "broker-a" and one.wrong] == ["2 topics, without late"]


@pytest.mark.parametrize(
    ("acts", "wrong"), [(1, set()), (2, {("ns-0", "another slave acts")}), (0, {("ns-0", "no slave acts")})]
)
def test_the_slave_with_the_least_id_acts_for_a_master_that_is_gone(acts: int, wrong: set[tuple[str, str]]) -> None:
    brokers = "broker-a", "broker-a/1", "broker-a/2"
    builder = cluster(1, brokers, settings={"ns-0": {"supportActingMaster": True}}, profile="5.x")
    for broker in brokers:
        builder.at(1).registers("ns-0", broker, MORE, acting=True)
    for topic in MORE:
        builder.at(1).event("ns-0", "route", topic=topic, value=route_of(*brokers))
    builder.at(20).event("ns-0", "channel_ended", f="peer", op_id="broker-a", value={"reason": "closed"})
    ids = {str(id_ if id_ != acts else 0): address_of(f"broker-a/{id_}") for id_ in (1, 2)}
    route = {"brokers": {"broker-a": ids}, "queues": {"broker-a": [4, 4, 4, 0]}}
    for topic in MORE:
        builder.at(20).event("ns-0", "route", topic=topic, value=route)
    assert {one for one in kinds(builder) if one[0] == "ns-0"} == wrong


@pytest.mark.parametrize(
    ("told", "is_wrong"),
    [
        ([(20.1, "1")], False),
        ([(20.1, "0")], True),
        ([], True),
        ([(22.0, "1")], True),
        ([(20.1, "1"), (40.0, "1")], True),
    ],
)
def test_a_name_server_tells_the_slave_of_the_new_least_id(told: list[tuple[float, str]], is_wrong: bool) -> None:
    brokers, slave = ("broker-a", "broker-a/1"), address_of("broker-a/1")
    builder = cluster(1, brokers, settings={"ns-0": {"notifyMinBrokerIdChanged": True}}, profile="5.x")
    for broker in brokers:
        builder.at(1).registers("ns-0", broker, MORE, acting=True)
    builder.at(20).event("ns-0", "channel_ended", f="peer", op_id="broker-a", value={"reason": "closed"})
    for at_s, least in told:
        said = {"minBrokerId": least, "minBrokerAddr": slave, "offlineBrokerAddr": A}
        about = {"broker_name": "broker-a", "address": slave, "duration_ms": 1.0}
        builder.at(at_s).event("ns-0", "min_broker_id_told", value=said, **about)
    assert (("ns-0", "tells the smallest id") in kinds(builder)) == is_wrong


@pytest.mark.parametrize(("left_s", "is_wrong"), [(20.1, False), (23.0, True)])
def test_a_slave_that_leaves_with_its_master_need_not_be_told_of_the_least_id(left_s: float, is_wrong: bool) -> None:
    brokers, stays = ("broker-a", "broker-a/1", "broker-a/2"), address_of("broker-a/1")
    builder = cluster(1, brokers, settings={"ns-0": {"notifyMinBrokerIdChanged": True}}, profile="5.x")
    for broker in brokers:
        builder.at(1).registers("ns-0", broker, MORE, acting=True)
    for at_s, broker in ((20, "broker-a"), (left_s, "broker-a/2")):
        builder.at(at_s).drops("ns-0", broker)
        builder.event("ns-0", "channel_ended", f="peer", op_id=broker, value={"reason": "closed"})
    said = {"minBrokerId": "1", "minBrokerAddr": stays, "offlineBrokerAddr": A}
    about = {"broker_name": "broker-a", "address": stays, "duration_ms": 1.0}
    builder.at(20.2).event("ns-0", "min_broker_id_told", value=said, **about)
    assert (("ns-0", "tells the smallest id") in kinds(builder)) == is_wrong


def shown(builder: HistoryBuilder, at_s: float, perm: int = 6, **ids: str) -> HistoryBuilder:
    """ns-0's route of orders from then on, with these addresses of broker-a."""
    brokers = {id_.removeprefix("id_"): address for id_, address in (ids or {"id_0": A}).items()}
    value = {"brokers": {"broker-a": brokers}, "queues": {"broker-a": [4, 4, perm, 0]}}
    return builder.at(at_s).event("ns-0", "route", topic="orders", value=value)


@pytest.mark.parametrize(("version", "wrong"), [(2, []), (1, [("ns-0", "queues of an old version")])])
def test_an_unchanged_version_leaves_a_wiped_permission(version: int, wrong: list[tuple[str, str]]) -> None:
    builder = read((1, 1, ORDERS)).at(20)
    shown(builder.read("ns-0", "WIPE_WRITE_PERM_OF_BROKER", "broker-a", address=None, broker_id=None), 20, perm=4)
    shown(builder.at(31).registers("ns-0", "broker-a", ORDERS, version), 31)
    assert kinds(builder) == wrong


@pytest.mark.parametrize(("version", "wrong"), [(2, []), (1, [("ns-0", "queues of an old version")])])
def test_an_unchanged_version_brings_no_deleted_topic_back(version: int, wrong: list[tuple[str, str]]) -> None:
    builder = read((1, 1, MORE)).at(20)
    builder.read("ns-0", "DELETE_TOPIC_IN_NAMESRV", topic="orders")
    builder.act("delete_topic", "ns-0", topic="orders").event("ns-0", "route", topic="orders", value=None)
    shown(builder.at(31).registers("ns-0", "broker-a", MORE, version), 31)
    assert [one for one in kinds(builder) if one[0] == "ns-0"] == wrong


@pytest.mark.parametrize(("version", "wrong"), [(2, []), (1, [("ns-0", "address of an old version")])])
def test_only_a_greater_state_version_takes_a_living_address(version: int, wrong: list[tuple[str, str]]) -> None:
    builder = cluster(1, ("broker-a",), profile="5.x").at(1)
    builder.registers("ns-0", "broker-a", MORE, state_version=2)
    shown(builder.at(20).registers("ns-0", "broker-a", MORE, 2, address=B, state_version=version), 20, id_0=B)
    assert [one for one in kinds(builder) if one[0] == "ns-0"] == wrong


@pytest.mark.parametrize(
    ("version", "changed", "is_wrong"), [(1, False, False), (1, True, True), (2, True, False), (2, False, True)]
)
def test_a_name_server_answers_whether_a_version_is_another(version: int, changed: bool, is_wrong: bool) -> None:
    builder = (
        read((1, 1, MORE)).at(20).read("ns-0", "QUERY_DATA_VERSION", "broker-a", value={"version": [0, 0, version]})
    )
    about: dict[str, Any] = {"type": "ok", "name_server": address_of("ns-0"), "duration_ms": 2.0}
    builder.at(20.001).event("broker-a", "data_version", value={"changed": changed}, **about)
    builder.at(29).event("broker-a", "data_version", value={"changed": not changed}, **about)
    assert (("ns-0", "compares data versions") in kinds(builder)) is is_wrong


@pytest.mark.parametrize(
    ("codes", "wrong"), [((1,), []), ((0,), [("ns-0", "refuses a single topic")]), ((0, 1), [])], ids=str
)
def test_5_x_refuses_a_first_registration_of_one_topic(codes: tuple[int, ...], wrong: list[tuple[str, str]]) -> None:
    builder = read((1, 1, ORDERS)).run_says(profile="5.x")
    for code in codes:
        builder.registration("ns-0", "broker-a", code=code)
    assert [one for one in kinds(builder) if one[1] == "refuses a single topic"] == wrong


@pytest.mark.parametrize(
    ("topics", "perm", "wrong"),
    [
        (("orders", "fresh"), 6, []),
        (("orders",), 6, [("broker-a", "fresh")]),
        (("fresh", "orders"), 4, [("broker-a", "orders")]),
    ],
)
def test_a_broker_that_is_started_again_has_the_topics_that_it_had(
    topics: tuple[str, ...], perm: int, wrong: list[tuple[str, str]]
) -> None:
    builder = read((1, 1, ORDERS)).at(10).topic("broker-a", "orders").topic("broker-a", "fresh")
    builder.at(20).fault(*KILL).at(30).restarted("broker-a").fault(*KILL, end=True)
    for topic in topics:
        builder.topic("broker-a", topic)
    builder.rows[-1]["value"] |= {"perm": perm}
    found = check(builder.at(31).register("broker-a").end(60)).findings
    kind = "keeps topics over a restart"
    assert [(one.subject, one.topic) for one in found if one.kind == kind and one.wrong] == wrong


@pytest.mark.parametrize(
    ("versions", "wrong"), [((2, 2, 2), []), ((3, 3, 3), ["changes its version"]), ((2, 2, 1), ["keeps its version"])]
)
def test_a_data_version_rises_with_topics_and_survives_a_restart(versions: tuple[int, ...], wrong: list[str]) -> None:
    builder = read((1, 1, ORDERS)).at(1).topic("broker-a", "orders")
    builder.rows[-1]["value"] |= {"version": 2}
    for at_s, version in zip((2, 12, 31), versions, strict=True):
        if at_s == 31:
            builder.at(20).fault(*KILL).at(30).restarted("broker-a").fault(*KILL, end=True)
            builder.topic("broker-a", "orders")
            builder.rows[-1]["value"] |= {"version": version}
        builder.at(at_s).register("broker-a", topics=1, version=version)
    found = check(builder.end(60)).findings
    assert [one.kind for one in found if one.kind.endswith("its version") and one.wrong] == wrong


@pytest.mark.parametrize(("code", "wrong"), [(0, []), (1, [("ns-0", "accepts registrations")])], ids=str)
def test_a_name_server_refuses_no_registration_that_it_must_take(code: int, wrong: list[tuple[str, str]]) -> None:
    builder = read((20, 1, ORDERS)).registration("ns-0", "broker-a", code=code)
    assert [one for one in kinds(builder) if one[1] == "accepts registrations"] == wrong


@pytest.mark.parametrize(("code", "wrong"), [(None, []), (1, [("ns-0", "accepts registrations")])], ids=str)
def test_what_a_broker_was_answered_is_held_against_the_name_server(
    code: int | None, wrong: list[tuple[str, str]]
) -> None:
    builder = read((20, 1, ORDERS)).at(20).register("broker-a")
    builder.rows[-1]["code"] = code
    assert [one for one in kinds(builder) if one[1] == "accepts registrations"] == wrong


def test_a_refusal_is_not_held_against_another_registration_of_the_same_moment() -> None:
    builder = read((20, 1, MORE)).run_says(profile="5.x")
    builder.event("ns-0", "channel_ended", f="peer", op_id="broker-a", value={"reason": "closed"})
    builder.drops("ns-0", "broker-a").registers("ns-0", "broker-a", ORDERS, 2).registration("ns-0", "broker-a", code=1)
    assert [one for one in kinds(builder) if one[1] == "accepts registrations"] == []


@pytest.mark.parametrize(("f", "wrong"), [("update_config", []), ("update_topic", ["keeps its version"])])
def test_a_broker_writes_its_version_only_as_a_topic_changes(f: str, wrong: list[str]) -> None:
    builder = story().at(0.5).register("broker-a", version=1)
    said = {"settings": {"brokerPermission": 2}} if f == "update_config" else {"perm": 2}
    row = {"read": 4, "write": 4, "perm": 2}
    builder.at(30).act(f, "broker-a", value=said)
    builder.event("broker-a", "topic", topic="orders", value={**row, "version": 2})
    builder.at(31).register("broker-a", version=2)
    builder.incarnations["broker-a"] = 1
    builder.at(60).event("broker-a", "topic", topic="orders", value={**row, "version": 1})
    builder.at(61).register("broker-a", version=1)
    assert [kind for who, kind in kinds(builder) if who == "broker-a" and "version" in kind] == wrong
