"""`nemesrv compare` says whether two configurations or versions differ in recovery time, availability, staleness, or
the time of a client without a broker.

Each run gives one sample per metric: the median of times, or the mean of shares. Clients of one run are not independent
samples, because they share the run's timer phases. Each side (A and B) therefore needs at least RUNS_ENOUGH runs. The
exit status is 0 if no difference was found, 1 if A and B differ, 3 if there are too few data to tell.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click
import orjson
from rich.console import Console

from ...history.stored import rows_of
from ...history.transitions import EVENTS as OF_TRANSITIONS
from ...history.transitions import Transition, seen
from ...oracle.world import World
from ...reports.cost import Cost, cost_of, of_sides
from ...reports.terminal import measured, print_rows, standard_output
from ...verdict import Verdict
from .per_client import EVENTS as OF_CLIENTS
from .per_client import ClientFigures, beside, client_lines, clients_of, typical
from .samples import EVENTS as OF_SAMPLES
from .samples import METRICS, SHARES, RunSamples, samples_of, topics_that_differ
from .two_samples import RUNS_ENOUGH, Comparison, ComparisonOutcome, compare_all, shown

ALPHA = 0.05
"""For all metrics together."""
_STYLE = {
    ComparisonOutcome.DIFFERS: "bold red",
    ComparisonOutcome.NO_DIFFERENCE: "green",
    ComparisonOutcome.CANNOT_TELL: "yellow",
}
_WORST = ("VALID", "UNKNOWN", "INVALID")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One run of side A or B: its samples, its clients' figures, its transitions and verdicts."""

    samples: RunSamples
    clients: Mapping[str, ClientFigures]
    transitions: Sequence[Transition]
    cost: Cost | None
    """None: no client worked."""
    verdicts: Sequence[Verdict] = ()
    """None where it was not judged."""
    fixed_phases: bool = False
    """The scenario sets the timers' phases, so that other seeds give nearly the same run."""


def run_of(
    folder: Path, verdicts: Sequence[Verdict] = (), name: str = "", *, fixed_phases: bool = False
) -> ComparedRun:
    """Return the figures of the run in this folder. Samples are labelled with `name`, or, without a name, with the
    folder; a folder that will be deleted is no label."""
    rows = rows_of(folder, {*OF_SAMPLES, *OF_TRANSITIONS, *OF_CLIENTS})
    world = World.of_rows(rows)
    phases = {row["phase"]: row["time_ms"] for row in reversed(rows) if row["event"] == "phase"}
    from_ms = phases.get("steady", -math.inf)
    to_ms = min(phases.get("final_reads", math.inf), world.end_ms)
    transitions = seen(rows, from_ms, to_ms, zero_ms=world.timeline_ms).transitions
    cost = cost_of(folder)
    return ComparedRun(
        samples=samples_of(name or str(folder), rows, cost),
        clients=clients_of(rows, from_ms, to_ms, transitions, {}, cost),
        transitions=transitions,
        cost=cost,
        verdicts=verdicts,
        fixed_phases=fixed_phases,
    )


@dataclass(frozen=True, kw_only=True)
class Sides:
    a: Sequence[ComparedRun]
    b: Sequence[ComparedRun]

    @property
    def runs(self) -> tuple[Sequence[ComparedRun], Sequence[ComparedRun]]:
        return self.a, self.b

    @property
    def samples(self) -> tuple[list[RunSamples], list[RunSamples]]:
        return [run.samples for run in self.a], [run.samples for run in self.b]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        return compare_runs(*self.samples, copies=self.fixed_phases)

    @property
    def fixed_phases(self) -> bool:
        return any(run.fixed_phases for side in self.runs for run in side)

    @cached_property
    def windows(self) -> list[Comparison]:
        """Return the comparisons that are shown, but not tested for a difference, such as the registration period."""
        sides = [[run.windows for run in side] for side in self.samples]
        names = dict.fromkeys(name for side in sides for run in side for name in run)
        return [shown(name, *(_values(side, name, median) for side in sides), alpha=ALPHA) for name in names]

    @property
    def settings(self) -> dict[str, tuple[list[str], list[str]]]:
        return settings_that_differ(*self.samples)

    @property
    def routes(self) -> dict[str, tuple[int, int]]:
        return topics_that_differ(*([run.routes for run in side] for side in self.samples))

    @cached_property
    def clients(self) -> dict[str, Any]:
        """Return each client's median figures on sides A and B, and the transitions and cost of the first run of A and
        of B."""
        was, now = (typical([run.clients for run in side]) for side in self.runs)
        a, b = self.a[0], self.b[0]
        differ = [
            f"{one.name} {_said(one.name, one.mean_b)} instead of {_said(one.name, one.mean_a)}"
            for one in self.comparisons
            if one.outcome is ComparisonOutcome.DIFFERS and one.mean_a is not None and one.mean_b is not None
        ]
        decided = any(one.outcome is not ComparisonOutcome.CANNOT_TELL for one in self.comparisons)
        tested = f"by the test: {'; '.join(differ) or 'no metric differs'}" if decided else "no metric was tested"
        return beside("B", was, now, (a.transitions, b.transitions), (a.cost, b.cost), tested)

    def cut_short(self, metric: str) -> list[int]:
        return [sum(run.cut_short.get(metric, 0) for run in side) for side in self.samples]

    @property
    def exit_status(self) -> int:
        return exit_status(self.comparisons)


def compare_runs(a: Sequence[RunSamples], b: Sequence[RunSamples], *, copies: bool = False) -> list[Comparison]:
    sides = [[run.samples for run in side] for side in (a, b)]
    wholes = {metric: fmean if metric in SHARES else median for metric in METRICS}
    values = {name: (_values(sides[0], name, whole), _values(sides[1], name, whole)) for name, whole in wholes.items()}
    return compare_all(values, alpha=ALPHA, copies=copies)


def _values(
    runs: Iterable[Mapping[str, Sequence[float]]], name: str, whole: Callable[[Sequence[float]], float]
) -> list[float]:
    return [whole(run[name]) for run in runs if run.get(name)]


def exit_status(found: Sequence[Comparison]) -> int:
    """Return 1 if a metric differs between A and B, else 3 if the runs are too few to decide a metric, else 0."""
    outcomes = {comparison.outcome for comparison in found}
    if ComparisonOutcome.DIFFERS in outcomes:
        return 1
    return 3 if ComparisonOutcome.CANNOT_TELL in outcomes or not outcomes else 0


def settings_that_differ(a: Sequence[RunSamples], b: Sequence[RunSamples]) -> dict[str, tuple[list[str], list[str]]]:
    """Return each setting that differs between A and B, with its values on both sides."""
    names = dict.fromkeys(name for run in (*a, *b) for name in run.settings)

    def values(runs: Sequence[RunSamples], name: str) -> list[str]:
        said = (run.settings.get(name) for run in runs)
        return sorted({str(int(each) if isinstance(each, float) and each.is_integer() else each) for each in said})

    found = {"scenario": (sorted({run.scenario for run in a}), sorted({run.scenario for run in b}))}
    found |= {name: (values(a, name), values(b, name)) for name in names}
    return {name: both for name, both in found.items() if both[0] != both[1]}


def print_sides(sides: Sides, *, as_json: bool) -> None:
    """Print the comparison on stdout: as tables, or as one JSON object."""
    if as_json:
        click.echo(orjson.dumps(_document(sides), default=str))
        return
    console = standard_output()
    _print_comparisons(console, sides)
    _print_routes(console, sides)
    _print_checks(console, sides)
    costs = zip(("cost of A's first run", "cost of B's first run"), sides.clients["cost"], strict=True)
    for line in (*client_lines([sides.clients]), *of_sides(costs)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _document(sides: Sides) -> dict[str, Any]:
    comparisons = []
    for one in sides.comparisons:
        a, b = sides.cut_short(one.name)
        comparisons.append(asdict(one) | {"cut_short_a": a, "cut_short_b": b})
    return {
        "a": [run.samples.run for run in sides.a],
        "b": [run.samples.run for run in sides.b],
        "differ_in": sides.settings,
        "alpha": ALPHA,
        "comparisons": comparisons,
        "windows": sides.windows,
        "routes_that_differ": sides.routes,
        "checks": [[[verdict.to_json() for verdict in run.verdicts] for run in side] for side in sides.runs],
        "clients": sides.clients["clients"],
        "cost": sides.clients["cost"],
        "sentence": sides.clients["sentence"],
    }


def _print_comparisons(console: Console, sides: Sides) -> None:
    for name, side in zip("AB", sides.runs, strict=True):
        console.print(f"{name}: {len(side)} run(s): {', '.join(run.samples.run for run in side)}", highlight=False)
    told = "; ".join(f"{name} {', '.join(x)} / {', '.join(y)}" for name, (x, y) in sides.settings.items())
    console.print(f"settings that differ (A / B): {told or 'none'}", highlight=False)
    rows = []
    for one in sides.comparisons:
        cut = sum(sides.cut_short(one.name))
        runs, *means = _cells(one)
        result = "" if one.outcome is None else f"[{_STYLE[one.outcome]}]{one.outcome}[/]"
        p_value = "" if one.p_value is None else f"{one.p_value:.2g}"
        told = ": ".join(filter(None, (result, one.why)))
        rows.append((one.name, f"{runs} ({cut} cut short)" if cut else runs, *means, p_value, told))
    columns = ("runs", "mean of A", "mean of B", f"B − A [{100 * (1 - ALPHA):g} %]")
    print_rows(console, ("metric", *columns, "p (Holm)", "result"), rows)
    if not rows:
        console.print("neither side has any sample: cannot tell")
    tested = f"All together at alpha {ALPHA:g}, and the intervals hold together; {RUNS_ENOUGH} runs a side are enough."
    if sides.fixed_phases:
        tested = (
            "The scenario has the timer phases of the original, so all runs of a side are nearly one run, and no test "
            "is made. --set 'phases={}' draws other phases with each seed."
        )
    console.print(
        f"{tested} A recovery ends with a client's first good send or pull at any broker; the time without a broker "
        "ends with an answer of the same broker."
    )
    if sides.windows:
        rows = [(one.name, *_cells(one)) for one in sides.windows]
        title = "windows: shown, not tested; only drops for silence count"
        print_rows(console, ("window", *columns), rows, title=title)


def _cells(one: Comparison) -> list[str]:
    means = ["–" if mean is None else _said(one.name, mean) for mean in (one.mean_a, one.mean_b)]
    apart = ""
    if one.estimate is not None and one.low is not None and one.high is not None:
        apart = "{} [{} .. {}]".format(*(_said(one.name, value) for value in (one.estimate, one.low, one.high)))
    return [f"{one.n_a} / {one.n_b}", *means, apart]


def _said(name: str, value: float) -> str:
    if name in SHARES:
        return f"{100 * value:.2f} %"
    return f"{value / 1000:.2f} s" if abs(value) >= 100 else f"{value:.1f} ms"


def _print_routes(console: Console, sides: Sides) -> None:
    """Print whether every NameServer of both sides ended with the same routes, whatever the ports."""
    if not any(run.samples.routes for side in sides.runs for run in side):
        return
    topics = sides.routes
    told = "; ".join(f"{topic} ({a} / {b} different ones)" for topic, (a, b) in list(topics.items())[:10])
    more = f" and {len(topics) - 10} more" if len(topics) > 10 else ""
    said = f"routes at the end differ (A / B): {told}{more}"
    console.print(said if topics else "routes at the end: the same at every NameServer of both sides", highlight=False)


def _print_checks(console: Console, sides: Sides) -> None:
    """Print the verdicts of each check on either side, with the measured values of the worst; judged runs only."""
    names = dict.fromkeys(verdict.name for side in sides.runs for run in side for verdict in run.verdicts)
    rows = []
    for name in names:
        both = [[verdict for run in side for verdict in run.verdicts if verdict.name == name] for side in sides.runs]
        rows.append((name, *map(_verdicts, both)))
    if rows:
        title = "checks: verdicts, and what was measured in the first run with the worst verdict"
        print_rows(console, ("check", "A", "B"), rows, title=title)


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "–"
    counted = Counter(str(verdict.verdict) for verdict in verdicts)
    worst = max(verdicts, key=lambda verdict: _WORST.index(str(verdict.verdict)))
    told = ", ".join(f"{count} {word}" for word, count in counted.items())
    return ": ".join(filter(None, (told, measured(worst))))
