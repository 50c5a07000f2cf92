"""Judges each rule by observations and a profile; reads built-in profiles and profile files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from ..chaos.errors import ScenarioError, nearest
from ..chaos.oracle import client_profiles
from ..chaos.oracle.choosing.start_choice import ALPHA
from ..chaos.verdict import Validity
from .instances import ONLY, clients_of, fails_chosen
from .rules import OF_PROGRAM, RULES, LeftOut, Measured, Rule
from .rules.lookups import label_in
from .rules.rule import LATE_S, OF_ANOTHER, Expected, plain
from .situations import SITUATIONS, Watched

# --- profiles: what each rule is expected to measure. Their files' form is oracle/client_profiles.py's


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleProfile:
    name: str
    rules: Mapping[str, Expected]
    """By rule name. A rule that is missing here is not judged."""
    own: frozenset[str] = frozenset()
    """The rules in the client's own profile file, without the rules of `like`."""


def names() -> tuple[str, ...]:
    return tuple(client_profiles.built_in())


def profile_of(name_or_file: str) -> RuleProfile:
    """Return the built-in profile of that name, or the profile in that file. Raises ScenarioError, which says what is
    wrong and what is allowed."""
    built_in = client_profiles.built_in()
    if name_or_file in built_in:
        return _from_document(name_or_file, built_in[name_or_file], f"the profile {name_or_file}")
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        allowed = f"one of {', '.join(built_in)}, or a YAML file{nearest(name_or_file, built_in)}"
        raise ScenarioError("conform", "--profile", repr(name_or_file), allowed)
    document = client_profiles.read(path)
    own = frozenset(document.get("own", document["rules"]))
    return replace(_from_document(path.stem, document, str(path)), own=own)


def _from_document(name: str, document: Mapping[str, Any], file: str) -> RuleProfile:
    rules: dict[str, Expected] = {}
    for rule, value in document["rules"].items():
        if rule not in RULES:
            raise ScenarioError(file, f"rules.{rule}", repr(value), f"a rule of `conform`{nearest(str(rule), RULES)}")
        try:
            rules[rule] = RULES[rule].read(value)
        except ValueError as exc:
            raise ScenarioError(file, f"rules.{rule}", repr(value), RULES[rule].allowed) from exc
    return RuleProfile(name=name, rules=rules)


def written(client: str, found: Iterable[tuple[str, Measured]]) -> str:
    """Return the text of a profile file with the measured values, without undecided rules. If a smaller value is as
    good, the file says `at_most` the measured value plus the tolerance, because two measurements of one client
    differ."""
    rules: dict[str, object] = {}
    for name, measured in found:
        if measured.value is None:
            continue
        rule = RULES[name]
        expected: object = measured.value
        if rule.is_bound and isinstance(expected, float | int):
            expected = {"at_most": round(expected + (rule.tolerance or 0.0), 3)}
        rules[name] = plain(rule.read(expected))
    document = {"client": client, "rules": rules}
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


# --- verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    rule: Rule
    measured: Measured
    expected: Expected | None
    """None: there is no profile, or the profile does not have this rule."""
    verdict: Validity | None
    """None: the rule was only measured, or left out. UNKNOWN also if no observation decides the rule."""
    clients: Mapping[str, RuleVerdict] = field(default_factory=dict)
    """In a program with several clients, each client's by its topics; this one is then the worst."""

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as an entry of `rules` in conform.json; for a rule that was left out, name and reason."""
        if isinstance(self.measured, LeftOut):
            return {"rule": self.rule.name, "why": self.measured.why}
        found = self.measured
        return {
            "rule": self.rule.name,
            "measured": found.value,
            "count": found.count,
            "expected": None if self.expected is None else plain(self.expected),
            "verdict": "measured" if self.verdict is None else str(self.verdict),
            "unit": self.rule.unit,
            "interval": None if found.interval is None else list(found.interval),
            "p": found.p,
            "power": found.power,
            "why": found.why,
            "examples": [dict(example) for example in found.examples],
            **({"clients": {name: each.to_json() for name, each in self.clients.items()}} if self.clients else {}),
        }


def situations_of(rules: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for rule in rules for name in RULES[rule].situations))


def judge_all(
    watched: Sequence[Watched],
    profile: RuleProfile | None,
    rules: Collection[str] | None = None,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> list[RuleVerdict]:
    """Return a verdict for each of `rules` (default: all). A rule whose situations were not run is left out."""
    clients = {name: _labelled(of) for name, of in clients_of(watched).items()}
    wanted = [rule for name, rule in RULES.items() if rules is None or name in rules]
    return [
        _of_all(
            rule, {ONLY: watched} if rule.name in OF_PROGRAM else clients, profile, left_out.get(rule.situations[0])
        )
        for rule in wanted
    ]


def _labelled(watched: Sequence[Watched]) -> list[Watched]:
    """Return the observations, each with the label found from all of them, so that all rules assume one way of
    choosing."""
    label = label_in([one for one in watched if not one.unclear])
    return [replace(one, label=label) for one in watched]


def _of_all(
    rule: Rule, clients: Mapping[str, Sequence[Watched]], profile: RuleProfile | None, why: str | None
) -> RuleVerdict:
    """Return the worst client's verdict, with the results of all clients of the program. `why` says why the rule's
    situation was left out. For a client that was in none of the situations the rule is left out, because another client
    used the NameServer that failed, or the client waited for what was disturbed. Where nothing is disturbed, every
    client must be seen, and the rule is UNKNOWN."""
    run = dict.fromkeys(one.situation for of in clients.values() for one in of if one.situation in rule.situations)
    of_all = [situation for situation in run if not fails_chosen(situation)]
    unseen = f"{_UNSEEN}{', '.join(of_all)}"
    otherwise: Measured = LeftOut(why=why or (unseen if of_all else f"{OF_ANOTHER}{', '.join(run)}"))
    if not why and not run:
        otherwise = LeftOut(why=f"not run: {', '.join(rule.situations)}")
    elif not why and any(not SITUATIONS[situation].steps for situation in of_all):
        otherwise = Measured.undecided(unseen, len(of_all))
    found = {name: _judge(rule, watched, profile, otherwise) for name, watched in clients.items()}
    if len(found) == 1:
        return next(iter(found.values()))
    return replace(min(found.values(), key=_badness), clients=found)


def asked_for(
    found: Sequence[RuleVerdict], profile: RuleProfile | None, named: Collection[str] | None
) -> list[RuleVerdict]:
    """Return the verdicts; a rule that was left out is UNKNOWN if the user asked for the rule. The user asks for the
    rules of the client's own profile file, and for the profile's rules in `named` (`--rules`). A built-in profile asks
    for no rule, because it has rules for producers and for consumers, and most clients are one of them."""
    if profile is None:
        return [*found]
    asked = profile.rules.keys() & {*profile.own, *(named or ())}
    return [
        replace(each, measured=Measured.undecided(f"not examined: {each.measured.why}"), verdict=Validity.UNKNOWN)
        if isinstance(each.measured, LeftOut) and each.rule.name in asked
        else each
        for each in found
    ]


_UNSEEN = "too little was seen of this client in "


def _badness(found: RuleVerdict) -> int:
    """Sort key for verdicts, worst first. Clients that never met the situation come last, behind those that met it and
    do not do what the rule measures."""
    if isinstance(found.measured, LeftOut):
        return 6 if found.measured.why.startswith((OF_ANOTHER, _UNSEEN)) else 4
    if found.measured.value is None and not found.measured.count:
        return 5
    return [Validity.INVALID, Validity.UNKNOWN, Validity.VALID, None].index(found.verdict)


def hindered_in(
    watched: Sequence[Watched], profile: RuleProfile | None, rules: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return the situations in which this machine was too slow to decide a rule."""
    found: dict[str, None] = {}
    for each in judge_all(watched, profile, rules):
        rule = each.rule
        if isinstance(each.measured, LeftOut) or each.verdict in (Validity.VALID, Validity.INVALID) or rule.of_choice:
            continue
        is_time = rule.unit == "s" and isinstance(each.measured.value, float | int)
        if not (each.verdict is Validity.UNKNOWN or rule.by_time or is_time):
            continue  # a word, or a number of things, that a late machine does not change
        too_late_s = rule.tolerance if is_time and rule.tolerance is not None else LATE_S
        late = (
            one.situation for one in watched if one.situation in rule.situations and one.late_ms / 1000 > too_late_s
        )
        found |= dict.fromkeys(name for name in late if not SITUATIONS[name].many)
    return tuple(found)


def _judge(rule: Rule, watched: Sequence[Watched], profile: RuleProfile | None, otherwise: Measured) -> RuleVerdict:
    expected = None if profile is None else profile.rules.get(rule.name)
    of = [one for one in watched if one.situation in (*rule.situations, *rule.more)]
    of = of if any(one.situation in rule.situations for one in of) else []
    clear = [one for one in of if not one.unclear]
    if of and not clear:
        measured = Measured.undecided(of[0].unclear, len(of))
    elif of:
        try:
            measured = rule.measure(clear)
            if isinstance(measured, LeftOut) and (unclear := [one.unclear for one in of if one.unclear]):
                measured = Measured.undecided(unclear[0], len(unclear))
        except Exception as exc:  # as a check that fails: UNKNOWN, never a pass
            measured = Measured.undecided(f"the rule failed: {type(exc).__name__}: {exc}", len(clear))
    else:
        measured = otherwise
    verdict: Validity | None = None
    if not isinstance(measured, LeftOut):
        late_s = max((one.late_ms for one in of), default=0.0) / 1000
        if measured.value is None and not (measured.odds and expected is not None):
            verdict = Validity.UNKNOWN
        elif expected is None:
            if isinstance(measured.value, str) and rule.by_time and late_s > LATE_S:
                why = f"this machine was {late_s:.2f} s late meanwhile, so the word may be wrong: run again alone"
                measured = replace(measured, why="; ".join(filter(None, (measured.why, why))))
        else:
            verdict = rule.judge(measured, expected, late_s)
            if verdict is Validity.UNKNOWN and rule.judge(measured, expected) is Validity.INVALID:
                why = f"this machine was {late_s:.2f} s late meanwhile, which may explain the value: run again alone"
                measured = replace(measured, why="; ".join(filter(None, (measured.why, why))))
            elif verdict is Validity.UNKNOWN and measured.odds and not measured.why:
                why = f"chance may still explain the difference (p ≤ {ALPHA:g} decides): --repeats 2 shows more of it"
                measured = replace(measured, why=why)
    return RuleVerdict(rule=rule, measured=measured, expected=expected, verdict=verdict)
