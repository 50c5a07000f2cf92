"""Each client stops using a broker that died, hung or became unreachable, or that the client's routes no longer name.

    broker lost ── t_rm ── P ── (Qr) ──┬──────────── no use ────────────┬─ broker back, or a second fault
       removed at every NameServer     └ last use must be before this   ┘
    out of the client's routes ─ (its next rebalance) ─┬──── no use ────┬─ in one again

The first is a promise, asked where one fault at a time met the client (oracle/lost_brokers.py); the second follows from
what the client was told, whatever happened (record/broker_uses.py). Nothing bounds the use of a topic's last broker,
because a client keeps its old route when there is none. A use is a send attempt or a pull at its beginning; a retry
belongs to a send that began up to T earlier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...arrow import Flags, np, pa, pc
from ...oracle.lost_brokers import Absence, absences, too_short
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import Finding, Validity, Verdict
from ..check import Group, Needs, Section, Table, check
from ..findings import counted, finding, leavings, need_not_leave, verdict_of
from ..plain.part import Gathering, Part, Reading, Together, floats, is_one_of, rows_in
from ..record.broker_uses import Key, Use, Uses, departures, key_of, lost_at
from ..record.control import Control
from ..record.route_tables import exists


def _judged(control: Control, world: World) -> list[Absence]:
    """The promised ones that outlast the window of the client's use, and the departures; each once."""
    promised = (absence for absence in absences(world) if absence.from_ms < absence.end_ms)
    return [*{key_of(absence): absence for absence in (*departures(control, world), *promised)}.values()]


def uses(part: Part, world: World) -> Table[Key, Uses]:
    """What clients did while brokers were lost to them: attempts and pulls, at their beginning. Whose topic an attempt
    was for only its send says, and only for late uses does it matter."""
    found = _judged(part.control, world)
    if not found:
        return Table()
    began, held = part.of("send_attempt", "pull", types=("invoke",)), _held(part.control)
    at_ms, retried = floats(began["time_ms"]), floats(began["attempt"], 0.0) > 0
    # A retry chooses its broker from the route that its send began with.
    chosen_ms = at_ms - np.where(retried, world.timers.T_ms, 0.0)
    of_each: dict[Key, Uses] = {}
    for absence in found:
        within = pc.equal(began["node"], absence.client).to_numpy()
        within &= (absence.start_ms <= at_ms) & (at_ms < absence.end_ms)
        lost = within & _is_lost(began, absence, world)
        reaches_ms = np.minimum(chosen_ms - absence.from_ms, absence.end_ms - at_ms)
        in_time = chosen_ms[lost & (reaches_ms <= 0)]
        after = int((within & (at_ms >= absence.from_ms)).sum())
        seen = Uses(after=after, last_ms=float(in_time.max()) if len(in_time) else None)
        bounded = {topic for other in absence.others for topic in held.get(other, ())}
        late = lost & (reaches_ms > 0)
        rows = rows_in(began.filter(late))
        topic_of = _topics(part, [row["op_id"] for row in rows if not row["topic"] and row["op_id"]])
        for row, reach_ms, chose_ms in zip(rows, reaches_ms[late], chosen_ms[late], strict=True):
            topic = row["topic"] or topic_of.get((row["node"], row["op_id"]))
            if topic in bounded:
                use = row["time_ms"], str(topic), row["op_id"] or ""
                last = Use(float(chose_ms) - absence.from_ms, *use)
                worst = Use(float(reach_ms), *use)
                seen = seen.plus(Uses(late=1, last_ms=float(chose_ms), worst=worst, last=last))
        of_each[key_of(absence)] = seen
    return Table(of_each)


USES = Reading(
    Together.OPERATION,
    ("send", "send_attempt", "pull"),
    ("type", "op_id", "topic", "broker_name", "address", "attempt"),
    uses,
)


@check(
    says="each client stops using a broker that is dead or not in its routes, in the time that RocketMQ's timers allow",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.MESSAGES,),
    readings=(USES,),
    outside=True,
    tells=lambda measured: _told(measured.get("last_use") or ()),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: absences that outlasted their window, of clients that did something then. Violations: later uses.
    UNKNOWN where brokers were lost, and none for so long that a client had to leave it."""
    found, short = _judged(history.control, world), too_short(world)
    if not found:
        why = (
            "no client lost a broker to one fault alone (as in broker-crash), and no client recorded that a broker "
            "left its routes"
        )
        return Verdict.nothing_examined(_too_short(short) if short else why)
    promised = sum(not absence.address for absence in found)
    uses = history.counted(USES, world).of
    findings = [_finding(one, uses.get(key_of(one), Uses()), history.control, world) for one in found]
    lasts = [
        (absence.client, absence.broker, absence.fault_id, finding.measured_ms, absence.window)
        for absence, finding in zip(found, findings, strict=True)
        if not absence.address and finding.measured_ms is not None
    ]
    verdict = verdict_of(
        findings,
        measured={"promised": promised, "last_use": leavings("broker_name", lasts)},
        nothing="no client sent or pulled after its time limit for a lost broker",
        noun="clients used a lost broker after the time limit",
    )
    if short and not promised and verdict.verdict is Validity.VALID:
        return Verdict.nothing_examined(_too_short(short), measured=verdict.measured)
    return verdict


def _too_short(of: Sequence[Absence]) -> str:
    longest = max(of, key=lambda absence: absence.end_ms - absence.start_ms)
    return need_not_leave(longest.client, longest.broker, longest.end_ms - longest.start_ms, longest.window)


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


def _is_lost(began: pa.Table, absence: Absence, world: World) -> Flags:
    """Of each use, whether it was of the lost broker: of a name with slaves, or of a broker that came back at another
    address, it is the address that says so."""
    found: Flags = pc.fill_null(pc.equal(began["broker_name"], broker_name(absence.broker)), False).to_numpy()
    own = lost_at(absence, world)
    if own is None:
        return found
    there = pc.fill_null(pc.equal(began["address"], own), not absence.address)
    return found & there.to_numpy()


def _topics(part: Part, op_ids: Sequence[str]) -> dict[tuple[str, str], str]:
    sends = part.of("send", types=("invoke",))
    rows = rows_in(sends.filter(is_one_of(sends["op_id"], op_ids)).select(["node", "op_id", "topic"]))
    return {(row["node"], row["op_id"]): row["topic"] for row in rows}


def _held(control: Control) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in control.rows("topic"):
        if exists(row.value) and row.topic:
            found[row.node].add(row.topic)
    return found
