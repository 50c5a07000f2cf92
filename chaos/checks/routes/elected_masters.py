"""Of one_master: a name that elects its master has one again in time, and clients' routes have that one.

leader lost        ── election ──┤ each NameServer's table has a living broker as id 0
                                 ├── P + A + J ──┤ so have the routes of each client
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...oracle.intervals import until_next
from ...oracle.link import hung_brokers
from ...oracle.reach import failed_calls, undisturbed
from ...oracle.roles import Settled, at_work, members_of, settled
from ...oracle.windows import client_leave_window
from ...oracle.world import World
from ...verdict import Finding
from ..findings import finding
from ..record.control import Control, Row, decoded
from ..record.known_brokers import MASTER_ID, words
from ..record.settling import Due, Settling, Wrong
from ..tolerance import tolerance

NO_MASTER, NOT_TOLD = "without a master", "a client without its master"
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
    found: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for row in control.rows(event):
        found[row.node, row.incarnation, row.topic or ""].append(row)
    return found


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
    lag_ms = control.lateness.largest(world, nodes, one.at_ms - world.timers.R_ms, one.from_ms)
    seen = Settling(tolerance(world.timers, lag_ms, one.window.timers))
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
