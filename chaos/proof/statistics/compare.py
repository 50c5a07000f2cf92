"""`nemesrv compare`: do two configurations or versions differ in recovery time, availability or staleness.

Each side is one run or several, and a run is one sample: the median of its times, the mean of its shares. Clients of
one run share its luck: two runs of one and the same scenario, 28 staleness samples each, once came out 1.3 s apart at
p = 0.007. So with fewer than RUNS_ENOUGH runs a side nothing can be told of configurations. `--samples client` takes
each client's or NameServer's own measurement for a sample; what is told then holds for these runs only.
Exit status: 1 something differs, 3 something cannot be told, 0 no difference found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ...errors import ScenarioError
from ...history.schema import parquet_path, raw_dir
from ...reports.terminal import print_fitting, standard_output
from ...verdict import Verdict
from .beside import print_checks, print_routes, print_windows
from .measured import side_by_side, topics_that_differ
from .samples import METRICS, RunSamples
from .two_samples import Comparison, Kind, Outcome, compare_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS_ENOUGH = 5
"""Runs a side from which all six metrics can be told: 5 and 5 come apart at p = 0.008 at best, 4 and 4 at 0.029."""
_DEPTH = 2
_STYLE = {Outcome.DIFFERS: "bold red", Outcome.NO_DIFFERENCE: "green", Outcome.CANNOT_TELL: "yellow"}


def run_folders(side: str, paths: Iterable[Path]) -> list[Path]:
    """The run folders that `paths` name: each is one, or a folder that holds some. ScenarioError when one has none."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise ScenarioError("compare", side, str(path), "a run folder, or a folder of run folders")
        here = [path] if _is_run(path) else _runs_in(path)
        if not here:
            raise ScenarioError("compare", side, str(path), "a run folder, or a folder of run folders, with a history")
        found += [folder for folder in here if folder.resolve() not in {other.resolve() for other in found}]
    return found


def _is_run(path: Path) -> bool:
    return parquet_path(path).is_file() or any(raw_dir(path).glob("*.jsonl"))


def _runs_in(path: Path) -> list[Path]:
    levels = (sorted(path.glob("/".join("*" * depth))) for depth in range(1, _DEPTH + 1))
    return [folder for level in levels for folder in level if not folder.is_symlink() and _is_run(folder)]


def compare(
    a: Sequence[Path],
    b: Sequence[Path],
    *,
    samples: str,
    alpha: float,
    seed: int,
    as_json: bool,
    spark_master: str | None,
    verdicts_of: Callable[[Path], Sequence[Verdict]] = lambda _: (),
) -> int:
    """The exit status; prints the tables, or one JSON object. `samples`: run or client."""
    folders = [run_folders("A", a), run_folders("B", b)]
    with _spark(spark_master) as spark:
        runs_a, runs_b = ([_read(folder, spark) for folder in side] for side in folders)
    found = compare_runs(runs_a, runs_b, samples=samples, alpha=alpha, seed=seed)
    windows = side_by_side(
        [run.windows for run in runs_a],
        [run.windows for run in runs_b],
        by_run=samples == "run",
        alpha=alpha,
        seed=seed,
    )
    routes = topics_that_differ([run.routes for run in runs_a], [run.routes for run in runs_b])
    checks = [{folder: verdicts_of(folder) for folder in side} for side in folders]
    if as_json:
        document = _document(samples, runs_a, runs_b, found, alpha)
        document |= {
            "windows": [asdict(each) for each in windows],
            "routes_that_differ": routes,
            "checks": [[[v.to_json() for v in told] for told in side.values()] for side in checks],
        }
        click.echo(json.dumps(plain(document), default=str))
    else:
        console = standard_output()
        _print(console, samples, runs_a, runs_b, found, alpha)
        print_windows(console, windows, alpha)
        print_routes(console, routes, any(run.routes for run in (*runs_a, *runs_b)))
        print_checks(console, *(list(side.values()) for side in checks))
    return exit_status(found)


@contextmanager
def _spark(master: str | None) -> Iterator[SparkSession]:
    """The session of this process; one that was started for this is ended."""
    from pyspark.sql import SparkSession

    from ...checks.spark.session import session, stop

    before = SparkSession.getActiveSession()
    spark = session(master)
    try:
        yield spark
    finally:
        if before is None:
            stop(spark)


def _read(folder: Path, spark: SparkSession) -> RunSamples:
    from ...checks.spark.storage import load
    from .samples import samples_of

    history = load(folder, spark).cache()
    try:
        return samples_of(str(folder), history)
    finally:
        history.unpersist()


def compare_runs(
    a: Sequence[RunSamples], b: Sequence[RunSamples], *, samples: str = "run", alpha: float = 0.05, seed: int = 0
) -> list[Comparison]:
    """One comparison for each metric that either side measured. `samples`: run or client."""
    by_run = samples == "run"
    values = {
        metric: (kind, _values(a, metric, by_run), _values(b, metric, by_run)) for metric, kind in METRICS.items()
    }
    return compare_all(values, alpha=alpha, seed=seed)


def _values(runs: Sequence[RunSamples], metric: str, by_run: bool) -> list[float]:
    each = [run.samples.get(metric, ()) for run in runs]
    if not by_run:
        return [value for values in each for value in values]
    whole: Callable[[Any], Any] = np.median if METRICS[metric] is Kind.TIMES else np.mean
    return [float(whole(values)) for values in each if values]


def exit_status(found: Sequence[Comparison]) -> int:
    """1 when something differs, else 3 when something (or everything) cannot be told, else 0."""
    outcomes = {comparison.outcome for comparison in found}
    if Outcome.DIFFERS in outcomes:
        return 1
    return 3 if Outcome.CANNOT_TELL in outcomes or not outcomes else 0


def settings_that_differ(a: Sequence[RunSamples], b: Sequence[RunSamples]) -> dict[str, tuple[list[str], list[str]]]:
    """Setting to its values on each side, where they are not the same."""
    names = dict.fromkeys(name for run in (*a, *b) for name in run.settings)

    def values(runs: Sequence[RunSamples], name: str) -> list[str]:
        return sorted({str(run.settings.get(name)) for run in runs})

    found = {"scenario": (sorted({run.scenario for run in a}), sorted({run.scenario for run in b}))}
    found |= {name: (values(a, name), values(b, name)) for name in names}
    return {name: both for name, both in found.items() if both[0] != both[1]}


def _document(
    unit: str, a: Sequence[RunSamples], b: Sequence[RunSamples], found: Sequence[Comparison], alpha: float
) -> dict[str, Any]:
    return {
        "a": [run.run for run in a],
        "b": [run.run for run in b],
        "differ_in": settings_that_differ(a, b),
        "sample": unit,
        "alpha": alpha,
        "comparisons": [
            asdict(c) | {"cut_short_a": _cut_short(a, c.name), "cut_short_b": _cut_short(b, c.name)} for c in found
        ],
    }


def _cut_short(runs: Sequence[RunSamples], metric: str) -> int:
    return sum(run.cut_short.get(metric, 0) for run in runs)


def plain(value: Any) -> Any:
    """The same for JSON, which has no infinity and no NaN."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return value


def _print(
    console: Console,
    unit: str,
    a: Sequence[RunSamples],
    b: Sequence[RunSamples],
    found: Sequence[Comparison],
    alpha: float,
) -> None:
    for name, side in (("A", a), ("B", b)):
        console.print(f"{name}: {len(side)} run(s): {', '.join(run.run for run in side)}", highlight=False)
    differing = settings_that_differ(a, b)
    told = "; ".join(f"{name} {', '.join(x)} / {', '.join(y)}" for name, (x, y) in differing.items())
    console.print(f"settings that differ (A / B): {told or 'none'}", highlight=False)
    table = Table()
    for column in ("metric", "samples", "A: median, p99", "B: median, p99", "B − A", "p (Holm)", "Cliff's δ", "result"):
        table.add_column(column)
    for c in found:
        cut = _cut_short(a, c.name) + _cut_short(b, c.name)
        table.add_row(
            c.name,
            f"{c.n_a} / {c.n_b}" + (f" ({cut} cut short)" if cut else ""),
            _middle(c.kind, c.median_a, c.mean_a, c.p99_a),
            _middle(c.kind, c.median_b, c.mean_b, c.p99_b),
            _interval(c),
            "" if c.p_holm is None else f"{c.p_holm:.2g}",
            "" if c.effect is None else f"{c.effect:+.2f} (found from {_detectable(c)})",
            f"[{_STYLE[c.outcome]}]{c.outcome}[/]" + (f": {c.why}" if c.why else ""),
        )
    print_fitting(console, table)
    if not found:
        console.print("neither side has any sample: cannot tell")
    sample = "a sample is one client's or NameServer's measurement, so this holds for these runs only"
    if unit == "run":
        sample = f"a sample is one run, and {RUNS_ENOUGH} a side are enough for all metrics"
    console.print(f"All together at alpha {alpha:g}, intervals hold together with {100 * (1 - alpha):g} %; {sample}.")


def _shown(kind: Kind, value: float) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    return f"{value / 1000:.2f} s" if kind is Kind.TIMES else f"{100 * value:.2f} %"


def _middle(kind: Kind, median: float | None, mean: float | None, p99: float | None) -> str:
    if median is None or mean is None or p99 is None:
        return "–"
    if kind is Kind.SHARES:
        return f"{_shown(kind, median)}, mean {_shown(kind, mean)}"
    return f"{_shown(kind, median)}, {_shown(kind, p99)}"


def _interval(c: Comparison) -> str:
    if c.estimate is None or c.low is None or c.high is None:
        return ""
    return f"{_shown(c.kind, c.estimate)} [{_shown(c.kind, c.low)} .. {_shown(c.kind, c.high)}]"


def _detectable(c: Comparison) -> str:
    return "none" if c.detectable is None else f"{c.detectable:.2f}"
