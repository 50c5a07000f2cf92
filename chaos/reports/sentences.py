"""Describes a verdict in sentences: the measured values, the violation (which node, when, by how much), and the allowed
values. Times are seconds since the start of the scenario's timeline, like `at_s`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..checks import CHECKS
from ..checks.happened import SAID, happened
from ..checks.record.slots import OPERATIONS
from ..verdict import NEVER, Clients, Example, Validity, Verdict, length, seconds, singular
from .text import all_of, phrases

_LONGEST = 60
_STRETCHES = 3
"""Most quiet stretches that are listed; then the number of others."""


def measured_sentences(v: Verdict) -> list[str]:
    """Return sentences about the check's measured values and undecided parts, the most important first."""
    if v.name == "availability" and v.measured:
        return [*_availability(v.measured, v.timeline_ms), *undecided_sentences(v)]
    check = CHECKS.get(v.name)
    said = singular(check.tells(v.measured)) if check and check.tells and v.examined else ""
    return [*filter(None, (said,)), *undecided_sentences(v)]


def undecided_sentences(v: Verdict) -> list[str]:
    """Return a sentence for each part that the check could not decide: `not decided: first choices uniform: …`."""
    return [f"not decided: {name}: {why}" for name, why in v.undecided.items()]


def example_sentence(e: Example, timeline_ms: float = 0.0) -> str:
    """Return an example of a verdict in words, with further details. Times count from `timeline_ms`."""
    e = e.since(timeline_ms)
    rest = {key: value for key, value in e.more.items() if key not in SAID}
    if slow := rest.pop("slow", None):
        rest = {f"{slow:,} of {rest['of']:,}": "were late"}
    elif (failed := rest.pop("failed", None)) is not None and "succeeded" in rest:
        rest = {f"{failed:,} of {failed + rest['succeeded']:,}": "failed"}
    return "; ".join(filter(None, (happened(e), ", ".join(_rest(e, rest)))))


def _rest(e: Example, more: Mapping[str, Any]) -> list[str]:
    times = [f"{name} at {seconds(at_ms)}" for name, at_ms in e.times.items()]
    return times + [key if text == "yes" else f"{key} {text}" for key, text in phrases(more) if len(text) <= _LONGEST]


def wrong_sentence(v: Verdict) -> str:
    """Return the verdict's worst example (node, time, by how much), and the number of other violations; "" if the
    verdict is VALID."""
    if v.verdict is Validity.VALID or not v.examples:
        return ""
    return example_sentence(v.examples[0], v.timeline_ms) + (and_more(v) if v.verdict is Validity.INVALID else "")


def and_more(v: Verdict) -> str:
    """Return `; and 11 more`, the violations of the same kind as the first example, and the number of all others."""
    kind = v.examples[0].more.get("kind")
    others = min(sum(finding.wrong for finding in v.findings if finding.kind != kind), v.violations - 1)
    more = v.violations - 1 - others
    of_others = "1 violation of another kind" if others == 1 else f"{others:,} violations of other kinds"
    counts = [f"and {more:,} more"] * (more > 0) + [f"and {of_others}"] * (others > 0)
    return f"; {', '.join(counts)}" if counts else ""


def allowed_sentence(v: Verdict) -> str:
    """Return the allowed time, `33.0 s (R + C), tolerance 50 ms`, or for an exact time `10.0 s ± 50 ms (1·S)`. If the
    check has no time limit, return only the formula, such as `quiet: all succeed`."""
    bound_ms, formula = v.allowed.get("bound_ms"), str(v.allowed.get("formula") or "")
    earliest_ms = v.allowed.get("earliest_ms")
    if (bound_ms is None and earliest_ms is None) or formula == NEVER:
        return formula
    tolerance_ms = v.allowed.get("tolerance_ms")
    tolerance = "" if tolerance_ms is None else length(tolerance_ms)
    if exact := exact_s(earliest_ms, bound_ms):
        said = f"{exact} s ± {tolerance}" if tolerance else f"{exact} s"
        return f"{said} ({formula})" if formula else said
    said = " to ".join(f"{at_ms / 1000:.1f}" for at_ms in (earliest_ms, bound_ms) if at_ms is not None) + " s"
    formula = formula.removeprefix("not before ") if bound_ms is None else formula
    said = ("not before " if bound_ms is None else "") + said + (f" ({formula})" if formula else "")
    return f"{said}, tolerance {tolerance}" if tolerance else said


def nearest_sentence(v: Verdict) -> str:
    """Return the measured time of a VALID check that came nearest to the limit: `closest to the limit: 19.9 s (ns-0,
    ns-2: must be equal, after the start)`. Return "" if the check has no time limit, or if the measured time is 0."""
    f = max((f for f in v.findings if f.examined), key=lambda f: f.badness, default=None)
    measured_ms = 0.0 if f is None else f.measured_ms or 0.0
    if v.verdict is not Validity.VALID or f is None or v.allowed.get("bound_ms") is None or measured_ms < 0.05:
        return ""  # a shorter time is printed as 0
    about = ", ".join(filter(None, (f.subject, f.object))) + (f" (topic {f.topic})" if f.topic else "")
    after = f", after {'the start' if f.after == 'begin' else f.after}" if f.after else ""
    return f"closest to the limit: {length(measured_ms)} ({about}: {f.kind}{after})"


def exact_s(earliest_ms: float | None, bound_ms: float | None) -> str:
    """Return the allowed time in seconds (`10.0`) if earliest and latest allowed time round to the same tenth; else
    ""."""
    if earliest_ms is None or bound_ms is None:
        return ""
    earliest, latest = f"{earliest_ms / 1000:.1f}", f"{bound_ms / 1000:.1f}"
    return latest if earliest == latest else ""


def clients_sentence(clients: Sequence[Clients]) -> str:
    """Return the clients: `2 producers, 2 consumers (ours, judged as java-4.9)`. A semicolon separates
    implementations."""
    of_make: dict[tuple[str, str], list[str]] = {}
    for group in clients:
        noun = group.kind if group.count == 1 else f"{group.kind}s"
        profile = group.profile and f"judged as {group.profile}"
        of_make.setdefault((group.implementation, profile), []).append(f"{group.count} {noun}")
    return "; ".join(f"{', '.join(who)} ({', '.join(filter(None, make))})" for make, who in of_make.items())


def _availability(measured: Mapping[str, Any], timeline_ms: float) -> list[str]:
    shares = [_share(measured[name], plural) for name, plural in OPERATIONS.items() if name in measured]
    told = (
        f"{all_of(shares)} succeeded" if shares else "",
        _quiet(measured, timeline_ms),
        _worst(measured, timeline_ms),
    )
    return list(filter(None, told))


def _quiet(measured: Mapping[str, Any], timeline_ms: float) -> str:
    stretches: Sequence[Sequence[float]] = measured.get("quiet_stretches") or ()
    if not stretches:
        return "no time was quiet"
    shown = [
        f"{(start_ms - timeline_ms) / 1000:.1f} to {(end_ms - timeline_ms) / 1000:.1f} s"
        for start_ms, end_ms in stretches[:_STRETCHES]
    ]
    more = len(stretches) - len(shown)
    when = all_of([*shown, f"{more} more times"] if more else shown)
    count, ratio = measured.get("quiet_operations") or 0, measured.get("quiet")
    if not count or ratio is None:
        return f"when it was quiet, {when}, no operation ended"
    whose = f"all {count:,} operations" if ratio == 1 else f"{_percent(ratio)} of {count:,} operations"
    return f"when it was quiet, {when}, {whose} succeeded"


def _worst(measured: Mapping[str, Any], timeline_ms: float) -> str:
    """Return the bucket with the greatest share of failures; of several, the first with most failures."""
    width_ms = measured.get("bucket_ms") or 0.0
    found = [
        (failed / ended, failed, -at, ended, plural)
        for name, plural in OPERATIONS.items()
        for at, (ended, failed) in enumerate((measured.get("series") or {}).get(name) or ())
        if failed
    ]
    if not found:
        return ""
    _, failed, at, ended, plural = max(found)
    start_s, end_s = (-at * width_ms - timeline_ms) / 1000, ((1 - at) * width_ms - timeline_ms) / 1000
    return f"at worst, from {start_s:.1f} to {end_s:.1f} s, {failed:,} of {ended:,} {plural} failed"


def _share(ratio: float, what: str) -> str:
    return f"all {what}" if ratio == 1 else f"{_percent(ratio)} of {what}"


def _percent(ratio: float) -> str:
    """Return a share in percent, rounded down, so that 100 % means all."""
    return f"{math.floor(ratio * 10_000) / 100:g} %"
