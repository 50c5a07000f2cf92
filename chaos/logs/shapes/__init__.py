"""What RocketMQ's programs write, by event: text ─► (event, fields). One file a program; 4.9 and 5.x side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from . import broker, channels, client, name_server, other_clients, quiet
from .cut import fields_of_cut
from .quiet import COUNTED as COUNTED
from .quiet import QUIET as QUIET

_ALL = (
    *name_server.SHAPES,
    *channels.SHAPES,
    *broker.SHAPES,
    *client.SHAPES,
    *other_clients.CPP,
    *other_clients.NODE,
    *quiet.SHAPES,
)

EVENTS: tuple[str, ...] = tuple(
    dict.fromkeys([*(event for event, _ in _ALL), *(event for event, _ in other_clients.GO.values()), "setting"])
)
"""Every kind of event there is."""


class _Shape(NamedTuple):
    event: str
    matches: re.Pattern[str]
    text: str


_NAMED = re.compile(r"\(\?P<\w+>")


class _Shapes(NamedTuple):
    """Those that may begin alike, and one pattern of all: its group tells which it is, the first that fits."""

    members: tuple[_Shape, ...]
    any_of: re.Pattern[str]

    def of(self, text: str) -> _Shape | None:
        found = self.any_of.fullmatch(text)
        return None if found is None else self.members[(found.lastindex or 1) - 1]


_FIRST_WORDS: Mapping[str, tuple[str, ...]] = {
    "name_servers_said": ("User", "user", "Set"),
    "producer_expired": ("ProducerManager#scanNotActiveChannel:", "SCAN:", "remove"),
    "rebalanced": ("client", "rebalanced", "[mq:consumer]"),
    "registered": ("register", "Registering"),
    "slave_sync_failed": (
        "SyncTopicConfig",
        "SyncConsumerOffset",
        "SyncDelayOffset",
        "SyncSubscriptionGroup",
        "SyncMessageRequestMode",
        "SyncTimerMetrics",
        "syncTimerCheckPoint",
    ),
    "server_stops": ("Shutdown", "shutdown"),
    "server_stopped": ("Shutdown", "shutdown"),
    "channel_forgotten_before": ("closeChannel:", "eventCloseChannel:"),
    "choice_timeout": ("getAndCreateNameserverChannel:", "CreateNameServerTransport", "CreateNameserverTransport"),
    "error_swallowed": name_server.SWALLOW,
}
"""Of shapes whose first word is not the same in every line."""

_SECOND_WORDS: Mapping[str, str] = {
    "broker_isolated": "will",
    "broker_unreachable": "is",
    "broker_reachable": "is",
    "service_started": "service",
}
"""Of shapes that begin with a name."""


def _by_word() -> tuple[Mapping[str, _Shapes], Mapping[str, _Shapes]]:
    """First word of a text → the shapes that begin with it (`[`: with any word in brackets); second word → those."""
    first: dict[str, list[_Shape]] = defaultdict(list)
    second: dict[str, list[_Shape]] = defaultdict(list)
    for event, text in _ALL:
        shape = _Shape(event, re.compile(text, re.DOTALL), text)
        if event in _FIRST_WORDS:
            for each in _FIRST_WORDS[event]:
                first[each].append(shape)
        elif event in _SECOND_WORDS:
            second[_SECOND_WORDS[event]].append(shape)
        else:
            word = text.split(" ")[0]
            first["[" if word.startswith(r"\[[") else word.replace("\\", "").rstrip("?")].append(shape)
    return _together(first), _together(second)


def _together(found: Mapping[str, list[_Shape]]) -> Mapping[str, _Shapes]:
    return {
        word: _Shapes(
            tuple(shapes), re.compile("|".join(f"({_NAMED.sub('(?:', one.text)})" for one in shapes), re.DOTALL)
        )
        for word, shapes in found.items()
    }


_OF_FIRST, _OF_SECOND = _by_word()
_SPACES = re.compile(r"\s+")
_MARKS_OF_A_CUT = ("...", "…")
_SETTING = re.compile(r"(?P<key>[A-Za-z][\w.]*) ?= ?(?P<value>.*)", re.DOTALL)


def event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The event of a record's text with its fields; None: no known shape."""
    text = text.rstrip("\r\n")
    if (shape := _shape_of(text)) is None or (found := shape.matches.fullmatch(text)) is None:
        return None
    return shape.event, _fields(found)


def kind_of(text: str) -> str | None:
    """The event alone, of a text without an end of line: half the work."""
    shape = _shape_of(text)
    return None if shape is None else shape.event


def _shape_of(text: str) -> _Shape | None:
    first, _, rest = text.partition(" ")
    if (shapes := _OF_FIRST.get(first)) is not None and (shape := shapes.of(text)) is not None:
        return shape
    if (shapes := _OF_SECOND.get(rest.partition(" ")[0])) is not None and (shape := shapes.of(text)) is not None:
        return shape
    if first.startswith("["):
        return _OF_FIRST["["].of(text)
    if (colon := first.find(":") + 1) and colon < len(first):  # `disconnect:10.0.0.9:9876 completely`
        return None if (shapes := _OF_FIRST.get(first[:colon])) is None else shapes.of(text)
    return None


def _fields(found: re.Match[str]) -> dict[str, str]:
    # a field that stands in one of two places has the second name with an underscore
    return {name.rstrip("_"): said for name, said in found.groupdict().items() if said is not None}


def setting_of(text: str) -> tuple[str, dict[str, str]] | None:
    """`key=value`, as the servers' main thread prints each of its settings when it starts."""
    found = _SETTING.fullmatch(text.rstrip("\r\n"))
    return None if found is None else ("setting", {"key": found["key"], "value": found["value"]})


def edited_event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The event of a text that somebody pasted: with spaces too many, or without its tail (field `cut`)."""
    text = _SPACES.sub(" ", text).strip()
    if (found := event_of(text)) is not None:
        return found
    for mark in _MARKS_OF_A_CUT:
        text = text.removesuffix(mark)
    shapes = _OF_FIRST.get(text.partition(" ")[0])
    for shape in () if shapes is None else shapes.members:
        if (fields := fields_of_cut(shape.text, text)) is not None:
            return shape.event, fields | {"cut": "true"}
    return None
