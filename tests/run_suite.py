"""The suite in four parts, and their sums in one last line: what `make test`, `make test-all`, `make test-fast` run.

    python -m tests.run_suite [--all | --fast] [--prepare] [PYTEST ARGUMENT ...]

Three lanes beside each other, in each one thing behind the other:

    compiling               with --prepare: by one process what several will import
    side by side            as many processes as there are cores: tests that need this process and the network only

    on the machine's clock  what starts Ray or Toxiproxy: it would be late among many others, so that these give way
    Apache's programs       what starts Java's NameServers, brokers and clients, with time-outs of their own

    make check              with --prepare: format, lint, types, layers; where it fails, everything ends
    Spark and the browser   one process, one session: whatever is done when it is done

Tests that compute have the lowest priority (nice 19): the cores are busy from the first test to the last, and what goes
by the machine's clock, which is never beside another such part, finds one free whenever it wants it. What the first
part prints comes at once; what else is shown, when it and the first have ended. `--all` runs what is marked nightly,
too; `--fast` the first part only. `--prepare` (`make test`) makes beside them, too, what Apache's part and, with
`--all`, Spark's find slow to make, which wait for it. Every other argument but -m goes to all parts; one that leaves
some of them nothing to run (a file, `-k`) is no failure.

Up to three tests that failed run once more when everything else has ended: many tests measure times, and a machine of
two cores is late while the whole suite runs. Those that then pass are named in a line of their own before the last.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from xml.etree import ElementTree as ET

REAL_TIME = ("ray", "toxiproxy", "e2e")
STARTS_SOMETHING = (*REAL_TIME, "java", "spark", "browser")
SILENCE_S = 10.0
"""After so long without a word it is said who is at work."""
FAILED_TESTS, INTERRUPTED, NO_TESTS = 1, 2, 5
"""Pytest's exit statuses when tests failed, after Ctrl-C, and when it ran none."""
JARS = ("tests.interop.jars",)
CLASS_ARCHIVE = ("tests.spark_classes", "--if-missing")
"""Modules and their arguments; what one cannot make, the tests do without, or say why not. The archive of Spark's
classes costs as much as several JVMs save by it: it pays where many start, as nightly."""
PREPARED_LIMIT_S = 400
"""How long a part may wait for each."""
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
    waits: bool = False
    """For what is prepared."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command before a part. Where it `decides`, its failure is the suite's, which ends with it."""

    name: str
    command: tuple[str, ...]
    niceness: int
    decides: bool


COLLECT = (sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider")
COMPILE = Step("compiling", ("env", "-u", "PYTHONDONTWRITEBYTECODE", *COLLECT), GIVES_SOME_WAY, decides=False)
CHECK = Step("make check", ("make", "--no-print-directory", "check"), GIVES_SOME_WAY, decides=True)


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


def lanes(*, nightly: bool, fast: bool) -> list[list[Part]]:
    """Beside each other, and in each its parts one behind the other. Every test is in one part, the first is shown."""
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
        waits=nightly,
    )
    clock = Part("on the machine's clock", f"({real_time}){of_time}", only=REAL_TIME)
    java = Part("Apache's programs", f"java and not ({real_time}){of_time}", only=("java",), waits=True)
    return [[plain], [clock, java], [spark]]


class Running:
    """A part's pytest, or a step; what it prints is kept until it is `shown`, or comes at once."""

    def __init__(self, part: Part | Step, arguments: Sequence[str], folder: Path, *, at_once: bool) -> None:
        self.part, self.at_once, self.began_s = part, at_once, time.monotonic()
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
    """Lanes at work. `prepared` is waited for before the parts that wait for it."""

    def __init__(self, chosen: Sequence[Sequence[Part | Step]], arguments: Sequence[str], prepared: Making) -> None:
        self._lanes, self._arguments, self._prepared = chosen, arguments, prepared
        self._parts = [part for lane in chosen for part in lane if isinstance(part, Part)]
        self._running: list[Running] = []
        self._stopped = False

    def run(self) -> list[tuple[int, Sums]]:
        """Of each part that ran, and each step that failed it, the exit status and what it counted."""
        told: queue.SimpleQueue[Running | None] = queue.SimpleQueue()
        results, kept = dict[Running, tuple[int, Sums]](), list[Running]()
        with tempfile.TemporaryDirectory(prefix="nemesrv-suite-") as folder, self._signals_passed_on():
            for lane in self._lanes:
                threading.Thread(target=self._lane, args=(lane, Path(folder), told)).start()
            left, shows = len(self._lanes), False
            while left:
                try:
                    ended = told.get(timeout=SILENCE_S)
                except queue.Empty:
                    self._say_who_works()
                    continue
                if ended is None:
                    left -= 1
                else:
                    kept.append(ended)
                    shows = shows or ended.at_once or ended.fails_all
                if shows or not left:
                    for each in kept:
                        if isinstance(each.part, Part) or each.fails_all:
                            each.show()
                            results[each] = each.result()
                    kept.clear()
            if not self._stopped:
                results |= self._once_more(results)
        missing = len(self._parts) - len(results)
        if self._stopped:
            return [*results.values(), (INTERRUPTED, Sums())]
        return [*results.values()] + ([(1, Sums(failed=missing))] if missing > 0 else [])

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
        """Where nothing else tells of it: the part whose tests come at once tells of itself."""
        at_work = [running for running in self._running if running.process.poll() is None]
        if at_work and not any(running.at_once for running in at_work):
            took = [f"{running.part.name} {time.monotonic() - running.began_s:.0f} s" for running in at_work]
            print(f"still at work: {', '.join(took)}", flush=True)

    def _lane(self, parts: Sequence[Part | Step], folder: Path, ended: queue.SimpleQueue[Running | None]) -> None:
        """Its parts one behind the other; each is told of when it has ended."""
        try:
            for part in parts:
                if isinstance(part, Part) and part.waits:
                    self._prepared.wait()
                if self._stopped:
                    return
                running = Running(part, self._arguments, folder, at_once=part in self._parts[:1])
                self._running.append(running)
                status = running.process.wait()
                if isinstance(part, Part):  # tests that cannot be imported are the parts' to tell, not a step's
                    self._stopped = self._stopped or status < 0 or status == INTERRUPTED
                if running.fails_all:
                    self._end(signal.SIGINT)
                ended.put(running)
        finally:
            ended.put(None)

    def _end(self, number: int | None) -> None:
        """Begin nothing more, and send the signal to what runs; its tests then have their usual time to end."""
        self._stopped = True
        self._prepared.end()
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


class Making:
    """Modules at work beside the tests. Context manager: what has not ended with it is ended."""

    def __init__(self, modules: Sequence[Sequence[str]]) -> None:
        self._modules = modules
        self._making: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Making:
        self._making = [
            subprocess.Popen([sys.executable, "-m", *module], stdout=subprocess.DEVNULL) for module in self._modules
        ]
        for process in self._making:
            os.setpriority(os.PRIO_PROCESS, process.pid, GIVES_SOME_WAY)  # a lane waits for it
        return self

    def wait(self) -> None:
        """Return when they have ended; or have not in time: then the tests do without, or wait for it themselves."""
        for process in self._making:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PREPARED_LIMIT_S)

    def end(self) -> None:
        for process in self._making:
            process.kill()

    def __exit__(self, *_: object) -> None:
        self.end()
        self.wait()


def main(arguments: Sequence[str]) -> int:
    """0 when every test that ran passed, and at least one did; else pytest's status of the first part that failed."""
    nightly, fast = "--all" in arguments, "--fast" in arguments
    chosen: list[list[Part | Step]] = [[*lane] for lane in lanes(nightly=nightly, fast=fast)]
    prepares = "--prepare" in arguments and not fast
    if prepares:
        chosen[0].insert(0, COMPILE)
        chosen[-1].insert(0, CHECK)
    others = [argument for argument in arguments if argument not in ("--all", "--fast", "--prepare")]
    with Making(((JARS, CLASS_ARCHIVE) if nightly else (JARS,)) if prepares else ()) as making:
        results = Suite(chosen, others, making).run()
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
