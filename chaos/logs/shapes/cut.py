"""A line whose tail is missing: the shape as far as the line goes. Pure."""

from __future__ import annotations

import re
from functools import cache

_TOKEN = re.compile(
    r"\\.|\[(?:\\.|\[\^?\]?|[^\]\\])*\]|.",
    re.S,
)
_HALF = r"(?:\S*|(?:QueueData|TopicRouteData|DataVersion|MessageQueue|BrokerIdentityInfo|TopicConfig) ?\[.*)"
"""What stands at the cut: a part of a word, or of an object that is printed."""

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
    first = next((number for number, token in enumerate(tokens) if "(?P<" in token), None)
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
        if value is not None and " " in text[found.end(name) :]
    }
    return said or None
