"""The record of a check, from which docs, scenarios, report and live judging get everything about it.

    history ── control rows, and readings (counted of its traffic) ── judge, with the World ──► Verdict

A reading counts the same of a whole history in this process and, added up, of its parts under Spark (plain/part.py).
`judge` knows nothing of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from ..oracle.intervals import grouped
from ..verdict import FINDINGS_MAX, Example, Finding

if TYPE_CHECKING:
    from ..oracle.world import World
    from ..verdict import Verdict
    from .plain.part import Gathering, Reading

P = ParamSpec("P")
Key_ = TypeVar("Key_")
Value_ = TypeVar("Value_")


class Group(StrEnum):
    """What it asks; a scenario may name a group for all of its checks."""

    ROUTES = "routes"
    """Is what NameServers have, and say, true?"""
    CLIENT_ROUTES = "client_routes"
    """Do clients follow it?"""
    NAME_SERVERS = "name_servers"
    """Whom do clients ask?"""
    MESSAGES = "messages"
    """Are messages lost, late, or out of order?"""
    CONSUMING = "consuming"
    """Who consumes what, how far, how often?"""
    SERVICE = "service"
    """Does the cluster answer, and when again?"""
    TIMERS = "timers"
    """Is each period what it is set to?"""
    BY_HAND = "by_hand"
    """Did what somebody did by hand take effect?"""
    EXERCISED = "exercised"
    """Did the experiment happen? What did not makes a run UNKNOWN, and never INVALID."""


class Section(StrEnum):
    """Where in the report its findings are drawn; the checks of a section stand together."""

    ROUTES = "routes"
    CLIENTS = "clients"
    MESSAGES = "messages"
    OPERATIONS = "operations"
    RUN = "run"


class Needs(StrEnum):
    """What a history must have for a check to judge by it. A run has all of it, logs have some."""

    TABLES = "tables"
    """What each NameServer's table has, and when it changed."""
    ACTS = "acts"
    """What somebody did by hand."""
    BROKERS = "brokers"
    """When brokers began, ended, and registered."""
    ACKNOWLEDGEMENTS = "acknowledgements"
    """Which registrations were acknowledged."""
    TOPICS = "topics"
    """What brokers register: topics with their queues and permissions."""
    WIRE = "wire"
    """What passed on the wire: requests, answers, and how long they took."""
    CLIENTS = "clients"
    """Which NameServers clients chose, and the routes that they took."""
    MESSAGES = "messages"
    """Who sent, pulled, received and committed what."""
    EXPERIMENT = "experiment"
    """The harness's own rows: which faults were planned, and injected."""


@dataclass(frozen=True)
class Facts:
    """Facts that add up: numbers add, tables of numbers add entry by entry, tuples of rows are joined.

    The facts of two parts of a history, none of which cuts through what belongs together, are those of the whole. A
    field that says something else is `least`, `largest` or `joined`.
    """

    def plus(self, other: Self) -> Self:
        """The facts of both parts, `other` being the later one."""
        return self.total((self, other))

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """The facts of one part or more, in their order."""
        adding = ((f.name, f.metadata.get(_ADDING, _add)) for f in fields(cls))
        return cls(**{name: reduce(add, [getattr(part, name) for part in parts]) for name, add in adding})


def least() -> Any:
    """A field for the least of all values, None without any."""
    return field(default=None, metadata={_ADDING: lambda one, other: _best(min, one, other)})


def largest() -> Any:
    """A field for the largest of all values, None without any."""
    return field(default=None, metadata={_ADDING: lambda one, other: _best(max, one, other)})


def foremost(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first of each kind, as many as are kept; in order of time, those that are wrong for certain before others."""

    def key(one: Finding) -> tuple[Any, ...]:
        return not one.wrong, one.from_ms, str(one.more.get("msg_key")), one.to_ms, str(one)

    of_kinds = grouped((one.kind, one) for one in sorted(findings, key=key))
    return tuple(sorted((one for of in of_kinds.values() for one in of[:FINDINGS_MAX]), key=key))


def joined() -> Any:
    """A field for rows of which no two parts have the same."""
    return field(default=(), metadata={_ADDING: lambda one, other: one + other})


_ADDING = "adding"


@dataclass(frozen=True)
class Table(Facts, Generic[Key_, Value_]):
    """Numbers, or facts, of each of some."""

    of: Mapping[Key_, Value_] = field(default_factory=dict)


@dataclass(frozen=True)
class Found(Facts):
    """How many there were of what, by name, and the foremost findings of what was wrong."""

    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = field(default=(), metadata={_ADDING: lambda one, other: foremost(one + other)})
    """Of those of both parts the foremost, for they may be as many as messages."""


def _best(of: Callable[[Iterable[Any]], Any], *values: Any) -> Any:
    known = [value for value in values if value is not None]
    return of(known) if known else None


Judge = Callable[[Any, "World"], "Verdict"]
"""What a check says of what it sees: Control, or, with `readings`, the whole history."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the function that judges, and what else must be known of it."""

    name: str
    judge: Judge
    _: KW_ONLY
    says: str
    """The sentence of docs/checks.md: what VALID says."""
    group: Group
    section: Section
    is_of_the_whole: bool = False
    """Whether several parts, links and timers together must keep it: what breaks it may be any of them (cause.py)."""
    accuses_object: tuple[str, ...] = ()
    """The kinds of findings that accuse their object in place of their subject: what a client saw, its broker did."""
    despite_stalls: bool = False
    """Whether it asks the same where the machine did not run a process, and adds what that took to each bound; else
    the process was paused then (`Fault.stood_still`)."""
    needs: tuple[Needs, ...]
    """Without one of these it cannot judge; who cannot give it says so, of the first that is missing."""
    readings: tuple[Reading[Any], ...] = ()
    """What it asks for of the traffic, which is counted for all checks at once; none: control rows alone decide it."""
    tells: Callable[[Mapping[str, Any]], str] | None = None
    """What `measured` of its verdict comes to, as a person would say it; "" or None: the numbers speak."""
    clients: tuple[str, ...] | None = None
    """The kinds of clients that it looks at. None: producers and consumers, but for a check of routes, none."""
    outside: bool = False
    """Whether it judges clients under test too, which were only seen from outside."""
    settles: Callable[[World], float | None] | None = None
    """For how many milliseconds after a fault it judges nothing; None from it: whatever time passes. None: it always
    has something to look at."""
    joins_for: tuple[str, ...] = ()
    """Rows of these events have it judged, whatever checks were asked for."""

    def __call__(self, seen: Any, world: World) -> Verdict:
        return replace(self.judge(seen, world), name=self.name)

    def judged(self, history: Gathering, world: World) -> Verdict:
        """What it says of the history."""
        return self(history if self.readings else history.control, world)

    def accused(self, e: Example) -> str:
        """The node whose doing the example shows."""
        return e.what if e.what and e.more.get("kind") in self.accuses_object else e.who

    @property
    def looks_at(self) -> tuple[str, ...]:
        """The kinds of clients that its verdict is about."""
        if self.clients is None:
            return () if self.section is Section.ROUTES else ("producer", "consumer")
        return self.clients


def _of_module(make: Callable[Concatenate[str, Judge, P], Check]) -> Callable[P, Callable[[Judge], Check]]:
    def check(*args: P.args, **record: P.kwargs) -> Callable[[Judge], Check]:
        return lambda judge: make(judge.__module__.rpartition(".")[2], judge, *args, **record)

    return check


check = _of_module(Check)
"""Makes the function `judge` below it the check that has its module's name."""


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, Facts):
        return one.plus(other)
    if isinstance(one, Mapping):
        both = {key: _add(one[key], other[key]) for key in one.keys() & other.keys()}
        return {**one, **other, **both}
    if isinstance(one, tuple):
        return one + tuple(row for row in other if row not in one)
    return one + other


def by_section(checks: Iterable[Check]) -> dict[str, Check]:
    """Name → check, the sections in their order, the checks of each by name."""
    order = [*Section]
    return {check.name: check for check in sorted(checks, key=lambda check: (order.index(check.section), check.name))}
