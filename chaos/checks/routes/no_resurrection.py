"""A broker that was dropped while it is down stays dropped in NameServers' tables.

    table    lost ──── dropped ─┬──── named again: INVALID ────┬─ back, or a link lets out what it held

Nothing but a registration may put a broker into a table, and a dead or cut-off broker sends none: what comes back is a
stale entry, or a replayed one. When nothing was read of it, oracle/name_server.py says. A client that goes back to a
dead broker has not the newest answer: client_routes_are_true.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ...oracle.name_server import Silence
from ...oracle.recorded import Life
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import at_no_time, finding, verdict_of
from ..record.control import Control
from ..record.received import Machine, received
from ..record.route_tables import Presence, route_tables

_ROW = "only a registration brings a dropped broker back"


class _Return(NamedTuple):
    """The worst return of one topic that had dropped the broker."""

    reaches_ms: float
    """How far from the nearer end of the time in which it is down."""
    topic: str
    stretch: Presence
    dropped_ms: float


@check(
    says="no NameServer that had dropped a broker listed the broker again without a new registration",
    group=Group.ROUTES,
    section=Section.ROUTES,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.TABLES, Needs.BROKERS),
    tells=lambda measured: f"{measured.get('returns', 0)} dead brokers came back",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: (NameServer, topic) that dropped a broker while it was down. Violations: its returns."""
    findings = [
        found
        for life, broker, machine in received(control, world).every()
        for gone in machine.must_not()
        if gone.last_ms is not None  # of one that was never there: registrations_are_kept
        for found in _findings(control, world, life, broker, machine, gone, gone.last_ms)
    ]
    measured = {
        "dropped_by_name_servers": sum(finding.examined for finding in findings),
        "returns": sum(finding.wrong + finding.late for finding in findings),
    }
    nothing = "no NameServer dropped a dead or cut-off broker (as in broker-crash), so none could come back"
    noun = "brokers came back into a table without a registration"
    return verdict_of(findings, measured=measured, nothing=nothing, noun=noun)


def _findings(
    control: Control, world: World, life: Life, broker: str, machine: Machine, gone: Silence, since_ms: float
) -> Iterator[Finding]:
    """One, where any topic dropped the broker after `since_ms`; of those that named it again, the worst."""
    tables, process = route_tables(control, world), life.process
    topics, returns = 0, list[_Return]()
    for topic in tables.topics:
        every = tables.presence(process, topic, broker, anywhere=True)
        held = [stretch for stretch in every if stretch.s < gone.end_ms and stretch.e > since_ms]
        absent = (max(st.s, since_ms) for st in held if not st.present and st is not every[0])
        dropped_ms = min(absent, default=None)
        if dropped_ms is None:
            continue
        topics += 1
        named_ms = max(gone.start_ms, dropped_ms)  # a topic's first row names who is in the table
        again = [(min(st.s - gone.start_ms, gone.end_ms - st.s), st) for st in held if st.present and st.s > named_ms]
        if again:
            reaches_ms, worst = max(again, key=lambda one: one[0])
            returns.append(_Return(reaches_ms, topic, worst, dropped_ms))
    if not topics:
        return
    nodes = (life.node,) if machine.is_witnessed else (life.node, broker)
    span = gone.start_ms - world.timers.R_ms, gone.start_ms + world.timers.P_ms
    allowed = control.lateness.tolerance(world, nodes, *span, 1)
    wrong = [one for one in returns if one.reaches_ms > allowed.unknown_up_to_ms]
    late = [one for one in returns if one not in wrong and one.reaches_ms > allowed.valid_up_to_ms]
    worst_of_all = max(wrong or late, default=None)
    yield finding(
        (life.node, broker, worst_of_all.topic if worst_of_all else ""),
        "must not come back",
        (gone.start_ms, gone.end_ms),
        at_no_time(_ROW),
        out=(worst_of_all.stretch.s, min(worst_of_all.stretch.e, gone.end_ms)) if worst_of_all else None,
        tolerance=allowed,
        examined=topics,
        wrong=len(wrong),
        late=len(late),
        after=received(control, world).after(life, broker, gone.start_ms),
        times={"dropped": worst_of_all.dropped_ms} if worst_of_all else {},
    )
