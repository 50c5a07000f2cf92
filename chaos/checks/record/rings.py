"""The queues that a producer goes round, by the routes that it took."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ....remoting.topics import TBW102
from .control import Control
from .uses import Queue

_WRITABLE = 2


class Routes:
    """What each client held when, from `route_changed` rows."""

    def __init__(self, control: Control) -> None:
        self._of: dict[tuple[str, int, str], list[tuple[float, Any]]] = defaultdict(list)
        for row in control.rows("route_changed"):
            self._of[row.node, row.incarnation, row.topic or ""].append((row.time_ms, row.decoded))

    def ring(self, node: str, incarnation: int, topic: str, at_ms: float) -> tuple[Queue, ...]:
        """The queues that a producer goes round: the writable ones of brokers with a master; () for no route."""
        found = self._of.get((node, incarnation, topic), [])
        at = bisect_right(found, at_ms, key=lambda one: one[0])
        route = found[at - 1][1] if at else None
        return _ring(route) if isinstance(route, Mapping) else ()

    def brokers(self, node: str, incarnation: int, at_ms: float) -> set[str]:
        """The brokers that it may write to, of every topic that it has a route of; createTopicKey is none that is sent
        to."""
        topics = [topic for name, life, topic in self._of if (name, life) == (node, incarnation)]
        rings = [self.ring(node, incarnation, topic, at_ms) for topic in topics if topic != TBW102]
        return set.intersection(*({broker for broker, _ in ring} for ring in rings)) if rings else set()


def _ring(route: Mapping[str, Any]) -> tuple[Queue, ...]:
    masters = {name for name, addresses in (route.get("brokers") or {}).items() if "0" in addresses}
    return tuple(
        (name, queue_id)
        for name, (_, write, perm, *_rest) in sorted((route.get("queues") or {}).items())
        if name in masters and perm & _WRITABLE
        for queue_id in range(write)
    )
