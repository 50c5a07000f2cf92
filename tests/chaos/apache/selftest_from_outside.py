"""The planted defects of NameServers and brokers, found from outside: each run's servers say nothing of themselves, as
Apache's do, and the checks judge what fronts, logs and polls showed of them.

    python -m tests.chaos.apache.selftest_from_outside [--only DEFECT] [--seeds 1]

A defect that only `timers_kept` finds is left out: of the timers of servers that are not ours there are no rows.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from nemesrv.chaos.checks.plain.verdicts import verdicts_of_rows
from nemesrv.chaos.commands.options import SEEDS
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS, Defect
from nemesrv.chaos.proof.selftest import plan_of, scenario_of
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.topology import NodeKind
from nemesrv.chaos.verdict import Validity
from tests.chaos.apache.from_outside import seen_from_outside

SERVERS = {NodeKind.NAME_SERVER, NodeKind.BROKER}


def of_servers() -> tuple[str, ...]:
    """The defects that are to be found so."""
    return tuple(
        name
        for name, defect in DEFECTS.items()
        if SERVERS & set(defect.kinds) and defect.caught_by - {"timers_kept", "exercised"}
    )


def missed(defect: Defect | None, scenario: str, seed: int) -> list[str]:
    """What is not as meant, in words; nothing when the defect (None: the clean twin) is killed."""
    with TemporaryDirectory(prefix="nemesrv-outside-") as place:
        with seen_from_outside() as outside:
            folder = record_virtual(scenario_of(scenario), seed, Path(place, "run"), defect).path
        found = verdicts_of_rows(outside.instead_of_own(read_rows(folder)))
    wrong = {verdict.name for verdict in found if verdict.verdict is Validity.INVALID}
    meant = (defect.caught_by if defect else frozenset()) & {verdict.name for verdict in found} - {"timers_kept"}
    may = defect.caught_by | defect.also if defect else frozenset[str]()
    silent, strange = sorted(meant - wrong), sorted(wrong - may)
    return [f"{check} is silent" for check in silent] + [f"{check} says INVALID" for check in strange]


@click.command()
@click.option("--seeds", type=SEEDS, default="1", show_default=True)
@click.option("--only", multiple=True)
def main(seeds: Sequence[int], only: tuple[str, ...]) -> None:
    """Exit status 1 when one is not as meant."""
    count = 0
    for seed in seeds:
        for defect, scenario in plan_of(only or of_servers()):
            said = missed(defect, scenario, seed)
            count += bool(said)
            name = "none (clean twin)" if defect is None else defect.name
            click.echo(f"seed {seed}  {name} in {scenario}: {', '.join(said) or 'as meant'}")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
