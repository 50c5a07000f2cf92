"""The plugin in somebody else's project: what is wrong is one sentence, and a failing test leaves its verdict.

What is judged is judged in this process, without Spark; with it, in a process of its own, tests/packaging does it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands_here import Shell

WRONG_MARKERS = """
import pytest

@pytest.mark.nemesrv(broker=2)
def test_key(nemesrv_cluster): ...

@pytest.mark.nemesrv(brokers=0)
@pytest.mark.parametrize("number", [1, 2])
def test_value(nemesrv_cluster, number): ...

@pytest.mark.nemesrv(checks=["route_converge"])
def test_check(nemesrv_cluster): ...

@pytest.mark.nemesrv(clock="virtal")
def test_clock(nemesrv_cluster): ...

@pytest.mark.nemesrv(clients={"go": "golang"})
def test_client(nemesrv_cluster): ...

@pytest.mark.nemesrv(clients={"go": "go"}, clock="virtual")
def test_client_and_clock(nemesrv_cluster): ...

@pytest.mark.nemesrv(clients={"go": "go"}, time_scale=10)
def test_client_and_scale(nemesrv_cluster): ...

@pytest.mark.nemesrv(3)
def test_position(nemesrv_cluster): ...

def test_of_another_kind(): ...
"""

FAILING = """
import pytest

pytestmark = pytest.mark.nemesrv(clock="virtual", checks=["routes_converge"], seed=7)

def test_own_assert(nemesrv_cluster):
    nemesrv_cluster.black_hole("broker-a <-> ns-0", for_s=5)
    assert 1 + 1 == 3

def test_wrong_link(nemesrv_cluster):
    nemesrv_cluster.black_hole("nope")

def test_wrong_check(nemesrv_cluster):
    nemesrv_cluster.must_be_valid("route_converge")

def test_skipped(nemesrv_cluster):
    pytest.skip("not today")

@pytest.mark.nemesrv(clock="virtual", checks=["no_acknowledged_loss"], producers=0)
def test_that_looks_at_nothing(nemesrv_cluster):
    nemesrv_cluster.wait(1)
"""


def write(folder: Path, text: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (folder / "test_mine.py").write_text(text)
    return folder


def project(folder: Path, text: str, *arguments: str, within_s: float = 280) -> subprocess.CompletedProcess[str]:
    """pytest in a folder with one test file, test_mine.py."""
    write(folder, text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=within_s)


def test_a_wrong_marker_is_a_line_at_collection_and_nothing_is_started(tmp_path: Path) -> None:
    done = project(tmp_path, WRONG_MARKERS)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    key, value, check, clock, profile, virtual, scale, position = (
        done.stderr.strip().removeprefix("ERROR: ").splitlines()
    )
    assert re.fullmatch(
        r"test_mine.py::test_key: marker nemesrv: broker=2 is not allowed: one of the keys name_servers, .*, clock; "
        r"did you mean brokers\?",
        key,
    )
    assert value == "test_mine.py::test_value: marker nemesrv: brokers: 0 is not allowed: a whole number from 1 to 26"
    assert check.startswith("test_mine.py::test_check: marker nemesrv: checks: 'route_converge' is not allowed: one of")
    assert check.endswith("; did you mean routes_converge?")
    assert clock == (
        "test_mine.py::test_clock: marker nemesrv: clock: 'virtal' is not allowed: 'real' or 'virtual'; "
        "did you mean virtual?"
    )
    assert profile.startswith("test_mine.py::test_client: marker nemesrv: clients.go: 'golang' is not allowed: one of")
    assert virtual == (
        "test_mine.py::test_client_and_clock: marker nemesrv: clock: 'virtual' is not allowed: 'real' where there are "
        "clients under test"
    )
    assert scale == (
        "test_mine.py::test_client_and_scale: marker nemesrv: time_scale: 10 is not allowed: 1 where there are clients "
        "under test, whose timers go as the machine's clock does"
    )
    assert position.startswith("test_mine.py::test_position: marker nemesrv: 3 is not allowed: keywords only")
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_marker_of_a_test_that_is_not_selected_is_nobodys_concern(tmp_path: Path) -> None:
    done = project(tmp_path, WRONG_MARKERS, "-k", "another_kind")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_with_xdist_a_wrong_marker_is_its_tests_own_error(tmp_path: Path) -> None:
    done = project(tmp_path, WRONG_MARKERS, "-n", "1", "-k", "test_clock or another_kind")
    assert (done.returncode, "1 passed, 1 error" in done.stdout) == (1, True), done.stdout + done.stderr
    assert "nemesrv: test_mine.py::test_clock: marker nemesrv: clock: 'virtal' is not allowed" in done.stdout
    assert "pytest_plugin.py" not in done.stdout


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and pytest's output, from the first failure on; judged in this process."""
    folder = write(tmp_path_factory.mktemp("mine"), FAILING)
    with pytest.MonkeyPatch.context() as monkeypatch, Shell(folder / "bin", monkeypatch) as shell:
        output = shell.run("pytest -p no:cacheprovider test_mine.py; echo exit status $?", folder)
    assert f"exit status {pytest.ExitCode.TESTS_FAILED:d}" in output, output
    assert "4 failed, 1 skipped" in output, output
    return folder, output


def of_test(output: str, name: str) -> str:
    """What pytest shows of that failure."""
    return re.split(r"\n_{3,} ", output.partition(f"_ {name} _")[2])[0]


def test_a_test_that_fails_by_itself_leaves_verdict_and_report(failed: tuple[Path, str]) -> None:
    folder, output = failed
    shown = of_test(output, "test_own_assert")
    assert "E       assert (1 + 1) == 3" in shown
    assert "verdict: VALID (routes_converge VALID)" in shown
    assert "replay: pytest test_mine.py::test_own_assert --nemesrv-seed 7 --nemesrv-clock virtual\n" in shown
    (run,) = (folder / "runs" / "test_own_assert").iterdir()
    for file in ("scenario.yaml", "verdicts.json", "junit.xml", "report.html", "history/part-00000.parquet"):
        assert (run / file).is_file(), file
    assert json.loads((run / "verdicts.json").read_text())["verdict"] == "VALID"


@pytest.mark.parametrize(
    ("name", "line", "sentence"),
    [
        (
            "test_wrong_link",
            'nemesrv_cluster.black_hole("nope")',
            "black_hole: links: 'nope' is not allowed: 'nope' is not `A -> B` or",
        ),
        (
            "test_wrong_check",
            'nemesrv_cluster.must_be_valid("route_converge")',
            "check: checks: 'route_converge' is not allowed: one of",
        ),
    ],
)
def test_a_wrong_step_is_its_own_line_and_a_sentence(
    failed: tuple[Path, str], name: str, line: str, sentence: str
) -> None:
    shown = of_test(failed[1], name)
    assert f">       {line}\n" in shown
    assert f"ScenarioError: {sentence}" in shown
    assert "not judged: the experiment itself failed, or was asked for what there is not" in shown
    assert not re.search(r"(session|model|pytest_plugin|topology)\.py", shown), shown
    source = shown.partition("\nE  ")[0].splitlines()
    assert len([each for each in source if each.strip()]) <= 4, source


def test_a_test_that_looks_at_nothing_fails_by_its_markers_checks(failed: tuple[Path, str]) -> None:
    shown = of_test(failed[1], "test_that_looks_at_nothing")
    assert "NotValid: no_acknowledged_loss is UNKNOWN" in shown
    assert not re.search(r"(session|pytest_plugin)\.py:\d+: *\n", shown), shown
    assert "def must_be_valid" not in shown
