"""living_are_used over hand-written histories: turns of producers, brokers of retries, and queues that are read."""

from typing import Any

import pytest

from nemesrv.chaos.checks.clients.living_are_used import judge
from nemesrv.chaos.checks.plain.tries import ELSEWHERE
from nemesrv.chaos.oracle.deliveries import Dues, askers
from nemesrv.chaos.oracle.time_outs import POLL
from nemesrv.chaos.reports.sentences import measured_sentences
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import BOTH, KILL, HistoryBuilder, address_of, cluster, kinds, route_of

RING = [(broker, queue_id) for broker in BOTH for queue_id in range(4)]


def story(clients: tuple[str, ...] = ("producer-0",), profile: str = "4.9", **workload: Any) -> HistoryBuilder:
    """Every client holds the route of both brokers, four queues each, from 2 s on."""
    workload = {"topic": "orders", "queues": 4, **workload}
    builder = cluster(brokers=BOTH, clients=clients, workload=workload, profile=profile).at(2)
    for client in clients:
        builder.learns(client, *BOTH)
    return builder


def isolated(
    builder: HistoryBuilder, at_s: float, broker: str = "broker-a", *, failed: bool = True, isolation_ms: float = 1
) -> HistoryBuilder:
    value = {"failed": failed, "isolation_ms": isolation_ms}
    about = {"f": "isolated", "broker_name": broker, "duration_ms": 4.0, "value": value}
    return builder.at(at_s).event("producer-0", "broker_isolated", **about)


def sent(builder: HistoryBuilder, at_s: float, queue: tuple[str, int], *, ok: bool = True) -> HistoryBuilder:
    """One send of one try, 4 ms long; of one that failed, its third, which isolates its broker."""
    number = len(builder.rows)
    of = {"op_id": f"o-{number}", "broker_name": queue[0], "queue_id": queue[1], "attempt": 0 if ok else 2}
    of["address"] = address_of(queue[0])
    builder.at(at_s).event("producer-0", "send_attempt", type="invoke", **of)
    type_ = "ok" if ok else "fail"
    builder.at(at_s + 0.004).event("producer-0", "send_attempt", type=type_, duration_ms=4.0, **of)
    if not ok:
        isolated(builder, at_s + 0.004, queue[0])
    del of["attempt"], of["address"]
    stored = {**of, "offset": number} if ok else {"op_id": of["op_id"]}
    return builder.event(
        "producer-0", "send", type=type_, topic="orders", msg_key=f"k-{number}", duration_ms=4.0, **stored
    )


def in_turn(
    builder: HistoryBuilder, sends: int, from_s: float = 10, ring: Any = RING, first: int = 3
) -> HistoryBuilder:
    for number in range(sends):
        sent(builder, from_s + number, ring[(first + number) % len(ring)])
    return builder


def verdict(builder: HistoryBuilder, *, end_s: float = 400) -> Verdict:
    return builder.end(end_s).judged(judge)


def tried(
    *ended: tuple[str, int | None, float], builder: HistoryBuilder | None = None, op_id: str = "o-t"
) -> HistoryBuilder:
    """One send whose tries ended so, with this code, after so many seconds each; it ended as the last of them."""
    builder, at_s = builder or story(), 20.0
    for attempt, (type_, code, took_s) in enumerate(ended):
        of = {"op_id": op_id, "attempt": attempt, "broker_name": BOTH[attempt % 2], "queue_id": 0}
        builder.at(at_s).event("producer-0", "send_attempt", type="invoke", **of)
        at_s += took_s
        about = {"code": code, "duration_ms": took_s * 1000}
        builder.at(at_s).event("producer-0", "send_attempt", type=type_, **of, **about)
        if type_ == "info" and code is None and took_s >= 3:
            whole = {"f": "send", "duration_ms": (at_s - 20) * 1000, "value": {"attempt_ms": took_s * 1000}}
            builder.event("producer-0", "timed_out", op_id=op_id, attempt=attempt, **whole)
    type_, code, _ = ended[-1]
    of = {"topic": "orders", "msg_key": op_id, "broker_name": of["broker_name"], "queue_id": 0}
    return builder.event("producer-0", "send", type=type_, code=code, op_id=op_id, duration_ms=(at_s - 20) * 1000, **of)


REFUSED, STORED, HUNG = ("fail", None, 0.001), ("ok", 0, 0.001), ("info", None, 3.0)


def test_queues_in_turn_from_any_beginning_are_right() -> None:
    for sends in (8, 9, 15, 16, 50):
        found = verdict(in_turn(story(), sends))
        assert (found.verdict, found.examined, found.measured["sends"]) == (Validity.VALID, 1, sends)


def test_a_queue_with_one_send_more_than_its_turns_is_wrong() -> None:
    found = verdict(sent(sent(in_turn(story(), 16), 30, RING[2]), 31, RING[2]))
    assert (found.verdict, kinds(found)) == (Validity.INVALID, ["not used in turn"])
    assert found.examples[0].more["off_by"] == 1


def test_with_fewer_sends_than_queues_the_turns_are_not_decided_unless_one_came_twice() -> None:
    found = verdict(in_turn(story(), 7))
    assert (found.verdict, found.why) == (Validity.UNKNOWN, "turns of producer-0: 8 sends in a row decide them")
    assert verdict(in_turn(story(), 2, ring=RING[:1], first=0)).verdict is Validity.INVALID


def test_a_broker_that_acknowledges_another_queue_is_named_and_no_turn_is_counted() -> None:
    builder = in_turn(story(), 16)
    builder.rows[-1]["queue_id"] = 3 - builder.rows[-1]["queue_id"]
    found = verdict(builder)
    assert [(one.what, one.more["kind"]) for one in found.examples] == [("broker-a", ELSEWHERE)]


def test_a_queue_that_its_route_does_not_have_is_wrong() -> None:
    assert kinds(verdict(sent(in_turn(story(), 16), 40, ("broker-c", 0)))) == ["out of its route"]


def test_a_new_route_begins_a_new_round_and_its_new_broker_has_its_turn() -> None:
    def after(ring: Any) -> Verdict:
        three = (*BOTH, "broker-c")
        builder = in_turn(story(), 9).at(50).learns("producer-0", *three)
        return verdict(in_turn(builder, 30, from_s=51, ring=ring, first=6))

    assert after([*RING, *(("broker-c", queue_id) for queue_id in range(4))]).verdict is Validity.VALID
    assert kinds(after(RING)) == ["never used in 30 sends"]


def test_while_a_send_fails_no_turns_are_counted_and_after_the_fault_they_are() -> None:
    def after(ring: Any) -> Verdict:
        builder = sent(in_turn(story(), 16).at(40).fault(*KILL), 41, RING[0], ok=False)
        builder = in_turn(builder, 9, from_s=50)
        builder.at(100).fault(*KILL, end=True).restarted("broker-a")
        return verdict(in_turn(builder, 20, from_s=110, ring=ring))

    assert (after(RING).verdict, after(RING).examined) == (Validity.VALID, 10)
    assert after(RING[4:]).verdict is Validity.INVALID


def test_while_sends_fail_each_goes_to_the_queue_after_the_last_one() -> None:
    """A producer that avoids for 10 s the broker that failed it, though the fault strategy is off."""

    def after(*queues: tuple[str, int], **workload: Any) -> Verdict:
        builder = sent(story(**workload).at(40).fault(*KILL), 41, RING[7], ok=False)
        for number, queue in enumerate(queues):
            sent(builder, 42 + number, queue)
        return verdict(builder.at(100).fault(*KILL, end=True).restarted("broker-a"))

    assert after(RING[4], RING[5], RING[6], RING[7], RING[0]).verdict is Validity.VALID
    found = after(RING[4], RING[5], RING[6], RING[7], RING[4])
    assert (found.verdict, kinds(found)) == (Validity.INVALID, ["sent to a wrong queue"])
    assert found.examples[0].more["due"] == "broker-a 0"
    assert after(RING[4], RING[4], ordered=True).verdict is Validity.UNKNOWN
    assert after(RING[0], RING[0], latency_fault=True).verdict is Validity.VALID


def test_a_poll_leaves_the_turn_as_it_is_unless_the_route_is_another() -> None:
    def over_a_poll(*queues: tuple[str, int], changed: bool = False) -> list[Any]:
        builder = in_turn(story(), 16, first=1).at(27).event("producer-0", "scheduled_task", f=POLL, duration_ms=1.0)
        if changed:
            builder.learns("producer-0", *BOTH)
        for number, queue in enumerate(queues):
            sent(builder, 26.5 + number, queue)
        return kinds(verdict(builder))

    assert over_a_poll(RING[1], RING[2]) == over_a_poll(RING[1], RING[3], changed=True) == []
    assert over_a_poll(RING[1], RING[3]) == ["sent to a wrong queue"]


def test_a_try_again_is_at_the_next_queue_of_another_broker() -> None:
    def after(*queues: tuple[str, int]) -> list[Any]:
        builder = story()
        for attempt, (broker, queue_id) in enumerate(queues):
            of = {"op_id": "o-t", "attempt": attempt, "broker_name": broker, "queue_id": queue_id}
            builder.at(20 + attempt).event("producer-0", "send_attempt", type="invoke", **of)
            builder.event("producer-0", "send_attempt", type="fail", **of)
        builder.event("producer-0", "send", type="fail", topic="orders", msg_key="k", op_id="o-t", duration_ms=2_000.0)
        return kinds(verdict(builder))

    assert after(RING[1], RING[4], RING[0]) == []
    assert after(RING[1], RING[5], RING[0]) == ["sent to a wrong queue"]
    on_same = ["tried again on the same broker"]
    assert after(RING[1], RING[2], RING[4]) == after(RING[1], RING[1], RING[4]) == on_same  # and each is told once
    assert "sent to an unwritable queue" in after(RING[1], ("broker-b", 9))


def test_with_the_fault_strategy_on_a_broker_may_be_avoided_for_its_isolation() -> None:
    def after(at_s: float, profile: str) -> Validity:
        builder = story(profile=profile, latency_fault=True).at(40).fault(*KILL)
        builder = sent(builder, 41, RING[0], ok=False).at(50).fault(*KILL, end=True)
        return verdict(in_turn(builder, 8, from_s=at_s, ring=RING[4:]), end_s=900).verdict

    assert (after(42, "5.x"), after(55, "5.x")) == (Validity.VALID, Validity.INVALID)
    assert (after(600, "4.9"), after(645, "4.9")) == (Validity.VALID, Validity.INVALID)


def test_an_isolation_of_no_length_excuses_no_turn() -> None:
    builder = isolated(story(latency_fault=True), 41, failed=False, isolation_ms=0)
    assert kinds(verdict(in_turn(builder, 16, from_s=42, ring=RING[:4]))) == ["never used in 16 sends"]


@pytest.mark.parametrize(("wiped_s", "found"), [(50, ["out of its route"]), (58.5, [])])
def test_while_brokers_are_isolated_sends_go_where_the_route_lets_them(wiped_s: float, found: list[str]) -> None:
    builder = story(latency_fault=True)
    for broker in BOTH:
        isolated(builder, 49.5, broker)
    for at_s in (50, 58.5):  # a send goes on by the route of 3 s before
        route = route_of(*BOTH)
        route["queues"]["broker-a"][2] = 4 if at_s >= wiped_s else 6
        builder.at(at_s).event("producer-0", "route_changed", topic="orders", value=route)
    told = kinds(verdict(sent(builder, 60, ("broker-a", 1))))
    assert [one for one in told if one == "out of its route"] == found


def test_while_all_brokers_are_isolated_4_9_sends_to_the_quicker_half() -> None:
    def after(other_ms: float, profile: str = "4.9") -> list[str]:
        builder = story(latency_fault=True)
        builder.rows[0]["value"] |= {"profile": profile}
        for broker, took_ms in (("broker-a", 700.0), ("broker-b", other_ms)):
            about = {"broker_name": broker, "duration_ms": took_ms, "value": {"failed": False, "isolation_ms": 30_000}}
            builder.at(49.5).event("producer-0", "broker_isolated", f="isolated", **about)
        return [kind for kind in kinds(verdict(sent(builder, 50, RING[0]))) if kind == "sent to the slower half"]

    assert (after(698), after(699), after(698, "5.x")) == (["sent to the slower half"], [], [])


def test_without_the_number_of_keys_nobody_knows_the_queue_of_a_sharding_key() -> None:
    assert verdict(in_turn(story(ordered=True), 24, ring=RING[:4])).verdict is Validity.UNKNOWN


def test_a_send_to_a_selected_queue_has_one_try() -> None:
    assert kinds(verdict(tried(REFUSED, builder=story(ordered=True)))) == []
    assert kinds(verdict(tried(REFUSED, STORED, builder=story(ordered=True)))) == ["selected, and tried again"]


@pytest.mark.parametrize(
    ("profile", "ended", "address", "isolates"),
    [
        ("4.9", REFUSED, "broker-a", True),
        ("4.9", REFUSED, "", True),
        ("5.x", REFUSED, "broker-a", True),
        ("5.x", REFUSED, "", False),  # MQClientException: its own latency counts
        ("4.9", ("fail", 16, 0.001), "broker-a", True),
        ("4.9", ("ok", 0, 0.6), "broker-a", True),
        ("4.9", ("ok", 0, 0.5), "broker-a", False),
        ("4.9", ("info", 11, 0.001), "broker-a", False),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_each_try_that_failed_or_was_slow_isolates_its_broker_but_where_a_key_selects_the_queue(
    profile: str, ended: Any, address: str, isolates: bool, ordered: bool
) -> None:
    def after(isolated_s: float | None, *, enabled: bool = True, late_ms: float = 0) -> list[Any]:
        builder = tried(ended, builder=story(profile=profile, latency_fault=enabled, ordered=ordered))
        for row in builder.rows:
            if row["event"] == "send_attempt" and address:
                row["address"] = address_of(address)
        if isolated_s is not None:
            isolated(builder, 20 + ended[2] + isolated_s)
        builder.at(20).lag(late_ms, "producer-0", until_s=22)
        return [kind for kind in kinds(verdict(builder, end_s=900)) if kind == "not isolated"]

    wrong = ["not isolated"] if isolates and not ordered else []
    assert (after(0.0), after(None), after(1.0), after(None, enabled=False)) == ([], wrong, wrong, [])
    assert after(1.0, late_ms=1000) == []


def retried(builder: HistoryBuilder, *brokers: str, op_id: str = "o-r") -> HistoryBuilder:
    for attempt, broker in enumerate(brokers):
        of = {"op_id": op_id, "attempt": attempt, "broker_name": broker, "queue_id": 0}
        builder.event("producer-0", "send_attempt", type="invoke", **of)
    return builder


def test_a_retry_goes_to_another_broker_where_its_route_has_one() -> None:
    assert verdict(retried(story().at(20), "broker-a", "broker-b", "broker-a")).verdict is Validity.VALID
    found = verdict(retried(story().at(20), "broker-a", "broker-b", "broker-b"))
    assert (found.verdict, found.examined) == (Validity.INVALID, 2)
    assert kinds(found) == ["tried again on the same broker"]
    said = "0 sends in turn, 1 retry on another broker and 1 on the same broker, 0 queues read"
    assert measured_sentences(found)[0] == said
    several = retried(retried(story().at(20), *["broker-b"] * 3).at(21), *["broker-b"] * 3, op_id="o-s")
    assert [one.more["op_id"] for one in verdict(several).examples] == ["o-r", "o-s", "o-r", "o-s"]
    alone = story().at(10).learns("producer-0", "broker-a")
    assert verdict(retried(alone.at(20), "broker-a", "broker-a")).verdict is Validity.VALID


@pytest.mark.parametrize(
    ("ended", "wrong"),
    [
        ((REFUSED, REFUSED, REFUSED), []),
        ((REFUSED, STORED), []),
        ((HUNG,), []),
        ((REFUSED, ("fail", None, 2.95)), []),
        ((("fail", 13, 0.001),), []),
        ((("info", 11, 0.001),), []),
        ((("fail", 16, 0.001), STORED), []),
        ((REFUSED, REFUSED), ["given up too soon"]),
        ((("fail", 16, 0.001),), ["given up too soon"]),
        ((HUNG, STORED), ["tried again after its time-out"]),
        ((("info", 11, 0.001), STORED), ["tried again though stored"]),
        ((STORED, STORED), ["tried again though stored"]),
        ((("fail", 13, 0.001), STORED), ["tried again after a final answer"]),
        ((REFUSED, REFUSED, REFUSED, STORED), ["one try too many"]),
    ],
)
def test_a_send_is_tried_again_while_it_is_not_stored_and_has_a_try_and_time_left(ended: Any, wrong: list[str]) -> None:
    assert kinds(verdict(tried(*ended))) == wrong


@pytest.mark.parametrize(
    ("at_s", "took_ms", "wrong"), [(20, 1.0, ["given up without a try"]), (1, 1.0, []), (20, 5_000.0, [])]
)
def test_a_send_for_which_there_is_a_route_and_time_has_a_try(at_s: float, took_ms: float, wrong: list[str]) -> None:
    of = {"topic": "orders", "msg_key": "k", "op_id": "o-n", "duration_ms": took_ms}
    assert kinds(verdict(story().at(at_s).event("producer-0", "send", type="fail", **of))) == wrong
    asked = story().at(at_s).event("producer-0", "name_server_call", f="route", type="fail", topic="orders")
    assert kinds(verdict(asked.event("producer-0", "send", type="fail", **of))) == wrong, "it had no need to ask"


def test_a_send_that_needs_an_address_ends_with_a_look_up_that_failed() -> None:
    builder = tried(REFUSED)
    builder.event("producer-0", "name_server_call", f="route", type="fail", topic="orders", value={"tried": []})
    assert kinds(verdict(builder)) == []


def test_with_retry_another_broker_when_not_store_ok_what_is_stored_alone_is_sent_again() -> None:
    def after(*ended: Any) -> list[str]:
        again = story().run_says(settings={"producer-0": {"retryAnotherBrokerWhenNotStoreOK": True}})
        return kinds(verdict(tried(*ended, builder=again)))

    assert after(("info", 11, 0.001), STORED) == []
    assert after(("info", 11, 0.001)) == ["given up too soon"]


@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_with_the_fault_strategy_on_that_broker_is_isolated_and_one_that_is_not_is_tried(profile: str) -> None:
    """Random pair 1007."""

    def after(*before: tuple[float, str, bool], at_s: float = 20) -> Validity:
        builder = story(profile=profile, latency_fault=True)
        for isolated_s, broker, failed in (*before, (at_s, "broker-a", True)):
            isolated(builder, isolated_s, broker, failed=failed)
        return verdict(retried(builder.at(at_s + 0.01), "broker-a", "broker-a"), end_s=900).verdict

    assert after() is Validity.INVALID
    assert after((19, "broker-b", True)) is Validity.VALID  # the other is isolated as well,
    assert after((19, "broker-b", True), at_s=700) is Validity.INVALID  # was,
    ended = after((19, "broker-b", True), (19.5, "broker-b", False))
    assert ended is (Validity.INVALID if profile == "4.9" else Validity.VALID)  # or is no longer: 5.x ends none early


@pytest.mark.parametrize(
    ("profile", "at_s", "others", "wrong"),
    [
        ("5.x", 22, (), 1),
        ("4.9", 22, (), 0),  # the quick answer ended the isolation
        ("5.x", 31, (), 0),  # it has passed, and the try brings the next in the same moment
        ("5.x", 22, ("broker-b",), 0),  # the other one is isolated, too
    ],
)
def test_an_isolated_broker_is_not_sent_to_while_another_one_is_available(
    profile: str, at_s: float, others: tuple[str, ...], wrong: int
) -> None:
    builder = story(profile=profile, latency_fault=True)
    for broker in ("broker-a", *others):
        isolated(builder, 20, broker)
    isolated(builder, 21, failed=False)
    if at_s == 31:
        isolated(builder, 31)
    sent(builder, at_s, RING[0])
    assert kinds(verdict(builder, end_s=900)).count("sent to an isolated broker") == wrong


@pytest.mark.parametrize(
    ("profile", "lacked", "wrong"), [("4.9", "broker-a", 0), ("5.x", "broker-a", 1), ("4.9", "broker-b", 0)]
)
def test_4_9_may_forget_the_isolation_of_a_broker_that_its_route_lacked_meanwhile(
    profile: str, lacked: str, wrong: int
) -> None:
    builder = isolated(story(profile=profile, latency_fault=True), 20)
    if lacked == "broker-b":
        isolated(builder, 20, "broker-b")
    whole = next(row["value"] for row in builder.rows if row["event"] == "route_changed")
    without = {part: {name: of for name, of in whole[part].items() if name != lacked} for part in whole}
    for at_s, route in ((20.5, without), (21, whole)):
        builder.at(at_s).event("producer-0", "route_changed", topic="orders", value=route)
    sent(builder, 22, RING[0])
    assert kinds(verdict(builder, end_s=900)).count("sent to an isolated broker") == wrong


@pytest.mark.parametrize(("profile", "said"), [("4.9", Validity.VALID), ("5.x", Validity.INVALID)])
def test_with_the_fault_strategy_a_retry_of_5_x_leaves_any_broker(profile: str, said: Validity) -> None:
    builder = story(profile=profile, latency_fault=True).at(20)
    assert verdict(retried(builder, "broker-a", "broker-a")).verdict is said


def reading(builder: HistoryBuilder, skipped: tuple[str, int] | None = None, until_s: int = 390) -> HistoryBuilder:
    for broker, queue_id in RING:
        queue = {"topic": "orders", "broker_name": broker, "queue_id": queue_id}
        builder.at(5).event("consumer-0", "queue_taken", op_id=f"take-{broker}-{queue_id}", offset=0, **queue)
        if (broker, queue_id) != skipped:
            for at_s in range(5, until_s, 20):
                builder.at(at_s).event("consumer-0", "pull", type="ok", code=19, offset=0, **queue)
    return builder


@pytest.mark.parametrize(
    ("profile", "first_s", "row", "wrong"),
    [
        *[("4.9", 0, "", 0), ("4.9", 5, "", 1), ("4.9", 5, "name_server_call", 0), ("4.9", 5, "sigstop", 0)],
        *[("5.x", 0.5, "", 0), ("5.x", 0, "", 1), ("5.x", 5, "", 1)],
    ],
)
def test_a_consumer_pulls_a_queue_as_soon_as_it_has_it(profile: str, first_s: float, row: str, wrong: int) -> None:
    told = cluster(1, ("broker-a",), ("consumer-0",), profile=profile).lag(0, "consumer-0")
    queue = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    told.at(50).event("consumer-0", "queue_taken", op_id="take-0", offset=0, **queue)
    if row == "name_server_call":
        told.at(50 + first_s).event("consumer-0", row, f="route", type="ok", code=0, duration_ms=4_900)
    elif row:
        told.at(49).fault("f1", "pause", row, "consumer-0", until_s=54.8)
    told.at(50 + first_s).event("consumer-0", "pull", type="ok", code=19, offset=0, **queue)
    assert kinds(verdict(told.at(70))) == ["pulls what it took"] * wrong


@pytest.mark.parametrize(
    ("again_s", "row", "wrong"),
    [(0.02, "", 0), (1, "", 1), (1, "name_server_call", 0), (1, "pull_delayed", 0), (1, "sigstop", 0)],
)
def test_a_consumer_pulls_a_queue_again_at_once_when_a_pull_was_answered(again_s: float, row: str, wrong: int) -> None:
    told = cluster(1, ("broker-a",), ("consumer-0",), profile="4.9").lag(0, "consumer-0")
    queue = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    told.at(50).event("consumer-0", "queue_taken", op_id="take-0", offset=0, **queue)
    told.at(50).event("consumer-0", "pull", type="ok", code=19, offset=0, duration_ms=0, **queue)
    if row == "name_server_call":
        told.at(50 + again_s).event("consumer-0", row, f="route", type="ok", code=0, duration_ms=900)
    elif row == "pull_delayed":
        told.at(50 + again_s).event("consumer-0", row, f="exception", duration_ms=1000 * again_s, **queue)
    elif row:
        told.at(50).fault("f1", "pause", row, "consumer-0", until_s=50 + again_s)
    told.at(65 + again_s).event("consumer-0", "pull", type="ok", code=19, offset=0, duration_ms=15_000, **queue)
    assert kinds(verdict(told.at(70))) == ["pulls again"] * wrong


def test_a_queue_that_nobody_reads_is_wrong_whether_somebody_holds_it_or_not() -> None:
    held = reading(story(("consumer-0",)), skipped=("broker-b", 2))
    found = verdict(held)
    assert (found.verdict, kinds(found), found.examples[0].what) == (Validity.INVALID, ["read by nobody"], "broker-b")
    unheld = reading(story(("consumer-0",)), skipped=("broker-b", 2))
    is_its = {"broker_name": "broker-b", "queue_id": 2}.items()
    unheld.rows = [row for row in unheld.rows if not is_its <= row.items()]
    assert kinds(verdict(unheld)) == ["read by nobody"]


@pytest.mark.parametrize(("teller", "asked"), [("", True), ("producer-0", False)])
def test_a_consumer_that_never_got_a_route_need_not_read(teller: str, asked: bool) -> None:
    """Its only NameServer is removed for good (random seed 1772219)."""
    told = cluster(1, ("broker-a",), ("producer-0", "consumer-0"))
    if teller:
        told.at(20).event(teller, "route_changed", topic="orders", value=route_of("broker-a"))
    control, world = told.end(400).facts()
    (group,) = askers(world)
    assert bool(Dues(world, control.rows).quiet("orders", "broker-a", group)) == asked


def test_a_queue_whose_route_names_an_address_where_nobody_is_need_not_be_read() -> None:
    """Somebody registered the broker by hand."""
    held = reading(story(("consumer-0",)), skipped=("broker-b", 2))
    route = route_of("broker-a", "broker-b")
    route["brokers"]["broker-b"] = {"0": "10.9.9.9:10911"}
    assert not kinds(verdict(held.at(4).learns("consumer-0", route=route)))


@pytest.mark.parametrize(("address", "wrong"), [(address_of("broker-b/1"), ["read by nobody"]), ("10.9.9.9:10911", [])])
def test_nor_at_a_slave_that_somebody_registered_by_hand(address: str, wrong: list[str]) -> None:
    brokers = ("broker-a", "broker-b", "broker-b/1")
    held = reading(
        cluster(brokers=brokers, clients=("consumer-0",), workload={"topic": "orders", "queues": 4}),
        skipped=("broker-b", 2),
    )
    held.at(2).fault("f1", "kill", "sigkill", "broker-b")
    route = route_of("broker-a", "broker-b")
    route["brokers"]["broker-b"] = {"1": address}
    assert kinds(verdict(held.at(4).learns("consumer-0", route=route))) == wrong


@pytest.mark.parametrize(("type_", "code"), [("fail", 17), ("info", 1)])
def test_a_broker_that_refuses_its_readers_is_guilty_and_not_who_asks(type_: str, code: int) -> None:
    refused = reading(story(("consumer-0",)))
    for row in refused.rows:
        if (row["event"], row.get("broker_name"), row.get("queue_id")) == ("pull", "broker-b", 2):
            row |= {"type": type_, "code": code, "address": address_of("broker-b")}
    (found,) = verdict(refused).examples
    kind, holder, because = "refused to its readers", "broker-b", f"code {code}"
    assert (found.more["kind"], found.more["holder"], found.more["because"]) == (kind, holder, because)


def test_a_broker_that_refused_for_a_moment_is_not_why_nobody_read_the_queue() -> None:
    held = reading(story(("consumer-0",)), skipped=("broker-b", 2)).at(200)
    of = {"broker_name": "broker-b", "queue_id": 2, "address": address_of("broker-b"), "topic": "orders"}
    held.event("consumer-0", "pull", type="info", code=24, offset=0, **of)
    assert "read by nobody" in kinds(verdict(held))


def test_a_group_whose_last_consumer_has_died_reads_nothing() -> None:
    assert kinds(verdict(reading(story(("consumer-0",)), until_s=100)))
    died = reading(story(("consumer-0",)), until_s=100).at(101).fault("f1", "kill", "sigkill", "consumer-0")
    assert not kinds(verdict(died))


def test_a_process_that_has_no_route_yet_reads_nothing() -> None:
    def read_after(routed_s: int) -> list[Any]:
        told = reading(story(("consumer-0",)).at(4).learns("consumer-0", *BOTH), until_s=100)
        told.at(101).fault("f1", "stop", "sigterm", "consumer-0", until_s=102).restarted("consumer-0")
        return kinds(verdict(told.at(routed_s).learns("consumer-0", *BOTH)))

    assert not read_after(395)
    assert read_after(110)


def test_with_broadcasting_every_consumer_reads_all_unless_no_name_server_has_answered_it() -> None:
    told = reading(story(("consumer-0", "consumer-1"), broadcasting=True))
    found = verdict(told)
    assert (found.verdict, {example.who for example in found.examples}) == (Validity.INVALID, {"consumer-1"})
    told.rows = [row for row in told.rows if (row["event"], row["node"]) != ("route_changed", "consumer-1")]
    assert not kinds(verdict(told))


def test_all_kinds_together_are_each_counted() -> None:
    builder = reading(story(("producer-0", "consumer-0")), skipped=("broker-a", 1))
    builder = sent(in_turn(builder, 17).at(40).fault(*KILL), 41, RING[0], ok=False)
    for number, ended in enumerate(((REFUSED,), (HUNG, STORED), (REFUSED,) * 4, (("info", 11, 0.001), STORED))):
        tried(*ended, builder=builder, op_id=f"o-t{number}")
    builder = retried(builder.at(45), "broker-a", "broker-a", "broker-b").at(100).fault(*KILL, end=True)
    builder = in_turn(builder.restarted("broker-a"), 20, from_s=110, ring=RING[4:]).end(400)
    plain = builder.judged(judge)
    assert (plain.violations, plain.measured["turns"], plain.measured["retries"]) == (13, 1, 7)
