"""Averaging allocation: every queue has one owner, and slices are as Java computes them."""

import pytest

from nemesrv.clients.consumer.rebalance import allocate_averagely, sort_queues
from nemesrv.remoting.message import MessageQueue


def queues(count: int, broker_name: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("orders", broker_name, queue_id) for queue_id in range(count)]


@pytest.mark.parametrize(
    ("queue_count", "members", "expected"),
    [
        (4, ["c1"], [[0, 1, 2, 3]]),
        (8, ["c1", "c2"], [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (8, ["c1", "c2", "c3"], [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (7, ["c1", "c2", "c3"], [[0, 1, 2], [3, 4], [5, 6]]),
        (3, ["c1", "c2", "c3"], [[0], [1], [2]]),
        (2, ["c1", "c2", "c3"], [[0], [1], []]),
    ],
)
def test_each_member_takes_its_slice(queue_count: int, members: list[str], expected: list[list[int]]) -> None:
    slices = [allocate_averagely(member, queues(queue_count), members) for member in members]
    assert [[queue.queue_id for queue in each] for each in slices] == expected


@pytest.mark.parametrize("member_count", range(1, 12))
def test_every_queue_has_exactly_one_owner(member_count: int) -> None:
    members = [f"10.0.0.{n}@1" for n in range(member_count)]
    everything = queues(5, "broker-b") + queues(4, "broker-a")
    owned = [queue for member in members for queue in allocate_averagely(member, everything, members)]
    assert sorted(owned) == sorted(everything)


def test_a_member_that_the_broker_does_not_list_gets_nothing() -> None:
    assert allocate_averagely("stranger", queues(4), ["c1", "c2"]) == []


def test_without_queues_nothing_is_shared_out() -> None:
    with pytest.raises(ValueError, match="mqAll empty"):
        allocate_averagely("c1", [], ["c1"])


def test_the_order_in_which_queues_and_ids_arrive_does_not_matter() -> None:
    shuffled = [queue for pair in zip(queues(3, "broker-b"), queues(3, "broker-a"), strict=True) for queue in pair]
    assert allocate_averagely("c1", shuffled, ["c2", "c1"]) == queues(3, "broker-a")
    assert sort_queues(shuffled) == queues(3, "broker-a") + queues(3, "broker-b")
