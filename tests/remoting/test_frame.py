"""Frames: golden bytes both ways, every prefix byte by byte, round trips, and every kind of malformed frame."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesrv.remoting.codes import V5_3_2, V5_3_3, LanguageCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import LocalProtocolError, RemoteProtocolError
from nemesrv.remoting.frame import FRAME_MAX, NO_OPAQUE, FrameReader, decode_frame, encode_frame
from nemesrv.remoting.node.profile import Profile

EMPTY_ROUTE = b'{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}'
NO_ROUTE = (
    f"No topic route info in name server for the topic: TopicTest\nSee {Profile.V5_X.faq_url} for further details."
)

# From the reference's worked examples, which were computed from upstream's layout (remoting-wire.md section 8).
GOLDEN = {
    "A: route of TopicTest, JSON": (
        RemotingCommand(105, LanguageCode.PYTHON, V5_3_2, 7, ext_fields={"topic": "TopicTest"}),
        "00000089 00 000085"
        "7b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a22546f70696354657374227d2c22666c6167223a30"
        "2c226c616e6775616765223a22505954484f4e222c226f7061717565223a372c2273657269616c697a655479706543757272656e7452"
        "5043223a224a534f4e222c2276657273696f6e223a3437377d",
    ),
    "B: the same, ROCKETMQ": (
        RemotingCommand(
            105,
            LanguageCode.PYTHON,
            V5_3_2,
            7,
            ext_fields={"topic": "TopicTest"},
            serialize_type=SerializeType.ROCKETMQ,
        ),
        "0000002d 01 000029"
        "0069 03 01dd 00000007 00000000 00000000 00000014 0005 746f706963 00000009 546f70696354657374",
    ),
    "C: its empty route, ROCKETMQ": (
        RemotingCommand(
            0, LanguageCode.JAVA, V5_3_3, 7, flag=1, body=EMPTY_ROUTE, serialize_type=SerializeType.ROCKETMQ
        ),
        "00000052 01 000015"
        "0000 00 01df 00000007 00000001 00000000 00000000"
        "7b2262726f6b65724461746173223a5b5d2c2266696c7465725365727665725461626c65223a7b7d2c2271756575654461746173223a"
        "5b5d7d",
    ),
    "D: no route, JSON": (
        RemotingCommand(17, LanguageCode.JAVA, V5_3_3, 7, flag=1, remark=NO_ROUTE),
        "000000f9 00 0000f5"
        + (
            b'{"code":17,"flag":1,"language":"JAVA","opaque":7,"remark":"No topic route info in name server for the '
            b'topic: TopicTest\\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.",'
            b'"serializeTypeCurrentRPC":"JSON","version":479}'
        ).hex(),
    ),
}
CASES = pytest.mark.parametrize(("command", "golden"), GOLDEN.values(), ids=GOLDEN.keys())


@CASES
def test_a_command_is_written_as_its_golden_bytes(command: RemotingCommand, golden: str) -> None:
    assert encode_frame(command).hex() == golden.replace(" ", "")


@CASES
def test_golden_bytes_are_read_as_their_command(command: RemotingCommand, golden: str) -> None:
    assert decode_frame(bytes.fromhex(golden)) == command
    assert decode_frame(memoryview(bytes.fromhex(golden))) == command


@CASES
def test_every_shorter_prefix_of_a_frame_is_refused_as_a_frame(command: RemotingCommand, golden: str) -> None:
    frame = bytes.fromhex(golden)
    for length in range(len(frame)):
        with pytest.raises(RemoteProtocolError):
            decode_frame(frame[:length])


@CASES
def test_a_header_cut_anywhere_is_refused(command: RemotingCommand, golden: str) -> None:
    frame = bytes.fromhex(golden)
    header_end = 8 + int.from_bytes(frame[5:8], "big")
    for end in range(8, header_end):
        cut = struct.pack(">II", end - 4, frame[4] << 24 | end - 8) + frame[8:end]
        with pytest.raises(RemoteProtocolError):
            decode_frame(cut)


def test_frames_come_out_however_the_stream_is_cut() -> None:
    frames = [bytes.fromhex(golden) for _, golden in GOLDEN.values()]
    stream = b"".join(frames)
    for size in range(1, len(stream) + 1):
        reader = FrameReader()
        found = [frame for at in range(0, len(stream), size) for frame in reader.feed(stream[at : at + size])]
        assert found == frames


texts = st.text(st.characters(codec="utf-8"), max_size=20)
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int16s = st.integers(-(1 << 15), (1 << 15) - 1)
bodies = st.binary(max_size=50)
json_commands = st.builds(
    RemotingCommand,
    code=int32s,
    language=st.sampled_from(LanguageCode),
    version=int32s,
    opaque=int32s,
    flag=int32s,
    remark=st.none() | texts,
    ext_fields=st.none() | st.dictionaries(texts, texts),
    body=bodies,
)
binary_commands = st.builds(
    RemotingCommand,
    code=int16s,
    language=st.sampled_from(LanguageCode),
    version=int16s,
    opaque=int32s,
    flag=int32s,
    remark=st.none() | texts.filter(bool),
    ext_fields=st.none() | st.dictionaries(texts, texts, min_size=1),
    body=bodies,
    serialize_type=st.just(SerializeType.ROCKETMQ),
)


@given(json_commands | binary_commands)
def test_what_is_written_is_read_back_equal(command: RemotingCommand) -> None:
    assert decode_frame(encode_frame(command)) == command


# --- JSON headers that are not ours -----------------------------------------------------------------------------------


def json_frame(header: str | bytes) -> bytes:
    raw = header.encode() if isinstance(header, str) else header
    return struct.pack(">II", 4 + len(raw), len(raw)) + raw


def test_a_minimal_request_is_java_s() -> None:
    assert decode_frame(json_frame('{"code":105,"opaque":3,"extFields":{"topic":"T"}}')) == RemotingCommand(
        105, LanguageCode.JAVA, 0, 3, ext_fields={"topic": "T"}
    )


def test_numbers_may_be_strings_and_unknown_keys_are_ignored() -> None:
    header = '{"code":"105","opaque":"3","flag":"1","version":"409","mood":{"deep":[1]},"serializeTypeCurrentRPC":1}'
    assert decode_frame(json_frame(header)) == RemotingCommand(105, LanguageCode.JAVA, 409, 3, flag=1)


@pytest.mark.parametrize(
    ("language", "read"),
    [('"GO"', LanguageCode.GO), ("9", LanguageCode.GO), ('"COBOL"', None), ("99", None), ("null", None), ("[]", None)],
)
def test_a_language_is_a_name_or_a_number_and_an_unknown_one_is_none(language: str, read: LanguageCode | None) -> None:
    assert decode_frame(json_frame(f'{{"code":1,"language":{language}}}')).language is read


def test_a_missing_opaque_is_one_that_no_call_has() -> None:
    assert decode_frame(json_frame('{"code":0,"flag":1}')).opaque == NO_OPAQUE


def test_values_of_ext_fields_become_text_and_nulls_vanish() -> None:
    header = '{"code":1,"extFields":{"b":true,"f":false,"i":12,"n":null,"o":{"y":1,"x":[2]},"s":"t"}}'
    assert decode_frame(json_frame(header)).ext_fields == {
        "b": "true",
        "f": "false",
        "i": "12",
        "o": '{"x":[2],"y":1}',
        "s": "t",
    }


def test_a_header_in_fastjson_s_dialect_is_read() -> None:
    assert decode_frame(json_frame("{code:105,'opaque':3,extFields:{'topic':\"T\",},}")) == RemotingCommand(
        105, LanguageCode.JAVA, 0, 3, ext_fields={"topic": "T"}
    )


def test_bad_utf8_is_replaced_as_java_does() -> None:
    assert decode_frame(json_frame(b'{"code":1,"remark":"a\xff"}')).remark == "a\ufffd"


def test_a_response_header_without_values_is_an_empty_object() -> None:
    assert b'"extFields":{}' in encode_frame(RemotingCommand.response(header={}))
    assert b"extFields" not in encode_frame(RemotingCommand.response())


def test_a_command_without_language_is_written_in_json_only() -> None:
    command = RemotingCommand(1, language=None)
    assert b"language" not in encode_frame(command)
    command.serialize_type = SerializeType.ROCKETMQ
    with pytest.raises(LocalProtocolError):
        encode_frame(command)


# --- malformed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param("00000000", id="total 0"),
        pytest.param("00000003", id="total less than the header word"),
        pytest.param("ffffffff", id="negative total"),
        pytest.param("00fffffd", id="one byte above the limit"),
        pytest.param(b"GET / HTTP/1.1\r\n".hex(), id="an HTTP request"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01".hex(), id="a TLS hello"),
        pytest.param("00000010 02000004", id="serialize type 2"),
        pytest.param("00000010 ff000004", id="serialize type 255"),
        pytest.param("00000010 0000000d", id="header longer than its frame"),
    ],
)
def test_an_impossible_start_is_refused_without_waiting_for_its_bytes(prefix: str) -> None:
    with pytest.raises(RemoteProtocolError):
        FrameReader().feed(bytes.fromhex(prefix))


def test_an_announced_frame_takes_no_memory_until_its_bytes_come() -> None:
    reader = FrameReader()
    reader.feed((FRAME_MAX - 4).to_bytes(4, "big") + bytes(4))
    assert len(reader._buffer) == 8


def test_frames_before_a_malformed_one_are_returned_and_then_the_reader_stays_broken() -> None:
    good = bytes.fromhex(GOLDEN["B: the same, ROCKETMQ"][1])
    reader = FrameReader()
    assert reader.feed(good + good + bytes(4)) == [good, good]
    assert reader.error is not None
    assert not reader.is_one_frame(good)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError):
            reader.feed(good)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{",
        "null",
        "[]",
        "105",
        '"105"',
        "nonsense",
        '{"code":"many"}',
        '{"code":[1]}',
        '{"code":4294967296}',
        '{"opaque":1e400}',
        '{"code":1,"extFields":[]}',
        '{"code":1,"extFields":"topic"}',
        '{"a":' * 5000 + "1" + "}" * 5000,
        "{a:" * 5000 + "1" + "}" * 5000,
        "{code:1," + "x" * 300_000 + ":1}",
        '{"code":1,"extFields":{"x":' + "[" * 900 + "]" * 900 + "}}",
    ],
    ids=lambda header: header[:30],
)
def test_a_json_header_that_makes_no_sense_is_refused(header: str) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_frame(json_frame(header))


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param("00000005 6162", id="remark longer than the header"),
        pytest.param("ffffffff 00000000", id="negative remark length"),
        pytest.param("00000000", id="no map length"),
        pytest.param("00000000 00000009 0001", id="map longer than the header"),
        pytest.param("00000000 ffffffff", id="huge map length"),
        pytest.param("00000000 00000004 0009 6161", id="key longer than the map"),
        pytest.param("00000000 00000003 ffff 61", id="negative key length"),
        pytest.param("00000000 00000007 0001 61 000000", id="value length cut"),
        pytest.param("00000000 00000008 0001 61 0000ffff ff", id="value longer than the map"),
        pytest.param("00000000 00000008 0001 61 ffffffff ff", id="negative value length"),
    ],
)
def test_a_binary_header_whose_lengths_do_not_add_up_is_refused(tail: str) -> None:
    header = bytes.fromhex("0069 03 01dd 00000007 00000000" + tail)
    with pytest.raises(RemoteProtocolError):
        decode_frame(struct.pack(">II", 4 + len(header), 1 << 24 | len(header)) + header)


def test_an_unknown_language_byte_is_none() -> None:
    frame = bytearray(bytes.fromhex(GOLDEN["B: the same, ROCKETMQ"][1]))
    frame[10] = 200
    assert decode_frame(bytes(frame)).language is None


@pytest.mark.parametrize(
    "command",
    [
        RemotingCommand(200_050, serialize_type=SerializeType.ROCKETMQ),
        RemotingCommand(1 << 31),
        RemotingCommand(1, opaque=1 << 31),
        RemotingCommand(1, remark="\ud800"),
        RemotingCommand(1, remark="\ud800", serialize_type=SerializeType.ROCKETMQ),
        RemotingCommand(1, ext_fields={"k" * 40_000: ""}, serialize_type=SerializeType.ROCKETMQ),
        RemotingCommand(1, body=bytes(FRAME_MAX)),
    ],
    ids=lambda command: repr(command)[:40],
)
def test_what_the_protocol_cannot_express_is_not_sent(command: RemotingCommand) -> None:
    with pytest.raises(LocalProtocolError):
        encode_frame(command)


def test_the_longest_frame_that_may_be_sent_may_be_read() -> None:
    room = FRAME_MAX - len(encode_frame(RemotingCommand(1)))
    frame = encode_frame(RemotingCommand(1, body=bytes(room)))
    assert len(frame) == FRAME_MAX
    assert FrameReader().feed(frame) == [frame]
    with pytest.raises(LocalProtocolError):
        encode_frame(RemotingCommand(1, body=bytes(room + 1)))


def test_a_header_number_of_a_thousand_levels_is_refused_in_few_words() -> None:
    header = b'{"code":%s%s}' % (b"[" * 1000, b"]" * 1000)
    with pytest.raises(RemoteProtocolError, match="not a 32-bit number") as caught:
        decode_frame(json_frame(header))
    assert len(str(caught.value)) < 200


def test_names_and_values_of_ext_fields_are_texts_whatever_they_were() -> None:
    header = b'{"code":1,"extFields":{1:"a",{"b":2}:"c","d":[3],"e":null}}'
    command = decode_frame(json_frame(header))
    assert command.ext_fields == {"1": "a", '{"b":2}': "c", "d": "[3]"}


def test_a_header_over_64_kib_may_have_no_list_among_its_fields() -> None:
    with pytest.raises(RemoteProtocolError, match="an object is in the extFields"):
        decode_frame(json_frame('{"extFields":{"a":[' + "1," * 40_000 + "1]}}"))
