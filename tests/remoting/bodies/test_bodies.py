"""Golden JSON follows remoting-wire.md section 7 and nameserver.md section 5."""

import json
import types
import typing
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesrv.remoting import fastjson
from nemesrv.remoting.bodies import client as client_bodies
from nemesrv.remoting.bodies import register as register_body
from nemesrv.remoting.bodies import route as route_bodies
from nemesrv.remoting.bodies.client import (
    ClientConnection,
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
    DataVersion,
    GetBrokerMemberGroupResponseBody,
    KVTable,
    QueueData,
    TopicConfig,
    TopicList,
    TopicRouteData,
)
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.message import MessageQueue

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


# --- bodies that no recorded frame has (tests/interop): object and golden bytes, run both ways ----------------------

GOLDEN = [
    (TopicRouteData(), '{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}'),
    (TopicList(broker_addr="h:1"), '{"brokerAddr":"h:1","topicList":[]}'),
    (KVTable(table={"k": "v"}), '{"table":{"k":"v"}}'),
    (KVTable(), '{"table":{}}'),
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
            connection_set=(ClientConnection(client_addr="h:9", client_id="c", language="JAVA", version=409),),
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


@settings(max_examples=10, deadline=None)
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


@settings(max_examples=10, deadline=None)
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
