"""The history writer, what survives a kill, and the merge into Parquet."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.merge import to_parquet
from nemesrv.chaos.history.recorder import HistoryWriter, LagProbe, RecorderSpec, step_s_of, unseen_s_of
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import SCHEMA, arrow_schema, parquet_path, raw_dir
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.recording import recorded_at

CLOCK = RealClock.starting_now()


def writer(run_dir: Path, node: str = "ns-0", incarnation: int = 0) -> HistoryWriter:
    return RecorderSpec.for_run(run_dir, node, "name_server", incarnation, CLOCK).open()


def raw(run_dir: Path) -> list[dict[str, Any]]:
    rows = read_raw(raw_dir(run_dir) / "ns-0.0.jsonl")
    return [dict(row) for row in rows if row is not None]


async def comes(has_come: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not has_come():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def test_a_row_carries_who_when_and_what(tmp_path: Path) -> None:
    record = writer(tmp_path)
    record("route", topic="orders", value={"brokers": {"broker-a": {"0": "127.0.0.1:1"}}})
    record("registration", address=Address("127.0.0.1", 10911), broker_id=0, code=0)
    record.close()
    to_parquet(tmp_path)
    first, second = read_rows(tmp_path)
    assert {k: v for k, v in first.items() if v is not None and k != "time_ms"} == {
        "seq": 0,
        "node": "ns-0",
        "role": "name_server",
        "incarnation": 0,
        "event": "route",
        "topic": "orders",
        "value": {"brokers": {"broker-a": {"0": "127.0.0.1:1"}}},
    }
    assert (second["seq"], second["address"], second["broker_id"]) == (1, "127.0.0.1:10911", 0)
    assert 0 < first["time_ms"] <= second["time_ms"]


def test_what_was_learnt_later_is_recorded_when_it_was(tmp_path: Path) -> None:
    record = writer(tmp_path)
    record("started")
    recorded_at(record, 12.5, "route", {"topic": "orders"})
    with pytest.raises(TypeError, match="'gone' fills target"):
        record.at(12.5, "gone", target="ns-1")
    record.close()
    to_parquet(tmp_path)
    earlier, later = read_rows(tmp_path)
    assert (earlier["event"], earlier["time_ms"], earlier["seq"]) == ("route", 12.5, 1)
    assert (later["event"], later["seq"]) == ("started", 0)


def test_a_recorder_that_cannot_tell_when_something_was_records_it_now() -> None:
    told: list[tuple[str, object]] = []
    recorded_at(lambda event, /, **fields: told.append((event, fields)), 12.5, "route", {"topic": "orders"})
    assert told == [("route", {"topic": "orders"})]


def test_what_the_catalogue_does_not_name_is_refused_by_name(tmp_path: Path) -> None:
    record = writer(tmp_path)
    with pytest.raises(TypeError, match="'routes' is no event"):
        record("routes", topic="orders")
    with pytest.raises(TypeError, match="'gone' fills target"):
        record("gone", fault_id="kill-1", source="ns-0", target="ns-1")
    with pytest.raises(TypeError, match="'route' fills reason"):
        record("route", reason="closed")
    with pytest.raises(TypeError, match="time_ms"):
        record("route", time_ms=1)
    record.close()


def test_without_a_running_loop_every_event_is_with_the_kernel_at_once(tmp_path: Path) -> None:
    record = writer(tmp_path)
    record("route")
    assert len(raw(tmp_path)) == 1
    record.close()


def test_on_a_running_loop_an_event_waits_no_longer_than_the_buffer_does(tmp_path: Path) -> None:
    async def body() -> tuple[int, int]:
        record = writer(tmp_path)
        record("route")
        at_once = len(raw(tmp_path))  # a second one may find the first too old, on a machine that is slow enough
        await comes(lambda: bool(raw(tmp_path)))
        record.close()
        return at_once, len(raw(tmp_path))

    assert asyncio.run(body()) == (0, 1)


def test_a_busy_loop_does_not_hold_events_back(tmp_path: Path) -> None:
    """The loop never gets to its timer here; the age of the oldest event alone makes the writer flush."""

    async def body() -> int:
        record = writer(tmp_path)
        for _ in range(2_000_000):
            record("route")
            if (raw_dir(tmp_path) / "ns-0.0.jsonl").stat().st_size:
                break
        written = len(raw(tmp_path))
        record.close()
        return written

    assert asyncio.run(body()) > 0


def test_close_writes_what_is_buffered_and_later_events_are_ignored(tmp_path: Path) -> None:
    async def body() -> None:
        record = writer(tmp_path)
        record("route")
        record.close()
        record("topic")
        record.close()

    asyncio.run(body())
    assert [row["event"] for row in raw(tmp_path)] == ["route"]


def test_a_slow_kernel_gets_every_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr("nemesrv.chaos.history.recorder.os.write", lambda fd, data: write(fd, bytes(data[:70])))

    async def body() -> None:
        record = writer(tmp_path)
        for number in range(50):
            record("receive", offset=number)
        record.close()

    asyncio.run(body())
    assert [(row["seq"], row["offset"]) for row in raw(tmp_path)] == [(number, number) for number in range(50)]


def test_a_disk_that_refuses_loses_nothing_that_it_takes_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    record = writer(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("nemesrv.chaos.history.recorder.os.write", full)
        with pytest.raises(OSError, match="No space"):
            record("route")
    record("topic")
    record.close()
    assert [row["event"] for row in raw(tmp_path)] == ["route", "topic"]


def test_values_are_written_whatever_their_keys_and_types(tmp_path: Path) -> None:
    record = writer(tmp_path)
    record("route", value={0: Address("127.0.0.1", 1), "set": {"b", "a"}, "bytes": b"x"})
    record("topic", value={"addresses": [Address("::1", 2)]})
    record.close()
    assert [row["value"] for row in raw(tmp_path)] == [
        {"0": "127.0.0.1:1", "set": ["a", "b"], "bytes": "x"},
        {"addresses": ["[::1]:2"]},
    ]


def test_a_killed_process_loses_at_most_its_last_moments(tmp_path: Path) -> None:
    """A child records its own monotonic time in a loop and is killed; the last row on disk is at most 50 ms old."""
    program = """
import asyncio, sys
from nemesrv.chaos.history.recorder import RecorderSpec
from nemesrv.remoting.node.clock import RealClock
async def main():
    clock = RealClock(origin_monotonic_ns=int(sys.argv[2]), origin_wall_ms=0)
    record = RecorderSpec.for_run(sys.argv[1], "ns-0", "name_server", 0, clock).open()
    print("ready", flush=True)
    while True:
        record("route", value="x" * 200)
        await asyncio.sleep(0.001)
asyncio.run(main())
"""
    argv = [sys.executable, "-c", program, str(tmp_path), str(CLOCK.origin_monotonic_ns)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        path = raw_dir(tmp_path) / "ns-0.0.jsonl"
        deadline_s = CLOCK.monotonic_s() + 10
        while path.stat().st_size < 10_000 and CLOCK.monotonic_s() < deadline_s:
            pass
        os.kill(child.pid, signal.SIGSTOP)  # so that "the moment of the kill" is a moment of this process, not a race
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        killed_ms = CLOCK.monotonic_s() * 1000
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    to_parquet(tmp_path)
    rows = read_rows(tmp_path)
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert killed_ms - rows[-1]["time_ms"] < 50 + 100  # 100: two cores shared with whoever else is working


def test_a_torn_last_line_costs_only_itself(tmp_path: Path) -> None:
    for node in ("ns-0", "ns-1"):
        record = writer(tmp_path, node)
        record("route")
        record("topic")
        record.close()
    path = raw_dir(tmp_path) / "ns-0.0.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    to_parquet(tmp_path)
    assert sorted((row["node"], row["event"]) for row in read_rows(tmp_path)) == [
        ("ns-0", "route"),
        ("ns-1", "route"),
        ("ns-1", "topic"),
    ]


def test_the_merge_orders_by_time_then_node_then_sequence(tmp_path: Path) -> None:
    raw_dir(tmp_path).mkdir(parents=True)
    line = '{"time_ms":%s,"seq":%d,"node":"%s","role":"broker","incarnation":%d,"event":"x"}\n'
    (raw_dir(tmp_path) / "b.0.jsonl").write_text(line % ("2.0", 0, "b", 0) + line % ("2.0", 1, "b", 0))
    (raw_dir(tmp_path) / "b.1.jsonl").write_text(line % ("9", 0, "b", 1))
    (raw_dir(tmp_path) / "a.0.jsonl").write_text(line % ("2.0", 0, "a", 0) + line % ("0.5", 1, "a", 0))
    to_parquet(tmp_path)
    assert [(r["time_ms"], r["node"], r["incarnation"], r["seq"]) for r in read_rows(tmp_path)] == [
        (0.5, "a", 0, 1),
        (2.0, "a", 0, 0),
        (2.0, "b", 0, 0),
        (2.0, "b", 0, 1),
        (9.0, "b", 1, 0),
    ]


def test_a_cell_of_the_wrong_type_never_costs_the_row(tmp_path: Path) -> None:
    record = writer(tmp_path)
    record("receive", queue_id="seven", msg_key=12, offset=3)
    record("receive", queue_id=7, msg_key="k", offset=4)
    record.close()
    to_parquet(tmp_path)
    assert [(r["queue_id"], r["msg_key"], r["offset"]) for r in read_rows(tmp_path)] == [(None, "12", 3), (7, "k", 4)]


def test_the_parquet_file_has_exactly_the_schema(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    record = writer(tmp_path)
    record("route")
    record.close()
    to_parquet(tmp_path)
    schema = pq.read_schema(parquet_path(tmp_path))
    assert schema.equals(arrow_schema())
    assert schema.names == [column.name for column in SCHEMA]


def test_a_run_that_recorded_nothing_is_a_failed_harness(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="no recorded events"):
        to_parquet(tmp_path)


def test_a_spec_travels_to_another_process(tmp_path: Path) -> None:
    spec = RecorderSpec.for_run(tmp_path, "ns-0", "name_server", 2, CLOCK)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_the_next_process_of_a_slave_has_a_file_of_its_own() -> None:
    spec = RecorderSpec.for_run("run", "broker-a/1", "slave", 0, CLOCK)
    assert spec.for_incarnation(1) == RecorderSpec.for_run("run", "broker-a/1", "slave", 1, CLOCK)


def test_the_lag_probe_measures_a_blocked_loop_in_rocketmq_milliseconds() -> None:
    """At scale 10 a loop blocked for 0.1 s of the machine's time was 1,000 ms late in the cluster's."""
    rows: list[dict[str, object]] = []

    async def body() -> None:
        clock = RealClock.starting_now(scale=10)
        probe = LagProbe()
        probe.start(lambda event, /, **fields: rows.append({"event": event, **fields}), clock)
        await comes(lambda: len(rows) >= 1)
        until_s = clock.monotonic_s() + 1.0
        while clock.monotonic_s() < until_s:
            pass
        seen = len(rows)
        await comes(lambda: len(rows) > seen)
        await probe.stop()
        await probe.stop()

    asyncio.run(body())
    assert {row["event"] for row in rows} == {"timer_lag"}
    assert len(rows) >= 3
    assert 700 <= max(float(str(row["lag_ms"])) for row in rows) <= 3000
    assert all(float(str(row["lag_ms"])) >= 0 for row in rows)


def test_the_lag_probe_sees_a_process_that_stands_still_while_it_writes_the_row() -> None:
    rows: list[float] = []

    async def body() -> None:
        clock, probe = RealClock.starting_now(scale=10), LagProbe()

        def record(_event: str, /, **fields: Any) -> None:
            rows.append(fields["lag_ms"])
            until_s = clock.monotonic_s() + (1.0 if len(rows) == 1 else 0.0)
            while clock.monotonic_s() < until_s:
                pass

        probe.start(record, clock)
        await comes(lambda: len(rows) >= 2)
        await probe.stop()

    asyncio.run(body())
    assert 700 <= rows[1] <= 3000


def test_a_longer_step_counts_what_it_cannot_see_as_lateness() -> None:
    assert [step_s_of(scale) for scale in (1.0, 2.0, 4.0, 10.0, 50.0)] == pytest.approx([0.1, 0.1, 0.05, 0.02, 0.02])
    for scale in (1.0, 2.0, 4.0, 10.0, 50.0):
        assert step_s_of(scale) - unseen_s_of(scale) == pytest.approx(0.02), "what may go unnoticed is as ever"
