"""The guilty node of an INVALID run, the guarantee that it broke, and a sentence about it.

One defect of one node shows in several checks. A check of one node's own duties comes before a check of the whole
cluster, which any node may break. Of the groups of checks, routes come first, because what NameServers have is passed
on to clients; then timers, then clients, messages and service. Of one node and one broker, what the node did (a drop)
comes before what its table lacked from then on.

If `registrations_are_kept` is VALID, NameServers' tables followed what NameServers read; then a broker that a
NameServer lacks did not register. The holder of a queue is guilty if the group does not read the queue; the broker that
acknowledged a message is guilty if the message is lost.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..oracle.lost_brokers import PROMISED
from ..verdict import Example, Validity, Verdict
from . import CHECKS
from .check import Group
from .happened import happened
from .record.differences import NOT_JUDGED


class Cause(NamedTuple):
    node: str
    """"" if no single node is named."""
    guarantee: str
    sentence: str


def first_wrong(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the INVALID verdict that is nearest to the cause; None if no verdict is INVALID."""
    wrong = sorted((verdict for verdict in verdicts if verdict.verdict is Validity.INVALID), key=_distance)
    if not wrong or _is_own(wrong[0]):
        return next(iter(wrong), None)
    begun = (v for name in _BEGINNINGS for v in wrong if v.name == name and _begins_with(v, wrong[0]))
    first = next(begun, wrong[0])
    return next((v for v in wrong if _leads_to(v, first)), first)


def _is_own(verdict: Verdict) -> bool:
    return bool(verdict.examples) and verdict.examples[0].more.get("kind") in _OWN


def _begins_with(verdict: Verdict, other: Verdict) -> bool:
    """Whether the verdict's first example is of the same node as an example of `other`, and begins no later."""
    begun = [(example.who, example.from_ms or 0.0) for example in other.examples]
    first = [(example.who, example.from_ms or 0.0) for example in verdict.examples[:1]]
    return any(who == by and from_ms <= at_ms for who, from_ms in first for by, at_ms in begun)


def _leads_to(verdict: Verdict, other: Verdict) -> bool:
    """Whether `other` first shows what a node's table lacked or still had, and `verdict` what the same node did with
    the same object, or listed of it, no later."""
    if _is_state(verdict) or not _is_state(other) or _distance(verdict)[:2] != _distance(other)[:2]:
        return False
    state = other.examples[0]
    same = (e for e in verdict.examples if (e.who, e.what) == (state.who, state.what))
    return any((e.from_ms or 0.0) <= (state.from_ms or 0.0) for e in same)


def _is_state(verdict: Verdict) -> bool:
    return any(str(e.more.get("kind")).startswith(_STATES) for e in verdict.examples[:1])


def cause_of(verdicts: Sequence[Verdict]) -> Cause | None:
    """Return the cause that `first_wrong` shows; None if no verdict is INVALID."""
    first = first_wrong(verdicts)
    if first is None:
        return None
    example = next(iter(first.examples), None)
    guarantee = CHECKS[first.name].says if first.name in CHECKS else first.name
    if str(row := first.allowed.get("row")).startswith(PROMISED):
        guarantee = f"{first.allowed['formula']}: {first.allowed['bound_ms'] / 1000:g}, {row}"
    if example is None:
        return Cause("", guarantee, first.why)
    node = _guilty(example, first, verdicts)
    if _unregistered(example, first, verdicts):
        example = replace(example, more={**example.more, "kind": "must register"})
    return Cause(node, guarantee, f"{happened(example.since(first.timeline_ms))}.")


def followed(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return the other INVALID verdicts that show the same cause: each of their examples names the guilty node."""
    first, cause = first_wrong(verdicts), cause_of(verdicts)
    if cause is None or not cause.node:
        return ()
    others = [v for v in verdicts if v.verdict is Validity.INVALID and v is not first and v.examples]
    return tuple(v for v in others if all(cause.node in (example.who, example.what) for example in v.examples))


def guilty_nodes(verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """Return each node that broke a guarantee, the nearest to the cause first, with the names of these checks. If a
    check of single nodes is INVALID, a check of the whole cluster adds no node: it may show the same cause."""
    cause, same = cause_of(verdicts), followed(verdicts)
    wrong = sorted((v for v in verdicts if v.verdict is Validity.INVALID), key=_distance)
    names_parts = any(not _is_of_the_whole(verdict) for verdict in wrong)
    found: dict[str, list[str]] = {}
    for verdict in wrong:
        accuses = not names_parts or not _is_of_the_whole(verdict)
        for example in (*verdict.examples, *(finding.example for finding in verdict.findings if finding.wrong)):
            node = cause.node if cause is not None and verdict in same else _guilty(example, verdict, verdicts)
            checks = found.setdefault(node, []) if accuses else found.get(node, [])
            if verdict.name not in checks:
                checks.append(verdict.name)
    found.pop("", None)
    return found


def _is_of_the_whole(verdict: Verdict) -> bool:
    return verdict.name in CHECKS and CHECKS[verdict.name].is_of_the_whole


_BEGINNINGS = ("done_by_hand", "registrations_are_kept", "no_acknowledged_loss")
"""These checks come first if their example begins no later: what a NameServer did with a command, a registration or a
silence, and what a broker lost that it had acknowledged."""
_STATES = ("must hold", "must not hold")
"""The kinds of findings that say what a table lacked or still had, and not what the node did."""
_NEAREST = (
    "routes_as_registered",
    "answers_are_true",
    "no_resurrection",
    "routes_are_true",
    "no_acknowledged_loss",
)
"""The order of checks of one group: what brokers registered, and what NameServers answered, before `one_master`, which
may show both; the table of one NameServer before the difference of two; a lost message before a late one."""
_OWN = (
    "reported as sent wrongly",
    "did not keep a committed offset",
    "takes what pulls commit",
    "answered a higher offset",
    "answered a lower offset than was copied",
)
"""What a node said or kept wrongly itself: messages that nobody has, and queues that nobody owns, follow from it."""
_SKIP = "answered a wrong next offset"
"""A consumer that was sent past a message did not receive the message, but the broker has not lost the message."""
_SIGN = "looks up at polls only"
"""A look-up between polls follows from another mistake of the client: the client holds a queue wrongly."""
_GROUPS = (Group.ROUTES, Group.TIMERS, *(group for group in Group if group not in (Group.ROUTES, Group.TIMERS)))


def _guilty(example: Example, verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    if example.more.get("because") == NOT_JUDGED:
        return ""
    if not example.who or _unregistered(example, verdict, verdicts):
        return example.what or example.who
    accused = CHECKS[verdict.name].accused(example) if verdict.name in CHECKS else example.who
    return str(example.more.get("holder") or accused) if accused == example.who else accused


def _unregistered(example: Example, verdict: Verdict, verdicts: Sequence[Verdict]) -> bool:
    """Whether a NameServer lacked a broker because the NameServer read no registration of the broker."""
    is_missing = verdict.name == "routes_are_true" and example.more.get("kind") == "must hold"
    is_missing = is_missing and not example.more.get("read")
    as_read = (v.name == "registrations_are_kept" and v.verdict is Validity.VALID for v in verdicts)
    return is_missing and any(as_read)


def _distance(verdict: Verdict) -> tuple[bool, int, float]:
    """Return a sort key: the smaller, the nearer the verdict is to the cause."""
    check, example = CHECKS.get(verdict.name), next(iter(verdict.examples), None)
    if check is None:
        return True, len(_GROUPS), 0
    names_nobody = example is not None and example.more.get("holder") == ""
    is_sign = bool(verdict.examples) and all(one.more.get("kind") == _SIGN for one in verdict.examples)
    skips = example is not None and example.more.get("kind") == _SKIP
    name = "no_acknowledged_loss" if skips else verdict.name
    nearest = _NEAREST.index(name) - 0.5 * skips if name in _NEAREST else -1 if _is_own(verdict) else len(_NEAREST)
    return check.is_of_the_whole or names_nobody or is_sign, _GROUPS.index(check.group), nearest
