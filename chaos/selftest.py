"""The self-test: every planted defect is found by exactly the checks meant for it, and its clean twin by none.

For each defect its scenario is run with the defect planted and, once per scenario, without. A defect counts as caught
when the checks that say INVALID are those named for it, no more and no fewer; a twin is clean when no check says
INVALID. Anything else fails the self-test, which is what makes the checks' VALID worth something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from .defects import DEFECTS, Defect
from .errors import ScenarioError
from .harness import Harness
from .run_folder import RunFolder
from .runner import Judged, Options, require_parts, run_one
from .scenarios.model import find
from .verdict import Validity


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run of the self-test: which checks were to say INVALID, and what they said."""

    scenario: str
    defect: str | None
    meant: frozenset[str]
    found: frozenset[str]
    unknown: frozenset[str]
    folder: RunFolder = field(compare=False)

    @property
    def passed(self) -> bool:
        return self.found == self.meant

    @classmethod
    def of(cls, judged: Judged, defect: Defect | None) -> Outcome:
        def named(validity: Validity) -> frozenset[str]:
            return frozenset(v.name for v in judged.verdicts if v.verdict is validity)

        return cls(
            scenario=judged.scenario.name,
            defect=None if defect is None else defect.name,
            meant=frozenset() if defect is None else defect.caught_by,
            found=named(Validity.INVALID),
            unknown=named(Validity.UNKNOWN),
            folder=judged.folder,
        )


def run_selftest(only: Sequence[str], seed: int) -> int:
    """0 when every defect is caught and every twin is clean, else 1; prints the table."""
    for name in only:
        if name not in DEFECTS:
            raise ScenarioError("selftest", "--only", repr(name), f"one of {', '.join(DEFECTS)}")
    require_parts()
    outcomes = []
    with Harness() as harness:
        for defect, scenario in _plan(only or tuple(DEFECTS)):
            judged = run_one(find(scenario), Options(seed=seed), harness, defect)
            outcomes.append(Outcome.of(judged, defect))
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    console.print(selftest_table(outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _plan(names: Iterable[str]) -> list[tuple[Defect | None, str]]:
    """The runs: each scenario's clean twin first, then its defects."""
    defects = [DEFECTS[name] for name in names]
    plan: list[tuple[Defect | None, str]] = []
    for scenario in dict.fromkeys(defect.scenario for defect in defects):
        plan.append((None, scenario))
        plan += [(defect, scenario) for defect in defects if defect.scenario == scenario]
    return plan


def selftest_table(outcomes: Sequence[Outcome]) -> Table:
    """One row a run."""
    table = Table(title="self-test", title_justify="left")
    for column in ("scenario", "planted defect", "meant to find it", "INVALID", "UNKNOWN", "result"):
        table.add_column(column)
    for outcome in outcomes:
        table.add_row(
            outcome.scenario,
            outcome.defect or "none (clean twin)",
            ", ".join(sorted(outcome.meant)) or "-",
            ", ".join(sorted(outcome.found)) or "-",
            ", ".join(sorted(outcome.unknown)) or "-",
            "[green]as meant[/]" if outcome.passed else f"[bold red]WRONG[/] ({outcome.folder.path})",
        )
    return table
