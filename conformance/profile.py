"""A profile: what each rule is expected to measure of a client. Built-in ones by name, others from a file.

The files' form and the built-in ones are oracle/client_profiles.py's; each rule's expectation is read by that rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..chaos.errors import ScenarioError, nearest
from ..chaos.oracle import client_profiles
from .rules import RULES, Measured
from .rules.rule import Expected, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    client: str
    """Whose: for people."""
    rules: Mapping[str, Expected]
    """By the rule's name; what it does not name is held against nobody."""


def names() -> tuple[str, ...]:
    """The built-in profiles."""
    return tuple(client_profiles.built_in())


def profile_of(name_or_file: str) -> Profile:
    """The built-in profile of that name, or the one in that file. ScenarioError says what is wrong and allowed."""
    built_in = client_profiles.built_in()
    if name_or_file in built_in:
        return _from_document(name_or_file, built_in[name_or_file], f"the profile {name_or_file}")
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        allowed = f"one of {', '.join(built_in)}, or a YAML file{nearest(name_or_file, built_in)}"
        raise ScenarioError("conform", "--profile", repr(name_or_file), allowed)
    return _from_document(path.stem, client_profiles.read(path), str(path))


def _from_document(name: str, document: Mapping[str, Any], file: str) -> Profile:
    rules: dict[str, Expected] = {}
    for rule, value in document["rules"].items():
        if rule not in RULES:
            raise ScenarioError(file, f"rules.{rule}", repr(value), f"there is no such rule{nearest(str(rule), RULES)}")
        try:
            rules[rule] = RULES[rule].read(value)
        except ValueError as exc:
            raise ScenarioError(file, f"rules.{rule}", repr(value), f"it may be {RULES[rule].allowed}") from exc
    return Profile(name=name, client=str(document.get("client", name)), rules=rules)


def written(client: str, found: Iterable[tuple[str, Measured]]) -> str:
    """A profile file of what was measured: what was not decided is left out."""
    rules: dict[str, object] = {}
    for name, measured in found:
        if measured.value is None:
            continue
        is_bound = RULES[name].is_bound and not isinstance(measured.value, str)
        rules[name] = plain(RULES[name].read({"at_most": measured.value} if is_bound else measured.value))
    document = {"client": client, "rules": rules}
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
