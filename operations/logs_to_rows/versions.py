"""Finds the version of RocketMQ that wrote a log, by a line that states it or by the wording of lines. Pure: no I/O."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .line import EVENTS, Line

_Version = tuple[int, ...]
_FIRST, _NEWEST = (3, 0), (5, 9)
_CLIENT_SAYS = re.compile(r"V(\d+)_(\d+)_(\d+)")
_JAR = re.compile(r"rocketmq-[a-z]+-(\d+)\.(\d+)\.(\d+)")
"""In stack traces, where logback prints the jar of a class."""
_LOOKED_AT = 20_000


class _Tell(NamedTuple):
    """Lines of an event that fit this are of these versions only."""

    fields: Sequence[str]
    """`key` or `key=value`: the line has the field; `-key`: it lacks the field, and is not cut."""
    since: _Version
    until: _Version

    def fits(self, said: Mapping[str, str]) -> bool:
        lacks = {word[1:] for word in self.fields if word[0] == "-"}
        if lacks and not said.keys().isdisjoint(lacks | {"cut"}):
            return False
        has = (word.partition("=") for word in self.fields if word[0] != "-")
        return all(said.get(key) == value if sign else key in said for key, sign, value in has)


def _number(text: str) -> _Version:
    return tuple(map(int, text.split(".")))


_TELLS = {
    event: [_Tell(fields.split(), _number(since), _number(until)) for fields, since, until in about["versions"]]
    for event, about in EVENTS.items()
    if "versions" in about
}


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
        for tell in _TELLS.get(line.event, ()):
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
