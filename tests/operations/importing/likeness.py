"""What a folder of logs tells of one subject, as a sequence of events: to compare written logs with Apache's own."""

from collections.abc import Collection, Iterable
from itertools import groupby
from pathlib import Path

from nemesrv.chaos.logs.reading import read_plain
from nemesrv.chaos.logs.stream import LogRow


def events_in(folder: Path) -> list[LogRow]:
    """Of every log below the folder, by their stamps."""
    return sorted(read_plain([folder]).rows, key=lambda row: (row.stamp_ms is None, row.stamp_ms))


def sequence(events: Iterable[LogRow], kinds: Collection[str], *about: str) -> list[str]:
    """The events of these kinds whose fields have one of `about`; those of one second together, and told once in a row.

    Threads write within a second in any order.
    """
    kept = [
        e for e in events if e.event in kinds and any(word in value for value in e.fields.values() for word in about)
    ]
    told = [
        "+".join(sorted({e.event for e in same})) for _, same in groupby(kept, key=lambda e: (e.stamp_ms or 0) // 1000)
    ]
    return [one for one, _ in groupby(told)]
