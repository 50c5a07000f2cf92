"""The window oracle over small worlds: who must, may and must not, from when until when. Without Spark."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby, pairwise

from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.reports.html.rule_stretches import Interval, RuleArea, RuleKind, intervals
from tests.chaos.builder import HistoryBuilder, cluster

LINK = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0")
KILL = ("f1", "kill", "sigkill", "broker-a")
CLIENTS = ("producer-0", "consumer-0")

Told = list[tuple[str, float, float]]


def ruled(builder: HistoryBuilder, kind: RuleArea, subject: str, object_: str) -> Told:
    """The intervals of one subject and object as (rule, from s, to s)."""
    world = World.of_rows(builder.rows)
    found = (i for i in intervals(world) if (i.kind, i.subject, i.object) == (kind, subject, object_))
    return [(str(i.rule), i.from_ms / 1000, i.to_ms / 1000) for i in found]


def crash() -> HistoryBuilder:
    builder = cluster(clients=CLIENTS).at(100).fault(*KILL).at(190).fault(*KILL, end=True).at(191)
    return builder.restarted("broker-a").end(400)


def partition() -> HistoryBuilder:
    return cluster(clients=CLIENTS).at(100).fault(*LINK).at(300).fault(*LINK, end=True).end(400)


def test_a_name_server_must_hold_a_silent_broker_may_drop_it_and_must_not_hold_it_in_turn() -> None:
    assert ruled(partition(), RuleArea.ROUTE, "ns-0", "broker-a") == [
        ("may", 0, 33),
        ("must", 33, 100),
        ("must", 100, 190),
        ("may", 190, 230),
        ("must_not", 230, 300),
        ("may", 300, 333),
        ("must", 333, 400),
    ]
    assert ruled(partition(), RuleArea.ROUTE, "ns-1", "broker-a") == [("may", 0, 33), ("must", 33, 400)]


def test_clients_go_on_with_a_broker_that_another_name_server_still_names() -> None:
    for client in CLIENTS:
        assert ruled(partition(), RuleArea.USE, client, "broker-a") == [("may", 0, 400)]


def test_a_client_must_not_use_a_killed_broker_after_a_poll_and_a_consumer_after_a_rebalance_more() -> None:
    assert ruled(crash(), RuleArea.USE, "producer-0", "broker-a") == [
        ("may", 0, 130),
        ("must_not", 130, 191),
        ("may", 191, 400),
    ]
    assert ruled(crash(), RuleArea.USE, "consumer-0", "broker-a")[1] == ("must_not", 150, 191)


def test_every_subject_is_told_without_gaps_from_its_start_to_the_end() -> None:
    told = intervals(World.of_rows(crash().rows))
    for _, group in groupby(told, key=lambda i: (i.subject, i.incarnation, i.kind, i.object)):
        stretch = list(group)
        assert (stretch[0].from_ms, stretch[-1].to_ms) == (0, 400_000)
        assert all(before.to_ms == after.from_ms for before, after in pairwise(stretch))


def test_an_interval_says_its_formula_its_row_and_its_fault() -> None:
    told = intervals(World.of_rows(crash().rows))
    (found,) = (i for i in told if i.rule is RuleKind.MUST_NOT and i.kind is RuleArea.ROUTE and i.subject == "ns-1")
    assert found == Interval(
        subject="ns-1",
        incarnation=0,
        object="broker-a",
        kind=RuleArea.ROUTE,
        rule=RuleKind.MUST_NOT,
        from_ms=100_000,
        to_ms=191_000,
        formula="RTT + event thread",
        row="process crash, kernel closes its connections",
        fault_id="f1",
        at_ms=100_000,
    )


def test_the_world_of_rows_is_that_of_decoded_and_of_encoded_values() -> None:
    builder = crash()
    encoded = [row | {"value": None} if row.get("value") is None else row for row in builder.rows]
    assert World.of_rows(reversed(encoded)) == World.of_rows(builder.rows)
    assert World.of_rows(builder.rows).end_ms == 400_000
    assert World.of_rows([], last_ms=7).end_ms == 7


def test_the_oracle_needs_no_spark() -> None:
    module = "nemesrv.chaos.reports.html.rule_stretches"
    code = f"import sys, {module}; assert not [m for m in sys.modules if m.startswith('pyspark')]"
    subprocess.run([sys.executable, "-c", code], check=True)
