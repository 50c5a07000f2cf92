"""dead_brokers_avoided over hand-written histories."""

import pytest

from nemesrv.chaos.checks.cause import cause_of
from nemesrv.chaos.checks.clients.dead_brokers_avoided import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HOLE, KILL, PAUSE, HistoryBuilder, address_of, cluster, example, valid


def send(
    builder: HistoryBuilder,
    at_s: float,
    broker: str,
    *,
    topic: str = "orders",
    attempt: int = 0,
    address: str | None = None,
) -> HistoryBuilder:
    op_id, to = f"op-{at_s}", {"broker_name": broker, "address": address}
    builder.at(at_s).event("producer-0", "send", type="invoke", op_id=op_id, topic=topic, msg_key=op_id)
    return builder.event("producer-0", "send_attempt", type="invoke", op_id=op_id, attempt=attempt, **to)


def pull(builder: HistoryBuilder, at_s: float, broker: str, *, address: str | None = None) -> HistoryBuilder:
    where = {"topic": "orders", "broker_name": broker, "queue_id": 0, "address": address}
    return builder.at(at_s).event("consumer-0", "pull", type="invoke", **where)


def crash(last_send_s: float, last_pull_s: float, *, attempt: int = 0, lag_ms: float | None = 1.0) -> HistoryBuilder:
    """broker-a is killed at 100 s and is not back before 200 s; both clients go on with broker-b."""
    builder = cluster(clients=("producer-0", "consumer-0")).at(100).fault(*KILL)
    send(builder, last_send_s, "broker-a", attempt=attempt)
    pull(builder, last_pull_s, "broker-a")
    for at_s in (160, 190):
        pull(send(builder, at_s, "broker-b"), at_s, "broker-b")
    return builder.at(200).fault(*KILL, end=True).restarted("broker-a").end(240, lag_ms)


def test_clients_that_leave_a_killed_broker_within_a_poll_and_a_rebalance_are_valid() -> None:
    assert crash(last_send_s=129, last_pull_s=149).judged(judge) == valid(
        "dead_brokers_avoided",
        examined=2,
        measured={
            "max_ms": 29_000.0,
            "promised": 2,
            "last_use": [
                {"client": client, "broker_name": "broker-a", "fault_id": "f1", "after_ms": last_ms, "bound_ms": due_ms}
                for client, last_ms, due_ms in (("consumer-0", 49_000, 50_000), ("producer-0", 29_000, 30_000))
            ],
        },
        allowed={
            "bound_ms": 30_000.0,
            "formula": "(RTT + event thread) + P",
            "tolerance_ms": 52.0,
            "row": "producer stops targeting the broker after: process crash, kernel closes its connections",
        },
    )


def test_a_producer_that_keeps_using_it_is_invalid() -> None:
    verdict = crash(last_send_s=150, last_pull_s=149).judged(judge)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 2, 1)
    (late,) = verdict.examples
    about = {"topic": "orders", "after": "f1 start", "times": {"lost": 100}, "op_id": "op-150", "late_uses": 1}
    use = {"from_s": 150, "due_s": 130, "took_s": 50, "allowed_s": 30}
    assert late == example("producer-0", "broker-a", **use, **about, kind="must not use")


def test_a_broken_promise_says_what_rocketmq_allows() -> None:
    builder = cluster(clients=("producer-0",), promises={"brokers_left_within_s": 20}).at(100).fault(*KILL)
    for at_s, broker in ((125, "broker-a"), (160, "broker-b"), (190, "broker-b")):
        send(builder, at_s, broker)
    verdict = builder.at(200).fault(*KILL, end=True).restarted("broker-a").end(240).judged(judge)
    cause = cause_of([verdict])
    assert cause is not None
    assert (
        cause.guarantee
        == "brokers_left_within_s: 20, promised by the scenario; RocketMQ allows 30 s: (RTT + event thread) + P"
    )


def test_it_is_the_last_use_that_is_told_however_near_to_the_end_of_the_absence() -> None:
    builder = cluster(clients=("producer-0",)).at(100).fault(*KILL)
    for at_s in (160, 188):  # the first is further from both ends of 130 to 190 s
        send(builder, at_s, "broker-a")
    verdict = send(builder.at(190).fault(*KILL, end=True), 191, "broker-b").end(300).judged(judge)
    (worst,) = verdict.examples
    assert (worst.from_ms, worst.measured_ms, worst.over_ms) == (188_000.0, 88_000.0, 58_000.0)
    assert (worst.more["op_id"], worst.more["late_uses"]) == ("op-188", 2)
    assert verdict.measured["last_use"][0]["after_ms"] == 88_000.0


def test_a_retry_may_use_the_route_its_send_began_with() -> None:
    assert crash(last_send_s=132, last_pull_s=149, attempt=1).judged(judge).verdict is Validity.VALID
    assert crash(last_send_s=132, last_pull_s=149, attempt=0).judged(judge).verdict is Validity.INVALID


@pytest.mark.parametrize(("lag_ms", "expected"), [(1000.0, Validity.VALID), (10.0, Validity.INVALID)])
def test_a_use_is_late_by_no_more_than_timers_fired_late(lag_ms: float, expected: Validity) -> None:
    verdict = crash(last_send_s=131, last_pull_s=149, lag_ms=lag_ms).judged(judge)
    assert (verdict.verdict, verdict.violations) == (expected, int(expected is Validity.INVALID))


def test_a_client_that_did_nothing_after_the_window_proves_nothing() -> None:
    builder = cluster(clients=("producer-0",)).at(100).fault(*KILL)
    verdict = send(builder, 110, "broker-b").end(200).judged(judge)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(("poll_s", "expected"), [(30, Validity.VALID), (120, Validity.UNKNOWN)])
def test_a_broker_that_is_back_before_it_must_be_left_decides_nothing(poll_s: int, expected: Validity) -> None:
    builder = cluster(clients=("producer-0",), node_timers={"producer-0": {"P_ms": 1000 * poll_s}})
    for at_s, brokers in ((10, ("broker-a", "broker-b")), (120, ("broker-b",))):
        builder.at(at_s).learns("producer-0", *brokers)
    builder.at(100).fault(*KILL)
    for at_s in (115, 160, 190):
        send(builder, at_s, "broker-b", address=address_of("broker-b"))
    found = builder.at(200).fault(*KILL, end=True).restarted("broker-a").end(240).judged(judge)
    assert (found.verdict, found.measured["promised"]) == (expected, int(expected is Validity.VALID))
    if expected is Validity.UNKNOWN:
        assert (
            found.why
            == "broker-a was lost for 100 s, and producer-0 may go on using broker-a for 243 s: use a longer fault"
        )


def test_the_last_broker_of_a_topic_may_be_used_for_ever() -> None:
    builder = cluster(clients=("producer-0",)).at(50).topic("broker-a", "only-here").at(100).fault(*KILL)
    send(builder, 180, "broker-a", topic="only-here")
    verdict = send(builder, 190, "broker-b").end(220).judged(judge)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 1)


@pytest.mark.parametrize(("listed", "expected"), [(["ns-0", "ns-1"], Validity.INVALID), (["ns-1"], Validity.UNKNOWN)])
def test_who_registers_elsewhere_leaves_a_topic_its_last_broker(listed: list[str], expected: Validity) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"), nodes={"broker-b": {"name_servers": listed}})
    send(builder.at(100).fault(*KILL), 190, "broker-a")
    assert builder.at(200).fault(*KILL, end=True).restarted("broker-a").end(240).judged(judge).verdict is expected


def test_a_broker_that_only_this_client_cannot_reach_is_not_judged() -> None:
    builder = cluster(clients=("producer-0",)).at(100).black_hole("producer-0", "broker-a")
    verdict = send(builder, 400, "broker-a").end(500).judged(judge)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(("last_s", "expected"), [(262, Validity.VALID), (270, Validity.INVALID)])
def test_a_hung_broker_is_left_after_expiry_a_poll_and_a_held_up_heartbeat(last_s: float, expected: Validity) -> None:
    """E + S + P + J = 120 + 10 + 30 + 3 s."""
    builder = cluster(clients=("producer-0",)).at(100).fault(*PAUSE)
    send(builder, last_s, "broker-a")
    send(builder, 300, "broker-b").at(320).fault(*PAUSE, end=True)
    verdict = builder.end(400).judged(judge)
    assert (verdict.verdict, verdict.examined) == (expected, 1)
    assert verdict.allowed["bound_ms"] == 163_000


@pytest.mark.parametrize(("last_s", "expected"), [(262, Validity.VALID), (270, Validity.INVALID)])
def test_a_broker_is_judged_until_the_first_name_server_may_have_it_again(last_s: float, expected: Validity) -> None:
    """As before E + S + P + J; its link to the client is healed 2 s after the one to the NameServer."""
    links = [("broker-a", "ns-0"), ("producer-0", "broker-a")]
    builder = cluster(name_servers=1, clients=("producer-0",)).at(100)
    for link in links:
        builder.black_hole(*link)
    send(builder, last_s, "broker-a")
    send(builder, 300, "broker-b")
    for at_s, link in zip((320, 322), links, strict=True):
        builder.at(at_s).fault(*HOLE[:3], *link, end=True)
    verdict = send(builder, 321, "broker-a").end(400).judged(judge)
    assert (verdict.verdict, verdict.examined) == (expected, 1)
    assert verdict.allowed["bound_ms"] == 163_000


def test_where_a_name_server_had_just_failed_too_nothing_is_promised() -> None:
    builder = cluster(clients=("producer-0",)).at(90).fault("f0", "kill", "sigkill", "ns-0").at(100).fault(*KILL)
    send(builder, 180, "broker-a")
    assert send(builder, 190, "broker-b").end(220).judged(judge).examined == 0


def told_of_its_end(client: str) -> HistoryBuilder:
    """While a NameServer hangs broker-a dies, and at 130 s the client takes a route without it."""
    builder = cluster(clients=(client,)).at(90).fault("f0", "pause", "sigstop", "ns-0").at(100).fault(*KILL)
    for broker in ("broker-a", "broker-b"):
        builder.topic(broker, "orders")
    builder.at(2).learns(client, "broker-a", "broker-b")
    return builder.at(130).learns(client, "broker-b")


@pytest.mark.parametrize(("last_s", "expected"), [(129, Validity.VALID), (131, Validity.INVALID)])
def test_a_producer_sends_to_no_broker_that_its_routes_lack(last_s: float, expected: Validity) -> None:
    builder = told_of_its_end("producer-0")
    send(builder, last_s, "broker-a", address=address_of("broker-a"))
    verdict = send(builder, 150, "broker-b").end(200).judged(judge)
    assert (verdict.verdict, verdict.examined) == (expected, 1)


@pytest.mark.parametrize(
    ("shared", "expected"),
    [
        (["orders"], Validity.INVALID),
        ([], Validity.UNKNOWN),  # nobody told it the members of its group: its queues stay as they are
        (None, Validity.UNKNOWN),  # an older history does not say
    ],
)
def test_a_consumer_pulls_from_none_after_its_next_rebalance(shared: list[str] | None, expected: Validity) -> None:
    builder = told_of_its_end("consumer-0")
    value = {"woken": False, "balanced": True} | ({} if shared is None else {"shared": shared})
    builder.at(140).event("consumer-0", "scheduled_task", f="doRebalance", duration_ms=2.0, value=value)
    for at_s, broker in ((139, "broker-a"), (150, "broker-a"), (151, "broker-b")):
        pull(builder, at_s, broker, address=address_of(broker))
    assert builder.end(200).judged(judge).verdict is expected
