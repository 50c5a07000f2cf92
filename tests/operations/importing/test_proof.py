"""What happened is found again in the logs of it."""

from pathlib import Path

import pytest

from . import proof
from .proof import Compared, measured, table


def _sum(found: list[Compared], counted: str) -> int:
    return sum(getattr(one, counted) for one in found)


def test_a_crash_and_a_pair_partition_are_found_in_logs_with_wrong_clocks(tmp_path: Path) -> None:
    """Of the hundred that run nightly: the first of these two kinds."""
    found = list(measured((0, 3), tmp_path, "clocks", keep=False))
    assert [one.kind for one in found] == ["crash", "pair partition"]
    assert all(one.named_first and not one.wrongly_certain for one in found), [one.told() for one in found]
    assert _sum(found, "within") >= 0.95 * _sum(found, "transitions") > 10
    assert _sum(found, "offsets_found") >= 0.95 * _sum(found, "offsets") > 10


@pytest.mark.nightly("test_a_crash_and_a_pair_partition_are_found_in_logs_with_wrong_clocks")
@pytest.mark.parametrize("level", ["clocks", "all"])
def test_a_hundred_incidents_of_ten_kinds_are_found(level: str, tmp_path: Path) -> None:
    found = list(measured(range(100), tmp_path, level, keep=False))
    told = "\n".join([*table(found), *(one.told() for one in found if not one.is_whole)])
    assert _sum(found, "named_first") >= 90, told
    assert not any(one.wrongly_certain for one in found), told
    assert _sum(found, "within") >= 0.95 * _sum(found, "transitions"), told
    least = 1.0 if level == "clocks" else 0.98
    assert _sum(found, "offsets_found") >= least * _sum(found, "offsets"), told
    assert _sum(found, "offsets_found") + _sum(found, "offsets_unsure") == _sum(found, "offsets"), told


def test_an_incident_that_cannot_be_imported_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError("no line")

    monkeypatch.setattr(proof, "reconstruct", fails)
    (one,) = measured((6,), tmp_path, "none", keep=False)
    assert not one.is_whole
    assert "ValueError: no line" in one.told()
    assert (tmp_path / "6" / "logs").is_dir(), "its logs stay"
