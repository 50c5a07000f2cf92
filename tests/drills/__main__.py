"""The field drills measured, and docs/drills.md anew.

    python -m tests.drills [--seeds N]                                ours, each drill N times on the virtual clock
    python -m tests.drills --read apache-4.9.7 RUN_FOLDER …           runs that are there, of that implementation

What was measured of an implementation's other drills stays. Exit status 1 where an interval is outside its window.
"""

import argparse
import datetime
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import load, shipped
from nemesrv.chaos.scenarios.model import Scenario
from tests import generated
from tests.rows_of_json import rows_of_json

from .intervals import INTERVALS, OURS, Recorded
from .page import MEASURED, key_of, measured


def virtual(seeds: int) -> Iterator[tuple[str, Recorded]]:
    """Each drill on our nodes."""
    for name, path in shipped("drills").items():
        for seed in range(1, seeds + 1):
            with tempfile.TemporaryDirectory() as folder:
                yield name, Recorded.of(record_virtual(load(path), seed, Path(folder) / "run").path)
        print(f"{name}: {seeds} runs", file=sys.stderr, flush=True)


def clock_of(scenario: Scenario) -> str:
    """How that run's time went."""
    return "on the virtual clock" if scenario.clock == "virtual" else f"at ×{scenario.timers.time_scale:g}"


def values_of(
    runs: Iterable[tuple[str, Recorded]], implementation: str
) -> tuple[Counter[str], dict[str, list[float]], list[str]]:
    """How many runs of each drill, interval to its values, and what is outside."""
    count, values, outside = Counter[str](), defaultdict[str, list[float]](list), list[str]()
    for name, run in runs:
        count[name] += 1
        for interval in INTERVALS:
            if interval.drill != name:
                continue
            found = interval.read(run)
            values[key_of(interval)] += [round(value, 3) for value in found]
            allowed = interval.on(implementation)
            if not allowed.allows_all(found, run.lateness_s):
                outside.append(f"{key_of(interval)}: {found}, allowed {allowed.allowed}, late {run.lateness_s:.2f} s")
    return count, values, outside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--read", nargs="+", metavar=("IMPLEMENTATION", "RUN_FOLDER"))
    asked = parser.parse_args()
    read = {Path(each): load(Path(each) / "scenario.yaml") for each in (asked.read or ())[1:]}
    recorded = ((scenario.name, Recorded.of(path)) for path, scenario in read.items())
    runs = recorded if asked.read else virtual(asked.seeds)
    implementation = asked.read[0] if asked.read else OURS
    count, values, outside = values_of(runs, implementation)
    clocks = {scenario.name: clock_of(scenario) for scenario in read.values()}
    document: dict[str, Any] = measured()
    of = document.setdefault(implementation, {"runs": {}, "values": {}})
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for name, number in count.items():
        of["runs"][name] = {"runs": number, "how": clocks.get(name, "on the virtual clock"), "date": today}
    of["values"] |= {key: sorted(each) for key, each in values.items()}
    MEASURED.write_text(rows_of_json(document, levels=3), "utf-8")
    generated.main()
    print("\n".join(outside) or "all inside")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
