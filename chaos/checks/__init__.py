"""The checks: each is a record (check.py) with one function, `judge`.

    history rows ──► World (lives, faults) ──► oracle/ (who must be in whose table, and when)
         │                                            │
         └──► control rows, and counts of traffic ────┴──► judge, with the machine's lateness ──► Verdict

CHECKS has them by name: the `judge` of each module of the GROUPS that has one. None imports Spark.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from .check import Check, by_section

GROUPS = ("routes", "clients", "messages", "service")
"""The folders of this one that hold checks."""


def _found() -> Iterator[Check]:
    for group in (import_module(f".{group}", __package__) for group in GROUPS):
        for found in iter_modules(group.__path__):
            judge = getattr(import_module(f"{group.__name__}.{found.name}"), "judge", None)
            if isinstance(judge, Check):
                yield judge


CHECKS: Mapping[str, Check] = by_section(_found())
