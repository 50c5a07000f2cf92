"""Random defects in random scenarios: `python -m tests.chaos.experiment.virtual.random_defects --pairs 500 --out DIR`.

Each number is a random scenario (random_scenarios.py) and a random planted defect, recorded on the virtual clock with
the defect and, from the same seed, without. Five things may come of it:

| idle | both histories are the same row by row: the defect had nothing to do there |
| unseen | nothing that a peer could see differs for longer than 50 ms, which every check allows (near_histories.py) |
| found | a check says INVALID |
| missed | the histories differ by more, and no check says INVALID |
| false alarm | a check calls the run without the defect INVALID, so the pair tells nothing |

So each pair is a random scenario with nothing planted, too, that is judged; a false alarm keeps its folder. What is
missed keeps both run folders below `--out`: it is either a hole in the checks or a defect that did there nothing that
windows.md forbids, and which of both is for a reader of the two histories to say. The share that is found of those that
acted stands in the last line, by defect in the lines before.
"""

import random
import shutil
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.experiment.rehearsal import same
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS, Defect
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.model import Scenario
from tests.chaos.experiment.virtual.near_histories import near
from tests.chaos.experiment.virtual.random_scenarios import random_scenario, told

_SHARING = ("consumer-takes-all-queues", "consumer-sorts-members-otherwise", "brokers-tell-nobody")
"""Of one consumer alone, or of a group that broadcasts, these do what is right."""
_OF_BROADCASTS = ("consumer-commits-a-broadcast", "consumer-misses-a-broadcast")
_OF_ANOTHER = (
    "producer-avoids-what-has-healed",
    "producer-never-uses-a-broker",
    "producer-retries-the-same-broker",
)
"""Where there is no other broker to use, these do what is right."""
_OF_TWO = ("client-starts-at-the-first", "client-goes-on-at-random", "client-leaves-at-every-poll")
"""With one NameServer there is no choice; its random numbers, which others then do not get, are no wrong."""
_OF_THREE = ("client-never-starts-at-the-last",)
"""By fewer NameServers than three: which of two is asked first is as even as it was."""

IDLE, UNSEEN, FOUND, MISSED, FALSE_ALARM = "idle", "unseen", "found", "missed", "false alarm"


@dataclass(frozen=True, slots=True)
class Pair:
    number: int
    defect: str
    scenario: str
    what: str
    by: tuple[str, ...] = ()
    """The checks that say INVALID."""

    def __str__(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{self.number}  {self.what}{by}  {self.defect}  {self.scenario}"


def pair(number: int) -> tuple[Scenario, Defect]:
    """The scenario, and a defect for nodes that it has, which is one there."""
    scenario, rng = random_scenario(number), random.Random(f"{number} defect")
    kinds = scenario.topology().kinds
    fitting = [defect for defect in DEFECTS.values() if any(defect.is_for(name, kind) for name, kind in kinds.items())]
    while not _is_wrong(scenario, defect := rng.choice(fitting)):
        pass
    return scenario, defect


def _is_wrong(scenario: Scenario, defect: Defect) -> bool:
    workload = scenario.workload
    if defect.name in _SHARING:
        return workload.consumers > 1 and not workload.broadcasting
    if defect.name in _OF_ANOTHER:
        return scenario.cluster.brokers > 1
    if defect.name in _OF_TWO:
        return scenario.cluster.name_servers > 1
    if defect.name in _OF_THREE:
        return scenario.cluster.name_servers > 2
    return defect.name not in _OF_BROADCASTS or workload.broadcasting


def compared(number: int, out: Path) -> Pair:
    """What came of the pair; of what is missed both run folders stay."""
    scenario, defect = pair(number)
    places = out / str(number) / "without", out / str(number) / "with"
    shutil.rmtree(out / str(number), ignore_errors=True)
    without = record_virtual(scenario, number, places[0])
    if alarms := tuple(sorted(found_wrong(without.path))):
        return Pair(number, defect.name, told(scenario), FALSE_ALARM, alarms)
    wrong = record_virtual(scenario, number, places[1], defect)
    if same(without, wrong):
        what, by = IDLE, ()
    elif found := tuple(sorted(found_wrong(wrong.path))):
        what, by = FOUND, found
    elif near(read_rows(without.path), read_rows(wrong.path)):
        what, by = UNSEEN, ()
    else:
        what, by = MISSED, ()
    if what != MISSED:
        shutil.rmtree(out / str(number))
    return Pair(number, defect.name, told(scenario), what, by)


@click.command()
@click.option("--pairs", default=500, show_default=True)
@click.option("--first", default=0, show_default=True)
@click.option("--processes", default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(pairs: int, first: int, processes: int, out: Path) -> None:
    """Exit status 1 when a pair was missed, or a false alarm."""
    numbers = range(first, first + pairs)
    results: dict[int, Pair] = {}
    with ProcessPoolExecutor(processes) as pool:
        for one in pool.map(compared, numbers, [out] * len(numbers)):
            results[one.number] = one
            if one.what != IDLE:
                click.echo(f"{one}")
    by_defect: dict[str, Counter[str]] = defaultdict(Counter)
    for one in results.values():
        by_defect[one.defect][one.what] += 1
    for name, counts in sorted(by_defect.items()):
        click.echo(f"{name:50} " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    sums = Counter(one.what for one in results.values())
    acted = sums[FOUND] + sums[MISSED]
    share = f"{sums[FOUND] / acted:.1%}" if acted else "none"
    click.echo(
        f"{len(results)} pairs: {sums[IDLE]} idle, {sums[UNSEEN]} unseen, {sums[FALSE_ALARM]} false alarms; "
        f"of {acted} that acted {sums[FOUND]} were found: {share}"
    )
    sys.exit(1 if sums[MISSED] or sums[FALSE_ALARM] else 0)


if __name__ == "__main__":
    main()
