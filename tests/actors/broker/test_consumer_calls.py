"""What mqadmin asks of consumers through a broker, and what it looks into and tidies up there."""

import asyncio
from typing import Any

import pytest

from nemesrv.remoting import fastjson
from nemesrv.remoting.bodies.admin import (
    ConsumeStatsList,
    GetConsumerStatusBody,
    ProducerTableInfo,
    QueryConsumeQueueResponseBody,
    QueryConsumeTimeSpanBody,
    ResetOffsetBody,
)
from nemesrv.remoting.bodies.route import TopicList
from nemesrv.remoting.codes import LanguageCode, RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.message import MessageQueue, StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.topics import TRANSACTION_DISCARD_TOPIC

from .world import PROFILES, Peer, World

ZERO = MessageQueue("orders", "broker-a", 0)


async def consumer_of(world: World, answer: RemotingCommand | None = None) -> Peer:
    """A consumer and producer known by its heartbeat; `answer` is what it says when it is asked."""
    peer = Peer(world, answer)
    await peer.heartbeat("one", "orders", producers="p")
    return peer


async def committed(world: World) -> str | None:
    fields = {"consumerGroup": "g", "topic": "orders", "queueId": 0, "setZeroIfNotFound": False}
    return ((await world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)).ext_fields or {}).get("offset")


async def with_messages(world: World, **config: Any) -> int:
    """A broker whose topic of one queue has five messages, a second apart; when the third was stored."""
    await world.broker(**config)
    await world.create_topic(queues=1)
    third_ms = 0
    for number in range(5):
        third_ms = world.clock.now_ms() if number == 2 else third_ms
        await world.send(b"%d" % number)
        await asyncio.sleep(1)
    return third_ms


async def reset(world: World, timestamp: int, **fields: Any) -> RemotingCommand:
    header = {"topic": "orders", "group": "g", "timestamp": timestamp, "isForce": True, **fields}
    return await world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


async def test_a_4_9_broker_tells_consumers_where_to_go_on(world: World) -> None:
    third_ms = await with_messages(world)
    unknown = await reset(world, third_ms)
    assert unknown.remark == "THe consumer group <g> not exist"
    await world.commit(4)
    offline = await reset(world, third_ms)
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
    consumer = await consumer_of(world)
    for fields, offset in (({}, 2), ({"timestamp": -1}, 5), ({"isForce": False, "timestamp": -1}, 4)):
        answer = await reset(world, **{"timestamp": third_ms, **fields})
        assert ResetOffsetBody.decode(answer.body).offset_table == {ZERO: offset}
        told = consumer.asked.pop()
        assert (told.code, told.is_oneway) == (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, True)
        assert ResetOffsetBody.decode(told.body).offset_table == {ZERO: offset}
    assert await committed(world) == "4"  # theirs to commit
    assert [row["f"] for row in world.recorded("offset_reset")] == ["by_consumers"] * 3
    assert (await reset(world, 0, topic="none")).code == ResponseCode.SYSTEM_ERROR


async def test_clients_in_cpp_get_a_list(world: World) -> None:
    await with_messages(world)
    await world.commit(4)
    consumer = await consumer_of(world)
    fields = {"topic": "orders", "group": "g", "timestamp": "-1", "isForce": "true"}
    request = RemotingCommand.request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields, language=LanguageCode.CPP)
    await world.client.invoke(Address("127.0.0.1", 10911), request, timeout_s=3)
    told = fastjson.loads(consumer.asked.pop().body)
    queue = {"topic": "orders", "brokerName": "broker-a", "queueId": 0, "offset": 5}
    assert told == {"offsetTable": [queue]}


async def test_a_5x_broker_sends_the_next_pull_elsewhere(world: World) -> None:
    third_ms = await with_messages(world, profile=Profile.V5_X)
    assert (await reset(world, third_ms)).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    await world.commit(4)
    answer = await reset(world, third_ms)
    assert ResetOffsetBody.decode(answer.body).offset_table == {ZERO: 2}
    assert await committed(world) == "2"
    await world.commit(5)  # by a consumer that does not know yet
    assert await committed(world) == "2"
    pulled = await world.pull(5)
    assert (pulled.code, pulled.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
    assert (pulled.ext_fields or {})["nextBeginOffset"] == "2"
    assert (await world.pull(2)).code == ResponseCode.SUCCESS
    one = await reset(world, 0, queueId=0, offset=3)
    assert ResetOffsetBody.decode(one.body).offset_table == {ZERO: 3}
    outside = await reset(world, 0, queueId=0, offset=7)
    assert outside.remark == "Target offset 7 not in consume queue range [0-5]"
    assert (await reset(world, 0, topic="none")).code == ResponseCode.TOPIC_NOT_EXIST
    assert [row["f"] for row in world.recorded("commit")] == ["update", "reset", "update", "reset"]
    asked = [(row["f"], row["value"]["offsets"]) for row in world.recorded("offset_reset")]
    assert asked == [("here", {"0": 2}), ("here", {"0": 3})]


async def test_a_consumer_is_asked_through_its_broker(world: World) -> None:
    await with_messages(world)
    consumer = await consumer_of(world, RemotingCommand.response(0, "here", body=b"running"))
    fields = {"consumerGroup": "g", "clientId": "one", "jstackEnable": False}
    answer = await world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
    assert (answer.code, answer.remark, answer.body) == (0, "here", b"running")
    assert consumer.asked.pop().ext_fields == {key: str(value) for key, value in fields.items()}
    (stored,) = StoredMessage.decode_all((await world.pull(1, maxMsgNums=1)).body)
    fields = {"consumerGroup": "g", "clientId": "one", "msgId": stored.offset_msg_id}
    assert (await world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields)).body == b"running"
    asked = consumer.asked.pop()
    assert (asked.ext_fields or {})["brokerName"] == "broker-a"
    assert StoredMessage.decode_all(asked.body) == [stored]
    consumer.answer = None
    fields = {"consumerGroup": "g", "clientId": "one"}
    silent = await world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
    assert silent.code == ResponseCode.CONSUME_MSG_TIMEOUT
    gone = await world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, {**fields, "clientId": "two"})
    assert gone.remark == "The Consumer <g> <two> not online"


async def test_where_consumers_are_is_asked_of_each(world: World) -> None:
    await with_messages(world)
    fields = {"topic": "orders", "group": "g"}
    nobody = await world.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
    assert nobody.remark == "No Any Consumer online in the consumer group: [g]"
    own = GetConsumerStatusBody(message_queue_table={ZERO: 3})
    consumer = await consumer_of(world, RemotingCommand.response(body=own.encode()))
    answer = await world.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
    assert GetConsumerStatusBody.decode(answer.body).consumer_table == {"one": {ZERO: 3}}
    assert consumer.asked.pop().code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT


@pytest.mark.parametrize("profile", PROFILES)
async def test_queues_progress_and_producers_are_shown(world: World, profile: Profile) -> None:
    await with_messages(world, profile=profile)
    await consumer_of(world)
    await world.commit(2)
    await world.pull(2, maxMsgNums=1)
    fields = {"topic": "orders", "queueId": 0, "index": 1, "count": 2, "consumerGroup": "g"}
    queue = QueryConsumeQueueResponseBody.decode((await world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields)).body)
    assert (queue.min_queue_index, queue.max_queue_index) == (0, 5)
    assert len(queue.queue_data or ()) == 2
    assert queue.subscription_data is not None
    beyond = await world.ask(RequestCode.QUERY_CONSUME_QUEUE, {**fields, "index": 5})
    assert (beyond.code, beyond.remark) == (ResponseCode.SUCCESS, "Index 5 of 0@orders is not exist!")
    none = await world.ask(RequestCode.QUERY_CONSUME_QUEUE, {**fields, "queueId": 3})
    assert none.code == ResponseCode.SYSTEM_ERROR
    stats = ConsumeStatsList.decode((await world.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": False})).body)
    ((one,),) = [groups["g"] for groups in stats.consume_stats_list if "g" in groups]
    assert (one.offset_table[ZERO].broker_offset, one.offset_table[ZERO].consumer_offset) == (5, 2)
    assert (stats.total_diff, stats.total_inflight_diff) == (3, None if profile is Profile.V4_9 else 1)
    ordered = await world.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": True})
    assert ConsumeStatsList.decode(ordered.body).total_diff == 0
    producers = ProducerTableInfo.decode((await world.ask(RequestCode.GET_ALL_PRODUCER_INFO)).body)
    assert [info.client_id for info in producers.data["p"]] == ["one"]
    assert producers.data["p"][0].remote_ip.startswith("/127.0.0.1:")
    answer = await world.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "orders", "group": "g"})
    (span,) = QueryConsumeTimeSpanBody.decode(answer.body).consume_time_span_set
    assert span.max_time_stamp - span.min_time_stamp == pytest.approx(4000, abs=50)
    assert span.consume_time_stamp - span.min_time_stamp == pytest.approx(1000, abs=50)
    assert span.delay_time == pytest.approx(3000, abs=50)


async def test_what_is_not_used_is_tidied_up(world: World) -> None:
    broker = await world.broker()
    await world.send()
    topics = TopicList.decode((await world.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)).body)
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "DefaultCluster", "broker-a"} <= set(topics.topic_list)
    broker.services.topics.topic_config_table.pop("orders")
    for code in (
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.CLEAN_UNUSED_TOPIC,
    ):
        assert "orders" in broker.store.topics()
        assert (await world.ask(code)).code == ResponseCode.SUCCESS
    assert "orders" not in broker.store.topics()


async def test_a_half_message_that_was_set_aside_is_asked_about_again(world: World) -> None:
    await world.broker(transaction_check_max=1, transaction_check_interval=10_000)
    properties = "TRAN_MSG\x01true\x02PGROUP\x01p\x02UNIQ_KEY\x01U\x02"
    await world.send(properties=properties, born_timestamp=world.clock.now_ms())
    await asyncio.sleep(25)
    (stored,) = StoredMessage.decode_all((await world.pull(topic=TRANSACTION_DISCARD_TOPIC)).body)
    asked = await consumer_of(world)
    fields = {"msgId": stored.offset_msg_id}
    assert (await world.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, fields)).code == ResponseCode.SUCCESS
    await asyncio.sleep(10)
    assert [request.code for request in asked.asked] == [RequestCode.CHECK_TRANSACTION_STATE]
