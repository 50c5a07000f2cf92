"""`python -m tests.bench checks`: all checks over histories of several sizes, here and on a Spark cluster.

    tests/generate ─► Parquet ─► judging.py, a process each ─► events/s beyond the session's start,
                                                                          linearity, the driver's peak of memory

The machine is left to Spark: two threads in one process, or two workers of one core. What counts is the time from a
session that has just started, so the JVM's warming up is in it, and shows in small histories.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from nemesrv.chaos.reports.terminal import print_fitting, standard_output
from tests.ran import ran

from ..generate import write
from .measure import BenchError
from .spark_cluster import standalone

EVENTS = (1_000_000, 10_000_000, 100_000_000)
WANTED_PER_S = 500_000
LINEAR_WITHIN = 1.25
"""Ten times the events may take so many times ten the seconds."""
BYTES_AN_EVENT = 40
"""Of disk: about 15 for the history, the rest for what Spark puts there while it works."""
LIMIT_S = 3600
MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One history judged once."""

    where: str
    events: int
    seconds: float
    cpu_s: float
    jvm_peak: int
    python_peak: int
    verdicts: dict[str, str]
    checks: dict[str, float]
    load: float

    @property
    def per_s(self) -> float:
        return self.events / self.seconds


def run(
    events: Sequence[int] = EVENTS, *, seed: int = 1, cluster: bool = True, console: Console | None = None
) -> list[Judged]:
    """Measure, print and return; the largest history but those beyond 20 million goes to the cluster too.

    BenchError when a judging fails, when a check of a clean history says INVALID, or when the disk is too small.
    """
    console = console or standard_output()
    found: list[Judged] = []
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name:
        folder = Path(name)
        on_cluster = max((count for count in events if count <= 20_000_000), default=0) if cluster else 0
        for count in sorted(events):
            free = shutil.disk_usage(folder).free
            if free < count * BYTES_AN_EVENT:
                raise BenchError(f"{count:,} events need {count * BYTES_AN_EVENT / MB:,.0f} MB of disk in {folder}")
            history = folder / f"events-{count}"
            begin_s = time.perf_counter()
            written = write(history, events=count, seed=seed)
            took_s = time.perf_counter() - begin_s
            console.print(f"{written.rows:,} events made in {took_s:.1f} s ({written.rows / took_s:,.0f}/s)")
            found.append(_judged(history, written.rows, None, console))
            if count == on_cluster:
                (folder / "cluster").mkdir()
                with standalone(folder / "cluster") as master:
                    found.append(_judged(history, written.rows, master, console))
            shutil.rmtree(history)
    _print(found, console)
    return found


def _judged(history: Path, rows: int, master: str | None, console: Console) -> Judged:
    command = [sys.executable, "-m", "tests.bench.judging", str(history), *([master] if master else [])]
    done = ran(command, timeout=LIMIT_S)
    if done.returncode:
        raise BenchError(f"judging {rows:,} events failed: {done.stderr.strip()[-500:]}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    wrong = {name: said["why"].get(name, "") for name, verdict in said["verdicts"].items() if verdict == "INVALID"}
    if wrong:
        raise BenchError(f"a clean history of {rows:,} events is INVALID to {wrong}")
    fields = {name: said[name] for name in ("seconds", "cpu_s", "jvm_peak", "python_peak", "verdicts", "checks")}
    where = "cluster of 2 workers" if master else "2 threads"
    judged = Judged(where=where, events=rows, load=os.getloadavg()[0], **fields)
    console.print(f"{rows:,} events judged on {where} in {judged.seconds:.1f} s ({judged.per_s:,.0f}/s)")
    return judged


def _print(found: Sequence[Judged], console: Console) -> None:
    table = Table(title=f"{len(found[0].verdicts)} checks over generated histories, beyond the session's start")
    columns = ("events", "where", "s", "events/s", "CPU s", "driver JVM MB", "Python MB", "load", "verdicts")
    for column in columns:
        table.add_column(column, justify="left" if column in ("where", "verdicts") else "right")
    for judged in found:
        counts = {
            verdict: [*judged.verdicts.values()].count(verdict) for verdict in sorted({*judged.verdicts.values()})
        }
        table.add_row(
            f"{judged.events:,}",
            judged.where,
            f"{judged.seconds:.1f}",
            f"{judged.per_s:,.0f}",
            f"{judged.cpu_s:.1f}",
            f"{judged.jvm_peak / MB:,.0f}",
            f"{judged.python_peak / MB:,.0f}",
            f"{judged.load:.1f}",
            ", ".join(f"{count} {verdict}" for verdict, count in counts.items()),
        )
    print_fitting(console, table)
    slowest = max(found, key=lambda judged: judged.events)
    parts = sorted(slowest.checks.items(), key=lambda item: -item[1])
    console.print(f"of {slowest.events:,} events: " + ", ".join(f"{name} {took_s:.1f} s" for name, took_s in parts))
    here = sorted((judged for judged in found if judged.where == "2 threads"), key=lambda judged: judged.events)
    aims = Table(title="aims")
    for column in ("what", "aim", "measured", "met"):
        aims.add_column(column)
    rate = here[-1].per_s
    shown = f"{rate:,.0f}"
    aims.add_row(
        f"events/s at {here[-1].events:,}", f"≥ {WANTED_PER_S:,}", shown, "yes" if rate >= WANTED_PER_S else "NO"
    )
    for small, large in pairwise(here):
        growth = (large.seconds / small.seconds) / (large.events / small.events)
        what = f"seconds an event, {large.events:,} beside {small.events:,}"
        aims.add_row(what, f"≤ {LINEAR_WITHIN}", f"{growth:.2f}", "yes" if growth <= LINEAR_WITHIN else "NO")
    print_fitting(console, aims)
