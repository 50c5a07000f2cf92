"""Ways for a broker or a client to wait too long or too short: for answers, for its next pull, for who is silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....actors.broker import client_manager
from ....actors.broker.client_manager import Client, ClientManager
from ....actors.broker.long_poll import HeldPull
from ....actors.broker.server import Broker
from ....actors.broker.services import HeldRequest
from ....clients.producer.fault_strategy import MQFaultStrategy
from ....remoting.bodies.client import GetConsumerListByGroupResponseBody
from ....remoting.codes import RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.headers.broker import GetConsumerListByGroupRequestHeader
from ....remoting.node.network import Address
from ....remoting.node.node import Node
from ....remoting.transport import Connection
from ...experiment.workloads.consumer import ConsumerNode
from ...experiment.workloads.producer import ProducerNode
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind
from .client import instance_of
from .timers import waits_for_answers

_FOUND = checks("timers_kept")
LEFT_OUT_S = 65.0
"""Two rounds of heartbeats."""
LISTED_S = 30.0
"""Longer than until the rebalance that follows at once, and the next."""


def sends_within(factor: float) -> Callable[[ProducerNode], None]:
    """A producer whose sends have so many times their time."""

    def plant(node: ProducerNode) -> None:
        config = node.client._config
        longer_ms = round(config.send_msg_timeout_ms * factor)
        replace_part(node.client, "_config", replace(config, send_msg_timeout_ms=longer_ms))

    return plant


def connects_within(factor: float) -> Callable[[Node], None]:
    """A client that waits so many times as long for a connection."""

    def plant(node: Node) -> None:
        remoting = instance_of(node).remoting
        replace_part(remoting, "_connect_timeout_s", remoting._connect_timeout_s * factor)

    return plant


def pulls_again_after(factor: float) -> Callable[[ConsumerNode], None]:
    """A consumer that pulls again so many times as late after a pull that failed."""

    def plant(node: ConsumerNode) -> None:
        service = node.client._pull_service
        config = service._config
        longer_ms = round(config.pull_time_delay_when_exception_ms * factor)
        replace_part(service, "_config", replace(config, pull_time_delay_when_exception_ms=longer_ms))

    return plant


def holds_pulls(factor: float) -> Callable[[Broker], None]:
    """A broker that holds pulls so many times as long as they ask for."""

    def change(broker: Broker) -> None:
        holds = broker.services.holds
        hold = holds.hold

        def other(topic: str, queue_id: int, pull: HeldPull[HeldRequest]) -> bool:
            pull.deadline_ms = pull.held_ms + round(pull.wait_ms * factor)
            return hold(topic, queue_id, pull)

        replace_part(holds, "hold", other)

    return in_its_parts(change)


def wakes_pulls_after(late_s: float) -> Callable[[Broker], None]:
    """A broker that wakes held pulls so late after a message has come."""

    def change(broker: Broker) -> None:
        pull, clock = broker._pull, broker._context.clock
        arrived = pull.arrived
        replace_part(pull, "arrived", lambda topic, queue_id: clock.call_later(late_s, arrived, topic, queue_id))

    return in_its_parts(change)


def forgets_clients_after(factor: float) -> Callable[[Broker], None]:
    """A broker that forgets clients after so many times 120 s."""

    def change(broker: Broker) -> None:
        manager = broker.services.clients
        expire: Callable[..., list[tuple[str, Client]]] = ClientManager.expire
        shifted_ms = round(client_manager.CHANNEL_EXPIRED_MS * (factor - 1))
        replace_part(manager, "expire", lambda *, now_ms: expire(manager, now_ms=now_ms - shifted_ms))

    return in_its_parts(change)


def _strategy(node: ProducerNode) -> MQFaultStrategy:
    return node.client._fault


def isolates(factor: float) -> Callable[[ProducerNode], None]:
    """A producer that avoids slow and failed brokers for so many times as long."""

    def plant(node: ProducerNode) -> None:
        strategy = _strategy(node)
        table = tuple((latency_ms, round(isolation_ms * factor)) for latency_ms, isolation_ms in strategy._table)
        replace_part(strategy, "_table", table)

    return plant


def ends_isolations(earlier_ms: int) -> Callable[[ProducerNode], None]:
    """A producer that sends to a broker so long before its isolation is over (or after, below 0)."""

    def plant(node: ProducerNode) -> None:
        strategy = _strategy(node)
        is_available = strategy.is_available

        def too_soon(broker_name: str, *, now_ms: int) -> bool:
            return is_available(broker_name, now_ms=now_ms + earlier_ms)

        replace_part(strategy, "is_available", too_soon)

    return plant


def _heartbeats_skip_a_broker(node: Node) -> None:
    instance = instance_of(node)
    send, sent = instance._send_heartbeat, 0

    async def skip(broker_name: str, address: Address, body: bytes) -> None:
        nonlocal sent
        if broker_name == "broker-a":
            sent += 1
            if sent > 2 and sent % 2:
                return
        await send(broker_name, address, body)

    replace_part(instance, "_send_heartbeat", skip)


def _isolates_at_the_second_failure(node: ProducerNode) -> None:
    strategy, failed_last = _strategy(node), set[str]()
    update = strategy._update

    def unless_first(name: str, latency_ms: int, failed: bool, reachable: bool, now_ms: int) -> None:
        is_first = failed and name not in failed_last
        (failed_last.add if failed else failed_last.discard)(name)
        if not is_first:
            update(name, latency_ms, failed, reachable, now_ms)

    replace_part(strategy, "_update", unless_first)


def _heartbeats_masters_only(node: Node) -> None:
    instance = instance_of(node)
    send = instance._send_heartbeat

    async def to_masters(broker_name: str, address: Address, body: bytes) -> None:
        if instance.route_cache.broker_addr_table.get(broker_name, {}).get(0) == address:
            await send(broker_name, address, body)

    replace_part(instance, "_send_heartbeat", to_masters)


def _gives_up_whom_a_heartbeat_missed(node: Node) -> None:
    instance = instance_of(node)
    send, left_out_until_s = instance._send_heartbeat, dict[Address, float]()

    async def unless_missed(broker_name: str, address: Address, body: bytes) -> None:
        began_s = instance._context.clock.monotonic_s()
        if began_s < left_out_until_s.get(address, 0.0):
            return
        await send(broker_name, address, body)
        if instance._context.clock.monotonic_s() - began_s >= instance.api_timeout_s:
            left_out_until_s[address] = began_s + LEFT_OUT_S

    replace_part(instance, "_send_heartbeat", unless_missed)


def _heartbeats_end_at_the_first_failure(node: Node) -> None:
    instance = instance_of(node)
    send, to_all, failed = instance._send_heartbeat, instance.send_heartbeat_to_all, False

    async def unless_one_failed(broker_name: str, address: Address, body: bytes) -> None:
        nonlocal failed
        if failed:
            return
        began_s = instance._context.clock.monotonic_s()
        await send(broker_name, address, body)
        failed = instance._context.clock.monotonic_s() - began_s >= instance.api_timeout_s

    async def round_of_all() -> None:
        nonlocal failed
        failed = False
        await to_all()

    replace_part(instance, "_send_heartbeat", unless_one_failed)
    replace_part(instance, "send_heartbeat_to_all", round_of_all)


def _tells_nobody(broker: Broker) -> None:
    replace_part(broker._clients, "_notify", lambda groups: None)


def _lists_who_has_left(broker: Broker) -> None:
    clients, listed = broker.services.clients, broker._clients.consumer_list
    remove, left = clients._remove_consumer, list[tuple[float, str, str]]()

    def removed(group: str, channel_id: int) -> bool:
        if (client_id := clients.client_id(group, channel_id)) is not None:
            left.append((broker._context.clock.monotonic_s(), group, client_id))
        return remove(group, channel_id)

    def consumer_list(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        response = listed(connection, request)
        group = GetConsumerListByGroupRequestHeader.from_ext_fields(request.ext_fields).consumer_group
        since_s = broker._context.clock.monotonic_s() - LISTED_S
        if response.code != ResponseCode.SUCCESS:
            return response
        ids = GetConsumerListByGroupResponseBody.decode(response.body).consumer_id_list
        ids += tuple(one for at_s, of, one in left if of == group and at_s > since_s and one not in ids)
        return RemotingCommand.response(body=GetConsumerListByGroupResponseBody(consumer_id_list=ids).encode())

    replace_part(clients, "_remove_consumer", removed)
    broker._processor._methods[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = consumer_list


DEFECTS = (
    Defect(
        name="producer-waits-too-long-for-acknowledgements",
        what="a producer waits 4.5 s for an acknowledgement instead of 3 s",
        kinds=(NodeKind.PRODUCER,),
        nodes=("producer-0",),
        scenario="broker-hang",
        caught_by=_FOUND,
        plant=sends_within(1.5),
    ),
    Defect(
        name="producer-connects-too-patiently",
        what="producers wait 4.5 s for a connection instead of 3 s",
        kinds=(NodeKind.PRODUCER,),
        scenario="dials-unanswered",
        caught_by=_FOUND,
        plant=connects_within(1.5),
    ),
    Defect(
        name="client-gives-look-ups-up-early",
        what="clients wait 1.5 s for a NameServer's answer instead of 3 s",
        kinds=(NodeKind.PRODUCER, NodeKind.CONSUMER),
        scenario="name-server-partition",
        caught_by=_FOUND,
        plant=waits_for_answers(0.5),
    ),
    Defect(
        name="client-leaves-a-broker-out",
        what="every other heartbeat of a consumer leaves broker-a out",
        kinds=(NodeKind.CONSUMER,),
        nodes=("consumer-0",),
        scenario="quiet",
        caught_by=_FOUND,
        plant=_heartbeats_skip_a_broker,
    ),
    Defect(
        name="consumer-heartbeats-masters-only",
        what="consumers send their heartbeats to masters and to no slave, which then serves them nothing",
        kinds=(NodeKind.CONSUMER,),
        scenario="slave-reads",
        caught_by=_FOUND,
        also=checks("living_are_used"),  # nobody is served where the master is gone
        plant=_heartbeats_masters_only,
    ),
    Defect(
        name="consumer-gives-up-whom-a-heartbeat-missed",
        what=f"a consumer whose heartbeat was not answered leaves that broker out for {LEFT_OUT_S:g} s",
        kinds=(NodeKind.CONSUMER,),
        nodes=("consumer-0",),
        scenario="broker-hangs-briefly",
        caught_by=_FOUND,
        plant=_gives_up_whom_a_heartbeat_missed,
    ),
    Defect(
        name="consumer-pulls-again-late",
        what="consumers pull again 3 s after a pull that failed instead of 1 s",
        kinds=(NodeKind.CONSUMER,),
        scenario="broker-crash",
        caught_by=_FOUND,
        plant=pulls_again_after(3),
    ),
    Defect(
        name="broker-holds-pulls-too-long",
        what="a broker holds pulls 21 s instead of 15 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="smoke",
        caught_by=_FOUND,
        plant=holds_pulls(1.4),
    ),
    Defect(
        name="broker-gives-pulls-up-early",
        what="a broker holds pulls 9 s instead of 15 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="smoke",
        caught_by=_FOUND,
        plant=holds_pulls(0.6),
    ),
    Defect(
        name="brokers-tell-nobody",
        what="brokers do not tell the consumers of a group that its members have changed",
        kinds=(NodeKind.BROKER,),
        scenario="consumer-crash",
        caught_by=_FOUND,
        also=checks("messages_delivered", "queue_ownership"),
        plant=in_its_parts(_tells_nobody),
    ),
    Defect(
        name="heartbeats-end-at-the-first-failure",
        what="a consumer's round of heartbeats ends at the first broker that does not answer",
        kinds=(NodeKind.CONSUMER,),
        scenario="broker-hang",
        caught_by=_FOUND,
        plant=_heartbeats_end_at_the_first_failure,
    ),
    Defect(
        name="brokers-list-who-has-left",
        what=f"brokers name a consumer among the members of its group for {LISTED_S:g} s after its channel was closed",
        kinds=(NodeKind.BROKER,),
        scenario="consumer-crash",
        caught_by=checks("queue_ownership"),
        plant=in_its_parts(_lists_who_has_left),
    ),
    Defect(
        name="broker-forgets-clients-early",
        what="a broker forgets a silent client after 60 s instead of 120 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="clients-go-silent",
        caught_by=_FOUND,
        plant=forgets_clients_after(0.5),
    ),
    Defect(
        name="broker-forgets-clients-late",
        what="a broker forgets a silent client after 180 s instead of 120 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="clients-go-silent",
        caught_by=_FOUND,
        plant=forgets_clients_after(1.5),
    ),
    Defect(
        name="producer-isolates-too-long",
        what="a producer avoids slow brokers for a tenth longer than notAvailableDuration says",
        kinds=(NodeKind.PRODUCER,),
        nodes=("producer-0",),
        scenario="slow-broker",
        caught_by=_FOUND,
        plant=isolates(1.1),
    ),
    Defect(
        name="producer-ends-isolations-early",
        what="a producer sends to a slow broker 5 s before its isolation is over",
        kinds=(NodeKind.PRODUCER,),
        nodes=("producer-0",),
        scenario="slow-broker",
        caught_by=_FOUND,
        plant=ends_isolations(5_000),
    ),
    Defect(
        name="producer-isolates-at-the-second-failure",
        what="a producer avoids a broker only from the second try in a row on that it did not answer",
        kinds=(NodeKind.PRODUCER,),
        nodes=("producer-0",),
        scenario="broker-hangs-briefly",
        caught_by=_FOUND,
        plant=_isolates_at_the_second_failure,
    ),
)
