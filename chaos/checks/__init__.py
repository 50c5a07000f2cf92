"""The checks: each is a record (check.py) with one function, `judge`.

    history rows ──► World (lives, faults) ──► oracle/ (who must be in whose table, and when)
         │                                            │
         └──► control rows, and counts of traffic ────┴──► judge, with the machine's lateness ──► Verdict

CHECKS has them by name: every module of the GROUPS that has a CHECK. None imports Spark.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from .check import Check, by_section

GROUPS = ("routes", "clients", "messages", "service")
"""The folders of this one that hold checks."""


def _found() -> list[Check[Any]]:
    groups = [import_module(f".{group}", __package__) for group in GROUPS]
    modules = [
        import_module(f"{group.__name__}.{found.name}") for group in groups for found in iter_modules(group.__path__)
    ]
    return [module.CHECK for module in modules if hasattr(module, "CHECK")]


CHECKS: Mapping[str, Check[Any]] = by_section(_found())
