"""Rules about one call: how many NameServers the call tries, how long each try can take, and how a failure affects
later calls.

The end of a call cannot be seen, only that no try follows (lookups.py). If each call makes only one try, it cannot be
seen whether connect and answer share one time limit. `answer_timeout_s` leaves out short times in the program's first
call, because the call's begin is unknown. `closes_on_silence` ignores connections that close right after the request,
because the silence did not close them. Go's client closes a connection 120 s after the last answer or the connect
(`receiveResponse` in internal/remote/remote_client.go), whatever was asked. For `failover`, one of the first
FAILOVER_CALLS calls that meet the unreachable NameServer, or a later try, must be answered. A connection that the
client closes without a request counts as a failed call.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ...chaos.fronts.behaviour import PASSES, Dials
from ...chaos.fronts.observed import Behaved
from ...chaos.oracle.choosing.labels import KEPT
from ...chaos.oracle.choosing.start_choice import ALPHA
from ..situations import Watched
from .lookups import (
    EARLY_JOIN_MS,
    ENDED_WITH_ANSWER,
    FAILURES,
    JOIN_MS,
    WAIT_MAX_MS,
    Try,
    TryOutcome,
    behaviour_at,
    broken,
    goes_anywhere,
    has_pool,
    label_in,
    lookups,
    next_of_call,
    tries,
    tries_of_look_ups,
)
from .rule import LeftOut, Measured, Rules, Samples

ONE, ALL, MORE = "one", "all", "some"
ADDED, ONE_DEADLINE = "added", "one deadline"
LOCK, NO_LOCK = "1/(N-1)", "none"
RECOVERS, NEVER = "recovers", "never"
FAILOVER_CALLS = 3
"""After so many failures in a row a client fails for ever: two NameServers have had their turns."""
TIME_OUT_TOLERANCE_S = 0.15
PERIOD_DIFFERS_MS = 8_000.0
"""A poll may begin so much later than after its period: by a connect's and an answer's time-out."""
_SILENT = ("silent", "black_hole", "one_dead")
_DROPPED = ("syn_dropped", "black_hole", "one_unreachable")

_NO_END = "the client neither closes a connection without an answer nor goes on elsewhere"
_POOL = "it has a pool of connections, and which connects are of a look-up is not seen"
_OTHERS = "the connection of the others stayed open"

rules = Rules()


def _example(watched: Watched, tried: Try, **what: Any) -> Mapping[str, Any]:
    return watched.example(tried.began_ms, front=tried.front, **what)


# -- how many tries


def _bursts(watched: Watched) -> list[list[Try]]:
    """Return refused connects that follow each other at once, while every NameServer refused."""
    bursts: list[list[Try]] = []
    changes = [*watched.of(Behaved)]
    for one in tries_of_look_ups(watched):
        refuses_all = all(
            behaviour_at(changes, front, one.began_ms).dials is Dials.REFUSED for front in watched.name_servers
        )
        if one.outcome is not TryOutcome.REFUSED or not refuses_all:
            continue
        if bursts and one.began_ms - bursts[-1][-1].began_ms <= JOIN_MS:
            bursts[-1].append(one)
        else:
            bursts.append([one])
    return bursts


def _topics(watched: Watched) -> int:
    """Return the number of routes in a round of the client's poll, by its topics before all NameServers were gone."""
    when = broken(watched)
    until_ms = when[0] if when else watched.stopping_ms
    return len({one.topic for one in lookups(watched) if one.began_ms < until_ms}) or 1


def _in_use(watched: Watched) -> str:
    """Return the NameServer that answered last before the situation disturbed one; "" if none answered."""
    when = broken(watched)
    until_ms = when[0] if when else watched.stopping_ms
    answered = (one.front for one in lookups(watched) if one.began_ms < until_ms and one.outcome in ENDED_WITH_ANSWER)
    return next(reversed([*answered]), "")


@rules("all_gone", words=(ONE, MORE, ALL), by_time=True)
def tries_refused(watched: Sequence[Watched]) -> Measured:
    """how many NameServers a look-up tries while all NameServers refuse"""
    unseen = next((one.dials_unseen for one in watched if one.dials_unseen), None)
    pool = _POOL if any(map(has_pool, watched)) else ""
    found = Samples(unseen or pool or "no dial was refused while every NameServer refused")
    for one in watched:
        n, topics = len(one.name_servers), _topics(one)
        bursts = _bursts(one)
        for burst in bursts[1:] or bursts:  # the first may begin with the one that was lost, once more
            dials = len(burst)
            dialled = [tried.front for tried in burst]
            # who meets the lost one on the connection that it had dials only the others
            is_rest = len(bursts) == 1 and sorted([*dialled, _in_use(one)]) == sorted(one.name_servers)
            whole, single = dials in (n, n * topics) or is_rest, dials in (1, topics)
            value = ALL if whole and not single else ONE if single and not whole else MORE
            found.add(value, one, burst[0].began_ms, front=dialled[0], dials=dialled, topics=topics)
    return found.commonest()


def _in_vain(watched: Sequence[Watched], outcome: TryOutcome) -> Iterator[tuple[Watched, Try, Try | None]]:
    """Return each failed try with the next try of the same call, if any. Failed tries are look-ups without an answer
    (SILENT), except the last, or connects whose SYNs were dropped (DROPPED)."""
    for one in watched:
        found = tries(one)
        of = [(number, tried) for number, tried in enumerate(found) if tried.outcome is outcome]
        at_work_ms = one.at_work_ms if one.at_work_ms is not None else float("inf")
        later = [(number, tried) for number, tried in of if tried.began_ms >= at_work_ms]
        for number, tried in later or of:  # those before it works include the program's own repetitions
            if outcome is TryOutcome.DROPPED or one.stopping_ms - tried.began_ms > WAIT_MAX_MS:
                yield one, tried, next_of_call(one, found, number)


@rules(*_SILENT, words=(ONE, ALL), by_time=True)
def tries_silent(watched: Sequence[Watched]) -> Measured:
    """whether a look-up that is not answered goes on to the other NameServers"""
    of = [
        (one, tried, then)
        for one, tried, then in _in_vain(watched, TryOutcome.SILENT)
        if then is None or tried.began_ms >= _one_at_a_time_ms(one)  # else what follows may be another thread's call
    ]
    late = [_goes_on_late(one, tried) for one, tried, then in of if then is None]
    of = [(one, tried, then) for one, tried, then in of if then is not None or not _goes_on_late(one, tried)]
    if not of:
        return Measured.undecided(next(filter(None, late), "no look-up was without an answer"))
    on = sum(then is not None for _, _, then in of)
    value = ALL if on > len(of) / 2 else ONE
    examples = [_example(one, tried, then=then.front if then else None) for one, tried, then in of]
    why = f"{on} of {len(of)} calls went on to another NameServer" if 0 < on < len(of) else ""
    return Measured(value=value, count=len(of), why=why, examples=examples)


# -- how long


def _of_lengths(lengths: Sequence[tuple[float, Mapping[str, Any]]], why: str) -> Measured:
    examples = [{**what, "took_ms": round(took_ms, 1)} for took_ms, what in lengths]
    return Measured.median([took_ms / 1000 for took_ms, _ in lengths], why, examples)


@rules(*_DROPPED, unit="s", tolerance=TIME_OUT_TOLERANCE_S)
def connect_timeout_s(watched: Sequence[Watched]) -> Measured:
    """how long the client waits for an unanswered connect"""
    lengths = []
    dropped = 0
    for one, tried, then in _in_vain(watched, TryOutcome.DROPPED):
        dropped += 1
        # where nobody saw the socket go: until the call goes on
        ended_ms = tried.ended_ms if tried.ended_ms is not None else then.began_ms if then is not None else None
        if ended_ms is not None:
            lengths.append((ended_ms - tried.began_ms, _example(one, tried)))
    why = "no end of a dial without an answer was seen" if dropped else "no dial met dropped SYNs"
    unseen = next((one.dials_unseen for one in watched if one.dials_unseen), None)
    return _of_lengths(lengths, unseen if unseen and not dropped else why)


@rules(*_SILENT, unit="s", tolerance=TIME_OUT_TOLERANCE_S)
def answer_timeout_s(watched: Sequence[Watched]) -> Measured:
    """how long the client waits for an answer: from the request until the client closes the connection or tries another
    NameServer"""
    lengths: list[tuple[float, Mapping[str, Any]]] = []
    of_first_calls: list[tuple[float, Mapping[str, Any]]] = []
    silent = 0
    late = ""
    for one, tried, then in _in_vain(watched, TryOutcome.SILENT):
        silent += 1
        late = late or ("" if then else _goes_on_late(one, tried))
        ends = [end for end in (tried.closed_ms, then.began_ms if then else None) if end is not None]
        if ends and tried.asked_ms is not None:
            is_first = one.at_work_ms is None or tried.began_ms < one.at_work_ms
            found = of_first_calls if is_first else lengths
            found.append((min(ends) - tried.asked_ms, _example(one, tried)))
    if of_first_calls and not lengths:
        return replace(_of_lengths(of_first_calls, ""), doubt=1.0, why="only its first call was without an answer")
    kept = silent - len(lengths) - len(of_first_calls)
    if late and not lengths:
        return Measured.undecided(late)
    if kept and kept >= len(lengths):
        some = f"{len(lengths)} of {kept + len(lengths)} look-ups without an answer were seen to end: {_OTHERS}"
        return LeftOut(why=some if lengths else _NO_END)
    return _of_lengths(lengths, "no look-up was without an answer")


def _goes_on_late(watched: Watched, silent: Try) -> str:
    """Return why it is not known whether a look-up without an answer ended; "" if it ended. The client kept the
    connection, and asked another NameServer more than WAIT_MAX_MS later: the same look-up goes on after a long
    time-out, or the client's next poll began. A poll has the period of other polls of the process."""
    if silent.ended_ms is not None:
        return ""
    asked = lookups(watched, silent.topic)
    following = next((one for one in asked if one.began_ms > silent.began_ms), None)
    if following is None or following.front == silent.front:
        return ""
    waited_ms = following.began_ms - silent.began_ms
    rounds = [one.began_ms for one in asked if one != silent]
    periods_ms = [b - a for a, b in pairwise(rounds) if not a < silent.began_ms < b]
    if any(abs(period_ms - waited_ms) <= PERIOD_DIFFERS_MS for period_ms in periods_ms):
        return ""
    return (
        f"{waited_ms / 1000:.0f} s after a look-up without an answer it asked another NameServer, and whether that is "
        "the same look-up is not seen"
    )


def _one_at_a_time_ms(watched: Watched) -> float:
    """Return when the client's look-ups begin to come one after the other. At the client's start a poll's and a send's
    look-up may run together."""
    since_ms = watched.at_work_ms if watched.at_work_ms is not None else _lost_ms(watched)
    return float("inf") if since_ms is None else since_ms


@rules(*_DROPPED, words=(ADDED, ONE_DEADLINE), by_time=True)
def timeouts_add(watched: Sequence[Watched]) -> Measured:
    """whether a look-up that spent its connect time-out still has time to ask the next NameServer"""
    unseen = next((one.dials_unseen for one in watched if one.dials_unseen), None)
    found = Samples(unseen or "no dial met dropped SYNs")
    dropped = 0
    for one, tried, then in _in_vain(watched, TryOutcome.DROPPED):
        dropped += 1
        if then is None or (then.asked_ms is None and then.closed_ms is None):
            continue  # it ends there, or what became of the next connection is not known
        asked = then.asked_ms is not None
        if asked and not _is_of_its_call(one, tried, then):
            continue
        value = ADDED if asked else ONE_DEADLINE
        found.add(value, one, tried.began_ms, front=tried.front, then=then.front, asked=asked)
    if dropped and not found.values:
        return LeftOut(why="no call went on after a connect that took its whole time")
    return found.commonest()


def _is_of_its_call(watched: Watched, dropped: Try, then: Try) -> bool:
    """Whether the request after an unanswered connect belongs to the same call. It may belong to another thread that
    waited, or to the next call, in which Java asks for the default topic's route."""
    if dropped.began_ms < _one_at_a_time_ms(watched):
        return False
    asked_at_once = then.asked_ms is not None and then.asked_ms - (then.opened_ms or then.began_ms) <= EARLY_JOIN_MS
    return watched.at_work_ms is not None or (asked_at_once and then.topic == watched.topic)


@rules(*_SILENT, words=("yes", "no", "some"), by_time=True)
def closes_on_silence(watched: Sequence[Watched]) -> Measured:
    """whether the client closes the connection when a look-up is not answered in time"""
    silent = _in_vain(watched, TryOutcome.SILENT)
    of = [(one, tried) for one, tried, _ in silent if _waited_ms(tried) > JOIN_MS]
    if not of:
        return Measured.undecided("no look-up was without an answer")
    closed = sum(_waited_ms(tried) <= WAIT_MAX_MS for _, tried in of)
    value = "yes" if closed == len(of) else "no" if not closed else "some"
    return Measured(value=value, count=len(of), examples=[_example(one, tried) for one, tried in of])


def _waited_ms(tried: Try) -> float:
    """Return the time from the connection's request to its end; infinite without an end."""
    if tried.closed_ms is None or tried.asked_ms is None:
        return float("inf")
    return tried.closed_ms - tried.asked_ms


# -- what it costs


def _calls_after_first_failure(watched: Watched) -> list[Try]:
    found = [one for one in tries(watched) if one.outcome is not TryOutcome.UNUSED]
    met = next((number for number, one in enumerate(found) if one.outcome in FAILURES), len(found))
    away = next((at for at in range(met, len(found)) if found[at].outcome in ENDED_WITH_ANSWER), len(found))
    continued = {next_of_call(watched, found, number) for number in range(met, len(found))}
    since_ms = watched.at_work_ms or 0.0
    # how long it stays at it, other rules tell
    return [one for one in found[away:] if one not in continued and one.began_ms >= since_ms]


def _stays_at_the_dead(watched: Watched) -> bool:
    used = [one.outcome for one in tries(watched) if one.outcome is not TryOutcome.UNUSED]
    met = next((at for at, outcome in enumerate(used) if outcome in FAILURES), len(used))
    return met < len(used) and not ENDED_WITH_ANSWER & {*used[met:]}


@rules("one_dead", "silent", words=(NO_LOCK, "some", LOCK), by_time=True)
def phase_lock(watched: Sequence[Watched]) -> Measured:
    """how many look-ups after the first failure meet the dead NameServer first: with N NameServers 1 of N - 1, for a
    client that takes turns and spends two turns on a failure"""
    label = label_in(watched)
    if goes_anywhere(label):
        return LeftOut(why="it takes no turns: it may turn to any NameServer at each look-up")
    if label.word == KEPT and any(map(_stays_at_the_dead, watched)):
        return LeftOut(why="it takes no turns: it stays at the dead NameServer, which other rules tell")
    paying: Counter[int] = Counter()
    whole: Counter[int] = Counter()
    examples = []
    for one in watched:
        n = len(one.name_servers)
        for call in _calls_after_first_failure(one):
            whole[n] += 1
            paying[n] += call.outcome in FAILURES
            if call.outcome in FAILURES:
                examples.append(_example(one, call, name_servers=n))
    if not whole:
        met = [any(tried.outcome in FAILURES for tried in tries(one)) for one in watched]
        spared = [one for one, is_met in zip(watched, met, strict=True) if not is_met]
        count = sum(map(len, map(lookups, spared)))
        # in the other situation a client that never asks again meets nothing
        is_spared = count and any(one.situation == "one_dead" for one in spared)
        if is_spared and not label.takes_turns:  # who takes turns would have met it
            return Measured(value=NO_LOCK, count=count, why="it never met the dead NameServer")
        followed = "followed the first that met" if any(met) else "met"
        return Measured.undecided(f"no look-up {followed} the dead NameServer")
    shares = {n: paying[n] / whole[n] for n in whole}
    counted = "; ".join(f"{paying[n]} of {whole[n]} look-ups with {n} NameServers" for n in sorted(whole))
    enough = [abs(share - 1 / (n - 1)) <= 0.25 for n, share in shares.items() if whole[n] >= 3]
    if max(shares.values()) <= 0.2:
        value = NO_LOCK
    elif not enough:
        return Measured.undecided(f"{counted}: too few", whole.total(), examples=examples)
    else:
        value = LOCK if label.word != KEPT and all(enough) else "some"
    return Measured(value=value, count=whole.total(), why=f"{counted} met the dead one first", examples=examples)


def _lost_ms(watched: Watched) -> float | None:
    """Return when the NameServers that a process without a route had asked were replaced. The result is None if the
    process asked no NameServer, or no NameServer was replaced."""
    asked_ms = next((one.began_ms for one in lookups(watched)), None)
    if asked_ms is None:
        return None
    return next((one.at_ms for one in watched.of(Behaved) if one.at_ms >= asked_ms and one.behaviour != PASSES), None)


def _one_after_the_other(found: Sequence[Try]) -> list[int]:
    """Return the positions of unanswered connects, of those at one time only the first: a client may fill a pool of
    connections, or connect again in several threads, and that is one failure."""
    kept: list[int] = []
    for number, tried in enumerate(found):
        if tried.outcome is not TryOutcome.DROPPED:
            continue
        last = found[kept[-1]] if kept else None
        if last is None or tried.began_ms >= (last.began_ms + JOIN_MS if last.ended_ms is None else last.ended_ms):
            kept.append(number)
    return kept


def _is_late(tried: Try) -> bool:
    return tried.outcome is TryOutcome.UNUSED and tried.closed_ms is not None


@rules("one_unreachable", words=(RECOVERS, NEVER))
def failover(watched: Sequence[Watched]) -> Measured:
    """whether look-ups are answered again when one of two NameServers drops SYNs (apache/rocketmq#7056)"""
    found = Samples("it never dialled the NameServer that drops SYNs")
    failed_most, is_drawn = 0, goes_anywhere(label_in(watched))
    for one in watched:
        lost_ms = _lost_ms(one)
        since = [tried for tried in tries_of_look_ups(one) if lost_ms is not None and tried.began_ms >= lost_ms]
        dropped = _one_after_the_other(since)
        if not dropped:
            ended = f": it ended by itself ({one.ended})" if one.ended_by_itself else ""
            pool = _POOL if has_pool(one) else ""
            found.why = one.dials_unseen or pool or f"it never dialled the NameServer that drops SYNs{ended}"
            continue
        first = since[dropped[0]]
        late = [number for number, tried in enumerate(since) if number > dropped[0] and _is_late(tried)]
        ends = (*dropped[FAILOVER_CALLS:][:1], *(number + 1 for number in late[FAILOVER_CALLS - 1 :][:1]))
        looked_at = since[dropped[0] : len(since) if is_drawn else min(ends, default=len(since))]
        answered = next((tried for tried in looked_at if tried.outcome in ENDED_WITH_ANSWER), None)
        failed = min(FAILOVER_CALLS, max(len(dropped), sum(_is_late(tried) for tried in looked_at)))
        if answered is not None:
            failed = sum(since[number].began_ms < answered.began_ms for number in dropped)
        elif failed < FAILOVER_CALLS:
            found.why = f"only {failed} of its look-ups met the NameServer that drops SYNs"
            continue
        elif is_drawn and (chance := 0.5 ** len(dropped)) > ALPHA:
            found.why = f"none of {len(dropped)} calls got an answer: who draws for each looks so with p = {chance:.2g}"
            continue
        failed_most = max(failed_most, failed)
        more = {} if answered is None else {"answered_after_ms": round(answered.began_ms - first.began_ms, 1)}
        value = RECOVERS if answered is not None else NEVER
        found.add(value, one, first.began_ms, front=first.front, calls=failed, **more)
    if NEVER in found.values:
        why = f"none of {failed_most} calls got an answer, as in Java 4.9.1 to 4.9.8 (apache/rocketmq#7056)"
        return Measured(value=NEVER, count=len(found.values), why=why, examples=found.examples)
    return found.commonest(f"after {failed_most} that met it")
