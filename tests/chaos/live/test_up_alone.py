"""`nemesrv up` without --check, on a machine that has neither PySpark nor a Java: it records, and judges nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nemesrv.chaos.history.rows import read_rows
from tests.chaos.programs import nemesrv, running

from .test_up import rows_in

pytestmark = [pytest.mark.e2e, pytest.mark.ray, pytest.mark.toxiproxy]

HIDES_PYSPARK = '''
import sys


class Hiding:
    """An importer that has everything but PySpark and py4j."""

    def __init__(self, importer):
        self._importer = importer

    def find_spec(self, name, *args):
        return None if name.partition(".")[0] in ("pyspark", "py4j") else self._importer.find_spec(name, *args)

    def __getattr__(self, name):
        return getattr(self._importer, name)


sys.meta_path[:] = [Hiding(importer) for importer in sys.meta_path]
'''


def without_spark(tmp_path: Path) -> dict[str, str]:
    """An environment in which neither PySpark nor a Java is to be had, by our processes and by Ray's."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HIDES_PYSPARK)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"PYTHONPATH": path, "JAVA_HOME": str(tmp_path / "no-java")}


def test_without_spark_a_cluster_that_is_up_is_judged_all_the_same(tmp_path: Path) -> None:
    environment = without_spark(tmp_path)
    options = ("--name-servers", "2", "--brokers", "1", "--time-scale", "10", "--for", "60", "--out", "run")
    done = nemesrv("up", "--check", "default", *options, cwd=tmp_path, env=environment)
    assert done.returncode in (0, 3), done.stderr
    assert json.loads((tmp_path / "run" / "verdicts.json").read_text())["engine"] == "plain"
    hidden = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pyspark') is not None)"
    subprocess.run([sys.executable, "-c", hidden], env={**os.environ, **environment}, check=True)


def test_a_node_that_somebody_kills_is_said_at_once_and_recorded_once_and_up_goes_on(tmp_path: Path) -> None:
    options = ("--name-servers", "2", "--brokers", "1", "--time-scale", "10", "--json", "--out", "run")
    raw = tmp_path / "run" / "history" / "_raw"
    with running("up", *options, cwd=tmp_path, env=without_spark(tmp_path)) as command:
        announced = json.loads(next(command.stdout))
        assert len(announced["name_servers"]) == 2
        assert announced["brokers"].keys() == {"broker-a"}
        assert announced["toxiproxy"].startswith("http://127.0.0.1:")
        pid = announced["pids"]["ns-1"]
        killed_s = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        said = next(command.stderr)
        said_s = time.monotonic() - killed_s
        assert rows_in(raw / "harness.0.jsonl", "gone") == 1
        before = rows_in(raw / "ns-0.0.jsonl", "registration")
        command.until(lambda: rows_in(raw / "ns-0.0.jsonl", "registration") > before)
        known = json.loads(nemesrv("fault", "list", "--json", "--run", "run", cwd=tmp_path).stdout)["faults"]
        assert [(each["fault_id"], each["fault"], each["on"]) for each in known] == [("unplanned-1", "kill", "ns-1")]
        assert command.process.poll() is None
        stderr = command.end(signal.SIGINT)
        assert command.left() == []
    assert f"nemesrv: ns-1 (pid {pid}) " in said
    assert said.endswith("; it is recorded as unplanned-1, and `nemesrv fault restart ns-1` starts it again\n")
    assert said_s < 10  # of a busy machine, too
    assert command.process.returncode == 0, stderr
    assert stderr.count("\n") == 1, stderr  # "stopping", and nothing more of ns-1
    rows = read_rows(tmp_path / "run")
    faults = [row for row in rows if row["event"] in ("fault", "gone")]
    shown = [(row["event"], row["source"], row["fault"], row["phase"], row["fault_id"]) for row in faults]
    assert shown == [("fault", "ns-1", "kill", "start", "unplanned-1"), ("gone", "ns-1", None, None, "unplanned-1")]
