"""Adds to every verdict what no single check knows, such as the clients that were judged.

| where                                              | the verdict                                                     |
|----------------------------------------------------|-----------------------------------------------------------------|
| nothing was seen of a client under test            | UNKNOWN in place of VALID                                       |
| the run ended too soon after its last fault        | names what it does not decide: a check that says nothing for a  |
|                                                    | while after a fault's end names that time (`Check.settles`)     |
| faults were inferred from logs, whose moments are  | a deviation no larger than that is late, not wrong              |
| known to some seconds only                         | a time after such a moment shows nothing, so it is not examined |
| nobody knows what nodes on some host did, or when  | never VALID or INVALID by it: a check of control rows that      |
|                                                    | names all it examined keeps what touches none of those nodes in |
|                                                    | that time; any other is UNKNOWN                                 |
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from ..oracle.hosts import Blind
from ..oracle.quiet import felt, harmful
from ..oracle.windows import legend, set_values
from ..oracle.world import World
from ..topology import NodeKind
from ..verdict import Clients, Finding, Validity, Verdict
from . import CHECKS
from .check import Check
from .findings import examples_of
from .record.control import Control


def finished(check: Check, verdict: Verdict, world: World) -> Verdict:
    """The verdict of `judge`, complete."""
    seen = seen_by(check, world)
    verdict = with_clients_under_test(check, with_settling(check, verdict, seen), world)
    verdict = with_blind(check, verdict, seen)
    values = set_values(seen.timers, seen.run.get("node_timers") or {})
    used = legend([str(verdict.allowed.get("formula") or "")])
    if timers := {symbol: value for symbol, value in values.items() if symbol in used}:
        verdict = replace(verdict, allowed={**verdict.allowed, "timers": timers})
    return replace(verdict, timeline_ms=seen.timeline_ms, clients=clients_of(seen, check.looks_at))


def seen_by(check: Check, world: World) -> World:
    """The world as the check sees it."""
    seen = world if check.outside else world.of_ours()
    return seen.but_stalls() if check.despite_stalls else seen


def clients_of(world: World, kinds: Collection[str]) -> tuple[Clients, ...]:
    """Those of these kinds, in the order of their kinds and makes; none where the run had none."""
    of_kinds = world.of_kind(*kinds) if kinds else ()
    counts = Counter((node.kind, node.implementation, _profile(world, node.name)) for node in of_kinds)
    return tuple(
        Clients(kind=kind, count=count, implementation=made_by, profile=profile)
        for (kind, made_by, profile), count in sorted(
            counts.items(), key=lambda one: ([*kinds].index(one[0][0]), *one[0][1:])
        )
    )


def _profile(world: World, node: str) -> str:
    try:
        return world.client_profile_of(node).name
    except KeyError as exc:  # a profile that this version does not know
        return str(exc.args[0])


def with_joining(checks: Iterable[str], control: Control) -> list[str]:
    """The checks, and those that join for rows of this history, such as what a node did not do for the harness: that
    run is never VALID, whatever it is judged by."""
    named = list(checks)
    others = [check for name, check in CHECKS.items() if name not in named and check.joins_for]
    return [*named, *(check.name for check in others if control.rows(*check.joins_for))]


INFERRED_MS = "inferred_ms"
"""In a finding's `more`: how inexact the moment is from which its time counts."""
_STAMPS_MS = 2_000.0
"""What a length between two logs of whole seconds may be off."""


def with_inferred(verdict: Verdict, world: World) -> Verdict:
    """The verdict; UNKNOWN in place of INVALID by what the inexact moments of inferred faults explain, and not VALID by
    times that count from such a moment."""
    if not world.run.get("imported") or not verdict.findings:
        return verdict
    if verdict.verdict is not Validity.INVALID:
        return _but_inferred(verdict, world)
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


def _but_inferred(verdict: Verdict, world: World) -> Verdict:
    """The verdict without findings whose time counts from an inexact moment: this moment was inferred from the same
    change, with the same windows."""
    moments: dict[str, tuple[float, float]] = {}
    for fault in world.faults:
        ends = (("start", fault.start_ms), ("end", fault.end_ms))
        for (phase, at_ms), bound_ms in zip(ends, fault.value.get("bounds_ms") or (), strict=False):
            if bound_ms > _STAMPS_MS:
                moments[f"{fault.fault_id} {phase}"] = at_ms, bound_ms

    def counts_from_it(one: Finding) -> bool:
        at_ms, _ = moments.get(one.after, (math.inf, 0.0))
        return bool(one.examined and one.measured_ms) and abs(one.from_ms - (one.bound_ms or 0.0) - at_ms) < 1

    if not (found := [one for one in verdict.findings if counts_from_it(one)]):
        return verdict
    undecided = {}
    for one in found:
        took = f"{(one.measured_ms or 0.0) / 1000:.1f} ± {moments[one.after][1] / 1000:.1f} s after {one.after}"
        why = f"{took} shows nothing, because the time of {one.after} was inferred from it"
        undecided[f"{one.subject}, {one.object}"] = why
    findings = tuple(
        replace(one, examined=0, more={**one.more, INFERRED_MS: moments[one.after][1]}) if one in found else one
        for one in verdict.findings
    )
    examined = verdict.examined - sum(one.examined for one in found)
    told = replace(verdict, examined=examined, findings=findings, undecided={**verdict.undecided, **undecided})
    return told if examined else replace(told, verdict=Validity.UNKNOWN, why="; ".join(undecided.values()))


Touches = Callable[[Finding], bool]


def with_blind(check: Check, verdict: Verdict, world: World) -> Verdict:
    """The verdict of what does not depend on a blind stretch; UNKNOWN, with the reason, where all or some does."""
    verdict = with_inferred(verdict, world)
    seen = [one for one in world.blind if one.from_ms < world.end_ms and one.to_ms > 0.0]
    if not seen or verdict.check_failed or not verdict.examined:
        return verdict
    complete = not check.readings and verdict.examined == sum(one.examined for one in verdict.findings)
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
        why = f"{touched:,} of {verdict.examined:,} cannot be judged ({reasons}); of the others {of}"
        validity = Validity.INVALID
    else:
        why, validity = f"{touched:,} of {verdict.examined:,} cannot be judged: {reasons}", Validity.UNKNOWN
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
    names = set(nodes)
    addresses = {address for node in world.nodes if node.name in names for address in node.addresses}
    return re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, sorted(names | addresses))) + r")(?![\w.-])")


def with_clients_under_test(check: Check, verdict: Verdict, world: World) -> Verdict:
    """The verdict; UNKNOWN in place of VALID where it is to be about a client under test that nothing was seen of."""
    if not check.outside or verdict.verdict is not Validity.VALID:
        return verdict
    unseen = [node.name for node in world.under_test() if node.kind == NodeKind.EXTERNAL]
    if not unseen:
        return verdict
    names, are = ", ".join(unseen), "are" if len(unseen) > 1 else "is"
    why = f"{names}, which {are} under test, made no connection"
    return replace(verdict, verdict=Validity.UNKNOWN, why=why)


AFTER_THE_LAST_FAULT = "after the last fault"


def settling_needed_s(check: Check, world: World) -> float | None:
    """With which `settle_s` the check judges something after the last fault. None: the run had enough, or no time
    decides it, or the check asks for none, or there was no fault that ended. A process that stood still asks for none:
    no scenario can settle for longer than its machine runs."""
    world = world.but_stalls()
    last_ms = _last_ms(world)
    if check.settles is None or not math.isfinite(last_ms):
        return None
    needed_ms = check.settles(world)
    if needed_ms is None or world.end_ms - last_ms > needed_ms:
        return None
    return world.settle_s_until(last_ms + needed_ms, last_ms)


def _last_ms(world: World) -> float:
    """When the last fault had ended; -inf without any."""
    return max((felt(world, fault).end_ms for fault in harmful(world)), default=-math.inf)


def too_short(checks: Mapping[str, Check], world: World) -> dict[str, str]:
    """Check → a sentence, of those that judge nothing after the last fault."""
    if world.run.get("imported"):
        return {}  # nobody can have logs settle for longer
    had_s = (world.end_ms - _last_ms(world.but_stalls())) / 1000
    found = {name: settling_needed_s(check, world) for name, check in checks.items()}
    because = f"the {had_s:.0f} s that follow are too short" if had_s >= 0 else "its effects outlast the run"
    return {
        name: f"nothing is judged, because {because}: `settle_s: {needed:.0f}` is enough"
        for name, needed in found.items()
        if needed is not None
    }


def with_settling(check: Check, verdict: Verdict, world: World) -> Verdict:
    """The verdict, which names what it does not decide when the run did not settle for long enough."""
    why = too_short({check.name: check}, world).get(check.name)
    if why is None or any(f.examined and f.from_ms >= _last_ms(world) for f in verdict.findings):
        return verdict
    undecided = {**verdict.undecided, AFTER_THE_LAST_FAULT: why}
    if verdict.examined:
        return replace(verdict, undecided=undecided)
    return replace(verdict, undecided=undecided, why=f"{verdict.why}; {AFTER_THE_LAST_FAULT} {why}")
