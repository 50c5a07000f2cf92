"""Each rebalance takes the share of the averaging allocation, by the route that its consumer held and who was known."""

from collections.abc import Sequence
from typing import Any

import pytest

from nemesrv.chaos.checks.messages.queue_ownership import judge
from nemesrv.chaos.checks.messages.shares import share, shares_taken
from nemesrv.chaos.verdict import Validity
from nemesrv.clients.consumer.rebalance import allocate_averagely
from nemesrv.remoting.message import MessageQueue
from tests.chaos.builder import BOTH, HOLE, PAUSE, HistoryBuilder, address_of, cluster, route_of

QUEUES = [(broker, queue_id) for broker in BOTH for queue_id in range(4)]
NAMES = tuple(f"consumer-{number}" for number in range(3))
IDS = tuple(f"127.0.0.1@{name}#1" for name in NAMES)


@pytest.mark.parametrize("queues", [1, 2, 7, 8])
def test_the_share_is_that_of_the_clients_own_allocation(queues: int) -> None:
    of = QUEUES[:queues]
    mine = [MessageQueue(topic="orders", broker_name=name, queue_id=number) for name, number in of]
    for one in IDS:
        taken = allocate_averagely(one, mine, IDS)
        assert share(one, of, IDS) == {(queue.broker_name, queue.queue_id) for queue in taken}


def story(*members: str, topics: tuple[str, ...] = BOTH) -> HistoryBuilder:
    """Both brokers hear of these clients at 1 s; consumer-0 has the route of these from 2 s on."""
    builder = cluster(1, BOTH, ("consumer-0", "consumer-1")).at(1)
    for one in members:
        builder.hears("broker-a", one).hears("broker-b", one)
    return builder.at(2).learns("consumer-0", *topics)


def took(builder: HistoryBuilder, at_s: float, queues: Any, *, took_ms: float = 2.0) -> HistoryBuilder:
    """A round of consumer-0 that ends so, with these queues."""
    builder.at(at_s - 0.001).event("consumer-0", "assigned", topic="orders", value=[list(queue) for queue in queues])
    value = {"woken": False, "balanced": True}
    return builder.at(at_s).event("consumer-0", "scheduled_task", f="doRebalance", duration_ms=took_ms, value=value)


def found(builder: HistoryBuilder) -> tuple[int, int]:
    """Rounds that were judged, and those that were wrong."""
    of = list(shares_taken(*builder.end(100).facts()))
    return sum(one.examined for one in of), sum(one.wrong for one in of)


def test_a_member_takes_its_own_slice_and_not_another_members() -> None:
    assert found(took(story(*NAMES[:2]), 10, QUEUES[:4])) == (1, 0)
    assert found(took(story(*NAMES[:2]), 10, QUEUES[4:])) == (1, 1)
    assert found(took(story(NAMES[0]), 10, QUEUES)) == (1, 0)
    assert found(took(story(NAMES[0]), 10, QUEUES[1:])) == (1, 1)
    assert found(took(took(story(*NAMES[:2]), 10, QUEUES[4:]), 30, QUEUES[:4])) == (2, 1)


@pytest.mark.parametrize(("answered", "guilty"), [(IDS[1::-1], "broker-b"), (IDS[:1], None)])
def test_a_broker_that_answers_another_list_than_it_has_is_guilty(answered: Sequence[str], guilty: str | None) -> None:
    told = story(NAMES[0])
    for at_s, broker in ((9.97, "broker-a"), (9.9985, "broker-b")):  # the first was right in the round before
        told.at(at_s)
        told.event("consumer-0", "members_listed", topic="orders", address=address_of(broker), value=list(answered))
    (one,) = shares_taken(*took(told, 10, QUEUES[:4]).end(100).facts())
    assert (one.wrong, one.more.get("holder")) == (1, guilty)


def test_a_fault_of_others_excuses_no_wrong_share_and_one_of_a_broker_that_may_be_asked_does() -> None:
    """Random pair 2000: a broker was cut off from its NameServers, so that no time was quiet."""
    assert found(took(story(*NAMES[:2]).at(5).fault(*HOLE), 10, QUEUES[4:])) == (1, 1)
    assert found(took(story(*NAMES[:2]).at(5).fault(*PAUSE), 10, QUEUES[4:])) == (0, 0)


def test_a_round_is_judged_by_what_it_saw() -> None:
    other = route_of("broker-b")
    moved = story(*NAMES[:2]).at(8).learns("consumer-0", route=other)
    assert found(took(moved, 10, QUEUES[4:6])) == (1, 0)
    moved = story(*NAMES[:2]).at(9.99).learns("consumer-0", route=other)
    assert found(took(moved, 10, QUEUES[:4])) == (0, 0)  # in the middle of it, or so
    assert found(took(story(*NAMES[:2]), 10, QUEUES[4:], took_ms=3000.0)) == (0, 0)  # a call ran out
    assert found(took(story(NAMES[1]), 10, QUEUES[4:])) == (0, 0)  # no broker lists it yet


def test_where_one_broker_knows_another_member_nobody_can_tell_which_was_asked() -> None:
    told = story(NAMES[0]).at(5).hears("broker-a", NAMES[1])
    assert found(took(told, 10, QUEUES)) == (0, 0)
    told = story(NAMES[0]).at(5).hears("broker-a", NAMES[1]).hears("broker-b", NAMES[1])
    assert found(took(told, 10, QUEUES)) == (1, 1)
    told = story(NAMES[0]).at(5).hears("broker-a", NAMES[1]).hears("broker-b", NAMES[1]).at(7)
    for broker in BOTH:
        told.forgets(broker, NAMES[1], "closed", 2, groups=["consumers"])
    assert found(took(told, 10, QUEUES)) == (1, 0)


def test_a_wrong_share_is_invalid_where_no_time_was_quiet_and_right_ones_alone_are_not_valid() -> None:
    wrong = judge(*took(story(*NAMES[:2]).at(5).fault(*HOLE), 10, QUEUES[4:]).end(100).facts())
    assert (wrong.verdict, wrong.violations) == (Validity.INVALID, 1)
    assert "did not take their share" in wrong.why
    right = judge(*took(story(*NAMES[:2]).at(5).fault(*HOLE), 10, QUEUES[:4]).end(100).facts())
    assert right.verdict is Validity.UNKNOWN


def test_with_slaves_nothing_is_said_of_shares() -> None:
    builder = cluster(1, (*BOTH, "broker-a/1"), ("consumer-0", "consumer-1")).at(1)
    for broker in (*BOTH, "broker-a/1"):
        builder.hears(broker, NAMES[0])
    assert found(took(builder.at(2).learns("consumer-0", *BOTH), 10, QUEUES[4:])) == (0, 0)
