"""no_resurrection over hand-written histories."""

from nemesrv.chaos.checks.routes.no_resurrection import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import BOTH, HOLE, KILL, PAUSE, HistoryBuilder, cluster, example, judging, valid

check = judging(judge)


def crash(*told: tuple[float, str, tuple[str, ...]]) -> HistoryBuilder:
    """broker-a is killed at 100 s and back at 200 s; `told`: when, which node, and the brokers of its route then."""
    builder = cluster().at(100).fault(*KILL).at(100.01)
    builder.route("ns-0", "orders", "broker-b").route("ns-1", "orders", "broker-b")
    for at_s, node, brokers in told:
        builder.at(at_s).route(node, "orders", *brokers)
    builder.at(200).fault(*KILL, end=True).restarted("broker-a").topic("broker-a", "orders")
    return builder.at(200.2).route("ns-0", "orders", *BOTH).route("ns-1", "orders", *BOTH).end(260)


def test_a_dead_broker_that_stays_dropped_is_valid() -> None:
    assert check(crash()) == valid(
        "no_resurrection",
        examined=2,
        measured={"max_ms": None, "dropped_by_name_servers": 2, "returns": 0},
        allowed={
            "bound_ms": 0.0,
            "formula": "never",
            "tolerance_ms": 51.0,
            "row": "only a registration brings a dropped broker back",
        },
    )


def test_a_topic_that_another_of_the_name_brings_while_a_broker_hangs_names_it_until_it_expires() -> None:
    """Random scenario 74206: a slave was paused, and its master registered a topic for the first time."""
    builder = cluster().at(2).route("ns-0", "orders", *BOTH)
    builder.at(100).fault(*PAUSE).at(101).route("ns-0", "new", *BOTH)
    builder.at(220).route("ns-0", "new", "broker-b").route("ns-0", "orders", "broker-b")
    verdict = check(builder.at(300).fault(*PAUSE, end=True).end(360))
    assert (verdict.verdict, verdict.violations) == (Validity.VALID, 0)


def test_a_dead_broker_that_returns_to_a_table_is_invalid() -> None:
    verdict = check(crash((150, "ns-0", BOTH), (160, "ns-0", ("broker-b",))))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (back,) = verdict.examples
    about = {"topic": "orders", "after": "f1 start", "times": {"dropped": 100.01}, "kind": "must not come back"}
    assert back == example("ns-0", "broker-a", from_s=150, to_s=160, due_s=100, took_s=10, allowed_s=0, **about)


def test_what_lands_a_moment_before_the_row_of_the_restart_is_the_restart() -> None:
    assert check(crash((199.97, "ns-0", BOTH))).verdict is Validity.VALID


def partition(back_s: float) -> HistoryBuilder:
    """ns-0 loses broker-a's link at 100 s, drops it at 215 s and is healed at 300 s."""
    builder = cluster().at(100).fault(*HOLE).at(215).route("ns-0", "orders", "broker-b")
    for at_s in sorted((300, back_s)):
        if at_s == 300:
            builder.at(300).fault(*HOLE, end=True)
        else:
            builder.at(back_s).route("ns-0", "orders", *BOTH)
    return builder.end(360)


def test_a_broker_behind_a_partition_comes_back_after_the_heal_and_not_before() -> None:
    assert check(partition(300.1)).verdict is Validity.VALID
    assert check(partition(260)).verdict is Validity.INVALID


def test_a_heal_that_took_its_time_lets_in_from_when_it_was_asked_for() -> None:
    def back(back_s: float, asked_s: float | None) -> Validity:
        builder = cluster(clients=("producer-0",)).at(100)
        links = [(*HOLE[:3], "broker-a", "ns-0"), (*HOLE[:3], "producer-0", "broker-a")]
        for link in links:
            builder.fault(*link)
        for node in ("ns-0", "ns-1"):
            builder.at(215).route(node, "orders", "broker-b")
        builder.at(back_s).route("ns-0", "orders", *BOTH)
        for link in links:
            builder.at(300).fault(*link, end=True, value=None if asked_s is None else {"asked_ms": asked_s * 1000})
        return check(builder.end(360)).verdict

    assert (back(299.7, None), back(299.7, 299.6)) == (Validity.INVALID, Validity.VALID)
    assert (back(299.5, 299.6), back(299.56, 299.6)) == (Validity.INVALID, Validity.VALID)


def test_under_a_fault_that_lets_registrations_through_a_broker_may_come_and_go() -> None:
    builder = cluster().at(100).fault(*HOLE, stream="downstream").at(110).route("ns-0", "orders", "broker-b")
    builder.at(130).route("ns-0", "orders", *BOTH).at(300).fault(*HOLE, stream="downstream", end=True)
    verdict = check(builder.end(360))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_a_return_is_late_by_no_more_than_timers_fired_late() -> None:
    builder = crash((103.3, "ns-0", BOTH), (104, "ns-0", ("broker-b",)))
    assert check(builder.at(100).lag(3_500, "ns-0", until_s=104)).verdict is Validity.VALID


def test_one_that_is_taken_in_and_dropped_in_one_moment_stays_dropped() -> None:
    """What was lost is sent again behind the broker's own end, and so is its channel's end."""

    def verdict_of(*back: tuple[float, str, tuple[str, ...]]) -> Validity:
        told, closed = crash(*back), {"f": "peer", "value": {"reason": "closed"}}
        told.at(0.5).registers("ns-0", "broker-a", channel="1").at(100).event(
            "ns-0", "channel_ended", op_id="1", **closed
        )
        told.at(101).registers("ns-0", "broker-a", channel="2").event("ns-0", "channel_ended", op_id="2", **closed)
        told.route("ns-0", "orders", *BOTH).route("ns-0", "orders", "broker-b")
        return check(told.at(200.1).registers("ns-0", "broker-a", channel="3")).verdict

    assert verdict_of() is Validity.VALID
    assert verdict_of((150, "ns-0", BOTH)) is Validity.INVALID
