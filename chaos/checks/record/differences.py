"""Where a NameServer's routes are not what its transport read (`RoutesRead` of oracle/name_server.py), name by name.

read     registers 4 queues ─── wiped ──────────────── registers 8 queues
due      perm 6                 perm 4                 8 queues, perm 6
`route`  perm 6                 ├──── still perm 6 ────┤ 8 queues, perm 6      one difference
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ....remoting.codes import MASTER_ID, PERM_WRITE
from ...oracle.intervals import Stretch, merged, without
from ...oracle.name_server import RoutesRead
from ...oracle.promises import Segment, told_by_hand
from ...oracle.recorded import Life
from ...oracle.roles import members_of
from ...oracle.world import World
from .control import Control, decoded, once
from .known_brokers import due_words, is_misplaced, known_brokers, words
from .received import received
from .registered_rows import registered_rows, row_of
from .route_tables import Process, RouteStretch, RouteTables, route_tables
from .settling import Wrong

GONE, MISSING = "must be gone", "must be there"
ROW, ADDRESS, QUEUES = "not as registered", "registered by nobody", "queues without an address"
TWICE, ACTING, NO_ACTING = "under two ids", "another slave acts", "no slave acts"
WRITABLE = "writable without a master"
UNCHANGED, OF_SLAVE, REFUSED = "queues of an old version", "queues of a slave", "address of an old version"
OF_RULES = (WRITABLE, UNCHANGED, OF_SLAVE, REFUSED)
"""Which rule of RouteInfoManager it broke: none of it is an act by hand."""


class Difference(NamedTuple):
    """In [from_ms, to_ms) the topic's route showed the broker name so."""

    topic: str
    name: str
    kind: str
    from_ms: float
    to_ms: float
    came: str
    due: str
    because: str = ""

    @property
    def length_ms(self) -> float:
        return self.to_ms - self.from_ms


@once
def differences(control: Control, world: World, life: Life) -> Sequence[Difference] | None:
    """The longest of each topic, broker name and beginning; None if nobody recorded what the process read."""
    routes = received(control, world).routes(life)
    return None if routes is None else [*_differences(control, world, life, routes)]


def _differences(control: Control, world: World, life: Life, routes: RoutesRead) -> Iterator[Difference]:
    of_process = route_tables(control, world).stretches.get(life.process, {})
    end_ms, late_ms = min(life.end_ms, world.end_ms), world.timers_of(life.node).delivery_ms
    for topic in {*of_process, *routes.shown} - routes.unknown:
        open_: dict[tuple[str, str], Difference] = {}
        for from_ms, to_ms, value, due in _both(of_process.get(topic, ()), routes.shown.get(topic, ()), end_ms):
            shown, now = decoded(value), {}
            for name in {*_names(shown), *_names(due)}:
                if kind := _kind(name, shown or {}, due or {}, routes):
                    before = open_.get((name, kind))
                    since_ms = from_ms if before is None else before.from_ms
                    read = Stretch(since_ms - late_ms, since_ms + late_ms)
                    rule, because = _of_rule(topic, name, shown or {}, due or {}, routes, read) or (kind, "")
                    said = words(shown), words(due), because
                    now[name, kind] = Difference(topic, name, rule, since_ms, to_ms, *said)
            yield from (one for key, one in open_.items() if key not in now)
            open_ = now
        yield from open_.values()


def _both(
    held: Sequence[RouteStretch], due: Sequence[tuple[float, Any]], end_ms: float
) -> Iterator[tuple[float, float, Any, Any]]:
    """The stretches in which neither changed: what was shown, and what had to be, as they are given."""
    cuts = sorted({*(one.s for one in held), *(at_ms for at_ms, _ in due if at_ms < end_ms), end_ms})
    shown_at, due_at = 0, -1
    for from_ms, to_ms in pairwise(cuts):
        while shown_at < len(held) and held[shown_at].e <= from_ms:
            shown_at += 1
        while due_at + 1 < len(due) and due[due_at + 1][0] <= from_ms:
            due_at += 1
        is_held = shown_at < len(held) and held[shown_at].s <= from_ms
        shown = held[shown_at].value if is_held else None
        yield from_ms, to_ms, shown, due[due_at][1] if due_at >= 0 else None


def _names(route: Mapping[str, Any] | None) -> set[str]:
    return {*(route or {}).get("brokers", ()), *(route or {}).get("queues", ())}


def _of_broker(route: Mapping[str, Any], name: str) -> tuple[Mapping[str, str], Sequence[int] | None]:
    """The broker name's ids with their addresses, and its row."""
    return (route.get("brokers") or {}).get(name, {}), (route.get("queues") or {}).get(name)


def _of_rule(
    topic: str, name: str, shown: Mapping[str, Any], due: Mapping[str, Any], routes: RoutesRead, read: Stretch
) -> tuple[str, str] | None:
    """Which rule of RouteInfoManager was broken, and what that means, if the route tells; what was `read` in that time
    may have made it so.

    REFUSED     registerBroker: an address does not replace a living one of a greater stateVersion
    UNCHANGED   isBrokerTopicConfigChanged: a registration of an unchanged dataVersion writes no rows
    WRITABLE    cleanTopicByUnRegisterRequests, registerBroker: a group without its master is not writable
    OF_SLAVE    registerBroker: only a master, or a slave that may act for it, writes rows
    """
    (ids, row), (due_ids, due_row) = _of_broker(shown, name), _of_broker(due, name)
    for id_, address in ids.items():
        if due_ids.get(id_, address) != address and routes.is_refused(name, address, read.end_ms):
            return REFUSED, f"{due_ids[id_]} had to stay"
    if not ids or row is None:
        return None
    is_back = due_row is None and (topic, name) in routes.deleted
    if is_back or (due_row is not None and [*row] != [*due_row]):
        for at_ms, topics, keep in routes.unchanged.get(name, ()):
            sent = topics.get(topic)
            if read.start_ms <= at_ms <= read.end_ms and sent and _permitted(sent, keep) == [*row]:
                is_of_perm = due_row is not None and [*row[:2]] == [*due_row[:2]]
                return UNCHANGED, f"permission {row[2]} instead of {due_row[2]}" if due_row and is_of_perm else ""
        masters = ((name, str(MASTER_ID), of.get(str(MASTER_ID), "")) for of in (ids, due_ids))
        may_be_writable = name not in routes.acting or routes.registered.intersection(masters)
        if due_row is not None and not may_be_writable and [*row] == _permitted(due_row, -1, PERM_WRITE):
            return WRITABLE, ""
    by_slave_ms, by_writer_ms = (routes.offered.get((topic, name, may), math.inf) for may in (False, True))
    return (OF_SLAVE, "") if by_slave_ms <= read.end_ms < by_writer_ms else None


def _permitted(row: Sequence[int], keep: int, put: int = 0) -> list[int]:
    read, write, perm, flag = row
    return [read, write, perm & keep | put, flag]


def _kind(name: str, shown: Mapping[str, Any], due: Mapping[str, Any], routes: RoutesRead) -> str:
    (ids, row), (due_ids, due_row) = _of_broker(shown, name), _of_broker(due, name)
    for id_, address in ids.items():
        if due_ids.get(id_) != address and (name, id_, address) not in routes.registered:
            is_acting = routes.shows_acting and id_ == str(MASTER_ID) and address in due_ids.values()
            if is_acting and id_ in due_ids:
                return ACTING
            return MISSING if is_acting else ADDRESS  # a slave acts for the master that is missing
    if not ids and row is not None:
        return QUEUES
    if not due_ids:
        return GONE if ids else ""
    if not ids:
        return MISSING
    if len({*ids.values()}) < len(ids):
        return TWICE
    if ids != due_ids:
        if {*ids.values()} == {*due_ids.values()} and routes.must_show_acting:
            return NO_ACTING
        return GONE if len(ids) > len(due_ids) else MISSING
    return "" if row is not None and [*row] == [*(due_row or ())] else ROW


_OF_BROKER = ("register", "unregister", "wipe_write_perm", "add_write_perm")


def by_hand(world: World, life: Life, one: Difference) -> str:
    """The act by hand that the difference is of; "" for none: of strangers whatever comes after they were registered,
    of brokers of the run what shows as soon as it was done."""
    if one.kind in OF_RULES:
        return ""
    late_ms = world.timers_of(life.node).delivery_ms
    found = ""
    for act in world.acts:
        is_of = act.broker == one.name if act.f in _OF_BROKER else act.f == "delete_topic" and act.topic == one.topic
        until_ms = act.ended_ms + late_ms if one.name in known_brokers(world) else math.inf
        if is_of and act.node == life.node and act.began_ms - late_ms <= one.from_ms <= until_ms:
            found = act.act_id
    return found


# -- where nobody recorded what was read


def unlike_what_was_sent(control: Control, world: World, life: Life) -> Iterator[Difference]:
    """One of each route, broker and time: names, addresses, and rows."""
    known, rows, acts = known_brokers(world), registered_rows(control, world), told_by_hand(world)
    if any(act.node == life.node and act.may_be_done for act in world.acts):
        return
    for topic, stretches in route_tables(control, world).stretches.get(life.process, {}).items():
        for st in stretches:
            route = decoded(st.value) or {}
            brokers, queues = route.get("brokers") or {}, route.get("queues") or {}
            for name in {**brokers, **queues}:
                if name in acts.named or (name not in known and world.run.get("scenario") == "up"):
                    continue
                ids = brokers.get(name, {})
                kind, due, gaps = "", "", [Stretch(st.s, st.e)]
                if name not in known:
                    kind, due = "no broker has this name", "no such broker"
                elif not ids:
                    kind, due = QUEUES, f"no queues of {name}"
                elif is_misplaced(world, name, ids):
                    kind, due = ADDRESS, due_words(name, known[name])
                elif rows.knows(name) and len(members_of(world)[name].nodes) == 1:
                    row, held = row_of(queues.get(name)), rows.held(life.node, topic, name)
                    gaps = without(st.s, st.e, (Stretch(one.from_ms, one.to_ms) for one in held if one.row == row))
                    kind, due = ROW, f"{name} as it registered"
                if kind:
                    yield from (Difference(topic, name, kind, *gap, words(route), due) for gap in gaps)


# -- of two NameServers


class Apart(NamedTuple):
    other: Process
    last_ms: float
    """When the last piece of the stretch began."""


def apart(
    tables: RouteTables, world: World, topic: str, segment: Segment, unshared: Mapping[str, Sequence[Stretch]]
) -> Iterator[Wrong]:
    """Where another member's route was not that of the first, without the broker names that are `unshared` then.
    Neighbouring pieces are one stretch: what matters is how long the two differed, not how often either changed."""
    by_hand, (one, *others) = told_by_hand(world), segment.members
    for other in others:
        changed = [tables.perms_set.get(each, {}) for each in (one, other)]
        changed += [by_hand.changed[node] for node, _ in (one, other)]
        pieces: list[Stretch] = []
        due = [(st.s, st.value) for st in tables.of(other, topic)]
        for from_ms, to_ms, its, others_ in _both(tables.of(one, topic), due, segment.to_ms):
            s, e = max(from_ms, segment.start_ms), min(to_ms, segment.to_ms)
            if s >= e or its == others_ or any(by_hand.is_deleted(node, topic, s, e) for node, _ in (one, other)):
                continue
            names = {*segment.slaves_only, *(name for of in changed for name, at_ms in of.items() if at_ms <= s)}
            first, second = decoded(its) or {}, decoded(others_) or {}
            for name in sorted({*_names(first), *_names(second)} - names):
                if _of_broker(first, name) != _of_broker(second, name):
                    pieces += without(s, e, unshared.get(name, ()))
        for start_ms, until_ms in merged(pieces):
            yield Wrong(start_ms, until_ms, Apart(other, max(at_ms for at_ms, _ in pieces if at_ms < until_ms)))


def route_at(stretches: Iterable[RouteStretch], at_ms: float) -> object:
    return decoded(next((st.value for st in stretches if st.s <= at_ms < st.e), None))


NOT_JUDGED = "which of the two is wrong is not judged"


def the_wrong_one(
    control: Control, world: World, topic: str, two: Sequence[str], of: Iterable[str], at_ms: float
) -> str:
    """Which of `two` NameServers with different routes of the topic is wrong: the only one with another table than its
    transport read; else the one whose route fewer of all NameServers `of` have; "" where neither tells."""
    lives = {name: life for name in of if (life := world.life_at(name, at_ms)) is not None}
    untrue = [
        name
        for name in two
        if name in lives
        for one in differences(control, world, lives[name]) or ()
        if one.topic == topic and one.from_ms <= at_ms < one.to_ms
    ]
    if len({*untrue}) == 1:
        return untrue[0]
    tables = route_tables(control, world)
    routes = {name: route_at(tables.of(life.process, topic), at_ms) for name, life in lives.items()}
    (fewest, name), (most, _) = sorted(([*routes.values()].count(routes.get(name)), name) for name in two)
    return name if fewest < most else ""
