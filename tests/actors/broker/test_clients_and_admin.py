"""Heartbeats, group members, consumer offsets, locks, delay levels, send-back, and what mqadmin asks."""

import asyncio
from typing import Any

import pytest

from nemesrv.chaos.experiment.virtual.loop import WALL_ORIGIN_MS
from nemesrv.remoting import fastjson
from nemesrv.remoting.bodies.admin import CreateTopicListRequestBody, SubscriptionGroupList
from nemesrv.remoting.bodies.client import (
    ConsumerConnection,
    ConsumerIdList,
    ConsumeStats,
    LockBatchRequestBody,
    LockBatchResponseBody,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicStatsTable,
)
from nemesrv.remoting.bodies.register import TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import KVTable, TopicConfig
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.message import MessageQueue, StoredMessage
from nemesrv.remoting.message_properties import format_properties
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.properties import parse_properties

from .world import Peer, World, beat, bodies

QUEUE: dict[str, Any] = {"consumerGroup": "g", "topic": "orders", "queueId": 0}


async def members(world: World, group: str = "g") -> tuple[str, ...] | None:
    response = await world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    if response.code != ResponseCode.SUCCESS:
        assert (response.code, response.remark) == (1, f"no consumer for this group, {group}")
        return None
    return ConsumerIdList.decode(response.body).consumer_id_list


async def test_members_are_told_when_one_comes_leaves_or_is_lost(up: World) -> None:
    first, second = Peer(up), Peer(up)
    await first.heartbeat("c1", "orders")
    await second.heartbeat("c2", "orders")
    await up.clock.sleep(0.1)
    assert await members(up) == ("c1", "c2")
    assert (first.notified, second.notified) == (["g", "g"], ["g"])
    await second.heartbeat("c2", "orders")  # nothing new: nobody is told
    leave = {"clientID": "c2", "consumerGroup": "g"}
    await up.ask(RequestCode.UNREGISTER_CLIENT, leave, client=second.client)
    await up.clock.sleep(0.1)
    assert (await members(up), first.notified) == (("c1",), ["g"] * 3)
    await second.heartbeat("c2", "orders")
    await up.clock.sleep(0.1)
    await second.client.close()
    await up.clock.sleep(0.1)
    assert (await members(up), first.notified) == (("c1",), ["g"] * 5)
    await first.client.close()
    await up.clock.sleep(0.1)
    assert await members(up) is None


async def test_a_heartbeat_makes_the_retry_topic_and_registers_it(world: World) -> None:
    (server,) = await world.name_servers(1)
    broker = await world.broker(namesrv_addr=(server.address,))
    await world.heartbeat(beat("c1", "orders", "%RETRY%g"))
    await world.clock.sleep(0.1)
    topic = broker.services.topics.get("%RETRY%g")
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)
    assert server.requests[-1][3] == ("%RETRY%g",)


async def test_a_client_silent_for_120_s_is_gone_at_the_next_scan(world: World) -> None:
    broker = await world.broker()
    silent, alive = Peer(world), Peer(world)
    await silent.heartbeat("silent", "orders")
    await silent.heartbeat("p", producers="pg")
    for _ in range(5):
        await alive.heartbeat("alive", "orders")
        # Other traffic keeps the silent one's channel from being closed as idle.
        await world.ask(RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": 0}, client=silent.client)
        await world.clock.sleep(27)
    assert await members(world) == ("alive",)
    assert alive.notified == ["g"], "of its own coming, and not of the other's end"
    assert broker.services.clients.producers == {}


async def test_a_changed_subscription_is_news_to_the_group(world: World) -> None:
    broker = await world.broker()
    member = Peer(world)
    await member.heartbeat("c1", "orders", "payments")
    await member.heartbeat("c1", "orders", version=2)
    await world.clock.sleep(0.1)
    assert member.notified == ["g", "g"]
    assert set(broker.services.clients.consumers["g"].subscriptions) == {"orders"}


async def test_a_group_without_offset_starts_at_zero_of_a_young_queue_unless_it_asks_not_to(up: World) -> None:
    await up.send()
    fields = QUEUE
    young = await up.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)
    assert (young.code, young.ext_fields) == (0, {"offset": "0"})
    strict = await up.ask(RequestCode.QUERY_CONSUMER_OFFSET, {**fields, "setZeroIfNotFound": "false"})
    assert strict.code == ResponseCode.QUERY_NOT_FOUND
    await up.commit(9)
    committed = await up.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)
    assert committed.ext_fields == {"offset": "9"}


async def test_groups_that_a_client_leaves_are_recorded(world: World) -> None:
    broker = await world.broker()
    right = broker.services.clients.unregister

    def told_nobody(*client: Any, **groups: Any) -> list[str]:
        right(*client, **groups)
        return []

    broker.services.clients.unregister = told_nobody  # type: ignore[method-assign]
    await world.heartbeat(beat("10.0.0.9@me", "orders"))
    await world.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "10.0.0.9@me", "consumerGroup": "g"})
    assert [(row["f"], row["value"]["groups"]) for row in world.recorded("client_gone")] == [("unregistered", ["g"])]


async def test_a_change_of_a_committed_offset_is_recorded_with_the_offset_before(up: World) -> None:
    await up.send()
    for offset in (9, 9, 4):
        await up.commit(offset)
    await up.heartbeat(beat("10.0.0.9@me", "orders"))
    await up.pull(consumerGroup="g", sysFlag=1, commitOffset=5)
    rows = [(row["f"], row["offset"], row["value"]) for row in up.recorded("commit")]
    told = [(f, offset, value["before"], value["client"]) for f, offset, value in rows]
    assert told == [("update", 9, -1, None), ("update", 4, 9, None), ("pull", 5, 4, "10.0.0.9@me")]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"topic": "none"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": 99}, ResponseCode.SYSTEM_ERROR),
        ({"queueId": -1}, ResponseCode.SYSTEM_ERROR),
        ({"consumerGroup": "no spaces"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    ],
)
async def test_offsets_are_kept_only_of_what_exists(world: World, change: dict[str, Any], code: int) -> None:
    broker = await world.broker()
    await world.create_topic()
    asked = {**QUEUE, "commitOffset": 1, **change}
    assert (await world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, asked)).code == code
    assert broker.services.offsets.encode() == b'{"offsetTable":{}}'


async def test_an_offset_below_0_is_taken_and_read_as_none_as_apaches_broker_does(ready: World) -> None:
    for offset in (-1, 7, -1):
        await ready.commit(offset)
        found = await ready.ask(RequestCode.QUERY_CONSUMER_OFFSET, {**QUEUE, "setZeroIfNotFound": "false"})
        assert found.code == (0 if offset >= 0 else ResponseCode.QUERY_NOT_FOUND)


async def test_a_lock_is_one_clients_until_it_is_released(ready: World) -> None:
    queues = frozenset(MessageQueue("orders", "broker-a", queue_id) for queue_id in (0, 1))

    async def lock(client_id: str, code: int = RequestCode.LOCK_BATCH_MQ) -> frozenset[MessageQueue]:
        request = LockBatchRequestBody(consumer_group="g", client_id=client_id, mq_set=queues)
        response = await ready.ask(code, body=request.encode())
        assert response.code == ResponseCode.SUCCESS
        return LockBatchResponseBody.decode(response.body or b"{}").lock_ok_mq_set

    assert await lock("c1") == queues
    assert await lock("c2") == frozenset()
    await lock("c1", RequestCode.UNLOCK_BATCH_MQ)
    assert await lock("c2") == queues
    await ready.clock.sleep(61)
    assert await lock("c1") == queues


async def test_a_delayed_message_appears_when_its_level_is_over(up: World) -> None:
    await up.send(b"late", properties=format_properties({"DELAY": "2", "TAGS": "TagA", "KEYS": "k"}))
    await up.clock.sleep(4.9)
    assert (await up.pull(expression="TagA")).code == ResponseCode.PULL_NOT_FOUND
    await up.clock.sleep(0.2)
    (stored,) = StoredMessage.decode_all((await up.pull(expression="TagA")).body)
    assert (stored.body, stored.topic, stored.queue_id) == (b"late", "orders", 0)
    assert stored.properties["DELAY"] == "2"  # seen so from Apache 4.9.7 and 5.3.3 (tests/interop)
    assert stored.properties["KEYS"] == "k"


async def test_a_delayed_message_is_delivered_once_across_a_restart(world: World) -> None:
    broker = await world.broker()
    await world.send(b"one", properties="DELAY\x011\x02")
    await world.send(b"two", properties="DELAY\x013\x02")
    await world.clock.sleep(2)
    await world.stop(broker)
    await world.clock.sleep(20)
    await world.broker()
    await world.clock.sleep(1)
    pulled = StoredMessage.decode_all((await world.pull()).body)
    assert [stored.body for stored in pulled] == [b"one", b"two"]


async def send_back(world: World, stored: StoredMessage, **fields: Any) -> int:
    header = {"offset": stored.physical_offset, "group": "g", "delayLevel": 0, **fields}
    return (await world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)).code


async def test_a_message_sent_back_returns_through_the_retry_topic_and_ends_in_the_dlq(up: World) -> None:
    await up.send(b"hard", properties="KEYS\x01k\x02")
    (stored,) = StoredMessage.decode_all((await up.pull()).body)
    assert await send_back(up, stored) == ResponseCode.SUCCESS
    await up.clock.sleep(9.9)
    assert (await up.pull(topic="%RETRY%g")).code == ResponseCode.PULL_NOT_FOUND
    await up.clock.sleep(0.2)  # level 3 + 0 tries: 10 s
    (retried,) = StoredMessage.decode_all((await up.pull(topic="%RETRY%g")).body)
    assert (retried.body, retried.reconsume_times) == (b"hard", 1)
    assert retried.properties["RETRY_TOPIC"] == "orders"
    assert retried.properties["ORIGIN_MESSAGE_ID"] == stored.offset_msg_id
    assert await send_back(up, retried, maxReconsumeTimes=1) == ResponseCode.SUCCESS
    (dead,) = StoredMessage.decode_all((await up.pull(topic="%DLQ%g")).body)
    assert (dead.body, dead.properties["KEYS"]) == (b"hard", "k")
    assert await send_back(up, stored, delayLevel=-1) == ResponseCode.SUCCESS
    assert len(StoredMessage.decode_all((await up.pull(topic="%DLQ%g")).body)) == 2
    assert await send_back(up, stored, offset=12345) == ResponseCode.SYSTEM_ERROR


async def test_a_retry_sent_as_an_ordinary_message_goes_to_the_dlq_when_used_up(up: World) -> None:
    for times in (1, 16):
        sent = await up.send(b"%d" % times, topic="%RETRY%g", default_topic_queue_nums=1, reconsume_times=times)
        assert sent.code == ResponseCode.SUCCESS
    assert bodies(await up.pull(topic="%RETRY%g")) == [b"1"]
    assert bodies(await up.pull(topic="%DLQ%g")) == [b"16"]


async def test_topics_are_made_changed_listed_and_deleted(world: World) -> None:
    await world.broker()
    await world.create_topic(queues=2)
    await world.send(b"x")
    await world.create_topic(queues=8)
    assert [e["value"]["write"] for e in world.recorded("topic", topic="orders")] == [2, 8]
    listed = TopicConfigSerializeWrapper.decode((await world.ask(RequestCode.GET_ALL_TOPIC_CONFIG)).body)
    assert listed.topic_config_table["orders"].write_queue_nums == 8
    one = await world.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "orders"})
    assert TopicConfig.decode(one.body).read_queue_nums == 8
    stats = await world.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "orders"})
    table = TopicStatsTable.decode(stats.body).offset_table
    assert len(table) == 8
    assert table[MessageQueue("orders", "broker-a", 0)].max_offset == 1
    assert table[MessageQueue("orders", "broker-a", 0)].last_update_timestamp >= WALL_ORIGIN_MS
    assert (await world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})).code == 0
    for code in (RequestCode.GET_TOPIC_CONFIG, RequestCode.GET_TOPIC_STATS_INFO):
        assert (await world.ask(code, {"topic": "orders"})).code == ResponseCode.TOPIC_NOT_EXIST
    assert world.recorded("topic", topic="orders")[-1]["value"] is None
    assert (await world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "TBW102"})).code == 1


@pytest.mark.parametrize(("profile", "left"), [(Profile.V4_9, 1), (Profile.V5_X, -1)])
async def test_offsets_outlive_their_topic_in_4_9_only(world: World, profile: Profile, left: int) -> None:
    broker = await world.broker(profile=profile)
    await world.create_topic()
    broker.services.offsets.commit("g", "orders", 0, 1)
    assert (await world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})).code == 0
    assert broker.services.offsets.query("g", "orders", 0) == left


async def test_a_system_topic_cannot_be_changed(up: World) -> None:
    for topic in ("TBW102", "DefaultCluster", "broker-a", "bad name"):
        with pytest.raises(AssertionError, match="code"):
            await up.create_topic(topic)


async def test_groups_are_set_listed_and_deleted(ready: World) -> None:
    group = SubscriptionGroupConfig(group_name="g", consume_enable=False, retry_max_times=3)
    await ready.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.encode())
    assert (await ready.pull()).code == ResponseCode.NO_PERMISSION
    listed = await ready.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    table = SubscriptionGroupWrapper.decode(listed.body).subscription_group_table
    assert table["g"].retry_max_times == 3
    await ready.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"})
    assert (await ready.pull()).code == ResponseCode.PULL_NOT_FOUND


async def test_connections_and_consume_progress_are_shown(world: World) -> None:
    broker = await world.broker()
    await world.create_topic()
    await world.send(b"a")
    await world.send(b"b")
    broker.services.offsets.commit("g", "orders", 0, 1)
    offline = await world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "g"})
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
    await world.heartbeat(beat("c1", "orders"))
    online = await world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "g"})
    shown = ConsumerConnection.decode(online.body)
    assert [connection.client_id for connection in shown.connection_set] == ["c1"]
    assert set(shown.subscription_table) == {"orders"}
    stats = await world.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "g"})
    offsets = ConsumeStats.decode(stats.body).offset_table[MessageQueue("orders", "broker-a", 0)]
    assert (offsets.broker_offset, offsets.consumer_offset) == (2, 1)
    every = await world.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
    assert fastjson.loads(every.body) == {"offsetTable": {"orders@g": {"0": 1}}}


async def test_runtime_info_has_every_key_that_cluster_list_parses(up: World) -> None:
    await up.send()
    info = KVTable.decode((await up.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).body).table
    for key in (
        *("brokerVersionDesc", "brokerActive", "putTps", "getTransferredTps"),
        *("sendThreadPoolQueueSize", "sendThreadPoolQueueHeadWaitTimeMills"),
        *("pullThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills"),
        *("pageCacheLockTimeMills", "earliestMessageTimeStamp", "commitLogDiskRatio"),
        *("timerReadBehind", "timerOffsetBehind", "timerCongestNum", "timerEnqueueTps", "timerDequeueTps"),
        *("msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow"),
        *("msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning", "msgGetTotalTodayNow"),
    ):
        assert info[key], key
    assert len((info["putTps"] or "").split()) == 3


async def test_the_configuration_is_shown_and_changed_in_part(up: World) -> None:
    shown = parse_properties((await up.ask(RequestCode.GET_BROKER_CONFIG)).body)
    assert (shown["brokerName"], shown["autoCreateTopicEnable"]) == ("broker-a", "true")
    assert (await up.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerName=x")).code == 1
    refused = await up.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=9")
    assert (refused.code, "brokerPermission=9" in (refused.remark or "")) == (1, True)
    assert (await up.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"traceOn=false")).code == 0
    shown = parse_properties((await up.ask(RequestCode.GET_BROKER_CONFIG)).body)
    assert shown["traceOn"] == "false"


async def test_messages_are_found_by_id_by_key_and_by_time(up: World) -> None:
    times = []
    for number in range(4):
        times.append(up.clock.now_ms())
        properties = format_properties({"KEYS": f"k{number} all", "UNIQ_KEY": f"u{number}"})
        await up.send(b"%d" % number, queue_id=number % 2, properties=properties)
        await up.clock.sleep(1)

    async def query(key: str, begin: int = 0, end: int = 1 << 60, **more: Any) -> list[bytes]:
        fields = {"topic": "orders", "key": key, "maxNum": 3, "beginTimestamp": begin, "endTimestamp": end}
        return bodies(await up.ask(RequestCode.QUERY_MESSAGE, {**fields, **more}))

    assert await query("k2") == [b"2"]
    assert await query("all") == [b"3", b"2", b"1"]
    assert await query("all", end=times[1]) == [b"1", b"0"]
    assert await query("k2", _UNIQUE_KEY_QUERY="true") == []
    assert await query("u2", _UNIQUE_KEY_QUERY="true") == [b"2"]
    (stored,) = StoredMessage.decode_all((await up.pull(queue_id=1)).body)[1:]
    viewed = await up.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": stored.physical_offset})
    assert StoredMessage.decode_all(viewed.body) == [stored]
    missing = await up.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": 5})
    assert missing.code == ResponseCode.SYSTEM_ERROR
    at = {"topic": "orders", "queueId": 1, "timestamp": times[3]}
    found = await up.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, at)
    assert found.ext_fields == {"offset": "1"}
    for code, expected in ((RequestCode.GET_MAX_OFFSET, "2"), (RequestCode.GET_MIN_OFFSET, "0")):
        assert (await up.ask(code, {"topic": "orders", "queueId": 1})).ext_fields == {"offset": expected}
    earliest = await up.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, {"topic": "orders", "queueId": 1})
    assert earliest.ext_fields == {"timestamp": str(times[1])}


async def test_everything_waits_for_nobody_when_the_broker_stops(world: World) -> None:
    broker = await world.broker()
    await world.create_topic()
    waiting = asyncio.create_task(world.pull(wait_ms=15_000))
    await world.clock.sleep(0.1)
    begin = world.clock.monotonic_s()
    await world.stop(broker)
    assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], Exception)
    assert world.clock.monotonic_s() - begin < 1


async def test_several_topics_and_groups_are_made_at_once_or_none_of_them(world: World) -> None:
    broker = await world.broker(profile=Profile.V5_X)

    async def answers(*names: str) -> list[int]:
        topics = CreateTopicListRequestBody(topic_config_list=tuple(TopicConfig(topic_name=n) for n in names))
        groups = SubscriptionGroupList(group_config_list=tuple(SubscriptionGroupConfig(group_name=n) for n in names))
        lists = {
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: topics,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: groups,
        }
        return [(await world.ask(code, body=asked.encode())).code for code, asked in lists.items()]

    assert await answers("one", "no name!") == [ResponseCode.INVALID_PARAMETER] * 2
    assert "one" not in broker.services.topics
    assert "one" not in broker.services.groups.table
    assert await answers("one", "two") == [ResponseCode.SUCCESS] * 2
    assert all(name in broker.services.topics and name in broker.services.groups.table for name in ("one", "two"))


async def test_4_9_knows_no_lists_and_no_state_of_slaves(up: World) -> None:
    for code in (18, 225, 907, 908):
        assert (await up.ask(code)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


EXPORTED = (
    *("brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime", "filterServerNums"),
    *("flushDiskType", "maxMessageSize", "messageDelayLevel", "msgTraceTopicName", "slaveReadEnable", "traceOn"),
    *("traceTopicEnable", "useTLS", "autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
)
"""Without one of these 4.9's `mqadmin exportConfigs` ends in a NullPointerException."""


async def test_the_settings_that_mqadmin_exports_are_all_there(up: World) -> None:
    assert parse_properties((await up.ask(RequestCode.GET_BROKER_CONFIG)).body).keys() >= set(EXPORTED)
