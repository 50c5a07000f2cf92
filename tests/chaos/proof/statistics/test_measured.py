"""What is shown of two sides beside each other: windows with their intervals, and routes at the end."""

from __future__ import annotations

import math

import pytest

from nemesrv.chaos.proof.statistics.measured import routes_of, side_by_side, topics_that_differ, windows_of
from tests.chaos.builder import HistoryBuilder, cluster, route_of


def registered(builder: HistoryBuilder, at_s: float, code: int = 0) -> HistoryBuilder:
    return builder.at(at_s).event(
        "ns-0", "registration", broker_name="broker-a", broker_id=0, address="127.0.0.1:10911", code=code
    )


def test_a_period_is_from_one_accepted_registration_to_the_next() -> None:
    builder = registered(registered(registered(cluster(), 10), 40), 50, code=1)
    registered(builder, 70.5)
    assert windows_of(builder.rows)["registration period"] == (30_000, 30_500)


def test_a_drop_comes_so_long_after_the_last_registration() -> None:
    builder = registered(registered(cluster(), 10), 40)
    builder.at(160).event("ns-0", "broker_dropped", broker_name="broker-a", broker_id=0, address="127.0.0.1:10911")
    registered(builder, 200)
    found = windows_of(builder.rows)
    assert found["silence before a drop"] == (120_000,)
    assert found["registration period"] == (30_000,)  # what came after the drop is no period


def test_routes_at_the_end_are_told_without_ports_and_after_the_last_start() -> None:
    here, there = cluster(), cluster()
    here.at(5).route("ns-0", "orders", "broker-a").at(6).route("ns-1", "orders", "broker-a")
    moved = route_of("broker-a")
    assert moved is not None
    moved["brokers"]["broker-a"]["0"] = "127.0.0.1:20911"
    there.at(5).event("ns-0", "route", topic="orders", value=moved)
    there.at(6).event("ns-1", "route", topic="orders", value=moved)
    there.at(7).route("ns-0", "gone", "broker-a").at(8).event("ns-0", "route", topic="gone", value=None)
    routes = [routes_of(each.rows, ["ns-0", "ns-1"]) for each in (here, there)]
    assert topics_that_differ(routes[:1], routes[1:]) == {}
    there.at(9).route("ns-1", "orders", "broker-a", "broker-b")
    assert topics_that_differ(routes[:1], [routes_of(there.rows, ["ns-0", "ns-1"])]) == {"orders": (1, 2)}


def test_the_median_of_each_run_counts_once_and_the_interval_holds_what_was_measured() -> None:
    slow = [{"drop": [100.0, 120.0 + n, 400.0]} for n in range(6)]
    fast = [{"drop": [20.0 + n]} for n in range(6)]
    (shown,) = side_by_side(slow, fast, by_run=True, alpha=0.05, seed=1)
    assert (shown.n, shown.median) == ((6, 6), (122.5, 22.5))
    assert shown.interval[0] is not None
    assert 120 <= shown.interval[0][0] <= 122.5 <= shown.interval[0][1] <= 125
    assert shown.difference is not None
    assert shown.difference[0] == pytest.approx(-100)
    assert -106 <= shown.difference[1] <= -100 <= shown.difference[2] <= -94


def test_of_one_value_a_side_no_interval_is_claimed() -> None:
    (shown,) = side_by_side([{"drop": [100.0]}], [{"drop": [20.0]}], by_run=True, alpha=0.05, seed=1)
    assert shown.interval == (None, None)
    assert shown.difference == (-80.0, -math.inf, math.inf)
    (only,) = side_by_side([{"drop": [100.0]}], [{}], by_run=True, alpha=0.05, seed=1)
    assert (only.median, only.difference) == ((100.0, None), None)
