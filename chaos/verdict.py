"""What a check says: VALID, UNKNOWN or INVALID, with its counts, its bound, what was measured, and counterexamples.

A check that examined nothing, or that failed itself, is UNKNOWN, never VALID (Jepsen). Composing takes the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self


class Validity(StrEnum):
    VALID = "VALID"
    UNKNOWN = "UNKNOWN"
    INVALID = "INVALID"


_BADNESS = {Validity.VALID: 0, Validity.UNKNOWN: 1, Validity.INVALID: 2}

EXAMPLES_MAX = 5


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
    examples: tuple[Mapping[str, Any], ...] = ()
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
            "examples": [dict(example) for example in self.examples],
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
            examples=tuple(document["examples"]),
            why=document.get("why", ""),
        )
