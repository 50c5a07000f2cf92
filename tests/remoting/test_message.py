"""The golden record is message-format.md section 1; the other bytes follow the layouts there."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesrv.remoting import compression
from nemesrv.remoting.compression import CompressionType
from nemesrv.remoting.errors import LocalProtocolError, RemoteProtocolError
from nemesrv.remoting.message import BLANK_MAGIC, Message, MessageQueue, StoredMessage
from nemesrv.remoting.message_batch import BatchItem, decode_batch
from nemesrv.remoting.message_id import UniqIdGenerator, offset_msg_id, parse_offset_msg_id, uniq_id
from nemesrv.remoting.message_properties import (
    append_property,
    format_properties,
    java_hash,
    parse_properties,
    tags_code,
)
from nemesrv.remoting.node.network import Address
from tests.fuzz.seeds import encode_item

GOLDEN = bytes.fromhex(
    """0000008d daa320a7 3610a686 00000002 00000000 0000000000000005 0000000000000400 00000000
    0000018bcfe56800 0a000009 0000c350 0000018bcfe5687b 0a000001 00002a9f 00000000 0000000000000000
    00000005 68656c6c6f 09 546f70696354657374
    0024 554e49515f4b455901374630303030303135343233303030300254414753015461674102"""
)
EXAMPLE = StoredMessage(
    topic="TopicTest",
    body=b"hello",
    raw_properties=b"UNIQ_KEY\x017F00000154230000\x02TAGS\x01TagA\x02",
    queue_id=2,
    queue_offset=5,
    physical_offset=1024,
    born_timestamp=1_700_000_000_000,
    born_host=Address("10.0.0.9", 50000),
    store_timestamp=1_700_000_000_123,
    store_host=Address("10.0.0.1", 10911),
)


def stored(**changes):
    fields = {name: getattr(EXAMPLE, name) for name in EXAMPLE.__slots__}
    return StoredMessage(**{**fields, **changes})


# --- the stored record ----------------------------------------------------------------------------------------------


def test_the_worked_example_is_written_byte_for_byte():
    assert EXAMPLE.encode() == GOLDEN


def test_the_worked_example_is_read_field_for_field():
    assert StoredMessage.decode_at(GOLDEN, strict=True) == (EXAMPLE, 141)
    assert EXAMPLE.offset_msg_id == "0A00000100002A9F0000000000000400"
    assert EXAMPLE.properties == {"UNIQ_KEY": "7F00000154230000", "TAGS": "TagA"}
    assert EXAMPLE.msg_id == EXAMPLE.uniq_key == "7F00000154230000"
    assert (EXAMPLE.tags, EXAMPLE.keys) == ("TagA", None)


def test_a_message_without_uniq_key_is_known_by_its_offset_id():
    assert stored(raw_properties=b"").msg_id == "0A00000100002A9F0000000000000400"


def test_records_back_to_back_are_all_read_from_bytes_and_memoryview():
    data = GOLDEN + stored(queue_offset=6).encode()
    assert StoredMessage.decode_all(data) == [EXAMPLE, stored(queue_offset=6)]
    assert StoredMessage.decode_all(memoryview(data), strict=True) == [EXAMPLE, stored(queue_offset=6)]
    assert StoredMessage.decode_all(b"", strict=True) == []


def test_every_truncation_ends_quietly_or_raises_when_strict():
    for size in range(1, len(GOLDEN)):
        data = GOLDEN + GOLDEN[:size]
        assert StoredMessage.decode_all(data) == [EXAMPLE]
        with pytest.raises(RemoteProtocolError, match="record at 141"):
            StoredMessage.decode_all(data, strict=True)


def test_a_strict_reader_checks_body_crc_total_size_and_topic_text():
    wrong_body = GOLDEN.replace(b"hello", b"hellO")
    wrong_size = struct.pack(">i", 140) + GOLDEN[4:]
    wrong_topic = GOLDEN.replace(b"TopicTest", b"\xffopicTest")
    for data, text in ((wrong_body, "CRC"), (wrong_size, "says 140 B and holds 141 B"), (wrong_topic, "utf-8")):
        assert len(StoredMessage.decode_all(data)) == 1
        with pytest.raises(RemoteProtocolError, match=text):
            StoredMessage.decode_all(data, strict=True)


@pytest.mark.parametrize("magic", [0, BLANK_MAGIC, -1])
def test_a_record_with_another_magic_ends_the_buffer(magic):
    data = GOLDEN[:4] + struct.pack(">i", magic) + GOLDEN[8:]
    assert StoredMessage.decode_all(data + GOLDEN) == []
    with pytest.raises(RemoteProtocolError, match="magic"):
        StoredMessage.decode_all(data, strict=True)


@pytest.mark.parametrize(("at", "size"), [(84, 4), (93, 1), (103, 2)])
@pytest.mark.parametrize("value", [-1, 0x7F])
def test_an_inner_length_that_does_not_fit_is_refused(at, size, value):
    data = GOLDEN[:at] + value.to_bytes(size, "big", signed=True) + GOLDEN[at + size :]
    assert StoredMessage.decode_all(data) == []


def test_a_long_topic_needs_version_2():
    topic = "t" * 128
    with pytest.raises(LocalProtocolError, match="128 B"):
        stored(topic=topic).encode()
    message = stored(topic=topic, version=2)
    data = message.encode()
    assert data[4:8] == bytes.fromhex("daa320ab")
    assert StoredMessage.decode_all(data, strict=True) == [message]


def test_ipv6_hosts_set_the_flag_bits_whatever_the_caller_gave():
    message = stored(born_host=Address("2001:db8::1", 1), store_host=Address("::1", 10911))
    decoded = StoredMessage.decode_all(message.encode(), strict=True)[0]
    assert decoded == stored(born_host=message.born_host, store_host=message.store_host, sys_flag=0x30)
    assert len(decoded.offset_msg_id) == 56
    assert StoredMessage.decode_all(stored(sys_flag=0x31).encode(), strict=True)[0].sys_flag == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"raw_properties": b"x" * 32768},
        {"queue_id": 2**31},
        {"physical_offset": 2**63},
        {"born_host": Address("localhost", 1)},
    ],
)
def test_what_no_record_can_hold_is_refused(changes):
    with pytest.raises(LocalProtocolError):
        stored(**changes).encode()


def test_half_a_surrogate_pair_is_written_as_a_question_mark():
    message = stored(topic="T\ud800", raw_properties=b"a\1?")
    decoded = StoredMessage.decode_all(message.encode(), strict=True)[0]
    assert (decoded.topic, decoded.properties) == ("T?", {"a": "?"})


int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
addresses = st.builds(Address, st.ip_addresses().map(str), st.integers(0, 65535))
V6_BITS = 0x30


@st.composite
def stored_messages(draw):
    version = draw(st.sampled_from([1, 2]))
    return StoredMessage(
        topic=draw(st.text(max_size=31 if version == 1 else 200)),
        body=draw(st.binary(max_size=300)),
        raw_properties=draw(st.binary(max_size=300)),
        queue_id=draw(int32),
        queue_offset=draw(int64),
        physical_offset=draw(int64),
        born_timestamp=draw(int64),
        born_host=draw(addresses),
        store_timestamp=draw(int64),
        store_host=draw(addresses),
        flag=draw(int32),
        sys_flag=draw(int32.map(lambda value: value & ~V6_BITS)),
        reconsume_times=draw(int32),
        prepared_transaction_offset=draw(int64),
        version=version,
    )


def with_v6_bits(message):
    bits = (0x10 if ":" in message.born_host.host else 0) | (0x20 if ":" in message.store_host.host else 0)
    fields = {name: getattr(message, name) for name in message.__slots__}
    return StoredMessage(**{**fields, "sys_flag": message.sys_flag | bits})


@settings(max_examples=60, deadline=None)
@given(st.lists(stored_messages(), max_size=4))
def test_records_round_trip(messages):
    data = b"".join(message.encode() for message in messages)
    decoded = StoredMessage.decode_all(data, strict=True)
    assert decoded == [with_v6_bits(message) for message in messages]
    assert b"".join(message.encode() for message in decoded) == data


# --- properties, hash -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        *(("TagA", 2598919), ("TagB", 2598920), ("", 0), ("测试", 903146)),
        *(("a very long tag name exceeding", -1160233928), ("😀", 31 * 0xD83D + 0xDE00)),
    ],
)
def test_java_hash_counts_utf_16_units(text, hashed):
    assert java_hash(text) == hashed


def test_no_tag_hashes_to_zero():
    assert (tags_code(None), tags_code(""), tags_code("TagA")) == (0, 0, 2598919)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        (None, {}),
        ("a\x011\x02b\x012", {"a": "1", "b": "2"}),
        ("a\x011\x02b\x012\x02", {"a": "1", "b": "2"}),
        ("a\x01\x02\x011\x02ab\x02abc\x02\x02c\x013", {"c": "3"}),
        ("a\x011\x02a\x012", {"a": "2"}),
        ("a\x011\x012", {"a": "1\x012"}),
    ],
)
def test_a_properties_string_is_read_as_java_reads_it(text, properties):
    assert parse_properties(text) == properties


def test_the_trailing_separator_is_a_choice():
    assert format_properties({"a": "1", "b": "2"}) == "a\x011\x02b\x012\x02"
    assert format_properties({"a": "1", "b": "2"}, trailing_separator=False) == "a\x011\x02b\x012"
    assert format_properties({"a": "", "": "b"}) == ""


def test_appending_a_property_adds_the_separator_when_it_is_missing():
    for text in ("a\x011", "a\x011\x02"):
        assert append_property(text, "b", "2") == "a\x011\x02b\x012\x02"
    assert append_property("", "b", "2") == "b\x012\x02"


@pytest.mark.parametrize("properties", [{"a\x01": "b"}, {"a\x02": "b"}, {"a": "\x02"}])
def test_a_property_with_a_separator_is_refused(properties):
    with pytest.raises(LocalProtocolError):
        format_properties(properties)


property_texts = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(property_texts, property_texts, max_size=5), st.booleans())
def test_properties_round_trip(properties, trailing):
    assert parse_properties(format_properties(properties, trailing_separator=trailing)) == properties


# --- what a client sends --------------------------------------------------------------------------------------------


def test_a_created_message_has_java_s_properties():
    message = Message.create("T", b"x", tags="TagA", keys="k1 k2", user_properties={"a": "1"})
    assert message.properties == {"WAIT": "true", "KEYS": "k1 k2", "TAGS": "TagA", "a": "1"}
    assert message.keys == "k1 k2"
    assert message.with_property("UNIQ_KEY", "AB").uniq_key == "AB"
    assert message.uniq_key is None


def test_queues_order_by_topic_broker_and_id():
    queues = [
        MessageQueue("b", "a", 0),
        MessageQueue("a", "b", 10),
        MessageQueue("a", "b", 2),
        MessageQueue("a", "a", 3),
    ]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]


# --- ids ------------------------------------------------------------------------------------------------------------


def test_an_offset_id_names_store_host_and_commit_log_offset():
    for host in (Address("10.0.0.1", 10911), Address("::1", 10911)):
        assert parse_offset_msg_id(offset_msg_id(host, 1024)) == (host, 1024)


@pytest.mark.parametrize("text", ["", "0A", "zz" * 16, " " * 32, "0A " * 10 + "0A"])
def test_a_broken_offset_id_is_refused(text):
    with pytest.raises(RemoteProtocolError):
        parse_offset_msg_id(text)


def test_a_uniq_id_is_laid_out_as_java_does():
    # 2023-11-14T22:13:20Z is 1,203,200,000 ms into its month
    text = uniq_id(host="127.0.0.1", pid=0x1234, loader_hash=0xA1B2C3D4, now_ms=1_700_000_000_000, counter=0x1_0007)
    assert text == "7F000001" + "1234" + "A1B2C3D4" + f"{1_203_200_000:08X}" + "0007"
    assert len(uniq_id(host="::1", pid=1, loader_hash=2, now_ms=0, counter=0)) == 56


def test_uniq_ids_repeat_with_the_seed_and_are_distinct_within_a_millisecond():
    first, again, other = (UniqIdGenerator("10.0.0.1", random.Random(seed)) for seed in (1, 1, 2))
    ids = [first.next_id(1_700_000_000_000) for _ in range(65536)]
    assert len(set(ids)) == 65536
    assert ids[0] == again.next_id(1_700_000_000_000) != other.next_id(1_700_000_000_000)


# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_is_laid_out_as_java_does():
    golden = bytes.fromhex("0000001e 00000000 00000000 00000007 00000002 6869 0006 610131 620132").replace(
        b"a\x011b\x012", b"a\x011\x02b\x01"
    )
    assert encode_item(BatchItem(7, b"hi", b"a\x011\x02b\x01")) == golden
    assert decode_batch(golden * 2) == [BatchItem(7, b"hi", b"a\x011\x02b\x01")] * 2


def test_every_truncation_of_a_batch_is_refused():
    data = encode_item(BatchItem(0, b"body", b"TAGS\x01A")) + encode_item(BatchItem(0, b"", b""))
    whole = decode_batch(data)
    assert [item.body for item in whole] == [b"body", b""]
    first = len(encode_item(whole[0]))
    for size in set(range(1, len(data))) - {first}:
        with pytest.raises(RemoteProtocolError):
            decode_batch(data[:size])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(BatchItem, int32, st.binary(max_size=100), st.binary(max_size=100)), max_size=5))
def test_batches_round_trip(items):
    assert decode_batch(b"".join(map(encode_item, items))) == items


# --- compression ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(CompressionType))
@pytest.mark.parametrize("body", [b"", b"x", b"hello" * 2000, bytes(range(256)) * 40])
def test_a_compressed_body_reads_back(kind, body):
    flags = compression.compressed_flags(kind)
    assert stored(body=compression.compress(body, kind), sys_flag=flags).inflated_body == body


def test_old_clients_zlib_has_no_type_bits():
    assert compression.compressed_flags() == 0x301
    assert stored(body=compression.compress(b"hello"), sys_flag=1).inflated_body == b"hello"
    assert stored(body=b"hello", sys_flag=0x300).inflated_body == b"hello"


def test_a_zstd_frame_without_a_declared_size_reads_back():
    import zstandard

    writer = zstandard.ZstdCompressor().compressobj()
    frame = writer.compress(b"hello" * 100) + writer.flush()
    assert zstandard.frame_content_size(frame) == -1
    assert compression.decompress(frame, 0x201) == b"hello" * 100


@pytest.mark.parametrize("kind", list(CompressionType))
def test_every_truncation_of_a_compressed_body_is_refused(kind):
    body = compression.compress(b"hello world " * 30, kind)
    for size in range(len(body)):
        with pytest.raises(RemoteProtocolError):
            compression.decompress(body[:size], compression.compressed_flags(kind))


@pytest.mark.parametrize("kind", list(CompressionType))
def test_a_body_that_inflates_past_the_limit_is_refused(kind):
    body = compression.compress(bytes(5_000_000), kind)
    assert len(body) < 100_000
    with pytest.raises(RemoteProtocolError, match="inflates to more than 1000000 B"):
        compression.decompress(body, compression.compressed_flags(kind), 1_000_000)


@pytest.mark.parametrize("sys_flag", [0x001, 0x101, 0x201, 0x301, 0x401, 0x701])
def test_noise_is_no_compressed_body(sys_flag):
    with pytest.raises(RemoteProtocolError):
        compression.decompress(b"not compressed at all", sys_flag)


# --- what a broker uses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1"])
def test_a_client_s_ids_are_those_of_its_numbers_whatever_the_time(host: str) -> None:
    numbers, ids = random.Random(5), UniqIdGenerator(host, random.Random(5), counter=65_534)
    pid, loader_hash = numbers.getrandbits(16), numbers.getrandbits(32)
    for counter, now_ms in enumerate((0, 1_700_000_000_000, 1_701_388_799_999, 1_701_388_800_000), start=65_534):
        wanted = uniq_id(host=host, pid=pid, loader_hash=loader_hash, now_ms=now_ms, counter=counter)
        assert ids.next_id(now_ms) == wanted
