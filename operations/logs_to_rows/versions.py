"""Finds the version of RocketMQ that wrote a log, by a line that states it or by the wording of lines. Pure: no I/O."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from .line import Line

_Version = tuple[int, ...]
_FIRST, _LAST_4, _NEWEST = (3, 0), (4, 9, 8), (5, 9)
_CLIENT_SAYS = re.compile(r"V(\d+)_(\d+)_(\d+)")
_JAR = re.compile(r"rocketmq-[a-z]+-(\d+)\.(\d+)\.(\d+)")
"""In stack traces, where logback prints the jar of a class."""
_LOOKED_AT = 20_000


class _Tell(NamedTuple):
    """Lines of this event with, or without, these fields are of these versions only."""

    event: str
    fits: Callable[[Mapping[str, str]], bool]
    since: _Version
    until: _Version


def _has(key: str, value: str | None = None) -> Callable[[Mapping[str, str]], bool]:
    return lambda fields: key in fields if value is None else fields.get(key) == value


def _lacks(*keys: str) -> Callable[[Mapping[str, str]], bool]:
    return lambda fields: not fields.keys() & set(keys) and "cut" not in fields


_TELLS = (
    _Tell("broker_registered", _has("spelt", "registerd"), _FIRST, (4, 1, 0)),
    _Tell("broker_registered", _lacks("cluster"), _FIRST, _LAST_4),
    _Tell("broker_registered", _lacks("spelt"), (4, 2, 0), _NEWEST),
    _Tell("broker_registered", _has("cluster"), (5, 0), _NEWEST),
    _Tell("master_address", lambda fields: True, (4, 9, 4), _LAST_4),
    _Tell("registered", _lacks("spelt", "id"), _FIRST, (4, 4, 0)),
    _Tell("registered", _has("id"), (4, 5), _LAST_4),
    _Tell("registered", _has("spelt"), (5, 0), _NEWEST),
    _Tell("channel_destroyed", _has("broker_info"), (5, 0), _NEWEST),
    _Tell("channel_destroyed", _has("address"), _FIRST, _LAST_4),
    _Tell("scanned", lambda fields: True, (5, 0), _NEWEST),
    _Tell("route_changed", _has("spelt", "odl"), _FIRST, (3, 2)),
    _Tell("client_created", lambda fields: "config" in fields and "version" not in fields, _FIRST, (4, 3, 0)),
    _Tell("name_server_boot", _lacks("serialize"), _FIRST, (3, 5)),
    _Tell("broker_boot", _lacks("serialize"), _FIRST, (3, 5)),
)
_BY_EVENT = {event: [one for one in _TELLS if one.event == event] for event in {one.event for one in _TELLS}}


class Written(NamedTuple):
    """The RocketMQ version that wrote a log. `said` is, for example, `4.8.0`, `4.5 to 4.9` or `5.x`; `by` is the log
    line that shows the version."""

    said: str
    by: Line


def version_of(lines: Iterable[Line]) -> Written | None:
    """Return the log's RocketMQ version: the version that most lines state. If no line states a version, return the
    versions that the wording of the lines allows; None if the wording shows nothing or contradicts itself."""
    exact: Counter[_Version] = Counter()
    first: dict[_Version, Line] = {}
    since: _Version = _FIRST
    until: _Version = _NEWEST
    by = None
    for number, line in enumerate(lines):
        if number > _LOOKED_AT:
            break
        for pattern, text in ((_CLIENT_SAYS, line.fields.get("version")), (_JAR, line.fields.get("more"))):
            if text and (found := pattern.search(text)) is not None:
                known = tuple(map(int, found.groups()))
                exact[known] += 1
                first.setdefault(known, line)
        for tell in _BY_EVENT.get(line.event, ()):
            if (tell.since > since or tell.until < until) and tell.fits(line.fields):
                since, until, by = max(since, tell.since), min(until, tell.until), line
    if exact:
        best = exact.most_common(1)[0][0]
        return Written(".".join(map(str, best)), first[best])
    if by is None or since > until:
        return None
    return Written(_text(since, until), by)


def _text(since: _Version, until: _Version) -> str:
    if until == _NEWEST and since[0] == until[0]:
        return "5.x"
    low, high = (".".join(map(str, one)) for one in (since, until))
    return f"since {low}" if until == _NEWEST else f"up to {high}" if since == _FIRST else f"{low} to {high}"
