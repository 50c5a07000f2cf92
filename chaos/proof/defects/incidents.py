"""Bugs of RocketMQ's as they were reported, each for the incident among the shipped scenarios that repeats it.

Not the self-test's: `nemesrv museum` runs them, and the incident's file names the checks that must find each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....actors.broker.server import Broker
from ....clients.name_server_client import NameServerClient
from ....clients.name_servers import NameServerSelector
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ...scenarios.defect import Defect, in_its_parts, replace_part
from ...topology import NodeKind
from .client import instance_of


def _keeps_its_choice(client: NameServerClient) -> None:
    """The choice outlives the list that it was from, and so does its channel (`NettyRemotingClient`)."""
    selector, update = client.selector, NameServerSelector.update

    def update_and_keep(addresses: Sequence[Address]) -> bool:
        chosen = selector.chosen
        changed = update(selector, addresses)
        selector.chosen = chosen
        return changed

    replace_part(selector, "update", update_and_keep)


def _client_keeps(node: Node) -> None:
    _keeps_its_choice(instance_of(node).name_server)


def _broker_never_asks_again(broker: Broker) -> None:
    fetch = broker._fetch_name_servers

    async def fetch_once() -> None:
        if not broker._fetched:
            await fetch()

    replace_part(broker, "_fetch_name_servers", fetch_once)


def _broker_keeps_them_all(broker: Broker) -> None:
    targets, seen = broker._registration_targets, dict[Address, None]()

    def every_one_so_far() -> Sequence[Address]:
        seen.update(dict.fromkeys(targets()))
        return tuple(seen)

    replace_part(broker, "_registration_targets", every_one_so_far)


def _broker_forgets_no_channel(broker: Broker) -> None:
    replace_part(broker.services.clients, "channel_lost", lambda channel_id: [])


_LASTING = (NodeKind.PRODUCER, NodeKind.CONSUMER)
_BROKERS = (NodeKind.BROKER,)

_ALL = (
    Defect(
        name="client-keeps-the-removed-name-server",
        what="clients stay with the NameServer that they have when a new list comes without it",
        kinds=_LASTING,
        plant=_client_keeps,
    ),
    Defect(
        name="broker-never-takes-a-new-list",
        what="brokers register with the NameServers of their first list, whatever list comes later",
        kinds=_BROKERS,
        plant=_broker_never_asks_again,
    ),
    Defect(
        name="broker-keeps-the-removed-name-server",
        what="brokers go on registering with NameServers that left their list",
        kinds=_BROKERS,
        plant=_broker_keeps_them_all,
    ),
    Defect(
        name="broker-counts-members-by-channel",
        what="brokers count a member of a group on each of its channels, those that have ended too, until they expire",
        kinds=_BROKERS,
        plant=in_its_parts(_broker_forgets_no_channel),
    ),
)

OF_INCIDENTS: dict[str, Defect] = {defect.name: defect for defect in _ALL}
