"""A machine that stands still now and then makes no check say INVALID of right nodes, and hides no planted defect."""

from pathlib import Path

import pytest

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.verdict import Validity

from .random_stalls import SHIPPED, Stall, StallingStage, judged


def test_a_stall_makes_all_processes_late_or_one_and_its_own_rows_say_so(tmp_path: Path) -> None:
    of = find("smoke")
    record_virtual(of, 1, tmp_path / "run", stage=StallingStage([Stall(20, 5), Stall(40, 3, "ns-0")]))
    rows = read_rows(tmp_path / "run")
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
    late = {(row["node"], round((row["time_ms"] - begin_ms) / 1000)) for row in rows if (row["lag_ms"] or 0) > 2_000}
    everybody = {row["node"] for row in rows if row["event"] == "timer_lag"}
    assert late == {*((node, 25) for node in everybody), ("ns-0", 43)}


@pytest.mark.nightly_but("1")
@pytest.mark.parametrize("seed", range(3))
def test_no_check_says_invalid_of_a_machine_that_stands_still(tmp_path: Path, seed: int) -> None:
    found = judged(find(SHIPPED[seed % len(SHIPPED)]), seed, tmp_path / "run")
    assert {verdict.name: verdict.why for verdict in found if verdict.verdict is Validity.INVALID} == {}


@pytest.mark.nightly("test_no_check_says_invalid_of_a_machine_that_stands_still")
def test_most_of_many_stalls_are_valid_and_none_is_invalid(tmp_path: Path) -> None:
    worst = []
    for seed in range(100, 100 + 3 * len(SHIPPED)):
        found = {verdict.verdict for verdict in judged(find(SHIPPED[seed % len(SHIPPED)]), seed, tmp_path / "run")}
        assert Validity.INVALID not in found, seed
        worst.append(Validity.UNKNOWN in found)
    assert 2 * sum(worst) < len(worst)


@pytest.mark.nightly("chaos/proof/test_selftest.py::test_planted_defects_are_killed_and_their_clean_twin_is_clean")
def test_most_defects_are_found_all_the_same(tmp_path: Path) -> None:
    planted = [defect for defect in DEFECTS.values() if not defect.of_apache][::6]
    found = [
        any(
            verdict.verdict is Validity.INVALID and verdict.name in defect.caught_by
            for verdict in judged(find(defect.scenario), seed, tmp_path / "run", defect)
        )
        for seed, defect in enumerate(planted)
    ]
    assert 2 * sum(found) > len(found)
