"""Ways for clients and brokers to do what is right, and when nothing asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ....actors.broker.server import Broker
from ....remoting.errors import TransportError
from ....remoting.node.clock import Clock
from ....remoting.node.node import Node
from ...experiment.workloads.consumer import ConsumerNode
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind
from .client import instance_of

ASKS_EACH_S = 3.0
TELLS_EACH_S = 5.0
SHARES_EACH_S = 2.0

_LASTING = (NodeKind.PRODUCER, NodeKind.CONSUMER)


def _each(node: Node, clock: Clock, period_s: float, act: Callable[[], Awaitable[None] | None]) -> None:
    """From the node's start on it acts so, beside all else."""
    start, stop = node.start, node.stop
    acting: list[asyncio.Task[None]] = []

    async def go_on() -> None:
        while True:
            await clock.sleep(period_s)
            done = act()
            if done is not None:
                await done

    async def start_and_act() -> None:
        await start()
        acting.append(asyncio.create_task(go_on()))

    async def stop_acting() -> None:
        for task in acting:
            task.cancel()
        await stop()

    replace_part(node, "start", start_and_act)
    replace_part(node, "stop", stop_acting)


def _asks_between_polls(node: Node) -> None:
    instance = instance_of(node)
    _each(node, instance._context.clock, ASKS_EACH_S, instance.poll_routes)


def _forgets_no_address(node: Node) -> None:
    replace_part(instance_of(node).route_cache, "clean_offline_brokers", tuple)


def _dials_every_name_server(node: Node) -> None:
    instance = instance_of(node)
    start = instance.start

    async def start_and_dial() -> None:
        await start()
        for address in instance.name_server.selector.addresses:
            with suppress(TransportError):
                await instance.remoting.connect(address)

    replace_part(instance, "start", start_and_dial)


def _tells_of_no_change(broker: Broker) -> None:
    def change(assembled: Broker) -> None:
        def tell() -> None:
            assembled._clients._notify(list(assembled.services.clients.consumers))

        _each(assembled, assembled._context.clock, TELLS_EACH_S, tell)

    in_its_parts(change)(broker)


def _rebalances_unasked(node: ConsumerNode) -> None:
    _each(node, node.instance._context.clock, SHARES_EACH_S, node.client._rebalancer.wake)


DEFECTS = (
    Defect(
        name="client-asks-between-polls",
        what=f"clients ask for their routes each {ASKS_EACH_S:g} s, beside their polls",
        kinds=_LASTING,
        scenario="smoke",
        caught_by=checks("timers_kept"),
        plant=_asks_between_polls,
    ),
    Defect(
        name="client-dials-every-name-server",
        what="clients keep a channel to every NameServer of their list, and ask the chosen one",
        kinds=_LASTING,
        scenario="smoke",
        caught_by=checks("name_server_selection"),
        plant=_dials_every_name_server,
    ),
    Defect(
        name="client-forgets-no-address",
        what="clients go on dialling and heartbeating a broker that no route of theirs names any more",
        kinds=_LASTING,
        scenario="broker-crash",
        caught_by=checks("timers_kept"),
        plant=_forgets_no_address,
    ),
    Defect(
        name="broker-tells-of-no-change",
        what=f"a broker tells its groups each {TELLS_EACH_S:g} s that their members changed",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="smoke",
        caught_by=checks("timers_kept"),
        plant=_tells_of_no_change,
    ),
    Defect(
        name="consumer-rebalances-unasked",
        what=f"a consumer rebalances each {SHARES_EACH_S:g} s, though nothing changed",
        kinds=(NodeKind.CONSUMER,),
        nodes=("consumer-0",),
        scenario="smoke",
        caught_by=checks("timers_kept"),
        plant=_rebalances_unasked,
    ),
)
