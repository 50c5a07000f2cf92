"""Rules about how a client chooses its first NameServer, keeps a NameServer, and chooses the next NameServer.

The client's way of choosing (chaos/oracle/choosing) is found once, from all observations of the client. The rule
`sticky` reports the way of choosing. The other rules judge an order only if the client goes through a list in turn.

The client's list cannot be observed, only which NameServer follows which (chaos/oracle/choosing/orders.py). A shuffled
list shows only that every other NameServer is chosen before a NameServer is chosen again.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...chaos.fronts.observed import Asked
from ...chaos.oracle.choosing.labels import EVERY, KEPT, MOVES, ODDS, WORDS
from ...chaos.oracle.choosing.machine import Step, Successions
from ...chaos.oracle.choosing.orders import GIVEN, ORDERS, OWN, SHUFFLED, ListOrder, order_of
from ...chaos.oracle.choosing.start_choice import ALPHA, POWER, p_value, smallest_bias
from ..situations import SITUATIONS, Watched
from .lookups import Try, TryOutcome, broken, chosen, free_steps, goes_anywhere, label_in, tries, walk
from .rule import LeftOut, Measured, Rules

LEAVES = ("refused", "syn_dropped", "black_hole", "silent", "closed", "reset", "closes_each")
CHOICES = ("starts", "quiet", *LEAVES, "all_gone")
LASTS = ("quiet", "slow", "read_only", "broker_silent", "broker_refuses", "route_changes", "broker_returns")
"""Situations that are run for `sticky` alone; NameServers stay well in them."""
TIE_MS, TIES_SHARE = 1.0, 0.1
"""Connects of a client's two threads this near may be seen in either order (C++ 3.0.0: 0.6 ms, once in 16). At most one
in ten successions, because a client out of turn may connect as quickly."""
TIES_MAX = 5
"""Of one process; one that reconnects without a pause has thousands, and is no client of known turns."""
AGAIN = "the lost one again, then the next"
ENOUGH = 1 / ODDS
"""An order, a fixed start and `next` are decided if chance looks like that no more often than this."""
_NO_ORDER = "it turns to NameServers out of turn, which shows nothing of its list's order"
NO_LIST = LeftOut(why="it may turn to any NameServer at each look-up, which shows nothing of its list")

rules = Rules()


def first_choice(watched: Watched) -> str | None:
    """Return the NameServer that the client asked first; without a request, the NameServer that it connected to
    first."""
    found = tries(watched)
    return next((one.front for one in found if one.asked_ms is not None), found[0].front if found else None)


def choices(watched: Watched, *, takes_turns: bool) -> list[list[str]]:
    """Return the NameServers in the order in which the client chose them; a NameServer that is kept or repeated appears
    once.

    A move to another NameServer without a failure begins a new list, because `sticky` reports such a move. For a client
    that takes turns, only a look-up that overlaps another look-up begins a new list.
    """
    left = {
        b
        for a, b, tied in free_steps(watched, takes_turns=takes_turns)
        if (tied if takes_turns else a.front != b.front and not tied)
    }
    parts: list[list[Try]] = [[]]
    for one in chosen(watched, takes_turns=takes_turns):
        if one in left:
            parts.append([])
        parts[-1].append(one)
    return [_told_once([one.front for one in part]) for part in parts]


def _told_once(found: Sequence[str]) -> list[str]:
    return [front for number, front in enumerate(found) if not number or front != found[number - 1]]


def _with_ties_exchanged(watched: Watched) -> tuple[list[str], int] | None:
    """Return the client's choices after exchanges that bring all choices into turn, and the number of exchanges; None
    if no exchanges do this. An exchange swaps two neighbouring refused connects that began less than TIE_MS apart. Only
    exchanges near a choice out of turn are tried, because a client may reconnect 10,000 times."""
    found = [*chosen(watched)]
    n = len(watched.name_servers)
    for times in range(TIES_MAX + 1):
        since, wrong = _first_out_of_turn(found, n)
        if wrong == len(found):
            return _told_once([one.front for one in found]), times
        for at in range(since, min(wrong + 1, len(found) - 1)):
            a, b = found[at], found[at + 1]
            is_tie = a.outcome is b.outcome is TryOutcome.REFUSED and b.began_ms - a.began_ms < TIE_MS
            exchanged = [*found[:at], b, a, *found[at + 2 :]]
            if is_tie and a.front != b.front and _first_out_of_turn(exchanged, n)[1] > wrong:
                found = exchanged
                break
        else:
            break
    return None


def _first_out_of_turn(found: Sequence[Try], name_servers: int) -> tuple[int, int]:
    """Return the position from which on an exchange may help, and the position of the first try out of turn; if no try
    is out of turn, the number of tries, twice."""
    firsts = [at for at, one in enumerate(found) if not at or one.front != found[at - 1].front]
    wrong = next(_out_of_turn([found[at].front for at in firsts], name_servers), None)
    if wrong is None:
        return len(found), len(found)
    return max(0, firsts[max(0, wrong - name_servers + 1)] - 1), firsts[wrong]


@dataclass(slots=True)
class _Orders:
    """The choices of processes that made two or more visible choices, one after the other."""

    in_turn: list[tuple[Watched, list[str]]] = field(default_factory=list)
    out: list[tuple[Watched, list[str]]] = field(default_factory=list)
    """The processes that chose a NameServer again before all other NameServers had their turn."""
    ties: int = 0
    """How many exchanges brought choices into turn."""


def _orders(watched: Sequence[Watched]) -> _Orders:
    takes_turns, found, exchanged, steps = label_in(watched).word == EVERY, _Orders(), _Orders(), 0
    for one in watched:
        if one.situation == "all_gone" and one.dials_unseen:
            continue  # those that refused are not in what was seen
        for made in choices(one, takes_turns=takes_turns):
            if len(made) < 2 or len(one.name_servers) < 3:
                continue
            steps += len(made) - 1
            if next(_out_of_turn(made, len(one.name_servers)), None) is None:
                found.in_turn.append((one, made))
                continue
            found.out.append((one, made))
            if len(found.out) == len(exchanged.in_turn) + 1 and (tied := _with_ties_exchanged(one)) is not None:
                exchanged.in_turn.append((one, tied[0]))
                exchanged.ties += tied[1]
    if len(exchanged.in_turn) == len(found.out) and exchanged.ties <= TIES_SHARE * steps:
        return _Orders(in_turn=[*found.in_turn, *exchanged.in_turn], ties=exchanged.ties)
    return found


def _out_of_turn(made: Sequence[str], name_servers: int) -> Iterator[int]:
    """Return the positions of choices that come again before all others had their turn."""
    return (at for at, front in enumerate(made) if front in made[max(0, at - name_servers + 1) : at])


def _order(watched: Sequence[Watched], seen: Iterable[tuple[Watched, Sequence[str]]]) -> ListOrder:
    """Return the order of the client's lists, by these choices and by the first choice of each process."""
    pairs: dict[int, dict[tuple[int, int], None]] = {}
    lengths: dict[int, int] = {}
    for one, made in seen:  # of one process there may be several, and it has one list
        place = {front: number for number, front in enumerate(one.name_servers)}
        lengths[id(one)] = len(place)
        followed = dict.fromkeys((place[a], place[b]) for a, b in itertools.pairwise(made))
        pairs.setdefault(id(one), {}).update(followed)
    firsts = ((one, first_choice(one)) for one in watched if one.situation == "starts")
    places = ((len(one.name_servers), one.name_servers.index(front)) for one, front in firsts if front is not None)
    return order_of(((lengths[process], [*of]) for process, of in pairs.items()), places)


@rules(*CHOICES, words=ORDERS, of_choice=True)
def list_order(watched: Sequence[Watched]) -> Measured:
    """the order of the NameServer list that the client uses: as given, another order that is the same in all processes,
    or shuffled (p: how often shuffled lists give the same observations; power: how often so many observations tell
    shuffled lists from one order)"""
    if goes_anywhere(label_in(watched)):
        return NO_LIST
    orders = _orders(watched)
    if len(orders.in_turn) < len(orders.out):
        return LeftOut(why=_NO_ORDER)
    seen = orders.in_turn
    order = _order(watched, seen)
    starts = sum(one.situation == "starts" and first_choice(one) is not None for one in watched)
    count, examples = len(seen) + starts, [one.example(chosen=made[:8]) for one, made in seen]
    if not count:
        return Measured.undecided("no process chose a NameServer")
    if orders.out and not any(order.odds.values()):
        return LeftOut(why=_NO_ORDER)
    if not any(order.odds.values()):
        return Measured.undecided("what follows what changed within a process", count, examples=examples)
    p = order.odds[SHUFFLED] if order.word != SHUFFLED else None
    why = f"{'; '.join(map(_told, order.known))} in all processes" if order.word == OWN else ""
    if order.word is None:
        rivals = " from ".join(word for word in ORDERS if order.odds[word] > ENOUGH)
        why = (
            f"{len(seen)} processes show what follows, and {starts} what is first: too few to tell {rivals} (shuffled "
            f"lists look so with p = {order.odds[SHUFFLED]:.2g}, and p ≤ {ENOUGH:g} decides); {_more(p or 0.0)}"
        )
    return Measured(value=order.word, count=count, p=p, power=order.power, odds=order.odds, why=why, examples=examples)


def _told(known: Successions) -> str:
    """Return the order of NameServers as `ns-0, ns-2, ns-1`, with … where the order is not known."""
    chains = known.chains()
    return (", … " if len(chains) > 2 else ", ").join(", ".join(f"ns-{place}" for place in one) for one in chains)


def _more(p: float) -> str:
    """Return by what factor more steps decide, if the measured steps have the probability `p` by chance, and what else
    to do."""
    times = max(2, math.ceil(math.log(ENOUGH) / math.log(p))) if 0.0 < p < 1.0 else 0
    more = f"{times} times as many decide (--repeats), or " if times else ""
    return f"{more}leave this rule out (--rules)"


_STARTS = ("random", *map(str, range(10)), "scored", "uneven")


@rules("starts", words=_STARTS, also={"0 of the shuffle": ("random",)}, of_choice=True)
def start(watched: Sequence[Watched]) -> Measured:
    """the NameServer that a process asks first: random (p: how often uniform choices are at least so uneven), at a
    fixed place of the list as given, counted from 0, or chosen by latency (scored: it stays connected to a NameServer
    that it does not ask)"""
    of = [(one, first_choice(one)) for one in watched]
    began = [(one, front) for one, front in of if front is not None]
    n = max((len(one.name_servers) for one, _ in began), default=0)
    if not began:
        return Measured.undecided("no process tried a NameServer")
    counts = Counter(one.name_servers.index(front) for one, front in began)
    ordered = [counts[place] for place in range(n)]
    total, says = len(began), " / ".join(map(str, ordered))
    p = p_value(ordered)
    examples = ({"first choices": ordered},)
    doubt = n ** (1.0 - total) if len(counts) == 1 else 1.0
    if doubt > ENOUGH and sum(_keeps_unasked(one) for one, _ in began) > total / 2:
        why = f"it connects to several and asks one: {says}"
        return Measured(value="scored", count=total, p=p, why=why, examples=examples)
    if len(counts) == 1:
        who = f"all {total:,} processes" if total > 1 else "the only process"
        why = f"{who} asked {began[0][1]} first"
        if doubt > ENOUGH:
            enough = 1 + math.ceil(-math.log(ENOUGH, n)) if n > 1 else total
            why = f"{why}; chance alone gives that with p = {doubt:.2g}: measure {enough} starts (--starts {enough})"
            return Measured.undecided(why, total, p=p, examples=examples)
        return Measured(value=str(next(iter(counts))), count=total, p=p, doubt=doubt, why=why, examples=examples)
    if p < ALPHA:
        return Measured(value="uneven", count=total, p=p, why=f"first choices {says}", examples=examples)
    bias = smallest_bias(total, n, power=POWER, alpha=ALPHA)
    if bias is None:
        more = range(total, 100)
        enough = next((k for k in more if smallest_bias(k, n, power=POWER, alpha=ALPHA) is not None), more.stop)
        why = f"first choices {says}: too few starts to find any bias: measure {enough} (--starts {enough})"
        no_fixed_place = {"random": 1.0, "uneven": 1.0, "scored": 1.0}
        return Measured.undecided(why, total, p=p, odds=no_fixed_place, examples=examples)
    why = f"first choices {says}; so many starts find one chosen {100 * bias:.0f} points too often"
    return Measured(value="random", count=total, p=p, power=POWER, why=why, examples=examples)


def _keeps_unasked(watched: Watched) -> bool:
    asked = {one.front for one in watched.of(Asked)}
    kept = [one for one in tries(watched) if one.outcome is TryOutcome.UNUSED and one.front not in asked]
    return any(one.ended_ms is None or one.ended_ms >= watched.stopping_ms for one in kept)


@rules(*LASTS, words=WORDS, more=tuple(SITUATIONS), of_choice=True)
def sticky(watched: Sequence[Watched]) -> Measured:
    """whether the client keeps asking the NameServer that answered, by the likelihoods of four ways of choosing"""
    label = label_in(watched)
    if not label.steps:
        return Measured.undecided("no look-up followed one that was answered")
    moves = ((one, step) for one in watched for step in walk(one)[1] if not step.tied and step.was != step.then)
    examples = [
        one.example(was=one.name_servers[step.was], then=one.name_servers[step.then])
        for one, step in moves
        if step.was is not None
    ]
    stays = [stay for one in watched for stay in _stays(walk(one)[1])]
    why = f"{label.moved} of {label.steps} tries went to another one than the last, which had answered"
    if label.word == MOVES and stays:
        why += f", after {min(stays)} to {max(stays)} look-ups"
    if label.word is None:
        why += f": too few to tell {' from '.join(label.rivals)}" if len(label.rivals) > 1 else ": too few"
    elif label.word == KEPT:
        longest = max(len(walk(one)[1]) for one in watched)  # one that counts its look-ups begins anew in each process
        often = max(1, min(longest, round(1 / label.rarest)))
        why = f"a client that changes in 1 of {often} look-ups would have been found"
    return Measured(value=label.word, count=label.steps, odds=label.odds, why=why, examples=examples)


def _stays(steps: Sequence[Step]) -> Iterator[int]:
    """Return how many look-ups a process made at each NameServer that it left without a reason."""
    made = 1
    for step in steps:
        if not step.tied and step.was != step.then:
            yield made
            made = 0
        made += 1


@rules(*CHOICES, name="next", words=("the next", AGAIN, "out of turn"), of_choice=True)
def following(watched: Sequence[Watched]) -> Measured:
    """the NameServer that the client tries after a NameServer failed: the next of its list, or a NameServer out of turn
    (n: steps that could go elsewhere; power: how often so many steps find a client that goes to any other NameServer)
    """
    if all(len(one.name_servers) < 3 for one in watched):
        return LeftOut(why="fewer than three NameServers have but one order")
    label = label_in(watched)
    if goes_anywhere(label):
        return NO_LIST
    as_given = list_order(watched).value == GIVEN
    orders = _orders(watched)
    if not orders.in_turn and not orders.out:
        unseen = next((one.dials_unseen for one in watched if one.dials_unseen), None)
        stays = "no process tried a second NameServer; the rule leaves_within_s says how long it stays at a dead one"
        return Measured.undecided(unseen or stays)
    known = 1 if as_given else 2  # of a shuffled list the second choice may be any
    decided = sum(max(0, len(made) - known) for _, made in (*orders.in_turn, *orders.out))
    if orders.out:
        examples = [one.example(chosen=made[:8]) for one, made in orders.out]
        why = _in_words(orders.out[0][1])
        return Measured(value="out of turn", count=decided, why=why, examples=examples)
    p = math.prod(_chance_of_turns(made, len(one.name_servers), as_given=as_given) for one, made in orders.in_turn)
    if p > ENOUGH:
        why = f"{decided} steps: one that takes any other looks so with p = {p:.2g}; {_more(p)}"
        return Measured.undecided(why, decided, p=p, power=1.0 - p)
    again, lost = _again(watched)
    value = AGAIN if lost and again > lost / 2 else "the next"
    ties = f"{orders.ties} {'time' if orders.ties == 1 else 'times'} two dials less than {TIE_MS:g} ms apart were seen"
    why = f"{ties} in the other order" if orders.ties else ""
    examples = [one.example(chosen=made[:8]) for one, made in orders.in_turn]
    return Measured(value=value, count=decided, power=1.0 - p, why=why, examples=examples)


def _in_words(made: Sequence[str]) -> str:
    """Return the choices up to the first that was out of turn, in words."""
    place = next((place for place, front in enumerate(made) if front in made[:place]), len(made) - 1)
    return f"a process tried {', '.join(made[: place + 1])}: {made[place]} again before the turn of others"


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
