"""Packets lost by the kernels of two hosts: what the probes of every link meet, and that nothing is INVALID."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.faults.fault import Dial
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from tests.chaos.faults.test_packet_drop import why_not
from tests.hosts.bench import Bench, missing
from tests.hosts.record_loss import DOWN, TWO_WAY, UP

WHY_NOT = missing() or why_not()
pytestmark = [pytest.mark.ray, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can be had")]


def test_each_host_loses_the_packets_of_its_own_links_until_the_heal(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with Bench(("a", "b")) as hosts:
        done = hosts.run([sys.executable, "-m", "tests.hosts.record_loss", str(run), hosts.head])
        left = [*hosts.ours("a"), *hosts.ours("b")]
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert left == []
    rows = read_rows(run)
    assert {node.host for node in World.of_rows(rows).nodes} == {"a", "b"}
    found: list[set[tuple[str, str]]] = [set()]
    for row in rows:
        if row["event"] == "phase" and row["phase"] in ("fault", "settle"):
            found.append(set())
        elif row["event"] == "probe" and row["value"]["met"] == str(Dial.DROPPED):
            found[-1].add((row["source"], row["target"]))
    assert found[-1] == set()
    assert set().union(*found) == {TWO_WAY, DOWN, UP}
    assert found_wrong(run) == {}
