"""The folder of a run: `runs/SCENARIO/TIMESTAMP/`, its files, and the link `runs/latest`. Layout and file names are a
stable interface: scenario.yaml, history/, verdicts.json, junit.xml, report.html, logs/."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import ScenarioError
from ..scenarios.defect import Defect
from ..scenarios.loading import load
from ..scenarios.model import Scenario


@dataclass(frozen=True, slots=True)
class RunFolder:
    path: Path

    @classmethod
    def create(
        cls, scenario_name: str, out: Path | None = None, *, root: Path = Path("runs"), latest: bool = True
    ) -> RunFolder:
        """Make a new, empty run folder: `out`, or a time-stamped folder under `root`. Raises as
        `refuse_used` does."""
        if out is not None:
            refuse_used(out)
        path = out or root / scenario_name / datetime.now().strftime("%Y%m%d-%H%M%S")
        try:
            if out is None:
                path = _new(path)
            for inner in ("history/_raw", "logs", "data"):
                (path / inner).mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise _refusal(path, exc) from exc
        folder = cls(path)
        if out is None and latest:
            folder._link_latest(root)
        return folder

    def _link_latest(self, root: Path) -> None:
        link, temporary = root / "latest", root / f".latest-{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(self.path.relative_to(root))
        temporary.replace(link)

    @property
    def scenario_file(self) -> Path:
        return self.path / "scenario.yaml"

    @property
    def verdicts_file(self) -> Path:
        return self.path / "verdicts.json"

    @property
    def findings_file(self) -> Path:
        """The file with every finding of the checks, right or wrong, as one JSON object per line."""
        return self.path / "findings.jsonl"

    @property
    def junit_file(self) -> Path:
        return self.path / "junit.xml"

    @property
    def report_file(self) -> Path:
        return self.path / "report.html"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def data(self) -> Path:
        return self.path / "data"

    def keep(self, scenario: Scenario, defect: Defect | None) -> None:
        """Write scenario.yaml and the user's defect file, so that the run can be repeated from the folder."""
        if defect is not None and defect.source is not None:
            (self.path / defect.source.name).write_bytes(defect.source.read_bytes())
            scenario = scenario.model_copy(update={"defect": defect.source.name})
        self.scenario_file.write_text(scenario.to_yaml(), encoding="utf-8")

    def remove_empty(self, *names: str) -> None:
        for inner in (self.path / name for name in names):
            if inner.is_dir() and not any(inner.iterdir()):
                inner.rmdir()

    def scenario(self) -> Scenario:
        """Return the scenario that was run in this folder. Raises ScenarioError if the folder has no valid
        scenario.yaml."""
        if not self.scenario_file.is_file():
            if not self.path.exists():
                raise ScenarioError(str(self.path), "", "no such run folder", "")
            missing = "it has no scenario.yaml"
            raise ScenarioError(str(self.path), "", "", f"a run folder, which `nemesrv run` leaves; {missing}")
        return load(self.scenario_file, reads_defect=False)


def _new(wanted: Path) -> Path:
    """Make this folder, or NAME-2, NAME-3 … if another run started in the same second."""
    path, turn = wanted, 1
    while True:
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not wanted.parent.is_dir():
                raise
            turn += 1
            path = wanted.with_name(f"{wanted.name}-{turn}")
        else:
            return path


def refuse_used(out: Path | None) -> None:
    """Raise ScenarioError if `--out` names a file, a folder that is not empty, or one that cannot be written."""
    if out is None:
        return
    try:
        if out.exists() and not out.is_dir():
            raise ScenarioError("--out", "", str(out), "an empty or new folder; this is a file")
        if out.exists() and any(out.iterdir()):
            raise ScenarioError("--out", "", str(out), "an empty or new folder; this one is not empty")
        path = out.absolute()
        TemporaryDirectory(dir=next(each for each in (path, *path.parents) if each.exists())).cleanup()
    except OSError as exc:
        raise _refusal(out, exc) from exc


def _refusal(path: Path, exc: OSError) -> Exception:
    full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
    return exc if full else ScenarioError("--out", "", str(path), f"a folder that can be made ({exc.strerror})")
