"""Faults that the timeline's last entries begin and nothing ends: everything is healed behind the last entry, so that
they last no time, and whoever asked for them would see a cluster without them called VALID."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class LastFaults:
    """Those that began with no time between them and now."""

    at_once_s: float
    _ids: tuple[str, ...] = ()
    _done_s: float = field(default=float("-inf"))

    def began(self, fault_ids: Iterable[str], asked_s: float, done_s: float) -> None:
        """These began; or other things were done."""
        self._ids = (*(self._ids if self._is_now(asked_s) else ()), *fault_ids)
        self._done_s = done_s

    def unexamined(self, now_s: float, in_force: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Whom each of them hits, and why it proves nothing. `in_force`: id to whom it hits and what ends it."""
        for fault_id in self._ids if self._is_now(now_s) else ():
            who, ended_by = in_force.get(fault_id, ("", ""))
            if ended_by:
                yield (
                    who,
                    (
                        f"{fault_id} lasted 0 s, for everything is healed behind the timeline's last entry: "
                        f"an entry that ends it ({ended_by}) says how long it lasts"
                    ),
                )

    def _is_now(self, now_s: float) -> bool:
        return now_s - self._done_s <= self.at_once_s
