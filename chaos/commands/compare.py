"""`nemesrv compare`: two runs, imports or scenarios side by side (proof/statistics/compare.py)."""

import sys
from pathlib import Path
from typing import Any

import click

from ..errors import ScenarioError
from ..installation import require_extras
from .ending import supervised
from .options import SEED, WholeNumber, quiet_option, set_option


@click.command()
@click.argument("sides", nargs=-1, metavar="A [B]")
@set_option
@click.option("--set-a", "sets_a", multiple=True, metavar="KEY=VALUE", help="Like --set, but only for side A's runs.")
@click.option("--set-b", "sets_b", multiple=True, metavar="KEY=VALUE", help="Like --set, but only for side B's runs.")
@click.option("--runs", type=WholeNumber(1, 100), help="How many times to run each scenario, A and B (default: 5).")
@click.option("--out", type=click.Path(path_type=Path), help="Folder that keeps the new run folders (default: none).")
@click.option("--seed", type=SEED, help="Seed of the first run of A and of B (default: random).")
@quiet_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@supervised
def compare(
    sides: tuple[str, ...],
    sets: tuple[str, ...],
    sets_a: tuple[str, ...],
    sets_b: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """Test whether two runs, configurations or versions differ in recovery time, availability, staleness, or time
    without a broker.

    A and B are run folders, imports, folders that contain run folders or imports, or scenarios. `compare` runs a
    scenario on the virtual clock (`--runs` times), and two scenarios with the same seeds. Five runs on each side are
    enough for all metrics. `compare` reads a recorded run, but repeats the run if a setting is changed (`--set`). If B
    is not given, both sides run A: side A with the changes of `--set-a`, side B with the changes of `--set-b`. The
    output has the metrics and the measured registration periods of both sides, each check's verdicts in the runs of
    both sides, and the differences of the routes at the end and of the clients. Exit status: 0 no metric differs, 1 a
    metric differs, 3 no test decides a metric, because there are too few runs, or the scenario sets the timers' phases.

    \b
    nemesrv compare runs/before runs/after
    nemesrv compare broker-crash --set-b pollNameServerInterval=10000
    """
    require_extras("nemesrv compare", "statistics")
    from .sides import Side, measure

    alone = len(sides) == 1 and bool(sets_a or sets_b)
    if len(sides) != 2 and not alone:
        raise ScenarioError("compare", "A B", " ".join(sides), "two run folders or scenarios, or one with --set-b")
    both = []
    for name, word, own in (("A", sides[0], sets_a), ("B", sides[-1], sets_b)):
        side = Side.of(name, word, sets, again=alone)
        try:
            both.append(Side.of(name, word, (*sets, *own), again=alone) if own else side)
        except ScenarioError as exc:
            file = f"--set-{name.lower()}" if exc.file == "--set" else exc.file
            raise ScenarioError(file, exc.key, exc.value, exc.allowed) from exc
    from ..proof.statistics.compare import Sides, print_sides

    a, b = measure(both, sets=sets, quiet=quiet or as_json, **said)
    found = Sides(a=a, b=b)
    print_sides(found, as_json=as_json)
    sys.exit(found.exit_status)
