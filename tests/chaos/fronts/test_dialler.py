"""The fronts of one program: whom they dial for it, what it is told, and what the history hears."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial

from nemesrv.chaos.fronts.dialler import Dialler
from nemesrv.chaos.fronts.observed import Answered, Asked, Closed, Observation
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from tests.chaos.fronts.world import LIMIT_S, Peer, request, response
from tests.played import played

NS, BROKER = Address("127.0.0.1", 9876), Address("127.0.0.1", 10911)
"""What everybody is told; nobody listens there."""
NOBODY = Address("127.0.0.1", 9)
ROUTE = {"brokerDatas": [{"brokerAddrs": {"0": str(BROKER)}, "brokerName": "broker-a"}], "queueDatas": []}


class Stand:
    """One Java process's dialler, and a server that the test plays, at which the node's links arrive."""

    def __init__(self, vip: bool = False, nobody: bool = False) -> None:
        self.seen: list[Observation] = []
        self.asked = asyncio.Event()
        self.accepted: asyncio.Queue[Peer] = asyncio.Queue()
        self.network = TcpNetwork({})
        self.dialler = Dialler(
            RealClock.starting_now(),
            self.network.dialled_at,
            name_servers={"ns-0": NS, **({"127.0.0.1:9": NOBODY} if nobody else {})},
            brokers={"broker-a": BROKER},
            see=self._see,
            vip=("broker-a",) if vip else (),
            nobody=("127.0.0.1:9",) if nobody else (),
        )

    def _see(self, one: Observation) -> None:
        self.seen.append(one)
        if isinstance(one, Asked):
            self.asked.set()

    async def serve(self) -> Address:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.accepted.put_nowait(Peer(reader, writer))

        self._server = await asyncio.start_server(accept, "127.0.0.1", 0)
        return Address(*self._server.sockets[0].getsockname()[:2])

    async def dial(self, name: str) -> Peer:
        return Peer(*await asyncio.wait_for(asyncio.open_connection(*self.dialler.address(name)), LIMIT_S))

    async def server(self) -> Peer:
        return await asyncio.wait_for(self.accepted.get(), LIMIT_S)


def _on_stand(
    body: Callable[[Stand, Address], Coroutine[None, None, None]], vip: bool = False, nobody: bool = False
) -> None:
    async def whole() -> None:
        stand = Stand(vip, nobody)
        at = await stand.serve()
        await stand.dialler.open()
        try:
            await body(stand, at)
        finally:
            await stand.dialler.close()
            stand._server.close()

    asyncio.run(whole())


on_stand = played(_on_stand, worlds=2)


@on_stand
async def test_a_server_is_dialled_where_the_nodes_links_say_at_that_moment(stand: Stand, at: Address) -> None:
    assert await (await stand.dial("ns-0")).end() == "fin"  # no link yet
    stand.network.set_links({NS: at})
    client = await stand.dial("ns-0")
    await stand.server()
    client.writer.close()


@on_stand
async def test_the_java_process_is_told_its_fronts_and_the_history_the_list(stand: Stand, at: Address) -> None:
    stand.network.set_links({NS: at})
    client = await stand.dial("ns-0")
    server = await stand.server()
    client.say(request(105, 7, topic="t"))
    await server.command()
    server.say(response(7, 0, json.dumps(ROUTE).encode()))
    told = json.loads((await client.command()).body)
    assert told["brokerDatas"][0]["brokerAddrs"] == {"0": str(stand.dialler.address("broker-a"))}
    assert stand.dialler.everybodys == {str(stand.dialler.address("broker-a")): str(BROKER)}
    [asked] = [one for one in stand.seen if isinstance(one, Asked)]
    [answered] = [one for one in stand.seen if isinstance(one, Answered)]
    assert asked.fields == {"topic": "t"}
    assert json.loads(answered.body) == ROUTE


@on_stand
async def test_a_server_that_is_gone_refuses_until_it_is_there_again(stand: Stand, at: Address) -> None:
    stand.network.set_links({BROKER: at})
    client = await stand.dial("broker-a")
    await stand.server()
    await stand.dialler.faulted({"broker-a": "refused"})
    await client.end()
    assert any(isinstance(one, Closed) for one in stand.seen)
    try:
        await stand.dial("broker-a")
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("the front of a dead broker accepted")
    await stand.dialler.faulted({})
    (await stand.dial("broker-a")).writer.close()


@played(partial(_on_stand, nobody=True), worlds=2)
async def test_an_entry_of_the_list_where_nobody_is_refuses_always(stand: Stand, at: Address) -> None:
    for meets in ({}, {"127.0.0.1:9": "refused"}, {}):
        await stand.dialler.faulted(meets)
        try:
            await stand.dial("127.0.0.1:9")
        except ConnectionRefusedError:
            continue
        raise AssertionError("a front accepted where nobody listens")
    assert stand.dialler.namesrv_addr.count(";") == 1


@played(partial(_on_stand, vip=True), worlds=2)
async def test_a_broker_is_dialled_at_its_vip_port_too(stand: Stand, at: Address) -> None:
    stand.network.set_links({BROKER: at})
    host, port = stand.dialler.address("broker-a")
    assert {Address(host, port), Address(host, port - 2)} <= stand.dialler.own_addresses
    assert stand.dialler.front_of(Address(host, port - 2)) == "broker-a"
    _reader, writer = await asyncio.open_connection(host, port - 2)
    await stand.server()
    writer.close()


@on_stand
async def test_what_the_java_process_says_of_itself_is_what_everybody_is_told(stand: Stand, at: Address) -> None:
    """Its registration names the port behind its front; the NameServer, and the history, hear of the front's."""
    stand.network.set_links({NS: at})
    stand.dialler.says({"127.0.0.1:17527": str(BROKER)})
    client = await stand.dial("ns-0")
    server = await stand.server()
    client.say(request(103, 7, brokerAddr="127.0.0.1:17527", haServerAddr="127.0.0.1:17528", brokerName="broker-a"))
    heard = await server.command()
    assert heard.ext_fields == {"brokerAddr": str(BROKER), "haServerAddr": "127.0.0.1:17528", "brokerName": "broker-a"}
    client.say(request(105, 8, topic="t"))
    assert (await server.command()).ext_fields == {"topic": "t"}
    assert [one.fields.get("brokerAddr") for one in stand.seen if isinstance(one, Asked)] == [str(BROKER), None]


@on_stand
async def test_what_is_held_is_seen_and_goes_on_when_it_is_released(stand: Stand, at: Address) -> None:
    """So a broker's JVM comes up, as far as its first registration, before its node is at work."""
    stand.network.set_links({NS: at})
    stand.dialler.hold()
    client = await stand.dial("ns-0")
    client.say(request(103, 7, brokerName="broker-a"))
    await asyncio.wait_for(stand.asked.wait(), LIMIT_S)
    assert stand.accepted.empty()
    stand.dialler.release()
    assert (await (await stand.server()).command()).code == 103
