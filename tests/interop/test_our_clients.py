"""Our producer, consumer and admin client against Apache's NameServer and broker, and among Apache's clients."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.consumer.config import ConsumerConfig, MessageModel
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.clients.producer.send_result import SendResult, SendStatus
from nemesrv.remoting.errors import ResponseError
from nemesrv.remoting.message import Message, MessageQueue, StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile

from .conftest import PREFIX, Apache, World
from .waiting import context, soon

pytestmark = pytest.mark.java

TOPIC = "ours-topic"
BIG = b"y" * 20_000
TAGS = {
    **{f"sync-{number}": "TagA" for number in range(6)},
    **{f"tagged-{number}": "TagB" for number in range(3)},
    **{"big-0": "TagA", "unicode-0": "TagA", "failing-0": "TagB", "delayed-0": "TagA"},
}


@dataclass(slots=True)
class Exchange:
    """What our clients did with Apache's servers, once for all the tests that look at it."""

    results: dict[str, SendResult] = field(default_factory=dict)
    received: dict[str, list[StoredMessage]] = field(default_factory=dict)
    after_restart: list[StoredMessage] = field(default_factory=list)
    committed: dict[int, int | None] = field(default_factory=dict)
    largest: dict[int, int] = field(default_factory=dict)
    read: list[StoredMessage] = field(default_factory=list)
    members: list[str] = field(default_factory=list)

    def first(self, group: str) -> dict[str, StoredMessage]:
        """The group's messages by key, those that came again left out."""
        return {str(each.keys): each for each in self.received[group] if each.reconsume_times == 0}


@pytest.fixture(scope="module")
def exchange(apache: Apache) -> Exchange:
    return asyncio.run(_exchange(apache))


async def _exchange(apache: Apache) -> Exchange:
    done, name_servers = Exchange(), (Address.parse(apache.name_server),)
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(AdminClient(context("admin"), name_servers))
        producer = await stack.enter_async_context(producing(name_servers))
        await _send(producer, done.results)
        groups = {
            "ours-all": ConsumerConfig(consumer_group="ours-all", subscriptions=((TOPIC, "*"),)),
            "ours-tagged": ConsumerConfig(consumer_group="ours-tagged", subscriptions=((TOPIC, "TagB || TagC"),)),
            "ours-broadcast": ConsumerConfig(
                consumer_group="ours-broadcast", subscriptions=((TOPIC, "*"),), message_model=MessageModel.BROADCASTING
            ),
        }
        wanted = {"ours-all": len(TAGS) + 1, "ours-broadcast": len(TAGS)}
        wanted["ours-tagged"] = list(TAGS.values()).count("TagB")
        async with AsyncExitStack() as consumers:
            for group, config in groups.items():
                done.received[group] = await consumers.enter_async_context(consuming(config, name_servers))
            for group, number in wanted.items():
                await soon(lambda g=group, n=number: _has(done.received[g], n), within_s=45)  # type: ignore[misc]
            done.members = await admin.consumer_list(Address.parse(apache.broker), "ours-all")
        await _look(admin, Address.parse(apache.broker), done)
        done.results["again"] = await producer.send(Message.create(TOPIC, b"again", keys="again-0"))
        async with consuming(groups["ours-all"], name_servers) as done.after_restart:
            await soon(lambda: _has(done.after_restart, 1))
    return done


def _has(messages: list[StoredMessage], number: int) -> None:
    assert len(messages) >= number, sorted(str(message.keys) for message in messages)


async def _send(producer: DefaultMQProducer, results: dict[str, SendResult]) -> None:
    def message(key: str, body: bytes | None = None, **properties: str) -> Message:
        body = key.encode() if body is None else body
        return Message.create(TOPIC, body, keys=key, tags=TAGS[key], user_properties=properties)

    for number in range(6):
        results[f"sync-{number}"] = await producer.send(message(f"sync-{number}"))
    for number in range(3):
        results[f"tagged-{number}"] = await producer.send(message(f"tagged-{number}"))
    results["big-0"] = await producer.send(message("big-0", BIG))
    results["unicode-0"] = await producer.send(message("unicode-0", "grüße 消息".encode(), greeting="grüße"))
    results["failing-0"] = await producer.send(message("failing-0"))
    delayed = Message.create(TOPIC, b"later", keys="delayed-0", tags="TagA").with_property("DELAY", "1")
    results["delayed-0"] = await producer.send(delayed)


async def _look(admin: AdminClient, broker: Address, done: Exchange) -> None:
    stats = await admin.consume_stats(broker, "ours-all")
    for queue_id in range(4):
        done.committed[queue_id] = stats.offset_table[MessageQueue(TOPIC, "java-b", queue_id)].consumer_offset
        done.largest[queue_id] = await admin.max_offset(broker, TOPIC, queue_id)
        done.read += [message async for message in admin.read_queue(TOPIC, broker, queue_id)]


@asynccontextmanager
async def producing(
    name_servers: tuple[Address, ...], profile: Profile = Profile.V4_9
) -> AsyncIterator[DefaultMQProducer]:
    config = ProducerConfig(namesrv_addr=name_servers, producer_group="ours-producers", profile=profile)
    producer = DefaultMQProducer(context("producer"), config)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def consuming(
    config: ConsumerConfig, name_servers: tuple[Address, ...], profile: Profile = Profile.V4_9
) -> AsyncIterator[list[StoredMessage]]:
    """What has come so far, for as long as the block lasts. `failing-0` fails the first time."""
    received: list[StoredMessage] = []

    def listener(messages: list[StoredMessage]) -> bool:
        received.extend(messages)
        return not any(message.keys == "failing-0" and message.reconsume_times == 0 for message in messages)

    config = ConsumerConfig(
        namesrv_addr=name_servers,
        profile=profile,
        consumer_group=config.consumer_group,
        subscriptions=config.subscriptions,
        message_model=config.message_model,
    )
    consumer = DefaultMQPushConsumer(context(config.consumer_group), config, listener)
    await consumer.start()
    try:
        yield received
    finally:
        await consumer.stop()


def test_apaches_broker_acknowledges_every_send(exchange: Exchange) -> None:
    assert {result.status for result in exchange.results.values()} == {SendStatus.SEND_OK}
    assert {result.queue.queue_id for key, result in exchange.results.items() if key.startswith("sync")} == {0, 1, 2, 3}


def test_our_consumer_receives_everything_once_as_it_was_sent(exchange: Exchange) -> None:
    for group in ("ours-all", "ours-broadcast"):
        first = [message for message in exchange.received[group] if message.reconsume_times == 0]
        assert Counter(str(message.keys) for message in first) == Counter(list(TAGS))
        assert {str(message.keys): message.tags for message in first} == TAGS
    received = exchange.first("ours-all")
    for key in TAGS.keys() & exchange.results.keys() - {"delayed-0"}:
        sent, message = exchange.results[key], received[key]
        assert (sent.msg_id, sent.offset_msg_id) == (message.msg_id, message.offset_msg_id)
        assert (sent.queue.queue_id, sent.queue_offset) == (message.queue_id, message.queue_offset)
    assert received["sync-1"].inflated_body == b"sync-1"


def test_our_compressed_body_went_through_apaches_broker(exchange: Exchange) -> None:
    big = exchange.first("ours-all")["big-0"]
    assert big.inflated_body == BIG
    assert len(big.body) < len(BIG) // 10


def test_text_beyond_ascii_comes_back_from_apaches_broker(exchange: Exchange) -> None:
    message = exchange.first("ours-all")["unicode-0"]
    assert message.inflated_body.decode() == "grüße 消息"
    assert message.properties["greeting"] == "grüße"


def test_apaches_broker_filters_by_our_tags(exchange: Exchange) -> None:
    assert set(exchange.first("ours-tagged")) == {key for key, tag in TAGS.items() if tag == "TagB"}


def test_apaches_broker_gives_a_failed_message_back(exchange: Exchange) -> None:
    again = [message for message in exchange.received["ours-all"] if message.reconsume_times > 0]
    assert [(message.keys, message.reconsume_times) for message in again] == [("failing-0", 1)]


def test_our_offsets_are_committed_at_apaches_broker(exchange: Exchange) -> None:
    assert exchange.committed == exchange.largest
    assert [str(message.keys) for message in exchange.after_restart] == ["again-0"]


def test_our_admin_client_reads_a_whole_topic_from_apaches_broker(exchange: Exchange) -> None:
    assert Counter(str(message.keys) for message in exchange.read) == Counter(list(TAGS))
    assert len(exchange.members) == 1


def test_our_admin_client_administers_apaches_servers(apache: Apache) -> None:
    async def body() -> None:
        broker = Address.parse(apache.broker)
        async with AdminClient(context("admin"), [Address.parse(apache.name_server)]) as admin:
            assert (await admin.cluster_info()).cluster_addr_table == {"DefaultCluster": ("java-b",)}
            await admin.create_topic(broker, "ours-made", read_queue_nums=3, write_queue_nums=2)
            (row,) = (await admin.topic_route("ours-made")).queue_datas
            assert (row.broker_name, row.read_queue_nums, row.write_queue_nums, row.perm) == ("java-b", 3, 2, 6)
            assert "ours-made" in await admin.topic_list()
            assert await admin.wipe_write_perm("java-b") > 0
            assert (await admin.topic_route("ours-made")).queue_datas[0].perm == 4
            assert await admin.add_write_perm("java-b") > 0
            await admin.put_kv_config("ours", "key", "value")
            assert await admin.kv_list("ours") == {"key": "value"}
            assert (await admin.name_server_config())["listenPort"] == apache.name_server.rpartition(":")[2]
            assert (await admin.broker_runtime_info(broker))["brokerVersionDesc"] == "V4_9_7"
            await admin.delete_topic_in_broker(broker, "ours-made")
            await admin.delete_topic_in_name_server("ours-made")
            with pytest.raises(ResponseError):
                await admin.topic_route("ours-made")

    asyncio.run(body())


def test_java_consumers_receive_what_our_producer_sends(world: World) -> None:
    name_servers, profile = _of(world)
    kinds = ("sync", "big")

    async def body() -> None:
        async with producing(name_servers, profile) as producer:
            topic = f"{PREFIX}-topic"
            await producer.send(Message.create(topic, b"one", keys="python-sync", tags="TagA"))
            await producer.send(Message.create(topic, BIG, keys="python-big", tags="TagA"))
            await soon(lambda: _came(world, [f"python-{kind}" for kind in kinds]), within_s=45)

    asyncio.run(body())


def _came(world: World, keys: list[str]) -> None:
    received = [line.split("\t") for line in list(world.clients.lines) if line.startswith("RECEIVE\t")]
    for group in ("all", "tagged", "lite"):
        ours = [row for row in received if row[1] == group and row[2] in keys]
        assert sorted(row[2] for row in ours) == sorted(keys)
        assert [int(row[5]) for row in ours if row[2] == "python-big"] == [len(BIG)]


def test_our_consumer_shares_a_group_with_a_java_consumer(world: World) -> None:
    """The two agree who has which queue, so that each message goes to one of them."""
    name_servers, profile = _of(world)
    group, topic = f"{PREFIX}-tagged", f"{PREFIX}-topic"

    async def body() -> None:
        config = ConsumerConfig(consumer_group=group, subscriptions=((topic, "TagA || TagC"),))
        async with (
            AdminClient(context("admin"), name_servers, profile=profile) as admin,
            consuming(config, name_servers, profile) as ours,
            producing(name_servers, profile) as producer,
        ):
            for address in world.brokers.values():
                assert len(await admin.consumer_list(Address.parse(address), group)) == 2
            queues = [MessageQueue(topic, name, queue_id) for name in world.brokers for queue_id in range(4)]

            async def round_of(name: str) -> tuple[set[str], set[str]]:
                """What each of the two received of one message for every queue."""
                keys = [f"shared-{name}-{number}" for number in range(len(queues))]
                for queue, key in zip(queues, keys, strict=True):
                    message = Message.create(topic, b"shared", keys=key, tags="TagA")
                    await producer.send_selected(message, lambda _queues, queue=queue: queue)
                await soon(lambda: _all_came(world, ours, set(keys)))
                return {str(message.keys) for message in ours} & set(keys), _java_keys(world) & set(keys)

            for number in range(100):  # until the Java consumer has let go of half its queues
                own, java = await round_of(str(number))
                if len(own) < len(queues) and len(java) < len(queues):
                    break
            own, java = await round_of("last")
            assert (len(own), len(java), own & java) == (4, 4, set())

    asyncio.run(body())


def _java_keys(world: World) -> set[str]:
    rows = (line.split("\t") for line in list(world.clients.lines) if line.startswith("RECEIVE\ttagged\t"))
    return {row[2] for row in rows}


def _all_came(world: World, ours: list[StoredMessage], keys: set[str]) -> None:
    assert keys <= {str(message.keys) for message in ours} | _java_keys(world)


def _of(world: World) -> tuple[tuple[Address, ...], Profile]:
    return tuple(map(Address.parse, world.name_servers)), Profile(world.profile)
