"""Three hosts, one of whose clocks is 700 ms ahead: how far it is off is measured, and verdicts do not depend on it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from tests.hosts.bench import AHEAD_MS, Bench, missing

pytestmark = [pytest.mark.ray, pytest.mark.skipif(bool(missing()), reason=missing() or "it can be had")]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def hosts() -> Iterator[Bench]:
    with Bench() as bench:
        yield bench


@pytest.mark.nightly
def test_the_offset_of_a_host_is_within_its_bound_of_the_truth(hosts: Bench) -> None:
    done = hosts.run([sys.executable, str(HERE / "measure_clocks.py"), hosts.head, "4"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == {"a", "b", "c"}
    for host, ahead_ms in (("a", 0), ("b", 0), ("c", AHEAD_MS)):
        assert found[host]["jumps"] == 0
        for offset_ms, bound_ms in (*found[host]["readings"], *found[host]["known"]):
            assert abs(offset_ms - ahead_ms) <= bound_ms
        assert found[host]["worst_ms"] < 25.0, "half of what a bound may be, on a machine however busy"


@pytest.mark.nightly
def test_a_run_on_these_hosts_is_valid_and_its_times_are_on_one_axis(hosts: Bench, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = hosts.nemesrv("run", "smoke", "--ray", hosts.head, "--seed", "7", "--out", str(run), "--quiet", "--json")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert json.loads(done.stdout)["verdict"] == "VALID"
    rows = read_rows(run)
    world = World.of_rows(rows)
    assert {node.host for node in world.nodes} == {"a", "b", "c"}
    assert world.blind == ()
    assert 0 < (world.timers.clocks_ms or 0.0) < world.timers.at_once_ms
    clocks = [row for row in rows if row["event"] == "host_clock" and row["source"] == "c"]
    assert len(clocks) > 5
    began = {row["node"]: row["time_ms"] for row in rows if row["event"] == "started"}
    assert all(0 < at_ms < world.end_ms for at_ms in began.values())
