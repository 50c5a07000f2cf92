"""From scenarios to verdicts: run, check, write what a person and a CI server read, and say the exit status."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version

from ..actors.cluster import ClusterError
from .defects import Defect
from .errors import HarnessError, ScenarioError
from .experiment.experiment import Experiment
from .experiment.harness import Harness
from .experiment.run_folder import RunFolder
from .experiment.stage import RealStage, Stage
from .experiment.virtual.garbage import seldom_collected
from .experiment.virtual.stage import VirtualStage
from .judging import Judged, exit_status, find, judge, of_run, show
from .preflight import Needs, require
from .scenarios.model import Scenario, TimersModel

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


def run_all(scenarios: Sequence[Scenario], options: Options) -> int:
    """The exit status of running every scenario: INVALID counts before UNKNOWN before VALID."""
    for scenario in scenarios:
        _require_injectable(scenario, options)
    require_parts(scenarios, options.out, virtual=options.virtual)
    judged = []
    with Harness(spark_master=options.spark_master, gentle=not options.virtual) as harness:
        for scenario in scenarios:
            result = run_one(scenario, options, harness)
            judged.append(result)
            show(result, options.summary, virtual=options.virtual)
    return exit_status(judged)


def require_parts(scenarios: Sequence[Scenario], out: Path | None = None, *, virtual: bool = False) -> None:
    """HarnessError when this machine lacks what the runs need; nothing is started."""
    require(Needs() if virtual else Needs.of_all(scenarios), out or Path("runs"))


def run_one(scenario: Scenario, options: Options, harness: Harness, defect: Defect | None = None) -> Judged:
    """Run one experiment, judge it, and write its folder."""
    stage = VirtualStage(harness) if options.virtual else RealStage(harness)
    as_run = as_run_with(scenario, options)
    progress = _Progress(f"{as_run.name} (seed {as_run.seed})")
    folder = RunFolder.create(as_run.name, options.out)
    try:
        record(as_run, folder, stage, defect, progress.say)
        progress.say("judging")
        return judge(of_run(folder, as_run), harness.spark())
    except ClusterError as exc:
        raise HarnessError(f"{exc} (logs: {folder.logs})") from exc
    finally:
        progress.clear()


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
    with seldom_collected():
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


def check_all(
    places: Sequence[str], checks: tuple[str, ...] | None, spark_master: str | None, summary_file: Path | None = None
) -> int:
    """The exit status of judging recorded histories again, wherever they lie; what is said of them is written anew.

    ScenarioError, before anything is started, for one on this machine that is none.
    """
    from .spark.settings import SMALL_BYTES
    from .spark.storage import local_size

    sizes = {where: local_size(where) for where in places}
    large = any(size is None or size > SMALL_BYTES for size in sizes.values())
    harness = Harness(spark_master=spark_master, gentle=False, large=large)
    here = {where: find(where, checks, harness.spark) for where, size in sizes.items() if size is not None}
    require(Needs(), Path(next(iter(here), ".")))
    found = []
    with harness:
        for where in places:
            judged = judge(here.get(where) or find(where, checks, harness.spark), harness.spark())
            show(judged, summary_file)
            found.append(judged)
    return exit_status(found)


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
