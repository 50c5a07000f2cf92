"""`nemesrv compare` and `nemesrv power`: do runs differ, and how many starts tell (proof/statistics/)."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..errors import ScenarioError
from ..installation import require_extras
from .ending import supervised
from .options import set_option
from .values import Number, SparkMaster, WholeNumber


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN_A RUN_B]")
@click.option("--a", "side_a", multiple=True, type=click.Path(path_type=Path), help="A run of A; may be repeated.")
@click.option("--b", "side_b", multiple=True, type=click.Path(path_type=Path), help="A run of B; may be repeated.")
@click.option(
    "--scenario", metavar="SCENARIO", help="Of RUN_A and RUN_B that are implementations: what to run on both."
)
@set_option
@click.option("--runs", "count", type=WholeNumber(1, 100), help="How many times on each side; default 1.")
@click.option("--out", type=click.Path(path_type=Path), help="Where those runs go; default runs/SCENARIO/TIMESTAMP.")
@click.option(
    "--samples",
    type=click.Choice(["run", "client"]),
    default="run",
    show_default=True,
    help="What is one sample; with client, what is told holds for these runs only.",
)
@click.option("--alpha", type=Number(1e-6, 0.5), default=0.05, show_default=True, help="For all metrics.")
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    help="Of permutations and bootstrap, default 0; with --scenario of the first run on each side, too.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
@click.option(
    "--spark-master", type=SparkMaster(), help="Read the histories on this Spark cluster instead of in this process."
)
@supervised
def compare(
    runs: tuple[str, ...],
    side_a: tuple[Path, ...],
    side_b: tuple[Path, ...],
    scenario: str | None,
    sets: tuple[str, ...],
    count: int | None,
    out: Path | None,
    samples: str,
    alpha: float,
    seed: int | None,
    as_json: bool,
    spark_master: str | None,
) -> None:
    """Do two configurations or versions differ in recovery time, availability or staleness.

    RUN_A and RUN_B are run folders, or folders of them; several on a side by --a and --b. Five runs a side are enough
    for all metrics. With --scenario they are implementations, such as ours and apache-5.3.3, and are run first, with
    the same seeds. Windows, routes and verdicts of both are shown beside each other. Exit status: 0 no difference
    found, 1 they differ, 3 cannot tell.

    \b
    nemesrv compare runs/before runs/after
    nemesrv compare ours apache --scenario broker-crash --runs 5 --seed 1
    """
    if len(runs) not in (0, 2):
        raise ScenarioError("compare", "RUN_A RUN_B", " ".join(runs), "two run folders, or --a and --b")
    if scenario is None and (sets or count is not None or out is not None):
        told = "--set" if sets else "--runs" if count is not None else "--out"
        raise ScenarioError("compare", told, "", "given with --scenario only")
    if scenario is None:
        a, b = (*map(Path, runs[:1]), *side_a), (*map(Path, runs[1:]), *side_b)
        if not a or not b:
            raise ScenarioError("compare", "--a" if not a else "--b", "", "at least one run folder on each side")
        require_extras("nemesrv compare", "spark", "statistics")
    else:
        require_extras("nemesrv compare", "spark", "statistics")
        from .sides import Asked, refuse_other, run_sides

        refuse_other(runs, (*side_a, *side_b))
        asked = Asked(scenario=scenario, sets=sets, runs=count or 1, seed=seed, out=out, quiet=as_json)
        a, b = map(tuple, run_sides(runs, asked))
    from ..proof.statistics.compare import compare as compare_them
    from .sides import verdicts_of

    sys.exit(
        compare_them(
            a,
            b,
            samples=samples,
            alpha=alpha,
            seed=seed or 0,
            as_json=as_json,
            spark_master=spark_master,
            verdicts_of=verdicts_of,
        )
    )


@click.command()
@click.option("--name-servers", type=WholeNumber(1, 9), default=3, show_default=True)
@click.option("--bias", type=Number(0, 1, min_open=True), default=0.1, show_default=True)
@click.option("--power", type=Number(0.5, 1, max_open=True), default=0.99, show_default=True)
@click.option(
    "--alpha",
    "alphas",
    type=Number(1e-12, 0.5),
    multiple=True,
    default=(1e-3, 1e-6),
    show_default=True,
    help="False alarms allowed; may be repeated. Verdicts use 1e-6.",
)
@click.option("--starts", type=WholeNumber(1, 100_000), help="What so many starts tell, not how many are needed.")
@click.option("--json", "as_json", is_flag=True)
def power(
    name_servers: int, bias: float, power: float, alphas: tuple[float, ...], starts: int | None, as_json: bool
) -> None:
    """How many client starts find a biased choice of the first NameServer.

    BIAS is how much too often one NameServer is chosen, as a share of all starts: 0.1 of three is 43.3 %.
    """
    from ..proof.statistics.power import planned, print_power

    plans = planned(name_servers, bias=bias, power=power, alphas=alphas, starts=starts)
    print_power(plans, power=power, as_json=as_json)
