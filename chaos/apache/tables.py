"""Polls a NameServer's tables: GET_BROKER_CLUSTER_INFO (106) and a look-up (105) of each topic.

    poll ──106──► NameServer      all requests of a poll are sent at once, over the poller's own connection
         ──105──►                 (without a proxy); the answers are from between its begin and end

Pure, but for `TablePoller`.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...remoting.bodies.route import ClusterInfo, TopicRouteData, canonical
from ...remoting.codes import LanguageCode, RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import RocketMQError
from ...remoting.headers.namesrv import GetRouteInfoRequestHeader
from ...remoting.node.clock import Clock
from ...remoting.node.network import Address, TcpNetwork
from ...remoting.node.profile import Profile
from ...remoting.transport import RemotingClient

PERIOD_S = 0.250
"""Time between two polls, in the run's time."""
TIMEOUT_S = 3.0
"""Machine time. A late server gets no new request meanwhile."""
_LOG = logging.getLogger("nemesrv.apache")

Route = Mapping[str, Any]
"""As in the history: {"brokers": {name: {id: address}}, "queues": {name: [read, write, perm, flag]}}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The NameServer's tables as one poll saw them. A topic that was not looked up, or whose answer is unreadable, is
    not in `routes`."""

    brokers: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Broker name → broker id → address."""
    routes: Mapping[str, Route | None] = field(default_factory=dict)
    """Topic to its route; None if the NameServer has none (17)."""

    @property
    def places(self) -> set[tuple[str, int, str]]:
        """Return broker name, id and address of each broker in the polled table."""
        return {(name, id_, address) for name, ids in self.brokers.items() for id_, address in ids.items()}


def route_of(code: int, body: bytes) -> tuple[bool, Route | None]:
    """Return whether the answer to a look-up is readable, and the route in the answer."""
    if code == ResponseCode.TOPIC_NOT_EXIST:
        return True, None
    if code != ResponseCode.SUCCESS or not body:
        return False, None
    try:
        return True, canonical(TopicRouteData.decode(body))
    except RocketMQError:
        return False, None


class Poll(NamedTuple):
    began_ms: float
    ended_ms: float
    table: Table | None
    """The tables; None: no answer."""


class TablePoller:
    """Polls one NameServer over one connection; when the connection ends, the next poll opens another."""

    def __init__(
        self,
        address: Address,
        clock: Clock,
        topics: Callable[[], Collection[str]],
        *,
        profile: Profile = Profile.V4_9,
        log: logging.Logger = _LOG,
    ) -> None:
        """`topics` returns the topics to ask for; it is called before each poll."""
        self._address, self._clock, self._topics = address, clock, topics
        self._log = log
        self._timeout_s = TIMEOUT_S * float(getattr(clock, "scale", 1.0))
        self._client = RemotingClient(
            clock=clock,
            network=TcpNetwork(),
            connect_timeout_s=self._timeout_s,
            language=LanguageCode.JAVA,
            version=profile.version,
            log=log,
        )

    async def poll(self) -> Poll:
        """Poll the NameServer once. Never raises: a missing answer is recorded in the returned Poll."""
        began_ms = self._clock.monotonic_s() * 1000.0
        topics = list(self._topics())
        table: Table | None = None
        try:
            asked = self._asked(RequestCode.GET_BROKER_CLUSTER_INFO)
            info, *routes = await asyncio.gather(asked, *map(self._route, topics))
            table = Table(brokers=_brokers(info), routes=dict(_known(zip(topics, routes, strict=True))))
        except RocketMQError as exc:
            self._log.debug("a poll of %s failed: %s", self._address, exc)
        return Poll(began_ms, self._clock.monotonic_s() * 1000.0, table)

    async def keep_polling(
        self, polled: Callable[[float, float, Table | None], object], period_s: float = PERIOD_S
    ) -> None:
        """Poll periodically until cancelled. `polled` gets each result. If a poll takes longer than the period, the
        next poll begins at once."""
        due_s = self._clock.monotonic_s()
        while True:
            polled(*await self.poll())
            due_s = max(due_s + period_s, self._clock.monotonic_s())
            await self._clock.sleep(due_s - self._clock.monotonic_s())

    async def close(self) -> None:
        await self._client.close()

    async def _route(self, topic: str) -> RemotingCommand:
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        return await self._asked(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)

    async def _asked(self, code: RequestCode, header: Any = None) -> RemotingCommand:
        return await self._client.invoke(
            self._address, RemotingCommand.request(code, header), timeout_s=self._timeout_s
        )


def _brokers(answer: RemotingCommand) -> Mapping[str, Mapping[int, str]]:
    table = ClusterInfo.decode(answer.body).broker_addr_table if answer.body else {}
    return {name: dict(data.broker_addrs) for name, data in table.items()}


def _known(routes: Iterable[tuple[str, RemotingCommand]]) -> Iterator[tuple[str, Route | None]]:
    for topic, answer in routes:
        is_known, route = route_of(answer.code, answer.body)
        if is_known:
            yield topic, route
