"""Makes every verdict: judges a history by its checks, and writes results for people and CI servers.

    run, self-test, pytest plugin ── of_run ─┐
    check: a folder, a URI, any size ─ find ─┼─► judge ─► keep ─► verdicts.json, junit.xml, report.html
    up: judged while it grows (live/) ───────┼──────────► keep          │
                                             └─ show ◄─ Judged ─► exit_status

Spark and plain Python (`engine_for`) give the same verdicts. Verdicts are written into the run folder if it is on this
machine. The report reads every event, so a report is made only for small histories and for a run that has just ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .checks import CHECKS
from .checks.cause import cause_of, first_wrong
from .checks.check import Group
from .errors import HarnessError, ScenarioError, nearest
from .experiment.run_folder import RunFolder
from .history.stored import SMALL_BYTES, local_path, local_size, parquet_files, refuse_unreadable, row_count
from .installation import has, how_to_get, require_extras
from .oracle.windows import legend
from .reporting import write_junit, write_reports
from .reports.answers import Answers, answers, counted, of_incident
from .reports.ci import append, read_incident, replay_line, summary
from .reports.cost import Cost, cost_of
from .reports.terminal import left_out_line, print_answers
from .scenarios.document import read, read_file
from .scenarios.loading import load, parse
from .scenarios.model import Scenario
from .settings.catalogue import CATALOGUE, key_of
from .verdict import Validity, Verdict, worst

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN_ROWS_MAX = 300_000
"""Judging so many in this process takes 2 s and 0.5 GB."""
_IN_SHORT = ("Broken rule: ", "Clients: ")
EXIT_STATUS = {Validity.VALID: 0, Validity.INVALID: 1, Validity.UNKNOWN: 3}


class Engine(StrEnum):
    """The program that judges: Spark or plain Python."""

    PLAIN = "plain"
    """Plain Python in this process, up to PLAIN_ROWS_MAX rows."""
    SPARK = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The place of a history, the checks that judge the history, and the folder for the verdicts."""

    where: str
    checks: tuple[str, ...]
    scenario: Scenario | None = None
    """None: the history came without one."""
    folder: RunFolder | None = None
    """None: no run folder on this machine, and nothing is written."""
    drawn: bool = True
    """Whether report.html is wanted."""

    @property
    def name(self) -> str:
        return self.where if self.scenario is None else self.scenario.name

    @property
    def seed(self) -> int:
        return 0 if self.scenario is None else self.scenario.seed or 0

    @property
    def profile(self) -> str:
        return "unknown" if self.scenario is None else self.scenario.cluster.profile


@dataclass(frozen=True, slots=True)
class Judged:
    """A history and its verdicts."""

    history: History
    verdicts: Sequence[Verdict]
    engine: Engine
    left_out: Sequence[Verdict] = ()
    """With `checks: all`: checks that had nothing to examine. They do not make the run UNKNOWN."""
    cost: Cost | None = None
    """None: no client worked, or there is no report, because the history is too large to draw."""

    @property
    def verdict(self) -> Validity:
        return worst(v.verdict for v in self.verdicts)


def exit_status(judged: Iterable[Judged]) -> int:
    """Return the exit status of the worst verdict: INVALID is worse than UNKNOWN, UNKNOWN is worse than VALID."""
    return EXIT_STATUS[worst(each.verdict for each in judged)]


def named_checks(text: str | None, option: str, default: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Return the checks in a comma-separated list. In the list, `all` stands for every check, and `default` for the
    checks in the argument `default`. None gives None. Raises ScenarioError for an unknown check."""
    if text is None:
        return None
    sets = {"all": tuple(CHECKS), **({"default": tuple(default)} if default else {})}
    groups = {
        str(check.group): [name for name in CHECKS if CHECKS[name].group == check.group] for check in CHECKS.values()
    }
    asked = (name.strip() for name in text.split(",") if name.strip())
    names = sets.get(text) or tuple(dict.fromkeys(chain.from_iterable(groups.get(name, [name]) for name in asked)))
    allowed = f"{', '.join(reversed(sets))}, or some of {', '.join(CHECKS)} and of the groups {', '.join(groups)}"
    for name in names or ("",):
        if name not in CHECKS:
            raise ScenarioError(option, "", repr(name), f"{allowed}{nearest(name, (*sets, *CHECKS))}")
    return names


def of_run(folder: RunFolder, scenario: Scenario) -> History:
    return History(where=str(folder.path), checks=scenario.checks, scenario=scenario, folder=folder)


def reasons(left_out: Iterable[Verdict]) -> dict[str, str]:
    return {verdict.name: verdict.why for verdict in left_out}


def engine_for(asked: str | None, *, virtual: bool = False, where: Path | str | None = None) -> Engine:
    """Return the engine (Spark or plain Python) for this history; None stands for a history that is not recorded yet.
    The default is Spark if Spark is installed, but plain Python for a small history from the virtual clock. Raises
    ScenarioError or HarnessError if the requested engine cannot judge the history.
    """
    if where is not None and local_path(where) is None:
        if asked == Engine.PLAIN:
            raise ScenarioError("--engine", "", asked, f"spark for {where}, which is not on this machine")
        require_extras(f"{where}, which is not on this machine,", "spark")
        return Engine.SPARK
    if asked == Engine.SPARK:
        require_extras("--engine spark", "spark")
    if asked is not None:
        return Engine(asked)
    if virtual and (where is None or row_count(Path(where)) <= PLAIN_ROWS_MAX):
        return Engine.PLAIN
    return Engine.SPARK if has("spark") else Engine.PLAIN


def find(where: str, checks: tuple[str, ...] | None, spark: Callable[[], SparkSession]) -> History:
    """Return the history at a path or URI. If `checks` is None, the history is judged by the checks in its
    scenario.yaml.

    `spark` is called only for a history on another machine. Raises ScenarioError if the path has no history, or if
    neither a scenario nor `checks` says which checks to use.
    """
    path = local_path(where)
    if path is None:
        from .checks.spark.storage import read_text

        file = f"{where.rstrip('/')}/scenario.yaml"
        text = None if checks else read_text(file, spark())
        scenario = None if text is None else parse(read(text, file=file), file=file, reads_defect=False)
        return History(where=where, checks=checks or _checks_of(scenario, where), scenario=scenario, drawn=False)
    if not path.exists() or (path.is_file() and path.suffix != ".parquet"):
        raise ScenarioError("check", "RUN_DIR", repr(where), "a run folder or a folder of Parquet files")
    if not local_size(path):
        allowed = "a run folder or a folder of Parquet files; there is no event in this one"
        raise ScenarioError("check", "RUN_DIR", repr(where), allowed)
    refuse_unreadable(parquet_files(path))
    folder = RunFolder(path)
    known = folder.scenario_file.is_file()
    scenario = _recorded(folder.scenario_file) if known else None
    return History(
        where=where,
        checks=checks or _checks_of(scenario, where),
        scenario=scenario,
        folder=folder if known else None,
        drawn=(local_size(path) or 0) <= SMALL_BYTES,
    )


def _recorded(file: Path) -> Scenario:
    """Return the scenario of a run folder. ScenarioError names the nemesrv that wrote it, if it is another version."""
    try:
        return load(file, reads_defect=False)
    except ScenarioError as exc:
        versions = read_file(file).get("versions")
        if other := _other_version(versions if isinstance(versions, Mapping) else {}):
            allowed = f"what nemesrv {version('nemesrv')} knows; the run was recorded by {other}: judge it with that"
            raise ScenarioError(exc.file, exc.key, exc.value, allowed) from exc
        raise


def _other_version(versions: Mapping[str, str]) -> str | None:
    recorded = versions.get("nemesrv")
    return None if recorded == version("nemesrv") else recorded


def _checks_of(scenario: Scenario | None, where: str) -> tuple[str, ...]:
    if scenario is None:
        allowed = "a scenario beside the history, or --checks to say what is to be judged"
        raise ScenarioError(f"{where.rstrip('/')}/scenario.yaml", "", "", allowed)
    return scenario.checks


def judge(
    history: History, engine: Engine, spark: Callable[[], SparkSession], say: Callable[[str], None] = lambda _: None
) -> Judged:
    """Judge the history by its checks and write the verdicts. `say` is called with a text of what Spark is counting.
    Raises HarnessError if the history cannot be read, or is too large for plain Python."""
    if engine is Engine.PLAIN:
        return keep(history, _plain_verdicts(history), engine)
    from .checks.spark.executors import awaited
    from .checks.spark.judge import check_run

    session = spark()
    with awaited(session, say):
        verdicts = check_run(history.where, history.checks, session, say)
    return keep(history, verdicts, engine)


def _plain_verdicts(history: History) -> list[Verdict]:
    from .checks.plain.verdicts import verdicts

    path = local_path(history.where)
    assert path is not None, "what is elsewhere, Spark reads"
    if (count := row_count(path)) > PLAIN_ROWS_MAX:
        mend = "leave --engine plain out" if has("spark") else f"{how_to_get(['spark'])} (it needs a JDK 17 or newer)"
        more = f"{history.where} has {count:,} rows, and {PLAIN_ROWS_MAX:,} are judged without Spark"
        raise HarnessError(f"{more}: {mend}, and judge it with `nemesrv check {history.where}`")
    return verdicts(path, history.checks)


def apart(
    checks: Iterable[str],
    verdicts: Sequence[Verdict],
    *,
    promised: Collection[str] = (),
    without_consumers: bool = False,
) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts that count, and the verdicts that are left out. If all checks were requested, a check that
    examined nothing is left out. But a check that failed itself counts, a check that a longer run could decide counts
    (except checks of consuming in a run without consumers), and a check in `promised` counts. If every verdict would be
    left out, all verdicts count.
    """
    nothing = [v for v in verdicts if not v.examined and v.verdict is Validity.UNKNOWN and v.name not in promised]
    left_out = [v for v in nothing if not v.check_failed and (not v.undecided or (without_consumers and _consumes(v)))]
    if set(checks) != set(CHECKS) or len(left_out) == len(verdicts):
        return list(verdicts), []
    return [v for v in verdicts if v not in left_out], left_out


def _consumes(v: Verdict) -> bool:
    return v.name in CHECKS and CHECKS[v.name].group is Group.CONSUMING


def keep(history: History, verdicts: Sequence[Verdict], engine: Engine) -> Judged:
    """Write the verdicts and reports into the run folder, if there is one."""
    scenario = history.scenario
    promised = () if scenario is None else scenario.promised
    without_consumers = scenario is not None and "consumer" not in scenario.topology().kinds.values()
    verdicts, left_out = apart(history.checks, verdicts, promised=promised, without_consumers=without_consumers)
    cost = cost_of(history.folder.path) if history.folder is not None and history.drawn else None
    if history.drawn and not has("report"):
        history = replace(history, drawn=False)
    judged = Judged(history, verdicts, engine, left_out, cost)
    if history.folder is not None and history.scenario is not None:
        _write_verdicts(judged, history.folder)
        if history.drawn:
            write_reports(history.folder)
        else:
            write_junit(history.folder, history.scenario, verdicts, reasons(left_out))
    return judged


def _write_verdicts(judged: Judged, folder: RunFolder) -> None:
    with folder.findings_file.open("w", encoding="utf-8") as file:
        for verdict in judged.verdicts:
            for finding in verdict.findings:
                told = {"check": verdict.name, **finding.to_json(verdict.timeline_ms)}
                file.write(json.dumps(told, ensure_ascii=False, default=str) + "\n")
    document = _document(judged)
    del document["run_dir"]  # it may be moved
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    folder.verdicts_file.write_text(text + "\n", encoding="utf-8")


def show(
    judged: Judged,
    summary_file: Path | None = None,
    *,
    as_json: bool = False,
    full: bool = False,
    quiet: bool = False,
    took_s: float | None = None,
    names_left_out: bool = True,
) -> None:
    """Print the result on stdout: sentences, a table of checks that are not VALID, the VALID groups, and the report's
    path; or one JSON object. Append the verdicts as Markdown to `summary_file`. `full`: the table has every check.
    `quiet`: print only the first sentence, the broken rule, the sentence about the clients (which says how many of them
    had to leave a dead node), the command that repeats an INVALID run, and the path.
    `took_s`: duration of the run. `names_left_out`: print the names of the checks that examined nothing.
    """
    history = judged.history
    if as_json:
        click.echo(json.dumps(_document(judged), ensure_ascii=False, default=str))
    else:
        unexamined = left_out_line(reasons(judged.left_out), full=full) if names_left_out else ""
        lines = _told(judged, took_s).lines()
        if quiet and not full:
            click.echo("\n".join([lines[0], *(line for line in lines[1:] if line.startswith(_IN_SHORT))]))
        else:
            print_answers(judged.verdicts, [*lines, unexamined], full=full)
        if judged.verdict is Validity.INVALID and not (history.scenario and history.scenario.cluster.external):
            click.echo(f"Repeat it: {_repeats(history)}")
            if history.scenario is not None and (settings := _deciding(judged, history.scenario)):
                click.echo(f"The limit depends on settings; to repeat it with another value, add one: {settings}")
        said = counted(judged.verdicts)
        if history.folder is not None and history.drawn:
            click.echo(f"{said} Report: {history.folder.report_file}")
        elif history.folder is not None and not has("report"):
            click.echo(f"{said}\nno report.html, which needs bokeh: {how_to_get(['report'])}")
        else:
            click.echo(said)
    if summary_file is None:
        return
    try:
        text = summary(_told(judged, took_s), judged.verdicts, _repeats(history), reasons(judged.left_out))
        append(summary_file, text)
    except OSError as exc:
        raise HarnessError(f"the summary cannot be written to {summary_file}: {exc.strerror}") from exc


def _repeats(history: History) -> str:
    if history.folder is None:
        return f"nemesrv check {history.where}"
    virtual = history.scenario is not None and history.scenario.clock == "virtual"
    return replay_line(history.folder.scenario_file, history.seed, virtual=virtual)


def _deciding(judged: Judged, scenario: Scenario) -> str:
    """Return `--set clients.pollNameServerInterval=30000 (P), …` with the values of this run, for each timer in the
    formula of the first broken limit; "" if there is none, or if a planted defect broke the limit."""
    wrong = first_wrong(judged.verdicts)
    if wrong is None or scenario.defect:
        return ""
    _, _, rocketmqs = str(wrong.allowed.get("row") or "").partition("; RocketMQ allows ")
    used, of_nodes = legend([str(wrong.allowed.get("formula") or ""), rocketmqs]), scenario.settings()
    said = []
    for one in CATALOGUE:
        if one.symbol in used and scenario.profile in one.profiles:
            now = next((of[one.name] for of in of_nodes.values() if one.name in of), one.default(scenario.profile))
            said.append(f"--set {key_of(one)}={now} ({one.symbol})")
    return ", ".join(said)


def _told(judged: Judged, took_s: float | None) -> Answers:
    history = judged.history
    incident = None if history.folder is None else read_incident(history.folder.path)
    about = _about(history, took_s)
    count = sum(v.examined > 0 for v in judged.verdicts)
    if incident is not None:
        checks = len(judged.verdicts) + len(judged.left_out)
        about = f"{count} of {checks} checks judged, profile {history.profile}"
    told = answers(judged.verdicts, history.scenario, history.name, about, judged.cost)
    return told if incident is None else of_incident(told, incident, is_judged=count > 0)


def _about(history: History, took_s: float | None) -> str:
    """Return `seed 7, 37 s, profile 4.9, virtual clock, with the planted defect client-never-drops`."""
    scenario = history.scenario
    if scenario is None:
        return ""
    said = [f"seed {history.seed}", *([] if took_s is None else [f"{took_s:.0f} s"]), f"profile {history.profile}"]
    said += ["virtual clock"] if scenario.clock == "virtual" else []
    said += [f"with the planted defect {scenario.defect}"] if scenario.defect else []
    if other := _other_version(scenario.versions):
        said.append(f"recorded by nemesrv {other}, judged by {version('nemesrv')}")
    return ", ".join(said)


def _document(judged: Judged) -> dict[str, object]:
    """The contents of verdicts.json; `--json` prints them with the run folder."""
    history, verdicts = judged.history, judged.verdicts
    scenario, cause = history.scenario, cause_of(judged.verdicts)
    return {
        "scenario": history.name,
        "seed": history.seed,
        "clock": scenario.clock if scenario is not None else None,
        "defect": scenario.defect if scenario is not None else None,
        "run_dir": history.where,
        "engine": judged.engine,
        "verdict": str(worst(verdict.verdict for verdict in verdicts)),
        "timeline_ms": max((verdict.timeline_ms for verdict in verdicts), default=0.0),
        "checks": [_entry(verdict) for verdict in verdicts],
        "cause": None if cause is None else cause._asdict(),
        "cost": None if judged.cost is None else judged.cost.to_json(),
        "left_out": reasons(judged.left_out),
    }


def _entry(verdict: Verdict) -> dict[str, object]:
    document = verdict.to_json()
    group = str(CHECKS[verdict.name].group) if verdict.name in CHECKS else ""
    return {"name": document.pop("name"), "group": group, **document}
