"""Names, or parts, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def all_of(names: Iterable[str]) -> str:
    """`a, b and c`; at least one."""
    return _joined(names, "and")


def any_of(names: Iterable[str]) -> str:
    """`a, b or c`; at least one."""
    return _joined(names, "or")


def _joined(names: Iterable[str], word: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
