"""A scenario's text as a document, changed as `--set` says, before it is checked.

What YAML would let pass is refused here: a key said twice, and true where a number is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import yaml

from ..errors import ScenarioError, nearest
from ..settings.catalogue import GROUPS, group_of, settings_for

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


_NODE = re.compile(r"(ns|broker|producer|consumer)-\w+|prober")


def change(text: str, document: dict[str, Any], keys: Collection[str]) -> str:
    """Change the document as `--set KEY=VALUE` says; the key's whole path. `keys`: those that a scenario has.

    workload.sends_per_s=10      a dotted path into the file; an entry of a list by its number: timeline.0.at_s=30
    brokers.forceRegister=false  a group or node, and one of RocketMQ's settings: short for config.brokers.…
    pollNameServerInterval=5000  a setting that one group alone takes: short for config.clients.…

    ScenarioError for what is no KEY=VALUE, or leads through a value that has no keys.
    """
    key, equals, said = text.partition("=")
    path = [part for part in key.strip().split(".") if part]
    if not equals or not path:
        raise ScenarioError(
            "--set", "", repr(text), "KEY=VALUE, such as settle_s=90 or config.brokers.forceRegister=false"
        )
    try:
        value = yaml.safe_load(said)
    except yaml.YAMLError as exc:
        raise ScenarioError("--set", key, repr(said), "a value as YAML has it") from exc
    if path[0] not in keys:
        path = _path_of_setting(path)
        if len(path) == 1 and (
            almost := nearest(path[0], {name for kinds in GROUPS.values() for name in settings_for(*kinds)})
        ):
            raise ScenarioError("--set", key, said, f"a key of the scenario, or a setting of docs/settings.md{almost}")
    _put(document, path, value, key)
    return ".".join(path)


def _path_of_setting(path: list[str]) -> list[str]:
    """Where a short name of a setting leads; any other path as it is."""
    if len(path) == 2 and (path[0] in GROUPS or _NODE.fullmatch(path[0])):
        return ["config", *path]
    groups = [
        group for group, kinds in GROUPS.items() if any(group_of(one) == kinds for one in _settings_named(path[0]))
    ]
    return ["config", groups[0], path[0]] if len(path) == 1 and len(groups) == 1 else path


def _settings_named(name: str) -> list[Any]:
    found = {id(one): one for kinds in GROUPS.values() for one in settings_for(*kinds).values() if one.name == name}
    return list(found.values())


def _put(document: dict[str, Any], path: list[str], value: object, key: str) -> None:
    at: Any = document
    for index, part in enumerate(path):
        last = index == len(path) - 1
        if isinstance(at, dict):
            if last:
                at[part] = value
            else:
                at = at.setdefault(part, {})
            continue
        where = ".".join(path[:index])
        if not isinstance(at, list):
            raise ScenarioError("--set", key, where, "a key that has keys of its own")
        if not part.isdigit() or int(part) >= len(at):
            raise ScenarioError("--set", key, part, f"a number from 0 to {len(at) - 1}: {where} is a list of {len(at)}")
        if last:
            at[int(part)] = value
        else:
            at = at[int(part)]
