"""Makes a verdict of findings. The verdict shows the bound and the measured value of the worst finding."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...remoting.topics import is_own
from ..oracle.intervals import Stretch
from ..oracle.windows import Window
from ..verdict import EXAMPLES_MAX, Example, Finding, Validity, Verdict
from ..verdict import NEVER as NEVER
from .tolerance import Tolerance

_SHOWN = 60
"""So many rows of a table in `measured` are kept."""


class Rule(NamedTuple):
    """The rule that a finding was compared with: the rule in words (`row`), and its time limits, if it has any."""

    row: str
    formula: str = NEVER
    bound_ms: float | None = None
    earliest_ms: float | None = None


def at_no_time(row: str) -> Rule:
    """The rule for a state that may never be: the excess is the whole time for which the state lasted."""
    return Rule(row, NEVER, 0.0)


def finding(
    about: str | tuple[str, ...],
    kind: str,
    span: tuple[float, float],
    rule: Rule | Window,
    *,
    out: tuple[float | None, float | None] | None = None,
    tolerance: Tolerance | None = None,
    **more: Any,
) -> Finding:
    """Make the finding whether the rule held in `span` for `about`: a subject, or a subject, an object and a topic.

    `out` is the stretch that was out of bounds; with a rule of `at_no_time` its length is the measured time and the
    excess. With a `tolerance`, the excess decides whether the finding is wrong or late, unless `more` has either.
    """
    if isinstance(rule, Window):
        rule = Rule(rule.row, rule.formula, rule.latest_ms)
    subject, object_, topic = (*((about,) if isinstance(about, str) else about), "", "")[:3]
    fields: dict[str, Any] = {"subject": subject, "object": object_, "topic": topic, **rule._asdict()}
    if out is not None:
        fields |= {"wrong_from_ms": out[0], "wrong_to_ms": out[1]}
        if rule == at_no_time(rule.row):
            length_ms = max((out[1] or 0.0) - (out[0] or 0.0), 0.0)
            fields |= {"measured_ms": length_ms, "over_ms": length_ms}
    if tolerance is not None:
        fields |= tolerated(tolerance)
        if not more.keys() & {"wrong", "late"}:
            fields |= counted((fields | more).get("over_ms", 0.0), tolerance)
    return Finding(kind=kind, from_ms=span[0], to_ms=span[1], **(fields | more))


def at_a_moment(
    subject: str, object_: str, kind: str, at_ms: float, row: str, more: Mapping[str, Any], times: int = 1
) -> Finding:
    """Make the finding of an act that must never be, and that was done `times` times, the first time at `at_ms`."""
    at = at_ms, at_ms
    return finding((subject, object_), kind, at, Rule(row), out=at, examined=times, wrong=times, more=dict(more))


class Done(NamedTuple):
    """Something that was done, when, and whether that was right; if not, the sentence may say with whom."""

    at_ms: float
    is_right: bool
    with_: str = ""


def of_done(
    about: str | tuple[str, ...],
    kind: str,
    row: str,
    every: Iterable[Done],
    *,
    span: tuple[float, float] | None = None,
    to_ms: float | None = None,
    more: Mapping[str, Any] | None = None,
) -> Iterator[Finding]:
    """Make one finding of all that was done (in order of time), in `span` or from the first to the last of it; none of
    nothing. It is out of bounds from the first to the last that was wrong, or to `to_ms`."""
    done = [*every]
    wrong = [one for one in done if not one.is_right]
    if done:
        out = None
        if wrong:
            first_ms = wrong[0].at_ms
            out = first_ms, max(wrong[-1].at_ms, first_ms + 1.0) if to_ms is None else to_ms
        rule, told = at_no_time(row), because(one.with_ for one in wrong) | {**(more or {})}
        span = span or (done[0].at_ms, done[-1].at_ms)
        yield finding(about, kind, span, rule, out=out, examined=len(done), wrong=len(wrong), more=told)


def because(names: Iterable[str]) -> dict[str, Any]:
    """Return `more` of a finding whose sentence ends with these names, each name once; {} without names."""
    told = ", ".join(sorted({*names}))
    return {"because": told} if told else {}


def tolerated(tolerance: Tolerance) -> dict[str, Any]:
    """Return the tolerance as the fields of a Finding."""
    return {"tolerance_ms": tolerance.valid_up_to_ms, "lag_ms": tolerance.lag_ms, "timers": tolerance.timers}


def counted(over_ms: float, tolerance: Tolerance) -> dict[str, Any]:
    """Return `wrong` and `late` of one examined thing that exceeded its bound by `over_ms`."""
    wrong = over_ms > tolerance.unknown_up_to_ms
    return {"wrong": int(wrong), "late": int(not wrong and over_ms > tolerance.valid_up_to_ms)}


def wrong_or_late(is_wrong: bool) -> dict[str, Any]:
    """Return `wrong` and `late` of one examined thing: wrong, or out of bounds by what the machine's lateness may
    explain."""
    return {"wrong": int(is_wrong), "late": int(not is_wrong)}


def rounded(value_ms: float | None) -> float | None:
    """Round to a tenth of a millisecond, as verdicts show times."""
    return None if value_ms is None else round(float(value_ms), 1)


def allowed(finding: Finding) -> dict[str, Any]:
    """Return the finding's bound as `allowed` of a verdict has it, with `earliest_ms` if there is an earliest time."""
    early = {} if finding.earliest_ms is None else {"earliest_ms": rounded(finding.earliest_ms)}
    return {
        "bound_ms": rounded(finding.bound_ms),
        **early,
        "formula": finding.formula,
        "tolerance_ms": rounded(finding.tolerance_ms),
        "row": finding.row,
    }


def verdict_of(findings: Sequence[Finding], *, measured: Mapping[str, Any], nothing: str, noun: str) -> Verdict:
    """Make the verdict. `allowed`, and `max_ms` in `measured`, are of the worst finding; `min_ms` replaces `max_ms` if
    that finding came too early.

    `nothing` says why nothing was examined. `noun` completes the sentence "2 of 9 …" of an INVALID verdict.
    """
    examined = sum(finding.examined for finding in findings)
    judged = [finding for finding in findings if finding.examined]
    if not judged:
        return Verdict.nothing_examined(nothing, measured=measured)
    worst = max(judged, key=lambda finding: finding.badness)
    wrong, late = sum(finding.wrong for finding in judged), sum(finding.late for finding in judged)
    measured = {("min_ms" if worst.too_early else "max_ms"): rounded(worst.measured_ms), **measured}
    validity, why = Validity.VALID, ""
    if wrong:
        validity, why = Validity.INVALID, f"{wrong} of {examined} {noun}; {_says(worst)}"
    elif late and worst.lag_ms is None:
        validity, why = Validity.UNKNOWN, f"{late} of {examined} {noun}, but nobody measured how late timers fired"
    elif late:
        lateness = f"timers fired up to {worst.lag_ms:.0f} ms late, and {worst.timers} are chained"
        validity, why = Validity.UNKNOWN, f"{late} of {examined} {noun}, but the machine was too late: {lateness}"
    return Verdict(
        verdict=validity,
        examined=examined,
        violations=wrong,
        measured=measured,
        allowed=allowed(worst),
        examples=tuple(_examples(judged)),
        findings=tuple(findings),
        why=why,
    )


def need_not_leave(client: str, server: str, lost_ms: float, window: Window) -> str:
    """Return why this loss was too short to judge the client."""
    lost_s, due_s = lost_ms / 1000, window.latest_ms / 1000
    lost = f"{server} was lost for {lost_s:.0f} s"
    return f"{lost}, and {client} may go on using {server} for {due_s:.0f} s: use a longer fault"


def verdict_by_counts(
    *,
    examined: int,
    wrong: int,
    unsure: int = 0,
    why: str,
    why_unsure: str = "",
    nothing: str = "",
    unclear: str = "",
    findings: Iterable[Finding],
    **more: Any,
) -> Verdict:
    """Make a verdict of counts; the findings are only the first ones. The verdict is UNKNOWN if nothing is wrong for
    certain, and `unsure` things may be wrong. `why` says what is wrong, `why_unsure` what may be wrong, and `nothing`
    why nothing was examined. If `unclear` is given and something is wrong, the verdict is UNKNOWN for that reason."""
    if not examined or (wrong and unclear):
        details = {key: more[key] for key in ("measured", "allowed") if key in more}
        return Verdict.nothing_examined(unclear if examined else nothing, **details)
    validity = Validity.INVALID if wrong else Validity.UNKNOWN if unsure else Validity.VALID
    found = tuple(findings)
    return Verdict(
        verdict=validity,
        examined=examined,
        violations=wrong,
        findings=found,
        why={Validity.INVALID: why, Validity.UNKNOWN: why_unsure}.get(validity, ""),
        **{"examples": examples_of(found, validity), **more},
    )


def _says(finding: Finding) -> str:
    """Return the allowed time, the excess, and the formula and rule of the bound."""
    if finding.bound_ms is None and finding.earliest_ms is None and finding.formula != NEVER:
        return f"allowed: {finding.formula} ({finding.row})"
    comes_from = "; ".join(part for part in (finding.formula, finding.row) if part not in ("", NEVER))
    return f"{finding.example.against_bound} ({comes_from})"


def leavings(peer: str, left: Iterable[tuple[str, str, str, float, Window]]) -> list[dict[str, Any]]:
    """Return which client stopped using which lost peer, lost by which fault, how long after the loss, and the time
    limit, as an entry of `measured`; the latest first. `peer` is the column of the peer's name."""
    rows: list[dict[str, Any]] = [
        {"client": client, peer: name, "fault_id": by, "after_ms": rounded(ms), "bound_ms": rounded(window.latest_ms)}
        for client, name, by, ms, window in left
    ]
    return sorted(rows, key=lambda row: -row["after_ms"])[:_SHOWN]


def wrongs(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many things were out of bounds, tolerated or not, as an entry of `measured`; {} for none."""
    count = sum(finding.wrong + finding.late for finding in findings)
    return {"wrong": count} if count else {}


def lasted(from_ms: float, to_ms: float) -> dict[str, Any]:
    """Return the measured fields of a finding of a state that may never be, and was from `from_ms` to `to_ms`."""
    length_ms = max(to_ms - from_ms, 0.0)
    return {"measured_ms": length_ms, "bound_ms": 0.0, "formula": NEVER, "over_ms": length_ms}


def lasting(one: Stretch, window: Window, tolerance: Tolerance) -> dict[str, Any]:
    """Return the measured fields of a finding of a state that may last no longer than the window."""
    length_ms = one.end_ms - one.start_ms
    over_ms = max(length_ms - window.latest_ms, 0.0)
    out = (one.start_ms + window.latest_ms, one.end_ms) if over_ms else None
    return {"out": out, "tolerance": tolerance, "measured_ms": length_ms, "over_ms": over_ms}


def examples_of(findings: Iterable[Finding], validity: Validity) -> tuple[Example, ...]:
    """Return the first findings of this validity as examples of a verdict."""
    return tuple(finding.example for finding in findings if finding.validity is validity)[:EXAMPLES_MAX]


def _examples(findings: Iterable[Finding]) -> list[Example]:
    """The worst first; of what is as bad to a millisecond, what was seen of a topic that is neither RocketMQ's own nor
    a broker's, and what came first. A second example of one send comes behind all others that are wrong."""

    def key(one: Finding) -> tuple[object, ...]:
        *kind, over_ms = one.badness
        is_users = not is_own(one.topic) and one.topic not in (one.subject, one.object)
        return *kind, round(over_ms), is_users, -(one.example.from_ms or 0.0)

    bad = sorted((one for one in findings if one.wrong or one.late), key=key, reverse=True)
    first: dict[object, int] = {}
    again = [first.setdefault(one.more.get("op_id", at), at) != at for at, one in enumerate(bad)]
    ranked = sorted(zip(bad, again, strict=True), key=lambda of: (not of[0].wrong, of[1]))
    return [finding.example for finding, _ in ranked[:EXAMPLES_MAX]]
