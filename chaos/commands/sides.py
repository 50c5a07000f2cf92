"""Makes the two sides, A and B, that `nemesrv compare` compares. Run folders are compared without a new run. A
scenario, or a run folder with `--set`, is run first."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ..errors import ScenarioError
from ..experiment.progress import Progress
from ..experiment.run_folder import RunFolder, refuse_used
from ..history.schema import parquet_path, raw_dir
from ..history.stored import parquet_files, refuse_unreadable
from ..machine import in_processes, processors
from ..proof.statistics.compare import ComparedRun, run_of
from ..proof.statistics.two_samples import RUNS_ENOUGH
from ..reporting import read_verdicts
from ..runner import record_virtual
from ..scenarios.loading import all_shipped, find
from ..scenarios.model import Scenario

_DEPTH = 2
_ALLOWED = "a run folder, a folder of run folders, or a scenario"


@dataclass(frozen=True, slots=True)
class Side:
    """Side A or B of a comparison: recorded runs, or a scenario that must be run."""

    name: str
    folders: Sequence[Path] = ()
    scenario: Scenario | None = None

    @classmethod
    def of(cls, name: str, word: str, sets: Sequence[str], *, again: bool) -> Side:
        """Make a side from a folder, or from a scenario's name or file. With `sets` or `again`, the runs of a folder
        are repeated. Raises ScenarioError for any other text.
        """
        if word in all_shipped() or Path(word).is_file():
            return cls(name, scenario=find(word, sets))
        folders = run_folders(name, Path(word))
        if not sets and not again:
            return cls(name, folders)
        if len(folders) != 1:
            raise ScenarioError("compare", "--set", "", f"one run folder on a side with it; {name} has {len(folders)}")
        from ...operations.replay.running import ReplayOptions, read_original, scenario_of

        scenario = scenario_of(read_original(folders[0], ReplayOptions()), sets, file=f"the scenario of {folders[0]}")
        return cls(name, scenario=scenario)


def measure(
    sides: Sequence[Side], *, sets: Sequence[str], runs: int | None, seed: int | None, out: Path | None, quiet: bool
) -> list[list[ComparedRun]]:
    """Return the runs of the two sides, A and B, of a comparison. If a side is a scenario, the scenario is run and
    judged first; two scenarios get the same seeds."""
    if all(side.scenario is None for side in sides):
        for value, option in ((sets, "--set"), (runs, "--runs"), (out, "--out")):
            if value:
                raise ScenarioError("compare", option, "", "a scenario with it")
    refuse_used(out)
    first, of_each = secrets.randbelow(10**6) if seed is None else seed, runs or RUNS_ENOUGH
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nemesrv-compare-")))
        jobs: list[_Job] = []
        for side in sides:
            jobs += [(recorded, None, 0, "") for recorded in side.folders]
            for number in range(first, first + of_each) if side.scenario is not None else ():
                name = "" if out or side.scenario is None else f"{side.scenario.name} of seed {number}"
                jobs.append((folder / f"{side.name.lower()}-{number}", side.scenario, number, name))
        found: list[ComparedRun] = []
        progress = Progress("compare", 0.0, quiet=quiet, patient=True)
        stack.callback(progress.clear)
        progress.part(0, len(jobs))
        for run in in_processes(_measured, jobs, processors()):
            found.append(run)
            progress.part(len(found), len(jobs))
    in_a = len(sides[0].folders) if sides[0].scenario is None else of_each
    return [found[:in_a], found[in_a:]]


_Job = tuple[Path, Scenario | None, int, str]
"""A run folder, what is to be run there, with which seed, and what that run is called if its folder is not kept."""


def _measured(job: _Job) -> ComparedRun:
    folder, scenario, seed, name = job
    if scenario is None:
        run = RunFolder(folder)
        return run_of(folder, read_verdicts(run) if run.verdicts_file.is_file() else ())
    from ..checks.plain.verdicts import verdicts

    record_virtual(scenario.model_copy(update={"seed": None}), seed, folder)
    return run_of(folder, verdicts(folder, scenario.checks), name, fixed_phases=bool(scenario.phases))


def run_folders(side: str, path: Path) -> list[Path]:
    """Return this folder if it is a run folder, else the run folders in it; ScenarioError if it has no run folder."""
    if not path.is_dir():
        raise ScenarioError("compare", side, str(path), _ALLOWED)
    found = [path] if _is_run(path) else _runs_in(path)
    if not found:
        raise ScenarioError("compare", side, str(path), "a run folder, or a folder of run folders, with a history")
    for folder in found:
        refuse_unreadable(parquet_files(folder))
    return found


def _is_run(path: Path) -> bool:
    return parquet_path(path).is_file() or any(raw_dir(path).glob("*.jsonl"))


def _runs_in(path: Path) -> list[Path]:
    levels = (sorted(path.glob("/".join("*" * depth))) for depth in range(1, _DEPTH + 1))
    return [folder for level in levels for folder in level if not folder.is_symlink() and _is_run(folder)]
