"""Acts by hand on the virtual clock: each is done, recorded and judged right; each that is not done is found."""

from pathlib import Path

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong, verdicts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.selftest import scenario_of
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.model import Scenario


def few_sends(name: str) -> Scenario:
    """The self-test's scenario with clients that do little: what is done by hand is done to servers."""
    scenario = scenario_of(name)
    workload = scenario.workload.model_copy(update={"client_starts": 0, "sends_per_s": 1.0})
    return scenario.model_copy(update={"workload": workload})


def test_what_is_done_by_hand_is_recorded_and_no_alarm(tmp_path: Path) -> None:
    folder = record_virtual(few_sends("acts-by-hand"), 1, tmp_path / "run").path
    acts = [row for row in read_rows(folder) if row["event"] == "admin"]
    assert {row["f"] for row in acts} == {
        "closed", "delete_topic", "register", "unregister", "update_config", "update_topic", "wipe_write_perm",
    }  # fmt: skip
    assert {row["type"] for row in acts} == {"ok"}
    assert {one.name: one.verdict for one in verdicts(folder)}["done_by_hand"] == "VALID"
    assert found_wrong(folder) == {}


@pytest.mark.nightly("test_what_is_done_by_hand_is_recorded_and_no_alarm")
def test_a_clock_that_is_set_forward_drops_everybody_at_the_next_scan_or_nobody_and_is_no_alarm(tmp_path: Path) -> None:
    folder = record_virtual(few_sends("clock-steps"), 1, tmp_path / "run").path
    rows = list(read_rows(folder))
    changed_ms = [row["time_ms"] for row in rows if row["event"] == "clock"]
    dropped = [row for row in rows if row["event"] == "broker_dropped" and row["node"] == "ns-0"]
    assert {(row["broker_name"], row["value"]["reason"]) for row in dropped if row["time_ms"] < changed_ms[3]} == {
        ("broker-a", "expired"), ("broker-b", "expired"),
    }  # fmt: skip
    assert all(changed_ms[2] < row["time_ms"] <= changed_ms[2] + 10_000 for row in dropped[:2])
    assert found_wrong(folder) == {}
