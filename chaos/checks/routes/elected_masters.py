"""Of one_master: a name whose master changes. One that elects it has one again in time, and clients' routes have that
one; of a slave that acts as master nobody may write to what the name has. Of the latter where nobody recorded what
NameServers read: else it is routes_as_registered's.

leader lost        ── election ──┤ each NameServer's table has a living broker as id 0
                                 ├── P + A + J ──┤ so have the routes of each client
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ....remoting.codes import PERM_WRITE
from ...oracle.intervals import Stretch, grouped, longest, merged, until_next, without
from ...oracle.link import hung_brokers
from ...oracle.reach import failed_calls, undisturbed
from ...oracle.roles import NO_ID, Members, Settled, at_work, election, members_of, settled, unsettled
from ...oracle.windows import Window, client_leave_window
from ...oracle.world import World
from ...topology import is_slave
from ...verdict import Finding
from ..findings import NEVER, at_no_time, finding, lasting
from ..record.control import Control, Row, decoded
from ..record.known_brokers import MASTER_ID, words
from ..record.received import received
from ..record.route_tables import route_tables
from ..record.settling import Due, Settling, Wrong

NO_MASTER, NOT_TOLD = "without a master", "a client without its master"
_ROW = "one master"
_WAITS = "id -1 for too long"
_Routes = Mapping[tuple[str, int, str], Sequence[Row]]
"""Node, incarnation and topic to the routes that it had, in order of time."""


def of_elections(control: Control, world: World) -> Iterator[Finding]:
    """For each name that elects its master, each NameServer and client: what was the longest without one."""
    tables, taken = _routes(control, "route"), _routes(control, "route_changed")
    for name, members in members_of(world).items():
        if not members.elects:
            continue
        of_all: list[Sequence[Settled]] = []
        for server in world.of_kind("name_server"):
            due = settled(world, name, server.name)
            of_all.append(due)
            for one in due:
                yield from _finding(control, world, NO_MASTER, server.name, name, one, tables)
        for client in world.of_kind("producer", "consumer"):
            for one in of_all[0] if of_all else ():
                others = [next((o for o in due if o.at_ms == one.at_ms), None) for due in of_all]
                if all(others) and (told := _told(world, client.name, one)) is not None:
                    yield from _finding(control, world, NOT_TOLD, client.name, name, told, taken)


def _told(world: World, client: str, one: Settled) -> Settled | None:
    """When the client's own routes must follow; None where that is not while nothing else happens."""
    timers = world.timers_of(client)
    hung = hung_brokers(world, client, one.at_ms, one.from_ms + timers.P_ms + timers.A_ms)
    failed = failed_calls(world, (client,), one.at_ms - timers.P_ms, one.from_ms + timers.P_ms + timers.A_ms)
    follows = client_leave_window(timers, one.window, hung_brokers=hung, failed_calls=failed)
    window = follows.plus(timers.A_ms, "A")
    from_ms = one.at_ms + window.latest_ms
    if from_ms >= one.to_ms or not undisturbed(world, client, one.at_ms - timers.P_ms, one.to_ms):
        return None
    return one._replace(from_ms=from_ms, window=window)


def _routes(control: Control, event: str) -> _Routes:
    return grouped(((*row.process, row.topic), row) for row in control.rows(event))


def _finding(
    control: Control, world: World, kind: str, node: str, name: str, one: Settled, routes: _Routes
) -> Iterator[Finding]:
    """Over all topics that name the broker name there: until when one had no master that is at work."""
    members, wrong = members_of(world)[name], dict[str, list[Wrong]]()
    for (who, _, topic), rows in routes.items():
        for row, to_ms in until_next(rows, world.end_ms) if who == node else ():
            s, e = max(row.time_ms, one.at_ms), min(to_ms, one.to_ms)
            route = decoded(row.value) if s < e else None
            ids = ((route or {}).get("brokers") or {}).get(name) if isinstance(route, Mapping) else None
            if ids is not None:
                of, owner = wrong.setdefault(topic, []), members.owner(ids.get(MASTER_ID, ""))
                of += [Wrong(s, e, words(route))] if owner is None or not at_work(world, owner, one.from_ms) else []
    nodes = [each for each in (node, *members.nodes) if world.lives_of(each)]
    span = one.at_ms - world.timers.R_ms, one.from_ms
    seen = Settling(control.lateness.tolerance(world, nodes, *span, one.window.timers))
    for topic, stretches in wrong.items():
        seen.add(Due(topic, one.from_ms, one.to_ms, one.at_ms, one.window), stretches)
    if not seen.due:
        return
    out, measured = seen.out(), seen.measured(one.window)
    yield finding(
        (node, name, seen.due.topic if out else ""),
        kind,
        (one.from_ms, one.to_ms),
        one.window,
        out=out,
        tolerance=seen.allowed,
        examined=seen.examined,
        after=one.after,
        more={"came": seen.worst.about} if seen.worst and out else {},
        **measured | {"measured_ms": measured["measured_ms"] or 0.0},
    )


class _Shown(NamedTuple):
    """What a table showed of a name, and when."""

    stretch: Stretch
    topic: str
    came: str


def of_tables(control: Control, world: World) -> Iterator[Finding]:
    """Of names whose master changes: for each NameServer one finding of what it showed wrongly, else of all routes."""
    members = {name: of for name, of in members_of(world).items() if of.elects or of.has_acting_master}
    permitted = {act.broker for act in world.acts if act.may_be_done}
    shown: dict[tuple[str, str, str], list[_Shown]] = defaultdict(list)
    for (node, incarnation), topics in route_tables(control, world).stretches.items():
        life = next(life for life in world.lives_of(node) if life.incarnation == incarnation)
        if received(control, world).routes(life) is not None:
            continue
        for topic, stretches in topics.items():
            for st in stretches:
                route = decoded(st.value) or {}
                for name in (route.get("brokers") or {}).keys() & members.keys() - permitted:
                    kind = _kind(members[name], route["brokers"][name], (route.get("queues") or {}).get(name))
                    stretch = Stretch(st.s, max(st.e, st.s + 1.0))
                    shown[node, name, kind].append(_Shown(stretch, topic, words(route)))
    for (node, name, kind), seen in sorted(shown.items()):
        span = min(one.stretch.start_ms for one in seen), max(one.stretch.end_ms for one in seen)
        if not kind:
            yield finding((node, name), "as it is", span, at_no_time(_ROW), examined=len(seen))
            continue
        # Of all topics together: for how long the node showed the broker so, at a stretch.
        window, lasts = Window(0, 0, NEVER, _ROW), merged(one.stretch for one in seen)
        if kind == _WAITS:
            window, away = election(world.timers, members[name]), unsettled(world, name)
            lasts = [left for one in lasts for left in without(*one, away)]
        worst = longest(lasts)
        since_ms = worst.start_ms - world.timers.R_ms
        measured = lasting(
            worst, window, control.lateness.tolerance(world, (node,), since_ms, worst.end_ms, window.timers)
        )
        measured |= {"more": {"came": seen[0].came}} | ({} if kind == _WAITS else {"wrong": 1})
        yield finding((node, name, seen[0].topic), kind, span, window, examined=len(seen), **measured)


def _kind(members: Members, ids: Mapping[str, str], row: Sequence[int] | None) -> str:
    if str(NO_ID) in ids and members.elects:
        return _WAITS
    is_led = not is_slave(members.owner(ids.get(MASTER_ID, "")) or "broker/1")
    if members.has_acting_master and not members.elects and not is_led and row is not None and row[2] & PERM_WRITE:
        return "writable without a master"
    return ""
