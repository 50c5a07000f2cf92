"""Ways for clients and brokers to do what is right, and when nothing asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from ....actors.broker.server import Broker
from ....remoting.errors import TransportError
from ....remoting.node.clock import Clock
from ....remoting.node.node import Node
from ...experiment.workloads.consumer import ConsumerNode
from .planting import BROKER_A, CONSUMER_0, LASTING_CLIENTS, Planted, around, in_its_parts, instance_of, replace_part

planted = Planted()


def _each(node: Node, clock: Clock, period_s: float, act: Callable[[], Awaitable[None] | None]) -> None:
    """From the node's start on it acts so, beside all else."""
    acting: list[asyncio.Task[None]] = []

    async def go_on() -> None:
        while True:
            await clock.sleep(period_s)
            done = act()
            if done is not None:
                await done

    @around(node, "start")
    async def start_and_act(start: Any) -> None:
        await start()
        acting.append(asyncio.create_task(go_on()))

    @around(node, "stop")
    async def stop_acting(stop: Any) -> None:
        for task in acting:
            task.cancel()
        await stop()


@planted(LASTING_CLIENTS, "smoke", caught_by="timers_kept")
def client_asks_between_polls(node: Node) -> None:
    """clients ask for their routes each 3 s, beside their polls"""
    instance = instance_of(node)
    _each(node, instance._context.clock, 3.0, instance.poll_routes)


@planted(LASTING_CLIENTS, "smoke", caught_by="name_server_selection")
def client_dials_every_name_server(node: Node) -> None:
    """clients keep a channel to every NameServer of their list, and ask the chosen one"""
    instance = instance_of(node)

    @around(instance, "start")
    async def start_and_dial(start: Any) -> None:
        await start()
        for address in instance.name_server.selector.addresses:
            with suppress(TransportError):
                await instance.remoting.connect(address)


@planted(LASTING_CLIENTS, "broker-crash", caught_by="timers_kept")
def client_forgets_no_address(node: Node) -> None:
    """clients go on dialling and heartbeating a broker that no route of theirs names any more"""
    replace_part(instance_of(node).route_cache, "clean_offline_brokers", tuple)


@planted(BROKER_A, "smoke", caught_by="timers_kept")
@in_its_parts
def broker_tells_of_no_change(broker: Broker) -> None:
    """a broker tells its groups each 5 s that their members changed"""
    notify, groups = broker._clients._notify, broker.services.clients.consumers
    _each(broker, broker._context.clock, 5.0, lambda: notify(list(groups)))


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
def consumer_rebalances_unasked(node: ConsumerNode) -> None:
    """a consumer rebalances each 2 s, though nothing changed"""
    _each(node, node.instance._context.clock, 2.0, node.client._rebalancer.wake)
