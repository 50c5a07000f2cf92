"""Rows of a list in aligned columns; where the terminal is too narrow for them, a paragraph a row.

Without Rich (reports/console.py has its tables), which would cost a command that prints a list a tenth of a second.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence

_GAP = 2
_LEAST_LAST = 30
"""Of columns, for the last cell to be wrapped beside the others."""


def width_of_output() -> int | None:
    """Columns of the terminal; in a pipe what COLUMNS says, else None, which is a line a row however long."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def rows_fitting(rows: Sequence[Sequence[str]], width: int | None, indent: str = "") -> Iterator[str]:
    """The rows' lines, each indented. The last cell is wrapped in its column, if that leaves it enough room; else each
    row is its first cell and below it the others."""
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
