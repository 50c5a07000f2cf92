"""The two sides of `nemesrv compare`: folders as they are, or what is run first.

A scenario, or a folder with `--set`, is run on the virtual clock; implementations (`ours apache --scenario
broker-crash`) on the real one, each seed on one side and then the other.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from ...remoting.node.profile import Profile
from ..apache.distribution import ALLOWED, OURS, distribution
from ..errors import ScenarioError
from ..experiment.harness import Harness
from ..experiment.run_folder import RunFolder, refuse_used
from ..history.schema import parquet_path, raw_dir
from ..machine import in_processes, processors
from ..preflight import require_programs
from ..proof.statistics.compare import Run, run_of
from ..proof.statistics.two_samples import RUNS_ENOUGH
from ..reporting import read_verdicts
from ..runner import Options, processes_of, record_virtual, require_parts, run_one
from ..scenarios.implementations import profile_of
from ..scenarios.loading import all_shipped, find
from ..scenarios.model import Scenario

APACHE = "apache"
_NEWEST = {Profile.V4_9: "apache-4.9.7", Profile.V5_X: "apache-5.3.3"}
_DEPTH = 2
_ALLOWED = "a run folder, a folder of run folders, or a scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What the command line says of what is to be run."""

    scenario: str | None = None
    """What to run on both of two implementations."""
    sets: tuple[str, ...] = ()
    runs: int | None = None
    seed: int | None = None
    out: Path | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """A or B: recorded runs, or a scenario that is to be run."""

    name: str
    folders: Sequence[Path] = ()
    scenario: Scenario | None = None

    @classmethod
    def of(cls, name: str, words: Sequence[str], sets: Sequence[str], *, again: bool, asked: CompareOptions) -> Side:
        """The side of these folders, or of a scenario's name or file. A folder with `sets`, or `again`, is run again.

        ScenarioError for what is neither, and for options that say nothing of this side.
        """
        if not words:
            raise ScenarioError("compare", f"--{name.lower()}", "", f"{_ALLOWED} on each side")
        if len(words) == 1 and (words[0] in all_shipped() or Path(words[0]).is_file()):
            return cls(name, scenario=find(words[0], sets))
        folders = run_folders(name, map(Path, words))
        if not sets and not again:
            return cls(name, folders)
        if len(folders) != 1:
            raise ScenarioError("compare", "--set", "", f"one run folder on a side with it; {name} has {len(folders)}")
        from ...operations.replay.running import Wanted, read_original, scenario_of

        scenario = scenario_of(read_original(folders[0], Wanted()), sets, file=f"the scenario of {folders[0]}")
        return cls(name, scenario=scenario)


def measure(sides: Sequence[Side], asked: CompareOptions) -> list[list[Run]]:
    """The runs of each side; of a scenario they are recorded now, with the same seeds on each side, and judged."""
    if asked.scenario is None and all(side.scenario is None for side in sides):
        for value, option in ((asked.sets, "--set"), (asked.runs, "--runs"), (asked.out, "--out")):
            if value:
                raise ScenarioError("compare", option, "", "a scenario, or --scenario, with it")
    if asked.scenario is None:
        refuse_used(asked.out)
    first = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    with ExitStack() as stack:
        out = asked.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nemesrv-compare-")))
        jobs: list[_Job] = []
        for side in sides:
            jobs += [(folder, None, 0, "") for folder in side.folders]
            if side.scenario is not None:
                seeds = range(first, first + (asked.runs or RUNS_ENOUGH))
                for seed in seeds:
                    name = "" if asked.out else f"{side.scenario.name} of seed {seed}"
                    jobs.append((out / f"{side.name.lower()}-{seed}", side.scenario, seed, name))
        found: list[Run] = []
        for run in in_processes(_measured, jobs, processors()):
            found.append(run)
            if not asked.quiet and sys.stderr.isatty():
                click.echo(f"\r{len(found)} of {len(jobs)} runs\x1b[K", nl=len(found) == len(jobs), err=True)
    in_a = len(sides[0].folders) if sides[0].scenario is None else asked.runs or RUNS_ENOUGH
    return [found[:in_a], found[in_a:]]


_Job = tuple[Path, Scenario | None, int, str]
"""A run folder, what is to be run there, with which seed, and what that run is called if its folder is not kept."""


def _measured(job: _Job) -> Run:
    folder, scenario, seed, name = job
    if scenario is None:
        run = RunFolder(folder)
        return run_of(folder, read_verdicts(run) if run.verdicts_file.is_file() else ())
    from ..checks.plain.verdicts import verdicts

    record_virtual(scenario.model_copy(update={"seed": None}), seed, folder)
    return run_of(folder, verdicts(folder, scenario.checks), name)


def run_folders(side: str, paths: Iterable[Path]) -> list[Path]:
    """The run folders that `paths` name: each is one, or a folder that holds some. ScenarioError when one has none."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise ScenarioError("compare", side, str(path), _ALLOWED)
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


def is_implementation(word: str) -> bool:
    """Whether this side is an implementation, and no run folder: ours, apache, apache-5.3.3, apache:/opt/rocketmq."""
    if word in (OURS, APACHE):
        return True
    try:
        return not Path(word).exists() and distribution(word) is not None
    except ValueError:
        return False


def refuse_other(words: Sequence[str], folders: Sequence[Path]) -> None:
    """ScenarioError unless both sides are implementations."""
    wrong = [*map(str, folders), *(word for word in words if not is_implementation(word))]
    if wrong or len(words) != 2:
        allowed = f"with --scenario two of ours, apache or {ALLOWED.removeprefix('ours, ')}"
        raise ScenarioError("compare", "RUN_A RUN_B", wrong[0] if wrong else "", allowed)


def scenarios_of(words: Sequence[str], asked: CompareOptions) -> list[Scenario]:
    """The scenario of each side, all of one profile: that of Apache's programs, or the scenario's own.

    ScenarioError for what cannot be run, and for sides that obey different windows.
    """
    scenario = str(asked.scenario)
    own = Profile(find(scenario, asked.sets).cluster.profile)
    named = [_NEWEST[own] if word == APACHE else word for word in words]
    profiles = {profile_of(word, "", "compare") for word in named} - {None}
    if len(profiles) > 1:
        allowed = "versions of one profile, 4.9 or 5.x: their timers differ"
        raise ScenarioError("compare", "RUN_A RUN_B", " ".join(words), allowed)
    profile = next(iter(profiles), own) or own
    sets = (*asked.sets, f"cluster.profile='{profile}'")
    found = [find(scenario, sets if word == OURS else asked.sets, word) for word in named]
    pace = min(each.timers.time_scale for each in found)  # Apache's go slower where the file says nothing
    return [each.model_copy(update={"timers": each.timers.model_copy(update={"time_scale": pace})}) for each in found]


def run_implementations(words: Sequence[str], asked: CompareOptions) -> list[list[Path]]:
    """The run folders of each side, judged."""
    sides = scenarios_of(words, asked)
    refuse_used(asked.out)
    require_parts("nemesrv compare", sides, asked.out, spark=Options().needs_spark(sides))
    for scenario in sides:
        require_programs(scenario, scenario.timers.time_scale)
    first = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    folders: list[list[Path]] = [[] for _ in sides]
    with Harness(gentle=True, workers=max(map(processes_of, sides))) as harness:
        for seed in range(first, first + (asked.runs or 1)):
            for side, scenario in enumerate(sides):
                out = None if asked.out is None else asked.out / f"{'ab'[side]}-{seed}"
                options = Options(seed=seed, out=out, quiet=asked.quiet)
                last = side == len(sides) - 1 and seed == first + (asked.runs or 1) - 1
                judged = run_one(scenario, options, harness, is_last=last)
                assert judged.history.folder is not None
                click.echo(
                    f"{words[side]}, seed {seed}: {judged.verdict}  {judged.history.folder.path}", err=asked.quiet
                )
                folders[side].append(judged.history.folder.path)
    return folders
