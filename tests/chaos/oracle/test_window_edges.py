"""Each limit from both sides: a run that comes within 2 % of it is VALID, one that is 2 % beyond is INVALID."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import Defect
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.verdict import Finding, Validity, Verdict
from tests.chaos.deviations import LIMITS, SHARE, TIMERS, Limit, Timer
from tests.chaos.sensitivity import found


def judged(limit: Limit, phases: Mapping[str, float], out: Path, defect: Defect | None = None) -> dict[str, Verdict]:
    run = record_virtual(limit.parsed(phases), 1, out / "run", defect)
    return {one.name: one for one in verdicts(run.path)}


def is_near(limit: Limit, finding: Finding) -> bool:
    """Whether the finding is within 2 % of this limit."""
    end_ms = finding.earliest_ms if limit.early else finding.bound_ms
    if finding.measured_ms is None or end_ms != pytest.approx(limit.limit_ms, rel=0.001, abs=1.0):
        return False
    return abs(finding.measured_ms - limit.limit_ms) <= max(SHARE * limit.limit_ms, finding.tolerance_ms)


def code_1_after(rows: Sequence[Mapping[str, Any]]) -> Iterable[float]:
    """How long after the NameServer's last start each look-up was answered with code 1."""
    started_ms = max(row["time_ms"] for row in rows if (row["node"], row["event"]) == ("ns-0", "started"))
    return (row["time_ms"] - started_ms for row in rows if row["event"] == "name_server_call" and row["code"] == 1)


@pytest.mark.nightly("test_a_timer_is_found_that_is_2_percent_off")
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_just_inside_is_valid_and_just_outside_is_invalid(limit: Limit, tmp_path: Path) -> None:
    inside = judged(limit, limit.inside, tmp_path / "inside")
    assert {name for name, verdict in inside.items() if verdict.verdict is Validity.INVALID} == set()
    assert not limit.is_measured or any(is_near(limit, finding) for finding in inside[limit.check].findings)
    if limit.name == "waits-for-service":
        near_ms = code_1_after(read_rows(tmp_path / "inside" / "run"))
        assert any(abs(of - limit.limit_ms) <= SHARE * limit.limit_ms for of in near_ms)
    phases = limit.inside if limit.outside is None else limit.outside
    outside = judged(limit, phases, tmp_path / "outside", limit.defect(limit.factor))
    assert outside[limit.check].verdict is Validity.INVALID


@pytest.mark.nightly_but("R: registration-longer", "T: send with all its tries-shorter")
@pytest.mark.parametrize("factor", [1 - SHARE, 1 + SHARE], ids=["shorter", "longer"])
@pytest.mark.parametrize("timer", [one for one in TIMERS if one.is_exact], ids=lambda timer: timer.name)
def test_a_timer_is_found_that_is_2_percent_off(timer: Timer, factor: float) -> None:
    assert found(timer, factor)
