"""A scenario that has its faults proved: every link is dialled after every action, and meets what was asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service.exercised import Evidence, judge
from nemesrv.chaos.experiment.virtual.network import MemoryLinkFaults
from nemesrv.chaos.faults.fault import Dial
from nemesrv.chaos.faults.link_faults import LinkState
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.topology import Link
from nemesrv.chaos.verdict import Verdict

EVERYTHING: list[dict[str, Any]] = [
    {"at_s": 10, "do": "kill", "nodes": ["broker-a"]},
    {"at_s": 20, "do": "black_hole", "links": ["producer-0 -> broker-a", "consumer-0 -> ns-0"]},
    {"at_s": 30, "do": "cut", "links": ["consumer-0 -> broker-b"]},
    {"at_s": 40, "do": "latency", "links": ["broker-b -> ns-1"], "latency_ms": 300},
    {"at_s": 50, "do": "reset", "links": ["broker-b -> ns-0"], "stream": "downstream"},
    {"at_s": 60, "do": "packet_loss", "links": ["producer-0 -> ns-0"]},
    {"at_s": 70, "do": "bandwidth", "links": ["producer-0 -> ns-1"], "rate_kb_s": 50},
    {"at_s": 80, "do": "pause", "nodes": ["ns-1"]},
    {"at_s": 90, "do": "resume", "nodes": ["ns-1"]},
    {"at_s": 100, "do": "restart", "nodes": ["broker-a"]},
    {"at_s": 110, "do": "heal"},
]


def recorded(folder: Path, timeline: list[dict[str, Any]], **more: Any) -> tuple[list[dict[str, Any]], Verdict]:
    """Its probes, and what `exercised` says of its faults."""
    document = {
        "name": "probed", "cluster": {"name_servers": 2, "brokers": 2},
        "workload": {"client_starts": 0, "sends_per_s": 1},
        "prove_faults": True, "timeline": timeline, "settle_s": 20, "checks": ["exercised"], **more,
    }  # fmt: skip
    record_virtual(parse(document, file="probed.yaml"), 3, folder)
    rows = read_rows(folder)
    world, control = World.of_rows(rows), Control.of_rows(rows)
    clients = frozenset(node.name for node in world.of_kind("producer", "consumer"))
    return [row for row in rows if row["event"] == "probe"], judge(Evidence(control, worked=clients), world)


def said(verdict: Verdict) -> list[str]:
    return [finding.kind for finding in verdict.findings if "met:" in finding.kind or "probed" in finding.kind]


def test_every_link_is_dialled_after_every_action_and_meets_what_was_asked_for(tmp_path: Path) -> None:
    probes, verdict = recorded(tmp_path / "run", EVERYTHING)
    links = {(row["source"], row["target"]) for row in probes}
    assert len(probes) == len(links) * (len(EVERYTHING) + 1)  # and once when all is healed
    met = Counter(row["value"]["met"] for row in probes)
    assert set(met) == {str(dial) for dial in Dial} - {str(Dial.LATE), str(Dial.CLOSED)}
    assert said(verdict) == []
    last = [row["value"]["met"] for row in probes[-len(links) :]]
    assert set(last) == {str(Dial.ANSWERED)}


def test_a_link_on_which_a_fault_was_recorded_and_never_injected_makes_the_run_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inject = MemoryLinkFaults._inject

    def all_but_one(self: MemoryLinkFaults, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        if link != Link("broker-a", "ns-0"):
            inject(self, link, now, wanted)

    monkeypatch.setattr(MemoryLinkFaults, "_inject", all_but_one)
    timeline = [{"at_s": 10, "do": "black_hole", "links": ["brokers -> ns-0"]}, {"at_s": 40, "do": "heal"}]
    _, verdict = recorded(tmp_path / "run", timeline)
    assert said(verdict) == ["a dial to ns-0 met: accepted, answered; asked for was: accepted, no answer"]
    assert verdict.verdict.name == "UNKNOWN"


def test_without_the_wish_nothing_is_probed(tmp_path: Path) -> None:
    timeline = [{"at_s": 10, "do": "cut", "links": ["broker-a -> ns-0"]}, {"at_s": 20, "do": "heal"}]
    probes, verdict = recorded(tmp_path / "run", timeline, prove_faults=False)
    assert (probes, said(verdict)) == ([], [])
