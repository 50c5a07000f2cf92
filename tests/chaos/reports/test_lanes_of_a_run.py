"""From a recorded history to lanes, series, places and words: no Bokeh, no Spark, no browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.history.rows import to_table, write_parquet
from nemesrv.chaos.history.schema import parquet_path
from nemesrv.chaos.oracle.time_outs import HEARTBEAT, POLL
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.reports import columns
from nemesrv.chaos.reports.html import plots
from nemesrv.chaos.reports.html.canvas import Band, Canvas
from nemesrv.chaos.reports.html.found import drawn_on, place_of_example, place_of_verdict, wrongs
from nemesrv.chaos.reports.html.lanes import _label
from nemesrv.chaos.reports.html.node_lanes import client_lanes, pair_lanes
from nemesrv.chaos.reports.html.run_in_words import Names, fault_title
from nemesrv.chaos.reports.html.run_to_draw import ROWS_MAX, fewer
from nemesrv.chaos.reports.html.stretches import Lane, LaneStretch
from nemesrv.chaos.verdict import Finding, Verdict
from tests.chaos.builder import address_of, cluster
from tests.chaos.reports.recorded import END_S, KILL_S, STALE_UNTIL_S, STEADY_S, VERDICTS, builder, recorded


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return recorded(tmp_path)


def world_of(found: columns.Recorded) -> World:
    return World.of_rows(found.world_rows, last_ms=found.last_ms)


def lanes_of(run: Path, *verdicts: Verdict) -> dict[str, Lane]:
    found = columns.read(run)
    world = world_of(found)
    told = [v.since_timeline(found.timeline_ms) for v in verdicts]
    lanes = [*pair_lanes(found, world, told), *client_lanes(found, world, 0.0)]
    return {lane.key: lane for lane in (*lanes, *drawn_on(lanes, wrongs(told, world)))}


def found_by(check: str, who: str, what: str, from_s: float, to_s: float | None, **said: Any) -> Verdict:
    """An INVALID verdict with one finding."""
    finding = Finding(
        subject=who,
        object=what,
        kind="must not hold",
        from_ms=from_s * 1000,
        to_ms=(to_s or from_s) * 1000,
        wrong_from_ms=from_s * 1000,
        wrong_to_ms=None if to_s is None else to_s * 1000,
        over_ms=0 if to_s is None else (to_s - from_s) * 1000,
        formula="RTT + event thread",
        bound_ms=0.0,
        **{"wrong": 1, **said},
    )
    return Verdict(name=check, verdict=finding.validity, examined=1, violations=finding.wrong, findings=(finding,))


def brief(stretches: object) -> list[tuple[str, float, float]]:
    assert isinstance(stretches, list)
    return [
        (s.kind, round(s.start_ms / 1000, 1), round(s.end_ms / 1000, 1))
        for s in stretches
        if isinstance(s, LaneStretch)
    ]


def test_a_lane_says_held_and_missing_and_where_a_stale_route_was_over(run: Path) -> None:
    wrong = found_by("routes_are_true", "ns-0", "broker-a", STEADY_S + KILL_S, STEADY_S + STALE_UNTIL_S)
    lanes = lanes_of(run, wrong)
    stale, true = lanes["ns-0/broker-a"], lanes["ns-1/broker-a"]
    assert brief(stale.bars) == [("missing", -3, -2), ("held", -2, STALE_UNTIL_S), ("missing", STALE_UNTIL_S, END_S)]
    assert ("over", KILL_S, STALE_UNTIL_S) in brief(stale.windows)
    assert brief(true.bars) == [("missing", -3, -2), ("held", -2, KILL_S), ("missing", KILL_S, END_S)]
    assert not any(w.kind == "over" for w in true.windows)
    assert ("must_not", KILL_S, END_S) in brief(true.windows)
    assert "window 0.0 s" in next(w.text for w in stale.windows if w.kind == "over")


def test_what_a_check_tolerated_is_late_and_not_over_and_nothing_is_judged_again(run: Path) -> None:
    assert not any(w.kind in ("over", "late") for lane in lanes_of(run).values() for w in lane.windows)
    tolerated = found_by("routes_are_true", "ns-1", "broker-a", 40, 41, wrong=0, tolerance_ms=1_200.0)
    windows = lanes_of(run, tolerated)["ns-1/broker-a"].windows
    (late,) = [w for w in windows if w.kind in ("over", "late")]
    assert (late.kind, late.start_ms, late.end_ms) == ("late", 37_000, 38_000)
    assert "tolerance 1200 ms" in late.text


def test_what_no_lane_of_a_node_shows_has_one_of_its_checks_own(run: Path) -> None:
    lanes = lanes_of(run, found_by("no_acknowledged_loss", "producer-0", "broker-a", 43, None))
    assert brief(lanes["no_acknowledged_loss/producer-0"].windows) == [("over", 40, 40)]


@pytest.mark.parametrize(
    ("task", "named", "lanes"),
    [
        (HEARTBEAT, "broker-a, broker-b", ["consumer-0/broker-a", "consumer-0/broker-b"]),
        (HEARTBEAT, "", ["timers_kept/consumer-0"]),
        (POLL, "", ["consumer-0"]),
    ],
)
def test_a_timer_is_over_on_the_lanes_that_it_concerns(task: str, named: str, lanes: list[str], run: Path) -> None:
    drawn = lanes_of(run, found_by("timers_kept", "consumer-0", task, 33, 63, more={"because": named}))
    assert [key for key, lane in drawn.items() if ("over", 30, 60) in brief(lane.windows)] == lanes


def test_a_label_that_is_too_long_keeps_the_node_whole() -> None:
    lane = Lane(key="x", label="broker-a", group="no_acknowledged_loss")
    assert _label(lane) == "no_acknowledge… · broker-a"
    assert _label(replace(lane, group="order_kept")) == "order_kept · broker-a"
    assert _label(replace(lane, label="consumer-" + "0" * 30)) == "no_acknowledged_loss · co…"


def test_name_servers_that_differ_are_over_on_a_lane_of_their_own(run: Path) -> None:
    lane = lanes_of(run, found_by("routes_converge", "ns-1", "ns-0", 33, 63))["ns-1"]
    assert brief(lane.windows) == [("must", 30, 60), ("over", 30, 60)]


def test_a_client_lane_says_which_name_server_and_which_brokers_and_what_failed(run: Path) -> None:
    lanes = lanes_of(run)
    assert brief(lanes["consumer-0"].bars) == [("ns0", -1, 50), ("ns1", 50, END_S)]
    used = brief(lanes["producer-0/broker-a"].bars)
    assert used[0][:2] == ("used", 4.0)
    assert used[-1][2] < 26
    failed = lanes["producer-0/broker-a"].marks
    assert [mark.kind for mark in failed] == ["failed"] * 2
    assert not lanes["producer-0/broker-b"].marks


def test_series_count_every_send_and_availability_is_the_share_that_ended_ok(run: Path) -> None:
    traffic = columns.read(run).traffic
    sliced = plots.sends_in_slices(traffic, -STEADY_S * 1000, END_S * 1000)
    assert tuple(sliced[f"n_{how}"].sum() for how in ("ok", "unknown", "failed")) == (78, 2, 0)
    ended = sliced["n_ok"] + sliced["n_unknown"]
    assert np.nanmin(sliced["available"]) < 100
    assert np.array_equal(np.isnan(sliced["available"]), ended == 0)
    assert np.nansum(sliced["available"] * ended) == pytest.approx(7800)
    assert len(plots.slowest(traffic, traffic.where("send", "fail", "info"))[0]) == 2


def test_of_very_many_failures_each_slice_keeps_its_slowest_and_says_how_many_it_stands_for() -> None:
    number = 50_000
    rng = np.random.default_rng(1)
    durations = rng.exponential(5, number).astype("f4")
    traffic = columns.Traffic(
        time_ms=np.sort(rng.uniform(0, 1e6, number)),
        event=np.zeros(number, "i1"),
        outcome=np.full(number, 2, "i1"),
        node=np.zeros(number, "i4"),
        broker=np.zeros(number, "i4"),
        duration_ms=durations,
        answered=np.zeros(number, "?"),
        rows=pa.table({}),
        nodes=("producer-0",),
        brokers=("broker-a",),
    )
    index, others = plots.slowest(traffic, traffic.where("send", "fail"))
    assert len(index) <= plots.POINTS_MAX
    assert len(index) + others.sum() == number
    assert durations.max() in durations[index]


def test_the_history_may_be_in_several_files_and_what_is_hidden_is_none_of_it(run: Path) -> None:
    whole = columns.read(run)
    table = pq.read_table(parquet_path(run))
    middle = len(table) // 2
    pq.write_table(table.slice(0, middle), parquet_path(run))
    pq.write_table(table.slice(middle), parquet_path(run).with_name("part-00001.parquet"))
    (run / "history" / "_raw").mkdir()
    pq.write_table(table, run / "history" / "_raw" / "part-00000.parquet")
    pq.write_table(table, run / "history" / ".part-00002.parquet")
    again = columns.read(run)
    assert again.notable == whole.notable
    rows = again.traffic.rows.filter(pa.array(again.traffic.where("send", "info"))).to_pylist()
    assert sorted(row["msg_key"] for row in rows) == ["k-18", "k-20"]


def test_a_run_without_a_history_is_read_as_nothing(tmp_path: Path) -> None:
    assert len(columns.read(tmp_path).table) == 0


def test_of_too_many_notable_rows_the_first_and_last_of_each_moment_stay(tmp_path: Path) -> None:
    rows = [
        {"time_ms": float(i), "seq": i, "node": "producer-0", "role": "producer", "incarnation": 0, "event": "channel"}
        for i in range(3 * columns.NOTABLE_MAX)
    ]
    parquet_path(tmp_path).parent.mkdir()
    pq.write_table(pa.concat_tables([to_table(rows[::2]), to_table(rows[1::2])]), parquet_path(tmp_path))
    found = columns.read(tmp_path)
    assert len(found.notable) <= columns.NOTABLE_MAX
    assert found.left_out["channel"] + len(found.notable) == len(rows)
    assert (found.notable[0]["time_ms"], found.notable[-1]["time_ms"]) == (0.0, float(len(rows) - 1))


def test_an_example_leads_to_its_stretch_and_its_lane(run: Path) -> None:
    world = world_of(columns.read(run))
    keys = {"ns-0/broker-a": "routes", "ns-0/broker-b": "routes"}
    told = VERDICTS[0].since_timeline(STEADY_S * 1000)
    place = place_of_example(told, told.examples[0], world, keys)
    assert place.link() == "#at=20.000,60.000&in=routes&lane=ns-0/broker-a"
    assert place_of_verdict(told, world, keys).link() == place.link()


def test_a_verdict_without_examples_leads_to_the_faults(run: Path) -> None:
    world = world_of(columns.read(run))
    place = place_of_verdict(VERDICTS[1], world, {})
    assert (place.section, place.from_ms, place.to_ms) == ("sends", KILL_S * 1000, END_S * 1000)


@pytest.mark.parametrize(
    ("fault", "stream", "title"),
    [
        ("black_hole", "both", "black hole broker-a ↔ ns-0"),
        ("black_hole", "upstream", "black hole broker-a → ns-0"),
        ("black_hole", "downstream", "black hole ns-0 → broker-a"),
        ("syn_drop", "both", "SYN drop broker-a → ns-0"),
    ],
)
def test_a_fault_s_title_says_in_which_direction_it_is(fault: str, stream: str, title: str) -> None:
    _, world = cluster().fault("f-1", fault, FAULTS[fault].injection, "broker-a", "ns-0", stream=stream).facts()
    assert fault_title(world.faults) == title


def test_addresses_become_names_only_where_they_are_whole() -> None:
    names = Names(World.of_rows(builder().rows))
    assert names("127.0.0.1:9876 answered, 127.0.0.1:98765 did not") == "ns-0 answered, 127.0.0.1:98765 did not"


def test_of_too_many_lanes_those_with_something_over_or_an_example_are_shown_first() -> None:
    lanes = [
        Lane(key=f"ns-{group}/broker-{n}", label=f"broker-{n}", group=f"ns-{group}")
        for group in range(40)
        for n in range(10)
    ]
    lanes[-1].windows = [LaneStretch(start_ms=1, end_ms=2, kind="over", text="over")]
    shown = {lane.key for lane in fewer(lanes, {"ns-20/broker-3"})}
    assert len(shown) <= ROWS_MAX
    assert {"ns-39/broker-9", "ns-20/broker-3", "ns-0/broker-0"} <= shown


@pytest.mark.parametrize(("left_s", "must"), [(None, True), (30, False)])
def test_a_client_lane_says_how_long_it_may_stay(tmp_path: Path, left_s: float | None, must: bool) -> None:
    told = cluster(name_servers=2, brokers=("broker-a",), clients=("producer-0",))
    chosen = {"old": None, "index": 0, "reason": "first"}
    told.at(1).event("producer-0", "name_server_chosen", name_server=address_of("ns-0"), value=chosen)
    told.at(20).fault("f1", "kill", "sigkill", "ns-0")
    if left_s is not None:
        told.at(left_s).event("producer-0", "name_server_chosen", name_server=address_of("ns-1"), value=chosen)
    write_parquet(told.end(200).rows, tmp_path)
    lane = lanes_of(tmp_path)["producer-0"]
    assert any(w.kind == "may" and w.start_ms == 20_000 for w in lane.windows)
    assert any(w.kind == "must_not" for w in lane.windows) is must


def test_a_faults_name_that_has_no_place_is_counted_at_the_name_before_it() -> None:
    at_s = {"ns-0 killed": 20, "ns-1 killed": 20, "ns-2 killed": 60}
    bands = [Band(fault_id=name, title="", brief=name, start_ms=at * 1000, end_ms=90_000) for name, at in at_s.items()]
    plot = Mock()
    Canvas(start_ms=0, end_ms=90_000, bands=bands).label_bands(plot, 1.0)
    assert plot.text.call_args.kwargs["source"].data["text"] == ["ns-0 killed, and 1 more", "ns-2 killed"]
