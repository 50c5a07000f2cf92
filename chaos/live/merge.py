"""How the verdicts of a history that is judged in parts come to the verdict of the whole.

    V(whole) = sealed ⊕ V(carried ∪ new)            sealed grows at each seal by  V(before) ⊖ V(carried)

So nothing is counted twice, whatever a check counts: what the carried rows still give is not in `sealed`. Each check
declares here how its verdicts add up. WHOLE is a check whose rows are all carried: its verdict is that of the carried
and new rows. The others are counted: what they found in rows that are sealed away adds up.
A check without a declaration is judged UNKNOWN while a history grows, and a test fails until it has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..verdict import EXAMPLES_MAX, Example, Validity, Verdict
from .carry import MESSAGES, OPERATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """How verdicts of one check add up."""

    counted: bool
    """False: all rows that decide the check's verdict are carried."""
    traffic: bool = True
    """Whether the check reads rows of traffic at all."""
    reads: str = OPERATIONS
    """Which of the carried rows of traffic the check sees."""
    of_worst: bool = False
    """Whether `allowed` and `max_ms` are those of the finding nearest to its bound (findings.py)."""
    partial: tuple[str, ...] = ()
    """What `measured` says of the carried rows only, and is therefore left out."""
    sums: tuple[str, ...] = ()
    """Numbers in `measured` that add up, or tables of such numbers."""
    lists: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Lists in `measured`: by which key they are sorted, the largest first, and how many are shown."""


WHOLE = Merge(counted=False, traffic=False)
_MESSAGES = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")

MERGES: Mapping[str, Merge] = {
    "routes_converge": WHOLE,
    "routes_are_true": WHOLE,
    "no_false_eviction": WHOLE,
    "no_resurrection": WHOLE,
    "dead_name_servers_left": WHOLE,
    "name_server_selection": WHOLE,
    "queue_ownership": WHOLE,
    "recovery_time": Merge(counted=False),
    "exercised": Merge(counted=False, partial=("effects", "by_fault")),
    "dead_brokers_avoided": Merge(counted=True, of_worst=True, lists={"last_use": ("after_ms", 60)}),
    "answers_asked_for": Merge(counted=True, sums=("answered", "unasked")),
    "no_acknowledged_loss": Merge(counted=True, reads=MESSAGES, sums=_MESSAGES),
    "duplicates": Merge(counted=True, reads=MESSAGES, sums=("messages", "received_again", "stored_again")),
    "order_kept": Merge(counted=True, reads=MESSAGES, sums=("sends", "receipts", "out_of_order")),
    "availability": Merge(
        counted=True,
        sums=("quiet_operations",),
        partial=("send", "pull", "name_server_call", "quiet", "bucket_ms", "series"),
    ),
}


def undeclared(name: str) -> Verdict:
    """UNKNOWN: nobody has said how this check's verdicts add up."""
    why = "it declares no merge (chaos/live/merge.py), so it cannot be judged while the history grows"
    return Verdict.nothing_examined(name, why)


class Inconsistent(Exception):
    """The carried rows do not give what they should: the seal must not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """What one check found in rows that are sealed away."""

    examined: int = 0
    violations: int = 0
    sums: Mapping[str, Any] = field(default_factory=dict)
    lists: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    unknown: str = ""
    """Why something sealed could not be decided; empty when all was."""
    worst: Verdict | None = None
    """Of the verdicts at the seals the one nearest to its bound, or furthest over it."""
    examples: tuple[Example, ...] = ()

    def plus(self, merge: Merge, before: Verdict, carried: Verdict) -> Sealed:
        """With what `before` counted and `carried` no longer does. Inconsistent when that cannot be."""
        if not merge.counted:
            return self
        examined, violations = before.examined - carried.examined, before.violations - carried.violations
        if examined < 0 or violations < 0 or carried.check_failed:
            raise Inconsistent(f"{before.name}: {_shown(before)} became {_shown(carried)}")
        undecided = before.verdict is Validity.UNKNOWN and before.examined and carried.verdict is not Validity.UNKNOWN
        return replace(
            self,
            examined=self.examined + examined,
            violations=self.violations + violations,
            sums={name: _add(self.sums.get(name), _add(before.measured.get(name), carried.measured.get(name), -1))
                  for name in merge.sums},
            lists={name: _missing(self.lists.get(name, ()), before.measured.get(name), carried.measured.get(name))
                   for name in merge.lists},
            unknown=self.unknown or (before.why if undecided else ""),
            worst=max((v for v in (self.worst, before) if v is not None), key=_badness),
            examples=_joined(self.examples, before.examples if violations or undecided else ()),
        )  # fmt: skip

    def minus(self, examined: int, violations: int, sums: Mapping[str, Any]) -> Sealed:
        """Without what rows gave that are no longer sealed."""
        return replace(
            self,
            examined=self.examined - examined,
            violations=self.violations - violations,
            sums={name: _add(value, sums.get(name), -1) for name, value in self.sums.items()},
        )

    def with_(self, merge: Merge, rest: Verdict) -> Verdict:
        """The verdict of everything, `rest` being that of the carried and new rows."""
        if not merge.counted or rest.check_failed:
            return rest
        examined, violations = self.examined + rest.examined, self.violations + rest.violations
        measured = {name: value for name, value in rest.measured.items() if name not in merge.partial}
        for name in merge.sums:
            total = _add(self.sums.get(name), rest.measured.get(name))
            if total or name in rest.measured:
                measured[name] = total
        for name, (key, shown) in merge.lists.items():
            rows = [*self.lists.get(name, ()), *(rest.measured.get(name) or ())]
            measured[name] = sorted(rows, key=lambda row: -(row[key] or 0))[:shown]
        worst = max((v for v in (self.worst, rest) if v is not None), key=_badness)
        if merge.of_worst and "max_ms" in worst.measured:
            measured["max_ms"] = worst.measured["max_ms"]
        verdict, why = self._decided(examined, violations, rest, worst)
        return Verdict(
            name=rest.name,
            verdict=verdict,
            examined=examined,
            violations=violations,
            measured=measured,
            allowed=worst.allowed if merge.of_worst and worst.examined else rest.allowed,
            examples=_joined(rest.examples, self.examples),
            why=why,
        )

    def _decided(self, examined: int, violations: int, rest: Verdict, worst: Verdict) -> tuple[Validity, str]:
        if violations or rest.verdict is Validity.INVALID:
            return Validity.INVALID, (worst if worst.verdict is Validity.INVALID else rest).why
        if self.unknown:
            return Validity.UNKNOWN, self.unknown
        if rest.verdict is Validity.UNKNOWN and (rest.examined or not examined):
            return Validity.UNKNOWN, rest.why
        return Validity.VALID, ""


def _shown(verdict: Verdict) -> str:
    return f"{verdict.verdict} ({verdict.violations} of {verdict.examined})"


def _badness(verdict: Verdict) -> tuple[int, bool, float]:
    """As findings.py has it, from what a verdict shows."""
    order = {Validity.VALID: 0, Validity.UNKNOWN: 1, Validity.INVALID: 2}
    if not verdict.examined:
        return -1, False, 0.0
    measured_ms, bound_ms = verdict.measured.get("max_ms"), verdict.allowed.get("bound_ms")
    if not isinstance(measured_ms, int | float) or not isinstance(bound_ms, int | float):
        return order[verdict.verdict], False, -math.inf
    return order[verdict.verdict], True, measured_ms - bound_ms - (verdict.allowed.get("tolerance_ms") or 0)


def _add(one: Any, other: Any, sign: int = 1) -> Any:
    """one ± other, where either may be missing; tables are added entry by entry."""
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        one, other = one or {}, other or {}
        return {key: _add(one.get(key), other.get(key), sign) for key in {**one, **other}}
    return (one or 0) + sign * (other or 0)


def _missing(
    kept: tuple[Mapping[str, Any], ...], before: Iterable[Mapping[str, Any]] | None, carried: Any
) -> tuple[Mapping[str, Any], ...]:
    still = list(carried or ())
    return (*kept, *(row for row in before or () if row not in still and row not in kept))


def _joined(*examples: Iterable[Example]) -> tuple[Example, ...]:
    found: list[Example] = []
    for example in (example for some in examples for example in some):
        if example not in found:
            found.append(example)
    return tuple(found[:EXAMPLES_MAX])
