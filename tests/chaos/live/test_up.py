"""`nemesrv up --check` with the real parts: what others and `nemesrv fault` do to it is recorded, judged, no defect."""

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import parquet_path
from tests.chaos.programs import nemesrv, running

CHECKS = "routes_converge,routes_are_true"


def rows_in(raw: Path, event: str) -> int:
    return raw.read_text(encoding="utf-8").count(f'"event":"{event}"') if raw.exists() else 0


def set_enabled(toxiproxy: str, proxy: str, enabled: bool) -> None:
    body = json.dumps({"enabled": enabled}).encode()
    request = urllib.request.Request(f"{toxiproxy}/proxies/{proxy}", data=body, method="POST")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        assert answer.status == 200


def test_a_fault_without_a_cluster_that_is_up_is_one_line_and_exit_status_4(tmp_path: Path) -> None:
    for options in ((), ("--run", "gone")):
        done = nemesrv("fault", "kill", "ns-0", *options, cwd=tmp_path)
        assert done.returncode == 4
        assert "no cluster is up in" in done.stderr
        assert done.stderr.count("\n") == 1


def test_programs_outside_dial_a_joined_ray_s_host_at_its_own_address_and_no_other(tmp_path: Path) -> None:
    done = nemesrv("up", "--bind", "127.0.0.1", "--ray", "auto", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--bind: 127.0.0.1 is not allowed" in done.stderr


@pytest.mark.nightly("chaos/live/test_control.py::test_a_fault_of_links_and_one_of_a_node_begin_are_listed_and_end")
@pytest.mark.e2e
@pytest.mark.ray
@pytest.mark.spark
@pytest.mark.toxiproxy
@pytest.mark.timeout(900)
def test_a_cluster_records_what_was_done_to_it_and_ends_with_verdicts(tmp_path: Path) -> None:
    options = ("--name-servers", "2", "--brokers", "1", "--time-scale", "10", "--json", "--check", CHECKS)
    raw = tmp_path / "run" / "history" / "_raw"
    said: list[dict[str, Any]] = []

    def fault(*args: str) -> subprocess.CompletedProcess[str]:
        return nemesrv("fault", *args, "--run", "run", cwd=tmp_path)

    with running("up", *options, "--out", "run", cwd=tmp_path) as command:
        announced = json.loads(next(command.stdout))
        assert announced.keys() == {"name_servers", "brokers", "toxiproxy", "pids", "run"}
        assert announced["pids"].keys() == {"ns-0", "ns-1", "broker-a"}
        command.until(lambda: rows_in(raw / "ns-0.0.jsonl", "registration") > 0)
        set_enabled(announced["toxiproxy"], "broker-a-%3Ens-0", False)
        command.until(lambda: rows_in(raw / "ns-0.0.jsonl", "broker_dropped") > 0)
        command.until(lambda: rows_in(raw / "harness.0.jsonl", "fault") > 0)
        before = rows_in(raw / "ns-0.0.jsonl", "registration")
        set_enabled(announced["toxiproxy"], "broker-a-%3Ens-0", True)
        command.until(lambda: rows_in(raw / "ns-0.0.jsonl", "registration") > before)
        assert json.loads(fault("black_hole", "broker-a <-> ns-0", "--for", "100", "--json").stdout)["begun"]
        refused = fault("black_hole", "broker-a <-> ns-7")
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert "which is no node (ns-0, ns-1, broker-a, external)" in refused.stderr
        os.kill(announced["pids"]["ns-1"], signal.SIGKILL)
        command.until(lambda: rows_in(raw / "harness.0.jsonl", "gone") > 0)
        known = {each["on"] for each in json.loads(fault("list", "--json").stdout)["faults"]}
        assert known - {"broker-a->ns-0"} == {"ns-1"}
        assert fault("restart", "ns-1").returncode == 0
        command.until(lambda: rows_in(raw / "ns-1.1.jsonl", "registration") > 0)
        command.until(lambda: json.loads(fault("list", "--json").stdout)["faults"] == [])
        for line in command.stdout:  # Spark has started by then, or will have
            said.append(json.loads(line))
            if any(verdict["verdict"] != "UNKNOWN" for verdict in said):
                break
        stderr = command.end(signal.SIGINT)
        assert command.left() == []
    run = RunFolder(tmp_path / "run")
    verdicts = json.loads(run.verdicts_file.read_text(encoding="utf-8"))
    assert [check["name"] for check in verdicts["checks"]] == CHECKS.split(",")
    assert verdicts["verdict"] in ("VALID", "UNKNOWN"), verdicts  # UNKNOWN: the machine was too late to judge
    assert command.process.returncode == {"VALID": 0, "UNKNOWN": 3}[verdicts["verdict"]], stderr
    assert verdicts["checks"][1]["examined"] > 0
    assert all(verdict["at_ms"] < 1e9 for verdict in said)
    rows = read_rows(tmp_path / "run")
    faults = [row for row in rows if row["event"] == "fault"]
    shown = {(row["source"], row["target"], row["fault"], row["fault_id"], row["phase"]) for row in faults}
    assert shown == {
        (*fault, phase)
        for phase in ("start", "end")
        for fault in (
            ("broker-a", "ns-0", "cut", "outside-1"),
            ("broker-a", "ns-0", "black_hole", "black_hole-1"),
            ("ns-1", None, "kill", "unplanned-1"),
        )
    }
    assert len(faults) == len(shown), "each is recorded once"
    assert [(row["source"], row["fault_id"]) for row in rows if row["event"] == "gone"] == [("ns-1", "unplanned-1")]
    assert [row["event"] for row in rows].count("run_begin") == 1
    assert any(row["node"] == "toxiproxy" and row["event"] == "timer_lag" for row in rows)
    assert [action.do for action in run.scenario().timeline] == ["black_hole", "restart", "heal"]
    assert sorted(path.name for path in run.logs.iterdir()) == ["broker-a.log", "ns-0.log", "ns-1.log", "toxiproxy.log"]
    assert run.report_file.stat().st_size > 10_000
    assert run.junit_file.exists()
    assert sorted(path.name for path in parquet_path(tmp_path / "run").parent.iterdir()) == ["part-00000.parquet"]
