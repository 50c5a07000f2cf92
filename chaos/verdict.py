"""The result of a check: VALID, UNKNOWN or INVALID, with counts, bound, measured values and counterexamples. A check
that examined nothing, or that failed itself, is UNKNOWN, never VALID (Jepsen). The verdict of several checks together
is the worst of the checks' verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Self, TypeVar


class Validity(StrEnum):
    VALID = "VALID"
    UNKNOWN = "UNKNOWN"
    INVALID = "INVALID"


NEVER = "never"
"""The formula of a check whose bound is that it happens at no time."""


def length(ms: float) -> str:
    """Return a duration in words: in seconds, below one second in milliseconds."""
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


_ONE = re.compile(
    r"(?<![\w.,])(1 (?:acknowledged )?(?:acts|answers|brokers|commits|consumers|drops|firings|look-ups|messages|"
    r"NameServers|producers|queues|registrations|retries|sends|silences|times|timers|topics|transitions|tries))\b"
)


def singular(text: str) -> str:
    """Return the text with `1 retry` for `1 retries`, and so for each other noun that is counted."""
    return _ONE.sub(lambda one: f"{one[1][:-3]}y" if one[1].endswith("ies") else one[1][:-1], text)


def seconds(ms: float) -> str:
    """Return the seconds as `154.9 s`."""
    return f"{tenths(ms)} s"


def tenths(ms: float) -> str:
    """Return milliseconds as seconds with one decimal, never as `-0.0`."""
    return f"{round(ms / 1000, 1) + 0.0:.1f}"


_BADNESS = {Validity.VALID: 0, Validity.UNKNOWN: 1, Validity.INVALID: 2}

EXAMPLES_MAX = 5
FINDINGS_MAX = 1000
"""So many counterexamples are looked up where they may be as many as the messages; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One counterexample of a check: the node at fault, the other node or topic, the time, and by how much the limit
    was exceeded. Times are in RocketMQ milliseconds."""

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
    measured_ms: float | None = None
    """How long it took, or lasted."""
    earliest_ms: float | None = None
    """What was allowed: no less than this, and no more than that; None: there is no such end."""
    latest_ms: float | None = None
    over_ms: float | None = None
    """By how much that was exceeded: `measured_ms - latest_ms`, or `earliest_ms - measured_ms`, too early."""
    after: str = ""
    """The fault that came before it: its begin or its end."""
    times: Mapping[str, float] = field(default_factory=dict)
    """Other moments that matter, by name: when it was lost, when it was back."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else this check has to say of it; no moments."""

    def since(self, origin_ms: float) -> Example:
        """Return the example with all its times counted from `origin_ms`; durations stay the same."""
        return _since(self, origin_ms)

    @property
    def too_early(self) -> bool:
        return _too_early(self.measured_ms, self.earliest_ms, self.latest_ms)

    @property
    def is_of_due_time(self) -> bool:
        """Whether the value was wrong already at the time at which the right value became due."""
        return self.from_ms == self.due_ms

    @property
    def against_bound(self) -> str:
        """Compare the example with its limit in words: `allowed 33.0 s: 2.0 s over`, `never allowed` or `allowed not
        before 120.0 s: 16.0 s too soon`."""
        over = length(self.over_ms or 0.0)
        if self.too_early:
            return f"allowed not before {length(self.earliest_ms or 0.0)}: {over} too soon"
        if self.latest_ms:
            return f"allowed {length(self.latest_ms)}: {over} over"
        return f"no delay allowed: {over} over" if self.is_of_due_time else f"{NEVER} allowed"

    def to_json(self, timeline_ms: float = 0.0) -> dict[str, Any]:
        """Return the example as a JSON object without empty fields, with the entries of `more` as keys. Times are
        rounded to tenths of a millisecond. `from_s` and `to_s` are the example's begin and end in seconds since
        `timeline_ms`."""
        found = {name: _plain(getattr(self, name)) for name in _EXAMPLE}
        found = {name: value for name, value in found.items() if value not in (None, "")}
        times = {"times": _times(self.times)} if self.times else {}
        return found | _shown(self.from_ms, self.to_ms, timeline_ms) | times | dict(self.more)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        known = {name: document[name] for name in (*_EXAMPLE, "times") if name in document}
        more = {name: value for name, value in document.items() if name not in known and name not in _SHOWN}
        return cls(**known, more=more)


_SHOWN = ("from_s", "to_s")
_LENGTHS = ("measured_ms", "earliest_ms", "latest_ms", "over_ms")
_EXAMPLE = ("who", "what", "topic", "from_ms", "to_ms", "due_ms", *_LENGTHS, "after")
_MOMENTS = ("from_ms", "to_ms", "due_ms", "wrong_from_ms", "wrong_to_ms")
"""The fields of examples and findings that are moments; every other number is a length or a count."""

_Timed = TypeVar("_Timed", "Example", "Finding")


def _since(of: _Timed, origin_ms: float) -> _Timed:
    moved: dict[str, Any] = {"times": {name: at_ms - origin_ms for name, at_ms in of.times.items()}}
    for name in _MOMENTS:
        at_ms = getattr(of, name, None)
        if at_ms is not None:
            moved[name] = at_ms - origin_ms
    return replace(of, **moved)


def _too_early(measured_ms: float | None, earliest_ms: float | None, latest_ms: float | None) -> bool:
    """Whether the value was below the earliest allowed time, or only an earliest time is allowed."""
    if measured_ms is None or earliest_ms is None:
        return False
    return latest_ms is None or measured_ms < earliest_ms


def _shown(from_ms: float | None, to_ms: float | None, timeline_ms: float) -> dict[str, Any]:
    moments = zip(_SHOWN, (from_ms, to_ms), strict=True)
    found = {name: None if at_ms is None else _plain((at_ms - timeline_ms) / 1000) for name, at_ms in moments}
    return {name: at_s for name, at_s in found.items() if at_s is not None}


def _times(times: Mapping[str, float]) -> dict[str, object]:
    return {name: _plain(at_ms) for name, at_ms in times.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check for one examined thing, right or wrong. Times are in RocketMQ milliseconds."""

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
    """What was allowed at most, and the formula and the row of the failure-detection table it came from."""
    earliest_ms: float | None = None
    """What was allowed at least; None: it may not come too soon."""
    formula: str = ""
    row: str = ""
    tolerance_ms: float = 0.0
    """How far past its bound it might be, the machine's measured lateness included."""
    lag_ms: float | None = 0.0
    """That lateness; None: nobody measured it."""
    timers: int = 1
    """How many timers of the formula run one after the other. The tolerance is the lateness times this number."""
    measured_ms: float | None = None
    """From the change until all was as it had to be, or how long it was wrong; None when nothing had to change."""
    over_ms: float = 0.0
    """By how much that is out of bounds, tolerated or not: past `bound_ms`, or short of `earliest_ms`."""
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
    times: Mapping[str, float] = field(default_factory=dict)
    """Other moments that matter, by name."""
    more: Mapping[str, Any] = field(default_factory=dict)

    def since(self, origin_ms: float) -> Finding:
        """Return the finding with all its times counted from `origin_ms`."""
        return _since(self, origin_ms)

    @property
    def too_early(self) -> bool:
        """Whether the measured time is before the earliest allowed time."""
        return _too_early(self.measured_ms, self.earliest_ms, self.bound_ms)

    @property
    def validity(self) -> Validity:
        return Validity.INVALID if self.wrong else Validity.UNKNOWN if self.late else Validity.VALID

    @property
    def badness(self) -> tuple[bool, bool, float]:
        """Return a sort key that is greatest for the worst finding: the one that exceeds its limit by most or is
        nearest to it."""
        if self.wrong or self.late:
            return self.wrong > 0, self.late > 0, self.over_ms
        margin_ms = -float("inf")
        if self.measured_ms is not None:
            past_ms = self.measured_ms - (self.bound_ms or 0.0)
            short_ms = (self.earliest_ms or 0.0) - self.measured_ms
            margin_ms = (short_ms if self.too_early else past_ms) - self.tolerance_ms
        return False, False, margin_ms

    @property
    def example(self) -> Example:
        """Return the finding as a counterexample. If the finding has no time limit, the example has neither `due_ms`
        nor `over_ms`."""
        bounded = self.bound_ms is not None or self.earliest_ms is not None
        return Example(
            who=self.subject,
            what=self.object,
            topic=self.topic,
            from_ms=self.from_ms if self.wrong_from_ms is None else self.wrong_from_ms,
            to_ms=self.to_ms if self.wrong_from_ms is None else self.wrong_to_ms,
            due_ms=self.from_ms if bounded else None,
            measured_ms=self.measured_ms if bounded else None,
            earliest_ms=self.earliest_ms,
            latest_ms=self.bound_ms,
            over_ms=self.over_ms if bounded else None,
            after=self.after,
            times=self.times,
            more={"kind": self.kind, **self.more},
        )

    def to_json(self, timeline_ms: float = 0.0) -> dict[str, Any]:
        """Return the finding as a line of findings.jsonl, without empty fields. `from_s` and `to_s` are the begin and
        end of its example, in seconds since `timeline_ms`."""
        found = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name not in ("more", "times")}
        found = {name: value for name, value in found.items() if value not in (None, "")}
        nested = {"times": _times(self.times), "more": dict(self.more)}
        shown = _shown(self.example.from_ms, self.example.to_ms, timeline_ms)
        nested = {name: value for name, value in nested.items() if value}
        return {**found, **shown, "verdict": str(self.validity), **nested}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        names = {f.name for f in fields(cls)}
        known = {name: value for name, value in document.items() if name in names}
        return cls(**{"subject": "", "kind": "", "from_ms": 0.0, "lag_ms": None, "to_ms": float("inf"), **known})


def _plain(value: object) -> object:
    """Return the value for JSON: times to a tenth of a millisecond; null for infinity and NaN."""
    if isinstance(value, float):
        return None if value != value or abs(value) == float("inf") else round(value, 1)
    return value


def worst(verdicts: Iterable[Validity]) -> Validity:
    """Return INVALID if any verdict is INVALID, else UNKNOWN if any is UNKNOWN or there are none, else VALID."""
    return max(verdicts, key=_BADNESS.__getitem__, default=Validity.UNKNOWN)


_FAILED = "the check failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of one kind and one implementation that a verdict is about."""

    kind: str
    """producer, consumer, prober."""
    count: int
    implementation: str
    """Who made them: ours, or whose client and version."""
    profile: str
    """By which client's rules they choose NameServers (docs/client-profiles.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one check. All times are milliseconds of RocketMQ time; every value can be written as JSON."""

    name: str = ""
    """Of the check."""
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
    clients: tuple[Clients, ...] = field(default=(), compare=False)
    """Whose clients it is about, and how many; none where the check looks at none."""
    why: str = ""
    """One sentence for a person; never empty when the verdict is not VALID."""
    undecided: Mapping[str, str] = field(default_factory=dict)
    """What of the check this history cannot decide, by name, each with a sentence; the verdict is of all the rest."""

    def since_timeline(self, timeline_ms: float) -> Self:
        """Return the verdict with the times of its findings and examples counted from the start of the timeline."""
        return replace(
            self,
            findings=tuple(finding.since(timeline_ms) for finding in self.findings),
            examples=tuple(example.since(timeline_ms) for example in self.examples),
        )

    @classmethod
    def nothing_examined(cls, why: str, **details: Any) -> Self:
        """Return the verdict UNKNOWN of a check that had nothing to examine."""
        return cls(verdict=Validity.UNKNOWN, examined=0, why=why, **details)

    @classmethod
    def of_failed_check(cls, name: str, error: BaseException) -> Self:
        """Return the verdict UNKNOWN of a check that failed itself; `why` names the error."""
        text = str(error).strip().splitlines()
        return cls.nothing_examined(f"{_FAILED}: {type(error).__name__}: {text[0] if text else ''}", name=name)

    @property
    def why_is_example(self) -> bool:
        """Whether `why` begins with the words of the first example."""
        return any(self.why.removeprefix(f"{e.who}: ").startswith(f"{e.more.get('kind')}") for e in self.examples[:1])

    @property
    def check_failed(self) -> bool:
        return self.why.startswith(_FAILED)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as an entry of `checks` in verdicts.json."""
        document = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("findings", "timeline_ms")}
        examples = [example.to_json(self.timeline_ms) for example in self.examples]
        return document | {"examples": examples, "clients": [asdict(clients) for clients in self.clients]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        known = {f.name: document[f.name] for f in fields(cls) if document.get(f.name) is not None}
        examples = tuple(Example.from_json(example) for example in document["examples"])
        clients = tuple(Clients(**clients) for clients in document.get("clients") or ())
        of = {"verdict": Validity(document["verdict"]), "examples": examples, "clients": clients}
        return cls(**known | of)
