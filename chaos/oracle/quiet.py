"""When the run was disturbed, and how long a disturbance affects clients that share queues.

    fault ├──────────────┤ heal
          ├──────────────┴── R + C ── P + J ── H ── Qr ──┤   until here two consumers may still disagree
                              tables   routes   members  rebalance

`quiet` is the rest: no fault in force and every table, route, member list and allocation has had its time.
"""

import math
from collections.abc import Sequence

from ..faults.process_faults import Absent, Pause, Remove
from ..topology import ADMIN
from .intervals import Stretch, merged, without
from .link import MOMENT_MS, earliest_effect_ms, most_hung_brokers
from .lists import changing
from .reach import polls_meet_idle_closes
from .recorded import Fault
from .windows import Timers, calls_to_leave, poll_delay_ms, serves_window, staleness_window
from .world import World, once

BARELY_MS = 100.0
"""A latency, or a pause, up to this does not count as a disturbance of deliveries: what it holds up goes on by itself
long before any time-out."""


def members_ms(timers: Timers) -> float:
    """How long after a member came or went a group may share its queues anew: notified at once, else at the next round:
    Qr + A."""
    return timers.Qr_ms + timers.A_ms


def sharing_ms(timers: Timers, hung_brokers: int) -> float:
    """How long after a route changed a group may share its queues anew: P + J + H + Qr + A.

    A poll brings the route; where a broker is new, a heartbeat tells it the members; a rebalance acts on both. J: a
    hung broker holds up the poll; one that refuses does not.
    """
    return timers.P_ms + poll_delay_ms(timers, hung_brokers) + timers.H_ms + members_ms(timers)


def aftermath_ms(world: World) -> float:
    """How long after its end a fault may still show in who owns which queue: R + C, and the sharing anew."""
    lists = [len(world.addresses_of(node.name)) for node in world.of_kind("producer", "consumer")]
    name_servers = max([len(world.of_kind("name_server")), *lists])
    stale_ms = staleness_window(world.timers, name_servers).latest_ms if name_servers else 0.0
    after_ms = serves_window(world.timers).latest_ms + sharing_ms(world.timers, most_hung_brokers(world))
    idle = any(polls_meet_idle_closes(world, client.name) for client in world.of_kind("producer", "consumer"))
    return after_ms + (stale_ms if idle or _name_servers_hit(world) else 0.0)


def _name_servers_hit(world: World) -> bool:
    return any(
        calls_to_leave(world.timers.profile, fault.loss(world.timers)) > 0
        for fault in world.faults
        if world.kind_of(fault.target or fault.source) == "name_server"
        if fault.target is None or world.kind_of(fault.source) in ("producer", "consumer")
    )


def harmful(world: World) -> list[Fault]:
    """The faults that can disturb anything, in order of time."""
    return [fault for fault in world.faults if not world.harmless(fault)]


def harmful_to_deliveries(world: World) -> list[Fault]:
    """Those that messages on their way from brokers to consumers may feel: what is done to a producer, or to a link of
    its, changes nothing for anybody else."""
    return [fault for fault in harmful(world) if world.kind_of(fault.source) != "producer"]


def unnoticed(world: World, fault: Fault) -> bool:
    """Whether it is a pause that no time-out can notice and that leaves nothing behind: nothing else was disturbed
    then, nor still, that it could have held up beyond its own time."""
    return _is_short_pause(fault) and not any(
        one.start_ms <= fault.end_ms and one.end_ms >= fault.start_ms for one in _disturbed_by_more(world)
    )


@once
def _disturbed_by_more(world: World) -> list[Stretch]:
    """The stretches that faults other than short pauses disturb, with all that they leave behind."""
    long = [other for other in harmful(world) if not _is_short_pause(other)]
    return disturbed(world, after_ms=aftermath_ms(world) + world.timers.H_ms, faults=long)


def _is_short_pause(fault: Fault) -> bool:
    return isinstance(fault.kind, Pause) and fault.end_ms - fault.start_ms <= BARELY_MS


def disturbed(
    world: World, before_ms: float = 0.0, after_ms: float = 0.0, *, faults: Sequence[Fault] | None = None
) -> list[Stretch]:
    """The stretches with one of these faults, or any harmful one, in force, and those in which a list by HTTP is being
    taken, each from `before_ms` earlier until `after_ms` later, and as much more as hosts' clocks are apart; merged."""
    apart_ms = world.timers.clocks_ms
    before_ms, after_ms = before_ms + apart_ms, after_ms + apart_ms
    those = harmful(world) if faults is None else faults
    stretches = [*(felt(world, fault) for fault in those), *changing(world)]
    if any(isinstance(fault.kind, Remove) for fault in those):
        stretches += [one for node in world.of_kind("producer", "consumer") for one in _left_by_all(world, node.name)]
    return merged(Stretch(start_ms - before_ms, end_ms + after_ms) for start_ms, end_ms in stretches)


def _left_by_all(world: World, client: str) -> list[Stretch]:
    """When no NameServer of the client's list is there: the one that was removed may have been the last."""
    faults = ([Stretch(f.start_ms, f.end_ms) for f in world.process_faults(one.name)] for one in world.listed(client))
    there = [stretch for gone in faults for stretch in without(-math.inf, math.inf, gone)]
    return without(-math.inf, math.inf, there) if world.listed(client) else []


def felt(world: World, fault: Fault) -> Stretch:
    """From when until when the fault disturbs anybody by itself: as long as it lasts.

    But a NameServer that is not there yet is an entry of the list that nobody has chosen, and is empty if it joins;
    one that was removed is such an entry as soon as everybody has left it.
    """
    if isinstance(fault.kind, Absent):
        return Stretch(fault.end_ms, fault.end_ms)
    start_ms = earliest_effect_ms(world, fault)
    if isinstance(fault.kind, Remove):
        there = (other for node in world.of_kind("name_server") for other in dead(world, node.name))
        entries = sum(other.start_ms <= fault.start_ms < other.end_ms for other in there)
        return Stretch(start_ms, start_ms + staleness_window(world.timers, entries).latest_ms)
    return Stretch(start_ms, fault.end_ms)


def dead(world: World, name_server: str) -> list[Fault]:
    """When this NameServer was not there yet, or not any more, and was an entry of lists all the same."""
    return [fault for fault in world.process_faults(name_server) if isinstance(fault.kind, (Absent, Remove))]


def clients_began_ms(world: World) -> float:
    """When the last of the clients was started for the first time; 0 without any."""
    starts = [
        min((life.start_ms for life in world.lives_of(node.name)), default=0.0)
        for node in world.of_kind("producer", "consumer")
    ]
    return max(starts, default=0.0)


def settle_ms(world: World) -> float:
    """How long after a heal an operation may still fail: R + C + P + J + A + T."""
    timers = world.timers
    back_ms = serves_window(timers).latest_ms + timers.P_ms + poll_delay_ms(timers, most_hung_brokers(world))
    return back_ms + timers.A_ms + timers.T_ms


@once
def calm(world: World) -> list[Stretch]:
    """The quiet stretches in which every operation must succeed. A client that dies or is started again disturbs none:
    what it was doing has no end, and the next process is to do as well as the first."""
    return quiet(world, settle_ms(world), faults=[fault for fault in harmful(world) if not _ends_client(world, fault)])


def _ends_client(world: World, fault: Fault) -> bool:
    return fault.ends_process and world.kind_of(fault.source) in ("producer", "consumer")


@once
def calm_but_stalls(world: World) -> list[Stretch]:
    """The same, and those that stalls took whole: what fails there is late at most."""
    return _and_taken(calm(world), calm(world.but_stalls()))


def _and_taken(found: list[Stretch], but_stalls: list[Stretch]) -> list[Stretch]:
    return sorted([*found, *(one for one in but_stalls if without(*one, found) == [one])])


@once
def calm_among(world: World, *nodes: str) -> list[Stretch]:
    """The same for calls that are between these nodes alone: what is done to others, and to their links, is no
    disturbance of them. Acts by hand are. With those that stalls took whole, too."""

    def disturbs(fault: Fault) -> bool:
        among = fault.source in nodes and (fault.target is None or fault.target in nodes)
        return fault.by_hand or (among and not _ends_client(world, fault))

    of = (quiet(of, settle_ms(of), faults=[*filter(disturbs, harmful(of))]) for of in (world, world.but_stalls()))
    return _and_taken(*of)


def is_alone(world: World, client: str, at_ms: float) -> bool:
    """Whether no more than one fault is felt by the client then, so that RocketMQ's promises to it are asked."""
    return alone_until(world, client, at_ms) > at_ms


def alone_until(world: World, client: str, at_ms: float, *, own_links: bool = False) -> float:
    """Until when no second fault is felt by the client; `at_ms` where several meet then already. `own_links`: what is
    done to links of others does not count."""
    meet = (one for one in several(world, client, own_links=own_links) if one.end_ms > at_ms)
    return min((max(one.start_ms, at_ms) for one in meet), default=math.inf)


def _together_ms(world: World, first: Fault, second: Fault) -> float:
    """How far apart the beginnings of one act on several nodes may be: each has a moment of its own."""
    return world.timers.delivery_ms if first.fault == second.fault else MOMENT_MS


@once
def several(world: World, client: str, *, own_links: bool = False) -> Sequence[Stretch]:
    """When several faults meet for the client: from the beginning of the second until it has settled after the last.
    Those that begin together are one until the first of them ends. An act by hand counts as several, as long as clients
    may feel it: what it does to them nobody promises."""
    meet: list[Stretch] = []
    together: list[tuple[Fault, Stretch]] = []
    second_ms = over_ms = -math.inf
    counts = (f for f in felt_by(world, client) if not own_links or f.target is None or f.source == client)
    for fault, span in sorted(((f, felt(world, f)) for f in counts), key=lambda one: one[1]):
        if span.start_ms >= over_ms:
            meet.append(Stretch(second_ms, over_ms))
            together, second_ms = [(fault, span)], math.inf
        elif _key(fault) in {_key(other) for other, _ in together}:
            together.append((fault, span))
        elif span.start_ms <= together[0][1].start_ms + _together_ms(world, together[0][0], fault):
            together.append((fault, span))
            ends = [of.end_ms for _, of in together]
            second_ms = min(ends) if max(ends) > min(ends) + MOMENT_MS else math.inf
        else:
            second_ms = min(second_ms, span.start_ms)
        if fault.by_hand and fault.source == ADMIN:
            meet.append(span)
        over_ms = max(over_ms, _settled_ms(world, client, fault))
    return merged([*meet, Stretch(second_ms, over_ms)])


def _key(fault: Fault) -> tuple[str, int]:
    return fault.fault_id, fault.began_with


@once
def felt_by(world: World, client: str) -> Sequence[Fault]:
    """Those that the client may feel: not what is done to other clients, or to links of theirs, but for its group's."""
    others = {node.name for node in world.of_kind("producer", "consumer", "prober")} - {client}
    if world.kind_of(client) == "consumer":
        others -= {*world.members_of(client)}
    lists = [
        Fault(f"list at {one.start_ms}", "list", "", "", None, None, one.start_ms, one.end_ms)
        for one in changing(world)
    ]
    return [fault for fault in harmful(world) if fault.source not in others] + lists


def _settled_ms(world: World, client: str, fault: Fault) -> float:
    """By when the client is sure to be as if the fault had never been: routes, members and queues are what they were.
    One that only keeps it from NameServers is over with its end, once the client had the time to leave them."""
    timers, servers = world.timers_of(client), {server.name for server in world.listed(client)}
    span = felt(world, fault)
    if fault.source == client and fault.target in servers:
        lost = {one.target for one in world.faults if one.fault_id == fault.fault_id and one.source == client}
        leaves_ms = timers.P_ms + staleness_window(timers, len(lost & servers)).latest_ms
        return max(span.end_ms + timers.A_ms, span.start_ms + leaves_ms)
    return span.end_ms + (aftermath_ms(world) if world.kind_of(client) == "consumer" else settle_ms(world))


def brokers_joined(world: World, after_ms: float) -> list[Stretch]:
    """From when each broker that joined did so, until `after_ms` later: its queues are shared out meanwhile."""
    joined = (world.joined_ms(node.name) for node in world.of_kind("broker"))
    return [Stretch(at_ms, at_ms + after_ms) for at_ms in joined if math.isfinite(at_ms)]


def started_again_ms(world: World, node: str, at_ms: float) -> float:
    """When the process before the node's present one was no more; -inf for the first."""
    later = [fault.end_ms for fault in world.process_faults(node) if fault.ends_process and fault.end_ms <= at_ms]
    return max(later, default=-math.inf)


def quiet(
    world: World, settle_ms: float, *, from_ms: float | None = None, faults: Sequence[Fault] | None = None
) -> list[Stretch]:
    """The stretches without one of these faults, or any harmful one, `settle_ms` after the end of the one before. The
    first begins at `from_ms`; None: when the last client has started. Empty when a fault never ended."""
    begin_ms = clients_began_ms(world) if from_ms is None else from_ms
    end_ms = world.end_ms if math.isfinite(world.end_ms) else 0.0
    return without(begin_ms, end_ms, disturbed(world, after_ms=settle_ms, faults=faults))
