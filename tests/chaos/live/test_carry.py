"""When a moment is quiet, and what is carried over it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.live.changes import quiet_at, settle_ms
from nemesrv.chaos.live.judge import LiveJudge
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder, cluster

CUT = ("f1", "cut", "toxiproxy.disabled", "broker-a", "ns-0")
KILL = ("f1", "kill", "sigkill", "broker-a")


def healed_at(seconds: float) -> World:
    builder = cluster()
    builder.at(300).fault(*CUT).at(seconds).fault(*CUT, end=True).end(1_000)
    return World.of_rows(builder.rows)


def test_a_cluster_that_has_just_started_is_not_quiet_and_one_that_has_settled_is() -> None:
    world = healed_at(320)
    assert not quiet_at(world, 10_000.0)
    assert quiet_at(world, settle_ms(world))


def test_nothing_is_quiet_from_a_fault_until_all_that_its_heal_caused_has_settled() -> None:
    world = healed_at(320)
    assert quiet_at(world, 299_000.0)
    assert not quiet_at(world, 300_000.0)
    assert not quiet_at(world, 320_000.0 + settle_ms(world) - 1)
    assert quiet_at(world, 320_000.0 + settle_ms(world))


def test_a_fault_that_never_ends_and_a_node_that_is_gone_leave_nothing_quiet() -> None:
    builder = cluster()
    builder.at(300).fault(*CUT).end(1_000)
    assert not quiet_at(World.of_rows(builder.rows), 900_000.0)
    stopped = cluster()
    stopped.at(300).event("broker-a", "stopped").end(1_000)
    assert not quiet_at(World.of_rows(stopped.rows), 900_000.0)


def test_a_node_that_was_started_again_is_quiet_when_it_has_settled() -> None:
    builder = cluster()
    builder.at(300).fault(*KILL).at(310).fault(*KILL, end=True).restarted("broker-a").end(1_000)
    assert quiet_at(World.of_rows(builder.rows), 900_000.0)


def message(builder: HistoryBuilder, number: int, *, tries: int = 1, receive: bool = True) -> None:
    op, key = {"op_id": f"op-{number}"}, {"topic": "orders", "msg_key": f"k-{number}"}
    where = {"broker_name": "broker-a", "queue_id": 0, "offset": number}
    builder.event("producer-0", "send", type="invoke", **op, **key)
    for attempt in range(tries):
        builder.event("producer-0", "send_attempt", type="invoke", attempt=attempt, broker_name="broker-a", **op)
    builder.event("producer-0", "send_attempt", type="ok", attempt=tries - 1, broker_name="broker-a", code=0, **op)
    builder.event("producer-0", "send", type="ok", attempt=tries, **op, **key, **where)
    if receive:
        received(builder, number)


def received(builder: HistoryBuilder, number: int) -> None:
    where = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": number}
    builder.event("consumer-0", "receive", msg_key=f"k-{number}", op_id="holding-0", **where)


class Parts:
    """A judge that is given a story piece by piece."""

    def __init__(self, spark: Any, folder: Path, builder: HistoryBuilder, *checks: str, **options: Any) -> None:
        self.judge = LiveJudge(spark, folder / "live", checks, **options)
        self._folder, self._story, self._told, self._files = folder, builder, 0, 0

    def tell(self) -> Any:
        """The verdicts, the story so far being known."""
        file = self._folder / f"part-{self._files}.parquet"
        pq.write_table(to_table(self._story.rows[self._told :]), file)
        self.judge.add([str(file)], len(self._story.rows) - self._told)
        self._told, self._files = len(self._story.rows), self._files + 1
        return self.judge.judge()

    def carried(self) -> Counter[str]:
        """How many rows of each event would be read at the next judging."""
        rows = self.judge._read([*self.judge._carry, *self.judge._fresh]).select("event").collect()
        return Counter(row["event"] for row in rows)


@pytest.mark.spark
def test_what_is_finished_is_sealed_and_what_may_still_matter_is_carried(spark: Any, tmp_path: Path) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"))
    for number in range(20):
        message(builder.at(10 + number), number, tries=2 if number == 3 else 1, receive=number != 5)
    builder.at(900).lag(1.0)
    parts = Parts(spark, tmp_path, builder, "no_acknowledged_loss", seal_rows=1)
    (before,) = parts.tell()
    carried = parts.carried()
    assert parts.judge.seals == 1
    # Number 3 was tried twice, 5 was not received, and 19 has the highest offset. `send` is there twice: for the
    # checks of messages, and the first and the last good one for those of operations.
    assert carried["receive"] == 2
    assert carried["send_attempt"] == 2 + 1 + 1 + (1 + 1 + 1) + 1
    assert carried["route"] == 2

    received(builder.at(910), 5)
    (after,) = parts.tell()
    assert (before.examined, before.measured["received"]) == (20, 19)
    assert (after.examined, after.measured["received"]) == (20, 20)


@pytest.mark.spark
def test_a_sealed_message_that_comes_again_is_taken_back_and_counted_once(spark: Any, tmp_path: Path) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"))
    for number in range(20):
        message(builder.at(10 + number), number)
    builder.at(900).lag(1.0)
    parts = Parts(spark, tmp_path, builder, "no_acknowledged_loss", seal_rows=1)
    parts.tell()
    carried = parts.judge.carried_rows
    received(builder.at(910), 2)
    (verdict,) = parts.tell()
    assert parts.judge.taken_back == 1
    assert parts.judge.carried_rows == carried + 5 + 1  # sends, tries and both receipts: it stays, since it came twice
    assert (verdict.examined, verdict.measured["received"]) == (20, 20)


@pytest.mark.spark
def test_without_a_quiet_moment_rows_wait_and_too_many_are_sealed_and_told(spark: Any, tmp_path: Path) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"))
    builder.at(5).fault(*CUT)
    for number in range(20):
        message(builder.at(10 + number), number)
    builder.at(900).lag(1.0)
    parts = Parts(spark, tmp_path, builder, "no_acknowledged_loss", seal_rows=1, max_rows=200)
    (verdict,) = parts.tell()
    assert (parts.judge.seals, "live" in verdict.measured) == (0, False)
    for number in range(20, 60):
        message(builder.at(1_000 + number), number)
    builder.at(1_900).lag(1.0)
    parts.tell()
    builder.at(1_910).lag(1.0)
    (verdict,) = parts.tell()
    assert (parts.judge.seals, parts.judge.forced) == (1, 1)
    assert verdict.measured["live"] == "1 times no quiet moment came in time: what spans those may be counted twice"
    assert (verdict.examined, verdict.measured["received"]) == (60, 60)
