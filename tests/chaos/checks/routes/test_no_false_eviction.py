"""no_false_eviction over hand-written histories."""

import pytest

from nemesrv.chaos.checks.routes.no_false_eviction import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HOLE, KILL, HistoryBuilder, address_of, cluster, example, judging, valid

TWO_TOPICS = {"orders": [4, 4, 6, 0], "more": [4, 4, 6, 0]}

check = judging(judge)


def registered(builder: HistoryBuilder, *at_s: float) -> HistoryBuilder:
    for moment_s in at_s:
        builder.at(moment_s).registration("ns-0", "broker-a")
    return builder


def peace() -> HistoryBuilder:
    return registered(cluster(), 1, 31, 61, 91, 121)


def silence(dropped_s: float, reason: str = "expired") -> HistoryBuilder:
    """broker-a's link to ns-0 is black from 100 s to 300 s; its last registration there was at 91 s."""
    builder = registered(cluster(), 1, 31, 61, 91).at(100).fault(*HOLE)
    builder.at(dropped_s).drops("ns-0", "broker-a", reason)
    return registered(builder.at(300).fault(*HOLE, end=True), 310)


def test_a_live_broker_that_nobody_drops_is_valid() -> None:
    assert check(peace().end(150)) == valid(
        "no_false_eviction",
        examined=1,
        measured={"max_ms": None, "drops": {}, "of_live_brokers": 0, "shortest_silence_ms": None},
        allowed={
            "bound_ms": 0.0,
            "formula": "never",
            "tolerance_ms": 0.0,
            "row": "a broker that registered stays until its channel ends, or it was silent for long enough",
        },
    )


@pytest.mark.parametrize("reason", ["closed", "unregistered"])
def test_a_live_reachable_broker_that_is_dropped_is_invalid_and_named_with_the_reason(reason: str) -> None:
    verdict = check(peace().at(130).drops("ns-0", "broker-a", reason).end(160))
    assert verdict.verdict is Validity.INVALID
    (found,) = (e for e in verdict.examples if e.more["kind"] == "must not be dropped" and e.over_ms)
    of = {"from_s": 130, "to_s": 160, "due_s": 121, "took_s": 30, "allowed_s": 0, "kind": "must not be dropped"}
    assert found == example("ns-0", "broker-a", **of, reason=reason, registered_before_ms=9_000.0)
    assert verdict.measured["drops"] == {reason: 1}


def test_an_address_registered_by_hand_is_not_the_broker_of_its_id() -> None:
    """Random seed 1805737: of a slave that was made master, and so has another id."""
    strange, own = "10.9.9.9:10911", address_of("broker-a/1")
    builder = cluster(brokers=("broker-a", "broker-a/1")).at(50).act("switch", "broker-a/1")
    builder.at(51).act("register", "ns-0", broker_name="broker-a", broker_id=1, address=strange)
    for at_s in (60, 90, 120):
        builder.at(at_s).registration("ns-0", "broker-a", address=own)
        builder.registration("ns-0", "broker-a/1", address=strange)
    dropped = builder.at(130).drops("ns-0", "broker-a/1", "closed", address=strange).end(160)
    assert check(dropped).measured["drops"] == {}


def test_every_drop_is_told_with_its_reason_and_when_the_broker_was_back_whether_a_limit_asks_for_it_or_not() -> None:
    first = {"name_server": "ns-0", "broker": "broker-a", "at_ms": 215_000.0, "reason": "expired", "back_ms": 310_000.0}
    again = {**first, "at_ms": 320_000.0, "reason": "closed", "back_ms": None}
    verdict = check(silence(215).at(320).drops("ns-0", "broker-a", "closed").end(330))
    assert verdict.measured["dropped"] == [first, again]


@pytest.mark.parametrize("reason", ["expired", "idle"])
def test_a_live_broker_that_is_dropped_for_silence_is_invalid_by_how_much_too_soon(reason: str) -> None:
    verdict = check(peace().at(130).drops("ns-0", "broker-a", reason).end(160))
    (example,) = (e for e in verdict.examples if e.over_ms)
    assert (example.more["kind"], example.measured_ms, example.over_ms) == ("dropped too soon", 9_000.0, 111_000.0)


def test_a_drop_right_at_a_crash_belongs_to_the_crash() -> None:
    builder = peace().at(139.98).drops("ns-0", "broker-a", "closed").at(140).fault(*KILL)
    assert check(builder.end(200)).verdict is Validity.VALID


def test_a_silent_broker_may_be_dropped_from_e_after_its_last_registration_on() -> None:
    verdict = check(silence(211.1).end(400))
    assert verdict.verdict is Validity.VALID, verdict
    assert verdict.measured["shortest_silence_ms"] == 120_100.0
    assert verdict.examined == 3  # from its start until the drop may come, from its return on, and the drop


@pytest.mark.parametrize(("reason", "bound"), [("expired", "not before E"), ("idle", "not before I")])
def test_a_silent_broker_that_is_dropped_too_soon_is_invalid(reason: str, bound: str) -> None:
    """At 195 s the fault is 95 s old, past E - R = 90 s, but the last registration came 104 s before."""
    verdict = check(silence(195, reason).end(400))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples[0].over_ms == 16_000.0
    assert (verdict.allowed["formula"], verdict.allowed["earliest_ms"]) == (bound, 120_000.0)
    assert (verdict.measured["min_ms"], verdict.examples[0].measured_ms) == (104_000.0, 104_000.0)
    assert verdict.examples[0].too_early


def test_a_slave_that_goes_is_no_master_that_is_dropped() -> None:
    assert check(peace().at(130).drops("ns-0", "broker-a/1", "closed").end(160)).verdict is Validity.VALID


@pytest.mark.parametrize(("at_s", "expected"), [(130, Validity.VALID), (70, Validity.INVALID)])
def test_a_machine_that_stood_still_may_have_closed_the_channel(at_s: float, expected: Validity) -> None:
    builder = peace().at(at_s).drops("ns-0", "broker-a", "closed").at(128).lag(3_000, "broker-a", until_s=131)
    assert check(builder.end(160)).verdict is expected


@pytest.mark.parametrize(("asks", "verdict"), [(True, Validity.VALID), (False, Validity.INVALID)])
def test_a_question_counts_by_a_clock_that_was_set_back(*, asks: bool, verdict: Validity) -> None:
    """300 s back from 50 to 110 s: a broker that asked for its version at 80 s is 335 s old at the scan of 115 s."""
    told = cluster(name_servers=1, brokers=("broker-a",), profile="5.x")
    registered(told, 1, 40).registers("ns-0", "broker-a", TWO_TOPICS)
    for at_s, step_ms in ((50, -300_000.0), (110, 300_000.0)):
        told.at(at_s).event("harness", "clock", source="ns-0", fault_id="c", value={"step_ms": step_ms})
    if asks:
        told.at(80).read("ns-0", "QUERY_DATA_VERSION", "broker-a", value={"version": [0, 0, 1]})
    assert check(told.at(115).drops("ns-0", "broker-a", "expired").end(130)).verdict is verdict


@pytest.mark.parametrize(("channel", "verdict"), [("2", Validity.VALID), ("1", Validity.INVALID)])
def test_another_channel_does_not_keep_that_of_the_registration(channel: str, verdict: Validity) -> None:
    """Nothing is read on the channel of the registration of 1 s for 120 s; heartbeats come to the end."""
    told = cluster(name_servers=1, brokers=("broker-a",), profile="5.x")
    registered(told, 1).registers("ns-0", "broker-a", TWO_TOPICS, channel="1").register("broker-a", version=1)
    for at_s in (50, 80, 110):
        told.at(at_s).read("ns-0", "BROKER_HEARTBEAT", "broker-a", channel=channel)
    assert check(told.at(121).drops("ns-0", "broker-a", "idle").end(130)).verdict is verdict


@pytest.mark.parametrize(("where", "verdict"), [("10.8.8.8:10911", Validity.VALID), ("", Validity.INVALID)])
def test_a_broker_that_moved_is_not_taken_out_by_its_old_address(where: str, verdict: Validity) -> None:
    told = cluster(name_servers=1, brokers=("broker-a",), profile="5.x")
    registered(told, 1).registers("ns-0", "broker-a", TWO_TOPICS, channel="1").register("broker-a", version=1)
    told.at(20).moved("broker-a", "10.8.8.8:10911")
    registered(told, 21).registers("ns-0", "broker-a", TWO_TOPICS, channel="2", address="10.8.8.8:10911")
    told.register("broker-a", version=1)
    told.at(50).read("ns-0", "UNREGISTER_BROKER", "broker-a", channel="1", address=where or address_of("broker-a"))
    told = told if where else told.at(50).drops("ns-0", "broker-a", "unregistered", address="10.8.8.8:10911")
    assert check(told.end(100)).verdict is verdict
