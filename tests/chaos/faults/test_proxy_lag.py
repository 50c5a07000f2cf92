"""How late Toxiproxy is, measured at a real one."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tenacity

from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.proxy_lag import ProxyLagProbe
from nemesrv.chaos.faults.toxiproxy import ToxiproxyServer
from nemesrv.remoting.node.clock import RealClock

pytestmark = pytest.mark.toxiproxy

SCALE = 10.0


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return []


class WaitsOnceTooLong(threading.Event):
    """As in a harness that the machine did not run for 0.3 s."""

    def wait(self, timeout: float | None = None) -> bool:
        if vars(self).setdefault("waits", []) == []:
            vars(self)["waits"].append(timeout)
            return super().wait((timeout or 0.0) + 0.3)
        return super().wait(timeout)


@pytest.fixture
def server(tmp_path: Path, rows: list[dict[str, Any]]) -> Iterator[int]:
    """The process id of a Toxiproxy that is being measured."""

    def record(event: str, /, **fields: object) -> None:
        assert event == "timer_lag"
        rows.append(fields)

    with PortHolder() as ports, ToxiproxyServer(tmp_path / "toxiproxy.log", ports=ports) as api:
        clock = RealClock.starting_now(SCALE)
        with ProxyLagProbe(api, ports, clock, record):
            yield _pid(tmp_path)


def _pid(folder: Path) -> int:
    """Of the one toxiproxy-server that writes its log there."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = {os.readlink(file) for file in (process / "fd").iterdir()}
        except OSError:
            continue
        if str(folder / "toxiproxy.log") in files and "toxiproxy" in (process / "comm").read_text():
            return int(process.name)
    raise AssertionError("no Toxiproxy server runs")


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(AssertionError),
    stop=tenacity.stop_after_delay(10),
    wait=tenacity.wait_fixed(0.02),
    reraise=True,
)
def soon(rows: list[dict[str, Any]], count: int) -> None:
    assert len(rows) >= count


def test_a_healthy_proxy_is_hardly_late_and_its_rows_leave_no_gap(server: int, rows: list[dict[str, Any]]) -> None:
    soon(rows, 5)
    assert min(row["lag_ms"] for row in rows) < 100
    assert all(row["duration_ms"] >= 100 * SCALE for row in rows[:5])


def test_a_proxy_that_stood_still_is_late_by_as_much_in_rocketmq_time(server: int, rows: list[dict[str, Any]]) -> None:
    soon(rows, 1)
    os.kill(server, signal.SIGSTOP)
    try:
        before = len(rows)
        with pytest.raises(tenacity.RetryError):
            _still(rows, before)
    finally:
        os.kill(server, signal.SIGCONT)
    soon(rows, before + 1)
    assert max(row["lag_ms"] for row in rows[before:]) >= 300 * SCALE


@tenacity.retry(stop=tenacity.stop_after_delay(0.5), wait=tenacity.wait_fixed(0.05))
def _still(rows: list[dict[str, Any]], count: int) -> None:
    """Fails for half a second, unless a row comes."""
    assert len(rows) > count + 1


def test_a_harness_that_stood_still_did_not_see_what_the_proxy_did_meanwhile(
    monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr("nemesrv.chaos.faults.proxy_lag.threading.Event", WaitsOnceTooLong)
    request.getfixturevalue("server")
    soon(rows, 1)
    assert rows[0]["lag_ms"] >= 300 * SCALE
