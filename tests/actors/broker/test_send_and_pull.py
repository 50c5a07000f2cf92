"""Sends, pulls and long polling through a broker's own channel."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_batch import BatchItem
from nemesrv.remoting.message_id import parse_offset_msg_id
from nemesrv.remoting.message_properties import format_properties
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.fuzz.seeds import encode_item
from tests.virtual import run

from .world import PROFILES, World, beat, bodies, send_header


async def test_a_message_sent_is_pulled_with_all_that_its_producer_gave_it(up: World) -> None:
    properties = format_properties({"KEYS": "k1", "TAGS": "TagA", "UNIQ_KEY": "U" * 32})
    sent = await up.send(b"hello", properties=properties, queue_id=2, flag=7)
    assert sent.code == ResponseCode.SUCCESS
    assert sent.ext_fields is not None
    assert (sent.ext_fields["queueId"], sent.ext_fields["queueOffset"]) == ("2", "0")
    host, offset = parse_offset_msg_id(sent.ext_fields["msgId"])
    assert (host, offset) == (Address("127.0.0.1", 10911), 0)
    pulled = await up.pull(queue_id=2)
    assert pulled.code == ResponseCode.SUCCESS
    assert pulled.remark == "FOUND"
    assert pulled.ext_fields == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "1",
        "minOffset": "0",
        "maxOffset": "1",
    }
    (stored,) = StoredMessage.decode_all(pulled.body, strict=True)
    assert (stored.body, stored.properties, stored.flag) == (
        b"hello",
        {"KEYS": "k1", "TAGS": "TagA", "UNIQ_KEY": "U" * 32, "CLUSTER": "DefaultCluster"},
        7,
    )
    assert (stored.topic, stored.queue_id, stored.born_timestamp) == ("orders", 2, 1000)
    assert stored.store_host == Address("127.0.0.1", 10911)


async def test_code_10_and_310_store_alike(up: World) -> None:
    header = send_header()
    await up.ask(RequestCode.SEND_MESSAGE, header.to_ext_fields(), b"ten")
    await up.ask(RequestCode.SEND_MESSAGE_V2, header.to_v2(), b"three hundred and ten")
    assert bodies(await up.pull()) == [b"ten", b"three hundred and ten"]


async def test_a_batch_becomes_consecutive_messages_with_a_message_id_each(up: World) -> None:
    batch = b"".join(encode_item(BatchItem(0, b"%d" % n, b"UNIQ_KEY\x01id-%d\x02TAGS\x01TagB" % n)) for n in range(3))
    header = send_header(properties="WAIT\x01true", batch=True)
    sent = await up.ask(RequestCode.SEND_BATCH_MESSAGE, header.to_v2(), batch)
    assert sent.code == ResponseCode.SUCCESS
    assert sent.ext_fields is not None
    assert sent.ext_fields["queueOffset"] == "0"
    assert len(sent.ext_fields["msgId"].split(",")) == 3
    assert bodies(await up.pull(expression="TagB || TagC")) == [b"0", b"1", b"2"]
    torn = await up.ask(RequestCode.SEND_BATCH_MESSAGE, header.to_v2(), batch[:-1])
    assert torn.code == ResponseCode.MESSAGE_ILLEGAL
    empty = await up.ask(RequestCode.SEND_BATCH_MESSAGE, header.to_v2(), b"")
    assert empty.code == ResponseCode.MESSAGE_ILLEGAL


async def test_a_topic_is_created_at_its_first_send_from_tbw102(world: World) -> None:
    broker = await world.broker()
    assert (await world.send(topic="new", default_topic_queue_nums=3)).code == ResponseCode.SUCCESS
    topic = broker.services.topics.get("new")
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (3, 3, 6)
    assert world.recorded("topic", topic="new")[0]["value"] == {"read": 3, "write": 3, "perm": 6, "version": 1}


async def test_without_auto_creation_an_unknown_topic_is_17(world: World) -> None:
    broker = await world.broker(auto_create_topic_enable=False)
    assert (await world.send(topic="new")).code == ResponseCode.TOPIC_NOT_EXIST
    assert "new" not in broker.services.topics


@pytest.mark.parametrize("profile", PROFILES)
async def test_what_cannot_be_stored_is_refused_with_its_code(world: World, profile: Profile) -> None:
    broker = await world.broker(profile=profile, max_message_size=1000)
    invalid = ResponseCode.SYSTEM_ERROR if profile is Profile.V4_9 else ResponseCode.INVALID_PARAMETER
    refused = [
        ((await world.send(topic="SCHEDULE_TOPIC_XXXX")).code, ResponseCode.NO_PERMISSION),
        ((await world.send(queue_id=4)).code, invalid),
        ((await world.send(topic="no spaces")).code, invalid),
        ((await world.send(topic="")).code, invalid),
        ((await world.send(topic="x" * 128)).code, invalid),
        ((await world.send(b"x" * 1001)).code, ResponseCode.MESSAGE_ILLEGAL),
        ((await world.send(properties="x" * 32768)).code, ResponseCode.MESSAGE_ILLEGAL),
        ((await world.send(properties="é" * 20000)).code, ResponseCode.MESSAGE_ILLEGAL),
    ]
    assert all(code == expected for code, expected in refused), refused
    assert broker.store.max_physical_offset == 0


async def test_a_topic_without_write_permission_takes_what_is_sent(up: World) -> None:
    """`AbstractSendMessageProcessor.msgCheck` does not look at the topic's permission."""
    await up.create_topic("read-only", perm=4)
    assert (await up.send(topic="read-only")).code == ResponseCode.SUCCESS


async def test_a_broker_without_write_permission_refuses_only_sends_to_ordered_topics(up: World) -> None:
    await up.create_topic("ordered", order="true")
    await up.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=4\n")
    assert (await up.send(topic="ordered")).code == ResponseCode.NO_PERMISSION
    assert (await up.send(b"before")).code == ResponseCode.SUCCESS


async def test_a_broker_without_read_permission_gives_no_message_and_still_takes_them(up: World) -> None:
    await up.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=2\n")
    assert (await up.send(b"after")).code == ResponseCode.SUCCESS
    assert (await up.pull()).code == ResponseCode.NO_PERMISSION


def test_a_negative_queue_id_is_the_brokers_choice_repeatable_by_seed(tmp_path: Path) -> None:
    async def picks(directory: Path) -> list[str]:
        async with World(directory) as world:
            await world.broker()
            sent = [await world.send(queue_id=-1) for _ in range(8)]
            return [response.ext_fields["queueId"] for response in sent if response.ext_fields]

    first = run(lambda: picks(tmp_path / "1"))
    assert first == run(lambda: picks(tmp_path / "2"))
    assert set(first) <= {"0", "1", "2", "3"}
    assert len(set(first)) > 1


async def test_a_full_disk_is_14_and_no_acknowledgement(world: World) -> None:
    broker = await world.broker()
    await world.send(b"kept")

    def full(data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    broker.store._write = full  # type: ignore[method-assign]
    refused = await world.send(b"lost")
    assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "disk is full" in (refused.remark or "")
    del broker.store._write
    await world.send(b"again")
    assert bodies(await world.pull()) == [b"kept", b"again"]


async def test_a_broker_whose_disk_is_said_to_be_full_refuses_sends_and_answers_pulls(world: World) -> None:
    broker = await world.broker()
    await world.send(b"kept")
    broker.fill_disk(True)
    assert (await world.send(b"lost")).code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert bodies(await world.pull()) == [b"kept"]
    broker.fill_disk(False)
    assert (await world.send(b"again")).code == ResponseCode.SUCCESS


async def test_a_pull_that_finds_nothing_waits_for_a_message(ready: World) -> None:
    begin = ready.clock.monotonic_s()
    waiting = asyncio.create_task(ready.pull(wait_ms=15_000))
    await ready.clock.sleep(2)
    assert not waiting.done()
    await ready.send(b"woke")
    assert bodies(await waiting) == [b"woke"]
    assert ready.clock.monotonic_s() - begin < 2.1


async def test_a_pull_waits_no_longer_than_it_said_to_the_next_check(ready: World) -> None:
    begin = ready.clock.monotonic_s()
    response = await ready.pull(wait_ms=12_000)
    assert (response.code, response.remark) == (ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE")
    assert response.ext_fields is not None
    assert {"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"} <= response.ext_fields.keys()
    assert 12 <= ready.clock.monotonic_s() - begin <= 17


async def test_a_waiting_pull_is_not_woken_by_tags_it_does_not_want(ready: World) -> None:
    waiting = asyncio.create_task(ready.pull(wait_ms=15_000, expression="TagB"))
    await ready.clock.sleep(0.1)
    await ready.send(b"a", properties="TAGS\x01TagA\x02")
    await ready.clock.sleep(0.5)
    assert not waiting.done()
    await ready.send(b"b", properties="TAGS\x01TagB\x02")
    response = await waiting
    assert bodies(response) == [b"b"]
    assert response.ext_fields is not None
    assert response.ext_fields["nextBeginOffset"] == "2"


async def test_at_the_check_unwanted_messages_move_the_offset_on(ready: World) -> None:
    waiting = asyncio.create_task(ready.pull(wait_ms=15_000, expression="TagB"))
    await ready.clock.sleep(0.1)
    await ready.send(b"a", properties="TAGS\x01TagA\x02")
    response = await waiting
    assert response.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert response.ext_fields is not None
    assert response.ext_fields["nextBeginOffset"] == "1"
    assert ready.clock.monotonic_s() <= 5.1


async def test_what_a_closed_channel_waited_for_is_forgotten(world: World) -> None:
    broker = await world.broker()
    await world.create_topic()
    other = world.new_client()
    waiting = asyncio.create_task(world.pull(wait_ms=15_000, client=other))
    await world.clock.sleep(0.1)
    assert len(broker.services.holds) == 1
    await other.close()
    await asyncio.gather(waiting, return_exceptions=True)
    await world.clock.sleep(0.1)
    assert len(broker.services.holds) == 0


async def test_beyond_the_limit_a_pull_is_told_to_pause_not_to_retry_at_once(world: World) -> None:
    await world.broker(max_held_pulls=1)
    await world.create_topic()
    waiting = asyncio.create_task(world.pull(wait_ms=15_000))
    await world.clock.sleep(0.1)
    assert (await world.pull(wait_ms=15_000, queue_id=1)).code == ResponseCode.SYSTEM_BUSY
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_pull_answers_where_its_offset_stands(up: World) -> None:
    await up.send()

    async def answer(offset: int, **fields: Any) -> tuple[int, str | None, str]:
        response = await up.pull(offset, **fields)
        return response.code, response.remark, (response.ext_fields or {}).get("nextBeginOffset", "")

    assert await answer(1) == (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", "1")
    assert await answer(9) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", "1")
    assert await answer(0, queue_id=1) == (ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE", "0")
    assert await answer(5, queue_id=1) == (ResponseCode.PULL_OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE", "0")
    assert (await up.pull(topic="none")).code == ResponseCode.TOPIC_NOT_EXIST
    assert (await up.pull(queue_id=4)).code == ResponseCode.SYSTEM_ERROR
    assert (await up.pull(sysFlag=0)).code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert (await up.pull(consumerGroup="no spaces")).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert (await up.pull(expressionType="SQL92", expression="a > 1")).code == ResponseCode.SYSTEM_ERROR


async def test_a_pull_without_subscription_uses_its_groups_heartbeat(up: World) -> None:
    await up.send(b"a", properties="TAGS\x01TagA\x02")
    await up.send(b"b", properties="TAGS\x01TagB\x02")
    await up.heartbeat(beat("c1", "orders", version=5, expression="TagB"))
    assert bodies(await up.pull(sysFlag=0, subVersion=5)) == [b"b"]
    assert (await up.pull(sysFlag=0, subVersion=6)).code == ResponseCode.SUBSCRIPTION_NOT_LATEST


async def test_the_commit_bit_commits_once_and_not_when_woken(world: World) -> None:
    broker = await world.broker()
    await world.create_topic()
    waiting = asyncio.create_task(world.pull(wait_ms=15_000, sysFlag=7, commitOffset=3))
    await world.clock.sleep(0.1)
    assert broker.services.offsets.query("g", "orders", 0) == 3
    broker.services.offsets.commit("g", "orders", 0, 4)
    await world.send()
    await waiting
    assert broker.services.offsets.query("g", "orders", 0) == 4


async def test_messages_and_offsets_are_there_after_a_restart(world: World) -> None:
    broker = await world.broker()
    await world.send(b"kept", queue_id=1)
    await world.commit(1, queue_id=1)
    await world.stop(broker)
    world.events.clear()
    again = await world.broker()
    assert world.recorded("boot")[0]["value"] == {"recovered": {"orders": {1: 1}}, "truncated_bytes": 0}
    assert world.recorded("topic", topic="orders")
    assert bodies(await world.pull(queue_id=1)) == [b"kept"]
    assert again.services.offsets.query("g", "orders", 1) == 1


async def test_a_request_that_cannot_be_read_is_refused_by_field_and_the_channel_stays(up: World) -> None:
    refused = await up.ask(RequestCode.PULL_MESSAGE, {"topic": "orders"})
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert "consumerGroup" in (refused.remark or "")
    assert (await up.ask(RequestCode.HEART_BEAT, body=b"\xff{")).code == ResponseCode.SYSTEM_ERROR
    unknown = await up.ask(9999)
    assert unknown.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert unknown.remark == " request type 9999 not supported"
    assert len(up.network.dials) == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_without_long_polling_a_held_pull_waits_for_the_next_check(world: World, profile: Profile) -> None:
    await world.broker(profile=profile, long_polling_enable=False, short_polling_time_mills=2000)
    await world.create_topic()
    held = asyncio.create_task(world.pull(wait_ms=15_000))
    await world.clock.sleep(0.1)
    await world.send(b"x")
    await world.clock.sleep(0.1)
    assert not held.done()
    await world.clock.sleep(2)
    assert bodies(await held) == [b"x"]
