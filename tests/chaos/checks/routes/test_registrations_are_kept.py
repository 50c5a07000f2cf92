"""registrations_are_kept over hand-written histories: what was acknowledged stays, what is silent goes."""

import pytest

from nemesrv.chaos.checks.routes.registrations_are_kept import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HOLE, KILL, PAUSE, HistoryBuilder, cluster, judging

check = judging(judge)


def register(builder: HistoryBuilder, at_s: float, how: str = "ok", took_s: float = 0.01) -> HistoryBuilder:
    """broker-a has registered with ns-0, which took that long until it was acknowledged, or given up."""
    return builder.at(at_s + took_s).register("broker-a", how=how, took_s=took_s, version=1)


def story(*ticks_s: float) -> HistoryBuilder:
    """One NameServer, one broker, which is in the table from 1 s on; acknowledged at 1 s and at these times."""
    builder = cluster(name_servers=1, brokers=("broker-a",))
    for at_s in (0.99, *ticks_s):
        register(builder, at_s)
    return builder


def missing(builder: HistoryBuilder, from_s: float, to_s: float) -> HistoryBuilder:
    """ns-0's table lacks broker-a meanwhile."""
    return builder.at(from_s).route("ns-0", "orders").at(to_s).route("ns-0", "orders", "broker-a")


def test_a_broker_that_stays_is_valid_and_each_acknowledgement_is_counted() -> None:
    verdict = check(story(10, 40, 70).end(90))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 4, 0)
    assert verdict.measured["acknowledged"] == 4


def test_a_registration_that_is_acknowledged_and_forgotten_is_invalid() -> None:
    verdict = check(missing(story(10, 40, 70), 50, 60).end(90))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (example,) = verdict.examples
    assert (example.who, example.what, example.topic) == ("ns-0", "broker-a", "orders")
    assert (example.from_ms, example.to_ms, example.over_ms) == (50_000.0, 60_000.0, 10_000.0)


@pytest.mark.parametrize("again", [True, False])
def test_a_name_server_scans_no_sooner_than_after_its_last_pause(again: bool) -> None:
    told = story(10).at(12).fault(*HOLE)
    for number, (from_s, to_s) in enumerate([(20, 200), (200, 300)] if again else [(20, 200)]):
        pause = f"pause-{number}", "pause", "sigstop", "ns-0"
        told.at(from_s).fault(*pause, until_s=to_s)
    kept = [one.kind for one in check(told.at(301).route("ns-0", "orders").end(320)).findings if one.wrong]
    assert kept == ([] if again else ["must not hold a silent broker"])


@pytest.mark.parametrize(
    ("by_hand", "beats", "wrong"), [(True, False, 0), (True, True, 0), (False, False, 1), (False, True, 1)]
)
@pytest.mark.parametrize("sets_clock", [True, False])
def test_a_registration_by_hand_lasts_for_the_default_of_120_s(
    by_hand: bool, beats: bool, wrong: int, sets_clock: bool
) -> None:
    told = cluster(name_servers=1, brokers=("broker-a",), timers={"E_ms": 10_000}, profile="5.x")
    told.at(1).registers("ns-0", "broker-a")
    told.at(20).registers("ns-0", "broker-a")
    if not by_hand:
        register(told, 20)
    if beats:
        told.at(25).read("ns-0", "BROKER_HEARTBEAT", "broker-a")
    if sets_clock:
        told.at(80).event("harness", "clock", source="ns-0", fault_id="c", value={"step_ms": 1_000.0})
    kept = check(told.at(20).fault(*PAUSE).at(60).route("ns-0", "orders").end(90))
    assert [one.kind for one in kept.findings if one.wrong] == ["must not hold a silent broker"] * wrong


def test_a_broker_that_leaves_a_topics_route_though_its_channel_lives_is_invalid_whatever_its_link_does() -> None:
    def left(ended_s: float | None, by: str = "peer") -> Verdict:
        told = story(10).at(5).fault("f1", "reset", "toxiproxy.reset_peer", "broker-a", "ns-0")
        for at_s in (0.995, 10.005):
            told.at(at_s).read("ns-0", "REGISTER_BROKER", "broker-a", channel="1")
        if ended_s is not None:
            told.at(ended_s).event("ns-0", "channel_ended", f=by, op_id="1", value={"reason": "closed"})
        return check(told.at(50).route("ns-0", "orders").end(90))

    def wrong(verdict: Verdict) -> list[str]:
        return [one.kind for one in verdict.findings if one.wrong]

    assert wrong(left(50)) == wrong(left(50.04)) == []
    assert wrong(left(54)) == wrong(left(None)) == wrong(left(50, by="self")) == ["must hold an acknowledged broker"]
    assert wrong(left(46)) == ["must not hold a broker that left"]
    assert left(46).examples[0].against_bound == "no delay allowed: 4.0 s over"


@pytest.mark.parametrize("dropped_s", [115, None])
def test_a_registration_counts_by_the_wall_clock_of_the_last_one(dropped_s: float | None) -> None:
    """300 s back from 50 to 110 s: what registered at 80 s is 335 s old at the scan of 115 s, the one before 75 s."""
    told = cluster(name_servers=1, brokers=("broker-a",))
    for at_s in (0.99, 10, 40, 80):
        register(told, at_s).at(at_s + 0.005).registers("ns-0", "broker-a").route("ns-0", "orders", "broker-a")
    for at_s, step_ms in ((50, -300_000.0), (110, 300_000.0)):
        told.at(at_s).event("harness", "clock", source="ns-0", fault_id="c", value={"step_ms": step_ms})
    if dropped_s is not None:
        told.at(dropped_s).route("ns-0", "orders")
    wrong = [one.kind for one in check(told.end(180)).findings if one.wrong]
    assert wrong == ([] if dropped_s else ["must not hold a silent broker"])


def cut_off(until_s: int = 130) -> HistoryBuilder:
    """A black hole from 20 s on, in which each registration is given up."""
    builder = story(10).at(20).fault(*HOLE)
    for at_s in range(40, until_s + 1, 30):
        register(builder, at_s, how="info", took_s=6)
    return builder


def healed(back_s: float) -> HistoryBuilder:
    """A black hole from 20 to 175 s; the broker registers again at 180 s and is in the table at `back_s`."""
    builder = cut_off(160)
    builder.at(175).fault(*HOLE, end=True)
    register(register(builder, 180), 210)
    return builder.at(130.015).route("ns-0", "orders").at(back_s).route("ns-0", "orders", "broker-a")


def test_after_a_heal_the_acknowledgement_counts_and_not_only_the_window_of_the_heal() -> None:
    assert check(healed(back_s=180.005).end(230)).verdict is Validity.VALID
    verdict = check(healed(back_s=200).end(230))  # within R + C of the heal
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples[0].from_ms == 180_010.0


@pytest.mark.parametrize(
    ("gone_s", "verdict"),
    [(129.9, Validity.INVALID), (130.01, Validity.VALID), (130.1, Validity.INVALID), (139, Validity.INVALID)],
)
def test_silence_counts_from_the_last_registration_and_not_from_the_fault(gone_s: float, verdict: Validity) -> None:
    """Acknowledged at 10.01 s, silent from 20 s: gone min(E, I) after 10.01 s, though 20 + E + S were 150 s."""
    assert check(cut_off().at(gone_s).route("ns-0", "orders").end(170)).verdict is verdict


@pytest.mark.parametrize(
    ("gone_s", "ours", "apaches"),
    [
        (130.01, Validity.VALID, Validity.VALID),
        (134, Validity.INVALID, Validity.VALID),
        (135.1, Validity.INVALID, Validity.INVALID),
    ],
)
def test_the_scan_comes_first_for_apaches_5_x_brokers(gone_s: float, ours: Validity, apaches: Validity) -> None:
    """It asks its NameServer for its group every 5 s: gone by E + S after 10.01 s, at the latest."""
    for made_by, verdict in (("ours", ours), ("apache-5.3.3", apaches)):
        builder = cut_off().made_by(made_by, "broker-a").run_says(profile="5.x")
        assert check(builder.at(gone_s).route("ns-0", "orders").end(170)).verdict is verdict, made_by


def test_what_the_heal_lets_in_a_moment_before_it_is_recorded_is_no_silence_that_was_too_long() -> None:
    builder = cut_off(160)
    builder.at(130.01).route("ns-0", "orders").at(174.99).route("ns-0", "orders", "broker-a")
    assert check(builder.at(175).fault(*HOLE, end=True).end(176)).verdict is Validity.VALID


def test_a_registration_on_its_way_into_the_fault_may_have_arrived() -> None:
    builder = register(story(), 19.9, how="info", took_s=6).at(20).fault(*HOLE)
    assert check(builder.at(140.0).route("ns-0", "orders").end(170)).verdict is Validity.VALID


def test_a_broker_that_gave_a_registration_up_has_closed_its_channel() -> None:
    builder = register(story(10), 40, how="info", took_s=6)
    assert check(missing(builder, 46, 70).end(75)).verdict is Validity.VALID
    assert check(missing(register(story(10), 40, how="info", took_s=6), 42, 46).end(75)).verdict is Validity.INVALID


def test_a_broker_that_is_killed_or_stops_is_owed_nothing() -> None:
    builder = story(10).at(30).fault(*KILL)
    assert check(builder.at(30.01).route("ns-0", "orders").end(75)).verdict is Validity.VALID


def test_a_machine_that_stood_still_is_unknown() -> None:
    verdict = check(missing(story(10, 40, 70), 50, 60).end(90, lag_ms=4000))
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(("asks", "kept"), [(1, True), (2, False)])
def test_a_question_keeps_a_broker_only_if_its_version_is_unchanged(asks: int, kept: bool) -> None:
    told = story()
    told.at(0.995).registers("ns-0", "broker-a")
    told.at(60).read("ns-0", "QUERY_DATA_VERSION", "broker-a", value={"version": [0, 0, asks]})
    verdict = check(told.at(125).route("ns-0", "orders").end(140))
    assert [one.kind for one in verdict.findings if one.wrong] == (["must hold an acknowledged broker"] if kept else [])
