"""`nemesrv selftest`: planted defects against the checks meant for them (chaos/proof/selftest.py)."""

from __future__ import annotations

import sys

import click

from .ending import supervised
from .options import SEEDS, WholeNumber, json_option, ray_option


@click.command()
@click.option("--only", multiple=True, metavar="DEFECT", help="Only this planted defect; may be repeated.")
@click.option("--seed", "--seeds", "seeds", type=SEEDS, default="1", show_default=True, help="One, or many: 1..12.")
@click.option("--clock", type=click.Choice(["real", "virtual"]), default="real", show_default=True)
@click.option("--spark", "by_spark", is_flag=True, help="Judge by Spark on the virtual clock, too: much slower.")
@click.option(
    "--processes",
    "at_once",
    type=WholeNumber(1, 256),
    help="How many runs at once on the virtual clock without --spark; default: one a processor.",
)
@ray_option
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@json_option
@supervised
def selftest(
    only: tuple[str, ...],
    seeds: tuple[int, ...],
    clock: str,
    by_spark: bool,
    at_once: int | None,
    ray: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Plant every defect and test that its checks find it, and that the same nodes without it are VALID.

    On the real clock Spark judges. On the virtual clock plain Python gives the same verdicts.
    """
    from ..machine import processors
    from ..proof.selftest import run_selftest
    from ..runner import Options

    virtual = clock == "virtual"
    if not virtual:
        refuse_of_virtual_clock(by_spark=by_spark, at_once=at_once)
    ray = None if virtual else ray
    options = Options(virtual=virtual, quiet=quiet, latest=False, as_json=as_json, ray=ray)
    sys.exit(run_selftest(only, options, seeds, by_spark=by_spark, at_once=at_once or processors()))


def refuse_of_virtual_clock(*, by_spark: bool, at_once: int | None) -> None:
    """ScenarioError for an option that says something of the virtual clock only."""
    from ..errors import ScenarioError

    if by_spark:
        raise ScenarioError("selftest", "--spark", "", "with --clock virtual; on the real clock Spark always judges")
    if at_once is not None:
        raise ScenarioError("selftest", "--processes", "", "with --clock virtual; on the real clock runs go one by one")
