"""What a folder of logs tells of one subject, as a sequence of events: to compare written logs with Apache's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby
from pathlib import Path

from nemesrv.chaos.logs.frames import opened
from nemesrv.chaos.logs.lines import LogEvent, events_of


def events_in(folder: Path) -> list[LogEvent]:
    """Of every log below the folder, by their stamps."""
    files = sorted(path for path in folder.rglob("*") if path.name.endswith((".log", ".log.gz")))
    found: list[LogEvent] = []
    for path in files:
        with opened(str(path)) as lines:
            found += events_of(path.name, lines)
    return sorted(found, key=lambda event: (event.time is None, event.time))


def sequence(events: Iterable[LogEvent], kinds: Collection[str], *about: str) -> list[str]:
    """The events of these kinds whose fields have one of `about`; those of one second together, and told once in a row.

    Threads write within a second in any order.
    """
    kept = [
        e for e in events if e.event in kinds and any(word in value for value in e.fields.values() for word in about)
    ]
    told = ["+".join(sorted({e.event for e in same})) for _, same in groupby(kept, key=lambda e: str(e.time)[:19])]
    return [one for one, _ in groupby(told)]
