"""Choosing, keeping and leaving a NameServer, for both profiles, over the in-memory network."""

from __future__ import annotations

import asyncio

import pytest

from nemesrv.clients.client_instance import MQClientInstance
from nemesrv.clients.config import ClientConfig
from nemesrv.clients.name_server_client import NameServerClient
from nemesrv.remoting.errors import ConnectError, ConnectionLost, RequestTimeout, RocketMQError, TooManyRequests
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import FakeNameServer, World, route

BOTH = pytest.mark.parametrize("profile", list(Profile))


class Bench:
    """Three NameServers that know `orders`, in the order in which the client will go round them."""

    def __init__(self, profile: Profile = Profile.V4_9, servers: int = 3, seed: int = 0) -> None:
        self.world, self.profile, self.count, self.seed = World(), profile, servers, seed
        self.servers: list[FakeNameServer] = []

    async def __aenter__(self) -> Bench:
        broker = await self.world.broker()
        servers = [await self.world.name_server(f"ns-{number}") for number in range(self.count)]
        for server in servers:
            server.routes["orders"] = route(broker)
        addresses = tuple(server.address for server in servers)
        self.instance = MQClientInstance(
            self.world.context(seed=self.seed), ClientConfig(profile=self.profile), addresses
        )
        self.client: NameServerClient = self.instance.name_server
        self.client.start()
        shuffled = list(self.client.selector.addresses)
        start = self.client.selector._start_index()
        self.client.selector._start_index = lambda: start  # type: ignore[method-assign]
        first = (start + 1) % self.count
        order: list[Address] = shuffled[first:] + shuffled[:first]
        self.servers = sorted(servers, key=lambda server: order.index(server.address))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.instance.stop()

    async def ask(self) -> None:
        await self.client.query_route("orders")

    async def outcome(self, *, after_s: float = 0) -> type[RocketMQError] | None:
        await self.world.clock.sleep(after_s)
        try:
            await self.ask()
        except RocketMQError as exc:
            return type(exc)
        return None

    @property
    def chosen(self) -> list[str]:
        """What the history says was chosen, in order."""
        return [row["name_server"] for row in self.world.rows("name_server_chosen")]

    @property
    def in_order(self) -> list[str]:
        return [str(server.address) for server in self.servers]


@BOTH
async def test_a_client_stays_with_its_name_server_for_ever(profile: Profile) -> None:
    async with Bench(profile) as b:
        for _ in range(20):
            await b.ask()
            await b.world.clock.sleep(30)
        assert b.chosen == b.in_order[:1]
        assert [len(server.requests) for server in b.servers] == [20, 0, 0]
        assert b.world.network.dials == [b.servers[0].address]


@BOTH
async def test_the_history_says_what_was_chosen_and_why(profile: Profile) -> None:
    async with Bench(profile) as b:
        await b.ask()
        b.servers[0].close_connections()
        await b.world.clock.sleep(1)
        await b.ask()
        (listed,) = b.world.rows("name_server_list")
        first, second = b.world.rows("name_server_chosen")
        assert first["value"] == {"old": None, "index": listed["value"].index(b.in_order[0]), "reason": "first"}
        assert second["value"] == {
            "old": b.in_order[0],
            "index": listed["value"].index(b.in_order[1]),
            "reason": "not_active",
        }
        calls = b.world.rows("name_server_call")
        assert [(call["f"], call["type"], call["name_server"], call["topic"], call["code"]) for call in calls] == [
            ("route", "ok", b.in_order[0], "orders", 0),
            ("route", "ok", b.in_order[1], "orders", 0),
        ]


@BOTH
async def test_each_failure_moves_on_by_one_round_the_shuffled_list(profile: Profile) -> None:
    async with Bench(profile, seed=5) as b:
        await b.ask()
        for _ in range(6):
            current = next(server for server in b.servers if server.connections)
            current.close_connections()
            await b.world.clock.sleep(1)
            await b.ask()
        assert b.chosen == [b.in_order[step % 3] for step in range(7)]


async def test_4_9_tries_the_whole_list_within_one_call() -> None:
    async with Bench(Profile.V4_9) as b:
        b.servers[0].crash()
        b.servers[1].crash()
        assert await b.outcome() is None
        assert b.chosen == b.in_order
        reasons = [row["value"]["reason"] for row in b.world.rows("name_server_chosen")]
        assert reasons == ["first", "connect_failed", "connect_failed"]
        # Java names the choice before the round in every line of it
        assert [row["value"]["old"] for row in b.world.rows("name_server_chosen")] == [None, None, None]


async def test_5_3_tries_one_server_a_call() -> None:
    async with Bench(Profile.V5_X) as b:
        b.servers[0].crash()
        b.servers[1].crash()
        assert [await b.outcome() for _ in range(3)] == [ConnectError, ConnectError, None]
        assert b.chosen == b.in_order
        assert [row["value"]["old"] for row in b.world.rows("name_server_chosen")] == [None, *b.in_order[:2]]


@BOTH
async def test_when_all_are_dead_the_call_fails_and_the_next_goes_on_from_there(profile: Profile) -> None:
    async with Bench(profile) as b:
        for server in b.servers:
            server.crash()
        assert await b.outcome() is ConnectError
        tried = 3 if profile is Profile.V4_9 else 1
        assert len(b.chosen) == tried
        for server in b.servers:
            server.revive()
        assert await b.outcome() is None
        assert b.chosen[-1] == b.in_order[tried % 3]
        (failed,) = b.world.rows("name_server_call", type="fail")
        assert (failed["name_server"], failed["code"]) == (b.chosen[tried - 1], None)


@BOTH
async def test_a_server_that_does_not_answer_costs_one_call_of_3_s(profile: Profile) -> None:
    async with Bench(profile) as b:
        await b.ask()
        b.servers[0].silent = True
        begin_s = b.world.clock.monotonic_s()
        assert await b.outcome() is RequestTimeout
        assert b.world.clock.monotonic_s() - begin_s == 3.0
        assert not b.instance.remoting.is_active(b.servers[0].address)
        assert await b.outcome() is None
        assert b.chosen == b.in_order[:2]
        assert b.world.rows("name_server_call", type="info")[0]["duration_ms"] == 3000


@BOTH
@pytest.mark.parametrize("code", [17, 1, 2])
async def test_an_error_code_never_fails_over(profile: Profile, code: int) -> None:
    async with Bench(profile) as b:
        b.servers[0].codes["orders"] = code
        for _ in range(5):
            assert await b.outcome() is not None
        assert b.chosen == b.in_order[:1]
        assert {(row["type"], row["code"]) for row in b.world.rows("name_server_call")} == {("fail", code)}


@BOTH
async def test_a_server_that_closes_fails_the_calls_in_flight_at_once(profile: Profile) -> None:
    async with Bench(profile) as b:
        await b.ask()
        b.servers[0].silent = True
        b.world.clock.call_later(0.5, b.servers[0].close_connections)
        begin_s = b.world.clock.monotonic_s()
        assert await b.outcome() is ConnectionLost
        assert b.world.clock.monotonic_s() - begin_s == 0.5
        assert await b.outcome() is None
        assert b.chosen == b.in_order[:2]


async def test_4_9_with_two_servers_never_recovers_from_one_that_swallows_dials() -> None:
    """windows.md section 4: the live channel is opened at 3.0 s, judged timed out, and closed again."""
    async with Bench(Profile.V4_9, servers=2) as b:
        b.world.network.swallow(b.servers[0].address)
        assert [await b.outcome() for _ in range(6)] == [TooManyRequests] * 6
        assert b.chosen == b.in_order * 6
        assert len(b.servers[1].requests) == 0


async def test_4_9_with_four_servers_recovers_where_two_live_ones_are_neighbours() -> None:
    async with Bench(Profile.V4_9, servers=4) as b:
        b.world.network.swallow(b.servers[0].address)
        # servers[1] is closed as timed out, the next call goes to servers[2]
        assert [await b.outcome() for _ in range(3)] == [TooManyRequests, None, None]
        assert b.chosen == b.in_order[:3]


async def test_5_3_loses_one_call_to_a_server_that_swallows_dials() -> None:
    async with Bench(Profile.V5_X, servers=2) as b:
        b.world.network.swallow(b.servers[0].address)
        begin_s = b.world.clock.monotonic_s()
        assert await b.outcome() is ConnectError
        assert b.world.clock.monotonic_s() - begin_s == 3.0
        assert await b.outcome() is None


async def test_4_9_callers_wait_for_the_one_that_is_connecting() -> None:
    async with Bench(Profile.V4_9) as b:
        b.world.network.swallow(b.servers[0].address)

        # The first has no time left at 3.0 s and closes its new channel; the second has the lock from then on.
        assert list(await asyncio.gather(b.outcome(), b.outcome(after_s=1))) == [TooManyRequests, None]
        assert b.chosen == b.in_order


async def test_5_3_a_second_caller_moves_on_while_the_first_is_connecting() -> None:
    async with Bench(Profile.V5_X) as b:
        b.world.network.swallow(b.servers[0].address)

        assert list(await asyncio.gather(b.outcome(), b.outcome(after_s=1))) == [ConnectError, None]
        assert b.chosen == b.in_order[:2]
        # the failed connect does not undo the second caller's choice
        assert await b.outcome() is None
        assert b.chosen == b.in_order[:2]


@BOTH
async def test_a_single_server_is_chosen_again_at_each_reconnect(profile: Profile) -> None:
    async with Bench(profile, servers=1) as b:
        await b.ask()
        b.servers[0].close_connections()
        await b.world.clock.sleep(1)
        await b.ask()
        assert b.chosen == b.in_order * 2
        assert b.world.rows("name_server_chosen")[1]["value"]["old"] == b.in_order[0]


@BOTH
async def test_only_5_x_closes_the_channel_of_a_chosen_server_that_left_the_list(profile: Profile) -> None:
    async with Bench(profile) as b:
        await b.ask()
        b.client.update_addresses([server.address for server in b.servers[1:]])
        await b.world.clock.sleep(1)
        assert b.instance.remoting.is_active(b.servers[0].address) == (profile is Profile.V4_9)
        await b.ask()
        assert b.chosen[-1] in b.in_order[1:]
