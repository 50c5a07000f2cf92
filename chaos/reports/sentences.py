"""A verdict as sentences: what was measured, what was wrong (who, when, by how much), and what is allowed.

Times that a person reads count from where the scenario's timeline starts, as its `at_s` do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..checks import CHECKS
from ..verdict import Clients, Example, Validity, Verdict
from .text import NEVER, all_of, phrase, phrases

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
    """What happened, in words (`happened`), and what else is known of it; moments count from `timeline_ms`."""
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


def nearest_sentence(v: Verdict) -> str:
    """For which finding the bound of a VALID verdict is shown, the one nearest to its limit.

    `nearest to it: 19.9 s (ns-0, ns-2: must be equal, after the start)`; "" where no finding is timed.
    """
    f = max((f for f in v.findings if f.examined), key=lambda f: f.badness, default=None)
    if v.verdict is not Validity.VALID or f is None or f.measured_ms is None or v.allowed.get("bound_ms") is None:
        return ""
    about = ", ".join(filter(None, (f.subject, f.object))) + (f" ({f.topic})" if f.topic else "")
    after = f", after {'the start' if f.after == 'begin' else f.after}" if f.after else ""
    return f"nearest to it: {length(f.measured_ms)} ({about}: {f.kind}{after})"


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


# -- what happened: `ns-0 dropped broker-a at 42.0 s (unregistered), 2.0 s after its registration; never allowed`
#
# One function a kind of finding says who did what, when and for how long; what was allowed, and by how much that was
# exceeded, is said the same way of all. A kind that has no function here is told by its own name. Moments are in the
# example's own axis.


def happened(e: Example) -> str:
    """The sentence; "" for a kind that has none, or an example without what was measured."""
    kind = str(e.more.get("kind") or "")
    tell = _OF_KIND.get(kind) or (_recovered if kind.startswith(_RECOVERED) else None)
    if tell is None or e.from_ms is None or e.measured_ms is None:
        return ""
    return f"{tell(e)}; {allowed(e)}{_after(e)}"


SAID = frozenset(
    ("kind", "masters", "reason", "registered_before_ms", "name_servers", "queue_id", "clients", "group", "routes")
)
"""What of an example's `more` the sentences say, or only a program wants."""


def allowed(e: Example) -> str:
    """`allowed 33.0 s: 2.0 s over`; `never allowed`; `allowed not before 120.0 s: 16.0 s too soon`."""
    over = length(e.over_ms or 0.0)
    if e.too_early:
        return f"allowed not before {length(e.earliest_ms or 0.0)}: {over} too soon"
    if e.latest_ms:
        return f"allowed {length(e.latest_ms)}: {over} over"
    return f"allowed at once: {over} over" if _is_late(e) else f"{NEVER} allowed"


def length(ms: float) -> str:
    """How long: seconds, and below one milliseconds."""
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def moment(ms: float) -> str:
    """When, in seconds of the axis."""
    return f"{seconds_of(ms)} s"


def seconds_of(ms: float) -> str:
    """To a tenth; what rounds to nothing has no sign."""
    return f"{round(ms / 1000, 1) + 0.0:.1f}"


def _is_late(e: Example) -> bool:
    """Whether it was wrong from when it was due on, and not once it had been right."""
    return e.from_ms == e.due_ms


def _after(e: Example) -> str:
    """Which fault it followed, where the length does not say so already."""
    return f"; after {e.after}" if e.after and e.after != "begin" and not (_is_late(e) or e.too_early) else ""


def _about(e: Example) -> str:
    return " ".join(filter(None, (e.what, f"({e.topic})" if e.topic else "")))


def _until(e: Example) -> str:
    """`until 80.0 s, 60.0 s after f1 end`, or `from 42.0 to 70.0 s; 28.0 s`."""
    to_ms = e.from_ms if e.to_ms is None else e.to_ms
    assert e.from_ms is not None
    assert to_ms is not None
    assert e.measured_ms is not None
    if _is_late(e):
        since = "the start" if e.after in ("", "begin") else e.after
        return f"until {moment(to_ms)}, {length(e.measured_ms)} after {since}"
    return f"from {seconds_of(e.from_ms)} to {moment(to_ms)}, for {length(e.measured_ms)}"


def _measured(e: Example) -> str:
    return length(e.measured_ms or 0.0)


def _at(e: Example) -> str:
    return moment(e.from_ms or 0.0)


def _dropped(e: Example) -> str:
    reason, age_ms = e.more.get("reason"), e.more.get("registered_before_ms")
    said = f"{e.who} dropped {e.what} at {_at(e)}" + (f" ({reason})" if reason else "")
    said += "" if age_ms is None else f", {length(age_ms)} after its last registration"
    return said if e.too_early else f"{said}; away {_measured(e)}"


def _missing(e: Example) -> str:
    if e.too_early:
        since = f", {_measured(e)} after {e.after}" if e.after else ""
        return f"{e.who} lost {_about(e)} at {_at(e)}{since}"
    return f"{e.who} did not hold {_about(e)} {_until(e)}"


def _held(e: Example) -> str:
    return f"{e.who} still held {_about(e)} {_until(e)}" if _is_late(e) else f"{e.who} held {_about(e)} {_until(e)}"


def _differed(e: Example) -> str:
    topic = f" of {e.topic}" if e.topic else ""
    return f"{e.who} and {e.what} held different routes{topic} {_until(e)}"


def _owned(e: Example) -> str:
    owners = [str(name) for name in e.more.get("clients") or ()]
    queue = f"queue {e.more.get('queue_id')} of {_about(e)}"
    return f"{' and '.join(owners) or 'nobody'} owned {queue} {_until(e)}"


def _came_back(e: Example) -> str:
    return f"{e.who} took {_about(e)} back at {_at(e)}, for {_measured(e)}, while it was down"


def _used(e: Example) -> str:
    return f"{e.who} used {_about(e)} at {_at(e)}, {_measured(e)} after it was lost"


def _stayed(e: Example) -> str:
    return f"{e.who} stayed with {e.what} until {moment(e.to_ms or e.from_ms or 0.0)}, for {_measured(e)}"


def _waited(e: Example) -> str:
    return f"{e.who} waited for {e.what} until {moment(e.to_ms or e.from_ms or 0.0)}, for {_measured(e)}"


def _asked(e: Example) -> str:
    return f"{e.who} asked {e.what} at {_at(e)}, {_measured(e)} away from any choice of it"


def _asked_again(e: Example) -> str:
    return f"{e.who} asked {e.what} again at {_at(e)}, {_measured(e)} after it had not answered"


_RECOVERED = "first good "


def _recovered(e: Example) -> str:
    operation = str(e.more["kind"]).removeprefix(_RECOVERED)
    since = f" after {e.after}" if e.after else ""
    return f"{e.who} had no good {operation} until {moment(e.to_ms or e.from_ms or 0.0)}, {_measured(e)}{since}"


_OF_KIND: Mapping[str, Callable[[Example], str]] = {
    "must not be dropped": _dropped,
    "dropped too soon": _dropped,
    "must hold": _missing,
    "must not hold": _held,
    "must not hold what was silent": lambda e: (
        f"{e.who} still held {_about(e)} until {moment(e.to_ms or e.from_ms or 0.0)}, {_measured(e)} after its last "
        "registration"
    ),
    "must not hold what left": lambda e: (
        f"{e.who} still held {_about(e)} until {moment(e.to_ms or e.from_ms or 0.0)}, after its channel had ended"
    ),
    "must not hold what never registered": lambda e: f"{e.who} held {_about(e)} from {_at(e)} on; it never registered",
    "must be equal": _differed,
    "promised to agree": _differed,
    "promised to stay": lambda e: (
        f"the master of {e.what} at {e.who} changed its address from {_at(e)} on, for {_measured(e)} "
        f"({e.more.get('masters')})"
    ),
    "promised to last": lambda e: f"{e.what} could be written to at {e.who} {_until(e)}",
    "promised to poll": lambda e: f"{e.who} asked for no route {_until(e)}",
    "must own": _owned,
    "must alone own": _owned,
    "must not come back": _came_back,
    "must not use": _used,
    "must have left": _stayed,
    "must give up": _waited,
    "must not ask": _asked,
    "must not ask again": _asked_again,
}
