"""Each client stops using a broker that died, hung or became unreachable, or that the client's routes no longer name.

    broker lost ── t_rm ── P ── (Qr) ──┬──────────── no use ────────────┬─ broker back, or a second fault
       removed at every NameServer     └ last use must be before this   ┘
    out of the client's routes ─ (its next rebalance) ─┬──── no use ────┬─ in one again

The first is a promise, asked where one fault at a time met the client (oracle/lost_brokers.py); the second follows from
what the client was told, whatever happened (record/broker_uses.py). Nothing bounds the use of a topic's last broker,
because a client keeps its old route when there is none. A use is a send attempt or a pull at its beginning; a retry
belongs to a send that began up to T earlier.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...oracle.lost_brokers import Absence, absences, too_short
from ...oracle.world import World
from ...verdict import Finding, Validity, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import counted, finding, leavings, need_not_leave, verdict_of
from ..plain.broker_uses import broker_uses
from ..plain.part import Gathering
from ..record.broker_uses import Uses, departures, key_of
from ..record.control import Control

NAME = "dead_brokers_avoided"


def _judged(control: Control, world: World) -> list[Absence]:
    """The promised ones that outlast the window of the client's use, and the departures; each once."""
    promised = (absence for absence in absences(world) if absence.from_ms < absence.end_ms)
    return [*{key_of(absence): absence for absence in (*departures(control, world), *promised)}.values()]


USES = broker_uses(_judged)


def judge(history: Gathering, world: World) -> Verdict:
    """Examined: absences that outlasted their window, of clients that did something then. Violations: later uses.
    UNKNOWN where brokers were lost, and none for so long that a client had to leave it."""
    found, short = _judged(history.control, world), too_short(world)
    if not found:
        why = "no client lost a broker by a fault (as in broker-crash), and no broker left a client's routes"
        return Verdict.nothing_examined(NAME, _too_short(short) if short else why)
    promised = sum(not absence.address for absence in found)
    uses = history.counted(USES, world).of
    findings = [_finding(one, uses.get(key_of(one), Uses()), history.control, world) for one in found]
    lasts = [
        (absence.client, absence.broker, absence.fault_id, finding.measured_ms, absence.window)
        for absence, finding in zip(found, findings, strict=True)
        if not absence.address and finding.measured_ms is not None
    ]
    verdict = verdict_of(
        NAME,
        findings,
        measured={"promised": promised, "last_use": leavings("broker_name", lasts)},
        nothing="no client sent or pulled after its time limit for a lost broker",
        noun="clients used a lost broker after the time limit",
    )
    if short and not promised and verdict.verdict is Validity.VALID:
        return Verdict.nothing_examined(NAME, _too_short(short), measured=verdict.measured)
    return verdict


def _too_short(of: Sequence[Absence]) -> str:
    longest = max(of, key=lambda absence: absence.end_ms - absence.start_ms)
    return need_not_leave(longest.client, longest.broker, longest.end_ms - longest.start_ms, longest.window)


CHECK = Check(
    name=NAME,
    says="each client stops using a broker that is dead or not in its routes, in the time that RocketMQ's timers allow",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.MESSAGES,),
    readings=(USES,),
    judge=judge,
    outside=True,
    tells=lambda measured: _told(measured.get("last_use") or ()),
)


def _told(last_uses: Sequence[Mapping[str, Any]]) -> str:
    if not last_uses:
        return "no lost broker was used"
    last = last_uses[0]
    return f"last use {last['after_ms'] / 1000:.1f} s after {last['broker_name']} was lost, by {last['client']}"


def _finding(absence: Absence, uses: Uses, control: Control, world: World) -> Finding:
    nodes = (absence.client, absence.broker, *(node.name for node in world.of_kind("name_server")))
    span = absence.start_ms - world.timers.R_ms, absence.from_ms
    allowed = control.lateness.tolerance(world, nodes, *span, absence.window.timers)
    worst = shown = uses.worst
    reaches_ms = worst.over_ms if worst else 0.0
    last_ms, over_ms = uses.last_ms, 0.0
    if uses.last is not None and reaches_ms > allowed.valid_up_to_ms:
        shown, over_ms = uses.last, uses.last.over_ms
        last_ms = absence.from_ms + over_ms
    elif worst is not None:  # in time but for the tolerance, counted from the nearer end
        last_ms, over_ms = absence.from_ms + reaches_ms, reaches_ms
    more = {"op_id": shown.op_id, "late_uses": uses.late} if shown else {}
    if absence.address:
        more["at"] = absence.address
    return finding(
        (absence.client, absence.broker, shown.topic if shown else ""),
        "must not use",
        (absence.from_ms, absence.end_ms),
        absence.window,
        out=(shown.time_ms, None) if shown else None,
        tolerance=allowed,
        **counted(reaches_ms, allowed),
        measured_ms=None if last_ms is None else last_ms - absence.start_ms,
        over_ms=over_ms,
        examined=int(uses.after > 0),
        after=absence.after,
        times={"lost": absence.start_ms},
        more=more,
    )
