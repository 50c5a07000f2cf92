"""Reads a live cluster again and again for `nemesrv watch`, and reports problems.

    each look (2 s):   106 of every NameServer; 206 each 10 s; 105 of the next topics in turn; 26 of a broker or two;
                       of one group in turn, each 10 s, who is in it (203) and the members' own lists (307)
    ─► auditor.py ─► changes ─► whoever listens (console, JSON lines, metrics)

One NameServer gets at most REQUESTS_PER_S requests a second. No request changes anything at a server. Requests 322 and
904, which would keep a dead broker registered, are never sent.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...remoting.bodies.client import SubscriptionGroupWrapper
from ...remoting.bodies.route import ClusterInfo, DataVersion, TopicList, TopicRouteData
from ...remoting.codes import MASTER_ID, RequestCode, ResponseCode
from ...remoting.errors import RemoteProtocolError, RocketMQError
from ...remoting.headers.namesrv import GetRouteInfoRequestHeader
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.properties import parse_properties
from .auditor import Auditor, ProblemChange
from .looks import BrokerId, BrokerLook, Look, Member, NameServerLook, Route, TopicRow, broker_look
from .server_answers import ServerCalls

INTERVAL_S = 2.0
REQUESTS_PER_S = 10.0
TOPICS_EACH_S = 10.0
BROKERS_EACH_S = 10.0
"""Period in which one more broker is asked for its configuration. Suspects are asked at each look."""
GROUPS_EACH_S = 10.0
"""Period in which the members of one more group are asked, and a master for its groups (201)."""
MEMBERS_MAX = 5
"""Most members asked at once; the next ones follow in the group's next turn."""
QUESTIONS_MAX = 50
"""Most questions for one turn: groups without members, of which each broker has some, do not use up a turn."""
SUSPECTS_MAX = 5
UNASKED_MAX = 20
TIMEOUT_S = 3.0

T = TypeVar("T")


@dataclass(slots=True)
class Watcher:
    """Reads a live cluster, once with `look`, or for ever with `looks`. A watcher has connections of its own; call
    `aclose` at the end."""

    context: NodeContext
    name_servers: Sequence[Address]
    interval_s: float = INTERVAL_S
    auditor: Auditor = field(init=False)
    calls: ServerCalls = field(init=False)
    _topics: list[str] = field(init=False, default_factory=list)
    _turn: int = field(init=False, default=0)
    _topics_at_s: float = field(init=False, default=float("-inf"))
    _brokers_at_s: float = field(init=False, default=float("-inf"))
    _last: dict[str, tuple[bytes, Any]] = field(init=False, default_factory=dict)
    _asked: dict[str, float] = field(init=False, default_factory=dict)
    """Broker's address to the time when it was asked last."""
    _masters: list[str] = field(init=False, default_factory=list)
    _groups: dict[str, dict[str, None]] = field(init=False, default_factory=dict)
    """Group to its masters."""
    _members: dict[str, list[str]] = field(init=False, default_factory=dict)
    """Group to its members' ids; the group that was asked last is at the end."""
    _groups_at_s: float = field(init=False, default=float("-inf"))

    def __post_init__(self) -> None:
        self.auditor = Auditor(tuple(map(str, self.name_servers)))
        self.calls = ServerCalls(self.context, TIMEOUT_S, Profile.V5_X.version)

    @property
    def requests(self) -> int:
        return self.calls.asked_of.total()

    @property
    def topics(self) -> int:
        """The number of topics that the last answers of the NameServers listed."""
        return len(self._topics)

    @property
    def has_asked_all(self) -> bool:
        """Whether every broker that a NameServer lists has been asked at least once."""
        return float("-inf") not in self._asked.values()

    async def aclose(self) -> None:
        await self.calls.close()

    async def looks(self) -> AsyncIterator[tuple[Look, list[ProblemChange]]]:
        """Yield a reading of the cluster every `interval_s` seconds, with the problems that began or ended. A slow
        reading delays the next reading."""
        clock = self.context.clock
        while True:
            began_s = clock.monotonic_s()
            yield await self.look()
            await clock.sleep(max(0.0, began_s + self.interval_s - clock.monotonic_s()))

    async def look(self) -> tuple[Look, list[ProblemChange]]:
        """Read every NameServer and some brokers once, and return the answers, and the problems that began or ended."""
        now_s = self.context.clock.monotonic_s()
        asks_topics = now_s - self._topics_at_s >= TOPICS_EACH_S
        if asks_topics:
            self._topics_at_s = now_s
        # all answers about topics are forgotten: each topic is asked for again within minutes
        self._last = {what: last for what, last in self._last.items() if not what.startswith("105")}
        room = int(REQUESTS_PER_S * self.interval_s) - 1 - asks_topics
        topics = self._next_topics(room)
        servers, brokers, (clients, gone) = await asyncio.gather(
            asyncio.gather(*(self._name_server(at, topics, asks_topics) for at in self.name_servers)),
            asyncio.gather(*(self._broker(address) for address in self._next_brokers(now_s))),
            self._next_clients(now_s),
        )
        look = Look(
            at_s=self.context.clock.monotonic_s(),
            name_servers=dict(zip(map(str, self.name_servers), servers, strict=True)),
            brokers=dict(brokers),
            clients=clients,
            gone=gone,
        )
        if asks_topics:
            self._topics = sorted({topic for server in servers for topic in server.topics or ()})
        self._keep_brokers(look)
        return look, self.auditor.looked(look)

    # --- who is asked what -------------------------------------------------------------------------------------------

    def _next_topics(self, room: int) -> list[str]:
        """Return the topics to ask for now: disputed topics, then the next in turn, up to the limit of requests."""
        chosen = sorted(self.auditor.disputed)[: max(0, room) // 2]
        while len(chosen) < min(room, len(self._topics)) and self._topics:
            topic = self._topics[self._turn % len(self._topics)]
            self._turn += 1
            if topic in chosen:
                break
            chosen.append(topic)
        return chosen

    def _next_brokers(self, now_s: float) -> list[str]:
        suspects = sorted(self.auditor.suspects & self._asked.keys(), key=self._asked.__getitem__)[:SUSPECTS_MAX]
        unasked = [address for address, at_s in self._asked.items() if at_s == float("-inf")][:UNASKED_MAX]
        chosen = list(dict.fromkeys((*suspects, *unasked)))
        if now_s - self._brokers_at_s >= BROKERS_EACH_S and self._asked:
            self._brokers_at_s = now_s
            chosen = list(dict.fromkeys((*chosen, min(self._asked, key=self._asked.__getitem__))))
        for address in chosen:
            self._asked[address] = now_s
        return chosen

    def _keep_brokers(self, look: Look) -> None:
        held = {address for server in look.name_servers.values() for address in server.brokers.values()}
        for address in held - self._asked.keys():
            self._asked[address] = float("-inf")
        for address in self._asked.keys() - held:
            del self._asked[address]
        masters = {
            address
            for server in look.name_servers.values()
            for broker, address in server.brokers.items()
            if broker.number == MASTER_ID
        }
        if masters:  # in the order of their turns, new ones first
            self._masters = sorted(masters - {*self._masters}) + [at for at in self._masters if at in masters]

    # --- questions ---------------------------------------------------------------------------------------------------

    async def _name_server(self, at: Address, topics: Sequence[str], asks_topics: bool) -> NameServerLook:
        try:
            body = (await self.calls.ok(at, RequestCode.GET_BROKER_CLUSTER_INFO)).body
            brokers = self._read(f"{at} 106", body, _brokers)
            listed: frozenset[str] | None = None
            if asks_topics:
                answer = await self.calls.ask(at, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
                if answer.code == ResponseCode.SUCCESS:
                    listed = self._read("206", answer.body, _topics)
            routes: dict[str, Route | None] = {}
            for topic in topics:
                answer = await self.calls.ask(
                    at, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic=topic)
                )
                is_there = answer.code == ResponseCode.SUCCESS
                routes[topic] = self._read(f"105 {topic}", answer.body, _route) if is_there else None
        except RocketMQError as exc:
            return NameServerLook(why=str(exc))
        return NameServerLook(brokers=brokers, topics=listed, routes=routes)

    def _read(self, what: str, body: bytes, read: Callable[[bytes], T]) -> T:
        """Return the answer's body, parsed only if it differs from the last answer of its kind."""
        last = self._last.get(what)
        if last is None or last[0] != body:
            last = self._last[what] = body, read(body)
        return last[1]

    async def _broker(self, address: str) -> tuple[str, BrokerLook]:
        try:
            answer = await self.calls.ok(Address.parse(address), RequestCode.GET_BROKER_CONFIG)
            version = None
            with contextlib.suppress(RemoteProtocolError):
                said = DataVersion.decode((answer.ext_fields or {}).get("version", "").encode())
                version = said.state_version, said.timestamp, said.counter
            return address, broker_look(parse_properties(answer.body), version)
        except (RocketMQError, ValueError) as exc:
            return address, BrokerLook(why=str(exc))

    # --- consumers' own lists ----------------------------------------------------------------------------------------

    async def _next_clients(self, now_s: float) -> tuple[dict[Member, frozenset[str]], frozenset[Member]]:
        if now_s - self._groups_at_s < GROUPS_EACH_S or not self._masters:
            return {}, frozenset()
        self._groups_at_s = now_s
        self._masters.append(at := self._masters.pop(0))
        with contextlib.suppress(RocketMQError, ValueError):
            await self._take_groups(at)
        asked, turn = 0, list(self._groups)
        for group in turn:
            masters = self._groups[group] = self._groups.pop(group)  # to the end of the line
            asked += len(masters)
            found = await self._members_of(group, masters)
            if found is not None and (found or self._members.get(group)):
                return await self._lists_of(group, found)
            if asked >= QUESTIONS_MAX:
                break
        return {}, frozenset()

    async def _members_of(self, group: str, masters: Iterable[str]) -> dict[str, str] | None:
        found: dict[str, str] = {}

        async def ask(address: str) -> None:
            for member in await self.calls.members(Address.parse(address), group):
                found.setdefault(member, address)

        said = await asyncio.gather(*map(ask, masters), return_exceptions=True)
        for one in said:
            if isinstance(one, BaseException) and not isinstance(one, RocketMQError | ValueError):
                raise one
        return None if any(said) else found

    async def _lists_of(
        self, group: str, found: Mapping[str, str]
    ) -> tuple[dict[Member, frozenset[str]], frozenset[Member]]:
        before = self._members.get(group, [])
        members = sorted(found.keys() - {*before}) + [one for one in before if one in found]
        self._members[group] = members[MEMBERS_MAX:] + members[:MEMBERS_MAX]
        gone = frozenset(Member(group, one) for one in before if one not in found)
        lists = await asyncio.gather(*(self._list_of(found[one], group, one) for one in members[:MEMBERS_MAX]))
        told = zip(members, lists, strict=False)
        return {Member(group, one): listed for one, listed in told if listed}, gone

    async def _take_groups(self, at: str) -> None:
        body = (await self.calls.ok(Address.parse(at), RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)).body
        has = SubscriptionGroupWrapper.decode(body).subscription_group_table
        for group in has:
            self._groups.setdefault(group, {})[at] = None
        for group, masters in [*self._groups.items()]:
            if group not in has:
                masters.pop(at, None)
            for gone in masters.keys() - {*self._masters}:
                del masters[gone]
            if not masters:
                del self._groups[group]

    async def _list_of(self, broker: str, group: str, client_id: str) -> frozenset[str]:
        try:
            return await self.calls.list_of(Address.parse(broker), group, client_id)
        except (RocketMQError, ValueError):
            return frozenset()


def _brokers(body: bytes) -> dict[BrokerId, str]:
    return {
        BrokerId(data.broker_name, number): address
        for data in ClusterInfo.decode(body).broker_addr_table.values()
        for number, address in data.broker_addrs.items()
    }


def _topics(body: bytes) -> frozenset[str]:
    return frozenset(TopicList.decode(body).topic_list)


def _route(body: bytes) -> Route:
    rows = TopicRouteData.decode(body).queue_datas
    return frozenset(TopicRow(r.broker_name, r.read_queue_nums, r.write_queue_nums, r.perm) for r in rows)
