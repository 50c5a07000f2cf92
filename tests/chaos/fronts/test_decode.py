"""Bytes of one connection, whole and split anywhere, become the same observations. No socket."""

import random

import pytest

from nemesrv.chaos.fronts.answers import answer_to, readdressed, with_body
from nemesrv.chaos.fronts.decode import WAITING_MAX, Conversation, Stream, protocol_of
from nemesrv.chaos.fronts.observed import Answered, Asked, Protocol, Pushed
from nemesrv.remoting.codes import LanguageCode
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.frame import decode_frame
from tests.chaos.fronts.world import request, response

FRAMES = [
    request(105, 1, topic="T"),
    request(34, 2, b"{}", binary=True),
    request(310, 3, b"x" * 3000, b="T"),
    response(7, 17, b"y" * 9),
    request(11, 4, oneway=True),
]


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_gives_the_same_frames_however_it_is_split(seed: int) -> None:
    chance, whole, stream = random.Random(seed), b"".join(FRAMES * 3), Stream()
    frames: list[bytes] = []
    at = 0
    while at < len(whole):
        size = chance.choice((1, 2, 5, 30, 700, 4000))
        frames += stream.feed(whole[at : at + size])
        at += size
        assert stream.unfinished == min(at, len(whole)) - sum(map(len, frames))
    assert frames == FRAMES * 3


@pytest.mark.parametrize("split", range(0, 12))
@pytest.mark.parametrize("before", [0, 1, 2])
def test_what_is_no_frame_is_told_with_every_byte_that_came_behind_the_last_frame(before: int, split: int) -> None:
    garbage = b"GET / HTTP/1.1\r\n"
    stream, good = Stream(), b"".join(FRAMES[:before])
    frames = [*stream.feed(good + garbage[:split]), *stream.feed(garbage[split:])]
    assert frames == FRAMES[:before]
    assert stream.is_broken
    first = garbage[:split] if split >= 4 else garbage
    assert stream.rest == stream.began == first
    assert not stream.feed(b"".join(FRAMES))


def test_a_broken_prefix_behind_a_long_unfinished_frame_keeps_its_own_bytes_only() -> None:
    stream, frame = Stream(), FRAMES[2]
    assert not stream.feed(frame[:1000])
    assert stream.feed(frame[1000:] + b"\xff\xff\xff\xff\x00") == [frame]
    assert stream.rest == b"\xff\xff\xff\xff\x00"


def test_a_request_is_decoded_from_both_header_types_alike() -> None:
    asked = [Conversation("ns-0", 5).of_client(request(105, 9, topic="T", binary=binary), 1.5) for binary in (0, 1)]
    for one, binary in zip(asked, (False, True), strict=True):
        assert isinstance(one, Asked)
        assert (one.at_ms, one.front, one.connection, one.binary) == (1.5, "ns-0", 5, binary)
        assert (one.opaque, one.code, one.fields, one.language, one.version) == (9, 105, {"topic": "T"}, "PYTHON", 477)


def test_only_an_answer_to_a_look_up_keeps_its_body_and_a_client_s_answer_is_no_request() -> None:
    conversation = Conversation("ns-0", 1)
    conversation.of_client(request(105, 1, topic="T"), 0)
    conversation.of_client(request(11, 2), 0)
    assert conversation.asked_for(1) == (105, "T")
    bodies = [conversation.of_server(response(opaque, body=b"route"), 1) for opaque in (1, 2, 3)]
    assert [one.body for one in bodies if isinstance(one, Answered)] == [b"route", b"", b""]
    assert conversation.asked_for(1) == (-1, "")
    assert conversation.of_client(response(77), 2) is None
    assert isinstance(conversation.of_server(request(40, 8, oneway=True), 2), Pushed)


def test_a_client_that_nobody_answers_is_not_remembered_for_ever() -> None:
    conversation = Conversation("ns-0", 1)
    frame = request(105, 0)
    for opaque in range(WAITING_MAX + 10):
        conversation.of_client(frame.replace(b'"opaque":0', b'"opaque":%d' % (opaque % 10)), 0)
    assert len(conversation._waiting) <= WAITING_MAX


@pytest.mark.parametrize("frame", [b"\0\0\0\x0c\0\0\0\x08{notjson", b"\0\0\0\x0c\x01\0\0\x08notbinary"[:16]])
def test_a_header_that_cannot_be_read_is_an_error(frame: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        Conversation("ns-0", 1).of_client(frame, 0)


@pytest.mark.parametrize(
    ("began", "protocol"),
    [
        (b"\x16\x03\x01\x02", Protocol.TLS),
        (b"PRI * HTTP/2.0", Protocol.GRPC),
        (b"POST /x", Protocol.HTTP),
        (b"\x16\x05\x00\x00", Protocol.UNKNOWN),
        (b"", Protocol.UNKNOWN),
    ],
)
def test_protocols_are_known_by_their_first_bytes(began: bytes, protocol: Protocol) -> None:
    assert protocol_of(began) is protocol


# --- what a front answers and changes


@pytest.mark.parametrize("binary", [False, True])
def test_an_answer_of_the_front_has_the_request_s_opaque_and_header_type(binary: bool) -> None:
    answer = decode_frame(answer_to(request(105, 41, topic="T", binary=binary), 17, "T"))
    assert (answer.code, answer.opaque, answer.is_response, answer.serialize_type) == (17, 41, True, binary)
    assert answer.language is LanguageCode.JAVA
    assert "T" in (answer.remark or "")


def test_addresses_are_changed_where_they_stand_whole_and_at_once() -> None:
    body = b'{"a":"10.0.0.1:1091","b":"10.0.0.1:10911","c":"10.0.0.2:1"}'
    told = {"10.0.0.1:1091": "10.0.0.2:1", "10.0.0.2:1": "10.0.0.1:1091"}
    assert readdressed(body, told) == b'{"a":"10.0.0.2:1","b":"10.0.0.1:10911","c":"10.0.0.1:1091"}'
    assert readdressed(body, {}) is body


@pytest.mark.parametrize("binary", [False, True])
def test_another_body_leaves_the_header_byte_for_byte(binary: bool) -> None:
    frame = response(3, body=b"old", binary=binary)
    changed = with_body(frame, b"longer than old")
    assert changed[4 : len(frame) - 3] == frame[4:-3]
    assert decode_frame(changed).body == b"longer than old"
