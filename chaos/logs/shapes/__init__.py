"""What RocketMQ's programs write, by event: text ─► (event, fields). One file a program; 3.0 to 5.4 side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from . import broker, channels, client, controller, name_server, other_clients, quiet

QUIET_SHAPES = quiet.COMMON

QUIET = frozenset(event for event, _ in QUIET_SHAPES) | {"watermark", "separator"}

COUNTED = frozenset({"scanned", "topic_removed"})
"""One event stands for a run of them; of `topic_removed` those of a topic that had no row there."""


_ALL = (
    *name_server.SHAPES,
    *channels.SHAPES,
    *broker.SHAPES,
    *client.SHAPES,
    *other_clients.CPP,
    *controller.SHAPES,
    *other_clients.NODE,
    *QUIET_SHAPES,
    *quiet.SELDOM,
)


class _Shape(NamedTuple):
    event: str
    text: str

    @property
    def matches(self) -> re.Pattern[str]:
        return _compiled(self.text)


@cache
def _compiled(text: str) -> re.Pattern[str]:
    """When a line first asks for it: most of the shapes of all versions stand in no log."""
    return re.compile(text, re.DOTALL)


_NAMED = re.compile(r"\(\?P<\w+>")


class _Shapes:
    """Those that may begin alike, and one pattern of all: its group tells which it is, the first that fits."""

    __slots__ = ("_known", "members", "text")

    def __init__(self, members: tuple[_Shape, ...], text: str) -> None:
        self.members, self.text = members, text
        self._known: re.Pattern[str] | None = None

    @property
    def any_of(self) -> re.Pattern[str]:
        return self._known or _compiled(self.text)

    def of(self, text: str) -> _Shape | None:
        if (known := self._known) is None:
            known = self._known = _compiled(self.text)
        found = known.fullmatch(text)
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
        "syncTopicConfig",
        "syncConsumerOffset",
        "syncDelayOffset",
        "syncSubscriptionGroup",
    ),
    "conflict_ignored": ("Registering", "Registered"),
    "slave_synced": ("Update", "update"),
    "topic_created": ("Create", "create"),
    "client_created": ("Created", "created"),
    "request_failed": ("invokeSync:", "invokeAsync:", "invokeOneway:"),
    "write_failed": ("send", "write"),
    "heartbeat_of_nobody": ("sending", "sendHeartbeatToAllBrokerV2", "sendHeartbeatToBroker", "[mq:client]"),
    "heartbeat": ("send", "sendHeartbeatToAllBrokerV2", "sendHeartbeat", "wait", "get", "[mq:client]"),
    "server_stops": ("Shutdown", "shutdown"),
    "server_stopped": ("Shutdown", "shutdown"),
    "channel_forgotten_before": ("closeChannel:", "eventCloseChannel:"),
    "choice_timeout": ("getAndCreateNameserverChannel:", "CreateNameServerTransport", "CreateNameserverTransport"),
    "error_swallowed": name_server.SWALLOW,
    "separator": ("",),
}
"""Of shapes whose first word is not the same in every line."""

_SECOND_WORDS: Mapping[str, str] = {
    "broker_isolated": "will",
    "broker_unreachable": "is",
    "broker_reachable": "is",
    "service_started": "service",
}
"""Of shapes that begin with a name."""

_NAME = r"\S+"
"""What a shape begins with that says in its own text by which word it goes on."""


def _by_word() -> tuple[Mapping[str, _Shapes], Mapping[str, _Shapes]]:
    """First word of a text → the shapes that begin with it (`[`: with any word in brackets); second word → those."""
    first: dict[str, list[_Shape]] = defaultdict(list)
    second: dict[str, list[_Shape]] = defaultdict(list)
    for event, text in _ALL:
        shape = _Shape(event, text)
        if event in _FIRST_WORDS:
            for each in _FIRST_WORDS[event]:
                first[each].append(shape)
        elif event in _SECOND_WORDS:
            second[_SECOND_WORDS[event]].append(shape)
        elif (words := text.split(" "))[0] == _NAME:
            second[words[1].removesuffix(".*")].append(shape)
        else:
            word = words[0].removesuffix(".*")
            is_bracket = word.startswith(r"\[[") or (word.startswith(r"\[") and event in QUIET)
            first["[" if is_bracket else word.replace("\\", "").rstrip("?")].append(shape)
    return _together(first), _together(second)


def _together(found: Mapping[str, list[_Shape]]) -> Mapping[str, _Shapes]:
    return {
        word: _Shapes(tuple(shapes), "|".join(f"({_NAMED.sub('(?:', one.text)})" for one in shapes))
        for word, shapes in found.items()
    }


_OF_FIRST, _OF_SECOND = _by_word()
_MARK = re.compile(r"[:#](?=.)")
_ENDS = ",:.-"
_SPACES = re.compile(r"\s+")
_MARKS_OF_A_CUT = ("...", "…")
_SETTING = re.compile(r"(?P<key>[A-Za-z][\w.]*) ?= ?(?P<value>.*)", re.DOTALL)


def event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The event of a record's text with its fields; None: no known shape."""
    text = text.rstrip("\r\n")
    if (shape := _shape_of(text)) is None or (found := shape.matches.fullmatch(text)) is None:
        return None
    return shape.event, _fields(found)


def _shape_of(text: str) -> _Shape | None:
    first, _, rest = text.partition(" ")
    if (shapes := _OF_FIRST.get(first)) is not None and (shape := shapes.of(text)) is not None:
        return shape
    if (shapes := _OF_SECOND.get(rest.partition(" ")[0])) is not None and (shape := shapes.of(text)) is not None:
        return shape
    if first.startswith("[") and (shape := _OF_FIRST["["].of(text)) is not None:
        return shape
    if (":" in first or "#" in first) and (
        mark := _MARK.search(first)
    ) is not None:  # `disconnect:10.0.0.9:9876 completely`
        return None if (shapes := _OF_FIRST.get(first[: mark.end()])) is None else shapes.of(text)
    if first[-1:] in _ENDS and (shapes := _OF_FIRST.get(first.rstrip(_ENDS))) is not None:
        return shapes.of(text)
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


_TOKEN = re.compile(
    r"\\.|\[(?:\\.|\[\^?\]?|[^\]\\])*\]|.",
    re.S,
)
_HALF = r"(?:\S*|(?:QueueData|TopicRouteData|DataVersion|MessageQueue|BrokerIdentityInfo|TopicConfig) ?\[.*)"
"""What stands at the cut: a part of a word, or of an object that is printed."""

_SPELT = "(?P<spelt>"
"""A word that versions spell each in its way: no field of a cut line."""

_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")


def tokens_of(pattern: str) -> list[str]:
    """The parts of a regular expression that stand one after the other, each with what says how often it comes."""
    found: list[str] = []
    at = 0
    while at < len(pattern):
        end = _group_end(pattern, at) if pattern[at] == "(" else _plain_end(pattern, at)
        often = _QUANTIFIER.match(pattern, end)
        end = end if often is None else often.end()
        found.append(pattern[at:end])
        at = end
    return found


def _plain_end(pattern: str, at: int) -> int:
    found = _TOKEN.match(pattern, at)
    return at + 1 if found is None else found.end()


def _group_end(pattern: str, at: int) -> int:
    depth = 0
    while at < len(pattern):
        if pattern[at] in "()":
            depth += 1 if pattern[at] == "(" else -1
            at += 1
            if depth == 0:
                return at
        else:
            at = _plain_end(pattern, at)
    return at


@cache
def cut_pattern(pattern: str) -> re.Pattern[str] | None:
    """Matches what begins like the shape and ends anywhere behind its first field; None for a shape without fields."""
    tokens = tokens_of(pattern)
    first = next((number for number, token in enumerate(tokens) if "(?P<" in token.replace(_SPELT, "")), None)
    if first is None or first + 1 >= len(tokens):
        return None
    rest = ""
    for token in reversed(tokens[first + 2 :]):
        rest = f"(?:{token}{rest})?"
    return re.compile("".join(tokens[: first + 2]) + rest + _HALF, re.S)


def fields_of_cut(pattern: str, text: str) -> dict[str, str] | None:
    """What a line says that is cut: a field in its last word may be half of one, and is none."""
    known = cut_pattern(pattern)
    found = None if known is None else known.fullmatch(text)
    if found is None:
        return None
    said = {
        name.rstrip("_"): value
        for name, value in found.groupdict().items()
        if value is not None and name != "spelt" and " " in text[found.end(name) :]
    }
    return said or None
