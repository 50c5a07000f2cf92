"""Restarts under the same name at another address (`new_address`), like a rescheduled pod of Kubernetes.

    {at_s: 60, do: restart, nodes: [broker-a], new_address: true}    60 broker-a has its second address

For RocketMQ, a NameServer that returns at another address is a new NameServer, and the old NameServer is removed.

    {at_s: 60, do: restart, nodes: [ns-0], new_address: true}        60 ns-0 is removed · ns-3 joins
    lists by default, and lists with ns-0                            keep ns-0's old address, where nobody listens
    ns-0 in the timeline from then on (and in lists by HTTP)         means ns-3

In history, oracle and checks no NameServer ever changes its address.
"""

import re
from collections.abc import Mapping, Sequence

from ..errors import NotAllowed
from ..faults.kinds import NameServerList
from ..faults.link_faults import Heal
from ..faults.process_faults import Kill, Remove, Restart, RollingRestart, Stop
from ..topology import GROUPS, NodeKind, Topology, later_address
from .action import ActionModel
from .series import Members, nodes_of, planned

_LISTING = (*GROUPS["brokers"], NodeKind.PRODUCER, NodeKind.CONSUMER)


def addresses_of(timeline: Sequence[ActionModel], members: Members) -> dict[str, tuple[str, ...]]:
    """Return the address of each successive process, for nodes that change their address. Each address is a name that
    links can contain (`later_address`)."""
    if not any(map(moves, timeline)):
        return {}
    found: dict[str, list[str]] = {}
    for one in planned(timeline, members, None).actions:
        if isinstance(one.action.what, Restart):
            for node in nodes_of(one.action.nodes, members):
                turns = found.setdefault(node, [node])
                new = later_address(node, len(set(turns)) + 1)
                turns.append(new if one.action.what.new_address else turns[-1])
    return {node: tuple(turns) for node, turns in found.items() if len(set(turns)) > 1}


def moves(entry: ActionModel) -> bool:
    return isinstance(entry.what, Restart | RollingRestart) and entry.what.new_address


def readdressed(
    timeline: Sequence[ActionModel], topology: Topology
) -> tuple[tuple[ActionModel, ...], Mapping[str, float], tuple[str, ...]]:
    """Replace each NameServer's change of address by a removal and the join of a new NameServer. Returns the timeline,
    the join time of each new NameServer, and the NameServers of the start, which clients' lists keep."""
    first = topology.of(NodeKind.NAME_SERVER)
    now, joins = {name: name for name in first}, dict[str, float]()
    done: list[ActionModel] = []
    for index, entry in enumerate(timeline):
        moved = _moved(entry, topology)
        if moved and (rest := [node for node in nodes_of(entry.nodes, topology.members) if node not in first]):
            allowed = f"NameServers alone, and others in an entry of their own: {rest[0]} is none"
            raise NotAllowed(f"timeline.{index}.nodes", ", ".join(entry.nodes), allowed)
        for number, node in enumerate(moved):
            down_s, every_s = _times(entry)
            at_s, later = round(entry.at_s + number * every_s, 6), f"ns-{len(first) + len(joins)}"
            if not _taken_away(done, now[node]):
                done.append(ActionModel(at_s=at_s, what=Remove(), nodes=(now[node],)))
            joins[later] = round(at_s + down_s, 6)
            if not joins[later]:
                allowed = f"a later time, for {node} to return at another address"
                raise NotAllowed(f"timeline.{index}.at_s", "0", allowed)
            now[node] = later
        if not moved:
            done.append(_renamed(entry, now))
    if not joins:
        return tuple(timeline), {}, ()
    done.sort(key=lambda entry: entry.at_s)
    if max(joins.values()) > max(entry.at_s for entry in done):
        done.append(ActionModel(at_s=max(joins.values()), what=Heal()))  # until when the timeline lasts
    return tuple(done), joins, first


def _moved(entry: ActionModel, topology: Topology) -> list[str]:
    if not moves(entry):
        return []
    return [node for node in nodes_of(entry.nodes, topology.members) if topology.kinds[node] is NodeKind.NAME_SERVER]


def _times(entry: ActionModel) -> tuple[float, float]:
    """Return how long each NameServer is away, and how long after the previous NameServer it leaves."""
    rolling = entry.what
    return (rolling.down_s, rolling.pause_s + rolling.down_s) if isinstance(rolling, RollingRestart) else (0.0, 0.0)


def _taken_away(done: list[ActionModel], node: str) -> bool:
    """Whether the NameServer is down already, so that it was removed when it went down."""
    at = next((i for i in reversed(range(len(done))) if node in done[i].nodes), None)
    if at is None or not isinstance(done[at].what, Kill | Stop):
        return False
    entry, others = done[at], tuple(one for one in done[at].nodes if one != node)
    done[at] = ActionModel(at_s=entry.at_s, what=Remove(), nodes=(node,))
    if others:
        done.insert(at, entry.model_copy(update={"nodes": others}))
    return True


def _renamed(entry: ActionModel, now: Mapping[str, str]) -> ActionModel:

    def named(text: str) -> str:
        return re.sub(r"\bns-\d+\b", lambda found: now.get(found[0], found[0]), text)

    changed: dict[str, object] = {"nodes": tuple(map(named, entry.nodes)), "links": tuple(map(named, entry.links))}
    if isinstance(entry.what, NameServerList):
        changed["what"] = entry.what.model_copy(update={"name_servers": tuple(map(named, entry.what.name_servers))})
    return entry.model_copy(update=changed)


def listing(topology: Topology) -> tuple[str, ...]:
    """Return the nodes that have a list of NameServers."""
    return topology.of(*_LISTING)
