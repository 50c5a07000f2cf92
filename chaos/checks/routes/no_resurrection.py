"""A broker that was dropped while it is down stays dropped: in NameServers' tables, and in clients' routes.

    table    lost ──── dropped ─┬──── named again: INVALID ────┬─ back, or a link lets out what it held
    client   lost ─── its last NameServer's window, P ─┬───────┴── named again: INVALID ──┬─ back

Nothing but a registration may put a broker into a table, and a dead or cut-off broker sends none: what comes back is a
stale entry, a replayed one, or an old answer. A route that a client was late to give up is dead_brokers_avoided's and
routes_are_true's business; here it had been given up. Under faults that let registrations through now and then, a
broker may come and go, and nothing is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...oracle.intervals import until_next
from ...oracle.lost_brokers import Absence, absences
from ...oracle.roles import elected_ids
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import at_no_time, finding, verdict_of
from ..record.control import Control
from ..record.known_brokers import has_broker, known_brokers
from ..record.lateness import LagWindow
from ..record.received import received
from ..record.route_tables import route_tables
from ..tolerance import Tolerance, tolerance

NAME = "no_resurrection"
_ROW = "a broker that is down sends no registration"
_MOMENT_MS = 1.0


class _Stretch(NamedTuple):
    """Whether a route named the broker in [s, e)."""

    present: bool
    s: float
    e: float


class _Return(NamedTuple):
    """The worst return of one topic that had dropped the broker."""

    reaches_ms: float
    """How far from the nearer end of the time in which it is down."""
    topic: str
    stretch: _Stretch
    dropped_ms: float


class _Seen(NamedTuple):
    """One NameServer or client and one broker that was down to it."""

    who: str
    broker: str
    after: str
    from_ms: float
    """Since when it is down, and until when."""
    to_ms: float
    lag_from_ms: tuple[tuple[str, float], ...]
    """Whose lateness counts, from when."""
    topics: int
    """That dropped it."""
    returns: tuple[_Return, ...]
    """Of topics that named it again; the worst first."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: (NameServer or client, topic) that dropped a broker while it was down. Violations: its returns."""
    lost = absences(world)
    nothing = "no broker was dropped while it was down, so none could come back"
    in_clients = sorted(_in_clients(control, world, lost), key=lambda seen: (seen.who, seen.from_ms))
    in_tables = [*_in_tables(control, world)]
    seen = [*in_clients, *in_tables]
    windows = [
        LagWindow(number, node, from_ms - world.timers.R_ms, from_ms + world.timers.P_ms)
        for number, each in enumerate(seen)
        for node, from_ms in each.lag_from_ms
    ]
    lags = control.lateness.measured(world, windows)
    findings = [_finding(each, tolerance(world.timers, lags.get(number), 1)) for number, each in enumerate(seen)]
    measured = {
        "dropped_by_name_servers": sum(each.topics for each in in_tables),
        "dropped_by_clients": sum(each.topics for each in in_clients),
        "returns": sum(finding.wrong + finding.late for finding in findings),
    }
    noun = "brokers came back into a route while they were down"
    return verdict_of(NAME, findings, measured=measured, nothing=nothing, noun=noun)


CHECK = Check(
    name=NAME,
    says="no dead broker came back into a NameServer's table or a client's route",
    group=Group.ROUTES,
    section=Section.ROUTES,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.TABLES, Needs.BROKERS),
    judge=judge,
    clients=("producer", "consumer"),
    tells=lambda measured: f"{measured.get('returns', 0)} dead brokers came back",
)


def _in_tables(control: Control, world: World) -> Iterator[_Seen]:
    """What each NameServer's table did with a broker from which it had read nothing since that left, or fell silent."""
    tables = route_tables(control, world)
    for life, broker, machine in received(control, world).every():
        for gone in machine.must_not():
            if (since_ms := gone.last_ms) is None:
                continue  # it was never there: registrations_are_kept
            of_topic = {
                topic: [
                    _Stretch(*stretch)
                    for stretch in tables.presence((life.node, life.incarnation), topic, broker, anywhere=True)
                    if stretch.s < gone.end_ms and stretch.e > since_ms
                ]
                for topic in tables.topics
            }
            topics, returns = _returns(of_topic, since_ms, gone.start_ms, gone.end_ms)
            if topics:
                whose = (life.node,) if machine.is_witnessed else (life.node, broker)
                late_by = tuple((node, gone.start_ms) for node in whose)
                after = received(control, world).after(life, broker, gone.start_ms)
                yield _Seen(life.node, broker, after, gone.start_ms, gone.end_ms, late_by, topics, returns)


def _in_clients(control: Control, world: World, lost: Iterable[Absence]) -> Iterator[_Seen]:
    """The same of clients' routes; a return counts from the time when every NameServer must have dropped the broker."""
    known = known_brokers(world) if world.has_slaves else {}  # another of its name may have its place
    routes: dict[str, dict[str, list[tuple[float, Mapping[str, Any]]]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(control.rows("route_changed"), key=lambda row: (row.time_ms, row.seq)):
        if row.role in ("producer", "consumer"):
            routes[row.node][row.topic or ""].append((row.time_ms, row.decoded or {}))
    for a in lost:
        of_topic = {}
        for topic, changes in routes[a.client].items():
            taken: list[tuple[float, bool]] = []
            for at_ms, route in changes:
                ids = elected_ids(world, a.broker)
                named = has_broker(route, a.broker, known, ids)
                if at_ms < a.end_ms and (not taken or taken[-1][1] != named):
                    taken.append((at_ms, named))
            if not taken:
                continue
            # A route that never named the broker is no drop, and one that it lost before is another absence's.
            of_topic[topic] = [
                _Stretch(present, at_ms, min(e, a.end_ms))
                for number, ((at_ms, present), e) in enumerate(until_next(taken, a.end_ms))
                if number and at_ms >= a.start_ms
            ]
        topics, returns = _returns(of_topic, a.start_ms - _MOMENT_MS, a.route_from_ms, a.end_ms)
        if topics:
            late_by = ((a.client, a.route_from_ms), (a.broker, a.start_ms))
            after = f"{a.fault_id} start" if a.fault_id else ""
            yield _Seen(a.client, a.broker, after, a.start_ms, a.end_ms, late_by, topics, returns)


def _returns(
    of_topic: dict[str, list[_Stretch]], dropped_from_ms: float, from_ms: float, to_ms: float
) -> tuple[int, tuple[_Return, ...]]:
    """How many topics dropped the broker, from `dropped_from_ms` on, and of those that named it again after `from_ms`
    the worst return each."""
    topics, found = 0, []
    for topic, stretches in of_topic.items():
        dropped_ms = min((st.s for st in stretches if not st.present and st.s >= dropped_from_ms), default=None)
        if dropped_ms is None:
            continue
        topics += 1
        since_ms = max(from_ms, dropped_ms)  # a topic's first row names who is in the table
        again = [(min(st.s - from_ms, to_ms - st.s), st) for st in stretches if st.present and st.s > since_ms]
        if again:
            reaches_ms, worst = max(again, key=lambda one: one[0])
            found.append(_Return(reaches_ms, topic, worst, dropped_ms))
    return topics, tuple(sorted(found, reverse=True))


def _finding(seen: _Seen, tolerance_: Tolerance) -> Finding:
    wrong = [r for r in seen.returns if r.reaches_ms > tolerance_.unknown_up_to_ms]
    late = [r for r in seen.returns if r not in wrong and r.reaches_ms > tolerance_.valid_up_to_ms]
    worst = next(iter(wrong or late), None)
    return finding(
        (seen.who, seen.broker, worst.topic if worst else ""),
        "must not come back",
        (seen.from_ms, seen.to_ms),
        at_no_time(_ROW),
        out=(worst.stretch.s, min(worst.stretch.e, seen.to_ms)) if worst else None,
        tolerance=tolerance_,
        examined=seen.topics,
        wrong=len(wrong),
        late=len(late),
        after=seen.after,
        times={"dropped": worst.dropped_ms} if worst else {},
    )
