"""Each window's edge from both sides: a run that comes within 2 % of it is VALID, one that is 2 % beyond is INVALID."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import Defect
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Finding, Validity, Verdict
from tests.chaos.sensitivity import found

from .window_edges import EDGES, OF_TIMERS, SHARE, TIMER_OF, Edge


def judged(edge: Edge, out: Path, defect: Defect | None) -> dict[str, Verdict]:
    document: dict[str, Any] = edge.document(planted_=defect is not None)
    return {
        one.name: one for one in verdicts(record_virtual(parse(document, file="edge"), 1, out / "run", defect).path)
    }


def planted(edge: Edge) -> Defect:
    def plant(node: Any) -> None:
        edge.plant(node, edge.factor)

    return Defect(
        name="edge", what="", kinds=edge.where.kinds, nodes=edge.where.nodes, plant=plant, source=Path(__file__)
    )


def is_near(edge: Edge, finding: Finding) -> bool:
    """Whether the finding is within 2 % of this edge."""
    end_ms = finding.earliest_ms if edge.early else finding.bound_ms
    if finding.measured_ms is None or end_ms != pytest.approx(edge.window_ms, rel=0.001, abs=1.0):
        return False
    return abs(finding.measured_ms - edge.window_ms) <= max(SHARE * edge.window_ms, finding.tolerance_ms)


@pytest.mark.nightly("test_a_timer_is_found_that_is_2_percent_off")
@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: edge.name)
def test_just_inside_is_valid_and_just_outside_is_invalid(edge: Edge, tmp_path: Path) -> None:
    inside = judged(edge, tmp_path / "inside", None)
    assert {name for name, verdict in inside.items() if verdict.verdict is Validity.INVALID} == set()
    assert not edge.is_measured or any(is_near(edge, finding) for finding in inside[edge.check].findings)
    if edge.measured is not None:
        near_ms = edge.measured(read_rows(tmp_path / "inside" / "run"))
        assert any(abs(of - edge.window_ms) <= SHARE * edge.window_ms for of in near_ms)
    outside = judged(edge, tmp_path / "outside", planted(edge))
    assert outside[edge.check].verdict is Validity.INVALID


@pytest.mark.nightly_but("R: registration-longer", "T: send with all its tries-shorter")
@pytest.mark.parametrize("factor", [1 - SHARE, 1 + SHARE], ids=["shorter", "longer"])
@pytest.mark.parametrize("timer", sorted(set(OF_TIMERS.values())))
def test_a_timer_is_found_that_is_2_percent_off(timer: str, factor: float) -> None:
    assert found(TIMER_OF[timer], factor)
