"""What each client went through, and how a variant of it is said."""

from __future__ import annotations

from typing import Any

from nemesrv.chaos.history.transitions import Transition
from nemesrv.chaos.proof.statistics.per_client import ClientFigures, beside, clients_of, typical


def row(at_s: float, event: str, node: str = "producer-0", **fields: Any) -> dict[str, Any]:
    return {"time_ms": 1000 * at_s, "event": event, "node": node, **fields}


HISTORY = [
    row(9, "send", type="ok"),
    *(row(at, "send", type="ok") for at in range(10, 21)),
    row(20, "fault", "harness", phase="start"),
    row(23, "send", type="info"),
    row(26, "send", type="fail"),
    row(29, "send", type="invoke"),
    row(30, "send", type="ok"),
    row(31, "receive", "consumer-0"),
    row(33, "receive", "consumer-0"),
    row(40, "send", type="info"),
]


def test_sends_gaps_and_the_last_failure_are_counted_within_the_stretch() -> None:
    changed = [Transition(1000.0, "producer-0", "took", "orders", "broker-b")]
    found = clients_of(HISTORY, 10_000, 35_000, changed, {"producer-0": "client-7"})
    assert found["client-7"].to_json() == {
        "sends": 14, "failed": 2, "longest_gap_ms": 10_000, "recovered_ms": 6_000, "transitions": 0,
    }  # fmt: skip
    assert clients_of(HISTORY, 10_000, 35_000, changed, {})["producer-0"].transitions == 1
    consumer = found["consumer-0"]
    assert (consumer.sends, consumer.longest_gap_ms, consumer.recovered_ms) == (0, 2_000, None)


def test_a_gap_lasts_until_the_end_where_nothing_succeeds_any_more() -> None:
    found = clients_of([row(1, "send", type="ok"), row(2, "send", type="ok")], 0, 60_000, (), {})
    assert found["producer-0"].longest_gap_ms == 58_000
    assert found["producer-0"].recovered_ms == 0


def test_a_sentence_says_what_differs_and_nothing_else() -> None:
    was = {"producer-0": ClientFigures(sends=100, failed=40, longest_gap_ms=3_000, recovered_ms=120_000)}
    now = {"producer-0": ClientFigures(sends=100, failed=1, longest_gap_ms=3_200, recovered_ms=3_000)}
    lost, came = Transition(5.0, "ns-0", "lost", "broker-a", "silent"), Transition(9.0, "ns-0", "came", "broker-a")
    same = [lost, came], [lost, came]
    said = beside("x=1", was, now, same)["sentence"]
    assert said == (
        "With x=1: fewer failed sends, 1 in place of 40 (40.0 % and 1.0 % of all, then and now); "
        "the last failed send after the fault earlier, 3.0 s in place of 120.0 s."
    )
    assert beside("x=1", was, was, same)["sentence"] == "With x=1: nothing would have been different."
    other = [lost, came], [came._replace(at_ms=3000.0), lost._replace(how="closed")]
    said = beside("x=1", was, was, other)["sentence"]
    told = "1 would not have come, 1 would have come at another time, 1 would have come besides"
    assert said == f"With x=1: of 2 transitions {told}."
    assert set(beside("x=1", was, was, other)["changed"]) == {
        "ns-0 lost broker-a (silent): not at 0.0 s",
        "ns-0 has broker-a: at 3.0 s in place of 0.0 s",
        "ns-0 lost broker-a (closed): at 0.0 s, besides",
    }
    assert "more failed sends, 40 in place of 1" in beside("x=1", now, was, same)["sentence"]


def test_of_several_runs_a_client_has_the_median_of_each_number() -> None:
    runs = [
        {"producer-0": ClientFigures(sends=10, failed=number, recovered_ms=1000.0 * number)} for number in (1, 5, 2)
    ]
    found = typical([*runs, {"consumer-0": ClientFigures(longest_gap_ms=7.0)}])
    assert (found["producer-0"].failed, found["producer-0"].recovered_ms) == (2, 2_000)
    assert (found["consumer-0"].longest_gap_ms, found["consumer-0"].recovered_ms) == (7.0, None)
