"""`--set KEY=VALUE`: a scenario's document with one of its values changed, before it is checked like any other.

workload.sends_per_s=10      a dotted path into the file; an entry of a list by its number: timeline.0.at_s=30
brokers.forceRegister=false  a group or node, and one of RocketMQ's settings: short for config.brokers.…
pollNameServerInterval=5000  a setting that one group alone takes: short for config.clients.…
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import yaml

from ..errors import ScenarioError, nearest
from ..settings.catalogue import GROUPS, group_of, settings_for

_NODE = re.compile(r"(ns|broker|producer|consumer)-\w+|prober")


def change(text: str, document: dict[str, Any], keys: Collection[str]) -> str:
    """Change the document as `KEY=VALUE` says; the key's whole path. `keys`: those that a scenario has.

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
        path = _of_config(path)
        if len(path) == 1 and (
            almost := nearest(path[0], {name for kinds in GROUPS.values() for name in settings_for(*kinds)})
        ):
            raise ScenarioError("--set", key, said, f"a key of the scenario, or a setting of docs/settings.md{almost}")
    _put(document, path, value, key)
    return ".".join(path)


def _of_config(path: list[str]) -> list[str]:
    """Where a short name of a setting leads; any other path as it is."""
    if len(path) == 2 and (path[0] in GROUPS or _NODE.fullmatch(path[0])):
        return ["config", *path]
    groups = [group for group, kinds in GROUPS.items() if any(group_of(one) == kinds for one in _named(path[0]))]
    return ["config", groups[0], path[0]] if len(path) == 1 and len(groups) == 1 else path


def _named(name: str) -> list[Any]:
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
