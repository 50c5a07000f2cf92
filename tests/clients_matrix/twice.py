"""Two runs of the same client agree: in every word, in every time, and where chance is, inside its interval.

    words                       the same, or both as the profile allows
    times                       within the rule's tolerance of each other, and how late the machine was
    bounds of the profile       both within: what lies below depends on when in a poll or a rebalance a fault fell
    counts and shares           within what chance makes of them: three standard deviations, or the rule's tolerance
    ranges by chance            one of the values is in the other's range
    rebalances                  within one period of them

    nothing                     in both for the same cause, as "a consumer ended by itself"

A rule that one of the runs left undecided is told apart: nothing is known of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES

from .page import BY_CHANCE

CHANCE: Mapping[str, float] = {"queues_of_killed_s": 20.0, "queues_of_stopped_s": 20.0, "received_twice": 87.0}
"""When in a rebalance, each 20 s, one of two consumers ends; and how many of ten messages a second were received since
the offsets were last committed, each 5 s: three deviations of the difference between two runs of two situations."""

Document = Mapping[str, Any]
"""A conform.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What two runs found of one rule."""

    rule: str
    one: Any
    other: Any
    why: str
    """In which way they do not agree; "" where they do."""
    is_undecided: bool = False

    def __str__(self) -> str:
        return f"{self.rule}: {_said(self.one)} and {_said(self.other)}{': ' if self.why else ''}{self.why}"


def _said(value: Any) -> str:
    return "nothing" if value is None else f"{value:g}" if isinstance(value, float | int) else str(value)


def compared(one: Document, other: Document) -> Iterator[Pair]:
    """Every rule that either run measured."""
    found, again = ({rule["rule"]: rule for rule in document["rules"]} for document in (one, other))
    late_s = (one["late_ms"] + other["late_ms"]) / 1000
    for name in RULES:
        if name not in found and name not in again:
            continue
        if name not in found or name not in again:
            measured = found.get(name, again.get(name, {})).get("measured")
            left_out = (other if name in found else one)["left_out"].get(name, "")
            never_met = left_out.startswith(
                ("not run", "another client's NameServer", "too little", "no call went on", "it turns to")
            )
            yield Pair(rule=name, one=measured, other=None, why=f"one left it out: {left_out}", is_undecided=never_met)
            continue
        yield _compared(name, found[name], again[name], late_s)


def _compared(name: str, one: Mapping[str, Any], other: Mapping[str, Any], late_s: float) -> Pair:
    a, b = one["measured"], other["measured"]
    if a is b is None and _cause(one) == _cause(other):
        return Pair(rule=name, one=a, other=b, why="")
    if a is None or b is None:
        why = one["why"] if a is None else other["why"]
        return Pair(rule=name, one=a, other=b, why=why, is_undecided=True)
    are_words, both_valid = (
        isinstance(a, str) or isinstance(b, str),
        one["verdict"] == other["verdict"] == Validity.VALID,
    )
    if both_valid and (are_words or RULES[name].is_bound):
        return Pair(rule=name, one=a, other=b, why="")
    if are_words:
        return Pair(rule=name, one=a, other=b, why="" if a == b else "they are not the same")
    apart = _apart(name, max(a, b), late_s)
    chance = name in BY_CHANCE and any(
        rule.get("interval") and rule["interval"][0] - apart <= value <= rule["interval"][1] + apart
        for rule, value in ((one, b), (other, a))
    )
    why = "" if chance or abs(a - b) <= apart else f"they may be {apart:.3g} {RULES[name].unit} apart"
    return Pair(rule=name, one=a, other=b, why=why)


def _cause(rule: Mapping[str, Any]) -> str:
    return str(rule["why"].partition(" (")[0])


def _apart(name: str, value: float, late_s: float) -> float:
    """How far two values may lie apart."""
    rule = RULES[name]
    tolerance = max(rule.tolerance or 0.0, CHANCE.get(name, 0.0))
    if rule.unit == "s":
        return tolerance + late_s
    return max(tolerance, 3 * sqrt(value)) if rule.unit == "look-ups" else tolerance


def agreement(before: Document | None, found: Document) -> dict[str, Any] | None:
    """What is kept of two runs held against each other; None where there was none before."""
    if before is None:
        return None
    pairs = list(compared(before, found))
    return {
        "date": before["date"],
        "rules": len(pairs),
        "agree": sum(not pair.why for pair in pairs),
        "not the same": [str(pair) for pair in pairs if pair.why and not pair.is_undecided],
        "not decided": [str(pair) for pair in pairs if pair.is_undecided],
    }
