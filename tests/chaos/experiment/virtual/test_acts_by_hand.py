"""Acts by hand on the virtual clock: each is done, recorded and judged right; each that is not done is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesrv.chaos.defects import by_hand
from nemesrv.chaos.defects.model import Defect
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.selftest import scenario_of
from tests.chaos.plain_judging import found_wrong, verdicts


def test_what_is_done_by_hand_is_recorded_and_no_alarm(tmp_path: Path) -> None:
    folder = record_virtual(scenario_of("acts-by-hand"), 1, tmp_path / "run").path
    acts = [row for row in read_rows(folder) if row["event"] == "admin"]
    assert {row["f"] for row in acts} == {
        "closed", "delete_topic", "register", "unregister", "update_config", "update_topic", "wipe_write_perm",
    }  # fmt: skip
    assert {row["type"] for row in acts} == {"ok"}
    assert {one.name: one.verdict for one in verdicts(folder)}["done_by_hand"] == "VALID"
    assert found_wrong(folder) == {}


@pytest.mark.parametrize("defect", by_hand.DEFECTS, ids=lambda defect: defect.name)
def test_what_is_not_done_as_asked_is_found(defect: Defect, tmp_path: Path) -> None:
    found = set(found_wrong(record_virtual(scenario_of(defect.scenario), 1, tmp_path / "run", defect).path))
    assert defect.caught_by <= found <= defect.caught_by | defect.also
