"""Clients choose NameServers by the rules of their profile: the run's `client_profile`, or for a client under test its
own profile (docs/clients-under-test.md).

Over every selection of the run (a process of a client, or one of the prober's starts), for Java's clients:

    shuffled      the list in use is a permutation of the configured NameServers, and over all selections each is drawn
                  equally often
    uniform       over all selections, the first choice falls on each NameServer equally often (alpha 1e-6); and over
                  those of producers and consumers alone, which many starts of the prober would hide
    in order      each later choice is the next entry of the client's own list
    sticky        another one is chosen only after the current one failed: a call without an answer, a failed connect,
                  or the end of its channel that the client did not make itself
    moves on      after such a failure the next call, or the next connect, is not made to the same one again
    dials the chosen    it opens no channel to a NameServer that it never chose
    keeps the list      it takes no list that has the same NameServers in another order
    closes the lost     5.x: it closes its channel to a NameServer that a new list lacks
    attempts      a call tries as many NameServers as it may, not fewer while they fail
    no more attempts    it tries no more
    answers are final   a call that got an answer, whatever its code, makes no other try
    in time       a call takes no longer than its tries may, and a wait for another call that is choosing

Other profiles put in place of these: `listed` (the list is as configured, in the order of the NameServers' names),
`start` (the first choice is a fixed entry) and `every request` (each call takes the next entry). The rules of a call
are judged where the history says its tries. An answer with an error code is no failure. A client's own close without a
reason is none either.

All these rules but `uniform` are exact: one row decides. `uniform` is a matter of chance, and decided when there are
enough first choices to find one NameServer chosen ten points too often with POWER; with fewer an even result says
nothing, so it is named as not decided, and the verdict is that of the exact rules. A run whose workload names a
`start_bias` asks for a decision: with too few starts to find it, it is UNKNOWN.

Every order of a shuffled list is as likely as any other: many clients that all drew the same one did not shuffle.

A row that breaks a rule of TIMED says nothing where its client, by its own measured lateness, stood still for half of a
try's time-out before it: that try may have run out, and another have waited for the same connect, of which nothing is
seen. It is UNKNOWN.

A client that is left by its NameServer goes on to the next of its own order. Where all have one order, all clients of a
NameServer that dies go to one and the same next. Upstream: `NettyRemotingClient.updateNameServerAddressList`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import factorial
from typing import Any

from ...oracle.choosing.labels import label_of
from ...oracle.choosing.machine import Machine, Step, Successions
from ...oracle.choosing.start_choice import (
    ALPHA,
    BIAS,
    EXACT,
    POWER,
    detectable_bias,
    method,
    p_value,
    power_of,
    starts_needed,
)
from ...oracle.client_profiles import Advance, Attempts, ClientProfile, Order, profile_of
from ...oracle.intervals import grouped
from ...oracle.lists import in_use
from ...oracle.reach import lost
from ...oracle.world import World
from ...verdict import EXAMPLES_MAX, Finding, Verdict, singular
from ..check import Group, Needs, Section, check
from ..findings import Rule, finding, verdict_by_counts, wrong_or_late
from ..record.control import Control, Row
from ..record.lateness import may_time_out
from .name_server_calls import (
    Broken,
    Choice,
    Selection,
    Tries,
    broken_calls,
    channels_kept,
    lists_not_taken,
    lists_taken_again,
    selections,
)

UNIFORM = "first choices uniform"
EXPECTED_MIN = 10
"""First choices expected per NameServer, and lists per order, below which χ² says nothing of them."""

TIMED = frozenset({"in order", "sticky", "moves on", "every request", "attempts", "no more attempts", "in time"})

FINDINGS_MAX = 200
"""So many rows that break a rule are kept of each; all are counted."""


@check(
    says="each client chooses its first and its next NameServer by the rules of its version (docs/client-profiles.md)",
    group=Group.NAME_SERVERS,
    section=Section.CLIENTS,
    needs=(Needs.CLIENTS,),
    outside=True,
    clients=("producer", "consumer", "prober"),
    tells=lambda measured: _told(measured),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: choices of a NameServer. Violations: choices, lists, calls and connects against the rules."""
    if not any(node.address for node in world.of_kind("name_server")):
        return Verdict.nothing_examined("no NameServer is in the history")
    try:
        profile = profile_of(world.workload.get("client_profile"), world.timers.profile)
    except KeyError as exc:
        return Verdict.nothing_examined(f"the run names a client profile that does not exist: {exc}")
    unclear = {node.name: node.unclear for node in world.nodes if node.unclear}
    found = [of for of in selections(control, world.end_ms) if of.who.node not in unclear]
    groups, calls = _by_dialler(found, world), 0
    broken: dict[str, list[Broken]] = defaultdict(list)
    late: dict[str, list[Broken]] = defaultdict(list)
    for dialler, those in groups.items():
        try:
            own = profile if dialler is None else world.client_profile_of(those[0].who.node)
        except KeyError as exc:
            return Verdict.nothing_examined(f"{dialler} names a client profile that does not exist: {exc}")
        tries = Tries(own, world, control.lateness)
        for one in broken_rules(those, world, own, tries):
            (late if _is_late(one, own, control, world) else broken)[one.rule].append(one)
        calls += tries.calls
    if profile.order is Order.SHUFFLED:
        # Of Apache's clients only the order in which they chose is known.
        known = (of for of in groups[None] if world.is_ours(of.who.node) and not _has_its_own(of, world))
        for one in uneven_orders(known):
            broken[one.rule].append(one)
    return _verdict(world, profile, groups, broken, late, calls, unclear)


def _is_late(one: Broken, profile: ClientProfile, control: Control, world: World) -> bool:
    """Whether its client stood still so long that a try may have run out of which nothing is seen."""
    row, patience_ms = one.row, profile.try_timeout_ms
    if one.rule not in TIMED:
        return False
    lag_ms = control.lateness.largest(world, (row.node,), row.time_ms - patience_ms, row.time_ms)
    return may_time_out(world.timers, lag_ms, patience_ms)


def _by_dialler(found: Sequence[Selection], world: World) -> dict[str | None, list[Selection]]:
    """Those of clients under test by the dialler that they share, of who has a profile of its own by its name; of all
    others, by None."""
    diallers = {node.name: node.dialler or (node.name if node.client_profile else None) for node in world.nodes}
    return {None: [], **grouped((diallers.get(of.who.node), of) for of in found)}


def _told(measured: Mapping[str, Any]) -> str:
    """ "first choices 33 / 24 / 37, p = 0.25; 0 later ones; 168 calls" """
    counts = measured.get("first_choices")
    if not counts:
        return ""
    p = measured.get("p_value")
    said = f"first choices {' / '.join(map(str, counts.values()))}" + ("" if p is None else f", p = {p:.2g}")
    if own := measured.get("own_lists"):
        theirs = "which has a list of its own" if len(own) == 1 else "which have lists of their own"
        said += f" (without {', '.join(own)}, {theirs})"
    return f"{said}; {measured.get('later_choices', 0)} later ones; {measured.get('calls', 0)} calls"


def _has_its_own(of: Selection, world: World) -> bool:
    return world.has_own_list(of.who.node) or world.asks_for_list(of.who.node)


def _had_all(of: Selection, world: World) -> bool:
    """Whether a client under test could reach every NameServer at its first choice: a refused dial is not seen."""
    if not of.choices:
        return True
    return not lost(world, of.who.node, "name_server", of.choices[0].row.time_ms, for_ms=world.timers.C_ms)


def broken_rules(found: Sequence[Selection], world: World, profile: ClientProfile, tries: Tries) -> Iterator[Broken]:
    """What breaks the profile's rules, but for the one about all first choices."""
    for of in found:
        configured = world.addresses_of(of.who.node)
        for choice in of.choices:
            rule = _rule_of_choice(choice, profile, _as_given(of, choice, profile, configured, world))
            if rule is not None:
                old = choice.before.index if choice.before else None
                was = " then ".join(str(index) for index in (old, choice.index) if index is not None)
                yield of.broken(rule, choice.row, was)
        yield from lists_not_taken(of, world)
        yield from lists_taken_again(of)
        yield from channels_kept(of, world)
        yield from tries.broken(of)
        yield from broken_calls(of, profile, configured, world)


def _as_given(
    of: Selection, choice: Choice, profile: ClientProfile, configured: Sequence[str], world: World
) -> Sequence[tuple[str, ...]]:
    """What the list may be, sorted unless it is not shuffled: as configured, or as the client may have fetched it."""
    lists: Sequence[Sequence[str]] = [configured]
    if world.asks_for_list(of.who.node):
        at_ms = choice.row.time_ms
        now = {frozenset(one.entries) for one in in_use(world, of.who.node, at_ms, at_ms)}
        # The same NameServers in another order are no new list: the client keeps the order that it took first.
        before = (one for one in world.served if one.from_ms <= at_ms and frozenset(one.entries) in now)
        lists = [world.addresses(one.entries) for one in before]
    return [tuple(one if profile.order is Order.LISTED else sorted(one)) for one in lists]


def _rule_of_choice(choice: Choice, profile: ClientProfile, as_given: Sequence[tuple[str, ...]]) -> str | None:
    listed, index = choice.listed, choice.index
    if listed is None or (listed if profile.order is Order.LISTED else tuple(sorted(listed))) not in as_given:
        return str(profile.order)
    if index is None or not 0 <= index < len(listed) or listed[index] != choice.row.name_server:
        return "in order"
    known = Successions.given(len(listed))  # it is its own list, shuffled or not
    if choice.before is None:
        return None if Machine.of(profile, len(listed)).chance(Step(None, index), known) else "start"
    before = choice.before.index
    if choice.same_list and (before is None or not known.chance(before, index)):
        return "in order"
    return None


class _FirstChoices:
    """The first choices of some clients, by address, and how likely counts at least so uneven are by chance. `of`:
    whose."""

    def __init__(self, of: str, found: Iterable[Selection], addresses: Iterable[str], profile: ClientProfile) -> None:
        first = [selection.choices[0].row for selection in found if selection.choices]
        chosen = Counter(row.name_server for row in first)
        self.of, self.profile, self.times_ms = of, profile, [row.time_ms for row in first]
        self.counts = {address: chosen[address] for address in addresses}
        self.total, self.p_value = sum(self.counts.values()), p_value([*self.counts.values()])
        self.uneven = _is_uneven([*self.counts.values()], self.p_value)


def _is_uneven(counts: Sequence[int], p: float) -> bool:
    enough = method(sum(counts), len(counts)) is EXACT or sum(counts) >= EXPECTED_MIN * len(counts)
    return enough and p < ALPHA


def _told_by(first: _FirstChoices, bias: float) -> tuple[dict[str, Any], str]:
    """What so many first choices can tell of a bias, for `measured`; and why that does not decide it, "" if it does."""
    n, total = len(first.counts), first.total
    told: dict[str, Any] = {"starts": total, "p_value": first.p_value}
    if n < 2 or bias > 1 - 1 / n:
        return told, ""
    needed = starts_needed(n, bias=bias, power=POWER, alpha=ALPHA)
    found = detectable_bias(total, n, power=POWER, alpha=ALPHA)
    power = round(power_of(total, n, bias=bias, alpha=ALPHA), 4)
    told |= {
        "judged_by": method(total, n),
        "bias": bias,
        "starts_needed": needed,
        "power": power,
        "bias_found": None if found is None else round(found, 3),
    }
    if total >= needed or first.uneven:
        return told, ""
    enough = f"too few to say whether each NameServer is chosen equally often; {needed:,} are enough"
    return told, f"{total:,} starts are {enough}"


def _formula(profile: ClientProfile, needed: int) -> str:
    parts = [f"p ≥ {ALPHA:g}" + (f" over {needed:,}+ first choices" if needed else "")] if profile.drawn else []
    when = "only after a failure" if profile.advance is Advance.ON_FAILURE else "at every request"
    tries = "1 try a call" if profile.attempts is Attempts.ONE else "n tries a call"
    return "; ".join([*parts, f"next = index + 1 mod n, {when}", tries])


def _verdict(
    world: World,
    profile: ClientProfile,
    groups: Mapping[str | None, Sequence[Selection]],
    broken: Mapping[str, Sequence[Broken]],
    late: Mapping[str, Sequence[Broken]],
    calls: int,
    unclear: Mapping[str, str],
) -> Verdict:
    names = {node.address: node.name for node in world.of_kind("name_server") if node.address}
    ours, found = groups[None], [of for those in groups.values() for of in those]
    own = sorted({of.who.node for of in ours if _has_its_own(of, world)})
    if world.served:  # the prober has the first list
        names = {address: name for address, name in names.items() if name in world.served[0].entries}
    even = [of for of in ours if of.who.node not in own]
    first = _FirstChoices("all clients", even, names, profile)
    lasting = _FirstChoices("producers and consumers", (of for of in even if not of.is_prober), names, profile)
    outside = {dialler: those for dialler, those in groups.items() if dialler is not None}
    under_test = [
        _FirstChoices(
            dialler, (of for of in those if _had_all(of, world)), names, world.client_profile_of(those[0].who.node)
        )
        for dialler, those in outside.items()
    ]
    later, start_bias = sum(len(of.choices) - 1 for of in found if of.choices), world.workload.get("start_bias")
    told, open_ = _told_by(first, start_bias or BIAS) if profile.drawn else ({"starts": first.total}, "")
    if under_test and not first.total:
        open_ = ""  # a cluster without clients of ours
    judged = [one for one in (first, lasting, *under_test) if one.profile.drawn and one.total]
    uneven = [one for one in judged if one.uneven]
    examined = first.total + later + sum(bool(of.choices) for those in outside.values() for of in those)
    examined += len(uneven if open_ else judged)  # beside each choice, what all first choices together show
    numbers = {rule: len(rows) for rule, rows in sorted(broken.items())}
    counts = ((one.of, " / ".join(map(str, one.counts.values())), one.p_value) for one in uneven)
    why = [f"first choices of {of} are not uniform: {said}, p = {p:.2g}" for of, said, p in counts]
    unsure = ""
    if late:
        unsure = f"{'; '.join(_said(late))}, but the clients had stood still for half of a try's time-out"
    elif unclear:
        unsure = f"{', '.join(sorted(unclear))}: {next(iter(unclear.values()))}"
    elif open_ and start_bias:
        unsure = f"the run is to find a bias of {start_bias:g}: {open_}"
    labels = {dialler: label_of(_walks(those, names)).word for dialler, those in outside.items()}
    strange = [*_strange(broken, names, world), *_strange(late, names, world, is_late=True)]
    return verdict_by_counts(
        examined=max(examined, len(strange)),
        wrong=sum(numbers.values()) + len(uneven),
        unsure=bool(unsure),
        why="; ".join([*why, *_said(broken)]),
        why_unsure=unsure,
        nothing=unsure or "no client chose a NameServer",
        measured={
            "first_choices": first.counts,
            "first_choices_of_lasting": lasting.counts,
            **({"own_lists": own} if own else {}),
            **({"unclear": sorted(unclear)} if unclear else {}),
            **({"first_choices_of": {one.of: one.counts for one in under_test}} if under_test else {}),
            **({"looks_like": labels} if under_test else {}),
            "later_choices": later,
            "calls": calls,
            **told,
            "broken_rules": numbers,
        },
        allowed={
            "bound_ms": None,
            "formula": _formula(profile, told.get("starts_needed", 0)),
            "tolerance_ms": None,
            "row": profile.rule,
            "client_profile": profile.name,
        },
        examples=tuple(one.example for one in strange[:EXAMPLES_MAX]),
        findings=(
            *strange,
            *_kept(found, (*broken.values(), *late.values()), world),
            *(_uniform(one, open_) for one in judged if one is first or one.uneven),
        ),
        undecided={UNIFORM: open_} if open_ else {},
    )


def _said(broken: Mapping[str, Sequence[Broken]]) -> list[str]:
    return [singular(f"rule '{rule}' broken {len(rows)} times") for rule, rows in sorted(broken.items())]


def _walks(found: Sequence[Selection], names: Mapping[str, str]) -> Iterator[tuple[int, list[Step]]]:
    """For each of them whom it asked after an answer, where nothing was lost in between."""
    place = {address: number for number, address in enumerate(names)}
    for of in found:
        steps: list[Step] = []
        last: Row | None = None
        for row in of.rows:
            if row.event == "channel" and row.f != "open":
                last = None
            if row.event == "name_server_call":
                began_ms = row.began_ms
                if last is not None and row.name_server in place and row.code is not None and began_ms >= last.time_ms:
                    steps.append(Step(place[last.name_server], place[row.name_server]))
                last = row if row.type == "ok" and row.name_server in place else None
        yield len(place), steps


def _moved(was: str) -> dict[str, str]:
    before, _, now = was.partition(" then ")
    return {"because": "it is the same NameServer as before"} if before == now else {"was": was}


def _strange(
    broken: Mapping[str, Sequence[Broken]], names: Mapping[str, str], world: World, *, is_late: bool = False
) -> Iterator[Finding]:
    """The first of those that break each rule, the rule first that was broken first: what came later may follow from
    that."""
    for rule, rows in sorted(broken.items(), key=lambda of: (min(one.row.time_ms for one in of[1]), of[0])):
        ordered = sorted(
            rows, key=lambda b: (b.row.time_ms, b.row.node, b.start, b.row.name_server or b.row.address, b.was)
        )
        for _, row, start, was in ordered[:FINDINGS_MAX]:
            address = row.name_server or row.address
            yield finding(
                (row.node, names.get(address, address)),
                rule,
                (row.time_ms, row.time_ms),
                Rule(world.client_profile_of(row.node).rule, ""),
                out=(row.time_ms, None),
                more=_moved(was) | ({"start": start} if start else {}),
                **wrong_or_late(not is_late),
            )


def _kept(found: Sequence[Selection], strange: Iterable[Sequence[Broken]], world: World) -> Iterator[Finding]:
    """One for each process that broke no rule, the prober's starts together: from its first choice to its last."""
    broke = {one.row.process for rows in strange for one in rows}
    choices = grouped((of.who[:2], choice.row.time_ms) for of in found for choice in of.choices)
    for (node, _), times in ((process, times) for process, times in choices.items() if process not in broke):
        rule = Rule(world.client_profile_of(node).rule, "")
        yield finding(node, "chose by the rules", (min(times), max(times)), rule, examined=len(times))


def _uniform(first: _FirstChoices, undecided: str) -> Finding:
    """The one about all first choices of some clients; it examined nothing where they do not decide it."""
    return finding(
        first.of,
        UNIFORM,
        (min(first.times_ms), max(first.times_ms)),
        Rule(first.profile.rule, f"p ≥ {ALPHA:g}"),
        examined=0 if undecided and not first.uneven else first.total,
        wrong=int(first.uneven),
        more={
            "first_choices": first.counts,
            "p_value": first.p_value,
            **({"not_decided": undecided} if undecided and not first.uneven else {}),
        },
    )


SHUFFLED_EVENLY = "shuffled evenly"
LIST_MAX = 3
"""Of a longer list there are too many orders for the starts of a run."""


def uneven_orders(found: Iterable[Selection]) -> Iterator[Broken]:
    """One for each configured list of which some orders were drawn so often that chance is no reason."""
    drawing = ((of, of.choices[0]) for of in found if of.choices and of.choices[0].listed)
    for listed, drawn in grouped((tuple(sorted(choice.listed or ())), (of, choice)) for of, choice in drawing).items():
        if not 1 < len(listed) <= LIST_MAX or len(set(listed)) < len(listed):
            continue
        orders, cells = Counter(choice.listed for _, choice in drawn), factorial(len(listed))
        counts = [*orders.values(), *[0] * (cells - len(orders))]
        p = p_value(counts)
        if _is_uneven(counts, p):
            (_, most), *_ = orders.most_common(1)
            of, choice = drawn[-1]
            yield of.broken(SHUFFLED_EVENLY, choice.row, f"{most} of {len(drawn)} the same, p = {p:.2g}")
