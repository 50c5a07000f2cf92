"""Ways for any node to keep its timers badly: a little too late, a little too early, or once not at all.

Each changes one node's own setting, or holds its thread up once; the run's settings stay what the scenario says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ....actors.broker import slave_synchronize
from ....actors.broker.server import Broker
from ....actors.namesrv.server import NameServer
from ....remoting import top_addressing
from ....remoting.bodies.route import DataVersion, TopicConfig, TopicRouteData
from ....remoting.command import RemotingCommand
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ...experiment.workloads.consumer import ConsumerNode
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind
from .client import instance_of

STALL_S = 15.0
STALLED_ROUND = 2
LATE_S = 12.0

_FOUND = checks("timers_kept")
_LASTING = (NodeKind.PRODUCER, NodeKind.CONSUMER)


def registers_every(factor: float) -> Callable[[Broker], None]:
    """A broker whose registration period is so many times as long."""

    def change(broker: Broker) -> None:
        config = broker.services.config
        longer_ms = round(config.register_name_server_period * factor)
        replace_part(broker.services, "config", replace(config, register_name_server_period=longer_ms))

    return in_its_parts(change)


def scans_every(factor: float) -> Callable[[NameServer], None]:
    """A NameServer whose scan for silent brokers comes so many times as late."""

    def plant(server: NameServer) -> None:
        config = server.processor.config
        constants = replace(config.constants, scan_4_9_ms=round(config.constants.scan_4_9_ms * factor))
        longer_ms = round(config.scan_not_active_broker_interval * factor)
        config = replace(config, constants=constants, scan_not_active_broker_interval=longer_ms)
        replace_part(server.processor, "config", config)

    return plant


def client_setting(name: str, factor: float) -> Callable[[Node], None]:
    """A client for which this time of its configuration is so many times as long."""

    def plant(node: Node) -> None:
        instance = instance_of(node)
        longer = {name: round(getattr(instance._config, name) * factor)}
        replace_part(instance, "_config", replace(instance._config, **longer))

    return plant


def rebalances_every(factor: float) -> Callable[[ConsumerNode], None]:
    """A consumer that waits so many times as long between two rebalances."""

    def plant(node: ConsumerNode) -> None:
        rebalancer = node.client._rebalancer
        config = rebalancer._config
        longer_ms = round(config.rebalance_interval_ms * factor)
        replace_part(rebalancer, "_config", replace(config, rebalance_interval_ms=longer_ms))

    return plant


def waits_for_answers(factor: float) -> Callable[[Node], None]:
    """A client that waits so many times as long for a NameServer's answer."""

    def plant(node: Node) -> None:
        client = instance_of(node).name_server
        query_route = client.query_route

        async def query(topic: str, timeout_s: float = 3.0) -> TopicRouteData:
            return await query_route(topic, timeout_s * factor)

        replace_part(client, "query_route", query)

    return plant


def _stalls_once(node: Node) -> None:
    instance = instance_of(node)
    heartbeat, rounds = instance._clean_and_heartbeat, 0

    async def heartbeat_and_stall() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == STALLED_ROUND:
            await instance._context.clock.sleep(STALL_S)
        await heartbeat()

    replace_part(instance, "_clean_and_heartbeat", heartbeat_and_stall)


def _registers_one_after_another(broker: Broker) -> None:
    registration = broker._registration
    together, last = registration._register, asyncio.Lock()

    async def register_in_turn(
        target: Address, changed: Sequence[TopicConfig] | None, version: DataVersion | None
    ) -> RemotingCommand | None:
        async with last:
            return await together(target, changed, version)

    replace_part(registration, "_register", register_in_turn)


def _tells_the_last_of_no_change(broker: Broker) -> None:
    registration = broker._registration
    everywhere = registration._register

    async def register_all_or_most(
        target: Address, changed: Sequence[TopicConfig] | None, version: DataVersion | None
    ) -> RemotingCommand | None:
        if changed is not None and target == broker._registration_targets()[-1]:
            return None
        return await everywhere(target, changed, version)

    replace_part(registration, "_register", register_all_or_most)


def _tells_its_permission_with_the_next_tick(broker: Broker) -> None:
    def changed() -> None:
        """The next periodic registration has it."""

    replace_part(broker._registration, "changed", changed)


def _synchronizes_late(broker: Broker) -> None:
    slave, context = broker._synchronize, broker._context

    async def run() -> None:
        await context.clock.sleep(slave_synchronize.FIRST_S)
        while True:
            await slave.all()
            context.record("scheduled_task", f=slave_synchronize.TASK, duration_ms=0.0)
            await context.clock.sleep(1.2 * slave_synchronize.PERIOD_S)

    replace_part(slave, "run", run)


def _asks_for_its_list_late(broker: Broker) -> None:
    registration = broker._registration
    task, is_first = registration._task, True

    async def begin(name: str, work: Callable[[], Awaitable[object]]) -> None:
        nonlocal is_first
        if name == top_addressing.TASK:
            if not is_first:
                await broker._context.clock.sleep(LATE_S)
            is_first = False
        await task(name, work)

    replace_part(registration, "_task", begin)


DEFECTS = (
    Defect(
        name="name-server-scans-late",
        what="a NameServer looks for silent brokers every 15 s instead of every 10 s",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario="smoke",
        caught_by=_FOUND,
        plant=scans_every(1.5),
    ),
    Defect(
        name="broker-registers-late",
        what="a broker registers every 33 s instead of every 30 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="smoke",
        caught_by=_FOUND,
        plant=registers_every(1.1),
    ),
    Defect(
        name="broker-registers-early",
        what="a broker registers every 27 s instead of every 30 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="smoke",
        caught_by=_FOUND,
        plant=registers_every(0.9),
    ),
    Defect(
        name="client-polls-late",
        what="clients ask for routes every 33 s instead of every 30 s",
        kinds=_LASTING,
        scenario="smoke",
        caught_by=_FOUND,
        plant=client_setting("poll_name_server_interval_ms", 1.1),
    ),
    Defect(
        name="client-heartbeats-early",
        what="clients send heartbeats every 27 s instead of every 30 s",
        kinds=_LASTING,
        scenario="smoke",
        caught_by=_FOUND,
        plant=client_setting("heartbeat_broker_interval_ms", 0.9),
    ),
    Defect(
        name="client-waits-too-long-for-answers",
        what="clients wait 4.5 s for a NameServer's answer instead of 3 s",
        kinds=_LASTING,
        scenario="name-server-partition",
        caught_by=_FOUND,
        plant=waits_for_answers(1.5),
    ),
    Defect(
        name="producer-stalls-once",
        what=f"a producer's scheduled tasks stand still once, for {STALL_S:g} s",
        kinds=(NodeKind.PRODUCER,),
        nodes=("producer-0",),
        scenario="smoke",
        caught_by=_FOUND,
        plant=_stalls_once,
    ),
    Defect(
        name="consumer-commits-late",
        what="consumers commit every 5.5 s instead of every 5 s",
        kinds=(NodeKind.CONSUMER,),
        scenario="smoke",
        caught_by=_FOUND,
        plant=client_setting("persist_consumer_offset_interval_ms", 1.1),
    ),
    Defect(
        name="consumer-rebalances-late",
        what="consumers share out queues every 22 s instead of every 20 s",
        kinds=(NodeKind.CONSUMER,),
        scenario="smoke",
        caught_by=_FOUND,
        plant=rebalances_every(1.1),
    ),
    Defect(
        name="broker-registers-one-after-another",
        what="a broker registers with one NameServer after the other, so that one that hangs holds up those behind it",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="broker-partition",
        caught_by=_FOUND,
        plant=in_its_parts(_registers_one_after_another),
    ),
    Defect(
        name="slave-synchronizes-late",
        what="a slave takes over its master's tables every 12 s instead of every 10 s",
        kinds=(NodeKind.SLAVE,),
        nodes=("broker-a/1",),
        scenario="slave-reads",
        caught_by=_FOUND,
        plant=in_its_parts(_synchronizes_late),
    ),
    Defect(
        name="broker-asks-for-its-list-late",
        what=f"a broker asks the address server for its list {LATE_S:g} s later than every 120 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="list-grows",
        caught_by=_FOUND,
        plant=in_its_parts(_asks_for_its_list_late),
    ),
    Defect(
        name="broker-tells-the-last-of-no-change",
        what="a broker tells the last NameServer of its list of a changed topic with its next full round only",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="acts-by-hand",
        caught_by=_FOUND,
        plant=in_its_parts(_tells_the_last_of_no_change),
    ),
    Defect(
        name="broker-tells-its-permission-late",
        what="a broker whose brokerPermission is changed tells NameServers with its next periodic registration",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="acts-by-hand",
        caught_by=_FOUND,
        plant=in_its_parts(_tells_its_permission_with_the_next_tick),
    ),
)
