"""Formats values, names and tables as plain text, without Rich, because importing Rich takes 0.1 s."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..verdict import NEVER


def label(key: str) -> str:
    """Return `tolerance_ms` as "tolerance"."""
    return key.removesuffix("_ms").replace("_", " ")


def phrase(value: object, *, milliseconds: bool = False) -> str:
    """Return a value as text, and a nested value as a list of words; "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value / 1000:.1f} s" if milliseconds else f"{value:.4g}" if isinstance(value, float) else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in phrases(value, milliseconds=milliseconds))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(filter(None, (phrase(item, milliseconds=milliseconds) for item in value)))
    return str(value)


def phrases(values: Mapping[str, object], *, milliseconds: bool = False) -> Iterator[tuple[str, str]]:
    """Return (label, text) of each entry that has a value, in order. `bound_ms` is left out if the formula says that
    the thing must never happen."""
    for key, value in values.items():
        if key == "bound_ms" and values.get("formula") == NEVER:
            continue
        text = phrase(value, milliseconds=milliseconds or key.endswith("_ms"))
        if text:
            yield label(key), text


def all_of(names: Iterable[str]) -> str:
    """Join one or more texts as `a, b and c`."""
    return _joined(names, "and")


def any_of(names: Iterable[str]) -> str:
    """Join one or more texts as `a, b or c`."""
    return _joined(names, "or")


def _joined(names: Iterable[str], word: str) -> str:
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


_GAP = 2

_LEAST_LAST = 30
"""Least width of the last column for wrapping within it."""


def width_of_output() -> int | None:
    """Return the width of the terminal in columns. In a pipe the width is COLUMNS, or None (lines of any length) if
    COLUMNS is not set."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def rows_fitting(rows: Sequence[Sequence[str]], width: int | None, indent: str = "") -> Iterator[str]:
    """Return lines with the rows in aligned columns, indented. The last column is wrapped. If `width` is too small, a
    row's other cells are printed below the first cell."""
    columns = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    before_last = len(indent) + sum(columns[:-1]) + _GAP * (len(columns) - 1)
    fits = width is None or before_last + min(columns[-1], _LEAST_LAST) <= width
    below = indent + " " * _GAP
    for row in rows:
        if not fits:
            yield from _wrapped(row[0], indent, below, width)
            for cell in filter(None, row[1:]):
                yield from _wrapped(cell, below, below, width)
            continue
        first = "".join(cell.ljust(column + _GAP) for cell, column in zip(row[:-1], columns[:-1], strict=True))
        if row[-1]:
            yield from _wrapped(row[-1], indent + first, " " * before_last, width)
        else:
            yield (indent + first).rstrip()


def _wrapped(text: str, first: str, following: str, width: int | None) -> list[str]:
    if width is None:
        return [first + text]
    return textwrap.wrap(
        text,
        max(width, len(following) + 1),
        initial_indent=first,
        subsequent_indent=following,
        break_on_hyphens=False,
        break_long_words=False,
    )
