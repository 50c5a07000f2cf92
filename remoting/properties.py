"""Java's properties text: `key=value` lines, as in a `-c` file and in the bodies of 318 and 319. Pure: no I/O.

    # or ! starts a comment line       key = value | key: value | key value
    a backslash at the line's end joins the next line, its leading blanks dropped
    \\t \\n \\r \\f \\uXXXX, and \\ before anything else means just that character

Upstream: `java.util.Properties.load`, `MixAll.string2Properties`, `MixAll.properties2String`.
"""

import re
from collections.abc import Iterator, Mapping

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_KEY = re.compile(r"((?:\\.|[^\\:= \t\f])*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.S)
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.S)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str | bytes) -> dict[str, str]:
    """Return the value of each key; of equal keys the last value counts. Raises ValueError for a bad unicode escape."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None  # it matches every text
        try:
            properties[_unescaped(match[1])] = _unescaped(match[2])
        except ValueError as exc:
            raise ValueError(f"line {number}: {exc}") from exc
    return properties


def format_properties(properties: Mapping[str, object]) -> str:
    """Return a `key=value` line for each entry, in the given order; booleans are in lower case, and None values are
    left out.

    Values are escaped so that `parse_properties` reads the same values. Java's writer escapes no backslashes, leading
    blanks and line ends, but `format_properties` does.
    """
    return "".join(
        f"{_escaped(key, _KEY_SPECIAL)}={_escaped(_as_text(value), _VALUE_SPECIAL)}\n"
        for key, value in properties.items()
        if value is not None
    )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(_LINE_END.split(text), 1):
        line = raw.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        if (len(line) - len(line.rstrip("\\"))) % 2:  # an odd number of backslashes at its end
            parts.append(line[:-1])
            continue
        yield first, "".join((*parts, line))
        parts = []
    if parts:
        yield first, "".join(parts)


def _unescaped(text: str) -> str:
    """A pair of escaped surrogates is one character; a lone surrogate, which no file can hold, is `?`."""
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_character, text)
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")
    return text


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if not code.startswith("u"):
        return _ESCAPES.get(code, code)
    if re.fullmatch("u[0-9a-fA-F]{4}", code) is None:
        raise ValueError(f"\\{code} is not a unicode escape of four hex digits")
    return chr(int(code[1:], 16))


_NAMES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_VALUE_SPECIAL = re.compile(r"[\\\t\n\r\f]|^ ")
_KEY_SPECIAL = re.compile(r"[\\\t\n\r\f :=]|^[#!]")


def _escaped(text: str, special: re.Pattern[str]) -> str:
    return special.sub(lambda match: _NAMES.get(match[0], "\\" + match[0]), text)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
