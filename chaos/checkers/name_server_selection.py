"""Clients choose NameServers as those of their language do; whose, the run's `client_profile` says.

Over every selection of the run (a process of a client, or one of the prober's starts), for Java's clients:

    shuffled      the list in use is a permutation of the configured NameServers
    uniform       over all selections, the first choice falls on each NameServer equally often (alpha 1e-6)
    in order      each later choice is the next entry of the client's own list
    sticky        another one is chosen only after the current one failed: a call without an answer, a failed connect,
                  or a close that a fault of that NameServer, of the link or of the client itself explains
    moves on      after such a failure the next call, or the next connect, is not made to the same one again
    attempts      a call tries as many NameServers as it may, no more, and not fewer while they fail
    answers are final   a call that got an answer, whatever its code, makes no other try
    in time       a call takes no longer than its tries may, and a wait for another call that is choosing

Other profiles put in place of these: `listed` (the list is as configured, in the order of the NameServers' names),
`start` (the first choice is a fixed entry) and `every request` (each call takes the next entry). The rules of a call
are judged where the history says its tries. An answer with an error code is no failure. A client's own close without a
reason is none either. A run whose workload names a `start_bias` must have made enough starts to find it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..oracle.client_profiles import Advance, Attempts, ClientProfile, Order, profile_of
from ..oracle.start_choice import ALPHA, POWER, detectable_bias, method, p_value, plan, starts_needed
from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Finding, Validity, Verdict
from .check import Check, Reads, Section
from .control import Control
from .name_server_calls import Broken, Choice, Selection, Tries, broken_calls, selections

NAME = "name_server_selection"
BIAS = 0.1
"""What `measured` speaks of: the starts that find this bias with POWER, whether the run made them or not."""

EXPECTED_MIN = 10
"""First choices expected per NameServer below which nothing is said of them."""

FINDINGS_MAX = 200
"""So many rows that break a rule are kept of each; all are counted."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: choices of a NameServer. Violations: choices, lists, calls and connects against the rules."""
    configured = configured_name_servers(world)
    if not configured:
        return Verdict.nothing_examined(NAME, "no NameServer is in the history")
    workload = world.run.get("workload") or {}
    try:
        profile = profile_of(workload.get("client_profile"), world.timers.profile)
    except KeyError as exc:
        return Verdict.nothing_examined(NAME, f"the run names a client profile that does not exist: {exc}")
    found = selections(control)
    tries = Tries(profile, len(configured), world, control.lateness)
    broken: dict[str, list[Broken]] = defaultdict(list)
    for one in broken_rules(found, world, profile, tries):
        broken[one.rule].append(one)
    return _verdict(world, profile, found, broken, tries.calls, workload.get("start_bias"))


CHECK = Check(
    name=NAME,
    says="the first NameServer is uniform over the list, the next is the next in the client's own order, and it stays "
    "until it fails; by the rules of the client's [profile](docs/client-profiles.md) (Java 4.9 and 5.3, Go, C++, Node)",
    section=Section.CLIENTS,
    reads=Reads.CONTROL,
    gather=lambda gathering, _world: gathering.control,
    judge=judge,
    clients=("producer", "consumer", "prober"),
    tells=lambda measured: _told(measured),
    extras=("statistics",),
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "first choices 33 / 24 / 37, p = 0.25; 0 later ones; 168 calls" """
    counts = measured.get("first_choices")
    if not counts:
        return ""
    p = measured.get("p_value")
    said = f"first choices {' / '.join(map(str, counts.values()))}" + ("" if p is None else f", p = {p:.2g}")
    return f"{said}; {measured.get('later_choices', 0)} later ones; {measured.get('calls', 0)} calls"


def configured_name_servers(world: World) -> list[str]:
    """The addresses, in the order of the NameServers' names."""
    return [node.address for node in world.of_kind("name_server") if node.address]


def broken_rules(found: Sequence[Selection], world: World, profile: ClientProfile, tries: Tries) -> Iterator[Broken]:
    """What breaks the profile's rules, but for the one about all first choices."""
    configured = configured_name_servers(world)
    as_given = tuple(configured if profile.order is Order.LISTED else sorted(configured))
    for of in found:
        for choice in of.choices:
            rule = _rule_of_choice(choice, profile, as_given)
            if rule is not None:
                old = choice.before.index if choice.before else None
                was = " then ".join(str(index) for index in (old, choice.index) if index is not None)
                yield of.broken(rule, choice.row, was)
        yield from tries.broken(of)
        yield from broken_calls(of, profile, configured, world)


def _rule_of_choice(choice: Choice, profile: ClientProfile, as_given: tuple[str, ...]) -> str | None:
    """The rule that it breaks; `as_given` is what the list must be, sorted unless it is not shuffled."""
    listed, index = choice.listed, choice.index
    if listed is None or (listed if profile.order is Order.LISTED else tuple(sorted(listed))) != as_given:
        return str(profile.order)
    if index is None or not 0 <= index < len(listed) or listed[index] != choice.row.name_server:
        return "in order"
    if choice.before is None:
        start = profile.start.place(len(as_given))
        return "start" if start is not None and index != start else None
    before = choice.before.index
    if choice.same_list and (before is None or index != (before + 1) % len(listed)):
        return "in order"
    return None


def first_choices_needed(name_servers: int) -> int:
    """So many that always choosing the same one would be found at ALPHA, and ten expected a NameServer."""
    if name_servers < 2:
        return 1
    always_same = math.ceil(1 + math.log(1 / ALPHA) / math.log(name_servers))
    return max(always_same, EXPECTED_MIN * name_servers)


def _starts(counts: list[int], start_bias: float | None) -> tuple[dict[str, Any], int, float]:
    """What the first choices tell (for `measured`), how many there must be, and their p-value."""
    n, total = len(counts), sum(counts)
    bias = start_bias or BIAS
    p, needed = p_value(counts), first_choices_needed(n)
    if n < 2 or bias > 1 - 1 / n:
        return {"starts": total, "p_value": p}, needed, p
    enough = starts_needed(n, bias=bias, power=POWER, alpha=ALPHA)
    found = detectable_bias(total, n, power=POWER, alpha=ALPHA)
    told = {
        "starts": total,
        "p_value": p,
        "judged_by": method(total, n),
        "bias": bias,
        "starts_needed": enough,
        "power": round(plan(total, n, bias=bias, alpha=ALPHA).power, 4),
        "bias_found": None if found is None else round(found, 3),
    }
    return told, max(needed, enough) if start_bias else needed, p


def _formula(profile: ClientProfile, needed: int) -> str:
    parts = [f"p ≥ {ALPHA:g} over {needed}+ first choices"] if profile.drawn else []
    when = "only after a failure" if profile.advance is Advance.ON_FAILURE else "at every request"
    tries = "1 try a call" if profile.attempts is Attempts.ONE else "n tries a call"
    return "; ".join([*parts, f"next = index + 1 mod n, {when}", tries])


def _verdict(
    world: World,
    profile: ClientProfile,
    found: Sequence[Selection],
    broken: Mapping[str, Sequence[Broken]],
    calls: int,
    start_bias: float | None,
) -> Verdict:
    names = {node.address: node.name for node in world.of_kind("name_server") if node.address}
    first = Counter(of.choices[0].row.name_server for of in found if of.choices)
    counts = {address: first[address] for address in names}
    later = sum(len(of.choices) - 1 for of in found if of.choices)
    total = sum(counts.values())
    told, needed, p = _starts([*counts.values()], start_bias) if profile.drawn else ({"starts": total}, 1, 1.0)
    numbers = {rule: len(rows) for rule, rows in sorted(broken.items())}
    violations = sum(numbers.values())
    uneven = total >= first_choices_needed(len(counts)) and p < ALPHA
    measured = {
        "first_choices": counts,
        "later_choices": later,
        "calls": calls,
        **told,
        "broken_rules": numbers,
    }
    allowed = {
        "bound_ms": None,
        "formula": _formula(profile, needed),
        "tolerance_ms": None,
        "row": profile.rule,
        "client_profile": profile.name,
        "first_choices_needed": needed,
    }
    why = []
    if uneven:
        counted = " / ".join(str(count) for count in counts.values())
        why.append(f"first choices are not uniform: {counted}, p = {p:.2g}")
    if violations:
        why.append("; ".join(f"rule '{rule}' broken {number} times" for rule, number in numbers.items()))
    validity = Validity.VALID
    if why:
        validity = Validity.INVALID
    elif total + later == 0:
        return Verdict.nothing_examined(NAME, "no client chose a NameServer", measured=measured, allowed=allowed)
    elif total < needed:
        validity = Validity.UNKNOWN
        purpose = f"to find a bias of {start_bias:g}" if start_bias else "to tell whether they are uniform"
        why.append(f"{total} first choices are too few {purpose}; {needed} are needed")
    strange = {rule: _strange(rows, names, profile) for rule, rows in sorted(broken.items())}
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=total + later,
        violations=violations + uneven,
        measured=measured,
        allowed=allowed,
        examples=tuple(one.example for rows in strange.values() for one in rows[:EXAMPLES_MAX])[:EXAMPLES_MAX],
        findings=(
            *(one for rows in strange.values() for one in rows),
            *_kept(found, broken, profile),
            *([_uniform(found, profile, counts, p, uneven=uneven)] if profile.drawn and total else []),
        ),
        why="; ".join(why),
    )


def _strange(rows: Sequence[Broken], names: Mapping[str, str], profile: ClientProfile) -> list[Finding]:
    """The first of those that break one rule."""
    ordered = sorted(
        rows, key=lambda b: (b.row.time_ms, b.row.node, b.start, b.row.name_server or b.row.address or "", b.was)
    )
    found = []
    for rule, row, start, was in ordered[:FINDINGS_MAX]:
        address = row.name_server or row.address or ""
        more = {"start": start, "was": was} if start else {"was": was}
        found.append(
            Finding(
                subject=row.node,
                object=names.get(address, address),
                kind=rule,
                from_ms=row.time_ms,
                to_ms=row.time_ms,
                row=profile.rule,
                wrong=1,
                wrong_from_ms=row.time_ms,
                more=more,
            )
        )
    return found


def _kept(
    found: Sequence[Selection], broken: Mapping[str, Sequence[Broken]], profile: ClientProfile
) -> Iterator[Finding]:
    """One for each process that broke no rule, the prober's starts together: from its first choice to its last."""
    choices: dict[tuple[str, int], list[Choice]] = defaultdict(list)
    for of in found:
        choices[of.who.node, of.who.incarnation] += of.choices
    for process in {b.row.process for rows in broken.values() for b in rows}:
        choices.pop(process, None)
    for (node, _), made in choices.items():
        if made:
            yield Finding(
                subject=node,
                kind="chose by the rules",
                from_ms=min(choice.row.time_ms for choice in made),
                to_ms=max(choice.row.time_ms for choice in made),
                row=profile.rule,
                examined=len(made),
            )


def _uniform(
    found: Sequence[Selection], profile: ClientProfile, counts: Mapping[str, int], p: float, *, uneven: bool
) -> Finding:
    """The one about all first choices."""
    times = [of.choices[0].row.time_ms for of in found if of.choices]
    return Finding(
        subject="all clients",
        kind="first choices uniform",
        from_ms=min(times),
        to_ms=max(times),
        formula=f"p ≥ {ALPHA:g}",
        row=profile.rule,
        examined=len(times),
        wrong=int(uneven),
        more={"first_choices": dict(counts), "p_value": p},
    )
