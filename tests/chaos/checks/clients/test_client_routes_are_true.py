"""client_routes_are_true over hand-written histories: what a client is told it takes, in time, and gives up in time."""

from __future__ import annotations

import pytest

from nemesrv.chaos.checks.clients.client_routes_are_true import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster, route_of

CLIENT = "consumer-0"
BOTH = ("broker-a", "broker-b")


def check(builder: HistoryBuilder) -> Verdict:
    return judge(*builder.facts())


def told(builder: HistoryBuilder, at_s: float, *brokers: str, takes_s: float | None = 0.0) -> HistoryBuilder:
    """ns-0 answers with the route of these brokers, which the client takes so much later; None: it does not."""
    about = {"name_server": address_of("ns-0"), "topic": "orders"}
    builder.at(at_s).event(CLIENT, "route_answer", value=route_of(*brokers), **about)
    builder.event(CLIENT, "name_server_call", f="route", type="ok", code=0, duration_ms=2.0, **about)
    if takes_s is not None:
        builder.at(at_s + takes_s).event(CLIENT, "route_changed", topic="orders", value=route_of(*brokers))
    return builder


def story() -> HistoryBuilder:
    return told(cluster(clients=(CLIENT,)), 2, *BOTH)


def crashed(at_s: float = 50) -> HistoryBuilder:
    """broker-a is killed, and both NameServers drop it at once."""
    builder = story().at(at_s).fault("f1", "kill", "sigkill", "broker-a").at(at_s + 0.01)
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


def test_a_client_that_does_not_ask_keeps_a_lost_broker_too_long() -> None:
    """It must have left it P after the NameServers dropped it, at 80 s."""
    assert check(crashed().end(79)).verdict is Validity.VALID
    verdict = check(told(crashed(), 95, "broker-b").end(140))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (example,) = verdict.examples
    assert (example.who, example.what, example.more["kind"]) == (CLIENT, "broker-a", "must not have")
    assert (example.from_ms, example.to_ms, example.over_ms) == (80_000.0, 95_000.0, 15_000.0)


def test_the_last_broker_of_a_topic_may_stay() -> None:
    builder = told(cluster(brokers=("broker-a",), clients=(CLIENT,)), 2, "broker-a")
    assert check(builder.at(50).fault("f1", "kill", "sigkill", "broker-a").end(140)).verdict is Validity.VALID


def alone_at_ns_1(killed_s: float, healed_s: float) -> HistoryBuilder:
    """broker-b is cut from ns-0 from 40 s on, and broker-a is killed: until broker-b is back, 33 s after the heal, the
    client may be answered with code 17."""
    link = ("f0", "cut", "toxiproxy.disabled", "broker-b", "ns-0")
    builder = story().at(40).fault(*link).at(40.01).route("ns-0", "orders", "broker-a")
    builder.at(killed_s).fault("f1", "kill", "sigkill", "broker-a").at(killed_s + 0.01)
    builder.route("ns-0", "orders").route("ns-1", "orders", "broker-b")
    return builder.at(healed_s).fault(*link, end=True).at(healed_s + 25).route("ns-0", "orders", "broker-b")


def test_a_client_keeps_a_lost_broker_while_one_of_its_name_servers_need_not_have_another() -> None:
    """It must have left it P after broker-b had to be back at ns-0: at 122 + 33 + 30 s."""
    builder = told(alone_at_ns_1(killed_s=120, healed_s=122), 180, "broker-b")
    assert check(builder.end(260)).verdict is Validity.VALID
    verdict = check(told(alone_at_ns_1(killed_s=120, healed_s=122), 187, "broker-b").end(260))
    assert verdict.verdict is Validity.INVALID
    (example,) = verdict.examples
    assert (example.what, example.more["kind"]) == ("broker-a", "must not have")
    assert (example.from_ms, example.to_ms) == (185_000.0, 187_000.0)
    assert "from when NameServers must name another broker" in verdict.why


def test_a_client_that_cannot_ask_that_name_server_must_leave_the_broker_as_ever() -> None:
    away = ("f2", "black_hole", "toxiproxy.bandwidth.rate=0", CLIENT, "ns-0")
    builder = alone_at_ns_1(killed_s=120, healed_s=300).at(30).fault(*away)
    verdict = check(told(builder, 250, "broker-b").end(290))
    assert verdict.verdict is Validity.INVALID
    assert [(example.what, example.to_ms) for example in verdict.examples] == [("broker-a", 250_000.0)]


def back(asked_s: float | None) -> HistoryBuilder:
    """broker-a is killed at 50 s, back at 60 s and in both tables at 61 s: due from R + C on, 93 s, and at the client
    P + A later, 126 s."""
    builder = told(crashed(), 55, "broker-b").at(60).fault("f1", "kill", "sigkill", "broker-a", end=True)
    builder.restarted("broker-a").topic("broker-a", "orders").at(61)
    builder.route("ns-0", "orders", *BOTH).route("ns-1", "orders", *BOTH)
    return builder if asked_s is None else told(builder, asked_s, *BOTH)


def test_a_broker_that_is_back_at_every_name_server_is_in_the_clients_route_one_poll_later() -> None:
    assert check(back(asked_s=120).end(200)).verdict is Validity.VALID
    assert check(back(asked_s=None).end(125)).verdict is Validity.VALID
    verdict = check(back(asked_s=150).end(200))
    assert verdict.verdict is Validity.INVALID
    assert (verdict.examples[0].more["kind"], verdict.examples[0].what) == ("must have", "broker-a")
    assert verdict.examples[0].to_ms == 150_000.0


@pytest.mark.parametrize(("waits_ms", "verdict"), [(60_000.0, Validity.VALID), (None, Validity.INVALID)])
def test_a_name_server_that_waits_for_service_tells_nothing_until_then(
    waits_ms: float | None, verdict: Validity
) -> None:
    """Random scenario 90703: it has the broker from R + C on, and answers code 1 until W."""
    builder = told(cluster(name_servers=1, clients=(CLIENT,)), 2, *BOTH)
    builder.rows[0]["value"]["timers"] = {"W_ms": waits_ms}
    builder.at(50).fault("f1", "kill", "sigkill", "broker-a").at(50.01).route("ns-0", "orders", "broker-b")
    told(builder, 55, "broker-b").at(60).fault("f1", "kill", "sigkill", "broker-a", end=True)
    builder.restarted("broker-a").topic("broker-a", "orders").at(61).fault("f2", "kill", "sigkill", "ns-0")
    builder.at(62).fault("f2", "kill", "sigkill", "ns-0", end=True).restarted("ns-0")
    builder.at(63).route("ns-0", "orders", *BOTH)
    assert check(told(builder, 145, *BOTH).end(300)).verdict is verdict
    assert check(told(builder, 210, *BOTH).end(300)).verdict is verdict


@pytest.mark.parametrize(("lag_ms", "verdict"), [(4000, Validity.VALID), (100, Validity.INVALID)])
def test_a_client_need_not_have_what_a_name_server_dropped_as_the_machine_stood_still(
    lag_ms: float, verdict: Validity
) -> None:
    builder = story().at(299).lag(lag_ms, until_s=300).at(301).route("ns-0", "orders", "broker-b")
    builder = told(builder, 310, "broker-b").at(325).route("ns-0", "orders", *BOTH)
    assert check(told(builder, 340, *BOTH).end(400)).verdict is verdict


def test_a_history_in_which_no_client_took_a_route_is_unknown() -> None:
    verdict = check(cluster(clients=(CLIENT,)).end(90))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
