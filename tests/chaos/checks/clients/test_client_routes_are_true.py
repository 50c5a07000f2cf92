"""client_routes_are_true over hand-written histories: what a client is told becomes its route."""

import pytest

from nemesrv.chaos.checks.clients.client_routes_are_true import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import BOTH, KILL, HistoryBuilder, address_of, cluster, judging, route_of

CLIENT = "consumer-0"

check = judging(judge)


def told(builder: HistoryBuilder, at_s: float, *brokers: str, takes_s: float | None = 0.0) -> HistoryBuilder:
    """ns-0 answers with the route of these brokers, which the client takes so much later; None: it does not."""
    about = {"name_server": address_of("ns-0"), "topic": "orders"}
    builder.at(at_s).event(CLIENT, "route_answer", value=route_of(*brokers), **about)
    builder.event(CLIENT, "name_server_call", f="route", type="ok", code=0, duration_ms=2.0, **about)
    if takes_s is not None:
        builder.at(at_s + takes_s).learns(CLIENT, *brokers)
    return builder


def crashed() -> HistoryBuilder:
    """broker-a is killed, and both NameServers drop it at once."""
    builder = told(cluster(clients=(CLIENT,)), 2, *BOTH).at(50).fault(*KILL).at(50.01)
    return builder.route("ns-0", "orders", "broker-b").route("ns-1", "orders", "broker-b")


def test_a_client_that_takes_what_it_is_told_is_valid() -> None:
    verdict = check(told(crashed(), 62, "broker-b").end(140))
    assert (verdict.verdict, verdict.violations) == (Validity.VALID, 0)
    assert verdict.measured["answers"] == 2


@pytest.mark.parametrize(
    ("takes_s", "verdict"), [(0.02, Validity.VALID), (1, Validity.INVALID), (None, Validity.INVALID)]
)
def test_an_answer_becomes_the_clients_route_at_once(takes_s: float | None, verdict: Validity) -> None:
    found = check(told(crashed(), 62, "broker-b", takes_s=takes_s).end(70))
    assert found.verdict is verdict
    if takes_s is None:
        (example,) = found.examples
        assert (example.who, example.what, example.topic, example.from_ms) == (CLIENT, "ns-0", "orders", 62_000.5)
        assert example.more["due"] == "broker-b 127.0.0.1:11011 [4 read, 4 write, perm 6]"


def test_a_client_that_stood_still_for_half_of_the_time_is_not_judged_by_how_long_it_took() -> None:
    builder = crashed()
    for tenth in range(610, 660, 6):
        builder.at(tenth / 10).lag(400.0, CLIENT, until_s=tenth / 10 + 0.6)
    assert check(told(builder, 62, "broker-b", takes_s=3).end(140)).verdict is Validity.VALID


@pytest.mark.parametrize(("queues", "verdict"), [(4, Validity.VALID), (8, Validity.INVALID)])
def test_a_borrowed_route_has_four_queues_at_most(queues: int, verdict: Validity) -> None:
    builder, route = cluster(clients=("producer-0",)).at(2), route_of("broker-a")
    about = {"name_server": address_of("ns-0"), "topic": "TBW102"}
    builder.event("producer-0", "route_answer", value=route, **about)
    builder.event("producer-0", "name_server_call", f="route", type="ok", code=0, duration_ms=2.0, **about)
    route = {**route, "queues": {"broker-a": [queues, queues, 6, 0]}}
    builder.event("producer-0", "route_changed", topic="fresh", value=route)
    assert check(builder.end(60)).verdict is verdict


def test_a_client_that_nobody_answers_may_keep_its_route() -> None:
    """That it asks is timers_kept's, and that it leaves the broker is dead_brokers_avoided's."""
    assert check(crashed().end(140)).verdict is Validity.VALID
