"""Reads a judged run folder and writes its reports: report.html, junit.xml. Judges nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .checks import CHECKS
from .checks.cause import first_wrong
from .checks.check import Group
from .errors import ScenarioError
from .experiment.run_folder import RunFolder
from .installation import require_extras
from .reports.ci import INCIDENT, junit, replay_line
from .reports.cost import Cost, cost_of
from .scenarios.model import Scenario
from .verdict import Finding, Verdict, worst

if TYPE_CHECKING:
    from .reports.html import Run


def read_verdicts(folder: RunFolder) -> list[Verdict]:
    """The run's verdicts with their findings. Raises ScenarioError if the run was never judged."""
    try:
        document = json.loads(folder.verdicts_file.read_text(encoding="utf-8"))
        found = _read_findings(folder)
        return [
            replace(
                verdict,
                findings=tuple(found.get(verdict.name, ())),
                timeline_ms=float(document.get("timeline_ms") or 0.0),
            )
            for verdict in map(Verdict.from_json, document["checks"])
        ]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ScenarioError(str(folder.verdicts_file), "", "", "verdicts, which `nemesrv check` writes") from exc


def read_left_out(folder: RunFolder) -> dict[str, str]:
    """Return the checks that had nothing to examine in this judged run, each with the reason."""
    return json.loads(folder.verdicts_file.read_text(encoding="utf-8")).get("left_out") or {}


def _read_cost(folder: RunFolder) -> Cost | None:
    """Return the cost from verdicts.json, or from the history if verdicts.json has no cost (after a self-test)."""
    document = json.loads(folder.verdicts_file.read_text(encoding="utf-8")) if folder.verdicts_file.is_file() else {}
    return Cost.from_json(document["cost"]) if document.get("cost") else cost_of(folder.path)


def _read_findings(folder: RunFolder) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = defaultdict(list)
    if folder.findings_file.is_file():
        with folder.findings_file.open(encoding="utf-8") as file:
            for document in map(json.loads, file):
                found[document["check"]].append(Finding.from_json(document))
    return found


def write_reports(folder: RunFolder) -> None:
    """Write junit.xml and report.html. Raises ScenarioError if the folder has no verdicts."""
    require_extras("the report", "report")
    scenario, verdicts = folder.scenario(), read_verdicts(folder)
    from .reports.html import RunToDraw, html_of  # Bokeh: half a second that other commands need not wait for

    told = RunToDraw(_run(folder, scenario, verdicts), verdicts, folder.path)
    folder.report_file.write_text(html_of(told, verdicts), encoding="utf-8")
    write_junit(folder, scenario, verdicts, read_left_out(folder))


def write_replay(folder: RunFolder) -> None:
    """Write report.html of a replay that was not judged: the comparison in replay.json, and each node's time line."""
    from .reports.html import html_report

    scenario = folder.scenario()
    verdicts = read_verdicts(folder) if folder.verdicts_file.is_file() else ()
    page = html_report(_run(folder, scenario, verdicts), verdicts, folder.path)
    folder.report_file.write_text(page, encoding="utf-8")


def written(folder: RunFolder) -> dict[str, object]:
    """Return what `report --json` prints: the path of the report, and the run's folder, scenario, seed and verdicts."""
    scenario, verdicts = folder.scenario(), read_verdicts(folder)
    ended = {v.name: str(v.verdict) for v in verdicts}
    run: dict[str, object] = {"run_dir": str(folder.path), "scenario": scenario.name, "seed": scenario.seed}
    run |= {"verdict": str(worst(v.verdict for v in verdicts)), "checks": ended}
    return {"file": str(folder.report_file), "runs": [run]}


_EXPLAINED = {name for name, check in CHECKS.items() if check.group is Group.ROUTES}
_EXPLAINED |= {"dead_brokers_avoided", "dead_name_servers_left", "availability", "recovery_time"}
"""The checks whose rules `nemesrv explain` tells."""


def _run(folder: RunFolder, scenario: Scenario, verdicts: Sequence[Verdict]) -> Run:
    from .reports.html import Run

    again = replay_line(folder.scenario_file, scenario.seed or 0, virtual=scenario.clock == "virtual")
    wrong, is_incident = first_wrong(verdicts), (folder.path / INCIDENT).is_file()
    is_explained = not is_incident and (wrong is None or wrong.name in _EXPLAINED)
    return Run(
        name=scenario.name,
        description=scenario.description,
        seed=scenario.seed,
        profile=scenario.cluster.profile,
        time_scale=scenario.timers.time_scale,
        versions=scenario.versions,
        again=again,
        explain=f"nemesrv explain {folder.scenario_file}" if is_explained else "",
        scenario=scenario,
        left_out=read_left_out(folder) if folder.verdicts_file.is_file() else {},
        cost=_read_cost(folder),
    )


def write_junit(
    folder: RunFolder, scenario: Scenario, verdicts: Sequence[Verdict], left_out: Mapping[str, str]
) -> None:
    folder.junit_file.write_bytes(junit(scenario.name, scenario.seed or 0, verdicts, left_out))
