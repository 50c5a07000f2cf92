"""Judges a scenario's `promises` beyond RocketMQ's rules, by control rows.

    tables_agree_within_s   two NameServers on lists differ in a topic for no longer: whoever can reach whom, whatever
                            somebody did at which of them. This is what a comparison of tables from outside sees
    masters_stay            the address of a name's id 0 does not change, but by a role change
    wipes_last              who may not be written to any more may not, until somebody adds the permission again
    polls_within_s          a client begins no route poll later than that after the one before

Each check that holds one of them adds these findings to its own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise

from ....remoting.codes import PERM_WRITE
from ...oracle.intervals import Stretch, grouped, longest, merged, without
from ...oracle.link import certainly_off
from ...oracle.lost_brokers import PROMISED
from ...oracle.roles import members_of
from ...oracle.slaves import made_masters
from ...oracle.time_outs import POLL
from ...oracle.windows import Window
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, counted, finding, lasting
from ..record.control import Control, decoded
from ..record.differences import NOT_JUDGED, route_at, the_wrong_one
from ..record.known_brokers import MASTER_ID
from ..record.route_tables import RouteStretch, RouteTables
from ..tolerance import tolerance

AGREE, STAY, LAST, POLLS = "tables_agree_within_s", "masters_stay", "wipes_last", "polls_within_s"


def tables_agree(control: Control, tables: RouteTables, world: World) -> Iterator[Finding]:
    """One finding for each two NameServers that are on lists: the topic of which their tables differed longest, who of
    both is wrong. Nothing where nothing is promised."""
    promised_ms = world.promised_ms(AGREE)
    if promised_ms is None:
        return
    window = Window(0, promised_ms, AGREE, PROMISED)
    askers = [node.name for node in world.of_kind("broker", "slave", "producer", "consumer")]
    listed = {name.name for asker in askers for name in world.listed(asker)}
    for one, other in combinations(sorted(listed), 2):
        # Nobody asks a NameServer that is on no list, or not on any yet.
        off = [stretch for name in (one, other) for stretch in _off_all(world, askers, name)]
        apart = {
            topic: merged(left for piece in _unequal(tables, topic, one, other) for left in without(*piece, off))
            for topic in tables.topics
        }
        lengths = {topic: longest(stretches) for topic, stretches in apart.items()}
        topic = max(lengths, key=lambda name: (_length_ms(lengths[name]), name), default="")
        s, e = worst = lengths.get(topic, Stretch(0.0, 0.0))
        wrong = [name for name, stretch in lengths.items() if _length_ms(stretch) > promised_ms]
        allowed = control.lateness.tolerance(world, (one, other), s, s + promised_ms, 1)
        measured = lasting(worst, window, allowed)
        counts = counted(measured["over_ms"], allowed)
        more: dict[str, object] = {}
        who, whom = other, one
        if measured["over_ms"]:
            at_ms = (s + e) / 2
            wrong_one = the_wrong_one(control, world, topic, (one, other), listed, at_ms)
            held = [route_at(_stretches(tables, topic, of), at_ms) for of in (one, other)]
            more = {"name_servers": [one, other], "routes": held}
            more |= {} if wrong_one else {"because": NOT_JUDGED}
            who, whom = (one, other) if wrong_one == one else (other, one)
        yield finding(
            (who, whom, topic if e else ""),
            "promised to agree",
            (s, e),
            window,
            examined=len(tables.topics),
            more=more,
            **measured,
            **{name: count * len(wrong) for name, count in counts.items()},
        )


def _length_ms(one: Stretch) -> float:
    return one.end_ms - one.start_ms


def _off_all(world: World, askers: Sequence[str], name_server: str) -> list[Stretch]:
    """When the NameServer is on nobody's list."""
    on = [
        stretch
        for asker in askers
        if world.lists(asker, name_server)
        for stretch in without(0.0, world.end_ms, certainly_off(world, asker, name_server))
    ]
    return without(0.0, world.end_ms, on)


def _unequal(tables: RouteTables, topic: str, one: str, other: str) -> Iterator[Stretch]:
    """When processes of both held different routes of the topic."""
    for a in _stretches(tables, topic, one):
        for b in _stretches(tables, topic, other):
            s, e = max(a.s, b.s, 0.0), min(a.e, b.e)
            if s < e and a.value != b.value:
                yield Stretch(s, e)


def _stretches(tables: RouteTables, topic: str, name_server: str) -> list[RouteStretch]:
    processes = sorted(process for process in tables.stretches if process[0] == name_server)
    return [stretch for process in processes for stretch in tables.stretches[process].get(topic, ())]


# -- a name's master


def _is_one(owner: Callable[[str], str | None], before: str, after: str) -> bool:
    return before == after or (owner(before) is not None and owner(before) == owner(after))


def masters_stay(control: Control, world: World) -> Iterator[Finding]:
    """One finding a NameServer and broker name: from when to when its id 0 went from one address to another."""
    if not world.promised(STAY):
        return
    held: dict[tuple[str, int, str], list[tuple[float, str]]] = defaultdict(list)
    members = members_of(world)
    for row in control.rows("route"):
        for name, ids in (row.said.get("brokers") or {}).items():
            changes = members[name].elects or members[name].has_acting_master if name in members else False
            if MASTER_ID in ids and row.time_ms < world.end_ms and not changes and name not in made_masters(world):
                held[row.node, row.incarnation, name].append((row.time_ms, ids[MASTER_ID]))
    for (node, _, name), addresses in sorted(held.items()):
        owner = members[name].owner if name in members else str
        moved = [at_ms for (_, before), (at_ms, after) in pairwise(addresses) if not _is_one(owner, before, after)]
        length_ms = moved[-1] - moved[0] if moved else 0.0
        yield finding(
            (node, name),
            "promised to stay",
            (moved[0] if moved else addresses[0][0], moved[-1] if moved else addresses[-1][0]),
            Rule(PROMISED, STAY, 0.0),
            out=(moved[0], moved[-1]) if moved else None,
            measured_ms=length_ms if moved else None,
            over_ms=max(length_ms, 1.0) if moved else 0.0,
            examined=len(addresses),
            wrong=len(moved),
            more={"masters": ", ".join(sorted({address for _, address in addresses}))} if moved else {},
        )


# -- a permission that was taken away


def wipes_last(tables: RouteTables, world: World) -> Iterator[Finding]:
    """One finding a wipe that was done: for how long the broker could be written to all the same."""
    if not world.promised(LAST):
        return
    for act in world.acts:
        if act.f != "wipe_write_perm" or not act.is_done:
            continue
        added = (a.began_ms for a in world.acts if (a.f, a.node, a.broker) == ("add_write_perm", act.node, act.broker))
        until_ms = min((at_ms for at_ms in added if at_ms > act.ended_ms), default=world.end_ms)
        wrong = merged(
            Stretch(max(st.s, act.ended_ms), min(st.e, until_ms))
            for topic in tables.topics
            for st in _stretches(tables, topic, act.node)
            if _is_writable(st.value, act.broker)
        )
        measured = lasting(longest(wrong), Window(0, 0, LAST, PROMISED), tolerance(world.timers, 0.0, 1))
        yield finding(
            (act.node, act.broker),
            "promised to last",
            (act.ended_ms, until_ms),
            Rule(PROMISED, LAST, 0.0),
            **measured | {"measured_ms": measured["over_ms"] or None},
            after=f"{act.act_id} start",
        )


def _is_writable(value: str | None, broker: str) -> bool:
    row = ((decoded(value) or {}).get("queues") or {}).get(broker)
    return row is not None and bool(row[2] & PERM_WRITE)


# -- route polls


def polls_within(control: Control, world: World) -> Iterator[Finding]:
    """One finding a client's process: the longest time between the beginnings of two of its route polls."""
    promised_ms = world.promised_ms(POLLS)
    if promised_ms is None:
        return
    polls = (row for row in control.rows("scheduled_task") if row.f == POLL and row.time_ms < world.end_ms)
    for (node, incarnation), times in sorted(grouped((row.process, row.began_ms) for row in polls).items()):
        ends = sorted([*times, min(world.ended_ms(node, incarnation), world.end_ms)])
        s, e = max(pairwise(ends), key=lambda gap: gap[1] - gap[0])
        allowed = control.lateness.tolerance(world, (node,), s, e, 1)
        over_ms = max(e - s - promised_ms, 0.0)
        yield finding(
            (node, POLL),
            "promised to poll",
            (s, e),
            Rule(PROMISED, POLLS, promised_ms),
            out=(s + promised_ms, e) if over_ms else None,
            tolerance=allowed,
            measured_ms=e - s,
            over_ms=over_ms,
            examined=len(times),
        )
