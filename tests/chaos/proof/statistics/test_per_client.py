"""What each client went through, and how a variant of it is said."""

from dataclasses import replace
from typing import Any

from nemesrv.chaos.history.transitions import Transition
from nemesrv.chaos.proof.statistics.per_client import ClientFigures, beside, client_lines, clients_of, typical
from nemesrv.chaos.reports.cost import Cost, Without


def row(at_s: float, event: str, node: str = "producer-0", **fields: Any) -> dict[str, Any]:
    return {"time_ms": 1000 * at_s, "event": event, "node": node, **fields}


HISTORY = [
    row(9, "send", type="ok"),
    *(row(at, "send", type="ok") for at in range(10, 21)),
    row(20, "fault", "harness", phase="start"),
    row(22, "send_attempt", type="fail"),
    row(23, "send", type="info"),
    row(26, "send", type="fail"),
    row(29, "send", type="invoke"),
    row(30, "send", type="ok"),
    row(40, "send", type="info"),
]


UNKNOWN = None, None
NOTHING_MOVED = "Of 0 transitions all would have happened, at the same times."
SAME_TWO = NOTHING_MOVED.replace("0", "2")


def costing(took_s: float, waited: int) -> Cost:
    """consumer-0 was without broker-a for so long, and so many messages waited."""
    of, span = {"client": "consumer-0", "broker": "broker-a"}, {"from_s": 20, "to_s": 20 + took_s}
    gap = Without(**of, **span, took_ms=1000 * took_s, came_back=True)
    return Cost(
        longest_without_broker_ms=gap.took_ms,
        without_broker=(gap,),
        sends={"ok": 14, "failed": 0, "unanswered": 0},
        messages={"waited": waited, "longest_ms": 1000 * took_s, "never_received": 0},
    )


def test_sends_the_last_failure_and_the_time_without_a_broker_are_told_of_each_client() -> None:
    changed = [Transition(1000.0, "producer-0", "took", "orders", "broker-b")]
    found = clients_of(HISTORY, 10_000, 35_000, changed, {"producer-0": "client-7"}, costing(41, 126))
    assert found["client-7"] == ClientFigures(sends=14, failed=2, failed_tries=1, recovered_ms=6_000)
    assert found["consumer-0"] == ClientFigures(without_broker_ms=41_000)
    assert clients_of(HISTORY, 10_000, 35_000, changed, {}, None)["producer-0"].transitions == 1


def test_a_variant_that_makes_fewer_messages_wait_is_not_called_the_same() -> None:
    was, now = (clients_of(HISTORY, 10_000, 35_000, (), {}, cost) for cost in (costing(61, 126), costing(31, 71)))
    said = beside("x=1", was, now, ([], []), (costing(61, 126), costing(31, 71)))
    assert said["sentence"] == (
        "With x=1, in one run: consumer-0 is without a broker for a shorter time: 31.0 s instead of 61.0 s; "
        f"fewer messages arrived more than 5 s after their send: 71 instead of 126. {NOTHING_MOVED}"
    )
    assert said["cost"][1] == costing(31, 71).sentence
    _, told = (line.split() for line in client_lines([said]) if "consumer-0" in line)
    assert told[7:11] == ["61.0", "s", "->", "31.0"]
    same = beside("x=1", was, was, ([], []), (costing(61, 126), costing(61, 126)))["sentence"]
    assert same == f"With x=1, in one run: the clients fare the same. {NOTHING_MOVED}"


def test_shorter_and_longer_times_are_both_told_also_by_less_than_a_tenth_of_a_long_time() -> None:
    was, now = (
        {f"consumer-{number}": ClientFigures(without_broker_ms=1_000 * took_s) for number, took_s in enumerate(of)}
        for of in ([236, 106, 0, 0], [220, 67, 9, 0.9])
    )
    assert beside("x=1", was, now, ([], []), (costing(61, 181), costing(61, 209)))["sentence"] == (
        "With x=1, in one run: 2 clients are without a broker for a shorter time, consumer-0 the longest: 220.0 s "
        "instead of 236.0 s; consumer-2 is without a broker for a longer time: 9.0 s instead of 0.0 s; more messages "
        f"arrived more than 5 s after their send: 209 instead of 181. {NOTHING_MOVED}"
    )


def test_a_sentence_says_what_differs_and_nothing_else() -> None:
    was = {"producer-0": ClientFigures(sends=100, failed=40, recovered_ms=120_000)}
    now = {"producer-0": ClientFigures(sends=100, failed=1, recovered_ms=3_000)}
    lost, came = Transition(5.0, "ns-0", "lost", "broker-a", "silent"), Transition(9.0, "ns-0", "came", "broker-a")
    same = [lost, came], [lost, came]
    said = beside("x=1", was, now, same, UNKNOWN)["sentence"]
    assert said == (
        "With x=1, in one run: fewer failed sends: 1 instead of 40 (1.0 % instead of 40.0 % of all sends); "
        f"the last failed send is 3.0 s instead of 120.0 s after the fault. {SAME_TWO}"
    )
    told = beside("x=1", was, was, same, UNKNOWN)["sentence"]
    assert told == f"With x=1, in one run: the clients fare the same. {SAME_TWO}"
    healed = {"producer-0": ClientFigures(sends=100, recovered_ms=0)}
    gone, back = (beside("x=1", *of, same, UNKNOWN) for of in ((was, healed), (healed, was)))
    ends = "no send fails after the fault; without the change the last failed 120.0 s after it. "
    assert gone["sentence"].endswith(ends + SAME_TWO)
    begins = "the last failed send is 120.0 s after the fault; without the change none failed after it. "
    assert back["sentence"].endswith(begins + SAME_TWO)
    assert "120.0 s -> none" in "\n".join(client_lines([gone]))
    other = [lost, came], [came._replace(at_ms=3000.0), lost._replace(how="closed")]
    said = beside("x=1", was, was, other, UNKNOWN)["sentence"]
    told = "1 would not have happened, 1 would have happened at another time, 1 more would have happened"
    assert said == f"With x=1, in one run: the clients fare the same. Of 2 transitions {told}."
    by_test = beside("B", was, was, other, UNKNOWN, "by the test: no metric differs")["sentence"]
    assert by_test == f"With B, by the test: no metric differs. Of 2 transitions in the first run {told}."
    assert set(beside("x=1", was, was, other, UNKNOWN)["changed"]) == {
        "ns-0 lost broker-a (silent), at 0.0 s: only without the change",
        "ns-0 has broker-a: at 3.0 s instead of 0.0 s",
        "ns-0 lost broker-a (closed), at 0.0 s: only with the change",
    }
    assert "more failed sends: 40 instead of 1" in beside("x=1", now, was, same, UNKNOWN)["sentence"]
    saved = {"producer-0": replace(was["producer-0"], failed_tries=9)}
    assert (
        "in one run: fewer failed tries of sends: 0 instead of 9."
        in beside("x=1", saved, was, same, UNKNOWN)["sentence"]
    )


def test_of_several_runs_a_client_has_the_median_of_each_number() -> None:
    runs = [
        {"producer-0": ClientFigures(sends=10, failed=number, recovered_ms=1000.0 * number)} for number in (1, 5, 2)
    ]
    found = typical([*runs, {"consumer-0": ClientFigures(without_broker_ms=7.0)}])
    assert (found["producer-0"].failed, found["producer-0"].recovered_ms) == (2, 2_000)
    assert (found["consumer-0"].without_broker_ms, found["consumer-0"].recovered_ms) == (7.0, None)
