"""From findings to a verdict: one finding per window, with its bound, its tolerance and what was measured in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .tolerance import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one window of a check came to. Nothing in it was out of bounds when `wrong` and `late` are 0."""

    bound_ms: float
    formula: str
    row: str
    tolerance: Tolerance
    measured_ms: float | None = None
    """From the change until all was as it had to be; None when nothing had to change."""
    examined: int = 0
    wrong: int = 0
    late: int = 0
    """Out of bounds, but no further than the machine's lateness."""
    example: Mapping[str, Any] | None = field(default=None)

    @property
    def badness(self) -> tuple[bool, bool, float]:
        margin_ms = -float("inf")
        if self.measured_ms is not None:
            margin_ms = self.measured_ms - self.bound_ms - self.tolerance.valid_up_to_ms
        return self.wrong > 0, self.late > 0, margin_ms


def rounded(value_ms: float | None) -> float | None:
    """To a tenth of a millisecond, as verdicts show times."""
    return None if value_ms is None else round(float(value_ms), 1)


def allowed(finding: Finding) -> dict[str, Any]:
    """The bound as `allowed` of a verdict shows it."""
    return {
        "bound_ms": rounded(finding.bound_ms),
        "formula": finding.formula,
        "tolerance_ms": rounded(finding.tolerance.valid_up_to_ms),
        "row": finding.row,
    }


def verdict_of(
    name: str, findings: Sequence[Finding], *, measured: Mapping[str, Any], nothing: str, noun: str
) -> Verdict:
    """The verdict; `allowed` and `max_ms` in `measured` are of the window nearest to its bound, or furthest over it.

    `nothing` says why nothing was examined, when that is so; `noun` names what a violation is, in the plural.
    """
    examined = sum(finding.examined for finding in findings)
    judged = [finding for finding in findings if finding.examined]
    if not judged:
        return Verdict.nothing_examined(name, nothing, measured=measured)
    worst = max(judged, key=lambda finding: finding.badness)
    wrong, late = sum(finding.wrong for finding in judged), sum(finding.late for finding in judged)
    measured = {"max_ms": rounded(worst.measured_ms), **measured}
    validity, why = Validity.VALID, ""
    if wrong:
        validity, why = Validity.INVALID, f"{wrong} of {examined} {noun}; {_says(worst)}"
    elif late and worst.tolerance.lag_ms is None:
        validity, why = Validity.UNKNOWN, f"{late} of {examined} {noun}, but nobody measured how late timers fired"
    elif late:
        lateness = f"timers fired up to {worst.tolerance.lag_ms:.0f} ms late, and {worst.tolerance.timers} are chained"
        validity, why = Validity.UNKNOWN, f"{late} of {examined} {noun}, but the machine was too late: {lateness}"
    return Verdict(
        name=name,
        verdict=validity,
        examined=examined,
        violations=wrong,
        measured=measured,
        allowed=allowed(worst),
        examples=tuple(_examples(judged)),
        why=why,
    )


def _says(finding: Finding) -> str:
    return (
        f"allowed {finding.bound_ms:.0f} + {finding.tolerance.valid_up_to_ms:.0f} ms ({finding.formula}; {finding.row})"
    )


def _examples(findings: Iterable[Finding]) -> list[Mapping[str, Any]]:
    bad = sorted((f for f in findings if f.example and (f.wrong or f.late)), key=lambda f: f.badness, reverse=True)
    return [f.example for f in bad[:EXAMPLES_MAX] if f.example is not None]
