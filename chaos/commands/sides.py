"""`nemesrv compare ours apache --scenario broker-crash`: run both first, each seed on one side and then the other."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ...remoting.node.profile import Profile
from ..apache.distribution import ALLOWED, OURS, distribution
from ..errors import ScenarioError
from ..experiment.harness import Harness
from ..experiment.run_folder import RunFolder, refuse_used
from ..preflight import require_programs
from ..reporting import read_verdicts
from ..runner import Options, processes_of, require_parts, run_one
from ..scenarios.implementations import profile_of
from ..scenarios.loading import find
from ..scenarios.model import Scenario
from ..verdict import Verdict

APACHE = "apache"
_NEWEST = {Profile.V4_9: "apache-4.9.7", Profile.V5_X: "apache-5.3.3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to run on both sides."""

    scenario: str
    sets: tuple[str, ...] = ()
    runs: int = 1
    seed: int | None = None
    out: Path | None = None
    quiet: bool = False


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


def scenarios_of(words: Sequence[str], asked: Asked) -> list[Scenario]:
    """The scenario of each side, all of one profile: that of Apache's programs, or the scenario's own.

    ScenarioError for what cannot be run, and for sides that obey different windows.
    """
    own = Profile(find(asked.scenario, asked.sets).cluster.profile)
    named = [_NEWEST[own] if word == APACHE else word for word in words]
    profiles = {profile_of(word, "", "compare") for word in named} - {None}
    if len(profiles) > 1:
        allowed = "versions of one profile, 4.9 or 5.x: their timers differ"
        raise ScenarioError("compare", "RUN_A RUN_B", " ".join(words), allowed)
    profile = next(iter(profiles), own) or own
    sets = (*asked.sets, f"cluster.profile='{profile}'")
    found = [find(asked.scenario, sets if word == OURS else asked.sets, word) for word in named]
    pace = min(each.timers.time_scale for each in found)  # Apache's go slower where the file says nothing
    return [each.model_copy(update={"timers": each.timers.model_copy(update={"time_scale": pace})}) for each in found]


def run_sides(words: Sequence[str], asked: Asked) -> list[list[Path]]:
    """The run folders of each side, judged."""
    sides = scenarios_of(words, asked)
    refuse_used(asked.out)
    require_parts("nemesrv compare", sides, asked.out, spark=True)
    for scenario in sides:
        require_programs(scenario, scenario.timers.time_scale)
    first = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    folders: list[list[Path]] = [[] for _ in sides]
    with Harness(gentle=True, workers=max(map(processes_of, sides))) as harness:
        for seed in range(first, first + asked.runs):
            for side, scenario in enumerate(sides):
                out = None if asked.out is None else asked.out / f"{'ab'[side]}-{seed}"
                options = Options(seed=seed, out=out, quiet=asked.quiet)
                last = side == len(sides) - 1 and seed == first + asked.runs - 1
                judged = run_one(scenario, options, harness, is_last=last)
                assert judged.history.folder is not None
                click.echo(
                    f"{words[side]}, seed {seed}: {judged.verdict}  {judged.history.folder.path}", err=asked.quiet
                )
                folders[side].append(judged.history.folder.path)
    return folders


def verdicts_of(folder: Path) -> list[Verdict]:
    """What the checks said of that run; nothing where it was not judged."""
    run = RunFolder(folder)
    return read_verdicts(run) if run.verdicts_file.is_file() else []
