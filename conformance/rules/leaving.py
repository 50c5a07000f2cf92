"""Rules about the failures after which a client stops using its NameServer, each failure in its own situation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..situations import Watched
from .lookups import ENDED_WITH_ANSWER, SKEW_MS, Try, TryOutcome, broken, goes_anywhere, label_in, tries_of_look_ups
from .rule import OF_ANOTHER, LeftOut, Measure, Measured, Rule, Samples

LEFT, KEPT = "left", "kept"
_Decided = tuple[str | None, str]
"""left, kept or neither, and the reason for neither."""


def _after_failure(after: Sequence[Try], front: str) -> _Decided:
    """Return `left` if another NameServer is tried next, `kept` if the first failed twice and no other was tried."""
    if any(one.front != front for one in after):
        return LEFT, ""
    failed = [one for one in after if one.outcome not in ENDED_WITH_ANSWER]
    if len(failed) > 1:
        return KEPT, ""
    return None, "the client tried the NameServer only once more" if failed else "the client tried no NameServer then"


def _after_close(after: Sequence[Try], front: str) -> _Decided:
    if not after:
        return None, "the client tried no NameServer then"
    return (KEPT if after[0].front == front else LEFT), ""


def _after_code(after: Sequence[Try], front: str) -> _Decided:
    """Return the outcome by the NameServer that is tried after the first answer with an error code."""
    coded = next((number for number, one in enumerate(after) if one.outcome is TryOutcome.CODE), None)
    if coded is None:
        return None, "no look-up was answered with the code"
    if coded + 1 == len(after):
        return None, "no look-up followed the answer with the code"
    return (KEPT if after[coded + 1].front == front else LEFT), ""


def _broken(watched: Sequence[Watched]) -> Iterator[tuple[Watched, float, str, list[Try]]]:
    """Return each process that was at work when its NameServer broke, with time, NameServer, and later tries."""
    for one in watched:
        if (when := broken(one)) is not None:
            used = (tried for tried in tries_of_look_ups(one) if tried.outcome is not TryOutcome.UNUSED)
            yield one, *when, [tried for tried in used if tried.began_ms >= when[0] - SKEW_MS]


def _measure(situation: str, decide: Callable[[Sequence[Try], str], _Decided]) -> Measure:
    def measure(watched: Sequence[Watched]) -> Measured:
        of = [one for one in watched if one.situation == situation]
        if not of:
            return LeftOut(why=f"{OF_ANOTHER}{situation}")
        if label_in(watched).takes_turns:
            return LeftOut(why="the client changes its NameServer also without a failure")
        found = Samples("no process was at work when it happened")
        for one, since_ms, front, after in _broken(of):
            value, why_not = decide(after, front)
            if value is None:
                found.why = (one.dials_unseen or why_not) if situation in _BY_DIALS else why_not
                continue
            moved = next((tried for tried in after if tried.front != front), None)
            then = {} if moved is None else {"then": moved.front, "after_ms": round(moved.began_ms - since_ms, 1)}
            failed = sum(tried.front == front for tried in after)
            found.add(value, one, since_ms, front=front, **{"tried again": failed, **then})
        if len(set(found.values)) > 1:
            return Measured(value="either", count=len(found.values), examples=found.examples)
        return found.commonest()

    return measure


_BY_DIALS = ("refused", "syn_dropped")
_DEATHS = ("refused", "syn_dropped", "black_hole", "silent", "closes_each")
NEVER = "never"


def _leaves_within_s(watched: Sequence[Watched]) -> Measured:
    if goes_anywhere(label_in(watched)):
        return LeftOut(why="it draws a NameServer for each request, so chance decides when it draws another one")
    found = Samples("no process was at work when it happened")
    said: list[str] = []
    for one, since_ms, front, after in _broken(watched):
        value, why_not = _after_failure(after, front)
        failed = any(each.outcome not in ENDED_WITH_ANSWER for each in after)
        if value is None and (one.dials_unseen or not failed):
            return Measured.undecided(f"{one.situation}: {one.dials_unseen or why_not}", len(found.values))
        answers = (each.ended_ms for each in after if each.front != front and each.outcome in ENDED_WITH_ANSWER)
        answered_ms = next(filter(None, answers), None)
        after_s = None if answered_ms is None else round((answered_ms - since_ms) / 1000, 1)
        found.add(after_s, one, since_ms, front=front, after_s=after_s)
        never = f"{NEVER} in {(one.stopping_ms - since_ms) / 1000:.0f} s"
        said.append(f"{one.situation} {never if after_s is None else f'{after_s:g} s'}")
    return replace(found.longest(NEVER), why=", ".join(said) or found.why)


def _rule(name: str, what: str, situation: str, decide: Callable[[Sequence[Try], str], _Decided]) -> Rule:
    says = f"whether the client goes to another NameServer when the NameServer in use {what}"
    return Rule(name, says, (situation, "quiet"), _measure(situation, decide), words=(LEFT, KEPT, "either"))


rules = (
    Rule(
        "leaves_within_s",
        "the time from the death of the NameServer in use until another NameServer answers: the longest of five times "
        "(the NameServer refuses, drops SYNs, is cut off, hangs, or closes each connection)",
        _DEATHS,
        _leaves_within_s,
        unit="s",
        words=(NEVER,),
        tolerance=1.0,
        is_bound=True,
    ),
    _rule("leaves_on_refused", "refuses", "refused", _after_failure),
    _rule("leaves_on_syn_dropped", "drops SYNs", "syn_dropped", _after_failure),
    _rule("leaves_on_silence", "accepts and never answers", "silent", _after_failure),
    _rule("leaves_on_close", "closes the connection and accepts the next", "closed", _after_close),
    _rule("leaves_on_reset", "resets the connection and accepts the next", "reset", _after_close),
    _rule("leaves_on_closed_at_accept", "closes each connection as soon as it is made", "closes_each", _after_failure),
    _rule("leaves_on_error_code", "answers with SYSTEM_ERROR 1", "error_code", _after_code),
    _rule("leaves_on_code_17", "answers with TOPIC_NOT_EXIST 17", "topic_not_exist", _after_code),
)
