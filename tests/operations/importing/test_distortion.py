"""Logs are distorted the same way for the same seed, and never so that the incident itself is not in them."""

from pathlib import Path

import pytest

from .distortion import drawn
from .entries import Cluster
from .recording import drawn as incident_of
from .recording import recorded
from .writing import Source, sources_of

Logs = tuple[Cluster, list[Source]]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Of a pair partition."""
    return sources_of(recorded(incident_of(3), tmp_path_factory.mktemp("incident") / "run"))


def _texts(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_seed_distorts_alike_and_another_otherwise(logs: Logs, tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        drawn(seed, *logs).written(tmp_path / name, *logs)
    assert _texts(tmp_path / "one") == _texts(tmp_path / "same") != _texts(tmp_path / "other")


@pytest.mark.nightly_but("3")
@pytest.mark.parametrize("seed", [3, 5, 7, 8])
def test_what_was_done_and_a_minute_round_it_stay(seed: int, tmp_path: Path) -> None:
    logs = sources_of(recorded(incident_of(seed), tmp_path / "run"))
    of, _ = logs
    steady_ms = next(row["time_ms"] for row in of.rows if row["event"] == "phase" and row["phase"] == "steady")
    faults = [steady_ms + 1000 * action.at_s for action in incident_of(seed).scenario.timeline]
    for seed in range(40):
        begin_ms, end_ms = drawn(seed, *logs).cut_ms
        assert begin_ms <= min(faults) - 60_000
        assert end_ms >= max(faults) + 60_000


def test_no_log_of_a_server_that_the_fault_was_done_to_is_missing(logs: Logs) -> None:
    of, sources = logs
    touched = {row[key] for row in of.rows if row["event"] == "fault" for key in ("source", "target")}
    missing = set().union(*(drawn(seed, of, sources).missing for seed in range(40)))
    assert missing
    assert not {source.file for source in sources if source.node in touched} & missing
