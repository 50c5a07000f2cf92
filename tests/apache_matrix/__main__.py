"""`make apache`: the shipped scenarios on Apache's servers, as many at once as this machine bears; a table at the end.

    python -m tests.apache_matrix --read RUN_FOLDER …            nothing is run: these were, and are kept
    python -m tests.apache_matrix [SCENARIO …] [--implementation apache-5.3.3 …] [--time-scale 3] [--seed 1]

What was measured is kept in measured/, from which docs/apache.md is written. A run that is UNKNOWN because the machine
was late is done once more, alone. Exit status: 0 all VALID, 1 one INVALID, 3 one UNKNOWN, 4 one could not be run.
"""

import argparse
import datetime
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.scenarios.loading import load
from tests.generated import main as write_page
from tests.ran import ran

from .table import IMPLEMENTATIONS, SCENARIOS, cell_of, cell_of_none, keep, matrix, told

CORES_A_LANE = 2
MEMORY_A_LANE = 4 << 30
"""Three NameServers and three brokers in JVMs, the processes round them, Ray, and Spark when it judges."""
TIME_SCALE = 3.0
LIMIT_S = 1800
_JUDGED = (0, 1, 3)
_STATUS = {"VALID": 0, "UNKNOWN": 3, "INVALID": 1, "": 4}


@dataclass(frozen=True, slots=True)
class Cell:
    scenario: str
    implementation: str


def lanes_here() -> int:
    """How many runs this machine bears at once, by cores and by memory that is free."""
    with Path("/proc/meminfo").open(encoding="ascii") as file:
        free = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) << 10
    return max(1, min(len(os.sched_getaffinity(0)) // CORES_A_LANE, free // MEMORY_A_LANE))


def run(cell: Cell, folder: Path, *, time_scale: float, seed: int) -> dict[str, Any]:
    """One run in a process of its own, and what is kept of it."""
    about = {"time_scale": time_scale, "seed": seed, "date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    words = ["run", cell.scenario, "--implementation", cell.implementation, "--time-scale", f"{time_scale:g}"]
    words += ["--seed", str(seed), "--out", str(folder), "--json", "-q"]
    began_s = time.monotonic()
    try:
        done = ran([sys.executable, "-m", "nemesrv.chaos", *words], timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return cell_of_none(f"it did not end within {LIMIT_S} s", about)
    about["took_s"] = round(time.monotonic() - began_s)
    if done.returncode not in _JUDGED:
        said = done.stderr.strip().splitlines()
        return cell_of_none(said[-1] if said else f"exit status {done.returncode}", about)
    return cell_of(folder, about)


def run_all(cells: Sequence[Cell], out: Path, *, time_scale: float, seed: int) -> dict[Cell, dict[str, Any]]:
    """Every cell, as many at once as this machine bears; what was UNKNOWN once more, alone."""

    def one(cell: Cell) -> dict[str, Any]:
        found = run(cell, out / cell.implementation / cell.scenario, time_scale=time_scale, seed=seed)
        _say(cell, found)
        return found

    with ThreadPoolExecutor(lanes_here()) as lanes:
        found = dict(zip(cells, lanes.map(one, cells), strict=True))
    for cell in cells:
        if found[cell]["verdict"] == "UNKNOWN":
            folder = out / cell.implementation / f"{cell.scenario}-again"
            found[cell] = run(cell, folder, time_scale=time_scale, seed=seed)
            _say(cell, found[cell])
    return found


def read(folders: Sequence[Path]) -> dict[Cell, dict[str, Any]]:
    """Runs that are there already, judged."""
    found = {}
    for folder in folders:
        scenario = load(folder / "scenario.yaml")
        day = datetime.datetime.fromtimestamp((folder / "verdicts.json").stat().st_mtime, datetime.UTC).date()
        about = {"time_scale": scenario.timers.time_scale, "seed": scenario.seed, "date": day.isoformat()}
        found[Cell(scenario.name, scenario.cluster.implementation)] = cell_of(folder, about)
    return found


def _say(cell: Cell, found: dict[str, Any]) -> None:
    took = f"{found['took_s']} s" if "took_s" in found else ""
    print(f"{cell.scenario:<22} {cell.implementation:<14} {took:>7}  {told(found)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--implementation", action="append", dest="implementations")
    parser.add_argument("--time-scale", type=float, default=TIME_SCALE if libfaketime.found() else 1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/apache"))
    parser.add_argument("--read", nargs="+", type=Path, metavar="RUN_FOLDER")
    asked = parser.parse_args()
    if asked.time_scale != 1 and libfaketime.found() is None:
        print(libfaketime.missing(asked.time_scale), file=sys.stderr)
        return 2
    out = asked.out.resolve() / time.strftime("%m%d-%H%M%S")
    cells = [Cell(name, made_by) for name in asked.scenarios for made_by in asked.implementations or IMPLEMENTATIONS]
    began_s = time.monotonic()
    how = {"time_scale": asked.time_scale, "seed": asked.seed}
    found = read(asked.read) if asked.read else run_all(cells, out, **how)
    by_name: dict[str, dict[str, Any]] = {}
    for cell, kept in found.items():
        by_name.setdefault(cell.implementation, {})[Path(cell.scenario).stem] = kept
        keep(cell.implementation, Path(cell.scenario).stem, kept)
    write_page()
    print(f"\n{matrix(by_name)}\n")
    if not asked.read:
        print(f"{len(cells)} runs in {(time.monotonic() - began_s) / 60:.0f} min, {lanes_here()} at once; {out}")
    return max((_STATUS[each["verdict"]] for each in found.values()), key=(0, 3, 1, 4).index)


if __name__ == "__main__":
    sys.exit(main())
