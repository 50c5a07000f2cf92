"""The suite in four parts, and their sums in one last line: what `make test`, `make test-all`, `make test-fast` run.

    python -m tests.run_suite [--all | --fast] [--prepare] [PYTEST ARGUMENT ...]

    side by side            as many processes as there are cores: tests that need this process and the network only

and when those are done, beside each other, each in one process:

    on the machine's clock  what starts Ray or Toxiproxy: it would be late among many others
    Apache's programs       what starts Java's NameServers, brokers and clients, once a folder; mostly it waits for them
    Spark and the browser   whatever is done when it is done, in what the others leave of the cores (nice 19)

A part that runs beside the first of its stage is shown when it has ended. `--all` runs what is marked nightly, too;
`--fast` the first part only. `--prepare` makes, beside the first part, what the others find slow to make (`make test`
does). Every other argument but -m goes to all parts; one that leaves some of them nothing to run (a file, `-k`) is no
failure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from xml.etree import ElementTree as ET

REAL_TIME = ("ray", "toxiproxy", "e2e")
STARTS_SOMETHING = (*REAL_TIME, "java", "spark", "browser")
INTERRUPTED, NO_TESTS = 2, 5
"""Pytest's exit statuses after Ctrl-C, and when it ran none."""
PREPARED = ("nemesrv.chaos.spark.make_class_archive", "--if-missing"), ("tests.interop.jars",)
"""Modules and their arguments; what one cannot make, the tests do without, or say why not."""
PREPARED_LIMIT_S = 120
"""How much longer than the first stage each may take."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    marks: str
    options: tuple[str, ...] = ()
    niceness: int = 0


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


def stages(*, nightly: bool, fast: bool) -> list[list[Part]]:
    """The parts, those of a stage beside each other. Every test is in one part."""
    cores = len(os.sched_getaffinity(0))
    of_time = "" if nightly else " and not nightly"
    real_time = " or ".join(REAL_TIME)
    first = [
        Part(
            "side by side",
            " and ".join(f"not {mark}" for mark in STARTS_SOMETHING) + of_time,
            ("-n", str(cores), "--dist", "worksteal"),
        )
    ]
    second = [
        Part("on the machine's clock", f"({real_time}){of_time}"),
        Part("Apache's programs", f"java and not ({real_time}){of_time}"),
        Part("Spark and the browser", f"(spark or browser) and not ({real_time} or java){of_time}", niceness=19),
    ]
    return [first] if fast else [first, second]


class Running:
    """A part's pytest; what it prints is kept until it is `shown`, or comes at once."""

    def __init__(self, part: Part, arguments: Sequence[str], folder: Path, *, at_once: bool) -> None:
        self._part, self._counted, self._said = part, folder / f"{part.name}.xml", folder / f"{part.name}.txt"
        own = ("-m", part.marks, *part.options, f"--junitxml={self._counted}")
        command = [sys.executable, "-m", "pytest", *arguments, *own]
        if at_once:
            print(self._title, flush=True)
            self.process = subprocess.Popen(command, preexec_fn=self._be_nice)
        else:
            with self._said.open("wb") as said:
                self.process = subprocess.Popen(
                    command, stdout=said, stderr=subprocess.STDOUT, preexec_fn=self._be_nice
                )

    def _be_nice(self) -> None:
        os.nice(self._part.niceness)

    @property
    def _title(self) -> str:
        return f"\n{self._part.name}: {self._part.marks}"

    def result(self) -> tuple[int, Sums]:
        """Pytest's exit status and what it counted, once it has ended. An end before it could count is one failure."""
        status = self.process.wait()
        if self._said.exists():
            print(self._title, self._said.read_text(encoding="utf-8", errors="replace"), sep="\n", end="", flush=True)
        try:
            sums = count(ET.parse(self._counted).getroot())
        except (OSError, ET.ParseError):
            sums = Sums()
        if status not in (0, NO_TESTS) and not sums.failed:
            print(f"{self._part.name}: pytest ended with status {status}", flush=True)
            sums += Sums(failed=1)
        return status, sums


def run(stage: Sequence[Part], arguments: Sequence[str]) -> list[tuple[int, Sums]]:
    """Of each part its exit status and what it counted."""
    with tempfile.TemporaryDirectory(prefix="nemesrv-suite-") as folder:
        parts = [Running(part, arguments, Path(folder), at_once=number == 0) for number, part in enumerate(stage)]
        with passed_on([part.process for part in parts]):
            return [part.result() for part in parts]


def count(document: ET.Element) -> Sums:
    """The sums of a JUnit document; a test with an error has failed."""
    sums = Sums()
    for suite in document.iter("testsuite"):
        tests, failures, errors, skipped = (
            int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
        )
        sums += Sums(tests - failures - errors - skipped, failures + errors, skipped)
    return sums


@contextmanager
def passed_on(running: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Who stops this process meanwhile stops those; they then have their usual time to end."""

    def pass_on(number: int, _: FrameType | None) -> None:
        for process in running:
            if number != signal.SIGINT:  # which a terminal sends to all
                process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def begun(modules: Sequence[Sequence[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The modules at work; those that are not waited for are ended."""
    making = [subprocess.Popen([sys.executable, "-m", *module], stdout=subprocess.DEVNULL) for module in modules]
    try:
        yield making
    finally:
        for process in making:
            process.kill()
            process.wait()


def main(arguments: Sequence[str]) -> int:
    """0 when every test that ran passed, and at least one did; else pytest's status of the first part that failed."""
    chosen = stages(nightly="--all" in arguments, fast="--fast" in arguments)
    others = [argument for argument in arguments if argument not in ("--all", "--fast", "--prepare")]
    total, statuses = Sums(), []
    with begun(PREPARED if "--prepare" in arguments and "--fast" not in arguments else ()) as making:
        for stage in chosen:
            for status, sums in run(stage, others):
                total += sums
                statuses.append(status)
            if any(status < 0 or status == INTERRUPTED for status in statuses):
                break
            for process in making:
                with suppress(subprocess.TimeoutExpired):  # then the tests do without, or wait for it themselves
                    process.wait(PREPARED_LIMIT_S)
    print(f"\n{total}", flush=True)
    failed = [status for status in statuses if status not in (0, NO_TESTS)]
    if failed:
        return failed[0] if failed[0] > 0 else 128 - failed[0]
    return 0 if 0 in statuses else NO_TESTS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
