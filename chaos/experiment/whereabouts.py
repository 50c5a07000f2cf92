"""Where the servers of an experiment listen, and what everybody is told of that: now, and after a restart elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from ...remoting.node.network import Address
from ..oracle.client_profiles import profile_of
from ..scenarios.model import Scenario
from ..topology import Link, NodeKind
from .nodes import about_node
from .outside_clients import about_client
from .stage import Stage


class Whereabouts:
    """`advertised` changes when a server moves; `listen` has every address that any of its processes has."""

    def __init__(self, scenario: Scenario, stage: Stage) -> None:
        topology = scenario.topology()
        self._turns = scenario.addresses()
        self._later = {node: [*dict.fromkeys(at)][1:] for node, at in self._turns.items()}
        self.listen = stage.addresses([*topology.servers, *chain.from_iterable(self._later.values())])
        self.advertised: dict[str, Address] = {}
        self._told: Mapping[str, Address] = {}
        self._servers, self._links = topology.servers, topology.links

    def upstreams(self) -> dict[Link, Address]:
        """Each link to where its peer listens, and one to each later address of a peer (`later_address`)."""
        found = {link: self.listen[link.peer] for link in self._links}
        return found | {
            Link(link.node, at): self.listen[at] for link in self._links for at in self._later.get(link.peer, ())
        }

    def told(self, advertised: Mapping[str, Address]) -> None:
        """What is told of each address from now on."""
        self._told = advertised
        self.advertised = {name: advertised[name] for name in self._servers}

    def of_processes(self) -> dict[str, list[tuple[Address, Address]]]:
        """Where each process of a server that moves listens, in order, and what is told of it."""
        return {node: [(self.listen[at], self._told[at]) for at in turns] for node, turns in self._turns.items()}

    def move(self, node: str) -> None:
        """The node is at its next address from now on."""
        self.advertised[node] = self._told[self._later[node].pop(0)]

    def row(self, scenario: Scenario, name: str, host: str | None) -> dict[str, object]:
        """What a `node` row says of the node, with the address that it has now."""
        address, clients = self.advertised.get(name), scenario.cluster.clients
        if name in clients:
            value = about_client(name, profile_of(clients[name], scenario.profile), NodeKind.EXTERNAL)
        else:
            value = about_node(scenario, name, scenario.topology().kinds[name])
        if host is not None:
            value["host"] = host
        return {"source": name, "address": address and str(address), "value": value}

    def of(self, names: Iterable[str]) -> dict[str, Address]:
        """What is told of these now."""
        return {name: self.advertised[name] for name in names}
