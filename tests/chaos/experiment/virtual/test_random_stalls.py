"""A machine that stands still now and then makes no check say INVALID of right nodes, and hides no planted defect.

Each seed stops the whole machine, or one process, 3 to 5 times for 0.1 to 2 s of it: at the time scale of a real run 1
to 20 s of RocketMQ's. The nodes are right, so INVALID is a false alarm. UNKNOWN is a verdict that the stall cost.
"""

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nemesrv.actors.actor import Probe
from nemesrv.actors.cluster import NodeState
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.experiment.stage import Starts
from nemesrv.chaos.experiment.virtual.cluster import VirtualCluster
from nemesrv.chaos.experiment.virtual.network import MemoryLinkFaults
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.history.recorder import LagProbe
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.defect import Defect
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import Link, NodeKind
from nemesrv.chaos.verdict import Validity, Verdict
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.recording import Recorder

SHIPPED = (
    *("broker-crash", "broker-partition", "name-server-crash", "name-server-partition", "smoke"),
    *("slave-reads", "broker-hang", "master-lost-slave-serves"),
)
LENGTHS_S = (1.0, 3.0, 5.0, 8.0, 12.0, 20.0)


class Stall(NamedTuple):
    """A time in which the machine runs no process of the run, or only not this one: nobody's fault, and no row's.

    Seconds after the timeline's start, and how long it lasts.
    """

    at_s: float
    lasts_s: float
    node: str | None = None


class StallingStage(VirtualStage):
    """A virtual stage whose machine stands still at these times; its timers are as late as that makes them."""

    def __init__(self, stalls: Sequence[Stall]) -> None:
        super().__init__()
        self._stalls = stalls

    @property
    def probe(self) -> Callable[[], Probe]:
        return LagProbe

    def starts(self, scenario: Scenario, seed: int) -> Starts:
        found = super().starts(scenario, seed)
        self._timeline_s = found.timeline_s
        return found

    def set_up(
        self, stack: ExitStack, record: Recorder, upstreams: Mapping[Link, Address], say: Callable[[str], None]
    ) -> tuple[VirtualCluster, MemoryLinkFaults]:
        cluster, links = super().set_up(stack, record, upstreams, say)
        for at_s, lasts_s, node in self._stalls:
            cluster.network.loop.call_at(self._timeline_s + at_s, self._stall, cluster, node, lasts_s)
        return cluster, links

    def _stall(self, cluster: VirtualCluster, node: str | None, lasts_s: float) -> None:
        if node is None:  # what is due meanwhile runs at the end, in its order
            self.scheduler.now_s += lasts_s
            return
        member = cluster._members.get(node)
        if member is not None and member.state in (NodeState.STARTING, NodeState.RUNNING):
            member.process.pause()
            cluster.network.loop.call_later(lasts_s, self._end, member)

    @staticmethod
    def _end(member: Any) -> None:
        if member.state is not NodeState.PAUSED:  # by a fault of the timeline, which lasts
            member.process.resume()


def stalls(of: Scenario, seed: int) -> list[Stall]:
    """3 to 5 of the whole machine; of every other seed as many again of one process, and of every fourth short ones."""
    rng = random.Random(f"{seed} stalls")
    ends_s = max((action.at_s for action in of.timeline), default=of.steady_s) + of.settle_s
    found = [Stall(rng.uniform(0, ends_s), rng.choice(LENGTHS_S)) for _ in range(rng.randint(3, 5))]
    nodes = of.topology().of(NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.PRODUCER, NodeKind.CONSUMER)
    if seed % 2:
        found += [
            Stall(rng.uniform(0, ends_s), rng.choice(LENGTHS_S), rng.choice(nodes)) for _ in range(rng.randint(3, 5))
        ]
    if seed % 4 == 3:
        found += [Stall(rng.uniform(0, ends_s), rng.uniform(0.05, 0.9), rng.choice(nodes)) for _ in range(60)]
    return sorted(found, key=lambda stall: stall.at_s)


def judged(of: Scenario, seed: int, out: Path, defect: Defect | None = None) -> list[Verdict]:
    """The verdicts of this scenario's checks; the run folder is `out`."""
    shutil.rmtree(out, ignore_errors=True)
    record_virtual(of, seed, out, defect, latest=False, stage=StallingStage(stalls(of, seed)))
    return verdicts(out, {*of.checks, *(defect.caught_by if defect else ())})


def test_a_stall_makes_all_processes_late_or_one_and_its_own_rows_say_so(tmp_path: Path) -> None:
    of = find("smoke")
    record_virtual(of, 1, tmp_path / "run", stage=StallingStage([Stall(20, 5), Stall(40, 3, "ns-0")]))
    rows = read_rows(tmp_path / "run")
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
    late = {(row["node"], round((row["time_ms"] - begin_ms) / 1000)) for row in rows if (row["lag_ms"] or 0) > 2_000}
    everybody = {row["node"] for row in rows if row["event"] == "timer_lag"}
    assert late == {*((node, 25) for node in everybody), ("ns-0", 43)}


@pytest.mark.nightly_but("1")
@pytest.mark.parametrize("seed", range(3))
def test_no_check_says_invalid_of_a_machine_that_stands_still(tmp_path: Path, seed: int) -> None:
    found = judged(find(SHIPPED[seed % len(SHIPPED)]), seed, tmp_path / "run")
    assert {verdict.name: verdict.why for verdict in found if verdict.verdict is Validity.INVALID} == {}


@pytest.mark.nightly("test_no_check_says_invalid_of_a_machine_that_stands_still")
def test_most_of_many_stalls_are_valid_and_none_is_invalid(tmp_path: Path) -> None:
    worst = []
    for seed in range(100, 100 + 3 * len(SHIPPED)):
        found = {verdict.verdict for verdict in judged(find(SHIPPED[seed % len(SHIPPED)]), seed, tmp_path / "run")}
        assert Validity.INVALID not in found, seed
        worst.append(Validity.UNKNOWN in found)
    assert 2 * sum(worst) < len(worst)


@pytest.mark.nightly("chaos/proof/test_selftest.py::test_planted_defects_are_killed_and_their_clean_twin_is_clean")
def test_most_defects_are_found_all_the_same(tmp_path: Path) -> None:
    planted = [defect for defect in DEFECTS.values() if not defect.of_apache][::6]
    found = [
        any(
            verdict.verdict is Validity.INVALID and verdict.name in defect.caught_by
            for verdict in judged(find(defect.scenario), seed, tmp_path / "run", defect)
        )
        for seed, defect in enumerate(planted)
    ]
    assert 2 * sum(found) > len(found)
