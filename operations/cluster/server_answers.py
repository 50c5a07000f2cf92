"""Asks the servers of a live cluster everything that a diagnosis of one topic needs.

    Questions.ask(topic) ─► ServerAnswers ─► answer_causes.py

Each server gets a few requests, once. No request changes anything in the cluster. Request 322, which would keep a dead
broker registered at a NameServer 4.9, is not sent. If a server does not answer in time, the answer has the reason.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...chaos.errors import HarnessError
from ...remoting import fastjson
from ...remoting.bodies.client import ConsumerConnection
from ...remoting.bodies.register import TopicConfigSerializeWrapper
from ...remoting.bodies.route import BrokerData, ClusterInfo, TopicConfig, TopicList, TopicRouteData
from ...remoting.codes import MASTER_ID, V3_0_11, LanguageCode, RequestCode, ResponseCode
from ...remoting.command import Header, RemotingCommand, success
from ...remoting.errors import ProtocolError, RocketMQError
from ...remoting.headers.broker import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetTopicConfigRequestHeader,
)
from ...remoting.headers.namesrv import GetRouteInfoRequestHeader
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.properties import parse_properties
from ...remoting.transport import RemotingClient

TIMEOUT_S = 5.0
CLIENTS_MAX = 20
"""Most members of a group that are asked for their lists."""


def parts_of_list(text: str) -> frozenset[str]:
    """Return the addresses in a setting namesrvAddr, `host:port;host:port`."""
    return frozenset(part.strip() for part in text.split(";") if part.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerAnswer:
    """One NameServer's answers about a topic. If the NameServer did not answer, `why` is the reason, and the other
    fields are empty."""

    address: str
    why: str | None = None
    code: int | None = None
    """Response code of the topic's look-up (105)."""
    remark: str | None = None
    route: TopicRouteData | None = None
    strict: bool | None = None
    """Whether an older client's look-up got JSON that every parser reads; None: there was no route."""
    brokers: Mapping[str, BrokerData] = field(default_factory=dict)
    """The NameServer's whole table (106), by broker name."""
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topics: frozenset[str] | None = None
    """All topics of the NameServer (206); None: not answered (5.x with enableAllTopicList=false)."""

    @property
    def answers(self) -> bool:
        return self.why is None

    @property
    def routed(self) -> frozenset[str]:
        return frozenset() if self.route is None else frozenset(data.broker_name for data in self.route.broker_datas)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAnswer:
    """One broker's answers about a topic. If the broker did not answer, `why` is the reason."""

    name: str
    broker_id: int
    address: str
    why: str | None = None
    topic: TopicConfig | None = None
    topics: frozenset[str] | None = None
    """All its topics, asked for only if the topic is nowhere."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The broker's configuration (26)."""

    @property
    def answers(self) -> bool:
        return self.why is None

    @property
    def lists(self) -> frozenset[str]:
        return parts_of_list(self.settings.get("namesrvAddr", ""))

    @property
    def creates_topics(self) -> bool:
        return self.settings.get("autoCreateTopicEnable", "true") == "true"

    def __str__(self) -> str:
        return self.name if self.broker_id == MASTER_ID else f"{self.name}/{self.broker_id}"


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """A consumer of the group that doctor examines, and the consumer's own list of NameServers (request 307)."""

    client_id: str
    lists: frozenset[str] = frozenset()
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class ServerAnswers:
    topic: str
    name_servers: tuple[NameServerAnswer, ...]
    brokers: tuple[BrokerAnswer, ...] = ()
    """Brokers in any table, and those named on the command line."""
    clients: tuple[ClientAnswer, ...] = ()

    @cached_property
    def answering(self) -> tuple[NameServerAnswer, ...]:
        return tuple(server for server in self.name_servers if server.answers)

    @cached_property
    def masters(self) -> tuple[BrokerAnswer, ...]:
        return tuple(broker for broker in self.brokers if broker.broker_id == MASTER_ID)

    @cached_property
    def holders(self) -> tuple[BrokerAnswer, ...]:
        return tuple(broker for broker in self.masters if broker.topic is not None)

    def speaks_our_names(self, broker: BrokerAnswer) -> bool:
        """Whether the broker's namesrvAddr names NameServers as the user did. Behind a proxy, or with other host names,
        the broker's list cannot be compared with the user's addresses."""
        held = {
            server.address
            for server in self.answering
            if (data := server.brokers.get(broker.name)) and broker.address in data.broker_addrs.values()
        }
        return bool(held) and held <= broker.lists


# --- asking -----------------------------------------------------------------------------------------------------------


class ServerCalls:
    """Sends read-only requests to servers over connections of its own. Each request may take `timeout_s`."""

    def __init__(
        self, context: NodeContext, timeout_s: float, version: int, language: LanguageCode = LanguageCode.PYTHON
    ) -> None:
        self._remoting = RemotingClient(**context.seams, language=language, version=version)
        self._timeout_s = timeout_s
        self.asked_of: Counter[str] = Counter()
        """Address to how many requests went there."""

    async def ask(self, at: Address, code: RequestCode, header: Header | None = None) -> RemotingCommand:
        self.asked_of[str(at)] += 1
        return await self._remoting.invoke(at, RemotingCommand.request(code, header), timeout_s=self._timeout_s)

    async def ok(self, at: Address, code: RequestCode, header: Header | None = None) -> RemotingCommand:
        """Return the server's answer to the request. Raises RocketMQError for no answer, and for a response code other
        than 0."""
        return success(await self.ask(at, code, header))

    async def members(self, broker: Address, group: str) -> list[str]:
        """Return the client ids of the group's consumers that are connected to the broker (request 203); none if the
        broker answers an error code."""
        header = GetConsumerConnectionListRequestHeader(consumer_group=group)
        answer = await self.ask(broker, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        if answer.code != ResponseCode.SUCCESS:
            return []
        return [member.client_id for member in ConsumerConnection.decode(answer.body).connection_set]

    async def list_of(self, broker: Address, group: str, client: str) -> frozenset[str]:
        """Return a consumer's own list of NameServers, asked for through a broker (request 307). The list is empty if
        the consumer does not report it. Raises RocketMQError for no answer, and for a response code other than 0."""
        header = GetConsumerRunningInfoRequestHeader(consumer_group=group, client_id=client)
        body = fastjson.loads((await self.ok(broker, RequestCode.GET_CONSUMER_RUNNING_INFO, header)).body)
        said = body.get("properties", {}) if isinstance(body, dict) else {}
        return parts_of_list(str(said.get("PROP_NAMESERVER_ADDR") or ""))

    async def close(self) -> None:
        await self._remoting.close()


class Questions:
    """Asks NameServers and brokers about a topic, over connections of its own; call `aclose` at the end."""

    def __init__(self, context: NodeContext, name_servers: Sequence[Address], *, timeout_s: float = TIMEOUT_S) -> None:
        self._calls = ServerCalls(context, timeout_s, Profile.V4_9.version)
        self._old = ServerCalls(context, timeout_s, V3_0_11, LanguageCode.OTHER)
        """As a client of before 4.9.4, which is answered in fastjson's dialect."""
        self._name_servers = tuple(name_servers)

    async def aclose(self) -> None:
        await self._old.close()
        await self._calls.close()

    async def ask(self, topic: str, *, brokers: Iterable[Address] = (), group: str | None = None) -> ServerAnswers:
        """Return all answers about `topic`. `brokers` are asked even if no NameServer lists them. Consumers of `group`
        are asked for their own lists of NameServers."""
        servers = await asyncio.gather(*(self._name_server(address, topic) for address in self._name_servers))
        known = {
            address: (data.broker_name, number)
            for server in servers
            for data in server.brokers.values()
            for number, address in data.broker_addrs.items()
        }
        asked = [self._broker(name, number, address, topic) for address, (name, number) in sorted(known.items())]
        asked += [self._broker("", MASTER_ID, str(at), topic) for at in brokers if str(at) not in known]
        answers = tuple(await asyncio.gather(*asked))
        nowhere = not any(broker.topic for broker in answers) and not any(server.route for server in servers)
        if nowhere and all(server.topics is None for server in servers):
            answers = tuple(await asyncio.gather(*(self._with_topics(broker) for broker in answers)))
        clients = () if group is None else await self._clients(group, [one for one in answers if one.answers])
        return ServerAnswers(topic=topic, name_servers=tuple(servers), brokers=answers, clients=clients)

    async def _name_server(self, address: Address, topic: str) -> NameServerAnswer:
        header = GetRouteInfoRequestHeader(topic=topic)
        try:
            answer = await self._calls.ask(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
            info = ClusterInfo.decode((await self._calls.ok(address, RequestCode.GET_BROKER_CLUSTER_INFO)).body)
            topics: frozenset[str] | None = None
            listed = await self._calls.ask(address, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
            if listed.code == ResponseCode.SUCCESS:
                topics = frozenset(TopicList.decode(listed.body).topic_list)
            route = strict = None
            if answer.code == ResponseCode.SUCCESS:
                route = TopicRouteData.decode(answer.body)
                strict = _strict((await self._old.ask(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)).body)
        except RocketMQError as exc:
            return NameServerAnswer(address=str(address), why=_said(exc))
        return NameServerAnswer(
            address=str(address),
            code=int(answer.code),
            remark=answer.remark,
            route=route,
            strict=strict,
            brokers=dict(info.broker_addr_table),
            clusters={name: tuple(of) for name, of in info.cluster_addr_table.items()},
            topics=topics,
        )

    async def _broker(self, name: str, number: int, address: str, topic: str) -> BrokerAnswer:
        try:
            at = Address.parse(address)
        except ValueError as exc:
            return BrokerAnswer(name=name, broker_id=number, address=address, why=str(exc))
        try:
            settings = parse_properties((await self._calls.ok(at, RequestCode.GET_BROKER_CONFIG)).body)
            config = await self._topic_at(at, topic)
        except RocketMQError as exc:
            return BrokerAnswer(name=name or str(address), broker_id=number, address=address, why=_said(exc))
        if not name:
            name, number = settings.get("brokerName", address), int(settings.get("brokerId", "0") or 0)
        return BrokerAnswer(name=name, broker_id=number, address=address, topic=config, settings=settings)

    async def _topic_at(self, broker: Address, topic: str) -> TopicConfig | None:
        answer = await self._calls.ask(broker, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader(topic=topic))
        if answer.code == ResponseCode.SUCCESS:
            return TopicConfig.decode(answer.body)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        return (await self._topics(broker)).topic_config_table.get(topic)  # 4.9 knows no 351

    async def _topics(self, broker: Address) -> TopicConfigSerializeWrapper:
        return TopicConfigSerializeWrapper.decode((await self._calls.ok(broker, RequestCode.GET_ALL_TOPIC_CONFIG)).body)

    async def _with_topics(self, broker: BrokerAnswer) -> BrokerAnswer:
        if not broker.answers:
            return broker
        try:
            table = await self._topics(Address.parse(broker.address))
        except RocketMQError:
            return broker
        return replace(broker, topics=frozenset(table.topic_config_table))

    async def _clients(self, group: str, brokers: Sequence[BrokerAnswer]) -> tuple[ClientAnswer, ...]:
        found: dict[str, ClientAnswer] = {}
        for broker in brokers:
            at = Address.parse(broker.address)
            try:
                members = await self._calls.members(at, group)
            except RocketMQError:
                continue
            for member in members:
                if member not in found and len(found) < CLIENTS_MAX:
                    try:
                        found[member] = ClientAnswer(member, await self._calls.list_of(at, group, member))
                    except RocketMQError as exc:
                        found[member] = ClientAnswer(member, why=_said(exc))
        return tuple(found.values())


def require_an_answer(whys: Mapping[str, str | None]) -> None:
    """Raise HarnessError if no NameServer answered. `whys` has the reason of each that did not, by address."""
    if None not in whys.values():
        said = "; ".join(f"{at}: {why}" for at, why in whys.items())
        raise HarnessError(f"no NameServer gives an answer: {said}")


def _strict(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def _said(exc: RocketMQError) -> str:
    if isinstance(exc, ProtocolError):
        return f"what it sends is not RocketMQ's protocol ({exc})"
    return str(exc)
