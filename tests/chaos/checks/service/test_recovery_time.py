"""recovery_time over hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.checks.record.recoveries import percentile
from nemesrv.chaos.checks.service.recovery_time import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, PAUSE, HistoryBuilder, address_of, cluster, example

WORKLOAD = {"queues": 4, "sends_per_s": 1}


def check(builder: HistoryBuilder) -> Verdict:
    return builder.judged(judge)


def send(builder: HistoryBuilder, at_s: float, type_: str = "ok", took_s: float = 0.5) -> HistoryBuilder:
    return builder.at(at_s + took_s).event("producer-0", "send", type=type_, duration_ms=took_s * 1000)


def hang(first_good_s: float, lag_ms: float | None = 1.0) -> HistoryBuilder:
    """broker-a of two is paused from 100 s to 200 s; the producer fails until `first_good_s`."""
    builder = cluster(clients=("producer-0",), workload=WORKLOAD)
    send(builder, 90)
    for at_s in range(101, int(first_good_s), 4):
        send(builder, at_s, "fail", 3)
    send(send(builder, first_good_s), 190)
    builder.at(100).fault(*PAUSE, until_s=200)
    return send(send(builder, 201), 280).end(300, lag_ms)


def test_a_producer_that_succeeds_after_one_try_at_each_lost_queue_is_valid() -> None:
    verdict = check(hang(first_good_s=120))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 2, 0)
    assert verdict.allowed["bound_ms"] == 24_000.0  # (4 lost queues + 2) · (3 s + 1 s)
    spread = {"recoveries": 2, "p50_ms": 1500.0, "p99_ms": 20_500.0, "max_ms": 20_500.0, "bound_ms": 24_000.0}
    assert verdict.measured["by_operation"] == {"send": spread}
    assert verdict.measured["max_ms"] == 20_500.0  # the one nearest to its bound
    assert verdict.measured["never"] == 0


def crash(
    first_good_s: float, *also: tuple[Any, ...], sent_s: float = 90, made_by: str = "", **workload: Any
) -> HistoryBuilder:
    """broker-a is killed at 100 s for good; the first good send after it begins at `first_good_s`."""
    builder = cluster(
        brokers=("broker-a", "broker-b", "broker-c"), clients=("producer-0",), workload={**WORKLOAD, **workload}
    )
    if made_by:
        value = {"kind": "producer", "implementation": made_by}
        if made_by.startswith("apache-5"):
            value["client_profile"] = "java-5.3"
        builder.event("harness", "node", source="producer-0", value=value)
    send(send(builder, sent_s, took_s=0.01), first_good_s, took_s=0.01)
    for fault in also:
        builder.at(99.9).fault(*fault[:5], value=fault[5])
    return builder.at(100).fault(*KILL).end(300)


def bound_and_verdict(builder: HistoryBuilder) -> tuple[float, Validity]:
    verdict = check(builder)
    return verdict.allowed["bound_ms"], verdict.verdict


def test_a_dead_broker_refuses_so_the_next_send_is_good() -> None:
    assert bound_and_verdict(crash(100.9)) == (1000.0, Validity.VALID)
    assert bound_and_verdict(crash(101.5)) == (1000.0, Validity.INVALID)
    assert bound_and_verdict(crash(100.4, sends_per_s=4)) == (250.0, Validity.INVALID)


def test_apaches_client_4_9_waits_out_the_send_that_is_under_way_as_its_broker_closes() -> None:
    """It took 3.1 s where a broker was killed (docs/apache.md); 5.x and ours fail it at once."""
    assert bound_and_verdict(crash(103.1, made_by="apache-4.9.8")) == (4000.0, Validity.VALID)
    assert bound_and_verdict(crash(104.5, made_by="apache-4.9.8")) == (4000.0, Validity.INVALID)
    assert bound_and_verdict(crash(103.1, made_by="apache-5.3.3")) == (1000.0, Validity.INVALID)


@pytest.mark.parametrize(
    ("every_s", "fails", "first_good_s", "verdict"),
    [
        (1, False, 109, Validity.VALID),
        (1, True, 109, Validity.INVALID),
        (8, True, 109, Validity.VALID),
        (None, True, 109, Validity.UNKNOWN),
    ],
)
def test_a_program_of_somebody_else_sends_when_it_likes_and_as_often_as_it_was_seen_to(
    every_s: int | None, fails: bool, first_good_s: float, verdict: Validity
) -> None:
    builder = crash(first_good_s, made_by="go", sent_s=100 - (every_s or 60), sends_per_s=4)
    *_, row = (row for row in builder.rows if row.get("source") == "producer-0" and row["event"] == "node")
    row["value"] |= {"client_profile": "go", "dialler": "go"}
    for at_s in range(40, 99, every_s) if every_s else ():
        send(builder, at_s, took_s=0.01)
    if fails:
        send(builder, 102, "fail", took_s=0.01)
    assert check(builder).verdict is verdict


@pytest.mark.parametrize(("killed_s", "wrong"), [(101.06, []), (101.3, [1])])
def test_what_a_killed_producer_did_last_may_have_no_row(killed_s: float, wrong: list[int]) -> None:
    builder = cluster(clients=("producer-0", "producer-1"), workload=WORKLOAD)
    send(builder, 90, took_s=0.01).at(100).fault(*KILL)
    builder.at(killed_s).fault("f2", "kill", "sigkill", "producer-0").at(150).event("producer-1", "send", type="ok")
    own = [one.wrong for one in check(builder.end(300)).findings if one.subject == "producer-0"]
    assert own == wrong


@pytest.mark.parametrize(("source", "examined"), [("producer-0", 1), ("producer-1", 0), ("broker-a", 1)])
def test_no_window_begins_with_a_fault_of_another_client(source: str, examined: int) -> None:
    cut = ("f1", "cut", "toxiproxy.disabled", source, "ns-0")
    builder = cluster(clients=("producer-0", "producer-1"), workload=WORKLOAD)
    send(send(builder, 90), 110).at(100).fault(*cut)
    assert check(builder.end(300)).examined == examined


def cut_before(healed_s: float, first_good_s: float) -> HistoryBuilder:
    """broker-b is cut from ns-0 until `healed_s`, and broker-a is killed at 150 s."""
    link = ("f0", "cut", "toxiproxy.disabled", "broker-b", "ns-0")
    builder = cluster(clients=("producer-0",), workload=WORKLOAD).at(5).fault(*link)
    builder.at(healed_s).fault(*link, end=True).at(150).fault(*KILL)
    for at_s in (5.5, healed_s + 0.05, first_good_s):
        send(builder, at_s, took_s=0.01)
    return builder.end(400)


def test_a_fault_is_judged_alone_once_the_producer_has_settled_after_the_one_before() -> None:
    """R + C + P + A + T: 69 s."""
    assert bound_and_verdict(cut_before(40, 151.5)) == (1000.0, Validity.INVALID)
    assert bound_and_verdict(cut_before(80, 151.5)) == (1000.0, Validity.INVALID)
    assert check(cut_before(82, 300)).verdict is Validity.VALID


def test_where_messages_keep_to_their_queues_each_lost_queue_may_be_tried_first() -> None:
    assert bound_and_verdict(crash(104.5, ordered=True, ordered_keys=12)) == (5000.0, Validity.VALID)
    assert bound_and_verdict(crash(106, ordered=True, ordered_keys=12)) == (5000.0, Validity.INVALID)


def test_with_two_dead_brokers_the_tries_of_a_send_may_all_be_theirs() -> None:
    other = ("f1", "kill", "sigkill", "broker-b", None, {})
    assert bound_and_verdict(crash(108.5, other)) == (9000.0, Validity.VALID)
    assert bound_and_verdict(crash(110, other)) == (9000.0, Validity.INVALID)


def hangs_when_another_is_back(first_good_s: float, healed_s: float) -> HistoryBuilder:
    """broker-a hangs from 200 s on. ns-0 must name broker-c again 33 s after `healed_s`."""
    builder = cluster(
        brokers=("broker-a", "broker-b", "broker-c"), clients=("producer-0",), workload={**WORKLOAD, "queues": 8}
    )
    for at_s in (50.5, healed_s + 0.5, first_good_s):
        send(builder, at_s, took_s=0.01)
    builder.at(50).fault("f0", "cut", "toxiproxy.down", "broker-c", "ns-0", until_s=healed_s)
    return builder.at(200).fault(*PAUSE, None).end(400)


def test_each_queue_of_a_broker_that_hangs_takes_its_turn() -> None:
    assert bound_and_verdict(hangs_when_another_is_back(239, healed_s=100)) == (40_000.0, Validity.VALID)
    assert bound_and_verdict(hangs_when_another_is_back(241, healed_s=100)) == (40_000.0, Validity.INVALID)


def test_a_harmless_latency_makes_a_send_later_by_its_round_trip() -> None:
    slow = ("f0", "latency", "toxiproxy.latency", "producer-0", "broker-b", {"latency_ms": 250})
    assert bound_and_verdict(crash(101.4, slow)) == (1500.0, Validity.VALID)
    assert bound_and_verdict(crash(101.9, slow)) == (1500.0, Validity.INVALID)


def test_so_does_one_that_begins_before_the_send_was_due() -> None:
    def slow_from(at_s: float) -> HistoryBuilder:
        slow = ("f0", "latency", "toxiproxy.latency", "producer-0", "broker-b")
        return crash(101.4).at(at_s).fault(*slow, value={"latency_ms": 250})

    assert bound_and_verdict(slow_from(100.7)) == (1500.0, Validity.VALID)
    assert bound_and_verdict(slow_from(101.1)) == (1000.0, Validity.INVALID)


def test_a_producer_that_had_no_route_yet_is_not_held_to_that() -> None:
    assert bound_and_verdict(crash(101.5, sent_s=280)) == (24_000.0, Validity.VALID)


def test_every_recovery_that_was_judged_is_a_finding_with_its_own_bound() -> None:
    verdict = check(hang(first_good_s=120))
    assert [(f.subject, f.kind, f.after, f.measured_ms, f.bound_ms) for f in verdict.findings] == [
        ("producer-0", "first good send", "f1 start", 20_500.0, 24_000.0),
        ("producer-0", "first good send", "f1 end", 1500.0, 24_000.0),
    ]


def test_what_stands_beside_the_bound_was_held_against_it() -> None:
    """The longest without a success was never bounded: every broker was lost."""
    verdict = check(without_any_broker())
    (longest,) = {row["after_ms"]: row for row in verdict.measured["slowest"][:1]}.values()
    assert (longest["after_ms"], longest["bound_ms"]) == (260_500.0, None)
    assert verdict.measured["max_ms"] == 60_500.0 <= verdict.allowed["bound_ms"]
    assert not {"longest_ms", "p50_ms", "p99_ms"} & verdict.measured.keys()


def test_a_producer_that_goes_on_failing_is_invalid() -> None:
    verdict = check(hang(first_good_s=150))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (late,) = verdict.examples
    about = {"after": "f1 start", "kind": "first good send"}
    assert late == example("producer-0", from_s=124, to_s=150.5, due_s=124, took_s=50.5, allowed_s=24, **about)


def test_a_success_is_late_by_no_more_than_timers_fired_late() -> None:
    verdict = check(hang(first_good_s=129, lag_ms=4000))
    assert (verdict.verdict, verdict.violations) == (Validity.VALID, 0)


def look_ups(first_good_s: float, **first_good: Any) -> HistoryBuilder:
    """The client has chosen ns-0, whose link is black from 100 s to 200 s."""
    builder = cluster(clients=("producer-0",), workload=WORKLOAD).at(100).black_hole("producer-0", "ns-0", until_s=200)
    for at_s, type_ in ((90, "ok"), (123, "info"), (first_good_s, "ok"), (210, "ok"), (299, "ok")):
        fields = {"type": type_, "name_server": address_of("ns-0"), "duration_ms": 10}
        fields |= first_good if at_s == first_good_s else {}
        builder.at(at_s).event("producer-0", "name_server_call", f="route", **fields)
    return builder.end(300)


def test_a_client_asks_another_name_server_after_one_failed_call_and_a_poll() -> None:
    verdict = check(look_ups(first_good_s=153))
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 2)
    assert verdict.allowed["bound_ms"] == 63_000.0  # P + (1·P + A)
    assert check(look_ups(first_good_s=170)).verdict is Validity.INVALID


def test_a_poll_that_met_proxies_that_stood_still_is_not_judged() -> None:
    late = look_ups(first_good_s=209).at(150).lag(4_000, "toxiproxy", until_s=154)
    assert check(late).verdict is Validity.UNKNOWN


@pytest.mark.parametrize(("code", "expected"), [(17, Validity.VALID), (None, Validity.INVALID)])
def test_a_look_up_is_good_when_it_is_answered_that_there_is_no_route(code: int | None, expected: Validity) -> None:
    assert check(look_ups(first_good_s=153, type="fail", code=code)).verdict is expected


def without_any_broker() -> HistoryBuilder:
    """Both brokers are killed at 100 s and back at 300 s; the producer's next good send ends at 360.5 s."""
    both = (("f1", "kill", "sigkill", "broker-a"), ("f2", "kill", "sigkill", "broker-b"))
    builder = cluster(clients=("producer-0",), workload=WORKLOAD)
    send(builder.at(100).fault(*both[0]).fault(*both[1]), 90)
    for fault in both:
        builder.at(300).fault(*fault, end=True).restarted(fault[3])
    return send(send(builder, 360), 500).end(510)


def test_a_client_without_any_broker_left_is_bounded_from_the_heal_on() -> None:
    verdict = check(without_any_broker())
    assert (verdict.verdict, verdict.violations) == (Validity.VALID, 0)
    assert [row["after_ms"] for row in verdict.measured["slowest"]] == [260_500.0, 260_500.0, 60_500.0, 60_500.0]
    assert verdict.examined == 2


def test_a_consumer_may_have_nothing_to_pull_where_its_group_has_fewer_queues_left_than_consumers() -> None:
    def idle_while_the_broker_is_lost(queues: int) -> HistoryBuilder:
        builder = cluster(clients=("consumer-0", "consumer-1"), workload={**WORKLOAD, "queues": queues})
        builder.at(100).fault(*KILL, until_s=500).restarted("broker-a")
        for at_s in (90, 550, 690):
            builder.at(at_s).event("consumer-0", "pull", type="ok", code=0, duration_ms=100)
        return builder.end(700)

    verdict = check(idle_while_the_broker_is_lost(queues=1))
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 1)  # from the heal on
    assert verdict.allowed["bound_ms"] == (33 + 30 + 20 + 40) * 1000  # R + C + P + Qr + 2·20 s
    verdict = check(idle_while_the_broker_is_lost(queues=4))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)


def pulls(builder: HistoryBuilder, *at_s: float) -> HistoryBuilder:
    """consumer-0's answered ones."""
    for each_s in at_s:
        builder.at(each_s).event("consumer-0", "pull", type="ok", code=0, duration_ms=100)
    return builder.end(700)


def test_a_consumer_may_have_nothing_to_pull_until_its_name_server_holds_every_broker_again() -> None:
    def idle_until(first_good_s: float, queues: int) -> Verdict:
        """ns-0 drops broker-b, which every client can reach."""
        hole = ("f1", "cut", "toxiproxy.disabled", "broker-b", "ns-0")
        clients = ("consumer-0", "consumer-1", "consumer-2")
        builder = cluster(name_servers=1, clients=clients, workload={**WORKLOAD, "queues": queues})
        builder.at(100).fault(*hole, until_s=120)
        return check(pulls(builder, 90, first_good_s, 690))

    verdict = idle_until(first_good_s=240, queues=2)
    assert verdict.verdict is Validity.VALID
    assert verdict.findings[-1].bound_ms == (33 + 30 + 20 + 40) * 1000  # R + C + P + Qr + 2·20 s
    assert idle_until(first_good_s=280, queues=2).verdict is Validity.INVALID
    assert idle_until(first_good_s=182, queues=4).verdict is Validity.INVALID  # the broker left has enough for all


def test_a_client_that_did_nothing_proves_nothing() -> None:
    verdict = check(cluster(clients=("producer-0",)).at(100).fault(*KILL).end(300))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_percentiles_are_values_that_were_measured() -> None:
    assert [percentile([4, 1, 3, 2], share) for share in (0.5, 0.99, 1)] == [2, 4, 4]
    assert percentile([], 0.5) is None


@pytest.mark.parametrize(("took_s", "expected"), [(2.5, Validity.VALID), (2.9, Validity.INVALID)])
def test_a_try_that_its_limit_ends_makes_the_send_over_a_slow_link_later(took_s: float, expected: Validity) -> None:
    """Two tries of 500 ms end before an answer over links of 500 ms can come; the last has what is left."""
    settings = {"producer-0": {"sendMsgMaxTimeoutPerRequest": 500, "sendMsgTimeout": 5_000}}
    builder = cluster(clients=("producer-0",), workload=WORKLOAD, settings=settings, profile="5.x")
    send(send(builder, 99, took_s=0.01), 100.4, took_s=took_s)
    for broker in ("broker-a", "broker-b"):
        slow = ("f1", "latency", "toxiproxy.latency", "producer-0", broker)
        builder.at(100).fault(*slow, value={"latency_ms": 500}, until_s=200)
    verdict = check(builder.end(400))
    assert (verdict.allowed["bound_ms"], verdict.verdict) == (3000.0, expected)
