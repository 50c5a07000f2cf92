"""A push consumer against a small broker: start offsets, delivery, retries, flow control, rebalance, broadcasting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nemesrv.clients.client_instance import RETRY_GROUP_TOPIC_PREFIX
from nemesrv.clients.consumer import offsets_path
from nemesrv.clients.consumer_config import ConsumeFromWhere, ConsumerConfig, MessageModel
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ClientError, TransportError
from nemesrv.remoting.headers import (
    ConsumerSendMsgBackRequestHeader,
    PullMessageRequestHeader,
    SendMessageRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from nemesrv.remoting.message_properties import parse_properties
from nemesrv.remoting.network import Address
from nemesrv.remoting.profile import Profile
from tests.virtual import MemoryNetwork, VirtualClock, run

from .consumers import Consuming
from .small_broker import SmallBroker

CLOCK = VirtualClock()
RETRY = RETRY_GROUP_TOPIC_PREFIX + "group"


class World:
    """One broker with the topic `orders` and the retry topic, and the consumers made on it."""

    def __init__(self, queues: int = 4) -> None:
        self.network = MemoryNetwork()
        self.broker = SmallBroker(self.network, {"orders": queues, RETRY: 1})

    async def consumer(self, name: str = "consumer-0", **config: Any) -> Consuming:
        if not self.network.listening:
            await self.broker.listen()
        consuming = Consuming(self.network, (self.broker.address,), name=name, **config)
        await consuming.consumer.start()
        return consuming

    async def fill(self, count: int, **properties: str) -> list[bytes]:
        queues = self.broker.topics["orders"]
        bodies = [b"%d" % number for number in range(count)]
        for number, body in enumerate(bodies):
            await self.broker.append("orders", number % queues, body, KEYS=f"k{number}", **properties)
        return bodies

    def pulls(self, topic: str = "orders") -> list[PullMessageRequestHeader]:
        headers = [
            PullMessageRequestHeader.from_ext_fields(request.ext_fields)
            for request in self.broker.asked(RequestCode.PULL_MESSAGE)
        ]
        return [header for header in headers if header.topic == topic]


def test_messages_of_every_queue_are_received_once_and_recorded() -> None:
    async def body() -> None:
        world = World()
        sent = await world.fill(40)
        consuming = await world.consumer()
        await CLOCK.sleep(1)
        assert sorted(consuming.bodies) == sorted(sent)
        assert consuming.assigned() == [["broker-a", queue_id] for queue_id in range(4)]
        assert {
            "event": "receive",
            "msg_key": "k5",
            "topic": "orders",
            "broker_name": "broker-a",
            "queue_id": 1,
            "offset": 1,
            "op_id": "take-1",
        } in consuming.recorded("receive")
        assert len(consuming.recorded("receive")) == 40
        await consuming.consumer.stop()
        assert consuming.assigned() == []
        held = [(row["event"], row["op_id"], row["queue_id"]) for row in consuming.recorded("queue_dropped")]
        assert held[:4] == [("queue_dropped", f"take-{queue_id}", queue_id) for queue_id in range(4)]
        taken = consuming.recorded("queue_taken")[1]
        at = {"topic": "orders", "broker_name": "broker-a", "queue_id": 1, "offset": 0}
        assert taken == {"event": "queue_taken", "op_id": "take-1", **at}

    run(body)


def test_a_held_pull_brings_a_new_message_at_once() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer()
        await CLOCK.sleep(4)
        asked = len(world.pulls())
        await world.broker.append("orders")
        await CLOCK.sleep(0.01)
        assert len(consuming.received) == 1
        assert asked == 1, "the broker holds the pull, nobody polls"
        await consuming.consumer.stop()

    run(body)


@pytest.mark.parametrize(
    ("where", "offset"),
    [(ConsumeFromWhere.FIRST_OFFSET, 0), (ConsumeFromWhere.LAST_OFFSET, 3), (ConsumeFromWhere.TIMESTAMP, 2)],
)
def test_a_new_group_starts_where_it_was_told(where: ConsumeFromWhere, offset: int) -> None:
    async def body() -> None:
        world = World(queues=1)
        await world.fill(3)
        consuming = await world.consumer(consume_from_where=where)
        await CLOCK.sleep(1)
        assert world.pulls()[0].queue_offset == offset
        await consuming.consumer.stop()

    run(body)


def test_a_known_group_goes_on_where_it_was() -> None:
    async def body() -> None:
        world = World(queues=1)
        sent = await world.fill(5)
        world.broker.committed["group", "orders", 0] = 2
        consuming = await world.consumer(consume_from_where=ConsumeFromWhere.LAST_OFFSET)
        await CLOCK.sleep(1)
        assert consuming.bodies == sent[2:]
        await consuming.consumer.stop()

    run(body)


def test_a_queue_whose_start_offset_is_unknown_waits_for_the_next_rebalance() -> None:
    async def body() -> None:
        world = World(queues=1)
        await world.fill(3)
        world.broker.answers[RequestCode.QUERY_CONSUMER_OFFSET] = lambda _: RemotingCommand.response(1, "broken")
        consuming = await world.consumer()
        await CLOCK.sleep(19)
        assert consuming.received == []
        del world.broker.answers[RequestCode.QUERY_CONSUMER_OFFSET]
        await CLOCK.sleep(2)
        assert len(consuming.received) == 3
        await consuming.consumer.stop()

    run(body)


def test_offsets_are_committed_each_five_seconds_oneway_and_at_the_end() -> None:
    async def body() -> None:
        world = World(queues=1)
        await world.fill(3)
        consuming = await world.consumer()
        await CLOCK.sleep(9)
        assert world.broker.asked(RequestCode.UPDATE_CONSUMER_OFFSET) == []
        await CLOCK.sleep(1.5)
        first = world.broker.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
        assert all(request.is_oneway for request in first)
        assert world.broker.committed["group", "orders", 0] == 3
        await world.fill(2)
        await CLOCK.sleep(0.1)
        await consuming.consumer.stop()
        await CLOCK.sleep(0.1)
        assert world.broker.committed["group", "orders", 0] == 5
        assert world.broker.members["group"] == {}

    run(body)


def test_a_pull_carries_the_offset_that_is_consumed() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer()
        await world.fill(3)
        await CLOCK.sleep(1)
        await world.fill(1)
        await CLOCK.sleep(1)
        first, second = world.pulls()[0], world.pulls()[-1]
        assert (first.sys_flag, first.commit_offset, first.max_msg_nums) == (2, -1, 32)
        assert (second.sys_flag, second.commit_offset, second.queue_offset) == (3, 3, 4)
        assert first.suspend_timeout_millis == 15_000
        assert first.subscription is None
        await consuming.consumer.stop()

    run(body)


def test_the_broker_that_was_suggested_is_pulled_next_and_a_slave_commits_nothing() -> None:
    async def body() -> None:
        world = World(queues=1)
        slave = SmallBroker(world.network, {}, port=10921)
        slave.queues, slave.suggested_broker_id = world.broker.queues, 1
        await world.broker.listen()
        await slave.listen()
        world.broker.slaves[1] = slave
        consuming = await world.consumer()
        await world.fill(3)
        await CLOCK.sleep(1)
        world.broker.suggested_broker_id = 1
        await world.fill(3)
        await CLOCK.sleep(1)
        header = PullMessageRequestHeader.from_ext_fields(slave.asked(RequestCode.PULL_MESSAGE)[-1].ext_fields)
        assert (header.topic, header.queue_offset, header.sys_flag) == ("orders", 6, 2)
        assert len(consuming.received) == 6
        await consuming.consumer.stop()

    run(body)


def test_the_subscription_travels_in_the_heartbeat() -> None:
    async def body() -> None:
        world = World()
        consuming = await world.consumer(subscriptions=(("orders", "TagA || TagB"),))
        data = world.broker.heartbeats[-1].consumer_data_set[0]
        by_topic = {subscription.topic: subscription for subscription in data.subscription_data_set}
        assert (data.group_name, data.consume_type, data.message_model) == ("group", "CONSUME_PASSIVELY", "CLUSTERING")
        assert by_topic["orders"].tags_set == {"TagA", "TagB"}
        assert by_topic[RETRY].sub_string == "*"
        await consuming.consumer.stop()

    run(body)


def test_a_message_of_another_tag_is_skipped_and_committed_past() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer(subscriptions=(("orders", "AaAa"),))
        await world.broker.append("orders", body=b"mine", TAGS="AaAa")
        await world.broker.append("orders", body=b"same hash", TAGS="BBBB")
        await CLOCK.sleep(17)
        assert consuming.bodies == [b"mine"]
        await consuming.consumer.stop()
        await CLOCK.sleep(0)
        assert world.broker.committed["group", "orders", 0] == 2

    run(body)


def test_an_offset_that_the_broker_does_not_have_is_mended_at_once_by_5_x_and_after_ten_seconds_by_4_9() -> None:
    async def body(profile: Profile, silent_s: float, mended_s: float) -> None:
        world = World(queues=1)
        world.broker.first_offsets["orders", 0] = 10
        await world.fill(3)
        consuming = await world.consumer(profile=profile)
        await CLOCK.sleep(silent_s)
        assert consuming.received == []
        await CLOCK.sleep(mended_s)
        assert [message.queue_offset for message in consuming.received] == [10, 11, 12]
        await consuming.consumer.stop()

    run(lambda: body(Profile.V5_X, 0.4, 1.5))
    run(lambda: body(Profile.V4_9, 10, 12))


def test_after_an_error_the_queue_rests_for_a_second_and_after_flow_control_for_twenty_milliseconds() -> None:
    async def body(code: int, pulls: int) -> None:
        world = World(queues=1)
        world.broker.answers[RequestCode.PULL_MESSAGE] = lambda _: RemotingCommand.response(code, "no")
        consuming = await world.consumer()
        await CLOCK.sleep(4.5)
        assert len(world.pulls()) == pytest.approx(pulls, abs=2)
        outcomes = [row for row in consuming.recorded("pull") if row["type"] != "invoke" and row["topic"] == "orders"]
        assert {(row["type"] == "ok", row["code"]) for row in outcomes} == {(False, code)}
        await consuming.consumer.stop()

    run(lambda: body(ResponseCode.NO_PERMISSION, 5))
    run(lambda: body(ResponseCode.FLOW_CONTROL, 225))


def test_a_listener_that_lags_stops_the_pulling() -> None:
    async def body() -> None:
        world = World(queues=1)
        gate = asyncio.Event()
        consuming = await world.consumer(pull_threshold_for_queue=40, consume_thread_max=1)

        async def slow(messages: object) -> bool:
            await gate.wait()
            return True

        consuming.consumer._consume_service._listener = slow
        await world.fill(200)
        await CLOCK.sleep(5)
        assert world.pulls()[-1].queue_offset <= 64, "the pull after the one that went above 40 never left"
        gate.set()
        await CLOCK.sleep(5)
        assert world.pulls()[-1].queue_offset == 200
        await consuming.consumer.stop()

    run(body)


def test_a_failed_message_is_sent_back_and_not_received() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer(listener=lambda message: message.body != b"1")
        await world.fill(3)
        await CLOCK.sleep(1)
        assert consuming.bodies == [b"0", b"2"]
        (request,) = world.broker.asked(RequestCode.CONSUMER_SEND_MSG_BACK)
        header = ConsumerSendMsgBackRequestHeader.from_ext_fields(request.ext_fields)
        assert (header.offset, header.group, header.delay_level) == (1000, "group", 0)
        assert (header.origin_topic, header.max_reconsume_times) == ("orders", 16)
        await consuming.consumer.stop()
        await CLOCK.sleep(0)
        assert world.broker.committed["group", "orders", 0] == 3
        assert [row["msg_key"] for row in consuming.recorded("receive")] == ["k0", "k2"]

    run(body)


def test_a_listener_that_raises_has_failed() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer(listener=lambda message: 1 / 0 > 1)
        await world.fill(1)
        await CLOCK.sleep(1)
        assert consuming.received == []
        assert len(world.broker.asked(RequestCode.CONSUMER_SEND_MSG_BACK)) == 1
        await consuming.consumer.stop()

    run(body)


def test_a_message_that_the_broker_does_not_take_back_is_sent_to_the_retry_topic() -> None:
    async def body() -> None:
        world = World(queues=1)
        world.broker.answers[RequestCode.CONSUMER_SEND_MSG_BACK] = lambda _: RemotingCommand.response(1, "full")
        consuming = await world.consumer(
            listener=lambda message: message.topic != "orders" or bool(message.body != b"0")
        )
        await world.fill(1)
        await CLOCK.sleep(1)
        (request,) = world.broker.asked(RequestCode.SEND_MESSAGE_V2)
        header = SendMessageRequestHeader.from_v2(request.ext_fields)
        properties = parse_properties(header.properties)
        assert (header.topic, header.reconsume_times, header.max_reconsume_times) == (RETRY, 1, 16)
        assert (properties["RETRY_TOPIC"], properties["DELAY"], properties["KEYS"]) == ("orders", "3", "k0")
        assert consuming.recorded("send") == [], "it is no operation of the workload"
        await consuming.consumer.stop()

    run(body)


def test_a_message_that_nobody_takes_back_is_tried_again_after_five_seconds() -> None:
    async def body() -> None:
        world = World(queues=1)
        for code in (RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2):
            world.broker.answers[code] = lambda _: RemotingCommand.response(13, "no")
        tries: list[int] = []

        def third_time(message: Any) -> bool:
            tries.append(message.reconsume_times)
            return len(tries) == 3

        consuming = await world.consumer(listener=third_time)
        await world.fill(1)
        await CLOCK.sleep(4.9)
        assert tries == [0]
        await CLOCK.sleep(5.5)
        assert tries == [0, 1, 2]
        assert len(consuming.received) == 1
        await consuming.consumer.stop()

    run(body)


def test_a_message_of_the_retry_topic_comes_under_its_own_topic() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer()
        await world.broker.append(RETRY, 0, b"again", RETRY_TOPIC="orders", KEYS="k9")
        await CLOCK.sleep(1)
        assert [(message.topic, message.body) for message in consuming.received] == [("orders", b"again")]
        assert [row["topic"] for row in consuming.recorded("receive")] == ["orders"]
        await consuming.consumer.stop()

    run(body)


def test_a_group_shares_the_queues_at_once_when_a_member_joins_or_leaves() -> None:
    async def body() -> None:
        world = World(queues=4)
        first = await world.consumer("consumer-0")
        await CLOCK.sleep(1)
        second = await world.consumer("consumer-1")
        await CLOCK.sleep(1)
        assert first.assigned() == [["broker-a", 0], ["broker-a", 1]]
        assert second.assigned() == [["broker-a", 2], ["broker-a", 3]]
        await second.consumer.stop()
        await CLOCK.sleep(1)
        assert first.assigned() == [["broker-a", queue_id] for queue_id in range(4)]
        await first.consumer.stop()

    run(body)


def test_without_a_notification_the_queues_are_shared_within_twenty_seconds() -> None:
    async def body() -> None:
        world = World(queues=4)
        world.broker.notify_members = lambda group: None  # type: ignore[method-assign]
        first = await world.consumer("consumer-0")
        await CLOCK.sleep(1)
        second = await world.consumer("consumer-1")
        await CLOCK.sleep(18)
        assert len(first.assigned()) == 4
        await CLOCK.sleep(2)
        assert len(first.assigned()) == 2
        await first.consumer.stop()
        await second.consumer.stop()

    run(body)


def test_a_dropped_queue_is_committed_first_and_what_was_pulled_of_it_is_not_processed() -> None:
    async def body() -> None:
        world = World(queues=2)
        gate = asyncio.Event()
        first = await world.consumer("consumer-0", consume_thread_max=1)

        async def slow(messages: list[Any]) -> bool:
            await gate.wait()
            return first._consume(messages)

        first.consumer._consume_service._listener = slow
        await world.fill(6)
        await CLOCK.sleep(1)
        second = await world.consumer("consumer-1")
        await CLOCK.sleep(1)
        gate.set()
        await CLOCK.sleep(1)
        assert [message.queue_id for message in first.received] == [0, 0, 0]
        assert [message.queue_id for message in second.received] == [1, 1, 1]
        await first.consumer.stop()
        await second.consumer.stop()

    run(body)


def test_when_the_queues_change_the_brokers_hear_a_newer_subscription() -> None:
    async def body() -> None:
        world = World()
        consuming = await world.consumer()
        await CLOCK.sleep(1)

        def versions() -> list[int]:
            return [
                subscription.sub_version
                for heartbeat in world.broker.heartbeats
                for subscription in heartbeat.consumer_data_set[0].subscription_data_set
                if subscription.topic == "orders"
            ]

        before = versions()[-1]
        other = await world.consumer("consumer-1")
        await CLOCK.sleep(1)
        assert versions()[-1] > before
        await consuming.consumer.stop()
        await other.consumer.stop()

    run(body)


def test_nothing_changes_while_the_members_are_unknown() -> None:
    async def body() -> None:
        world = World()
        consuming = await world.consumer()
        await CLOCK.sleep(1)
        world.broker.answers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = lambda _: RemotingCommand.response(1, "none")
        await CLOCK.sleep(60)
        assert len(consuming.assigned()) == 4
        await consuming.consumer.stop()

    run(body)


def test_a_queue_that_left_the_route_is_released() -> None:
    async def body() -> None:
        world = World()
        other = SmallBroker(world.network, {"orders": 2}, name="broker-b", port=10921)
        await world.broker.listen()
        await other.listen()
        world.broker.other_brokers.append(other)
        consuming = await world.consumer()
        await CLOCK.sleep(1)
        assert len(consuming.assigned()) == 6
        world.broker.other_brokers.clear()
        world.network.refuse(other.address)
        await CLOCK.sleep(51)
        assert consuming.assigned() == [["broker-a", queue_id] for queue_id in range(4)]
        await consuming.consumer.stop()

    run(body)


def test_a_queue_stuck_for_two_minutes_is_taken_anew() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer()
        await CLOCK.sleep(17)
        (process_queue,) = [
            held for queue, held in consuming.consumer._rebalancer.process_queues.items() if queue.topic == "orders"
        ]
        process_queue.last_pull_ms -= 121_000
        await CLOCK.sleep(4)
        held = consuming.consumer._rebalancer.process_queues
        assert process_queue.dropped
        assert process_queue not in held.values()
        assert "orders" in {queue.topic for queue in held}
        await consuming.consumer.stop()

    run(body)


def test_broadcasting_gives_every_member_everything_and_asks_no_broker_for_offsets() -> None:
    async def body() -> None:
        world = World()
        model = MessageModel.BROADCASTING
        members = [await world.consumer(f"consumer-{n}", message_model=model) for n in range(3)]
        sent = await world.fill(10)
        await CLOCK.sleep(1)
        for member in members:
            assert sorted(member.bodies) == sorted(sent)
            await member.consumer.stop()
        asked = {request.code for request in world.broker.requests}
        assert not asked & {14, 15, 36, 38}

    run(body)


def test_a_broadcasting_consumer_goes_on_from_its_own_file(tmp_path: Path) -> None:
    async def body() -> None:
        world = World(queues=1)
        settings: dict[str, Any] = {"message_model": MessageModel.BROADCASTING, "data_dir": tmp_path}
        before = await world.consumer(**settings)
        await world.fill(3)
        await CLOCK.sleep(1)
        await before.consumer.stop()
        await world.broker.append("orders", 0, b"later")
        after = await world.consumer(**settings)
        await CLOCK.sleep(1)
        assert (len(before.received), after.bodies) == (3, [b"later"])
        await after.consumer.stop()

    run(body)


def test_an_unreadable_offset_file_is_named(tmp_path: Path) -> None:
    path = offsets_path(tmp_path, "group")
    path.parent.mkdir(parents=True)
    path.write_text('{"offsets": [{"topic": "orders"}]}')

    async def body() -> None:
        with pytest.raises(ClientError, match=r"offsets\.json cannot be read"):
            await World().consumer(message_model=MessageModel.BROADCASTING, data_dir=tmp_path)

    run(body)


def test_a_broadcast_message_that_fails_is_dropped() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer(message_model=MessageModel.BROADCASTING, listener=lambda message: False)
        await world.fill(2)
        await CLOCK.sleep(10)
        assert consuming.received == []
        assert consuming.consumer._offsets.in_memory(next(iter(consuming.consumer._rebalancer.process_queues))) == 2
        await consuming.consumer.stop()

    run(body)


def test_stopping_lets_a_listener_call_end_when_it_is_given_time() -> None:
    async def body(given_ms: int, committed: int | None) -> None:
        world = World(queues=1)
        consuming = await world.consumer(await_termination_when_shutdown_ms=given_ms)

        async def slow(messages: list[Any]) -> bool:
            await CLOCK.sleep(2)
            return True

        consuming.consumer._consume_service._listener = slow
        await world.fill(1)
        await CLOCK.sleep(1)
        await consuming.consumer.stop()
        await CLOCK.sleep(0)
        assert world.broker.committed.get(("group", "orders", 0), 0) == committed

    run(lambda: body(5000, 1))
    run(lambda: body(0, 0))


def test_a_consumer_that_finds_no_name_server_says_so_and_leaves_nothing_running() -> None:
    async def body() -> None:
        consuming = Consuming(MemoryNetwork(), (Address("10.0.0.99", 9876),))
        with pytest.raises(TransportError):
            await consuming.consumer.start()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    run(body)


def test_a_group_has_one_consumer_on_a_client() -> None:
    async def body() -> None:
        world = World()
        first = await world.consumer()
        shared = Consuming(world.network, (world.broker.address,))
        second = type(first.consumer)(
            shared.consumer._context, shared.consumer._config, shared._consume, client=first.consumer.client
        )
        with pytest.raises(ClientError, match="has been created before"):
            await second.start()
        await first.consumer.stop()

    run(body)


@pytest.mark.parametrize(
    ("name", "value"), [("pull_batch_size", 0), ("consumer_group", ""), ("consume_thread_max", -1)]
)
def test_a_setting_that_cannot_work_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        ConsumerConfig(**{name: value})  # type: ignore[arg-type]


def test_an_update_names_its_queue_and_group() -> None:
    async def body() -> None:
        world = World(queues=1)
        consuming = await world.consumer()
        await world.fill(1)
        await CLOCK.sleep(1)
        await consuming.consumer.stop()
        await CLOCK.sleep(0)
        updates = [
            UpdateConsumerOffsetRequestHeader.from_ext_fields(request.ext_fields)
            for request in world.broker.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
        ]
        assert ("group", "orders", 0, 1) in [(u.consumer_group, u.topic, u.queue_id, u.commit_offset) for u in updates]

    run(body)
