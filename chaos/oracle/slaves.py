"""The effect of slaves: when a NameServer keeps the rows of a broker name whose master is gone, and which messages
slaves have.

    broker-a    held ────────────┤ dropped          ├─ held     A topic's row is the master's: it comes with its
    broker-a/1       ├─ held ──────────────────────────────     registration, and stays while any id of the name does.
    its rows    └───────────────────────────────────────────    Slaves bring no rows.

When a SYNC_MASTER may answer a send "stored, but on no slave": SLAVE_NOT_AVAILABLE, or FLUSH_SLAVE_TIMEOUT.

    slave      at work ──┤ lost                ├─ there again ── copies the log again ──
    its master  SEND_OK ─┤ SLAVE_NOT_AVAILABLE ┴───────────────┤ SEND_OK                  housekeeping + retry + C

The producer has its message stored and is told how safely: a result, and no exception, so that it tries no other
broker (`DefaultMQProducerImpl.sendDefaultImpl`, `retryAnotherBrokerWhenNotStoreOK`). Where it is right such an answer
is as good as any; a master that goes on with it though its slave has had its time is none that works.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from ...remoting.codes import ResponseCode
from ..faults.fault import Loss
from ..topology import broker_name
from .intervals import Stretch, grouped, merged, without
from .link import earliest_effect_ms, link_causes, process_causes
from .promises import Obligation, ObligationKind, obligations
from .roles import elects, members_of, unsettled
from .world import World, once

SYNCHRONIZED_MS = 13_000.0
"""`SlaveSynchronize`: each 10 s, with calls of 3 s."""
COPIED_MS = 10_000.0
"""For how long a message that was acknowledged may be on its way to a slave: HAConnection waits 5 s for news."""
Table = tuple[str, int, str]
"""NameServer, incarnation and broker name."""


def slaves_of(world: World, master: str) -> tuple[str, ...]:
    """The slaves of this master by name."""
    return tuple(node.name for node in world.of_kind("slave") if broker_name(node.name) == master)


def offsets_vary(world: World, master: str, at_ms: float) -> bool:
    """Whether a consumer may have committed to, or read from, one of the name's brokers what the other does not know: a
    slave has its master's offsets each 10 s, and a master never has its slave's. A consumer uses the slave while its
    NameServer does not know the master."""
    if not slaves_of(world, master):
        return False
    asked = {server.name for consumer in world.of_kind("consumer") for server in world.listed(consumer.name)}
    if asked - {server.name for server in world.listed(master)}:
        return True
    return any(fault.start_ms < at_ms and not world.harmless(fault) for fault in world.faults)


def keeps_own_offsets(world: World, slave: str, from_ms: float, to_ms: float) -> bool:
    """Whether the slave had only those offsets all that time that it had before, or that consumers committed to it: no
    process of its master ran, nor just before."""
    master, since_ms = broker_name(slave), from_ms - SYNCHRONIZED_MS
    if not world.is_ours(slave) or elects(world, slave) or world.acts:
        return False
    return not any(life.start_ms <= to_ms and since_ms <= life.end_ms for life in world.lives_of(master))


@once
def offsets_copied(world: World, master: str) -> Sequence[Stretch]:
    """When each slave of the name has taken its master's offsets over each 10 s, and copied its messages, for certain:
    nothing was done to them, to a NameServer or to a link of theirs, and a registration since has told the slaves of
    their master. Of somebody else's brokers nothing is certain, nor after an operator's first act."""
    family = (master, *slaves_of(world, master))
    by_hand_ms = min((act.began_ms for act in world.acts), default=world.end_ms)
    lists = {frozenset(server.name for server in world.listed(node)) for node in family}
    theirs = not all(world.is_ours(node) for node in family)
    others = any(act.f != "switch" for act in world.acts)
    if len(family) == 1 or len(lists) > 1 or theirs or others or elects(world, master):
        return []
    after_ms = world.timers_of(*family).registers_ms + 2 * SYNCHRONIZED_MS
    servers = {server.name for server in world.of_kind("name_server")}
    taken = [
        Stretch(earliest_effect_ms(world, fault), fault.end_ms + after_ms)
        for fault in world.faults
        if not world.harmless(fault) and fault.source in {*family, *servers}
    ]
    changes = [ms for node in family for life in world.lives_of(node) for ms in (life.start_ms, life.end_ms)]
    changes += [move.from_ms for node in world.nodes if node.name in family for move in node.moves]
    taken += [Stretch(at_ms, at_ms + after_ms) for at_ms in changes if at_ms < world.end_ms]
    return without(min(changes, default=0.0), by_hand_ms, merged(taken))


class Made(NamedTuple):
    """A slave that was made master by hand."""

    node: str
    at_ms: float
    copied_ms: float
    """The last moment before in which it copied for certain; -inf: there is none."""


@once
def made_masters(world: World) -> Mapping[str, Made]:
    """By broker name."""
    acts = [(broker_name(act.node or ""), act) for act in world.acts if act.f == "switch" and act.may_be_done]
    copied = {name: [one for one in offsets_copied(world, name) if one.start_ms < act.began_ms] for name, act in acts}
    last = {name: max((one.end_ms for one in those), default=-math.inf) for name, those in copied.items()}
    return {name: Made(act.node or "", act.began_ms, last[name]) for name, act in acts}


@once
def held_names(world: World) -> Mapping[Table, Sequence[Stretch]]:
    """When the NameServer process must have some broker of the name, whichever, without a gap."""
    held = (o for o in obligations(world) if o.demand is not ObligationKind.DROP)
    of = grouped((table_of(o), Stretch(o.from_ms, o.to_ms)) for o in held)
    return {table: merged(stretches) for table, stretches in of.items()}


def table_of(o: Obligation) -> Table:
    return o.name_server, o.incarnation, broker_name(o.broker)


CODES = (int(ResponseCode.SLAVE_NOT_AVAILABLE), int(ResponseCode.FLUSH_SLAVE_TIMEOUT))
HOUSEKEEPING_MS, RETRY_MS = 20_000.0, 5_000.0
"""`haHousekeepingInterval`: after so long without a word either end gives the other up. A slave then dials each 5 s."""
SYNC_FLUSH_TIMEOUT_MS = 5_000.0
"""For so long a SYNC_MASTER waits for a slave before it answers FLUSH_SLAVE_TIMEOUT (`syncFlushTimeout`)."""
_SHUT = (Loss.SILENT, Loss.CLOSED)
_ALWAYS = (Stretch(-math.inf, math.inf),)


def again_ms(world: World) -> float:
    """How long after its end a fault of a slave may still keep its master from waiting for it."""
    return HOUSEKEEPING_MS + RETRY_MS + world.timers.C_ms


@once
def unreplicated(world: World) -> Mapping[str, Sequence[Stretch]]:
    """Broker name to when its master may be without a slave that it could wait for; names where it never waits are
    left out."""
    masters = {node.name for node in world.of_kind("broker")}
    return {name: _of(world, name) for name in members_of(world) if name in masters and _waits(world, name)}


@once
def alone(world: World) -> Mapping[str, Sequence[Stretch]]:
    """Broker name to when no process of a slave of its was there, so that its master cannot answer SEND_OK; names whose
    masters never wait, or are elected, are left out."""
    masters = [node.name for node in world.of_kind("broker")]
    names = [name for name in masters if not elects(world, name) and _waits(world, name)]
    return {name: gone for name in names if (gone := _without_slaves(world, name))}


def slave_processes_gone(world: World, master: str) -> Sequence[Stretch]:
    """When no process of a slave runs, which this SYNC_MASTER knows at once, for a process's end closes its channels;
    nothing of another master, or of an elected master."""
    return _without_slaves(world, master, unheard=False) if master in alone(world) else []


class Wait(NamedTuple):
    """A SYNC_MASTER does not answer with this code sooner than so long after it read a send."""

    stretch: Stretch
    code: ResponseCode
    least_ms: float


def waits_for_slaves(world: World, master: str) -> Iterator[Wait]:
    """While nothing is done to the SYNC_MASTER itself, whose stop ends all waits. A slave has the message, and its
    master knows that, a round trip of the slave's link later at the soonest: only links are counted on which one fault
    is in force and none begins or ends, for then bytes may overtake the delay."""
    theirs = not all(world.is_ours(node) for node in (master, *slaves_of(world, master)))
    if theirs or elects(world, master) or not _waits(world, master) or any(act.f == "switch" for act in world.acts):
        return
    hit = merged(Stretch(one.begins_from_ms, one.end_ms) for one in world.process_faults(master))
    for life in world.lives_of(master):
        for stretch in without(life.start_ms, min(life.end_ms, world.end_ms), hit):
            yield Wait(stretch, ResponseCode.FLUSH_SLAVE_TIMEOUT, SYNC_FLUSH_TIMEOUT_MS)
    for delays in product(*(_delays(world, slave, master) for slave in slaves_of(world, master))):
        start_ms = max((start_ms for (start_ms, _), _ in delays), default=math.inf)
        end_ms = min((end_ms for (_, end_ms), _ in delays), default=math.inf)
        if start_ms < end_ms:
            yield Wait(Stretch(start_ms, end_ms), ResponseCode.SUCCESS, min(least_ms for _, least_ms in delays))


def _delays(world: World, slave: str, master: str) -> Sequence[tuple[Stretch, float]]:
    """When the slave's link to its master has one fault, and the least round trip that this fault makes; Toxiproxy's
    delays are whole milliseconds."""
    faults, late_ms = world.link_faults(slave, master), world.timers.delivery_ms
    return [
        (Stretch(one.start_ms + late_ms, one.heals_from_ms), one.kind.delay.round_trip_min_ms - world.timers.time_scale)
        for one in faults
        if one.kind.delay is not None
        and not any(o is not one and o.overlaps(one.begins_from_ms, one.end_ms) for o in faults)
    ]


def _without_slaves(world: World, master: str, *, unheard: bool = True) -> Sequence[Stretch]:
    """From the first slave's start on; a channel that is reset, or lost, shows a delivery later at most. A slave that
    is paused acknowledges nothing, and a slave that is cut off acknowledges nothing that its master hears (`unheard`).
    """
    slaves, late_ms = slaves_of(world, master), world.timers.delivery_ms
    lives = [
        Stretch(*awake)
        for slave in slaves
        for life in world.lives_of(slave)
        for awake in without(life.start_ms, life.end_ms + late_ms, _unheard(world, slave, master) if unheard else [])
    ]
    if not lives or master in made_masters(world):
        return []
    return without(lives[0].start_ms, world.end_ms, merged(lives))


def _unheard(world: World, slave: str, master: str) -> Sequence[Stretch]:
    """Of others' slaves, no link to their master is known."""
    causes = link_causes(world, slave, master) if world.is_ours(slave) else []
    shut = [(one.start_ms, min(one.end_ms, one.heals_from_ms)) for one in causes if one.loss in _SHUT]
    gone = (*shut, *world.paused(slave))
    return merged(Stretch(start_ms + world.timers.delivery_ms, end_ms) for start_ms, end_ms in gone)


def _waits(world: World, name: str) -> bool:
    """Whether whoever is master of the name answers once others have the message, too."""
    return elects(world, name) or world.setting(name, "brokerRole") == "SYNC_MASTER"


def _of(world: World, name: str) -> Sequence[Stretch]:
    slaves, late_ms = slaves_of(world, name), again_ms(world)
    if not slaves:
        return _ALWAYS
    if elects(world, name):
        return merged(Stretch(start_ms, end_ms + late_ms) for start_ms, end_ms in unsettled(world, name))
    there = [stretch for slave in slaves for stretch in without(-math.inf, math.inf, may_not_copy(world, name, slave))]
    switched = (act.began_ms for act in world.acts if act.f == "switch" and broker_name(act.node or "") == name)
    alone_from_ms = min(switched, default=math.inf)  # its old slave was its only one, or follows nobody yet
    return merged([*without(-math.inf, math.inf, there), Stretch(alone_from_ms, math.inf)])


@once
def may_not_copy(world: World, master: str, slave: str) -> Sequence[Stretch]:
    """When this slave may be none that the master waits for: it, its master, or the link between them is lost, or it
    has only just begun to copy."""
    causes = [*process_causes(world, slave), *process_causes(world, master)]
    causes += [*link_causes(world, slave, master), *link_causes(world, master, slave)]
    late_ms = again_ms(world)
    return merged(Stretch(min(one.begins_from_ms, one.start_ms), one.end_ms + late_ms) for one in causes)
