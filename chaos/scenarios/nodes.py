"""What a scenario says of single nodes (`nodes:`), held against who there is and when what happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ...remoting.node.network import Address
from ..errors import ScenarioError, nearest
from ..topology import NodeKind, Topology, broker_name, is_slave
from ..topology import listed as listed_names
from .timeline import Step


class OfNode(Protocol):
    """An entry of `nodes:`."""

    @property
    def joins_at_s(self) -> float | None: ...
    @property
    def name_servers(self) -> tuple[str, ...] | None: ...
    @property
    def in_order(self) -> bool: ...
    @property
    def later_orders(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def cluster_name(self) -> str | None: ...
    @property
    def client_profile(self) -> str | None: ...


_MAY_HAVE = (NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.SLAVE, NodeKind.PRODUCER, NodeKind.CONSUMER)


def slaves_of(brokers: int, of_each: int, named: Iterable[str]) -> tuple[str, ...]:
    """The slaves of a cluster of so many masters: so many of each, and those that are named beside them."""
    masters = [f"broker-{chr(ord('a') + index)}" for index in range(brokers)]
    found = {f"{master}/{id_}" for master in masters for id_ in range(1, of_each + 1)}
    return tuple(sorted(found | {name for name in named if is_slave(name) and broker_name(name) in masters}))


def check_nodes(
    nodes: Mapping[str, OfNode], topology: Topology, timeline: Sequence[Step], steady_s: float, *, file: str
) -> None:
    """ScenarioError for the first node that is none, a list that names nobody, or a fault of who is not there yet."""
    known = topology.of(*_MAY_HAVE)
    ends_s = max((step.at_s for step in timeline), default=steady_s)
    for name, node in nodes.items():
        place = f"nodes.{name}"
        if name not in known:
            more = "; a slave is called by its master and its id, as in broker-a/1" if "/" in name else ""
            allowed = f"one of {listed_names(known)}{nearest(name, known)}{more}"
            raise ScenarioError(file, place, "a node of that name", allowed)
        if node.cluster_name is not None and topology.kinds[name] is not NodeKind.BROKER:
            allowed = "said of its master" if topology.kinds[name] is NodeKind.SLAVE else "said of a broker only"
            raise ScenarioError(file, f"{place}.cluster_name", node.cluster_name, allowed)
        if node.client_profile is not None and topology.kinds[name] not in (NodeKind.PRODUCER, NodeKind.CONSUMER):
            raise ScenarioError(file, f"{place}.client_profile", node.client_profile, "said of a client only")
        if node.name_servers is not None and topology.kinds[name] is NodeKind.NAME_SERVER:
            raise ScenarioError(file, f"{place}.name_servers", str([*node.name_servers]), "said of a broker or client")
        check_list(node.name_servers or (), topology, f"{place}.name_servers", file)
        if node.joins_at_s is None:
            continue
        if node.joins_at_s > ends_s:
            allowed = f"a time of the timeline, up to {ends_s:g} s, after which everything settles"
            raise ScenarioError(file, f"{place}.joins_at_s", f"{node.joins_at_s:g}", allowed)
        for index, step in enumerate(timeline):
            if name in step.nodes and step.at_s < node.joins_at_s:
                did = f"{step.do} of {name} at {step.at_s:g} s"
                raise ScenarioError(
                    file, f"timeline.{index}.nodes", did, f"from {node.joins_at_s:g} s on, when it joins"
                )
    for kind, who in ((NodeKind.BROKER, "broker"), (NodeKind.NAME_SERVER, "NameServer")):
        every = topology.of(kind)
        if nodes and every and all(name in nodes and nodes[name].joins_at_s is not None for name in every):
            raise ScenarioError(file, "nodes", f"joins_at_s of every {who}", f"at least one {who} from the start")


def check_in_order(
    nodes: Mapping[str, OfNode], topology: Topology, implementations: Mapping[str, str], *, file: str
) -> None:
    """ScenarioError where there is no list to keep to, or a program or profile that goes about it in its own way."""
    for name, node in nodes.items():
        place = f"nodes.{name}.in_order"
        for index, order in enumerate(node.later_orders):
            if not node.in_order or sorted(order) != sorted(node.name_servers or ()):
                allowed = "the entries of `name_servers` in another order, beside `in_order: true`"
                raise ScenarioError(file, f"nodes.{name}.later_orders.{index}", str([*order]), allowed)
        if not node.in_order:
            continue
        ours = topology.kinds[name] in (NodeKind.PRODUCER, NodeKind.CONSUMER) and name not in implementations
        if not ours or node.client_profile is not None:
            allowed = "said of a client of ours without client_profile: every other has an order of its own"
            raise ScenarioError(file, place, "true", allowed)
        if node.name_servers is None:
            raise ScenarioError(file, place, "true", "said beside `name_servers`, whose order it is")


def check_list(listed: Sequence[str], topology: Topology, place: str, file: str) -> None:
    """ScenarioError for an entry that is neither a NameServer nor an address, and for a list without a NameServer."""
    servers = topology.of(NodeKind.NAME_SERVER)
    for index, entry in enumerate(listed):
        if entry in listed[:index]:
            raise ScenarioError(file, f"{place}.{index}", entry, "each NameServer once")
        if entry not in servers and not _is_address(entry):
            allowed = f"one of {', '.join(servers)}, or host:port where nobody listens{nearest(entry, servers)}"
            raise ScenarioError(file, f"{place}.{index}", repr(entry), allowed)
    if listed and not any(entry in servers for entry in listed):
        raise ScenarioError(file, place, str(list(listed)), f"a list with at least one of {', '.join(servers)}")


def _is_address(entry: str) -> bool:
    try:
        Address.parse(entry)
    except ValueError:
        return False
    return True
