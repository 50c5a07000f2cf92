"""Runs on Apache's own servers end with every check VALID. Nightly; `make apache` does all there are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.loading import load, shipped
from nemesrv.chaos.verdict import Validity
from tests.chaos.judged import verdicts_of_rows
from tests.chaos.programs import nemesrv
from tests.chaos.test_end_to_end import decided
from tests.interop.conftest import need
from tests.interop.jars import Jars
from tests.ran import ran

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.ray,
    pytest.mark.spark,
    pytest.mark.toxiproxy,
    pytest.mark.java,
    pytest.mark.timeout(900),
]

MIXED = Path(__file__).with_name("mixed-crash.yaml")
SCALE = "4"


def need_apaches() -> None:
    need(Jars.SERVERS_4_9, Jars.SERVERS_5_X)
    if libfaketime.found() is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, done; nobody decided by a machine that was late."""
    need_apaches()
    return decided(
        lambda: nemesrv("run", *words, "--seed", "1", "--time-scale", SCALE, "-q", cwd=folder, timeout_s=280)
    )


def valid(done: subprocess.CompletedProcess[str], run_folder: Path) -> list[dict[str, object]]:
    """The rows of a run whose every check was VALID."""
    verdicts = json.loads((run_folder / "verdicts.json").read_text(encoding="utf-8"))
    assert verdicts["verdict"] == "VALID", done.stdout + done.stderr
    assert all(check["examined"] > 0 for check in verdicts["checks"])
    return read_rows(run_folder)


def alone(scenario: str, folder: Path, *more: str) -> list[dict[str, object]]:
    done = run(folder, scenario, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    return valid(done, (folder / "runs" / "latest").resolve())


@pytest.mark.nightly(
    "chaos/apache/test_nodes_in_ray.py::test_a_node_of_apaches_is_killed_restarted_paused_and_stopped_with_its_jvm"
)
def test_a_crash_among_servers_of_both_versions_is_judged(tmp_path: Path) -> None:
    """Plainly: Spark's JVM, whose verdicts are the same, would be the fifth."""
    need_apaches()
    for attempt in range(3):  # a machine that was too late to judge proves nothing either way
        run = tmp_path / str(attempt)
        done = ran([sys.executable, "-m", "tests.hosts.record", str(MIXED), str(run)])
        assert done.returncode == 0, done.stderr
        rows = read_rows(run)
        judged = verdicts_of_rows(rows, load(MIXED).checks)
        if all(verdict.verdict is not Validity.UNKNOWN for verdict in judged):
            break
    assert [verdict for verdict in judged if verdict.verdict is not Validity.VALID or not verdict.examined] == []
    made_by = {row["source"]: row["value"].get("implementation") for row in rows if row["event"] == "node"}  # type: ignore[attr-defined]
    assert {name: made_by[name] for name in ("ns-0", "ns-1", "broker-a", "broker-b", "producer-0")} == {
        "ns-0": "apache-5.3.3",
        "ns-1": "apache-4.9.7",
        "broker-a": "apache-5.3.3",
        "broker-b": "apache-4.9.7",
        "producer-0": None,
    }
    dropped = {(row["node"], row["broker_name"]) for row in rows if row["event"] == "broker_dropped"}
    assert {("ns-0", "broker-a"), ("ns-1", "broker-a")} <= dropped


@pytest.mark.nightly(
    "chaos/apache/test_nodes_in_ray.py::test_a_node_of_apaches_is_killed_restarted_paused_and_stopped_with_its_jvm"
)
@pytest.mark.parametrize(
    ("scenario", "implementation"),
    [(name, version) for name in ("smoke", "broker-crash") for version in ("apache-4.9.7", "apache-5.3.3")],
)
def test_a_shipped_scenario_is_valid_on_apaches_servers(scenario: str, implementation: str, tmp_path: Path) -> None:
    rows = alone(scenario, tmp_path, "--implementation", implementation)
    made_by = {row["value"].get("implementation") for row in rows if row["event"] == "node"}  # type: ignore[attr-defined]
    assert implementation in made_by


@pytest.mark.nightly("chaos/apache/test_doors.py::test_all_doors_of_a_broker_are_one_address_for_its_peers")
@pytest.mark.parametrize("scenario", shipped("roles"))
def test_what_brokers_of_a_role_do_is_valid(scenario: str, tmp_path: Path) -> None:
    alone(scenario, tmp_path)


@pytest.mark.nightly(
    "chaos/apache/test_nodes_in_ray.py::test_a_node_of_apaches_is_killed_restarted_paused_and_stopped_with_its_jvm"
)
@pytest.mark.parametrize("scenario", shipped("upgrades"))
def test_servers_are_upgraded_one_by_one_under_load_and_clients_after_them(scenario: str, tmp_path: Path) -> None:
    need(Jars.CLIENTS_4_9, Jars.CLIENTS_5_X)
    alone(scenario, tmp_path)
