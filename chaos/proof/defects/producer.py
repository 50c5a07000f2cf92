"""Defects of producers: which routes a producer takes, its retries, and the results that it reports."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....clients.producer.publish_table import Publish, QueueRing
from ....clients.producer.send_record import SendRecord
from ....clients.producer.send_request import SendRequest
from ....clients.producer.send_result import SendResult, SendStatus
from ....remoting.bodies.client import HeartbeatData, ProducerData
from ....remoting.codes import MASTER_ID, RequestCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import ClientError, RocketMQError, TransportError
from ....remoting.message import MessageQueue
from ....remoting.node.network import Address
from ...defects import around, every, replace_part, with_settings
from ...experiment.workloads.producer import ProducerNode
from .planting import PRODUCER_0, PRODUCERS, Planted, may_find

_AVOIDED_S = 2.0

planted = Planted()


@planted(PRODUCERS, "smoke", caught_by="timers_kept")
def producer_heartbeats_twice(node: ProducerNode) -> None:
    """producers send each heartbeat twice"""

    @around(node.instance, "_send_heartbeat")
    async def send(once: Any, *heartbeat: Any) -> None:
        await once(*heartbeat)
        await once(*heartbeat)


@planted(PRODUCERS, "broker-crash", caught_by="dead_brokers_avoided")
@may_find("client_routes_are_true recovery_time")
def producer_ignores_new_routes(node: ProducerNode) -> None:
    """producers keep the first route that they got"""
    known = set[str]()

    @around(node.instance.route_cache, "_apply")
    def apply_the_first(apply: Any, topic: str, route: Any) -> Any:
        if topic in known:
            return None
        known.add(topic)
        return apply(topic, route)


@planted(PRODUCERS, "broker-crash-available", caught_by="availability living_are_used")
@may_find("recovery_time")
def producer_retries_the_same_broker(node: ProducerNode) -> None:
    """producers repeat a failed send at the broker that has just failed"""

    @around(node.client._fault, "select")
    def select_again(select: Any, ring: QueueRing, last_broker_name: str | None, **how: Any) -> Any:
        if last_broker_name is None:
            return select(ring, None, **how)
        return ring.next_that(lambda queue: queue.broker_name == last_broker_name) or ring.next()


def _passing_over(node: ProducerNode, is_avoided: Callable[[str], bool]) -> None:
    """Skips queues of avoided brokers, as long as the route has other queues."""

    def select(publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
        return publish.ring.next_that(lambda queue: not is_avoided(queue.broker_name)) or publish.ring.next()

    replace_part(node.client, "_select", select)


def _at_failures(node: ProducerNode, note: Callable[[str], object]) -> None:
    """Calls `note` with the name of each broker at which a send fails."""

    @around(node.client, "_note_failure")
    def note_too(note_failure: Any, error: RocketMQError, broker_name: str, begin_ms: int) -> None:
        note(broker_name)
        note_failure(error, broker_name, begin_ms)


@planted(PRODUCERS, "brokers-crash-in-turn", caught_by="availability living_are_used")
@may_find("recovery_time")
def producer_excludes_for_ever(node: ProducerNode) -> None:
    """producers never again use a broker at which a send failed"""
    failed = set[str]()

    def select(publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
        queue = publish.ring.next_that(lambda queue: queue.broker_name not in failed)
        if queue is None:
            raise ClientError("every broker has failed once")
        return queue

    _at_failures(node, failed.add)
    replace_part(node.client, "_select", select)


@planted(PRODUCER_0, "smoke", caught_by="living_are_used")
def producer_never_uses_a_broker(node: ProducerNode) -> None:
    """a producer never sends to broker-b, which is healthy and in its route"""
    _passing_over(node, lambda broker_name: broker_name == "broker-b")


@planted(PRODUCER_0, "smoke", caught_by="living_are_used")
def producer_begins_anew_at_each_poll(node: ProducerNode) -> None:
    """at each route poll a producer treats an unchanged route as new, and goes on sending at a random queue"""
    around(node.instance.route_cache, "take")(lambda take, topic, route, **_: take(topic, route, needed=True))


@planted(PRODUCERS, "broker-crash", caught_by="living_are_used")
def producer_avoids_what_has_healed(node: ProducerNode) -> None:
    """after a failed send, producers avoid the broker for ever, as long as there is another broker"""
    failed = set[str]()
    _at_failures(node, failed.add)
    _passing_over(node, failed.__contains__)


@planted(PRODUCERS, "broker-crash", caught_by="living_are_used")
def producer_avoids_though_off(node: ProducerNode) -> None:
    """producers avoid a broker for 2 s after a failed send, although sendLatencyFaultEnable is off"""
    clock, failed_s = node._context.clock, dict[str, float]()
    _at_failures(node, lambda broker_name: failed_s.update({broker_name: clock.monotonic_s()}))
    _passing_over(node, lambda broker_name: clock.monotonic_s() - failed_s.get(broker_name, -math.inf) < _AVOIDED_S)


@planted(PRODUCERS, "broker-crash", caught_by="living_are_used no_acknowledged_loss")
@may_find("messages_delivered order_kept")  # the queue offset that it makes up is out of order, too
def producer_calls_failures_sent(node: ProducerNode) -> None:
    """producers report a message as sent although the broker was not reached, or did not answer"""

    @around(node.client, "_send_once")
    async def send_once_gladly(
        send_once: Any, request: SendRequest, record: SendRecord, queue: MessageQueue, timeout_ms: int
    ) -> Any:
        try:
            return await send_once(request, record, queue, timeout_ms)
        except TransportError:
            return SendResult(
                status=SendStatus.SEND_OK, msg_id=request.msg_id, offset_msg_id="", queue=queue, queue_offset=0
            )


@planted(PRODUCERS, "broker-hang", caught_by="living_are_used")
def producer_sends_on_after_its_time(node: ProducerNode) -> None:
    """producers give each try of a send all of sendMsgTimeout, so that a send may take three times as long"""
    client = node.client
    around(client, "_send")(lambda send, request, record, timeout_ms: send(request, record, 3 * timeout_ms))
    replace_part(client, "_cap", lambda left_ms, *, last: min(left_ms, client._config.send_msg_timeout_ms))


@planted(PRODUCERS, "broker-crash-late", caught_by="living_are_used")
@may_find("availability recovery_time")
def producer_has_one_try(node: ProducerNode) -> None:
    """producers give up a send after one try instead of three"""
    with_settings(node.client, "_config", retry_times_when_send_failed=0)


@planted(PRODUCER_0, "sync-master", caught_by="living_are_used")
@may_find("duplicates")
def producer_sends_again_what_is_stored(node: ProducerNode) -> None:
    """a producer repeats a send that was stored by the master but by no slave, although
    retryAnotherBrokerWhenNotStoreOK is off"""
    with_settings(node.client, "_config", retry_another_broker_when_not_store_ok=True)


@planted(PRODUCER_0, "ordered", caught_by="living_are_used")
def producer_leaves_the_queue_of_a_key(node: ProducerNode) -> None:
    """a producer sends every 25th message of an ordered workload to the queue after the queue of its sharding key"""
    is_one = every(25)

    @around(node.client, "_send_selected")
    async def selected(send: Any, request: Any, record: Any, select: Any, timeout_ms: int) -> SendResult:
        further = int(is_one())
        after = lambda queues: queues[(queues.index(select(queues)) + further) % len(queues)]  # noqa: E731
        return await send(request, record, after, timeout_ms)


@planted(PRODUCER_0, "slave-reads", caught_by="living_are_used")
@may_find("dead_brokers_avoided")
def producer_sends_to_slaves(node: ProducerNode) -> None:
    """a producer sends to the slave of a broker name that has no master"""
    instance, cache = node.instance, node.instance.route_cache

    def with_a_master(applied: Any, topic: str, route: Any) -> Any:
        def of(broker: Any) -> Any:
            ids = broker.broker_addrs
            return broker if MASTER_ID in ids or not ids else replace(broker, broker_addrs={MASTER_ID: ids[min(ids)]})

        return applied(topic, replace(route, broker_datas=tuple(map(of, route.broker_datas))))

    around(cache, "_on_applied")(with_a_master)

    def least(broker_name: str) -> Any:
        held = cache.broker_addr_table.get(broker_name, {})
        return held[min(held)] if held else None

    replace_part(instance, "find_broker_address_in_publish", least)


@planted(PRODUCER_0, "slave-reads", caught_by="timers_kept")
def producer_beats_slaves(node: ProducerNode) -> None:
    """a producer sends its heartbeats to slaves, too"""
    instance = node.instance

    @around(instance, "send_heartbeat_to_all")
    async def send_to_slaves_too(send: Any) -> None:
        await send()
        groups = tuple(ProducerData(group_name=group) for group in instance._producers)
        body = HeartbeatData(client_id=instance.client_id, producer_data_set=groups, consumer_data_set=()).encode()
        for name, addresses in [*instance.route_cache.broker_addr_table.items()]:
            for id_, address in addresses.items():
                if id_ != MASTER_ID:
                    await instance._send_heartbeat(name, address, body)


@planted(PRODUCERS, "slow-brokers-5x", caught_by="living_are_used")
def producer_ends_isolations_when_quick(node: ProducerNode) -> None:
    """producers of 5.x use an isolated broker again as soon as one send to the broker is quick"""
    fault = node.client._fault

    @around(fault, "attempt_succeeded")
    def end_early(succeeded: Any, broker_name: str, latency_ms: int, *, now_ms: int) -> None:
        succeeded(broker_name, latency_ms, now_ms=now_ms)
        if broker_name in fault._items and not fault.isolation_ms(latency_ms):
            fault._items[broker_name].available_from_ms = now_ms


@planted(PRODUCERS, "slow-brokers", caught_by="living_are_used")
def producer_takes_the_slowest_broker(node: ProducerNode) -> None:
    """producers of 4.9 send to the slowest broker while all brokers are isolated"""
    fault = node.client._fault

    def the_slowest(now_ms: int) -> str:
        return max(fault._items, key=lambda name: fault._items[name].latency_ms)

    replace_part(fault, "_one_of_the_better_half", the_slowest)


@planted(PRODUCER_0, "smoke", caught_by="duplicates")
def producer_writes_sends_twice(node: ProducerNode) -> None:
    """the transport of a producer writes every 40th send request twice"""
    is_written_twice = every(40)

    @around(node.instance.remoting, "invoke")
    async def invoke_twice(invoke: Any, address: Address, command: RemotingCommand, **how: Any) -> Any:
        if command.code == RequestCode.SEND_MESSAGE_V2 and is_written_twice():
            await invoke(address, command, **how)
        return await invoke(address, command, **how)


@planted(PRODUCER_0, "smoke", caught_by="timers_kept")
def producer_beats_without_its_group(node: ProducerNode) -> None:
    """a producer's heartbeats name no producer group"""

    @around(node.instance, "_send_heartbeat")
    async def send_without_a_group(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        said = HeartbeatData.decode(body)
        await send(broker_name, address, replace(said, producer_data_set=()).encode())
