"""Which brokers a producer with sendLatencyFaultEnable avoids when, by its `broker_isolated` rows."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ....remoting.node.profile import Profile
from ...oracle.time_outs import isolation_ms
from ...oracle.world import World
from ..record.control import Control


class _Isolation(NamedTuple):
    at_ms: float
    broker_name: str
    until_ms: float


class Isolated:
    """How long each attempt isolates its broker is counted by the producer's table, and not by what it says."""

    def __init__(self, control: Control, world: World) -> None:
        self._longest_counts = world.timers.profile is not Profile.V4_9  # 5.x never shortens one
        self._of: dict[tuple[str, int], list[_Isolation]] = defaultdict(list)
        for row in control.rows("broker_isolated"):
            if row.f == "isolated":
                failed = bool((row.decoded or {}).get("failed"))
                for_ms = isolation_ms(world, row.node, row.duration_ms or 0.0, failed=failed)
                one = _Isolation(row.time_ms, row.broker_name or "", row.time_ms + for_ms)
                self._of[row.node, row.incarnation].append(one)

    def until_ms(self, node: str, incarnation: int, at_ms: float) -> dict[str, float]:
        """Each broker that the process had isolated by then, and until when."""
        found: dict[str, float] = {}
        for one in self._of.get((node, incarnation), ()):
            if one.at_ms <= at_ms:
                before_ms = found.get(one.broker_name, 0.0) if self._longest_counts else 0.0
                found[one.broker_name] = max(before_ms, one.until_ms)
        return found
