"""Whether a planted defect does anything in a scenario: rehearsed on the virtual clock, with it and without.

A run of which a defect was to be a part, and in which it never acted, is a run of right nodes: its VALID says nothing
of the defect. On the virtual clock one seed gives one history, so a defect that acts shows as a difference in it,
whatever it changes and however it was planted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ...actors.cluster import ClusterError
from ..errors import HarnessError
from ..history.schema import raw_dir
from ..scenarios.defect import Defect
from ..scenarios.model import Scenario
from .experiment import HARNESS, Experiment
from .run_folder import RunFolder
from .virtual.stage import VirtualStage, seldom_collected


def acts(defect: Defect, scenario: Scenario, seed: int, run: RunFolder | None = None) -> bool:
    """Whether the history with the defect differs from the one without; True, too, when it could not be rehearsed.

    `run` is the scenario with the defect where that was recorded on the virtual clock already, with this seed.
    """
    timers = scenario.timers.model_copy(update={"time_scale": 1.0})
    scenario = scenario.model_copy(update={"timers": timers, "clock": "virtual", "defect": None})
    with TemporaryDirectory(prefix="nemesrv-rehearsal-") as place:
        try:
            without = _recorded(scenario, seed, Path(place, "without"), None)
            wrong = run or _recorded(scenario, seed, Path(place, "with"), defect)
        except (HarnessError, ClusterError):
            return True
        return not same(without, wrong)


def same(one: RunFolder, other: RunFolder) -> bool:
    """Whether two runs on the virtual clock recorded the same, row by row; which defect was planted does not count."""
    return dict(_rows(one)) == dict(_rows(other))


def _recorded(scenario: Scenario, seed: int, place: Path, defect: Defect | None) -> RunFolder:
    folder = RunFolder.create(scenario.name, place, latest=False)
    with seldom_collected():
        Experiment(scenario=scenario, seed=seed, folder=folder, stage=VirtualStage(), defect=defect).run()
    return folder


def _rows(folder: RunFolder) -> Iterator[tuple[str, bytes]]:
    """Each process's file and what it recorded; the harness's without its first row, which names the defect."""
    for file in raw_dir(folder.path).glob("*.jsonl"):
        recorded = file.read_bytes()
        yield file.name, recorded.partition(b"\n")[2] if file.name.startswith(f"{HARNESS}.") else recorded
