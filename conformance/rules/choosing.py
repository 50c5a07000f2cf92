"""Rules about the choice of NameServers: which NameServer is first, whether it is kept, and which is next.

All rules about choosing follow from one way of choosing (chaos/oracle/choosing). The way is found once, from all
observations of a client, and `sticky` reports its label. The other rules judge an order only if the client goes through
a list.

The list itself cannot be seen, only which NameServer follows which. `as given`: every choice is the same number of
places after the previous choice. A shuffled list looks like this with probability `p`. Of a shuffled list one sees only
that every other entry has its turn before an entry comes again.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...chaos.oracle.choosing.labels import EVERY, KEPT, ODDS, WORDS
from ...chaos.oracle.choosing.machine import Successions
from ...chaos.oracle.choosing.start_choice import ALPHA, POWER, p_value, smallest_bias
from ..situations import SITUATIONS, Watched
from .lookups import Try, TryOutcome, broken, free_steps, goes_anywhere, label_in, tries, walk
from .rule import LeftOut, Measured, Rules

LEAVES = ("refused", "syn_dropped", "black_hole", "silent", "closed", "reset", "closes_each")
CHOICES = ("starts", "quiet", *LEAVES, "all_gone")
LASTS = ("quiet", "slow", "broker_silent", "broker_refuses", "route_changes", "broker_returns")
"""Situations that are run for `sticky` alone; NameServers stay well in them."""
TIE_MS, TIES_SHARE = 1.0, 0.1
"""Connects of a client's two threads this near may be seen in either order (C++ 3.0.0: 0.6 ms, once in 16). At most one
in ten successions, because a client out of turn may connect as quickly."""
NAME_SERVERS_MAX = 9
"""As `--name-servers` allows."""
AGAIN = "the lost one again, then the next"
ENOUGH = 1 / ODDS
"""A list is called `as given`, or a start fixed, if chance looks like that no more often than this."""
ENOUGH_TURNS = 0.1
"""`next` is decided if other ways look like that no more often than this. If a call makes one try, it meets four
refusing NameServers no more often in two polls. `p` says how often."""
NO_LIST = LeftOut(why="it does not go through a list: it turns to any NameServer at any request")

rules = Rules()


def first_choice(watched: Watched) -> str | None:
    """Return the NameServer that the client asked first; without a request, the NameServer that it connected to
    first."""
    found = tries(watched)
    return next((one.front for one in found if one.asked_ms is not None), found[0].front if found else None)


def choices(watched: Watched, *, takes_turns: bool) -> list[list[str]]:
    """Return the NameServers in the order in which the client chose them, a kept or repeated choice only once.

    A choice without a reason, which `sticky` reports, begins a new order. So does a choice of a client that takes turns
    if it was under way together with another.
    """
    left = {b for a, b, tied in free_steps(watched) if (tied if takes_turns else a.front != b.front and not tied)}
    parts: list[list[Try]] = [[]]
    for one in tries(watched):
        if one.outcome is not TryOutcome.UNUSED:
            if one in left:
                parts.append([])
            parts[-1].append(one)
    return [_told_once([one.front for one in part]) for part in parts]


def _told_once(found: Sequence[str]) -> list[str]:
    return [front for number, front in enumerate(found) if not number or front != found[number - 1]]


def _with_tie_exchanged(watched: Watched) -> list[str] | None:
    """Return the choices with two refused connects exchanged that were less than TIE_MS apart, if all are then in turn.

    Else None. Only exchanges near the first choice out of turn are tried, because a client may reconnect 10,000 times.
    """
    found = [one for one in tries(watched) if one.outcome is not TryOutcome.UNUSED]
    n = len(watched.name_servers)
    firsts = [at for at, one in enumerate(found) if not at or one.front != found[at - 1].front]
    wrong = next(_out_of_turn([found[at].front for at in firsts], n), None)
    if wrong is None:
        return None
    for at in range(max(0, firsts[max(0, wrong - n + 1)] - 1), min(firsts[wrong] + 1, len(found) - 1)):
        a, b = found[at], found[at + 1]
        is_tie = a.outcome is b.outcome is TryOutcome.REFUSED and b.began_ms - a.began_ms < TIE_MS
        if is_tie and a.front != b.front:
            made = _told_once([one.front for one in (*found[:at], b, a, *found[at + 2 :])])
            if _is_in_turn(made, n):
                return made
    return None


def _in_order(watched: Sequence[Watched]) -> Iterator[tuple[Watched, list[str]]]:
    """Return the choices of processes that made two or more visible choices."""
    takes_turns = label_in(watched).word == EVERY
    for one in watched:
        if one.situation == "all_gone" and one.dials_unseen:
            continue  # those that refused are not in what was seen
        for made in choices(one, takes_turns=takes_turns):
            if len(made) > 1 and len(one.name_servers) > 2:
                yield one, made


def _out_of_turn(made: Sequence[str], name_servers: int) -> Iterator[int]:
    """Return the positions of choices that come again before all others had their turn."""
    return (at for at, front in enumerate(made) if front in made[max(0, at - name_servers + 1) : at])


def _is_in_turn(made: Sequence[str], name_servers: int) -> bool:
    return next(_out_of_turn(made, name_servers), None) is None


def _places(watched: Watched, pairs: Iterable[tuple[str, str]]) -> list[int]:
    """Return for each pair of successive choices how many places of the list the second is after the first."""
    place = {front: number for number, front in enumerate(watched.name_servers)}
    return [(place[b] - place[a]) % len(place) for a, b in pairs]


def _chance_of_links(watched: Watched, made: Sequence[str]) -> float:
    """Return the probability that a shuffled list shows these successions."""
    place, chance = {front: number for number, front in enumerate(watched.name_servers)}, 1.0
    known = Successions(len(place))
    for a, b in dict.fromkeys(itertools.pairwise(made)):
        chance *= known.chance(place[a], place[b])
    return chance


def _chance_of_firsts(watched: Sequence[Watched]) -> tuple[float, Counter[int]]:
    """Return the probability that random first choices would all be the same, and how often each entry was first."""
    firsts: Counter[int] = Counter()
    chance = 1.0
    for one in watched:
        front = first_choice(one) if one.situation == "starts" else None
        if front is not None:
            chance /= len(one.name_servers) if firsts else 1
            firsts[one.name_servers.index(front)] += 1
    return chance, firsts


@rules(*CHOICES, words=("as given", "shuffled"), of_choice=True)
def list_order(watched: Sequence[Watched]) -> Measured:
    """the order of the list in use: as given, or shuffled; from many processes' first choices, and from which
    NameServer follows which"""
    if goes_anywhere(label_in(watched)):
        return NO_LIST
    made_two = list(_in_order(watched))
    seen = [(one, made) for one, made in made_two if _is_in_turn(made, len(one.name_servers))]
    has_turns = 2 * len(seen) >= len(made_two)
    places: Counter[int] = Counter()
    chance = 1.0
    for one, made in seen:
        pairs = sorted({*itertools.pairwise(made)})
        places.update(_places(one, pairs))
        chance *= _chance_of_links(one, made)
    count = len(seen)
    examples = [one.example(chosen=made[:8]) for one, made in seen]
    if len(places) > 1 and has_turns:
        return Measured(value="shuffled", count=count, p=chance, examples=examples)
    same, firsts = _chance_of_firsts(watched)
    if firsts:
        count += sum(firsts.values())
    p = min(chance, same if len(firsts) == 1 else 1.0)
    if p <= ENOUGH:
        return Measured(value="as given", count=count, p=p, doubt=p, examples=examples)
    if not has_turns:
        return LeftOut(why="it turns to NameServers out of turn, which shows nothing of its list's order")
    if not firsts and not seen:
        return Measured.undecided("no process chose a NameServer")
    why = (
        f"{len(seen)} successions, and {sum(firsts.values())} first choices: a shuffled list looks so with "
        f"p = {p:.2g}, and p ≤ {ENOUGH:g} decides; {_to_decide(watched)}"
    )
    return Measured.undecided(why, count, p=p, examples=examples)


def _to_decide(watched: Sequence[Watched]) -> str:
    """Return advice to the user if too few successions were seen."""
    n = max((len(one.name_servers) for one in watched if SITUATIONS[one.situation].name_servers is None), default=0)
    more = f"examine it with more NameServers (--name-servers {n + 1}), or " if 0 < n < NAME_SERVERS_MAX else ""
    return f"{more}leave this rule out (--rules)"


_STARTS = ("random", *map(str, range(10)), "scored", "uneven")


@rules("starts", words=_STARTS, also={"0 of the shuffle": ("random",)}, of_choice=True)
def start(watched: Sequence[Watched]) -> Measured:
    """the NameServer that is asked first: random (p: how often even choices are at least so uneven), at a fixed place
    of the list, or chosen by latency"""
    of = [(one, first_choice(one)) for one in watched]
    began = [(one, front) for one, front in of if front is not None]
    n = max((len(one.name_servers) for one, _ in began), default=0)
    if not began:
        return Measured.undecided("no process turned to a NameServer")
    counts = Counter(one.name_servers.index(front) for one, front in began)
    ordered = [counts[place] for place in range(n)]
    total, says = len(began), " / ".join(map(str, ordered))
    p = p_value(ordered)
    examples = ({"first choices": ordered},)
    if sum(_dials_all_first(one) for one, _ in began) > total / 2:
        return Measured(value="scored", count=total, p=p, why=f"dials all, asks one: {says}", examples=examples)
    if len(counts) == 1:
        doubt = n ** (1.0 - total)
        who = f"all {total:,} processes" if total > 1 else "the only process"
        why = f"{who} asked {began[0][1]} first; chance alone gives that with p = {doubt:.2g}"
        if doubt > ENOUGH:
            return Measured.undecided(why, total, p=p, examples=examples)
        return Measured(value=str(next(iter(counts))), count=total, p=p, doubt=doubt, why=why, examples=examples)
    if p < ALPHA:
        return Measured(value="uneven", count=total, p=p, why=f"first choices {says}", examples=examples)
    bias = smallest_bias(total, n, power=POWER, alpha=ALPHA)
    if bias is None:
        why = f"first choices {says}: too few starts to find any bias"
        return Measured.undecided(why, total, p=p, examples=examples)
    why = f"first choices {says}; so many starts find one chosen {100 * bias:.0f} points too often"
    return Measured(value="random", count=total, p=p, power=POWER, why=why, examples=examples)


def _dials_all_first(watched: Watched) -> bool:
    found = tries(watched)
    asked = next((number for number, one in enumerate(found) if one.asked_ms is not None), len(found))
    opened_ms = found[asked].asked_ms if asked < len(found) else None
    dialled = {one.front for one in found if one.dialled and (opened_ms is None or one.began_ms <= opened_ms)}
    return len(watched.name_servers) > 1 and dialled == set(watched.name_servers)


@rules(*LASTS, words=WORDS, more=tuple(SITUATIONS), of_choice=True)
def sticky(watched: Sequence[Watched]) -> Measured:
    """whether the NameServer that answered is asked again: the likelihoods of all four ways of choosing"""
    label = label_in(watched)
    if not label.steps:
        return Measured.undecided("no look-up followed one that was answered")
    moves = ((one, step) for one in watched for step in walk(one)[1] if not step.tied and step.was != step.then)
    examples = [
        one.example(was=one.name_servers[step.was], then=one.name_servers[step.then])
        for one, step in moves
        if step.was is not None
    ]
    why = f"{label.moved} of {label.steps} tries went to another one than the last, which had answered"
    if label.word is None:
        why += f": too few to tell {' from '.join(label.rivals)}" if len(label.rivals) > 1 else ": too few"
    elif label.word == KEPT:
        longest = max(len(walk(one)[1]) for one in watched)  # one that counts its look-ups begins anew in each process
        why = f"one that moves at one in {max(1, min(longest, round(1 / label.rarest)))} look-ups would have shown"
    return Measured(value=label.word, count=label.steps, odds=label.odds, why=why, examples=examples)


@rules(*CHOICES, name="next", words=("the next", AGAIN, "skips", "out of turn"), of_choice=True)
def following(watched: Sequence[Watched]) -> Measured:
    """the NameServer that follows a failed one: the next of the list; in a shuffled list all others have their turn
    first"""
    if all(len(one.name_servers) < 3 for one in watched):
        return LeftOut(why="fewer than three NameServers have but one order")
    label = label_in(watched)
    if goes_anywhere(label):
        return NO_LIST
    order = list_order(watched)
    as_given = order.value == "as given"
    seen = [*_in_order(watched)]
    if not seen:
        unseen = next((one.dials_unseen for one in watched if one.dials_unseen), None)
        return Measured.undecided(unseen or "no process turned to a second NameServer")
    in_turn: list[tuple[Watched, list[str]]] = []
    out: list[tuple[Watched, list[str]]] = []
    for one, made in seen:
        (in_turn if _is_in_turn(made, len(one.name_servers)) else out).append((one, made))
    decided = sum(max(0, len(made) - (1 if as_given else 2)) for _, made in seen)
    tied: list[tuple[Watched, list[str]]] = []
    for one, _ in out if len(out) <= TIES_SHARE * decided else ():
        if (exchanged := _with_tie_exchanged(one)) is None:
            break
        tied.append((one, exchanged))
    if len(tied) < len(out):
        examples = [one.example(chosen=made[:8]) for one, made in out]
        return Measured(value="out of turn", count=decided, why="one came again before others' turn", examples=examples)
    seen = in_turn + tied
    p = 1.0
    for one, made in seen:
        p *= _chance_of_turns(made, len(one.name_servers), as_given=as_given)
    if p > ENOUGH_TURNS:
        why = f"{decided} times another one followed: one that takes any other looks so with p = {p:.2g}"
        return Measured.undecided(why, decided, p=p)
    places = Counter(place for one, made in seen for place in _places(one, itertools.pairwise(made)))
    if as_given and set(places) != {1}:
        skipped = next(iter(places)) - 1
        return Measured(value="skips", count=decided, why=f"{skipped} of the list are left out each time")
    again, lost = _again(watched)
    value = AGAIN if lost and again > lost / 2 else "the next"
    why = f"{len(tied)} time two dials less than {TIE_MS:g} ms apart were seen in the other order" if tied else ""
    return Measured(value=value, count=decided, p=p, why=why)


def _chance_of_turns(made: Sequence[str], name_servers: int, *, as_given: bool) -> float:
    """Return the probability that random choices of another NameServer are in turn by chance."""
    others = name_servers - 1
    if as_given:
        return float(others ** -(len(made) - 1))
    chance = 1.0
    for at in range(2, len(made)):
        chance *= max(1, name_servers - at) / others
    return chance


def _again(watched: Sequence[Watched]) -> tuple[int, int]:
    """Return how often the client reconnected to the NameServer that had closed its connections, and the number of
    cases."""
    again = lost = 0
    for one in watched:
        when = broken(one) if one.situation in ("refused", "syn_dropped", "closes_each") else None
        if when is None:
            continue
        after = [tried.front for tried in tries(one) if tried.began_ms >= when[0]]
        if after and set(after) - {when[1]}:
            lost += 1
            again += after[0] == when[1]
    return again, lost
