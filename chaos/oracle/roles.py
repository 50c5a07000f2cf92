"""Which broker of a name may be its master, and when; and how long a name may have none, or two.

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
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...remoting.node.profile import Profile
from ..topology import broker_name
from .intervals import Stretch, merged
from .timers import Timers
from .windows import Window
from .world import World

NO_ID = -1
"""The brokerId of one that has not been told yet what it is."""
HEARTBEAT_MS, MISSED = 2_000.0, 3
VOTE_MS, VOTES = 1_000.0 + 3_000.0, 2


class Members(NamedTuple):
    """The brokers of one name."""

    nodes: Mapping[str, str | None]
    """Node to address."""
    elects: bool
    """Whether they elect their master."""
    has_acting_master: bool

    def owner(self, address: str) -> str | None:
        return next((node for node, at in self.nodes.items() if at == address), None)


def members_of(world: World) -> Mapping[str, Members]:
    """Broker name to its brokers."""

    def found() -> Mapping[str, Members]:
        names: dict[str, dict[str, str | None]] = {}
        for node in world.of_kind("broker", "slave"):
            names.setdefault(broker_name(node.name), {})[node.name] = node.address
        return {name: _members(world, nodes) for name, nodes in names.items()}

    return world.memoized("members", found)


def _members(world: World, nodes: Mapping[str, str | None]) -> Members:
    def says(setting: str) -> bool:
        said = world.run.get("settings") or {}
        return any(str((said.get(node) or {}).get(setting)).lower() == "true" for node in nodes)

    acting = world.timers.profile is Profile.V5_X and says("enableSlaveActingMaster")
    return Members(nodes, says("enableDLegerCommitLog") or says("enableControllerMode"), acting)


def may_be_master(world: World, node: str, to_ms: float) -> bool:
    """Whether the broker may be its name's master at any time up to then."""
    members = members_of(world).get(broker_name(node))
    return (members is not None and members.elects) or 0 in world.ids_of(node, -math.inf, to_ms)


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


def has_id(world: World, name: str, id_: int, from_ms: float, to_ms: float) -> bool:
    """Whether some broker of the name has this id at some time of these."""
    members = members_of(world)[name]
    if members.elects and 0 <= id_ <= len(members.nodes):  # dLegerSelfId counts from 0, the ids made of it from 1
        return True
    return any(id_ in world.ids_of(node, from_ms, to_ms) for node in members.nodes)


def election(timers: Timers) -> Window:
    """From when a leader is lost, or most of a group are there, until a NameServer has heard of the new one."""
    latest_ms = MISSED * HEARTBEAT_MS + VOTES * VOTE_MS + timers.B_ms
    return Window(0, latest_ms, "3 heartbeats of 2 s + 2 votes of 4 s + B", "a master is elected", 3)


def two_masters(timers: Timers, members: Members) -> Window:
    """For how long two brokers of the name may both say that they are its master."""
    row = "one master"
    if not members.elects:
        return Window(0, 0, "never", row)
    return Window(0, MISSED * HEARTBEAT_MS + timers.B_ms, "3 heartbeats of 2 s + B", row, 2)


def unsettled(world: World, name: str) -> Sequence[Stretch]:
    """When the name's brokers may be unable to elect, or to tell it: a fault of one, or between them, and the election
    after it."""
    nodes = members_of(world)[name].nodes
    late_ms = election(world.timers).latest_ms
    hit = [fault for node in nodes for fault in world.process_faults(node)]
    hit += [fault for fault in world.faults if fault.target is not None and {fault.source, fault.target} & nodes.keys()]
    return merged(Stretch(fault.start_ms, fault.end_ms + late_ms) for fault in hit)
