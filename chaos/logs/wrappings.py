"""Removes what log collectors add to a log line; additions are recognized by their form. No I/O.

{"_source": {"message": "2024-05-20 14:20:00 INFO main - …"}}         JSON: the field with a record
2024-05-20T06:20:00+0000 mq-1 java[4711]: 2024-05-20 14:20:00 INFO …   a head that repeats before records
ESC[36mns-1 |ESC[0m 2024-05-20 14:20:00 INFO main - …                  colours
… stdout P 2024-05-20 14:20:00 INFO main - The Name Serv               a line in pieces: P continues, F ends
2024-05-20 … - the channel&#91;10.0.0.1:40122]                         HTML's character references
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

from .layouts import client_5, client_49, cpp, second_of, server

OUTER = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?P<digits>\.\d{1,9})?(?P<zone>Z|[+-]\d\d:\d\d) "
    r"(?:(?P<stream>stdout|stderr) (?P<piece>[FP])(?: |$))?(?P<rest>.*)",
    re.S,
)
"""The stamp of a container's runtime."""

_RECORDS = (server, client_49, client_5, cpp)
"""Layouts that no sentence has by chance, which are also tried after a head."""
_MAY_BEGIN = re.compile(r"(?:\[(?=\d{4}-[\w-]+ \d\d:\d\d:\d\d\S*\()|(?<!\d)(?=\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[ ,.]))")
_HEAD_MAX = 500
_HEADS_MAX = 100
_STAMPS = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?P<digits>[.,]\d{1,9})?(?P<zone>Z|[+-]\d\d:?\d\d)?"
    r"|[A-Z][a-z]{2} [ \d]\d(?:, \d{4} @)? \d\d:\d\d:\d\d(?:\.\d+)?|<[^<>]*>"
)
_WORD = re.compile(r"(?<![\w.-])[A-Za-z][\w./-]*(?![\w./=-])(?! ?[:=] ?\")")
_QUOTED = {'"': re.compile(r'(?P<text>(?:\\.|""|[^"\\])*)"'), "'": re.compile(r"(?P<text>(?:\\.|''|[^'\\])*)'")}
_ENDS = re.compile(r"(?:\\r)?\\n|#012|<br ?/?>|</\w+>")
"""Line ends that somebody wrote as text, rsyslog by their octal code, or a page as tags."""
_FRAME = re.compile(r"(?:\\n|#012)(?:\s|\\t|#011)*at [\w.$]+\(")
_NUMBERS = re.compile(r"\d+")
_OF_A_STREAM = re.compile(
    r"(?:.*[._])?(?:pod|pod_?name|pod\.name|container\.name|container_name|host|hostname|host\.name)"
)


class _Typed(dict[int, int | str | None]):
    """Characters as a keyboard has them, in place of a page's or a word processor's; invisible ones are left out."""

    _BY_KIND: ClassVar = {"Zs": " ", "Pd": "-", "Cf": None, "Pi": '"', "Pf": '"'}

    def __missing__(self, code: int) -> int | str | None:
        self[code] = said = self._BY_KIND.get(unicodedata.category(chr(code)), code)
        return said


TYPED = _Typed()


def holds_record(text: str) -> bool:
    """Whether a log record begins at the start of the text, or after a collector's prefix."""
    return _may_hold(text) and any(_begins_record(text[at:]) for at in _may_begin(text))


def _begins_record(text: str) -> bool:
    return any(layout(text) is not None for layout in _RECORDS)


def json_object(line: str) -> dict[str, Any] | None:
    line = line.strip().removeprefix("[").rstrip(",]") if line[0] == "[" or line[-1] in ",]" else line
    if not line.startswith("{") or '":' not in line:
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def records_in(line: str) -> list[str]:
    """Return the texts of all log records in a line that has several, or one with its stack trace: in quotes, or with
    line ends written as text."""
    begins = [at for at in _may_begin(line, len(line)) if _begins_record(line[at:])]
    if len(begins) == 1 and _quoted(line, begins[0]) is None and _FRAME.search(line) is not None:
        return ["\n".join(_ENDS.split(line))]
    if len(begins) < 2:
        return []
    texts = [_said(found["text"], line[at - 1]) for at in begins if (found := _quoted(line, at)) is not None]
    if len(texts) < len(begins):
        texts = [text for text in _ENDS.split(line[begins[0] :]) if text.strip()]
    return texts if len(texts) > 1 else []


def _quoted(line: str, at: int) -> re.Match[str] | None:
    return None if at == 0 or (quote := _QUOTED.get(line[at - 1])) is None else quote.match(line, at)


def fields_of(found: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, said in found.items():
        if isinstance(said, str):
            yield before + key, said
        elif isinstance(said, dict):
            yield from fields_of(said, f"{before}{key}.")
        elif isinstance(said, list) and said and all(isinstance(one, int) and 0 <= one < 256 for one in said):
            yield before + key, bytes(said).decode("utf-8", "replace")  # journald's, of a text with colours
        elif isinstance(said, list):
            yield from fields_of({str(number): one for number, one in enumerate(said)}, f"{before}{key}.")


def stream_of(found: Mapping[str, Any]) -> str | None:
    """Return the name of the log to which a JSON object's line belongs, from the object's pod, container or host."""
    if len(found) <= 3 and "log" in found:  # docker's own: the line, its output and its stamp
        return None
    said = [text for path, text in fields_of(found) if _is_of_a_stream(path)]
    return "/".join(dict.fromkeys(said)) or None


@lru_cache(maxsize=1_000)
def _is_of_a_stream(path: str) -> bool:
    return _OF_A_STREAM.fullmatch(path) is not None


class Heads:
    """The prefixes that collectors put before records of this file; continuation lines can have the same prefixes."""

    def __init__(self) -> None:
        self._known: dict[str, re.Pattern[str]] = {}
        self.are_indented = False

    def taken_off(self, line: str) -> tuple[str | None, int | None, str] | None:
        """Remove a collector's prefix: return the log's name, the prefix's exact time in UTC, and the rest of the line;
        None without a prefix."""
        at = None
        if not self._known and not _may_hold(line):
            return None
        if _may_hold(line):
            at = next((at for at in _may_begin(line) if at and _begins_record(line[at:])), None)
        if at is not None:
            shape = r"\d+".join(map(re.escape, _NUMBERS.split(line[:at])))
            if shape not in self._known and len(self._known) < _HEADS_MAX:
                self._known[shape] = re.compile(shape)
        else:
            at = next((found.end() for one in self._known.values() if (found := one.match(line)) is not None), None)
        if at is None:
            return None
        head, rest = line[:at], line[at:]
        if head.endswith("<![CDATA["):
            rest = rest.partition("]]>")[0]
        elif head.endswith(">"):
            rest = rest.partition("</")[0]
        elif head[-1] in _QUOTED and (quoted := _QUOTED[head[-1]].match(rest)) is not None:
            rest = _said(quoted["text"], head[-1])
        return "/".join(_WORD.findall(_STAMPS.sub(" ", head))) or None, _stamp_in(head), rest


def _said(text: str, quote: str) -> str:
    return _unquoted(text if quote == '"' else text.replace("\\'", "'").replace("''", "'").replace('"', '\\"'))


def _unquoted(text: str) -> str:
    """Return the text unquoted as in JSON, and as in tables, which double a quote."""
    text = text.replace('""', '\\"')
    try:
        said: str = json.loads(f'"{text}"')
    except ValueError:
        return text
    return said.rstrip("\r\n")


def _may_hold(line: str) -> bool:
    """Whether the line may have a stamp; a quick test that excludes most lines."""
    return line.count("-") >= 2 and line.count(":") >= 2


def _may_begin(line: str, most: int = _HEAD_MAX + 40) -> Iterator[int]:
    return (found.start() for found in _MAY_BEGIN.finditer(line, 0, most))


def _stamp_in(head: str) -> int | None:
    found = next((one for one in _STAMPS.finditer(head) if one["zone"] and one["digits"]), None)
    return None if found is None else utc_ms(found)


def utc_ms(found: re.Match[str]) -> int | None:
    second, digits, zone = second_of(found["stamp"]), found["digits"], found["zone"].replace(":", "")
    if second is None:
        return None
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[3:5])) * 60_000 * (-1 if zone[0] == "-" else 1)
    return second + (int(digits[1:4].ljust(3, "0")) if digits else 0) - offset
