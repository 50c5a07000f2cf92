"""From scenarios to verdicts: run, check, write what a person and a CI server read, and say the exit status."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version

import click

from ..actors.cluster import ClusterError
from .defects import Defect
from .errors import HarnessError, ScenarioError
from .experiment.experiment import Experiment
from .experiment.harness import Harness
from .experiment.run_folder import RunFolder
from .experiment.stage import RealStage, Stage
from .experiment.virtual.stage import VirtualStage
from .faults.toxiproxy import find_server
from .reports.junit import junit
from .reports.summary import append, replay_line, summary
from .reports.table import print_table
from .scenarios.model import Scenario, TimersModel
from .spark.judge import check_run
from .spark.session import require_java
from .verdict import Validity, Verdict, worst

EXIT_STATUS = {Validity.VALID: 0, Validity.INVALID: 1, Validity.UNKNOWN: 3}
_VERSIONS_OF = ("nemesrv", "ray", "pyspark", "toxiproxy-python", "uvloop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line may change about a run."""

    seed: int | None = None
    time_scale: float | None = None
    out: Path | None = None
    spark_master: str | None = None
    summary: Path | None = None
    """Where to append the verdicts as Markdown."""
    virtual: bool = False
    """On the virtual clock: no Ray, no Toxiproxy, a few seconds instead of minutes."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A run and what the checks said of it."""

    folder: RunFolder
    scenario: Scenario
    verdicts: Sequence[Verdict]

    @property
    def verdict(self) -> Validity:
        return worst(v.verdict for v in self.verdicts)


def run_all(scenarios: Sequence[Scenario], options: Options) -> int:
    """The exit status of running every scenario: INVALID counts before UNKNOWN before VALID."""
    for scenario in scenarios:
        _require_injectable(scenario, options)
    require_parts(virtual=options.virtual)
    judged = []
    with Harness(spark_master=options.spark_master, gentle=not options.virtual) as harness:
        for scenario in scenarios:
            result = run_one(scenario, options, harness)
            judged.append(result.verdict)
            _show(result, options.summary, virtual=options.virtual)
    return EXIT_STATUS[worst(judged)]


def require_parts(*, virtual: bool = False) -> None:
    """HarnessError when Java or, on the real clock, Toxiproxy is missing; nothing is started."""
    require_java()
    if not virtual:
        find_server()


def run_one(scenario: Scenario, options: Options, harness: Harness, defect: Defect | None = None) -> Judged:
    """Run one experiment, judge it, and write its folder."""
    stage = VirtualStage(harness) if options.virtual else RealStage(harness)
    as_run = as_run_with(scenario, options)
    progress = _Progress(f"{as_run.name} (seed {as_run.seed})")
    folder = RunFolder.create(as_run.name, options.out)
    try:
        record(as_run, folder, stage, defect, progress.say)
        progress.say("judging")
        verdicts = judge_run(folder, as_run, harness)
    except ClusterError as exc:
        raise HarnessError(f"{exc} (logs: {folder.logs})") from exc
    finally:
        progress.clear()
    return Judged(folder, as_run, verdicts)


def judge_run(folder: RunFolder, scenario: Scenario, harness: Harness) -> Sequence[Verdict]:
    """The verdicts of the folder's history; they and the reports are in the folder."""
    verdicts = check_run(folder.path, scenario.checks, harness.spark())
    write_verdicts(Judged(folder, scenario, verdicts))
    write_reports(folder)
    return verdicts


def record(
    as_run: Scenario, folder: RunFolder, stage: Stage, defect: Defect | None, say: Callable[[str], None]
) -> None:
    """The scenario and its history are in the folder; nothing is judged."""
    assert as_run.seed is not None
    folder.scenario_file.write_text(as_run.to_yaml(), encoding="utf-8")
    Experiment(scenario=as_run, seed=as_run.seed, folder=folder, stage=stage, defect=defect, say=say).run()


def record_virtual(scenario: Scenario, seed: int, out: Path, defect: Defect | None = None) -> RunFolder:
    """The run folder `out` with one run's history on the virtual clock, for `nemesrv check`; no Spark is started.

    For many at once: call it in a pool of processes, and judge all folders in one session.
    """
    as_run = as_run_with(scenario, Options(seed=seed, virtual=True))
    folder = RunFolder.create(as_run.name, out)
    record(as_run, folder, VirtualStage(), defect, lambda _text: None)
    return folder


def _require_injectable(scenario: Scenario, options: Options) -> None:
    """ScenarioError for a fault that this clock has no way to inject."""
    for index, action in enumerate(scenario.timeline):
        if action.do == "packet_loss" and not options.virtual:
            key = f"timeline.{index}.do"
            raise ScenarioError(scenario.name, key, action.do, "a fault that a proxy can inject, or --clock virtual")


def as_run_with(scenario: Scenario, options: Options) -> Scenario:
    """The scenario with seed, time scale and versions filled in. On the virtual clock the scale is 1."""
    _require_injectable(scenario, options)
    seed = options.seed if options.seed is not None else scenario.seed
    timers = scenario.timers
    time_scale = 1.0 if options.virtual else options.time_scale
    if time_scale is not None:
        timers = TimersModel(**{**timers.model_dump(), "time_scale": time_scale})
    return scenario.model_copy(
        update={
            "seed": secrets.randbelow(2**31) if seed is None else seed,
            "timers": timers,
            "versions": _versions(),
        }
    )


def _versions() -> dict[str, str]:
    found = {"python": python_version()}
    for name in _VERSIONS_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def check_again(run_dirs: Sequence[Path], spark_master: str | None, summary_file: Path | None = None) -> int:
    """The exit status of judging recorded runs again; their verdicts and reports are written anew."""
    folders = [RunFolder(path) for path in run_dirs]
    scenarios = [folder.scenario() for folder in folders]
    require_java()
    found = []
    with Harness(spark_master=spark_master, gentle=False) as harness:
        for folder, scenario in zip(folders, scenarios, strict=True):
            judged = Judged(folder, scenario, judge_run(folder, scenario, harness))
            _show(judged, summary_file)
            found.append(judged.verdict)
    return EXIT_STATUS[worst(found)]


def write_verdicts(judged: Judged) -> None:
    """verdicts.json of the folder."""
    document = {
        "scenario": judged.scenario.name,
        "seed": judged.scenario.seed,
        "verdict": str(judged.verdict),
        "checks": [verdict.to_json() for verdict in judged.verdicts],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    judged.folder.verdicts_file.write_text(text + "\n", encoding="utf-8")


def write_reports(folder: RunFolder) -> None:
    """junit.xml and report.html from the folder's verdicts and history. HarnessError when there are none."""
    scenario = folder.scenario()
    try:
        document = json.loads(folder.verdicts_file.read_text(encoding="utf-8"))
        verdicts = [Verdict.from_json(check) for check in document["checks"]]
    except (OSError, ValueError, KeyError) as exc:
        raise HarnessError(f"{folder.verdicts_file} cannot be read: judge the run first with nemesrv check") from exc
    from .reports.html import Run, html_report  # Bokeh: half a second that other commands need not wait for

    run = Run(
        name=scenario.name,
        description=scenario.description,
        seed=scenario.seed,
        profile=scenario.cluster.profile,
        time_scale=scenario.timers.time_scale,
        versions=scenario.versions,
    )
    page = html_report(run, verdicts, folder.path)
    folder.report_file.write_text(page, encoding="utf-8")
    folder.junit_file.write_bytes(junit(scenario.name, scenario.seed or 0, verdicts))


def _show(judged: Judged, summary_file: Path | None, *, virtual: bool = False) -> None:
    scenario = judged.scenario
    title = f"{scenario.name}: {judged.verdict}   seed {scenario.seed}, profile {scenario.cluster.profile}"
    print_table(judged.verdicts, title=title)
    click.echo(f"report: {judged.folder.report_file}")
    if summary_file is not None:
        replay = replay_line(judged.folder.scenario_file, scenario.seed or 0, virtual=virtual)
        text = summary(scenario.name, scenario.seed or 0, scenario.cluster.profile, judged.verdicts, replay)
        try:
            append(summary_file, text)
        except OSError as exc:
            raise HarnessError(f"the summary cannot be written to {summary_file}: {exc.strerror}") from exc


class _Progress:
    """One line that is rewritten, on a terminal; nothing in a pipe."""

    def __init__(self, title: str) -> None:
        self._title, self._shown = title, sys.stderr.isatty()

    @property
    def say(self) -> Callable[[str], None]:
        return self._say if self._shown else lambda _text: None

    def _say(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{self._title}: {text}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
