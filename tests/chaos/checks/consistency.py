"""What a verdict may not say of itself: a figure beside a bound contradicts it, or an excess that is none.

VALID     no figure that is shown beside its bound lies beyond it and the tolerance
INVALID   by a bound in time: a finding with an excess, which is what was measured less what was allowed
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nemesrv.chaos.verdict import Finding, Validity, Verdict

ROUNDING_MS = 0.2
"""Of a figure and its bound, each to a tenth."""


def contradictions(verdict: Verdict) -> list[str]:
    """In which ways the verdict contradicts itself; none of a right one."""
    found = [text for finding in verdict.findings for text in _of_finding(finding)]
    if verdict.verdict is Validity.VALID:
        found += _of_figures(verdict)
    timed = [f for f in verdict.findings if f.wrong and (f.bound_ms is not None or f.earliest_ms is not None)]
    if verdict.verdict is Validity.INVALID and timed and not any(f.over_ms > 0 for f in timed):
        found.append("INVALID, and nothing is over")
    return [f"{verdict.name}: {text}" for text in found]


def _of_finding(f: Finding) -> Iterator[str]:
    over_ms = excess_ms(f)
    if over_ms is None:
        if f.over_ms and (f.bound_ms is not None or f.earliest_ms is not None):
            yield f"over by {f.over_ms} without a measured time: {f}"
        return
    if abs(max(over_ms, 0.0) - f.over_ms) > ROUNDING_MS:
        yield f"over by {f.over_ms} in place of {over_ms}: {f}"
    if f.validity is Validity.VALID and over_ms > f.tolerance_ms + ROUNDING_MS:
        yield f"valid, and {over_ms} out of bounds: {f}"


def excess_ms(f: Finding) -> float | None:
    """What was measured less what was allowed, or the other way round where it was too early; None: no time."""
    if f.measured_ms is None:
        return None
    past_ms = [] if f.bound_ms is None else [f.measured_ms - f.bound_ms]
    short_ms = [] if f.earliest_ms is None else [f.earliest_ms - f.measured_ms]
    return max([*past_ms, *short_ms], default=None)


def _of_figures(verdict: Verdict) -> Iterator[str]:
    tolerance_ms = max([verdict.allowed.get("tolerance_ms") or 0.0, *(f.tolerance_ms for f in verdict.findings)])
    shown = {**verdict.measured, "bound_ms": verdict.allowed.get("bound_ms")}
    for figures in _nested(shown):
        bound_ms = figures.get("bound_ms")
        for name in ("max_ms", "after_ms"):
            value_ms = figures.get(name)
            if bound_ms is not None and value_ms is not None and value_ms > bound_ms + tolerance_ms + ROUNDING_MS:
                yield f"VALID beside {name} {value_ms}, bound {bound_ms}, tolerance {tolerance_ms}: {figures}"
    least_ms, earliest_ms = verdict.measured.get("min_ms"), verdict.allowed.get("earliest_ms")
    if least_ms is not None and earliest_ms is not None and least_ms < earliest_ms - tolerance_ms - ROUNDING_MS:
        yield f"VALID beside min_ms {least_ms}, not before {earliest_ms}"


def _nested(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _nested(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _nested(inner)
