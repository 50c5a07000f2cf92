"""When a growing history is judged: at once after a change, then ever more rarely.

    change ──10 s── judged ──10 s── judged ────20 s──── judged ────────40 s──────── judged … at least each RARELY_S

Judging takes seconds of a processor, mostly to plan the queries. After a change a verdict can still become another,
when a NameServer does not do what it must for instance, but the later it does so the less a little more delay matters:
the next judging is due after as long as the change is ago. Times are seconds of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

EVERY_S = 10.0
RARELY_S = 600.0


@dataclass(slots=True)
class Pace:
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
