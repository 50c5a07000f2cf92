"""The rows of topics that are written alike, without parsing each of them. Pure.

A broker's ten thousand topics have a handful of settings among them, and the library that writes them as JSON writes
the same settings in the same bytes. What stands around the name of a topic is its shape:

    "  a  ":{"order":false,"perm":6, ... ,"topicName":"  a  ","topicSysFlag":0,"writeQueueNums":8},"  b  ":{"order ...
     name |--|                                         name                                       name |--|
          mark ------------------ middle -------------|    |---------------- after ---------------|

So one topic of each shape is parsed, and the others are only compared with it: a text that consists of names and
shapes, byte for byte, is what JSON would read from it. Other texts are not read here.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from .route import QueueData, Row

CHANCES = 16
"""Topics of one body that are parsed for their shape. Whose topics have more shapes, or stranger ones, is parsed."""

SHAPE_MAX = 1024
"""Most characters of a shape; a broker's have about 150."""

_NAME = "@topicName"
_ENDS_TRIED = 4
"""How many ends of an object may be the end of the first topic: its `attributes` are an object, too."""


class _Shape(NamedTuple):
    middle: str
    """From behind the mark to the second name."""
    after: str
    """From there to where the next topic's name begins."""
    row: QueueData


class TopicShapes:
    """The shapes met so far in one registration."""

    def __init__(self, row_of: Callable[[Mapping[str, Any]], QueueData]) -> None:
        """`row_of` says which row the only topic of a decoded topic table has."""
        self._row_of = row_of
        self._shapes: list[_Shape] = []
        self._mark = ""
        """How all of them begin: as much of that as stands nowhere else in a topic."""
        self._chances = CHANCES

    def rows(self, topics: str) -> list[Row] | None:
        """Those of `topics`, the inside of a JSON object, in their order; None when it has to be parsed.

        What `row_of` raises passes through.
        """
        if not self._chances or (not self._shapes and not self._begin(topics)):
            return None
        first, *texts = f'{topics},"'.split(self._mark)
        if first[:1] != '"' or not texts:
            return None
        name, rows = first[1:], list[Row]()
        middle, after, row = self._shapes[0]
        for text in texts:
            begin = f"{middle}{name}{after}"
            if not text.startswith(begin):
                shape = self._shape_of(name, text)
                if shape is None:
                    return None
                middle, after, row = shape
                begin = f"{middle}{name}{after}"
            rows.append((name, row))
            name = text[len(begin) :]
        names = [name for name, _ in rows]
        if name or not all(names) or not _plain("".join(names)):
            self._chances -= 1
            return None
        return rows

    def _begin(self, topics: str) -> bool:
        """Learn the first shape, and from it the mark."""
        end = 0
        for _ in range(_ENDS_TRIED):
            end = topics.find('},"', end) + 1
            topic = topics[:end] if end else topics
            try:
                [name] = orjson.loads(f"{{{topic}}}")
            except ValueError:  # no JSON yet, or more than one topic
                continue
            middle = topic[1 + len(name) :]
            marks = (middle[:length] for length in range(4, len(middle)))
            self._mark = next((mark for mark in marks if middle.count(mark) == 1), "")
            if self._mark and self._learn(name, topic) is not None:
                return True
            break
        self._chances = 0
        return False

    def _shape_of(self, name: str, text: str) -> _Shape | None:
        """The shape of the topic whose mark is between `name` and `text`."""
        for shape in self._shapes:
            if text.startswith(f"{shape.middle}{name}{shape.after}"):
                return shape
        new = self._learn(name, f'"{name}{self._mark}{text[: text.rfind("},") + 1]}') if self._chances else None
        return new if new is not None and text.startswith(f"{new.middle}{name}{new.after}") else None

    def _learn(self, name: str, topic: str) -> _Shape | None:
        self._chances -= 1
        middle, found, end = topic[1 + len(name) + len(self._mark) :].partition(f'"topicName":"{name}')
        middle += '"topicName":"'
        if not found or len(middle) + len(end) > SHAPE_MAX or "\\" in topic or _NAME in f"{middle} {end}":
            return None
        # Where a text ends JSON tells by quotes and backslashes only: what holds of this name holds of every plain one.
        try:
            table = orjson.loads(f'{{"{_NAME}{self._mark}{middle}{_NAME}{end}}}')
            if len(table) != 1 or table[_NAME]["topicName"] != _NAME:
                return None
        except (ValueError, LookupError, TypeError):
            return None
        shape = _Shape(middle, f'{end},"', self._row_of(table))
        self._shapes.append(shape)
        return shape


def _plain(text: str) -> bool:
    """Whether the text needs no escaping in JSON."""
    return '"' not in text and "\\" not in text and text.isprintable()
