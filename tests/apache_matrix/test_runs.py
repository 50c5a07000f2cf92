"""Runs on Apache's own servers end with every check VALID. A short one each time; `make apache` does all there are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.model import roles, version_changes
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


def run(scenario: str, folder: Path, *more: str) -> list[dict[str, object]]:
    """The rows of a run whose every check was VALID."""
    need(Jars.SERVERS_4_9, Jars.SERVERS_5_X)
    if libfaketime.found() is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime)")
    done = decided(lambda: nemesrv("run", scenario, "--seed", "1", "--time-scale", SCALE, *more, "-q", cwd=folder))
    assert done.returncode == 0, done.stdout + done.stderr
    latest = (folder / "runs" / "latest").resolve()
    checks = json.loads((latest / "verdicts.json").read_text(encoding="utf-8"))["checks"]
    assert all(check["examined"] > 0 for check in checks)
    return read_rows(latest)


def test_a_crash_among_servers_of_both_versions_is_judged(tmp_path: Path) -> None:
    rows = run(str(MIXED), tmp_path)
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


@pytest.mark.parametrize("implementation", ["apache-4.9.7", "apache-5.3.3"])
@pytest.mark.parametrize("scenario", ["smoke", "broker-crash"])
def test_a_shipped_scenario_is_valid_on_apaches_servers(scenario: str, implementation: str, tmp_path: Path) -> None:
    run(scenario, tmp_path, "--implementation", implementation)


@pytest.mark.parametrize("scenario", roles())
def test_what_brokers_of_a_role_do_is_valid(scenario: str, tmp_path: Path) -> None:
    run(scenario, tmp_path)


@pytest.mark.parametrize("scenario", version_changes())
def test_servers_are_upgraded_one_by_one_under_load_and_clients_after_them(scenario: str, tmp_path: Path) -> None:
    need(Jars.CLIENTS_4_9, Jars.CLIENTS_5_X)
    run(scenario, tmp_path)
