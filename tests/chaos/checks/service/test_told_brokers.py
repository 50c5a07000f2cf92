"""timers_kept over what clients say of themselves to brokers: as it is, and otherwise."""

import pytest

from nemesrv.chaos.checks.service.timers_kept import judge
from nemesrv.chaos.oracle.time_outs import REBALANCE
from nemesrv.chaos.topology import CONSUMER_GROUP, PRODUCER_GROUP
from tests.chaos.builder import HOLE, address_of, cluster

from .test_timers_kept import story, wrong

VERSIONS = {"orders": 1, f"%RETRY%{CONSUMER_GROUP}": 1}


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ({PRODUCER_GROUP: "PRODUCER"}, []),
        ({"others": "PRODUCER"}, ["names its group"]),
        ({}, ["names its group"]),
        (None, []),
    ],
)
def test_a_heartbeat_names_the_group_of_its_producer(groups: dict[str, str] | None, found: list[str]) -> None:
    """A broker that drops a client whose heartbeats name nobody is right."""
    told = (
        cluster(1, ("broker-a",), ("producer-0",)).at(0).event("producer-0", "scheduled_task", f="x", duration_ms=0.0)
    )
    told.hears("broker-a", "producer-0", groups={PRODUCER_GROUP: "PRODUCER"})
    for at_s in (30, 60, 90):
        told.at(at_s).hears("broker-a", "producer-0", **({} if groups is None else {"groups": groups}))
    if groups == {}:
        told.at(125).forgets("broker-a", "producer-0", "expired", 125)
    rules = "names its group", "120 s after a heartbeat"
    verdict = judge(*told.end(130, 1.0).facts())
    assert [one.kind for one in wrong(verdict) if one.kind in rules] == found


@pytest.mark.parametrize(
    ("version", "heard_s", "hole", "found"), [(1, 40, False, 1), (2, 40, False, 0), (1, 31, False, 0), (1, 40, True, 0)]
)
def test_a_change_of_queues_changes_the_sub_version(version: int, heard_s: float, hole: bool, found: int) -> None:
    told = story().at(20).hears("broker-a", "consumer-0", versions=VERSIONS)
    if hole:
        told.at(29).fault(*HOLE[:3], "consumer-0", "broker-a", until_s=35)
    told.at(30).event("consumer-0", "assigned", topic="orders", value=[["broker-a", 0]])
    told.at(heard_s).hears("broker-a", "consumer-0", versions={**VERSIONS, "orders": version})
    kinds = [one.kind for one in wrong(judge(*told.end(100, 1.0).facts()))]
    assert kinds.count("has a new subVersion") == found


@pytest.mark.parametrize(
    ("gone_s", "fault", "found"),
    [(None, (), 1), (25.0, (), 0), (None, ("broker-a",), 0)],
    ids=["has-a-member", "has-none", "paused"],
)
def test_a_broker_refuses_the_question_for_members_only_without_a_member(
    gone_s: float | None, fault: tuple[str, ...], found: int
) -> None:
    told = cluster(1, ("broker-a",), ("consumer-0",)).at(1).hears("broker-a", "consumer-0")
    if gone_s is not None:
        told.at(gone_s).forgets("broker-a", "consumer-0", "closed", groups=[])
    for node in fault:
        told.at(28).fault("f", "pause", "signal.SIGSTOP", node, until_s=29.9)
    told.at(30).event("consumer-0", "refused", f="GET_CONSUMER_LIST_BY_GROUP", address=address_of("broker-a"), code=1)
    told.event("consumer-0", "scheduled_task", f=REBALANCE, duration_ms=0.0, value={"woken": False})
    kinds = [one.kind for one in wrong(judge(*told.end(40, 1.0).facts()))]
    assert kinds.count("answers with its members") == found


@pytest.mark.parametrize(("at_b", "without_a_list", "found"), [(0, 0, 1), (1, 0, 1), (12, 0, 0), (0, 40, 0)])
def test_a_consumer_draws_the_broker_that_it_asks_for_its_members(at_b: int, without_a_list: int, found: int) -> None:
    told = cluster(1, ("broker-a", "broker-b"), ("consumer-0",)).at(0).learns("consumer-0", "broker-a", "broker-b")
    for number in range(40 + without_a_list):
        told.at(20 * number + 20)
        if number < 40:
            address = address_of("broker-b" if number < at_b else "broker-a")
            told.event("consumer-0", "members_listed", topic="orders", address=address, value=[])
        told.event("consumer-0", "scheduled_task", f=REBALANCE, duration_ms=0.0, value={"woken": False})
    verdict = judge(*told.end(20 * (40 + without_a_list) + 20, 1.0).facts())
    assert [(one.object, one.more) for one in wrong(verdict) if one.kind == "asks a random broker"] == [
        ("broker-a", {"because": f"{40 - at_b} of 40 times"})
    ] * found


@pytest.mark.parametrize(
    ("silent", "cut", "known", "found"),
    [
        (40, ("broker-a",), True, "40 of 40"),  # no list: it had drawn the one that does not answer
        (20, ("broker-a",), True, None),  # the others were drawn, too
        (40, ("broker-a", "broker-b"), True, None),  # nobody knows which of two
        (40, ("broker-a",), False, None),  # broker-b knew no member, so may have refused
        (40, (), True, None),
    ],
)
def test_a_question_that_only_one_broker_may_leave_unanswered_went_to_that_broker(
    silent: int, cut: tuple[str, ...], known: bool, found: str | None
) -> None:
    told = cluster(1, ("broker-a", "broker-b"), ("consumer-0",)).at(0).learns("consumer-0", "broker-a", "broker-b")
    for broker in ("broker-a", "broker-b") if known else ("broker-a",):
        told.at(1).hears(broker, "consumer-0")
    told.at(5).event("consumer-0", "members_listed", topic="orders", address=address_of("broker-a"), value=[])
    for broker in cut:
        told.at(10).fault(f"f-{broker}", *HOLE[1:3], "consumer-0", broker, until_s=830)
    for number in range(40):
        if number >= silent:
            told.at(20 * number + 20)
            told.event("consumer-0", "members_listed", topic="orders", address=address_of("broker-b"), value=[])
        told.at(20 * number + 20).event("consumer-0", "scheduled_task", f=REBALANCE, duration_ms=0.0, value={})
    verdict = judge(*told.end(900, 1.0).facts())
    asks = [(one.object, one.more) for one in wrong(verdict) if one.kind == "asks a random broker"]
    assert asks == ([("broker-a", {"because": f"{found} times"})] if found else [])
