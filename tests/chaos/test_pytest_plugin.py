"""The plugin in somebody else's project: what is wrong is one sentence, and a failing test leaves its verdict.

What is judged is judged without Spark; with it, tests/packaging does it.
"""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from tenacity import Retrying, stop_after_delay, wait_fixed

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.loading import load
from nemesrv.chaos.scenarios.model import Scenario
from tests.commands_here import run
from tests.ran import ran
from tests.refusals import is_told

WRONG: dict[str, str] = yaml.safe_load(Path(__file__).with_name("wrong_markers.yaml").read_text(encoding="utf-8"))
MARKED = """
@pytest.mark.nemesrv({marker})
@pytest.mark.parametrize("number", [1, 2])
def test_{number}(nemesrv_cluster, number): ...
"""
OTHER_KIND = "\ndef test_of_another_kind(): ...\n"
WRONG_MARKERS = "".join(
    ["import pytest\n", *(MARKED.format(marker=one, number=at) for at, one in enumerate(WRONG)), OTHER_KIND]
)

DOING = """
import pytest

QUIET = {"clock": "virtual", "seed": 3, "producers": 1, "consumers": 1, "sends_per_s": 1}
pytestmark = pytest.mark.nemesrv(**QUIET)
AFTER_20_S = {"broker-a": {"registerNameServerPeriod": 20000}}

@pytest.mark.nemesrv(**QUIET, settings=AFTER_20_S, timers={"poll_name_server_interval_s": 10},
                     checks=["timers_kept", "registrations_are_kept"])
def test_settings(nemesrv_cluster):
    nemesrv_cluster.wait(130)
    nemesrv_cluster.must_be_valid()

@pytest.mark.nemesrv(**QUIET, checks=["done_by_hand", "routes_as_registered"])
def test_acts_by_hand(nemesrv_cluster):
    nemesrv_cluster.inject("update_config", "broker-a", settings={"brokerPermission": 4})
    nemesrv_cluster.wait(60)
    nemesrv_cluster.inject("register", "ns-0", broker="broker-x", address="10.9.9.9:10911", topics={"stale": 4})
    nemesrv_cluster.wait(60)
    nemesrv_cluster.must_be_valid()

@pytest.mark.nemesrv(**QUIET, brokers=1, slaves=1, checks=["routes_are_true", "one_master"])
def test_switch(nemesrv_cluster):
    nemesrv_cluster.kill("broker-a")
    nemesrv_cluster.wait(30)
    nemesrv_cluster.inject("switch", "broker-a/1")
    nemesrv_cluster.wait(30)
    nemesrv_cluster.must_be_valid()

def test_series(nemesrv_cluster):
    nemesrv_cluster.inject("rolling_restart", "name_servers", pause_s=30)
    nemesrv_cluster.inject("cut", "broker-a <-> ns-0", period_s=10, for_s=35)
    nemesrv_cluster.inject("restart_storm", "broker-b", restarts=2, for_s=60)
    nemesrv_cluster.must_be_valid("routes_converge")

@pytest.mark.nemesrv(**QUIET, defect="name-server-never-expires")
def test_defect(nemesrv_cluster):
    nemesrv_cluster.black_hole("broker-a <-> ns-0", for_s=200)
    nemesrv_cluster.must_be_valid("routes_are_true")

@pytest.mark.nemesrv(**QUIET, defect="mine.py")
def test_own_defect(nemesrv_cluster):
    nemesrv_cluster.inject("cut", "broker-a <-> ns-0", period_s=10)
"""

FAILING = """
import pytest

pytestmark = pytest.mark.nemesrv(clock="virtual", checks=["routes_converge"], seed=7, sends_per_s=1)

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
    return ran(command, cwd=folder, timeout=within_s)


def says_what_is_wrong(done: subprocess.CompletedProcess[str], folder: Path, *rows: int) -> None:
    """pytest says one sentence for each of these rows of WRONG, though a marked test has two parameters."""
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    for line, at in zip(done.stderr.strip().removeprefix("ERROR: ").splitlines(), rows, strict=True):
        sentence = f"test_mine.py::test_{at}: marker nemesrv: {[*WRONG.values()][at]}"
        assert is_told(sentence, line), line
    assert "Traceback" not in done.stdout + done.stderr
    assert not (folder / "runs").exists()


def test_a_wrong_marker_is_a_line_at_collection_and_nothing_is_started(tmp_path: Path) -> None:
    says_what_is_wrong(project(tmp_path, WRONG_MARKERS), tmp_path, *range(len(WRONG)))


@pytest.mark.nightly("test_a_wrong_marker_is_a_line_at_collection_and_nothing_is_started")
def test_with_xdist_a_wrong_marker_is_the_same_usage_error(tmp_path: Path) -> None:
    done = project(tmp_path, WRONG_MARKERS, "-n", "2", "-k", "test_2 or test_3 or another_kind")
    says_what_is_wrong(done, tmp_path, 2, 3)


@pytest.mark.parametrize("xdist", [(), ("-n", "2")])
def test_a_marker_of_a_test_that_is_not_selected_is_nobodys_concern(xdist: tuple[str, ...], tmp_path: Path) -> None:
    done = project(tmp_path, WRONG_MARKERS, *xdist, "-k", "another_kind")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and pytest's output, from the first failure on; judged without Spark."""
    folder = write(tmp_path_factory.mktemp("mine"), FAILING)
    output = run("pytest -p no:cacheprovider test_mine.py; echo exit status $?", folder)
    assert f"exit status {pytest.ExitCode.TESTS_FAILED:d}" in output, output
    assert "4 failed, 1 skipped" in output, output
    return folder, output


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and pytest's output, of tests that do more than the usual; judged without Spark. No page is drawn: a
    page takes longer than such a run, and `failed` has a page."""
    folder = write(tmp_path_factory.mktemp("doing"), DOING)
    (folder / "mine.py").write_text('NODES = ["ns-0"]\n\n\ndef plant(node):\n    pass\n')
    (folder / "conftest.py").write_text("import sys\n\nsys.modules['bokeh'] = None\n")
    return folder, run("pytest -p no:cacheprovider -rA test_mine.py", folder)


def scenario_of(folder: Path, test: str) -> Scenario:
    """The scenario that the test left, as whoever repeats it reads it."""
    (run,) = (folder / "runs" / test).iterdir()
    return load(run / "scenario.yaml")


def test_a_marker_sets_settings_and_timers_and_all_keep_them(done: tuple[Path, str]) -> None:
    folder, output = done
    assert "PASSED test_mine.py::test_settings" in output
    scenario = scenario_of(folder, "test_settings")
    assert scenario.config == {"broker-a": {"registerNameServerPeriod": 20000}}
    assert scenario.timers.poll_name_server_interval_s == 10


@pytest.mark.parametrize(
    ("test", "dos"),
    [
        ("test_acts_by_hand", ["update_config", "register", "heal"]),
        ("test_switch", ["kill", "switch", "heal"]),
        ("test_series", ["rolling_restart", "cut", "heal", "restart_storm", "heal"]),
    ],
)
def test_a_step_may_be_anything_that_an_entry_may(done: tuple[Path, str], test: str, dos: list[str]) -> None:
    folder, output = done
    assert f"PASSED test_mine.py::{test}" in output
    timeline = scenario_of(folder, test).timeline
    assert [action.do for action in timeline] == dos
    if test == "test_series":
        assert timeline[1].at_s >= 60
        assert timeline[2].at_s - timeline[1].at_s == pytest.approx(35)


def test_a_planted_defect_is_in_the_nodes_and_found(done: tuple[Path, str]) -> None:
    folder, output = done
    assert "NotValid: routes_are_true is INVALID" in of_test(output, "test_defect")
    assert scenario_of(folder, "test_defect").defect == "name-server-never-expires"


def test_a_defect_of_ones_own_is_a_file_beside_the_test_and_kept_in_the_run_folder(done: tuple[Path, str]) -> None:
    folder, output = done
    shown = of_test(output, "test_own_defect")
    assert (
        "cut: for_s: nothing is not allowed; expected how many seconds it flaps before it is healed: for_s=60" in shown
    )
    (run,) = (folder / "runs" / "test_own_defect").iterdir()
    assert "defect: mine.py" in (run / "scenario.yaml").read_text()
    assert (run / "mine.py").read_text() == (folder / "mine.py").read_text()


LONG = """
import pytest

@pytest.mark.nemesrv(name_servers=2, brokers=2)
@pytest.mark.parametrize("number", [1, 2])
def test_long(nemesrv_cluster, number):
    nemesrv_cluster.wait(30_000)
"""


def rays_processes(mark: str) -> list[str]:
    """Command lines of Ray's processes that have the mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if re.search(r"^ray::|/(raylet|gcs_server) ", command) and mark in (process / "environ").read_text():
                found.append(command[:100])
    return found


@pytest.mark.nightly("chaos/test_end_to_end.py::test_an_interrupted_run_leaves_a_history_and_nothing_running")
@pytest.mark.ray
@pytest.mark.toxiproxy
@pytest.mark.parametrize("moment", ["while Ray starts", "while both tests run"])
def test_ctrl_c_leaves_none_of_rays_processes_10_s_later_and_junit_names_the_tests(tmp_path: Path, moment: str) -> None:
    write(tmp_path, LONG)
    mark = f"NEMESRV_TEST={tmp_path}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--junitxml", "junit.xml"]
    env = {**os.environ, "NEMESRV_TEST": str(tmp_path)}
    running = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, process_group=0)

    def begun() -> bool:
        if moment == "while Ray starts":
            return bool(rays_processes(mark))
        return len([*(tmp_path / "runs").glob("test_long-*/*/history/_raw/producer-0.0.jsonl")]) == 2

    try:
        for attempt in Retrying(stop=stop_after_delay(200), wait=wait_fixed(0.2), reraise=True):
            with attempt:
                assert begun()
        os.killpg(running.pid, signal.SIGINT)
        for attempt in Retrying(stop=stop_after_delay(10), wait=wait_fixed(0.2), reraise=True):
            with attempt:
                assert rays_processes(mark) == []
        output, _ = running.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == pytest.ExitCode.INTERRUPTED, output
    assert rays_processes(mark) == []
    if moment == "while both tests run":
        junit = (tmp_path / "junit.xml").read_text()
        assert junit.count('<failure message="interrupted by Ctrl-C">') == 2
        assert junit.count('<property name="nemesrv_run"') == 2
        for run in (tmp_path / "runs").glob("test_long-*/*"):
            assert read_rows(run), "what was recorded is kept"


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
            "black_hole: links: 'nope' is not allowed; expected 'nope' is not `A -> B` or",
        ),
        (
            "test_wrong_check",
            'nemesrv_cluster.must_be_valid("route_converge")',
            "check: checks: 'route_converge' is not allowed; expected one of",
        ),
    ],
)
def test_a_wrong_step_is_its_line_and_a_sentence(failed: tuple[Path, str], name: str, line: str, sentence: str) -> None:
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
