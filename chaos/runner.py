"""Runs scenarios: records, judges and reports each run. The worst verdict of all runs gives the exit status."""

import secrets
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from time import monotonic

import click

from ..actors.cluster import ClusterError
from .apache.jvm import last_words
from .checks import CHECKS
from .checks.finishing import AFTER_THE_LAST_FAULT, too_short
from .errors import HarnessError, ScenarioError
from .experiment import rehearsal
from .experiment.expectation import expected_world
from .experiment.experiment import Experiment
from .experiment.harness import Harness
from .experiment.hosts_stage import real_stage
from .experiment.progress import Progress, expected_s, expected_to_judge_s
from .experiment.run_folder import RunFolder, refuse_used
from .experiment.stage import Stage
from .experiment.virtual.stage import VirtualStage
from .faults.link_faults import LinkFault
from .history.stored import SMALL_BYTES, local_size
from .installation import require_extras
from .judging import Engine, Judged, engine_for, exit_status, find, judge, of_run, show
from .preflight import MachineNeeds, require, require_programs
from .reports.groups import of_each
from .scenarios.defect import Defect, DefectModuleError
from .scenarios.loading import found_defect, refuse_nowhere
from .scenarios.model import Scenario, TimersModel
from .scenarios.placement import Offer, placed
from .verdict import Validity

THIS_MACHINE = "this-machine"
"""The only host without a Ray cluster."""
_VERSIONS_OF = ("nemesrv", "ray", "pyspark", "toxiproxy-python", "uvloop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    seed: int | None = None
    time_scale: float | None = None
    out: Path | None = None
    engine: str | None = None
    """An Engine. None: as `engine_for` says."""
    spark_master: str | None = None
    summary: Path | None = None
    """File to which verdicts are appended as Markdown."""
    virtual: bool | None = None
    """On the virtual clock: no Ray, no Toxiproxy, seconds instead of minutes. None: as the scenario says."""
    defect: str | None = None
    """The planted defect. None: the scenario's."""
    as_json: bool = False
    """Print one JSON object per run instead of text."""
    full: bool = False
    """A row for every check, VALID ones too."""
    quiet: bool = False
    """No progress on stderr; of the result only the first sentence, the clients' and the last line."""
    latest: bool = True
    """Whether the link runs/latest is set to it."""
    ray: str | None = None
    """Address of an existing Ray cluster. None: our own, on this machine."""

    def is_virtual(self, scenario: Scenario) -> bool:
        return scenario.clock == "virtual" if self.virtual is None else self.virtual

    def needs_spark(self, scenarios: Iterable[Scenario]) -> bool:
        """Whether Spark will judge at least one of these scenarios, as far as is known before the runs."""
        engines = [engine_for(self.engine, virtual=self.is_virtual(scenario)) for scenario in scenarios]
        return Engine.SPARK in engines


def run_all(scenarios: Sequence[Scenario], options: Options) -> int:
    """Run all scenarios. Returns the exit status of the worst verdict: INVALID is worst, then UNKNOWN, then VALID."""
    refuse_used(options.out)
    for scenario in scenarios:
        _require_injectable(scenario, options)
    virtual = all(map(options.is_virtual, scenarios))
    spark = options.needs_spark(scenarios)
    require_parts("nemesrv run", scenarios, options.out, virtual=virtual, joins=options.ray is not None, spark=spark)
    for scenario in scenarios if options.ray is None else ():  # the hosts of a Ray cluster say what they lack
        require_programs(scenario, options.time_scale or scenario.timers.time_scale)
    if not options.quiet:
        _say_what_is_too_short(scenarios)
    judged = []
    workers = max(map(processes_of, scenarios), default=1)
    ray = None if virtual else options.ray
    with Harness(spark_master=options.spark_master, gentle=not virtual, workers=workers, ray=ray) as harness:
        for number, scenario in enumerate(scenarios, 1):
            began_s = monotonic()
            asked = options if len(scenarios) == 1 else replace(options, out=_below(options.out, scenario, number))
            result = run_one(scenario, asked, harness, is_last=number == len(scenarios))
            judged.append(result)
            took_s = monotonic() - began_s
            show(
                result, options.summary, as_json=options.as_json, full=options.full, quiet=options.quiet, took_s=took_s
            )
            if not options.as_json and result.verdict is Validity.VALID:
                _say_unfound(planted(as_run_with(scenario, options)))
    if len(judged) > 1 and not options.as_json:
        click.echo(f"{len(judged)} scenarios: {of_each(one.verdict for one in judged)}")
    return exit_status(judged)


def _below(out: Path | None, scenario: Scenario, number: int) -> Path | None:
    """Return the run folder of one of several scenarios, `out`/NAME; with its number, if another one has the name."""
    if out is None or not (out / scenario.name).exists():
        return out and out / scenario.name
    return out / f"{scenario.name}-{number}"


def _say_unfound(defect: Defect | None) -> None:
    """Print that no check found the defect, and how to run the scenario in which a check finds the defect."""
    if defect is None:
        return
    click.echo(f"No check found the planted defect {defect.name} in this run.")
    if defect.command:
        click.echo(f"Checks find the defect with this command: {defect.command}")


def _say_what_is_too_short(scenarios: Iterable[Scenario]) -> None:
    """Print on stderr which checks will judge nothing after the last fault."""
    for scenario in scenarios:
        checks = {name: CHECKS[name] for name in scenario.checks}
        for name, why in too_short(checks, expected_world(scenario).world).items():
            click.echo(f"{scenario.name}: {name}: {AFTER_THE_LAST_FAULT} {why}", err=True)


def require_parts(
    what: str,
    scenarios: Sequence[Scenario],
    out: Path | None = None,
    *,
    virtual: bool = False,
    joins: bool = False,
    spark: bool,
) -> None:
    """Raise HarnessError if this machine lacks something that the runs of command `what` need. No node is started. With
    `joins`, nodes run on hosts of a Ray cluster, and each host reports what it lacks. With `spark`, Spark judges."""
    require_extras(what, *([] if virtual else ["ray"]), *(["spark"] if spark else []))
    needs = MachineNeeds.of_judging(spark=spark) if virtual or joins else MachineNeeds.of_all(scenarios, spark=spark)
    require(needs, out or Path("runs"))


def processes_of(scenario: Scenario) -> int:
    """Return the largest number of processes that the scenario's nodes use, restarted nodes counted again, plus one."""
    ended = sum(len(action.nodes) for action in scenario.unfolded() if action.do in ("kill", "stop"))
    return len(scenario.topology().nodes) + ended + 1


def run_one(
    scenario: Scenario, options: Options, harness: Harness, defect: Defect | None = None, *, is_last: bool = False
) -> Judged:
    """Run one experiment, judge it, and write its folder. `is_last`: no other run with this harness follows.

    Only the self-test gives the argument `defect`. A scenario's own defect is tried on the virtual clock first. If a
    defect has no effect on the virtual clock, the run is UNKNOWN.
    """
    as_run = as_run_with(scenario, options, defect)
    virtual = as_run.clock == "virtual"
    stage = VirtualStage() if virtual else real_stage(harness)
    spark = engine_for(options.engine, virtual=virtual) is Engine.SPARK
    if spark:
        harness.start_spark()
    expected = expected_s(as_run, spark=spark)
    progress = Progress(f"{as_run.name} (seed {as_run.seed})", expected, quiet=options.quiet)
    folder = RunFolder.create(as_run.name, options.out, latest=options.latest)
    recorded = False
    try:
        found = planted(as_run, defect)
        as_run = with_file_beside(as_run, found)
        if found is None or defect is not None:
            record(as_run, folder, stage, found, progress.say)
        elif virtual:
            _record_its_own_rehearsal(as_run, folder, found, progress.say)
        else:
            acts = _acts(found, as_run, progress.say)
            record(as_run, folder, stage, found, progress.say, defect_acts=acts)
        recorded = True
        progress.say("judging")
        if is_last:
            harness.end_ray()
        history = of_run(folder, as_run)
        engine = engine_for(options.engine, virtual=virtual, where=folder.path)
        return judge(history, engine, harness.spark, progress.say)
    except ClusterError as exc:
        _, of_file, why = str(exc).partition(f"{DefectModuleError.__name__}: ")
        if of_file:
            raise ScenarioError("--defect", "", why, "") from exc
        raise HarnessError(f"{exc}{last_words(folder.data)} (logs: {folder.logs})") from exc
    finally:
        if not recorded:  # nobody is there any more, and its history and logs are what a person reads
            shutil.rmtree(folder.data, ignore_errors=True)
        progress.clear()


def _acts(defect: Defect, as_run: Scenario, say: Callable[[str], None], run: RunFolder | None = None) -> bool:
    assert as_run.seed is not None
    say(f"checking that {defect.name} changes anything in this scenario")
    return rehearsal.acts(defect, as_run, as_run.seed, run)


def _record_its_own_rehearsal(as_run: Scenario, folder: RunFolder, defect: Defect, say: Callable[[str], None]) -> None:
    """Record the run again if its defect never acted, so that the history's first row says so (virtual clock only)."""
    record(as_run, folder, VirtualStage(), defect, say)
    if not _acts(defect, as_run, say, folder):
        for kept in folder.path.iterdir():
            shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
        again = RunFolder.create(as_run.name, folder.path)
        record(as_run, again, VirtualStage(), defect, say, defect_acts=False)


def record(
    as_run: Scenario,
    folder: RunFolder,
    stage: Stage,
    defect: Defect | None,
    say: Callable[[str], None],
    *,
    defect_acts: bool = True,
) -> None:
    """Record scenario and history into the folder, without judging."""
    assert as_run.seed is not None
    folder.keep(as_run, defect)
    Experiment(
        scenario=as_run,
        seed=as_run.seed,
        folder=folder,
        stage=stage,
        defect=defect,
        defect_acts=defect_acts,
        say=say,
    ).run()


def record_virtual(
    scenario: Scenario,
    seed: int,
    out: Path | None,
    defect: Defect | None = None,
    *,
    latest: bool = True,
    stage: VirtualStage | None = None,
) -> RunFolder:
    """Record one run on the virtual clock, without judging, into the folder `out` (None: a new folder in runs/).

    Starts no Spark. `stage` replaces the default stage. For many runs, call `record_virtual` in a pool of processes,
    then judge all folders with one Spark session.
    """
    as_run = as_run_with(scenario, Options(seed=seed, virtual=True), defect)
    folder = RunFolder.create(as_run.name, out, latest=latest)
    found = planted(as_run, defect)
    record(with_file_beside(as_run, found), folder, stage or VirtualStage(), found, lambda _text: None)
    return folder


def _require_injectable(scenario: Scenario, options: Options) -> None:
    for index, action in enumerate(scenario.timeline):
        what = action.what
        if isinstance(what, LinkFault) and what.loses_packets and not options.is_virtual(scenario):
            allowed = "a fault that a proxy can inject, or --clock virtual"
            raise ScenarioError(scenario.name, f"timeline.{index}.do", action.do, allowed)
    if (made_by := next(iter(scenario.implementations().values()), None)) and options.is_virtual(scenario):
        raise ScenarioError(scenario.name, "clock", "virtual", f"the real clock where a node is {made_by}")
    if options.ray is None and not options.is_virtual(scenario):
        placed(scenario.topology(), scenario.placement, [Offer(THIS_MACHINE)], file=scenario.name)
    if scenario.phases and not options.is_virtual(scenario):
        raise ScenarioError(scenario.name, "phases", str(scenario.phases), "no phases, or --clock virtual")


def planted(scenario: Scenario, defect: Defect | None = None) -> Defect | None:
    """Return `defect`, else the scenario's own defect; None if neither exists."""
    if defect is not None or scenario.defect is None:
        return defect
    found = found_defect(scenario.defect, file=scenario.name, key="defect")
    refuse_nowhere(found, scenario, scenario.name)
    return found


def with_file_beside(scenario: Scenario, defect: Defect | None) -> Scenario:
    """Return the scenario with the user's defect as a file name in the run folder, into which `record` copies the
    file."""
    if defect is None or defect.source is None:
        return scenario
    return scenario.model_copy(update={"defect": defect.source.name})


def as_run_with(scenario: Scenario, options: Options, defect: Defect | None = None) -> Scenario:
    """Return the scenario with seed, clock, time scale, planted defect and versions, so that the run can be repeated.
    On the virtual clock the time scale is 1."""
    name = defect.name if defect is not None else options.defect or scenario.defect
    virtual = options.is_virtual(scenario)
    _require_injectable(scenario, options)
    seed = options.seed if options.seed is not None else scenario.seed
    timers = scenario.timers
    time_scale = 1.0 if virtual else options.time_scale
    if time_scale is not None:
        timers = TimersModel(**{**timers.model_dump(), "time_scale": time_scale})
    return scenario.model_copy(
        update={
            "seed": secrets.randbelow(2**31) if seed is None else seed,
            "timers": timers,
            "clock": "virtual" if virtual else "real",
            "defect": name,
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


def check_all(
    places: Sequence[str],
    checks: tuple[str, ...] | None,
    spark_master: str | None,
    *,
    summary: Path | None = None,
    engine: str | None = None,
    as_json: bool = False,
    full: bool = False,
    quiet: bool = False,
) -> int:
    """Judge recorded histories again, on this machine or elsewhere, and write the results. Returns the exit status.
    Raises ScenarioError for a folder without a history before anything is started."""
    sizes = {where: local_size(where) for where in places}
    large = any(size is None or size > SMALL_BYTES for size in sizes.values())
    harness = Harness(spark_master=spark_master, gentle=False, large=large)
    here = {where: find(where, checks, harness.spark) for where, size in sizes.items() if size is not None}
    engines = {where: engine_for(engine, where=where) for where in places}
    require(MachineNeeds.of_judging(spark=Engine.SPARK in engines.values()), Path(next(iter(here), ".")))
    found = []
    with harness:
        for where in places:
            expected = expected_to_judge_s(sizes[where], spark=engines[where] is Engine.SPARK)
            progress = Progress(f"check {where}", expected, patient=True, quiet=quiet)
            progress.say("judging")
            try:
                history = here.get(where) or find(where, checks, harness.spark)
                judged = judge(history, engines[where], harness.spark, progress.say)
            finally:
                progress.clear()
            show(judged, summary, as_json=as_json, full=full, quiet=quiet)
            found.append(judged)
    return exit_status(found)
