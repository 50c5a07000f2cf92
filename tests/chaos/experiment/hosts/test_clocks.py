"""Hosts are asked what their clocks show until the end, and of each burst the answer counts that came soonest."""

import threading
import time
from typing import Any

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.experiment.hosts.clock_probe import HostClocks, clock_identity, soonest
from nemesrv.chaos.oracle.hosts import hosts_in
from nemesrv.chaos.oracle.recorded import NodeInfo


def now_ms() -> float:
    return time.monotonic() * 1000


class Rows:
    """A recorder that tells when it has so many rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._changed = threading.Condition()

    def __call__(self, event: str, /, **fields: Any) -> None:
        with self._changed:
            self.rows.append({"event": event, "time_ms": now_ms(), **fields})
            self._changed.notify_all()

    def wait_for(self, count: int, host: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: sum(row["source"] == host for row in self.rows) >= count, 20)

    def offsets(self, host: str) -> list[tuple[float, float]]:
        rows = [row["value"] for row in self.rows if row["source"] == host]
        return [(value["offset_ms"], value["bound_ms"]) for value in rows]


def test_of_a_burst_the_answer_that_came_soonest_counts() -> None:
    times = iter([0.0, 8.0, 10.0, 11.0, 20.0, 26.0])
    shows = iter([704.0, 710.6, 721.0])
    reading = soonest(lambda: next(shows), lambda: next(times), 3)
    assert (reading.at_ms, round(reading.offset_ms, 6), reading.bound_ms) == (10.5, 700.1, 0.5)


def test_every_host_is_asked_until_the_end_and_the_truth_is_within_the_bound() -> None:
    rows = Rows()
    asks = {"near": None, "far": lambda: now_ms() + 700}
    with HostClocks(asks, now_ms, rows, every_s=0.01):
        assert {row["source"] for row in rows.rows} == {"near", "far"}  # before anything else begins
        rows.wait_for(5, "far")
    assert all(abs(offset_ms - 700) <= bound_ms for offset_ms, bound_ms in rows.offsets("far"))
    assert set(rows.offsets("near")) == {(0.0, 0.0)}
    nodes = [NodeInfo("ns-0", "name_server", None, host="near"), NodeInfo("ns-1", "name_server", None, host="far")]
    first_ms, last_ms = rows.rows[0]["time_ms"], rows.rows[-1]["time_ms"]
    moved = [{**row, "value": {**row["value"], "host_ms": row["value"]["host_ms"] - first_ms}} for row in rows.rows]
    hosts = hosts_in(moved, nodes, 50.0, last_ms - first_ms)
    assert hosts.blind == ()


def test_a_host_that_is_lost_is_not_asked_again_and_the_others_are() -> None:
    rows, asked = Rows(), []

    def lost() -> float:
        asked.append(now_ms())
        if len(asked) > 14:
            raise HarnessError("the host is lost")
        return now_ms()

    with HostClocks({"lost": lost, "far": lambda: now_ms() + 700}, now_ms, rows, every_s=0.01):
        rows.wait_for(6, "far")
    assert len(asked) == 15
    assert len(rows.offsets("lost")) == 1


def test_processes_of_this_host_have_one_clock() -> None:
    assert clock_identity() == clock_identity()
