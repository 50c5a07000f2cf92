"""routes_as_registered over hand-written histories: names, ids, addresses and rows that no broker has."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.checks.routes.routes_as_registered import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster, route_of

BOTH = ("broker-a", "broker-b")
A, B = address_of("broker-a"), address_of("broker-b")


def check(builder: HistoryBuilder) -> Verdict:
    return judge(*builder.facts())


def story() -> HistoryBuilder:
    """One NameServer holds the route of two brokers, and a client has taken it."""
    builder = cluster(name_servers=1, clients=("consumer-0",))
    return builder.at(2).event("consumer-0", "route_changed", topic="orders", value=route_of(*BOTH))


def told(at_s: float = 40, who: str = "ns-0", brokers: Any = (), queues: Any = (), **run: Any) -> Verdict:
    """From then on `who` has a route with other addresses or rows than the right one."""
    route = route_of(*BOTH)
    assert route is not None
    route["brokers"].update(brokers)
    route["queues"].update(queues)
    builder = story().at(at_s).event(who, "route" if who == "ns-0" else "route_changed", topic="orders", value=route)
    builder.rows[0]["value"].update(run)
    return check(builder.end(60))


def test_routes_of_the_runs_brokers_are_valid() -> None:
    verdict = check(story().end(60))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 2, 0)


@pytest.mark.parametrize("who", ["ns-0", "consumer-0"])
@pytest.mark.parametrize(
    ("brokers", "queues", "kind", "what"),
    [
        ({"broker-z": {"0": "10.9.9.9:1"}}, {"broker-z": [4, 4, 6, 0]}, "no broker has this name", "broker-z"),
        ({}, {"broker-z": [4, 4, 6, 0]}, "no broker has this name", "broker-z"),
        ({"broker-a": {"0": "10.9.9.9:1"}}, {}, "an address that no broker has", "broker-a"),
        ({"broker-a": {"0": B}}, {}, "one address under two names", "broker-a"),
        ({"broker-a": {"0": B}, "broker-b": {"0": A}}, {}, "another broker's address", "broker-a"),
        ({"broker-a": {"0": A, "1": "10.9.9.9:1"}}, {}, "two addresses under one name", "broker-a"),
        ({"broker-a": {"1": A}}, {}, "an id that the broker has not", "broker-a"),
        ({}, {"broker-a": [3, 4, 6, 0]}, "not as registered", "broker-a"),
        ({}, {"broker-a": [4, 4, 4, 0]}, "not as registered", "broker-a"),
    ],
)
def test_what_no_broker_is_or_has_is_told_as_what_it_is(
    who: str, brokers: Any, queues: Any, kind: str, what: str
) -> None:
    verdict = told(who=who, brokers=brokers, queues=queues)
    assert verdict.verdict is Validity.INVALID
    example = next(example for example in verdict.examples if example.what == what)
    assert (example.who, example.more["kind"], example.topic) == (who, kind, "orders")
    assert (example.from_ms, example.to_ms) == (40_000.0, 60_000.0)


@pytest.mark.parametrize("who", ["ns-0", "consumer-0"])
def test_queues_of_a_broker_that_the_route_gives_no_address_of_are_told(who: str) -> None:
    route = route_of("broker-a")
    assert route is not None
    route["queues"]["broker-b"] = [4, 4, 6, 0]
    builder = story().at(40).event(who, "route" if who == "ns-0" else "route_changed", topic="orders", value=route)
    (found,) = [one for one in check(builder.end(60)).findings if one.wrong]
    assert (found.subject, found.object, found.kind) == (who, "broker-b", "queues without an address")


def test_a_row_that_is_right_only_later_was_wrong_while_it_was_held_and_no_longer() -> None:
    """ns-0 shows 8 queues from 40 s to 41 s, which broker-a registers only at 50 s."""
    new = route_of(*BOTH)
    assert new is not None
    new["queues"]["broker-a"] = [8, 8, 6, 0]
    sent = {"type": "ok", "name_server": address_of("ns-0"), "duration_ms": 10.0}
    builder = story().at(0.5).event("broker-a", "register", value={"version": 0}, **sent)
    builder.at(40).event("ns-0", "route", topic="orders", value=new)
    builder.at(41).route("ns-0", "orders", *BOTH)
    builder.at(50).event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6, "version": 1})
    builder.at(50.2).event("broker-a", "register", value={"version": 1}, **sent)
    builder.at(50.2).event("ns-0", "route", topic="orders", value=new)
    verdict = check(builder.end(60))
    assert verdict.verdict is Validity.INVALID
    (example,) = verdict.examples
    assert (example.from_ms, example.to_ms, example.over_ms) == (40_000.0, 41_000.0, 1_000.0)


@pytest.mark.parametrize("killed", [True, False])
def test_what_a_broker_sent_in_its_last_moment_a_route_may_show_though_nobody_recorded_the_call(
    *, killed: bool
) -> None:
    """Random scenario 90732: the link was slow, and broker-a died before the answer came."""
    new = route_of(*BOTH)
    assert new is not None
    new["queues"]["broker-a"] = [8, 8, 6, 0]
    sent = {"type": "ok", "name_server": address_of("ns-0"), "duration_ms": 10.0}
    builder = story().at(0.5).event("broker-a", "register", value={"version": 0}, **sent)
    builder.at(39).event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6, "version": 1})
    builder.at(40).event("ns-0", "route", topic="orders", value=new)
    if killed:
        builder.at(42).fault("f1", "kill", "sigkill", "broker-a").fault("f1", "kill", "sigkill", "broker-a", end=True)
        builder.restarted("broker-a")
    builder.at(50).event("broker-a", "register", value={"version": 1}, **sent)
    assert check(builder.end(60)).verdict is (Validity.VALID if killed else Validity.INVALID)


def test_a_write_permission_that_somebody_had_wiped_at_the_name_server_is_right() -> None:
    def wiped(broker: str, perm: int) -> Validity:
        route = route_of(*BOTH)
        assert route is not None
        route["queues"]["broker-a"] = [4, 4, perm, 0]
        builder = story().at(40).event("ns-0", "write_perm", broker_name=broker, value={"wiped": 1})
        return check(builder.event("ns-0", "route", topic="orders", value=route).end(60)).verdict

    assert [wiped("broker-a", 4), wiped("broker-a", 2), wiped("broker-b", 4)] == [
        Validity.VALID,
        Validity.INVALID,
        Validity.INVALID,
    ]


def test_a_broker_that_others_brought_into_a_cluster_that_is_up_is_theirs() -> None:
    def joined(scenario: str) -> Validity:
        route = route_of(*BOTH)
        assert route is not None
        route["brokers"]["theirs"], route["queues"]["theirs"] = {"0": "10.1.1.1:10911"}, [8, 8, 6, 0]
        builder = story().at(30)
        about = {"broker_name": "theirs", "broker_id": 0, "address": "10.1.1.1:10911", "code": 0}
        builder.event("ns-0", "registration", **about).event("ns-0", "route", topic="orders", value=route)
        builder.rows[0]["value"]["scenario"] = scenario
        return check(builder.end(60)).verdict

    assert joined("up") is Validity.VALID
    assert joined("smoke") is Validity.INVALID


def test_a_route_that_a_client_borrowed_from_tbw102_is_right() -> None:
    builder = story().event("broker-a", "topic", topic="TBW102", value={"read": 8, "write": 8, "perm": 7})
    value = {"brokers": {"broker-a": {"0": A}}, "queues": {"broker-a": [4, 4, 7, 0]}}
    assert check(builder.at(5).event("consumer-0", "route_changed", topic="new", value=value).end(60)).verdict is (
        Validity.VALID
    )


@pytest.mark.parametrize(("read_only_until_s", "expected"), [(30.05, Validity.VALID), (40, Validity.INVALID)])
def test_what_a_slave_acted_by_is_right_until_its_masters_registration_and_not_for_ever(
    read_only_until_s: float, expected: Validity
) -> None:
    brokers = "broker-a", "broker-a/1"
    builder = cluster(1, brokers, settings={broker: {"enableSlaveActingMaster": True} for broker in brokers})
    builder.topic("broker-a", "orders")
    builder.rows[0]["value"]["profile"] = "5.x"
    master = {"broker_name": "broker-a", "broker_id": 0, "address": A}
    builder.at(1).event("ns-0", "registration", code=0, **master)
    route = route_of("broker-a")
    assert route is not None
    read_only = {**route, "queues": {"broker-a": [4, 4, 4, 0]}}
    builder.at(10).event("ns-0", "broker_dropped", **master, value={"reason": "expired"})
    builder.event("ns-0", "route", topic="orders", value=read_only)
    builder.at(30).event("ns-0", "registration", code=0, **master)
    builder.at(read_only_until_s).event("ns-0", "route", topic="orders", value=route)
    assert check(builder.end(60)).verdict is expected


def test_no_route_at_all_is_unknown() -> None:
    verdict = check(HistoryBuilder(profile="4.9", time_scale=1).node("ns-0").node("broker-a").end(60))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
