"""Ways for a producer to be wrong: routes that it takes, retries, and what it tells its user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ....clients.producer.publish_table import Publish
from ....clients.producer.queue_selection import QueueRing
from ....clients.producer.send_record import SendRecord
from ....clients.producer.send_request import SendRequest
from ....clients.producer.send_result import SendResult, SendStatus
from ....remoting.errors import ClientError, RocketMQError, TransportError
from ....remoting.message import MessageQueue
from ...experiment.workloads.producer import ProducerNode
from ...scenarios.defect import Defect, checks, replace_part
from ...topology import NodeKind

_PRODUCER = (NodeKind.PRODUCER,)
_AVOIDED_S = 2.0


def _ignores_new_routes(node: ProducerNode) -> None:
    cache = node.instance.route_cache
    take, known = cache._apply, set[str]()

    def apply(topic: str, route: Any) -> Any:
        if topic in known:
            return None
        known.add(topic)
        return take(topic, route)

    replace_part(cache, "_apply", apply)


def _retries_the_same_broker(node: ProducerNode) -> None:
    fault = node.client._fault
    select = fault.select

    def select_again(
        ring: QueueRing,
        last_broker_name: str | None,
        *,
        now_ms: int,
        write_queue_nums: Mapping[str, int],
        retry: bool = False,
    ) -> MessageQueue:
        if last_broker_name is None:
            return select(ring, None, now_ms=now_ms, write_queue_nums=write_queue_nums, retry=retry)
        return ring.next_that(lambda queue: queue.broker_name == last_broker_name) or ring.next()

    replace_part(fault, "select", select_again)


def _excludes_for_ever(node: ProducerNode) -> None:
    sender, failed = node.client._sender, set[str]()
    note_failure = sender._note_failure

    def note_for_ever(error: RocketMQError, broker_name: str, begin_ms: int) -> None:
        failed.add(broker_name)
        note_failure(error, broker_name, begin_ms)

    def select(publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
        queue = publish.ring.next_that(lambda queue: queue.broker_name not in failed)
        if queue is None:
            raise ClientError("every broker has failed once")
        return queue

    replace_part(sender, "_note_failure", note_for_ever)
    replace_part(sender, "_select", select)


def _never_uses(broker_name: str) -> Callable[[ProducerNode], None]:
    """Its queues are passed over, though the route has them."""

    def plant(node: ProducerNode) -> None:
        def select(publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
            return publish.ring.next_that(lambda queue: queue.broker_name != broker_name) or publish.ring.next()

        replace_part(node.client._sender, "_select", select)

    return plant


def _avoids_what_has_healed(node: ProducerNode) -> None:
    """A broker that failed once is passed over as long as there is another."""
    sender, failed = node.client._sender, set[str]()
    note_failure = sender._note_failure

    def note(error: RocketMQError, broker_name: str, begin_ms: int) -> None:
        failed.add(broker_name)
        note_failure(error, broker_name, begin_ms)

    def select(publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
        return publish.ring.next_that(lambda queue: queue.broker_name not in failed) or publish.ring.next()

    replace_part(sender, "_note_failure", note)
    replace_part(sender, "_select", select)


def _avoids_though_off(node: ProducerNode) -> None:
    """A broker that failed is passed over for 2 s as long as there is another, as if the fault strategy were on."""
    sender, failed_s = node.client._sender, dict[str, float]()
    note_failure, clock = sender._note_failure, node._context.clock

    def note(error: RocketMQError, broker_name: str, begin_ms: int) -> None:
        failed_s[broker_name] = clock.monotonic_s()
        note_failure(error, broker_name, begin_ms)

    def select(publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
        avoided = {name for name, at_s in failed_s.items() if clock.monotonic_s() - at_s < _AVOIDED_S}
        return publish.ring.next_that(lambda queue: queue.broker_name not in avoided) or publish.ring.next()

    replace_part(sender, "_note_failure", note)
    replace_part(sender, "_select", select)


def _calls_failures_sent(node: ProducerNode) -> None:
    sender = node.client._sender
    send_once = sender.send_once

    async def send_once_gladly(
        request: SendRequest, record: SendRecord, queue: MessageQueue, timeout_ms: int
    ) -> SendResult:
        try:
            return await send_once(request, record, queue, timeout_ms)
        except TransportError:
            return SendResult(
                status=SendStatus.SEND_OK, msg_id=request.msg_id, offset_msg_id="", queue=queue, queue_offset=0
            )

    replace_part(sender, "send_once", send_once_gladly)


def _sends_on_after_its_time(node: ProducerNode) -> None:
    sender = node.client._sender
    send = sender.send

    async def send_long(request: SendRequest, record: SendRecord, timeout_ms: int) -> SendResult:
        return await send(request, record, 3 * timeout_ms)

    def cap(left_ms: int, *, last: bool) -> int:
        return min(left_ms, node.client._config.send_msg_timeout_ms)

    replace_part(sender, "send", send_long)
    replace_part(sender, "_cap", cap)


def _sender_setting(name: str, value: object) -> Callable[[ProducerNode], None]:
    """A producer that tries again by another setting than its own."""

    def plant(node: ProducerNode) -> None:
        sender = node.client._sender
        changed: Any = {name: value}
        replace_part(sender, "_config", replace(sender._config, **changed))

    return plant


DEFECTS = (
    Defect(
        name="producer-ignores-new-routes",
        what="producers keep the first route they got",
        kinds=_PRODUCER,
        scenario="broker-crash",
        caught_by=checks("dead_brokers_avoided"),
        also=checks("client_routes_are_true", "recovery_time"),
        plant=_ignores_new_routes,
    ),
    Defect(
        name="producer-retries-the-same-broker",
        what="producers try a failed send again on the broker that has just failed",
        kinds=_PRODUCER,
        scenario="broker-crash-available",
        caught_by=checks("availability", "living_are_used"),
        also=checks("recovery_time"),
        plant=_retries_the_same_broker,
    ),
    Defect(
        name="producer-excludes-for-ever",
        what="producers never use a broker again that failed them once",
        kinds=_PRODUCER,
        scenario="brokers-crash-in-turn",
        caught_by=checks("availability", "living_are_used"),
        also=checks("recovery_time"),
        plant=_excludes_for_ever,
    ),
    Defect(
        name="producer-never-uses-a-broker",
        what="a producer never sends to broker-b, which is healthy and in its route",
        kinds=_PRODUCER,
        nodes=("producer-0",),
        scenario="smoke",
        caught_by=checks("living_are_used"),
        plant=_never_uses("broker-b"),
    ),
    Defect(
        name="producer-avoids-what-has-healed",
        what="producers do not come back to a broker that failed them once, as long as there is another",
        kinds=_PRODUCER,
        scenario="broker-crash",
        caught_by=checks("living_are_used"),
        plant=_avoids_what_has_healed,
    ),
    Defect(
        name="producer-avoids-though-off",
        what="producers avoid a broker for 2 s after it failed them, though sendLatencyFaultEnable is off",
        kinds=_PRODUCER,
        scenario="broker-crash",
        caught_by=checks("living_are_used"),
        plant=_avoids_though_off,
    ),
    Defect(
        name="producer-calls-failures-sent",
        what="producers report a message sent although no broker could be reached",
        kinds=_PRODUCER,
        scenario="broker-crash",
        caught_by=checks("no_acknowledged_loss"),
        also=checks("messages_delivered", "order_kept"),  # the queue offset that it makes up is out of order, too
        plant=_calls_failures_sent,
    ),
    Defect(
        name="producer-sends-on-after-its-time",
        what="each try of a producer's send has the sendMsgTimeout of the whole send",
        kinds=_PRODUCER,
        scenario="broker-hang",
        caught_by=checks("living_are_used"),
        plant=_sends_on_after_its_time,
    ),
    Defect(
        name="producer-has-one-try",
        what="producers give a send up after one try instead of three",
        kinds=_PRODUCER,
        scenario="broker-crash-late",
        caught_by=checks("living_are_used"),
        also=checks("availability", "recovery_time"),
        plant=_sender_setting("retry_times_when_send_failed", 0),
    ),
    Defect(
        name="producer-sends-again-what-is-stored",
        what="a producer sends what was stored without a slave again, though retryAnotherBrokerWhenNotStoreOK is off",
        kinds=_PRODUCER,
        nodes=("producer-0",),
        scenario="sync-master",
        caught_by=checks("living_are_used"),
        also=checks("duplicates"),
        plant=_sender_setting("retry_another_broker_when_not_store_ok", True),
    ),
)
