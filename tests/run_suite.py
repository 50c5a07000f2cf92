"""The suite in two parts, and their sums in one last line: what `make test`, `make test-all`, `make test-fast` run.

    python -m tests.run_suite [--all | --fast] [PYTEST ARGUMENT ...]

    side by side            as many processes as there are cores: tests that need this process and the network only
    one after the other     what starts Ray, Spark, Toxiproxy, Java or a browser: it would be late beside others, and
                            Spark's tests share one session, Apache's programs of a folder one start

`--all` runs what is marked nightly, too; `--fast` the first part only. Every other argument but -m goes to both parts;
one that leaves one of them nothing to run (a file, `-k`) is no failure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from xml.etree import ElementTree as ET

STARTS_SOMETHING = ("ray", "spark", "toxiproxy", "e2e", "java", "browser")
INTERRUPTED, NO_TESTS = 2, 5
"""Pytest's exit statuses after Ctrl-C, and when it ran none."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    marks: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sums:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        """As pytest's closing line says it, without its time and frame."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def parts(*, nightly: bool, fast: bool) -> list[Part]:
    cores = len(os.sched_getaffinity(0))
    of_time = "" if nightly else " and not nightly"
    plain = " and ".join(f"not {mark}" for mark in STARTS_SOMETHING)
    both = [
        Part("side by side", plain + of_time, ("-n", str(cores), "--dist", "worksteal")),
        Part("one after the other", f"({' or '.join(STARTS_SOMETHING)}){of_time}"),
    ]
    return both[:1] if fast else both


def run(part: Part, arguments: Sequence[str]) -> tuple[int, Sums]:
    """Pytest's exit status and what it counted. An end before pytest could count is one failure."""
    with tempfile.TemporaryDirectory(prefix="nemesrv-suite-") as folder:
        counted = Path(folder) / "junit.xml"
        own = ("-m", part.marks, *part.options, f"--junitxml={counted}")
        print(f"\n{part.name}: {part.marks}", flush=True)
        status = _status([sys.executable, "-m", "pytest", *arguments, *own])
        try:
            sums = count(ET.parse(counted).getroot())
        except (OSError, ET.ParseError):
            sums = Sums()
    if status not in (0, NO_TESTS) and not sums.failed:
        print(f"{part.name}: pytest ended with status {status}", flush=True)
        sums += Sums(failed=1)
    return status, sums


def count(document: ET.Element) -> Sums:
    """The sums of a JUnit document; a test with an error has failed."""
    sums = Sums()
    for suite in document.iter("testsuite"):
        tests, failures, errors, skipped = (
            int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
        )
        sums += Sums(tests - failures - errors - skipped, failures + errors, skipped)
    return sums


def _status(command: list[str]) -> int:
    """The command's exit status. Who stops this process stops the command; it then has its usual time to end."""
    running = subprocess.Popen(command)

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT:  # which a terminal sends to both
            running.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return running.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str]) -> int:
    """0 when every test that ran passed, and at least one did; else pytest's status of the first part that failed."""
    chosen = parts(nightly="--all" in arguments, fast="--fast" in arguments)
    others = [argument for argument in arguments if argument not in ("--all", "--fast")]
    total, statuses = Sums(), []
    for part in chosen:
        status, sums = run(part, others)
        total += sums
        statuses.append(status)
        if status < 0 or status == INTERRUPTED:
            break
    print(f"\n{total}", flush=True)
    failed = [status for status in statuses if status not in (0, NO_TESTS)]
    if failed:
        return failed[0] if failed[0] > 0 else 128 - failed[0]
    return 0 if 0 in statuses else NO_TESTS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
