"""Converts header dataclasses to ext fields and back.

A field is `str`, `int` or `bool`; one without a default is required, one with `| None` may be absent. Its wire name is
its own in camelCase, or the one given with `wire("...")`.

Java declares required fields but does not check them: a registration without brokerAddr replaces the master's address
by null. Here such a request is refused with the field's name; this difference is intended. Upstream:
`RemotingCommand.decodeCommandCustomHeader`, `FastCodesHeader`.
"""

import dataclasses
import operator
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self, TypeVar

from ..errors import RemoteProtocolError

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = range(-(1 << 63), 1 << 63)
_INTEGERS = {str(number): number for number in range(-1, 4096)}
"""Most numbers in headers are small: offsets, queue ids, flags."""
_TEXTS = {number: text for text, number in _INTEGERS.items()}


H = TypeVar("H", bound="HeaderFields")


class HeaderError(RemoteProtocolError):
    """A header field is missing or cannot be read. `field` is its wire name, `text` what came (None: nothing)."""

    def __init__(self, field: str, text: str | None) -> None:
        self.field = field
        self.text = text
        super().__init__(
            f"header field {field} is missing"
            if text is None
            else f"header field {field} cannot be read: {text[:80]!r:.80}"
        )


def wire(name: str, **field_options: Any) -> Any:
    """A dataclass field whose wire name is not its own name in camelCase."""
    return dataclasses.field(metadata={"wire": name}, **field_options)


class Plan(NamedTuple):
    """One field of a header."""

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
    """Base of all headers."""

    __slots__ = ()

    def to_ext_fields(self) -> dict[str, str]:
        """Wire name to text; fields that are None are left out."""
        layout = _layouts.get(type(self)) or _layout(type(self))
        return {
            name: value if type(value) is str else as_text(value)
            for name, value in zip(layout.wire_names, layout.values_of(self), strict=True)
            if value is not None
        }

    @classmethod
    def from_ext_fields(cls, fields: Mapping[str, str] | None) -> Self:
        """The header that a peer sent. HeaderError names the field that is missing or unreadable."""
        return (_layouts.get(cls) or _layout(cls)).read(fields)  # type: ignore[return-value]


def reader(header: type[H], plan: Iterable[Plan]) -> Callable[[Mapping[str, str] | None], H]:
    """A function that makes a header from a peer's fields, like `header(**read_fields(fields, plan))`, but twice as
    fast. Its code is generated for these fields, as dataclasses generate `__init__`:

        def read(fields):
            get = (fields or NONE).get
            v0 = get("topic")
            if v0 is None: return slowly(fields)        which says what is missing
            v1 = get("queueId")
            if not v1: return slowly(fields)
            elif v1 in INTEGERS: v1 = INTEGERS[v1]      most numbers are small
            elif len(v1) < 19 and ...: v1 = int(v1)
            else: v1 = parse("queueId", v1, int)
            ...
            return header(topic=v0, queue_id=v1, ...)
    """
    fields = tuple(plan)
    defaults = {field.name: field.default for field in dataclasses.fields(header)}
    lines = ["def read(fields):", " get = (fields or NONE).get"]
    for number, field in enumerate(fields):
        v = f"v{number}"
        otherwise = "return slowly(fields)" if field.required else f"{v} = d{number}"
        lines.append(f" {v} = get({field.wire!r})")
        if field.kind is str:
            lines.append(f" if {v} is None: {otherwise}")
            continue
        lines.append(f" if not {v}: {otherwise}")
        if field.kind is int:
            lines.append(f" elif {v} in INTEGERS: {v} = INTEGERS[{v}]")
            lines.append(f" elif len({v}) < 19 and {v}.isdecimal() and {v}.isascii(): {v} = int({v})")
        lines.append(f" else: {v} = parse({field.wire!r}, {v}, {field.kind.__name__})")
    lines.append(" return header(" + ", ".join(f"{field.name}=v{number}" for number, field in enumerate(fields)) + ")")
    names: dict[str, Any] = {
        "NONE": {},
        "INTEGERS": _INTEGERS,
        "header": header,
        "parse": parse,
        "slowly": lambda given: header(**read_fields(given, fields)),
        **{f"d{number}": defaults[field.name] for number, field in enumerate(fields)},
    }
    exec("\n".join(lines), names)
    read: Callable[[Mapping[str, str] | None], H] = names["read"]
    return read


def read_fields(fields: Mapping[str, str] | None, plan: Iterable[Plan]) -> dict[str, Any]:
    """The values of the peer's fields, by name. HeaderError names the field that is missing or unreadable."""
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
    read: Callable[[Mapping[str, str] | None], HeaderFields]


_layouts: dict[type[HeaderFields], _Layout] = {}


def plan(header: type[HeaderFields]) -> tuple[Plan, ...]:
    """Each field's name, wire name, type and whether it is required, in order of declaration."""
    return _layout(header).plan


def _layout(header: type[HeaderFields]) -> _Layout:
    if header not in _layouts:
        fields = _made_plan(header)
        _layouts[header] = _Layout(
            fields,
            tuple(field.wire for field in fields),
            values_of(f.name for f in fields),
            reader(header, fields),
        )
    return _layouts[header]


def values_of(names: Iterable[str]) -> Callable[[object], tuple[object, ...]]:
    """A function that reads these attributes of an object as one tuple."""
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
    """A header value as Java writes it: numbers in decimal, booleans in lower case."""
    if type(value) is int:  # by far the most frequent
        return _TEXTS.get(value) or str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return int.__repr__(value) if isinstance(value, int) else str(value)


def parse(wire_name: str, text: str, kind: type) -> object:
    """`text` as a `kind`. As in Java a boolean is true only for the word true, in any case."""
    if kind is bool:
        return text.lower() == "true"
    if kind is int:
        if _INTEGER.fullmatch(text) is None or int(text) not in _INT64:
            raise HeaderError(wire_name, text)
        return int(text)
    return text
