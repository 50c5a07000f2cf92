"""The links that an action is about: those that it names, and those to the NameServers that clients sit on now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager

from ...remoting.node.network import Address
from ..scenarios.action import ActionModel, is_chosen
from ..shapes import Stream
from ..topology import Link, NodeKind, Topology
from .stage import Nodes


def chosen_links(
    action: ActionModel,
    topology: Topology,
    nodes: Nodes,
    advertised: Mapping[str, Address],
    *,
    but: Collection[str],
    or_not_done: Callable[[str, str], AbstractContextManager[None]],
) -> dict[Link, Stream]:
    """Each with its directions. `but`: nodes that cannot be asked, as a fault has stopped them."""
    known = [expression for expression in action.links if not is_chosen(expression)]
    links = topology.parse_streams(*known)
    if len(known) == len(action.links):
        return links
    names = {address: name for name, address in advertised.items()}
    for client in topology.of(NodeKind.PRODUCER, NodeKind.CONSUMER):
        chosen = None
        if client in but:
            continue
        with or_not_done(client, "chosen_name_server"):
            chosen = nodes.call(client, "chosen_name_server")
        if chosen in names:  # an entry that is no NameServer of the run has no link
            links[Link(client, names[chosen])] = "both"
    return links
