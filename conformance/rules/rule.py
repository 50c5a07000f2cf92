"""A rule: one property of a client that is measured from outside and compared with a profile.

    measure    observations ─► Measured (a value with its count; without a value `why` says why)
               or LeftOut: the program has no such part
    judge      Measured and what a profile expects ─► VALID, INVALID, UNKNOWN

An expectation is a word, a number (met within the rule's tolerance), a Range (met without tolerance), or several of
these, of which one must be met. Expectations in profile files have the same forms.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ...chaos.oracle.choosing.start_choice import ALPHA
from ...chaos.verdict import Validity
from ..situations import Watched

Value = str | float
"""A word, or a number in the rule's unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An allowed range; both ends are included."""

    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"

    def to_json(self) -> dict[str, float]:
        ends = {"at_least": self.at_least, "at_most": self.at_most}
        return {name: end for name, end in ends.items() if end is not None}


Expected = str | float | Range | tuple[str | float | Range, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    value: Value | None
    """None: the measurement decides no value."""
    count: int
    """Number of starts, look-ups, connects … measured."""
    interval: tuple[float, float] | None = None
    """The smallest and the greatest value, or the 99 % confidence interval if chance is involved."""
    p: float | None = None
    """If chance is involved: the probability of this or more under the opposite."""
    doubt: float = 0.0
    """Probability that the value is wrong by chance; above ALPHA it is not judged."""
    odds: Mapping[str, float] = field(default_factory=dict)
    """Likelihood under each word, as a share of the likeliest; words at ALPHA or below are ruled out."""
    power: float | None = None
    """How surely so many starts find the deviation that `why` names."""
    seen_s: float | None = None
    """If the value says that something never came: for how long nobody saw it."""
    why: str = ""
    """One sentence; never empty without a value."""
    examples: Sequence[Mapping[str, Any]] = ()
    """At most EXAMPLES_MAX: situation, process, time, observation."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(self.examples[:EXAMPLES_MAX]))

    @classmethod
    def undecided(cls, why: str, count: int = 0, **details: Any) -> Measured:
        return cls(value=None, count=count, why=why, **details)

    @classmethod
    def median(cls, seconds: Sequence[float], why_none: str, examples: Sequence[Mapping[str, Any]] = ()) -> Measured:
        """Return the median, the shortest and the longest of the times."""
        if not seconds:
            return cls.undecided(why_none)
        interval = (round(min(seconds), 3), round(max(seconds), 3))
        return cls(value=round(median(seconds), 3), count=len(seconds), interval=interval, examples=examples)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Measured):
    """A rule is not judged if the program does not do what the rule measures, or if the situation was not run."""

    value: Value | None = None
    count: int = 0


EXAMPLES_MAX = 5
OF_ANOTHER = "another client's NameServer failed in "
"""Why a rule is left out for a client whose NameServer the situation did not disturb."""
LATE_S = 0.4
"""A little less than JOIN_MS of lookups.py."""
TOO_LATE_S = 1.5
"""Servers this late drive clients into their time-outs, so nothing is judged."""

Measure = Callable[[Sequence[Watched]], Measured]


@dataclass(slots=True)
class Samples:
    """The values that a rule measured, each with an example; without values, `why` has the reason."""

    why: str
    values: list[Value | None] = field(default_factory=list)
    """None: the case did not occur."""
    examples: list[Mapping[str, Any]] = field(default_factory=list)
    seen_s: float | None = None
    """The shortest time from the moment of a case that there was not to the end of what was seen."""

    def add(self, value: Value | None, watched: Watched, at_ms: float | None = None, **what: Any) -> None:
        self.values.append(value)
        self.examples.append(watched.example(at_ms, **what))
        if value is None and at_ms is not None:
            seen_s = round((watched.stopping_ms - at_ms) / 1000, 1)
            self.seen_s = seen_s if self.seen_s is None else min(self.seen_s, seen_s)

    @property
    def seconds(self) -> list[float]:
        return [value for value in self.values if isinstance(value, float)]

    def longest(self, otherwise: str, *, of_any: bool = False) -> Measured:
        """Return the greatest sample if all samples (with `of_any`: some samples) are numbers, else the word
        `otherwise`."""
        if not self.values:
            return Measured.undecided(self.why)
        seconds = self.seconds
        if len(seconds) == len(self.values) or (of_any and seconds):
            return Measured(value=max(seconds), count=len(seconds), examples=self.examples)
        seen = "" if self.seen_s is None else f"in {self.seen_s:g} s that were seen"
        why = self.why if of_any else seen
        return Measured(value=otherwise, count=len(self.values), seen_s=self.seen_s, why=why, examples=self.examples)

    def commonest(self, why: str = "") -> Measured:
        """Return the samples' most frequent word, as a Measured; of equally frequent words, the word added first.
        Without samples the Measured is undecided."""
        if not self.values:
            return Measured.undecided(self.why)
        value, _ = Counter(self.values).most_common(1)[0]
        return Measured(value=value, count=len(self.values), why=why, examples=self.examples)


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    says: str
    """One line: what is measured, and how."""
    situations: tuple[str, ...]
    """The situations that it uses; it gets only their observations."""
    measure: Measure = field(repr=False)
    unit: str = ""
    """s, or what is counted; "" for words."""
    words: tuple[str, ...] = ()
    """The words that the rule can measure."""
    tolerance: float | None = None
    """Allowed distance of a measured number from an expected number; None: the rule's values are words."""
    more: tuple[str, ...] = ()
    """Further situations that the rule uses if they are run anyway."""
    by_time: bool = False
    """The rule's words depend on short times, so on a machine that is LATE_S late the words may be wrong."""
    of_choice: bool = False
    """The rule asks which NameServer, not when, so lateness of the machine does not matter."""
    is_bound: bool = False
    """A smaller value is as good; a written profile gets the measured value plus the tolerance as maximum."""
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """An expected word, and the other measured words that meet it."""

    @property
    def allowed(self) -> str:
        """A text that lists the values that a profile can expect."""
        numbers = [f"a number in {self.unit}", "{at_least: …, at_most: …}"] if self.tolerance is not None else []
        return ", ".join([*self.words, *self.also, *numbers])

    def judge(self, measured: Measured, expected: Expected, late_s: float = 0.0) -> Validity:
        """Return the verdict: UNKNOWN if nothing was measured, or if chance, a slow machine or the end of the
        observation can explain the difference. `late_s` is how many seconds late this machine was."""
        several = expected if isinstance(expected, tuple) else (expected,)
        value = measured.value
        if value is not None and any(self._meets(value, one) for one in several):
            return Validity.VALID
        if measured.seen_s is not None and any(self._may_come(measured.seen_s, one) for one in several):
            return Validity.UNKNOWN
        if measured.odds:
            words = {word for one in several for word in (str(one), *self.also.get(str(one), ()))}
            chance = max(measured.odds.get(word, 0.0) for word in words)
        else:
            chance = 1.0 if value is None else measured.doubt
        if chance > ALPHA:
            return Validity.UNKNOWN
        may_be_late = not self.of_choice and late_s > (LATE_S if self.by_time else TOO_LATE_S)
        if self.unit == "s" and value is not None:
            may_be_late = may_be_late or any(self._meets(value, one, late_s) for one in several)
        return Validity.UNKNOWN if may_be_late else Validity.INVALID

    def _may_come(self, seen_s: float, expected: str | float | Range) -> bool:
        """Whether an event that had not come after `seen_s` may still come, and as expected."""
        if isinstance(expected, str):
            return False
        latest_s = expected.at_most if isinstance(expected, Range) else expected + (self.tolerance or 0.0)
        return latest_s is not None and seen_s < latest_s

    def _meets(self, value: Value, expected: str | float | Range, more: float = 0.0) -> bool:
        if isinstance(value, str) or isinstance(expected, str):
            return value == expected or value in self.also.get(str(expected), ())
        if isinstance(expected, Range):
            low = -float("inf") if expected.at_least is None else expected.at_least - more
            high = float("inf") if expected.at_most is None else expected.at_most + more
            return low <= value <= high
        return abs(value - expected) <= (self.tolerance or 0.0) + more

    def read(self, value: object) -> Expected:
        """Return the expectation in a profile file's `value`. Raises ValueError, which says what is allowed."""
        if isinstance(value, list) and value:
            return tuple(self._read_one(one) for one in value)
        return self._read_one(value)

    def _read_one(self, value: object) -> str | float | Range:
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.tolerance is not None:
                return float(value)
            value = f"{value:g}"  # a start of 0 is a word
        if isinstance(value, str) and value in (*self.words, *self.also):
            return value
        if isinstance(value, Mapping) and self.tolerance is not None:
            ends = dict(value)
            if ends and set(ends) <= {"at_least", "at_most"} and all(isinstance(e, int | float) for e in ends.values()):
                return Range(**{name: float(end) for name, end in ends.items()})
        raise ValueError(f"{value!r} is not allowed; expected {self.allowed}")


class Rules(list[Rule]):
    def __call__(self, *situations: str, name: str = "", **record: Any) -> Callable[[Measure], Measure]:
        """Add the rule that the function measures. The function's name is the rule's name, and its docstring's first
        paragraph says what is measured; `record` has the other fields."""

        def add(measure: Measure) -> Measure:
            says = " ".join((inspect.getdoc(measure) or "").split("\n\n")[0].split())
            self.append(Rule(name or measure.__name__, says, situations, measure, **record))
            return measure

        return add

    def seconds(
        self, *situations: str, words: tuple[str, ...] = (), tolerance: float = 1.0, **record: Any
    ) -> Callable[[Measure], Measure]:
        """Add a rule whose value is a time; a shorter time than expected is VALID. `words` are the values if the
        awaited event never comes."""
        return self(*situations, unit="s", words=words, tolerance=tolerance, is_bound=True, **record)


def plain(expected: Expected) -> object:
    """Return an expectation in the form of JSON and profile files."""
    if isinstance(expected, tuple):
        return [plain(one) for one in expected]
    return expected.to_json() if isinstance(expected, Range) else expected


def said(expected: Expected) -> str:
    if isinstance(expected, tuple):
        return " or ".join(said(one) for one in expected)
    return f"{expected:g}" if isinstance(expected, float) else str(expected)
