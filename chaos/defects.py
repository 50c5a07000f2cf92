"""Planted defects: named ways for a node to be wrong, and the checks that must find each, in which scenario.

A defect replaces a small method on one finished node, so that the programs themselves know nothing of defects. The
self-test runs each in its scenario, beside the same scenario without it; a check that cannot find its defect, or that
finds one which is not there, is worth nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..actors.broker.server import Broker
from ..actors.broker.store import Append, PutMessage
from ..actors.namesrv.server import NameServer
from ..clients.name_server_client import NameServerClient
from ..remoting.network import Address
from ..remoting.node import Node
from ..remoting.transport import Connection
from .topology import NodeKind
from .workloads.consumer import ConsumerNode
from .workloads.prober import ProberNode
from .workloads.producer import ProducerNode

STORE_DELAY_S = 5.0
"""How long the broker that acknowledges too early keeps a message to itself."""

_CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One way to be wrong. `nodes`: the names it is planted in; none means every node of `kinds`."""

    name: str
    what: str
    kinds: tuple[NodeKind, ...]
    nodes: tuple[str, ...] = ()
    scenario: str
    caught_by: frozenset[str]
    plant: Callable[[Any], None]

    def is_for(self, name: str, kind: NodeKind) -> bool:
        return kind in self.kinds and (not self.nodes or name in self.nodes)


def _never_expires(server: NameServer) -> None:
    lost = server._channel_lost

    def channel_lost(connection: Connection, reason: str) -> None:
        if reason != "idle":
            lost(connection, reason)

    _replace(server, "_expire_brokers", lambda: None)
    _replace(server, "_channel_lost", channel_lost)


def _keeps_brokers_of_closed_channels(server: NameServer) -> None:
    _replace(server, "_channel_lost", lambda connection, reason: None)


def _skips_one_name_server(broker: Broker) -> None:
    targets = broker._registration_targets

    def all_but_the_first() -> Sequence[Address]:
        return targets()[1:]

    _replace(broker, "_registration_targets", all_but_the_first)


def _acknowledges_before_it_stores(broker: Broker) -> None:
    store, clock = broker.store, broker._context.clock
    append = store.append
    pending: Counter[tuple[str, int]] = Counter()

    def acknowledge(messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        queue = (messages[0].topic, messages[0].queue_id)
        offset = store.max_offset(*queue) + pending[queue]
        pending[queue] += len(messages)

        def land() -> None:
            pending[queue] -= len(messages)
            append(messages, now_ms=now_ms)

        clock.call_later(STORE_DELAY_S, land)
        return Append(offset, tuple(range(len(messages))))

    _replace(store, "append", acknowledge)


def _name_server_client_of(node: Node) -> NameServerClient:
    assert isinstance(node, ProducerNode | ConsumerNode)
    return node.instance.name_server


def _in_every_name_server_client(change: Callable[[NameServerClient], None]) -> Callable[[Node], None]:
    def plant(node: Node) -> None:
        if isinstance(node, ProberNode):
            node.plant = change
        else:
            change(_name_server_client_of(node))

    return plant


def _always_starts_at_the_first(client: NameServerClient) -> None:
    _replace(client.selector, "shuffle", lambda addresses: None)
    _replace(client.selector, "_start_index", lambda: -1)


def _never_moves_on(client: NameServerClient) -> None:
    first: list[int] = []
    next_index = client.selector.next_index

    def same_again() -> int:
        if not first:
            first.append(next_index())
        return first[0]

    _replace(client.selector, "next_index", same_again)


def _leaves_at_every_poll(node: Node) -> None:
    assert isinstance(node, ProducerNode | ConsumerNode)
    selector = _name_server_client_of(node).selector

    def forget_choice() -> None:
        selector.chosen = None

    _replace(node.instance, "_before_poll", forget_choice)


def _ignores_new_routes(node: ProducerNode) -> None:
    cache = node.instance.route_cache
    take, known = cache._apply, set[str]()

    def apply(topic: str, route: Any) -> Any:
        if topic in known:
            return None
        known.add(topic)
        return take(topic, route)

    _replace(cache, "_apply", apply)


def _replace(target: object, name: str, with_what: object) -> None:
    """Replace the method on this one object; AttributeError when there is none, so that no defect plants nothing."""
    getattr(target, name)
    setattr(target, name, with_what)


_ALL = (
    Defect(
        name="name-server-never-expires",
        what="a NameServer keeps brokers that have gone silent: no expiry, no idle close",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario="broker-partition",
        caught_by=frozenset({"routes_are_true"}),
        plant=_never_expires,
    ),
    Defect(
        name="name-server-ignores-close",
        what="every NameServer keeps a broker whose connection closed, until it expires",
        kinds=(NodeKind.NAME_SERVER,),
        scenario="broker-crash",
        caught_by=frozenset({"routes_are_true", "dead_brokers_avoided"}),
        plant=_keeps_brokers_of_closed_channels,
    ),
    Defect(
        name="broker-skips-a-name-server",
        what="a broker never registers with the first NameServer of its list",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="smoke",
        caught_by=frozenset({"routes_converge", "routes_are_true"}),
        plant=_skips_one_name_server,
    ),
    Defect(
        name="broker-acknowledges-before-store",
        what=f"a broker acknowledges a message {STORE_DELAY_S:g} s before it stores it",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="broker-crash",
        caught_by=frozenset({"no_acknowledged_loss"}),
        plant=_acknowledges_before_it_stores,
    ),
    Defect(
        name="client-starts-at-the-first",
        what="every client takes the first NameServer of the list as it was given",
        kinds=_CLIENTS,
        scenario="smoke",
        caught_by=frozenset({"name_server_selection"}),
        plant=_in_every_name_server_client(_always_starts_at_the_first),
    ),
    Defect(
        name="client-leaves-at-every-poll",
        what="clients choose another NameServer at every route poll",
        kinds=(NodeKind.PRODUCER, NodeKind.CONSUMER),
        scenario="smoke",
        caught_by=frozenset({"name_server_selection"}),
        plant=_leaves_at_every_poll,
    ),
    Defect(
        name="client-never-moves-on",
        what="clients go back to the NameServer that has just failed them",
        kinds=_CLIENTS,
        scenario="name-server-partition",
        caught_by=frozenset({"name_server_selection"}),
        plant=_in_every_name_server_client(_never_moves_on),
    ),
    Defect(
        name="producer-ignores-new-routes",
        what="producers keep the first route they got",
        kinds=(NodeKind.PRODUCER,),
        scenario="broker-crash",
        caught_by=frozenset({"dead_brokers_avoided"}),
        plant=_ignores_new_routes,
    ),
)

DEFECTS: dict[str, Defect] = {defect.name: defect for defect in _ALL}
