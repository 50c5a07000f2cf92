"""Checkers: each one a record (check.py) beside its two functions, `gather` and `judge`.

    history rows ──► World (lives, faults) ──► oracle/ (plain: who must be in whose table, and when)
         │                                            │
         └──► gather (Spark: few, frozen facts) ──────┴──► judge (plain) + the machine's lateness ──► Verdict

CHECKS has them by name: every module of this folder that has a CHECK. None of them imports Spark before it gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from .check import Check, Reads, Section, by_section

_HISTORY_CHECKS: Mapping[str, tuple[str, Section, Reads]] = {
    "no_acknowledged_loss": (
        "every acknowledged message was received or is still in a broker", Section.MESSAGES, Reads.MESSAGES),
    "order_kept": (
        "a queue keeps the order of its producers' sends, and a consumer that must takes them in it",
        Section.MESSAGES, Reads.MESSAGES),
    "duplicates": (
        "no more repeated messages than faults and rebalances explain", Section.MESSAGES, Reads.MESSAGES),
    "recovery_time": (
        "from each fault and heal to each client's next success: p50, p99 and the longest against its bound",
        Section.OPERATIONS, Reads.OPERATIONS),
    "availability": (
        "the share of operations that succeeded, over time", Section.OPERATIONS, Reads.OPERATIONS),
    "answers_asked_for": (
        "no answer came that nobody asked for", Section.OPERATIONS, Reads.OPERATIONS),
    "exercised": (
        "the faults, time-outs and switches that the scenario is about really happened; else UNKNOWN",
        Section.RUN, Reads.OPERATIONS),
}  # fmt: skip
"""Checks that still read the history themselves: gather hands the DataFrame on, and judge is the whole check."""


def _over_history(name: str) -> Check[Any]:
    def judge(history: Any, world: Any) -> Any:
        run: Callable[[Any, Any], Any] = getattr(import_module(f".{name}", __package__), name)
        return run(history, world)

    says, section, reads = _HISTORY_CHECKS[name]
    return Check(
        name=name, says=says, section=section, reads=reads, gather=lambda gathering, _: gathering.history, judge=judge
    )


def _found() -> list[Check[Any]]:
    names = [module.name for module in iter_modules(__path__) if module.name not in _HISTORY_CHECKS]
    modules = [import_module(f".{name}", __package__) for name in names]
    return [module.CHECK for module in modules if hasattr(module, "CHECK")] + [*map(_over_history, _HISTORY_CHECKS)]


CHECKS: Mapping[str, Check[Any]] = by_section(_found())
