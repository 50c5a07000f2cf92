"""The producer against this project's own NameServers and brokers, in one process on virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.clients.producer.send_result import SendStatus
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import RocketMQError
from nemesrv.remoting.headers.broker import PullMessageRequestHeader
from nemesrv.remoting.message import Message, MessageQueue, StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import World
from tests.virtual import run


class Cluster:
    """Three NameServers, two brokers, one producer."""

    def __init__(self, profile: Profile, folder: Path) -> None:
        self.world, self.profile, self.folder = World(), profile, folder

    async def start(self) -> Cluster:
        self.name_servers = [
            NameServer(
                self.world.context(f"ns-{number}"),
                NamesrvConfig(profile=self.profile),
                listen=Address("10.0.0.2", 9876 + number),
            )
            for number in range(3)
        ]
        addresses = []
        for server in self.name_servers:
            addresses.append(await server.listen())
            await server.start()
        self.brokers = []
        for number, name in enumerate(("broker-a", "broker-b")):
            context = replace(self.world.context(name, seed=number), data_dir=self.folder / name)
            config = BrokerConfig(broker_name=name, namesrv_addr=tuple(addresses), profile=self.profile)
            broker = Broker(context, config, listen=Address("10.0.0.3", 10911 + number))
            await broker.listen()
            await broker.start()
            self.brokers.append(broker)
        await self.world.clock.sleep(11)
        settings = ProducerConfig(namesrv_addr=tuple(addresses), profile=self.profile, producer_group="writers")
        self.producer = DefaultMQProducer(self.world.context("producer-0"), settings)
        await self.producer.start()
        return self

    async def stored(self, queue: MessageQueue) -> list[StoredMessage]:
        """Everything in `queue`, as a consumer would pull it."""
        address = self.producer.client.find_broker_address_in_publish(queue.broker_name)
        assert address is not None
        header = PullMessageRequestHeader(
            consumer_group="readers",
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=0,
            max_msg_nums=32,
            sys_flag=4,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        response = await self.producer.client.remoting.invoke(
            address, RemotingCommand.request(RequestCode.PULL_MESSAGE, header)
        )
        return StoredMessage.decode_all(response.body)


def cluster(profile: Profile, folder: Path, body: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        made = await Cluster(profile, folder).start()
        await body(made)
        await made.producer.stop()
        for broker in made.brokers:
            await broker.stop()
        for server in made.name_servers:
            await server.stop()

    run(main)


BOTH = pytest.mark.parametrize("profile", list(Profile))


@BOTH
def test_a_new_topic_is_created_by_its_first_send_and_spreads_over_both_brokers(
    profile: Profile, tmp_path: Path
) -> None:
    async def body(c: Cluster) -> None:
        message = Message.create("orders", b"hello", keys="k0", tags="TagA")
        first = await c.producer.send(message)
        assert first.status is SendStatus.SEND_OK
        names = {(await c.producer.send(message)).queue.broker_name for _ in range(8)}
        assert names == {"broker-a", "broker-b"}
        await c.world.clock.sleep(31)
        route = c.producer.client.route_cache.route("orders")
        assert route is not None
        assert {(row.broker_name, row.write_queue_nums, row.perm) for row in route.queue_datas} == {
            ("broker-a", 4, 6),
            ("broker-b", 4, 6),
        }
        assert not c.world.rows("send", type="fail")

    cluster(profile, tmp_path, body)


@BOTH
def test_what_was_sent_is_stored_compressed_or_in_a_batch(profile: Profile, tmp_path: Path) -> None:
    async def body(c: Cluster) -> None:
        big = await c.producer.send(Message.create("orders", b"x" * 10_000, keys="big"))
        (stored,) = await c.stored(big.queue)
        assert (stored.inflated_body, stored.keys, stored.uniq_key) == (b"x" * 10_000, "big", big.msg_id)
        assert stored.offset_msg_id == big.offset_msg_id
        batch = await c.producer.send_batch([Message.create("orders", body) for body in (b"a", b"b")])
        in_queue = await c.stored(batch.queue)
        assert [(m.body, m.queue_offset) for m in in_queue[-2:]] == [
            (b"a", batch.queue_offset),
            (b"b", batch.queue_offset + 1),
        ]

    cluster(profile, tmp_path, body)


@BOTH
def test_a_broker_that_leaves_is_left_at_the_next_poll(profile: Profile, tmp_path: Path) -> None:
    async def body(c: Cluster) -> None:
        message = Message.create("orders", b"hello")
        for _ in range(8):
            await c.producer.send(message)
        await c.world.clock.sleep(31)
        dead = c.producer.client.find_broker_address_in_publish("broker-a")
        assert dead is not None
        c.world.network.refuse(dead)
        await c.brokers[0].stop()
        left_s = c.world.clock.monotonic_s()
        failures = 0
        for _ in range(70):
            try:
                await c.producer.send(message)
            except RocketMQError:
                failures += 1
            await c.world.clock.sleep(0.5)
        assert failures == 0
        last = max(row["at_s"] for row in c.world.rows("send_attempt", broker_name="broker-a"))
        assert last - left_s <= 30

    cluster(profile, tmp_path, body)


@BOTH
def test_a_name_server_that_crashes_costs_no_send(profile: Profile, tmp_path: Path) -> None:
    async def body(c: Cluster) -> None:
        message = Message.create("orders", b"hello")
        await c.producer.send(message)
        chosen = c.producer.client.name_server.chosen
        assert chosen is not None
        c.world.network.refuse(chosen)
        for _ in range(70):
            await c.producer.send(message)
            await c.world.clock.sleep(1)
        assert c.producer.client.name_server.chosen != chosen
        assert len(c.world.rows("name_server_chosen", node="producer-0")) == 2
        assert c.world.rows("name_server_call", node="producer-0")[-1]["type"] == "ok"

    cluster(profile, tmp_path, body)
