"""timers_kept over hand-written histories: every task in time, too late, too early, held up, and once not at all."""

from collections.abc import Iterable
from typing import Any

import pytest

from nemesrv.chaos.checks.service.timers_kept import judge
from nemesrv.chaos.oracle.broker import CLIENT_SCAN, FETCH, HOLD_CHECK, REGISTER
from nemesrv.chaos.oracle.name_server import SCAN
from nemesrv.chaos.oracle.time_outs import HEARTBEAT, PERSIST, POLL, REBALANCE
from nemesrv.chaos.verdict import Finding, Validity, Verdict
from tests.chaos.builder import PAUSE, HistoryBuilder, address_of, cluster

END_S = 100.0
RATES = {
    SCAN: ("ns-0", 5.0, 10.0),
    REGISTER: ("broker-a", 10.0, 30.0),
    HOLD_CHECK: ("broker-a", 5.0, 5.0),
    CLIENT_SCAN: ("broker-a", 10.0, 10.0),
    POLL: ("consumer-0", 0.01, 30.0),
    HEARTBEAT: ("consumer-0", 1.0, 30.0),
    PERSIST: ("consumer-0", 10.0, 5.0),
    REBALANCE: ("consumer-0", 0.1, 20.0),
}


def runs(
    story: HistoryBuilder, task: str, at_s: Iterable[float], *, took_s: float = 0.0, woken: bool = False, node: str = ""
) -> HistoryBuilder:
    """The task began at these times and took that long; each poll asks for the topic."""
    node = node or RATES[task][0]
    for began_s in at_s:
        if task == POLL:
            look_up(story, began_s, took_s)
        value = {"woken": woken, "balanced": True} if task == REBALANCE else None
        story.at(began_s + took_s).event(node, "scheduled_task", f=task, duration_ms=took_s * 1000, value=value)
    return story


def look_up(
    story: HistoryBuilder,
    began_s: float,
    took_s: float,
    type_: str = "ok",
    topic: str = "orders",
    code: int | None = None,
) -> HistoryBuilder:
    code = 0 if type_ == "ok" else code
    tried = [{"name_server": address_of("ns-0"), "outcome": "no_answer" if code is None else "answered"}]
    about = {"type": type_, "name_server": address_of("ns-0"), "topic": topic, "code": code, "value": {"tried": tried}}
    return story.at(began_s + took_s).event(
        "consumer-0", "name_server_call", f="route", duration_ms=took_s * 1000, **about
    )


def due(first_s: float, period_s: float) -> list[float]:
    return [first_s + number * period_s for number in range(int((END_S - first_s) / period_s) + 1)]


def story(*but: str, **run: Any) -> HistoryBuilder:
    """One node of each kind, each of whose tasks runs in time until 100 s; those of `but` are left to the test."""
    told = cluster(name_servers=1, brokers=("broker-a",), clients=("consumer-0",), **run)
    for task, (_, first_s, period_s) in RATES.items():
        if task not in but:
            runs(told, task, due(first_s, period_s))
    return told


def check(told: HistoryBuilder, lag_ms: float | None = 1.0) -> Verdict:
    return judge(*told.end(END_S, lag_ms).facts())


def wrong(verdict: Verdict) -> list[Finding]:
    return [finding for finding in verdict.findings if finding.wrong or finding.late]


def test_tasks_in_time_are_valid_and_each_run_is_counted() -> None:
    verdict = check(story())
    assert (verdict.verdict, verdict.violations, wrong(verdict)) == (Validity.VALID, 0, [])
    assert verdict.examined > sum(len(due(first_s, period_s)) for _, first_s, period_s in RATES.values())


@pytest.mark.parametrize("factor", [0.9, 0.95, 1.05, 1.1, 1.5])
@pytest.mark.parametrize("task", [task for task in RATES if task != REBALANCE])
def test_a_rate_that_is_off_is_found_by_its_name_and_node(task: str, factor: float) -> None:
    node, first_s, period_s = RATES[task]
    verdict = check(runs(story(task), task, due(first_s, period_s * factor)))
    assert verdict.verdict is Validity.INVALID
    (found,) = wrong(verdict)
    assert (found.subject, found.object) == (node, task)
    assert found.measured_ms == pytest.approx(period_s * factor * 1000)
    assert found.too_early == (factor < 1)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_rebalance_is_counted_from_the_end_of_the_last(factor: float) -> None:
    def rounds(wait_s: float) -> list[float]:
        return [0.1 + number * (2 + wait_s) for number in range(int(END_S / (2 + wait_s)) + 1)]

    busy = {"f1": ("black_hole", "toxiproxy.bandwidth.rate=0", "consumer-0", "broker-a")}

    def told(wait_s: float) -> Verdict:
        history = story(REBALANCE)
        for fault_id, about in busy.items():  # so that a round may take 2 s
            history.at(0).fault(fault_id, *about, until_s=99)
        return check(runs(history, REBALANCE, rounds(wait_s), took_s=2))

    assert told(20).verdict is Validity.VALID
    (found,) = wrong(told(20 * factor))
    assert (found.object, found.measured_ms) == (REBALANCE, pytest.approx(20_000 * factor))


def test_a_broker_may_wake_a_rebalance_before_its_time() -> None:
    early = [0.1, 7, 20, 40, 60, 80]
    assert check(runs(story(REBALANCE), REBALANCE, early, woken=True)).verdict is Validity.VALID
    assert check(runs(story(REBALANCE), REBALANCE, early)).verdict is Validity.INVALID


def test_beside_a_fault_a_rebalance_ends_when_its_calls_have_run_out_and_the_next_comes() -> None:
    def told(begins_s: list[float], took_s: float) -> Verdict:
        history = story(REBALANCE).at(0)
        history.black_hole("consumer-0", "broker-a", until_s=99)
        return check(runs(history, REBALANCE, begins_s, took_s=took_s))

    assert told([0.1, 23.1, 46.1, 69.1, 92.1], 3).verdict is Validity.VALID
    (longer,) = wrong(told([0.1, 55.1], 35))
    assert (longer.kind, longer.measured_ms) == ("takes no longer than the round's calls", pytest.approx(35_000))
    (never,) = wrong(told([0.1, 23.1], 3))
    assert (never.object, never.more) == (REBALANCE, {"never": True})


@pytest.mark.parametrize("task", RATES)
def test_a_task_that_stops_is_found(task: str) -> None:
    _, first_s, period_s = RATES[task]
    (found,) = wrong(check(runs(story(task), task, due(first_s, period_s)[:1])))
    assert (found.object, found.more) == (task, {"never": True})


@pytest.mark.parametrize("task", [task for task in RATES if task != REBALANCE])
def test_a_task_that_never_runs_is_found(task: str) -> None:
    assert [found.object for found in wrong(check(story(task)))] == [task]


def test_a_list_by_http_that_came_as_its_broker_started_excuses_none_of_its_timers() -> None:
    told = HistoryBuilder(profile="4.9", time_scale=1, workload={"topic": "orders"}, name_server_list=["ns-0"])
    for node in ("address-server", "ns-0"):
        told.node(node)
    told.at(5).node("broker-a")
    for at_s in (15, 147):
        told.at(at_s).event("broker-a", "scheduled_task", f=FETCH, duration_ms=1.0)
    found = judge(*told.end(200).facts()).findings
    assert [one.wrong for one in found if (one.object, one.kind) == (FETCH, "each N")] == [1]


def test_a_task_that_is_held_up_by_the_one_before_it_is_not_late_and_the_one_that_held_it_up_is_too_long() -> None:
    told = story(HEARTBEAT, PERSIST)
    runs(told, HEARTBEAT, [1, 61, 91])
    runs(told, HEARTBEAT, [31], took_s=15)
    runs(told, PERSIST, [10, 15, 20, 25, 30, 46, 46, 46, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100])
    (found,) = wrong(check(told))
    assert (found.object, found.kind, found.measured_ms) == (
        HEARTBEAT,
        "takes no longer than the round's calls",
        15_000,
    )


@pytest.mark.parametrize(("address", "is_late"), [(address_of("broker-a"), False), ("10.9.9.9:10911", True)])
def test_a_hung_broker_holds_a_round_up_once_for_each_of_its_names(address: str, is_late: bool) -> None:
    told = story(HEARTBEAT).at(40).fault(*PAUSE)
    about = {"broker_name": "broker-x", "broker_id": 0, "address": address, "value": {"address": address}}
    told.at(20).act("register", "ns-0", **about)
    runs(told, HEARTBEAT, [1, 31, 91])
    runs(told, HEARTBEAT, [61], took_s=6)
    found = [one for one in wrong(check(told)) if one.kind == "takes no longer than the round's calls"]
    assert bool(found) is is_late


@pytest.mark.parametrize(("then_s", "wrong_"), [(70, 0), (67.5, 1), (71.5, 1)])
def test_a_registration_that_waited_for_the_list_was_due_at_some_moment_of_that(then_s: float, wrong_: int) -> None:
    """Random scenario 91881: the first that counts, behind a pause, came 3 s late, and the one after it in time."""
    told = story(REGISTER).at(2).fault(*PAUSE)
    told.at(20).fault(*PAUSE, end=True)
    told.at(41).event("broker-a", "scheduled_task", f=FETCH, duration_ms=3_000.0)
    runs(told, REGISTER, [20, 41, then_s])
    found = [one for one in wrong(check(told)) if one.object == REGISTER]
    assert len(found) == wrong_


def test_a_task_that_ran_late_though_its_thread_was_free_is_late() -> None:
    told = story(HEARTBEAT)
    runs(told, HEARTBEAT, [1, 46, 61, 91])
    (found,) = wrong(check(told))
    assert (found.object, found.kind, found.measured_ms) == (HEARTBEAT, "each H", 45_000)


def test_a_heartbeat_waits_for_a_broker_that_hangs_as_long_as_its_time_out() -> None:
    def told(took_s: float) -> Verdict:
        history = story(HEARTBEAT)
        history.at(30).fault(*PAUSE, until_s=40)
        runs(history, HEARTBEAT, [1, 61, 91])
        return check(runs(history, HEARTBEAT, [31], took_s=took_s))

    registers = {REGISTER}  # the broker stood still, and its own registration of 40 s with it
    assert {found.object for found in wrong(told(3))} <= registers
    assert HEARTBEAT in {found.object for found in wrong(told(7))}


def test_of_runs_that_took_too_long_the_longest_is_shown() -> None:
    told = runs(story(HEARTBEAT), HEARTBEAT, [1, 91])
    runs(told, HEARTBEAT, [31], took_s=4)
    (found,) = wrong(check(runs(told, HEARTBEAT, [61], took_s=15)))
    assert (found.wrong, found.measured_ms, found.wrong_to_ms) == (2, 15_000, 76_000)


def test_what_a_pause_held_up_runs_when_the_node_goes_on_and_keeps_its_rate() -> None:
    def told(resumed_s: float) -> Verdict:
        history = story(REGISTER)
        history.at(35).fault(*PAUSE, until_s=55)
        return check(runs(history, REGISTER, [10, resumed_s, 70, 100]))

    assert told(55.2).verdict is Validity.VALID
    assert [found.object for found in wrong(told(60))] == [REGISTER]


def test_a_look_up_ends_by_its_time_out() -> None:
    assert check(look_up(story(), 50, 3, "info")).verdict is Validity.VALID
    (found,) = wrong(check(look_up(story(), 50, 3.3, "info")))
    assert (found.object, found.measured_ms) == ("look-up", pytest.approx(3_300))


def test_a_client_that_asks_the_next_entry_after_a_silent_one_takes_a_time_out_at_each() -> None:
    def judged(took_s: float) -> list[str]:
        told = story()
        told.rows[0]["value"] |= {"workload": {"client_profile": "go"}}
        tried = [{"name_server": f"10.0.1.{of}:9876", "outcome": "no_answer"} for of in (1, 2)]
        look_up(told, 50, took_s, "info").rows[-1]["value"] = {"tried": tried}
        return [found.object for found in wrong(check(told))]

    assert judged(6.0) == []
    assert judged(6.3) == ["look-up"]


def test_a_poll_that_asks_for_nothing_is_found() -> None:
    told = story(POLL)
    runs(told, POLL, [0.01, 30.01])
    for at_s in (60.01, 90.01):
        told.at(at_s).event("consumer-0", "scheduled_task", f=POLL, duration_ms=0.0)
    (found,) = wrong(check(told))
    assert (found.object, found.kind, found.wrong) == (POLL, "asks for every topic", 2)


def test_a_poll_asks_for_each_topic_that_the_client_has_asked_for_before() -> None:
    told = look_up(story(), 40, 0.01, topic="%RETRY%g")
    (found,) = wrong(check(told))
    assert (found.object, found.kind, found.wrong) == (POLL, "asks for every topic", 2)
    for at_s in (60.01, 90.01):  # the round ends at a look-up without an answer
        look_up(told, at_s, 0.0, "info", topic="other")
    assert check(told).verdict is Validity.VALID


def test_a_poll_whose_row_was_written_late_asked_all_the_same() -> None:
    told = story(POLL)
    for began_s in due(0.01, 30.0):
        look_up(told, began_s, 0.3)
        told.at(began_s + 0.32).event("consumer-0", "scheduled_task", f=POLL, duration_ms=301.0)
    assert check(told).verdict is Validity.VALID


def test_a_client_whose_start_failed_counts_from_the_one_that_did_not() -> None:
    client = [task for task in RATES if RATES[task][0] == "consumer-0"]
    told = story(*client)
    for at_s in (0, 12):
        told.at(at_s).event("consumer-0", "name_server_list", value=[address_of("ns-0")])
    for task in client:
        runs(told, task, due(12 + RATES[task][1], RATES[task][2]))
    assert check(told).verdict is Validity.VALID


def test_a_broker_waits_for_a_registration_no_longer_than_its_time_out() -> None:
    def told(took_s: float) -> Verdict:
        registered = story().at(0).register("broker-a", took_s=0)
        return check(registered.at(50 + took_s).register("broker-a", took_s=took_s, how="info"))

    assert told(6).verdict is Validity.VALID
    assert [(found.object, found.measured_ms) for found in wrong(told(6.3))] == [("registration", pytest.approx(6_300))]


def test_settings_of_the_node_itself_count() -> None:
    told = cluster(
        name_servers=1,
        brokers=("broker-a",),
        clients=("consumer-0",),
        settings={"consumer-0": {"persistConsumerOffsetInterval": 10_000}},
        node_timers={"broker-a": {"R_ms": 20_000}},
    )
    for task, (_, first_s, period_s) in RATES.items():
        runs(told, task, due(first_s, {PERSIST: 10.0, REGISTER: 20.0}.get(task, period_s)))
    assert check(told).verdict is Validity.VALID


def test_a_timer_fires_late_by_no_more_than_its_process_measured() -> None:
    node, first_s, period_s = RATES[REGISTER]
    assert node == "broker-a"
    told = runs(story(REGISTER), REGISTER, due(first_s, period_s * 1.1))
    assert check(told, lag_ms=8_000).verdict is Validity.VALID
    assert check(runs(story(REGISTER), REGISTER, due(first_s, period_s * 1.1)), lag_ms=None).verdict is Validity.UNKNOWN


@pytest.mark.parametrize(("lag_ms", "expected"), [(900.0, Validity.VALID), (1.0, Validity.INVALID)])
def test_a_timer_that_a_late_machine_set_late_is_as_late_with_each_run(lag_ms: float, expected: Validity) -> None:
    node, first_s, period_s = RATES[SCAN]
    told = runs(story(SCAN), SCAN, due(first_s + 0.9, period_s))
    assert check(told.at(0).lag(lag_ms, node, until_s=1.0)).verdict is expected


def test_a_heartbeat_may_meet_the_machines_lateness_at_one_broker_after_the_other() -> None:
    def heartbeat(took_s: float, brokers: str, lag_ms: float) -> Validity:
        told = cluster(name_servers=1, brokers=[f"broker-{name}" for name in brokers], clients=("consumer-0",))
        runs(told, HEARTBEAT, [1, 61, 91])
        found = check(runs(told, HEARTBEAT, [31], took_s=took_s), lag_ms)
        (mine,) = (one for one in found.findings if one.object == HEARTBEAT and one.kind.startswith("takes"))
        return mine.validity

    assert (heartbeat(8, "abcdefgh", 1_000), heartbeat(8, "a", 1_000)) == (Validity.VALID, Validity.INVALID)
    assert (heartbeat(8, "abcdefgh", 100), heartbeat(1, "abcdefgh", 100)) == (Validity.INVALID, Validity.VALID)
    assert heartbeat(10, "abcdefgh", 1_000) is Validity.INVALID


def test_a_rebalance_may_meet_the_machines_lateness_at_one_call_after_the_other() -> None:
    def rebalance(took_s: float, queues: int, lag_ms: float) -> Validity:
        told = cluster(name_servers=1, brokers=("broker-a",), clients=("consumer-0",))
        for queue in range(queues):
            told.at(1).event("consumer-0", "queue_taken", topic="orders", broker_name="broker-a", queue_id=queue)
        runs(told, REBALANCE, [1, 61, 81])
        found = check(runs(told, REBALANCE, [31], took_s=took_s), lag_ms)
        (mine,) = (one for one in found.findings if one.object == REBALANCE and one.kind.startswith("takes"))
        return mine.validity

    assert (rebalance(6, 5, 1_000), rebalance(6, 1, 1_000)) == (Validity.VALID, Validity.INVALID)
    assert (rebalance(6, 5, 100), rebalance(0.4, 5, 100)) == (Validity.INVALID, Validity.VALID)
    assert rebalance(10, 5, 1_000) is Validity.INVALID


def test_programs_that_others_made_are_not_held_to_it() -> None:
    told = story(REGISTER)
    told.event(
        "harness",
        "node",
        source="broker-a",
        address=address_of("broker-a"),
        value={"kind": "broker", "implementation": "Apache 4.9.8"},
    )
    verdict = check(told)
    assert verdict.verdict is Validity.VALID
    assert verdict.undecided == {"timers of broker-a": "Apache 4.9.8 does not say when they ran"}


@pytest.mark.parametrize(("first_s", "found"), [([0.2, 20.2], 0), ([1.0, 20.2], 1), ([20.2], 1), ([], 1)])
def test_a_consumer_rebalances_at_once_when_it_has_started(first_s: list[float], found: int) -> None:
    told = runs(story(REBALANCE), REBALANCE, [*first_s, 40.2, 60.2, 80.2][: None if first_s else 0])
    assert [one.kind for one in wrong(check(told))].count("rebalances at its start") == found


@pytest.mark.parametrize(
    ("profile", "had", "route_s", "listed", "found"),
    [
        ("5.x", 1, 5, 1, 1),
        ("5.x", 4, 5, 1, 0),
        ("4.9", 1, 5, 1, 0),
        ("5.x", 1, 24, 1, 0),  # the route changed in the round: nobody knows by which it shared
        ("5.x", 1, 5, 2, 0),  # the list names another clientId of the consumer
    ],
)
def test_a_round_of_5_x_that_left_out_a_queue_of_its_share_is_repeated_soon(
    profile: str, had: int, route_s: float, listed: int, found: int
) -> None:
    """RebalanceImpl.rebalanceByTopic: balanced only if the consumer has its share; a refused call leaves a queue."""
    told = cluster(1, ("broker-a",), ("consumer-0",), profile=profile)
    told.at(0).event("consumer-0", "client_id", value={"client": "127.0.0.1@consumer-0#1"})
    told.at(route_s).learns("consumer-0", "broker-a")
    list_ = [f"127.0.0.1@consumer-0#{listed}"]
    told.at(24.5).event("consumer-0", "members_listed", topic="orders", address=address_of("broker-a"), value=list_)
    told.event("consumer-0", "assigned", topic="orders", value=[["broker-a", number] for number in range(had)])
    runs(told, REBALANCE, [20], took_s=5)
    late = wrong(check(runs(told, REBALANCE, [45, 65, 85])))
    assert [one.measured_ms for one in late if one.kind == "each Qr after the last"] == [20_000.0] * found


@pytest.mark.parametrize(("profile", "ran_out", "found"), [("5.x", True, 1), ("5.x", False, 0), ("4.9", True, 0)])
def test_a_round_of_5_x_without_an_answer_is_repeated_soon(profile: str, ran_out: bool, found: int) -> None:
    """RebalanceService.run: minInterval, 1 s, whatever the round says of itself."""
    told = runs(cluster(1, ("broker-a",), ("consumer-0",), profile=profile), REBALANCE, [20], took_s=5)
    if ran_out:
        about = {"address": address_of("broker-a"), "duration_ms": 5000.0}
        told.at(25).event("consumer-0", "timed_out", f="QUERY_CONSUMER_OFFSET", **about)
    runs(told, REBALANCE, [45, 65, 85])
    late = [
        one.measured_ms for one in wrong(check(told)) if (one.object, one.kind) == (REBALANCE, "each Qr after the last")
    ]
    assert late == [20_000.0] * found
