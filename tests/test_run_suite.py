"""The suite in its parts: who runs beside whom, what their sums say, and that CI's rules hold in all."""

import os
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.run_suite import STARTS_SOMETHING, exit_status, lanes

pytestmark = pytest.mark.timeout(900)
"""Suites within the suite: each is up to eight processes, which wait for their turn behind everything else."""

ROOT = Path(__file__).parents[1]
SETTINGS = "[pytest]\nmarkers =\n  ray\n  e2e\n  spark\n  java\n  toxiproxy\n  browser\n  nightly\n  nightly_but\n"
TITLES = [part.name for lane in lanes(nightly=False, fast=False) for part in lane]
TEST = """
import os
import pytest

pytestmark = [{marks}]

@pytest.mark.parametrize("number", range(6))
def test_one(number):
    with open("ran", "a") as ran:
        ran.write("{name} " + os.environ.get("PYTEST_XDIST_WORKER", "alone") + "\\n")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with this repository's conftest.py, a plain file, one of Java and one that is nightly."""
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    for name, marks in {
        "plain": "",
        "java": "pytest.mark.java",
        "nightly": "pytest.mark.nightly('none: slow')",
    }.items():
        (tmp_path / f"test_{name}.py").write_text(TEST.format(name=name, marks=marks))
    return tmp_path


def suite(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.run_suite` over the tests in `folder`."""
    env = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # quicker
    command = [sys.executable, "-m", "tests.run_suite", "-p", "xdist", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, env=env | environment, capture_output=True, text=True, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def ran(folder: Path) -> dict[str, set[str]]:
    """Name of a file to the processes in which its tests ran."""
    found: dict[str, set[str]] = {}
    for line in (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else ():
        name, process = line.split()
        found.setdefault(name, set()).add(process)
    return found


@pytest.mark.parametrize("nightly", [False, True])
def test_every_test_is_in_one_part_whatever_it_starts(nightly: bool) -> None:
    chosen = [Expression.compile(part.marks) for lane in lanes(nightly=nightly, fast=False) for part in lane]

    def parts_of(*marks: str) -> int:
        return sum(part.evaluate(lambda name, /, **_: name in marks) for part in chosen)

    for size in range(len(STARTS_SOMETHING) + 1):
        for marks in combinations(STARTS_SOMETHING, size):
            assert parts_of(*marks) == 1, marks
            assert parts_of(*marks, "nightly") == nightly, marks


MEETING = """
import signal
import pytest

pytestmark = [{marks}]

def test_the_other_is_there_too():
    signal.alarm(600)
    with open("{pipe}", "{mode}"):  # waits until the other opens its end
        signal.alarm(0)
"""


def test_plain_tests_run_beside_ray_and_beside_spark_in_as_many_processes_as_they_may(folder: Path) -> None:
    for pair in (("plain", "ray"), ("plain", "spark")):
        pipe = "_meets_".join(pair)
        os.mkfifo(folder / pipe)
        for mine, mode in zip(pair, "rw", strict=True):
            marks = "" if mine == "plain" else f"pytest.mark.{mine}"
            (folder / f"test_{pipe}_{mine}.py").write_text(MEETING.format(pipe=pipe, mode=mode, marks=marks))
    (folder / "test_spark.py").write_text(TEST.format(name="spark", marks="pytest.mark.spark"))
    done = suite(folder)
    assert (done.returncode, last_line(done)) == (0, "22 passed, 0 failed, 0 skipped"), done.stdout + done.stderr
    found = ran(folder)
    assert found.keys() == {"plain", "java", "spark"}
    cores = len(os.sched_getaffinity(0))
    assert found["plain"] <= {f"gw{number}" for number in range(cores)}
    assert found["spark"] == found["java"] == {"alone"}
    titles = [line.split(": ")[0] for line in done.stdout.splitlines()]
    shown = [title for title in titles if title in TITLES]
    assert (shown[0], sorted(shown)) == (TITLES[0], sorted(TITLES))


BAD = """
import pytest

pytestmark = [{marks}]

def test_fails():
    assert False

@pytest.fixture
def broken():
    raise OSError

def test_has_an_error(broken):
    pass

def test_skips_for_a_reason_nobody_listed():
    pytest.skip("because")

def test_skips_as_ci_may():
    pytest.skip("systemd-analyze is missing")
"""


def test_failures_errors_and_in_ci_unexpected_skips_of_all_parts_count(folder: Path) -> None:
    for marks in ("", "pytest.mark.java"):
        (folder / f"test_bad{len(marks)}.py").write_text(BAD.format(marks=marks))
    done = suite(folder, "--all", CI="true")
    assert (done.returncode, last_line(done)) == (1, "18 passed, 6 failed, 2 skipped"), done.stdout + done.stderr
    assert done.stdout.count("unexpected skip in CI: Skipped: because") >= 2
    assert ran(folder).keys() == {"plain", "java", "nightly"}


LATE = """
from pathlib import Path

class TestOfTime:
    def test_is_late_once(self):
        was_late = Path("late").exists()
        Path("late").touch()
        assert was_late
"""


def test_a_test_that_fails_once_and_passes_alone_is_named_and_fails_nothing(folder: Path) -> None:
    (folder / "test_late.py").write_text(LATE)
    done = suite(folder, "--fast")
    assert (done.returncode, last_line(done)) == (0, "7 passed, 0 failed, 0 skipped"), done.stdout + done.stderr
    named = "passed at the second try, alone: test_late.py::TestOfTime::test_is_late_once"
    assert done.stdout.splitlines()[-3] == named


def test_a_test_that_fails_alone_too_fails_the_suite(folder: Path) -> None:
    (folder / "test_late.py").write_text(LATE.replace("assert was_late", "assert False"))
    done = suite(folder, "--fast", "test_late.py")
    assert (done.returncode, last_line(done)) == (1, "0 passed, 1 failed, 0 skipped"), done.stdout + done.stderr
    assert "second try" not in done.stdout


@pytest.mark.parametrize(
    ("statuses", "whole"), [([0, 5, 0], 0), ([5, 5], 5), ([0, 1, 4], 1), ([5, 4], 4), ([0, -15], 143)]
)
def test_a_part_without_a_test_is_no_failure_and_a_failure_of_any_part_is_one(statuses: list[int], whole: int) -> None:
    assert exit_status(statuses) == whole


def test_of_a_test_that_is_nightly_but_for_some_parameters_these_run_every_time(folder: Path) -> None:
    (folder / "test_some.py").write_text(TEST.format(name="some", marks='pytest.mark.nightly_but("2", "4")'))
    done = suite(folder, "--fast", "test_some.py")
    assert (done.returncode, last_line(done)) == (0, "2 passed, 0 failed, 0 skipped"), done.stdout + done.stderr


def test_a_parameter_that_a_nightly_test_does_not_have_is_refused(folder: Path) -> None:
    (folder / "test_some.py").write_text(TEST.format(name="some", marks='pytest.mark.nightly_but("2", "seven")'))
    done = subprocess.run([sys.executable, "-m", "pytest"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "nightly_but: no such test: test_some.py::test_one[seven]" in done.stderr


@pytest.mark.parametrize("named", ["", '"test_two"', '"plain.py::test_one"', '"none: "', '"test_one"'])
def test_a_nightly_test_that_names_nothing_that_runs_in_its_place_is_refused(folder: Path, named: str) -> None:
    (folder / "test_some.py").write_text(TEST.format(name="some", marks=f"pytest.mark.nightly({named})"))
    done = subprocess.run([sys.executable, "-m", "pytest"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_some.py::test_one: nightly(" in done.stderr


def test_what_runs_in_the_place_of_nightly_tests_is_printed_beside_them(folder: Path) -> None:
    (folder / "tests").mkdir()
    (folder / "test_plain.py").rename(folder / "tests" / "test_plain.py")
    (folder / "test_one.py").write_text(TEST.format(name="one", marks='pytest.mark.nightly("test_plain.py::test_one")'))
    (folder / "test_some.py").write_text(TEST.format(name="some", marks='pytest.mark.nightly_but("2", "4")'))
    command = [sys.executable, "-m", "pytest", "-m", "nightly", "--collect-only", "-qq"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert [line.split(maxsplit=1) for line in done.stdout.splitlines() if "::" in line] == [
        ["test_nightly.py::test_one", "none: slow"],
        ["test_one.py::test_one", "tests/test_plain.py::test_one"],
        ["test_some.py::test_one", "test_some.py::test_one[2] test_some.py::test_one[4]"],
    ]


UNSAID = """
from somewhere import mine
import pytest

pytestmark = mine

def test_one(): ...
"""


def test_a_mark_that_its_file_does_not_say_is_refused_for_its_part_would_not_look_there(folder: Path) -> None:
    (folder / "test_unsaid.py").write_text(UNSAID)
    (folder / "somewhere.py").write_text("import pytest\n\nmine = pytest.mark.java\n")
    done = suite(folder, "--fast", PYTHONPATH=os.pathsep.join([str(ROOT), str(folder)]))
    assert done.returncode not in (0, 5)
    assert "test_unsaid.py: say pytest.mark.java in the file itself" in done.stdout + done.stderr


def test_nothing_at_all_is_pytests_own_failure_and_fast_is_the_first_part(folder: Path) -> None:
    done = suite(folder, "--fast", "test_java.py")
    assert (done.returncode, last_line(done)) == (5, "0 passed, 0 failed, 0 skipped")


def test_an_end_before_pytest_could_count_is_a_failure(folder: Path) -> None:
    done = suite(folder, "--no-such-option")
    assert (done.returncode, last_line(done)) == (4, "0 passed, 4 failed, 0 skipped")


WAITING = """
import pytest

pytestmark = pytest.mark.java

def test_waits():
    open("begun", "w").close()
    open("nobody").close()
"""


def test_where_the_check_fails_what_runs_is_ended_and_its_words_are_shown(folder: Path) -> None:
    (folder / "Makefile").write_text("check:\n\t@read line <begun; echo a line is too long; exit 1\n")
    (folder / "test_waits.py").write_text(WAITING)
    for pipe in ("begun", "nobody"):
        os.mkfifo(folder / pipe)
    done = suite(folder, "--prepare")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "\nmake check:\na line is too long\n" in done.stdout
    assert "KeyboardInterrupt" in done.stdout


def test_a_file_that_cannot_be_imported_fails_the_suite_though_compiling_ends_with_it(folder: Path) -> None:
    (folder / "Makefile").write_text("check:\n\t@true\n")
    (folder / "test_broken.py").write_text("import nothing_of_this_name\n")
    done = suite(folder, "--prepare")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "nothing_of_this_name" in done.stdout
    assert " 1 failed" in last_line(done)
