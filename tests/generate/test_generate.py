"""Generated histories are well-formed, the same for the same seed, and as large as asked, however they are sliced."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import EVENTS, STAMPED
from nemesrv.chaos.scenarios.loading import load
from tests import generate
from tests.generate import multiplied


def numbered_without_gaps(rows: Sequence[dict[str, Any]]) -> bool:
    seqs: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in rows:
        seqs[row["node"], row["incarnation"]].append(row["seq"])
    return all(found == list(range(len(found))) for found in seqs.values())


def test_the_same_seed_makes_the_same_history_and_another_seed_another() -> None:
    one = generate.rows_of(8_000, 7)
    assert generate.rows_of(8_000, 7) == one
    assert generate.rows_of(8_000, 8) != one


@pytest.mark.parametrize("events", [5_000, 20_000])
def test_rows_are_those_of_the_catalogue_in_order_of_time(events: int) -> None:
    catalogue = {event.name: set(event.columns) for event in EVENTS.values()}
    rows = generate.rows_of(events, 3)
    for row in rows:
        assert row.keys() - STAMPED <= catalogue[row["event"]], row
    assert [row["time_ms"] for row in rows] == sorted(row["time_ms"] for row in rows)
    assert numbered_without_gaps(rows)


def test_a_large_history_has_row_groups_of_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplied, "ORDERED_ROWS", 0)
    generate.write(tmp_path, events=8_000, seed=3, slice_rows=1_000)
    files = sorted((tmp_path / "history").glob("*.parquet"))
    assert len(files) > 2
    for file in files:
        metadata = pq.read_metadata(file)
        column = metadata.schema.names.index("event")
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(column).statistics
            assert statistics.min == statistics.max
    clustered = read_rows(tmp_path)
    monkeypatch.undo()
    generate.write(tmp_path, events=8_000, seed=3, slice_rows=1_000)
    assert len(list((tmp_path / "history").glob("*.parquet"))) == 1
    assert clustered == read_rows(tmp_path)


def test_the_folder_says_what_is_to_be_judged(tmp_path: Path) -> None:
    generate.write(tmp_path, events=2_000, seed=3)
    scenario = load(tmp_path / "scenario.yaml")
    assert (scenario.name, scenario.seed) == ("generated", 3)
    assert "no_acknowledged_loss" in scenario.checks
