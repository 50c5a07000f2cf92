"""A restart at another address under the same name, as a pod of Kubernetes that is scheduled anew.

{at_s: 60, do: restart, nodes: [broker-a], new_address: true}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..errors import ScenarioError
from ..faults.by_hand import ByHand
from ..faults.process_faults import Restart, RestartStorm, RollingRestart
from ..topology import NodeKind, Topology, later_address
from .series import planned

if TYPE_CHECKING:
    from .action import ActionModel

Members = Callable[[str], Sequence[str]]
_THAT_MOVE = (NodeKind.BROKER, NodeKind.SLAVE)


class OfCluster(Protocol):
    @property
    def clients(self) -> Mapping[str, object]: ...


class OfScenario(Protocol):
    @property
    def timeline(self) -> Sequence[ActionModel]: ...
    @property
    def cluster(self) -> OfCluster: ...
    def topology(self) -> Topology: ...
    def implementations(self) -> dict[str, str]: ...


def addresses_of(timeline: Sequence[ActionModel], members: Members) -> dict[str, tuple[str, ...]]:
    """Node to the address of its first process, its second, …, each by its name in links (`later_address`); of those
    that do not keep theirs."""
    if not any(map(_moves, timeline)):
        return {}
    found: dict[str, list[str]] = {}
    for one in planned(timeline, members, None).actions:
        if isinstance(one.action.what, Restart):
            for node in (each for name in one.action.nodes for each in members(name)):
                turns = found.setdefault(node, [node])
                new = later_address(node, len(set(turns)) + 1)
                turns.append(new if one.action.what.new_address else turns[-1])
    return {node: tuple(turns) for node, turns in found.items() if len(set(turns)) > 1}


def check_new_addresses(scenario: OfScenario, *, file: str) -> None:
    """ScenarioError for the first restart at another address that cannot be, and for what would lose sight of it."""
    topology, apaches = scenario.topology(), scenario.implementations()
    moved: set[str] = set()
    for index, entry in enumerate(scenario.timeline):
        if not _moves(entry):
            continue
        key = f"timeline.{index}.new_address"
        for node in (each for name in entry.nodes for each in topology.members(name)):
            if topology.kinds[node] not in _THAT_MOVE:
                raise ScenarioError(file, key, "true", f"a restart of brokers or of NameServers: {node} is neither")
            moved.add(node)
        if others := {**apaches, **scenario.cluster.clients}:
            allowed = f"brokers and clients that are all ours: {next(iter(others))} is not"
            raise ScenarioError(file, key, "true", allowed)
    for index, entry in enumerate(scenario.timeline) if moved else ():
        nodes = {each for name in entry.nodes for each in topology.members(name)}
        named = {getattr(entry.what, "broker", None), getattr(entry.what, "address", None)}
        if isinstance(entry.what, RestartStorm) and (hit := moved & nodes):
            allowed = f"not of {min(hit)}, which gets another address: only the seed tells how often it was started"
            raise ScenarioError(file, f"timeline.{index}.nodes", entry.do, allowed)
        if isinstance(entry.what, ByHand) and (hit := moved & (nodes | named)):
            allowed = f"an act that is not about {min(hit)}, which gets another address"
            raise ScenarioError(file, f"timeline.{index}", entry.do, allowed)


def _moves(entry: ActionModel) -> bool:
    return isinstance(entry.what, Restart | RollingRestart) and entry.what.new_address
