"""timers_kept over hand-written acts of clients: asked for by RocketMQ's rules, and not."""

import pytest

from nemesrv.chaos.checks.service.timers_kept import judge
from nemesrv.chaos.checks.service.unasked_acts import DROP
from nemesrv.chaos.oracle.time_outs import HEARTBEAT, REBALANCE
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import PAUSE, HistoryBuilder, address_of, cluster, route_of

from .test_timers_kept import check, due, look_up, runs, story, wrong

HEARD = ("heartbeat", "heartbeats to routed brokers")
QUIET_S = 40.0
"""Between two polls, heartbeat rounds and rebalances."""


def routed(
    told: HistoryBuilder, *brokers: str, at_s: float = 0.02, topic: str = "orders", **queues: list[int]
) -> HistoryBuilder:
    """The consumer took the route of these brokers, with these rows in place of their own."""
    route = route_of(*brokers)
    route["queues"].update({name.replace("_", "-"): row for name, row in queues.items()})
    return told.at(at_s).event("consumer-0", "route_changed", topic=topic, value=route)


def dialled(told: HistoryBuilder, at_s: float, f: str = "connect_failed") -> HistoryBuilder:
    return told.at(at_s).event("consumer-0", "channel", f=f, address=address_of("broker-a"), value={"reason": ""})


def holding(told: HistoryBuilder, *brokers: str) -> HistoryBuilder:
    return told.at(0.03).event("consumer-0", "assigned", topic="orders", value=[[broker, 0] for broker in brokers])


def kinds(told: HistoryBuilder, lag_ms: float = 1.0) -> list[tuple[str, str]]:
    return [(found.object, found.kind) for found in wrong(check(told, lag_ms))]


def without_address() -> HistoryBuilder:
    """A route of another topic named broker-a last, at another address, and names broker-a no more: cleanOfflineBroker
    leaves no address of broker-a, though the route of orders names broker-a (random seed 1760089)."""
    told, by_hand = routed(story(), "broker-a"), route_of("broker-a")
    by_hand["brokers"] = {"broker-a": {"0": "10.9.9.9:10911"}}
    told.at(10).event("consumer-0", "route_changed", topic="others", value=by_hand)
    return routed(told, "broker-b", at_s=20, topic="others")


def test_a_look_up_between_polls_is_asked_for_by_nothing() -> None:
    assert check(routed(story(), "broker-a")).verdict is Validity.VALID
    for told in (routed(story(), "broker-a"), holding(routed(story(), "broker-a"), "broker-a")):
        assert kinds(look_up(told, QUIET_S, 0.01)) == [("look-up", "looks up at polls only")]


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(look_up(story(), QUIET_S, 0.01), id="of a topic without a route"),
        pytest.param(
            look_up(routed(story(), "broker-a", broker_b=[4, 4, 6, 0]), QUIET_S, 0.01), id="of a broker without address"
        ),
        pytest.param(
            look_up(holding(routed(story(), "broker-a"), "broker-b"), QUIET_S, 0.01), id="of a queue it holds"
        ),
        pytest.param(
            look_up(routed(routed(story(), "broker-a"), broker_b=[4, 4, 6, 0], at_s=QUIET_S - 0.01), QUIET_S, 0.01),
            id="of a topic whose route lost its broker just before",
        ),
        pytest.param(look_up(without_address(), QUIET_S, 0.01), id="of a broker that it has forgotten"),
    ],
)
def test_what_a_client_has_no_route_of_it_may_ask_for_at_any_time(told: HistoryBuilder) -> None:
    assert kinds(told) == []


@pytest.mark.parametrize(
    ("began_s", "found"), [(QUIET_S - 5, []), (QUIET_S - 2, [("look-up", "looks up at polls only")])]
)
def test_a_round_asks_for_the_brokers_of_the_route_at_its_start(began_s: float, found: list[tuple[str, str]]) -> None:
    """The route lost broker-b while broker-a let a question of the round run out (random seed 1678446)."""
    told = routed(routed(story(), "broker-a", "broker-b"), "broker-a", at_s=QUIET_S - 3)
    runs(look_up(told, QUIET_S, 0.01), REBALANCE, [began_s], took_s=QUIET_S + 0.01 - began_s)
    assert [one for one in kinds(told) if one[0] == "look-up"] == found


@pytest.mark.parametrize(
    ("before_s", "lag_ms", "found"), [(QUIET_S - 0.001, 1.0, 0), (QUIET_S - 0.5, 1.0, 1), (QUIET_S - 0.5, 600.0, 0)]
)
def test_a_look_up_may_have_been_asked_for_before_the_last_answer(before_s: float, lag_ms: float, found: int) -> None:
    """The other look-up brought the address of broker-b (random seed 1683210)."""
    told = routed(story(), "broker-a", broker_b=[4, 4, 6, 0])
    look_up(told, QUIET_S - 1, before_s - (QUIET_S - 1))
    routed(told, "broker-a", "broker-b", at_s=before_s)
    assert kinds(look_up(told, QUIET_S, 0.01), lag_ms).count(("look-up", "looks up at polls only")) == found


@pytest.mark.parametrize(
    ("share", "again_s", "perm", "found"),
    [(0.0, None, 6, 1), (0.1, None, 6, 0), (0.1, QUIET_S + 5, 6, 1), (0.1, QUIET_S + 5, 4, 0)],
)
def test_a_retry_topic_is_looked_up_at_need(share: float, again_s: float | None, perm: int, found: int) -> None:
    """Random seeds 1774006 and 1774033."""
    retry = "%RETRY%nemesrv-consumers"
    told = routed(story(workload={"failing_share": share}), "broker-a", topic=retry, broker_a=[1, 1, perm, 0])
    look_up(told, QUIET_S, 0.01, topic=retry)
    if again_s is not None:
        look_up(told, again_s, 0.01, topic=retry)
    assert kinds(told).count(("look-up", "looks up at polls only")) == found


def test_a_topic_that_is_nowhere_borrows_the_route_of_another_and_that_one_is_asked_for_then_alone() -> None:
    told = routed(story(), "broker-a", topic="TBW102")
    assert kinds(look_up(told, QUIET_S, 0.01, topic="TBW102")) == [("look-up", "looks up at polls only")]
    told = look_up(routed(story(), "broker-a", topic="TBW102"), QUIET_S, 0.01, "fail")
    assert kinds(look_up(told, QUIET_S + 0.01, 0.01, topic="TBW102")) == []
    assert kinds(look_up(told, QUIET_S + 5, 0.01, topic="TBW102")) == [("look-up", "looks up at polls only")]


@pytest.mark.parametrize(
    ("again_s", "topic", "found"), [(50.0, "orders", 1), (60.01, "orders", 0), (32.0, "orders", 0), (50.0, "others", 0)]
)
def test_a_client_keeps_its_route_when_a_name_server_answers_code_17(again_s: float, topic: str, found: int) -> None:
    """Who asks again between its polls has dropped it, but for a look-up that waited for its turn meanwhile."""
    told = routed(story().fault("f1", "kill", "sigkill", "ns-0"), "broker-a")
    look_up(told, 30.011, 0.001, "fail", code=17)
    told = look_up(told, again_s, 0.001, "fail", topic, code=17)
    wrong_ = [(one.subject, one.topic, one.from_ms) for one in wrong(check(told)) if one.kind == "kept after code 17"]
    assert wrong_ == [("consumer-0", "orders", 0.0)] * found


@pytest.mark.parametrize(("between", "wrong_"), [("", 1), ("assigned", 0), ("pull_delayed", 0), ("pause", 0)])
def test_a_queue_that_is_pulled_is_dropped_when_the_share_has_it_no_more(between: str, wrong_: int) -> None:
    queue = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    told = story().at(2).event("consumer-0", "queue_taken", op_id="take-0", offset=0, **queue)
    if between == "pause":
        paused = ("f1", "pause", "sigstop", "broker-a")
        told.at(60).fault(*paused, until_s=70)
    if between == "pull_delayed":
        told.at(149).event("consumer-0", "pull_delayed", f="illegal_offset", **queue)
    told.at(150).event("consumer-0", "queue_dropped", op_id="take-0", offset=9, **queue)
    if between == "assigned":
        told.event("consumer-0", "assigned", topic="orders", value=[])
    told.at(150.01).event("consumer-0", "queue_taken", op_id="take-1", offset=9, **queue)
    found = judge(*told.end(160, 1.0).facts()).findings
    assert sum(one.wrong for one in found if one.object == DROP) == wrong_


def test_a_broker_that_no_route_names_is_dialled_until_the_next_heartbeat_round_and_not_after_it() -> None:
    def lost(dial_s: float, f: str = "connect_failed") -> list[tuple[str, str]]:
        return kinds(dialled(routed(routed(story(), "broker-a"), "broker-b", at_s=20), dial_s, f))

    assert due(1, 30)[1] == 31  # heartbeat rounds at 31 and 61 s
    assert lost(30, "open") == lost(31.2) == lost(33.9) == []
    assert lost(36.9) == []  # by a round that a rebalance began before, behind another dial without an answer
    assert lost(61.2) == lost(61.2, "open") == [("dial", "connects to routed brokers")]
    told = dialled(routed(routed(story(), "broker-a"), "broker-b", at_s=20), 61.2)
    assert [one.more["because"] for one in wrong(check(told))] == ["broker-a"]


@pytest.mark.parametrize(
    ("reason", "ran_out_s", "found"),
    [
        ("closed by self", None, True),
        ("closed by self", 20, True),
        ("closed by self", 40, False),
        ("closed by peer", None, False),
        ("idle by self", None, False),
        ("closed by self at a malformed frame", None, False),
    ],
)
def test_a_client_closes_a_channel_only_when_a_call_ran_out(reason: str, ran_out_s: float | None, found: bool) -> None:
    told, address = routed(story(), "broker-a"), address_of("broker-a")
    if ran_out_s is not None:
        told.at(ran_out_s).event("consumer-0", "timed_out", f="HEART_BEAT", address=address, duration_ms=3000.0)
    told.at(40).event("consumer-0", "channel", f="close", address=address, value={"reason": reason})
    closes = [one.more["because"] for one in wrong(check(told)) if one.object == "close"]
    assert closes == (["broker-a"] if found else [])


@pytest.mark.parametrize(("again_s", "found"), [(30, ["broker-a"]), (41, [])])
def test_a_client_whose_start_failed_may_have_closed_all_its_channels(again_s: float, found: list[str]) -> None:
    told, address = routed(story(), "broker-a"), address_of("broker-a")
    told.at(40).event("consumer-0", "channel", f="close", address=address, value={"reason": "closed by self"})
    told.at(again_s).event("consumer-0", "name_server_list", value=[address_of("ns-0")])
    assert [one.more["because"] for one in wrong(check(told)) if one.object == "close"] == found


def test_a_client_that_keeps_its_channels_closes_none_whatever_ran_out() -> None:
    told = cluster(1, ("broker-a",), ("consumer-0",), node_timers={"consumer-0": {"Z": False}}).at(40)
    about = {"address": address_of("broker-a")}
    runs(told, REBALANCE, [0.1]).at(40)
    told.event("consumer-0", "timed_out", f="HEART_BEAT", duration_ms=3000.0, **about)
    told.event("consumer-0", "channel", f="close", value={"reason": "closed by self"}, **about)
    assert [one.kind for one in wrong(check(told)) if one.object == "close"] == ["keeps channels open"]


@pytest.mark.parametrize(("heard_s", "found"), [(None, []), (25, []), (130, ["broker-a"])])
def test_a_client_closes_no_channel_as_idle_that_a_heartbeat_used(heard_s: float | None, found: list[str]) -> None:
    told, address = routed(story(), "broker-a"), address_of("broker-a")
    told.at(10).event("consumer-0", "channel", f="open", address=address, value={"reason": "connected"})
    if heard_s is not None:
        told.at(heard_s).hears("broker-a", "consumer-0")
    told.at(145).event("consumer-0", "channel", f="close", address=address, value={"reason": "idle by self"})
    closes = [one.more["because"] for one in wrong(check(told)) if one.kind == "closes only idle channels"]
    assert closes == found


def test_a_broker_that_is_routed_to_again_may_be_dialled_again() -> None:
    told = routed(routed(routed(story(), "broker-a"), "broker-b", at_s=20), "broker-a", at_s=70)
    assert kinds(dialled(told, 70.1, "open")) == []


def test_so_is_it_told_that_the_client_lives_until_the_next_heartbeat_round_and_not_long_after_it() -> None:
    def is_wrong(heard_s: float) -> bool:
        return HEARD in kinds(heard(routed(routed(story(), "broker-a"), "broker-b", at_s=20), heard_s, "1"))

    # a round of a rebalance may still be under way, A for each broker
    assert [is_wrong(at_s) for at_s in (19, 30.9, 34, 34.1, 61)] == [False, False, False, True, True]


@pytest.mark.parametrize(("paused", "wrong_ones"), [(True, []), (False, [("heartbeat", "heartbeats once a round")])])
def test_a_broker_reads_late_heartbeats_of_an_earlier_process(paused: bool, wrong_ones: list[tuple[str, str]]) -> None:
    """Random seed 1793057."""
    told = cluster(1, ("broker-a",), ("producer-0",))
    for at_s in (1, 11, 21, 31):
        told.at(at_s).event("producer-0", "scheduled_task", f=HEARTBEAT, duration_ms=0.0)
    if paused:
        told.at(5).fault(*PAUSE, until_s=50)
    told.at(40).restarted("producer-0")
    for number in range(4):
        value = {"client": "127.0.0.1@producer-0#1"}
        told.at(50.001 + number / 1000).event("broker-a", "client_heartbeat", op_id=str(number), value=value)
    assert [one for one in kinds(told) if one[1] == "heartbeats once a round"] == wrong_ones


def test_a_heartbeat_that_a_fault_may_have_kept_on_its_way_is_none_of_the_clients() -> None:
    def is_wrong(until_s: float) -> bool:
        history = routed(routed(story(), "broker-a"), "broker-b", at_s=20)
        history.at(5).fault("cut-1", "latency", "toxiproxy.latency", "consumer-0", "broker-a", until_s=until_s)
        return HEARD in kinds(heard(history, 61, "1"))

    assert not is_wrong(10)
    assert not is_wrong(60.9)


def woken(told: HistoryBuilder) -> HistoryBuilder:
    return runs(told, REBALANCE, [0.1, 20.1, 40.1, 50, 70, 90], woken=True)


def heard(told: HistoryBuilder, at_s: float, channel: str, client: str = "consumer-0") -> HistoryBuilder:
    value = {"client": f"127.0.0.1@{client}#1"}
    return told.at(at_s).event("broker-a", "client_heartbeat", op_id=channel, value=value)


def test_where_nobody_says_whom_brokers_told_nobody_knows_what_woke_a_rebalance() -> None:
    assert (REBALANCE, "woken by a change of members") not in kinds(woken(story(REBALANCE)))


def test_a_change_in_another_group_is_no_reason_to_tell_this_one() -> None:
    history = woken(story(REBALANCE))
    for number, at_s in enumerate((15, 35, 47, 65, 85)):
        heard(history, at_s, str(number), "consumer-of-others" if at_s == 47 else "consumer-0")
        history.at(at_s).event("consumer-0", "members_changed", address=address_of("broker-a"))
    assert ("notifyConsumerIdsChanged", "reports changes of members only") in kinds(history)


def test_a_queue_that_is_taken_as_a_round_ends_was_shared_out_in_this_round_and_not_in_the_next() -> None:
    told = story(REBALANCE).at(40).event("consumer-0", "members_listed", topic="orders", address=address_of("broker-a"))
    queue = {"op_id": "take-0", "topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": 0}
    told.at(43).event("consumer-0", "queue_taken", **queue)
    for ended_s, shared in ((43, ["orders"]), (46, [])):
        value = {"woken": False, "balanced": True, "shared": shared}
        told.at(ended_s).event("consumer-0", "scheduled_task", f=REBALANCE, duration_ms=3000.0, value=value)
    assert (REBALANCE, "shares by listed members") not in kinds(told)


@pytest.mark.parametrize(("dropped_s", "found"), [(90.0, []), (90.1, [("unregister", "unregisters after its queues")])])
def test_a_consumer_gives_its_queues_up_before_it_unregisters(dropped_s: float, found: list[tuple[str, str]]) -> None:
    queue = {"op_id": "take-0", "topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": 0}
    told = story().at(0.2).event("consumer-0", "queue_taken", **queue)
    told.at(90.05).event("consumer-0", "unregistered", address=address_of("broker-a"))
    told.at(dropped_s).event("consumer-0", "queue_dropped", **queue)
    assert [one for one in kinds(told) if one[1] == "unregisters after its queues"] == found


@pytest.mark.parametrize(
    ("next_s", "has_routes", "wrong_"), [(None, True, False), (33.02, True, True), (33.02, False, False)]
)
def test_a_look_up_without_an_answer_ends_the_round(next_s: float | None, has_routes: bool, wrong_: bool) -> None:
    told = story("updateTopicRouteInfoFromNameServer")
    for topic in ("orders", "%RETRY%nemesrv-consumers") if has_routes else ():
        told.at(0.02).event("consumer-0", "route_changed", topic=topic, value=route_of("broker-a"))
    for at_s in (0.01, 60.01, 90.01):
        told.at(at_s).event("consumer-0", "scheduled_task", f="updateTopicRouteInfoFromNameServer", duration_ms=0.0)
    look_up(told, 30.01, 3.0, "info")
    if next_s is not None:
        look_up(told, next_s, 0.001, topic="%RETRY%nemesrv-consumers")
    end = {"f": "updateTopicRouteInfoFromNameServer", "duration_ms": 3_020.0}
    told.at(33.03).event("consumer-0", "scheduled_task", **end)
    assert (("updateTopicRouteInfoFromNameServer", "stops a poll without an answer") in kinds(told)) == wrong_


@pytest.mark.parametrize(("profile", "unknown", "found"), [("4.9", False, 0), ("5.x", False, 1), ("5.x", True, 0)])
def test_a_producer_of_5_x_asks_for_the_template_only_in_place_of_another_topic(
    profile: str, unknown: bool, found: int
) -> None:
    told = cluster(clients=("producer-0",), profile=profile).at(0.02)
    told.event("producer-0", "route_changed", topic="orders", value=route_of("broker-a"))
    of = {"f": "route", "name_server": address_of("ns-0"), "duration_ms": 1.0}
    if unknown:
        told.at(30.001).event("producer-0", "name_server_call", topic="more", type="fail", code=17, **of)
    told.at(30.003).event("producer-0", "name_server_call", topic="TBW102", type="ok", code=0, **of)
    told.event("producer-0", "scheduled_task", f="updateTopicRouteInfoFromNameServer", duration_ms=5.0)
    assert [one.kind for one in wrong(check(told))].count("asks for the template in place of a topic") == found


def test_a_look_up_of_a_send_just_before_a_round_is_not_the_rounds() -> None:
    """Random seed 1805011: a message that was sent back, 30 ms before."""
    told = story("updateTopicRouteInfoFromNameServer")
    for topic in ("orders", "%RETRY%nemesrv-consumers"):
        told.at(0.02).event("consumer-0", "route_changed", topic=topic, value=route_of("broker-a"))
    look_up(told, 29.98, 0.001, "info", topic="%RETRY%nemesrv-consumers")
    look_up(told, 30.01, 0.001, "info")
    told.event("consumer-0", "scheduled_task", f="updateTopicRouteInfoFromNameServer", duration_ms=1.0)
    assert ("updateTopicRouteInfoFromNameServer", "stops a poll without an answer") not in kinds(told)


def test_a_poll_that_was_due_while_another_waited_begins_at_the_end_of_the_other() -> None:
    told = story("updateTopicRouteInfoFromNameServer")
    for topic in ("orders", "%RETRY%nemesrv-consumers"):
        told.at(0.02).event("consumer-0", "route_changed", topic=topic, value=route_of("broker-a"))
    for began_s, took_s in ((30.0, 3.0), (33.0, 0.0)):
        look_up(told, began_s, took_s, "info")
        told.event("consumer-0", "scheduled_task", f="updateTopicRouteInfoFromNameServer", duration_ms=took_s * 1000)
    assert ("updateTopicRouteInfoFromNameServer", "stops a poll without an answer") not in kinds(told)


def test_a_process_that_ended_before_a_slave_acted_as_master_is_not_asked_why_the_next_one_beat_it() -> None:
    told = cluster(name_servers=1, brokers=("broker-a", "broker-a/1"), clients=("producer-0",))
    runs(told, "checkHoldRequest", [5.0])
    told.at(0.02).learns("producer-0", "broker-a", "broker-a/1")
    told.at(25).restarted("producer-0")
    acting = {"brokers": {"broker-a": {"0": address_of("broker-a/1")}}, "queues": {"broker-a": [4, 4, 4, 0]}}
    told.at(25.1).learns("producer-0", route=acting)
    told.at(30).event("broker-a/1", "client_heartbeat", op_id="7", value={"client": "127.0.0.1@producer-0#1"})
    assert ("heartbeat", "heartbeats to masters only") not in kinds(told)


@pytest.mark.parametrize("had_stopped", [True, False])
def test_a_client_that_stops_closes_its_channels_though_the_next_process_is_killed_at_once(had_stopped: bool) -> None:
    told, address = routed(story(), "broker-a"), address_of("broker-a")
    told.at(40).event("consumer-0", "channel", f="close", address=address, value={"reason": "closed by self"})
    if had_stopped:
        told.event("consumer-0", "stopped")
    told.at(40.001).fault("kill-1", "kill", "sigkill", "consumer-0")
    closes = [one.more["because"] for one in wrong(check(told)) if one.object == "close"]
    assert closes == ([] if had_stopped else ["broker-a"])
