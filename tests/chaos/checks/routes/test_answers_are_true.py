"""answers_are_true over hand-written histories: what came is held against table, brokers, rows and codes."""

from typing import Any

import pytest

from nemesrv.chaos.checks.routes.answers_are_true import judge
from nemesrv.chaos.verdict import Example, Validity, Verdict
from tests.chaos.builder import BOTH, KILL, HistoryBuilder, address_of, cluster, judging, route_of

CLIENT = "consumer-0"

check = judging(judge)


def registered(builder: HistoryBuilder, at_s: float, broker: str, version: int = 1, how: str = "ok") -> HistoryBuilder:
    """The broker has registered with both NameServers, which took 10 ms."""
    for name_server in ("ns-0", "ns-1"):
        builder.at(at_s + 0.01).register(broker, name_server, how=how, topics=2, version=version)
    return builder


def story() -> HistoryBuilder:
    """Two NameServers hold the route of two brokers from 1 s on; the brokers registered at 0.5 s."""
    builder = cluster(clients=(CLIENT,))
    for broker in BOTH:
        registered(builder, 0.5, broker)
    return builder


def asked(
    builder: HistoryBuilder, at_s: float, value: Any = None, code: int = 0, topic: str = "orders", took_s: float = 0.002
) -> HistoryBuilder:
    """The client asked ns-0, and got this; None: the same as the last time."""
    builder.at(at_s + took_s)
    about = {"name_server": address_of("ns-0"), "topic": topic}
    if value is not None:
        builder.event(CLIENT, "route_answer", value=value, **about)
    kind = "fail" if code else "ok"
    return builder.event(
        CLIENT, "name_server_call", f="route", type=kind, code=code, duration_ms=took_s * 1000, **about
    )


def test_the_route_of_the_table_is_right() -> None:
    builder = asked(asked(story(), 40, route_of(*BOTH)), 70)
    verdict = check(builder.end(100))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 2, 0)
    assert verdict.measured == {"answers": 2, "wrong": 0}


def test_an_order_configuration_is_in_no_route_unless_order_message_enable_is_on() -> None:
    for settings, expected in (({}, Validity.INVALID), ({"orderMessageEnable": True}, Validity.VALID)):
        builder = asked(story(), 40, {**route_of(*BOTH), "order": "broker-a:4"}).run_says(settings={"ns-0": settings})
        assert check(builder.end(100)).verdict is expected


@pytest.mark.parametrize("code", [1, 17])
def test_a_code_in_place_of_the_route_that_is_held_is_invalid(code: int) -> None:
    verdict = check(asked(asked(story(), 40, code=code), 70, code=code).end(100))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 2, 2)
    assert "consumer-0 asked ns-0 for orders at 40.0 s, got code" in verdict.why
    (example,) = verdict.examples
    assert (example.who, example.what) == ("ns-0", CLIENT)
    assert (example.topic, example.more["came"]) == ("orders", f"code {code}")
    assert example.more["due"].startswith("broker-a 127.0.0.1:10911 [4 read, 4 write, perm 6]; broker-b ")
    assert (example.more["answers"], example.times) == (2, {"last": 70_002.5})
    assert Example.from_json(example.to_json()) == example


def test_code_17_is_right_while_no_broker_has_the_topic_and_code_1_never() -> None:
    assert check(asked(story(), 40, code=17, topic="others").end(100)).verdict is Validity.VALID
    assert check(asked(story(), 40, code=1, topic="others").end(100)).verdict is Validity.INVALID


def test_code_1_is_right_while_a_name_server_waits_for_service() -> None:
    def waiting(at_s: float) -> Verdict:
        return check(asked(story(), at_s, code=1).run_says(timers={"W_ms": 45_000.0}).end(100))

    assert waiting(at_s=40).verdict is Validity.VALID
    assert waiting(at_s=46).verdict is Validity.INVALID


def test_a_name_server_of_5_x_that_waits_for_service_answers_nothing_else() -> None:
    def answers(at_s: float, profile: str = "5.x") -> Validity:
        builder = asked(story(), at_s, route_of(*BOTH)).run_says(timers={"W_ms": 45_000.0}, profile=profile)
        return check(builder.end(100)).verdict

    assert [answers(40), answers(46), answers(40, "4.9")] == [Validity.INVALID, Validity.VALID, Validity.VALID]


def test_a_name_server_whose_wall_clock_goes_back_waits_for_service_again() -> None:
    def waiting(at_s: float) -> Verdict:
        builder = story().run_says(timers={"W_ms": 45_000.0}).at(60)
        builder.event("harness", "clock", source="ns-0", fault_id="c", value={"step_ms": -30_000.0})
        return check(asked(builder, at_s, code=1).end(100))

    assert [waiting(at_s).verdict for at_s in (50, 70, 76)] == [Validity.INVALID, Validity.VALID, Validity.INVALID]


def test_what_is_no_route_at_all_is_invalid() -> None:
    assert check(asked(story(), 40, {**route_of(*BOTH), "unreadable": "x"}).end(100)).verdict is Validity.INVALID


def unseen(builder: HistoryBuilder) -> HistoryBuilder:
    """Nobody recorded what tables held."""
    builder.rows = [row for row in builder.rows if row["event"] != "route"]
    return builder


def test_a_wrong_row_is_found_where_nobody_saw_the_table() -> None:
    builder, wrong = story(), route_of(*BOTH)
    assert wrong is not None
    wrong["queues"]["broker-a"] = [4, 4, 4, 0]
    verdict = check(asked(unseen(builder), 40, wrong).end(100))
    assert verdict.verdict is Validity.INVALID
    assert verdict.examples[0].more["kind"] == "unlike registered"
    assert verdict.examples[0].more["due"] == "broker-a [4 read, 4 write, perm 6]"


def test_an_answer_needs_to_have_been_right_at_one_moment_of_its_call() -> None:
    def changing(took_s: float) -> Verdict:
        builder = story().at(50).fault(*KILL).at(50.02).route("ns-0", "orders", "broker-b")
        builder.at(50.02).route("ns-1", "orders", "broker-b")
        return check(asked(builder, 50.06 - took_s, route_of(*BOTH), took_s=took_s).end(100))

    assert changing(took_s=0.05).verdict is Validity.VALID
    assert changing(took_s=0.03).verdict is Validity.INVALID


def test_an_answer_of_the_moment_between_two_changes_is_right_though_that_moment_had_no_length() -> None:
    """A NameServer that was stopped reads a close, a look-up and a registration at once when it runs on."""
    pause = ("f1", "pause", "sigstop", "ns-0")
    stopped = story().at(50).fault(*pause, until_s=60)
    stopped.route("ns-0", "orders", "broker-b").route("ns-0", "orders", *BOTH)
    assert check(asked(stopped, 58, route_of("broker-b"), took_s=2.001).end(100)).verdict is Validity.VALID
    verdict = check(asked(stopped, 58, route_of("broker-a"), took_s=2.001).end(100))
    assert (verdict.verdict, verdict.examples[0].more["kind"]) == (Validity.INVALID, "unlike its table")
    verdict = check(asked(stopped, 61, route_of("broker-b")).end(100))
    assert (verdict.verdict, verdict.examples[0].more["kind"]) == (Validity.INVALID, "unlike its table")


def changed_at_50(acknowledged: bool) -> HistoryBuilder:
    """broker-a has 8 queues from 50 s on and says so at once; ns-0 acknowledges that. Nobody saw its table."""
    builder = (
        unseen(story())
        .at(50)
        .event("broker-a", "topic", topic="orders", value={"read": 8, "write": 8, "perm": 6, "version": 2})
    )
    return registered(builder, 50.1, "broker-a", version=2, how="ok" if acknowledged else "info")


def test_an_older_version_than_it_acknowledged_is_invalid() -> None:
    old, new = route_of(*BOTH), route_of(*BOTH)
    assert new is not None
    new["queues"]["broker-a"] = [8, 8, 6, 0]
    assert check(asked(changed_at_50(acknowledged=True), 50.05, old, took_s=0.06).end(100)).verdict is Validity.VALID
    verdict = check(asked(changed_at_50(acknowledged=True), 60, old).end(100))
    assert verdict.verdict == Validity.INVALID
    assert verdict.examples[0].more["due"] == "broker-a [8 read, 8 write, perm 6]"
    assert check(asked(changed_at_50(acknowledged=False), 60, old).end(100)).verdict is Validity.VALID
    assert check(asked(changed_at_50(acknowledged=False), 60, new).end(100)).verdict is Validity.VALID
    assert check(asked(unseen(story()), 49.5, new).end(100)).verdict is Validity.INVALID


def test_a_history_without_look_ups_or_without_what_came_is_unknown() -> None:
    assert check(story().end(100)).verdict is Validity.UNKNOWN
    verdict = check(asked(story(), 40).end(100))
    assert (verdict.verdict, verdict.why) == (
        Validity.UNKNOWN,
        "no look-up was answered, or no client recorded answers",
    )


@pytest.mark.parametrize(
    ("asked_s", "took_s", "kinds"), [(60, 0.01, ["code 17 while stopping"]), (40, 0.01, []), (64.95, 0.1, [])]
)
def test_code_17_of_a_stopping_name_server_is_wrong(asked_s: float, took_s: float, kinds: list[str]) -> None:
    """A stranger's: it lost its channels first (apache/rocketmq#11072). Its next process begins empty."""
    builder = story()
    for broker in BOTH:
        builder.at(1).registers("ns-0", broker)
    asked(builder.at(asked_s - 0.1).route("ns-0", "orders"), asked_s, took_s=took_s, code=17)
    builder.at(65).fault("stop-1", "stop", "sigterm", "ns-0", value={"asked_ms": 55_000}).restarted("ns-0")
    assert [one.kind for one in check(builder.end(100)).findings if one.wrong] == kinds
