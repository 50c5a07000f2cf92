"""A run on three hosts with clocks of their own is judged as the same run on one, once its rows are corrected."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.history import merge
from nemesrv.chaos.history.files import part_files
from nemesrv.chaos.history.host_clocks import CLOCKS, LiveAxis, axis_of
from nemesrv.chaos.history.merge import to_parquet, write_part
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import parquet_path
from nemesrv.chaos.live.segments import SegmentWriter
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.history.many_hosts import Row, ahead, host_of, jumping, rows_of, spread, written

SCENARIO = {
    "name": "three-hosts",
    "cluster": {"name_servers": 3, "brokers": 2},
    "workload": {"producers": 2, "consumers": 2, "sends_per_s": 1, "client_starts": 6, "queues": 2},
    "timeline": [
        {"at_s": 20, "do": "kill", "nodes": ["broker-b"]},
        {"at_s": 60, "do": "restart", "nodes": ["broker-b"]},
    ],
    "settle_s": 70,
    "checks": ["routes_are_true"],
}
APART = {"h1": ahead(700), "h2": ahead(-300)}
Rows = Mapping[tuple[str, int], list[Row]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Path]:
    """As one host recorded it."""
    folder = tmp_path_factory.mktemp("one-host") / "run"
    record_virtual(parse(SCENARIO, file="three-hosts.yaml"), 5, folder)
    return rows_of(folder), folder


def merged(folder: Path, rows: Rows) -> dict[str, Verdict]:
    to_parquet(written(folder, rows))
    return {verdict.name: verdict for verdict in verdicts(folder)}


def said(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.verdict, verdict.violations


def test_a_history_of_one_host_has_no_axis_and_the_same_bytes(recorded: tuple[Rows, Path], tmp_path: Path) -> None:
    rows, folder = recorded
    assert axis_of(folder) is None
    to_parquet(written(tmp_path / "again", rows))
    assert parquet_path(tmp_path / "again").read_bytes() == parquet_path(folder).read_bytes()


def test_hosts_with_clocks_apart_are_judged_as_one(recorded: tuple[Rows, Path], tmp_path: Path) -> None:
    rows, folder = recorded
    of_one = {verdict.name: said(verdict) for verdict in verdicts(folder)}
    found = merged(tmp_path / "run", spread(rows, APART))
    assert {name: said(verdict) for name, verdict in found.items()} == of_one
    true_ms = {(r["node"], r["incarnation"], r["seq"]): r["time_ms"] for r in read_rows(folder)}
    for row in read_rows(tmp_path / "run"):
        key = row["node"], row["incarnation"], row["seq"]
        if row["node"] != CLOCKS:
            assert row["time_ms"] == pytest.approx(true_ms[key], abs=0.0 if host_of(row["node"]) == "h0" else 0.7)


def test_shifted_rows_that_do_not_say_so_stay_as_they_are(recorded: tuple[Rows, Path], tmp_path: Path) -> None:
    """Without a host in the `node` rows a history is one host's: what another clock stamped is wrong, and found so."""
    rows = spread(recorded[0], {"h1": ahead(20_000)}, measured=False)
    for row in rows["harness", 0]:
        if row["event"] == "node":
            del row["value"]["host"]
    assert Validity.INVALID in {verdict.verdict for verdict in merged(tmp_path / "run", rows).values()}


@pytest.mark.parametrize("measured", [False, True], ids=["not measured", "jumped"])
def test_an_unknown_clock_makes_its_rows_unknown(recorded: tuple[Rows, Path], tmp_path: Path, measured: bool) -> None:
    rows, folder = recorded
    clocks = {"h1": jumping(700, at_ms=40_000) if measured else ahead(700), "h2": ahead(-300)}
    found = merged(tmp_path / "run", spread(rows, clocks, measured=measured))
    of_one = {verdict.name: verdict for verdict in verdicts(folder)}
    assert {verdict.verdict for verdict in found.values()} <= {Validity.UNKNOWN, Validity.VALID}
    assert found["routes_are_true"].verdict is Validity.UNKNOWN
    assert found["no_acknowledged_loss"].verdict is Validity.UNKNOWN
    assert of_one["no_acknowledged_loss"].verdict is Validity.VALID


def test_rows_of_a_host_that_is_lost_make_nothing_invalid(recorded: tuple[Rows, Path], tmp_path: Path) -> None:
    found = merged(tmp_path / "run", spread(recorded[0], APART, lost=["h1"]))
    why = "the rows of broker-b, consumer-1, ns-1 and producer-1 on h1 are missing: the host is gone"
    for verdict in found.values():
        assert verdict.verdict is not Validity.INVALID, verdict
        assert not verdict.examined or why in verdict.why or why in verdict.undecided.values()


def test_all_ways_to_merge_put_rows_at_the_same_time(
    recorded: tuple[Rows, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spread(recorded[0], APART)
    to_parquet(written(tmp_path / "run", rows))
    plain = pq.read_table(parquet_path(tmp_path / "run"))
    large = written(tmp_path / "large", rows)
    with monkeypatch.context() as patched:
        patched.setattr(merge, "SLICE_ROWS", 3_000)
        merge.merge_in_slices(large, axis=axis_of(large))
    assert len(list(parquet_path(large).parent.glob("part-*.parquet"))) > 1
    assert places(large) == places(tmp_path / "run")
    kept = written(tmp_path / "kept", rows)
    early = [row for of in rows.values() for row in of if row["seq"] < 20 and row["node"] in ("harness", CLOCKS)]
    write_part(kept, 0, early)  # the rest is raw still
    assert len(part_files(kept)) == 1
    to_parquet(kept)
    assert pq.read_table(parquet_path(kept)).equals(plain)


def places(folder: Path) -> list[tuple[Any, ...]]:
    return [(row["time_ms"], row["node"], row["incarnation"], row["seq"]) for row in read_rows(folder)]


def test_while_it_grows_rows_come_to_the_axis_as_they_are_read(recorded: tuple[Rows, Path], tmp_path: Path) -> None:
    rows, folder = recorded
    run = written(tmp_path / "run", spread(rows, APART))
    writer = SegmentWriter(run)
    writer.emit(writer.read(float("inf"), float("inf")))
    to_parquet(run)
    assert len(read_rows(run)) == sum(map(len, spread(rows, APART).values()))
    true_ms = {(r["node"], r["incarnation"], r["seq"]): r["time_ms"] for r in read_rows(folder)}
    late = 0
    for row in read_rows(run):
        key = row["node"], row["incarnation"], row["seq"]
        late = max(late, abs(row["time_ms"] - true_ms.get(key, row["time_ms"])))
    assert 0 < late < 1.0


def test_while_it_grows_what_is_told_when_it_is_over_keeps_its_moment() -> None:
    axis = LiveAxis()
    axis.heed({"event": "node", "source": "ns-2", "value": {"host": "c"}})
    for at_ms in (0.0, 10_000.0):
        value = {"host_ms": at_ms + 700, "offset_ms": 700.0, "bound_ms": 0.5}
        axis.heed({"event": "host_clock", "source": "c", "time_ms": at_ms, "value": value})
    shown_ms = (8_700.0, 6_200.0, 8_800.0)
    rows: list[dict[str, Any]] = [{"node": "ns-2", "incarnation": 0, "time_ms": each} for each in shown_ms]
    for row in rows:
        axis.correct(row)
    assert [row["time_ms"] for row in rows] == pytest.approx([8_000, 5_500, 8_100], abs=1)


def test_a_planted_deviation_is_found_beside_clocks_that_differ(recorded: tuple[Rows, Path], tmp_path: Path) -> None:
    """ns-2 keeps the dead broker 200 ms too long: 50 are allowed at once, and 2 that the clocks may be apart."""
    rows = {process: [dict(row) for row in of] for process, of in recorded[0].items()}
    killed_ms = next(row["time_ms"] for row in rows["harness", 0] if row["event"] == "fault")
    for row in rows["ns-2", 0]:
        if row["event"] in ("route", "broker_dropped") and 0 <= row["time_ms"] - killed_ms < 100:
            row["time_ms"] += 200
    rows["ns-2", 0].sort(key=lambda row: row["time_ms"])
    found = merged(tmp_path / "run", spread(rows, APART, bound_ms=1.0))
    assert found["routes_are_true"].verdict is Validity.INVALID
    assert found["routes_are_true"].examples[0].who == "ns-2"
    assert dataclasses.asdict(found["routes_are_true"].examples[0])["measured_ms"] == pytest.approx(200, abs=5)
