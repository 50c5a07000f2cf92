"""Shipped scenarios and planted defects on a machine that stands still at random moments.

`python -m tests.chaos.experiment.virtual.random_stalls --runs 100 --first 0 --out DIR [--defects]`. Each seed takes the
next shipped scenario, and stops the whole machine, or one process, 3 to 5 times for 0.1 to 2 s of it: at the time scale
of a real run 1 to 20 s of RocketMQ's. The nodes are right, so INVALID is a false alarm. UNKNOWN is a verdict that the
stall cost. With `--defects` each seed plants the next defect of the self-test in its own scenario, which must be found
all the same in most runs.
"""

import argparse
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from nemesrv.actors.actor import Probe
from nemesrv.actors.cluster import NodeState
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.experiment.stage import Starts
from nemesrv.chaos.experiment.virtual.cluster import VirtualCluster
from nemesrv.chaos.experiment.virtual.network import MemoryLinkFaults
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.history.recorder import LagProbe
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


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing was INVALID, or, with --defects, most were found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--defects", action="store_true", help="plant one in each run")
    parser.add_argument("--out", type=Path, default=Path("runs/random-stalls"))
    asked = parser.parse_args(arguments)
    found: Counter[Validity] = Counter()
    planted = [defect for defect in DEFECTS.values() if not defect.of_apache]
    for seed in range(asked.first, asked.first + asked.runs):
        defect = planted[seed % len(planted)] if asked.defects else None
        of = find(defect.scenario) if defect else find(SHIPPED[seed % len(SHIPPED)])
        got = judged(of, seed, asked.out / str(seed), defect)
        worst = max(got, key=lambda verdict: (verdict.verdict is Validity.INVALID, verdict.verdict is Validity.UNKNOWN))
        found[worst.verdict] += 1
        print(f"seed {seed}: {worst.verdict} {of.name} {defect.name if defect else ''}", flush=True)
        for verdict in got if defect is None or worst.verdict is not Validity.INVALID else ():
            if verdict.verdict is not Validity.VALID:
                print(f"    {verdict.verdict} {verdict.name}: {verdict.why}; {verdict.examples[:1]}", flush=True)
        if defect is not None or worst.verdict is not Validity.INVALID:
            shutil.rmtree(asked.out / str(seed))
    print(", ".join(f"{count} {validity}" for validity, count in sorted(found.items())))
    return int(2 * found[Validity.INVALID] < asked.runs if asked.defects else found[Validity.INVALID] > 0)


if __name__ == "__main__":
    sys.exit(main())
