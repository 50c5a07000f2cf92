"""`nemesrv watch` on clusters in one process: what is wrong is named within its window, and what is legal never."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.operations.cluster.auditor import KINDS, Auditor, ProblemChange
from nemesrv.operations.cluster.looks import BrokerId, BrokerLook, Look, Member, NameServerLook, TopicRow
from nemesrv.operations.cluster.watcher import REQUESTS_PER_S, Watcher
from nemesrv.remoting.errors import ConnectError
from nemesrv.remoting.node.network import Address, ProtocolFactory
from tests.in_one_process import CLOCK

from .world import PROFILES, World

EXPIRES_S, SCANS_S = 120, 10


class Watching:
    """A watcher at work beside the story; `named` is what it has found, in order, and when."""

    def __init__(self, world: World) -> None:
        addresses = world.cluster.addresses
        self.watcher = Watcher(world.cluster.context("watch"), addresses)
        self.changes: list[ProblemChange] = []

    async def for_s(self, seconds: float) -> list[ProblemChange]:
        """What changes in that time."""
        until_s, before = CLOCK.monotonic_s() + seconds, len(self.changes)
        async for _, changes in self.watcher.looks():
            self.changes += changes
            if CLOCK.monotonic_s() >= until_s:
                break
        return self.changes[before:]

    @property
    def found(self) -> list[tuple[str, ...]]:
        return [(change.problem.kind, *change.problem.about) for change in self.changes if change.found]


@asynccontextmanager
async def watched(world: World) -> AsyncIterator[Watching]:
    watching = Watching(world)
    try:
        yield watching
    finally:
        await watching.watcher.aclose()


def cut(world: World, node: str, server: Address) -> None:
    """Packets between the node and that server are lost from now on, those of open connections, too."""
    network, own = world.cluster.network, world.cluster.networks[node]
    lost = {end for end in own._dialled if Address(*end.get_extra_info("peername")) == server}
    lost |= {end.out.to for end in lost}
    carry, connect = network._carry, own.connect

    def carries(transport: Any, data: bytes) -> None:
        if transport not in lost:
            carry(transport, data)

    async def connects(address: Address, factory: ProtocolFactory) -> Any:
        if address == server:
            await CLOCK.sleep(3)
            raise ConnectError(f"connect to {address} failed: nobody answers")
        return await connect(address, factory)

    network._carry = carries  # type: ignore[method-assign]
    own.connect = connects  # type: ignore[method-assign]


@PROFILES
async def test_a_cut_between_a_broker_and_a_name_server_is_named_within_expiry_scan_and_5_seconds(world: World) -> None:
    await world.broker("broker-a", "10.0.2.1")
    await world.broker("broker-b", "10.0.2.2")
    async with watched(world) as watching:
        assert await watching.for_s(60) == []
        cut(world, "broker-a@10.0.2.1", world.cluster.addresses[2])
        began_s = CLOCK.monotonic_s()
        (change,) = await watching.for_s(EXPIRES_S + SCANS_S + 5)
        assert change.problem == ("broker-missing", ("broker-a", "10.0.1.3:9876"))
        assert change.at_s - began_s <= EXPIRES_S + SCANS_S + 5
        assert "10.0.1.1:9876 and 10.0.1.2:9876 hold it; it answers us" in change.sentence


@pytest.mark.nightly("test_a_host_that_dies_is_no_cut_though_it_is_dropped_one_by_one")
@PROFILES
async def test_nothing_is_named_while_everybody_is_restarted_twice_in_a_row(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"))
    await world.broker("broker-b", "10.0.2.2")
    async with watched(world) as watching:
        await watching.for_s(60)
        for turn in range(10):
            name = ("ns-0", "broker-a@10.0.2.1", "ns-1", "broker-b@10.0.2.2", "ns-2")[turn % 5]
            await world.servers.pop(name).stop()
            await watching.for_s(3)  # RocketMQ's restarts take some seconds
            if name.startswith("ns-"):
                await world.name_server(int(name[-1]))
            else:
                await world.broker(*name.split("@"))
            await watching.for_s(75)
        assert [name for name in watching.found if name[0] != "name-server-silent"] == []
        assert watching.watcher.auditor.problems == {}


async def test_a_host_that_dies_is_no_cut_though_it_is_dropped_one_by_one(world: World) -> None:
    address = await world.broker("broker-a", "10.0.2.1")
    await world.broker("broker-b", "10.0.2.2")
    async with watched(world) as watching:
        await watching.for_s(47)
        for server in world.cluster.addresses:
            cut(world, "broker-a@10.0.2.1", server)
        world.cluster.network.hold(address)
        assert await watching.for_s(200) == []
        assert BrokerId("broker-a", 0) not in watching.watcher.auditor._tables["10.0.1.1:9876"]


async def test_a_name_server_that_hangs_is_named_and_over_when_it_answers(world: World) -> None:
    await world.broker("broker-a", "10.0.2.1")
    async with watched(world) as watching:
        await watching.for_s(60)
        world.cluster.network.hold(world.cluster.addresses[1])
        (change,) = await watching.for_s(15)
        assert (change.found, change.problem) == (True, ("name-server-silent", ("10.0.1.2:9876",)))
        world.cluster.network.release(world.cluster.addresses[1])
        (over,) = await watching.for_s(10)
        assert (over.found, over.problem) == (False, change.problem)


async def test_a_broker_with_a_shorter_list_and_one_with_a_longer_are_named_for_it(world: World) -> None:
    await world.broker("broker-a", "10.0.2.1", lists=(0, 1))
    world.cluster.name_servers["elsewhere"] = Address("10.0.7.7", 9876)
    await world.broker("broker-b", "10.0.2.2", lists=(0, 1, 2, 3))
    del world.cluster.name_servers["elsewhere"]
    async with watched(world) as watching:
        await watching.for_s(60)
        assert sorted(watching.found) == [
            ("broker-not-listing", "broker-a", "10.0.1.3:9876"),
            ("name-server-unlisted", "10.0.7.7:9876", "broker-b"),
        ]


@PROFILES
async def test_a_consumer_with_a_foreign_name_server_and_one_with_a_shorter_list_are_named(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"), "orders")
    all_of_them, foreign = world.cluster.addresses, Address("10.0.7.7", 9876)
    await world.consumer("consumer-0", all_of_them)
    await world.consumer("consumer-1", (*all_of_them, foreign))
    await world.consumer("consumer-2", all_of_them[:2])
    async with watched(world) as watching:
        await watching.for_s(100)
        assert watching.found == [], "a list by HTTP is taken within 120 s"
        await watching.for_s(100)
        assert sorted((kind, about[0]) for kind, *about in watching.found) == [
            ("client-not-listing", "10.0.1.3:9876"),
            ("client-unlisted-name-server", "10.0.7.7:9876"),
        ]
        (said,) = (s for p, s in watching.watcher.auditor.problems.items() if p.kind == "client-not-listing")
        assert said.startswith("consumer ")
        assert said.endswith("its list is 10.0.1.1:9876;10.0.1.2:9876")
        for name in ("consumer-1", "consumer-2"):
            await world.leave(name)
        await watching.for_s(60)
        assert watching.watcher.auditor.problems == {}


async def test_topics_of_one_name_server_only_and_a_wiped_permission_are_named(world: World) -> None:
    await world.topic(await world.broker("broker-a", "10.0.2.1"), "orders")
    await world.topic(Address("10.0.2.1", 10911), "bills")
    async with watched(world) as watching:
        await watching.for_s(60)
        async with AdminClient(world.cluster.context("admin"), world.cluster.addresses) as admin:
            await admin.delete_topic_in_name_server("bills", name_server=world.cluster.addresses[0])
            await watching.for_s(60)
            assert watching.found == [("topics-differ", "10.0.1.1:9876")]
            await admin.wipe_write_perm("broker-a", name_server=world.cluster.addresses[1])
        await watching.for_s(120)
        assert ("route-differs", "orders") in watching.found
        assert (
            "10.0.1.2:9876 has broker-a 8/8 perm 4" in watching.watcher.auditor.problems["route-differs", ("orders",)]
        )


@pytest.mark.nightly("none: with fewer topics nothing comes near the limit")
async def test_no_name_server_gets_more_requests_than_the_limit_whatever_there_is_to_ask(world: World) -> None:
    address = await world.broker("broker-a", "10.0.2.1")
    async with AdminClient(world.cluster.context("admin"), world.cluster.addresses) as admin:
        for number in range(300):
            await admin.create_topic(address, f"topic-{number}")
    world.asked = world.cluster.addresses[:1]
    watcher = Watcher(world.cluster.context("watch"), world.asked)
    began_s, looked = CLOCK.monotonic_s(), 0
    async for look, _ in watcher.looks():
        looked += len(look.name_servers["10.0.1.1:9876"].routes)
        if CLOCK.monotonic_s() - began_s >= 60:
            break
    await watcher.aclose()
    assert watcher.calls.asked_of["10.0.1.1:9876"] <= REQUESTS_PER_S * 62 + 10
    assert looked >= 300, "every topic had its turn within the minute"


# --- by hand --------------------------------------------------------------------------------------------------------


A, B = BrokerId("broker-a", 0), BrokerId("broker-b", 0)
NS = ("10.0.1.1:9876", "10.0.1.2:9876")


def look(at_s: float, *tables: dict[BrokerId, str], brokers: dict[str, BrokerLook] | None = None) -> Look:
    servers = {at: NameServerLook(brokers=table) for at, table in zip(NS, tables, strict=True)}
    return Look(at_s=at_s, name_servers=servers, brokers=brokers or {})


def kinds(changes: list[ProblemChange]) -> list[str]:
    assert all(change.problem.kind in KINDS for change in changes)
    return [change.problem.kind for change in changes if change.found]


def looked(auditor: Auditor, times_s: Iterable[float], *tables: dict[BrokerId, str]) -> list[ProblemChange]:
    return [change for at_s in times_s for change in auditor.looked(look(at_s, *tables))]


def test_two_addresses_that_take_turns_are_claimed_twice() -> None:
    auditor, changes = Auditor(NS), []
    for turn in range(6):
        changes += looked(auditor, [15.0 * turn], *[{A: ("10.0.2.1:10911", "10.0.2.9:10911")[turn % 2]}] * 2)
    assert "claimed-twice" in kinds(changes)


def test_one_new_address_is_a_move_and_no_claim() -> None:
    auditor, old, new = Auditor(NS), {A: "10.0.2.1:10911"}, {A: "10.0.2.9:10911"}
    assert looked(auditor, range(0, 45, 15), old, old) == looked(auditor, range(45, 300, 15), new, new) == []


def test_name_servers_that_hold_a_broker_at_different_addresses_are_named_after_a_period() -> None:
    changes = looked(Auditor(NS), range(0, 60, 2), {A: "10.0.2.1:10911"}, {A: "10.0.2.9:10911"})
    assert [(change.problem.kind, change.at_s) for change in changes] == [("address-differs", 34)]


def test_one_address_under_two_names_is_named() -> None:
    table = {A: "10.0.2.1:10911", B: "10.0.2.1:10911"}
    assert kinds(looked(Auditor(NS), range(0, 60, 2), table, table)) == ["one-address-two-names"] * 2


def test_a_name_without_its_master_is_named_after_a_period_and_over_when_it_is_back() -> None:
    auditor, both = Auditor(NS), {A: "10.0.2.1:10911", BrokerId("broker-a", 1): "10.0.2.2:10911"}
    slave = {BrokerId("broker-a", 1): "10.0.2.2:10911"}
    assert auditor.looked(look(0, both, both)) == []
    changes = looked(auditor, range(2, 60, 2), slave, slave)
    assert [(change.problem, change.at_s) for change in changes] == [(("no-master", ("broker-a", at)), 36) for at in NS]
    assert (
        changes[0].sentence == f"NameServer {NS[0]} has no master of broker-a, only broker-a/1: nobody can write to it"
    )
    assert [change.found for change in auditor.looked(look(60, both, both))] == [False, False]


def test_an_id_that_no_broker_keeps_is_named_only_where_it_stays() -> None:
    auditor, waits = Auditor(NS), {A: "10.0.2.1:10911", BrokerId("broker-a", -1): "10.0.2.3:10911"}
    table = {A: "10.0.2.1:10911"}
    assert looked(auditor, range(0, 20, 2), waits, waits) == looked(auditor, range(20, 100, 2), table, table) == []
    assert kinds(looked(auditor, range(100, 200, 2), waits, waits)) == ["id-of-nobody"] * 2


def test_names_of_hosts_and_lists_with_none_of_our_addresses_are_not_held_against_a_consumer() -> None:
    auditor, table = Auditor(NS), {A: "10.0.2.1:10911"}
    lists = [frozenset({"mq-1:9876", "mq-2:9876"}), frozenset({NS[0], "mq-2:9876"}), frozenset({"172.16.0.1:9876"})]
    clients = {Member("readers", f"client-{number}"): listed for number, listed in enumerate(lists)}
    for at_s in range(0, 300, 2):
        servers = {at: NameServerLook(brokers=table) for at in NS}
        assert auditor.looked(Look(at_s=at_s, name_servers=servers, clients=clients)) == []


def test_a_data_version_that_went_back_is_told_for_ten_minutes() -> None:
    auditor, table = Auditor(NS), {A: "10.0.2.1:10911"}

    def told(at_s: float, counter: int) -> list[str]:
        seen = BrokerLook(version=(0, 1_000, counter))
        return kinds(auditor.looked(look(at_s, table, table, brokers={"10.0.2.1:10911": seen})))

    assert told(0, 7) == []
    assert told(10, 8) == []
    assert told(20, 5) == ["version-backwards"]
    assert told(30, 6) == []
    assert auditor.problems
    told(700, 6)
    assert not auditor.problems


def test_routes_of_a_topic_that_differ_only_for_a_moment_are_not_named() -> None:
    auditor, table = Auditor(NS), {A: "10.0.2.1:10911"}
    four, eight = (frozenset({TopicRow("broker-a", queues, queues, 6)}) for queues in (4, 8))

    def looked(at_s: float, *routes: frozenset[TopicRow]) -> list[str]:
        servers = {
            at: NameServerLook(brokers=table, routes={"orders": route}) for at, route in zip(NS, routes, strict=True)
        }
        return kinds(auditor.looked(Look(at_s=at_s, name_servers=servers)))

    assert looked(0, four, four) == []
    assert looked(10, eight, four) == []
    assert looked(20, eight, eight) == []
    assert looked(30, eight, four) == []
    assert looked(70, eight, four) == ["route-differs"]
