"""`nemesrv selftest`: plants defects and tests that the checks find them (chaos/proof/selftest.py)."""

import sys
from pathlib import Path

import click

from ..errors import ScenarioError
from .ending import supervised
from .options import SEEDS, json_option, processes_option, quiet_option, ray_option


@click.command()
@click.option("--only", multiple=True, metavar="DEFECT", help="Defect to plant (default: all). May be repeated.")
@click.option(
    "--seed",
    "--seeds",
    "seeds",
    type=SEEDS,
    default="1",
    show_default=True,
    help="Random seed of each defect's run. A range such as 1..12 runs each defect once with each seed.",
)
@click.option("--clock", type=click.Choice(["real", "virtual"]), default="real", help="Clock of runs (default: real).")
@processes_option
@ray_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder that gets the run folders (default: runs/).")
@quiet_option
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print each run's result on stderr when it is judged, as a terminal does without -v.",
)
@json_option
@supervised
def selftest(
    only: tuple[str, ...],
    seeds: tuple[int, ...],
    clock: str,
    at_once: int | None,
    ray: str | None,
    out: Path | None,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Plant every defect, and test that the expected checks find the defect and that no check says INVALID for the same
    nodes without the defect.

    Runs on the real clock are judged by Spark (if installed), and runs on the virtual clock by plain Python. Spark and
    plain Python give the same verdicts. After Ctrl-C the table has the runs that were judged. Exit status: 0 every
    defect passes with every seed, 1 a defect fails.
    """
    from ..machine import processors
    from ..proof.selftest import run_selftest
    from ..runner import Options

    virtual = clock == "virtual"
    if not virtual and at_once is not None:
        raise ScenarioError("selftest", "--processes", "", "with --clock virtual; on the real clock runs go one by one")
    ray = None if virtual else ray
    options = Options(virtual=virtual, quiet=quiet, latest=False, out=out, as_json=as_json, ray=ray)
    sys.exit(run_selftest(only, options, seeds, at_once=at_once or processors(), verbose=verbose))
