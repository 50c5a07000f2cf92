"""The self-test: every planted defect must be found by its checks, and no check may fail in a run without a defect.

Each defect's scenario is run with the defect and, once per scenario, without it (the clean twin). All checks judge each
run of the self-test. A defect is killed if every check that must find it says INVALID, all other checks that say
INVALID may find it, and the first sentence accuses a node in which the defect is planted (of Apache's servers, any).
A twin is clean if every check judged it and no check says INVALID. Any other result fails the self-test.

    real clock      one run after the other; Spark judges
    virtual clock   as many at once as there are processors; judged plainly (checks/plain): the same verdicts without
                    Spark
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from ..checks.cause import cause_of
from ..errors import ScenarioError, nearest
from ..experiment.harness import Harness
from ..experiment.progress import Progress
from ..experiment.run_folder import refuse_used
from ..judging import Engine, Judged, keep, of_run
from ..machine import in_processes
from ..reports.terminal import print_rows, standard_output
from ..runner import Options, record_virtual, require_parts, run_one
from ..scenarios.loading import find
from ..scenarios.model import CHECK_NAMES, Scenario
from ..verdict import Validity
from .defects import DEFECTS, Defect

PLAIN_RUN_S = 2.5
"""A run on the virtual clock that is judged plainly takes about so long, of the machine's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestOutcome:
    """One run of the self-test: the checks that must say INVALID, the checks that may say INVALID, and all verdicts."""

    scenario: str
    seed: int = 1
    defect: str | None
    meant: frozenset[str]
    also: frozenset[str] = frozenset()
    found: frozenset[str]
    unknown: frozenset[str]
    unjudged: frozenset[str] = frozenset()
    """The checks that said nothing of this run, or failed."""
    accused: str | None = None
    """The node that the first sentence accuses though the defect is planted elsewhere ("": no node); None: a right one.
    """
    where: str = field(compare=False)
    """The run folder."""

    @property
    def passed(self) -> bool:
        return not self.unjudged and self.accused is None and self.meant <= self.found <= self.meant | self.also

    @property
    def result(self) -> str:
        if self.passed:
            return "clean" if self.defect is None else "killed"
        if self.unjudged:
            return f"NOT JUDGED by {', '.join(sorted(self.unjudged))}"
        return "SURVIVED" if self.defect and not self.meant <= self.found else "WRONG"

    @property
    def line(self) -> str:
        """Return `smoke, broker-answers-oneway, seed 1: found by answers_asked_for`."""
        result = f"found by {', '.join(sorted(self.found))}" if self.defect else self.result
        said = result if self.passed else f"{self.result}, {_missed(self)} ({self.where})"
        return f"{self.scenario}, {self.defect or 'none (clean twin)'}, seed {self.seed}: {said}"

    def to_json(self) -> dict[str, object]:
        named = {name: sorted(getattr(self, name)) for name in ("meant", "also", "found", "unknown")}
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "defect": self.defect,
            **named,
            "result": self.result,
            "passed": self.passed,
            "run_dir": self.where,
        }

    @classmethod
    def of(cls, judged: Judged, defect: Defect | None, seed: int = 1) -> SelftestOutcome:
        verdicts = (*judged.verdicts, *judged.left_out)

        def named(validity: Validity) -> frozenset[str]:
            return frozenset(v.name for v in verdicts if v.verdict is validity)

        return cls(
            scenario=judged.history.name,
            seed=seed,
            defect=None if defect is None else defect.name,
            meant=frozenset() if defect is None else defect.caught_by,
            also=frozenset() if defect is None else defect.also,
            found=named(Validity.INVALID),
            unknown=named(Validity.UNKNOWN),
            unjudged=frozenset(CHECK_NAMES) - {v.name for v in verdicts if not v.check_failed},
            accused=None if defect is None else _innocent(judged, defect),
            where=judged.history.where,
        )


def _innocent(judged: Judged, defect: Defect) -> str | None:
    """Return the accused node if the defect is not planted in that node; "" if no node is accused."""
    cause, scenario = cause_of(judged.verdicts), judged.history.scenario
    if cause is None or scenario is None or defect.of_apache:
        return None
    kind = scenario.topology().kinds.get(cause.node)
    return None if kind is not None and defect.is_for(cause.node, kind) else cause.node


def scenario_of(name: str) -> Scenario:
    """Return the shipped scenario of that name, with all checks switched on."""
    return find(name).model_copy(update={"checks": CHECK_NAMES})


class OneRun(NamedTuple):
    """One run that the self-test needs. `OneRun` has only names, so that another process can make the run."""

    scenario: str
    defect: str | None
    seed: int
    out: Path | None = None
    """The run folder. None: a new folder in runs/."""


def run_selftest(
    only: Sequence[str],
    options: Options,
    seeds: Sequence[int] = (1,),
    *,
    at_once: int = 1,
    verbose: bool = False,
) -> int:
    """Run the self-test and print the table, also if the self-test is interrupted. Returns 0 if, with every seed, every
    defect is killed and every twin is clean, else 1. On the virtual clock `at_once` runs are made at the same time. A
    run is told on stderr as soon as it is judged, if `verbose`, or on a terminal."""
    for name in only:
        if name not in DEFECTS:
            raise ScenarioError(
                "selftest",
                "--only",
                repr(name),
                f"a defect that `nemesrv defects` lists with a scenario{nearest(name, DEFECTS)}",
            )
    plan = plan_of(only or tuple(DEFECTS))
    refuse_used(options.out)
    asked = [
        OneRun(scenario, name, seed, options.out and options.out / f"{name or f'{scenario}-clean'}-{seed}")
        for seed in seeds
        for name, scenario in ((None if defect is None else defect.name, scenario) for defect, scenario in plan)
    ]
    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
    verbose = verbose or bool(clear and not options.quiet)
    outcomes: list[SelftestOutcome] = []
    try:
        for outcome in _plainly(asked, at_once, options) if options.virtual else _by_spark(asked, options):
            outcomes.append(outcome)
            if verbose:
                click.echo(f"{clear}{outcome.line}", err=True)
    finally:
        if outcomes and options.as_json:
            click.echo(json.dumps([outcome.to_json() for outcome in outcomes]))
        elif outcomes:
            print_outcomes(standard_output(180), outcomes, len(asked))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _by_spark(asked: Sequence[OneRun], options: Options) -> Iterator[SelftestOutcome]:
    scenarios = [scenario_of(each.scenario) for each in asked]
    joins, spark = options.ray is not None, options.needs_spark(scenarios)
    require_parts("nemesrv selftest", scenarios, joins=joins, spark=spark)
    with Harness(gentle=True, ray=options.ray) as harness:
        for each, scenario in zip(asked, scenarios, strict=True):
            defect = None if each.defect is None else DEFECTS[each.defect]
            judged = run_one(scenario, replace(options, seed=each.seed, out=each.out), harness, defect)
            yield SelftestOutcome.of(judged, defect, each.seed)


def _plainly(asked: Sequence[OneRun], at_once: int, options: Options) -> Iterator[SelftestOutcome]:
    expected_s = PLAIN_RUN_S * math.ceil(len(asked) / at_once)
    progress = Progress("self-test", expected_s, quiet=options.quiet, patient=True)
    progress.part(0, len(asked), "runs judged")
    try:
        for number, outcome in enumerate(in_processes(_one_plainly, asked, at_once), 1):
            progress.part(number, len(asked), "runs judged")
            yield outcome
    finally:
        progress.clear()


def _one_plainly(asked: OneRun) -> SelftestOutcome:
    """Record one run and judge it in plain Python. `nemesrv report` can draw the run's folder."""
    from ..checks.plain.verdicts import verdicts

    scenario = scenario_of(asked.scenario)
    defect = None if asked.defect is None else DEFECTS[asked.defect]
    folder = record_virtual(scenario, asked.seed, asked.out, defect, latest=False)
    history = replace(of_run(folder, folder.scenario()), drawn=False)
    return SelftestOutcome.of(keep(history, verdicts(folder.path), Engine.PLAIN), defect, asked.seed)


def plan_of(names: Iterable[str]) -> list[tuple[Defect | None, str]]:
    """Return the self-test's runs: for each scenario the clean twin, then the defects."""
    defects = [DEFECTS[name] for name in names]
    plan: list[tuple[Defect | None, str]] = []
    for scenario in dict.fromkeys(defect.scenario for defect in defects):
        plan.append((None, scenario))
        plan += [(defect, scenario) for defect in defects if defect.scenario == scenario]
    return plan


def print_outcomes(console: Console, outcomes: Sequence[SelftestOutcome], asked: int = 0) -> None:
    """Print a row for each defect and each clean twin, with the runs that failed; then the sums of the runs that were
    made, of the runs that were asked for, and the seed with the fewest passes."""
    seeds = list(dict.fromkeys(outcome.seed for outcome in outcomes))
    by_run: dict[tuple[str, str], list[SelftestOutcome]] = {}
    for outcome in outcomes:
        by_run.setdefault((outcome.scenario, outcome.defect or "none (clean twin)"), []).append(outcome)
    rows: list[tuple[str, ...]] = []
    for run, of in by_run.items():
        meant = ", ".join([*sorted(of[0].meant), *(f"({name})" for name in sorted(of[0].also))]) or "-"
        missed = [
            f"[bold red]{one.result}[/], seed {one.seed}: {_missed(one)} ({one.where})" for one in of if not one.passed
        ]
        result = "; ".join(missed) or f"[green]{of[0].result.replace('killed', 'found')}[/]"
        rows.append((*run, meant, result))
    caption = _sums(outcomes)
    if len(outcomes) < asked:
        caption = f"interrupted after {len(outcomes)} of {asked} runs: {caption}"
    if len(seeds) > 1:
        by_seed = {seed: [outcome for outcome in outcomes if outcome.seed == seed] for seed in seeds}
        weakest = min(seeds, key=lambda seed: sum(outcome.passed for outcome in by_seed[seed]))
        caption += f"; weakest of {len(seeds)} seeds is {weakest}: {_sums(by_seed[weakest])}"
    columns = ("scenario", "planted defect", "meant to find it", "result")
    print_rows(console, columns, rows, title="self-test", caption=caption)


def _missed(outcome: SelftestOutcome) -> str:
    """Return "routes_are_true is silent, duplicates says INVALID"."""
    silent = [f"{name} is silent" for name in sorted(outcome.meant - outcome.found)]
    strange = [f"{name} says INVALID" for name in sorted(outcome.found - outcome.meant - outcome.also)]
    unjudged = [f"{name} did not judge" for name in sorted(outcome.unjudged)]
    accused = [] if outcome.accused is None else [f"the first sentence accuses {outcome.accused or 'no node'}"]
    return ", ".join(silent + strange + unjudged + accused)


def _sums(outcomes: Sequence[SelftestOutcome]) -> str:
    planted = [outcome for outcome in outcomes if outcome.defect is not None]
    twins = [outcome.passed for outcome in outcomes if outcome.defect is None]
    found = [outcome for outcome in planted if outcome.meant <= outcome.found and not outcome.unjudged]
    strange = sum(not outcome.passed for outcome in found)
    also = f" ({strange} of them by a check that must not find it, or with another node accused)" if strange else ""
    return f"{len(found)} of {len(planted)} defects found{also}, {sum(twins)} of {len(twins)} twins clean"
