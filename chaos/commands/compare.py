"""`nemesrv compare`: two runs, imports, scenarios or implementations side by side (proof/statistics/compare.py)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..errors import ScenarioError
from ..installation import require_extras
from .ending import supervised
from .options import WholeNumber, set_option


@click.command()
@click.argument("sides", nargs=-1, metavar="[A [B]]")
@click.option("--a", "side_a", multiple=True, type=click.Path(path_type=Path), help="A run of A; may be repeated.")
@click.option("--b", "side_b", multiple=True, type=click.Path(path_type=Path), help="A run of B; may be repeated.")
@click.option("--scenario", metavar="SCENARIO", help="If A and B are implementations: the scenario to run on both.")
@set_option
@click.option("--set-a", "sets_a", multiple=True, metavar="KEY=VALUE", help="The same on side A only.")
@click.option("--set-b", "sets_b", multiple=True, metavar="KEY=VALUE", help="The same on side B only.")
@click.option(
    "--runs",
    type=WholeNumber(1, 100),
    help="How many times to run each side; default 5, and 1 with --scenario.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Keep those runs here; with --scenario they are in runs/.")
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    help="Seed of the first run on each side; default random.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of the table.")
@supervised
def compare(
    sides: tuple[str, ...],
    side_a: tuple[Path, ...],
    side_b: tuple[Path, ...],
    sets_a: tuple[str, ...],
    sets_b: tuple[str, ...],
    as_json: bool,
    **said: Any,
) -> None:
    """Whether two runs, configurations or versions differ in recovery time, availability or staleness.

    A and B are run folders, imports, folders of them, or scenarios. --a and --b give a side several runs; five are
    enough for all metrics. Scenarios are run first, on the virtual clock, with the same seeds. With --set a folder is
    run again with that change. With A alone, B is A with the changes of --set-b. With --scenario, A and B are
    implementations, such as ours and apache-5.3.3, which are run first, on the real clock. Windows, routes, verdicts
    and clients of both are shown side by side. Exit status: 0 no difference found, 1 they differ, 3 cannot tell.

    \b
    nemesrv compare runs/before runs/after
    nemesrv compare broker-crash --set-b pollNameServerInterval=10000
    nemesrv compare ours apache --scenario broker-crash --runs 5 --seed 1
    """
    require_extras("nemesrv compare", "statistics")
    from .sides import CompareOptions, Side, measure, refuse_other, run_implementations

    asked = CompareOptions(quiet=as_json, **said)
    if asked.scenario is not None:
        if sets_a or sets_b:
            raise ScenarioError("compare", "--set-a" if sets_a else "--set-b", "", "no --scenario beside it")
        refuse_other(sides, (*side_a, *side_b))
        both = [
            Side(name, folders=folders) for name, folders in zip("AB", run_implementations(sides, asked), strict=True)
        ]
    else:
        if len(sides) > 2 or (len(sides) == 1 and not (sets_a or sets_b or side_a or side_b)):
            raise ScenarioError("compare", "A B", " ".join(sides), "two run folders or scenarios, or --a and --b")
        alone = len(sides) == 1 and bool(sets_a or sets_b)
        words_a = (*sides[:1], *map(str, side_a))
        words_b = (*(sides[:1] if alone else sides[1:]), *map(str, side_b))
        both = [
            Side.of(name, words, (*asked.sets, *own), again=alone, asked=asked)
            for name, words, own in (("A", words_a, sets_a), ("B", words_b, sets_b))
        ]
    from ..proof.statistics.compare import Sides, print_sides

    a, b = measure(both, asked)
    found = Sides(a=a, b=b)
    print_sides(found, as_json=as_json)
    sys.exit(found.exit_status)
