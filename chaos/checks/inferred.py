"""What a verdict says where faults were inferred from logs: their moments are known to some seconds only.

A deviation that is no larger than what the faults' moments may be off is none that anybody can know: late, not wrong.
"""

from __future__ import annotations

from dataclasses import replace

from ..oracle.world import World
from ..verdict import Validity, Verdict
from .findings import examples_of

_STAMPS_MS = 2_000.0
"""What a length between two logs of whole seconds may be off."""


def with_inferred(verdict: Verdict, world: World) -> Verdict:
    """The verdict; UNKNOWN in place of INVALID by what the inexact moments of inferred faults explain."""
    if not world.run.get("imported") or verdict.verdict is not Validity.INVALID or not verdict.findings:
        return verdict
    bounds = [float(fault.value.get("bound_ms") or 0.0) for fault in world.faults]
    slack_ms = _STAMPS_MS + 2 * max(bounds, default=0.0)
    findings = tuple(
        replace(one, wrong=0, late=one.late + one.wrong) if one.wrong and 0 < one.over_ms <= slack_ms else one
        for one in verdict.findings
    )
    wrong = sum(one.wrong for one in findings)
    if wrong == verdict.violations:
        return verdict
    if wrong:
        return replace(verdict, violations=wrong, findings=findings, examples=examples_of(findings, verdict.verdict))
    why = (
        f"what deviates does so by no more than the moments of the inferred faults may be off ({slack_ms / 1000:.1f} s)"
    )
    examples = examples_of(findings, Validity.UNKNOWN)
    return replace(verdict, verdict=Validity.UNKNOWN, violations=0, findings=findings, examples=examples, why=why)
