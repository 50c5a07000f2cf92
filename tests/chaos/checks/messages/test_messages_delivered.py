"""messages_delivered over hand-written histories: each acknowledged message to every group, in time, as it was sent."""

from typing import Any

import pytest

from nemesrv.chaos.checks.messages.messages_delivered import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, HistoryBuilder, address_of, cluster, kinds

AT = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
CLIENTS = ("producer-0", "consumer-0", "consumer-1")


def story(**workload: Any) -> HistoryBuilder:
    """Two consumers; the queue is consumer-0's from 10 s on."""
    return taken(cluster(clients=CLIENTS, workload={"queues": 4, **workload}).at(10))


def taken(
    builder: HistoryBuilder, offset: int = 0, node: str = "consumer-0", op_id: str = "take-0", **more: Any
) -> HistoryBuilder:
    return builder.event(node, "queue_taken", op_id=op_id, offset=offset, **AT, **more)


def dropped(
    builder: HistoryBuilder, node: str = "consumer-0", op_id: str = "take-0", offset: int | None = None
) -> HistoryBuilder:
    return builder.event(node, "queue_dropped", op_id=op_id, offset=offset, **AT)


def heard(
    builder: HistoryBuilder, node: str = "consumer-0", event: str = "client_heartbeat", version: int | None = None
) -> HistoryBuilder:
    """broker-a handles a heartbeat of the consumer, or the end of the channel by which they came."""
    versions = {} if version is None else {"versions": {"orders": version}}
    return builder.event("broker-a", event, op_id=f"of-{node}", value={"client": f"127.0.0.1@{node}#1", **versions})


def sent(builder: HistoryBuilder, seconds: float, offset: int = 0, digest: int | None = 7) -> HistoryBuilder:
    stored = {"msg_key": f"k-{offset}", "offset": offset, "digest": digest, **AT}
    return builder.at(seconds).event("producer-0", "send", type="ok", op_id=f"o-{offset}", **stored)


def received(
    builder: HistoryBuilder, seconds: float, offset: int = 0, node: str = "consumer-0", digest: int | None = 7
) -> HistoryBuilder:
    got = {"msg_key": f"k-{offset}", "offset": offset, "digest": digest, **AT}
    return builder.at(seconds).event(node, "receive", op_id="take-0", **got)


def verdict(builder: HistoryBuilder, *, end_s: float = 400, lag_ms: float | None = 1.0) -> Verdict:
    return builder.end(end_s, lag_ms).judged(judge)


def test_what_comes_within_five_seconds_is_prompt() -> None:
    found = verdict(received(sent(story(), 100), 104.9))
    assert (found.verdict, found.examined, found.measured["prompt"]) == (Validity.VALID, 1, 1)


def test_what_its_broker_keeps_and_nobody_receives_is_wrong() -> None:
    builder = received(sent(sent(story(), 100), 100, offset=1), 101)
    found = verdict(builder.at(390).event("prober", "read", msg_key="k-1", offset=1, **AT))
    assert (found.verdict, found.examined, found.violations) == (Validity.INVALID, 2, 1)
    (example,) = found.examples
    assert (example.who, example.what, example.due_ms, example.latest_ms) == ("consumer-0", "broker-a", 105e3, 5e3)
    assert example.more == {
        "kind": "not received",
        "msg_key": "k-1",
        "queue_id": 0,
        "offset": 1,
        "producer": "producer-0",
        "group": "nemesrv-consumers",
        "rule": "held",
        "holder": "consumer-0",
        "because": "consumer-0 did not ask for the message",
    }
    assert "1 not received, 0 late" in found.why


def pulled(
    builder: HistoryBuilder,
    from_s: float,
    to_s: float,
    offset: int = 0,
    code: int | None = 0,
    next_: int = 0,
    type_: str = "ok",
) -> HistoryBuilder:
    pull: dict[str, Any] = {"offset": offset, "address": address_of("broker-a"), **AT}
    builder.at(from_s).event("consumer-0", "pull", type="invoke", **pull)
    pull |= {"duration_ms": 1000 * (to_s - from_s), "value": {"max": 1, "min": 0, "next": next_ or offset}}
    return builder.at(to_s).event("consumer-0", "pull", type=type_, code=code, **pull)


LOST = (0, None, 0, "info")


@pytest.mark.parametrize(
    ("pulls", "holder", "because"),
    [
        ([(90, 120)], "broker-a", "broker-a did not send consumer-0 the message"),
        ([(90, 102, 0, 19), (102, 117, 0, 19)], "broker-a", "broker-a did not send consumer-0 the message"),
        ([(80, 99), (119.5, 120)], "consumer-0", "consumer-0 did not ask for the message"),
        ([(80, 99, *LOST)], "consumer-0", "consumer-0 did not pull again after a failed pull"),
        ([(101, 102, *LOST), (119.5, 120)], "consumer-0", "consumer-0 did not pull again after a failed pull"),
        ([(101, 102, *LOST), (103, 104, *LOST)], "broker-a", "broker-a did not send consumer-0 the message"),
        ([(99, 100.5), (100.5, 120, 1)], "consumer-0", "consumer-0 went on to pull beyond the message"),
        ([(99, 100.5, 0, 20, 1), (100.5, 120, 1)], "broker-a", "broker-a sent consumer-0 on beyond the message"),
    ],
)
def test_a_late_message_names_who_kept_it(pulls: list[tuple[Any, ...]], holder: str, because: str) -> None:
    builder = sent(story(), 100)
    for pull in pulls:
        pulled(builder, *pull)
    [example] = verdict(received(builder, 120)).examples
    assert (example.more["kind"], example.more["holder"], example.more["because"]) == ("late", holder, because)


def test_a_dead_consumers_pull_is_not_what_a_late_message_waited_for() -> None:
    builder = sent(story(), 100)
    pull = {"offset": 0, "address": address_of("broker-a"), **AT}
    builder.at(90).event("consumer-1", "pull", type="invoke", **pull)
    builder.at(95).fault("kill-1", "kill", "signal.SIGKILL", "consumer-1", until_s=140)
    [example] = verdict(received(builder, 120)).examples
    assert example.more["because"] == "consumer-0 did not ask for the message"


def delayed(builder: HistoryBuilder, received_s: float | None) -> HistoryBuilder:
    """A message of level 2 (5 s) is sent at 100 s, and received then, or never."""
    about = {"msg_key": "k-1", **AT}
    builder.at(100).event("producer-0", "send", type="ok", op_id="o-1", f="2", **about)
    if received_s is not None:
        builder.at(received_s).event("consumer-0", "receive", op_id="take-0", offset=1, **about)
    return builder


@pytest.mark.parametrize(
    ("received_s", "found"),
    [(104, "before its delay was over"), (105, None), (109.9, None), (120, "late"), (None, "not received")],
)
def test_a_delayed_message_comes_when_its_delay_is_over(received_s: float | None, found: str | None) -> None:
    judged = verdict(delayed(story(), received_s))
    assert (judged.examined, kinds(judged)) == (1, [found] if found else [])


@pytest.mark.parametrize(("took_s", "found"), [(12, []), (2, ["late"])])
def test_a_message_that_was_kept_had_reached_the_listener(took_s: float, found: list[str]) -> None:
    """Random seed 1777005: neither its broker nor another took it back, and the next try came 5 s later."""
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "digest": 7, "attempt": 1, **AT}
    told = sent(story(), 100).at(113).event("consumer-0", "sent_back", f="kept", duration_ms=1000 * took_s, **failed)
    assert kinds(verdict(received(told, 118))) == found


@pytest.mark.parametrize("how", ["broker", "anew"])
@pytest.mark.parametrize(
    ("again_s", "found"),
    [(110.9, "before its delay was over"), (111, None), (116, None), (130, "late"), (None, "not received")],
)
def test_what_was_sent_back_comes_again_after_ten_seconds(how: str, again_s: float | None, found: str | None) -> None:
    retry = {**AT, "topic": "%RETRY%nemesrv-consumers", "offset": 0, "op_id": "take-1"}
    builder = sent(story().event("consumer-0", "queue_taken", **retry), 100)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "digest": 7, **AT}
    builder.at(101).event("consumer-0", "sent_back", f=how, attempt=1, duration_ms=1.0, **failed)
    if again_s is not None:
        builder.at(again_s).event("consumer-0", "receive", msg_key="k-0", digest=7, **retry)
    judged = verdict(builder)
    is_unknown = how == "anew" and again_s is None  # nobody says which broker has it
    assert (judged.examined, kinds(judged)) == (2 - is_unknown, [found] if found and not is_unknown else [])


@pytest.mark.parametrize(
    ("kept", "how", "born_s", "stored_s", "found"),
    [
        (True, "broker", 99, 105, []),  # what the broker stored of the try that failed
        (False, "broker", 99, 105, ["before its delay was over"]),
        (False, "broker", 99, 100.5, []),  # stored before: an earlier copy, and this one came at 113 s
        (True, "anew", 99, 105, []),
        (True, "anew", 103, 105, ["before its delay was over"]),
    ],
)
def test_what_a_try_that_failed_had_stored_is_not_the_message_that_was_sent_back_later(
    kept: bool, how: str, born_s: float, stored_s: float, found: list[str]
) -> None:
    retry = {**AT, "topic": "%RETRY%nemesrv-consumers", "op_id": "take-1", "msg_key": "k-0", "digest": 7}
    builder = sent(story().event("consumer-0", "queue_taken", **{**retry, "offset": 0}), 90 if kept else 98)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "digest": 7, "attempt": 1, **AT}
    if kept:
        builder.at(95).event("consumer-0", "sent_back", f="kept", duration_ms=5000.0, **failed)
    builder.at(103).event("consumer-0", "sent_back", f=how, duration_ms=1000.0, **failed)
    for number, (born, stored, at_s) in enumerate([(born_s, stored_s, 105), (103, 113, 113)]):
        times = {"born_ms": 1000.0 * born, "duration_ms": 1000.0 * (stored - born)}
        builder.at(at_s).event("consumer-0", "receive", offset=number, **times, **retry)
    assert kinds(verdict(builder)) == found


@pytest.mark.parametrize(
    ("how", "born_s", "found"),
    [("broker", 100.0, []), ("broker", 101.0, ["not as it was sent"]), ("anew", 101.0, [])],
)
def test_what_a_broker_took_back_has_the_birth_that_the_message_had(how: str, born_s: float, found: list[str]) -> None:
    builder = taken(cluster(clients=CLIENTS, workload={"queues": 4}).at(10))
    retry = {**AT, "topic": "%RETRY%nemesrv-consumers", "offset": 0, "op_id": "take-1"}
    sent(builder.event("consumer-0", "queue_taken", **retry), 100)
    of = {"msg_key": "k-0", "digest": 7}
    failed = {**of, "born_ms": 100_000.0, "offset": 0, "op_id": "take-0", "attempt": 1, "duration_ms": 1.0, **AT}
    builder.at(101).event("consumer-0", "sent_back", f=how, **failed)
    came = {**of, "born_ms": 1000 * born_s, "duration_ms": 1000 * (110.9 - born_s)}
    builder.at(111).event("consumer-0", "receive", **came, **retry)
    assert kinds(verdict(builder)) == found


@pytest.mark.parametrize(
    ("how", "profile", "most", "due"),
    [
        *[("broker", "4.9", 0, 0), ("broker", "4.9", 1, 1), ("broker", "5.x", 0, 0)],
        *[("anew", "4.9", 1, 0), ("anew", "4.9", 2, 1), ("anew", "5.x", 1, 1), ("anew", "5.x", 0, 0)],
    ],
)
def test_what_failed_max_reconsume_times_is_a_dead_letter(how: str, profile: str, most: int, due: int) -> None:
    run = {"settings": {"consumer-0": {"maxReconsumeTimes": most}}, "profile": profile}
    builder = taken(cluster(clients=CLIENTS, workload={"queues": 4}, **run).at(10))
    retry = {**AT, "topic": "%RETRY%nemesrv-consumers", "offset": 0, "op_id": "take-1"}
    sent(builder.event("consumer-0", "queue_taken", **retry), 100)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "digest": 7, **AT}
    builder.at(101).event("consumer-0", "sent_back", f=how, attempt=1, duration_ms=1.0, **failed)
    builder.at(130).event("consumer-0", "receive", msg_key="k-0", digest=7, **retry)
    assert kinds(verdict(builder)) == ["late"] * due


@pytest.mark.parametrize(
    ("received_s", "found"),
    [
        *[(104, "before its delay was over"), (106, "before its delay was over"), (120, None), (134.9, None)],
        *[(141, "late"), (None, "not received")],
    ],
)
def test_with_a_full_disk_delayed_messages_try_again_each_10_s(received_s: float | None, found: str | None) -> None:
    builder = story()
    for at_s, do in ((103, "fill_disk"), (120, "free_disk")):
        row = {"source": "broker-a", "f": do, "fault_id": do, "value": {"asked_ms": 1000.0 * at_s}}
        builder.at(at_s).event("harness", "disk", **row)
    assert kinds(verdict(delayed(builder, received_s))) == ([found] if found else [])


def test_nobody_says_when_a_broker_of_a_wrong_clock_delivers_a_delayed_message() -> None:
    builder = story().at(20).event("harness", "clock", source="broker-a", value={"step_ms": 5000.0})
    assert not verdict(delayed(builder, None)).examined


def test_a_message_is_late_by_no_more_than_three_timers_fired_late() -> None:
    late = received(sent(story(), 100), 105.5)
    assert verdict(late, lag_ms=400).verdict is Validity.VALID
    assert verdict(received(sent(story(), 100), 118), lag_ms=4500).verdict is Validity.VALID
    assert verdict(received(sent(story(), 100), 118), lag_ms=None).verdict is Validity.UNKNOWN


def test_before_its_queue_is_held_it_may_wait_and_not_much_longer() -> None:
    def waited(until_s: float) -> Validity:
        builder = cluster(clients=CLIENTS, workload={"queues": 4})
        return verdict(received(taken(sent(builder, 5).at(40)), until_s)).verdict

    assert (waited(44), waited(46)) == (Validity.VALID, Validity.INVALID)


def test_a_queue_that_nobody_holds_in_a_quiet_time_is_wrong_too() -> None:
    builder = sent(dropped(story().at(60)), 200)
    assert (kinds(verdict(builder)), verdict(builder).examples[0].who) == (["not received"], "nemesrv-consumers")


def test_of_a_consumer_that_has_no_route_yet_nothing_is_asked_in_a_quiet_time_either() -> None:
    def waited(routed_s: float, received_s: float) -> Validity:
        builder = sent(cluster(clients=CLIENTS[:2], workload={"queues": 4}), 200)
        builder.at(routed_s).learns("consumer-0", "broker-a")
        return verdict(received(builder, received_s)).verdict

    assert (waited(300, 304), waited(300, 306)) == (Validity.VALID, Validity.INVALID)
    assert waited(100, 304) is Validity.INVALID


def test_until_clients_must_share_the_queues_of_a_broker_that_joined_its_messages_may_wait() -> None:
    """R + C until NameServers have it, then P + H + Qr + A, and H until every broker knows: until 246 s."""

    def joins_at_100(received_s: float) -> Verdict:
        nodes = {"broker-a": {"joins_at_s": 100}}
        builder = cluster(brokers=("broker-b",), clients=CLIENTS, workload={"queues": 4}, nodes=nodes)
        sent(builder.at(100).topic("broker-a", "orders").node("broker-a"), 101)
        return verdict(received(taken(builder.at(received_s - 0.1)), received_s))

    assert joins_at_100(240).verdict is Validity.VALID
    found = joins_at_100(270)
    assert (found.verdict, kinds(found), found.examples[0].more["rule"]) == (Validity.INVALID, ["late"], "quiet")


def test_while_its_broker_is_dead_and_until_routes_have_it_again_it_may_wait() -> None:
    def waited(until_s: float) -> Validity:
        builder = sent(story(), 99).at(100).fault(*KILL, until_s=150).at(150).restarted("broker-a")
        return verdict(received(builder, until_s)).verdict

    aftermath_s = 30 + 3 + 30 + 30 + 20 + 3  # R + C + P + H + Qr + A
    assert waited(150 + aftermath_s) is Validity.VALID
    assert waited(150 + aftermath_s + 6) is Validity.INVALID


@pytest.mark.parametrize("node", ["ns-0", "broker-a", "consumer-0"])
def test_a_pause_that_no_time_out_notices_excuses_nothing_after_it(node: str) -> None:
    def waited(until_s: float, paused_ms: float) -> Validity:
        pause, builder = ("f2", "pause", "sigstop", node), story()
        builder.at(98).fault(*pause, until_s=98 + paused_ms / 1000)
        return verdict(received(sent(builder, 100), until_s)).verdict

    assert (waited(104.9, 50), waited(106, 50)) == (Validity.VALID, Validity.INVALID)
    assert waited(106, 3_000) is Validity.VALID


def test_a_short_pause_beside_another_fault_is_a_disturbance_as_ever() -> None:
    pause, builder = ("f2", "pause", "sigstop", "ns-0"), sent(story(), 99)
    builder.at(100).fault(*KILL, until_s=150).at(150).restarted("broker-a")
    builder.at(264).fault(*pause, until_s=264.05)
    assert verdict(received(builder, 150 + 116 + 6)).verdict is Validity.VALID


def test_a_consumer_that_took_the_queue_after_the_restart_has_five_seconds() -> None:
    def waited(until_s: float) -> Validity:
        builder = dropped(sent(story(), 99).at(100).fault(*KILL).at(120))
        builder.at(150).fault(*KILL, end=True).at(150).restarted("broker-a")
        heard(builder.at(175).learns("consumer-1", "broker-a"), "consumer-1")
        return verdict(received(taken(builder.at(180), node="consumer-1"), until_s, node="consumer-1")).verdict

    assert (waited(184), waited(186)) == (Validity.VALID, Validity.INVALID)


def test_until_a_heartbeat_has_told_brokers_of_a_new_share_pulls_may_be_refused() -> None:
    def waited(until_s: float) -> Validity:
        builder = story().at(100).event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
        return verdict(received(sent(builder, 101), until_s)).verdict

    assert waited(100 + 30 + 1 + 5) is Validity.VALID  # H, a pause, D
    assert waited(100 + 30 + 1 + 6) is Validity.INVALID


def test_a_broker_that_says_whom_it_has_heard_may_refuse_pulls_until_then_and_no_longer() -> None:
    def waited(until_s: float, *, gone: bool) -> Validity:
        pause, builder = ("f2", "pause", "sigstop", "consumer-1"), heard(story().at(11))
        builder.at(60).fault(*pause, until_s=65).at(100)
        if gone:
            heard(builder, event="client_gone")
        else:
            builder.event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
        return verdict(received(heard(sent(builder, 101).at(110)), until_s)).verdict

    for gone in (True, False):
        assert waited(110 + 1 + 4, gone=gone) is Validity.VALID  # a pause, D
        assert waited(110 + 1 + 6, gone=gone) is Validity.INVALID


def test_a_heartbeat_of_a_round_that_had_begun_before_says_nothing_of_the_change() -> None:
    def waited(until_s: float) -> Validity:
        builder = heard(story().at(11)).at(100)
        builder.event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
        round_ = {"f": "sendHeartbeatToAllBroker", "duration_ms": 3_000.0}
        heard(sent(builder, 101)).at(102).event("consumer-0", "scheduled_task", **round_)
        return verdict(received(heard(builder.at(130)), until_s)).verdict

    assert (waited(130 + 1 + 4), waited(130 + 1 + 6)) == (Validity.VALID, Validity.INVALID)


def test_a_heartbeat_that_was_made_before_the_change_says_nothing_of_it() -> None:
    def waited(until_s: float, *, version: int) -> Validity:
        builder = heard(story().at(11), version=7).at(100)
        builder.event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
        builder = heard(sent(builder, 101).at(102), version=version)
        return verdict(received(heard(builder.at(130), version=8), until_s)).verdict

    assert waited(130 + 1 + 4, version=7) is Validity.VALID  # a pause, D
    assert waited(130 + 1 + 6, version=7) is Validity.INVALID
    assert waited(102 + 1 + 6, version=8) is Validity.INVALID


def test_a_pull_that_a_fault_swallowed_is_repeated_when_it_has_run_out() -> None:
    def waited(until_s: float, *, swallowed: bool) -> Validity:
        cut, builder = ("f3", "black_hole", "timeout", "consumer-0", "broker-a"), heard(story().at(11))
        if swallowed:
            builder.at(90).fault(*cut, until_s=95)
        lost = {"f": "PULL_MESSAGE", "address": address_of("broker-a"), "duration_ms": 30_000.0}
        routed = builder.at(96).learns("consumer-0", "broker-a")
        builder = sent(routed, 100).at(122).event("consumer-0", "timed_out", **lost)
        return verdict(received(builder, until_s)).verdict

    assert waited(122 + 1 + 4, swallowed=True) is Validity.VALID  # a pause, D
    assert waited(122 + 1 + 6, swallowed=True) is Validity.INVALID
    assert waited(122 + 1 + 4, swallowed=False) is Validity.INVALID


def test_while_a_broker_has_forgotten_the_consumer_whose_heartbeats_a_fault_held_up_it_may_wait() -> None:
    """The rebalance takes all queues from who is in no list; of the living broker, too (incident I10)."""
    loss = ("f1", "packet_loss", "", "consumer-0", "broker-b")
    client = {"client": "127.0.0.1@consumer-0#1", "groups": ["g"]}

    def waited(until_s: float, *, held_up: bool = True) -> Validity:
        builder = cluster(brokers=("broker-a", "broker-b"), clients=CLIENTS, workload={"queues": 4})
        taken(builder.at(10))
        if held_up:
            builder.at(40).fault(*loss)
        builder.at(160).event("broker-a", "client_gone", f="expired", op_id="c", duration_ms=120_000.0, value=client)
        dropped(sent(builder, 200).at(210))
        if held_up:
            builder.at(250).fault(*loss, end=True)
        builder.at(250).event("broker-a", "client_heartbeat", op_id="d", value=client)
        builder = received(taken(builder.at(until_s - 0.1), op_id="take-1"), until_s)
        return verdict(builder, end_s=500).verdict

    assert waited(250 + 20 + 3 + 4) is Validity.VALID  # Qr + A, and less than D
    assert waited(250 + 119 + 30 + 6) is Validity.INVALID
    assert waited(250, held_up=False) is Validity.INVALID


def test_a_holding_that_begins_beyond_it_has_passed_it_over_whatever_disturbed() -> None:
    builder = dropped(sent(story(), 99).at(100).fault(*KILL).at(101))
    found = verdict(taken(builder, offset=1, node="consumer-1", op_id="take-9"))
    assert (found.verdict, kinds(found)) == (Validity.INVALID, ["committed past"])
    assert found.examples[0].more["rule"] == "passed over"


def test_what_an_operator_sent_the_group_past_before_it_was_due_need_not_come() -> None:
    def skipped(asked_s: float, to: int) -> Validity:
        builder = sent(story(), 100).at(asked_s).offset_reset("orders", "broker-a", to)
        return verdict(taken(dropped(builder).at(asked_s + 1), offset=1, op_id="take-1")).verdict

    assert skipped(103, 1) is Validity.UNKNOWN  # nothing was due
    assert skipped(103, 0) is skipped(108, 1) is Validity.INVALID


def test_where_a_group_begins_is_its_own_to_say() -> None:
    builder = cluster(clients=CLIENTS, workload={"queues": 4})
    found = verdict(taken(sent(builder, 5).at(40), offset=1))
    assert (found.verdict, found.examined, found.measured["waiting"]) == (Validity.UNKNOWN, 0, 1)


def test_what_is_acknowledged_just_before_the_end_is_not_due() -> None:
    found = verdict(sent(received(sent(story(), 100), 101), 396, offset=1))
    assert (found.verdict, found.examined, found.measured["waiting"]) == (Validity.VALID, 1, 1)


def test_each_group_of_a_topic_must_have_it_and_none_of_another() -> None:
    def of_two(*readers: str, topic: str = "orders") -> Verdict:
        groups = {"consumer-0": "one", "consumer-1": "other"}
        run = {"workload": {"topic": "orders", "queues": 4}, "group_of": groups, "topic_of": {"consumer-1": topic}}
        builder = taken(taken(cluster(clients=CLIENTS, **run).at(10)), node="consumer-1")
        sent(builder, 100)
        for node in readers:
            received(builder, 101, node=node)
        return verdict(builder)

    assert (of_two("consumer-0", "consumer-1").verdict, of_two("consumer-0", "consumer-1").examined) == ("VALID", 2)
    assert (of_two("consumer-0").verdict, of_two("consumer-0").examples[0].more["group"]) == ("INVALID", "other")
    assert (of_two("consumer-0", topic="bills").verdict, of_two("consumer-0", topic="bills").examined) == ("VALID", 1)


@pytest.mark.parametrize("of_refused", [False, True])
@pytest.mark.parametrize(("tried", "who"), [((2, 2), "producer-0"), ((1, 2), "consumer-0"), ((2,), "consumer-0")])
def test_a_producer_changed_what_alone_was_tried_before(tried: tuple[int, ...], who: str, of_refused: bool) -> None:
    builder = story()
    for offset, tries in enumerate(tried):
        sent(builder, 100 + offset, offset)
        # A try that was refused cannot have stored the message, and is in value.tries alone.
        builder.rows[-1] |= {"value": {"tries": tries}, "attempt": 1} if of_refused else {"attempt": tries}
        received(builder, 102 + offset, offset, digest=8)
    assert verdict(builder).examples[0].who == who


@pytest.mark.parametrize(
    ("builder", "why"),
    [
        (cluster(clients=CLIENTS), "no send was acknowledged"),
        (sent(cluster(clients=("producer-0",)), 100), "there was no consumer"),
        (sent(story(), 399), "no acknowledged message was due"),
    ],
)
def test_where_nothing_was_due_it_is_unknown(builder: HistoryBuilder, why: str) -> None:
    found = verdict(builder)
    assert (found.verdict, found.examined, found.why) == (Validity.UNKNOWN, 0, why)


def _of_all_kinds(*, broadcasting: bool) -> HistoryBuilder:
    """Prompt, late, changed, missing and undue messages, over several pages of a queue."""
    builder = taken(story(broadcasting=broadcasting), node="consumer-1")
    for offset in range(200):
        sent(builder, 60 + offset, offset=offset)
        for node in CLIENTS[1:] if broadcasting else CLIENTS[1:2]:
            if offset % 67 != 66:
                late_s, digest = (9 if offset % 71 == 70 else 0.5), (8 if offset == 150 else 7)
                received(builder, 60 + offset + late_s, offset=offset, node=node, digest=digest)
    return sent(builder, 398, offset=200).end(400)


@pytest.mark.parametrize("broadcasting", [False, True])
def test_all_kinds_together_are_each_counted(broadcasting: bool) -> None:
    builder = _of_all_kinds(broadcasting=broadcasting)
    plain = builder.judged(judge)
    times = 2 if broadcasting else 1
    assert [plain.measured[name] for name in ("not_received", "late", "changed")] == [2 * times, 2 * times, times]


def test_what_a_broker_may_refuse_is_undecided_by_its_settings() -> None:
    settings = {"broker-a": {"autoCreateSubscriptionGroup": False}}
    told = taken(cluster(clients=CLIENTS, settings=settings, workload={"queues": 4}).at(10))
    found = verdict(sent(received(sent(told, 100), 100), 110, 1))
    assert found.verdict is Validity.UNKNOWN
    assert found.why.endswith("settings let broker-a refuse consumers")
