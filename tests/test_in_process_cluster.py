"""Real NameServers, brokers, producers and consumers in one process, on virtual time and a network in memory."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.clients.admin import AdminClient
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.consumer.config import MessageModel
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.clients.producer.send_result import SendStatus
from nemesrv.remoting.errors import ConnectError, RocketMQError
from nemesrv.remoting.message import Message, MessageQueue, StoredMessage
from nemesrv.remoting.node.network import Address, Listener, ProtocolFactory
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile

from .clients.consumer.consumers import Consuming
from .virtual import MemoryNetwork, VirtualClock

PROFILES = pytest.mark.parametrize("profile", [Profile.V4_9, Profile.V5_X])
QUEUES = 4
CLOCK = VirtualClock()


class NodeNetwork:
    """One node's way into the shared network, which `crash` cuts as the death of its process does."""

    def __init__(self, shared: MemoryNetwork) -> None:
        self._shared = shared
        self._dialled: list[Any] = []
        self._listening: list[Address] = []
        self._dead = False

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        if self._dead:
            raise ConnectError(f"connect to {address} failed: this node is dead")
        protocol = await self._shared.connect(address, factory)
        self._dialled += [end for end in self._shared.transports if end.get_protocol() is protocol]
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        listener = await self._shared.listen(address, factory)
        self._listening.append(listener.address)
        return listener

    def crash(self) -> None:
        """Every connection of the node closes, and nobody can dial it or be dialled by it."""
        self._dead = True
        for address in self._listening:
            self._shared.refuse(address)
        for transport in self._dialled:
            transport.close()


class Cluster:
    """`history`: what every node recorded, with its name and time. `crash(name)` kills a server."""

    def __init__(self, data: Path, *, name_servers: int, brokers: int, profile: Profile) -> None:
        self._data, self.profile = data, profile
        self.network = MemoryNetwork()
        self.networks: dict[str, NodeNetwork] = {}
        self.history: list[dict[str, Any]] = []
        self.name_servers = {f"ns-{n}": Address(f"10.0.1.{n + 1}", 9876) for n in range(name_servers)}
        self.brokers = {f"broker-{'abc'[n]}": Address(f"10.0.2.{n + 1}", 10911) for n in range(brokers)}
        self._servers: dict[str, NameServer | Broker] = {}
        self._clients: list[Any] = []

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(self.name_servers.values())

    def context(self, name: str) -> NodeContext:
        network = self.networks[name] = NodeNetwork(self.network)

        def record(event: str, /, **fields: object) -> None:
            self.history.append({"node": name, "at_s": CLOCK.monotonic_s(), "event": event, **fields})

        data = self._data / name
        data.mkdir(exist_ok=True)
        return NodeContext(
            name=name, clock=CLOCK, network=network, rng=random.Random(name), record=record, data_dir=data
        )

    async def start(self) -> None:
        for name, address in self.name_servers.items():
            server = NameServer(self.context(name), NamesrvConfig(profile=self.profile), listen=address)
            await self._started(name, server)
        for name, address in self.brokers.items():
            config = BrokerConfig(broker_name=name, namesrv_addr=self.addresses, profile=self.profile)
            await self._started(name, Broker(self.context(name), config, listen=address))
        async with AdminClient(self.context("admin"), self.addresses) as admin:
            for address in self.brokers.values():
                await admin.create_topic(address, "orders", read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await CLOCK.sleep(1)

    async def _started(self, name: str, server: NameServer | Broker) -> None:
        await server.listen()
        await server.start()
        self._servers[name] = server

    async def stop(self) -> None:
        for node in [*self._clients, *reversed(self._servers.values())]:
            await node.stop()

    def crash(self, name: str) -> None:
        self.networks[name].crash()

    async def shut_down(self, name: str) -> None:
        await self._servers.pop(name).stop()
        self.crash(name)

    async def producer(self, name: str = "producer-0", **config: Any) -> DefaultMQProducer:
        settings = ProducerConfig(namesrv_addr=self.addresses, profile=self.profile, **config)
        producer = DefaultMQProducer(self.context(name), settings)
        await producer.start()
        self._clients.append(producer)
        return producer

    async def consumer(self, name: str, **config: Any) -> Consuming:
        context = self.context(name)
        consuming = Consuming(
            self.networks[name],
            self.addresses,
            name=name,
            data_dir=context.data_dir,
            record=context.record,
            profile=self.profile,
            **config,
        )
        await consuming.consumer.start()
        self._clients.append(consuming.consumer)
        return consuming

    async def leave(self, consuming: Consuming) -> None:
        self._clients.remove(consuming.consumer)
        await consuming.consumer.stop()

    def rows(self, event: str, node: str | None = None, **fields: object) -> list[dict[str, Any]]:
        return [
            row
            for row in self.history
            if row["event"] == event
            and node in (None, row["node"])
            and all(row.get(field) == value for field, value in fields.items())
        ]


@asynccontextmanager
async def cluster(data: Path, **shape: Any) -> AsyncIterator[Cluster]:
    """A running cluster; two NameServers and two brokers, profile 4.9, unless told otherwise."""
    running = Cluster(data, **({"name_servers": 2, "brokers": 2, "profile": Profile.V4_9} | shape))
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


async def until(condition: Callable[[], bool], timeout_s: float) -> float:
    """Seconds that passed until `condition` held; AssertionError after `timeout_s`."""
    begin_s = CLOCK.monotonic_s()
    while not condition():
        assert CLOCK.monotonic_s() - begin_s <= timeout_s, f"not within {timeout_s} s"
        await CLOCK.sleep(0.05)
    return CLOCK.monotonic_s() - begin_s


async def send(producer: DefaultMQProducer, keys: range) -> list[str]:
    """One message a key; the keys that were acknowledged, which must be all."""
    for key in keys:
        await producer.send(Message.create("orders", b"%d" % key, keys=f"k{key}"))
    return [f"k{key}" for key in keys]


def keys_of(*members: Consuming) -> Counter[str]:
    return Counter(message.keys or "" for member in members for message in member.received)


@PROFILES
@pytest.mark.parametrize("members", [1, 2, 3])
async def test_a_group_receives_every_message_exactly_once(tmp_path: Path, profile: Profile, members: int) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        group = [await running.consumer(f"consumer-{n}") for n in range(members)]
        await CLOCK.sleep(3)
        sent = await send(await running.producer(), range(120))
        await CLOCK.sleep(3)
        assert keys_of(*group) == Counter(sent)
        assert all(member.received for member in group)
        queues = [tuple(queue) for member in group for queue in member.assigned()]
        assert sorted(queues) == [(name, queue_id) for name in running.brokers for queue_id in range(QUEUES)]


@PROFILES
async def test_when_a_member_leaves_the_others_go_on_where_it_was(tmp_path: Path, profile: Profile) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        group = [await running.consumer(f"consumer-{n}") for n in range(3)]
        await CLOCK.sleep(3)
        producer = await running.producer()
        sent = await send(producer, range(60))
        await CLOCK.sleep(2)
        await running.leave(group[1])
        assert await until(lambda: len(group[0].assigned()) == len(group[2].assigned()) == QUEUES, 3) < 3
        sent += await send(producer, range(60, 120))
        await CLOCK.sleep(3)
        assert keys_of(*group) == Counter(sent)
        assert group[1].assigned() == []


async def test_a_member_that_joins_late_repeats_nothing_that_was_committed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running:
        first = await running.consumer("consumer-0")
        producer = await running.producer()
        sent = await send(producer, range(40))
        await CLOCK.sleep(11)
        second = await running.consumer("consumer-1")
        await CLOCK.sleep(3)
        sent += await send(producer, range(40, 80))
        await CLOCK.sleep(3)
        assert keys_of(first, second) == Counter(sent)
        assert second.received


async def test_a_group_that_comes_back_goes_on_where_it_was(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running:
        producer = await running.producer()
        before = await running.consumer("consumer-0")
        sent = await send(producer, range(20))
        await CLOCK.sleep(3)
        await running.leave(before)
        later = await send(producer, range(20, 40))
        after = await running.consumer("consumer-0")
        await CLOCK.sleep(3)
        assert keys_of(before) == Counter(sent)
        assert keys_of(after) == Counter(later)


@PROFILES
async def test_broadcasting_gives_everything_to_everyone(tmp_path: Path, profile: Profile) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        model = MessageModel.BROADCASTING
        members = [await running.consumer(f"consumer-{n}", message_model=model) for n in range(3)]
        await CLOCK.sleep(3)
        sent = await send(await running.producer(), range(50))
        await CLOCK.sleep(3)
        assert [keys_of(member) for member in members] == [Counter(sent)] * 3


async def test_only_messages_of_the_wanted_tags_come(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running:
        consuming = await running.consumer("consumer-0", subscriptions=(("orders", "TagA || TagC"),))
        await CLOCK.sleep(3)
        producer = await running.producer()
        for tag in ("TagA", "TagB", "TagC", "TagA"):
            await producer.send(Message.create("orders", b"body", tags=tag))
        await CLOCK.sleep(3)
        assert Counter(message.tags for message in consuming.received) == {"TagA": 2, "TagC": 1}


async def test_a_message_that_fails_comes_again_after_ten_seconds_under_its_own_topic(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running:
        tries: list[tuple[float, str, int]] = []

        def second_time(message: Any) -> bool:
            tries.append((CLOCK.monotonic_s(), message.topic, message.reconsume_times))
            return len(tries) > 1

        consuming = await running.consumer("consumer-0", listener=second_time)
        await CLOCK.sleep(35)  # the retry topic, made at the first heartbeat, is in the route by now
        sent = await send(await running.producer(), range(1))
        await CLOCK.sleep(20)
        (first, *_), (second, *_) = tries
        assert [try_[1:] for try_ in tries] == [("orders", 0), ("orders", 1)]
        assert 10 <= second - first <= 12
        assert keys_of(consuming) == Counter(sent)


@PROFILES
@pytest.mark.parametrize("clean", [False, True], ids=["crashed", "stopped"])
async def test_a_broker_that_is_gone_is_left_by_the_producer_within_thirty_seconds(
    tmp_path: Path, profile: Profile, *, clean: bool
) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        producer = await running.producer()
        sent = await send(producer, range(20))
        await CLOCK.sleep(5)
        if clean:
            await running.shut_down("broker-a")
        else:
            running.crash("broker-a")
        gone_s = CLOCK.monotonic_s()
        for key in range(20, 100):
            sent += await send(producer, range(key, key + 1))
            await CLOCK.sleep(0.5)
        uses = [row["at_s"] for row in running.rows("send_attempt", broker_name="broker-a", type="invoke")]
        assert gone_s < max(uses) <= gone_s + 30
        assert len(running.rows("send", type="ok")) == len(sent) == 100, "each send found the live broker"


@PROFILES
async def test_the_queues_of_a_crashed_broker_are_released_and_the_rest_goes_on(
    tmp_path: Path, profile: Profile
) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        group = [await running.consumer(f"consumer-{n}") for n in range(2)]
        producer = await running.producer()
        await CLOCK.sleep(3)
        running.crash("broker-a")
        live = [["broker-b", queue_id] for queue_id in range(QUEUES)]
        # A route poll (30 s), then a rebalance (20 s); half a second for a refused dial on the way.
        await until(lambda: sorted([*group[0].assigned(), *group[1].assigned()]) == live, 50.5)
        sent = await send(producer, range(40))
        await CLOCK.sleep(3)
        assert keys_of(*group) == Counter(sent)


@PROFILES
@pytest.mark.parametrize("client", ["consumer-0", "producer-0"])
async def test_when_its_name_server_crashes_a_client_takes_the_next_of_its_list_and_no_send_fails(
    tmp_path: Path, profile: Profile, client: str
) -> None:
    async with cluster(tmp_path, profile=profile, name_servers=3) as running:
        consuming = await running.consumer("consumer-0")
        producer = await running.producer()
        sent = await send(producer, range(10))
        names = {str(address): name for name, address in running.name_servers.items()}
        before = running.rows("name_server_chosen", client)[-1]
        running.crash(names[before["name_server"]])
        for key in range(10, 71):
            sent += await send(producer, range(key, key + 1))
            await CLOCK.sleep(1)
        order = running.rows("name_server_list", client)[-1]["value"]
        *_, chosen, after = running.rows("name_server_chosen", client)
        assert chosen == before
        assert after["name_server"] == order[(before["value"]["index"] + 1) % len(order)]
        assert after["value"]["old"] == before["name_server"]
        calls = running.rows("name_server_call", client, f="route")
        assert (calls[-1]["type"], calls[-1]["name_server"]) == ("ok", after["name_server"])
        await CLOCK.sleep(3)
        assert keys_of(consuming) == Counter(sent)


@PROFILES
async def test_a_new_topic_spreads_over_all_brokers(tmp_path: Path, profile: Profile) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        producer = await running.producer()
        sent = [await producer.send(Message.create("fresh", b"hello")) for _ in range(9)]
        assert {one.status for one in sent} == {SendStatus.SEND_OK}
        assert {one.queue.broker_name for one in sent} == {"broker-a", "broker-b"}
        await CLOCK.sleep(31)
        route = producer.client.route_cache.route("fresh")
        assert route is not None
        assert {(row.broker_name, row.write_queue_nums, row.perm) for row in route.queue_datas} == {
            ("broker-a", 4, 6),
            ("broker-b", 4, 6),
        }
        assert not running.rows("send", type="fail")


@PROFILES
async def test_what_was_sent_is_stored_compressed_or_in_a_batch(tmp_path: Path, profile: Profile) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        producer = await running.producer()
        big = await producer.send(Message.create("orders", b"x" * 10_000, keys="big"))
        batch = await producer.send_batch([Message.create("orders", body) for body in (b"a", b"b")])

        async def stored(queue: MessageQueue) -> list[StoredMessage]:
            async with AdminClient(running.context("reader"), running.addresses) as admin:
                address = running.brokers[queue.broker_name]
                return [message async for message in admin.read_queue(queue.topic, address, queue.queue_id)]

        first = (await stored(big.queue))[0]
        assert (first.inflated_body, first.keys, first.uniq_key) == (b"x" * 10_000, "big", big.msg_id)
        assert first.offset_msg_id == big.offset_msg_id
        assert [(message.body, message.queue_offset) for message in (await stored(batch.queue))[-2:]] == [
            (b"a", batch.queue_offset),
            (b"b", batch.queue_offset + 1),
        ]


async def test_a_topic_that_nobody_created_is_created_by_its_first_send(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running:
        producer = await running.producer()
        consuming = await running.consumer("consumer-0", subscriptions=(("fresh", "*"),))
        await producer.send(Message.create("fresh", b"first", keys="k0"))
        await until(lambda: keys_of(consuming) == Counter({"k0": 1}), 55)


async def test_a_final_read_finds_every_acknowledged_message_and_disturbs_no_group(tmp_path: Path) -> None:
    async with cluster(tmp_path) as running:
        consuming = await running.consumer("consumer-0")
        sent = await send(await running.producer(), range(100))
        await CLOCK.sleep(3)
        found: list[str] = []
        async with AdminClient(running.context("reader"), running.addresses) as admin:
            for address in running.brokers.values():
                for queue_id in range(QUEUES):
                    messages = [message async for message in admin.read_queue("orders", address, queue_id)]
                    assert len(messages) == await admin.max_offset(address, "orders", queue_id)
                    found += [message.keys or "" for message in messages]
                assert await admin.consumer_list(address, "group") == [consuming.consumer.client.client_id]
                assert "brokerVersionDesc" in await admin.broker_runtime_info(address)
        assert sorted(found) == sorted(sent)
        assert keys_of(consuming) == Counter(sent)


@PROFILES
async def test_through_partitions_and_coming_and_going_nothing_acknowledged_is_lost(
    tmp_path: Path, profile: Profile
) -> None:
    async with cluster(tmp_path, profile=profile) as running:
        producer, chance = await running.producer(), random.Random(7)
        members = [await running.consumer(f"consumer-{n}") for n in range(3)]
        left: list[Consuming] = []
        acknowledged: set[str] = set()

        async def traffic() -> None:
            for key in range(10_000):
                with suppress(RocketMQError):
                    await producer.send(Message.create("orders", b"body", keys=f"k{key}"))
                    acknowledged.add(f"k{key}")
                await CLOCK.sleep(0.5)

        sending = asyncio.create_task(traffic())
        for server in [*running.brokers.values(), *running.addresses]:
            running.network.hold(server)
            await CLOCK.sleep(chance.uniform(10, 60))
            left.append(members.pop(chance.randrange(len(members))))
            await running.leave(left[-1])
            await CLOCK.sleep(chance.uniform(1, 30))
            running.network.release(server)
            await CLOCK.sleep(chance.uniform(1, 10))
            members.append(await running.consumer(f"consumer-{len(left) + 2}"))
        sending.cancel()
        await CLOCK.sleep(130)  # the broker's 120 s of patience with a client that it could not hear
        assert len(acknowledged) > 100
        assert acknowledged - keys_of(*members, *left).keys() == set()
        owned = sorted(tuple(queue) for member in members for queue in member.assigned())
        assert owned == [(name, queue_id) for name in running.brokers for queue_id in range(QUEUES)]
