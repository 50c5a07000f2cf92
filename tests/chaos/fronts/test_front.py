"""What a front does to dials, connections and requests, by dialling it on the loopback."""

import asyncio
import random
import socket
from dataclasses import replace

import pytest

from nemesrv.chaos.fronts.behaviour import (
    BLACK_HOLE,
    CLOSES_EACH,
    CLOSES_ONCE,
    DROPS_SYNS,
    PASSES,
    REFUSES,
    RESETS_ONCE,
    SILENT,
    Behaviour,
    Connected,
    Dials,
)
from nemesrv.chaos.fronts.front import Front
from nemesrv.chaos.fronts.observed import Answered, Asked, Behaved, By, Closed, Foreign, How, Opened, Protocol, Pushed
from nemesrv.remoting.bodies.route import TopicRouteData
from tests.chaos.fronts.world import Peer, World, in_world, request, response

ROUTE = b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"a"},{"brokerAddrs":{0:"10.0.0.2:10911"},"brokerName":"b"}],"queueDatas":[{"brokerName":"a"},{"brokerName":"b"}]}'  # noqa: E501
LOOPS = ("uvloop", "asyncio")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("binary", [False, True])
@in_world
async def test_a_look_up_and_its_answer_are_passed_on_and_seen(world: World, binary: bool, loop: str) -> None:
    client, server = await world.pair()
    asked, answered = request(105, 7, topic="T", binary=binary), response(7, body=ROUTE, binary=binary)
    client.say(asked)
    assert await server.hear(len(asked)) == asked
    server.say(answered)
    assert await client.hear(len(answered)) == answered
    await world.until(lambda: world.of(Answered))
    [opened] = world.of(Opened)
    [seen] = world.of(Asked)
    [answer] = world.of(Answered)
    assert opened.peer == client.writer.get_extra_info("sockname")
    assert (seen.code, seen.opaque, seen.fields) == (105, 7, {"topic": "T"})
    assert (seen.binary, seen.size) == (binary, len(asked))
    assert (answer.opaque, answer.code, answer.body, answer.by) == (7, 0, ROUTE, By.SERVER)
    assert opened.connection == seen.connection == answer.connection
    assert opened.at_ms <= seen.at_ms <= answer.at_ms


@in_world
async def test_bodies_of_other_answers_and_requests_are_not_kept(world: World) -> None:
    client, server = await world.pair()
    client.say(request(11, 1, b"x" * 100) + request(34, 2, b"{}") + request(310, 3, b"hi"))
    server.say(response(1, body=b"y" * 100) + request(40, 9, oneway=True, consumerGroup="g"))
    await world.until(lambda: world.of(Pushed))
    assert [(one.code, one.body) for one in world.of(Asked)] == [(11, b""), (34, b"{}"), (310, b"hi")]
    assert [one.body for one in world.of(Answered)] == [b""]
    assert [(one.code, one.fields) for one in world.of(Pushed)] == [(40, {"consumerGroup": "g"})]


@pytest.mark.parametrize(
    ("by", "how"), [(By.CLIENT, How.FIN), (By.SERVER, How.FIN), (By.CLIENT, How.RST), (By.SERVER, How.RST)]
)
@in_world
async def test_who_ends_a_connection_and_how_is_passed_on_and_seen(world: World, by: By, how: How) -> None:
    client, server = await world.pair()
    client.say(request(105, 1))
    await server.command()
    one, other = (client, server) if by is By.CLIENT else (server, client)
    if how is How.RST:
        one.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01" + b"\0" * 7)
        one.writer.transport.abort()
    else:
        one.writer.close()
    assert await other.end() == how
    await world.until(lambda: world.of(Closed))
    assert [(one.by, one.how) for one in world.of(Closed)] == [(by, how)]
    other.writer.close()
    await world.until(lambda: not world.front._connections)
    assert len(world.of(Closed)) == 1


def _met_by_a_dial(address: tuple[str, int], within_s: float = 0.4) -> str:
    with socket.socket() as dialler:
        dialler.settimeout(within_s)
        try:
            dialler.connect(address)
            dialler.sendall(b"\0")
            return "closed" if not dialler.recv(1) else "answered"
        except ConnectionRefusedError:
            return "refused"
        except ConnectionResetError:
            return "reset"
        except TimeoutError:
            is_connected = dialler.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1
            return "accepted" if is_connected else "no answer to the SYN"


@pytest.mark.parametrize("loop", LOOPS)
@in_world
async def test_dials_meet_what_the_front_is_to_do_again_and_again_on_one_port(world: World, loop: str) -> None:
    for dials, met in (
        (Dials.REFUSED, "refused"),
        (Dials.ACCEPTED, "accepted"),
        (Dials.DROPPED, "no answer to the SYN"),
        (Dials.REFUSED, "refused"),
        (Dials.DROPPED, "no answer to the SYN"),
        (Dials.DROPPED, "no answer to the SYN"),
        (Dials.ACCEPTED, "accepted"),
    ):
        await world.front.behave(Behaviour(dials=dials))
        assert await asyncio.to_thread(_met_by_a_dial, world.address) == met, dials
        assert world.front.address == world.address
    await world.front.behave(CLOSES_EACH)
    client = await world.dial()
    assert await client.end() == "fin"
    assert [(one.by, one.how) for one in world.of(Closed)][-1:] == [(By.FRONT, How.FIN)]
    assert len(world.of(Behaved)) == 8


@in_world
async def test_a_broker_s_front_does_at_the_vip_port_what_it_does_at_its_own(world: World) -> None:
    front = Front("broker-a", world.front.upstream, world.seen.append, world.clock, vip=True)
    own = await front.open()
    assert front.doors == (own, own.vip_channel)
    for behaviour, meets in ((PASSES, "accepted"), (REFUSES, "refused"), (PASSES, "accepted")):
        await front.behave(behaviour)
        assert [await asyncio.to_thread(_met_by_a_dial, door) for door in front.doors] == [meets] * 2
    await front.close()
    assert {one.front for one in world.of(Opened)} == {"broker-a"}


@in_world
async def test_a_dial_whose_syn_is_dropped_is_let_in_at_its_next_one(world: World) -> None:
    await world.front.behave(DROPS_SYNS)
    dialling = asyncio.create_task(world.dial())
    await asyncio.wait((dialling,), timeout=0.3)
    assert not dialling.done()
    assert not world.of(Opened)
    await world.front.behave(PASSES)
    client = await dialling
    server = await world.server()
    client.say(request(105, 1))
    assert (await server.command()).code == 105
    assert len(world.of(Opened)) == 1


@pytest.mark.parametrize(
    ("behaviour", "how", "dials_meet"),
    [
        (CLOSES_ONCE, "fin", "accepted"),
        (RESETS_ONCE, "rst", "accepted"),
        (REFUSES, "fin", "refused"),
        (DROPS_SYNS, "fin", "no answer to the SYN"),
        (Behaviour(dials=Dials.REFUSED, connected=Connected.RESET), "rst", "refused"),
    ],
    ids=str,
)
@in_world
async def test_connections_that_are_there_end_when_the_behaviour_changes(
    world: World, behaviour: Behaviour, how: str, dials_meet: str
) -> None:
    client, server = await world.pair()
    client.say(request(105, 1))
    await server.command()
    await world.front.behave(behaviour)
    assert [(one.by, one.how) for one in world.of(Closed)] == [(By.FRONT, How(how))]
    assert await client.end() == how
    assert await asyncio.to_thread(_met_by_a_dial, world.address) == dials_meet


@pytest.mark.parametrize("behaviour", [SILENT, BLACK_HOLE], ids=str)
@in_world
async def test_a_silent_front_takes_requests_and_answers_none(world: World, behaviour: Behaviour) -> None:
    client, server = await world.pair()
    client.say(request(105, 1))
    await server.command()
    await world.front.behave(behaviour)
    server.say(response(1))
    client.say(request(105, 2))
    await world.until(lambda: len(world.of(Asked)) == 2)
    await world.front.behave(PASSES)
    client.say(request(105, 3))
    assert (await server.command()).opaque == 3
    server.say(response(3))
    assert (await client.command()).opaque == 3
    assert [one.opaque for one in world.of(Answered)] == [3]


@in_world
async def test_a_frame_that_has_begun_to_pass_passes_whole_and_one_that_was_held_back_too(world: World) -> None:
    client, server = await world.pair()
    first, second, third = request(105, 1), request(105, 2), request(105, 3)
    client.say(first[:20])
    assert await server.hear(20) == first[:20]
    await world.front.behave(SILENT)
    client.say(first[20:] + second + third[:30])
    assert await server.hear(len(first) - 20) == first[20:]
    await world.until(lambda: len(world.of(Asked)) == 2)
    await world.front.behave(PASSES)
    client.say(third[30:])
    assert (await server.command()).opaque == 3


@pytest.mark.parametrize("binary", [False, True])
@in_world
async def test_a_front_answers_codes_with_the_requests_opaque_and_header_type(world: World, binary: bool) -> None:
    client, server = await world.pair()
    await world.front.behave(Behaviour(codes={105: 17}))
    client.say(request(105, 41, topic="T", binary=binary) + request(34, 42, binary=binary))
    answer = await client.command()
    assert (answer.code, answer.opaque, answer.is_response) == (17, 41, True)
    assert answer.serialize_type == binary
    assert (await server.command()).code == 34
    [answered] = world.of(Answered)
    assert (answered.opaque, answered.code, answered.by) == (41, 17, By.FRONT)


@in_world
async def test_an_answer_of_the_front_s_own_waits_until_the_server_s_frame_is_whole(world: World) -> None:
    client, server = await world.pair()
    slow = response(1, body=b"z" * 1000)
    client.say(request(11, 1))
    await server.command()
    server.say(slow[:100])
    assert await client.hear(100) == slow[:100]
    await world.front.behave(Behaviour(codes={105: 1}))
    client.say(request(105, 2))
    await world.until(lambda: len(world.of(Asked)) == 2)
    server.say(slow[100:])
    assert await client.hear(len(slow) - 100) == slow[100:]
    assert ((await client.command()).opaque, world.of(Answered)[1].by) == (2, By.FRONT)


@in_world
async def test_answers_wait_for_their_delay_in_order_and_a_close_waits_behind_them(world: World) -> None:
    client, server = await world.pair()
    await world.front.behave(Behaviour(delay_ms=80))
    for opaque in range(20):
        server.say(response(opaque))
    await world.front.behave(Behaviour(delay_ms=80, codes={105: 1}))
    server.writer.close()
    assert [(await client.command()).opaque for _ in range(20)] == list(range(20))
    assert await client.end() == "fin"
    assert min(one.at_ms for one in world.of(Answered)) >= 80


@pytest.mark.parametrize("quoted", [False, True])
@in_world
async def test_a_route_is_told_without_a_broker_in_its_own_dialect(world: World, quoted: bool) -> None:
    client, server = await world.pair()
    await world.front.behave(Behaviour(without=frozenset({"a"})))
    told = ROUTE.replace(b"{0:", b'{"0":') if quoted else ROUTE
    client.say(request(105, 1, topic="T"))
    await server.command()
    server.say(response(1, body=told))
    body = (await client.command()).body
    whole = TopicRouteData.decode(told)
    left = replace(whole, broker_datas=whole.broker_datas[1:], queue_datas=whole.queue_datas[1:])
    assert body == left.encode(standard_json=quoted)
    assert (b'{"0":"10.0.0.2:10911"}' if quoted else b'{0:"10.0.0.2:10911"}') in body
    await world.front.behave(Behaviour(without=frozenset({"a", "b"})))
    client.say(request(105, 2, topic="T"))
    await server.command()
    server.say(response(2, body=told))
    answer = await client.command()
    assert (answer.code, answer.opaque, answer.body) == (17, 2, b"")


@in_world
async def test_other_addresses_are_given_out_in_routes_and_nothing_else_is_changed(world: World) -> None:
    world.front.addresses = {"10.0.0.1:10911": "127.0.0.1:40001"}
    client, server = await world.pair()
    client.say(request(105, 1, topic="T") + request(11, 2))
    await server.command()
    server.say(response(1, body=ROUTE) + response(2, body=b'"10.0.0.1:10911"'))
    assert (await client.command()).body == ROUTE.replace(b"10.0.0.1:10911", b"127.0.0.1:40001")
    assert (await client.command()).body == b'"10.0.0.1:10911"'


@pytest.mark.parametrize(
    ("began", "protocol"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", Protocol.TLS),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Protocol.GRPC),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Protocol.HTTP),
        (b"\xff\xfe\xfd\xfc garbage", Protocol.UNKNOWN),
        (b"\0\0\0\x0c\0\0\0\x08{notjson", Protocol.UNKNOWN),
    ],
)
@pytest.mark.parametrize("behaviour", [PASSES, Behaviour(codes={105: 1}, delay_ms=1)], ids=str)
@in_world
async def test_another_protocol_is_named_and_passed_on(
    world: World, began: bytes, protocol: Protocol, behaviour: Behaviour
) -> None:
    await world.front.behave(behaviour)
    client, server = await world.pair()
    client.say(began)
    assert await server.hear(len(began)) == began
    server.say(b"\x15\x03\x03\x00\x02\x02\x28")
    assert await client.hear(7) == b"\x15\x03\x03\x00\x02\x02\x28"
    client.say(b"and more")
    assert await server.hear(8) == b"and more"
    [foreign] = world.of(Foreign)
    assert foreign.protocol is protocol
    assert foreign.began
    assert began.startswith(foreign.began)


@pytest.mark.parametrize("behaviour", [PASSES, Behaviour(codes={999: 1}, delay_ms=0.5)], ids=str)
@in_world
async def test_frames_are_unaltered_however_they_are_split(world: World, behaviour: Behaviour) -> None:
    chance = random.Random(12)

    def frames(makes: object) -> bytes:
        return b"".join(
            makes(opaque, chance.randbytes(chance.choice((0, 1, 50, 5000, 200_000))), chance.random() < 0.5)  # type: ignore[operator]
            for opaque in range(120)
        )

    up = frames(lambda opaque, body, binary: request(chance.choice((105, 11, 34, 310)), opaque, body, binary=binary))
    down = frames(lambda opaque, body, binary: response(opaque, chance.choice((0, 17)), body, binary=binary))

    async def in_pieces(peer: Peer, data: bytes) -> None:
        at = 0
        while at < len(data):
            size = chance.choice((1, 3, 7, 100, 4000, 150_000))
            peer.say(data[at : at + size])
            await peer.writer.drain()
            at += size
            if chance.random() < 0.3:
                await asyncio.sleep(0)

    await world.front.behave(behaviour)
    client, server = await world.pair()
    heard = await asyncio.gather(
        server.hear(len(up)), client.hear(len(down)), in_pieces(client, up), in_pieces(server, down)
    )
    assert heard[0] == up
    assert heard[1] == down
    await world.until(lambda: len(world.of(Answered)) == 120)
    assert len(world.of(Asked)) == 120
    assert not world.of(Foreign)


@in_world
async def test_a_server_that_refuses_closes_the_client_s_connection(world: World) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        world.front.upstream = type(world.address)(*nobody.getsockname())
        client = await world.dial()
        assert await client.end() == "fin"
    assert [(one.by, one.how) for one in world.of(Closed)] == [(By.SERVER, How.FIN)]


@in_world
async def test_a_reader_that_is_slow_holds_the_other_side_up(world: World) -> None:
    client, server = await world.pair()
    server.reader._transport.pause_reading()  # type: ignore[attr-defined]
    sent = 0
    frame = request(310, 1, b"x" * 1_000_000)
    for _ in range(64):
        client.say(frame)
        sent += 1
        try:
            await asyncio.wait_for(client.writer.drain(), 0.3)
        except TimeoutError:
            break
    assert sent < 64, "64 MB were taken although nobody read"
    server.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert len(await server.hear(sent * len(frame))) == sent * len(frame)
