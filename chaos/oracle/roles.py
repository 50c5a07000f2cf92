"""Which broker of a name may be master, and when; and how long a name may have no master, or two.

    as started      the one with brokerId 0 is the master, and stays it; a slave becomes it by hand (`switch`) only
    acting master   5.x, enableSlaveActingMaster: while no id 0 is there, clients are told of the smallest id as 0, and
                    of its queues without the write permission; the table keeps its own id
    elected         DLedger (enableDLegerCommitLog), controller mode (enableControllerMode): any of them, and each
                    stands as -1 until it is told what it is

An election, and a leader that steps down, are DLedger's (`DLedgerConfig`, `DLedgerLeaderElector`), which no setting of
RocketMQ's changes:

    leader lost   followers miss maxHeartBeatLeak (3) heartbeats of heartBeatTimeIntervalMs (2 s), vote after 0.3 to 1 s
                  for at most 3 s, once more where the vote was split; the new leader registers at once
    cut off       a leader that has not heard of most for 3 heartbeats is one no longer, and registers so at once
    runs on       a leader that was stopped does not know yet that another was elected: where it was to register
                  meanwhile it takes id 0 back, leaves it as soon as it has heard, and the name has nobody there until
                  the new leader's own next tick

Under a controller (5.x) a master's closed channel, or 10 s of silence and a scan, has another of those in step elected,
which hears of it at its next question. A master that was stopped takes nothing back: its state version is the older
one, and NameServers leave its registrations out.

    leader     ── id 0 ──┤ lost
    others     ── 1, 2 ──┼── 3 heartbeats ─ votes ─┤ id 0 ──────────── a table shows it as 0, and 3; the lost one,
    table      ── 0,1,2 ─┴── 1, 2 (crash), 0,1,2 (hang) ┴── 0, 2 ────  whose id it was, no more
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...remoting.node.profile import Profile
from ..faults.fault import Loss
from ..settings.setting import CONTROLLER, ELECTS
from ..topology import broker_name
from .intervals import Stretch, merged
from .recorded import Fault
from .timers import Timers
from .windows import Window, drop_window
from .world import World, once

NO_ID = -1
"""The brokerId of one that has not been told yet what it is."""
HEARTBEAT_MS, MISSED = 2_000.0, 3
SILENT_MS, SCAN_MS, ASKS_MS = 10_000.0, 5_000.0, 5_000.0
"""Under a controller: how long it bears a broker's silence (controllerHeartBeatTimeoutMills), how often it looks for
that (scanNotActiveBrokerInterval), and how often brokers ask who is master (syncBrokerMetadataPeriod)."""
_ELECTED = "a master is elected"
VOTE_MS, VOTES = 1_000.0 + 3_000.0, 2


class Members(NamedTuple):
    """The brokers of one name."""

    nodes: Mapping[str, tuple[str, ...]]
    """Node to every address that it has, one after the other."""
    elected_by: str
    """Who elects their master: one of ELECTS, or "" for nobody."""
    has_acting_master: bool

    @property
    def elects(self) -> bool:
        """Whether they have their master elected."""
        return bool(self.elected_by)

    def owner(self, address: str) -> str | None:
        return next((node for node, at in self.nodes.items() if address in at), None)


@once
def members_of(world: World) -> Mapping[str, Members]:
    """Broker name to its brokers."""
    names: dict[str, dict[str, tuple[str, ...]]] = {}
    for node in world.of_kind("broker", "slave"):
        names.setdefault(broker_name(node.name), {})[node.name] = node.addresses
    return {name: _members(world, nodes) for name, nodes in names.items()}


def _members(world: World, nodes: Mapping[str, tuple[str, ...]]) -> Members:
    def says(setting: str) -> bool:
        said = world.run.get("settings") or {}
        return any(str((said.get(node) or {}).get(setting)).lower() == "true" for node in nodes)

    acting = world.timers.profile is Profile.V5_X and says("enableSlaveActingMaster")
    return Members(nodes, next((setting for setting in ELECTS if says(setting)), ""), acting)


def elects(world: World, node: str) -> bool:
    """Whether the broker is one of a name that elects its master."""
    members = members_of(world).get(broker_name(node))
    return members is not None and members.elects


def member_at(world: World, name: str, id_: int | None, address: str | None) -> str:
    """The node that registers so: of a name that elects its master its address says which, else its id."""
    members = members_of(world).get(name)
    if members is not None and members.elects:
        return members.owner(address or "") or f"{name} at {address}"
    return f"{name}/{id_}" if id_ else name


def removal(world: World, broker: str, loss: Loss) -> Window:
    """When NameServers name the broker no more, lost in this way: where another is elected in its place by then."""
    dropped = drop_window(world.timers, loss)
    members = members_of(world)[broker_name(broker)]
    elected = [election(world.timers, members)] if members.elects else []
    return min([dropped, *elected], key=lambda window: window.latest_ms)


def taken_over(world: World, node: str) -> Sequence[Stretch]:
    """When tables may lack a broker that nothing is wrong with: another of its name was silent, and may take id 0 from
    it as it is heard again; it is back on its own tick."""
    if not elects(world, node):
        return ()
    timers = world.timers
    late_ms = two_masters(timers, members_of(world)[broker_name(node)]).latest_ms + timers.R_ms + timers.B_ms
    others = (one for one in members_of(world)[broker_name(node)].nodes if one != node)
    ends = (fault.end_ms for one in others for fault in _silences(world, one) if fault.end_ms < math.inf)
    return merged(Stretch(end_ms, end_ms + late_ms + timers.C_ms) for end_ms in ends)


def _silences(world: World, node: str) -> Sequence[Fault]:
    """Faults through which it goes on without knowing what the others did."""
    links = [fault for fault in world.faults if fault.target is not None and node in (fault.source, fault.target)]
    faults = (*world.process_faults(node), *links)
    return [fault for fault in faults if not fault.loss(world.timers).closes]


class Settled(NamedTuple):
    """In [from_ms, to_ms) nothing happens to the name's brokers, nor to who is told, and most of them are there."""

    at_ms: float
    """The change that was last."""
    from_ms: float
    """From then on there must be a master; not before the change and its window."""
    to_ms: float
    after: str
    window: Window


def settled(world: World, name: str, name_server: str) -> Sequence[Settled]:
    """The stretches in which the NameServer must show a master of a name that elects it, who is at work."""
    members = members_of(world)[name]
    if not members.elects:
        return ()
    most = len(members.nodes) // 2 + 1
    near = {*members.nodes, name_server}
    hit = [fault for fault in world.faults if fault.source in near and (fault.target is None or fault.target in near)]
    elected = election(world.timers, members)
    changes = {world.timeline_ms: ("", elected)}
    for fault in hit:
        if not fault.loss(world.timers).closes:
            changes[fault.end_ms] = (f"{fault.fault_id} end", _again(world.timers, members))
        elif sum(at_work(world, node, fault.end_ms - 1.0) for node in members.nodes) < most:
            changes[fault.end_ms] = (f"{fault.fault_id} end", elected)
    for fault in hit:
        changes[fault.start_ms] = (f"{fault.fault_id} start", elected)
    found: list[Settled] = []
    times = sorted(at_ms for at_ms in changes if world.timeline_ms <= at_ms < world.end_ms)
    for at_ms, to_ms in pairwise([*times, world.end_ms]):
        after, window = changes[at_ms]
        # What an earlier change needs its time for goes on through the next.
        from_ms = max([at_ms + window.latest_ms, *(at + changes[at][1].latest_ms for at in times if at < at_ms)])
        away = {f.source for f in hit if f.target is None and f.overlaps(at_ms, to_ms)}
        parted = any(f.target is not None and f.overlaps(at_ms, to_ms) for f in hit)
        there = [node for node in members.nodes if node not in away and _lives(world, node, at_ms, to_ms)]
        if from_ms < to_ms and len(there) >= most and not parted and _lives(world, name_server, at_ms, to_ms, away):
            found.append(Settled(at_ms, from_ms, to_ms, after, window._replace(latest_ms=from_ms - at_ms)))
    return found


def _again(timers: Timers, members: Members) -> Window:
    """From when a broker is heard again until there is a master for good: it may take id 0 back, and leave it."""
    return election(timers, members).plus(timers.R_ms + timers.C_ms, "R + C")


def _lives(world: World, node: str, from_ms: float, to_ms: float, away: Collection[str] = ()) -> bool:
    lives = world.lives_of(node)
    return node not in away and (not lives or any(one.start_ms <= from_ms and one.end_ms >= to_ms for one in lives))


def at_work(world: World, node: str, at_ms: float) -> bool:
    """Whether the broker's process is there then, and runs."""
    stopped = any(fault.start_ms <= at_ms < fault.end_ms for fault in world.process_faults(node))
    return not stopped and _lives(world, node, at_ms, at_ms)


def shown_ids(world: World, node: str, from_ms: float, to_ms: float) -> tuple[int, ...]:
    """Under which ids routes may show the broker at some time of these: those that it may have, and 0 of a slave that
    acts as master."""
    ids, members = world.ids_of(node, from_ms, to_ms), members_of(world).get(broker_name(node))
    if members is None:
        return ids
    if members.elects:
        return (*range(len(members.nodes) + 1), NO_ID)
    return (*ids, 0) if members.has_acting_master and 0 not in ids else ids


def may_be_shown(world: World, name: str, id_: str, address: str) -> bool:
    """Whether routes may show that broker of the name so at some time though it did not begin with that id."""
    members = members_of(world).get(name)
    owner = members.owner(address) if members is not None else None
    return owner is not None and id_ in map(str, shown_ids(world, owner, math.inf, math.inf))


def election(timers: Timers, members: Members) -> Window:
    """From when a leader is lost, or most of a group are there, until a NameServer has heard of the new one."""
    if members.elected_by == CONTROLLER:
        latest_ms = SILENT_MS + SCAN_MS + ASKS_MS + timers.B_ms
        return Window(0, latest_ms, "10 s without a heartbeat + a scan each 5 s + a question each 5 s + B", _ELECTED, 4)
    latest_ms = MISSED * HEARTBEAT_MS + VOTES * VOTE_MS + timers.B_ms
    return Window(0, latest_ms, "3 heartbeats of 2 s + 2 votes of 4 s + B", _ELECTED, 3)


def two_masters(timers: Timers, members: Members) -> Window:
    """For how long two brokers of the name may both say that they are its master."""
    row = "one master"
    if not members.elects:
        return Window(0, 0, "never", row)
    if members.elected_by == CONTROLLER:
        return Window(0, ASKS_MS + timers.B_ms, "a question each 5 s + B", row, 2)
    return Window(0, MISSED * HEARTBEAT_MS + timers.B_ms, "3 heartbeats of 2 s + B", row, 2)


def unsettled(world: World, name: str) -> Sequence[Stretch]:
    """When the name's brokers may be unable to elect, or to tell it: a fault of one, or between them, and the election
    after it."""
    nodes = members_of(world)[name].nodes
    late_ms = election(world.timers, members_of(world)[name]).latest_ms
    hit = [fault for node in nodes for fault in world.process_faults(node)]
    hit += [fault for fault in world.faults if fault.target is not None and {fault.source, fault.target} & nodes.keys()]
    return merged(Stretch(fault.start_ms, fault.end_ms + late_ms) for fault in hit)
