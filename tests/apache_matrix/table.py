"""The table of docs/apache.md: scenarios × implementations, from measured/."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.reporting import read_verdicts
from nemesrv.chaos.reports.terminal import allowed, measured
from nemesrv.chaos.verdict import Validity, worst
from tests.rows_of_json import rows_of_json

MEASURED = Path(__file__).with_name("measured")
SCENARIOS = (
    *("smoke", "broker-crash", "broker-hang", "broker-partition", "name-server-crash"),
    *("name-server-partition", "slave-reads", "starts"),
)
IMPLEMENTATIONS = ("apache-4.9.7", "apache-5.3.3")
IF_ASKED = ("apache-5.5.0",)
"""Beside them on the page, run with --implementation only: a third would take `make apache` past its 40 minutes."""


def cell_of(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a judged run."""
    verdicts = read_verdicts(RunFolder(folder))
    return {
        **about,
        "verdict": str(worst(v.verdict for v in verdicts)),
        "checks": {
            v.name: {"verdict": str(v.verdict), "examined": v.examined, "measured": measured(v), "allowed": allowed(v)}
            for v in verdicts
        },
    }


def cell_of_none(why: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run that was refused, or that the harness could not do."""
    return {**about, "verdict": "", "why": why, "checks": {}}


def kept(folder: Path = MEASURED) -> dict[str, dict[str, dict[str, Any]]]:
    """Implementation to scenario to its cell."""
    files = sorted(folder.glob("*.json"))
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}


def keep(implementation: str, scenario: str, cell: Mapping[str, Any], folder: Path = MEASURED) -> None:
    """Put a cell beside the others."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{implementation}.json"
    cells = json.loads(file.read_text("utf-8")) if file.exists() else {}
    cells[scenario] = cell
    ordered = {name: cells[name] for name in sorted(cells, key=_order)}
    file.write_text(rows_of_json(ordered, levels=3), "utf-8")


def _order(scenario: str) -> tuple[int, str]:
    return (SCENARIOS.index(scenario) if scenario in SCENARIOS else len(SCENARIOS), scenario)


def told(cell: Mapping[str, Any] | None) -> str:
    """`VALID (23 checks, ×5, seed 1, 110 s)`; what is not VALID by name; why there was no run."""
    if cell is None:
        return "–"
    if not cell["checks"]:
        return f"not run: {cell['why']}"
    wrong = [f"{name} {each['verdict']}" for name, each in cell["checks"].items() if each["verdict"] != Validity.VALID]
    named = f": {', '.join(wrong)}" if wrong else ""
    count = len(cell["checks"])
    how = [f"{count} check{'s' if count != 1 else ''}", f"×{cell['time_scale']:g}", f"seed {cell['seed']}"]
    took = [f"{cell['took_s']} s"] if "took_s" in cell else []
    return f"{cell['verdict']}{named} ({', '.join([*how, *took])})"


def matrix(cells: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Scenarios × implementations, verdicts."""
    names, scenarios = _names(cells)
    rows = [
        f"| {scenario} | " + " | ".join(told(cells[n].get(scenario)) for n in names) + " |" for scenario in scenarios
    ]
    return "\n".join(["| scenario | " + " | ".join(names) + " |", "|---|" + "---|" * len(names), *rows])


def _names(cells: Mapping[str, Mapping[str, Any]]) -> tuple[Sequence[str], Sequence[str]]:
    names = sorted(cells)
    return names, sorted({scenario for each in cells.values() for scenario in each}, key=_order)
