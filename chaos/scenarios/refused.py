"""What pydantic refused of a scenario's document, in a user's words: the key, the value, and what is allowed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..errors import nearest
from ..faults.kinds import ACTIONS
from .action import keys_of
from .words import in_words, literals, of_type

_OF_TIMELINE = 2
"""How many parts of an error's place lead to an entry of the timeline; then come `what` and its `do`."""


def key_of(error: Any) -> str:
    """The key as the file has it: `what` and the `do` that pydantic chose by are no keys of the file."""
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
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def allowed_at(error: Any, root: type[BaseModel]) -> str:
    place = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            keys = _sibling_keys(place, root)
            return f"one of the keys {', '.join(keys)}{nearest(str(place[-1]), keys)}"
        case "missing":
            field = _field_of(place, root)
            return f"{in_words(field)}: this key is required" if field else "a value: this key is required"
        case "union_tag_not_found":
            return f"one of {', '.join(ACTIONS)}: this key is required"
        case "union_tag_invalid":
            return f"one of {', '.join(ACTIONS)}{nearest(str(error['ctx']['tag']), ACTIONS)}"
        case "value_error":
            return str(error["msg"]).removeprefix("Value error, ")
    field = _field_of(place, root)
    if field is None:  # an entry of a list, or of a mapping
        return of_type(error["type"]) or str(error["msg"]).removeprefix("Input should be ")
    words = in_words(field)
    if error["type"] == "literal_error" and isinstance(error.get("input"), str):
        words += nearest(error["input"], literals(field))
    return words


def _fields_at(place: Sequence[str | int], root: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """The fields of the model that stands at `place`; none where no model does."""
    if "what" in place:
        return ACTIONS[str(place[_OF_TIMELINE + 1])].model_fields if len(place) == _OF_TIMELINE + 2 else {}
    at: Any = root
    for part in place:
        if isinstance(at, type) and issubclass(at, BaseModel):
            found = at.model_fields.get(str(part))
            at = None if found is None else _but_none(found.annotation)
        elif get_origin(at) in (dict, tuple):  # of which each value, or entry, is one
            at = get_args(at)[1 if get_origin(at) is dict else 0]
        else:
            return {}
    return at.model_fields if isinstance(at, type) and issubclass(at, BaseModel) else {}


def _but_none(annotation: Any) -> Any:
    """`Model | None` without its None."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    return next(part for part in get_args(annotation) if part is not type(None))


def _field_of(place: tuple[str | int, ...], root: type[BaseModel]) -> FieldInfo | None:
    """The field at `place`; None where that is no field of a model but an entry of a list or a mapping."""
    return _fields_at(place[:-1], root).get(str(place[-1])) if place else None


def _sibling_keys(place: tuple[str | int, ...], root: type[BaseModel]) -> list[str]:
    """The keys that may stand where the one at `place` stands."""
    if "what" in place:
        return keys_of(str(place[_OF_TIMELINE + 1]))
    return sorted(_fields_at(place[:-1], root))
