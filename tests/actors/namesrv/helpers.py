"""Builders that make a registration readable, and a NameServer on a virtual clock that tests talk to over the wire."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.route_table import RouteTable
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.actors.namesrv.tables import Dropped, Registered, Registration, Unregistration
from nemesrv.remoting import fastjson
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import DataVersion, QueueData, Row, TopicConfig
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.namesrv import RegisterBrokerRequestHeader
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.transport import RemotingClient
from tests.virtual import MemoryNetwork, VirtualClock

BOTH = V4, V5 = [Profile.V4_9, Profile.V5_X]
LISTEN = Address("127.0.0.1", 9876)
IDENTITY = {"brokerName": "broker-a", "brokerAddr": "10.0.0.1:10911", "clusterName": "c", "brokerId": "0"}


def body(response: RemotingCommand) -> Any:
    assert response.code == 0, response.remark
    return fastjson.loads(response.body)


def topic(name: str = "T", *, queues: int = 4, perm: int = 6, flag: int = 0) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, topic_sys_flag=flag)


def row(broker: str, topic: TopicConfig) -> Row:
    return topic.topic_name, QueueData(
        broker_name=broker,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=topic.perm,
        topic_sys_flag=topic.topic_sys_flag,
    )


def version(counter: int = 1, *, timestamp: int = 1000, state: int = 0) -> DataVersion:
    return DataVersion(timestamp=timestamp, counter=counter, state_version=state)


def registration(
    broker: str = "broker-a",
    *,
    id_: int = 0,
    addr: str = "10.0.0.1:10911",
    topics: Sequence[TopicConfig] = (topic("T"), topic("U")),
    data_version: DataVersion | None = None,
    channel: int = 1,
    cluster: str = "c",
    **more: Any,
) -> Registration:
    """Two topics by default: a first registration with one alone is refused in 5.x."""
    return Registration(
        cluster_name=cluster,
        broker_name=broker,
        broker_addr=addr,
        broker_id=id_,
        ha_server_addr=addr.replace("10911", "10912"),
        channel_id=channel,
        data_version=data_version or version(),
        rows=[row(broker, each) for each in topics],
        **more,
    )


def table_with(profile: Profile, *registrations: Registration, now_ms: int = 0, **options: Any) -> RouteTable:
    table = RouteTable(profile, **options)
    for each in registrations:
        table.register(each, now_ms=now_ms)
    return table


def register(table: RouteTable, now_ms: int = 0, **how: Any) -> Registered:
    return table.register(registration(**how), now_ms=now_ms)


def leaving(
    broker: str = "broker-a", *, addr: str = "10.0.0.1:10911", id_: int = 0, cluster: str = "c"
) -> Unregistration:
    return Unregistration(cluster_name=cluster, broker_name=broker, broker_addr=addr, broker_id=id_)


def unregister(table: RouteTable, asked: Unregistration) -> tuple[Dropped, ...]:
    if table.profile is Profile.V4_9:
        return table.unregister(asked)
    assert table.submit_unregister(asked)
    return table.run_unregistrations().dropped


def perms(table: RouteTable, name: str = "T") -> dict[str, int]:
    """Broker name to perm of one topic's rows."""
    return {broker: row.perm for broker, row in table.topic_queue_table.get(name, {}).items()}


class World:
    """A running NameServer in memory, its history, and clients that dial it."""

    def __init__(self, profile: Profile = Profile.V4_9, *, data_dir: Path | None = None, **settings: Any) -> None:
        self.clock, self.network = VirtualClock(), MemoryNetwork()
        self.history: list[tuple[str, dict[str, object]]] = []
        self.log = logging.getLogger("tests.namesrv")
        self.log.setLevel(logging.DEBUG)
        self.config, self.data_dir = NamesrvConfig(profile=profile, **settings), data_dir
        self.clients: list[RemotingClient] = []

    async def __aenter__(self) -> World:
        context = NodeContext(
            name="ns-0",
            clock=self.clock,
            network=self.network,
            rng=random.Random(1),
            record=lambda event, /, **fields: self.history.append((event, fields)),
            log=self.log,
            data_dir=self.data_dir,
        )
        self.server = NameServer(context, self.config, listen=LISTEN)
        await self.server.listen()
        await self.server.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self.clients:
            await client.close()
        await self.server.stop()

    def client(self, **settings: Any) -> Caller:
        client = RemotingClient(clock=self.clock, network=self.network, log=self.log, **settings)
        self.clients.append(client)
        return Caller(client)

    @cached_property
    def call(self) -> Caller:
        """The connection of a test that needs one only."""
        return self.client()

    def events(self, name: str) -> list[dict[str, object]]:
        return [fields for event, fields in self.history if event == name]


class Caller:
    """One connection to the NameServer."""

    def __init__(self, client: RemotingClient, address: Address = LISTEN) -> None:
        self.client, self.address = client, address

    async def __call__(
        self, code: int, header: Any = None, body: bytes = b"", *, timeout_s: float = 3.0, **fields: Any
    ) -> RemotingCommand:
        request = RemotingCommand.request(code, header, body)
        for name, value in fields.items():
            setattr(request, name, value)
        return await self.client.invoke(self.address, request, timeout_s=timeout_s)

    async def register(
        self,
        broker: str = "broker-a",
        *,
        id_: int = 0,
        addr: str = "10.0.0.1:10911",
        topics: Sequence[TopicConfig] = (topic("T"), topic("U")),
        data_version: DataVersion | None = None,
        compressed: bool = False,
        header: dict[str, str] | None = None,
        body: bytes | None = None,
        **fields: Any,
    ) -> RemotingCommand:
        """REGISTER_BROKER; `header` adds or (with "") removes header fields, `body` replaces the encoded one."""
        ext = RegisterBrokerRequestHeader(
            broker_name=broker,
            broker_addr=addr,
            cluster_name="c",
            ha_server_addr=addr.replace("10911", "10912"),
            broker_id=id_,
            compressed=compressed,
        ).to_ext_fields()
        for key, value in (header or {}).items():
            if value:
                ext[key] = value
            else:
                ext.pop(key, None)
        if body is None:
            wrapper = TopicConfigSerializeWrapper.of(tuple(topics), data_version or version())
            whole = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=())
            body = whole.encode(compressed=compressed, version=fields.get("version", 477))
        return await self(RequestCode.REGISTER_BROKER, ext, body, **fields)

    async def route(self, name: str = "T", **fields: Any) -> RemotingCommand:
        return await self(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": name}, **fields)

    async def has_route(self, name: str = "T") -> bool:
        return (await self.route(name)).code == 0
