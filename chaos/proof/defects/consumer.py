"""Defects of consumers (which queues they take, what they pull, deliver and commit), and of brokers that lose a group's
offsets."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from ....actors.broker.server import Broker
from ....clients.client_instance import FindBrokerResult
from ....clients.consumer.consume_service import ConsumeService
from ....clients.consumer.offset_store import RemoteBrokerOffsetStore
from ....clients.consumer.process_queue import ProcessQueue
from ....clients.consumer.pull import PullResult, PullStatus
from ....clients.consumer.pull_service import BROKER_FLOW_CONTROL_PAUSE_S
from ....clients.consumer.rebalance import Rebalancer, allocate_averagely
from ....remoting.bodies.client import ConsumerData, SubscriptionData
from ....remoting.codes import MASTER_ID, RequestCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import ResponseError, RocketMQError, TransportError
from ....remoting.message import MessageQueue, StoredMessage
from ....remoting.node.network import Address
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...defects import around, does_nothing, does_nothing_async, every, in_its_parts, replace_part
from ...experiment.workloads.consumer import ConsumerNode
from .planting import BROKER_A, CONSUMER_0, CONSUMERS, SLAVE_OF_A, Planted, from_its_making, may_find

REORDER_S = 1.0
SKIPPED_OF = 10
SKIPS_FOR_S = 2.0
"""A defective consumer skips the messages that arrive in this time after the start of a rebalance."""
STOPS_AFTER = 100
LATE_S = 20.0
OLDER_BY = 5
AHEAD_S = 4.0
"""How long the consumer that commits ahead of its work keeps a message before it works on it."""
COPIES = 4
GOES_ON_S = 15.0

planted = Planted()

Queues = set[MessageQueue] | None


# -- which topics and queues


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
@may_find("commits_follow_work messages_delivered queue_ownership")
def consumer_announces_one_topic(node: ConsumerNode) -> None:
    """a consumer's heartbeats name only the workload's topic, not the retry topic of the consumer's group"""

    @around(node.client, "consumer_data")
    def one_topic(consumer_data: Any) -> Any:
        data = consumer_data()
        named = (one for one in data.subscription_data_set if not one.topic.startswith(RETRY_GROUP_TOPIC_PREFIX))
        return replace(data, subscription_data_set=tuple(named))


def _rebalancer(node: ConsumerNode) -> Rebalancer:
    return node.client._rebalancer


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
@may_find("queue_ownership messages_delivered living_are_used commits_follow_work duplicates")
def consumer_rebalances_late_at_its_start(node: ConsumerNode) -> None:
    """a consumer makes its first rebalance 20 s after the consumer's start"""
    rebalancer, clock = _rebalancer(node), node._context.clock
    start = rebalancer.start
    replace_part(rebalancer, "start", lambda: clock.call_later(20.0, start))


@planted(CONSUMERS, "smoke", caught_by="queue_ownership")
def consumer_takes_no_retry_topic(node: ConsumerNode) -> None:
    """consumers leave their group's retry topic out of rebalances, so nobody receives what is to be consumed again"""

    @around(_rebalancer(node), "_rebalance_topic")
    async def all_but_retries(rebalance: Any, topic: str) -> bool:
        return topic.startswith(RETRY_GROUP_TOPIC_PREFIX) or await rebalance(topic)


@planted(CONSUMER_0, "smoke", caught_by="queue_ownership")
@may_find("duplicates timers_kept")
def consumer_takes_all_queues(node: ConsumerNode) -> None:
    """a consumer takes every queue, the queues of the group's other consumers included"""
    rebalancer = _rebalancer(node)

    async def allocate(topic: str) -> Queues:
        queues = rebalancer._subscribe_info.get(topic)
        return None if queues is None else set(queues)

    replace_part(rebalancer, "_allocate", allocate)


@planted(CONSUMER_0, "smoke", caught_by="queue_ownership")
@may_find("living_are_used messages_delivered")
def consumer_leaves_a_queue_out(node: ConsumerNode) -> None:
    """a consumer never takes the first queue of its share"""

    @around(_rebalancer(node), "_allocate")
    async def allocate_less(allocate: Any, topic: str) -> Queues:
        mine: Queues = await allocate(topic)
        return mine and set(sorted(mine)[1:])


@planted(CONSUMER_0, "broadcast", caught_by="queue_ownership")
@may_find("living_are_used messages_delivered")
def broadcaster_leaves_a_queue_out(node: ConsumerNode) -> None:
    """a member of a broadcast group takes all queues but the first"""
    consumer_leaves_a_queue_out(node)


@planted(CONSUMER_0, "smoke", caught_by="queue_ownership")
@may_find("living_are_used duplicates messages_delivered")
def consumer_sorts_members_otherwise(node: ConsumerNode) -> None:
    """one consumer sorts the group's members in reverse order, so two consumers take the same queues"""
    rebalancer, instance = _rebalancer(node), node.instance
    group = rebalancer._config.consumer_group

    async def allocate(topic: str) -> Queues:
        queues = rebalancer._subscribe_info.get(topic)
        ids = await instance.find_consumer_id_list(topic, group)
        if queues is None or ids is None or instance.client_id not in ids:
            return None
        mirrored = sorted(ids)[len(ids) - 1 - sorted(ids).index(instance.client_id)]
        return set(allocate_averagely(mirrored, queues, ids))

    replace_part(rebalancer, "_allocate", allocate)


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
def consumer_tells_of_no_new_queues(node: ConsumerNode) -> None:
    """a consumer sends no extra heartbeat when its queues have changed, only the regular heartbeat every 30 s"""

    @around(_rebalancer(node), "_announce")
    async def announce_to_nobody(_announce: Any, topic: str) -> None:
        _rebalancer(node)._record_assigned(topic)


@planted(CONSUMER_0, "quiet", caught_by="timers_kept")
def consumer_notes_no_pull(node: ConsumerNode) -> None:
    """120 s after a consumer took a queue, it drops and retakes the queue, as if it had never pulled from the queue"""
    clock = node._context.clock

    @around(_rebalancer(node), "_on_queue_taken")
    def taken(on_taken: Any, queue: MessageQueue, held: ProcessQueue, offset: int) -> None:
        since_ms = clock.now_ms()
        replace_part(held, "is_pull_expired", lambda *, now_ms: now_ms - since_ms > 120_000)
        on_taken(queue, held, offset)


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
def consumer_polls_no_retry_topic(node: ConsumerNode) -> None:
    """a consumer asks for the route of its group's retry topic only when it starts"""

    @around(node.instance, "poll_routes")
    async def poll_the_others(_poll: Any) -> None:
        for data in node.client.subscriptions():
            if not data.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                await node.instance.update_route(data.topic)


@planted(CONSUMERS, "broker-crash", caught_by="dead_brokers_avoided")
@may_find("queue_ownership timers_kept")
def consumer_keeps_lost_queues(node: ConsumerNode) -> None:
    """consumers keep the queues and the address of a broker that is no longer in the routes"""
    rebalancer = _rebalancer(node)

    @around(rebalancer, "_allocate")
    async def allocate_more(allocate: Any, topic: str) -> Queues:
        mine: Queues = await allocate(topic)
        routed = rebalancer._subscribe_info.get(topic) or frozenset()
        gone = {queue for queue in rebalancer.working_queues(topic) if queue not in routed}
        return mine if mine is None else mine | gone

    replace_part(node.instance.route_cache, "clean_offline_brokers", tuple)


Said = Callable[[ConsumerData], ConsumerData]


def _saying(node: ConsumerNode, change: Said) -> None:
    """Changes what the consumer's heartbeats say about the consumer."""
    around(node.client, "consumer_data")(lambda consumer_data: change(consumer_data()))


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
@may_find("commits_follow_work messages_delivered order_kept")
def consumer_announces_another_expression(node: ConsumerNode) -> None:
    """a consumer's heartbeats name one tag, though the consumer subscribes to every tag, as its group does"""

    def of_a_tag(one: SubscriptionData) -> SubscriptionData:
        tag = "*" if one.topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else "producer-0"
        return SubscriptionData.of(one.topic, tag, sub_version=one.sub_version)

    _saying(node, lambda data: replace(data, subscription_data_set=tuple(map(of_a_tag, data.subscription_data_set))))


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
def consumer_announces_the_last_offset(node: ConsumerNode) -> None:
    """a consumer's heartbeats name CONSUME_FROM_LAST_OFFSET, though the consumer begins at a queue's first offset"""
    _saying(node, lambda data: replace(data, consume_from_where="CONSUME_FROM_LAST_OFFSET"))


@planted(CONSUMER_0, "broadcast", caught_by="timers_kept")
def consumer_announces_clustering(node: ConsumerNode) -> None:
    """the heartbeats of a member of a broadcast group name the message model CLUSTERING"""
    _saying(node, lambda data: replace(data, message_model="CLUSTERING"))


@planted(CONSUMER_0, "consumer-stop", caught_by="timers_kept")
@may_find("living_are_used messages_delivered queue_ownership recovery_time")
def consumer_announces_its_first_client_id(node: ConsumerNode) -> None:
    """after a restart, a consumer sends heartbeats with ip@NODE in place of its clientId, ip@NODE#START_MS"""
    if not node._context.incarnation:
        return
    instance = node.instance

    @around(instance, "_send_heartbeat")
    async def send_as_another(send: Any, broker_name: str, address: Address, body: bytes) -> None:
        known = instance.client_id.partition("#")[0]
        await send(broker_name, address, body.replace(instance.client_id.encode(), known.encode()))


@planted(CONSUMERS, "smoke", caught_by="timers_kept")
@may_find("commits_follow_work duplicates living_are_used messages_delivered queue_ownership")
def consumers_have_one_client_id(node: ConsumerNode) -> None:
    """all consumers of a group have one clientId, so all take the same queues"""
    node.instance.client_id = "127.0.0.1@DEFAULT"


@planted(CONSUMER_0, "consumer-stop", caught_by="timers_kept")
def consumer_keeps_its_sub_version(node: ConsumerNode) -> None:
    """a consumer's heartbeats have the subVersion of its start, also when a rebalance has changed its queues"""
    rebalancer, instance = _rebalancer(node), node.instance

    async def announce(topic: str) -> None:
        rebalancer._record_assigned(topic)
        await instance.send_heartbeat_to_all()

    replace_part(rebalancer, "_announce", announce)


@planted(CONSUMER_0, "quiet", caught_by="timers_kept")
def consumer_asks_one_broker_for_members(node: ConsumerNode) -> None:
    """a consumer always asks the first broker of the route for the members of its group"""
    cache = node.instance.route_cache

    @around(node.instance, "find_broker_address_by_topic")
    def find_the_first(find: Any, topic: str) -> Any:
        route = cache.route(topic)
        names = sorted(broker.broker_name for broker in route.broker_datas) if route else []
        return cache.broker_addr_table.get(names[0], {}).get(MASTER_ID) if names else find(topic)


@planted(CONSUMERS, "group-shrinks-5x", caught_by="timers_kept")
@may_find("messages_delivered queue_ownership")
def consumer_counts_each_round_as_balanced(node: ConsumerNode) -> None:
    """consumers of 5.x wait 20 s, not 1 s, after a rebalance in which they could not take a queue"""

    @around(_rebalancer(node), "rebalance")
    async def always_balanced(rebalance: Any) -> bool:
        await rebalance()
        return True


# -- pulling and delivering


def _pulling(node: ConsumerNode, **changed: str) -> None:
    """Changes what the consumer's pulls ask for, as they leave the process."""

    @around(node.instance.remoting, "invoke")
    async def invoke_changed(invoke: Any, address: Address, command: RemotingCommand, **how: Any) -> Any:
        if command.code == RequestCode.PULL_MESSAGE:
            command.ext_fields = {**(command.ext_fields or {}), **changed}
        return await invoke(address, command, **how)


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
@may_find("order_kept")
def consumer_pulls_one_message_at_a_time(node: ConsumerNode) -> None:
    """a consumer asks for 1 message in each pull, not for pullBatchSize"""
    _pulling(node, maxMsgNums="1")


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
@may_find("order_kept")
def consumer_asks_to_be_held_briefly(node: ConsumerNode) -> None:
    """a consumer asks brokers to hold its pulls for 1.5 s, not for 15 s"""
    _pulling(node, suspendTimeoutMillis="1500")


@planted(CONSUMER_0, "consumer-crash", caught_by="living_are_used")
@may_find("messages_delivered prompt_answers")
def consumer_pulls_new_queues_late(node: ConsumerNode) -> None:
    """a consumer of 4.9 pulls a queue for the first time 5 s after the consumer took the queue, not at once"""

    @around(node.client._pull_service, "_loop")
    async def pull_later(loop: Any, *of: Any) -> None:
        await node.client._context.clock.sleep(5.0)
        await loop(*of)


@planted(CONSUMER_0, "smoke", caught_by="living_are_used")
def consumer_pauses_after_nothing_new(node: ConsumerNode) -> None:
    """a consumer pulls a queue again 1 s after the answer that the queue has no new message, not at once"""
    service = node.client._pull_service

    @around(service, "_pull")
    async def pull_and_pause(pull: Any, *of: Any) -> PullResult:
        result: PullResult = await pull(*of)
        if result.status is PullStatus.NO_NEW_MESSAGE:
            await service._context.clock.sleep(1.0)
        return result


@planted(CONSUMER_0, "broker-crash-5x", caught_by="living_are_used")
def consumer_pulls_new_queues_at_once(node: ConsumerNode) -> None:
    """a consumer of 5.x pulls a queue as soon as it has taken the queue, not 500 ms later"""

    @around(node.client._pull_service, "_later")
    async def put_off_all_but_the_first(later: Any, delays: Any, why: str, *how: Any) -> None:
        if why != "first":
            await later(delays, why, *how)


@planted(CONSUMERS, "broker-crash", caught_by="duplicates")
@may_find("commits_follow_work order_kept queue_ownership timers_kept")
def consumer_goes_on_with_lost_queues(node: ConsumerNode) -> None:
    """consumers go on consuming a queue for 15 s after a rebalance took the queue away"""
    rebalancer, service = _rebalancer(node), node.client._pull_service

    @around(rebalancer, "drop")
    async def goes_on(drop: Any, queue: MessageQueue) -> None:
        old, at = rebalancer.process_queues.get(queue), node.client._offsets.in_memory(queue)
        await drop(queue)
        if old is not None and at is not None and queue not in rebalancer.process_queues:
            clock = node.instance._context.clock
            kept = ProcessQueue(now_ms=clock.now_ms(), op_id=old.op_id)
            service.pull_queue(queue, kept, at)
            clock.call_later(GOES_ON_S, lambda: setattr(kept, "dropped", True))


@planted(CONSUMERS, "smoke", caught_by="duplicates")
@may_find("commits_follow_work living_are_used messages_delivered order_kept queue_ownership")
def consumer_pulls_the_wrong_queue(node: ConsumerNode) -> None:
    """instead of their own queues at a broker, consumers pull the first queue of the broker"""
    service = node.client._pull_service
    around(service, "pull_queue")(lambda pull_queue, queue, *where: pull_queue(queue._replace(queue_id=0), *where))


@planted(CONSUMER_0, "smoke", caught_by="living_are_used messages_delivered")
def consumer_reads_nothing_of_a_queue(node: ConsumerNode) -> None:
    """a consumer takes queue 0 of each broker, but never pulls from these queues"""

    @around(node.client._pull_service, "pull_queue")
    def pull_the_others(pull_queue: Any, queue: MessageQueue, held: ProcessQueue, offset: int) -> None:
        if queue.queue_id or queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            pull_queue(queue, held, offset)


@planted(CONSUMERS, "broker-joins", caught_by="living_are_used")
@may_find("messages_delivered queue_ownership")
def consumer_half_sees_a_new_broker(node: ConsumerNode) -> None:
    """consumers see only every second queue of a broker that was not in their first route"""
    known = set[str]()

    @around(_rebalancer(node), "update_subscribe_info")
    def update_half(update: Any, topic: str, queues: frozenset[MessageQueue]) -> None:
        if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            known.update(() if known else {queue.broker_name for queue in queues})
            queues = frozenset(queue for queue in queues if queue.broker_name in known or queue.queue_id % 2 == 0)
        update(topic, queues)


Submit = Callable[[MessageQueue, ProcessQueue, list[StoredMessage]], None]


@planted(CONSUMERS, "smoke", caught_by="duplicates")
@may_find("order_kept")
def consumer_delivers_twice(node: ConsumerNode) -> None:
    """consumers deliver each message to the listener twice"""

    @around(node.client._consume_service, "submit")
    def submit_twice(submit: Submit, *messages: Any) -> None:
        submit(*messages)
        submit(*messages)


@planted(CONSUMERS, "ordered", caught_by="order_kept")
@may_find("prompt_answers")
def consumer_delivers_out_of_order(node: ConsumerNode) -> None:
    """consumers deliver the messages at even offsets of a queue one second late"""
    service = node.client._consume_service
    clock = service._context.clock

    @around(service, "submit")
    def submit_later(submit: Submit, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        for message in messages:
            if message.queue_offset % 2:
                submit(queue, held, [message])
            else:
                clock.call_later(REORDER_S, submit, queue, held, [message])


def _finish(service: ConsumeService, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
    """Marks these messages as consumed without giving them to the listener."""
    offset = held.finish(message.queue_offset for message in messages)
    if offset is not None and not held.dropped:
        service._offsets.update(queue, offset)


def _skips_every_tenth(node: ConsumerNode) -> None:
    """Every 10th message of a queue never reaches the listener."""
    service = node.client._consume_service

    def is_skipped(message: StoredMessage) -> bool:
        return message.queue_offset % SKIPPED_OF == SKIPPED_OF - 1

    @around(service, "submit")
    def submit_most(submit: Submit, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        submit(queue, held, [message for message in messages if not is_skipped(message)])
        _finish(service, queue, held, [message for message in messages if is_skipped(message)])


@planted(CONSUMER_0, "smoke", caught_by="commits_follow_work messages_delivered")
def consumer_skips_messages(node: ConsumerNode) -> None:
    """a consumer counts every 10th message of a queue as consumed without delivering the message"""
    _skips_every_tenth(node)


@planted(CONSUMERS, "smoke", caught_by="commits_follow_work messages_delivered")
def consumer_skips_while_it_rebalances(node: ConsumerNode) -> None:
    """in the first 2 s after each rebalance, consumers count messages as consumed without delivering the messages"""
    service, until_s = node.client._consume_service, 0.0
    clock = service._context.clock

    @around(_rebalancer(node), "rebalance")
    async def rebalance_and_skip(rebalance: Any) -> Any:
        nonlocal until_s
        until_s = clock.monotonic_s() + SKIPS_FOR_S
        return await rebalance()

    @around(service, "submit")
    def submit_between(submit: Submit, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        if clock.monotonic_s() >= until_s:
            submit(queue, held, messages)
        else:
            _finish(service, queue, held, messages)


@planted(CONSUMER_0, "smoke", caught_by="messages_delivered")
def consumer_stops_consuming(node: ConsumerNode) -> None:
    """a consumer delivers nothing after its first 100 messages, but continues to pull"""
    begun = 0

    @around(node.client._consume_service, "submit")
    def submit_first(submit: Submit, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        nonlocal begun
        begun += len(messages)
        if begun <= STOPS_AFTER:
            submit(queue, held, messages)


@planted(CONSUMERS, "smoke", caught_by="messages_delivered")
@may_find("prompt_answers")
def consumer_hands_over_late(node: ConsumerNode) -> None:
    """consumers deliver each message 20 s late"""
    service = node.client._consume_service
    clock = service._context.clock
    around(service, "submit")(lambda submit, *messages: clock.call_later(LATE_S, submit, *messages))


# -- committing


@planted(CONSUMERS, "broker-crash", caught_by="commits_follow_work messages_delivered")
@may_find("prompt_answers")
def consumer_commits_ahead(node: ConsumerNode) -> None:
    """consumers commit the offsets of messages that they have just pulled, and deliver the messages 4 s later"""
    service = node.client._consume_service
    clock = service._context.clock

    @around(service, "submit")
    def submit_later(submit: Submit, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        service._offsets.update(queue, max(message.queue_offset for message in messages) + 1)
        clock.call_later(AHEAD_S, submit, queue, held, messages)


@planted(CONSUMERS._replace(nodes=("consumer-1",)), "broadcast", caught_by="commits_follow_work messages_delivered")
def consumer_misses_a_broadcast(node: ConsumerNode) -> None:
    """a member of a broadcast group counts every 10th message of a queue as consumed without delivering it"""
    _skips_every_tenth(node)


@planted(CONSUMER_0, "smoke", caught_by="commits_follow_work")
def consumer_commits_older_offsets(node: ConsumerNode) -> None:
    """every second commit of a consumer has an offset that is 5 too low"""
    is_right = every(2)

    @around(node.client._offsets, "_send")
    async def send_older(send: Any, queue: MessageQueue, offset: int) -> None:
        await send(queue, offset if is_right() else max(0, offset - OLDER_BY))


@planted(CONSUMER_0, "slave-lags-made-master", caught_by="commits_follow_work")
@may_find("living_are_used messages_delivered queue_ownership timers_kept")
def consumer_keeps_a_queue_after_code_21(node: ConsumerNode) -> None:
    """a consumer keeps a queue that it no longer pulls after code 21 (PULL_OFFSET_MOVED)"""
    replace_part(node.client._pull_service, "_mend_offset", does_nothing_async)


@planted(CONSUMER_0, "broadcast-stop", caught_by="commits_follow_work")
@may_find("duplicates")
def broadcaster_stops_without_writing_offsets(node: ConsumerNode) -> None:
    """a member of a broadcast group that is stopped in order does not write its last offsets"""
    consumer: Any = node.client

    @around(consumer._consume_service, "stop")
    async def stop(original: Callable[[], Awaitable[None]]) -> None:
        await original()
        replace_part(consumer._offsets, "persist", does_nothing_async)


@planted(CONSUMERS, "broadcast", caught_by="commits_follow_work")
def consumer_commits_a_broadcast(node: ConsumerNode) -> None:
    """members of a broadcast group commit their offsets at the brokers, too, not only to their own files"""
    kept = node.client._offsets
    group, log = node.client._config.consumer_group, node.client._context.log
    at_brokers = RemoteBrokerOffsetStore(node.instance, group, log=log)

    @around(kept, "persist")
    async def persist_everywhere(persist: Any, queues: Collection[MessageQueue]) -> None:
        await persist(queues)
        at_brokers._offsets = kept._offsets
        await at_brokers.persist(queues)


@planted(CONSUMER_0, "broker-crash", caught_by="commits_follow_work")
def consumer_ends_its_commits_at_an_error(node: ConsumerNode) -> None:
    """a consumer commits nothing to the living brokers that stand behind a dead broker in its list of queues"""
    offsets: Any = node.client._offsets

    @around(offsets, "persist")
    async def persist_until_an_error(persist: Any, queues: Collection[MessageQueue]) -> None:
        with suppress(RocketMQError):
            for queue in queues:
                if queue in offsets._offsets:
                    await offsets._send(queue, offsets._offsets[queue])


@planted(CONSUMERS, "broker-crash", caught_by="commits_follow_work duplicates")
def consumer_never_commits(node: ConsumerNode) -> None:
    """consumers never commit their offsets"""
    replace_part(node.client._offsets, "persist", does_nothing_async)
    replace_part(node.client._offsets, "in_memory", does_nothing)


@planted(CONSUMERS, "quiet", caught_by="duplicates")
@may_find("commits_follow_work timers_kept")
def consumer_sends_back_what_it_consumed(node: ConsumerNode) -> None:
    """consumers send every 40th message back, though their listener has consumed it"""
    is_sent_back = every(40)

    @around(node.client._consume_service, "_call_listener")
    async def consume(call: Any, batch: Any) -> bool:
        return await call(batch) and not is_sent_back()


@planted(CONSUMERS, "broker-stop", caught_by="timers_kept")
@may_find("living_are_used prompt_answers")
def consumer_pulls_again_at_once(node: ConsumerNode) -> None:
    """consumers pull again 20 ms after any error, as after code 215 (FLOW_CONTROL)"""

    @around(node.client._pull_service, "_pause_after")
    def as_flow_control(_: Any, _queue: MessageQueue, exc: RocketMQError) -> tuple[str, float, int | None]:
        code = int(exc.code) if isinstance(exc, ResponseError) else None
        return "broker_flow_control", BROKER_FLOW_CONTROL_PAUSE_S, code


@planted(CONSUMER_0, "quiet", caught_by="timers_kept")
@may_find("messages_delivered")
def consumer_chooses_the_delay(node: ConsumerNode) -> None:
    """a consumer sends messages back with delayLevel 4 (30 s), so that the broker does not choose the delay"""

    @around(node.instance.remoting, "invoke")
    async def with_level(invoke: Any, target: Address, request: RemotingCommand, **more: Any) -> RemotingCommand:
        if request.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            request.ext_fields = (request.ext_fields or {}) | {"delayLevel": "4"}
        answer: RemotingCommand = await invoke(target, request, **more)
        return answer


# -- offsets that are lost, or kept where nobody asks


@planted(SLAVE_OF_A, "slave-tells-offsets", caught_by="commits_follow_work")
@may_find("duplicates timers_kept")
def slave_stops_copying_offsets(broker: Broker) -> None:
    """a slave copies its master's consumer offsets 4 times and then never again"""
    synchronize, taken = broker._synchronize, 0

    @around(synchronize, "_table")
    async def table_for_a_while(table: Any, code: RequestCode, take: Callable[[bytes], object]) -> None:
        nonlocal taken
        if code == RequestCode.GET_ALL_CONSUMER_OFFSET:
            taken += synchronize.master is not None
            if taken > COPIES:
                return
        await table(code, take)


@planted(CONSUMER_0, "smoke", caught_by="timers_kept")
def consumer_has_no_version(node: ConsumerNode) -> None:
    """a consumer's requests have version 0, as if no RocketMQ had made them"""
    replace_part(node.instance.remoting, "version", 0)


@planted(BROKER_A, "broker-stop", caught_by="commits_follow_work")
@may_find("duplicates")
@from_its_making
@in_its_parts
def broker_reads_its_first_offsets(broker: Broker) -> None:
    """a broker that starts again reads the offsets of its first write, not those of its last"""
    offsets, folder = broker.services.offsets, broker._settings
    first = folder / "consumerOffset.first"
    if first.exists():
        offsets.take(first.read_bytes())

    @around(offsets, "persist")
    def persist(write: Any) -> None:
        write()
        if offsets._table and not first.exists():
            first.write_bytes(offsets.encode())


@planted(BROKER_A, "broker-stop", caught_by="commits_follow_work")
@may_find("duplicates")
def broker_stops_without_writing_offsets(broker: Broker) -> None:
    """a broker that is shut down does not write the offsets that were committed since its last write of offsets"""

    @around(broker._registration, "stop")
    async def leave_and_write_no_more(leave: Any) -> None:
        replace_part(broker.services.offsets, "persist", does_nothing)
        await leave()


@planted(CONSUMERS, "consumer-stop", caught_by="commits_follow_work")
@may_find("duplicates")
def consumer_gives_queues_up_uncommitted(node: ConsumerNode) -> None:
    """consumers do not commit their offset of a queue that a rebalance takes away"""
    held = _rebalancer(node).process_queues

    @around(node.client._offsets, "persist")
    async def persist_kept(persist: Any, queues: Collection[MessageQueue]) -> None:
        await persist([queue for queue in queues if queue not in held or not held[queue].dropped])


@planted(CONSUMERS, "consumer-crash", caught_by="commits_follow_work")
@may_find("duplicates")
def consumer_begins_below_the_answer(node: ConsumerNode) -> None:
    """consumers begin to read each queue five messages before the offset that the broker answered"""

    @around(_rebalancer(node), "_start_offset")
    async def start_before(start: Any, queue: MessageQueue) -> int:
        return max(0, int(await start(queue)) - 5)


@planted(CONSUMERS, "consumer-stop", caught_by="commits_follow_work")
@may_find("duplicates")
def consumer_leaves_without_a_commit(node: ConsumerNode) -> None:
    """consumers that are shut down do not commit their offsets"""

    @around(_rebalancer(node), "stop")
    async def stop_and_commit_no_more(stop: Any) -> None:
        replace_part(node.client._offsets, "persist", does_nothing_async)
        await stop()


@planted(CONSUMER_0, "consumer-stop", caught_by="timers_kept")
@may_find("commits_follow_work duplicates")
def consumer_unregisters_before_it_commits(node: ConsumerNode) -> None:
    """a consumer that is shut down unregisters before it commits its offsets"""

    @around(node.client, "stop")
    async def unregister_and_stop(stop: Any) -> None:
        await node.client.client.unregister_consumer(node.client._config.consumer_group)
        await stop()


@planted(CONSUMER_0, "consumer-stop", caught_by="commits_follow_work")
@may_find("duplicates")
def consumer_commits_after_it_has_left(node: ConsumerNode) -> None:
    """a consumer commits only with its pulls, and once at its shutdown, after it has unregistered"""
    instance, offsets, kept = node.instance, node.client._offsets, list[MessageQueue]()

    @around(node.client, "persist_offsets")
    async def persist_later(_persist: Any) -> None:
        kept[:] = node.client._rebalancer.process_queues

    @around(instance, "unregister_consumer")
    async def unregister_and_persist(unregister: Any, group: str) -> None:
        await unregister(group)
        await offsets.persist(kept)


@planted(CONSUMERS, "master-lost-slave-serves", caught_by="timers_kept")
def consumer_asks_only_masters_for_members(node: ConsumerNode) -> None:
    """consumers ask only masters for the members of their group, even if only a slave of a broker name is left"""
    instance = node.instance

    @around(instance, "find_broker_address_by_topic")
    def master_of(find: Any, topic: str) -> Any:
        address = find(topic)
        masters = [ids.get(MASTER_ID) for ids in instance.route_cache.broker_addr_table.values()]
        return address if address in masters else None


@planted(CONSUMER_0, "broker-hang", caught_by="timers_kept")
@may_find("queue_ownership duplicates commits_follow_work messages_delivered")
def consumer_is_alone_without_a_list(node: ConsumerNode) -> None:
    """a consumer rebalances as the only member of its group while no broker answers with the members"""

    @around(node.instance, "find_consumer_id_list")
    async def find_or_itself(find: Any, topic: str, group: str) -> Any:
        ids = await find(topic, group)
        return [node.instance.client_id] if ids is None else ids


@planted(CONSUMER_0, "name-server-partition", caught_by="timers_kept")
def consumer_polls_on_without_an_answer(node: ConsumerNode) -> None:
    """after an unanswered look-up a consumer still asks for the remaining topics of its route poll"""

    async def poll_all() -> None:
        for data in node.client.subscriptions():
            with suppress(TransportError):
                await node.instance.update_route(data.topic)

    replace_part(node.instance, "poll_routes", poll_all)


@planted(CONSUMER_0, "slave-reads", caught_by="commits_follow_work")
@may_find("duplicates")
def consumer_keeps_its_offsets_at_slaves(node: ConsumerNode) -> None:
    """a consumer commits to slaves instead of masters, and asks slaves for its offsets"""
    instance = node.instance
    find = instance.find_broker_address_in_subscribe

    def find_slave(broker_name: str, _id: int) -> FindBrokerResult | None:
        return find(broker_name, MASTER_ID + 1)

    there = SimpleNamespace(
        find_broker_address_in_subscribe=find_slave, update_route=instance.update_route, remoting=instance.remoting
    )
    find_broker: Any = type(instance).find_broker
    there.find_broker = partial(find_broker, there)
    replace_part(node.client._offsets, "_instance", there)


@planted(BROKER_A, "group-joins", caught_by="queue_ownership")
def broker_finds_no_offset(broker: Broker) -> None:
    """a broker answers "not found" instead of 0 to a group without a committed offset, although all messages are in
    memory"""
    replace_part(broker._clients, "_in_memory", lambda topic, queue_id: False)


@planted(BROKER_A, "group-joins", caught_by="queue_ownership")
def broker_begins_new_groups_at_the_end(broker: Broker) -> None:
    """a broker answers the queue's end instead of 0 to a group without a committed offset, although all messages are
    in memory"""
    store = broker.services.store

    @around(broker.services.offsets, "query")
    def query_or_end(query: Any, group: str, topic: str, queue_id: int) -> int:
        offset: int = query(group, topic, queue_id)
        return offset if offset >= 0 else store.max_offset(topic, queue_id)
