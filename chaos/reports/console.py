"""Where tables are printed, and a table that fits there: one whose columns would be cut into single letters by the
terminal is printed as a paragraph a row."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from .ascii import nearest

PIPE_COLUMNS = 160
"""Of a pipe, where COLUMNS does not say how wide it is."""
_LEAST = 20


def standard_output(pipe_columns: int = PIPE_COLUMNS, *, highlight: bool = True) -> Console:
    """As wide as the terminal; in a pipe as COLUMNS says, else `pipe_columns`."""
    console = _Console(highlight=highlight)
    if console.is_terminal:
        return console
    said = os.environ.get("COLUMNS", "")
    return _Console(highlight=highlight, width=max(_LEAST, int(said)) if said.isdigit() else pipe_columns)


class _Console(Console):
    """Wraps what is written, where the encoding lacks characters: `>=` is a column wider than `≥`."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if (options or self.options).ascii_only:
            if isinstance(renderable, Text):
                renderable = Text(nearest(renderable.plain), renderable.style, justify=renderable.justify)
            elif isinstance(renderable, str):
                renderable = nearest(renderable)
        return super().render(renderable, options)


def print_fitting(console: Console, table: Table) -> None:
    """The table, or its rows as paragraphs where a word of it would not fit its column."""
    least = Measurement.get(console, console.options.update_width(10_000), table).minimum
    console.print(table if least <= console.width else paragraphs(table))


def paragraphs(table: Table) -> RenderableType:
    """Its title; of each row the first cell, and below it the others with their columns' names; its caption."""
    parts: list[RenderableType] = [] if table.title is None else [_text(table.title, "italic")]
    headers = [column.header for column in table.columns]
    for row in zip_longest(*(column.cells for column in table.columns)):
        parts.append(row[0])
        parts += _named(headers[1:], row[1:])
    return Group(*parts, *([] if table.caption is None else [_text(table.caption, "dim")]))


def _named(headers: list[RenderableType], cells: tuple[RenderableType, ...]) -> Iterator[RenderableType]:
    for header, cell in zip(headers, cells, strict=True):
        if cell:
            name = _text(header)
            yield Padding(Text.assemble(name, ": ", _text(cell)) if name.plain else cell, (0, 0, 0, 2))


def _text(said: RenderableType, style: str = "") -> Text:
    return said if isinstance(said, Text) else Text.from_markup(str(said), style=style)
