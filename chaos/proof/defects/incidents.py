"""Reported bugs of RocketMQ, each for the shipped incident that repeats it. These bugs are run by `nemesrv museum`, not
by the self-test. An incident's file names the checks that must find its bug.
"""

from collections.abc import Sequence
from typing import Any

from ....actors.broker.server import Broker
from ....clients.name_servers import NameServerSelector
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ...defects import around, replace_part
from .planting import BROKERS, LASTING_CLIENTS, Planted, from_its_making, instance_of

planted = Planted()


@planted(LASTING_CLIENTS, "i05-list-replaced")
def client_keeps_the_removed_name_server(node: Node) -> None:
    """clients go on using their chosen NameServer when a new list no longer contains it"""
    selector, update = instance_of(node).name_server.selector, NameServerSelector.update

    def update_and_keep(addresses: Sequence[Address]) -> bool:
        chosen = selector.chosen
        changed = update(selector, addresses)
        selector.chosen = chosen
        return changed

    replace_part(selector, "update", update_and_keep)


@planted(BROKERS, "i18-list-grown")
@from_its_making
def broker_never_takes_a_new_list(broker: Broker) -> None:
    """brokers go on registering with the NameServers of their first list, and ignore later lists"""

    @around(broker, "_fetch_name_servers")
    async def fetch_once(fetch: Any) -> None:
        if not broker._fetched:
            await fetch()


@planted(BROKERS, "i19-list-shrunk")
def broker_keeps_the_removed_name_server(broker: Broker) -> None:
    """brokers go on registering with NameServers that were removed from the brokers' list"""
    seen = dict[Address, None]()

    @around(broker, "_registration_targets")
    def every_one_so_far(targets: Any) -> Sequence[Address]:
        seen.update(dict.fromkeys(targets()))
        return tuple(seen)


@planted(BROKERS, "i20-members-counted-twice")
def broker_counts_members_by_channel(broker: Broker) -> None:
    """brokers count a group's member once for each of its channels, including ended channels until they expire"""
    replace_part(broker.services.clients, "channel_lost", lambda channel_id: [])
