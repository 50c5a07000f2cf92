"""What a scenario promises beyond RocketMQ's windows: kept, broken, and of a history in which nothing was seen."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.cause import cause_of, guilty_nodes
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import BOTH, HOLE, HistoryBuilder, address_of, cluster

ELSEWHERE = "10.9.9.9:10911"


def verdict(check: str, story: HistoryBuilder, end_s: float = 400) -> Verdict:
    return CHECKS[check].judge(*story.end(end_s).facts())


def promising(name: str, value: object, **how: Any) -> HistoryBuilder:
    return cluster(**how, promises={name: value})


def tables_apart(from_s: float, to_s: float, **how: Any) -> HistoryBuilder:
    """ns-0 cannot be reached by broker-a, and has dropped it meanwhile."""
    story = promising("tables_agree_within_s", 60, **how)
    story.at(from_s - 95).fault(*HOLE).at(from_s).route("ns-0", "orders", "broker-b")
    return story.at(to_s).fault(*HOLE, end=True).route("ns-0", "orders", "broker-a", "broker-b")


def master_moves(*at_s: float) -> HistoryBuilder:
    """Somebody registered another broker-a by hand, which no window is made for; each time its own comes back."""
    story = promising("masters_stay", True, name_servers=1)
    for number, when_s in enumerate(at_s):
        by_hand = {"fault_id": f"register-{number}", "broker_name": "broker-a", "broker_id": 0, "address": ELSEWHERE}
        story.at(when_s).act("register", "ns-0", value={}, **by_hand)
        for later_s, address in ((0, ELSEWHERE), (15, address_of("broker-a"))):
            route = {"brokers": {"broker-a": {"0": address}}, "queues": {"broker-a": [4, 4, 6, 0]}}
            story.at(when_s + later_s).event("ns-0", "route", topic="orders", value=route)
    return story


def permission_wiped(*perms: tuple[float, int]) -> HistoryBuilder:
    """It is wiped at 100 s, and the table has it so from these times on."""
    story = promising("wipes_last", True, name_servers=1, brokers=("broker-a",))
    story.at(100).act("wipe_write_perm", "ns-0", broker_name="broker-a", broker_id=0, value={})
    for at_s, perm in perms:
        route = {"brokers": {"broker-a": {"0": address_of("broker-a")}}, "queues": {"broker-a": [4, 4, perm, 0]}}
        story.at(at_s).event("ns-0", "route", topic="orders", value=route)
    return story


def polls(*at_s: float) -> HistoryBuilder:
    """Of consumer-0, whose commits hang meanwhile."""
    story = promising("polls_within_s", 60, clients=("consumer-0",))
    story.at(31).black_hole("consumer-0", "broker-a")
    for when_s in at_s:
        story.at(when_s).event("consumer-0", "scheduled_task", f="updateTopicRouteInfoFromNameServer", duration_ms=1.0)
    return story


@pytest.mark.parametrize(
    ("check", "kept", "broken"),
    [
        ("routes_converge", lambda: tables_apart(195, 250), lambda: tables_apart(195, 260)),
        ("one_master", master_moves, lambda: master_moves(100)),
        ("done_by_hand", lambda: permission_wiped((100.001, 4)), lambda: permission_wiped((100.001, 4), (160, 6))),
        ("timers_kept", lambda: polls(*range(1, 400, 59)), lambda: polls(*range(1, 200, 59), *range(240, 400, 59))),
    ],
)
def test_a_promise_is_kept_or_broken(
    check: str, kept: Callable[[], HistoryBuilder], broken: Callable[[], HistoryBuilder]
) -> None:
    assert promised(verdict(check, kept())) == []
    (one, *_) = promised(verdict(check, broken()))
    assert one.startswith("promised to ")
    assert verdict(check, broken()).verdict is Validity.INVALID


NOT_JUDGED = (
    "ns-1 and ns-0 had different routes of topic orders from 195.0 to 260.0 s, for 65.0 s (which of the two is wrong "
)


@pytest.mark.parametrize(
    ("name_servers", "is_read", "guilty", "said"),
    [
        (
            3,
            False,
            "ns-0",
            "ns-0 and ns-1 had different routes of topic orders from 195.0 to 260.0 s, for 65.0 s; allowed 60.0",
        ),
        (
            2,
            True,
            "ns-0",
            "ns-0 and ns-1 had different routes of topic orders from 195.0 to 260.0 s, for 65.0 s; allowed 60.0",
        ),
        (2, False, "", f"{NOT_JUDGED}is not judged); allowed 60.0"),
    ],
)
def test_the_minority_or_the_unread_table_is_wrong(name_servers: int, *, is_read: bool, guilty: str, said: str) -> None:
    story = tables_apart(195, 260, name_servers=name_servers)
    for name_server in ("ns-0", "ns-1") if is_read else ():
        for broker in BOTH:
            story.at(0.9).registers(name_server, broker)
    broken = [verdict("routes_converge", story)]
    cause = cause_of(broken)
    assert cause is not None
    assert cause.sentence.startswith(said)
    assert (cause.node, [*guilty_nodes(broken)]) == (guilty, [guilty] if guilty else [])


def promised(found: Verdict) -> Sequence[str]:
    """The kinds of findings by which a promise was broken."""
    return [str(one.kind) for one in found.findings if one.kind.startswith("promised") and one.wrong]


def test_name_servers_on_nobodys_list_promise_nothing() -> None:
    lists = {node: {"name_servers": ["ns-1"]} for node in ("broker-a", "broker-b")}
    assert promised(verdict("routes_converge", tables_apart(195, 260, nodes=lists))) == []


@pytest.mark.parametrize(
    ("received_s", "expected"), [(159.0, Validity.VALID), (161.0, Validity.INVALID), (None, Validity.INVALID)]
)
def test_a_message_is_due_by_its_promise_alone(received_s: float | None, expected: Validity) -> None:
    story = promising("delivered_within_s", 60, clients=("producer-0", "consumer-0"))
    story.at(50).black_hole("consumer-0", "broker-a")
    place = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": 7, "msg_key": "k"}
    story.at(100).event("producer-0", "send", type="ok", op_id="1", duration_ms=1.0, **place)
    if received_s is not None:
        story.at(received_s).event("consumer-0", "receive", op_id="2", **place)
    story.end(400)
    found = story.judged(CHECKS["messages_delivered"])
    assert found.verdict is expected
    assert [one.more["rule"] for one in found.findings] == (
        ["delivered_within_s"] if expected is Validity.INVALID else []
    )


def test_without_a_promise_such_a_message_waits() -> None:
    story = cluster(clients=("producer-0", "consumer-0")).at(50).black_hole("consumer-0", "broker-a")
    place = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": 7, "msg_key": "k"}
    story.at(100).event("producer-0", "send", type="ok", op_id="1", duration_ms=1.0, **place).end(400)
    assert story.judged(CHECKS["messages_delivered"]).measured["waiting"] == 1
