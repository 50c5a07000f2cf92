"""A history is whole where each process's rows are numbered without a gap; what a gap could decide is UNKNOWN."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history.rows import read_rows, to_table, write_parquet
from nemesrv.chaos.history.wholeness import missing_of_table
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import HistoryBuilder, cluster


def missing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return missing_of_table(to_table(rows))


def told(rows: list[dict[str, Any]]) -> list[str]:
    return [row["value"]["says"] for row in missing(rows)]


def story() -> HistoryBuilder:
    made = cluster(brokers=("broker-a",))
    for second in range(1, 200):
        made.at(second).lag(1.0, "ns-0", "ns-1", "broker-a", until_s=second + 1)
    made.at(200).event("harness", "run_end")
    return made


def without(made: HistoryBuilder, node: str, *seqs: int) -> list[dict[str, Any]]:
    return [row for row in made.rows if row["node"] != node or row["seq"] not in seqs]


def test_a_history_without_a_gap_is_whole() -> None:
    assert told(story().rows) == []


def test_a_gap_in_the_middle_is_told_with_its_node_its_span_and_its_count() -> None:
    made = story()
    at_s = {row["seq"]: row["time_ms"] / 1000 for row in made.rows if row["node"] == "ns-0"}
    [says] = told(without(made, "ns-0", 30, 31, 32))
    assert says == f"3 rows of ns-0 are missing between {at_s[29]:.1f} s and {at_s[33]:.1f} s"


def test_the_first_rows_are_missed_too() -> None:
    [says] = told(without(story(), "broker-a", 0))
    assert says.startswith("1 row of broker-a is missing between the run's beginning and ")


def test_rows_of_the_harness_are_missed_by_every_node_because_a_fault_may_be_among_them() -> None:
    found = missing(without(story(), "harness", 2))
    assert {row["source"] for row in found} == {"ns-0", "ns-1", "broker-a"}


def test_the_last_rows_of_a_process_that_nobody_ended_are_missed() -> None:
    made = story()
    cut = [row for row in made.rows if row["node"] != "ns-1" or row["time_ms"] < 50_000]
    assert told(cut) == ["the last rows of ns-1 are missing, from 49.0 s on"]


def test_a_process_that_said_that_it_stops_misses_none() -> None:
    made = story()
    cut = [row for row in made.rows if row["node"] != "ns-1" or row["time_ms"] < 50_000]
    last = max((row for row in cut if row["node"] == "ns-1"), key=lambda row: row["seq"])
    stopped = {**last, "event": "stopped", "seq": last["seq"] + 1}
    assert told([*cut, stopped]) == []
    assert told([*cut, {**stopped, "incarnation": 1, "seq": 0}, {**last, "incarnation": 2, "seq": 0}]) != []


def test_a_process_that_was_killed_has_no_later_rows_and_misses_none() -> None:
    made = story()
    made.at(50).fault("f1", "kill", "sigkill", "ns-1")
    assert told([row for row in made.rows if row["node"] != "ns-1" or row["time_ms"] < 50_000]) == []


def test_an_import_has_no_such_numbers() -> None:
    made = cluster(imported=True)
    assert told(without(made, "ns-0", 0)) == []


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_virtual(find("smoke"), 1, tmp_path_factory.mktemp("whole") / "run").path


def test_half_of_a_brokers_rows_are_missing_and_no_check_is_valid_for_them(recorded: Path, tmp_path: Path) -> None:
    rows = read_rows(recorded)
    of_broker = [row for row in rows if row["node"] == "broker-a"]
    gone = {row["seq"] for row in of_broker[100 : 100 + len(of_broker) // 2]}
    write_parquet([row for row in rows if row["node"] != "broker-a" or row["seq"] not in gone], tmp_path)
    found = verdicts(tmp_path)
    assert {verdict.verdict for verdict in found} <= {Validity.UNKNOWN, Validity.VALID}
    assert sum(f"{len(gone):,} rows of broker-a are missing" in verdict.why for verdict in found) > 10


def test_a_recorded_run_misses_none(recorded: Path) -> None:
    assert told(read_rows(recorded)) == []


@pytest.mark.spark
def test_spark_misses_the_same_rows(recorded: Path, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run
    from nemesrv.chaos.checks.spark.session import session

    gone = set(range(100, 300))
    rows = [row for row in read_rows(recorded) if row["node"] != "broker-a" or row["seq"] not in gone]
    write_parquet(rows, tmp_path)
    [plain] = [verdict for verdict in verdicts(tmp_path) if verdict.name == "messages_delivered"]
    [by_spark] = check_run(tmp_path, ["messages_delivered"], session())
    assert (by_spark.verdict, by_spark.why) == (plain.verdict, plain.why)
    assert by_spark.verdict is Validity.UNKNOWN
