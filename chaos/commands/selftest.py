"""`nemesrv selftest`: planted defects against the checks meant for them (chaos/selftest.py)."""

from __future__ import annotations

import sys

import click

from .ending import supervised
from .options import json_option, ray_option
from .values import Seeds


@click.command()
@click.option("--only", multiple=True, metavar="DEFECT", help="Only this planted defect; may be repeated.")
@click.option("--seed", "--seeds", "seeds", type=Seeds(), default="1", show_default=True, help="One, or many: 1..12.")
@click.option("--clock", type=click.Choice(["real", "virtual"]), default="real", show_default=True)
@ray_option
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@json_option
@supervised
def selftest(
    only: tuple[str, ...], seeds: tuple[int, ...], clock: str, ray: str | None, quiet: bool, as_json: bool
) -> None:
    """Plant every defect and see that the checks meant for it find it, and nothing in the clean twins."""
    from ..runner import Options
    from ..selftest import run_selftest

    virtual = clock == "virtual"
    ray = None if virtual else ray
    sys.exit(run_selftest(only, Options(virtual=virtual, quiet=quiet, latest=False, as_json=as_json, ray=ray), seeds))
