"""Ways for a consumer to be wrong: which queues it takes, what it pulls and delivers, what it commits."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ....clients.consumer.allocation import allocate_averagely
from ....clients.consumer.consume_service import ConsumeService
from ....clients.consumer.offset_store import RemoteBrokerOffsetStore
from ....clients.consumer.process_queue import ProcessQueue
from ....clients.consumer.rebalance import Rebalancer
from ....remoting.message import MessageQueue, StoredMessage
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...experiment.workloads.consumer import ConsumerNode
from ...scenarios.defect import Defect, checks, replace_part
from ...topology import NodeKind

REORDER_S = 1.0
SKIPPED_OF = 10
SKIPS_FOR_S = 2.0
"""How long after a rebalance has begun the consumer that skips what comes meanwhile goes on skipping."""
STOPS_AFTER = 100
LATE_S = 20.0
OLDER_BY = 5
AHEAD_S = 4.0
"""How long the consumer that commits ahead of its work keeps a message before it works on it."""

_CONSUMER = (NodeKind.CONSUMER,)
_ONE = ("consumer-0",)


# -- which queues


def _rebalancer(node: ConsumerNode) -> Rebalancer:
    return node.client._rebalancer


def _takes_all_queues(node: ConsumerNode) -> None:
    rebalancer = _rebalancer(node)

    async def allocate(topic: str) -> set[MessageQueue] | None:
        queues = rebalancer._subscribe_info.get(topic)
        return None if queues is None else set(queues)

    replace_part(rebalancer, "_allocate", allocate)


def _leaves_a_queue_out(node: ConsumerNode) -> None:
    rebalancer = _rebalancer(node)
    allocate = rebalancer._allocate

    async def allocate_less(topic: str) -> set[MessageQueue] | None:
        mine = await allocate(topic)
        return mine and set(sorted(mine)[1:])

    replace_part(rebalancer, "_allocate", allocate_less)


def _sorts_members_otherwise(node: ConsumerNode) -> None:
    rebalancer, instance = _rebalancer(node), node.instance
    group = rebalancer._config.consumer_group

    async def allocate(topic: str) -> set[MessageQueue] | None:
        queues = rebalancer._subscribe_info.get(topic)
        ids = await instance.find_consumer_id_list(topic, group)
        if queues is None or ids is None or instance.client_id not in ids:
            return None
        mirrored = sorted(ids)[len(ids) - 1 - sorted(ids).index(instance.client_id)]
        return set(allocate_averagely(mirrored, queues, ids))

    replace_part(rebalancer, "_allocate", allocate)


def _keeps_what_it_has(node: ConsumerNode) -> None:
    rebalancer = _rebalancer(node)
    allocate = rebalancer._allocate

    async def allocate_more(topic: str) -> set[MessageQueue] | None:
        mine = await allocate(topic)
        routed = rebalancer._subscribe_info.get(topic) or frozenset()
        gone = {queue for queue in rebalancer.working_queues(topic) if queue not in routed}
        return mine if mine is None else mine | gone

    replace_part(rebalancer, "_allocate", allocate_more)
    replace_part(node.instance.route_cache, "clean_offline_brokers", tuple)


# -- pulling and delivering


def _pulls_the_wrong_queue(node: ConsumerNode) -> None:
    service = node.client._pull_service
    pull_queue = service.pull_queue

    def pull_the_first(queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        pull_queue(queue._replace(queue_id=0), process_queue, offset)

    replace_part(service, "pull_queue", pull_the_first)


def _reads_nothing_of_a_queue(node: ConsumerNode) -> None:
    """It holds the first queue of each broker, and never asks for it."""
    service = node.client._pull_service
    pull_queue = service.pull_queue

    def pull_the_others(queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        if queue.queue_id or queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            pull_queue(queue, process_queue, offset)

    replace_part(service, "pull_queue", pull_the_others)


def _half_sees_new_brokers(node: ConsumerNode) -> None:
    """Of a broker that was not in its first route it knows every other queue."""
    rebalancer, known = _rebalancer(node), set[str]()
    update = rebalancer.update_subscribe_info

    def update_half(topic: str, queues: frozenset[MessageQueue]) -> None:
        if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            known.update(() if known else {queue.broker_name for queue in queues})
            queues = frozenset(queue for queue in queues if queue.broker_name in known or queue.queue_id % 2 == 0)
        update(topic, queues)

    replace_part(rebalancer, "update_subscribe_info", update_half)


def _delivers_twice(node: ConsumerNode) -> None:
    service = node.client._consume_service
    submit = service.submit

    def submit_twice(queue: MessageQueue, process_queue: ProcessQueue, messages: list[StoredMessage]) -> None:
        submit(queue, process_queue, messages)
        submit(queue, process_queue, messages)

    replace_part(service, "submit", submit_twice)


def _delivers_out_of_order(node: ConsumerNode) -> None:
    """Messages at even offsets are delivered a second later than those at odd ones."""
    service = node.client._consume_service
    submit, clock = service.submit, service._context.clock

    def submit_later(queue: MessageQueue, process_queue: ProcessQueue, messages: list[StoredMessage]) -> None:
        for message in messages:
            if message.queue_offset % 2:
                submit(queue, process_queue, [message])
            else:
                clock.call_later(REORDER_S, submit, queue, process_queue, [message])

    replace_part(service, "submit", submit_later)


def _finish(service: ConsumeService, queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
    """These messages count as consumed, and no listener has seen them."""
    offset = held.finish(message.queue_offset for message in messages)
    if offset is not None and not held.dropped:
        service._offsets.update(queue, offset)


def _skips(wanted: Callable[[StoredMessage], bool]) -> Callable[[ConsumerNode], None]:
    """Messages that are not wanted never reach the listener."""

    def plant(node: ConsumerNode) -> None:
        service = node.client._consume_service
        submit = service.submit

        def submit_some(queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
            submit(queue, held, [message for message in messages if wanted(message)])
            _finish(service, queue, held, [message for message in messages if not wanted(message)])

        replace_part(service, "submit", submit_some)

    return plant


def _skips_while_it_rebalances(node: ConsumerNode) -> None:
    service, rebalancer = node.client._consume_service, _rebalancer(node)
    submit, rebalance, clock = service.submit, rebalancer.rebalance, service._context.clock
    until_s = 0.0

    async def rebalance_and_skip() -> bool:
        nonlocal until_s
        until_s = clock.monotonic_s() + SKIPS_FOR_S
        return await rebalance()

    def submit_in_between(queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        if clock.monotonic_s() >= until_s:
            submit(queue, held, messages)
        else:
            _finish(service, queue, held, messages)

    replace_part(rebalancer, "rebalance", rebalance_and_skip)
    replace_part(service, "submit", submit_in_between)


def _stops_consuming(node: ConsumerNode) -> None:
    service = node.client._consume_service
    submit, begun = service.submit, 0

    def submit_the_first(queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        nonlocal begun
        begun += len(messages)
        if begun <= STOPS_AFTER:
            submit(queue, held, messages)

    replace_part(service, "submit", submit_the_first)


def _hands_over_late(node: ConsumerNode) -> None:
    service = node.client._consume_service
    submit, clock = service.submit, service._context.clock

    def submit_late(queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        clock.call_later(LATE_S, submit, queue, held, messages)

    replace_part(service, "submit", submit_late)


# -- committing


def _commits_ahead(node: ConsumerNode) -> None:
    """What is pulled is committed, and worked on later; whoever takes the queue meanwhile begins behind it."""
    service = node.client._consume_service
    submit, clock = service.submit, service._context.clock

    def commit_and_submit_later(queue: MessageQueue, held: ProcessQueue, messages: list[StoredMessage]) -> None:
        service._offsets.update(queue, max(message.queue_offset for message in messages) + 1)
        clock.call_later(AHEAD_S, submit, queue, held, messages)

    replace_part(service, "submit", commit_and_submit_later)


def _commits_older_offsets(node: ConsumerNode) -> None:
    """Every other commit by itself says an offset that is behind the last one."""
    offsets, sent = node.client._offsets, 0
    assert isinstance(offsets, RemoteBrokerOffsetStore)
    send = offsets._send

    async def send_older(queue: MessageQueue, offset: int) -> None:
        nonlocal sent
        sent += 1
        await send(queue, max(0, offset - OLDER_BY) if sent % 2 else offset)

    replace_part(offsets, "_send", send_older)


def _commits_a_broadcast(node: ConsumerNode) -> None:
    """What it keeps for itself it tells the brokers, too."""
    kept = node.client._offsets
    group, log = node.client._config.consumer_group, node.client._context.log
    at_brokers = RemoteBrokerOffsetStore(node.instance, group, log=log)
    persist = kept.persist

    async def persist_everywhere(queues: Collection[MessageQueue]) -> None:
        await persist(queues)
        at_brokers._offsets = kept._offsets
        await at_brokers.persist(queues)

    replace_part(kept, "persist", persist_everywhere)


def _never_commits(node: ConsumerNode) -> None:
    async def persist(queues: Collection[MessageQueue]) -> None:
        """Nothing is sent."""

    replace_part(node.client._offsets, "persist", persist)
    replace_part(node.client._offsets, "in_memory", lambda queue: None)


DEFECTS = (
    Defect(
        name="consumer-takes-all-queues",
        what="a consumer takes every queue, those of the others too",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("queue_ownership"),
        also=checks("duplicates"),
        plant=_takes_all_queues,
    ),
    Defect(
        name="consumer-leaves-a-queue-out",
        what="a consumer leaves the first of its queues to nobody",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("queue_ownership"),
        also=checks("living_are_used", "messages_delivered"),
        plant=_leaves_a_queue_out,
    ),
    Defect(
        name="consumer-sorts-members-otherwise",
        what="one consumer sorts the group's members the other way round, so two take the same queues",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("queue_ownership"),
        also=checks("living_are_used", "duplicates", "messages_delivered"),
        plant=_sorts_members_otherwise,
    ),
    Defect(
        name="consumer-keeps-lost-queues",
        what="consumers keep the queues and the address of a broker that has left the routes",
        kinds=_CONSUMER,
        scenario="broker-crash",
        caught_by=checks("dead_brokers_avoided"),
        also=checks("queue_ownership", "timers_kept"),
        plant=_keeps_what_it_has,
    ),
    Defect(
        name="consumer-pulls-the-wrong-queue",
        what="consumers pull the first queue of a broker for each queue of it that they hold",
        kinds=_CONSUMER,
        scenario="smoke",
        caught_by=checks("duplicates"),
        also=checks("commits_follow_work", "living_are_used", "messages_delivered", "order_kept", "queue_ownership"),
        plant=_pulls_the_wrong_queue,
    ),
    Defect(
        name="consumer-reads-nothing-of-a-queue",
        what="a consumer holds the first queue of a broker, and never pulls it",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("living_are_used", "messages_delivered"),
        plant=_reads_nothing_of_a_queue,
    ),
    Defect(
        name="consumer-half-sees-a-new-broker",
        what="consumers know every other queue of a broker that joins later",
        kinds=_CONSUMER,
        scenario="broker-joins",
        caught_by=checks("living_are_used"),
        also=checks("messages_delivered", "queue_ownership"),
        plant=_half_sees_new_brokers,
    ),
    Defect(
        name="consumer-delivers-twice",
        what="consumers hand each message to the listener twice",
        kinds=_CONSUMER,
        scenario="smoke",
        caught_by=checks("duplicates"),
        also=checks("order_kept"),
        plant=_delivers_twice,
    ),
    Defect(
        name="consumer-delivers-out-of-order",
        what="consumers hand over every other message of a queue a second late",
        kinds=_CONSUMER,
        scenario="ordered",
        caught_by=checks("order_kept"),
        also=checks("prompt_answers"),
        plant=_delivers_out_of_order,
    ),
    Defect(
        name="consumer-skips-messages",
        what=f"a consumer counts every {SKIPPED_OF}th message of a queue as consumed without handing it over",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("commits_follow_work", "messages_delivered"),
        plant=_skips(lambda message: message.queue_offset % SKIPPED_OF != SKIPPED_OF - 1),
    ),
    Defect(
        name="consumer-skips-while-it-rebalances",
        what=f"consumers count what comes within {SKIPS_FOR_S:g} s of each rebalance as consumed",
        kinds=_CONSUMER,
        scenario="smoke",
        caught_by=checks("commits_follow_work", "messages_delivered"),
        plant=_skips_while_it_rebalances,
    ),
    Defect(
        name="consumer-stops-consuming",
        what=f"a consumer hands over nothing after its first {STOPS_AFTER} messages, and pulls on",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("messages_delivered"),
        plant=_stops_consuming,
    ),
    Defect(
        name="consumer-hands-over-late",
        what=f"consumers hand over each message {LATE_S:g} s late",
        kinds=_CONSUMER,
        scenario="smoke",
        caught_by=checks("messages_delivered"),
        also=checks("prompt_answers"),
        plant=_hands_over_late,
    ),
    Defect(
        name="consumer-commits-ahead",
        what=f"consumers commit what they pull, work on it {AHEAD_S:g} s later, and lose it when a queue leaves them",
        kinds=_CONSUMER,
        scenario="broker-crash",
        caught_by=checks("commits_follow_work", "messages_delivered"),
        also=checks("prompt_answers"),
        plant=_commits_ahead,
    ),
    Defect(
        name="consumer-misses-a-broadcast",
        what=f"a member of a broadcast group counts every {SKIPPED_OF}th message of a queue as consumed",
        kinds=_CONSUMER,
        nodes=("consumer-1",),
        scenario="broadcast",
        caught_by=checks("commits_follow_work", "messages_delivered"),
        plant=_skips(lambda message: message.queue_offset % SKIPPED_OF != SKIPPED_OF - 1),
    ),
    Defect(
        name="consumer-commits-older-offsets",
        what=f"every other commit of a consumer is {OLDER_BY} messages behind what it has committed",
        kinds=_CONSUMER,
        nodes=_ONE,
        scenario="smoke",
        caught_by=checks("commits_follow_work"),
        plant=_commits_older_offsets,
    ),
    Defect(
        name="consumer-commits-a-broadcast",
        what="members of a broadcast group commit their offsets at the brokers",
        kinds=_CONSUMER,
        scenario="broadcast",
        caught_by=checks("commits_follow_work"),
        plant=_commits_a_broadcast,
    ),
    Defect(
        name="consumer-never-commits",
        what="consumers never commit how far they have consumed",
        kinds=_CONSUMER,
        scenario="broker-crash",
        caught_by=checks("commits_follow_work", "duplicates"),
        plant=_never_commits,
    ),
)
