"""A broker's registration in every form: JSON, and the compressed layouts of nameserver.md 2.1."""

import struct
import zlib

import pytest

from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import DataVersion, TopicConfig
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.node.profile import Profile

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


def test_a_registration_of_more_than_half_a_million_topics_is_refused():
    topics = b",".join(b'"%d":{}' % number for number in range(500_001))
    with pytest.raises(RemoteProtocolError, match="500001 topics exceeds 500000"):
        RegisterBrokerBody.decode(b'{"topicConfigSerializeWrapper":{"topicConfigTable":{%s}}}' % topics)


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
