"""Which client of a group may consume a queue in order: leases of 60 s, renewed by asking again.

Upstream: `RebalanceLockManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...remoting.message import MessageQueue

LEASE_MS = 60_000


@dataclass(slots=True)
class _Lease:
    client_id: str
    renewed_ms: int


class QueueLocks:
    """group -> queue -> lease."""

    def __init__(self) -> None:
        self._leases: dict[str, dict[MessageQueue, _Lease]] = {}

    def lock(self, group: str, queues: Iterable[MessageQueue], client_id: str, *, now_ms: int) -> list[MessageQueue]:
        """Those of `queues` that `client_id` now holds: free ones, expired ones, and those it held already."""
        leases = self._leases.setdefault(group, {})
        held = []
        for queue in queues:
            lease = leases.get(queue)
            if lease is None or lease.client_id == client_id or now_ms - lease.renewed_ms > LEASE_MS:
                leases[queue] = _Lease(client_id, now_ms)
                held.append(queue)
        if not leases:
            del self._leases[group]
        return held

    def unlock(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Release those that `client_id` holds; others stay with their holders."""
        leases = self._leases.get(group)
        if leases is None:
            return
        for queue in queues:
            lease = leases.get(queue)
            if lease is not None and lease.client_id == client_id:
                del leases[queue]
        if not leases:
            del self._leases[group]

    def expire(self, *, now_ms: int) -> None:
        """Forget leases that ran out long ago, so that clients that never come back take no memory."""
        for group in list(self._leases):
            leases = self._leases[group]
            for queue in [q for q, lease in leases.items() if now_ms - lease.renewed_ms > LEASE_MS]:
                del leases[queue]
            if not leases:
                del self._leases[group]
