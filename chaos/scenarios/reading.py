"""A scenario's text as a document, and what YAML would let pass: a key said twice, and true where a number is meant."""

from __future__ import annotations

from typing import Any

import yaml

from ..errors import ScenarioError

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""By libyaml, where YAML was built with it: a ninth of the time."""


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML's own safe loader, but for a key that a mapping has already."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
                seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def read(text: str, *, file: str) -> dict[str, Any]:
    """The document of a YAML text. ScenarioError when it is no mapping, or is not well-formed."""
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = str(getattr(exc, "problem", ""))
        if problem.startswith("duplicate key "):
            key = problem.removeprefix("duplicate key ")
            raise ScenarioError(file, where, f"a second `{key}:`", "each key once") from exc
        raise ScenarioError(file, where, "", "well-formed YAML") from exc
    if not isinstance(document, dict):
        found = "an empty file" if document is None else f"a {type(document).__name__}"
        raise ScenarioError(file, "", found, "a mapping with the keys of a scenario")
    return document


def refuse_booleans(document: Any, allowed: frozenset[str], *, file: str, place: tuple[str, ...] = ()) -> None:
    """ScenarioError for a true or false at a key that is none of `allowed`: pydantic would take it for 1 or 0."""
    if isinstance(document, bool):
        if not place or place[-1] not in allowed:
            keys = ", ".join(sorted(allowed))
            raise ScenarioError(
                file, ".".join(place), str(document).lower(), f"a number or a text; only {keys} are true or false"
            )
    elif isinstance(document, dict):
        for key, value in document.items():
            refuse_booleans(value, allowed, file=file, place=(*place, str(key)))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            refuse_booleans(value, allowed, file=file, place=(*place, str(index)))
