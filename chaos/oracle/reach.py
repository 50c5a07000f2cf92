"""Which brokers and NameServers a client cannot reach at a moment of the run, and why."""

import math
from collections.abc import Collection
from typing import NamedTuple

from ..faults.fault import Dial, Loss
from ..faults.process_faults import Absent
from ..topology import ADDRESS_SERVER, broker_name
from .intervals import Stretch
from .lists import may_have, must_have
from .recorded import Fault, NodeInfo
from .roles import elects, members_of
from .windows import NEVER, Window, commit_delay_ms
from .world import World


class Moment(NamedTuple):
    """A fault began everywhere, or ended everywhere."""

    at_ms: float
    fault_id: str
    phase: str
    """start or end, as in `fault` rows."""


def moments(world: World) -> list[Moment]:
    """Begin and end of every harmful fault within the run, in order of time; what is done by hand takes nobody away.

    A fault on many links begins, and ends, link by link: its moment is when the last of them has, that one action of
    the timeline began or ended.
    """
    starts: dict[tuple[str, int], float] = {}
    ends: dict[tuple[str, int], float] = {}
    for fault in world.faults:
        if not fault.injected or world.harmless(fault) or ADDRESS_SERVER in (fault.source, fault.target):
            continue  # whoever cannot fetch a list has the one before
        if isinstance(fault.kind, Absent):
            ends[fault.fault_id, fault.ended_with] = fault.end_ms  # before it joined nothing had changed for anybody
            continue
        began, ended = (fault.fault_id, fault.began_with), (fault.fault_id, fault.ended_with)
        starts[began] = max(starts.get(began, fault.start_ms), fault.start_ms)
        ends[ended] = max(ends.get(ended, fault.end_ms), fault.end_ms)
    found = [Moment(at_ms, fault_id, "start") for (fault_id, _), at_ms in starts.items()]
    found += [Moment(at_ms, fault_id, "end") for (fault_id, _), at_ms in ends.items()]
    return sorted(moment for moment in found if moment.at_ms < world.end_ms)


def first_harm_ms(world: World) -> float | None:
    """When the first fault, act by hand or full disk began that clients may feel; None if there was none."""
    acts = (act.began_ms for act in world.acts)
    disks = (disk.perhaps.start_ms for disk in world.full_disks)
    return min((*(moment.at_ms for moment in moments(world)), *acts, *disks), default=None)


def faults_between(world: World, client: str, target: str) -> tuple[Fault, ...]:
    """Whatever keeps `client` from reaching `target` at some time: of the process, or of the link. Of a name that
    elects its master: of any of its brokers, for each may be the one."""
    nodes = members_of(world)[broker_name(target)].nodes if elects(world, target) else (target,)
    found = [fault for node in nodes for fault in (*world.process_faults(node), *world.link_faults(client, node))]
    timers = world.timers_of(client)
    return tuple(fault for fault in found if not fault.harmless(timers))


def lost(world: World, client: str, kind: str, at_ms: float, *, for_ms: float = 0.0) -> dict[str, Loss]:
    """Nodes of `kind` lost to the client at some time in [at_ms - for_ms, at_ms], and in which way.

    Where faults overlap, what is in force at `at_ms` counts before what is over, and a loss that does not close before
    one that does: a link healed as its broker hangs leads to a broker that hangs.
    """
    found: dict[str, Loss] = {}
    for node in world.seen_by(client, kind):
        if world.joined_ms(node.name) > at_ms - for_ms:
            found[node.name] = Loss.GRACEFUL  # not there yet, or so short a time that nobody need know it
        if kind == "name_server" and not must_have(world, client, node.name, at_ms - for_ms, at_ms):
            found[node.name] = Loss.GRACEFUL  # it may not be on the list
        timers = world.timers_of(client)
        faults = [
            fault
            for fault in faults_between(world, client, node.name)
            if fault.start_ms <= at_ms and fault.end_ms > at_ms - for_ms
        ]
        if faults:
            found[node.name] = max(faults, key=lambda f: (f.end_ms > at_ms, not f.loss(timers).closes)).loss(timers)
    return found


def sticks(world: World, client: str, name_server: str, from_ms: float, to_ms: float) -> bool:
    """Whether the client may stay with this NameServer though it does not answer: its channels outlast a time-out (Z),
    and the NameServer is lost without a close at some time in [from_ms, to_ms]."""
    timers = world.timers_of(client)
    return not timers.Z and any(
        fault.start_ms <= to_ms and fault.end_ms > from_ms and not fault.loss(timers).closes
        for fault in faults_between(world, client, name_server)
    )


MEETS_MS = 1_000.0
"""A request that comes within this of an idle close may go down with its channel."""


def polls_meet_idle_closes(world: World, client: str) -> bool:
    """Whether a poll may find its channel closed under it: a NameServer closes what is idle for I, and that is P."""
    period_ms = world.timers_of(client).P_ms
    return any(abs(world.timers_of(node.name).I_ms - period_ms) <= MEETS_MS for node in world.listed(client))


def failed_calls(world: World, clients: Collection[str], from_ms: float, to_ms: float) -> float:
    """k: look-ups that fail because NameServers are lost to any of these clients at some time in [from_ms, to_ms].

    Each costs one: where the client's version tries the whole list within a call, so that a crash costs none that it
    has yet to make, it is the one in flight when the connection closes. Where P is a NameServer's I, one more may.
    NEVER (inf) where a client may stay with one that does not answer.
    """
    servers = {node.name: node for client in clients for node in world.listed(client)}.values()
    if any(sticks(world, client, node.name, from_ms, to_ms) for client in clients for node in servers):
        return math.inf

    def is_lost(server: NodeInfo) -> bool:
        asked = (client for client in clients if may_have(world, client, server.name, from_ms, to_ms))
        faults = (fault for client in asked for fault in faults_between(world, client, server.name))
        return any(fault.start_ms <= to_ms and fault.end_ms > from_ms for fault in faults)

    dead = max((world.dead_entries(client) for client in clients), default=0)
    idle = any(polls_meet_idle_closes(world, client) for client in clients)
    return dead + idle + sum(map(is_lost, servers))


def delayed_by_commits(world: World, client: str, window: Window, from_ms: float) -> Window:
    """The window, which begins at `from_ms`, as much longer as the client's offset commits hold up its polls.

    They do where a consumer dials the broker of its queues and its packets are lost: other faults let a dial in, a dead
    process's kernel refuses, and what is connected outlasts lost SYNs. Each broker has one queue more, of the retry
    topic. A group that broadcasts commits to files of its own.
    """
    workload = world.workload
    if workload.get("broadcasting") or world.kind_of(client) != "consumer":
        return window
    to_ms = from_ms + window.latest_ms
    links = (world.link_faults(client, node.name) for node in world.of_kind("broker"))
    lossy = [[f for f in faults if f.kind.loses_packets and f.overlaps(from_ms, to_ms)] for faults in links]
    queues = ((world.queues_of(client) or 4) + 1) * sum(map(bool, lossy))
    if not queues or window.latest_ms == NEVER:
        return window
    since_ms = min(fault.start_ms for faults in lossy for fault in faults)
    return window.plus(
        commit_delay_ms(world.timers_of(client), queues, to_ms - since_ms), f"J (C·{queues} queues each commit)"
    )


def is_reached_too_late(world: World, client: str, from_ms: float, to_ms: float) -> bool:
    """Whether dials to several NameServers of its list are unanswered then: each takes the whole of a call's time, so
    that a call may end before one that lives is asked (4.9)."""
    links = (world.link_faults(client, server.name) for server in world.listed(client))
    return sum(any(f.kind.dial is Dial.DROPPED and f.overlaps(from_ms, to_ms) for f in faults) for faults in links) > 1


BUFFERED_MS = 20.0
"""What a killed process may not have recorded any more, in the machine's time (history/recorder.py: BUFFER_S)."""


def unrecorded(world: World, node: str, lag_ms: float = 0.0) -> list[Stretch]:
    """When rows of what this node did may be missing: it was killed within the time that rows wait, and as late as any
    timer may fire."""
    buffered_ms = BUFFERED_MS * world.timers.time_scale + world.timers.delivery_ms + lag_ms
    faults = (fault for fault in world.process_faults(node) if fault.ends_process)
    return [Stretch(fault.start_ms - buffered_ms, fault.end_ms) for fault in faults]


def undisturbed(world: World, node: str, from_ms: float, to_ms: float) -> bool:
    """Whether one process of the node ran throughout, and nothing was done to it."""
    hit = any(fault.overlaps(from_ms, to_ms) for fault in world.process_faults(node))
    return not hit and any(life.start_ms <= from_ms and life.end_ms >= to_ms for life in world.lives_of(node))
