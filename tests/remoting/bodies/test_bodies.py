"""Golden JSON follows remoting-wire.md section 7 and nameserver.md section 5; compressed layouts nameserver.md 2.1."""

import json
import struct
import types
import typing
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesrv.remoting import fastjson
from nemesrv.remoting.bodies import client as client_bodies
from nemesrv.remoting.bodies import register as register_body
from nemesrv.remoting.bodies import route as route_bodies
from nemesrv.remoting.bodies.client import (
    Connection,
    ConsumerConnection,
    ConsumerData,
    ConsumeStats,
    GetConsumerListByGroupResponseBody,
    GroupList,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    OffsetWrapper,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicOffset,
    TopicStatsTable,
)
from nemesrv.remoting.bodies.fields import Body, Long
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import (
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    DataVersion,
    GetBrokerMemberGroupResponseBody,
    KVConfigSerializeWrapper,
    KVTable,
    QueueData,
    TopicConfig,
    TopicList,
    TopicRouteData,
)
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.profile import Profile

QUEUE = MessageQueue("T", "broker-a", 0)
ROUTE = TopicRouteData(
    queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=4, write_queue_nums=4, perm=6),),
    broker_datas=(BrokerData(cluster="DefaultCluster", broker_name="broker-a", broker_addrs={0: "127.0.0.1:10911"}),),
)
ROUTE_DEFAULT = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],'
    b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,'
    b'"writeQueueNums":4}]}'
)
# --- routes ---------------------------------------------------------------------------------------------------------


def test_a_route_is_written_in_both_dialects():
    assert ROUTE.encode(standard_json=False) == ROUTE.encode() == ROUTE_DEFAULT
    assert ROUTE.encode(standard_json=True) == ROUTE_DEFAULT.replace(b"{0:", b'{"0":')


def test_an_empty_route_is_written_as_java_does():
    assert TopicRouteData().encode() == b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}'


def test_standard_json_escapes_slashes_and_all_but_ascii():
    route = TopicRouteData(order_topic_conf="a/b", filter_server_table={"x": ("测é😀",)})
    standard = b'"filterServerTable":{"x":["\\u6D4B\\u00E9\\uD83D\\uDE00"]},"orderTopicConf":"a\\/b"'
    assert standard in route.encode(standard_json=True)
    assert '"filterServerTable":{"x":["测é😀"]},"orderTopicConf":"a/b"'.encode() in route.encode()


def test_a_5_x_broker_shows_its_acting_master_switch_and_zone():
    broker = BrokerData(broker_name="b", cluster="c", broker_addrs={0: "h:1", 1: "h:2"}, enable_acting_master=False)
    assert broker.encode() == (
        b'{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"b","cluster":"c","enableActingMaster":false}'
    )
    zoned = BrokerData(broker_name="b", zone_name="z", enable_acting_master=True)
    assert zoned.encode() == b'{"brokerAddrs":{},"brokerName":"b","enableActingMaster":true,"zoneName":"z"}'


@pytest.mark.parametrize("standard_json", [False, True])
def test_a_full_route_reads_back_from_both_dialects(standard_json):
    route = TopicRouteData(
        queue_datas=(QueueData(broker_name="a", perm=2, topic_sys_flag=1), QueueData(broker_name="测/b", perm=6)),
        broker_datas=(BrokerData(cluster="c", broker_name="a", broker_addrs={0: "h:1", 7: "[::1]:2"}),),
        filter_server_table={"h:1": ("f:1", "f:2")},
        order_topic_conf="a:4;b:4",
        topic_queue_mapping_by_broker={"a": {"bname": "a", "currIdMap": {"0": 1}}},
    )
    assert TopicRouteData.decode(route.encode(standard_json)) == route


@pytest.mark.parametrize(
    "text",
    [
        ROUTE_DEFAULT.decode(),
        ROUTE_DEFAULT.decode().replace("{0:", '{"0":'),
        ROUTE_DEFAULT.decode().replace('"perm":6', '"perm":"6","unknown":{"deep":[1,2]}'),
        ROUTE_DEFAULT.decode().replace('"topicSysFlag":0', '"topicSysFlag":null'),
        ROUTE_DEFAULT.decode().replace('"filterServerTable":{},', ""),
        ROUTE_DEFAULT.decode().replace('"filterServerTable":{}', '"filterServerTable":null'),
        ROUTE_DEFAULT.decode().replace('"', "'"),
        ROUTE_DEFAULT.decode().replace("}]", "},null]"),
        ROUTE_DEFAULT.decode().replace('"perm":6', '"perm":6.0').replace("{0:", "{0:null,0:"),
    ],
)
def test_a_route_is_read_as_tolerantly_as_java_does(text):
    assert TopicRouteData.decode(text.encode()) == ROUTE


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ('{"queueDatas":{}}', "TopicRouteData.queueDatas is {}, not a list"),
        ('{"queueDatas":[7]}', "TopicRouteData.queueDatas is 7, not an object"),
        ('{"queueDatas":[{"perm":6}]}', "QueueData.brokerName is missing"),
        ('{"queueDatas":[{"brokerName":"a","perm":"six"}]}', "QueueData.perm is 'six', not a whole number of 32 bits"),
        ('{"queueDatas":[{"brokerName":"a","perm":4294967296}]}', "QueueData.perm is 4294967296"),
        ('{"queueDatas":[{"brokerName":["a"]}]}', r"QueueData.brokerName is \['a'\], not a text"),
        ('{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"x":"h:1"}}]}', "a key of BrokerData.brokerAddrs is 'x'"),
        ('{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":[]}}]}', r"BrokerData.brokerAddrs\[0\] is \[\]"),
        ('{"brokerDatas":[{"brokerName":"a","enableActingMaster":"maybe"}]}', "not true or false"),
        ("[]", r"TopicRouteData is \[\], not an object"),
        ("", "JSON"),
        ("{", "JSON"),
    ],
)
def test_an_impossible_route_is_refused_with_the_field_s_name(text, blamed):
    with pytest.raises(RemoteProtocolError, match=blamed):
        TopicRouteData.decode(text.encode())


def test_mapping_info_too_deep_to_be_written_again_is_refused():
    deep = {"a": {}}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(RemoteProtocolError, match="nested deeper"):
        TopicRouteData.decode(json.dumps({"topicQueueMappingByBroker": deep}).encode())


# --- registration ---------------------------------------------------------------------------------------------------

VERSION = DataVersion(timestamp=1_700_000_000_000, counter=3)
TOPICS = (  # sorted by name, as JSON has them
    TopicConfig(topic_name="TBW102", read_queue_nums=8, write_queue_nums=8, perm=7, topic_filter_type="MULTI_TAG"),
    TopicConfig(topic_name="TopicTest", read_queue_nums=4, write_queue_nums=8),
)
REGISTRATION = RegisterBrokerBody(
    topic_config_serialize_wrapper=TopicConfigSerializeWrapper.of(TOPICS, VERSION), filter_server_list=()
)


def sized(text):
    return struct.pack(">i", len(text)) + text


INFLATED_4_9 = b"".join(
    (
        sized(b'{"counter":3,"timestamp":1700000000000}'),
        struct.pack(">i", 2),
        sized(b"TBW102 8 8 7 MULTI_TAG"),
        sized(b"TopicTest 4 8 6 SINGLE_TAG"),
        sized(b"[]"),
    )
)


def test_a_registration_is_written_as_4_9_does():
    body = RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigSerializeWrapper.of(TOPICS[1:], VERSION), filter_server_list=()
    )
    assert body.encode() == (
        b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"timestamp":1700000000000},'
        b'"topicConfigTable":{"TopicTest":{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
        b'"topicName":"TopicTest","topicSysFlag":0,"writeQueueNums":8}}}}'
    )


def test_a_compressed_registration_is_laid_out_as_each_version_does():
    assert zlib.decompress(REGISTRATION.encode(compressed=True, version=409)) == INFLATED_4_9
    assert zlib.decompress(REGISTRATION.encode(compressed=True, version=413)) == INFLATED_4_9 + bytes(4)


@pytest.mark.parametrize("version", [37, 409, 413, 479])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_registration_reads_back_whatever_its_form(version, compressed):
    data = REGISTRATION.encode(compressed=compressed, version=version)
    body = RegisterBrokerBody.decode(data, version=version)
    assert (body.topics, body.data_version, body.filter_server_list) == (TOPICS, VERSION, ())
    assert body.queue_mappings == {}


def test_the_compressed_form_loses_sys_flag_and_order():
    topic = TopicConfig(topic_name="T", topic_sys_flag=1, order=True, attributes={"+message.type": "FIFO"})
    body = RegisterBrokerBody(topic_config_serialize_wrapper=TopicConfigSerializeWrapper.of((topic,), VERSION))
    (read,) = RegisterBrokerBody.decode(body.encode(compressed=True)).topics
    assert read == TopicConfig(topic_name="T", attributes={"+message.type": "FIFO"})


def test_static_topics_travel_in_both_forms_of_5_x():
    mappings = {"T": {"topic": "T", "bname": "broker-a", "epoch": 1, "currIdMap": {"0": 2}}}
    wrapper = TopicConfigSerializeWrapper(topic_queue_mapping_info_map=mappings)
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper)
    for compressed in (False, True):
        assert RegisterBrokerBody.decode(body.encode(compressed=compressed)).queue_mappings == mappings
    assert RegisterBrokerBody.decode(body.encode(compressed=True, version=409), version=409).queue_mappings == {}


def test_a_broker_before_filter_servers_sends_the_topic_wrapper_alone():
    body = RegisterBrokerBody.decode(REGISTRATION.topic_config_serialize_wrapper.encode(), version=36)
    assert (body.topics, body.filter_server_list) == (TOPICS, None)


def test_a_topic_that_is_null_is_refused():
    """Found by tests/differential."""
    with pytest.raises(RemoteProtocolError, match="null"):
        RegisterBrokerBody.decode(b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":null}}}')


def test_no_body_is_an_empty_topic_table_of_version_zero():
    body = RegisterBrokerBody.decode(b"")
    assert (body.topics, body.data_version, body.filter_server_list) == ((), DataVersion(), ())


def test_a_topic_without_a_name_has_that_of_its_key():
    body = RegisterBrokerBody.decode(b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"perm":4}}}}')
    assert body.topics == (TopicConfig(topic_name="T", perm=4),)


def test_every_truncation_of_a_compressed_registration_is_refused():
    whole = REGISTRATION.encode(compressed=True, version=413)
    for size in range(1, len(whole)):
        with pytest.raises(RemoteProtocolError):
            RegisterBrokerBody.decode(whole[:size], version=413)
    for size in range(len(INFLATED_4_9)):
        with pytest.raises(RemoteProtocolError):
            RegisterBrokerBody.decode(zlib.compress(INFLATED_4_9[:size]), version=413)


def test_a_zip_bomb_is_refused():
    bomb = zlib.compress(bytes(50_000_000), 9)
    assert len(bomb) < 60_000
    with pytest.raises(RemoteProtocolError, match="inflates to more than"):
        RegisterBrokerBody.decode(bomb)


@pytest.mark.parametrize(
    "inflated",
    [
        sized(b"{}") + struct.pack(">i", -1),
        sized(b"{}") + struct.pack(">i", 2**31 - 1),
        sized(b"{}") + struct.pack(">i", 1) + sized(b"T 1 1 6") + sized(b"[]"),
        sized(b"{}") + struct.pack(">i", 1) + sized(b"T one 1 6 SINGLE_TAG") + sized(b"[]"),
        sized(b"{}") + struct.pack(">i", 0) + sized(b"{}"),
        sized(b"[]") + struct.pack(">i", 0) + sized(b"[]"),
        struct.pack(">i", 1000) + b"{}",
    ],
)
def test_a_compressed_registration_that_contradicts_itself_is_refused(inflated):
    with pytest.raises(RemoteProtocolError):
        RegisterBrokerBody.decode(zlib.compress(inflated))


def test_a_text_of_a_thousand_levels_is_refused_in_few_words():
    """Its repr was a RecursionError."""
    for levels in (100, 1000):
        with pytest.raises(RemoteProtocolError, match="not an object") as caught:
            RegisterBrokerBody.decode(b'{"topicConfigSerializeWrapper":%s%s}' % (b"[" * levels, b"]" * levels))
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("data", [b"\x78", b"\x00\x01", b"[1]", b'{"topicConfigSerializeWrapper":[]}', b"{"])
def test_noise_is_no_registration(data):
    with pytest.raises(RemoteProtocolError):
        RegisterBrokerBody.decode(data)


def test_attributes_that_cannot_be_read_are_none():
    assert TopicConfig.from_line("T 1 2 6 SINGLE_TAG {oops") == TopicConfig(
        topic_name="T", read_queue_nums=1, write_queue_nums=2
    )


def test_data_versions_are_equal_by_profile():
    old, new = DataVersion(timestamp=1, counter=2), DataVersion(timestamp=1, counter=2, state_version=3)
    assert old.same(new, Profile.V4_9)
    assert not old.same(new, Profile.V5_X)
    assert old != new
    assert old.next(now_ms=9) == DataVersion(timestamp=9, counter=3)
    assert new.next(now_ms=9) == DataVersion(timestamp=9, counter=3, state_version=3)
    assert new.encode() == b'{"counter":2,"stateVersion":3,"timestamp":1}'


# --- everything else: object and golden bytes, run both ways --------------------------------------------------------

GOLDEN = [
    (
        ClusterInfo(
            broker_addr_table={"a": BrokerData(cluster="c", broker_name="a", broker_addrs={0: "h:1"})},
            cluster_addr_table={"c": ("a", "b")},
        ),
        '{"brokerAddrTable":{"a":{"brokerAddrs":{0:"h:1"},"brokerName":"a","cluster":"c"}},'
        '"clusterAddrTable":{"c":["a","b"]}}',
    ),
    (TopicList(topic_list=("a", "b")), '{"topicList":["a","b"]}'),
    (TopicList(broker_addr="h:1"), '{"brokerAddr":"h:1","topicList":[]}'),
    (KVTable(table={"k": "v"}), '{"table":{"k":"v"}}'),
    (KVTable(), '{"table":{}}'),
    (KVConfigSerializeWrapper(config_table={"ns": {"k": "v"}}), '{"configTable":{"ns":{"k":"v"}}}'),
    (
        GetBrokerMemberGroupResponseBody(
            broker_member_group=BrokerMemberGroup(cluster="c", broker_name="a", broker_addrs={0: "h:1"})
        ),
        '{"brokerMemberGroup":{"brokerAddrs":{0:"h:1"},"brokerName":"a","cluster":"c"}}',
    ),
    (GroupList(group_list=("g",)), '{"groupList":["g"]}'),
    (GetConsumerListByGroupResponseBody(consumer_id_list=("c1",)), '{"consumerIdList":["c1"]}'),
    (
        HeartbeatData(
            client_id="10.0.0.1@1",
            producer_data_set=(ProducerData(group_name="p"),),
            consumer_data_set=(
                ConsumerData(
                    group_name="g", subscription_data_set=(SubscriptionData.of("T", "TagA || TagB", sub_version=5),)
                ),
            ),
        ),
        '{"clientID":"10.0.0.1@1","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
        '"consumeType":"CONSUME_PASSIVELY","groupName":"g","messageModel":"CLUSTERING","subscriptionDataSet":['
        '{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB",'
        '"subVersion":5,"tagsSet":["TagA","TagB"],"topic":"T"}],"unitMode":false}],'
        '"producerDataSet":[{"groupName":"p"}]}',
    ),
    (
        LockBatchRequestBody(consumer_group="g", client_id="c", mq_set=frozenset({QUEUE})),
        '{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"broker-a","queueId":0,"topic":"T"}],'
        '"onlyThisBroker":false}',
    ),
    (
        LockBatchResponseBody(lock_ok_mq_set=frozenset({QUEUE})),
        '{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"T"}]}',
    ),
    (
        ConsumerConnection(
            connection_set=(Connection(client_addr="h:9", client_id="c", language="JAVA", version=409),),
            subscription_table={"T": SubscriptionData(topic="T")},
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
        ),
        '{"connectionSet":[{"clientAddr":"h:9","clientId":"c","language":"JAVA","version":409}],'
        '"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
        '"subscriptionTable":{"T":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*",'
        '"subVersion":0,"tagsSet":[],"topic":"T"}}}',
    ),
    (
        SubscriptionGroupConfig(group_name="g"),
        '{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"groupName":"g",'
        '"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
        '"whichBrokerWhenConsumeSlowly":1}',
    ),
    (
        TopicStatsTable(offset_table={QUEUE: TopicOffset(min_offset=1, max_offset=9, last_update_timestamp=7)}),
        '{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:'
        '{"lastUpdateTimestamp":7,"maxOffset":9,"minOffset":1}}}',
    ),
    (
        ConsumeStats(offset_table={QUEUE: OffsetWrapper(broker_offset=9, consumer_offset=4, last_timestamp=7)}),
        '{"consumeTps":0.0,"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:'
        '{"brokerOffset":9,"consumerOffset":4,"lastTimestamp":7}}}',
    ),
]


@pytest.mark.parametrize(("body", "text"), GOLDEN, ids=lambda value: type(value).__name__)
def test_a_body_is_written_and_read_as_java_does(body, text):
    assert body.encode() == text.encode()
    assert type(body).decode(text.encode()) == body


def test_a_subscription_expression_is_split_at_double_bars():
    assert SubscriptionData.of("T", None) == SubscriptionData.of("T", "*") == SubscriptionData.of("T", " || ")
    assert SubscriptionData.of("T", "a||b ").tags_set == {"a", "b"}


def test_numbers_booleans_and_texts_are_converted_as_fastjson_does():
    text = b'{"topicName":7,"readQueueNums":"4","writeQueueNums":"","perm":4.9,"order":"TRUE","topicSysFlag":true}'
    assert TopicConfig.decode(text) == TopicConfig(
        topic_name="7", read_queue_nums=4, perm=4, order=True, topic_sys_flag=1
    )
    assert ConsumeStats.decode(b'{"consumeTps":"1.5"}').consume_tps == 1.5
    with pytest.raises(RemoteProtocolError, match="not a number"):
        ConsumeStats.decode(b'{"consumeTps":"fast"}')


def test_a_shared_object_is_read_through_its_reference():
    text = b'{"dataVersion":{"counter":3,"timestamp":5},"subscriptionGroupTable":{},"x":{"$ref":"$.dataVersion"}}'
    assert SubscriptionGroupWrapper.decode(text).data_version == DataVersion(counter=3, timestamp=5)
    shared = b'{"subscriptionTable":{"a":{"topic":"a"},"b":{"$ref":"$.subscriptionTable.a"}},"connectionSet":[]}'
    assert ConsumerConnection.decode(shared).subscription_table["b"] == SubscriptionData(topic="a")


def test_references_that_multiply_are_refused():
    rows = ",".join(f'"t{row}":{{"topic":"t","tagsSet":{{"$ref":"$.tags"}}}}' for row in range(2000))
    text = f'{{"tags":[{",".join(["7"] * 1000)}],"subscriptionTable":{{{rows}}}}}'
    with pytest.raises(RemoteProtocolError, match="refers to more than"):
        ConsumerConnection.decode(text.encode())


@pytest.mark.parametrize("path", ["$", "$.a", "$.a[0]", "$.b", "..", "@", "$.a.b"])
def test_a_reference_to_something_unfinished_is_null(path):
    text = f'{{"a":[{{"x":{{"$ref":"{path}"}}}}],"table":{{"k":"v"}}}}'
    assert fastjson.loads(text) == {"a": [{"x": None}], "table": {"k": "v"}}


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).filter(lambda text: text != "$ref")


def values(hint):
    """Values that a field of that type can hold."""
    simple = {
        str: texts,
        int: st.integers(-(2**31), 2**31 - 1),
        Long: st.integers(-(2**63), 2**63 - 1),
        bool: st.booleans(),
        float: st.floats(allow_nan=False, allow_infinity=False),
        object: st.dictionaries(texts, st.one_of(texts, st.integers(0, 9), st.lists(texts, max_size=2)), max_size=2),
        MessageQueue: st.builds(MessageQueue, texts, texts, st.integers(0, 9)),
    }
    if hint in simple:
        return simple[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return st.none() | values(args[0])
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(values(args[0]), max_size=3)
    if origin is Mapping:
        kept = args[1] if types.NoneType not in typing.get_args(args[1]) else typing.get_args(args[1])[0]
        return st.dictionaries(values(args[0]), values(kept), max_size=3)
    return some(hint)


def some(body):
    hints = typing.get_type_hints(body, include_extras=True)
    return st.builds(body, **{name: values(hints[name]) for name in body.__dataclass_fields__})


BODIES = [
    body
    for module in (route_bodies, register_body, client_bodies)
    for body in vars(module).values()
    if isinstance(body, type) and issubclass(body, Body) and body.__module__ == module.__name__
]


@settings(max_examples=15, deadline=None)
@given(st.data())
@pytest.mark.parametrize("body", BODIES)
def test_every_body_round_trips(body, data):
    value = data.draw(some(body))
    if body is TopicConfigSerializeWrapper or body is RegisterBrokerBody:
        wrapper = value if body is TopicConfigSerializeWrapper else value.topic_config_serialize_wrapper
        if any(not topic.topic_name for topic in wrapper.topic_config_table.values()):
            return
    assert body.decode(value.encode()) == value
    if body is TopicRouteData:
        assert body.decode(value.encode(standard_json=True)) == value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=15, deadline=None)
@given(st.data())
@pytest.mark.parametrize("body", BODIES)
def test_no_json_makes_a_reader_fail_otherwise(body, data):
    names = [name for name in body.__dataclass_fields__]
    wires = [name.split("_")[0] + "".join(part.capitalize() for part in name.split("_")[1:]) for name in names]
    given_value = data.draw(st.dictionaries(st.sampled_from(wires), json_values, max_size=4) | json_values)
    try:
        body.decode(json.dumps(given_value).encode())
    except RemoteProtocolError:
        pass


def test_what_is_read_can_always_be_written():
    text = fastjson.dumps({"groupName": "g", "groupRetryPolicy": {"type": "CUSTOMIZED", "next": [1, 2]}})
    assert SubscriptionGroupConfig.decode(text).encode().startswith(b'{"brokerId":0')
