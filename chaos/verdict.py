"""What a check says: VALID, UNKNOWN or INVALID, with its counts, its bound, what was measured, and counterexamples.

A check that examined nothing, or that failed itself, is UNKNOWN, never VALID (Jepsen). Composing takes the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self


class Validity(StrEnum):
    VALID = "VALID"
    UNKNOWN = "UNKNOWN"
    INVALID = "INVALID"


_BADNESS = {Validity.VALID: 0, Validity.UNKNOWN: 1, Validity.INVALID: 2}

EXAMPLES_MAX = 5
FINDINGS_MAX = 1000
"""So many counterexamples are looked up where they may be as many as the messages; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One counterexample: whose doing it was, about what, when, and by how much. Times in RocketMQ milliseconds."""

    who: str = ""
    """The node whose doing it was: ns-0, consumer-1."""
    what: str = ""
    """What it was about: a broker, a NameServer, a queue, a message."""
    topic: str = ""
    from_ms: float | None = None
    """From when to when it was wrong; `to_ms` None: it was a moment."""
    to_ms: float | None = None
    due_ms: float | None = None
    """From when it had to be right."""
    over_ms: float | None = None
    """How far out of bounds it was."""
    after: str = ""
    """The fault that it followed, begun or healed."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else this check has to say of it."""

    def to_json(self) -> dict[str, Any]:
        """One flat object without what is empty; times to a tenth of a millisecond."""
        found = {name: _plain(getattr(self, name)) for name in _EXAMPLE}
        return {name: value for name, value in found.items() if value not in (None, "")} | dict(self.more)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The example that `to_json` wrote."""
        known = {name: document[name] for name in _EXAMPLE if name in document}
        return cls(**known, more={name: value for name, value in document.items() if name not in known})


_EXAMPLE = ("who", "what", "topic", "from_ms", "to_ms", "due_ms", "over_ms", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found of one thing that it examined, right or wrong. Times in RocketMQ milliseconds."""

    subject: str
    """The node whose doing was examined: a NameServer, a client."""
    object: str = ""
    """What of: a broker, a NameServer, a queue."""
    topic: str = ""
    kind: str
    """Which rule: must hold, must not hold, left, once …"""
    from_ms: float
    """The stretch in which the rule held for it."""
    to_ms: float
    bound_ms: float | None = None
    """What was allowed, and the formula and the row of the failure-detection table it came from."""
    formula: str = ""
    row: str = ""
    tolerance_ms: float = 0.0
    """How far past its bound it might be, the machine's measured lateness included."""
    lag_ms: float | None = 0.0
    """That lateness; None: nobody measured it."""
    timers: int = 1
    """How many timers stand one behind the other in the formula."""
    measured_ms: float | None = None
    """From the change until all was as it had to be; None when nothing had to change."""
    over_ms: float = 0.0
    """How far past its bound it was, tolerated or not."""
    examined: int = 1
    wrong: int = 0
    """Out of bounds."""
    late: int = 0
    """Out of bounds, but no further than the machine's lateness."""
    wrong_from_ms: float | None = None
    """The stretch that was out of bounds at most, tolerated or not; None where nothing was."""
    wrong_to_ms: float | None = None
    after: str = ""
    """The fault that it follows, begun or healed."""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def validity(self) -> Validity:
        return Validity.INVALID if self.wrong else Validity.UNKNOWN if self.late else Validity.VALID

    @property
    def badness(self) -> tuple[bool, bool, float]:
        """The greatest is nearest to its bound, or furthest over it."""
        margin_ms = -float("inf")
        if self.measured_ms is not None:
            margin_ms = self.measured_ms - (self.bound_ms or 0.0) - self.tolerance_ms
        return self.wrong > 0, self.late > 0, margin_ms

    @property
    def example(self) -> Example:
        """It as a counterexample; what has no bound in time was due at no time and is not over it."""
        bounded = self.bound_ms is not None
        return Example(
            who=self.subject,
            what=self.object,
            topic=self.topic,
            from_ms=self.from_ms if self.wrong_from_ms is None else self.wrong_from_ms,
            to_ms=self.to_ms if self.wrong_from_ms is None else self.wrong_to_ms,
            due_ms=self.from_ms if bounded else None,
            over_ms=self.over_ms if bounded else None,
            after=self.after,
            more={"kind": self.kind, **self.more},
        )

    def to_json(self) -> dict[str, Any]:
        """As a line of findings.jsonl; what says nothing is left out."""
        found = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "more"}
        found = {name: value for name, value in found.items() if value not in (None, "")}
        return {**found, "verdict": str(self.validity), **({"more": dict(self.more)} if self.more else {})}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The finding that `to_json` wrote."""
        names = {f.name for f in fields(cls)}
        known = {name: value for name, value in document.items() if name in names}
        return cls(**{"subject": "", "kind": "", "from_ms": 0.0, "lag_ms": None, "to_ms": float("inf"), **known})


def _plain(value: object) -> object:
    """A time to a tenth of a millisecond; infinities as JSON has no word for them."""
    if isinstance(value, float):
        return None if value != value or abs(value) == float("inf") else round(value, 1)
    return value


def worst(verdicts: Iterable[Validity]) -> Validity:
    """INVALID before UNKNOWN before VALID; UNKNOWN when there is none, since nothing was examined."""
    return max(verdicts, key=_BADNESS.__getitem__, default=Validity.UNKNOWN)


_FAILED = "the check failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One check's result. Times in milliseconds of RocketMQ time; every value can be written as JSON."""

    name: str
    verdict: Validity
    examined: int
    """How many things were looked at; what they are, the check's docstring says."""
    violations: int = 0
    """How many of them were wrong (not those that only the machine's lateness may explain)."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    allowed: Mapping[str, Any] = field(default_factory=dict)
    """bound_ms, formula, tolerance_ms, row: the bound and the timers and table row it came from."""
    examples: tuple[Example, ...] = ()
    """At most EXAMPLES_MAX, the worst first."""
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    """All that it examined, as far as it keeps them; in the run folder as findings.jsonl."""
    timeline_ms: float = field(default=0.0, compare=False)
    """Where the run's timeline starts, in the history's time; what is shown to people counts from there."""
    why: str = ""
    """One sentence for a person; never empty when the verdict is not VALID."""

    @classmethod
    def nothing_examined(cls, name: str, why: str, **details: Any) -> Self:
        """UNKNOWN, because there was nothing to look at."""
        return cls(name=name, verdict=Validity.UNKNOWN, examined=0, why=why, **details)

    @classmethod
    def of_failed_check(cls, name: str, error: BaseException) -> Self:
        """UNKNOWN, because the check itself failed; `why` names the error."""
        text = str(error).strip().splitlines()
        return cls.nothing_examined(name, f"{_FAILED}: {type(error).__name__}: {text[0] if text else ''}")

    @property
    def check_failed(self) -> bool:
        """Whether it is one of `of_failed_check`."""
        return self.why.startswith(_FAILED)

    def to_json(self) -> dict[str, Any]:
        """As an entry of `checks` in verdicts.json."""
        return {
            "name": self.name,
            "verdict": str(self.verdict),
            "examined": self.examined,
            "violations": self.violations,
            "measured": dict(self.measured),
            "allowed": dict(self.allowed),
            "examples": [example.to_json() for example in self.examples],
            "why": self.why,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The verdict that `to_json` wrote. KeyError or ValueError when it is something else."""
        return cls(
            name=document["name"],
            verdict=Validity(document["verdict"]),
            examined=document["examined"],
            violations=document["violations"],
            measured=document["measured"],
            allowed=document["allowed"],
            examples=tuple(Example.from_json(example) for example in document["examples"]),
            why=document.get("why", ""),
        )
