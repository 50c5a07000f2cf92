"""The log texts of RocketMQ's programs: text ─► (event, fields). The tables have the texts of all versions from 3.0 to
5.4.

shapes.txt     texts with an event: event and regular expression
go.txt         the same for Go clients, which log a message and `key=value`
openings.txt   beginnings of all other texts of RocketMQ's: understood, without an event
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent

COUNTED = frozenset({"scanned", "topic_removed"})
"""One event stands for a run of them; for `topic_removed`, of a topic without a row there."""

QUIET = frozenset({"statistics", "housekeeping", "service_started", "watermark", "separator"})
"""Events that tell nothing about an incident: counted, without a row."""


class Shape(NamedTuple):
    event: str
    text: str

    @property
    def matches(self) -> re.Pattern[str]:
        return _compiled(self.text)


@cache
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)


_DEFINED = re.compile(r"\{([A-Z]\w+)\}")
_WORD = re.compile(r"(?<!\?P)<(\w+)>")


def _lines_of(file: str) -> Iterator[str]:
    return (line for line in (HERE / file).read_text(encoding="utf-8").splitlines() if line and line[0] != "#")


def _shapes_read() -> Iterator[Shape]:
    defined: dict[str, str] = {}
    for line in _lines_of("shapes.txt"):
        name, _, text = line.partition(" ")
        text = _WORD.sub(r"(?P<\1>\\S+)", _DEFINED.sub(lambda found: defined[found[1]], text.strip()))
        if name.isupper():
            defined[name] = text.removeprefix("= ")
        else:
            yield Shape(name, text)


SHAPES = tuple(_shapes_read())

_NAMED = re.compile(r"\(\?P<\w+>")


class _Shapes(NamedTuple):
    """Shapes that may begin alike, and one pattern for all of them: its group tells which shape fits first."""

    members: tuple[Shape, ...]
    text: str

    @property
    def any_of(self) -> re.Pattern[str]:
        return _compiled(self.text)

    def of(self, text: str) -> Shape | None:
        found = self.any_of.fullmatch(text)
        return None if found is None else self.members[(found.lastindex or 1) - 1]


LETTERS = 3
"""Number of first letters by which the possible shapes are looked up."""


def _by_begin() -> Mapping[str, _Shapes]:
    found: dict[str, list[Shape]] = defaultdict(list)
    for shape in SHAPES:
        begins = _begins(tokens_of(shape.text))
        for each in {""} if "" in begins else begins:
            found[each].append(shape)
    return {
        begin: _Shapes(tuple(shapes), "|".join(f"({_NAMED.sub('(?:', one.text)})" for one in shapes))
        for begin, shapes in found.items()
    }


_LETTER = re.compile(r"[^.]|\\\W", re.DOTALL)
_CHOICE = re.compile(r"\[(?P<letters>\w+)\]|\((?:\?:|\?P<\w+>)?(?P<texts>[^?].*)\)(?P<may_lack>\??)", re.DOTALL)


def _begins(tokens: Sequence[str]) -> set[str]:
    """Return the first LETTERS letters of the pattern's texts; "" for texts that may begin with other letters, too."""
    begin = ""
    for at, token in enumerate(tokens):
        if len(begin) == LETTERS:
            break
        if _LETTER.fullmatch(token):
            begin += token[-1]
        elif (choice := _CHOICE.fullmatch(token)) is not None:
            texts = [*(choice["letters"] or _alternatives(choice["texts"])), *([""] if choice["may_lack"] else [])]
            return set().union(*(_begins([*tokens[:at], *tokens_of(one), *tokens[at + 1 :]]) for one in texts))
        elif not token.startswith(("(?!", "(?=")):
            return {""}
    return {begin if len(begin) == LETTERS else ""}


def _alternatives(pattern: str) -> list[str]:
    return ["".join(tokens) for is_bar, tokens in groupby(tokens_of(pattern), "|".__eq__) if not is_bar]


_MARKS_OF_A_CUT = ("...", "…")
_SPACES = re.compile(r"\s+")
_SETTING = re.compile(r"(?P<key>[A-Za-z][\w.]*) ?= ?(?P<value>.*)", re.DOTALL)


def event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the event of a log record's text, with its fields; None if no known text fits."""
    text = text.rstrip("\r\n")
    if (shape := _shape_of(text)) is not None and (found := shape.matches.fullmatch(text)) is not None:
        return shape.event, _fields(found)
    return ("housekeeping", {}) if _is_quiet(text) else None


def _shape_of(text: str) -> Shape | None:
    for begin in (text[:LETTERS], ""):
        if (shapes := _OF.get(begin)) is not None and (shape := shapes.of(text)) is not None:
            return shape
    return None


def _is_quiet(text: str) -> bool:
    openings, behind_a_name = _openings()
    return text.startswith(openings.get(text[:LETTERS], ())) or text.partition(" ")[2].startswith(behind_a_name)


@cache
def _openings() -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the openings by their first letters, and separately the openings that come after a name."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in _lines_of("openings.txt"):
        found["*" if line.startswith("* ") else line[:LETTERS]].append(line.removeprefix("* "))
    behind_a_name = tuple(found.pop("*", ()))
    return {letters: tuple(openings) for letters, openings in found.items()}, behind_a_name


def _fields(found: re.Match[str]) -> dict[str, str]:
    # a field that stands in one of two places has the second name with an underscore
    return {name.rstrip("_"): said for name, said in found.groupdict().items() if said is not None}


def setting_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the setting in `key=value`, as the servers' main thread prints its settings at the start."""
    found = _SETTING.fullmatch(text.rstrip())
    return None if found is None else ("setting", {"key": found["key"], "value": found["value"]})


def edited_event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the event of a log text that was edited: with additional spaces, or without its end (field `cut`)."""
    text = _SPACES.sub(" ", text).strip()
    for mark in _MARKS_OF_A_CUT:
        text = text.removesuffix(mark).removeprefix(mark).strip()
    if (found := event_of(text)) is not None:
        return found
    shapes = _OF.get(text[:LETTERS])
    for shape in () if shapes is None else shapes.members:
        if (fields := fields_of_cut(shape.text, text)) is not None:
            return shape.event, fields | {"cut": "true"}
    return None


_HALF = r"(?:\S*|(?:QueueData|TopicRouteData|DataVersion|MessageQueue|BrokerIdentityInfo|TopicConfig) ?\[.*)"
"""What may be at the cut: part of a word or of a printed object."""

_SPELT = "(?P<spelt>"
"""A word that versions spell differently; no field of a cut line."""

_DEPTH = 5
"""Groups stand in groups, so deep at most."""


def _token() -> re.Pattern[str]:
    plain, group = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", r"(?!)"
    for _ in range(_DEPTH):
        group = rf"\((?:{plain}|{group}|[^()\[\\])*\)"
    return re.compile(rf"(?:{plain}|{group}|.)(?:(?:[*+?]|\{{\d+(?:,\d*)?\}})\??)?", re.DOTALL)


_TOKEN = _token()


def tokens_of(pattern: str) -> list[str]:
    """Return the parts of a regular expression in sequence, each with its repetition count."""
    return _TOKEN.findall(pattern)


@cache
def cut_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern for texts that begin like a known log text and end somewhere after the known text's first field;
    None if the known text has no fields."""
    tokens = tokens_of(pattern)
    first = next((number for number, token in enumerate(tokens) if "(?P<" in token.replace(_SPELT, "")), None)
    if first is None or first + 1 >= len(tokens):
        return None
    rest = ""
    for token in reversed(tokens[first + 2 :]):
        rest = f"(?:{token}{rest})?"
    return re.compile("".join(tokens[: first + 2]) + rest + _HALF, re.S)


def fields_of_cut(pattern: str, text: str) -> dict[str, str] | None:
    """Return the fields of a cut log line, without a field in the last word, which may be incomplete."""
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


_OF = _by_begin()


# --- clients in Go: a message and `key=value`

_PAIR = re.compile(r'([A-Za-z_][\w.]*)=("(?:[^"\\]|\\.)*"|\S*)')
_FIRST_PAIR = re.compile(r"(?:^|\s+)[A-Za-z_][\w.]*=(?![%\s])")


def _go_messages() -> Iterator[tuple[str, tuple[str, Mapping[str, str]]]]:
    for line in _lines_of("go.txt"):
        event, _, rest = line.partition(" ")
        message, _, fields = rest.strip().partition(" | ")
        pairs = (each.replace(":", "==").partition("=")[::2] for each in fields.split(", ") if each)
        yield message, (event, dict(pairs))


GO = dict(_go_messages())
"""Message to event, and which `key=value` a field has (`=word`: a fixed word)."""


def go_event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the event of a Go client's log text, such as `msg="…" topic=T` or `message topic=T`."""
    pairs = {key: _unquoted(said) for key, said in _PAIR.findall(text)}
    said = pairs["msg"] if text.startswith("msg=") and "msg" in pairs else _before_pairs(text)
    if (found := GO.get(said)) is None:
        return ("housekeeping", {}) if _is_quiet(said) else None
    event, fields = found
    taken = {name: pairs.get(key, key[1:] if key[0] == "=" else None) for name, key in fields.items()}
    return event, {name: value for name, value in taken.items() if value is not None}


def _before_pairs(text: str) -> str:
    if "[name=" in text:  # a message that has such itself
        return next((said for said in GO if text.startswith(said)), text.strip())
    first = _FIRST_PAIR.search(text)
    return (text if first is None else text[: first.start()]).strip()


def _unquoted(said: str) -> str:
    return said[1:-1].replace('\\"', '"').replace("\\\\", "\\") if said.startswith('"') else said
