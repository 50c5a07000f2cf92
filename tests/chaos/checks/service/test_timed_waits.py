"""timers_kept over hand-written waits: each runs out in time, too late, and too early, by its node's own settings."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nemesrv.chaos.checks.record.timer_acts import LEAVE
from nemesrv.chaos.checks.service.timers_kept import judge
from nemesrv.chaos.oracle.broker import HOLD_CHECK
from nemesrv.chaos.oracle.recorded import OURS
from nemesrv.chaos.oracle.time_outs import HEARTBEAT, REBALANCE, look_up
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, PAUSE, HistoryBuilder, address_of, cluster

from .test_timers_kept import check, runs, story, wrong

END_S = 100.0
Told = Callable[[HistoryBuilder, float], HistoryBuilder]


def timed_out(node: str, what: str, began_s: float = 50, closed_s: float | None = 0.0, **fields: Any) -> Told:
    """A wait of this node ran out after so long; its channel was closed so much later, or never (None)."""

    def tell(told: HistoryBuilder, took_s: float) -> HistoryBuilder:
        about = {"f": what, "address": address_of("broker-a"), "duration_ms": took_s * 1000, **fields}
        told.at(began_s + took_s).event(node, "timed_out", **about)
        if closed_s is not None and what not in ("connect", "PULL_MESSAGE"):
            channel(told.at(began_s + took_s + closed_s), node, "close")
        return told

    return tell


def channel(told: HistoryBuilder, node: str, f: str) -> HistoryBuilder:
    return told.event(node, "channel", f=f, address=address_of("broker-a"), value={"reason": ""})


def pull_delayed(why: str) -> Told:
    def tell(told: HistoryBuilder, took_s: float) -> HistoryBuilder:
        about = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
        value = {"times": 1, "shortest_ms": took_s * 1000}
        row = {"f": why, "duration_ms": took_s * 1000, "value": value}
        return told.at(50 + took_s).event("consumer-0", "pull_delayed", **row, **about)

    return tell


def held(told: HistoryBuilder, past_s: float) -> HistoryBuilder:
    """At the check of 55 s a pull that had found nothing was answered so long after its time."""
    value = {"timed_out": 1, "shortest_ms": past_s * 1000, "longest_ms": past_s * 1000}
    return told.at(55).event("broker-a", "scheduled_task", f=HOLD_CHECK, duration_ms=0.0, value=value)


def expired(told: HistoryBuilder, silent_s: float) -> HistoryBuilder:
    """A client whose last heartbeat came at -50 s."""
    told.at(-50).hears("broker-a", "consumer-0")
    return told.at(-50 + silent_s).forgets("broker-a", "consumer-0", "expired", silent_s)


EXACT: dict[str, tuple[Told, float]] = {
    "connect time-out": (timed_out("consumer-0", "connect"), 3),
    "GET_ROUTEINFO_BY_TOPIC time-out": (timed_out("consumer-0", "GET_ROUTEINFO_BY_TOPIC"), 3),
    "HEART_BEAT time-out": (timed_out("consumer-0", "HEART_BEAT"), 3),
    "PULL_MESSAGE time-out": (timed_out("consumer-0", "PULL_MESSAGE", address="10.9.9.9:1"), 30),
    "QUERY_CONSUMER_OFFSET time-out": (timed_out("consumer-0", "QUERY_CONSUMER_OFFSET"), 5),
    "REGISTER_BROKER time-out": (timed_out("broker-a", "REGISTER_BROKER"), 6),
    "UNREGISTER_BROKER time-out": (timed_out("broker-a", "UNREGISTER_BROKER"), 3),
    "pull delay: exception": (pull_delayed("exception"), 1),
    "pull delay: illegal_offset": (pull_delayed("illegal_offset"), 10),
}


@pytest.mark.parametrize("timer", EXACT)
def test_a_wait_ends_when_its_setting_says_and_neither_earlier_nor_later(timer: str) -> None:
    tell, wait_s = EXACT[timer]
    slack_s = max(0.02 * wait_s, 0.1)
    assert check(tell(story(), wait_s)).verdict is Validity.VALID
    for took_s, early in ((wait_s - slack_s, True), (wait_s + slack_s, False)):
        (found,) = wrong(check(tell(story(), took_s)))
        assert (found.object, found.too_early) == (timer, early)
        assert found.measured_ms == pytest.approx(took_s * 1000)


@pytest.mark.parametrize(
    ("what", "code", "found"),
    [
        ("HEART_BEAT", 1, ["broker-a"]),
        ("HEART_BEAT", 2, []),  # SYSTEM_BUSY
        ("QUERY_CONSUMER_OFFSET", 22, []),
        ("QUERY_CONSUMER_OFFSET", 1, ["broker-a"]),
    ],
)
def test_a_living_broker_refuses_what_it_may_refuse(what: str, code: int, found: list[str]) -> None:
    told = story().at(50).event("consumer-0", "refused", f=what, address=address_of("broker-a"), code=code)
    assert [one.subject for one in wrong(check(told)) if one.kind == "refuses no such request"] == found


@pytest.mark.parametrize("what", ["GET_ROUTEINFO_BY_TOPIC", "HEART_BEAT", "QUERY_CONSUMER_OFFSET"])
def test_a_call_that_runs_out_closes_its_channel_at_once(what: str) -> None:
    _, wait_s = EXACT[f"{what} time-out"]

    def closed(closed_s: float | None, told: HistoryBuilder | None = None) -> list[tuple[str, bool]]:
        verdict = check(timed_out("consumer-0", what, closed_s=closed_s)(told or story(), wait_s))
        return [(one.object, bool(one.more)) for one in wrong(verdict)]

    assert closed(0.0) == []
    assert closed(2.0) == [("channel of a call that ran out", False)]
    assert closed(None) == [("channel of a call that ran out", True)]
    opened = channel(story().at(50 + wait_s - 0.05), "consumer-0", "open")
    assert closed(None, opened) == []  # from 5.1.4 on a channel that had hardly a moment to answer is spared
    assert closed(None, cluster(1, ("broker-a",), ("consumer-0",), node_timers={"consumer-0": {"Z": False}})) == []


def test_a_pull_that_runs_out_keeps_its_channel() -> None:
    told = timed_out("consumer-0", "PULL_MESSAGE", address="10.9.9.9:1")
    assert check(told(story(), 30)).verdict is Validity.VALID


@pytest.mark.parametrize(
    ("timer", "tell", "in_time_s", "early_s", "late_s"),
    [("long poll", held, (0.0, 4.99), -0.2, 5.2), ("client expiry", expired, (120.0, 129.9), 119.0, 131.0)],
)
def test_what_a_periodic_check_ends_may_wait_for_that_check_and_no_longer(
    timer: str, tell: Told, in_time_s: tuple[float, ...], early_s: float, late_s: float
) -> None:
    def told(took_s: float) -> Verdict:
        but = (HOLD_CHECK,) if timer == "long poll" else ()
        history = story(*but)
        if but:
            runs(history, HOLD_CHECK, [at_s for at_s in range(5, 101, 5) if at_s != 55])
        return check(tell(history, took_s))

    for took_s in in_time_s:
        assert told(took_s).verdict is Validity.VALID
    for took_s, early in ((early_s, True), (late_s, False)):
        (found,) = wrong(told(took_s))
        assert (found.object, found.too_early) == (timer, early)


def test_a_client_that_a_broker_never_forgets_is_found() -> None:
    (found,) = wrong(check(story().at(-50).hears("broker-a", "consumer-0")))
    assert (found.object, found.more) == ("client expiry", {"never": True})


def test_a_client_that_was_silent_for_too_long_and_came_back_is_found() -> None:
    told = story().at(-50).hears("broker-a", "consumer-0").at(90).hears("broker-a", "consumer-0")
    (found,) = wrong(check(told))
    assert (found.object, found.measured_ms) == ("client expiry", 140_000)


@pytest.mark.parametrize("how", ["unregistered", "closed"])
def test_a_client_that_left_before_expires_no_more(how: str) -> None:
    told = story().at(-50).hears("broker-a", "consumer-0").at(60).forgets("broker-a", "consumer-0", how, 110)
    assert check(told).verdict is Validity.VALID


def test_a_message_wakes_the_pulls_that_wait_for_it_at_once_and_without_long_polling_at_the_next_check() -> None:
    def told(slowest_ms: float, **settings: Any) -> Verdict:
        history = story(HOLD_CHECK, settings={"broker-a": settings})
        runs(history, HOLD_CHECK, [at_s for at_s in range(5, 101, 5) if at_s != 55])
        value = {"notified": 3, "slowest_ms": slowest_ms}
        return check(history.at(55).event("broker-a", "scheduled_task", f=HOLD_CHECK, duration_ms=0.0, value=value))

    assert told(40).verdict is Validity.VALID
    assert [(found.object, found.measured_ms) for found in wrong(told(200))] == [("long poll", 200)]
    short = {"longPollingEnable": False, "shortPollingTimeMills": 5000}
    assert told(4990, **short).verdict is Validity.VALID
    assert [(found.object, found.measured_ms) for found in wrong(told(5200, **short))] == [("long poll", 5200)]


@pytest.mark.parametrize(
    ("slowest_ms", "paused_s", "copies_s", "found"),
    [(4_990, None, 1, 0), (5_300, None, 1, 1), (5_300, 40, 1, 0), (5_300, 70, 1, 1), (5_300, None, 52, 0)],
)
def test_a_slave_answers_with_what_it_copied_at_its_next_check(
    slowest_ms: int, paused_s: int | None, copies_s: int, found: int
) -> None:
    told = cluster(name_servers=1, brokers=("broker-a", "broker-a/1"))
    if paused_s is not None:
        told.at(paused_s).fault("f1", "pause", "sigstop", "broker-a", until_s=paused_s + 5)
    told.at(copies_s).event("broker-a/1", "copies", address=address_of("broker-a"))
    value = {"notified": 3, "slowest_ms": slowest_ms}
    told.at(55).event("broker-a/1", "scheduled_task", f=HOLD_CHECK, duration_ms=0.0, value=value)
    assert [one.kind for one in wrong(check(told))].count("answers with what was copied") == found


def test_flow_control_is_judged_by_the_shortest_and_the_longest_of_a_second() -> None:
    def told(shortest_ms: float, longest_ms: float) -> Verdict:
        value = {"times": 19, "shortest_ms": shortest_ms}
        row = {"f": "flow_control", "duration_ms": longest_ms, "value": value}
        return check(story().at(50).event("consumer-0", "pull_delayed", **row))

    assert told(50, 50).verdict is Validity.VALID
    assert [found.object for found in wrong(told(50, 160))] == ["pull delay: flow_control"]


def test_a_pause_of_the_node_lengthens_its_waits() -> None:
    def told(took_s: float) -> Verdict:
        history = story().at(51).fault("f1", "pause", "sigstop", "consumer-0", until_s=57)
        return check(timed_out("consumer-0", "HEART_BEAT")(history, took_s))

    late = "HEART_BEAT time-out"
    assert late not in [found.object for found in wrong(told(7.1))]
    assert late in [found.object for found in wrong(told(9))]


def producers(ordered: bool = False, **run: Any) -> HistoryBuilder:
    """Three brokers of 4 queues each and a producer that sends 4 times a second."""
    names = ("broker-a", "broker-b", "broker-c")
    workload = {"sends_per_s": 4.0, "topic": "orders", "ordered": ordered}
    told = cluster(1, names, ("producer-0",), workload=workload, **run).learns("producer-0", *names)
    told.at(5).event("ns-0", "scheduled_task", f="scanNotActiveBroker", duration_ms=0.0)
    return told


def isolation(verdict: Verdict) -> list[tuple[str, bool]]:
    return [(found.kind, found.too_early) for found in wrong(verdict) if "isolation" in found.object]


def isolated(told: HistoryBuilder, at_s: float, isolation_s: float, **about: Any) -> HistoryBuilder:
    value = {"isolation_ms": isolation_s * 1000, "failed": about.pop("failed", False)}
    row = {"f": "isolated", "broker_name": "broker-a", "duration_ms": 600.0, "value": value, **about}
    return told.at(at_s).event("producer-0", "broker_isolated", **row)


def selected(told: HistoryBuilder, at_s: float) -> Verdict:
    told.at(at_s).event("producer-0", "broker_isolated", f="selected", broker_name="broker-a")
    return judge(*told.end(END_S).facts())


def test_a_broker_is_isolated_as_long_as_its_latency_says() -> None:
    assert isolation(selected(isolated(producers(), 20, 30), 51)) == []
    assert isolation(selected(isolated(producers(), 20, 31), 51)) == [("isolates as long as set", False)]
    assert isolation(selected(isolated(producers(), 20, 29), 51)) == [("isolates as long as set", True)]
    assert isolation(selected(isolated(producers(), 20, 600, failed=True), 620)) == []


def test_the_users_own_table_counts() -> None:
    own = {"producer-0": {"latencyMax": [500], "notAvailableDuration": [10_000]}}
    assert isolation(selected(isolated(producers(settings=own), 20, 10), 31)) == []
    assert isolation(selected(isolated(producers(settings=own), 20, 30), 51)) != []


def test_an_isolated_broker_is_avoided_until_its_time_is_over_and_used_in_its_next_turn() -> None:
    kind = "ends isolations in time"
    assert isolation(selected(isolated(producers(), 20, 30), 49.5)) == [(kind, True)]
    assert isolation(selected(isolated(producers(), 20, 30), 53)) == []  # 12 queues, 4 sends a second
    assert isolation(selected(isolated(producers(), 20, 30), 54)) == [(kind, False)]
    never = judge(*isolated(producers(), 20, 30).end(END_S).facts())
    assert isolation(never) == [(kind, False)]


def test_an_isolated_broker_may_be_used_when_every_other_is_isolated_too() -> None:
    told = isolated(producers(), 20, 30)
    for name in ("broker-b", "broker-c"):
        isolated(told, 21, 30, broker_name=name)
        told.at(52).event("producer-0", "broker_isolated", f="selected", broker_name=name)
    assert isolation(selected(told, 30)) == []


@pytest.mark.parametrize(("both_isolated", "found"), [(True, []), (False, [("ends isolations in time", True)])])
def test_a_broker_gone_while_all_are_isolated_is_forgotten(both_isolated: bool, found: list[tuple[str, bool]]) -> None:
    told = isolated(producers(), 20, 30)
    if both_isolated:
        isolated(told, 21, 30, broker_name="broker-b")
    told.at(22).learns("producer-0", "broker-b")
    told.at(22.2).event("producer-0", "broker_isolated", f="selected", broker_name="broker-b")
    isolated(told, 22.3, 0, broker_name="broker-b", duration_ms=1.0)
    told.at(22.5).event("producer-0", "broker_isolated", f="selected", broker_name="broker-b")
    told.at(30).learns("producer-0", "broker-a", "broker-b")
    assert [one for one in isolation(selected(told, 40)) if one[0] == "ends isolations in time"] == found


@pytest.mark.parametrize("detects", [True, False])
def test_a_detector_may_forget_a_broker_that_no_route_names(detects: bool) -> None:
    settings = {"producer-0": {"sendLatencyFaultEnable": True, "startDetectorEnable": detects}}
    told = isolated(producers(profile="5.x", settings=settings), 20, 10, failed=True)
    told.at(22).learns("producer-0", "broker-b").at(24).learns("producer-0", "broker-a", "broker-b")
    found = [one for one in isolation(selected(told, 28)) if one[0] == "ends isolations in time"]
    assert found == [] if detects else [("ends isolations in time", True)]


def test_a_send_tries_again_by_the_route_with_which_it_began() -> None:
    def told(named_s: float) -> list[tuple[str, bool]]:
        story = isolated(producers(), 20, 30).at(21).learns("producer-0", "broker-a")
        return isolation(selected(story.at(named_s).learns("producer-0", "broker-a", "broker-b"), 40))

    assert told(37.5) == []
    assert told(36.5) == [("ends isolations in time", True)]


def routed(at_s: float, *brokers: str) -> HistoryBuilder:
    """The consumer's route names these from then on."""
    return story().at(at_s).learns("consumer-0", *brokers)


def heartbeats(told: HistoryBuilder, *at_s: float) -> HistoryBuilder:
    """broker-a hears consumer-0 then."""
    for each_s in at_s:
        told.at(each_s).hears("broker-a", "consumer-0")
    return told


def missed(told: HistoryBuilder) -> int:
    """How many brokers no heartbeat of a round reached."""
    return sum(found.wrong for found in wrong(check(told)) if found.kind == "heartbeats reach every broker")


def test_a_round_of_heartbeats_reaches_every_broker_that_the_one_before_did() -> None:
    assert check(heartbeats(routed(0.2, "broker-a"), 1, 31, 61, 91)).verdict is Validity.VALID
    (found,) = wrong(check(heartbeats(routed(0.2, "broker-a"), 1, 31, 91)))
    assert (found.object, found.kind, found.wrong) == ("sendHeartbeatToAllBroker", "heartbeats reach every broker", 1)


@pytest.mark.parametrize("reached", [True, False])
def test_a_broker_that_does_not_answer_keeps_no_heartbeat_from_the_others(reached: bool) -> None:
    told = cluster(1, ("broker-a", "broker-b"), ("consumer-0",))
    runs(runs(told, HEARTBEAT, [1]), HEARTBEAT, [31, 61, 91], took_s=3.0)
    told.at(0.02).learns("consumer-0", "broker-a", "broker-b")
    told.at(20).fault(*PAUSE)
    for at_s in (34, 64, 94):
        told.at(at_s).event("consumer-0", "timed_out", f="HEART_BEAT", address=address_of("broker-a"), duration_ms=3000)
    sent = [("broker-a", 1), *(("broker-b", at_s) for at_s in (1, 34, 64, 94)[: 4 if reached else 3])]
    for broker, at_s in sent:
        told.at(at_s).hears(broker, "consumer-0")
    assert missed(told) == (0 if reached else 1)


@pytest.mark.parametrize(("opened_s", "wrong_"), [(36, 0), (38, 1)])
def test_a_heartbeat_given_up_while_dialling_left_no_broker_out(opened_s: float, wrong_: int) -> None:
    told = cluster(1, ("broker-a", "broker-b"), ("consumer-0",))
    runs(runs(told, HEARTBEAT, [1, 61, 91]), HEARTBEAT, [31], took_s=3.0)
    told.at(0.02).learns("consumer-0", "broker-a", "broker-b")
    for at_s in (1, 61, 91):
        told.at(at_s).hears("broker-a", "consumer-0").hears("broker-b", "consumer-0")
    told.at(34).hears("broker-b", "consumer-0")
    opened = {"f": "open", "address": address_of("broker-a"), "value": {"reason": "connected"}}
    told.at(opened_s).event("consumer-0", "channel", **opened)
    assert missed(told) == wrong_


@pytest.mark.parametrize(("fault", "wrong_"), [(None, 1), ("bandwidth", 0)])
def test_a_round_waits_for_the_round_of_a_rebalance(fault: str | None, wrong_: int) -> None:
    told = routed(0.2, "broker-a")
    if fault:
        told.at(50).fault("f1", fault, "toxiproxy.bandwidth", "consumer-0", "broker-a", value={"rate_kb_s": 1})
    assert missed(heartbeats(told, 1, 31, 62.5, 91)) == wrong_


def test_a_round_of_a_rebalance_may_wait_for_its_brokers_and_another_round_leaves_it_to_that_one() -> None:
    told = routed(0.02, "broker-a")
    told.at(60.5).event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
    assert not missed(heartbeats(told, 0.05, 1, 31, 62.5, 91))


@pytest.mark.parametrize(
    ("second_s", "rebalance_s", "wrong_"), [(62.5, None, 0), (60.7, None, 2), (60.7, 2, 0), (60.7, 0.2, 2)]
)
def test_a_round_leaves_another_what_that_one_reached(second_s: float, rebalance_s: float | None, wrong_: int) -> None:
    told = runs(cluster(1, ("broker-a", "broker-b"), ("consumer-0",)), HEARTBEAT, [1, 31, 61, 91])
    told.at(0.02).learns("consumer-0", "broker-a", "broker-b")
    told.at(60.5).event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
    for at_s in (1, 31, 60.6, 91):
        told.at(at_s).hears("broker-a", "consumer-0")
    for at_s in (1, 31, second_s, 91):
        told.at(at_s).hears("broker-b", "consumer-0")
    if rebalance_s is not None:
        runs(told, REBALANCE, [60.4], took_s=rebalance_s)
    assert missed(told) == wrong_


@pytest.mark.parametrize(("heard_s", "wrong_"), [(2.5, 0), (3.5, 1)])
def test_a_round_leaves_its_brokers_to_the_round_of_the_start(heard_s: float, wrong_: int) -> None:
    assert missed(heartbeats(routed(0.02, "broker-a"), 0.05, heard_s, 31, 61, 91)) == wrong_


@pytest.mark.parametrize("late", [True, False])
def test_a_consumer_sends_heartbeats_before_its_first_rebalance_and_whenever_its_queues_change(late: bool) -> None:
    told = routed(0.02, "broker-a")
    told.at(50).event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
    heartbeats(told, 1, 31, 61, 91, *((0.2,) if late else (0.05, 50.01)))
    found = {one.kind: one.wrong for one in wrong(check(told)) if one.object == "sendHeartbeatToAllBroker"}
    assert found == ({"heartbeats reach every broker": 1, "heartbeats at new queues": 1} if late else {})


@pytest.mark.parametrize(("id_", "wrong_"), [("0", 4), ("1", 4), (None, 0)])
def test_a_heartbeat_reaches_every_broker_of_the_routes(id_: str | None, wrong_: int) -> None:
    brokers = {"broker-a": {id_: address_of("broker-a")} if id_ else {}}
    told = story().at(0.2).learns("consumer-0", route={"brokers": brokers, "queues": {"broker-a": [4, 4, 6, 0]}})
    assert missed(told.at(1).hears("broker-a", "consumer-1")) == wrong_


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize(("named", "wrong_"), [(("broker-a/1",), 0), (("broker-a", "broker-a/1"), 1)])
def test_no_heartbeat_goes_to_a_master_out_of_its_route(named: tuple[str, ...], wrong_: int, *, is_gone: bool) -> None:
    told = routed(0.2, "broker-a", "broker-a/1").learns("consumer-0", "broker-a", "broker-a/1", topic="%RETRY%g")
    heartbeats(told, 1, 31, 91).at(50).learns("consumer-0", *named)
    if is_gone:
        told.at(55).learns("consumer-0", route={"brokers": {}, "queues": {}})
    assert missed(told) == wrong_


def test_a_round_may_seem_to_begin_after_its_heartbeats_came() -> None:
    early = heartbeats(routed(0.2, "broker-a"), 0.959, 30.959, 90.959)
    assert len(wrong(check(early))) == 1
    assert check(heartbeats(early, 60.959)).verdict is Validity.VALID


def test_a_heartbeat_shortly_before_its_broker_left_the_route_is_not_of_the_round_that_comes_then() -> None:
    """Nor where the route lost it before: only a round forgets a broker (random scenario 53015)."""

    def judged(*changed_s: float) -> Verdict:
        told = heartbeats(routed(0.2, "broker-a"), 1, 31, 60.1)
        for at_s in changed_s:
            told.at(at_s).learns("consumer-0", "broker-b")
        return check(told)

    for changed_s in (60.2, 57, 40):
        assert judged(changed_s).verdict is Validity.VALID
    assert len(wrong(judged())) == 1
    assert len(wrong(judged(20))) == 1


@pytest.mark.parametrize(
    ("node", "what", "took_s", "closed_s", "found"),
    [
        ("consumer-0", "PULL_MESSAGE", 30, 45, []),
        ("consumer-0", "PULL_MESSAGE", 30, 60, ["broker-a"]),
        ("consumer-0", "PULL_MESSAGE", 30, 80, []),
        ("producer-0", "send", 3, 52, ["broker-a"]),
    ],
)
def test_a_call_ends_with_its_channel(node: str, what: str, took_s: float, closed_s: float, found: list[str]) -> None:
    told = channel((story() if node == "consumer-0" else producers()).at(closed_s), node, "close")
    waited = timed_out(node, what, closed_s=None)(told, took_s)
    assert [one.more["because"] for one in wrong(check(waited)) if one.kind == "ends with its channel"] == found
    assert not any(one.kind == "closes channels of time-outs" for one in wrong(check(waited)) if found), (
        "it had ended before"
    )


def consumers_left(
    woken_s: float,
    told_s: float | None = None,
    how: str = "closed",
    joined_s: Sequence[float] = (0.06,),
    took_ms: float | None = None,
    broker_of: str = OURS,
    lag_ms: float = 1.0,
    **setting: Any,
) -> Verdict:
    """Of two consumers one leaves at 45 s; the other rebalances then, and was told when it joined. Each heartbeat was
    handled within `took_ms` before its row."""
    settings = {"broker-a": setting} if setting else {}
    told = cluster(1, ("broker-a",), ("consumer-0", "consumer-1"), settings=settings)
    for node in ("consumer-0", "consumer-1"):
        runs(told, REBALANCE, [0.1, 20.1, 40.1, woken_s + 20, woken_s + 40], node=node)
        runs(told, REBALANCE, [woken_s], node=node, woken=True)
        for at_s in (0.05, 31) if node == "consumer-0" else (0.05, 31, 61, 91):
            told.at(at_s).hears("broker-a", node).rows[-1]["duration_ms"] = took_ms
    told.at(45).forgets("broker-a", "consumer-0", how, 14, groups=["consumers"])
    for at_s in (*joined_s, woken_s if told_s is None else told_s):
        told.at(at_s).event("consumer-1", "members_changed", address=address_of("broker-a"))
    return judge(*told.made_by(broker_of, "broker-a").end(END_S, lag_ms).facts())


def late_with_members(verdict: Verdict) -> list[str]:
    """Who did not tell that the members of a group changed, or was told and did not rebalance."""
    kinds = ("reports a change at once", "rebalances at changes")
    return [one.subject for one in wrong(verdict) if one.kind in kinds]


def test_who_remains_in_a_group_is_told_at_once_that_another_has_left() -> None:
    assert late_with_members(consumers_left(45.02)) == []
    assert late_with_members(consumers_left(46)) == ["broker-a"]
    assert late_with_members(consumers_left(46, notifyConsumerIdsChangedEnable=False)) == []
    assert late_with_members(consumers_left(46, how="expired")) == [], "of a silent one a broker tells nobody"
    told = [one.kind for one in wrong(consumers_left(45.02, told_s=45.01, how="expired"))]
    assert "reports changes of members only" in told


def test_that_a_broker_told_the_consumer_its_transport_says() -> None:
    assert late_with_members(consumers_left(45.02, told_s=45.01)) == []
    assert late_with_members(consumers_left(45.02, told_s=45.0200001)) == []  # of two clocks, or rounded
    assert late_with_members(consumers_left(46, told_s=45.01)) == ["consumer-1"]
    assert late_with_members(consumers_left(46, told_s=45.99)) == ["broker-a"]
    assert late_with_members(consumers_left(45.02, told_s=45.01, joined_s=())) == ["broker-a"], "who joins is told, too"


@pytest.mark.parametrize(
    ("broker_of", "lag_ms", "late"),
    [(OURS, 1.0, ["broker-a"]), ("apache-5.3.3", 1.0, ["broker-a"]), ("apache-5.3.3", 900.0, [])],
)
def test_any_broker_may_tell_members_as_late_as_its_process_was(broker_of: str, lag_ms: float, late: list[str]) -> None:
    assert late_with_members(consumers_left(45.91, told_s=45.9, broker_of=broker_of, lag_ms=lag_ms)) == late


@pytest.mark.parametrize(("took_ms", "late"), [(None, ["broker-a"]), (20.0, [])])
def test_a_heartbeat_learnt_from_the_wire_may_be_told_of_before_its_answer(took_ms: float, late: list[str]) -> None:
    told = consumers_left(45.02, told_s=45.01, joined_s=(0.04,), took_ms=took_ms)
    assert late_with_members(told) == late


def test_who_is_in_a_group_is_told_at_once_that_another_has_come() -> None:
    def found(woken_s: float, *, again: bool = False) -> list[str]:
        told = cluster(1, ("broker-a",), ("consumer-0", "consumer-1"))
        runs(told, REBALANCE, [21, 41, woken_s + 20, woken_s + 40])
        runs(told, REBALANCE, [1, woken_s], woken=True)
        for node, times in (("consumer-0", (1, 31, 61, 91)), ("consumer-1", (45, 75))):
            for number, at_s in enumerate(times):
                told.at(at_s).hears("broker-a", node, f"{node}-{number}" if again else "")
        for at_s in (1, woken_s):
            told.at(at_s).event("consumer-0", "members_changed", address=address_of("broker-a"))
        return late_with_members(judge(*told.end(END_S).facts()))

    assert (found(45.02), found(46)) == ([], ["broker-a"])
    assert found(45.02, again=True) == ["broker-a"]  # on a new channel at 75 s, and nobody is told


@pytest.mark.parametrize(("killed_s", "found"), [(48, []), (80, ["consumer-1"])])
def test_who_is_killed_during_a_round_need_not_have_rebalanced(killed_s: float, found: list[str]) -> None:
    """Of two topics the members are asked for, and an address may be looked up for each: 28 s."""
    told = cluster(1, ("broker-a",), ("consumer-0", "consumer-1"))
    told.at(30).black_hole("consumer-1", "broker-a", until_s=99)
    runs(told, REBALANCE, [0.1, 20.1, 40.1], node="consumer-1")
    told.at(45).event("consumer-1", "members_changed", address=address_of("broker-a"))
    told.at(killed_s).fault("f2", "kill", "sigkill", "consumer-1")
    assert late_with_members(judge(*told.end(END_S).facts())) == found


@pytest.mark.parametrize(("told_s", "found"), [(75.01, []), (80, ["broker-a"]), (None, ["broker-a"])])
def test_the_newest_member_of_a_group_is_told_that_the_members_changed(told_s: float | None, found: list[str]) -> None:
    told = cluster(1, ("broker-a",), ("consumer-0", "consumer-1"))
    runs(told, REBALANCE, [0.1, 20.1, 40.1, 60.1, 95.1])
    runs(told, REBALANCE, [told_s or 80.1], woken=told_s is not None)
    told.at(0.05).hears("broker-a", "consumer-0").event("consumer-0", "members_changed", address=address_of("broker-a"))
    told.at(75).hears("broker-a", "consumer-0", "new")
    if told_s is not None:
        told.at(told_s).event("consumer-0", "members_changed", address=address_of("broker-a"))
    assert late_with_members(judge(*told.end(END_S).facts())) == found


def members_after_a_restart(told_s: float, heard_s: float = 31, forgot_s: float | None = None) -> list[str]:
    """The broker is back at 25 s and hears consumer-0, and at 45 s consumer-1; consumer-0 rebalances at `told_s`."""
    told = cluster(1, ("broker-a",), ("consumer-0", "consumer-1"))
    told.at(20).fault(*KILL).at(25).restarted("broker-a")
    told.fault(*KILL, end=True)
    runs(told, REBALANCE, [0.1, 40.1, told_s + 20, told_s + 40])
    runs(told, REBALANCE, [heard_s, told_s], woken=True)
    for node, at_s in (("consumer-0", heard_s), ("consumer-1", 45)):
        told.at(at_s).hears("broker-a", node)
    for at_s in (heard_s, told_s):
        told.at(at_s).event("consumer-0", "members_changed", address=address_of("broker-a"))
    if forgot_s is not None:
        told.at(forgot_s).forgets("broker-a", "consumer-0", "closed", groups=["consumers"])
    return late_with_members(judge(*told.end(END_S).facts()))


def test_a_broker_tells_whom_it_has_heard_since_its_restart_and_nobody_else() -> None:
    assert (members_after_a_restart(45.02), members_after_a_restart(46)) == ([], ["broker-a"])
    assert members_after_a_restart(46, heard_s=19) == []
    assert members_after_a_restart(46, forgot_s=44) == []


@pytest.mark.parametrize(("listed", "is_right"), [("01", True), ("0", False), ("012", False), ("013", False)])
def test_a_broker_lists_the_members_of_the_group_that_it_has_heard_of(listed: str, is_right: bool) -> None:
    clients = [f"consumer-{number}" for number in range(4)]
    told = cluster(1, ("broker-a",), clients, group_of={"consumer-3": "others"})
    runs(told, HEARTBEAT, [1, 31])
    for client in ("consumer-0", "consumer-1", "consumer-3"):
        told.at(2).hears("broker-a", client)
    ids = [f"127.0.0.1@consumer-{number}#1" for number in listed]
    told.at(60).event("consumer-0", "members_listed", topic="orders", address=address_of("broker-a"), value=ids)
    found = [one.subject for one in wrong(check(told)) if one.kind == "lists its members"]
    assert found == ([] if is_right else ["broker-a"])


def refused(told: HistoryBuilder, at_s: float, code: int, broker: str = "broker-a", times: int = 1) -> None:
    """Pulls of consumer-0, each of which waits for a second before the next."""
    of = {"topic": "orders", "broker_name": broker, "queue_id": 0, "duration_ms": 1000.0, "value": {"times": times}}
    told.at(at_s).event("consumer-0", "pull_delayed", f="exception", code=code, **of)


@pytest.mark.parametrize(
    ("refused_as", "code", "heard_s", "posts", "found"),
    [
        ("broker-a", 24, 60, False, []),
        ("broker-b", 24, 60, False, []),
        ("broker-a", 1, 60, False, ["broker-a"]),
        (None, 0, 60, False, ["broker-a"]),
        (None, 0, 15, False, []),
        (None, 0, 60, True, []),
    ],
)
def test_a_broker_refuses_pulls_of_a_group_that_has_no_member_unless_they_bring_the_subscription(
    refused_as: str | None, code: int, heard_s: float, posts: bool, found: list[str]
) -> None:
    """Under whichever name the consumer asked: an operator may register another broker's address."""
    settings = {"consumer-0": {"postSubscriptionWhenPull": posts}}
    told = runs(cluster(1, ("broker-a", "broker-b"), ("consumer-0",), settings=settings), HEARTBEAT, [1, 31])
    told.at(heard_s).hears("broker-a", "consumer-0", "7")
    told.at(20).event("broker-a", "pull_asked", op_id="7", topic="orders", value={"client": None, "version": 7})
    if refused_as is not None:
        brokers = {refused_as: {"0": address_of("broker-a")}}
        told.at(10).learns("consumer-0", route={"brokers": brokers, "queues": {refused_as: [4, 4, 6, 0]}})
        refused(told, 59, code, refused_as, times=39)
    assert [one.subject for one in wrong(check(told)) if one.kind == "refuses strangers"] == found


@pytest.mark.parametrize(
    ("cut", "waited_ms", "found"), [(False, 30_000.0, ["broker-a"]), (True, 30_000.0, []), (False, 16_000.0, [])]
)
def test_a_broker_answers_a_pull_before_the_pull_runs_out(cut: bool, waited_ms: float, found: list[str]) -> None:
    told = runs(cluster(1, ("broker-a",), ("consumer-0",)), HEARTBEAT, [1, 31])
    if cut:
        told.at(50).black_hole("consumer-0", "broker-a", until_s=55)
    about = {"address": address_of("broker-a"), "duration_ms": waited_ms}
    told.at(70).event("consumer-0", "timed_out", f="PULL_MESSAGE", **about)
    assert [one.subject for one in wrong(check(told)) if one.kind == "answers pulls"] == found


def test_a_broker_that_knows_no_member_refuses_the_question_for_them() -> None:
    told = runs(cluster(1, ("broker-a",), ("consumer-0",)), HEARTBEAT, [1, 31])
    told.at(60).event("consumer-0", "members_listed", topic="orders", address=address_of("broker-a"), value=[])
    assert [one.subject for one in wrong(check(told)) if one.kind == "refuses without members"] == ["broker-a"]


@pytest.mark.parametrize(
    ("heard", "gone_s", "found"),
    [
        ({"consumer-0": 7}, None, ["broker-a"]),
        ({"consumer-0": 6, "consumer-1": 8}, None, ["broker-a"]),
        ({"consumer-0": 6}, None, []),
        ({"consumer-0": 7}, 38, []),
    ],
)
def test_a_broker_refuses_only_newer_pulls(heard: dict[str, int], gone_s: float | None, found: list[str]) -> None:
    """Code 25, of pulls with subVersion 7."""
    told = runs(cluster(1, ("broker-a",), ("consumer-0", "consumer-1")), HEARTBEAT, [1, 31])
    told.at(0.2).learns("consumer-0", "broker-a")
    for client, version in heard.items():
        told.at(2).hears("broker-a", client, versions={"orders": version})
    asked = {"client": "127.0.0.1@consumer-0#1", "version": 7, "messages": 32, "held_ms": 15_000}
    told.at(3).event("broker-a", "pull_asked", topic="orders", value=asked)
    if gone_s is not None:
        told.at(gone_s).forgets("broker-a", "consumer-0", "closed", groups=["consumers"])
    refused(told, 40, 25)
    assert [one.subject for one in wrong(check(told)) if one.kind == "newest subscription"] == found


@pytest.mark.parametrize(("paused_s", "found"), [(1.0, ["broker-a", "broker-a"]), (25.0, [])])
def test_a_client_that_runs_again_may_read_older_answers(paused_s: float, found: list[str]) -> None:
    """A list of members, and a refusal (random seed 1678066)."""
    told = runs(cluster(1, ("broker-a",), ("consumer-0", "consumer-1")), HEARTBEAT, [1, 31])
    told.at(0.2).learns("consumer-0", "broker-a")
    told.at(35.5).hears("broker-a", "consumer-1", versions={"orders": 1})
    told.at(60 - paused_s).fault("f1", "pause", "sigstop", "consumer-0", until_s=60)
    told.at(60).event("consumer-0", "members_listed", topic="orders", address=address_of("broker-a"), value=[])
    refused(told, 61, 24)
    kinds = ("lists its members", "knows its group")
    assert [one.subject for one in wrong(check(told)) if one.kind in kinds] == found


@pytest.mark.parametrize(("at", "found"), [("broker-a", ["broker-a"]), ("broker-b", [])])
def test_who_pulls_from_a_broker_at_the_address_of_another_is_refused_by_that_one(at: str, found: list[str]) -> None:
    """Somebody registered broker-a by hand (random seed 1510004)."""
    told = cluster(1, ("broker-a", "broker-b"), ("consumer-0",))
    runs(told, HEARTBEAT, [1, 31])
    route = {"brokers": {"broker-a": {"0": address_of(at)}}, "queues": {"broker-a": [4, 4, 6, 0]}}
    told.at(2).hears("broker-a", "consumer-0", versions={"orders": 1}).learns("consumer-0", route=route)
    refused(told, 40, 24)
    assert [one.subject for one in wrong(check(told)) if one.kind == "knows its group"] == found


@pytest.mark.parametrize(("latency_ms", "found"), [(0, ["broker-a"]), (4_000, [])])
def test_a_slow_link_may_deliver_a_refusal_from_before_a_member(latency_ms: int, found: list[str]) -> None:
    """A link with 4 s of latency (random seed 1672143)."""
    told = runs(cluster(1, ("broker-a",), ("consumer-0", "consumer-1")), HEARTBEAT, [1, 31])
    told.at(0.2).learns("consumer-0", "broker-a")
    if latency_ms:
        slow = {"latency_ms": latency_ms}
        told.at(20).fault("f1", "latency", "toxiproxy.latency", "consumer-0", "broker-a", until_s=60, value=slow)
    told.at(35.5).hears("broker-a", "consumer-1", versions={"orders": 1})
    refused(told, 40, 24)
    assert [one.subject for one in wrong(check(told)) if one.kind == "knows its group"] == found


def leaves(
    *how: str, stopped: bool = True, lag_ms: float = 1.0, answered: bool = False, left_out_s: float | None = None
) -> list[str]:
    """consumer-0 ends at 50 s, in order or killed; broker-a, of its route, says so of its end: who is wrong, how."""
    told = routed(0.2, "broker-a")
    if left_out_s is not None:
        told.at(left_out_s).learns("consumer-0", "broker-b")
    if answered:
        told.at(49.9).event("consumer-0", "unregistered", address=address_of("broker-a"))
    for f in how:
        told.at(49.9).forgets("broker-a", "consumer-0", f, groups=["consumers"])
    told.at(50).lag(lag_ms, "consumer-0").lag(lag_ms, "broker-a")
    if stopped:
        told.event("consumer-0", "stopped").fault("f1", "stop", "sigterm", "consumer-0")
    else:
        told.fault("f1", "kill", "sigkill", "consumer-0")
    return [f"{one.subject} {one.kind}" for one in wrong(check(told)) if one.object == LEAVE]


def test_who_stops_in_order_unregisters_at_every_broker_of_its_routes() -> None:
    assert leaves("unregistered") == leaves("closed", stopped=False) == leaves() == []
    assert leaves("closed") == leaves("unregistered", "closed") == ["consumer-0 unregisters everywhere"]
    assert leaves("closed", lag_ms=2_000) == []  # its request may have run out
    assert leaves("closed", left_out_s=45) == []
    assert leaves("closed", "unregistered") == []  # an idle channel was closed, and it beat again, before the stop


def test_a_broker_that_answered_who_unregistered_keeps_it_in_no_group() -> None:
    assert leaves("unregistered", answered=True) == leaves("closed", answered=True, stopped=False) == []
    assert leaves("closed", answered=True) == ["broker-a forgets unregistered clients"]


def test_a_send_has_its_budget_for_all_its_tries() -> None:
    def told(took_s: float, attempt: int) -> Verdict:
        about = {"op_id": "1", "attempt": attempt, "value": {"attempt_ms": 1_000.0}}
        history = timed_out("producer-0", "send", **about)(producers(), took_s)
        return judge(*history.end(END_S).facts())

    def found(verdict: Verdict) -> list[str]:
        return [one.object for one in wrong(verdict) if one.object == "send time-out"]

    assert found(told(3, 1)) == []
    assert found(told(2.9, 1)) == found(told(3.1, 0)) == ["send time-out"]


def test_one_try_of_a_send_has_its_own_time_where_the_user_gave_it_one() -> None:
    def told(took_s: float, attempt_s: float, attempt: int, *, ordered: bool = False) -> list[str]:
        settings = {"producer-0": {"sendMsgMaxTimeoutPerRequest": 1_000}}
        history = producers(ordered, settings=settings, profile="5.x")
        about = {"op_id": "1", "attempt": attempt, "value": {"attempt_ms": attempt_s * 1000}}
        timed_out("producer-0", "send", **about)(history, took_s)
        verdict = judge(*history.end(END_S).facts())
        return [one.object for one in wrong(verdict) if one.object == "send time-out"]

    assert told(1.0, 1.0, 0) == told(2.0, 1.0, 1) == told(3.0, 1.0, 2) == []
    assert told(3.0, 3.0, 0, ordered=True) == []
    assert (
        told(1.0, 1.0, 0, ordered=True)
        == told(3.0, 3.0, 0)
        == told(1.2, 1.2, 0)
        == told(2.0, 0.0, 2)
        == ["send time-out"]
    )


@pytest.mark.parametrize(("client_profile", "longest_ms"), [("node", 6_000), ("java-5.3", 6_000), ("go", 6_000)])
def test_a_look_up_takes_a_dial_or_an_answer_of_each_entry(client_profile: str, longest_ms: float) -> None:
    timers = {"producer-0": {"A_ms": 1_000.0, "C_ms": 3_000.0}}
    _, world = cluster(clients=("producer-0",), client_profile=client_profile, node_timers=timers).end(10).facts()
    assert look_up(world, "producer-0", 2).ms == longest_ms
