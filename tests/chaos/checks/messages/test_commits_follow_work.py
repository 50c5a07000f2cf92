"""commits_follow_work over hand-written histories: offsets pass only what was received, and never go back unasked."""

import pytest

from nemesrv.chaos.checks.messages.commits_follow_work import judge
from nemesrv.chaos.topology import CONSUMER_GROUP
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, HistoryBuilder, address_of, cluster, kinds

from .test_messages_delivered import AT, CLIENTS, dropped, received, sent, story, taken


def committed(
    builder: HistoryBuilder,
    seconds: float,
    offset: int,
    before: int,
    by: str | None = "consumer-0",
    group: str = CONSUMER_GROUP,
    queue_id: int = 0,
    **more: str,
) -> HistoryBuilder:
    client = None if by is None else f"127.0.0.1@{by}#1700000000000"
    value = {"group": group, "client": client, "before": before}
    where = AT | {"queue_id": queue_id} | more
    return builder.at(seconds).event("broker-a", "commit", f="update", offset=offset, value=value, **where)


def verdict(builder: HistoryBuilder, *, end_s: float = 400, lag_ms: float | None = 1.0) -> Verdict:
    return builder.end(end_s, lag_ms).judged(judge)


def worked(builder: HistoryBuilder, until: int) -> HistoryBuilder:
    """The messages 0 … until − 1, sent at 100 s + offset and received at once."""
    for offset in range(until):
        received(sent(builder, 100 + offset, offset), 100 + offset, offset)
    return builder


def test_a_message_that_is_committed_past_before_it_is_received_is_wrong_whether_or_not_its_consumer_dies() -> None:
    builder = committed(sent(worked(story(), 3), 104, 3), 105, 4, 3)
    found = verdict(received(builder, 109, 3))
    assert (found.verdict, found.violations) == (Validity.INVALID, 1)
    assert kinds(found) == ["committed before receipt"]
    (example,) = found.examples
    assert (example.who, example.what, example.from_ms, example.over_ms) == ("consumer-0", "broker-a", 105e3, 4e3)
    assert example.more["offset"] == 3


def test_a_message_that_the_listener_failed_and_the_broker_took_back_may_be_committed_past() -> None:
    builder = sent(story(), 100).at(100.2).event("consumer-0", "sent_back", msg_key="k-0", offset=0, **AT)
    assert verdict(committed(builder, 100.5, 1, 0)).verdict is Validity.VALID


def test_a_message_of_the_retry_topic_is_no_receipt_of_the_message_at_its_offset() -> None:
    builder = sent(worked(story(), 3), 104, 3)
    again = {**AT, "topic": "%RETRY%consumers"}
    builder.at(104.5).event("consumer-0", "receive", msg_key="k-9", offset=3, digest=None, **again)
    assert kinds(verdict(committed(builder, 105, 4, 3))) == ["committed, never received"]


@pytest.mark.parametrize(("value", "expected"), [({}, ["began without an answer"]), ({"answered": None}, [])])
def test_a_queue_whose_offset_nobody_answered_is_not_taken(value: dict[str, None], expected: list[str]) -> None:
    builder = committed(worked(story(), 3), 103, 3, -1)
    other = {**AT, "op_id": "take-9"} | {"queue_id": 3}
    builder.at(150).event("consumer-0", "queue_taken", offset=0, value=value, **other)
    assert kinds(verdict(builder)) == expected


@pytest.mark.parametrize(("waited_until_s", "expected"), [(150.0, ["began without an answer"]), (149.0, [])])
def test_a_question_that_timed_out_had_no_answer(waited_until_s: float, expected: list[str]) -> None:
    builder = committed(worked(story(), 3), 103, 3, -1)
    builder.at(waited_until_s).event("consumer-0", "timed_out", f="QUERY_CONSUMER_OFFSET", duration_ms=5_000.0)
    other = {**AT, "op_id": "take-9"} | {"queue_id": 3}
    builder.at(150).event("consumer-0", "queue_taken", offset=0, value={"answered": None}, **other)
    assert kinds(verdict(builder)) == expected


def test_a_message_that_is_committed_past_and_never_received_is_wrong() -> None:
    found = verdict(committed(sent(worked(story(), 3), 104, 3), 105, 4, 3))
    assert (found.verdict, kinds(found)) == (Validity.INVALID, ["committed, never received"])


def test_where_one_commit_goes_past_several_messages_no_more_is_wrong_than_was_examined() -> None:
    builder = worked(story(), 1)
    for offset in (1, 2, 3):
        sent(builder, 102, offset)
    found = verdict(committed(builder, 105, 4, -1))
    assert (found.measured["commits"], found.violations, found.examined) == (1, 3, 4)


def test_whose_queue_it_was_is_not_known_where_a_stranger_has_a_brokers_address() -> None:
    """A random scenario with acts by hand, 75042: one queue, pulled and committed under two names."""
    told = committed(sent(worked(story(topic="orders"), 3), 104, 3), 105, 4, 3)
    about = {"broker_name": "broker-x", "address": "10.9.9.9:10911", "value": {"topics": {"orders": 4}}}
    told.at(90).act("register", "ns-0", **about)
    assert verdict(told).verdict is Validity.UNKNOWN


def test_a_commit_beyond_the_end_of_its_queue_is_wrong_when_its_message_comes() -> None:
    assert verdict(sent(committed(worked(story(), 3), 105, 9, 3), 120, 5)).verdict is Validity.INVALID


def test_what_a_member_received_another_one_may_commit() -> None:
    builder = received(sent(worked(story(), 3), 104, 3), 105, 3, node="consumer-1")
    assert verdict(committed(builder, 106, 4, 3)).verdict is Validity.VALID


def test_what_lies_before_the_groups_beginning_was_never_its_work() -> None:
    builder = cluster(clients=CLIENTS, workload={"queues": 4})
    builder = taken(sent(builder, 5, 0).at(10), offset=1)
    assert verdict(committed(builder, 20, 1, -1)).verdict is Validity.VALID


def test_what_a_consumer_received_just_before_it_was_killed_may_not_be_recorded() -> None:
    def after(seconds: float) -> Validity:
        builder = committed(sent(worked(story(), 3), 104, 3), 105, 4, 3)
        return verdict(builder.at(105 + seconds).fault("f1", "kill", "sigkill", "consumer-0")).verdict

    assert (after(0.01), after(3)) == (Validity.UNKNOWN, Validity.INVALID)


@pytest.mark.parametrize(
    ("channel", "client", "expected"),
    [("17", "consumer-0", []), ("25", "consumer-0", ["went back"]), ("17", "consumer-1", ["went back"])],
)
def test_late_commits_of_an_older_channel_go_back_in_no_order(channel: str, client: str, expected: list[str]) -> None:
    builder = committed(worked(story(), 5), 110, 5, -1, op_id="25")
    assert kinds(verdict(committed(builder, 110.03, 3, 5, client, op_id=channel))) == expected


@pytest.mark.parametrize(("looked_s", "expected"), [((109, 110.5), []), ((110.1, 110.5), ["went back"])])
def test_a_commit_that_waited_for_a_look_up_may_come_behind_the_commit_of_a_pull(
    looked_s: tuple[float, float], expected: list[str]
) -> None:
    began_s, ended_s = looked_s
    builder = committed(worked(story(), 5), 110, 5, -1)
    builder.rows[-1]["f"] = "pull"
    about = {"f": "route", "type": "ok", "duration_ms": 1000 * (ended_s - began_s), "name_server": address_of("ns-0")}
    builder.at(ended_s).event("consumer-0", "name_server_call", topic="orders", **about)
    assert kinds(verdict(committed(builder, ended_s + 0.001, 4, 5))) == expected


def test_an_offset_may_go_back_between_the_old_holder_and_one_that_read_what_was_stored() -> None:
    def back(to: int, at_s: float) -> Validity:
        builder = committed(worked(story(), 5), 110, 3, -1)
        taken(builder.at(112), offset=3, node="consumer-1")
        committed(dropped(builder.at(113)), 113.01, 5, 3)
        return verdict(committed(builder, at_s, to, 5, by="consumer-1")).verdict

    assert back(4, 114) is Validity.VALID
    assert back(2, 114) is Validity.INVALID  # it began at 3
    builder = committed(worked(story(), 5), 110, 5, -1)
    taken(dropped(builder.at(112)).at(150), offset=5, node="consumer-1")
    assert verdict(committed(builder, 160, 4, 5, by="consumer-1")).verdict is Validity.INVALID


def test_a_late_machine_may_bring_the_old_holders_last_commit_after_the_new_one_has_asked() -> None:
    def back(to: int, lag_ms: float) -> Validity:
        builder = dropped(committed(worked(story(), 5), 110, 3, -1).at(112))
        taken(builder.at(113), offset=3, node="consumer-1")
        committed(builder, 113.3, 5, 3)  # sent at 112
        return verdict(committed(builder, 118, to, 5, by="consumer-1"), lag_ms=lag_ms).verdict

    assert (back(4, 1), back(4, 1_000), back(2, 1_000)) == (Validity.INVALID, Validity.VALID, Validity.INVALID)


def test_an_offset_may_go_back_while_a_fault_disturbs_the_way() -> None:
    cut = ("f1", "black_hole", "timeout", "consumer-0", "broker-a")

    def back(at_s: float) -> Validity:
        builder = committed(worked(story(), 5), 110, 5, -1).at(112).fault(*cut, until_s=115)
        return verdict(committed(builder, at_s, 3, 5)).verdict

    assert (back(116), back(115 + 31 + 3 + 1)) == (Validity.VALID, Validity.INVALID)


def test_a_commit_that_a_link_lost_may_arrive_behind_later_ones_as_long_after_it_as_it_lasted() -> None:
    """Random scenario 91015: on a connection of its own, which the kernel goes on sending."""
    lost = ("f1", "packet_loss", "packet_drop", "consumer-0", "broker-a")

    def back(at_s: float) -> Validity:
        builder = committed(worked(story(), 5), 110, 5, -1).at(112).fault(*lost, until_s=172)
        return verdict(committed(builder, at_s, 3, 5)).verdict

    assert (back(172 + 63), back(172 + 65)) == (Validity.VALID, Validity.INVALID)  # and C, and a pause


def reset(builder: HistoryBuilder, at_s: float, offset: int) -> HistoryBuilder:
    return builder.at(at_s).offset_reset("orders", "broker-a", offset)


def test_an_offset_goes_back_where_an_operator_set_it_back_and_until_consumers_go_by_it() -> None:
    def back(at_s: float, asked_s: float | None) -> Validity:
        told = committed(worked(story(), 5), 105, 5, -1)
        if asked_s is not None:
            reset(told, asked_s, 2)
        return verdict(committed(told, at_s, 2, 5)).verdict

    assert back(200, None) is Validity.INVALID
    assert (back(200, 200), back(230, 200)) == (Validity.VALID, Validity.VALID)
    assert (back(240, 200), back(190, 200)) == (Validity.INVALID, Validity.INVALID)


def test_an_operators_offset_beyond_what_was_received_leaves_out_what_lies_before_it_and_no_more() -> None:
    def passed(to: int, reset_to: int) -> tuple[Validity, int]:
        told = reset(sent(sent(worked(story(), 3), 104, 3), 104, 4), 106, reset_to)
        found = verdict(committed(told, 106, to, 3, by=None))
        return found.verdict, found.violations

    assert passed(5, 5) == (Validity.VALID, 0)
    assert passed(5, 4) == (Validity.INVALID, 1)


def test_a_queue_is_taken_where_an_operator_set_it() -> None:
    def taken_at(asked: int | None) -> Validity:
        told = committed(worked(story(), 5), 105, 5, -1)
        dropped(told.at(190))
        if asked is not None:
            reset(told, 189, asked)
        return verdict(taken(told.at(200), 2, "consumer-1")).verdict

    assert (taken_at(None), taken_at(2)) == (Validity.INVALID, Validity.VALID)


def test_a_broker_that_was_started_again_may_have_an_older_table_of_five_seconds() -> None:
    def taken_at(offset: int, committed_s: float) -> Validity:
        builder = committed(worked(story(), 5), committed_s, 5, 3).at(150).fault(*KILL).at(160).restarted("broker-a")
        builder.at(160).fault(*KILL, end=True)
        return verdict(taken(builder.at(190), offset=offset, node="consumer-1")).verdict

    assert taken_at(3, 145) == Validity.VALID
    assert (taken_at(3, 130), taken_at(5, 130)) == (Validity.INVALID, Validity.VALID)


def test_a_broker_that_was_stopped_in_order_has_all_that_it_was_told_and_one_killed_as_it_stopped_need_not() -> None:
    stop = ("f1", "stop", "sigterm", "broker-a")

    def taken_after(*, in_order: bool) -> Validity:
        builder = committed(worked(story(), 5), 145, 5, 3).at(150)
        if in_order:
            builder.event("broker-a", "stopped")
        builder.fault(*stop).at(160).restarted("broker-a").fault(*stop, end=True)
        return verdict(taken(builder.at(190), offset=3, node="consumer-1")).verdict

    assert (taken_after(in_order=True), taken_after(in_order=False)) == (Validity.INVALID, Validity.VALID)


@pytest.mark.parametrize(("answered", "guilty"), [(5, "consumer-1"), (3, "broker-a")])
def test_who_begins_below_what_it_was_answered_is_guilty_itself(answered: int, guilty: str) -> None:
    builder = dropped(committed(worked(story(), 5), 110, 5, 3).at(110)).at(130)
    (one,) = verdict(taken(builder, 3, "consumer-1", value={"answered": answered})).examples
    assert one.who == guilty


def test_a_consumer_whose_question_timed_out_is_guilty_of_the_answer_that_it_reports() -> None:
    builder = dropped(committed(worked(story(), 5), 110, 5, 3).at(110)).at(130)
    builder.event("consumer-1", "timed_out", f="QUERY_CONSUMER_OFFSET", duration_ms=5_000.0)
    (one,) = verdict(taken(builder, 0, "consumer-1", value={"answered": 0})).examples
    assert (one.who, one.more["kind"]) == ("consumer-1", "began without an answer")


def test_a_queue_taken_below_what_was_committed_long_before_is_the_brokers_fault() -> None:
    def taken_after(seconds: float) -> Verdict:
        builder = committed(worked(story(), 5), 110, 5, 3)
        return verdict(taken(dropped(builder.at(110)).at(110 + seconds), offset=3, node="consumer-1"))

    found = taken_after(20)
    assert (found.verdict, found.examples[0].who) == (Validity.INVALID, "broker-a")
    assert found.examples[0].what == "consumer-1"
    assert kinds(found) == ["answered a lower offset"]
    assert taken_after(4).verdict is Validity.VALID


@pytest.mark.parametrize(("started_s", "found"), [(112, ["answered a lower offset"]), (109, [])])
def test_a_process_that_began_after_a_commit_asked_for_the_offset_after_it(started_s: float, found: list[str]) -> None:
    builder = story().at(10).fault("f1", "kill", "sigkill", "consumer-1")
    builder = dropped(committed(worked(builder, 5), 110, 5, 3).at(110))
    builder.at(started_s).restarted("consumer-1").fault("f1", "kill", "sigkill", "consumer-1", end=True)
    assert kinds(verdict(taken(builder.at(113), offset=3, node="consumer-1", incarnation=1))) == found


def ran(builder: HistoryBuilder, *seconds: float, node: str = "consumer-0") -> HistoryBuilder:
    for at_s in seconds:
        builder.at(at_s).event(node, "scheduled_task", f="persistAllConsumerOffset", duration_ms=1.0)
    return builder


def test_what_was_worked_off_and_is_not_committed_by_the_next_run_is_wrong() -> None:
    found = verdict(ran(worked(story(), 3), 98, 101.5, 106.5))
    assert (found.verdict, found.examined, kinds(found)) == (Validity.INVALID, 1, ["consumed, and not committed"])
    (example,) = found.examples
    assert (example.who, example.what) == ("consumer-0", "broker-a")
    assert (example.from_ms, example.more["offset"]) == (101.5e3, 0)
    assert verdict(committed(ran(worked(story(), 3), 98, 101.5, 106.5), 101.6, 2, -1)).verdict is Validity.INVALID
    late = verdict(committed(ran(worked(story(), 3), 98, 101.5, 106.5), 112, 3, -1))
    assert (late.verdict, kinds(late)) == (Validity.INVALID, ["committed late"])


@pytest.mark.parametrize(("latency_ms", "expected"), [(100, Validity.VALID), (10, Validity.INVALID)])
def test_a_commit_may_be_on_its_way_for_as_long_as_a_slow_link_takes(latency_ms: int, expected: Validity) -> None:
    builder = cluster(clients=CLIENTS, workload={"queues": 4})
    builder.at(5).learns("consumer-0", "broker-a")
    for at_s in range(6, 200, 30):
        about = {"client": "127.0.0.1@consumer-0#1700000000000", "versions": {"orders": 1}}
        builder.at(at_s).event("broker-a", "client_heartbeat", op_id="c-0", value=about)
    slow = ("f1", "latency", "toxiproxy.latency", "consumer-0", "broker-a")
    taken(builder.at(10)).at(50).fault(*slow, value={"latency_ms": latency_ms})
    ran(worked(builder, 3), 98, 107, 112)
    assert verdict(committed(builder, 107.15, 3, -1)).verdict is expected


def test_what_is_committed_by_the_next_run_is_in_time() -> None:
    def committed_at(seconds: float, lag_ms: float = 1.0) -> Validity:
        builder = ran(worked(story(), 1), 105.5, 110.5)
        return verdict(committed(builder, seconds, 1, -1), lag_ms=lag_ms).verdict

    assert (committed_at(104), committed_at(105.54)) == (Validity.VALID, Validity.VALID)
    assert committed_at(105.8) == Validity.INVALID
    assert committed_at(105.8, lag_ms=200) is Validity.VALID
    assert verdict(committed(worked(story(), 1), 300, 1, -1)).verdict is Validity.VALID  # timers_kept looks for the run


def test_a_commit_waits_for_the_message_before_and_for_the_one_that_nobody_has_received() -> None:
    def after(builder: HistoryBuilder, before: int = -1) -> Validity:
        return verdict(committed(ran(builder, 106, 111), 117, 3, before)).verdict

    assert after(received(received(received(story(), 100, 0), 100, 2), 111.5, 1)) is Validity.INVALID  # 0 is worked off
    waits = committed(received(received(received(story(), 100, 0), 104, 2), 111.5, 1), 105.5, 1, -1)
    assert after(waits, 1) is Validity.VALID
    assert verdict(ran(received(story(), 100, 2), 106, 111)).verdict is Validity.UNKNOWN  # 0 and 1 are under way


def test_nothing_is_asked_of_a_run_when_the_queue_is_gone_or_the_way_is_not_free() -> None:
    cut = ("f1", "black_hole", "timeout", "consumer-0", "broker-a")

    def after(builder: HistoryBuilder, by: str = "consumer-0") -> Validity:
        return verdict(committed(ran(builder, 106), 300, 0, -1, by=by)).verdict

    assert after(worked(story(), 3)) is Validity.INVALID
    gone = dropped(committed(worked(story(), 3), 104.9, 3, -1).at(105))
    assert verdict(ran(gone, 106)).verdict is Validity.VALID
    assert after(dropped(worked(story(), 3).at(105))) is Validity.INVALID  # it commits for a queue that it gave up
    assert after(worked(story(), 3).at(104).fault(*cut)) is Validity.VALID
    assert after(worked(story(), 3).at(104).fault(*KILL)) is Validity.VALID


@pytest.mark.parametrize(("dropped_s", "found"), [(102.0, ["given up without a commit"]), (100.9, [])])
def test_what_was_worked_off_is_committed_before_a_queue_goes(dropped_s: float, found: list[str]) -> None:
    told = dropped(worked(story(), 1).at(dropped_s))  # it says that it has committed nothing
    assert kinds(verdict(ran(told, 106))) == found


def test_of_somebody_elses_broker_no_commits_are_known() -> None:
    builder = ran(worked(story(), 3), 106, 111)
    assert verdict(builder).verdict is Validity.INVALID
    assert verdict(builder.made_by("apache-4.9.8", "broker-a")).verdict is Validity.UNKNOWN


def test_a_process_of_a_broker_has_what_it_was_told_last_and_nothing_else() -> None:
    def had(before: int, *, restarted: bool = False) -> Verdict:
        builder = committed(worked(story(), 5), 110, 3, -1)
        if restarted:
            builder.at(111).fault(*KILL).at(112).restarted("broker-a").fault(*KILL, end=True)
        return verdict(committed(builder, 160, 5, before))

    for found in (had(-1), had(4)):
        assert (found.verdict, kinds(found)) == (Validity.INVALID, ["did not keep a committed offset"])
        assert found.examples[0].who == "broker-a"
    assert (had(3).verdict, had(-1, restarted=True).verdict) == (Validity.VALID, Validity.VALID)


@pytest.mark.parametrize(("answered", "guilty"), [(3, []), (4, ["broker-a"])])
def test_a_broker_that_answers_an_offset_that_nobody_committed_is_guilty(answered: int, guilty: list[str]) -> None:
    builder = dropped(committed(worked(story(), 5), 110, 3, -1).at(160), offset=3)
    found = verdict(taken(builder, answered, "consumer-1", "take-1", value={"answered": answered}), end_s=165)
    wrong = [one for one in found.examples if one.more["kind"] == "answered a higher offset"]
    assert [one.who for one in wrong] == guilty


@pytest.mark.parametrize(
    ("profile", "answered", "again", "found"),
    [("5.x", 5, False, True), ("5.x", 0, False, False), ("5.x", 5, True, False), ("4.9", 5, False, False)],
)
def test_an_offset_goes_with_its_deleted_topic(profile: str, answered: int, again: bool, found: bool) -> None:
    told = taken(cluster(clients=CLIENTS, profile=profile, workload={"queues": 4}).at(10))
    builder = committed(worked(told, 5), 110, 5, -1)
    dropped(builder.at(115)).at(120).act("delete_topic", "broker-a", topic=AT["topic"])
    builder.event("broker-a", "topic", topic=AT["topic"], value=None)
    if again:
        committed(builder, 130, 5, -1)
    judged = verdict(taken(builder.at(150), answered, "consumer-1", "take-1", value={"answered": answered}), end_s=165)
    wrong = [one.who for one in judged.examples if one.more["kind"] == "answered a higher offset"]
    assert wrong == ["broker-a"] * found


@pytest.mark.parametrize(
    ("at_s", "channel", "faulty", "found"),
    [
        (150.001, "c-0", False, ["committed after unregistering"]),
        (150.001, "c-1", False, []),
        (149.999, "c-0", False, []),
        (150.001, "c-0", True, []),  # a round of commits may have been under way
    ],
)
def test_who_unregisters_has_committed_before(at_s: float, channel: str, faulty: bool, found: list[str]) -> None:
    builder = worked(story(), 3).at(140).hears("broker-a", "consumer-0", "c-0")
    if faulty:
        builder.at(148).black_hole("consumer-0", "broker-a", until_s=149)
    rows = [(150.0, lambda: builder.forgets("broker-a", "consumer-0", "unregistered", channel="c-0"))]
    rows.append((at_s, lambda: committed(builder, at_s, 3, -1, by=None)))
    for seconds, tell in sorted(rows, key=lambda row: row[0]):
        builder.at(seconds)
        tell()
        if builder.rows[-1]["event"] == "commit":
            builder.rows[-1]["op_id"] = channel
    assert [kind for kind in kinds(verdict(builder)) if "unregistering" in kind] == found


@pytest.mark.parametrize(
    ("began_s", "ended_s", "address", "found"),
    [
        (117, 118, "broker-a", ["takes what pulls commit"]),
        (104.05, 118, "broker-a", []),  # what the broker lacked was not worked off for certain
        (117, 121, "broker-a", []),  # not answered yet
        (117, 118, "broker-b", []),
    ],
)
def test_a_broker_that_answered_a_pull_has_what_the_pull_committed(
    began_s: float, ended_s: float, address: str, found: list[str]
) -> None:
    builder = committed(committed(worked(story(), 20), 103, 4, -1), 120, 20, 4)
    pulled = {"address": address_of(address), "offset": 18, "duration_ms": 1000.0 * (ended_s - began_s)}
    builder.at(ended_s).event("consumer-0", "pull", type="ok", **pulled, **AT)
    assert [kind for kind in kinds(verdict(builder)) if "pull" in kind] == found


def test_where_a_broker_keeps_each_offset_one_too_high_no_consumer_went_back_or_committed_past_anything() -> None:
    builder = worked(story(), 30)
    for offset in (10, 20, 30):
        committed(builder, 100 + offset, offset, offset - 9 if offset > 10 else -1)
    committed(dropped(builder.at(140), offset=30), 140, 29, 31)
    found = verdict(taken(builder.at(150), offset=31, node="consumer-1"))
    assert {(example.who, example.more["kind"]) for example in found.examples} == {
        ("broker-a", "did not keep a committed offset")
    }


@pytest.mark.parametrize(("killed_s", "guilty"), [(None, []), (100, []), (96, ["broker-a/1"])])
def test_a_slave_that_may_have_copied_late_has_forgotten_nothing(killed_s: float | None, guilty: list[str]) -> None:
    """Random scenario 90770: the master had none of that queue yet when the slave took its table."""
    builder = cluster(brokers=("broker-a", "broker-a/1"), clients=("consumer-0",), workload={"queues": 1})
    builder = taken(builder.at(10))
    if killed_s is not None:
        builder.at(killed_s).fault(*KILL)
    builder = worked(builder, 5)
    for seconds, offset, before in ((110, 3, -1), (125, 5, -1)):
        value = {"group": CONSUMER_GROUP, "client": "127.0.0.1@consumer-0#1700000000000", "before": before}
        builder.at(seconds).event("broker-a/1", "commit", f="update", offset=offset, value=value, **AT)
    of = verdict(builder).findings
    assert [one.subject for one in of if one.kind == "did not keep a committed offset"] == guilty


def test_commits_of_groups_that_are_not_the_runs_are_nobodys_business() -> None:
    builder = committed(sent(worked(story(), 3), 104, 3), 105, 4, 3, by="1234", group="somebody-elses")
    found = verdict(builder)
    assert (found.verdict, found.examined) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(("offset", "found"), [(3, []), (0, ["lost its own offset"])])
def test_a_broadcasting_consumer_goes_on_at_the_offset_that_its_own_file_has(offset: int, found: list[str]) -> None:
    builder, value = worked(story(broadcasting=True), 3), {"group": CONSUMER_GROUP, "before": -1}
    builder.at(110).event("consumer-0", "commit", f="persist", offset=3, value=value, **AT)
    assert kinds(verdict(taken(dropped(builder.at(120)).at(130), offset=offset, op_id="take-1"))) == found


@pytest.mark.parametrize(
    ("builder", "why"),
    [
        (worked(story(), 3), "no offset was committed"),
        (sent(cluster(clients=("producer-0",)), 100), "there was no consumer"),
    ],
)
def test_where_nothing_was_committed_it_is_unknown(builder: HistoryBuilder, why: str) -> None:
    found = verdict(builder)
    assert (found.verdict, found.examined, found.why) == (Validity.UNKNOWN, 0, why)


_COUNTED = ("commits", "ahead", "back", "older", "behind", "left", "forgotten")


def _of_all_kinds() -> HistoryBuilder:
    """Commits that are right, ahead, back, late, forgotten; queues taken at that, and below it; one given up."""
    builder = worked(story(), 90)
    for offset in range(10, 90, 10):
        committed(builder, 100 + offset, offset, offset - 10 if offset > 10 else -1)
    committed(builder, 195, 60, 80)
    committed(sent(sent(builder, 200, 90), 200, 91), 201, 92, 60)
    received(builder, 203, 90)
    received(builder, 211, 91)
    committed(builder, 220, 93, 92)
    committed(committed(builder, 220, 5, -1, queue_id=1), 221, 6, 4, queue_id=1)
    for offset in (92, 93, 95):
        received(builder, 221, offset)
    ran(builder, 116, 222, 228)
    builder.at(223).learns("consumer-0", "broker-a", "broker-b")
    return taken(dropped(builder.at(230), offset=96).at(240), offset=70, node="consumer-1").end(400)


def test_all_kinds_together_are_each_counted() -> None:
    builder = _of_all_kinds()
    plain = builder.judged(judge)
    assert [plain.measured[name] for name in _COUNTED] == [13, 3, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("offset", "found"), [(1, []), (5, ["went on at another offset"])])
def test_after_a_wrong_offset_a_consumer_goes_on_where_the_broker_said(offset: int, found: list[str]) -> None:
    told = committed(worked(story(), 1), 104, 1, -1).at(110)
    told.event("consumer-0", "pull", type="ok", offset=5, code=21, value={"max": 1, "min": 0, "next": 1}, **AT)
    assert kinds(verdict(dropped(told.at(120), offset=offset))) == found


@pytest.mark.parametrize(("again", "found"), [(1, []), (5, ["went on at another offset"])])
def test_a_member_of_a_broadcast_group_takes_the_queue_again_where_code_21_said(again: int, found: list[str]) -> None:
    told = taken(cluster(clients=CLIENTS, workload={"queues": 4, "broadcasting": True}).at(10))
    kept = {"f": "persist", "offset": 1, "value": {"group": "nemesrv-consumers", "before": -1}}
    told.at(105).event("consumer-0", "commit", **kept, **AT).at(110)
    told.event("consumer-0", "pull", type="ok", offset=5, code=21, value={"max": 1, "min": 0, "next": 1}, **AT)
    taken(dropped(told.at(120), offset=1).at(121), offset=again, op_id="take-1")
    assert [one for one in kinds(verdict(told)) if one == "went on at another offset"] == found


@pytest.mark.parametrize(
    ("profile", "dropped_s", "round_s", "found"),
    [
        ("4.9", 120.0, 130, []),
        ("4.9", 121.0, 130, ["kept after a wrong offset"]),
        ("4.9", None, 130, ["kept after a wrong offset"]),
        ("5.x", 110.0, 110.01, []),
        ("5.x", 111.0, 111.01, ["kept after a wrong offset"]),
        ("5.x", 110.0, 120, ["no rebalance after a wrong offset"]),
    ],
)
def test_after_code_21_a_consumer_gives_the_queue_up_and_rebalances_as_its_version_does(
    profile: str, dropped_s: float | None, round_s: float, found: list[str]
) -> None:
    told = taken(cluster(clients=CLIENTS, workload={"queues": 4}, profile=profile).at(10))
    committed(worked(told, 1), 104, 1, -1).at(110)
    told.event("consumer-0", "pull", type="ok", offset=5, code=21, value={"max": 1, "min": 0, "next": 1}, **AT)
    told.at(round_s).event("consumer-0", "scheduled_task", f="doRebalance", duration_ms=0.0)
    if dropped_s is not None:
        dropped(told.at(dropped_s), offset=1)
    assert kinds(verdict(told)) == found
