"""Which queues are mine: the averaging allocation, computed alike by every member of a group without talking.

All members sort the same queues and the same ids, and each takes its own slice; members that see different lists
disagree until their next rebalance. Upstream: `AllocateMessageQueueAveragely`, sorting as in `RebalanceImpl`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...remoting.message import MessageQueue


def java_order(text: str) -> bytes:
    """A sort key that orders as Java's String.compareTo, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """By topic, broker name and queue id, as Java's MessageQueue.compareTo."""
    return sorted(queues, key=lambda queue: (java_order(queue.topic), java_order(queue.broker_name), queue.queue_id))


def allocate_averagely(
    client_id: str, queues: Iterable[MessageQueue], client_ids: Collection[str]
) -> list[MessageQueue]:
    """The contiguous slice of the sorted queues that belongs to `client_id`; empty when it is not among `client_ids`.

    The first `len(queues) % len(client_ids)` members get one queue more than the others.
    """
    all_queues, members = sort_queues(queues), sorted(client_ids, key=java_order)
    if client_id not in members:
        return []
    index = members.index(client_id)
    share, remainder = divmod(len(all_queues), len(members))
    start = index * share + min(index, remainder)
    return all_queues[start : start + share + (1 if index < remainder else 0)]
