"""Whole runs with the real parts: Ray actors, Toxiproxy, Spark; and what is left when one is interrupted."""

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.rows import read_rows
from tests.chaos.judged import found_wrong

from .programs import MARK, left_of, nemesrv, running

pytestmark = [pytest.mark.e2e, pytest.mark.ray, pytest.mark.spark, pytest.mark.toxiproxy, pytest.mark.timeout(900)]

SMALL = ("cluster.name_servers=2", "cluster.brokers=2", "workload.producers=1", "workload.consumers=1")
"""Six processes in place of eleven."""
SEVEN_CHECKS = (
    "checks=[routes_converge, no_false_eviction, name_server_selection, no_acknowledged_loss, messages_delivered, "
    "recovery_time, exercised]"
)
INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}


def settings(*changed: str) -> list[str]:
    """`--set` with each."""
    return [word for each in changed for word in ("--set", each)]


def decided(run: Callable[[], subprocess.CompletedProcess[str]]) -> subprocess.CompletedProcess[str]:
    """The first of three runs that is not UNKNOWN: a machine that was too late to judge proves nothing either way."""
    for _ in range(2):
        done = run()
        if done.returncode != 3:
            return done
    return run()


def valid_partition(tmp_path: Path, *changed: str) -> tuple[Path, dict[str, object]]:
    """The folder of a run of `broker-partition` that has all that a folder has, and its verdicts."""
    mark = f"nemesrv-test-{uuid.uuid4().hex}"
    words = ("run", "broker-partition", "--seed", "7", *settings(*changed))
    done = decided(lambda: nemesrv(*words, cwd=tmp_path, env={MARK: mark}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert left_of(mark) == []

    run = (tmp_path / "runs" / "latest").resolve()
    assert {path.name for path in run.iterdir()} >= {
        *("scenario.yaml", "history", "verdicts.json", "junit.xml", "report.html", "logs")
    }
    verdicts = json.loads((run / "verdicts.json").read_text(encoding="utf-8"))
    assert (verdicts["scenario"], verdicts["seed"], verdicts["verdict"]) == ("broker-partition", 7, "VALID")
    assert all(check["examined"] > 0 for check in verdicts["checks"])
    assert len(list(ET.parse(run / "junit.xml").iter("testcase"))) == len(verdicts["checks"])

    rows = read_rows(run)
    dropped = {(row["node"], row["broker_name"]) for row in rows if row["event"] == "broker_dropped"}
    assert dropped == {("ns-0", "broker-a")}
    faults = [row for row in rows if row["event"] == "fault"]
    assert {(row["source"], row["target"], row["injection"]) for row in faults} == {
        ("broker-a", "ns-0", "toxiproxy.bandwidth.rate=0")
    }
    assert [row["phase"] for row in faults] == ["start", "end"]
    assert [row["time_ms"] for row in rows] == sorted(row["time_ms"] for row in rows)
    return run, verdicts


def test_a_partition_run_leaves_a_folder_whose_verdict_is_valid(tmp_path: Path) -> None:
    valid_partition(tmp_path, *SMALL, SEVEN_CHECKS)


@pytest.mark.nightly("test_a_partition_run_leaves_a_folder_whose_verdict_is_valid")
def test_a_partition_run_as_shipped_is_valid_and_can_be_judged_again(tmp_path: Path) -> None:
    run, verdicts = valid_partition(tmp_path)
    again = nemesrv("check", str(run), cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads((run / "verdicts.json").read_text(encoding="utf-8")) == verdicts


@pytest.mark.nightly_but("SIGTERM")
@pytest.mark.parametrize("signum", INTERRUPTED, ids=lambda signum: signal.Signals(signum).name)
def test_an_interrupted_run_leaves_a_history_and_nothing_running(signum: signal.Signals, tmp_path: Path) -> None:
    raw = tmp_path / "run" / "history" / "_raw" / "harness.0.jsonl"

    def broker_hangs() -> bool:
        return raw.exists() and '"fault":"pause"' in raw.read_text(encoding="utf-8")

    with running("run", "broker-hang", "--out", "run", *settings(*SMALL), cwd=tmp_path) as command:
        command.until(broker_hangs)
        stderr = command.end(signum)
        assert command.process.returncode == INTERRUPTED[signum], stderr
        assert command.left() == []
    assert any(row["event"] == "fault" for row in read_rows(tmp_path / "run"))
    assert found_wrong(tmp_path / "run") == {}


@pytest.mark.nightly("actors/test_cluster.py::test_a_node_that_dies_wakes_whoever_waits_and_a_planned_end_does_not")
def test_a_node_that_dies_unplanned_ends_the_run_at_once_as_a_harness_failure(tmp_path: Path) -> None:
    raw = tmp_path / "run" / "history" / "_raw"

    def steady() -> bool:
        harness = raw / "harness.0.jsonl"
        return harness.exists() and '"phase":"steady"' in harness.read_text(encoding="utf-8")

    def pid_of(node: str) -> int:
        started = next(
            row for row in read_raw(raw / f"{node}.0.jsonl") if row is not None and row["event"] == "started"
        )
        assert isinstance(started["value"], dict)
        return int(started["value"]["pid"])

    with running("run", "broker-hang", "--quiet", "--out", "run", *settings(*SMALL), cwd=tmp_path) as command:
        command.until(steady)
        pid = pid_of("ns-1")
        os.kill(pid, signal.SIGKILL)
        stderr = command.end()
        assert command.process.returncode == 4, stderr
        assert len(stderr.splitlines()) == 1, stderr
        assert f"ns-1 (pid {pid}) was killed by SIGKILL from outside the scenario at " in stderr
        assert command.left() == []
    rows = read_rows(tmp_path / "run")
    faults = [(row["source"], row["fault"], row["phase"]) for row in rows if row["event"] == "fault"]
    assert [fault for fault in faults if fault[1] == "kill"] == [("ns-1", "kill", "start")]
    assert not (tmp_path / "run" / "verdicts.json").exists()


@pytest.mark.nightly("chaos/proof/test_selftest.py::test_planted_defects_are_killed_and_their_clean_twin_is_clean")
def test_a_planted_defect_is_caught_by_its_checks_and_its_clean_twin_by_none(tmp_path: Path) -> None:
    done = nemesrv("selftest", "--only", "broker-skips-a-name-server", cwd=tmp_path, timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 defects found, 1 of 1 twins clean" in done.stdout
