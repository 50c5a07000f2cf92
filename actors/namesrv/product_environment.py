"""`clusterTest`: the NameServer of a test environment, which also answers with the routes of production's NameServers.

    105 -> our own table -> else a NameServer of production -> else code 17

With `clusterTest`, answers always have fastjson's own dialect and the order configuration; `needWaitForService` and the
route cache are not used. In 4.9, `clusterTest` changes only route look-ups (105). In 5.x, `clusterTest` treats every
request as a route look-up, so no broker can register (`ClusterTestRequestProcessor` extends the client processor
there). Production's NameServers come from `NAMESRV_ADDR` at the start, or regularly from an HTTP address server.

Upstream: `ClusterTestRequestProcessor`, `NamesrvController.registerProcessor`, `MQClientInstance.startScheduledTask`,
tags rocketmq-all-4.9.7 and rocketmq-all-5.3.3.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from ...remoting.bodies.route import TopicRouteData
from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ProtocolError, RocketMQError
from ...remoting.headers.fields import HeaderError
from ...remoting.headers.namesrv import GetRouteInfoRequestHeader
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.transport import RemotingClient
from .kv_config import ORDER_TOPIC_CONFIG
from .processor import Caller, DefaultRequestProcessor, topic_not_exist
from .route_table import filter_by_zone

CALL_TIMEOUT_S = 5.0
"""`DefaultMQAdminExtImpl.timeoutMillis`."""
FIRST_REFRESH_S, REFRESH_PERIOD_S = 10.0, 120.0

FetchAddresses = Callable[[], Awaitable[str | None]]
"""The production NameServers as host:port;host:port; None if unknown."""


class ProductEnvironment:
    """Production's NameServers. A look-up asks one NameServer after the other until one answers; the next look-up
    begins with the NameServer that answered."""

    def __init__(self, context: NodeContext, client: Callable[[], RemotingClient], fetch: FetchAddresses) -> None:
        self._context, self._client, self._fetch = context, client, fetch
        self._text: str | None = None
        self._addresses: list[Address] = []
        self._index = 0

    async def refresh(self) -> None:
        """Ask the address server for production's NameServers. If the answer is not usable, the previous list stays in
        use."""
        text = await self._fetch()
        if not text or not text.strip() or text == self._text:
            return
        try:
            addresses = [Address.parse(part) for part in text.split(";") if part.strip()]
        except ValueError as exc:
            self._context.log.error("fetchNameServerAddr Exception %s", exc)
            return
        self._context.log.info("name server address changed, old=%s, new=%s", self._text or "null", text)
        self._context.rng.shuffle(addresses)
        self._text, self._addresses, self._index = text, addresses, 0

    async def keep_refreshing(self) -> None:
        await self._context.clock.sleep(FIRST_REFRESH_S)
        while True:
            await self.refresh()
            await self._context.clock.sleep(REFRESH_PERIOD_S)

    async def route(self, topic: str) -> TopicRouteData | None:
        """Return production's route of `topic`; None if there is no route, or no answer within CALL_TIMEOUT_S."""
        addresses: Sequence[Address] = self._addresses
        until_s = self._context.clock.monotonic_s() + CALL_TIMEOUT_S
        for _ in addresses:
            address = addresses[self._index % len(addresses)]
            left_s = until_s - self._context.clock.monotonic_s()
            if left_s <= 0:
                return None
            request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            try:
                response = await self._client().invoke(address, request, timeout_s=left_s)
                found = response.code == ResponseCode.SUCCESS and response.body
                return TopicRouteData.decode(response.body) if found else None
            except ProtocolError:
                return None
            except RocketMQError:
                self._index += 1
        return None


class ClusterTestRequestProcessor(DefaultRequestProcessor):
    def __init__(self, *settings: Any, product: ProductEnvironment, **more: Any) -> None:
        super().__init__(*settings, **more)
        self._product = product

    def __call__(
        self, caller: Caller, request: RemotingCommand
    ) -> RemotingCommand | Awaitable[RemotingCommand | None] | None:
        if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC and not self._5_x:
            return super().__call__(caller, request)
        try:
            header = GetRouteInfoRequestHeader.from_ext_fields(request.ext_fields)
        except HeaderError as exc:
            return self.refused_field(exc)
        zone = header.zone_name if self._5_x and header.zone_mode else None
        if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC:
            zone = None  # the hook that filters looks at the code
        route = self._table.route(header.topic)
        if route is None:
            return self._ask_product(header.topic, zone)
        route = replace(route, order_topic_conf=self._kv.get(ORDER_TOPIC_CONFIG, header.topic))
        return self._answer(header.topic, route, zone)

    async def _ask_product(self, topic: str, zone: str | None) -> RemotingCommand:
        route = await self._product.route(topic)
        if route is None:
            name = self.config.product_env_name
            self._log.info("get route info by topic from product environment failed. envName=%s,", name)
        return self._answer(topic, route, zone)

    def _answer(self, topic: str, route: TopicRouteData | None, zone: str | None) -> RemotingCommand:
        if route is None:
            return topic_not_exist(topic, self.config.profile)
        if zone and zone.strip():
            route = filter_by_zone(route, zone)
        return RemotingCommand.response(body=route.encode(standard_json=False))
