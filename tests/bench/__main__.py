"""`make bench` and `python -m tests.bench [NAME]`: the benchmarks."""

import sys

import click

from nemesrv.chaos.commands.ending import end, supervised
from nemesrv.chaos.commands.options import Number


def _counts(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        counts = tuple(int(float(part)) for part in text.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1_000:
        raise click.BadParameter(f"{text!r}; allowed are numbers from 1e3 on, e.g. 1e6,1e7")
    return counts


@click.command()
@click.argument("name", required=False)
@click.option("--seconds", type=Number(min=0.1), default=3, show_default=True, help="Of each measurement.")
@click.option("--events", callback=_counts, default="1e6,1e7,1e8", show_default=True, help="Sizes for bench checks.")
@supervised
def bench(name: str | None, seconds: float, events: tuple[int, ...]) -> None:
    """The benchmarks, each with its baseline in the same run."""
    from .table import run_benchmarks

    sys.exit(run_benchmarks(name, seconds, events))


if __name__ == "__main__":
    try:
        bench(standalone_mode=False)
    except BaseException as exc:
        sys.exit(end(exc))
