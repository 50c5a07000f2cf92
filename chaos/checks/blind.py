"""What a verdict says where nobody knows what nodes on some host did, or when: never VALID for it, never INVALID by it.

A check of control rows that names all it examined keeps what touches none of those nodes in that time. Of the others
nobody can tell what they depend on: with one blind stretch in what is judged, they are UNKNOWN.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..oracle.hosts import Blind
from ..oracle.world import World
from ..verdict import Finding, Validity, Verdict
from .check import Check, Reads
from .findings import examples_of
from .inferred import with_inferred

Touches = Callable[[Finding], bool]


def with_blind(check: Check[Any], verdict: Verdict, world: World) -> Verdict:
    """The verdict of what does not depend on a blind stretch; UNKNOWN, with the reason, where all or some does."""
    verdict = with_inferred(verdict, world)
    seen = [one for one in world.blind if one.from_ms < world.end_ms and one.to_ms > 0.0]
    if not seen or verdict.check_failed or not verdict.examined:
        return verdict
    complete = check.reads is Reads.CONTROL and verdict.examined == sum(one.examined for one in verdict.findings)
    touches = _touching(seen, world) if complete else lambda _finding: True
    touched = sum(one.examined for one in verdict.findings if touches(one)) if complete else verdict.examined
    if not touched:
        lost = {", ".join(sorted(one.nodes)): one.why for one in seen if one.missing}
        return replace(verdict, undecided={**verdict.undecided, **lost}) if lost else verdict
    findings = tuple(_undecided(one) if touches(one) else one for one in verdict.findings)
    wrong = sum(one.wrong for one in findings)
    reasons = "; ".join(dict.fromkeys(one.why for one in seen))
    if wrong:
        of = f"{wrong} of them are wrong all the same" if wrong > 1 else "one of them is wrong all the same"
        why = f"{touched} of {verdict.examined} depend on what nobody knows ({reasons}); of the others {of}"
        validity = Validity.INVALID
    else:
        why, validity = f"{touched} of {verdict.examined} depend on what nobody knows: {reasons}", Validity.UNKNOWN
    examples = examples_of(findings, validity) or (verdict.examples if validity is not Validity.INVALID else ())
    return replace(verdict, verdict=validity, violations=wrong, findings=findings, examples=examples, why=why)


def _undecided(finding: Finding) -> Finding:
    return replace(finding, wrong=0, late=finding.late + finding.wrong) if finding.wrong else finding


def _touching(seen: Iterable[Blind], world: World) -> Touches:
    """Whether a finding names a node of a blind stretch, and what it judged may reach into that."""
    timers = world.timers
    reach_ms = timers.E_ms + timers.S_ms + 2 * timers.P_ms + timers.R_ms + timers.T_ms + timers.lateness_cap_ms
    known = []
    for one in seen:
        far_ms = 0.0 if one.missing else reach_ms  # who is lost does nothing later
        known.append((_named(one.nodes, world), one.from_ms - far_ms, one.to_ms + far_ms))

    def touches(finding: Finding) -> bool:
        members = world.groups.get(finding.subject, ())  # of a group each is concerned
        more = json.dumps(dict(finding.more), default=str)
        text = " ".join((finding.subject, finding.object, finding.after, *members, more))
        until_ms = finding.to_ms if math.isfinite(finding.to_ms) else world.end_ms
        return any(
            finding.from_ms < to_ms and until_ms > from_ms and names.search(text) for names, from_ms, to_ms in known
        )

    return touches


def _named(nodes: Iterable[str], world: World) -> re.Pattern[str]:
    """The nodes' names and addresses, as whole words."""
    names = set(nodes)
    addresses = {address for node in world.nodes if node.name in names for address in node.addresses}
    return re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, sorted(names | addresses))) + r")(?![\w.-])")
