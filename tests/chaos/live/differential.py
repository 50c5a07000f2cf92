"""Whole histories against the same in parts: `python -m tests.chaos.live.differential --histories 1000`.

Each random history is judged once as a finished run's, and once by the live judge, to which it comes in random parts,
with seals tried after a random number of rows. Compared for every check: verdict, violations, examined and measured,
but for what only all rows tell; for a check whose rows are all carried also allowed, examples and why. With
`--by-rows`, checks that read no traffic are not judged where the rows that they see are the same both ways, which is
quicker: a check is a function of its rows. `--out` keeps one line a history, so that several runs add up; `--seconds`
ends a run early.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Reads
from nemesrv.chaos.checks.spark.judge import check_history
from nemesrv.chaos.checks.spark.storage import HISTORY_SCHEMA
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.live.carry import TRAFFIC
from nemesrv.chaos.live.judge import LiveJudge
from nemesrv.chaos.verdict import Verdict
from tests.chaos.live.histories import Rows, random_history


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One history: what differed (nothing, it is hoped) and what happened on the way."""

    seed: int
    rows: int
    parts: int
    seals: int
    refused: int
    taken_back: int
    verdicts: dict[str, str]
    differences: list[str] = field(default_factory=list)


def compare(spark: Any, seed: int, checks: Sequence[str], folder: Path, *, by_rows: bool = False) -> Compared:
    """Judge the history of this seed both ways. `by_rows`: checks that read no traffic are not judged where the rows
    that they would see are the same both ways, and only those are compared."""
    rng = random.Random(f"{seed} parts")
    rows = random_history(seed)
    files, sizes = _parts(rows, rng, folder)
    judge = LiveJudge(spark, folder / "live", checks, seal_rows=rng.choice((1, 50, 200)))
    for file, size in zip(files[:-1], sizes[:-1], strict=True):
        judge.add([file], size)
        if rng.random() < 0.8:
            judge.judge(only=())  # what a seal needs
    judge.add(files[-1:], sizes[-1])
    history = spark.read.schema(HISTORY_SCHEMA).parquet(*files).coalesce(1)
    same = []
    if by_rows and _ids(judge.environment()) == _ids(history.where(~F.col("event").isin(*TRAFFIC))):
        same = [name for name in checks if CHECKS[name].reads is Reads.CONTROL]
    judged = [name for name in checks if name not in same]
    whole, parts = check_history(history, judged), judge.judge(only=judged)
    parts = [verdict for verdict in parts if verdict.name in judged]
    return Compared(
        seed=seed,
        rows=len(rows),
        parts=len(files),
        seals=judge.seals,
        refused=judge.refused,
        taken_back=judge.taken_back,
        verdicts={**{name: "same rows" for name in same}, **{v.name: str(v.verdict) for v in whole}},
        differences=[line for one, other in zip(whole, parts, strict=True) for line in differences(one, other)],
    )


def misdeclared(spark: Any, seed: int, checks: Sequence[str], folder: Path) -> list[str]:
    """The checks that are declared to read no traffic, and judge the history of this seed otherwise without it."""
    pq.write_table(to_table(random_history(seed)), folder / "history.parquet")
    history = spark.read.schema(HISTORY_SCHEMA).parquet(str(folder)).coalesce(1)
    names = [name for name in checks if CHECKS[name].reads is Reads.CONTROL]
    without = history.where(~F.col("event").isin(*TRAFFIC))
    pairs = zip(check_history(history, names), check_history(without, names), strict=True)
    return [one.name for one, other in pairs if one != other]


def _ids(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.select("node", "incarnation", "seq").collect()))


def _parts(rows: Rows, rng: random.Random, folder: Path) -> tuple[list[str], list[int]]:
    """Files of the history cut at random rows, in order of time."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = sorted(rng.sample(range(1, len(rows)), min(len(rows) - 1, rng.randint(1, 4))))
    files, sizes = [], []
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        file = folder / f"part-{number}.parquet"
        pq.write_table(to_table(rows[begin:end]), file)
        files.append(str(file))
        sizes.append(end - begin)
    return files, sizes


def differences(whole: Verdict, parts: Verdict) -> list[str]:
    """What of two verdicts of one check is not the same, in words."""
    one, other = whole.to_json(), parts.to_json()
    check = CHECKS[whole.name]
    for shown in (one, other):
        shown["measured"] = {key: value for key, value in shown["measured"].items() if key not in check.takes_all_rows}
    compared = ["verdict", "violations", "examined", "measured"]
    compared += [] if check.adds_up else ["allowed", "examples", "why"]
    return [f"{whole.name}: {key} is {one[key]} and {other[key]}" for key in compared if one[key] != other[key]]


def main() -> int:
    """0 when nothing differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first history")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no history after so long")
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--by-rows", action="store_true", help="checks without traffic by the rows they see")
    parser.add_argument("--checks", default=",".join(CHECKS))
    parser.add_argument("--out", type=Path, help="append one JSON line a history; seeds in it are not run again")
    asked = parser.parse_args()
    checks = asked.checks.split(",")
    done = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out and asked.out.exists() else []
    known = {entry["seed"] for entry in done}
    seeds = [seed for seed in range(asked.first, asked.first + asked.histories) if seed not in known]
    print(_summary([*done, *_run(seeds, checks, asked)], checks))
    return int(any(entry["differences"] for entry in done))


def _run(seeds: Sequence[int], checks: Sequence[str], asked: argparse.Namespace) -> list[dict[str, Any]]:
    from nemesrv.chaos.checks.spark.session import session, stop
    from nemesrv.chaos.checks.spark.settings import SMALL_PLANS, use

    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
    spark, began_s = session(large=True), time.monotonic()  # its JVM is one for hours, its plans are set by the judge
    use(spark, SMALL_PLANS)
    found: list[dict[str, Any]] = []

    def one(seed: int) -> None:
        if time.monotonic() - began_s > asked.seconds:
            return
        with tempfile.TemporaryDirectory(prefix="nemesrv-live-") as folder:
            entry = compare(spark, seed, checks, Path(folder), by_rows=asked.by_rows)
        line = {name: getattr(entry, name) for name in Compared.__slots__}
        found.append(line)
        if asked.out:
            with asked.out.open("a") as out:
                out.write(json.dumps(line) + "\n")
        for difference in entry.differences:
            print(f"seed {seed}: {difference}", flush=True)

    try:
        if asked.by_rows:
            with tempfile.TemporaryDirectory(prefix="nemesrv-live-") as folder:
                if wrong := misdeclared(spark, asked.first, checks, Path(folder)):
                    raise SystemExit(f"declared to read no traffic, and does: {', '.join(wrong)}")
        with ThreadPoolExecutor(asked.threads) as pool:
            list(pool.map(one, seeds))
    finally:
        stop(spark)
    print(f"{len(found)} histories in {time.monotonic() - began_s:.0f} s")
    return found


def _summary(entries: Sequence[dict[str, Any]], checks: Sequence[str]) -> str:
    differing = [entry["seed"] for entry in entries if entry["differences"]]
    counts = {name: Counter(entry["verdicts"].get(name, "-") for entry in entries) for name in checks}
    sums = {name: sum(entry[name] for entry in entries) for name in ("rows", "parts", "seals", "refused", "taken_back")}
    lines = [
        f"{len(entries)} histories, " + ", ".join(f"{value} {name}" for name, value in sums.items()),
        f"{sum(entry['seals'] > 0 for entry in entries)} with a seal; {len(differing)} differ: {differing[:20]}",
    ]
    lines += [f"  {name}: {dict(sorted(count.items()))}" for name, count in counts.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
