"""A log line whose reported event is known."""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...chaos.logs.stream import DAY_MS, RELATIVE_MS

UNDATED_MS = RELATIVE_MS + 30 * DAY_MS
"""Stamps of lines without a date are before this."""
HOUR_MS = 3_600_000
SERVERS_ZONE_MS = 8 * HOUR_MS
"""GMT+8, which servers and 5.x clients write in any zone."""


class Line(NamedTuple):
    file: str
    prefix: str
    """What a tool put before each line; "" for nothing."""
    line: int
    stamp_ms: float
    """The stamp's digits read as UTC."""
    resolution_ms: int
    zone_ms: int | None
    """How far the time zone in the line's layout is ahead of UTC; None: the layout has no zone."""
    thread: str
    writer: str
    event: str
    fields: Mapping[str, str]

    @property
    def middle_ms(self) -> float:
        """The middle of the time span that the line's time stamp covers, for example half past a whole second."""
        return self.stamp_ms + (self.resolution_ms / 2 if self.resolution_ms > 1 else 0.0)

    @property
    def is_whole(self) -> bool:
        """Whether the line has all fields of its event. A line that was cut off can lack some of these fields."""
        return _NEEDS.get(self.event, frozenset()) <= self.fields.keys()


EVENTS = tomllib.loads(Path(__file__).with_name("events.toml").read_text(encoding="utf-8"))
_NEEDS = {event: frozenset(about["needs"]) for event, about in EVENTS.items() if "needs" in about}
USED = frozenset(_NEEDS)
"""The events from which sources, clocks and rows are made."""
WRITTEN_BY: Mapping[str, str] = {event: about["by"] for event, about in EVENTS.items() if "by" in about}
"""Event to the only kind of program that writes it."""


def starts(lines: Iterable[Line], keys: Collection[str], within_ms: float) -> list[int]:
    """Return the index of the first line of each start of a program. A start begins with settings (`keys`), or, if no
    settings were logged within `within_ms` before, with the line that says that the program serves."""
    found: list[int] = []
    settings_ms: float | None = None
    for number, line in enumerate(lines):
        is_new = settings_ms is None or line.stamp_ms - settings_ms > within_ms
        if line.event == "client_created" or (line.event == "setting" and line.fields["key"] in keys):
            found += [number] if is_new else []
            settings_ms = line.stamp_ms
        elif line.event in ("name_server_boot", "broker_boot", "client_started"):
            reads_its_store = line.event == "broker_boot" and settings_ms is not None  # which may take long
            found += [number] if is_new and not reads_its_store else []
            settings_ms = None
    return found


def zone_ms_of(text: str | None) -> int | None:
    """Return a time zone (`+08:00`, `-3:30` or `UTC`) in milliseconds ahead of UTC; None for any other text."""
    if text is None:
        return None
    said = text.strip().removeprefix("GMT").removeprefix("UTC").strip()
    if said in ("", "Z") and text.strip():
        return 0
    sign = {"+": 1, "-": -1}.get(said[:1])
    hours, _, minutes = said[1:].partition(":")
    if sign is None or not hours.isdigit() or (minutes and not minutes.isdigit()) or not 0 <= int(hours) <= 14:
        return None
    return sign * (int(hours) * HOUR_MS + int(minutes or 0) * 60_000)


def zone_text(zone_ms: float) -> str:
    minutes = round(abs(zone_ms) / 60_000)
    return f"{'-' if zone_ms < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
