"""What a report shows besides routes and sends: lag, owners of queues, logs."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nemesrv.chaos.history.rows import write_parquet
from nemesrv.chaos.oracle.time_outs import HEARTBEAT
from nemesrv.chaos.reports.html import RunToDraw, html_report
from nemesrv.chaos.reports.html.run_to_draw import LINES_MAX, TEXT_MAX
from nemesrv.chaos.verdict import Example, Verdict
from tests.chaos.builder import HistoryBuilder, cluster, invalid
from tests.chaos.reports.recorded import KILL_S, RUN, STEADY_S, VERDICTS, recorded

ORIGIN_MS = 1_700_000_000_000


def told_of(folder: Path, story: HistoryBuilder, *verdicts: Verdict) -> RunToDraw:
    write_parquet(story.rows, folder)
    return RunToDraw(RUN, verdicts, folder)


def story() -> HistoryBuilder:
    """Two messages, of which the second is received 5 s after it was acknowledged; a queue goes from one to another."""
    about = {"origin_wall_ms": ORIGIN_MS, "clock": "virtual", "defect": "broker-stores-twice"}
    told = cluster(name_servers=1, clients=("producer-0", "consumer-0", "consumer-1"), **about)
    told.at(2).event("harness", "phase", phase="steady")
    queue = {"topic": "orders", "broker_name": "broker-a", "queue_id": 3}
    told.at(3).event("consumer-0", "queue_taken", op_id="take-0", offset=0, **queue)
    for number, (ends_s, received_s) in enumerate(((4.0, 4.5), (10.0, 15.0))):
        key = {"msg_key": f"k-{number}", "topic": "orders"}
        told.at(ends_s).event("producer-0", "send", type="ok", duration_ms=1000.0, op_id=f"op-{number}", **key)
        told.at(received_s).event("consumer-0", "receive", op_id="take-0", **key)
        told.at(received_s + 1).event("consumer-1", "receive", op_id="take-1", **key)
    told.at(20).event("consumer-0", "queue_dropped", op_id="take-0", **queue)
    told.at(21).event("consumer-1", "queue_taken", op_id="take-2", offset=2, **queue)
    told.at(40).fault("f2", "kill", "sigkill", "consumer-1").event(
        "harness", "gone", fault_id="f2", source="consumer-1"
    )
    return told.end(60)


def test_end_to_end_is_from_the_send_to_the_first_receipt_and_the_lag_what_is_not_received_yet(tmp_path: Path) -> None:
    flow = told_of(tmp_path, story()).flow
    assert flow.took_ms.tolist() == [1500, 6000]
    assert flow.lag(np.array([0.0, 2100, 2600, 8000, 12_999, 13_000])).tolist() == [0, 1, 0, 1, 1, 0]


def test_a_queue_lane_says_who_held_it_until_it_was_given_up_or_its_holder_died(tmp_path: Path) -> None:
    (lane,) = told_of(tmp_path, story()).lanes["queues"]
    assert (lane.key, lane.label) == ("queue/orders/broker-a/3", "queue 3")
    assert [(bar.kind, bar.start_ms, bar.end_ms) for bar in lane.bars] == [
        ("owner0", 1000, 18_000),
        ("owner1", 19_000, 38_000),
    ]


def test_warnings_of_logs_stand_in_the_time_line_bounded_and_in_the_runs_time(tmp_path: Path) -> None:
    lines = [f"2023-11-14 22:13:30,{n:03d} WARNING nemesrv.broker-a: once {n} {'x' * 300}\n" for n in range(500)]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "broker-a.log").write_text(
        "2023-11-14 22:13:25,000 INFO nemesrv.broker-a: nothing\nno line of a log\n" + "".join(lines), encoding="utf-8"
    )
    told = told_of(tmp_path, story())
    assert len(told.logged) == LINES_MAX
    last = told.logged[-1]
    assert (last["node"], last["type"], last["time_ms"]) == ("broker-a", "WARNING", 8499)
    assert all(len(row["value"]) <= TEXT_MAX for row in told.logged)


@pytest.mark.parametrize(("check", "is_said"), [("routes_are_true", True), ("no_acknowledged_loss", False)])
def test_what_was_wrong_before_any_fault_is_said(check: str, is_said: bool, tmp_path: Path) -> None:
    early = Example(who="broker-a", what="producer-0", from_ms=1000 * (STEADY_S + KILL_S - 1))
    verdict = invalid(check, examined=1, violations=0, examples=(early,))
    assert ("wrong before any fault" in html_report(RUN, [verdict], recorded(tmp_path))) == is_said


def test_a_violation_of_heartbeats_shows_the_rounds_around_it_and_the_brokers_that_they_reached(tmp_path: Path) -> None:
    told, heartbeat = story(), {"client": "127.0.0.1@consumer-0#1"}
    for at_s in (5, 10, 15, 20, 40, 45, 50, 55):
        told.at(at_s).event("consumer-0", "scheduled_task", f=HEARTBEAT, duration_ms=2.0)
        for broker in ("broker-a", "broker-b") if at_s != 40 else ("broker-b",):
            told.at(at_s).event(broker, "client_heartbeat", op_id="1", value=heartbeat)
    late = Example(who="consumer-0", what=HEARTBEAT, from_ms=25_000.0, to_ms=40_000.0, more={"kind": "each H"})
    verdict = invalid("timers_kept", examined=1, violations=0, examples=(late,))
    (place,) = told_of(tmp_path, told, verdict).of_examples["timers_kept"]
    line = "{} s consumer-0 ended sendHeartbeatToAllBroker (2.0 ms); its heartbeats reached {}"
    reached = {"38.000": "broker-b"}
    assert place.recorded == tuple(
        line.format(at, reached.get(at, "broker-a and broker-b"))
        for at in ("13.000", "18.000", "38.000", "43.000", "48.000")
    )
    assert place.recorded[2] in html_report(RUN, [verdict], tmp_path)
    answer = Example(who="ns-0", what="prober", topic="orders", from_ms=25_000.0, more={"came": "5", "due": "4 queues"})
    of_answer = replace(verdict, name="answers_are_true", examples=(answer,))
    assert "\ndue:  4 queues</pre>" in html_report(RUN, [of_answer], tmp_path)


def test_an_example_of_a_name_server_shows_what_it_wrote_around_that_moment(tmp_path: Path) -> None:
    at = "2023-11-14 22:13:"
    lines = [f"{at}{s:02d},500 INFO nemesrv.ns-0: <line> of {s} s\n" for s in (19, 21, 22, 23, 23, 24, 29)]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ns-0.log").write_text("".join(lines), encoding="utf-8")
    one = Example(who="ns-0", what="broker-a", from_ms=3_000.0, more={"kind": "must not be dropped"})
    other = Example(who="consumer-0", what="broker-a", from_ms=3_000.0)
    verdict = invalid("no_false_eviction", examined=1, violations=0, examples=(one, other))
    told = told_of(tmp_path, story(), verdict)
    of_one, of_other = told.of_examples["no_false_eviction"]
    assert [line.split(" <")[0] for line in of_one.log] == [
        f"{at} s INFO" for at in ("-0.500", "0.500", "1.500", "2.500")
    ]
    assert of_other.log == ()
    assert of_one.log[2].endswith(" of 23 s (2 times)")
    lasting = replace(verdict, examples=(replace(one, to_ms=9_500.0),))
    (both,) = told_of(tmp_path, story(), lasting).of_examples["no_false_eviction"]
    assert both.log[-1].startswith("7.500 s"), "what it wrote around the end"
    (tmp_path / "logs" / "producer-0.log").write_text("", encoding="utf-8")
    lost = replace(verdict, name="no_acknowledged_loss", examples=(replace(one, who="producer-0", what="ns-0"),))
    lost = replace(lost, examples=(replace(lost.examples[0], more={"kind": "lost"}),))
    (of_lost,) = told_of(tmp_path, story(), lost).of_examples["no_acknowledged_loss"]
    assert of_lost.logged_by == "ns-0", "the log of the broker that lost the message, not the producer's"
    assert "0.500 s INFO &lt;line&gt; of 22 s" in html_report(RUN, [verdict], tmp_path)
    page, twice = (
        html_report(RUN, [replace(verdict, examples=examples)], tmp_path) for examples in ((one, other), (one, one))
    )
    assert page.count("its log around then") == twice.count("its log around then") == 1


def test_without_the_wall_clocks_origin_no_line_of_a_log_has_a_time(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ns-0.log").write_text("2023-11-14 22:13:30,000 ERROR nemesrv.ns-0: lost\n", encoding="utf-8")
    assert told_of(tmp_path, cluster().end(60)).logged == []


def test_the_page_says_the_planted_defect_the_clock_and_each_undecided_checks_reason(tmp_path: Path) -> None:
    write_parquet(story().rows, tmp_path)
    reasons = {"routes_converge": "one", "order_kept": "two", "duplicates": "one"}
    page = html_report(RUN, [Verdict.nothing_examined(why, name=name) for name, why in reasons.items()], tmp_path)
    assert "With the planted defect broker-stores-twice." in page
    assert "The run was on the virtual clock, where there is no wall-clock time" in page
    assert "routes_converge and 2 other checks are not decided: one." in page
    for why in ("one", "two"):
        assert f'<tr class="example"><td colspan="6">{why}</td></tr>' in page


def test_on_the_real_clock_the_page_says_when_the_timeline_started(tmp_path: Path) -> None:
    real = cluster(origin_wall_ms=ORIGIN_MS, clock="real").at(10).event("harness", "phase", phase="steady").end(60)
    write_parquet(real.rows, tmp_path)
    assert "0 s was 2023-11-14 22:13:30 UTC." in html_report(RUN, [], tmp_path)


def test_a_run_on_several_hosts_says_who_is_where_and_their_clocks(tmp_path: Path) -> None:
    told = HistoryBuilder().at(0).event("harness", "run_begin", value={"clock": "real"})
    for at, host in enumerate(("a.example", "b.example")):
        about = {"kind": "name_server", "config": {}, "host": host}
        told.event("harness", "node", source=f"ns-{at}", address=f"127.0.0.1:{9876 + at}", value=about)
        told.event("harness", "host_clock", source=host, value={"offset_ms": 0.0, "host_ms": 0.0, "bound_ms": 2.0})
    write_parquet(told.end(60).rows, tmp_path)
    page = html_report(RUN, [], tmp_path)
    for at, host in enumerate(("a.example", "b.example")):
        assert f"<b>host {host}</b> ns-{at}" in page
    assert re.search(r"<b>clocks of two hosts</b> apart by \d", page)


def test_invalid_checks_come_first_and_then_those_that_are_unknown(tmp_path: Path) -> None:
    rows = html_report(RUN, VERDICTS, recorded(tmp_path)).split("<tbody>", 1)[1]
    order = [rows.index(f">{v.name}</a>") for v in (VERDICTS[0], VERDICTS[2], VERDICTS[1])]
    assert order == sorted(order)


def test_a_broker_that_a_name_server_has_in_some_topics_for_long_is_said_with_the_reason(tmp_path: Path) -> None:
    told = cluster(name_servers=1, brokers=("broker-a",))
    told.at(1).event("harness", "phase", phase="steady")
    told.at(10).fault("cut-1", "cut", "toxiproxy.disabled", "broker-a", "ns-0")
    told.at(21).topic("broker-a", "new").at(81).route("ns-0", "new", "broker-a")
    told.at(90).fault("cut-1", "cut", "toxiproxy.disabled", "broker-a", "ns-0", end=True)
    write_parquet(told.end(100).rows, tmp_path)
    said = "ns-0 listed broker-a in 1 of 2 topics from 20.0 s to 80.0 s (60.0 s): broker-a had made a topic of which"
    stale = Example(who="ns-0", what="broker-a", from_ms=20_000.0)
    about_it = invalid("routes_are_true", examined=1, examples=(stale,))
    page = html_report(RUN, [about_it], tmp_path)
    assert f"<dt>In some topics</dt><dd>{said} ns-0 had not heard.</dd>" in page
