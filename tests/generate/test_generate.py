"""Generated histories are well-formed, the same for the same seed, and as large as asked, however they are sliced."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import STAMPED
from nemesrv.chaos.scenarios.loading import load
from tests import generate
from tests.generate import multiplied
from tests.pages.history import EVENTS


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


def test_a_history_of_few_rows_is_the_recorded_run_itself() -> None:
    few, more = generate.rows_of(1_000, 3), generate.rows_of(20_000, 3)
    of_nodes = [[row for row in rows if row["event"] == "timer_lag"] for rows in (few, more)]
    assert len(few) < 6_000
    assert abs(len(more) - 20_000) < 1_000
    assert [row["time_ms"] for row in of_nodes[0]] == [row["time_ms"] for row in of_nodes[1]]


def test_every_copy_of_a_message_is_a_message_of_its_own() -> None:
    rows = generate.rows_of(20_000, 3)
    sends = [row for row in rows if row["event"] == "send" and row["type"] == "invoke"]
    assert {*Counter(row["msg_key"] for row in sends).values()} == {1}
    assert {*Counter(row["op_id"] for row in sends).values()} == {1}
    tries = {row["op_id"] for row in rows if row["event"] == "send_attempt"}
    assert tries <= {row["op_id"] for row in sends}
    reads = Counter((row["broker_name"], row["queue_id"]) for row in rows if row["event"] == "read")
    for row in rows:
        if row["event"] == "read_done" and row["topic"] == "orders":
            assert row["offset"] == reads[row["broker_name"], row["queue_id"]]


def test_a_history_in_slices_is_one_history(tmp_path: Path) -> None:
    written = generate.write(tmp_path, events=20_000, seed=3, slice_rows=1_000)
    rows = [{name: cell for name, cell in row.items() if cell is not None} for row in read_rows(tmp_path)]
    assert rows == generate.rows_of(20_000, 3)
    assert written.rows == len(rows)
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in rows:
        if row["event"] == "read":
            offsets[row["broker_name"], row["queue_id"]].append(row["offset"])
    assert offsets
    assert all(found == list(range(len(found))) for found in offsets.values())


def test_a_queue_is_received_from_the_offset_at_which_it_was_taken() -> None:
    rows = generate.rows_of(20_000, 5)
    taken = {(row["node"], row["op_id"]): row for row in rows if row["event"] == "queue_taken"}
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["event"] == "receive":
            first.setdefault((row["node"], row["op_id"]), row)
    assert len(first) > 5
    for holding, row in first.items():
        assert taken[holding]["offset"] == row["offset"]
        assert taken[holding]["time_ms"] <= row["time_ms"]


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


def test_a_defect_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"'rust' is not allowed; expected one of lost_message"):
        generate.rows_of(1_000, 1, "rust")
