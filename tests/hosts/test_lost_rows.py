"""A host that is gone in mid-run takes its own last rows with it: the rest is judged, and what is missing is said."""

import json
import sys
import time
from pathlib import Path

import pytest

from nemesrv.chaos.history.rows import read_rows
from tests.hosts.bench import Bench, missing

pytestmark = [pytest.mark.ray, pytest.mark.skipif(bool(missing()), reason=missing() or "it can be had")]
LIMIT_S = 120.0


@pytest.mark.nightly
def test_the_history_of_a_run_that_lost_a_host_is_judged_without_that_host_s_last_rows(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with Bench() as hosts:
        command = [sys.executable, "-m", "nemesrv.chaos", "run", "smoke", "--ray", hosts.head, "--out", str(run), "-q"]
        running = hosts.start(hosts.hosts[0], command, "run.log")
        recorded, until_s = run / "history/_raw/ns-2.0.jsonl", time.monotonic() + LIMIT_S
        while not (recorded.exists() and b'"route"' in recorded.read_bytes()):  # on the last host, followed from here
            assert running.poll() is None, (hosts.folder / "run.log").read_text()
            assert time.monotonic() < until_s
            time.sleep(0.2)
        hosts.kill_raylet("c")
        assert running.wait(LIMIT_S) == 4
        assert "the host c" in (hosts.folder / "run.log").read_text()
        judged = hosts.nemesrv("check", str(run), "--json")
    assert judged.returncode == 3, f"{judged.stdout}{judged.stderr}"
    said = json.loads(judged.stdout.splitlines()[-1])
    why = [check["why"] for check in said["checks"]] + [
        text for c in said["checks"] for text in c["undecided"].values()
    ]
    assert any("the last rows of" in text and "ns-2" in text and "on c are missing" in text for text in why)
    rows = read_rows(run)
    missing_of = {row["source"] for row in rows if row["event"] == "rows_missing"}
    assert "ns-2" in missing_of
    assert "ns-0" not in missing_of
    assert any(row["node"] == "ns-2" and row["event"] == "route" for row in rows)
