"""Tests whether a planted defect has any effect, by running the scenario with and without it on the virtual clock.

If the planted defect has no effect, all nodes are correct, and a verdict VALID does not show that checks miss the
defect. On the virtual clock a seed always gives the same history, so any difference between the two histories is the
defect's effect.
"""

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
from .virtual.stage import VirtualStage


def acts(defect: Defect, scenario: Scenario, seed: int, run: RunFolder | None = None) -> bool:
    """Whether the histories with and without the defect differ. Also returns True if the two runs could not be made.
    `run` is the run with the defect, if already recorded on the virtual clock with this seed."""
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
    """Whether two runs on the virtual clock recorded equal rows, apart from the defect's name."""
    return dict(_rows(one)) == dict(_rows(other))


def _recorded(scenario: Scenario, seed: int, place: Path, defect: Defect | None) -> RunFolder:
    folder = RunFolder.create(scenario.name, place, latest=False)
    Experiment(scenario=scenario, seed=seed, folder=folder, stage=VirtualStage(), defect=defect).run()
    return folder


def _rows(folder: RunFolder) -> Iterator[tuple[str, bytes]]:
    """Return each process's file and its rows; the harness's rows without the first row, which names the defect."""
    for file in raw_dir(folder.path).glob("*.jsonl"):
        recorded = file.read_bytes()
        yield file.name, recorded.partition(b"\n")[2] if file.name.startswith(f"{HARNESS}.") else recorded
