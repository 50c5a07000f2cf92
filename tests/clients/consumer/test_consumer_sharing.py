"""How a consumer group shares the queues, and what each member does alone when it broadcasts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nemesrv.clients.consumer.config import MessageModel
from nemesrv.clients.consumer.consumer import offsets_path
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ClientError

from ..fakes import route
from .consumer_world import CLOCK, World


async def test_a_group_shares_the_queues_at_once_when_a_member_joins_or_leaves(wide: World) -> None:
    first = await wide.consumer("consumer-0")
    await CLOCK.sleep(1)
    second = await wide.consumer("consumer-1")
    await CLOCK.sleep(1)
    assert first.assigned() == [["broker-a", 0], ["broker-a", 1]]
    assert second.assigned() == [["broker-a", 2], ["broker-a", 3]]
    await second.consumer.stop()
    await CLOCK.sleep(1)
    assert first.assigned() == [["broker-a", queue_id] for queue_id in range(4)]


async def test_without_a_notification_the_queues_are_shared_within_twenty_seconds(wide: World) -> None:
    wide.a.notify_members = lambda group: None  # type: ignore[method-assign]
    first = await wide.consumer("consumer-0")
    await CLOCK.sleep(1)
    await wide.consumer("consumer-1")
    await CLOCK.sleep(18)
    assert len(first.assigned()) == 4
    await CLOCK.sleep(2)
    assert len(first.assigned()) == 2


async def test_a_dropped_queue_is_committed_first_and_what_was_pulled_of_it_is_not_processed() -> None:
    async with World(queues=2) as world:
        gate = asyncio.Event()
        first = await world.consumer("consumer-0", consume_thread_max=1)

        async def slow(messages: list[Any]) -> bool:
            await gate.wait()
            return first._consume(messages)

        first.consumer._consume_service._listener = slow
        await world.fill(6, then_s=1)
        second = await world.consumer("consumer-1")
        await CLOCK.sleep(1)
        gate.set()
        await CLOCK.sleep(1)
        assert [message.queue_id for message in first.received] == [0, 0, 0]
        assert [message.queue_id for message in second.received] == [1, 1, 1]


async def test_when_the_queues_change_the_brokers_hear_a_newer_subscription(wide: World) -> None:
    await wide.consumer()
    await CLOCK.sleep(1)

    def versions() -> list[int]:
        return [
            subscription.sub_version
            for heartbeat in wide.a.heartbeats
            for subscription in heartbeat.consumer_data_set[0].subscription_data_set
            if subscription.topic == "orders"
        ]

    before = versions()[-1]
    await wide.consumer("consumer-1")
    await CLOCK.sleep(1)
    assert versions()[-1] > before


async def test_nothing_changes_while_the_members_are_unknown(wide: World) -> None:
    consuming = await wide.consumer()
    await CLOCK.sleep(1)
    wide.a.answers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = lambda _: RemotingCommand.response(1, "none")
    await CLOCK.sleep(60)
    assert len(consuming.assigned()) == 4


async def test_a_queue_that_left_the_route_is_released(wide: World) -> None:
    other = await wide.broker("broker-b")
    wide.ns.routes["orders"] = route(wide.a, other, queues={"broker-a": 4, "broker-b": 2})
    consuming = await wide.consumer()
    await CLOCK.sleep(1)
    assert len(consuming.assigned()) == 6
    wide.ns.routes["orders"] = route(wide.a, queues=4)
    other.crash()
    await CLOCK.sleep(51)
    assert consuming.assigned() == [["broker-a", queue_id] for queue_id in range(4)]


async def test_a_queue_stuck_for_two_minutes_is_taken_anew(world: World) -> None:
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


async def test_broadcasting_gives_every_member_everything_and_asks_no_broker_for_offsets(wide: World) -> None:
    model = MessageModel.BROADCASTING
    members = [await wide.consumer(f"consumer-{n}", message_model=model) for n in range(3)]
    sent = await wide.fill(10, then_s=1)
    for member in members:
        assert sorted(member.bodies) == sorted(sent)
        await member.consumer.stop()
    asked = {request.code for request in wide.a.requests}
    assert not asked & {14, 15, 36, 38}


async def test_a_broadcasting_consumer_goes_on_from_its_own_file(world: World, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"message_model": MessageModel.BROADCASTING, "data_dir": tmp_path}
    before = await world.consumer(**settings)
    await world.fill(3, then_s=1)
    await before.consumer.stop()
    await world.a.append("orders", 0, b"later")
    after = await world.consumer(**settings)
    await CLOCK.sleep(1)
    assert (len(before.received), after.bodies) == (3, [b"later"])
    kept = [event for event in before.events if event["event"] == "commit"]
    assert [(row["f"], row["offset"], row["value"]["before"]) for row in kept] == [("persist", 3, -1)]


async def test_an_unreadable_offset_file_is_named(world: World, tmp_path: Path) -> None:
    path = offsets_path(tmp_path, "group")
    path.parent.mkdir(parents=True)
    path.write_text('{"offsets": [{"topic": "orders"}]}')
    with pytest.raises(ClientError, match=r"offsets\.json cannot be read"):
        await world.consumer(message_model=MessageModel.BROADCASTING, data_dir=tmp_path)


async def test_a_broadcast_message_that_fails_is_dropped(world: World) -> None:
    consuming = await world.consumer(message_model=MessageModel.BROADCASTING, listener=lambda message: False)
    await world.fill(2, then_s=10)
    assert consuming.received == []
    assert consuming.consumer._offsets.in_memory(next(iter(consuming.consumer._rebalancer.process_queues))) == 2
