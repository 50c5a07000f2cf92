"""`nemesrv compare` and `nemesrv power`: do runs differ, and how many starts tell (statistics/)."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..errors import ScenarioError
from ..installation import require_extras
from .ending import supervised
from .values import Number, SparkMaster, WholeNumber


@click.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN_A RUN_B]")
@click.option("--a", "side_a", multiple=True, type=click.Path(path_type=Path), help="A run of A; may be repeated.")
@click.option("--b", "side_b", multiple=True, type=click.Path(path_type=Path), help="A run of B; may be repeated.")
@click.option(
    "--samples",
    type=click.Choice(["run", "client"]),
    default="run",
    show_default=True,
    help="What is one sample; with client, what is told holds for these runs only.",
)
@click.option("--alpha", type=Number(1e-6, 0.5), default=0.05, show_default=True, help="For all metrics.")
@click.option("--seed", type=WholeNumber(min=0), default=0, show_default=True, help="Of permutations and bootstrap.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
@click.option(
    "--spark-master", type=SparkMaster(), help="Read the histories on this Spark cluster instead of in this process."
)
@supervised
def compare(
    runs: tuple[Path, ...],
    side_a: tuple[Path, ...],
    side_b: tuple[Path, ...],
    samples: str,
    alpha: float,
    seed: int,
    as_json: bool,
    spark_master: str | None,
) -> None:
    """Do two configurations or versions differ in recovery time, availability or staleness.

    RUN_A and RUN_B are run folders, or folders of them; several on a side by --a and --b. Five runs a side are enough
    for all metrics. Exit status: 0 no difference found, 1 they differ, 3 cannot tell.
    """
    if len(runs) not in (0, 2):
        raise ScenarioError("compare", "RUN_A RUN_B", " ".join(map(str, runs)), "two run folders, or --a and --b")
    a, b = (*runs[:1], *side_a), (*runs[1:], *side_b)
    if not a or not b:
        raise ScenarioError("compare", "--a" if not a else "--b", "", "at least one run folder on each side")
    require_extras("nemesrv compare", "spark", "statistics")
    from ..statistics.compare import compare as compare_them

    sys.exit(compare_them(a, b, samples=samples, alpha=alpha, seed=seed, as_json=as_json, spark_master=spark_master))


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
    require_extras("nemesrv power", "statistics")
    from ..statistics.power import planned, print_power

    plans = planned(name_servers, bias=bias, power=power, alphas=alphas, starts=starts)
    print_power(plans, power=power, as_json=as_json)
