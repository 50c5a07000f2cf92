"""A verdict as sentences: what was measured, what was wrong (who, when, by how much), and what is allowed.

Times that a person reads count from where the scenario's timeline starts, as its `at_s` do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..checks import CHECKS
from ..verdict import Clients, Example, Validity, Verdict
from .happened import SAID, happened, moment, seconds_of
from .values import NEVER, phrase, phrases
from .words import all_of

_OPERATIONS = {"send": "sends", "pull": "pulls", "name_server_call": "look-ups"}
_LONGEST = 60
_STRETCHES = 3
"""So many quiet stretches are named, and how many more there are."""


def measured_sentences(v: Verdict) -> list[str]:
    """What was measured, the most important sentence first; none where the numbers speak for themselves."""
    if v.name == "availability" and v.measured:
        return [*_availability(v.measured, v.timeline_ms), *undecided_sentences(v)]
    check = CHECKS.get(v.name)
    said = check.tells(v.measured) if check and check.tells and v.examined else ""
    return [*filter(None, (said,)), *undecided_sentences(v)]


def undecided_sentences(v: Verdict) -> list[str]:
    """What of the check the history cannot decide: `not decided: first choices uniform: …`."""
    return [f"not decided: {name}: {why}" for name, why in v.undecided.items()]


def example_sentence(e: Example, timeline_ms: float = 0.0) -> str:
    """What happened, in words (happened.py), and what else is known of it; moments count from `timeline_ms`."""
    e = e.since(timeline_ms)
    if said := happened(e):
        rest = {key: value for key, value in e.more.items() if key not in SAID}
        return "; ".join(filter(None, (said, ", ".join(_rest(e, rest)))))
    return _by_its_kind(e)


def _by_its_kind(e: Example) -> str:
    """`ns-1 must not hold broker-a (orders): 20.0 to 80.0 s, 60.0 s over, after kill-1 start`."""
    kind = str(e.more.get("kind") or e.more.get("rule") or "")
    topic = f"({e.topic})" if e.topic else ""
    who = " ".join(part for part in (e.who, kind, e.what, topic) if part)
    if e.who and kind and not kind.startswith(("must", "may")):
        who = " ".join(part for part in (f"{e.who}: {kind}", e.what, topic) if part)
    said = [_when(e), f"{e.over_ms / 1000:.1f} s over" if e.over_ms else ""]
    said += [f"after {e.after}" if e.after and e.after != "begin" else ""]
    rest = {key: value for key, value in e.more.items() if key not in ("kind", "rule")}
    said += _rest(e, rest)
    when = ", ".join(part for part in said if part)
    return f"{who}: {when}" if who and when else who or when


def _rest(e: Example, more: Mapping[str, Any]) -> list[str]:
    """Other moments, and what else the check has to say, as far as it is short."""
    times = [f"{name} at {moment(at_ms)}" for name, at_ms in e.times.items()]
    return times + [f"{name} {text}" for name, text in phrases(more) if len(text) <= _LONGEST]


def _when(e: Example) -> str:
    if e.from_ms is None:
        return ""
    if e.to_ms is None or e.to_ms <= e.from_ms:
        return f"at {moment(e.from_ms)}"
    return f"{seconds_of(e.from_ms)} to {moment(e.to_ms)}"


def wrong_sentence(v: Verdict) -> str:
    """Who, when and by how much, of the worst example, and how many more there are; "" of a VALID verdict."""
    if v.verdict is Validity.VALID or not v.examples:
        return ""
    more = v.violations - 1
    tail = f"; and {more} more" if v.verdict is Validity.INVALID and more > 0 else ""
    return example_sentence(v.examples[0], v.timeline_ms) + tail


def allowed_sentence(v: Verdict) -> str:
    """`33.0 s (R + C), tolerance 0.6 s`; `10.0 ± 0.5 s (1·S)` of what may be neither late nor early; the formula alone
    where nothing is timed."""
    bound_ms, formula = v.allowed.get("bound_ms"), str(v.allowed.get("formula") or "")
    earliest_ms = v.allowed.get("earliest_ms")
    if (bound_ms is None and earliest_ms is None) or formula == NEVER:
        return formula
    tolerance = phrase(v.allowed.get("tolerance_ms"), milliseconds=True)
    if exact := exact_s(earliest_ms, bound_ms):
        said = f"{exact} ± {tolerance}" if tolerance else f"{exact} s"
        return f"{said} ({formula})" if formula else said
    said = " to ".join(f"{at_ms / 1000:.1f}" for at_ms in (earliest_ms, bound_ms) if at_ms is not None) + " s"
    formula = formula.removeprefix("not before ") if bound_ms is None else formula
    said = ("not before " if bound_ms is None else "") + said + (f" ({formula})" if formula else "")
    return f"{said}, tolerance {tolerance}" if tolerance else said


def exact_s(earliest_ms: float | None, bound_ms: float | None) -> str:
    """`10.0` where nothing but that is allowed, as it is shown; "" where there is a window, or one end of it."""
    if earliest_ms is None or bound_ms is None:
        return ""
    earliest, latest = f"{earliest_ms / 1000:.1f}", f"{bound_ms / 1000:.1f}"
    return latest if earliest == latest else ""


def clients_sentence(clients: Sequence[Clients]) -> str:
    """`2 producers, 2 consumers: ours, java-4.9`; those of another make behind a semicolon."""
    of_make: dict[tuple[str, str], list[str]] = {}
    for group in clients:
        noun = group.kind if group.count == 1 else f"{group.kind}s"
        of_make.setdefault((group.implementation, group.profile), []).append(f"{group.count} {noun}")
    return "; ".join(f"{', '.join(who)}: {', '.join(filter(None, make))}" for make, who in of_make.items())


def _availability(measured: Mapping[str, Any], timeline_ms: float) -> list[str]:
    shares = [_share(measured[name], plural) for name, plural in _OPERATIONS.items() if name in measured]
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
    """The bucket in which the greatest share failed; of several, the one with the most failures, then the first."""
    width_ms = measured.get("bucket_ms") or 0.0
    found = [
        (failed / ended, failed, -at, ended, plural)
        for name, plural in _OPERATIONS.items()
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
    """Rounded down, so that only all of them are 100 %."""
    return f"{math.floor(ratio * 10_000) / 100:g} %"
