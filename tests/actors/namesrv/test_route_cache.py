"""What is answered without being parsed is exactly what the ordinary path would answer."""

import random

import pytest

from nemesrv.actors.namesrv.route_cache import MAX_FRAME, RouteCache
from nemesrv.remoting.bodies.route import TopicConfig
from nemesrv.remoting.codes import LanguageCode, RequestCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import World, topic, version

BODY = b'{"some":"route"}'


def request(opaque: int, kind: SerializeType = SerializeType.JSON, name: str = "T", **more: str) -> bytes:
    command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name, **more})
    command.opaque, command.serialize_type = opaque, kind
    return encode_frame(command)


def response(opaque: int, kind: SerializeType = SerializeType.JSON, body: bytes = BODY) -> bytes:
    command = RemotingCommand.response(body=body)
    command.opaque, command.serialize_type, command.language, command.version = opaque, kind, LanguageCode.JAVA, 409
    return encode_frame(command)


def raw(header: bytes, body: bytes = b"") -> bytes:
    total = 4 + len(header) + len(body)
    return total.to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


def learnt(frame: bytes, opaque: int) -> RouteCache:
    cache = RouteCache()
    cache.learn(frame, opaque, "T", response(opaque), BODY)
    return cache


@pytest.mark.parametrize("kind", list(SerializeType))
def test_a_frame_that_differs_in_its_opaque_alone_is_answered_with_its_own(kind: SerializeType) -> None:
    cache = RouteCache()
    cache.learn(request(12, kind), 12, "T", response(12, kind), BODY)
    for opaque in (12, 99, 10):
        assert cache.answer(request(opaque, kind)) == response(opaque, kind)
    assert cache.answer(request(12, kind, name="U")) is None
    assert cache.answer(request(12, kind, acceptStandardJsonOnly="true")) is None
    if kind is SerializeType.JSON:
        assert cache.answer(request(123)) is None  # another length: learnt on its own
    else:
        assert cache.answer(request(-5, kind)) == response(-5, kind)
        assert cache.answer(request(2**31 - 1, kind)) == response(2**31 - 1, kind)


def test_an_opaque_that_is_no_plain_number_is_left_to_the_ordinary_path() -> None:
    cache = learnt(request(12), 12)
    for text in (b"+1", b"-1", b"01", b"1.", b"1 ", b'"1', b"\xd9\xa1"):
        assert cache.answer(request(12).replace(b'"opaque":12', b'"opaque":' + text)) is None


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":105,"opaque":12}',  # the last field: no comma behind it
        b'{"opaque":12,"code":105,"opaque":12,"a":1}',  # twice
        b'{"opaque":12,"code":105,"opaque" :12,"a":1}',
        b'{"opaque":7,"code":105,"\\u006fpaque":12,"a":1}',  # in disguise
        b'{"opaque":"12","code":105}',  # a text
        b'{"opaque": 12,"code":105}',
        b'{"code":105,"a":1}',
    ],
)
def test_a_frame_whose_opaque_is_not_in_one_certain_place_is_not_learnt(header: bytes) -> None:
    cache = learnt(raw(header), 12)
    assert len(cache) == 0
    assert cache.answer(raw(header)) is None


def test_numbers_of_ten_digits_and_long_frames_are_not_learnt() -> None:
    assert len(learnt(request(1_234_567_890), 1_234_567_890)) == 0
    assert len(learnt(request(0), 0)) == 0
    assert len(learnt(request(5, name="x" * MAX_FRAME), 5)) == 0


def test_a_body_is_part_of_the_question() -> None:
    header = b'{"code":105,"opaque":12,"version":1}'
    cache = learnt(raw(header, b"body"), 12)
    assert cache.answer(raw(header, b"body")) == response(12)
    assert cache.answer(raw(header, b"ydob")) is None


def test_short_frames_are_no_trouble() -> None:
    cache = learnt(request(12), 12)
    for frame in (raw(b""), raw(b"{}"), b"\0\0\0\4\1\0\0\0", b"\0\0\0\5\1\0\0\1x"):
        assert cache.answer(frame) is None


def test_forgetting_a_topic_leaves_the_others() -> None:
    cache = RouteCache()
    for name in ("T", "U"):
        cache.learn(request(12, name=name), 12, name, response(12), BODY)
        cache.keep_body(name, True, BODY)
    cache.forget({"T", "never heard of"})
    assert cache.answer(request(12, name="T")) is None
    assert cache.answer(request(12, name="U")) == response(12)
    assert (cache.body("T", True), cache.body("U", True), cache.body("U", False)) == (None, BODY, None)
    cache.clear()
    assert (len(cache), cache.body("U", True)) == (0, None)


def test_the_cache_is_bounded_in_answers_and_in_bytes() -> None:
    cache = RouteCache(max_answers=3, max_body_bytes=2 * len(BODY))
    for number in range(10, 20):
        cache.learn(request(12, name=f"T{number}"), 12, f"T{number}", response(12), BODY)
        assert len(cache) <= 3
    assert cache.answer(request(12, name="T19")) == response(12)
    assert cache.answer(request(12, name="T10")) is None
    for name in ("A", "B", "C"):
        cache.keep_body(name, True, BODY)
    assert (cache.body("A", True), cache.body("C", True)) == (None, BODY)


async def test_cached_and_uncached_answers_are_the_same_bytes_whatever_happens_in_between(profile: Profile) -> None:
    """Random changes and questions; each answer is compared with what a fresh look at the table gives."""
    rng = random.Random(7)
    async with World(profile) as world:
        server, call = world.server, world.client()
        await call.register(topics=[topic("T"), topic("U")])
        (connection,) = server._server.connections.values()
        hits = 0
        for step in range(2, 300):
            match rng.randrange(12):
                case 0:
                    await call.register(
                        rng.choice(["broker-a", "broker-b"]),
                        topics=[topic("T", queues=rng.randrange(1, 9)), TopicConfig(topic_name="V")],
                        data_version=version(step),
                        header={"__ZONE_NAME": rng.choice(["z1", "z2"])},
                    )
                case 1:
                    await call(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
                case 2:
                    await call(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": rng.choice("TUV")})
                case _:
                    pass
            zone = {"__ZONE_MODE": "true", "__ZONE_NAME": "z1"} if rng.random() < 0.3 else {}
            frame = request(rng.randrange(1, 500), rng.choice(list(SerializeType)), rng.choice("TUVW"), **zone)
            hits += server.cache.answer(frame) is not None
            quick = server._fast_path(frame, connection)
            asked = decode_frame(frame)
            slow = server._handle(connection, asked)
            assert quick is not None
            assert slow is not None
            slow.opaque, slow.serialize_type = asked.opaque, asked.serialize_type
            slow.language, slow.version = LanguageCode.JAVA, profile.version
            assert quick == encode_frame(slow)
        assert hits > 20
