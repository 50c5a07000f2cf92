"""exercised over hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.checks.service.exercised import judge, judged
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import BOTH, KILL, HistoryBuilder, address_of, cluster

HOLE = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "producer-0", "ns-0")


def check(builder: HistoryBuilder) -> Verdict:
    """By its control rows, the producer having had a success."""
    control, world = builder.facts()
    return judged(control, world, {"producer-0"})


def worked(**run: Any) -> HistoryBuilder:
    """The producer has chosen ns-0 and sends well."""
    builder = cluster(clients=("producer-0",), **run).at(2)
    chosen = {"old": None, "index": 0, "reason": "first"}
    builder.event("producer-0", "name_server_chosen", name_server=address_of("ns-0"), value=chosen)
    return builder.at(3).event("producer-0", "send", type="ok")


def during(builder: HistoryBuilder, fault: tuple[Any, ...], **value: Any) -> HistoryBuilder:
    builder.at(100).fault(*fault, value=value or None)
    return builder.at(200).fault(*fault, end=True, value=value or None).at(150)


def test_a_kill_that_a_name_server_noticed_was_exercised() -> None:
    builder = during(worked(timeline=["kill", "restart"]), KILL).drops("ns-0", "broker-a")
    verdict = check(builder.end(300))
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 2)
    effects = [{"fault_id": "f1", "fault": "kill", "effects": {"broker_dropped": 1}}]
    assert verdict.measured["by_fault"] == effects


def test_a_fault_without_effect_is_unknown_and_never_invalid() -> None:
    builder = during(worked(), KILL).at(90).drops("ns-0", "broker-a").at(150).drops("ns-0", "broker-b")
    verdict = check(builder.end(300))
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)
    (example,) = verdict.examples
    assert (example.who, example.from_ms, example.to_ms, example.after, example.more["kind"]) == (
        "broker-a",
        100_000.0,
        200_000.0,
        "f1 start",
        "no row of the history shows an effect of the fault",
    )


@pytest.mark.parametrize(
    ("who", "took_ms", "expected"),
    [("producer-0", 3_000, Validity.VALID), ("producer-0", 20, Validity.UNKNOWN), ("ns-0", 3_000, Validity.UNKNOWN)],
)
def test_a_list_that_did_not_come_shows_the_address_servers_fault(who: str, took_ms: int, expected: Validity) -> None:
    builder = during(worked(), ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "producer-0", "address-server"))
    builder.event(who, "scheduled_task", f="fetchNameServerAddr", duration_ms=took_ms)
    assert check(builder.end(300)).verdict is expected


@pytest.mark.parametrize(("took_ms", "expected"), [(250.0, Validity.VALID), (249.0, Validity.UNKNOWN)])
def test_a_slaves_slow_round_of_questions_shows_that_its_link_is_slow(took_ms: float, expected: Validity) -> None:
    slow = ("f1", "latency", "toxiproxy.latency", "broker-a/1", "broker-a")
    builder = during(worked(brokers=(*BOTH, "broker-a/1")), slow, latency_ms=250, jitter_ms=0)
    builder.event("broker-a/1", "scheduled_task", f="SlaveSynchronize", duration_ms=took_ms)
    assert check(builder.end(300)).verdict is expected


def test_a_next_process_that_is_long_in_coming_shows_the_stop_that_it_follows_and_no_other() -> None:
    """A JVM is up seconds after it was asked for."""
    first, second = (("f1", "stop", "sigterm", "producer-0"), ("f2", "stop", "sigterm", "producer-0"))
    builder = during(worked(), first).at(300).fault(*second, until_s=310)
    builder.at(330).event("producer-0", "started", incarnation=2, value={"pid": 9})
    verdict = check(builder.end(400))
    assert [(one.after, one.more["kind"]) for one in verdict.examples] == [
        ("f1 start", "no row of the history shows an effect of the fault")
    ]
    builder.at(230).event("producer-0", "started", incarnation=1, value={"pid": 8})
    assert check(builder).verdict is Validity.VALID


def test_of_a_narrow_link_no_effect_is_asked_for() -> None:
    builder = during(worked(), ("f1", "bandwidth", "toxiproxy.bandwidth", "producer-0", "broker-a"), rate_kb_s=1)
    assert check(builder.end(300)).verdict is Validity.VALID


@pytest.mark.parametrize("beats", [(), (150,)])
def test_a_paused_node_measures_no_timers(beats: tuple[int, ...]) -> None:
    builder = during(worked(), ("f1", "pause", "sigstop", "broker-a"))
    for at_s in (50, *beats, 250):
        builder.at(at_s).event("broker-a", "timer_lag", lag_ms=1, duration_ms=1000)
    verdict = check(builder.end(300, lag_ms=None))
    assert verdict.verdict is (Validity.UNKNOWN if beats else Validity.VALID)


@pytest.mark.parametrize("moves", [True, False])
def test_a_client_whose_name_server_was_taken_must_have_chosen_another(moves: bool) -> None:
    builder = during(worked(), HOLE)
    builder.event("producer-0", "name_server_call", type="info", name_server=address_of("ns-0"), duration_ms=3000)
    if moves:
        value = {"old": address_of("ns-0"), "index": 1, "reason": "not_active"}
        builder.event("producer-0", "name_server_chosen", name_server=address_of("ns-1"), value=value)
    verdict = check(builder.end(300))
    assert verdict.verdict is (Validity.VALID if moves else Validity.UNKNOWN)
    assert verdict.measured["switches"] == int(moves)


def test_a_fault_that_was_planned_and_never_began_is_unknown() -> None:
    verdict = check(worked(timeline=["kill", "restart"]).end(300))
    assert verdict.verdict is Validity.UNKNOWN
    assert verdict.examples[0].more["kind"] == "1 faults were planned and 0 recorded"


def test_without_faults_every_client_must_have_worked() -> None:
    assert check(worked(timeline=[]).end(100)).verdict is Validity.VALID
    verdict = check(worked(timeline=[]).node("consumer-0").end(100))
    assert verdict.verdict is Validity.UNKNOWN
    assert verdict.examples[0].who == "consumer-0"


@pytest.mark.parametrize(("switched", "expected"), [("broker-a/1", Validity.VALID), ("broker-b/1", Validity.UNKNOWN)])
def test_only_a_master_whose_slave_was_made_master_may_stay_away(switched: str, expected: Validity) -> None:
    builder = worked(timeline=["kill", "switch"], brokers=("broker-a", "broker-a/1", "broker-b", "broker-b/1"))
    builder.at(100).fault(*KILL).at(101).drops("ns-0", "broker-a").at(150).act("switch", switched)
    verdict = check(builder.end(300))
    assert verdict.verdict is expected
    assert [one.more["kind"] for one in verdict.examples if one.who == "broker-a"] == (
        [] if expected is Validity.VALID else ["the fault never ended"]
    )


@pytest.mark.parametrize(("who", "expected"), [("broker-a/1", Validity.VALID), ("broker-b", Validity.UNKNOWN)])
def test_a_wait_that_ran_out_shows_the_fault_of_the_link(who: str, expected: Validity) -> None:
    cut = ("f1", "black_hole", "toxiproxy", "broker-a/1", "broker-a")
    builder = during(worked(), cut).event(who, "timed_out", f="HA", address=address_of("broker-a"), duration_ms=20_000)
    assert builder.end(300).judged(judge).verdict is expected


@pytest.mark.parametrize(("took_ms", "expected"), [(260, Validity.VALID), (100, Validity.UNKNOWN)])
def test_a_slow_link_shows_in_a_call_over_it(took_ms: float, expected: Validity) -> None:
    latency = ("f1", "latency", "toxiproxy.latency", "producer-0", "broker-a")
    builder = during(worked(), latency, latency_ms=250, jitter_ms=0)
    at = {"address": address_of("broker-a"), "duration_ms": took_ms}
    builder.event("producer-0", "send_attempt", type="ok", code=0, **at)
    assert builder.end(300).judged(judge).verdict is expected


def test_a_try_that_failed_shows_a_fault_and_a_success_that_a_client_worked() -> None:
    builder = during(worked(timeline=["kill", "restart"]), KILL)
    builder.event("producer-0", "send_attempt", type="info", address=address_of("broker-a"), duration_ms=3000)
    verdict = builder.end(300).judged(judge)
    assert (verdict.verdict, verdict.measured["by_fault"][0]["effects"]) == (Validity.VALID, {"failed": 1})
    assert cluster(clients=("producer-0",), timeline=[]).end(9).judged(judge).verdict is Validity.UNKNOWN


def test_what_a_node_did_not_do_for_the_harness_makes_it_unknown_and_names_the_node() -> None:
    why = "broker-a did not answer `stop` within 30 s; it was killed"
    builder = worked().at(60).event("harness", "not_done", source="broker-a", value={"f": "stop", "why": why})
    verdict = check(builder.end(300))
    assert (verdict.verdict, verdict.findings[0].subject) == (Validity.UNKNOWN, "broker-a")
    assert why in verdict.why
