"""A push consumer against a small broker: start offsets, delivery, flow control, settings, its end."""

import asyncio
from typing import Any

import pytest

from nemesrv.clients.consumer.config import ConsumerConfig
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ClientError, TransportError
from nemesrv.remoting.headers.broker import PullMessageRequestHeader, UpdateConsumerOffsetRequestHeader
from nemesrv.remoting.message_properties import message_digest
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import route
from tests.virtual import MemoryNetwork

from .consumer_world import CLOCK, RETRY, World
from .consumers import Consuming


async def test_messages_of_every_queue_are_received_once_and_recorded(wide: World) -> None:
    sent = await wide.fill(40)
    consuming = await wide.consumer()
    await CLOCK.sleep(1)
    assert sorted(consuming.bodies) == sorted(sent)
    assert consuming.assigned() == [["broker-a", queue_id] for queue_id in range(4)]
    received = consuming.recorded("receive")
    (fifth,) = (row for row in received if row["msg_key"] == "k5")
    assert fifth == {
        "event": "receive",
        "msg_key": "k5",
        "topic": "orders",
        "broker_name": "broker-a",
        "queue_id": 1,
        "offset": 1,
        "op_id": "take-1",
        "digest": message_digest("orders", sent[5], {"KEYS": "k5"}),
        "born_ms": fifth["born_ms"],
        "duration_ms": fifth["duration_ms"],
    }
    assert 0 <= fifth["born_ms"] <= fifth["born_ms"] + fifth["duration_ms"] <= 1000 * CLOCK.monotonic_s()
    assert len(received) == 40
    await consuming.consumer.stop()
    assert consuming.assigned() == []
    held = [(row["event"], row["op_id"], row["queue_id"]) for row in consuming.recorded("queue_dropped")]
    assert held[:4] == [("queue_dropped", f"take-{queue_id}", queue_id) for queue_id in range(4)]
    taken = consuming.recorded("queue_taken")[1]
    at = {"topic": "orders", "broker_name": "broker-a", "queue_id": 1, "offset": 0}
    assert taken == {"event": "queue_taken", "op_id": "take-1", "value": {"answered": None}, **at}


async def test_a_held_pull_brings_a_new_message_at_once(world: World) -> None:
    consuming = await world.consumer()
    await CLOCK.sleep(4)
    asked = len(world.pulls())
    await world.a.append("orders")
    await CLOCK.sleep(0.01)
    assert len(consuming.received) == 1
    assert asked == 1, "the broker holds the pull, nobody polls"


async def test_a_new_group_starts_at_the_first_message(world: World) -> None:
    await world.fill(3)
    await world.consumer()
    await CLOCK.sleep(1)
    assert world.pulls()[0].queue_offset == 0


async def test_a_known_group_goes_on_where_it_was(world: World) -> None:
    sent = await world.fill(5)
    world.a.committed["group", "orders", 0] = 2
    consuming = await world.consumer()
    await CLOCK.sleep(1)
    assert consuming.bodies == sent[2:]


async def test_a_queue_whose_start_offset_is_unknown_waits_for_the_next_rebalance(world: World) -> None:
    await world.fill(3)
    world.a.answers[RequestCode.QUERY_CONSUMER_OFFSET] = lambda _: RemotingCommand.response(1, "broken")
    consuming = await world.consumer()
    await CLOCK.sleep(19)
    assert consuming.received == []
    del world.a.answers[RequestCode.QUERY_CONSUMER_OFFSET]
    await CLOCK.sleep(2)
    assert len(consuming.received) == 3


async def test_offsets_are_committed_each_five_seconds_oneway_and_at_the_end(world: World) -> None:
    await world.fill(3)
    consuming = await world.consumer()
    await CLOCK.sleep(9)
    assert world.a.asked(RequestCode.UPDATE_CONSUMER_OFFSET) == []
    await CLOCK.sleep(1.5)
    first = world.a.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert all(request.command.is_oneway for request in first)
    assert world.a.committed["group", "orders", 0] == 3
    await world.fill(2, then_s=0.1)
    await consuming.stop()
    assert world.a.committed["group", "orders", 0] == 5
    assert world.a.members["group"] == {}


async def test_a_pull_carries_the_offset_that_is_consumed(world: World) -> None:
    await world.consumer()
    await world.fill(3, then_s=1)
    await world.fill(1, then_s=1)
    first, second = world.pulls()[0], world.pulls()[-1]
    assert (first.sys_flag, first.commit_offset, first.max_msg_nums) == (2, -1, 32)
    assert (second.sys_flag, second.commit_offset, second.queue_offset) == (3, 3, 4)
    assert first.suspend_timeout_millis == 15_000
    assert first.subscription is None


async def test_the_broker_that_was_suggested_is_pulled_next_and_a_slave_commits_nothing(world: World) -> None:
    slave = await world.broker(broker_id=1)
    slave.queues, slave.suggested_broker_id = world.a.queues, 1
    world.ns.routes["orders"] = world.ns.routes[RETRY] = route(world.a, slave, queues=1)
    consuming = await world.consumer()
    await world.fill(3, then_s=1)
    world.a.suggested_broker_id = 1
    await world.fill(3, then_s=1)
    header = PullMessageRequestHeader.from_ext_fields(slave.asked(RequestCode.PULL_MESSAGE)[-1].command.ext_fields)
    assert (header.topic, header.queue_offset, header.sys_flag) == ("orders", 6, 2)
    assert len(consuming.received) == 6


async def test_the_subscription_travels_in_the_heartbeat(world: World) -> None:
    await world.consumer(subscriptions=(("orders", "TagA || TagB"),))
    data = world.a.heartbeats[-1].consumer_data_set[0]
    by_topic = {subscription.topic: subscription for subscription in data.subscription_data_set}
    assert (data.group_name, data.consume_type, data.message_model) == ("group", "CONSUME_PASSIVELY", "CLUSTERING")
    assert by_topic["orders"].tags_set == {"TagA", "TagB"}
    assert by_topic[RETRY].sub_string == "*"


async def test_a_message_of_another_tag_is_skipped_and_committed_past(world: World) -> None:
    consuming = await world.consumer(subscriptions=(("orders", "AaAa"),))
    await world.a.append("orders", body=b"mine", TAGS="AaAa")
    await world.a.append("orders", body=b"same hash", TAGS="BBBB")
    await CLOCK.sleep(17)
    assert consuming.bodies == [b"mine"]
    await consuming.stop()
    assert world.a.committed["group", "orders", 0] == 2


@pytest.mark.parametrize(("profile", "silent_s", "mended_s"), [(Profile.V5_X, 0.4, 1.5), (Profile.V4_9, 10, 12)])
async def test_an_offset_that_the_broker_does_not_have_is_mended_at_once_by_5_x_and_after_ten_seconds_by_4_9(
    world: World, profile: Profile, silent_s: float, mended_s: float
) -> None:
    world.a.first_offsets["orders", 0] = 10
    await world.fill(3)
    consuming = await world.consumer(profile=profile)
    await CLOCK.sleep(silent_s)
    assert consuming.received == []
    await CLOCK.sleep(mended_s)
    assert [message.queue_offset for message in consuming.received] == [10, 11, 12]


@pytest.mark.parametrize(("code", "pulls"), [(ResponseCode.NO_PERMISSION, 5), (ResponseCode.FLOW_CONTROL, 225)])
async def test_a_queue_rests_after_an_error_and_after_flow_control(world: World, code: int, pulls: int) -> None:
    world.a.answers[RequestCode.PULL_MESSAGE] = lambda _: RemotingCommand.response(code, "no")
    consuming = await world.consumer()
    await CLOCK.sleep(4.5)
    assert len(world.pulls()) == pytest.approx(pulls, abs=2)
    outcomes = [row for row in consuming.recorded("pull") if row["type"] != "invoke" and row["topic"] == "orders"]
    assert {(row["type"] == "ok", row["code"]) for row in outcomes} == {(False, code)}


async def test_a_listener_that_lags_stops_the_pulling(world: World) -> None:
    gate = asyncio.Event()
    consuming = await world.consumer(pull_threshold_for_queue=40, consume_thread_max=1)

    async def slow(messages: object) -> bool:
        await gate.wait()
        return True

    consuming.consumer._consume_service._listener = slow
    await world.fill(200, then_s=5)
    assert world.pulls()[-1].queue_offset <= 64, "the pull after the one that went above 40 never left"
    gate.set()
    await CLOCK.sleep(5)
    assert world.pulls()[-1].queue_offset == 200


@pytest.mark.parametrize(("given_ms", "committed"), [(5000, 1), (0, 0)])
async def test_stopping_lets_a_listener_end_in_time(world: World, given_ms: int, committed: int | None) -> None:
    consuming = await world.consumer(await_termination_when_shutdown_ms=given_ms)

    async def slow(messages: list[Any]) -> bool:
        await CLOCK.sleep(2)
        return True

    consuming.consumer._consume_service._listener = slow
    await world.fill(1, then_s=1)
    await consuming.stop()
    assert world.a.committed.get(("group", "orders", 0), 0) == committed


async def test_a_consumer_that_finds_no_name_server_says_so_and_leaves_nothing_running() -> None:
    consuming = Consuming(MemoryNetwork(), (Address("10.0.0.99", 9876),))
    with pytest.raises(TransportError):
        await consuming.consumer.start()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_group_has_one_consumer_on_a_client(world: World) -> None:
    first = (await world.consumer()).consumer
    with pytest.raises(ClientError, match="has been created before"):
        first.client.register_consumer("group", first)


@pytest.mark.parametrize(
    ("name", "value"), [("pull_batch_size", 0), ("consumer_group", ""), ("consume_thread_max", -1)]
)
def test_a_setting_that_cannot_work_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        ConsumerConfig(**{name: value})  # type: ignore[arg-type]


async def test_an_update_names_its_queue_and_group(world: World) -> None:
    consuming = await world.consumer()
    await world.fill(1, then_s=1)
    await consuming.stop()
    updates = [
        UpdateConsumerOffsetRequestHeader.from_ext_fields(request.command.ext_fields)
        for request in world.a.asked(RequestCode.UPDATE_CONSUMER_OFFSET)
    ]
    assert ("group", "orders", 0, 1) in [(u.consumer_group, u.topic, u.queue_id, u.commit_offset) for u in updates]
