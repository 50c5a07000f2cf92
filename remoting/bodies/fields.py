"""Converts body dataclasses to RocketMQ's JSON and back.

A field's wire name is the field's name in camelCase, or the name given with `wire("...")`. Allowed types are str, int,
Long, float, bool, each also `| None`; tuples, frozensets and mappings of these; MessageQueue; other bodies; `object`
for JSON as received. Bodies are read as fastjson reads: unknown fields are ignored, null means absent, and a string can
stand for a number or a boolean. An absent field gets its default. An absent field without a default becomes 0, False or
an empty list; an absent text or body is an error. Upstream: fastjson 1.2 `TypeUtils.cast*`.
"""

import dataclasses
import functools
import math
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from .. import fastjson
from ..errors import RemoteProtocolError
from ..fastjson import ObjectKey
from ..headers.fields import Declared, camel_case
from ..message import MessageQueue

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_OBJECT_DEPTH = 16  # of `object` fields: far over what RocketMQ nests, far under what dumps refuses

Long = typing.Annotated[int, 64]
"""An int of 64 bits; plain `int` fields hold 32."""

_Read = Callable[[object, str], Any]
"""A JSON value and the name to blame, to what the field holds; None when the value means absent."""


class _Field(NamedTuple):
    name: str
    wire: str
    read: _Read
    absent: Any
    """What stands for a missing value when the dataclass has no default; None when it must be there."""
    required: bool


class Body(metaclass=Declared):
    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def to_json(self) -> dict[str, object]:
        """Return the body as an object for fastjson.dumps; fields that are None are left out."""
        return {
            field.wire: plain(value) for field in _plan(type(self)) if (value := getattr(self, field.name)) is not None
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Make the body from a decoded JSON value. Raises RemoteProtocolError, which names the wrong field."""
        if type(value) is not dict and not isinstance(value, Mapping):
            raise _impossible(cls.__name__, value, "an object")
        fields = cls._prepared(value)
        values: dict[str, Any] = {}
        for field in _plan(cls):
            given = fields.get(field.wire)
            read = None if given is None else field.read(given, f"{cls.__name__}.{field.wire}")
            if read is not None:
                values[field.name] = read
            elif field.required:
                if field.absent is None:
                    raise RemoteProtocolError(f"{cls.__name__}.{field.wire} is missing")
                values[field.name] = field.absent
        return cls(**values)

    @classmethod
    def _prepared(cls, fields: Mapping[Any, object]) -> Mapping[Any, object]:
        """The JSON object as from_json reads it; bodies that upstream repairs when reading override this."""
        return fields

    def encode(self) -> bytes:
        """Return the body in fastjson's default dialect."""
        return fastjson.dumps(self.to_json())

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a body of either of fastjson's dialects. Raises RemoteProtocolError for other bytes."""
        return cls.from_json(fastjson.loads(data))


_PLAIN = frozenset({str, int, bool, float, type(None)})


def plain(value: object) -> object:
    """Convert a field's value to the types that fastjson.dumps accepts."""
    if type(value) in _PLAIN:  # asking an abstract class costs more than all the rest
        return value
    if isinstance(value, Body):
        return value.to_json()
    if isinstance(value, MessageQueue):
        return {"brokerName": value.broker_name, "queueId": value.queue_id, "topic": value.topic}
    if isinstance(value, Mapping):
        return {_plain_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return [plain(item) for item in sorted(value)]
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def _plain_key(key: object) -> object:
    if isinstance(key, MessageQueue):
        return ObjectKey.of({"brokerName": key.broker_name, "queueId": key.queue_id, "topic": key.topic})
    return key


_plans: dict[type[Body], tuple[_Field, ...]] = {}


def _plan(cls: type[Body]) -> tuple[_Field, ...]:
    if cls not in _plans:
        hints = typing.get_type_hints(cls, include_extras=True)
        _plans[cls] = tuple(_made_field(field, hints[field.name]) for field in cls.__dataclass_fields__.values())
    return _plans[cls]


def _made_field(field: dataclasses.Field[Any], hint: Any) -> _Field:
    read, absent = _reader(hint)
    required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    return _Field(field.name, field.metadata.get("wire") or camel_case(field.name), read, absent, required)


def _reader(hint: Any) -> tuple[_Read, Any]:
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _reader(next(arg for arg in args if arg is not types.NoneType))
    if origin is tuple:
        return functools.partial(_read_items, tuple, _reader(args[0])[0]), ()
    if origin is frozenset:
        return functools.partial(_read_items, frozenset, _reader(args[0])[0]), frozenset()
    if origin is Mapping:
        nullable = types.NoneType in typing.get_args(args[1])
        return functools.partial(_read_mapping, _reader(args[0])[0], _reader(args[1])[0], nullable), {}
    if isinstance(hint, type) and issubclass(hint, Body):
        return functools.partial(_read_body, hint), None
    raise TypeError(f"a body cannot have a field of type {hint!r}")


def _impossible(where: str, value: object, wanted: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{where} is {reprlib.repr(value):.60}, not {wanted}")


def _read_text(value: object, where: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise _impossible(where, value, "a text")


def _read_integer(bits: int, value: object, where: str) -> int | None:
    number = value
    if isinstance(value, str):
        if value in ("", "null"):
            return None
        number = int(value) if _INTEGER.fullmatch(value) else value
    elif isinstance(value, float) and math.isfinite(value):
        number = int(value)
    if not isinstance(number, int) or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise _impossible(where, value, f"a whole number of {bits} bits")
    return int(number)


def _read_float(value: object, where: str) -> float | None:
    if value in ("", "null"):
        return None
    try:
        if isinstance(value, int | float | str):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise _impossible(where, value, "a number")


def _read_bool(value: object, where: str) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value == 1
    word = value.lower() if isinstance(value, str) else None
    if word in ("", "null"):
        return None
    if word in ("true", "1", "y", "t"):
        return True
    if word in ("false", "0", "n", "f"):
        return False
    raise _impossible(where, value, "true or false")


def _read_items(make: Callable[[list[Any]], Any], read: _Read, value: object, where: str) -> Any:
    """Nulls in a list are dropped."""
    if not isinstance(value, list | tuple):
        raise _impossible(where, value, "a list")
    items = (read(item, where) for item in value if item is not None)
    return make([item for item in items if item is not None])


def _read_mapping(read_key: _Read, read: _Read, nullable: bool, value: object, where: str) -> dict[Any, Any]:
    """Entries whose value is null are dropped, unless the field's type lets them be None."""
    if not isinstance(value, Mapping):
        raise _impossible(where, value, "an object")
    entries: dict[Any, Any] = {}
    for key, item in value.items():
        item_read = None if item is None else read(item, f"{where}[{key!s:.60}]")
        key_read = read_key(key, f"a key of {where}")
        if key_read is not None and (item_read is not None or nullable):
            entries[key_read] = item_read
    return entries


def _read_body(cls: type[Body], value: object, where: str) -> Body:
    if not isinstance(value, Mapping):
        raise _impossible(where, value, "an object")
    return cls.from_json(value)


def _read_queue(value: object, where: str) -> MessageQueue:
    fields = dict(value) if isinstance(value, ObjectKey) else value
    if not isinstance(fields, Mapping):
        raise _impossible(where, value, "a message queue")
    return MessageQueue(
        _read_text(fields.get("topic") or "", where),
        _read_text(fields.get("brokerName") or "", where),
        _read_integer(32, fields.get("queueId") or 0, where) or 0,
    )


def _read_object(value: object, where: str, depth: int = 0) -> object:
    """JSON as it came, if it is not nested so deep that it could not be written again."""
    if depth > _OBJECT_DEPTH:
        raise RemoteProtocolError(f"{where} is nested deeper than {_OBJECT_DEPTH} levels")
    if isinstance(value, Mapping):
        return {str(key): _read_object(item, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_read_object(item, where, depth + 1) for item in value]
    return value


_SIMPLE: dict[Any, tuple[_Read, Any]] = {
    str: (_read_text, None),
    int: (functools.partial(_read_integer, 32), 0),
    Long: (functools.partial(_read_integer, 64), 0),
    float: (_read_float, 0.0),
    bool: (_read_bool, False),
    object: (_read_object, None),
    MessageQueue: (_read_queue, None),
}
