"""routes_converge over hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.checks.routes.routes_converge import judge
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HOLE, HistoryBuilder, cluster, judging, route_of


def converged(*rows: tuple[str, float, float]) -> list[dict[str, Any]]:
    return [{"change": change, "after_ms": after_ms, "bound_ms": bound_ms} for change, after_ms, bound_ms in rows]


check = judging(judge)


def partition(
    *, others_differ_at_s: float | None = None, back_at_s: float | None = 270, lag_ms: float = 1.0
) -> HistoryBuilder:
    """broker-a is black-holed from ns-0 at 100 s, dropped there at 195 s, healed at 255 s, back at `back_at_s`."""
    builder = cluster(name_servers=3).at(100).fault(*HOLE)
    builder.at(195).route("ns-0", "orders", "broker-b")
    if others_differ_at_s is not None:
        builder.at(others_differ_at_s).route("ns-2", "orders", "broker-b")
    builder.at(255).fault(*HOLE, end=True)
    if back_at_s is not None:
        builder.at(back_at_s).route("ns-0", "orders", "broker-a", "broker-b")
    if others_differ_at_s is not None:
        builder.at(265).route("ns-2", "orders", "broker-a", "broker-b")
    return builder.end(330, lag_ms)


def test_name_servers_that_the_same_brokers_reach_agree_before_during_and_after_a_partition() -> None:
    assert check(partition()) == Verdict(
        name="routes_converge",
        verdict=Validity.VALID,
        examined=3,  # all three before; ns-1 and ns-2 during; all three again after
        measured={"max_ms": 15_000.0, "converged": converged(("f1 start", 0.0, 0.0), ("f1 end", 15_000.0, 33_000.0))},
        allowed={
            "bound_ms": 33_000,
            "formula": "R + C",
            "tolerance_ms": 52.0,
            "row": "after the end of a fault, or a restart, a broker registers at its next timer",
        },
    )


def test_a_name_server_that_differs_from_its_equals_is_invalid() -> None:
    verdict = check(partition(others_differ_at_s=180))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 3, 1)
    (example,) = verdict.examples
    assert (example.topic, example.more["name_servers"]) == ("orders", ["ns-1", "ns-2"])
    assert (example.from_ms, example.to_ms) == (180_000.0, 255_000.0)
    assert [row["after_ms"] for row in verdict.measured["converged"]] == [None, 15_000.0]


def test_of_three_the_name_server_that_differs_from_both_others_is_named_though_it_is_the_first() -> None:
    told = cluster(name_servers=3).at(60).route("ns-0", "orders", "broker-b").end(330)
    (example,) = check(told).examples
    assert (example.who, example.what) == ("ns-0", "ns-1")


def test_a_name_server_whose_log_nobody_read_is_compared_with_no_other() -> None:
    told = partition()
    told.rows = [row for row in told.rows if row["node"] != "ns-2"]
    verdict = check(told.event("harness", "rows_missing", source="ns-2", value={"says": "its log is missing"}))
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 2)  # ns-0 and ns-1, before and after


@pytest.mark.parametrize(("has_it", "expected"), [("broker-a", Validity.INVALID), ("broker-a/1", Validity.VALID)])
def test_a_topic_that_its_master_lacks_may_be_where_its_slave_was_heard(has_it: str, expected: Validity) -> None:
    builder = cluster(brokers=("broker-a", "broker-a/1", "broker-b"))
    for broker in (has_it, "broker-b"):  # of another master it is no matter
        builder.topic(broker, "%RETRY%group")
    builder.at(60).route("ns-0", "%RETRY%group", "broker-a", "broker-b").route("ns-1", "%RETRY%group", "broker-b")
    assert check(builder.end(330)).verdict is expected


@pytest.mark.parametrize(("second_at_s", "expected"), [(130, Validity.VALID), (140, Validity.INVALID)])
def test_a_topic_of_a_slave_is_everywhere_a_window_after_its_master(second_at_s: float, expected: Validity) -> None:
    builder = cluster(brokers=("broker-a", "broker-a/1")).topic("broker-a/1", "%RETRY%group")
    builder.at(50).route("ns-0", "%RETRY%group", "broker-a").at(100).topic("broker-a", "%RETRY%group")
    builder.at(second_at_s).route("ns-1", "%RETRY%group", "broker-a")
    assert check(builder.end(330)).verdict is expected


@pytest.mark.parametrize(("is_deleted", "expected"), [(False, Validity.INVALID), (True, Validity.VALID)])
def test_a_deleted_topic_may_stay_where_it_was_heard_of(is_deleted: bool, expected: Validity) -> None:
    builder = cluster(brokers=("broker-a",)).topic("broker-a", "by-hand")
    if is_deleted:
        builder.at(50).event("broker-a", "topic", topic="by-hand")
    assert check(builder.at(60).route("ns-0", "by-hand", "broker-a").end(330)).verdict is expected


def test_one_that_never_takes_the_broker_back_is_invalid() -> None:
    verdict = check(partition(back_at_s=None))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.measured["converged"][-1]["after_ms"] is None


def test_a_return_is_late_by_no_more_than_two_timers_fired_late() -> None:
    assert check(partition(back_at_s=292, lag_ms=2500)).verdict is Validity.VALID  # 4 s over; lateness 5 s
    assert check(partition(back_at_s=290, lag_ms=2500)).verdict is Validity.VALID
    assert check(partition(back_at_s=299, lag_ms=2500)).verdict is Validity.INVALID


def test_a_return_missed_on_a_machine_so_late_that_registrations_time_out_is_unknown() -> None:
    assert check(partition(back_at_s=299, lag_ms=4000)).verdict is Validity.UNKNOWN  # 2 · 4 s is beyond B


def test_a_segment_shorter_than_its_window_judges_nothing() -> None:
    builder = cluster().at(5).route("ns-0", "orders", "broker-b")
    verdict = check(builder.end(30))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_the_order_of_keys_in_a_route_is_no_difference_and_its_queues_are_one() -> None:
    route = route_of("broker-a", "broker-b")
    turned = {"queues": dict(reversed(route["queues"].items())), "brokers": dict(reversed(route["brokers"].items()))}
    builder = cluster().at(50).event("ns-1", "route", topic="orders", value=turned)
    assert check(builder.end(90)).verdict is Validity.VALID
    wiped = {**route, "queues": {**route["queues"], "broker-a": [4, 4, 4, 0]}}
    builder = cluster().at(50).event("ns-1", "route", topic="orders", value=wiped)
    assert check(builder.end(90)).verdict is Validity.INVALID


def test_a_write_permission_that_somebody_had_wiped_at_a_name_server_is_no_difference_there() -> None:
    route = route_of("broker-a", "broker-b")
    wiped = {**route, "queues": {**route["queues"], "broker-a": [4, 4, 4, 0]}}

    def verdict_of(told: str, broker: str, value: object) -> Validity:
        builder = cluster(name_servers=3).at(50)
        builder.event(told, "write_perm", broker_name=broker, value={"wiped": 1})
        return check(builder.event("ns-1", "route", topic="orders", value=value).end(90)).verdict

    assert verdict_of("ns-1", "broker-a", wiped) is Validity.VALID
    assert verdict_of("ns-1", "broker-b", wiped) is Validity.INVALID
    assert verdict_of("ns-2", "broker-a", wiped) is Validity.INVALID


def test_a_new_topic_has_a_tick_and_a_time_out_to_reach_the_last_name_server() -> None:
    def builder(second_at_s: float) -> HistoryBuilder:
        told = cluster().at(60).topic("broker-a", "payments").at(60.1).route("ns-0", "payments", "broker-a")
        return told.at(second_at_s).route("ns-1", "payments", "broker-a").end(150)

    right, late = check(builder(second_at_s=90)), check(builder(second_at_s=100))
    assert (right.verdict, late.verdict) == (Validity.VALID, Validity.INVALID)
    # Counted from the topic's own change, and beside its own bound: not 90 s beside the 33 s of the start.
    assert (right.measured["max_ms"], right.allowed["bound_ms"], right.allowed["formula"]) == (30_000, 36_000, "R + B")
    assert (late.measured["max_ms"], late.allowed["bound_ms"]) == (40_000, 36_000)


def test_a_killed_broker_leaves_all_tables_at_once_and_a_dead_name_server_is_not_asked() -> None:
    builder = cluster(name_servers=3).at(80).fault("f1", "kill", "sigkill", "ns-2")
    builder.at(100).fault("f2", "kill", "sigkill", "broker-a").at(100.02)
    builder.route("ns-0", "orders", "broker-b").route("ns-1", "orders", "broker-b")
    verdict = check(builder.end(150))
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 3)
    assert verdict.measured["converged"] == converged(("f1 start", 0.0, 0.0), ("f2 start", 0.0, 0.0))
