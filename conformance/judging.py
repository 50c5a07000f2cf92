"""What was watched, held against a profile: one verdict a rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..chaos.verdict import Validity
from .profile import Profile
from .rules import RULES, LeftOut, Measured, Rule
from .rules.rule import LATE_S, Expected, plain
from .situations import SITUATIONS
from .watched import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """One rule of one client."""

    rule: Rule
    measured: Measured | LeftOut
    expected: Expected | None
    """None: there is no profile, or it says nothing of this rule."""
    verdict: Validity | None
    """None: measured, and held against nothing; or left out. UNKNOWN also where nothing was decided."""

    def to_json(self) -> dict[str, Any]:
        """As an entry of `rules` in conform.json; of `left_out` its name and the reason."""
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
        }


def situations_of(rules: Collection[str]) -> tuple[str, ...]:
    """The situations that these rules are measured in, in the order of the rules, each once."""
    return tuple(dict.fromkeys(name for rule in rules for name in RULES[rule].situations))


def judge_all(
    watched: Sequence[Watched], profile: Profile | None, rules: Collection[str] | None = None
) -> list[RuleVerdict]:
    """A verdict for every rule (or those), in their order. A rule none of whose situations was run is left out."""
    return [_judge(rule, watched, profile) for name, rule in RULES.items() if rules is None or name in rules]


def hindered_in(
    watched: Sequence[Watched], profile: Profile | None, rules: Collection[str] | None = None
) -> tuple[str, ...]:
    """The situations in which this machine was so late that a rule was not decided, or not held against its time."""
    found: dict[str, None] = {}
    for each in judge_all(watched, profile, rules):
        if not isinstance(each.measured, Measured) or each.verdict in (Validity.VALID, Validity.INVALID):
            continue
        rule = each.rule
        is_time = rule.unit == "s" and isinstance(each.measured.value, float | int)
        if not (each.verdict is Validity.UNKNOWN or rule.by_time or is_time):
            continue  # a word, or a number of things, that a late machine does not change
        too_late_s = rule.tolerance if is_time and rule.tolerance is not None else LATE_S
        late = (
            one.situation for one in watched if one.situation in rule.situations and one.late_ms / 1000 > too_late_s
        )
        found |= dict.fromkeys(name for name in late if not SITUATIONS[name].many)
    return tuple(found)


def _judge(rule: Rule, watched: Sequence[Watched], profile: Profile | None) -> RuleVerdict:
    expected = None if profile is None else profile.rules.get(rule.name)
    of = [one for one in watched if one.situation in rule.situations]
    if of:
        try:
            measured = rule.measure(of)
        except Exception as exc:  # as a check that fails: UNKNOWN, never a pass
            measured = Measured.undecided(f"the rule failed: {type(exc).__name__}: {exc}")
    else:
        measured = LeftOut(why=f"not run: {', '.join(rule.situations)}")
    verdict: Validity | None = None
    if isinstance(measured, Measured):
        if measured.value is None:
            verdict = Validity.UNKNOWN
        elif expected is not None:
            late_s = max(one.late_ms for one in of) / 1000
            verdict = rule.judge(measured, expected, late_s)
            if verdict is Validity.UNKNOWN and rule.judge(measured, expected) is Validity.INVALID:
                why = f"this machine was {late_s:.2f} s late meanwhile: end what else it does, and run again"
                measured = replace(measured, why="; ".join(filter(None, (measured.why, why))))
    return RuleVerdict(rule=rule, measured=measured, expected=expected, verdict=verdict)
