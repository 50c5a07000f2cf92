"""Tables of `nemesrv compare` below the one of tests: windows, routes at the end, and what each check said."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from ...reports.terminal import measured, print_fitting
from ...verdict import Verdict
from .measured import Shown


def print_windows(console: Console, windows: Sequence[Shown], alpha: float) -> None:
    """Median and interval of each, and B − A."""
    if not windows:
        return
    held = f"{100 * (1 - alpha):g} %"
    table = Table(title=f"windows: median [{held}]; described, not tested", title_justify="left")
    for column in ("window", "values", "A", "B", f"B − A [{held}]"):
        table.add_column(column)
    for each in windows:
        cells = [_median(*both) for both in zip(each.median, each.interval, strict=True)]
        apart = "" if each.difference is None else f"{_s(each.difference[0])} {_ends(each.difference[1:])}"
        table.add_row(each.name, f"{each.n[0]} / {each.n[1]}", *cells, apart)
    print_fitting(console, table)


def print_routes(console: Console, topics: Mapping[str, tuple[int, int]], known: bool) -> None:
    """Whether every NameServer of both sides ended with the same routes, whatever the ports."""
    if not known:
        return
    if not topics:
        console.print("routes at the end: the same at every NameServer of both sides")
        return
    told = "; ".join(f"{topic} ({a} / {b} different ones)" for topic, (a, b) in list(topics.items())[:10])
    more = f" and {len(topics) - 10} more" if len(topics) > 10 else ""
    console.print(f"routes at the end differ (A / B): {told}{more}", highlight=False)


def print_checks(console: Console, a: Sequence[Sequence[Verdict]], b: Sequence[Sequence[Verdict]]) -> None:
    """What each check said of the runs of each side, and measured in the worst, of runs that were judged."""
    names = dict.fromkeys(v.name for run in (*a, *b) for v in run)
    if not names:
        return
    table = Table(title="checks: verdicts, and what was measured in the worst run", title_justify="left")
    for column in ("check", "A", "B"):
        table.add_column(column)
    for name in names:
        table.add_row(name, *(_said([v for run in side for v in run if v.name == name]) for side in (a, b)))
    print_fitting(console, table)


_WORST = ("VALID", "UNKNOWN", "INVALID")


def _said(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "–"
    counted = Counter(str(v.verdict) for v in verdicts)
    worst = max(verdicts, key=lambda v: _WORST.index(str(v.verdict)))
    told = ", ".join(f"{count} {word}" for word, count in counted.items())
    return ": ".join(filter(None, (told, measured(worst))))


def _median(median: float | None, interval: tuple[float, float] | None) -> str:
    if median is None:
        return "–"
    return _s(median) if interval is None else f"{_s(median)} {_ends(interval)}"


def _ends(interval: Sequence[float]) -> str:
    return f"[{_s(interval[0])} .. {_s(interval[1])}]"


def _s(value_ms: float) -> str:
    if not math.isfinite(value_ms):
        return "∞" if value_ms > 0 else "−∞"
    return f"{value_ms / 1000:.2f} s" if abs(value_ms) >= 100 else f"{value_ms:.1f} ms"
