"""availability over hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.checks.service.availability import judge
from nemesrv.chaos.reports.answers import answers
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import PAUSE, HistoryBuilder, address_of, cluster, example

WORKLOAD = {"queues": 4, "sends_per_s": 1}


def sends(failed: set[int], *, until_s: int = 400, lag_ms: float | None = 1.0, **run: Any) -> HistoryBuilder:
    """A send every second; those that began in `failed` seconds fail. broker-a of two is paused from 100 to 200 s."""
    builder = cluster(**{"clients": ("producer-0",), "workload": WORKLOAD, **run})
    builder.at(100).fault(*PAUSE, until_s=200)
    for second in range(10, until_s):
        type_ = "info" if second in failed else "ok"
        builder.at(second + 0.1).event("producer-0", "send", type=type_, duration_ms=100)
    return builder.end(until_s, lag_ms)


HALF = set(range(100, 200, 2))


def test_all_succeed_in_quiet_and_half_while_one_of_two_brokers_hangs() -> None:
    verdict = sends(HALF).judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.VALID, 0)
    assert (verdict.measured["quiet"], verdict.measured["send"]) == (1.0, 0.871795)
    assert verdict.measured["quiet_stretches"] == [[0.0, 100_000.0], [272_000.0, 400_000.0]]
    series = verdict.measured["series"]["send"]
    assert (verdict.measured["bucket_ms"], len(series)) == (2500.0, 160)
    assert [sum(column) for column in zip(*series, strict=True)] == [390, 50]


def test_a_machine_that_stands_still_takes_no_quiet_time_whole() -> None:
    """What fails beside it may be its doing; what fails a minute later is the nodes'."""

    def stalled(failed: set[int]) -> Verdict:
        return sends(HALF | failed, until_s=280).at(250).lag(5000, "broker-b", until_s=256).judged(judge)

    assert stalled(set()).measured["quiet_stretches"] == [[0.0, 100_000.0], [272_000.0, 280_000.0]]
    assert stalled({275}).verdict is Validity.INVALID


def test_one_failure_in_a_quiet_time_is_invalid() -> None:
    verdict = sends({50, 51}).judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 2)
    (failed,) = verdict.examples
    about = {"kind": "failed in a quiet time", "operation": "send", "succeeded": 88, "failed": 2, "floor": 1.0}
    assert failed == example("producer-0", from_s=50.1, to_s=51.1, **about)
    assert verdict.measured["quiet"] < 1


@pytest.mark.parametrize(
    ("wait_ms", "expected"), [(45_000.0, Validity.VALID), (10_000.0, Validity.INVALID), (None, Validity.INVALID)]
)
def test_no_time_is_quiet_while_a_set_back_name_server_waits_again(wait_ms: float | None, expected: Validity) -> None:
    builder = sends(HALF | {340}, timers={"W_ms": wait_ms}, profile="5.x").at(330)
    builder.event("harness", "clock", source="ns-0", fault_id="c", value={"step_ms": -300_000.0})
    assert builder.judged(judge).verdict is expected


ABSENT = ("absent-1", "absent", "not_started", "ns-1")


@pytest.mark.parametrize(
    ("failed", "absent_s", "expected"),
    [
        ({10}, (0, 300), Validity.VALID),  # the first choice was ns-1, where nobody listens yet
        ({10}, (300, 350), Validity.INVALID),  # it was there then
        ({10, 11}, (0, 300), Validity.INVALID),  # one call for each such entry, and no more
        ({50}, (0, 300), Validity.INVALID),  # it had its route before
    ],
)
def test_who_begins_while_a_name_server_of_its_list_is_not_there_may_fail_once(
    failed: set[int], absent_s: tuple[int, int], expected: Validity
) -> None:
    builder = sends(failed | HALF)
    builder.at(absent_s[0]).fault(*ABSENT, until_s=absent_s[1])
    assert builder.judged(judge).verdict is expected


KILL, STOP = ("kill-1", "kill", "sigkill", "broker-b"), ("stop-1", "stop", "sigterm", "broker-a")


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        ({197, 198}, Validity.VALID),  # the stop's row comes when the process has ended: 3 s a NameServer later at most
        ({150}, Validity.INVALID),  # nothing stopped yet
        (set(range(185, 200)), Validity.INVALID),  # it takes no leave for so long
    ],
)
def test_a_broker_that_stops_serves_nobody_on_its_way(failed: set[int], expected: Validity) -> None:
    builder = cluster(clients=("producer-0",), workload=WORKLOAD)
    builder.at(12).fault(*KILL, until_s=14).restarted("broker-b")
    builder.at(200).fault(*STOP, until_s=210).restarted("broker-a")
    for second in range(10, 400):
        builder.at(second + 0.1).event("producer-0", "send", type="info" if second in failed else "ok", duration_ms=100)
    assert builder.end(400).judged(judge).verdict is expected


SLAVE_KILLED = ("kill-1", "kill", "sigkill", "broker-a/1")
SYNC = {"settings": {"broker-a": {"brokerRole": "SYNC_MASTER"}}, "workload": WORKLOAD}


def without_its_slave(alone: range, **run: Any) -> HistoryBuilder:
    """A send a second to broker-a, whose slave is gone from 100 to 200 s; those of `alone` are stored on no slave."""
    builder = cluster(brokers=("broker-a", "broker-a/1", "broker-b"), clients=("producer-0",), **run)
    builder.at(100).fault(*SLAVE_KILLED, until_s=200).restarted("broker-a/1")
    for second in range(50, 400):
        type_, code = ("info", 11) if second in alone else ("ok", 0)
        builder.at(second + 0.1).event(
            "producer-0", "send", type=type_, code=code, broker_name="broker-a", duration_ms=100
        )
    return builder.end(400)


def test_what_a_sync_master_stored_while_its_slave_was_gone_was_answered_well() -> None:
    """SLAVE_NOT_AVAILABLE is a result to a producer, and no exception."""
    verdict = without_its_slave(range(100, 210), **SYNC).judged(judge)
    assert (verdict.verdict, verdict.violations, verdict.measured["send"]) == (Validity.VALID, 0, 1.0)


@pytest.mark.parametrize(
    ("alone", "run"),
    [
        (range(100, 330), SYNC),  # it goes on with it though its slave has been there for two minutes
        (range(60, 70), SYNC),  # it has its slave
        (range(300, 330), {"workload": WORKLOAD}),  # ASYNC_MASTER waits for nobody
    ],
)
def test_a_broker_may_not_say_so_if_it_has_its_slave_or_waits_for_none(alone: range, run: dict[str, Any]) -> None:
    assert without_its_slave(alone, **run).judged(judge).verdict is Validity.INVALID


def test_a_fault_may_be_felt_before_its_row_which_comes_when_it_is_complete() -> None:
    def pull_fails_at(at_s: float, fault: tuple[str, ...], value: object = None) -> HistoryBuilder:
        builder = cluster(clients=("consumer-0",)).at(50).event("consumer-0", "pull", type="ok", code=0, duration_ms=10)
        builder.at(at_s).event("consumer-0", "pull", type="info", duration_ms=10)
        return builder.at(100).fault(*fault, value=value).end(150)

    stop, kill = ("f1", "stop", "sigterm", "broker-a"), ("f1", "kill", "sigkill", "broker-a")
    cut = ("f1", "cut", "toxiproxy.disabled", "consumer-0", "broker-a")
    assert pull_fails_at(99.5, stop).judged(judge).verdict is Validity.VALID
    assert pull_fails_at(99.5, kill).judged(judge).verdict is Validity.INVALID
    assert pull_fails_at(99.95, cut, {"asked_ms": 99_900.0}).judged(judge).verdict is Validity.VALID
    assert pull_fails_at(99.85, cut, {"asked_ms": 99_900.0}).judged(judge).verdict is Validity.INVALID


def test_a_send_may_time_out_at_a_broker_that_stood_still_and_where_nobody_measured_that_is_unknown() -> None:
    assert sends({50}).at(48).lag(1500, "broker-b", until_s=51).judged(judge).verdict is Validity.VALID
    assert sends({50}, lag_ms=None).judged(judge).verdict is Validity.UNKNOWN


@pytest.mark.parametrize(
    ("how", "at_s", "permission", "expected"),
    [
        ("anew", 50, 6, Validity.INVALID),
        ("kept", 50, 6, Validity.INVALID),
        ("broker", 50, 6, Validity.VALID),
        ("anew", 150, 6, Validity.VALID),  # the broker is paused
        ("anew", 50, 4, Validity.VALID),  # the broker lets nobody write
        ("dropped", 50, 6, Validity.VALID),
    ],
)
def test_a_broker_takes_back_what_consumers_send_back(
    how: str, at_s: float, permission: int, expected: Validity
) -> None:
    clients = ("producer-0", "consumer-0")
    builder = sends(HALF, clients=clients, settings={"broker-a": {"brokerPermission": permission}})
    failed = {"msg_key": "k", "topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": 0, "attempt": 1}
    builder.at(at_s).event("consumer-0", "sent_back", f=how, duration_ms=10.0, **failed)
    assert builder.judged(judge).verdict is expected


def test_that_another_operation_was_slow_excuses_no_failure_for_the_broker_under_judgement_may_be_slow() -> None:
    builder = sends({50}).at(51).event("producer-0", "send", type="ok", duration_ms=1400)
    verdict = builder.judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)


def test_a_failure_while_the_proxies_stood_still_is_of_no_quiet_time_and_after_an_unexplained_silence_invalid() -> None:
    def silent(builder: HistoryBuilder) -> HistoryBuilder:
        for tenth in range(10, 1000):
            if not 500 <= tenth < 530:
                builder.at(tenth / 10).event(f"producer-{tenth % 2}", "send", type="ok", duration_ms=10)
        return builder.at(53.1).event("producer-0", "send", type="info", duration_ms=3000).end(100)

    clients = ("producer-0", "producer-1")
    assert silent(cluster(clients=clients)).judged(judge).verdict is Validity.INVALID
    builder = silent(cluster(clients=clients)).at(50).lag(2900, "toxiproxy", until_s=53)
    assert builder.judged(judge).verdict is Validity.VALID


@pytest.mark.parametrize(("second", "expected"), [(60, Validity.VALID), (30, Validity.INVALID)])
def test_what_got_no_answer_while_its_broker_stood_still_is_of_no_quiet_time(second: int, expected: Validity) -> None:
    """Stalls took the quiet time before the fault whole."""
    stalled = sends({second}).at(0).lag(2500, "broker-a", until_s=2.5).at(60).lag(2500, "broker-a", until_s=62.5)
    assert stalled.judged(judge).verdict is expected


def test_as_many_pulls_may_fail_as_the_proxies_stood_still_for_seconds() -> None:
    builder = cluster(clients=("consumer-0",))
    for number in range(6):
        builder.at(64 + number / 10).event("consumer-0", "pull", type="info", duration_ms=3000)
    late = builder.at(50).lag(15_000, "toxiproxy", until_s=65).lag(1, "consumer-0").end(100)
    assert late.judged(judge).verdict is Validity.UNKNOWN


@pytest.mark.parametrize(("floor", "expected"), [(0.8, Validity.VALID), (0.9, Validity.INVALID)])
def test_a_scenario_may_set_a_floor_from_its_first_fault_on(floor: float, expected: Validity) -> None:
    found = sends(HALF, availability_floor=floor).judged(judge)
    assert found.verdict is expected
    if expected is Validity.INVALID:
        broken = answers([found], None, "x").broken
        said = "from the first fault or act by hand on, the scenario's share of sends, pulls and look-ups succeeds"
        assert broken == f"{said} (availability: availability_floor)."


def test_an_answer_that_says_no_is_an_answer_for_pulls_and_look_ups_and_none_for_sends() -> None:
    builder = cluster(clients=("producer-0",))
    for event in ("pull", "name_server_call"):
        builder.at(50).event("producer-0", event, type="fail", code=17)
    assert builder.end(100).judged(judge).verdict is Validity.VALID
    builder.at(60).event("producer-0", "send", type="fail", code=14)
    assert builder.judged(judge).verdict is Validity.INVALID


@pytest.mark.parametrize(("at_s", "expected"), [(50, Validity.INVALID), (150, Validity.VALID)])
def test_a_look_up_of_the_prober_is_judged_and_not_counted(at_s: float, expected: Validity) -> None:
    builder = sends(HALF).node("prober")
    for moment_s, type_ in ((20.0, "ok"), (at_s, "info"), (300.0, "ok")):
        about = {"f": "route", "op_id": f"start-{moment_s}", "duration_ms": 100}
        builder.at(moment_s + 0.1).event("prober", "name_server_call", type=type_, **about)
    verdict = builder.judged(judge)
    assert (verdict.verdict, "name_server_call" in verdict.measured) == (expected, False)


def test_who_leaves_look_ups_unanswered_is_guilty_and_not_who_asked() -> None:
    builder = sends(set()).node("prober")
    for at_s, server in ((30, "ns-0"), (40, "ns-1"), (60, "ns-0")):
        tried = [{"name_server": address_of(server), "outcome": "no_answer" if server == "ns-0" else "answered"}]
        about = {"code": None if server == "ns-0" else 0, "duration_ms": 3000, "value": {"tried": tried}}
        ended = "info" if server == "ns-0" else "ok"
        builder.at(at_s).event("prober", "name_server_call", type=ended, f="route", **about)
    (found,) = builder.end(400).judged(judge).examples
    assert (found.who, found.more["holder"]) == ("prober", "ns-0")


def tried(builder: HistoryBuilder, type_: str = "fail", **where: Any) -> list[str]:
    """Who is guilty when each send from 300 s on succeeds only after a try at broker-a."""
    for second in range(300, 400):
        about = {"broker_name": "broker-a", **where}
        builder.at(second).event("producer-0", "send_attempt", type=type_, duration_ms=1, **about)
        builder.at(second + 0.1).event("producer-0", "send", type="ok", duration_ms=100)
    return [example.who for example in builder.end(400).judged(judge).examples]


@pytest.mark.parametrize(("address", "expected"), [("10.8.8.8:10911", ["broker-a"]), (address_of("broker-a"), [])])
def test_a_broker_that_has_moved_is_not_asked_why_tries_failed_where_it_was(address: str, expected: list[str]) -> None:
    builder = cluster(clients=("producer-0",), workload=WORKLOAD)
    assert tried(builder.at(20).moved("broker-a", "10.8.8.8:10911"), address=address) == expected


@pytest.mark.parametrize(("address", "expected"), [("10.9.9.9:10911", []), (address_of("broker-a"), ["broker-a"])])
def test_a_broker_is_not_asked_why_tries_failed_at_a_strangers_address(address: str, expected: list[str]) -> None:
    builder = cluster(clients=("producer-0",), workload=WORKLOAD)
    said = {"address": "10.9.9.9:10911", "topics": {"orders": 4}}
    about = {"broker_name": "broker-a", "broker_id": 0, "address": said["address"]}
    builder.at(20).act("register", "ns-0", value=said, **about)
    assert tried(builder, address=address) == expected


@pytest.mark.parametrize(("queue_id", "code", "expected"), [(7, 1, []), (7, 29, []), (3, 29, ["broker-a"])])
def test_a_broker_may_refuse_a_queue_that_the_topic_lacks(queue_id: int, code: int, expected: list[str]) -> None:
    builder = cluster(clients=("producer-0",), workload=WORKLOAD)
    assert tried(builder, "info", address=address_of("broker-a"), queue_id=queue_id, code=code) == expected


@pytest.mark.parametrize(("cap_ms", "expected"), [(-1, Validity.INVALID), (500, Validity.VALID)])
def test_no_time_is_quiet_where_a_try_has_less_than_its_round_trips(cap_ms: int, expected: Validity) -> None:
    settings = {"producer-0": {"sendMsgMaxTimeoutPerRequest": cap_ms}}
    builder = cluster(clients=("producer-0",), workload=WORKLOAD, settings=settings, profile="5.x")
    slow = ("f1", "latency", "toxiproxy.latency", "producer-0", "broker-a")
    builder.at(100).fault(*slow, value={"latency_ms": 300}).at(200).fault(*slow, end=True)
    for second in range(10, 400):
        type_ = "info" if second == 150 else "ok"
        builder.at(second + 0.1).event("producer-0", "send", type=type_, duration_ms=100)
    assert builder.end(400).judged(judge).verdict is expected


@pytest.mark.parametrize(
    ("event", "at_s", "queue_id", "violations"),
    [
        ("send_attempt", 30, 0, 0),  # whatever the topic's permission is, for routes alone keep producers away
        ("send_attempt", 60, 0, 0),
        ("send_attempt", 60, 3, 1),
        ("pull", 5, 0, 0),
        ("pull", 30, 0, 1),
        ("pull", 60, 0, 0),
        ("pull", 60, 3, 1),
        ("pull", 80, 0, 1),
    ],
)
def test_a_broker_serves_no_lost_or_unreadable_queue(event: str, at_s: float, queue_id: int, violations: int) -> None:
    told = cluster(clients=("producer-0", "consumer-0"), workload={**WORKLOAD, "topic": "orders"})
    for changed_s, queues, perm, is_of_topic in ((20, 4, 2, True), (50, 2, 6, True), (70, 2, 2, False)):
        has = {"read": queues, "write": queues, "perm": perm, "version": changed_s}
        told.at(changed_s).event("broker-a", "topic", topic="orders", value=has)
        of_topic = {"topic": "orders", "value": {"perm": perm, "read_queues": queues, "write_queues": queues}}
        of_broker = {"value": {"settings": {"brokerPermission": perm}}}
        f, asked = ("update_topic", of_topic) if is_of_topic else ("update_config", of_broker)
        told.act(f, "broker-a", **asked)
    about = {"broker_name": "broker-a", "address": address_of("broker-a"), "queue_id": queue_id, "code": 0}
    who, topic = ("producer-0", {}) if event == "send_attempt" else ("consumer-0", {"topic": "orders"})
    told.at(at_s).event(who, event, type="ok", duration_ms=1.0, **about, **topic)
    assert told.end(200).judged(judge).violations == violations


@pytest.mark.parametrize(
    ("event", "at_s", "code", "profile", "kinds"),
    [
        ("send_attempt", 60, 1, "4.9", []),
        ("send_attempt", 60, 29, "4.9", ["refuses with its code"]),
        ("send_attempt", 60, 29, "5.x", []),
        ("send_attempt", 60, 1, "5.x", ["refuses with its code"]),
        ("send_attempt", 60, 2, "4.9", []),  # SYSTEM_BUSY
        ("send_attempt", 5, 29, "4.9", []),  # nobody has changed the topic yet
        ("pull", 60, 1, "4.9", []),
        ("pull", 60, 16, "4.9", ["refuses with its code"]),
        ("pull", 80, 16, "4.9", []),  # nobody may read it
        ("pull", 80, 1, "4.9", ["refuses with its code"]),
    ],
)
def test_a_broker_refuses_with_the_code_of_its_version(
    event: str, at_s: float, code: int, profile: str, kinds: list[str]
) -> None:
    workload = {**WORKLOAD, "topic": "orders"}
    told = cluster(clients=("producer-0", "consumer-0"), workload=workload, profile=profile)
    for changed_s, queues, perm in ((0, 4, 6), (50, 2, 6), (70, 2, 2)):
        value = {"read": queues, "write": queues, "perm": perm, "version": changed_s}
        told.at(changed_s).event("broker-a", "topic", topic="orders", value=value)
        if changed_s:
            told.act("update_topic", "broker-a", topic="orders")
    about = {"broker_name": "broker-a", "address": address_of("broker-a"), "queue_id": 3, "code": code}
    who, topic = ("producer-0", {}) if event == "send_attempt" else ("consumer-0", {"topic": "orders"})
    told.at(at_s).event(who, event, type="fail", duration_ms=1.0, **about, **topic)
    assert [one.more["kind"] for one in told.end(200).judged(judge).examples if one.over_ms] == kinds


@pytest.mark.parametrize(
    ("at_s", "queue_id", "code", "expected"),
    [
        (30, 3, 1, Validity.INVALID),
        (30, 3, 29, Validity.INVALID),  # of 5.x
        (30, 3, 2, Validity.VALID),  # SYSTEM_BUSY
        (30, 4, 1, Validity.VALID),
        (90, 1, 1, Validity.INVALID),
        (90, 3, 1, Validity.VALID),  # the topic has lost it
    ],
)
def test_a_broker_refuses_no_send_to_a_living_queue(at_s: float, queue_id: int, code: int, expected: Validity) -> None:
    told = cluster(clients=("producer-0",), workload={**WORKLOAD, "topic": "orders"})
    told.at(5).event("producer-0", "send", type="ok", duration_ms=1.0)
    told.at(6).fault("kill-1", "kill", "sigkill", "broker-b")
    for has_s, read, write in ((20, 2, 4), (60, 2, 2)):
        has = {"read": read, "write": write, "perm": 6, "version": has_s}
        told.at(has_s).event("broker-a", "topic", topic="orders", value=has)
    sent = {"broker_name": "broker-a", "address": address_of("broker-a"), "queue_id": queue_id, "code": code}
    told.at(at_s).event("producer-0", "send_attempt", type="fail", duration_ms=1.0, **sent)
    verdict = told.end(200).judged(judge)
    assert verdict.verdict is expected
    assert [one.who for one in verdict.examples] == (["broker-a"] if expected is Validity.INVALID else [])


@pytest.mark.parametrize(
    ("at_s", "queue_id", "code", "found"),
    [
        (30, 3, 1, True),
        (30, 3, 17, True),
        (30, 3, 24, False),  # its group has no member there
        (30, 4, 1, False),
        (90, 3, 1, False),  # the topic has lost it
        (130, 1, 16, False),  # nobody may read it
    ],
)
def test_a_broker_refuses_no_pull_of_a_readable_queue(at_s: float, queue_id: int, code: int, found: bool) -> None:
    told = cluster(clients=("producer-0", "consumer-0"), workload={**WORKLOAD, "topic": "orders"})
    for has_s, read, perm in ((20, 4, 6), (60, 2, 6), (120, 2, 2)):
        has = {"read": read, "write": read, "perm": perm, "version": has_s}
        told.at(has_s).event("broker-a", "topic", topic="orders", value=has)
    pulled = {"topic": "orders", "broker_name": "broker-a", "address": address_of("broker-a"), "queue_id": queue_id}
    told.at(at_s).event("consumer-0", "pull", type="info", duration_ms=1.0, code=code, **pulled)
    kinds = [one.more["kind"] for one in told.end(200).judged(judge).examples]
    assert ("answers pulls of its queues" in kinds) == found


@pytest.mark.parametrize(
    ("code", "switched_s", "expected"),
    [(14, 60, Validity.INVALID), (14, None, Validity.VALID), (13, 60, Validity.VALID)],
)
def test_a_new_master_refuses_no_send_as_a_slave_does(code: int, switched_s: float | None, expected: Validity) -> None:
    told = cluster(brokers=("broker-a", "broker-a/1"), clients=("producer-0",), workload=WORKLOAD)
    told.at(20).event("producer-0", "send", type="ok", duration_ms=1.0)
    told.at(50).fault("kill-1", "kill", "sigkill", "broker-a")
    if switched_s is not None:
        told.at(switched_s).act("switch", "broker-a/1")
    sent = {"broker_name": "broker-a", "address": address_of("broker-a/1"), "queue_id": 0, "code": code}
    told.at(150).event("producer-0", "send_attempt", type="fail", duration_ms=1.0, **sent)
    verdict = told.end(200).judged(judge)
    assert verdict.verdict is expected
    assert [one.who for one in verdict.examples] == (["broker-a/1"] if expected is Validity.INVALID else [])


@pytest.mark.parametrize(
    ("at_s", "answer", "is_wrong"),
    [
        (80, {"type": "fail", "code": 14}, False),
        (80, {"type": "fail", "code": 1}, True),  # RocketMQ's brokers refuse with code 14
        (80, {"type": "ok", "code": 0}, True),  # stored, though there is no room
        (60.02, {"type": "ok", "code": 0}, False),  # the disk may not have been full yet
        (60.02, {"type": "fail", "code": 14}, False),
        (119.98, {"type": "ok", "code": 0}, False),  # or have had room again
        (50, {"type": "fail", "code": 14}, True),
        (130, {"type": "fail", "code": 14}, True),
    ],
)
def test_only_a_full_disk_keeps_a_broker_from_messages(at_s: float, answer: dict[str, Any], is_wrong: bool) -> None:
    told = cluster(clients=("producer-0",), workload=WORKLOAD)
    told.at(20).event("producer-0", "send", type="ok", duration_ms=1.0)
    sent = {"broker_name": "broker-a", "address": address_of("broker-a"), "queue_id": 0, "duration_ms": 1.0}
    told.at(at_s).event("producer-0", "send_attempt", **sent, **answer)
    for now_s, do in ((60.05, "fill_disk"), (120, "free_disk")):
        asked = {"asked_ms": (now_s - 0.05) * 1000}
        told.at(now_s).event("harness", "disk", source="broker-a", f=do, fault_id=f"{do}-1", value=asked)
    verdict = told.end(300).judged(judge)
    assert (verdict.verdict is Validity.INVALID) is is_wrong
    assert not is_wrong or verdict.examples[0].who == "broker-a"


def test_a_floor_counts_from_an_act_by_hand_on() -> None:
    told = cluster(clients=("producer-0",), workload=WORKLOAD, availability_floor=0.9)
    told.at(20).event("producer-0", "send", type="ok", duration_ms=1.0)
    told.at(30).act("delete_topic", "ns-0", topic="orders")
    for second in range(40, 60):
        told.at(second).event("producer-0", "send", type="fail", code=17, duration_ms=1.0)
    verdict = told.end(100).judged(judge)
    assert verdict.verdict is Validity.INVALID
    assert "0 of 20 sends" in str(verdict.examples[0])
