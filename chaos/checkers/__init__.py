"""Checkers: each one pure function from history DataFrames to one verdict.

    history rows ──► world.py (Spark: lives, faults)  ──► obligations.py (plain: who must be in whose table, and when)
         │                                                        │
         └──────────────► <check>.py (Spark: what was) ◄──────────┘  + tolerance.py (the machine's lateness) ──► Verdict

A check is `name(history, world) -> Verdict`; `world.timers` are the run's timers. CHECKS imports Spark when a check is
called, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..oracle.world import World
    from ..verdict import Verdict

Check = Callable[["DataFrame", "World"], "Verdict"]


def _lazy(name: str) -> Check:
    def check(history: DataFrame, world: World) -> Verdict:
        run: Check = getattr(import_module(f".{name}", __package__), name)
        return run(history, world)

    check.__name__ = check.__qualname__ = name
    return check


CHECKS: Mapping[str, Check] = {
    name: _lazy(name)
    for name in (
        "routes_converge",
        "routes_are_true",
        "no_false_eviction",
        "no_resurrection",
        "dead_brokers_avoided",
        "dead_name_servers_left",
        "name_server_selection",
        "queue_ownership",
        "no_acknowledged_loss",
        "order_kept",
        "duplicates",
        "recovery_time",
        "availability",
        "exercised",
        "answers_asked_for",
    )
}
