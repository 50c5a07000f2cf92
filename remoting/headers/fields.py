"""Converts header dataclasses to ext fields and back.

The type of a header field is `str`, `int` or `bool`. A field without a default is required; a field with `| None` may
be absent. The wire name of a field is its own name in camelCase, or the name given with `wire("...")`.

Java declares required fields but does not check them: a registration without brokerAddr replaces the master's address
by null. nemesrv intentionally refuses a request without a required field; the refusal names the field. Upstream:
`RemotingCommand.decodeCommandCustomHeader`, `FastCodesHeader`.
"""

import dataclasses
import functools
import operator
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from ..errors import RemoteProtocolError

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = range(-(1 << 63), 1 << 63)
_TEXTS = {number: str(number) for number in range(-1, 4096)}
"""Most numbers in headers are small: offsets, queue ids, flags."""


class HeaderError(RemoteProtocolError):
    """A header field is missing or cannot be read. `field` is the field's wire name, `text` the received text (None:
    missing)."""

    def __init__(self, field: str, text: str | None) -> None:
        self.field = field
        self.text = text
        super().__init__(
            f"header field {field} is missing"
            if text is None
            else f"header field {field} cannot be read: {text[:80]!r:.80}"
        )


def wire(name: str, **field_options: Any) -> Any:
    """Declare a dataclass field whose wire name is not its own name in camelCase."""
    return dataclasses.field(metadata={"wire": name}, **field_options)


class Plan(NamedTuple):
    name: str
    wire: str
    kind: type
    required: bool


@typing.dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field, wire))
class Declared(type):
    """Makes a frozen, keyword-only dataclass of each class that declares a header or a body."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        made = super().__new__(cls, name, bases, namespace)
        if "__slots__" in namespace:  # the base itself, and what `slots` makes of the class below
            return made
        return dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(made)


class HeaderFields(metaclass=Declared):
    __slots__ = ()

    def to_ext_fields(self) -> dict[str, str]:
        """Return the header's ext fields (wire name to text); fields that are None are left out."""
        layout = _layout(type(self))
        return {
            name: value if type(value) is str else as_text(value)
            for name, value in zip(layout.wire_names, layout.values_of(self), strict=True)
            if value is not None
        }

    @classmethod
    def from_ext_fields(cls, fields: Mapping[str, str] | None) -> Self:
        """Make the header from ext fields that a peer sent. Raises HeaderError, which names the field that is missing
        or unreadable."""
        return cls(**read_fields(fields, _layout(cls).plan))


def read_fields(fields: Mapping[str, str] | None, plan: Iterable[Plan]) -> dict[str, Any]:
    """Return the header fields that the peer sent, by field name. Raises HeaderError, which names the field
    that is missing or unreadable."""
    given = (fields or {}).get
    values: dict[str, object] = {}
    for name, wire_name, kind, required in plan:
        text = given(wire_name)
        if text is None or (not text and kind is not str):
            if required:
                raise HeaderError(wire_name, text)
        elif kind is str:
            values[name] = text
        elif kind is int and len(text) < 19 and text.isdecimal() and text.isascii():
            values[name] = int(text)  # nearly always; it cannot be out of range
        else:
            values[name] = parse(wire_name, text, kind)
    return values


class _Layout(NamedTuple):
    """The layout of a header class, determined once, because headers are read and written some thousand times a
    second."""

    plan: tuple[Plan, ...]
    wire_names: tuple[str, ...]
    values_of: Callable[[object], tuple[object, ...]]


def plan(header: type[HeaderFields]) -> tuple[Plan, ...]:
    """Return each field's name, wire name, type and whether it is required, in order of declaration."""
    return _layout(header).plan


@functools.cache
def _layout(header: type[HeaderFields]) -> _Layout:
    fields = _made_plan(header)
    return _Layout(fields, tuple(field.wire for field in fields), values_of(field.name for field in fields))


def values_of(names: Iterable[str]) -> Callable[[object], tuple[object, ...]]:
    """Return a function that reads the attributes `names` of an object as one tuple."""
    given = tuple(names)
    if len(given) == 1:  # attrgetter would return the value itself
        return lambda header: (getattr(header, given[0]),)
    return operator.attrgetter(*given) if given else lambda _: ()


def _made_plan(header: type[Any]) -> tuple[Plan, ...]:
    hints = typing.get_type_hints(header)
    return tuple(
        Plan(
            field.name,
            field.metadata.get("wire") or camel_case(field.name),
            next(
                kind for kind in (typing.get_args(hints[field.name]) or (hints[field.name],)) if kind is not type(None)
            ),
            field.default is dataclasses.MISSING,
        )
        for field in dataclasses.fields(header)
    )


def camel_case(name: str) -> str:
    """`read_queue_nums` as `readQueueNums`."""
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def as_text(value: object) -> str:
    """Return a header value as Java writes it: numbers in decimal, booleans in lower case."""
    if type(value) is int:  # by far the most frequent
        return _TEXTS.get(value) or str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return int.__repr__(value) if isinstance(value, int) else str(value)


def parse(wire_name: str, text: str, kind: type) -> object:
    """Read `text` as a value of type `kind`. As in Java a boolean is true only for the word true, in any case."""
    if kind is bool:
        return text.lower() == "true"
    if kind is int:
        if _INTEGER.fullmatch(text) is None or int(text) not in _INT64:
            raise HeaderError(wire_name, text)
        return int(text)
    return text
