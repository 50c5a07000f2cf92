"""What a person does to Toxiproxy's proxies is in the record, in the history's own words."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.faults.kinds import UnknownFault
from nemesrv.chaos.faults.link_faults import Bandwidth, BlackHole, Cut, Latency, LinkFault, Reset, Timeout
from nemesrv.chaos.faults.outside import OutsideFaults, fault_of, faults_of
from nemesrv.remoting.node.network import Address


def proxy(*toxics: dict[str, Any], enabled: bool = True) -> dict[str, Any]:
    return {"enabled": enabled, "toxics": [{"toxicity": 1.0, "stream": "upstream", **toxic} for toxic in toxics]}


def bandwidth(rate: int, **changes: Any) -> dict[str, Any]:
    return {"type": "bandwidth", "attributes": {"rate": rate}, **changes}


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        (proxy(), []),
        (proxy(enabled=False), [Cut()]),
        (proxy(bandwidth(0)), [BlackHole(stream="upstream")]),
        (proxy(bandwidth(0, toxicity=0.0)), []),
        (
            proxy(bandwidth(0), bandwidth(0, stream="downstream")),
            [BlackHole()],
        ),
        (proxy(bandwidth(50)), [Bandwidth(stream="upstream", rate_kb_s=5)]),
        (
            proxy({"type": "latency", "attributes": {"latency": 100, "jitter": 3}}),
            [Latency(stream="upstream", latency_ms=1000, jitter_ms=30)],
        ),
        (
            proxy({"type": "timeout", "attributes": {"timeout": 0}}),
            [Timeout(stream="upstream")],
        ),
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
    watch = OutsideFaults(
        Address("127.0.0.1", 1), lambda event, **fields: rows.append({"event": event, **fields}), 1.0, {}
    )
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


@pytest.mark.parametrize(
    ("stat", "fault"),
    [
        ("7 (ray::broker (a)) S 1 7", ""),
        ("7 (ray) R 1 7", ""),
        ("7 (ray) T 1 7", "pause"),
        ("7 (ray) Z 1 7", "kill"),
        (None, "kill"),
    ],
)
def test_a_process_says_whether_it_runs_is_stopped_or_gone(stat: str | None, fault: str) -> None:
    assert fault_of(stat) == fault


def test_a_pause_ends_and_a_kill_is_for_good() -> None:
    rows: list[dict[str, Any]] = []
    watch = OutsideFaults(
        Address("127.0.0.1", 1), lambda event, **fields: rows.append({"event": event, **fields}), 1.0, {}
    )
    for fault in ("", "pause", "pause", "", "pause", "kill", "kill", ""):
        watch.update_processes({"ns-0": fault, "ns-1": ""})
    assert [(row["phase"], row["fault"], row["injection"], row["fault_id"], row["source"]) for row in rows] == [
        ("start", "pause", "sigstop", "outside-1", "ns-0"),
        ("end", "pause", "sigstop", "outside-1", "ns-0"),
        ("start", "pause", "sigstop", "outside-2", "ns-0"),
        ("end", "pause", "sigstop", "outside-2", "ns-0"),
        ("start", "kill", "sigkill", "outside-3", "ns-0"),
    ]
