"""A scenario's text as a document, with the changes of `--set`, before validation. document.py refuses some valid YAML:
duplicate keys, and aliases that contain themselves or expand too far."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from ..errors import ScenarioError, nearest
from ..settings.catalogue import group_of, settings_for
from ..settings.setting import GROUPS

_ENDLESS, _TOO_MUCH = "an alias of itself", "too many values"
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""By libyaml if YAML was built with it: a ninth of the time."""


LETTERS_MAX, VALUES_MAX = 1_000_000, 200_000
"""Limits of a document; keys count as values. 25,000 entries of a timeline have as many and take minutes to
validate."""


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML's safe loader, which refuses endless aliases, too many values and keys that occur twice."""

    def construct_document(self, node: yaml.Node) -> Any:
        self._values_of(node, {})
        return super().construct_document(node)

    def _values_of(self, node: yaml.Node, known: dict[int, int]) -> int:
        """Return the number of values in the YAML node, each use of an alias counted. `known` has the number for each
        node; 0 while it is being counted."""
        if not isinstance(node, yaml.CollectionNode):
            return 1
        if (count := known.get(id(node))) == 0:
            raise yaml.constructor.ConstructorError(None, None, _ENDLESS, node.start_mark)
        if count is None:
            known[id(node)] = 0
            parts = (
                node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
            )
            count = known[id(node)] = 1 + sum(self._values_of(part, known) for part in parts)
        if count > VALUES_MAX:
            raise yaml.constructor.ConstructorError(None, None, _TOO_MUCH, node.start_mark)
        return count

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


FORMER_KEYS = (("prove_faults", False), ("workload", "clients_per_process", 1))
"""What run folders of earlier versions say that is no key any more, and how they say that it was not asked for."""


def read_file(path: Path) -> dict[str, Any]:
    """Return the document of a YAML file. Raises ScenarioError with one sentence."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise ScenarioError(file, "", "no such file", "") from exc
    except OSError as exc:
        raise ScenarioError(file, "", "", f"a readable YAML file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise ScenarioError(
            file, f"line {line}", f"it is not UTF-8 text (byte 0x{exc.object[exc.start]:02x})", ""
        ) from exc
    return read(text, file=file)


def read(text: str, *, file: str) -> dict[str, Any]:
    """Return the document of a YAML text. Raises ScenarioError if the text is no mapping, or not well-formed."""
    if len(text) > LETTERS_MAX:
        raise ScenarioError(file, "", f"too long, {len(text):,} letters: more than {LETTERS_MAX:,}", "")
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ScenarioError(file, where, *_refused(str(getattr(exc, "problem", "")), text, mark)) from exc
    except RecursionError as exc:
        raise ScenarioError(file, "", "lists and mappings are nested too deep", "") from exc
    if not isinstance(document, dict):
        found = "an empty file" if document is None else "a list" if isinstance(document, list) else "text"
        raise ScenarioError(file, "", found, "a mapping with the keys of a scenario")
    for *path, key, unasked in FORMER_KEYS:
        at = document.get(path[0]) if path else document
        if isinstance(at, dict) and at.get(key) == unasked:
            del at[key]
    return {key: value for key, value in document.items() if not str(key).startswith("x-")}


def _refused(problem: str, text: str, mark: yaml.Mark | None) -> tuple[str, str]:
    """Return the text that YAML refused ("" if its message does not quote the text), and what is allowed there."""
    if problem.startswith("duplicate key "):
        return f"a second `{problem.removeprefix('duplicate key ')}:`", "each key once"
    if problem == _ENDLESS:
        return "an alias that contains itself", ""
    if problem == _TOO_MUCH:
        return f"too much, with its aliases written out: more than {VALUES_MAX:,} keys and values", ""
    if problem == "but found another document":
        return "a second document", "one in a file"
    if mark is not None and mark.line < len(lines := text.splitlines()):
        line = lines[mark.line]
        if "\t" in line[: len(line) - len(line.lstrip())]:
            return "a tab; indent with spaces", ""
    return "", "well-formed YAML"


_NODE = re.compile(r"(ns|broker|producer|consumer)-\w+|prober")


def change(text: str, document: dict[str, Any], keys: Collection[str]) -> str:
    """Change the document as `--set KEY=VALUE` says. Returns the key's dotted path, with a short form completed
    (`brokers.forceRegister`: `config.brokers.forceRegister`). `keys`: a scenario's keys.

    workload.sends_per_s=10      a dotted path into the file; an entry of a list by its number: timeline.0.at_s=30
    brokers.forceRegister=false  a group or node, and one of RocketMQ's settings: short for config.brokers.…
    pollNameServerInterval=5000  a setting that only one group has: short for config.clients.…

    Raises ScenarioError if the text is no KEY=VALUE, or if a value on the path has no keys.
    """
    key, equals, said = text.partition("=")
    path = [part for part in key.strip().split(".") if part]
    if not equals or not path or not said.strip():  # as an unset variable of a CI job leaves it
        allowed = "KEY=VALUE, such as settle_s=90 or config.brokers.forceRegister=false; KEY=null for no value"
        raise ScenarioError("--set", "", repr(text), allowed)
    try:
        value = yaml.safe_load(said)
    except yaml.YAMLError as exc:
        raise ScenarioError("--set", key, repr(said), "a value as YAML has it") from exc
    if path[0] not in keys:
        path = _path_of_setting(path)
        if len(path) == 1 and (said_elsewhere := _where_a_setting_goes(path[0])):
            raise ScenarioError("--set", key, said, said_elsewhere)
    _put(document, path, value, key)
    return ".".join(path)


def _path_of_setting(path: list[str]) -> list[str]:
    if len(path) == 2 and (path[0] in GROUPS or _NODE.fullmatch(path[0])):
        return ["config", *path]
    groups = [
        group for group, kinds in GROUPS.items() if any(group_of(one) == kinds for one in _settings_named(path[0]))
    ]
    return ["config", groups[0], path[0]] if len(path) == 1 and len(groups) == 1 else path


def _where_a_setting_goes(name: str) -> str:
    """Return what is allowed in place of a setting that several groups have, or whose name is nearly right."""
    having = [f"{group}.{name}" for group, kinds in GROUPS.items() if name in settings_for(*kinds)]
    if having:
        return f"{', '.join(having)}: several groups have this setting"
    almost = nearest(name, {known for kinds in GROUPS.values() for known in settings_for(*kinds)})
    return f"a key of the scenario, or a setting of docs/settings.md{almost}" if almost else ""


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
            entries = f"{where}.0 to {where}.{len(at) - 1}" if len(at) > 1 else f"{where}.0, the only entry"
            raise ScenarioError(
                "--set", key, f"{where}.{part}", entries if at else f"an entry of {where}, which is empty"
            )
        if last:
            at[int(part)] = value
        else:
            at = at[int(part)]
