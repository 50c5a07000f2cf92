"""`clusterTest`: Apache's NameServer of a test environment and ours, beside one production, answer alike."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import orjson
import pytest

from nemesrv.remoting import fastjson
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.transport import RemotingClient
from tests.actors.namesrv.helpers import Caller, topic
from tests.address_server import address_server

from . import programs
from .conftest import SERVERS, need

pytestmark = pytest.mark.java


@dataclass(frozen=True, slots=True)
class Environments:
    profile: str
    product: Address
    theirs: Address
    ours: Address


@pytest.fixture(scope="module", params=["4.9", "5.x"])
def environments(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environments]:
    profile: str = request.param
    need(SERVERS[profile])
    home = tmp_path_factory.mktemp("cluster-test")
    with ExitStack() as stack:
        program, product = programs.name_server("product", home / "product", profile=profile)
        stack.enter_context(program)
        domain = {"rocketmq.namesrv.domain": stack.enter_context(address_server(product))}
        test = {"clusterTest": "true"}
        program, theirs = programs.java_name_server(
            "java-test", home / "java", SERVERS[profile], more=test, properties=domain
        )
        stack.enter_context(program)
        program, ours = programs.name_server("test", home / "ours", profile=profile, more={**test, **domain})
        stack.enter_context(program)
        yield Environments(profile, Address.parse(product), Address.parse(theirs), Address.parse(ours))


def ask(environments: Environments) -> dict[str, tuple[RemotingCommand, RemotingCommand]]:
    """Their answer and ours to each question, after production and (4.9) the test environments have got brokers."""

    async def main() -> dict[str, tuple[RemotingCommand, RemotingCommand]]:
        log = logging.getLogger("tests.interop")
        client = RemotingClient(clock=RealClock.starting_now(), network=TcpNetwork(), log=log)
        found: dict[str, tuple[RemotingCommand, RemotingCommand]] = {}
        both = [Caller(client, environments.theirs), Caller(client, environments.ours)]

        async def compare(name: str, code: int, header: dict[str, str]) -> None:
            theirs, ours = [await caller(code, header, timeout_s=10) for caller in both]
            found[name] = theirs, ours

        try:
            await Caller(client, environments.product).register(topics=(topic("product"), topic("shared")))
            own = [await caller.register("own", topics=(topic("own"), topic("shared"))) for caller in both]
            found["register"] = own[0], own[1]
            kv = {"namespace": "ORDER_TOPIC_CONFIG", "key": "own", "value": "own:4"}
            await compare("KV", RequestCode.PUT_KV_CONFIG, kv)
            for name in ("product", "shared", "own", "nobody's"):
                await compare(name, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name})
            await compare("another code", RequestCode.GET_BROKER_CLUSTER_INFO, {"topic": "product"})
        finally:
            await client.close()
        return found

    return asyncio.run(main())


@pytest.mark.nightly_but("4.9")
def test_both_give_the_routes_of_production_and_their_own(environments: Environments) -> None:
    found = ask(environments)
    assert found["product"][0].code == 0
    assert found["nobody's"][0].code == 17
    for name, (theirs, ours) in found.items():
        if name in ("register", "KV") and environments.profile == "5.x":  # taken for a route request without a topic
            assert (theirs.code, ours.code) == (17, 1)  # docs/compatibility.md: missing-field
            continue
        assert (ours.code, ours.remark) == (theirs.code, theirs.remark), name
        assert bool(ours.body) == bool(theirs.body), name
        if theirs.body:
            assert _sorted(ours.body) == _sorted(theirs.body), name
            assert (b'{0:"' in ours.body) == (b'{0:"' in theirs.body), name


def _sorted(body: bytes) -> bytes:
    """The body with sorted keys; the one order that differs is that of maps."""
    return orjson.dumps(fastjson.loads(body), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
