"""Decides which rows of a growing history are changes, and when the history is judged again.

    change ──10 s── judged ──10 s── judged ────20 s──── judged ────────40 s──────── judged … at least each RARELY_S

Judging takes up to some seconds of CPU time. A verdict can change long after the last change in the cluster, for
instance because a NameServer fails to drop a broker. The history is judged 10, 20, 40, 80 … s after a change, and at
least every RARELY_S.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..verdict import Validity, Verdict

if TYPE_CHECKING:
    from ..oracle.world import World


CHANGES = (
    *("fault", "started", "stopped", "route", "broker_dropped", "topic", "phase"),
    *("route_changed", "route_answer", "assigned", "queue_taken", "queue_dropped", "name_server_chosen", "channel"),
)
"""Events around which a check may ask how late the machine was."""

CALLS = ("send", "pull", "name_server_call")
"""Calls around which a check may ask the same, if the call failed."""

MARGIN_MS = 20_000.0
"""Reserve, because checks round."""


def matters(row: Mapping[str, Any]) -> bool:
    """Whether the row of the history is a change, such as a fault or a dropped broker."""
    return row["event"] in CHANGES or (row["event"] in CALLS and row.get("type") in ("fail", "info"))


def quiet_after_ms(world: World) -> float:
    """Return for how long after a change a check can depend on the change, whatever faults follow."""
    from ..oracle.quiet import settle_ms

    t, nodes, brokers = world.timers, len(world.nodes), len(world.of_kind("broker"))
    detected_ms = 2 * t.R_ms + t.E_ms + t.S_ms
    settled_ms = settle_ms(world) + t.H_ms + t.Qr_ms + t.lateness_cap_ms
    return detected_ms + settled_ms + (nodes + 1) * (t.P_ms + t.A_ms) + (brokers + 1) * t.A_ms + MARGIN_MS


EVERY_S = 10.0

RARELY_S = 600.0


@dataclass(slots=True)
class Pace:
    """Decides when a growing history is judged. All times are seconds of the machine's clock."""

    every_s: float = EVERY_S
    rarely_s: float = RARELY_S
    _changed_ms: float = field(default=float("-inf"), init=False)
    _changed_s: float = field(default=float("-inf"), init=False)
    _judged_s: float = field(default=float("-inf"), init=False)

    def due(self, now_s: float, changed_ms: float) -> bool:
        """Whether the history must be judged now; the caller then judges at once. `changed_ms` is the run time of the
        last change."""
        if changed_ms > self._changed_ms:
            self._changed_ms, self._changed_s = changed_ms, now_s
        gap_s = self.every_s if self._changed_s > self._judged_s else self._judged_s - self._changed_s
        if now_s - self._judged_s < min(max(gap_s, self.every_s), self.rarely_s):
            return False
        self._judged_s = now_s
        return True


@dataclass(slots=True)
class News:
    _said: dict[str, tuple[Validity, int]] = field(default_factory=dict)

    def among(self, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
        for verdict in verdicts:
            now = verdict.verdict, verdict.violations
            if self._said.get(verdict.name) != now:
                self._said[verdict.name] = now
                yield verdict
