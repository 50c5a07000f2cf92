"""What the checks say of a broker that is killed at 100 s and back at another address at 110 s."""

import pytest

from nemesrv.chaos.checks.clients import dead_brokers_avoided
from nemesrv.chaos.checks.routes import no_false_eviction, one_master, routes_are_true, routes_as_registered
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import KILL, HistoryBuilder, address_of, cluster, route_of

OLD, NEW = address_of("broker-a"), "127.0.0.1:12345"


def route(at: str | None) -> dict[str, object] | None:
    """The topic's route with broker-a at that address, or without it."""
    found = route_of("broker-b") if at is None else route_of("broker-a", "broker-b")
    if at is not None:
        found["brokers"]["broker-a"]["0"] = at
    return found


def history(ns_1: str | None = NEW) -> HistoryBuilder:
    """At 130 s ns-0 has the new address and ns-1 what is said; at 150 s the client's route has the new one."""
    builder = cluster(clients=("producer-0",)).topic("broker-b", "orders")
    for server in ("ns-0", "ns-1"):
        for broker in ("broker-a", "broker-b"):
            builder.registration(server, broker)
    builder.at(2).event("producer-0", "route_changed", topic="orders", value=route(OLD))
    builder.at(100).fault(*KILL)
    for server in ("ns-0", "ns-1"):
        builder.at(100.01).drops(server, "broker-a").event(server, "route", topic="orders", value=route(None))
    builder.at(110).moved("broker-a", NEW).topic("broker-a", "orders").fault(*KILL, end=True)
    builder.at(130)
    for server, at in (("ns-0", NEW), ("ns-1", ns_1)):
        builder.registration(server, "broker-a", address=NEW).event(server, "route", topic="orders", value=route(at))
    return builder.at(150).event("producer-0", "route_changed", topic="orders", value=route(NEW))


def use(builder: HistoryBuilder, at_s: float, broker: str, address: str | None) -> HistoryBuilder:
    about = {"type": "invoke", "op_id": f"op-{at_s}"}
    builder.at(at_s).event("producer-0", "send", topic="orders", msg_key=f"op-{at_s}", **about)
    return builder.event("producer-0", "send_attempt", attempt=0, broker_name=broker, address=address, **about)


@pytest.mark.parametrize("check", [routes_are_true, routes_as_registered, one_master, no_false_eviction])
def test_that_it_is_somewhere_else_now_is_no_fault(check: object) -> None:
    verdict = history().end(300).judged(check.judge)  # type: ignore[attr-defined]
    assert verdict.verdict is Validity.VALID, (verdict.why, verdict.examples)


def test_a_name_server_that_goes_on_naming_the_old_address_is_invalid() -> None:
    verdict = history(ns_1=OLD).end(300).judged(routes_are_true.judge)
    assert verdict.verdict is Validity.INVALID
    assert {(one.who, one.what) for one in verdict.examples} == {("ns-1", "broker-a")}


@pytest.mark.parametrize(
    ("address", "expected"),
    [(NEW, Validity.VALID), (None, Validity.VALID), (OLD, Validity.INVALID)],  # None: it knew of none
)
def test_a_client_that_sends_to_the_old_address_is_invalid(address: str | None, expected: Validity) -> None:
    builder = use(use(history(), 180, "broker-a", address), 190, "broker-b", address_of("broker-b"))
    verdict = builder.end(300).judged(dead_brokers_avoided.judge)
    assert verdict.verdict is expected, verdict.why
    if expected is Validity.INVALID:
        (example,) = verdict.examples
        assert (example.who, example.what, example.more["at"]) == ("producer-0", "broker-a", OLD)
