"""Random runs with nothing planted, as three hosts would record them: `python -m tests.chaos.history.random_hosts`.

Each scenario of random_scenarios.py is recorded on the virtual clock, and its rows are spread over three hosts, whose
clocks are 700 ms ahead and 300 ms behind the harness's. Readings are wrong by their whole bound of 20 ms, in one
direction and in opposite ones; a clock jumps in the middle; the rows of one host are missing, or nobody
measured a clock. None of these may say INVALID where the history of one host did not.
"""

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.history.host_clocks import CLOCKS
from nemesrv.chaos.history.merge import to_parquet
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.experiment.virtual.random_scenarios import random_scenario
from tests.chaos.history.many_hosts import Row, ahead, jumping, rows_of, spread, written

APART = {"h1": ahead(700), "h2": ahead(-300)}
BOUND_MS = 20.0
Rows = Mapping[tuple[str, int], list[Row]]


def as_hosts_record_it(rows: Rows) -> dict[str, Rows]:
    """What happened to the clocks, and the rows that come of it."""
    middle_ms = max(row["time_ms"] for of in rows.values() for row in of) / 2
    late, early = (spread(rows, APART, bound_ms=BOUND_MS, error=error) for error in (1.0, -1.0))
    opposite = {**late, (CLOCKS, 0): [*late[CLOCKS, 0]]}
    for number, row in enumerate(early[CLOCKS, 0]):
        if row["source"] == "h2":
            opposite[CLOCKS, 0][number] = row
    return {
        "right": spread(rows, APART),
        "late": late,
        "early": early,
        "opposite": opposite,
        "jumped": spread(rows, {**APART, "h1": jumping(700, middle_ms)}),
        "lost": spread(rows, APART, lost=["h1"]),
        "not measured": spread(rows, APART, measured=False),
    }


def wrong(seed: int, out: Path) -> list[tuple[str, Verdict]]:
    """What says INVALID, and in which case, of that seed's scenario."""
    folder = out / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    record_virtual(random_scenario(seed), seed, folder / "one")
    known, found = found_wrong(folder / "one"), []
    for case, rows in as_hosts_record_it(rows_of(folder / "one")).items():
        to_parquet(written(folder / case, rows))
        found += [(case, verdict) for name, verdict in found_wrong(folder / case).items() if name not in known]
        shutil.rmtree(folder / case)
    assert all(verdict.verdict is Validity.INVALID for _, verdict in found)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing says INVALID."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/random-hosts"))
    asked, alarms = parser.parse_args(arguments), 0
    for seed in range(asked.first, asked.first + asked.scenarios):
        found = wrong(seed, asked.out)
        alarms += bool(found)
        print(f"seed {seed}: {'INVALID' if found else 'nothing'}", flush=True)
        for case, verdict in found:
            print(f"    {case}: {verdict.name}: {verdict.why}; {verdict.examples[:1]}", flush=True)
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
