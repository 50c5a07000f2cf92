"""What of a growing history is a change, how long it can matter, and when it is judged again; without Spark.

    change ──10 s── judged ──10 s── judged ────20 s──── judged ────────40 s──────── judged … at least each RARELY_S

Judging takes seconds of a processor, mostly to plan the queries. After a change a verdict can still become another,
when a NameServer does not do what it must for instance, but the later it does so the less a little more delay matters:
the next judging is due after as long as the change is ago.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..oracle.world import World


CHANGES = (
    *("fault", "started", "stopped", "route", "broker_dropped", "topic", "phase"),
    *("route_changed", "route_answer", "assigned", "queue_taken", "queue_dropped", "name_server_chosen", "channel"),
)
"""Around these a check may ask how late the machine was."""

CALLS = ("send", "pull", "name_server_call")
"""Around these, too, when they failed."""

LAG_STEP_MS = 10_000.0
"""The grid in which what is near a change is looked up."""


def matters(row: Mapping[str, Any]) -> bool:
    """Whether the row is a change: after any other row a verdict can only become what time alone makes of it."""
    return row["event"] in CHANGES or (row["event"] in CALLS and row.get("type") in ("fail", "info"))


def settle_ms(world: World) -> float:
    """How long after a change of the world nothing that it caused can still be open, drops by expiry apart."""
    from ..oracle import quiet as disturbances

    timers, brokers = world.timers, len(world.of_kind("broker"))
    stale_ms = timers.P_ms + timers.A_ms if any(fault.target is None for fault in world.faults) else 0.0
    shared_ms = timers.H_ms + timers.Qr_ms + timers.A_ms
    return disturbances.settle_ms(world) + shared_ms + stale_ms + brokers * timers.A_ms + timers.lateness_cap_ms


def longest_window_ms(world: World) -> float:
    """No window of any check is longer than this, counted from the change it belongs to."""
    timers, nodes = world.timers, len(world.nodes)
    detected_ms = 2 * timers.R_ms + timers.E_ms + timers.S_ms
    return detected_ms + settle_ms(world) + nodes * (timers.P_ms + timers.A_ms)


def quiet_after_ms(world: World) -> float:
    """So long before and after a row, without a change, it is near none, whatever faults the world will see."""
    return longest_window_ms(world) + world.timers.P_ms + world.timers.A_ms + 2 * LAG_STEP_MS


def quiet_at(world: World, at_ms: float) -> bool:
    """Whether no fault is active then, every node lives, and all that earlier changes caused has settled."""
    settled_ms = settle_ms(world)
    lasting = any(fault.start_ms <= at_ms < fault.end_ms + settled_ms for fault in world.faults)
    starting = any(life.start_ms <= at_ms < life.start_ms + settled_ms for life in world.lives)
    gone = any(lives[-1].end_ms <= at_ms for node in world.nodes if (lives := world.lives_of(node.name)))
    return not (lasting or starting or gone)


EVERY_S = 10.0

RARELY_S = 600.0


@dataclass(slots=True)
class Pace:
    """When a growing history is judged; in seconds of the machine."""

    every_s: float = EVERY_S
    rarely_s: float = RARELY_S
    _changed_s: float = field(default=float("-inf"), init=False)
    _judged_s: float = field(default=float("-inf"), init=False)

    def begins(self, now_s: float) -> None:
        """Nothing has come yet that could be judged: it counts as done."""
        self._judged_s = now_s

    def changed(self, now_s: float) -> None:
        """Something that matters has come."""
        self._changed_s = now_s

    def due(self, now_s: float) -> bool:
        """Whether it is time; then it counts as done."""
        gap_s = self.every_s if self._changed_s > self._judged_s else self._judged_s - self._changed_s
        if now_s - self._judged_s < min(max(gap_s, self.every_s), self.rarely_s):
            return False
        self._judged_s = now_s
        return True
