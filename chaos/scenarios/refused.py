"""Turns pydantic's errors about a scenario into plain words: key, value, and the values allowed for the key."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from ..errors import nearest
from ..faults.fault import TrueOrFalse
from ..faults.kinds import ACTIONS
from .action import keys_of

_OF_TIMELINE = 2
"""Parts of an error's location that lead to an entry of the timeline; `what` and its `do` follow."""


def key_of(error: Any) -> str:
    """Return the error's key as in the file, without the `what` and `do` that pydantic's location has."""
    place = list(error["loc"])
    if "what" in place:
        del place[_OF_TIMELINE : _OF_TIMELINE + 2]
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        place.append("do")
    return ".".join(map(str, place))


def shown_of(error: Any) -> str:
    if error["type"] in ("missing", "union_tag_not_found"):
        return ""  # else it would be all that stands around the key
    value = error["ctx"]["tag"] if error["type"] == "union_tag_invalid" else error.get("input")
    text = repr(TrueOrFalse(value) if isinstance(value, bool) else value)
    return text if len(text) <= 80 else text[:77] + "..."


def allowed_at(error: Any, root: type[BaseModel]) -> str:
    place = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            keys = _sibling_keys(place, root)
            return f"one of the keys {', '.join(keys)}{nearest(str(place[-1]), keys)}"
        case "missing":
            schema = _schema_of(place, root)
            return f"{in_words(schema)}: this key is required" if schema else "a value: this key is required"
        case "union_tag_not_found":
            return f"one of {', '.join(ACTIONS)}: this key is required"
        case "union_tag_invalid":
            return f"one of {', '.join(ACTIONS)}{nearest(str(error['ctx']['tag']), ACTIONS)}"
        case "value_error":
            return str(error["msg"]).removeprefix("Value error, ")
    schema = _schema_of(place, root)
    if schema is None:  # an entry of a list, or of a mapping
        return of_type(error["type"]) or str(error["msg"]).removeprefix("Input should be ")
    words = in_words(schema)
    if error["type"] == "literal_error" and isinstance(error.get("input"), str):
        words += nearest(error["input"], map(str, schema.get("anyOf", [schema])[0].get("enum", ())))
    return words


def _keys_at(place: Sequence[str | int], root: type[BaseModel]) -> Mapping[str, Any]:
    """Return the keys of the mapping at this place, each with the JSON schema of its value; nothing for other
    values."""
    if "what" in place:
        is_action = len(place) == _OF_TIMELINE + 2
        return ACTIONS[str(place[_OF_TIMELINE + 1])].model_json_schema()["properties"] if is_action else {}
    at = whole = root.model_json_schema()
    for part in place:
        keys = at.get("properties", {})
        at = keys.get(str(part), {}) if keys else at.get("items") or at.get("additionalProperties") or {}
        at = at.get("anyOf", [at])[0]
        at = whole["$defs"][at["$ref"].rpartition("/")[2]] if "$ref" in at else at
    return at.get("properties", {})


def _schema_of(place: tuple[str | int, ...], root: type[BaseModel]) -> Mapping[str, Any] | None:
    return _keys_at(place[:-1], root).get(str(place[-1])) if place else None


def _sibling_keys(place: tuple[str | int, ...], root: type[BaseModel]) -> list[str]:
    if "what" in place:
        return keys_of(str(place[_OF_TIMELINE + 1]))
    return sorted(_keys_at(place[:-1], root))


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
    """Return in words the type that the value must have; None if pydantic's error is not about a type."""
    return _NAME if error == "string_pattern_mismatch" else _TYPES.get(error)


def in_words(schema: Mapping[str, Any]) -> str:
    """Return in words the values that a key with this JSON schema can have."""
    one, *null = schema.get("anyOf", [schema])
    return _value_in_words(one) + (", or null" if null else "")


def _value_in_words(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "const" in schema:
        return str(schema["const"])
    match schema.get("type", "object"):
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return _number("a whole number" if kind == "integer" else "a number", schema)
        case "string" if "pattern" in schema:
            return _NAME
        case "string":
            return f"text of up to {schema['maxLength']} letters" if "maxLength" in schema else "text"
        case "array":
            return f"a list of at least {schema['minItems']}" if schema.get("minItems") else "a list"
        case "object" if schema.get("minProperties"):
            return f"a mapping of {schema['minProperties']} or more keys to values"
    return "a mapping of keys to values"


def _number(kind: str, schema: Mapping[str, Any]) -> str:
    at_most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    most = f"up to {at_most:,}" if at_most is not None else f"below {below:,}" if below is not None else ""
    if "minimum" in schema:
        rest = f" to {at_most:,}" if at_most is not None else f" on{most and ', ' + most}"
        return f"{kind} from {schema['minimum']}{rest}"
    if "exclusiveMinimum" in schema:
        return f"{kind} above {schema['exclusiveMinimum']}" + (f", {most}" if most else "")
    return f"{kind} {most}".rstrip()
