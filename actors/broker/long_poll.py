"""The table of pull requests that found no message and wait for one. The table uses no clock and no connection.

A waiting pull leaves the table in exactly one of four ways: a message that the consumer can want arrived, the periodic
check found such a message, its waiting time is over, or its connection closed. The code that takes a request out of the
table also answers the request. Upstream: `PullRequestHoldService`, `ManyPullRequest`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .subscriptions import EVERYTHING, Wanted

R = TypeVar("R")

QueueKey = tuple[str, int]


@dataclass(slots=True, eq=False)
class HeldPull(Generic[R]):
    """A pull request that waits for a message. `request` is what the broker needs to run the pull again."""

    connection_id: int
    offset: int
    """The queue offset that it waits for."""
    deadline_ms: int
    request: R
    held_ms: int = 0
    """When it began to wait."""
    wait_ms: int = 0
    """How long it asked to wait."""
    wanted: Wanted = EVERYTHING
    """The messages that it waits for."""
    seen: int = 0
    """Entries below this offset were looked at, and the consumer does not want them."""


class PullHolds(Generic[R]):
    """Waiting pull requests by (topic, queue id), at most `limit` of them."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._held: dict[QueueKey, list[HeldPull[R]]] = {}
        self._count = 0
        self._of_connection: Counter[int] = Counter()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: QueueKey) -> bool:
        return key in self._held

    def hold(self, topic: str, queue_id: int, pull: HeldPull[R]) -> bool:
        """Put the pull request into the table. Returns False if the table is full: the caller must then answer the
        request now."""
        if self._count >= self._limit:
            return False
        self._held.setdefault((topic, queue_id), []).append(pull)
        self._count += 1
        self._of_connection[pull.connection_id] += 1
        return True

    def wake(self, topic: str, queue_id: int, wanted: Callable[[HeldPull[R]], bool]) -> list[HeldPull[R]]:
        """Remove and return the waiting pulls of one queue for which `wanted` is true."""
        return self._take((topic, queue_id), wanted)

    def check(self, now_ms: int, max_offset: Callable[[str, int], int]) -> list[HeldPull[R]]:
        """Remove and return the waiting pulls whose queue has messages at their offset, or whose waiting time is
        over."""
        taken: list[HeldPull[R]] = []
        for topic, queue_id in list(self._held):
            newest = max_offset(topic, queue_id)

            def ready(pull: HeldPull[R], newest: int = newest) -> bool:
                return newest > pull.offset or now_ms >= pull.deadline_ms

            taken += self._take((topic, queue_id), ready)
        return taken

    def drop_connection(self, connection_id: int) -> list[HeldPull[R]]:
        if connection_id not in self._of_connection:
            return []
        return [p for key in list(self._held) for p in self._take(key, lambda p: p.connection_id == connection_id)]

    def take_all(self) -> list[HeldPull[R]]:
        return [pull for key in list(self._held) for pull in self._take(key, lambda _: True)]

    def _take(self, key: QueueKey, wanted: Callable[[HeldPull[R]], bool]) -> list[HeldPull[R]]:
        pulls = self._held.get(key)
        if pulls is None:
            return []
        taken: list[HeldPull[R]] = []
        kept: list[HeldPull[R]] = []
        for pull in pulls:
            (taken if wanted(pull) else kept).append(pull)
        if kept:
            self._held[key] = kept
        else:
            del self._held[key]
        self._count -= len(taken)
        for pull in taken:
            self._of_connection[pull.connection_id] -= 1
            if not self._of_connection[pull.connection_id]:
                del self._of_connection[pull.connection_id]
        return taken
