"""Made-up histories are well-formed, the same for the same seed, and as large as asked, however they are sliced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.faults.fault import Fault
from nemesrv.chaos.faults.kinds import recorded
from nemesrv.chaos.faults.link_faults import BlackHole
from nemesrv.chaos.history.docs import EVENTS
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.loading import load, parse
from tests import generate
from tests.generate import writing
from tests.generate.plan import Plan, PlannedFault, random_plan
from tests.generate.run import GeneratedRun

STAMPED = {"time_ms", "seq", "node", "role", "incarnation", "event"}


def numbered_without_gaps(rows: Sequence[dict[str, Any]]) -> bool:
    seqs: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["time_ms"], row["node"], row["seq"])):
        seqs[row["node"], row["incarnation"]].append(row["seq"])
    return all(found == list(range(len(found))) for found in seqs.values())


def test_the_same_seed_tells_the_same_story_and_another_seed_another() -> None:
    assert generate.random_rows(7) == generate.random_rows(7)
    assert generate.random_rows(7) != generate.random_rows(8)


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_those_of_the_catalogue_in_order_of_time(seed: int) -> None:
    catalogue = {event.name: set(event.columns) for event in EVENTS.values()}
    rows = generate.random_rows(seed)
    for row in rows:
        assert row.keys() - STAMPED <= catalogue[row["event"]], row
    assert [row["time_ms"] for row in rows] == sorted(row["time_ms"] for row in rows)
    assert numbered_without_gaps(rows)
    assert len(rows) < 2_500


def test_a_history_in_slices_is_one_history(tmp_path: Path) -> None:
    written = generate.write(tmp_path, events=20_000, seed=3, slice_rows=1_000)  # a border costs some held pulls
    rows = read_rows(tmp_path)
    assert (written.rows, abs(len(rows) - 20_000) < 300) == (len(rows), True)
    assert numbered_without_gaps(rows)
    for event in ("receive", "read"):
        offsets: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        for row in rows:
            if row["event"] == event:
                offsets[row["topic"], row["broker_name"], row["queue_id"]].append(row["offset"])
        assert offsets
        assert all(found == list(range(len(found))) for found in offsets.values())


@pytest.mark.parametrize("made", [lambda: generate.random_rows(10), lambda: generate.rows_of(8_000, 1)])
def test_each_producer_sends_at_the_even_pace_that_the_run_states(made: Callable[[], list[dict[str, Any]]]) -> None:
    rows = made()
    begin = next(row for row in rows if row["event"] == "run_begin")
    period_ms = 1000 / begin["value"]["workload"]["sends_per_s"]
    sent: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["event"] == "send" and row["type"] == "invoke":
            sent[row["node"]].append(row["time_ms"])
    assert len(sent) == begin["value"]["workload"]["producers"]
    gaps = [later - at_ms for times in sent.values() for at_ms, later in pairwise(times)]
    assert gaps == pytest.approx([period_ms] * len(gaps))


def test_a_queue_is_received_from_the_offset_at_which_it_was_taken() -> None:
    rows = generate.rows_of(20_000, 5)
    taken = {(row["node"], row["op_id"]): row for row in rows if row["event"] == "queue_taken"}
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["event"] == "receive":
            first.setdefault((row["node"], row["op_id"]), row)
    assert len(first) > 10
    for holding, row in first.items():
        assert taken[holding]["offset"] == row["offset"]
        assert taken[holding]["time_ms"] <= row["time_ms"]


def test_a_large_history_has_row_groups_of_one_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ORDERED_ROWS", 0)
    generate.write(tmp_path, events=8_000, seed=3, slice_rows=400)
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
    generate.write(tmp_path, events=8_000, seed=3, slice_rows=400)
    assert len(list((tmp_path / "history").glob("*.parquet"))) == 1
    assert sorted(clustered, key=str) == sorted(read_rows(tmp_path), key=str)


def test_the_folder_says_what_is_to_be_judged(tmp_path: Path) -> None:
    generate.write(tmp_path, events=2_000, seed=3)
    scenario = load(tmp_path / "scenario.yaml")
    assert (scenario.name, scenario.seed) == ("generated", 3)
    assert "no_acknowledged_loss" in scenario.checks


@pytest.mark.parametrize("seed", range(40))
def test_a_made_up_run_has_only_faults_that_a_scenario_can_make_and_records_them_so(seed: int) -> None:
    plan = random_plan(seed)
    entries = [entry.model_dump(mode="json") for entry in plan.timeline]
    cluster = {"name_servers": plan.name_servers, "brokers": plan.brokers}
    document = {"checks": ["exercised"], "cluster": cluster, "timeline": entries}
    assert parse(document, file="generated.yaml").timeline == plan.timeline
    begun = [row for row in generate.random_rows(seed) if row["event"] == "fault" and row["phase"] == "start"]
    faults = [entry.what for entry in plan.timeline if isinstance(entry.what, Fault)]
    assert [recorded(row["fault"], row["injection"], row.get("stream"), {}) for row in begun] == faults


def test_a_black_hole_lets_its_registrations_out_at_the_heal_and_the_closes_behind_them() -> None:
    hole = PlannedFault(
        fault_id="black-hole-1",
        kind=BlackHole(),
        source="broker-a",
        target="ns-0",
        start_ms=60_000.0,
        end_ms=160_000.0,
    )
    run = GeneratedRun(Plan(seed=1, starts=0, faults=(hole,), settled_ms=230_000.0))
    rows = [row for row in run.control.rows if row["time_ms"] > 60_000]
    of_ns = [row for row in rows if row["node"] == "ns-0" and row.get("broker_name") == "broker-a"]
    held = [row for row in of_ns if 160_000 <= row["time_ms"] < 160_100]
    given_up = [row for row in rows if row["node"] == "broker-a" and row.get("type") == "info"]
    assert not [row for row in of_ns if row["event"] == "registration" and row["time_ms"] < 160_000]
    assert [row["event"] for row in held] == ["registration", "broker_dropped"] * len(given_up)
    assert len(given_up) == 4
    back = next(row for row in of_ns if row["event"] == "registration" and row["time_ms"] > 160_100)
    assert back["time_ms"] < 160_000 + 30_000


def test_a_queue_to_which_nobody_writes_is_pulled_in_vain() -> None:
    rows = next(GeneratedRun(Plan(seed=1, messages=0, starts=0)).slices()).traffic["pull"].to_pylist()
    waited: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["type"] == "ok":
            assert row["code"] == 19
            assert 15_000 <= row["duration_ms"] <= 20_000
            waited[row["node"], row["broker_name"], row["queue_id"]].append(row["time_ms"])
    assert len({(broker, queue) for _, broker, queue in waited}) == 3 * 4
    longest = [max(later - at for at, later in pairwise(sorted(times))) for times in waited.values()]
    assert max(longest) < 20_010


def test_a_defect_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"'rust'; allowed are stale_route"):
        generate.random_rows(1, "rust")
