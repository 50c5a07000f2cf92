"""Prints verdicts and other tables on the terminal. If the terminal is too narrow for a table, each row becomes a
paragraph.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..oracle.windows import legend
from ..verdict import Validity, Verdict
from .groups import exercised_line, groups
from .sentences import (
    allowed_sentence,
    clients_sentence,
    measured_sentences,
    nearest_sentence,
    undecided_sentences,
    wrong_sentence,
)
from .text import phrases, width_of_output

PIPE_COLUMNS = 160
"""Width of a pipe if COLUMNS does not say it."""
_LEAST = 20


def standard_output(pipe_columns: int = PIPE_COLUMNS, *, highlight: bool = True) -> Console:
    """Return a console for stdout, as wide as the terminal. In a pipe the width is COLUMNS, or `pipe_columns` if
    COLUMNS is not set."""
    console = Console(highlight=highlight)
    if console.is_terminal:
        return console
    return Console(highlight=highlight, width=max(_LEAST, width_of_output() or pipe_columns))


def print_rows(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    show_lines: bool = False,
) -> None:
    """Print a table of these rows; on a narrow terminal, print each row as a paragraph."""
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left", show_lines=show_lines)
    for at, column in enumerate(columns):
        table.add_column(column, no_wrap=show_lines and not at)
    for row in rows:
        table.add_row(*row)
    print_fitting(console, table)


def print_fitting(console: Console, table: Table) -> None:
    """Print the table; if a word would not fit its column, print each row as a paragraph."""
    least = Measurement.get(console, console.options.update_width(10_000), table).minimum
    console.print(table if least <= console.width else paragraphs(table))


def paragraphs(table: Table) -> RenderableType:
    """Return the table's title, rows and caption as paragraphs. Each row is the first cell, then a line `column: cell`
    for every other cell."""
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


LONGEST = 60

NARROW = 100
"""Below so many columns a check is a paragraph, not a row."""

STYLE = {Validity.VALID: "green", Validity.INVALID: "bold red", Validity.UNKNOWN: "yellow"}


def brief(values: Mapping[str, object]) -> str:
    """Return a verdict's numbers and short texts for the terminal. Long values are only in report.html and
    verdicts.json."""
    flat = {key: value for key, value in values.items() if isinstance(value, int | float | str)}
    return ", ".join(f"{name} {text}" for name, text in phrases(flat) if len(text) <= LONGEST)


def measured(v: Verdict) -> str:
    """Return the check's measured values in a line or two. If the check is not VALID, the violation comes first."""
    undecided = undecided_sentences(v)
    told = [sentence for sentence in measured_sentences(v) if sentence not in undecided]
    said = "; ".join(filter(None, ("; ".join(told[:2]) or brief(v.measured), *undecided)))
    return ". ".join(part for part in ("" if v.why_is_example else wrong_sentence(v), said) if part)


def allowed(v: Verdict) -> str:
    """Return the check's allowed values in a line or two; for an UNKNOWN check, why it is undecided."""
    if v.verdict is Validity.UNKNOWN and v.why:
        return v.why
    return "; ".join(filter(None, (allowed_sentence(v), nearest_sentence(v))))


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Return a table with a row per check: verdict, number of things examined, violations, measured and allowed
    values."""
    table = Table(caption=legend_line(verdicts) or None, caption_justify="left")
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("examined", justify="right")
    table.add_column("violations", justify="right")
    table.add_column("measured")
    table.add_column("allowed")
    for v in verdicts:
        verdict = f"[{STYLE[v.verdict]}]{v.verdict}[/]"
        table.add_row(v.name, verdict, f"{v.examined:,}", f"{v.violations:,}", measured(v), allowed(v))
    return table


def _whose(verdicts: Sequence[Verdict]) -> str:
    about = max((v.clients for v in verdicts), key=len, default=())
    return f"clients: {clients_sentence(about)}" if about else ""


def left_out_line(left_out: Mapping[str, str], *, full: bool = True) -> str:
    """Return `left out, because there was nothing to examine: CHECK (why); CHECK (why)`; "" if no check was left out.
    Without `full`: the checks' names, and no reasons."""
    named = "; ".join(f"{name} ({why})" for name, why in left_out.items())
    named = named if full else f"{', '.join(left_out)} (--full says why)"
    return f"left out, because there was nothing to examine: {named}" if left_out else ""


def legend_line(verdicts: Sequence[Verdict]) -> str:
    """Return a line that explains the letters in the verdicts' formulas, such as R or E; "" if no formula has a
    letter."""
    values = {symbol: value for v in verdicts for symbol, value in v.allowed.get("timers", {}).items()}
    known = legend((str(v.allowed.get("formula") or "") for v in verdicts), values)
    return "; ".join(f"{symbol}: {meaning}" for symbol, meaning in known.items())


def print_answers(verdicts: Sequence[Verdict], lines: Sequence[str], *, full: bool = False) -> None:
    """Print the answers, then `exercised` and one line per group of checks. Below a group's line is a table of the
    group's checks that are not VALID, without checks that only repeat another check's violation. With `full`, the table
    has all checks of the group. In a pipe, lines are not wrapped."""
    console = standard_output(highlight=False)
    for line in filter(None, (*lines, exercised_line(verdicts))):
        console.print(_coloured(line), soft_wrap=not console.is_terminal)
    found = groups(verdicts)
    widest = max((len(group.label) for group in found), default=0)
    for group in found:
        console.print(_coloured(f"  {group.label.ljust(widest)}  {group.counted}"))
        if shown := group.verdicts if full else group.told:
            table = verdict_table(shown)
            console.print(paragraphs(table) if console.width < NARROW else table)
        if group.again and not full:
            beside = " " * (widest + 4)
            again = (
                Padding(group.again_line, (0, 0, 0, len(beside))) if console.is_terminal else beside + group.again_line
            )
            console.print(again, soft_wrap=not console.is_terminal)
    if said := _whose(verdicts if full else [v for group in found if group.is_judged for v in group.wrong]):
        console.print(Text(said, style="dim"))


def _coloured(line: str) -> Text:
    text = Text(line)
    for validity, style in STYLE.items():
        text.highlight_regex(rf"\b{validity}\b", style)
    return text
