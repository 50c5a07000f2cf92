"""What a key of a scenario may be, in a user's words: "a list", "a whole number from 1 to 26", "one of 4.9, 5.x"."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_TYPES = {
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "string_type": "text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that is not infinite",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
}
_NAME = "a name of letters, digits, %, |, _ and -, up to 127 of them"


def of_type(error: str) -> str | None:
    """What is allowed by the name of pydantic's error; None where it says nothing of a type."""
    return _NAME if error == "string_pattern_mismatch" else _TYPES.get(error)


def in_words(field: FieldInfo) -> str:
    """What may stand at this key."""
    annotation, limits = field.annotation, _limits(field.metadata)
    optional = ""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        optional, annotation = ", or null", parts[0]
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        limits = {**limits, **_limits(more)}
    return _of(annotation, limits) + optional


def literals(field: FieldInfo) -> tuple[str, ...]:
    """The texts that may stand at this key, where they are counted."""
    annotation: Any = field.annotation
    for part in (annotation, *get_args(annotation)):
        if get_origin(part) is Literal:
            return tuple(map(str, get_args(part)))
    return ()


def _limits(metadata: Any) -> dict[str, Any]:
    """ge, gt, le, lt, min_length, max_length and pattern, wherever pydantic keeps them."""
    found: dict[str, Any] = {}
    for one in metadata:
        inner = getattr(one, "metadata", None)
        if inner:  # a Field() within Annotated
            found |= _limits(inner)
        for name in ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern"):
            if getattr(one, name, None) is not None:
                found[name] = getattr(one, name)
    return found


def _of(annotation: Any, limits: dict[str, Any]) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    if annotation is bool:
        return "true or false"
    if annotation in (int, float):
        return _number("a whole number" if annotation is int else "a number", limits)
    if annotation is str:
        if "pattern" in limits:
            return _NAME
        return f"text of up to {limits['max_length']} letters" if "max_length" in limits else "text"
    if origin in (tuple, list):
        return f"a list of at least {limits['min_length']}" if limits.get("min_length") else "a list"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "a mapping of keys to values"
    return "a value"


def _number(kind: str, limits: dict[str, Any]) -> str:
    most = f"up to {limits['le']:,}" if "le" in limits else f"below {limits['lt']:,}" if "lt" in limits else ""
    if "ge" in limits:
        return f"{kind} from {limits['ge']}" + (
            f" to {limits['le']:,}" if "le" in limits else f" on{most and ', ' + most}"
        )
    if "gt" in limits:
        return f"{kind} above {limits['gt']}" + (f", {most}" if most else "")
    return f"{kind} {most}".rstrip()
