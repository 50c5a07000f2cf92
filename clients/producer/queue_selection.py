"""Going round a topic's queues from a random start. Pure.

A producer has one ring per topic, made anew whenever it takes a route; the next send continues where the last stopped.
Upstream: `TopicPublishInfo.selectOneMessageQueue`, `ThreadLocalIndex` (one per thread; here a producer is one thread).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ...remoting.message import MessageQueue

_INT31 = 1 << 31


class QueueRing:
    """`queues` in the order of the publish info; at least one."""

    def __init__(self, queues: Sequence[MessageQueue], rng: random.Random) -> None:
        self.queues = tuple(queues)
        self._rng = rng
        self._index = 0
        self.reset()

    def reset(self) -> None:
        """Continue from a new random place."""
        self._index = self._rng.randrange(_INT31)

    def next_number(self) -> int:
        """The running counter, moved on by one."""
        self._index = (self._index + 1) % _INT31
        return self._index

    def next(self) -> MessageQueue:
        return self.queues[self.next_number() % len(self.queues)]

    def next_that(self, accept: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        """The next queue that `accept` takes, looking at each at most once; the counter moves past those refused."""
        for _ in self.queues:
            queue = self.next()
            if accept(queue):
                return queue
        return None

    def ahead_that(self, accept: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        """As next_that, but the counter moves by one only, however many are refused (4.9's latency-aware pick)."""
        start = self.next_number()
        for step in range(len(self.queues)):
            queue = self.queues[(start + step) % len(self.queues)]
            if accept(queue):
                return queue
        return None

    def next_on_another_broker(self, last_broker_name: str | None) -> MessageQueue:
        """The next queue that is not of `last_broker_name`; after one full cycle of its queues, its next one anyway."""
        if last_broker_name is None:
            return self.next()
        return self.next_that(lambda queue: queue.broker_name != last_broker_name) or self.next()
