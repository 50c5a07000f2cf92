"""Runs on Apache's own servers end with every check VALID. A short one each time; `make apache` does all there are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.model import SHIPPED_DIR, load, roles, version_changes
from tests.chaos.programs import nemesrv
from tests.chaos.test_end_to_end import decided
from tests.interop.conftest import need
from tests.interop.jars import Jars

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


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, done; nobody decided by a machine that was late."""
    need(Jars.SERVERS_4_9, Jars.SERVERS_5_X)
    if libfaketime.found() is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")
    return decided(lambda: nemesrv("run", *words, "--seed", "1", "--time-scale", SCALE, "-q", cwd=folder))


def valid(done: subprocess.CompletedProcess[str], run_folder: Path) -> list[dict[str, object]]:
    """The rows of a run whose every check was VALID."""
    verdicts = json.loads((run_folder / "verdicts.json").read_text(encoding="utf-8"))
    assert verdicts["verdict"] == "VALID", done.stdout + done.stderr
    assert all(check["examined"] > 0 for check in verdicts["checks"])
    return read_rows(run_folder)


Runs = tuple[subprocess.CompletedProcess[str], Path]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Smoke on Apache's 4.9.7, then the crash among both versions, by one command: one Ray and one Spark for both."""
    folder = tmp_path_factory.mktemp("apache")
    smoke = folder / "smoke.yaml"
    smoke.write_text(load(SHIPPED_DIR / "smoke.yaml", implementation="apache-4.9.7").to_yaml(), encoding="utf-8")
    return run(folder, str(smoke), str(MIXED)), folder / "runs"


def rows_of(runs: Runs, scenario: str) -> list[dict[str, object]]:
    """Of its last run."""
    done, folder = runs
    assert (folder / scenario).is_dir(), done.stdout + done.stderr
    return valid(done, max((folder / scenario).iterdir()))


def alone(scenario: str, folder: Path, *more: str) -> None:
    done = run(folder, scenario, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    valid(done, (folder / "runs" / "latest").resolve())


def test_smoke_is_valid_on_apaches_servers(two_runs: Runs) -> None:
    rows = rows_of(two_runs, "smoke")
    made_by = {row["value"].get("implementation") for row in rows if row["event"] == "node"}  # type: ignore[attr-defined]
    assert "apache-4.9.7" in made_by


def test_a_crash_among_servers_of_both_versions_is_judged(two_runs: Runs) -> None:
    rows = rows_of(two_runs, "mixed-crash")
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


@pytest.mark.parametrize(
    ("scenario", "implementation"),
    [("smoke", "apache-5.3.3"), ("broker-crash", "apache-4.9.7"), ("broker-crash", "apache-5.3.3")],
)
def test_a_shipped_scenario_is_valid_on_apaches_servers(scenario: str, implementation: str, tmp_path: Path) -> None:
    alone(scenario, tmp_path, "--implementation", implementation)


@pytest.mark.parametrize("scenario", roles())
def test_what_brokers_of_a_role_do_is_valid(scenario: str, tmp_path: Path) -> None:
    alone(scenario, tmp_path)


@pytest.mark.parametrize("scenario", version_changes())
def test_servers_are_upgraded_one_by_one_under_load_and_clients_after_them(scenario: str, tmp_path: Path) -> None:
    need(Jars.CLIENTS_4_9, Jars.CLIENTS_5_X)
    alone(scenario, tmp_path)
