"""The NameServer of a test environment (`clusterTest`), with a production one beside it, on a virtual clock."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.actors.namesrv.standalone import product_name_servers
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.node.this_machine import on_this_machine
from nemesrv.remoting.transport import RemotingClient
from tests.actors.namesrv.helpers import LISTEN, V4, V5, Caller, World, topic
from tests.address_server import address_server
from tests.virtual import MemoryNetwork

TEST_LISTEN = Address("127.0.0.2", 9876)
DEAD = Address("127.0.0.3", 9876)


class TestEnvironment:
    """A NameServer with `clusterTest` in the network of `world`, which is production."""

    __test__ = False

    def __init__(self, world: World, profile: Profile, product: str | None, **settings: Any) -> None:
        self.asked = 0
        self.product = product
        context = NodeContext(
            name="ns-test", clock=world.clock, network=world.network, rng=random.Random(1), log=world.log
        )
        config = NamesrvConfig(profile=profile, cluster_test=True, **settings)
        self.server = NameServer(context, config, listen=TEST_LISTEN, fetch_product=self._fetch)
        self._client = RemotingClient(clock=world.clock, network=world.network, log=world.log)

    async def _fetch(self) -> str | None:
        self.asked += 1
        return self.product

    async def __aenter__(self) -> TestEnvironment:
        await self.server.listen()
        await self.server.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.close()
        await self.server.stop()

    @property
    def caller(self) -> Caller:
        return Caller(self._client, TEST_LISTEN)


async def test_a_topic_of_production_is_known_in_the_test_environment(profile: Profile) -> None:
    async with World(profile) as world, TestEnvironment(world, profile, str(LISTEN)) as test:
        await world.client().register(topics=(topic("T"), topic("U")))
        answer = await test.caller.route("T")
        assert answer.code == ResponseCode.SUCCESS
        assert TopicRouteData.decode(answer.body).broker_datas[0].broker_name == "broker-a"
        assert b'"brokerAddrs":{0:"' in answer.body  # fastjson's own dialect, although the client is a new one


async def test_a_topic_that_nobody_knows_is_code_17_with_or_without_a_production(
    world: World, profile: Profile
) -> None:
    await world.client().register()
    for product in (str(LISTEN), None, "nonsense"):
        async with TestEnvironment(world, profile, product) as test:
            answer = await test.caller.route("nobody's")
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST
            assert answer.remark.startswith("No topic route info in name server for the topic: nobody's")  # type: ignore[union-attr]


async def test_its_own_topics_come_first_with_their_order_configuration() -> None:
    async with World() as world, TestEnvironment(world, V4, str(LISTEN)) as test:
        await world.client().register("product", topics=(topic("T"), topic("U")))
        await test.caller.register("own", topics=(topic("T"), topic("V")))
        await test.caller(RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "own:4"})
        own = TopicRouteData.decode((await test.caller.route("T")).body)
        assert [data.broker_name for data in own.broker_datas] == ["own"]
        assert own.order_topic_conf == "own:4"
        product = TopicRouteData.decode((await test.caller.route("U")).body)
        assert [data.broker_name for data in product.broker_datas] == ["product"]


async def test_a_5_x_one_takes_every_code_for_a_route_request() -> None:
    async with World(V5) as world, TestEnvironment(world, V5, str(LISTEN)) as test:
        await world.client().register()
        assert (await test.caller(RequestCode.GET_BROKER_CLUSTER_INFO, {"topic": "T"})).code == 0
        refused = await test.caller.register("own")
        assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "header field topic is missing")
        assert test.server.table.cluster_info().broker_addr_table == {}


async def test_a_dead_name_server_of_production_is_passed_over() -> None:
    async with World() as world, TestEnvironment(world, V4, f"{DEAD};{LISTEN};{DEAD}") as test:
        await world.client().register()
        for _ in range(4):
            assert (await test.caller.route("T")).code == 0


async def test_production_that_is_told_later_is_found_at_the_next_look() -> None:
    async with World() as world, TestEnvironment(world, V4, None) as test:
        await world.client().register()
        assert (await test.caller.route("T")).code == ResponseCode.TOPIC_NOT_EXIST
        test.product = str(LISTEN)
        await world.clock.sleep(9.9)
        assert (await test.caller.route("T")).code == ResponseCode.TOPIC_NOT_EXIST
        await world.clock.sleep(0.2)
        assert (await test.caller.route("T")).code == 0
        await world.clock.sleep(120)
        assert test.asked == 3


def test_the_address_server_is_asked_for_the_unit_of_production() -> None:
    async def main(domain: str) -> None:
        told = {"rocketmq.namesrv.domain": domain}
        for unit, answer in (("center", "10.0.0.1:9876;10.0.0.2:9876"), ("elsewhere", None), (" ", None)):
            config = NamesrvConfig.from_properties({**told, "productEnvName": unit})
            assert await product_name_servers(config, on_this_machine("ns-test"))() == answer

    with address_server("10.0.0.1:9876;10.0.0.2:9876\r\nsecond line") as domain:
        asyncio.run(main(domain))


@pytest.mark.parametrize(
    ("domain", "asked"),
    [({}, "jmenv.tbsite.net:8080"), ({"rocketmq.namesrv.domain": "a.example"}, "a.example:8080")],
)
async def test_an_address_server_without_a_port_is_asked_at_8080(domain: dict[str, str], asked: str) -> None:
    network = MemoryNetwork()
    context = replace(on_this_machine("ns-test"), network=network)
    assert await product_name_servers(NamesrvConfig.from_properties(domain), context)() is None
    assert [str(address) for address in network.dials] == [asked]


async def test_what_was_told_at_the_start_is_asked_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    context = on_this_machine("ns-test")
    monkeypatch.setenv("NAMESRV_ADDR", "10.0.0.7:9876")
    assert await product_name_servers(NamesrvConfig(), context)() == "10.0.0.7:9876"
    told = NamesrvConfig.from_properties({"rocketmq.namesrv.addr": "10.0.0.8:9876"})
    assert await product_name_servers(told, context)() == "10.0.0.8:9876"
