"""A process's tries at NameServers in order, from connects, frames and closes.

    Dialled ─ Opened ─ Asked 105 ─ Answered      ANSWERED, or CODE when the answer is an error
    Dialled ─ Opened ─ Asked 105 ─ (nothing)     SILENT; it ended when the client closed, if it did
    Dialled ─ Opened ─ Asked 105 ─ closed        CLOSED, by the server or its front
    Dialled ─ Opened ─ (no request)              UNUSED; closed by the other side at once: CLOSED
    Dialled ─ (refused)                          REFUSED
    Dialled ─ (no answer) ─ GaveUp               DROPPED

A later request on the same connection is a try without a connect. If the client closes a connection right after the
first request, the request had waited inside the client, so the try began with the connect. Two tries belong to one call
if they are for the same topic and the second try begins within JOIN_MS of the first try's failure.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...chaos.fronts.behaviour import PASSES, Behaviour, Dials
from ...chaos.fronts.observed import Answered, Asked, Behaved, By, Closed, Dialled, GaveUp, Happened, Opened
from ...chaos.oracle.choosing.labels import EVERY, KEPT, RANDOM, Label, Walk, label_of
from ...chaos.oracle.choosing.machine import Step
from ...chaos.oracle.choosing.start_choice import ALPHA
from ..situations import GET_ROUTEINFO, NAME_SERVER_LIST, Watched

JOIN_MS = 500.0
"""A call continues at once: within 20 ms as measured, plus a busy machine's lateness."""
WAIT_MAX_MS = 10_000.0
"""The longest that a client waits for a connect or an answer (Go: 6 s); polls are 30 s apart."""
EARLY_JOIN_MS = 100.0
"""The same before it works, when the program itself asks again after a failure."""
SLOW_MS = 2_500.0
"""A slower answer may have come too late for the client, whose call takes 3 s."""
STARVED_MS = 1_000.0
"""If our own loop was this late, answers reached programs too late for a call."""
SKEW_MS = 50.0
"""Another thread notes connects, so the connection itself may be seen first."""


class TryOutcome(StrEnum):
    ANSWERED = "answered"
    CODE = "answered with an error code"
    SILENT = "no answer"
    CLOSED = "closed"
    UNUSED = "not asked"
    REFUSED = "refused"
    DROPPED = "SYN dropped"


FAILURES = frozenset({TryOutcome.SILENT, TryOutcome.CLOSED, TryOutcome.REFUSED, TryOutcome.DROPPED})
ENDED_WITH_ANSWER = frozenset({TryOutcome.ANSWERED, TryOutcome.CODE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One try at a NameServer: a connect with its request, or a request on an existing connection."""

    front: str
    outcome: TryOutcome
    began_ms: float
    dialled: bool = False
    opened_ms: float | None = None
    asked_ms: float | None = None
    topic: str | None = None
    ended_ms: float | None = None
    """None: the try's end was not seen."""
    code: int | None = None
    closed_ms: float | None = None
    """When the client itself closed the connection of a failed try; None if the client did not close it."""


@dataclass(slots=True)
class _Connection:
    front: str
    began_ms: float
    opened_ms: float
    asked: list[Asked]
    answered: dict[int, Answered]
    closed: Closed | None = None


def behaviour_at(changes: Sequence[Behaved], front: str, at_ms: float) -> Behaviour:
    """Return the behaviour of the front (the proxy before a server) at that time. `changes` has the behaviour changes
    of all fronts in order of time."""
    found = PASSES
    for one in changes:
        if one.at_ms > at_ms:
            break
        if one.front == front:
            found = one.behaviour
    return found


def tries(watched: Watched) -> list[Try]:
    """Return all tries at NameServers before the process stopped, in the order in which they began."""
    fronts = set(watched.name_servers)
    for each in watched.of(Happened):
        if each.what == NAME_SERVER_LIST:  # one of them it was not told at its start
            fronts |= {*each.whom.split(";")}
    changes = [*watched.of(Behaved)]  # few: a client may dial 10,000 times meanwhile
    found: list[Try] = []
    channels: dict[int, _Connection] = {}
    pending: dict[str, list[float]] = defaultdict(list)
    undialled: dict[str, float] = {}
    for one in watched.seen:
        if one.at_ms > watched.stopping_ms:
            break
        if isinstance(one, Dialled) and one.front in fronts:
            assert one.front is not None
            opened_ms = undialled.pop(one.front, None)
            if opened_ms is not None and one.at_ms - opened_ms <= SKEW_MS:
                continue
            if behaviour_at(changes, one.front, one.at_ms).dials is Dials.REFUSED:
                found.append(_dial(one.front, TryOutcome.REFUSED, one.at_ms, one.at_ms))
            else:
                pending[one.front].append(one.at_ms)
        elif isinstance(one, GaveUp) and one.front in fronts and pending[one.front or ""]:
            assert one.front is not None
            found.append(_dial(one.front, TryOutcome.DROPPED, pending[one.front].pop(0), one.at_ms))
        elif isinstance(one, Opened) and one.front in fronts:
            began_ms = pending[one.front].pop() if pending[one.front] else None
            if began_ms is None:
                undialled[one.front] = began_ms = one.at_ms
            channels[one.connection] = _Connection(one.front, began_ms, one.at_ms, [], {})
        elif isinstance(one, Asked) and one.connection in channels and one.code == GET_ROUTEINFO:
            channels[one.connection].asked.append(one)
        elif isinstance(one, Answered) and one.connection in channels:
            channels[one.connection].answered[one.opaque] = one
        elif isinstance(one, Closed) and one.connection in channels:
            channels[one.connection].closed = one
    for front, left in pending.items():
        dropped = [at_ms for at_ms in left if behaviour_at(changes, front, at_ms).dials is Dials.DROPPED]
        found += [_dial(front, TryOutcome.DROPPED, at_ms, None) for at_ms in dropped]
    for channel in channels.values():
        found += _of_channel(channel, watched)
    return sorted(found, key=lambda one: (one.began_ms, one.asked_ms or one.began_ms))


def _dial(front: str, outcome: TryOutcome, began_ms: float, ended_ms: float | None) -> Try:
    return Try(front=front, outcome=outcome, began_ms=began_ms, dialled=True, ended_ms=ended_ms)


def _of_channel(channel: _Connection, watched: Watched) -> Iterator[Try]:
    front, closed = channel.front, channel.closed
    is_own = closed is not None and closed.by is By.CLIENT
    by_client_ms = closed.at_ms if closed is not None and is_own else None
    first = channel.asked[0] if channel.asked else None
    is_given_up = first is not None and by_client_ms is not None and by_client_ms - first.at_ms <= JOIN_MS
    is_used_at_once = is_given_up or (first is not None and first.at_ms - channel.opened_ms <= JOIN_MS)
    if not is_used_at_once:
        by_others = first is None and closed is not None and closed.by is not By.CLIENT
        by_others = by_others and closed is not None and closed.at_ms - channel.opened_ms <= JOIN_MS
        yield Try(
            front=front,
            outcome=TryOutcome.CLOSED if by_others else TryOutcome.UNUSED,
            began_ms=channel.began_ms,
            dialled=True,
            opened_ms=channel.opened_ms,
            ended_ms=closed.at_ms if closed is not None and first is None else None,
            closed_ms=by_client_ms if first is None else None,
        )
    outlived = False  # a look-up without an answer: then it does not end for want of one, but for its age or idle time
    for number, asked in enumerate(channel.asked):
        answer = channel.answered.get(asked.opaque)
        if answer is not None:
            outcome, ended_ms = (TryOutcome.ANSWERED if answer.code == 0 else TryOutcome.CODE), answer.at_ms
        elif closed is not None and closed.at_ms - asked.at_ms <= WAIT_MAX_MS and not (outlived and is_own):
            outcome = TryOutcome.SILENT if is_own else TryOutcome.CLOSED
            ended_ms = closed.at_ms
        elif watched.stopping_ms - asked.at_ms < JOIN_MS:
            continue  # nobody waited for it
        else:
            outcome, ended_ms, outlived = TryOutcome.SILENT, None, True
        with_dial = number == 0 and is_used_at_once
        yield Try(
            front=front,
            outcome=outcome,
            began_ms=channel.began_ms if with_dial else asked.at_ms,
            dialled=with_dial,
            opened_ms=channel.opened_ms if with_dial else None,
            asked_ms=asked.at_ms,
            topic=asked.fields.get("topic"),
            ended_ms=ended_ms,
            code=None if answer is None else answer.code,
            closed_ms=by_client_ms if outcome is TryOutcome.SILENT and ended_ms is not None else None,
        )


def _goes_on(one: Try, following: Try, join_ms: float) -> bool:
    """Whether `following` is the next try of the call to which `one` belongs."""
    if one.outcome not in FAILURES or following.began_ms < one.began_ms:
        return False
    if one.topic is not None and following.topic is not None and one.topic != following.topic:
        return False
    if one.ended_ms is not None:
        return -SKEW_MS <= following.began_ms - one.ended_ms <= join_ms
    return following.began_ms - one.began_ms <= WAIT_MAX_MS


def has_pool(watched: Watched) -> bool:
    """Whether the client has a pool of connections, made without a request: three or more to one NameServer at the same
    time, or two to each of several. Two may be of two threads that connected at once (C++ 3.0.0)."""
    opened: dict[int, tuple[str, float]] = {}
    ends_ms = {one.connection: one.at_ms for one in watched.of(Closed)}
    for one in watched.seen:
        if isinstance(one, Opened) and one.front in watched.name_servers:
            if ends_ms.get(one.connection, math.inf) - one.at_ms > SKEW_MS:
                opened[one.connection] = one.front, one.at_ms
        elif isinstance(one, Closed):
            opened.pop(one.connection, None)
        elif isinstance(one, Asked) and len(opened) > 2:
            lasting = Counter(front for front, since_ms in opened.values() if one.at_ms - since_ms > SKEW_MS)
            if any(number > 2 for number in lasting.values()) or sum(number > 1 for number in lasting.values()) > 1:
                return True
    return False


def tries_of_look_ups(watched: Watched) -> list[Try]:
    """Return the tries that may be of look-ups: of a client with a pool only those with a request, because the pool
    connects again by itself."""
    found = tries(watched)
    return [one for one in found if one.asked_ms is not None] if has_pool(watched) else found


def next_of_call(watched: Watched, found: Sequence[Try], number: int) -> Try | None:
    """Return the next try of the same call; None if the call ends."""
    one = found[number]
    is_early = watched.at_work_ms is None or one.began_ms < watched.at_work_ms
    if is_early and one.ended_ms is None and one.outcome is TryOutcome.SILENT:
        return None  # nobody can tell it from the program's own repetition
    join_ms = EARLY_JOIN_MS if is_early else JOIN_MS
    until_ms = one.began_ms + WAIT_MAX_MS if one.ended_ms is None else one.ended_ms + join_ms
    later = (found[at] for at in range(number + 1, len(found)))
    near = itertools.takewhile(lambda each: each.began_ms <= until_ms, later)
    return next((each for each in near if _goes_on(one, each, join_ms)), None)


def chosen(watched: Watched, *, takes_turns: bool | None = None) -> Iterator[Try]:
    """Yield the tries at NameServers that the client chose for a request. Connections without a request are left out. A
    failed connect is left out if the client kept the connection of its last request (Rust's client tries all), unless
    the client takes turns (default: by the client's label)."""
    if takes_turns is None:
        takes_turns = watched.label is not None and watched.label.takes_turns
    last: Try | None = None
    in_vain: list[Try] = []
    for one in tries_of_look_ups(watched):
        if one.asked_ms is None:
            in_vain += [] if one.outcome is TryOutcome.UNUSED else [one]
            continue
        if takes_turns or last is None or one.dialled or one.front != last.front:
            yield from in_vain
        yield one
        last, in_vain = one, []
    if (
        takes_turns
        or last is None
        or any(
            last.began_ms <= one.at_ms <= watched.stopping_ms for one in watched.of(Closed) if one.front == last.front
        )
    ):
        yield from in_vain


def lookups(watched: Watched, topic: str | None = None) -> list[Try]:
    """Return the tries that queried the route of `topic`; without `topic`, of any topic."""
    return [one for one in tries(watched) if one.asked_ms is not None and topic in (None, one.topic)]


def label_in(watched: Sequence[Watched]) -> Label:
    """Return the label of the client's way of choosing NameServers; if `watched` has no label yet, derive the label
    from `watched`."""
    found = next((one.label for one in watched if one.label is not None), None)
    if found is not None:
        return found
    label = label_of(walk(one, takes_turns=True) for one in watched)
    if label.word not in (EVERY, RANDOM):
        # One that keeps its NameServer may dial dead ones meanwhile (Java 5.2.0 looks for available ones).
        kept = label_of(walk(one, takes_turns=False) for one in watched)
        label = kept if not label.takes_turns or kept.word == KEPT else label
    if label.word is None and label.takes_turns:  # to whom an error code is no other reason to go elsewhere
        return label_of(walk(one, takes_turns=True, coded=True) for one in watched)
    return label


def goes_anywhere(label: Label) -> bool:
    """Whether the client moves to arbitrary NameServers, and not to the next of its list."""
    return label.takes_turns and label.odds[EVERY] <= ALPHA


def walk(watched: Watched, *, takes_turns: bool | None = None, coded: bool = False) -> Walk:
    """Return the client's steps from one NameServer to the next, if the first had answered and has not failed since.
    With `coded`, an error code counts as an answer. Steps of concurrent look-ups are `tied`: their order is unknown."""
    place = {front: number for number, front in enumerate(watched.name_servers)}
    outcomes = ENDED_WITH_ANSWER if coded else (TryOutcome.ANSWERED,)
    steps = free_steps(watched, outcomes, takes_turns=takes_turns)
    return len(place), [Step(place[a.front], place[b.front], tied=tied) for a, b, tied in steps]


def free_steps(
    watched: Watched, outcomes: Collection[TryOutcome] = (TryOutcome.ANSWERED,), *, takes_turns: bool | None = None
) -> Iterator[tuple[Try, Try, bool]]:
    """Yield each try with one of `outcomes`, the next try, and whether other tries ran at the same time. A try is left
    out if the client then had a reason to leave the NameServer. A close by the client itself counts as a reason while
    the client starts or if this machine was late, because the client may have waited too long."""
    fronts = {*watched.name_servers}
    changes = [one for one in watched.seen if isinstance(one, Behaved | Closed | Happened)]
    times = [one.at_ms for one in changes]
    listed_ms = min((one.at_ms for one in watched.of(Happened) if one.what == NAME_SERVER_LIST), default=math.inf)
    made = [one for one in chosen(watched, takes_turns=takes_turns) if one.front in fronts]
    at_once = [a.ended_ms is None or b.began_ms < a.ended_ms for a, b in itertools.pairwise(made)]
    for number, (a, b) in enumerate(itertools.pairwise(made)):
        if a.outcome not in outcomes or a.ended_ms is None or a.ended_ms - a.began_ms > SLOW_MS:
            continue
        is_busy = watched.at_work_ms is None or a.began_ms <= watched.at_work_ms or watched.late_ms >= STARVED_MS
        since, until = bisect_right(times, a.began_ms), bisect_left(times, b.began_ms + JOIN_MS + watched.late_ms)
        if is_busy and a.front != b.front and any(_is_closed_by_its_client(one, a) for one in changes[since:until]):
            continue
        meanwhile = changes[since : bisect_right(times, b.began_ms)]
        if listed_ms > b.began_ms and not any(_is_reason(one, a) for one in meanwhile):
            yield a, b, any(at_once[max(0, number - 1) : number + 2])


def _is_closed_by_its_client(change: Behaved | Closed | Happened, a: Try) -> bool:
    return isinstance(change, Closed) and change.by is By.CLIENT and change.front == a.front


def _is_reason(change: Behaved | Closed | Happened, a: Try) -> bool:
    return not isinstance(change, Happened) and change.front == a.front and not _is_closed_by_its_client(change, a)


def broken(watched: Watched) -> tuple[float, str] | None:
    """Return when the situation first disturbed a NameServer, and which NameServer; None without a disturbance."""
    if watched.at_work_ms is None:
        return None
    fronts = set(watched.name_servers)
    for one in watched.of(Behaved):
        if one.at_ms >= watched.at_work_ms and one.front in fronts and one.behaviour != PASSES:
            return one.at_ms, one.front
    return None
