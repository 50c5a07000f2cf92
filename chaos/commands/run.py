"""`nemesrv run`: runs and judges experiments; the worst verdict gives the exit status (runner.py)."""

import sys
from pathlib import Path
from typing import Any

import click

from ..errors import ScenarioError
from . import options
from .ending import supervised


@click.command()
@click.argument("scenario", nargs=-1, required=True, metavar="SCENARIO...", shell_complete=options.scenario_names)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Run folder to write (default: runs/SCENARIO/TIMESTAMP). If several scenarios are run, PATH gets a run folder "
    "for each scenario.",
)
@click.option(
    "--seed",
    type=options.SEED,
    help="Random seed of the run (default: the scenario's seed, else a random seed, which is printed).",
)
@click.option(
    "--time-scale",
    type=options.Number(min=0, min_open=True, max=100),
    help="How many times faster than real time RocketMQ's timers run (default: as the scenario says; without effect "
    "on the virtual clock).",
)
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    help="Which clock times the run. With `virtual`, all nodes run in one process on a simulated clock, and the same "
    "seed gives the same history. The default is the clock that the scenario names, else `real`.",
)
@click.option(
    "--defect",
    metavar="NAME|FILE.py",
    help="Plant a defect in the nodes: a NAME that `nemesrv defects` lists, or your own file (docs/scenarios.md).",
)
@options.implementation_option
@options.set_option
@options.ray_option
@options.engine_option
@click.option("--spark-master", type=options.SPARK_MASTER, help="URL of the Spark cluster on which the checks run.")
@options.short_option
@options.summary_option
@options.full_option
@options.json_option
@supervised
def run(
    scenario: tuple[str, ...],
    sets: tuple[str, ...],
    implementation: str | None,
    defect: str | None,
    clock: str | None,
    engine: str | None,
    **asked: Any,
) -> None:
    """Run experiments: start a cluster, send messages, inject and end faults, let the cluster settle, judge.

    SCENARIO is a shipped name, a YAML file, or `all` for the scenarios that `nemesrv scenarios` lists first.

    \b
    nemesrv run broker-crash --seed 7
    nemesrv run runs/latest/scenario.yaml            the last run again
    nemesrv run smoke --clock virtual --json | jq .verdict

    Exit status: 0 VALID, 1 INVALID, 3 UNKNOWN, 2 a wrong argument or file, 4 nemesrv failed. Of several runs the worst
    verdict counts: INVALID, then UNKNOWN.
    """
    from ..runner import Options, run_all
    from ..scenarios.loading import find, found_defect, shipped

    if defect is not None:
        known = found_defect(defect, file="--defect")
        defect = str(known.source or known.name)
    if clock == "virtual" and (time_scale := asked["time_scale"]) is not None:
        raise ScenarioError("--time-scale", "", str(time_scale), "nothing with --clock virtual: it is never waited for")
    names = [name for given in scenario for name in (shipped() if given == "all" else [given])]
    virtual = None if clock is None else clock == "virtual"
    engine = options.engine_asked(engine, asked["spark_master"])
    how = Options(engine=engine, virtual=virtual, defect=defect, **asked)
    found = [find(name, sets, implementation) for name in names]
    sys.exit(run_all(found, how))
