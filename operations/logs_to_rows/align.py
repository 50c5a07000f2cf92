"""Finds each log's time zone and clock offset: as the user gives it, as the log states it, or from events that two logs
have. Pure: no I/O.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ...chaos.errors import ScenarioError, one_of
from .book import Book
from .clocks import QUARTER_MS, SET_ALIKE_MS, UNSET_MS, LogClock, solve
from .line import HOUR_MS, SERVERS_ZONE_MS, zone_text
from .marks import known_hosts, marks_of
from .sources import Source

_ZONES_MS = 15 * HOUR_MS


def aligned(
    sources: Sequence[Source],
    book: Book,
    zones: Mapping[str, int] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> list[str]:
    """Set each log's time zone and clock offset, and how exact the offset is. Returns a warning for each two logs
    whose clock difference contradicts the result, and for each log whose clock is not known. `zones` and
    `offsets` are the user's values in milliseconds; `chosen` explains the keys."""
    zones, offsets = zones or {}, offsets or {}
    clocks = []
    all_marks = known_hosts([marks_of(source, book) for source in sources], sources)
    for source, told in zip(sources, all_marks, strict=True):
        zone, offset = chosen(source, zones), chosen(source, offsets)
        own = next((line.zone_ms for line in source.lines if line.zone_ms is not None), None)
        source.zone_ms = int(zone) if zone is not None else own if own is not None else SERVERS_ZONE_MS
        source.zone_by = "given" if zone is not None else "layout" if own is not None else "inferred"
        source.offset_ms = offset or 0.0
        fixed = (zone is not None or own is not None) and offset is not None
        shift = source.zone_ms + source.offset_ms
        marks = [mark._replace(at_ms=mark.at_ms - shift) for mark in told]
        resolution = min((line.resolution_ms for line in source.lines), default=1000)
        ends = [line.middle_ms - shift for line in (source.lines[0], source.lines[-1])]
        name = source.name or source.key
        clocks.append(LogClock(name, resolution, marks, ends[0], ends[1], given=fixed, zoned=own is not None))
    said = solve(clocks)
    for source, clock in zip(sources, clocks, strict=True):
        _set(source, clock, offset_given=chosen(source, offsets) is not None)
    return [*said, *(sentence for source in sources if (sentence := _unsure(source, len(sources))))]


def chosen(source: Source, given: Mapping[str, float]) -> float | None:
    """Return the value in `given` for this log. A key of `given` is the name of a node, file or folder, or `*` for all
    logs."""
    for name, value in given.items():
        in_path = re.compile(rf"(?:^|/){re.escape(name)}(?:/|$)")
        if name in (source.name, source.key) or any(map(in_path.search, source.files)):
            return value
    return given.get("*")


def refuse_unknown(option: str, given: Mapping[str, float], sources: Sequence[Source]) -> None:
    """Raise ScenarioError for a key of `given` (see `chosen`) that is in none of these logs."""
    for name, value in given.items():
        if sources and all(chosen(source, {name: value}) is None for source in sources):
            known = one_of(sorted({source.name or source.key for source in sources}), name)
            raise ScenarioError(option, "", repr(name), f"a file or a folder of these logs, or {known}")


def _set(source: Source, clock: LogClock, *, offset_given: bool) -> None:
    source.bound_ms = clock.bound_ms if clock.bound_ms < 1e12 else 0.0
    source.certainty, source.why, source.pinned = clock.certainty, clock.why, clock.pinned
    shift = clock.shift_ms
    if offset_given or not shift:
        source.offset_ms += shift
        return
    whole = round(shift / QUARTER_MS) * QUARTER_MS
    is_zone = abs(shift) >= QUARTER_MS / 2 and abs(shift) <= _ZONES_MS and abs(shift - whole) <= 420_000
    is_zone = is_zone and not (source.zone_by == "layout" and clock.certainty == "unsure")
    if is_zone and source.zone_by != "given" and -12 * HOUR_MS <= source.zone_ms + whole <= 14 * HOUR_MS:
        source.zone_ms += int(whole)
        source.zone_by = "inferred"
        shift -= whole
        if abs(shift) <= SET_ALIKE_MS:
            shift = 0.0
    source.offset_ms += shift


def _unsure(source: Source, count: int) -> str:
    name = source.name or source.key
    if abs(source.offset_ms) >= UNSET_MS:
        shown = datetime.fromtimestamp(source.lines[0].stamp_ms / 1000, UTC).date() if source.lines else "?"
        return f"the clock of {name} was not set (it shows {shown}): its times are told by {source.why}"
    if count > 1 and source.certainty == "unsure":
        more = " and its zone" if source.zone_by == "inferred" else ""
        zone = zone_text(source.zone_ms)
        return (
            f"the clock of {name}{more} cannot be told from the logs ({source.why}): taken as {zone}, "
            f"{source.offset_ms / 1000:+.1f} s; say --zone {name}=+08:00 or --offset {name}=+1.5s"
        )
    return ""
