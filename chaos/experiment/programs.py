"""Makes a server's program from its settings in the server's process, without importing the harness.

Each program is imported only in the process that runs it, because a dozen processes import this module at the same
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...remoting.node.network import Address
from ...remoting.node.node import Node, NodeContext

if TYPE_CHECKING:
    from ...actors.broker.config import BrokerConfig
    from ...actors.namesrv.config import NamesrvConfig
    from ..apache.client import JavaClientConfig
    from ..apache.server import ServerPlan

Factory = Callable[[NodeContext], Node]


def name_server(config: NamesrvConfig, listen: Address, context: NodeContext) -> Node:
    from ...actors.namesrv.server import NameServer

    return NameServer(context, config, listen=listen)


def broker(config: BrokerConfig, listen: Address, advertised: Address, context: NodeContext) -> Node:
    from ...actors.broker.server import Broker

    return Broker(context, config, listen=listen, advertised=advertised, vip=True)


def apache_server(plan: ServerPlan, context: NodeContext) -> Node:
    from ..apache.server import ApacheServer

    return ApacheServer(context, plan)


def in_turn(factories: tuple[Factory, ...], context: NodeContext) -> Node:
    """Return the program that the node has in its current process: the first of `factories` in the first process, the
    second in the second. All later processes have the last program."""
    return factories[min(context.incarnation, len(factories) - 1)](context)


def apache_client(config: JavaClientConfig, context: NodeContext) -> Node:
    from ..apache.client import JavaClient

    return JavaClient(context, config)


def planted(factory: Factory, defect: str | Callable[[Node], None], context: NodeContext) -> Node:
    """Return the node with the defect planted in it. A defect of the self-test is given by name, because its function
    may not be picklable; a user's defect is a function."""
    from ..scenarios.defect import shipped_defects

    node = factory(context)
    plant = shipped_defects()[defect].plant if isinstance(defect, str) else defect
    plant(node)
    return node
