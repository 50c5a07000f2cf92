"""One judging, measured in a process of its own: `python -m tests.bench.judging FOLDER [MASTER]`.

Prints one JSON object. A process of its own, so that its peak of memory is that of this history and of no other.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Check
from nemesrv.chaos.checks.spark.session import jvm_pid, session, stop
from nemesrv.chaos.history.stored import SMALL_BYTES, local_size


def judge(where: str, master: str | None) -> dict[str, Any]:
    """Seconds from the session's start on, for all checks and for each, peaks of memory, and the verdicts."""
    from nemesrv.chaos.checks.spark import judge as spark_module

    took: dict[str, float] = {}

    def timed(check: Check) -> Check:
        def part(run: Callable[..., Any]) -> Callable[..., Any]:
            def timed_run(*args: Any) -> Any:
                begin_s = time.perf_counter()
                try:
                    return run(*args)
                finally:
                    took[check.name] = took.get(check.name, 0.0) + time.perf_counter() - begin_s

            return timed_run

        return replace(check, judge=part(check.judge))

    checks: Mapping[str, Check] = {name: timed(check) for name, check in CHECKS.items()}
    setattr(spark_module, "CHECKS", checks)  # noqa: B010 - measured from outside, as a test would
    begin_s = time.perf_counter()
    size = local_size(where)
    spark = session(master, large=size is None or size > SMALL_BYTES)
    started_s = time.perf_counter()
    try:
        pid = jvm_pid()
        before_s = _cpu_s()
        verdicts = spark_module.check_run(where, checks, spark)
        ended_s = time.perf_counter()
        return {
            "session_s": started_s - begin_s,
            "seconds": ended_s - started_s,
            "cpu_s": _cpu_s() - before_s,
            "checks": took,
            "jvm_peak": _peak(pid),
            "python_peak": _peak(os.getpid()),
            "verdicts": {verdict.name: str(verdict.verdict) for verdict in verdicts},
            "why": {verdict.name: verdict.why for verdict in verdicts if verdict.why},
        }
    finally:
        stop(spark)


def _cpu_s() -> float:
    """Of this process, the JVM and its workers, those that have ended included."""
    fields = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(file.parent.name), file.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended
        fields[pid] = int(rest[1]), sum(map(int, rest[11:15]))
    ticks, ours = 0, {os.getpid()}
    for pid, (parent, used) in sorted(fields.items()):
        if pid in ours or parent in ours:
            ours.add(pid)
            ticks += used
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak(pid: int | None) -> int:
    """Bytes that a process had at most, its parent's before `exec` not counted; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


if __name__ == "__main__":
    print(json.dumps(judge(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)))
