"""What a person does to Toxiproxy's proxies is in the record, in the history's own words."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.processes import is_paused
from nemesrv.chaos.faults.kinds import UnknownFault
from nemesrv.chaos.faults.link_faults import Bandwidth, BlackHole, Cut, Latency, LinkFault, Reset, Timeout
from nemesrv.chaos.faults.outside import HostLooks, OutsideFaults, faults_of
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.toxiproxy import ToxiproxyServer


def proxy(*toxics: dict[str, Any], enabled: bool = True) -> dict[str, Any]:
    return {"enabled": enabled, "toxics": [{"toxicity": 1.0, "stream": "upstream", **toxic} for toxic in toxics]}


def bandwidth(rate: int, **changes: Any) -> dict[str, Any]:
    return {"type": "bandwidth", "attributes": {"rate": rate}, **changes}


class Ours:
    """Links whose first toxic on each proxy is the experiment's own, or whose state nobody knows; `none`: it has no
    toxic of its own."""

    def __init__(self, *, none: bool = False) -> None:
        self.known, self._own = True, 0 if none else 1

    def unchanged(self) -> AbstractContextManager[bool]:
        return nullcontext(True)

    def without_ours(self, name: str, proxy: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return {**proxy, "toxics": proxy["toxics"][self._own :]} if self.known else None


def watching(rows: list[dict[str, Any]], ours: Ours) -> OutsideFaults:
    """What others do, told into `rows`; nothing is polled."""
    known: Any = (lambda event, **fields: rows.append({"event": event, **fields}), 1.0, dict, ours, None)
    return OutsideFaults({}, str, *known)


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        (proxy(), []),
        (proxy(enabled=False), [Cut()]),
        (proxy(bandwidth(0)), [BlackHole(stream="upstream")]),
        (proxy(bandwidth(0, toxicity=0.0)), []),
        (proxy(bandwidth(0), bandwidth(0, stream="downstream")), [BlackHole()]),
        (proxy(bandwidth(50)), [Bandwidth(stream="upstream", rate_kb_s=5)]),
        (
            proxy({"type": "latency", "attributes": {"latency": 100, "jitter": 3}}),
            [Latency(stream="upstream", latency_ms=1000, jitter_ms=30)],
        ),
        (proxy({"type": "timeout", "attributes": {"timeout": 0}}), [Timeout(stream="upstream")]),
        (proxy({"type": "reset_peer", "attributes": {}}), [Reset(stream="upstream")]),
        (
            proxy({"type": "slicer", "attributes": {}}),
            [UnknownFault(do="slicer", how="toxiproxy.slicer", stream="upstream")],
        ),
    ],
)
def test_a_proxy_says_what_acts_on_its_link_in_rocketmq_time(shown: dict[str, Any], seen: list[LinkFault]) -> None:
    assert faults_of(shown, scale=10.0) == frozenset(seen)


def test_each_fault_has_a_row_when_it_begins_and_one_when_it_ends() -> None:
    rows: list[dict[str, Any]] = []
    watch = watching(rows, Ours(none=True))
    link = "broker-a->ns-1"
    watch.update({link: proxy()})
    assert rows == []
    watch.update({link: proxy(bandwidth(0))})
    watch.update({link: proxy(bandwidth(0))})
    watch.update({link: proxy(enabled=False)})
    watch.update({link: proxy(), "a person's own": proxy(enabled=False)})
    assert [(row["phase"], row["fault"], row["fault_id"], row["source"], row["target"]) for row in rows] == [
        ("start", "black_hole", "outside-1", "broker-a", "ns-1"),
        ("end", "black_hole", "outside-1", "broker-a", "ns-1"),
        ("start", "cut", "outside-2", "broker-a", "ns-1"),
        ("end", "cut", "outside-2", "broker-a", "ns-1"),
    ]


def test_a_process_is_paused_from_sigstop_until_it_is_gone() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            assert not is_paused(process.pid)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert is_paused(process.pid)
        finally:
            process.kill()
            process.wait()
        assert not is_paused(process.pid)


def test_a_pause_ends_when_the_process_runs_again_or_is_gone() -> None:
    rows: list[dict[str, Any]] = []
    watch = watching(rows, Ours(none=True))
    for paused in (False, True, True, False, True, False):
        watch.update_processes({"ns-0": paused, "ns-1": False})
    assert [(row["phase"], row["fault"], row["injection"], row["fault_id"], row["source"]) for row in rows] == [
        ("start", "pause", "sigstop", "outside-1", "ns-0"),
        ("end", "pause", "sigstop", "outside-1", "ns-0"),
        ("start", "pause", "sigstop", "outside-2", "ns-0"),
        ("end", "pause", "sigstop", "outside-2", "ns-0"),
    ]


def test_what_the_experiment_itself_does_is_not_recorded_again() -> None:
    rows: list[dict[str, Any]] = []
    ours = Ours()
    watch = watching(rows, ours)
    link = "broker-a->ns-1"
    watch.update({link: proxy(bandwidth(0))})
    assert rows == []
    watch.update({link: proxy(bandwidth(0), {"type": "slicer", "attributes": {}})})
    assert watch.active() == [("outside-1", "slicer", link)]
    ours.known = False
    watch.update({link: proxy(bandwidth(0))})
    assert watch.active() == [("outside-1", "slicer", link)], "nothing is said while it is not known whose it is"
    ours.known = True
    watch.update({link: proxy(bandwidth(0))})
    assert [(row["phase"], row["fault_id"]) for row in rows] == [("start", "outside-1"), ("end", "outside-1")]


@pytest.mark.toxiproxy
def test_proxies_are_told_once_each_time_they_change(tmp_path: Path) -> None:
    with PortHolder() as ports, ToxiproxyServer(tmp_path / "toxiproxy.log", ports=ports) as api:
        links = {f"broker-{each}->ns-0": (ports.take(), ports.take()) for each in "abcdefghijkl"}
        with closing(HostLooks(api.address)) as shown:
            assert shown.changed() == {}
            api.create(links)
            changed = shown.changed()
            assert changed is not None
            assert changed.keys() == links.keys()
            assert shown.changed() is None
            api.set_enabled("broker-b->ns-0", False)
            now = shown.changed()
            assert now is not None
            assert {name for name in links if faults_of(now[name], 1.0)} == {"broker-b->ns-0"}
            assert shown.changed() is None
