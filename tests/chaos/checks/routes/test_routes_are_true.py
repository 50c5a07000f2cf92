"""routes_are_true over hand-written histories: the anomaly planted, the clean twin, the late machine, the empty one."""

from typing import Any

import pytest

from nemesrv.chaos.checks.cause import cause_of
from nemesrv.chaos.checks.routes.routes_are_true import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HOLE, KILL, PAUSE, HistoryBuilder, cluster, example, judging, valid

check = judging(judge)


def crash(dropped_at_s: float | None, lag_ms: float | None = 1.0) -> HistoryBuilder:
    """broker-a is killed at 100 s; ns-0 drops it at once, ns-1 at `dropped_at_s`."""
    builder = cluster().at(100).fault(*KILL).at(100.01).route("ns-0", "orders", "broker-b")
    if dropped_at_s is not None:
        builder.at(dropped_at_s).route("ns-1", "orders", "broker-b")
    return builder.end(160, lag_ms)


def test_a_killed_broker_that_leaves_every_table_at_once_is_valid() -> None:
    verdict = check(crash(dropped_at_s=100.03))
    after_kill = {"fault_id": "f1", "phase": "start", "broker_name": "broker-a", "bound_ms": 0}
    assert verdict == Verdict(
        name="routes_are_true",
        verdict=Validity.VALID,
        examined=6,  # both brokers back after the start at both NameServers, and broker-a gone from both
        violations=0,
        measured={
            "max_ms": 30.0,
            "drops": [
                {"name_server": "ns-1", "after_ms": 30.0} | after_kill,
                {"name_server": "ns-0", "after_ms": 10.0} | after_kill,
            ],
            "returns": [],
        },
        allowed={
            "bound_ms": 0,
            "formula": "RTT + event thread",
            "tolerance_ms": 51.0,
            "row": "process crash, kernel closes its connections",
        },
    )


def test_a_killed_broker_that_stays_in_a_table_is_invalid() -> None:
    verdict = check(crash(dropped_at_s=None))
    assert (verdict.verdict, verdict.violations, verdict.examined) == (Validity.INVALID, 1, 6)
    (held,) = verdict.examples
    about = {"topic": "orders", "after": "f1 start", "kind": "must not hold"}
    assert held == example("ns-1", "broker-a", from_s=100, to_s=160, due_s=100, took_s=60, allowed_s=0, **about)
    assert "no delay allowed: 60.0 s over" in verdict.why


def test_a_drop_is_late_by_no_more_than_timers_fired_late() -> None:
    assert check(crash(dropped_at_s=104, lag_ms=5000)).verdict is Validity.VALID
    assert check(crash(dropped_at_s=102, lag_ms=2500)).verdict is Validity.VALID
    assert check(crash(dropped_at_s=106, lag_ms=5000)).verdict is Validity.INVALID


def test_where_nobody_measured_lateness_a_late_drop_is_unknown() -> None:
    verdict = check(crash(dropped_at_s=104, lag_ms=None))
    assert (verdict.verdict, "nobody measured" in verdict.why) == (Validity.UNKNOWN, True)


def partition(*, dropped_at_s: float, back_at_s: float, healed_at_s: float = 255, end_s: float = 330) -> HistoryBuilder:
    """broker-a is black-holed from ns-0 at 100 s."""
    builder = cluster().at(100).fault(*HOLE)
    builder.at(dropped_at_s).route("ns-0", "orders", "broker-b")
    builder.at(healed_at_s).fault(*HOLE, end=True)
    return builder.at(back_at_s).route("ns-0", "orders", "broker-a", "broker-b").end(end_s)


@pytest.mark.parametrize(
    ("dropped_at_s", "back_at_s", "expected"),
    [
        (195, 270, Validity.VALID),
        (229.9, 287.9, Validity.VALID),
        (150, 270, Validity.INVALID),  # 50 s: no silent broker is dropped before E - R = 90 s
        (240, 270, Validity.INVALID),  # 140 s: later than E + S = 130 s
        (195, 295, Validity.INVALID),  # 40 s after the heal: later than R + C = 33 s
    ],
)
def test_a_partition_has_a_window_to_drop_and_return(dropped_at_s: float, back_at_s: float, expected: Validity) -> None:
    verdict = check(partition(dropped_at_s=dropped_at_s, back_at_s=back_at_s))
    assert verdict.verdict is expected, verdict
    if expected is Validity.VALID:
        (drop,), (back,) = verdict.measured["drops"], verdict.measured["returns"]
        assert (drop["name_server"], drop["after_ms"]) == ("ns-0", pytest.approx(dropped_at_s * 1000 - 100_000))
        assert (back["name_server"], back["after_ms"]) == ("ns-0", pytest.approx(back_at_s * 1000 - 255_000))
        assert (drop["phase"], back["phase"]) == ("start", "end")
        assert "s after the end of " in judge.tells(verdict.measured)


def test_a_broker_that_registers_as_its_link_is_cut_may_be_dropped_when_the_registration_runs_out() -> None:
    """Nothing is behind the request that was read, so the close comes through (random seed 1679137)."""
    builder = partition(dropped_at_s=106, back_at_s=270)
    assert check(builder).verdict is Validity.INVALID
    builder.at(106).register("broker-a", how="info", took_s=6, topics=1, version=1)
    assert check(builder).verdict is Validity.VALID


@pytest.mark.parametrize(
    ("dropped_at_s", "back_at_s", "measured", "ends_ms", "over_ms"),
    [
        (150, 270, {"min_ms": 50_000.0}, (90_000.0, 130_000.0), 40_000.0),
        (240, 270, {"max_ms": 140_000.0}, (90_000.0, 130_000.0), 10_000.0),
        (195, 295, {"max_ms": 40_000.0}, (None, 33_000.0), 7_000.0),
    ],
)
def test_both_ends_of_the_window_stand_in_the_verdict_and_what_was_measured_is_over_one_of_them(
    dropped_at_s: float,
    back_at_s: float,
    measured: dict[str, float],
    ends_ms: tuple[float | None, float],
    over_ms: float,
) -> None:
    verdict = check(partition(dropped_at_s=dropped_at_s, back_at_s=back_at_s))
    assert measured.items() <= verdict.measured.items()
    assert (verdict.allowed.get("earliest_ms"), verdict.allowed["bound_ms"]) == ends_ms
    (example,) = verdict.examples
    assert (example.earliest_ms, example.latest_ms, example.over_ms) == (*ends_ms, over_ms)
    assert (example.measured_ms,) == tuple(measured.values())
    (document,) = verdict.to_json()["examples"]
    assert (document.get("earliest_ms"), document["latest_ms"]) == ends_ms


def test_a_broker_that_is_away_for_a_moment_is_over_by_that_moment_however_long_it_had_been_there() -> None:
    builder = cluster().at(100).route("ns-0", "orders", "broker-b")
    verdict = check(builder.at(100.0008).route("ns-0", "orders", "broker-a", "broker-b").end(200))
    (example,) = verdict.examples
    assert (verdict.verdict, example.what, example.latest_ms) == (Validity.INVALID, "broker-a", 0.0)
    assert example.over_ms == example.measured_ms == pytest.approx(0.8)


def test_what_the_link_held_may_arrive_just_before_the_heal_is_recorded() -> None:
    """The broker's stale registration lands 20 ms before the heal's row; the drop was measured long before."""
    builder = cluster().at(100).fault(*HOLE).at(195).route("ns-0", "orders", "broker-b")
    builder.at(254.98).route("ns-0", "orders", "broker-a", "broker-b")
    builder.at(255).fault(*HOLE, end=True).at(255.01).route("ns-0", "orders", "broker-b")
    verdict = check(builder.at(270).route("ns-0", "orders", "broker-a", "broker-b").end(330))
    assert verdict.verdict is Validity.VALID, verdict
    assert [drop["after_ms"] for drop in verdict.measured["drops"]] == [95_000.0]


def test_a_broker_that_is_still_missing_at_the_end_with_time_left_is_not_decided() -> None:
    builder = cluster().at(100).fault(*HOLE).at(195).route("ns-0", "orders", "broker-b")
    verdict = check(builder.at(255).fault(*HOLE, end=True).end(265))
    assert verdict.verdict is Validity.UNKNOWN, verdict
    assert verdict.why == (
        "ns-0 did not list broker-a (topic orders) when the history ended, 10.0 s after f1 end; 33.0 s are allowed: "
        "`settle_s: 34` decides it"
    )


def test_a_short_partition_that_drops_the_broker_at_its_heal_is_forgiven_until_the_next_tick() -> None:
    verdict = check(partition(healed_at_s=120, dropped_at_s=120.1, back_at_s=140, end_s=200))
    assert verdict.verdict is Validity.VALID, verdict


def test_a_broker_missing_where_the_machine_stood_still_as_long_as_a_registration_waits_is_unknown() -> None:
    builder = cluster().at(60).route("ns-1", "orders", "broker-b").at(75)
    builder.route("ns-1", "orders", "broker-a", "broker-b").at(58).lag(3_000, "ns-1", until_s=61)
    verdict = check(builder.end(120))
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)


def test_one_stall_explains_no_more_than_one_missed_registration() -> None:
    """R + B + C = 39 s after it the broker is back; who stays away for 80 s must have met another."""
    builder = (
        cluster().at(60).route("ns-1", "orders", "broker-b").at(140).route("ns-1", "orders", "broker-a", "broker-b")
    )
    builder.at(58).lag(3_000, "ns-1", until_s=61)
    assert check(builder.end(180)).verdict is Validity.INVALID
    builder.at(101).lag(3_000, "ns-1", until_s=103)
    assert check(builder).verdict is Validity.UNKNOWN


def test_a_topic_that_one_name_server_never_got_is_invalid_after_a_tick_and_its_time_out() -> None:
    def missing(end_s: float) -> Verdict:
        builder = cluster().at(60).topic("broker-a", "payments").at(60.1).route("ns-0", "payments", "broker-a")
        return check(builder.end(end_s))

    assert missing(90).verdict is Validity.VALID  # 30 s: not yet due, R + B = 36 s
    verdict = missing(120)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert [(e.who, e.topic) for e in verdict.examples] == [("ns-1", "payments")]


def restart(back_at_s: float | None) -> HistoryBuilder:
    """ns-1 is killed at 100 s, started again at 130 s and refilled at `back_at_s`."""
    kill: tuple[Any, ...] = ("f1", "kill", "sigkill", "ns-1")
    builder = cluster().at(100).fault(*kill, until_s=130).restarted("ns-1")
    if back_at_s is not None:
        builder.at(back_at_s).route("ns-1", "orders", "broker-a", "broker-b")
    return builder.end(220)


def test_a_name_server_starts_again_with_an_empty_table_and_is_refilled_within_r_plus_c() -> None:
    verdict = check(restart(back_at_s=160))
    assert verdict.verdict is Validity.VALID, verdict
    assert [(r["fault_id"], r["name_server"], r["after_ms"]) for r in verdict.measured["returns"]] == [
        ("f1", "ns-1", 30_000.0),
        ("f1", "ns-1", 30_000.0),
    ]
    assert check(restart(back_at_s=170)).verdict is Validity.INVALID
    assert check(restart(back_at_s=None)).verdict is Validity.INVALID


def test_a_paused_broker_is_dropped_by_expiry_and_its_own_lateness_does_not_widen_the_window() -> None:
    def builder(dropped_at_s: float) -> HistoryBuilder:
        told = cluster().at(100).fault(*PAUSE)
        for name_server in ("ns-0", "ns-1"):
            told.at(dropped_at_s).route(name_server, "orders", "broker-b")
        told.at(300).fault(*PAUSE, end=True)
        for name_server in ("ns-0", "ns-1"):
            told.at(310).route(name_server, "orders", "broker-a", "broker-b")
        told.at(99).lag(200_000, "broker-a", until_s=300.2)
        return told.end(400)

    assert check(builder(220)).verdict is Validity.VALID
    assert check(builder(250)).verdict is Validity.INVALID


@pytest.mark.parametrize(("made_s", "expected"), [(50, Validity.INVALID), (150, Validity.VALID), (110, Validity.VALID)])
def test_a_topic_made_while_its_broker_was_lost_need_not_be_there(made_s: float, expected: Validity) -> None:
    """What was there at the loss must stay until the broker may be dropped."""
    builder = cluster().at(made_s).topic("broker-a", "payments").at(made_s + 0.1).route("ns-1", "payments", "broker-a")
    for link in (("broker-a", "ns-0"), ("broker-b", "ns-0")):
        builder.at(100).black_hole(*link)
    assert check(builder.end(180)).verdict is expected


@pytest.mark.parametrize("registered", [True, False])
def test_of_a_table_of_no_list_of_a_broker_the_broker_is_guilty_where_it_registered_there(registered: bool) -> None:
    builder = cluster(2, ("broker-a",), nodes={"broker-a": {"name_servers": ["ns-1"]}}).at(20)
    if registered:
        builder.registers("ns-0", "broker-a")
    verdict = check(builder.route("ns-0", "orders", "broker-a").end(200))
    cause = cause_of([verdict])
    assert cause is not None
    assert cause.node == ("broker-a" if registered else "ns-0")
    assert ("which is not in broker-a's namesrvAddr" in cause.sentence) is registered


@pytest.mark.parametrize(
    ("read_s", "topics", "guilty"),
    [(None, 2, "broker-a"), (150, 2, "ns-0"), (159.9999, 2, "broker-a"), (150, 1, "broker-a")],
)
def test_a_broker_is_guilty_unless_its_registration_was_read(read_s: float | None, topics: int, guilty: str) -> None:
    told = cluster(name_servers=1, brokers=("broker-a",)).at(50).route("ns-0", "orders")
    if read_s is not None:
        told.at(read_s).registers("ns-0", "broker-a", {key: [4, 4, 6, 0] for key in ("orders", "more")[:topics]})
    told.at(160).route("ns-0", "orders", "broker-a")
    kept = valid("registrations_are_kept", examined=1)
    cause = cause_of([check(told.end(200)), kept])
    assert cause is not None
    assert cause.node == guilty
