"""What a check is: one record beside its two functions, from which README, scenarios, report and live judging are made.

    history ── gather (Spark) ──► facts: few, frozen, plain ── judge (plain Python, with the World) ──► Verdict

`gather` asks Spark for what it takes to judge and nothing else; `judge` needs no Spark, so that a test may hand it
facts made by hand. While a history grows, the facts of what is sealed away and of what is new are added up, never
verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from ..oracle.world import World
    from ..verdict import Verdict
    from .dataframes.gathering import Gathering

Facts_ = TypeVar("Facts_")


class Section(StrEnum):
    """Where in the report its findings are drawn; the checks of a section stand together."""

    ROUTES = "routes"
    CLIENTS = "clients"
    MESSAGES = "messages"
    OPERATIONS = "operations"
    RUN = "run"


class Reads(StrEnum):
    """Which rows decide the check."""

    CONTROL = "control"
    """No traffic: what nodes say of tables, choices, registrations; as many as the run is long."""
    MESSAGES = "messages"
    """Sends, receipts and final reads besides."""
    OPERATIONS = "operations"
    """Operations of clients besides."""


class Inconsistent(Exception):
    """Facts do not give what they should when parts are taken from them."""


@dataclass(frozen=True)
class Facts:
    """Facts that add up: numbers add, tables of numbers add entry by entry, tuples of rows are joined.

    For a check whose facts of two parts of a history, none of which cuts through what belongs together, are the facts
    of the whole. A field that says something else gives its own `plus` and `minus`.
    """

    def plus(self, other: Self) -> Self:
        """The facts of both parts."""
        return replace(self, **{f.name: _add(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)})

    def minus(self, part: Self) -> Self:
        """The facts of the rest. Inconsistent when the part has more than the whole."""
        return replace(self, **{f.name: _take(getattr(self, f.name), getattr(part, f.name)) for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[Facts_]):
    """One check."""

    name: str
    says: str
    """README's sentence: what VALID says."""
    section: Section
    reads: Reads
    gather: Callable[[Gathering, World], Facts_]
    judge: Callable[[Facts_, World], Verdict]
    tells: Callable[[Mapping[str, Any]], str] | None = None
    """What `measured` of its verdict comes to, as a person would say it; "" or None: the numbers speak."""
    adds_up: bool = False
    """Whether its facts are `Facts` and may be sealed; else all rows that decide its verdict are carried."""


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return {
            key: _add(one.get(key, _nothing(other, key)), other.get(key, _nothing(one, key)))
            for key in {**one, **other}
        }
    if isinstance(one, tuple):
        return one + tuple(row for row in other if row not in one)
    return one + other


def _take(whole: Any, part: Any) -> Any:
    if isinstance(whole, Mapping):
        return {key: _take(value, part[key]) if key in part else value for key, value in whole.items()}
    if isinstance(whole, tuple):
        return tuple(row for row in whole if row not in part)
    if part > whole:
        raise Inconsistent(f"{whole} became {part}")
    return whole - part


def _nothing(rows: Mapping[Any, Any], key: Any) -> Any:
    """What nothing of the same kind as `rows[key]` is."""
    return type(rows[key])()


def by_section(checks: Iterable[Check[Any]]) -> dict[str, Check[Any]]:
    """Name → check, the sections in their order, the checks of each by name."""
    order = [*Section]
    return {check.name: check for check in sorted(checks, key=lambda check: (order.index(check.section), check.name))}
