"""A stand: servers of ours behind fronts, what happens to them, and that nothing of it is left."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.processes import allow_open_files
from nemesrv.chaos.fronts.behaviour import DROPS_SYNS, REFUSES, SILENT, Behaviour, Connected, Dials
from nemesrv.chaos.fronts.observed import Asked, Behaved, Happened, Observation
from nemesrv.chaos.fronts.rows import SENDS
from nemesrv.clients.admin import AdminClient
from nemesrv.conformance.situations import KILL, NAME_SERVER_LIST, QUEUES, RESTART, Situation, SituationStep, Target
from nemesrv.conformance.stand import TOPIC, ConformPlan, Stand
from nemesrv.conformance.subject import Program
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.errors import ConnectError, ResponseError
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.node.this_machine import on_this_machine
from nemesrv.remoting.top_addressing import TopAddressing
from tests.actors.broker.test_standalone import ask, send

LIMIT_S = 30.0


class World:
    def __init__(self, stand: Stand, seen: list[Observation]) -> None:
        self.stand, self.seen = stand, seen

    async def brokers(self, name_server: str = "ns-0", topic: str = TOPIC) -> dict[str, Address]:
        """The masters of the topic's route as this NameServer's front gives it out."""
        async with AdminClient(on_this_machine("admin"), (self.stand.fronts[name_server].address,)) as admin:
            route = await admin.topic_route(topic)
        return {broker.broker_name: Address.parse(broker.broker_addrs[0]) for broker in route.broker_datas}

    def of(self, *kinds: type) -> list[Any]:
        return [seen for seen in self.seen if isinstance(seen, kinds)]


@asynccontextmanager
async def up(folder: Path, **shape: Any) -> AsyncIterator[World]:
    seen: list[Observation] = []
    plan = ConformPlan(program=Program(()), name_servers=2, profile=shape.pop("profile", Profile.V4_9))
    stand = Stand(
        plan,
        Situation("on a stand", "", 1.0, **shape),
        clock=RealClock.starting_now(),
        see=seen.append,
        data=folder / "data",
        log=folder / "servers.log",
    )
    await stand.open()
    try:
        yield World(stand, seen)
    finally:
        await stand.close()


def on_a_stand(folder: Path, body: Callable[[World], Awaitable[None]], **shape: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), up(folder, **shape) as world:
            await body(world)

    asyncio.run(main())


def refuses(address: Address) -> bool:
    with socket.socket() as dialling:
        return dialling.connect_ex(address) != 0


@pytest.mark.parametrize("profile", list(Profile))
def test_every_name_server_gives_out_the_fronts_of_all_brokers(tmp_path: Path, profile: Profile) -> None:
    async def body(world: World) -> None:
        fronts = {name: world.stand.fronts[name].address for name in ("broker-a", "broker-b")}
        assert await world.brokers("ns-0") == await world.brokers("ns-1") == fronts
        assert world.stand.names == ("ns-0", "ns-1")
        assert world.stand.name_servers == tuple(world.stand.fronts[name].address for name in ("ns-0", "ns-1"))
        assert world.stand.answered_last == "ns-1"

    on_a_stand(tmp_path, body, profile=profile)


def test_a_broker_of_the_stand_is_reached_at_its_vip_port_until_it_dies(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        vip = (await world.brokers())["broker-a"].vip_channel
        assert world.stand.front_of[vip] == "broker-a"
        (answer,) = await ask(vip, send(b"in a hurry", topic=TOPIC))
        assert answer.code == ResponseCode.SUCCESS
        assert {seen.front for seen in world.of(Asked) if seen.code == RequestCode.SEND_MESSAGE_V2} == {"broker-a"}
        await world.stand.do(SituationStep(at_s=0, target=Target.BROKER, do=KILL))
        assert refuses(vip)

    on_a_stand(tmp_path, body)


def test_a_closed_stand_leaves_no_port_no_task_and_no_file(tmp_path: Path) -> None:
    async def main() -> list[Address]:
        before = asyncio.all_tasks()
        async with up(tmp_path, by_http=True) as world:
            await world.stand.feed()
            await world.brokers()
            fronts = [front.address for front in world.stand.fronts.values()]
            behind = [at for front in world.stand.fronts.values() if (at := await front.dialled()) is not None]
        assert asyncio.all_tasks() == before
        return [*fronts, *behind]

    addresses = asyncio.run(main())
    assert len(addresses) == 2 * (3 + 2 + 1)
    assert all(map(refuses, addresses))
    assert [path.name for path in tmp_path.iterdir()] == ["servers.log"]


def test_where_no_topic_is_there_is_no_route_and_none_is_made(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        for topic in (TOPIC, "TBW102"):
            with pytest.raises(ResponseError, match="No topic route info"):
                await world.brokers(topic=topic)

    on_a_stand(tmp_path, body, has_topic=False)


def test_a_broker_that_dies_leaves_the_route_at_once_and_is_back_behind_the_same_front(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        front = world.stand.fronts["broker-a"].address
        await world.stand.do(SituationStep(at_s=0, target=Target.BROKER, do=KILL))
        assert refuses(front)
        while "broker-a" in await world.brokers():
            pass  # the NameServer has yet to see the channel close
        await world.stand.do(SituationStep(at_s=1, target=Target.BROKER, do=RESTART))
        assert (await world.brokers())["broker-a"] == front
        assert not refuses(front)
        happened = [(seen.what, seen.whom) for seen in world.of(Happened)]
        assert happened == [("kill", "broker-a"), ("restart", "broker-a")]

    on_a_stand(tmp_path, body)


def test_behaviour_is_of_those_whom_the_step_names(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        await world.brokers("ns-1")
        for target, behaviour in (
            (Target.CHOSEN, SILENT),
            (Target.FIRST, REFUSES),
            (Target.SECOND, Behaviour(dials=Dials.CLOSED, connected=Connected.RESET)),
        ):
            await world.stand.do(SituationStep(at_s=0, target=target, behaviour=behaviour))
        assert [seen.front for seen in world.of(Behaved)] == ["ns-1", "ns-0", "ns-1"]
        with pytest.raises(ConnectError, match="failed"):
            await world.brokers("ns-0")

    on_a_stand(tmp_path, body)


def test_a_route_without_the_broker_in_use_is_given_out_by_every_name_server(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        step = SituationStep(at_s=0, target=Target.BROKER, behaviour=Behaviour(without=frozenset({"*"})))
        await world.stand.do(step)
        assert list(await world.brokers("ns-0")) == list(await world.brokers("ns-1")) == ["broker-b"]

    on_a_stand(tmp_path, body)


def test_the_list_by_http_loses_the_name_server_in_use_and_gains_another(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        server = world.stand.address_server
        assert server is not None
        addressing = TopAddressing(on_this_machine("client"), server)
        assert await addressing.fetch() == world.stand.name_servers
        await world.brokers("ns-1")
        await world.stand.do(SituationStep(at_s=0, target=Target.LIST, do=NAME_SERVER_LIST))
        fronts = world.stand.fronts
        assert await addressing.fetch() == (fronts["ns-0"].address, fronts["ns-2"].address)
        assert list(await world.brokers("ns-2")) == ["broker-a", "broker-b"]
        assert [(seen.what, seen.whom) for seen in world.of(Happened)] == [("name_server_list", "ns-0;ns-2")]

    on_a_stand(tmp_path, body, by_http=True)


def test_messages_for_consumers_go_round_the_fronts(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        await world.stand.feed()
        brokers = (await world.brokers()).values()
        async with AdminClient(on_this_machine("admin"), (world.stand.name_servers[0],)) as admin:
            places = [(broker, queue) for broker in brokers for queue in range(QUEUES)]
            while not any([await admin.max_offset(broker, TOPIC, queue) for broker, queue in places]):
                pass  # the first message is on its way
        assert not [seen for seen in world.of(Asked) if seen.code in SENDS]

    on_a_stand(tmp_path, body)


def test_syns_are_dropped_where_a_thousand_files_are_open_too(tmp_path: Path) -> None:
    """Two dozen stands have as many, and select() knows none above 1023."""
    allow_open_files(4096)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]

    async def body(world: World) -> None:
        await world.stand.do(SituationStep(at_s=0, target=Target.FIRST, behaviour=DROPS_SYNS))
        assert [seen.behaviour for seen in world.of(Behaved)] == [DROPS_SYNS]

    try:
        on_a_stand(tmp_path, body)
    finally:
        for each in held:
            os.close(each)
