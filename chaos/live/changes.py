"""What of a growing history is a change, how long it can matter, and when it is judged again.

    change ──10 s── judged ──10 s── judged ────20 s──── judged ────────40 s──────── judged … at least each RARELY_S

Judging takes up to seconds of a processor. After a change a verdict can still become another, when a NameServer does
not do what it must for instance, but the later it does so the less a little more delay matters: the next judging is due
after as long as the change is ago.
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
"""Around these a check may ask how late the machine was."""

CALLS = ("send", "pull", "name_server_call")
"""Around these, too, when they failed."""

MARGIN_MS = 20_000.0
"""For what a check rounds."""


def matters(row: Mapping[str, Any]) -> bool:
    """Whether the row is a change: after any other row a verdict can only become what time alone makes of it."""
    return row["event"] in CHANGES or (row["event"] in CALLS and row.get("type") in ("fail", "info"))


def quiet_after_ms(world: World) -> float:
    """So long before and after a row, without a change, it is near none, whatever faults the world will see.

    No window of any check is longer, counted from its change.
    """
    from ..oracle.quiet import settle_ms

    t, nodes, brokers = world.timers, len(world.nodes), len(world.of_kind("broker"))
    detected_ms = 2 * t.R_ms + t.E_ms + t.S_ms
    settled_ms = settle_ms(world) + t.H_ms + t.Qr_ms + t.lateness_cap_ms
    return detected_ms + settled_ms + (nodes + 1) * (t.P_ms + t.A_ms) + (brokers + 1) * t.A_ms + MARGIN_MS


EVERY_S = 10.0

RARELY_S = 600.0


@dataclass(slots=True)
class Pace:
    """When a growing history is judged; in seconds of the machine."""

    every_s: float = EVERY_S
    rarely_s: float = RARELY_S
    _changed_ms: float = field(default=float("-inf"), init=False)
    _changed_s: float = field(default=float("-inf"), init=False)
    _judged_s: float = field(default=float("-inf"), init=False)

    def due(self, now_s: float, changed_ms: float) -> bool:
        """Whether it is time; then it counts as done. `changed_ms`: of the run, when something came that matters."""
        if changed_ms > self._changed_ms:
            self._changed_ms, self._changed_s = changed_ms, now_s
        gap_s = self.every_s if self._changed_s > self._judged_s else self._judged_s - self._changed_s
        if now_s - self._judged_s < min(max(gap_s, self.every_s), self.rarely_s):
            return False
        self._judged_s = now_s
        return True


@dataclass(slots=True)
class News:
    """Which verdicts are not as they were when this was asked last."""

    _said: dict[str, tuple[Validity, int]] = field(default_factory=dict)

    def among(self, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
        for verdict in verdicts:
            now = verdict.verdict, verdict.violations
            if self._said.get(verdict.name) != now:
                self._said[verdict.name] = now
                yield verdict
