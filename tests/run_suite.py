"""The suite in four parts, and their sums in one last line: what `make test`, `make test-all`, `make test-fast` run.

    python -m tests.run_suite [--all | --fast] [--prepare] [PYTEST ARGUMENT ...]

Three lanes beside each other, in each one thing behind the other:

    side by side            as many processes as there are cores: tests that need this process and the network only

    on the machine's clock  what starts Ray or Toxiproxy: it would be late among many others, so that these give way
    jars                    with --prepare: Apache's programs are fetched
    Apache's programs       what starts Java's NameServers, brokers and clients, with time-outs of their own

    make check              with --prepare: format, lint, types, layers; where it fails, everything ends
    classes                 with --prepare and --all: an archive of Spark's classes, with which JVMs start sooner
    Spark and the browser   one process, one session

Tests that compute have the lowest priority (nice 19): the cores are busy from the first test to the last, and what goes
by the machine's clock, which is never beside another such part, finds one free whenever it wants it. What the first
part prints comes at once; what the others print is shown when the first has ended. `--all` runs what is marked nightly,
too; `--fast` the first part only. Every other argument but -m goes to all parts; one that leaves some of them nothing
to run (a file, `-k`) is no failure.

Up to three tests that failed run once more when everything else has ended: many tests measure times, and a machine of
two cores is late while the whole suite runs. Those that then pass are named in a line of their own before the last.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from xml.etree import ElementTree as ET

REAL_TIME = ("ray", "toxiproxy", "e2e")
STARTS_SOMETHING = (*REAL_TIME, "java", "spark", "browser")
FAILED_TESTS, INTERRUPTED, NO_TESTS = 1, 2, 5
"""Pytest's exit statuses when tests failed, after Ctrl-C, and when it ran none."""
AGAIN_MAX = 3
"""So many failed tests run once more, alone; more are no accident."""
GIVES_WAY, GIVES_SOME_WAY = 19, 10
ONLY = "NEMESRV_TESTS_WITH"
"""A variable that conftest.py reads: a part's `only`."""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    marks: str
    options: tuple[str, ...] = ()
    niceness: int = 0
    only: tuple[str, ...] = ()
    """Every test of it has one of these marks, so that no other file need be imported (conftest.py)."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command before a part. Where it `decides`, its failure is the suite's, which ends with it."""

    name: str
    command: tuple[str, ...]
    niceness: int
    decides: bool


CHECK = Step("make check", ("make", "--no-print-directory", "check"), GIVES_SOME_WAY, decides=True)
MODULE = ("timeout", "400", sys.executable, "-m")
JARS = Step("jars", (*MODULE, "tests.interop.jars"), GIVES_SOME_WAY, decides=False)
CLASSES = Step("classes", (*MODULE, "tests.spark_classes", "--if-missing"), GIVES_SOME_WAY, decides=False)
"""The archive costs as much as several JVMs save by it: it pays where many start, as nightly."""


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


def lanes(*, nightly: bool, fast: bool, prepare: bool) -> list[list[Part | Step]]:
    """Beside each other, and in each what runs one behind the other. Every test is in one part, the first is shown."""
    cores = len(os.sched_getaffinity(0))
    of_time = "" if nightly else " and not nightly"
    real_time = " or ".join(REAL_TIME)
    plain = Part(
        "side by side",
        " and ".join(f"not {mark}" for mark in STARTS_SOMETHING) + of_time,
        ("-n", str(cores), "--dist", "worksteal"),
        0 if fast else GIVES_WAY,
    )
    if fast:
        return [[plain]]
    spark = Part(
        "Spark and the browser",
        f"(spark or browser) and not ({real_time} or java){of_time}",
        niceness=GIVES_WAY,
        only=("spark", "browser"),
    )
    clock = Part("on the machine's clock", f"({real_time}){of_time}", only=REAL_TIME)
    java = Part("Apache's programs", f"java and not ({real_time}){of_time}", only=("java",))
    if not prepare:
        return [[plain], [clock, java], [spark]]
    return [[plain], [clock, JARS, java], [CHECK, *([CLASSES] if nightly else []), spark]]


class Running:
    """A part's pytest, or a step; what it prints is kept until it is `shown`, or comes at once."""

    def __init__(self, part: Part | Step, arguments: Sequence[str], folder: Path, *, at_once: bool) -> None:
        self.part = part
        self._counted, self._said = folder / f"{part.name}.xml", folder / f"{part.name}.txt"
        if isinstance(part, Step):
            command, env = [*part.command], {**os.environ}
        else:
            own = ("-m", part.marks, *part.options, f"--junitxml={self._counted}", "-o", "junit_family=xunit1")
            command, env = [sys.executable, "-m", "pytest", *arguments, *own], {**os.environ, ONLY: " ".join(part.only)}
        if at_once:
            print(self._title, flush=True)
            self.process = subprocess.Popen(command, env=env)
        else:
            with self._said.open("wb") as said:
                self.process = subprocess.Popen(command, env=env, stdout=said, stderr=subprocess.STDOUT)
        if part.niceness:
            os.setpriority(os.PRIO_PROCESS, self.process.pid, part.niceness)  # before it has a thread or a child

    @property
    def _title(self) -> str:
        return f"\n{self.part.name}: {self.part.marks}" if isinstance(self.part, Part) else f"\n{self.part.name}:"

    @property
    def fails_all(self) -> bool:
        """Of what has ended: whether nothing else is worth its time."""
        return isinstance(self.part, Step) and self.part.decides and self.process.returncode != 0

    def show(self) -> None:
        if self._said.exists():
            print(self._title, self._said.read_text(encoding="utf-8", errors="replace"), sep="\n", end="", flush=True)

    def failed(self) -> list[str]:
        """Pytest's names of the tests that failed; none unless it ended by itself, with failed tests alone."""
        return failed(ET.parse(self._counted).getroot()) if self.process.wait() == FAILED_TESTS else []

    def result(self) -> tuple[int, Sums]:
        """Pytest's exit status and what it counted, once it has ended. An end before it could count is one failure."""
        status = self.process.wait()
        try:
            sums = count(ET.parse(self._counted).getroot())
        except (OSError, ET.ParseError):
            sums = Sums()
        if status not in (0, NO_TESTS) and not sums.failed:
            print(f"{self.part.name}: ended with status {status}", flush=True)
            sums += Sums(failed=1)
        return status, sums


class Suite:
    """Lanes at work."""

    def __init__(self, chosen: Sequence[Sequence[Part | Step]], arguments: Sequence[str]) -> None:
        self._lanes, self._arguments = chosen, arguments
        self._running: list[Running] = []
        self._stopped = False

    def run(self) -> list[tuple[int, Sums]]:
        """Of each part that ran, and before them of the step that ended them, the exit status and what it counted."""
        results = dict[Running, tuple[int, Sums]]()
        with (
            tempfile.TemporaryDirectory(prefix="nemesrv-suite-") as folder,
            self._signals_passed_on(),
            ThreadPoolExecutor(len(self._lanes)) as threads,
        ):
            for lane in [threads.submit(self._lane, lane, Path(folder)) for lane in self._lanes]:
                for each in lane.result():
                    each.show()
                    results[each] = each.result()
                self._say_who_works()
            if not self._stopped:
                results |= self._once_more(results)
        return [results[each] for each in sorted(results, key=lambda each: isinstance(each.part, Part))]

    def _once_more(self, results: Mapping[Running, tuple[int, Sums]]) -> dict[Running, tuple[int, Sums]]:
        """New results of the parts whose few failed tests all passed, run once more and alone."""
        failed = {each: each.failed() for each in results if isinstance(each.part, Part)}
        if sum(map(len, failed.values())) > AGAIN_MAX:
            return {}
        passed: dict[Running, tuple[int, Sums]] = {}
        others = [each for each in self._arguments if not Path(each.partition("::")[0]).exists()]
        for running, tests in failed.items():
            if tests:
                print(f"\nOnce more, alone: {', '.join(tests)}", flush=True)
                if subprocess.run([sys.executable, "-m", "pytest", *others, *tests], check=False).returncode == 0:
                    _, sums = results[running]
                    passed[running] = 0, Sums(sums.passed + sums.failed, 0, sums.skipped)
        again = [test for running in passed for test in failed[running]]
        if again:
            print(f"\npassed at the second try, alone: {', '.join(again)}", flush=True)
        return passed

    def _say_who_works(self) -> None:
        at_work = [running.part.name for running in self._running if running.process.poll() is None]
        if at_work:
            print(f"still at work: {', '.join(at_work)}", flush=True)

    def _lane(self, lane: Sequence[Part | Step], folder: Path) -> list[Running]:
        """Its parts one behind the other. Returns what is to be shown: the parts that ran, and a step that failed."""
        shown = []
        for part in lane:
            if self._stopped:
                break
            running = Running(part, self._arguments, folder, at_once=part is self._lanes[0][0])
            self._running.append(running)
            status = running.process.wait()
            self._stopped = self._stopped or status < 0 or status == INTERRUPTED
            if running.fails_all:
                self._end(signal.SIGINT)
            if isinstance(part, Part) or running.fails_all:
                shown.append(running)
        return shown

    def _end(self, number: int | None) -> None:
        """Begin nothing more, and send the signal to what runs; its tests then have their usual time to end."""
        self._stopped = True
        for running in self._running:
            if number is not None:
                running.process.send_signal(number)

    @contextmanager
    def _signals_passed_on(self) -> Iterator[None]:
        """Who stops this process meanwhile stops its parts; they then have their usual time to end."""

        def pass_on(number: int, _: FrameType | None) -> None:
            self._end(number if number != signal.SIGINT else None)  # that a terminal sends to all

        before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def count(document: ET.Element) -> Sums:
    """The sums of a JUnit document; a test with an error has failed."""
    sums = Sums()
    for suite in document.iter("testsuite"):
        tests, failures, errors, skipped = (
            int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
        )
        sums += Sums(tests - failures - errors - skipped, failures + errors, skipped)
    return sums


def failed(document: ET.Element) -> list[str]:
    """Pytest's names of the tests that failed or had an error, from a JUnit document of the family xunit1."""
    found = []
    for case in document.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            file, name = case.attrib["file"], case.attrib["name"]
            classes = case.attrib["classname"].removeprefix(file.removesuffix(".py").replace("/", ".")).split(".")[1:]
            found.append("::".join([file, *classes, name]))
    return found


def main(arguments: Sequence[str]) -> int:
    """0 when every test that ran passed, and at least one did; else pytest's status of the first part that failed."""
    own = ("--all", "--fast", "--prepare")
    nightly, fast, prepare = (name in arguments for name in own)
    others = [argument for argument in arguments if argument not in own]
    results = Suite(lanes(nightly=nightly, fast=fast, prepare=prepare), others).run()
    print(f"\n{sum((sums for _, sums in results), Sums())}", flush=True)
    return exit_status([status for status, _ in results])


def exit_status(statuses: Sequence[int]) -> int:
    """Of all parts; one that had nothing to run is no failure where another had something."""
    failed = [status for status in statuses if status not in (0, NO_TESTS)]
    if failed:
        return failed[0] if failed[0] > 0 else 128 - failed[0]
    return 0 if 0 in statuses else NO_TESTS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
