"""The scenario really happened: every fault was recorded and had an effect, and every client worked.

A run whose faults never bit proves nothing, however many checks call it VALID. This one is VALID or UNKNOWN, never
INVALID: a fault without effect is no fault of the cluster's.

| fault                   | effect: one of these rows while it lasts, or just after                                  |
|-------------------------|------------------------------------------------------------------------------------------|
| kill, stop of a node    | its next process started; a NameServer dropped it; a call or connection to it failed     |
| pause of a node         | it measured no timers all the while; or as above                                         |
| black_hole, cut, reset  | the dialler's call or connection over the link failed; the NameServer dropped the        |
|                         | broker; a list from the address server did not come within 3 s                           |
| latency                 | a call over the link, or a slave's round of questions to its master, took at least as    |
|                         | long as one direction was delayed                                                        |
| bandwidth               | none is asked for: no row tells a narrow link from a busy peer                           |

What a node did not do for the harness (a stop, a final read), though it was waited for, is told here too.

Where clients had chosen a NameServer that was then lost to them, at least one must have chosen another.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ....remoting.top_addressing import TASK as FETCH
from ....remoting.top_addressing import TIMEOUT_S
from ...arrow import np, pc
from ...faults.acts_by_hand import BY_HAND
from ...faults.clock_changes import CLOCK_ACTIONS
from ...faults.fault import Loss
from ...faults.process_faults import DISK_ACTIONS, Absent, Remove
from ...oracle.broker import SYNCHRONIZE
from ...oracle.intervals import grouped
from ...oracle.link import RESUME_GRACE_MS
from ...oracle.recorded import Fault
from ...oracle.slaves import made_masters
from ...oracle.world import World
from ...topology import ADDRESS_SERVER, ADMIN, broker_name, is_slave
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, Table, check
from ..findings import Rule, finding, verdict_by_counts
from ..plain.part import Gathering, Part, Reading, Together, floats, is_one_of
from ..plain.slots import SLOTS
from ..record.control import Control, Row, not_restarted
from ..record.lateness import Lateness

_SHOWN = 60
_FORMULA = "each fault begins, ends and has an effect; each client works"
_ROW = "what did not happen proves nothing"
_NEVER_ENDED = "the fault never ended"
_NO_FAULTS = ("heal", "resume", "restart", "return_host", "rolling_restart", "restart_storm", "name_server_list")
"""Actions that begin no fault, or some that nobody has counted."""
_CALLS = ("register", "name_server_call")
_EVIDENT = (*_CALLS, "channel", "broker_dropped", "started", "timed_out")


class Asked(NamedTuple):
    """What of a fault a row may show."""

    fault_id: str
    address: str | None
    """That is hit."""
    by: str | None
    """Who dials it, or drops it; None: anybody."""
    only: str
    """The kind of effect that counts; empty: all, those of tries and pulls among them."""
    start_ms: float
    until_ms: float
    slow_ms: float
    """How long a call over the link must take at least to show it; 0 for a fault that does not delay."""
    again_ms: float = 0.0
    """Until when the start of a next process shows it, which may take as long as a program needs to come up."""


def effects(part: Part, world: World) -> Table[str, Mapping[str, int]]:
    """How many tries and pulls show that a fault had an effect: they failed, or took as long as a link was slow.
    fault_id → failed, or slow → rows."""
    faults = [one for one in _asked(world) if not one.only]
    rows = part.of("send_attempt", "pull") if faults else part.table.slice(0, 0)
    rows = rows.filter(pc.is_valid(pc.coalesce(rows["address"], rows["name_server"])))
    failed = is_one_of(rows["type"], ("fail", "info")).to_numpy() & pc.is_null(rows["code"]).to_numpy()
    took_ms = floats(rows["duration_ms"], 0.0)
    tells = failed | (took_ms >= min((one.slow_ms for one in faults if one.slow_ms > 0), default=np.inf))
    rows, failed, took_ms = rows.filter(tells), failed[tells], took_ms[tells]
    at_ms, found = floats(rows["time_ms"]), dict[str, dict[str, int]]()
    address = pc.coalesce(rows["address"], rows["name_server"])
    for one in faults:
        of_fault = (one.start_ms <= at_ms) & (at_ms <= one.until_ms)
        if one.address is None or not of_fault.any():
            continue
        of_fault &= pc.equal(address, one.address).to_numpy()
        if one.by is not None:
            of_fault &= pc.equal(rows["node"], one.by).to_numpy()
        slow = of_fault & ~failed & (took_ms >= one.slow_ms) if one.slow_ms > 0 else of_fault & False
        for kind, shown in (("failed", of_fault & failed), ("slow", slow)):
            if count := int(shown.sum()):
                of_kind = found.setdefault(one.fault_id, {})
                of_kind[kind] = of_kind.get(kind, 0) + count
    return Table(found)


EFFECTS = Reading(
    Together.ROW, ("send_attempt", "pull"), ("type", "address", "name_server", "code", "duration_ms"), effects
)


@check(
    says="each fault of the scenario happened and had an effect, and each client had a successful operation",
    group=Group.EXERCISED,
    section=Section.RUN,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.EXPERIMENT, Needs.MESSAGES),
    readings=(EFFECTS, SLOTS),
    tells=lambda measured: _told(measured),
    joins_for=("not_done",),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: faults and clients. None is a violation: what did not happen makes it UNKNOWN."""
    worked = {slot.node for slot, tally in history.counted(SLOTS, world).of.items() if tally.good}
    return judged(history.control, world, worked, history.counted(EFFECTS, world).of)


def judged(
    control: Control,
    world: World,
    worked: Collection[str],
    calls: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> Verdict:
    """By the clients that had a success, and by fault how many tries and pulls failed or were slow."""
    if world.run.get("imported"):
        return Verdict.nothing_examined("the history was imported: nobody injected these faults")
    by_id = grouped((fault.fault_id, fault) for fault in world.faults if fault.injected)
    done = {act.act_id for act in world.acts if act.is_done}
    done |= {change.change_id for of in world.clocks.values() for change in of if not change.change_id.endswith("-end")}
    done |= {act_id for disk in world.full_disks for act_id in disk.act_ids if not act_id.endswith("-end")}
    clients = [node.name for node in world.of_kind("producer", "consumer")]
    if not by_id and not done and not clients:
        return Verdict.nothing_examined("there was neither a fault nor a client")
    effects, switches = _effects(control, calls, world), _switches(control, world)
    missing = [
        _finding(client, "none of its operations succeeded", 0.0, world.end_ms)
        for client in clients
        if client not in worked
    ]
    shown: list[dict[str, Any]] = []
    for fault_id, faults in by_id.items():
        seen = effects.get(fault_id, {})
        start_ms, end_ms = min(f.start_ms for f in faults), max(f.end_ms for f in faults)
        shown.append({"fault_id": fault_id, "fault": faults[0].fault, "effects": seen})
        if fault_id in switches:
            shown[-1]["switches"] = switches[fault_id]
        what = _lacks(world, faults, seen, switches.get(fault_id))
        if what == _NEVER_ENDED:
            what = not_restarted(control).get(faults[0].source, what)
        if what:
            until_ms = end_ms if math.isfinite(end_ms) else world.end_ms
            missing.append(_finding(faults[0].source, what, start_ms, until_ms, fault_id))
    told = {one.subject for one in missing}
    missing += [
        _finding(str(row.source), str(row.said.get("why") or "it did not answer"), row.time_ms, row.time_ms)
        for row in control.rows("not_done")
        if not (row.source in not_restarted(control) and row.source in told)
    ]
    planned = [action for action in world.run.get("timeline") or () if action not in _NO_FAULTS]
    acted = [fault_id for fault_id, faults in by_id.items() if not isinstance(faults[0].kind, Absent)]
    if len(planned) > len(acted) + len(done):
        what = f"{len(planned)} faults were planned and {len(acted)} recorded"
        if acts := [action for action in planned if action in {*BY_HAND, *CLOCK_ACTIONS, *DISK_ACTIONS}]:
            asked = f"{len(planned) - len(acts)} faults and {len(acts)} acts by hand"
            what = f"{asked} were planned, {len(acted)} and {len(done)} done"
        missing.append(_finding("harness", what, 0.0, world.end_ms))
    first = f"{missing[0].subject}: {missing[0].kind}".removeprefix("harness: ") if missing else ""
    more = f"; and {len(missing) - 1} more" if len(missing) > 1 else ""
    return verdict_by_counts(
        examined=len(by_id) + len(done) + len(clients),
        wrong=0,
        unsure=len(missing),
        why="",
        why_unsure=first + more,
        measured={
            "faults": len(by_id),
            **({"acts": len(done)} if done else {}),
            "clients": len(clients),
            "effects": sum(sum(seen.values()) for seen in effects.values()),
            "switches": sum(switches.values()),
            "by_fault": shown[:_SHOWN],
        },
        allowed={"bound_ms": None, "formula": _FORMULA, "tolerance_ms": 0, "row": _ROW},
        findings=missing,
    )


def _told(measured: Mapping[str, Any]) -> str:
    """ "1 fault with 7 effects, 4 clients" """
    faults, clients, effects = measured.get("faults", 0), measured.get("clients", 0), measured.get("effects")
    said = f"{faults} fault{'s' * (faults != 1)}"
    said += "" if effects is None or not faults else f" with {effects} effect{'s' * (effects != 1)}"
    if acts := measured.get("acts"):
        said += f", {acts} act{'s' * (acts != 1)} by hand"
    return f"{said}, {clients} client{'s' * (clients != 1)}"


def _finding(who: str, what: str, from_ms: float, to_ms: float, fault_id: str = "") -> Finding:
    return finding(
        who,
        what,
        (from_ms, to_ms),
        Rule(_ROW, _FORMULA),
        out=(from_ms, to_ms),
        late=1,
        after=f"{fault_id} start" if fault_id else "",
    )


def _lacks(world: World, faults: Sequence[Fault], seen: Mapping[str, int], switches: int | None) -> str:
    """`switches`: how many clients chose another NameServer; None: no client had chosen the one that was lost."""
    if any(fault.start_ms >= world.end_ms for fault in faults):
        return "the fault began after the end of the run"
    if any(fault.ended_by_others for fault in faults):
        return "the process ran again before the harness resumed it: something else sent it SIGCONT"
    for_good = all(isinstance(fault.kind, Remove) or _replaced(world, fault) for fault in faults)
    if world.run.get("timeline") and not for_good and all(fault.end_ms > world.end_ms for fault in faults):
        return _NEVER_ENDED  # a run by a timeline heals every fault before it settles
    if not seen and faults[0].kind.shows_in_rows:
        return "no row of the history shows an effect of the fault"
    if switches == 0 and all(_forces_a_switch(world, fault) for fault in faults):
        return "clients used the NameServer that the fault took away, and none chose another"
    return ""


def _replaced(world: World, fault: Fault) -> bool:
    """Whether a slave was made master in place of the process that the fault ended: the process stays away."""
    return fault.ends_process and fault.source in made_masters(world)


def _forces_a_switch(world: World, fault: Fault) -> bool:
    """Whether a client that keeps on calling must have met the loss: it lasted a poll and a time-out."""
    lasts_ms = min(fault.end_ms, world.end_ms) - fault.start_ms
    if fault.loss(world.timers) is Loss.UNDIALLED:
        return False  # who is connected need not notice
    return not fault.harmless(world.timers) and lasts_ms > world.timers.P_ms + 2 * world.timers.A_ms


def _asked(world: World) -> Iterator[Asked]:
    """One entry for each fault of a process, two for one of a link: who dialled it, and who dropped the dialler."""
    grace_ms = world.timers.A_ms + world.timers.T_ms
    ended_ms = grouped((fault.source, fault.start_ms) for fault in world.faults if fault.ends_process)
    for fault in world.faults:
        if not fault.kind.shows_in_rows:
            continue  # no row tells a narrow link from a busy one, and acts have rows of their own
        when = fault.start_ms, min(fault.end_ms, world.end_ms) + grace_ms, fault.kind.call_takes_ms
        source = world.address_at(fault.source, fault.start_ms) or fault.source  # a client has no address
        if (target := fault.target) is None:
            later_ms = (at_ms for at_ms in ended_ms.get(fault.source, ()) if at_ms > fault.start_ms)
            again_ms = min(later_ms, default=world.end_ms) if fault.ends_process else 0.0
            yield Asked(fault.fault_id, source, None, "", *when, again_ms)
        else:
            yield Asked(fault.fault_id, world.address_at(target, fault.start_ms), fault.source, "", *when)
            yield Asked(fault.fault_id, source, target, "broker_dropped", *when)


def _effects(control: Control, calls: Mapping[str, Mapping[str, int]], world: World) -> dict[str, dict[str, int]]:
    """fault_id → kind of effect → how many rows show it."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for fault_id, kinds in calls.items():
        found[fault_id].update(kinds)
    asked = grouped((one.address, one) for one in _asked(world))
    for row in control.rows(*_EVIDENT) if asked else ():
        for one in asked.get(row.address or row.name_server or row.node, ()):
            if kind := _shows(row, one):
                found[one.fault_id][kind] += 1
    for fault in world.faults:
        met = [act for act in world.acts if act.node == fault.target and fault.source == ADMIN and not act.is_done]
        if late := sum(fault.overlaps(act.began_ms, act.ended_ms) for act in met if fault.injected):
            found[fault.fault_id]["failed"] += late
    may_show = (ADDRESS_SERVER, *(node.name for node in world.of_kind("slave")))
    links = [f for f in world.faults if f.injected and f.target and (f.source in may_show or f.target in may_show)]
    for row in control.rows("scheduled_task") if links else ():
        for fault in links if row.f in (FETCH, SYNCHRONIZE) else ():
            if fault.overlaps(row.began_ms, row.time_ms) and (kind := _met(row, fault)):
                found[fault.fault_id][kind] += 1
    for fault_id in _silent(control.lateness, world):
        found[fault_id]["silent"] += 1
    return {fault_id: dict(kinds) for fault_id, kinds in found.items()}


def _shows(row: Row, asked: Asked) -> str:
    """The kind of effect that this row, which speaks of the address, shows of the fault; empty: none."""
    took_ms, kind = row.duration_ms or 0.0, _kind(row)
    until_ms = max(asked.until_ms, asked.again_ms) if kind == "started_again" else asked.until_ms
    if not asked.start_ms <= row.time_ms <= until_ms or row.time_ms - took_ms > until_ms:
        return ""
    if kind == "slow" and not 0 < asked.slow_ms <= took_ms:
        return ""
    if asked.slow_ms and kind not in ("slow", "failed"):
        return ""
    fits = asked.by in (None, row.node) and asked.only in ("", kind)
    return kind if fits else ""


def _met(row: Row, fault: Fault) -> str:
    """What a list from the address server, or a slave's round of questions to its master, shows of a link's fault."""
    took_ms, ends = row.duration_ms or 0.0, (fault.source, fault.target)
    if row.f == FETCH:
        return "failed" if ends == (row.node, ADDRESS_SERVER) and took_ms >= 1000 * TIMEOUT_S else ""
    is_its = is_slave(row.node) and {*ends} == {row.node, broker_name(row.node)}
    return "slow" if is_its and 0 < fault.kind.call_takes_ms <= took_ms else ""


def _kind(row: Row) -> str:
    if row.event in _CALLS:
        if row.type in ("fail", "info") and row.code is None:
            return "failed"
        return "slow" if (row.duration_ms or 0.0) > 0 else ""
    if row.event == "channel":
        return "closed" if row.f in ("close", "connect_failed") else ""
    if row.event == "timed_out":
        return "failed"
    if row.event == "started":
        return "started_again" if row.incarnation > 0 else ""
    return row.event


def _silent(lateness: Lateness, world: World) -> set[str]:
    """Pauses during which the node, which measured its timers before, measured nothing."""
    found: set[str] = set()
    for fault in (fault for fault in world.pauses() if fault.source in lateness.of_node):
        at_ms, from_ms = lateness.of_node[fault.source].until, fault.start_ms + RESUME_GRACE_MS
        during = (at_ms >= from_ms) & (at_ms < min(fault.end_ms, world.end_ms))
        if (at_ms < from_ms).any() and not during.any():
            found.add(fault.fault_id)
    return found


def _switches(control: Control, world: World) -> dict[str, int]:
    """Each fault that took a NameServer from clients that had chosen it → how many chose another while it lasted."""
    servers = {node.name: node.address for node in world.of_kind("name_server")}
    clients = {node.name for node in world.of_kind("producer", "consumer")}
    choices = grouped((row.node, row) for row in control.rows("name_server_chosen"))
    counts: dict[str, int] = defaultdict(int)
    for fault in world.faults:
        server = servers.get(fault.source if fault.target is None else fault.target)
        until_ms = min(fault.end_ms, world.end_ms) + world.timers.P_ms + world.timers.A_ms
        for client in clients if fault.target is None else clients & {fault.source}:
            before = [row for row in choices.get(client, ()) if row.time_ms <= fault.start_ms]
            if server is not None and before and before[-1].name_server == server:
                after = [row for row in choices[client] if fault.start_ms < row.time_ms <= until_ms]
                counts[fault.fault_id] += any(row.said.get("reason") != "first" for row in after)
    return dict(counts)
