"""The self-test on the virtual clock without Spark, for many seeds: which planted defect survives, and which is found
by a stranger, as far as the checks go that judge plainly (checkers/plain).

    python -m tests.chaos.plain_selftest --seeds 1..12 [--only DEFECT]
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from nemesrv.chaos.checkers.plain.verdicts import verdicts
from nemesrv.chaos.commands.values import Seeds
from nemesrv.chaos.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.selftest import plan_of, scenario_of
from nemesrv.chaos.verdict import Validity


def missed(name: str | None, scenario: str, seed: int) -> list[str]:
    """What is not as meant, in words; nothing when the defect (None: the clean twin) is killed."""
    defect = DEFECTS.get(name or "")
    with TemporaryDirectory(prefix="nemesrv-selftest-") as place:
        found = verdicts(record_virtual(scenario_of(scenario), seed, Path(place, "run"), defect).path)
    wrong = {verdict.name for verdict in found if verdict.verdict is Validity.INVALID}
    meant = (defect.caught_by if defect else frozenset()) & {verdict.name for verdict in found}
    may = defect.caught_by | defect.also if defect else frozenset[str]()
    silent, strange = sorted(meant - wrong), sorted(wrong - may)
    return [f"{check} is silent" for check in silent] + [f"{check} says INVALID" for check in strange]


@click.command()
@click.option("--seeds", type=Seeds(), default="1", show_default=True)
@click.option("--only", multiple=True)
@click.option("--processes", default=1, show_default=True)
def main(seeds: tuple[int, ...], only: tuple[str, ...], processes: int) -> None:
    """Exit status 1 when one is not as meant."""
    runs = [(defect and defect.name, scenario) for defect, scenario in plan_of(only or tuple(DEFECTS))]
    asked = [(name, scenario, seed) for seed in seeds for name, scenario in runs]
    count = 0
    with ProcessPoolExecutor(processes) as pool:
        for (name, scenario, seed), said in zip(asked, pool.map(missed, *zip(*asked, strict=True)), strict=True):
            count += bool(said)
            if said:
                click.echo(f"seed {seed}  {name or 'none (clean twin)'} in {scenario}: {', '.join(said)}")
    click.echo(f"{len(asked) - count} of {len(asked)} as meant")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
