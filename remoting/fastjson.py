"""Reads JSON as RocketMQ's fastjson writes it, and writes JSON in either of fastjson's two dialects. Pure: no I/O.

    default dialect              {"brokerAddrs":{0:"10.0.0.1:10911"}}      number keys unquoted
                                 {{"queueId":0,"topic":"T"}:{...}}         objects as keys
                                 {"b":{"$ref":"$.a"}}                      an object met twice (read only)
    browser compatible           {"0":"a\\/b"}                              all keys quoted, \\/ and \\uXXXX

The reader turns a number that is a key into a string ("0"), and an object that is a key into an ObjectKey. Single
quotes, unquoted names, additional commas and numbers with a type letter (1L) are read, too. A `$ref` to an object that
was complete before is resolved, as fastjson writes references; any other `$ref` becomes null, so there are no cycles.
Standard JSON (at most 1024 levels) is read quickly by orjson. JSON in the default dialect is limited in size and depth,
because its reader is slow and recursive. Upstream: fastjson 1.2, `RemotingSerializable`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from json.encoder import encode_basestring as _quote
from json.encoder import encode_basestring_ascii as _quote_ascii
from typing import Any

import orjson

from .errors import LocalProtocolError, RemoteProtocolError

DIALECT_MAX_BYTES = 4_194_304
MAX_DEPTH = 64
REFERRED_MAX = 1_000_000
"""Most values that all `$ref` of one text may stand for: whoever copies what was read copies a target for each."""

_SAFE_LONG = 1 << 53  # JavaScript's; browser-compatible output writes longs beyond it as strings


class ObjectKey(tuple[tuple[str, object], ...]):
    """A JSON object that is used as a key: (name, value) pairs sorted by name, so that equal objects are equal keys."""

    __slots__ = ()

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> ObjectKey:
        """Make the key from an object's fields. Raises RemoteProtocolError if a field's name is an object."""
        if any(type(name) is not str for name in fields):
            raise RemoteProtocolError("JSON has an object as a key in an object that is a key")
        return cls(sorted((name, _hashable(value)) for name, value in fields.items()))


def _hashable(value: object) -> object:
    if isinstance(value, Mapping):
        return ObjectKey.of(value)
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def loads(data: bytes | str, *, max_bytes: int = DIALECT_MAX_BYTES) -> object:
    """Read the JSON value in `data`: dict, list, str, int, float, bool or None. RemoteProtocolError for unreadable
    data. JSON that is not standard, or has a `$ref`, can have at most `max_bytes` bytes and MAX_DEPTH levels."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if b'"$ref"' not in raw:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
    if len(raw) > max_bytes:
        raise RemoteProtocolError(f"JSON dialect of {len(raw)} B exceeds {max_bytes} B")
    return _Reader(raw.decode("utf-8", "replace")).read()


def dumps(value: object, *, browser_compatible: bool = False) -> bytes:
    """Write `value` as compact UTF-8 JSON: keys sorted, None values of objects omitted. Keys may be str, int or
    ObjectKey. Raises LocalProtocolError for a value that JSON cannot express, or that is too deep."""
    out: list[str] = []
    _write(value, out, browser_compatible, 0)
    return "".join(out).encode("utf-8", "replace")


# --- reading --------------------------------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\r\n\f\x08]*")
_GAPS = re.compile(r"[ \t\r\n\f\x08,]*")
_DOUBLE = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.S)
_SINGLE = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.S)
_NUMBER = re.compile(r"([+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?)[LSBFD]?")
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_LITERALS = {"true": True, "false": False, "null": None, "undefined": None, "NaN": None}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.S)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_STEP = re.compile(r"""\.((?:\\.|[^.\[\\])+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""", re.S)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._root: object = None
        self._open: list[object] = []  # the containers around the current place, outermost first
        self._place: tuple[Any, Any] | None = None  # where the value that begins next goes: container, key or index
        self._referable = REFERRED_MAX

    def read(self) -> object:
        self._skip(_SPACE)
        value = self._value()
        self._skip(_SPACE)
        if self._at != len(self._text):
            raise self._unexpected()
        return value

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._at = pattern.match(self._text, self._at).end()  # type: ignore[union-attr]  # these match nothing, too

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _unexpected(self) -> RemoteProtocolError:
        found = self._text[self._at : self._at + 12]
        return RemoteProtocolError(f"JSON cannot be read at character {self._at}: {found or 'it ends'!r}")

    def _value(self) -> object:
        char = self._peek()
        if char == "{":
            return self._object()
        if char == "[":
            return self._array()
        if char and char in "\"'":
            return self._string(char)
        if char and (char in "+-" or "0" <= char <= "9"):
            return self._number()
        name = _NAME.match(self._text, self._at)
        if name is None or name[0] not in _LITERALS:
            raise self._unexpected()
        self._at = name.end()
        return _LITERALS[name[0]]

    def _enter(self, container: object) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise RemoteProtocolError(f"JSON is nested deeper than {MAX_DEPTH} levels")
        if not self._open:
            self._root = container
        if self._place is not None:  # at once, so that a `$ref` further on finds its way through the unfinished
            self._place[0][self._place[1]] = container
            self._place = None
        self._open.append(container)
        self._at += 1
        self._skip(_GAPS)

    def _leave(self) -> None:
        self._open.pop()
        self._at += 1

    def _array(self) -> list[object]:
        items: list[object] = []
        self._enter(items)
        while self._peek() != "]":
            items.append(None)
            self._place = (items, len(items) - 1)
            items[-1] = self._value()
            self._after_item("]")
        self._leave()
        return items

    def _object(self) -> object:
        fields: dict[object, object] = {}
        self._enter(fields)
        while self._peek() != "}":
            key = self._key()
            self._skip(_SPACE)
            if self._peek() != ":":
                raise self._unexpected()
            self._at += 1
            self._skip(_SPACE)
            self._place = (fields, key)
            fields[key] = self._value()
            self._after_item("}")
        value: object = fields
        if len(fields) == 1 and isinstance(path := fields.get("$ref"), str):  # any other is a name like any other
            value = self._referred(path)
        self._leave()
        return value

    def _after_item(self, end: str) -> None:
        before = self._at
        self._skip(_GAPS)
        if self._peek() != end and "," not in self._text[before : self._at]:
            raise self._unexpected()

    def _key(self) -> object:
        char = self._peek()
        if char and char in "\"'":
            return self._string(char)
        if char == "{":
            self._place = None
            value = self._object()
            return ObjectKey.of(value) if isinstance(value, dict) else str(value)
        key = _NUMBER.match(self._text, self._at) or _NAME.match(self._text, self._at)
        if key is None:
            raise self._unexpected()
        self._at = key.end()
        return key[0]

    def _string(self, quote: str) -> str:
        match = (_DOUBLE if quote == '"' else _SINGLE).match(self._text, self._at)
        if match is None:
            raise self._unexpected()
        self._at = match.end()
        return _unescaped(match[1]) if "\\" in match[1] else match[1]

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            raise self._unexpected()
        try:
            number = float(match[1]) if match[2] or match[3] else int(match[1])
        except ValueError as exc:  # more digits than Python turns into a number
            raise self._unexpected() from exc
        self._at = match.end()
        return number

    def _referred(self, path: str) -> object:
        """The complete object at `path`, such as `$.table.a\\.b[0]`; None for everything else."""
        if not path.startswith("$"):
            return None
        node, at = self._root, 1
        while at < len(path):
            step = _STEP.match(path, at)
            if step is None:
                return None
            at = step.end()
            if step[2] is not None and isinstance(node, list):
                node = node[int(step[2])] if len(step[2]) < 9 and int(step[2]) < len(node) else None
            elif isinstance(node, dict):
                name = step[1] if step[1] is not None else step[2] if step[2] is not None else step[3] or step[4] or ""
                node = node.get(re.sub(r"\\(.)", r"\1", name))
            else:
                return None
        if any(node is container for container in self._open):
            return None
        self._pay_for(node, len(self._open) - 1)
        return node

    def _pay_for(self, node: object, depth: int) -> None:
        """Count `node`, which is now `depth` levels deep, so that chains of references cannot exceed the limits."""
        self._referable -= 1
        if self._referable < 0:
            raise RemoteProtocolError(f"JSON refers to more than {REFERRED_MAX} values")
        items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if items and depth >= MAX_DEPTH:
            raise RemoteProtocolError(f"JSON is nested deeper than {MAX_DEPTH} levels")
        for item in items:
            self._pay_for(item, depth + 1)


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)

    text = _ESCAPE.sub(one, text)
    if _SURROGATE.search(text):  # join the pairs; a lone half is replaced
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


# --- writing --------------------------------------------------------------------------------------------------------


def _write(value: object, out: list[str], browser: bool, depth: int) -> None:
    if isinstance(value, str):
        out.append(_text(value, browser))
    elif value is None:
        out.append("null")
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif isinstance(value, int):
        digits = int.__repr__(value)
        out.append(f'"{digits}"' if browser and abs(value) > _SAFE_LONG else digits)
    elif isinstance(value, float):
        out.append(repr(value) if value - value == 0 else "null")  # neither NaN nor infinite
    elif depth >= MAX_DEPTH:
        raise LocalProtocolError(f"value is nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, Mapping | ObjectKey):
        _write_object(dict(value), out, browser, depth)
    elif isinstance(value, list | tuple | set | frozenset):
        out.append("[")
        for index, item in enumerate(sorted(value, key=_key_order) if isinstance(value, set | frozenset) else value):
            if index:
                out.append(",")
            _write(item, out, browser, depth + 1)
        out.append("]")
    else:
        raise LocalProtocolError(f"a {type(value).__name__} cannot be written as JSON")


def _write_object(fields: Mapping[object, object], out: list[str], browser: bool, depth: int) -> None:
    out.append("{")
    first = True
    for key in sorted(fields, key=_key_order):
        value = fields[key]
        if value is None:
            continue
        if not first:
            out.append(",")
        first = False
        if isinstance(key, ObjectKey):
            _write_object(dict(key), out, browser, depth + 1)
        elif isinstance(key, str):
            out.append(_text(key, browser))
        else:
            out.append(f'"{key}"' if browser else str(key))
        out.append(":")
        _write(value, out, browser, depth + 1)
    out.append("}")


def _key_order(key: object) -> tuple[int, int, str]:
    if isinstance(key, str):
        return (1, 0, key)
    if isinstance(key, int) and not isinstance(key, bool):
        return (0, key, "")
    if isinstance(key, ObjectKey):
        return (2, 0, repr(key))
    raise LocalProtocolError(f"a {type(key).__name__} cannot be a JSON key")


def _text(value: str, browser: bool) -> str:
    if not browser:
        quoted = _quote(value)
        return quoted if quoted.isprintable() and "\\u" not in quoted else _ESCAPED.sub(_escaped, quoted)
    quoted = _quote_ascii(value).replace("/", "\\/")
    return re.sub(r"(\\\\)|\\u([0-9a-f]{4})", _upper_hex, quoted) if "\\u" in quoted else quoted


_ESCAPED = re.compile(r"(\\\\)|\\u([0-9a-f]{4})|([\x7f-\x9f\u2028\u2029])")


def _escaped(match: re.Match[str]) -> str:
    """The characters that fastjson's own dialect also escapes, with upper-case hex digits."""
    return f"\\u{ord(match[3]):04X}" if match[3] else _upper_hex(match)


def _upper_hex(match: re.Match[str]) -> str:
    return match[1] or "\\u" + match[2].upper()
