"""What a setting may be set to: each kind of value says in a user's words what is allowed, and refuses the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...actors.broker.config import parse_delay_levels
from ...actors.errors import ConfigError

Value = bool | int | str | tuple[int, ...]


class Allowed(Protocol):
    """A kind of value. `str` of it is what is allowed, in words."""

    def taken(self, value: object) -> Value:
        """The value as a node has it; ValueError when it is none of these."""


@dataclass(frozen=True, slots=True)
class Truth:
    def taken(self, value: object) -> Value:
        if not isinstance(value, bool):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole numbers from `least` to `most`, of `unit` (empty: a plain count); `also`: one more, such as -1 for off."""

    least: int
    most: int
    unit: str = ""
    also: int | None = None

    def taken(self, value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError
        if not self.least <= value <= self.most and value != self.also:
            raise ValueError
        return value

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        also = "" if self.also is None else f", or {self.also}"
        return f"a whole number from {self.least} to {self.most}{unit}{also}"


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]

    def taken(self, value: object) -> Value:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError
        return value

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


@dataclass(frozen=True, slots=True)
class Ascending:
    """A list of whole numbers from 0 on; `ascends` where each must be more than the one before."""

    unit: str
    ascends: bool = True

    def taken(self, value: object) -> Value:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise ValueError
        if any(isinstance(one, bool) or not isinstance(one, int) or one < 0 for one in value):
            raise ValueError
        if self.ascends and sorted(set(value)) != list(value):
            raise ValueError
        return tuple(value)

    def __str__(self) -> str:
        return f"a list of whole numbers from 0 on, in {self.unit}" + (", each more than the last" * self.ascends)


@dataclass(frozen=True, slots=True)
class DelayLevels:
    def taken(self, value: object) -> Value:
        try:
            parse_delay_levels(str(value))
        except ConfigError as exc:
            raise ValueError from exc
        return str(value)

    def __str__(self) -> str:
        return "numbers followed by s, m, h or d, with spaces, such as 1s 5s 1m"
