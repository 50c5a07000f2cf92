"""What enableSlaveActingMaster (5.x) adds to a broker: a heartbeat every second, and the broker learns its group's
members.

    904   oneway to every NameServer, each brokerHeartbeatInterval (1 s, first after 1 s): what is registered stays, and
          nothing is registered by it
    901   each second, of the first NameServer that answers: which ids the group has
    905   a NameServer says that the least of them has changed, where it is told to (notifyMinBrokerIdChanged)

A slave whose master has left the group stops copying the master's tables. The slave copies from a new master at once.
With enableRemoteEscape (off by default), Apache's slave with the smallest id also delivers delayed messages and checks
transactions through another master; this broker's slaves do not. Upstream: `BrokerController.sendHeartbeat`,
`syncBrokerMemberGroup`, `updateMinBroker`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence

from ...remoting.bodies.route import GetBrokerMemberGroupResponseBody
from ...remoting.codes import MASTER_ID, RequestCode
from ...remoting.command import RemotingCommand, success
from ...remoting.connection import Connection
from ...remoting.errors import RocketMQError
from ...remoting.headers.namesrv import (
    BrokerHeartbeatRequestHeader,
    GetBrokerMemberGroupRequestHeader,
    NotifyMinBrokerIdChangeRequestHeader,
)
from ...remoting.node.network import Address
from ...remoting.transport import RemotingClient
from .services import Services

TASK = "sendHeartbeat"
"""The name of a round of 904 heartbeats in the history."""
FIRST_S = 1.0
SYNC_S = 1.0
NAMED_S = 10.0
HEARTBEAT_TIMEOUT_S = 1.0
CALL_TIMEOUT_S = 3.0


class MemberGroup:
    """The group of brokers with this broker's name. `changed(master)` is called with the master's address when the
    group's smallest broker id changes. `master` is None if the group has no master."""

    def __init__(
        self,
        services: Services,
        client: RemotingClient,
        targets: Callable[[], Sequence[Address]],
        changed: Callable[[Address | None], None],
    ) -> None:
        self._services, self._client, self._targets, self._changed = services, client, targets, changed
        self._min_id = MASTER_ID
        self._beats: dict[Address, asyncio.Task[None]] = {}
        self._named: dict[Address, tuple[Mapping[int, str], float]] = {}

    async def run(self) -> None:
        """Send heartbeats and ask NameServers for the group's members, until the broker ends."""
        try:
            await asyncio.gather(
                self._at_a_rate(lambda: self._services.config.broker_heartbeat_interval / 1000, self._beat_all),
                self._at_a_rate(lambda: SYNC_S, self._synchronize),
            )
        finally:
            for beat in self._beats.values():
                beat.cancel()

    async def _at_a_rate(
        self, period_s: Callable[[], float], work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        clock = self._services.context.clock
        due_s = clock.monotonic_s() + FIRST_S
        while True:
            await clock.sleep(max(0.0, due_s - clock.monotonic_s()))
            due_s += period_s()
            await work()

    async def _beat_all(self) -> None:
        """Send a heartbeat to every connected NameServer without waiting."""
        for target in self._targets():
            under_way = self._beats.get(target)
            if under_way is None or under_way.done():
                self._beats[target] = asyncio.create_task(self._beat(target))
        self._services.context.record("scheduled_task", f=TASK, duration_ms=0.0)

    async def _beat(self, target: Address) -> None:
        config = self._services.config
        header = BrokerHeartbeatRequestHeader(
            cluster_name=config.cluster_name, broker_addr=str(self._services.address), broker_name=config.broker_name
        )
        try:
            request = RemotingCommand.request(RequestCode.BROKER_HEARTBEAT, header)
            await self._client.oneway(target, request, timeout_s=HEARTBEAT_TIMEOUT_S)
        except RocketMQError as exc:
            self._services.context.log.error("sendHeartbeat Exception %s: %s", target, exc)

    async def _synchronize(self) -> None:
        config = self._services.config
        header = GetBrokerMemberGroupRequestHeader(cluster_name=config.cluster_name, broker_name=config.broker_name)
        for target in self._targets():
            request = RemotingCommand.request(RequestCode.GET_BROKER_MEMBER_GROUP, header)
            try:
                response = success(await self._client.invoke(target, request, timeout_s=CALL_TIMEOUT_S))
                members = GetBrokerMemberGroupResponseBody.decode(response.body).broker_member_group.broker_addrs
            except RocketMQError as exc:
                self._services.context.log.error("syncBrokerMemberGroup from namesrv failed, %s", exc)
                continue
            self._record(target, members)
            if members:
                least = min(members)
                self._update(least, members[least])
            return

    def _record(self, target: Address, members: Mapping[int, str]) -> None:
        """Record a NameServer's answer that has changed, or that is the first in some time."""
        now_s = self._services.context.clock.monotonic_s()
        before, at_s = self._named.get(target, (None, 0.0))
        if members != before or now_s - at_s >= NAMED_S:
            self._named[target] = members, now_s
            named = {str(id_): address for id_, address in members.items()}
            self._services.context.record("members_named", name_server=str(target), value=named)

    def notified(self, _: Connection, request: RemotingCommand) -> None:
        """Handle the oneway request NOTIFY_MIN_BROKER_ID_CHANGE (905)."""
        header = NotifyMinBrokerIdChangeRequestHeader.from_ext_fields(request.ext_fields)
        self._services.context.log.warning("min broker id changed, prev %s, new %s", self._min_id, header.min_broker_id)
        if header.min_broker_id is not None and header.min_broker_addr:
            self._update(header.min_broker_id, header.min_broker_addr)

    def _update(self, min_id: int, address: str) -> None:
        config = self._services.config
        if not (config.acts_as_master and config.is_slave) or min_id == self._min_id:
            return
        self._services.context.log.info("Min broker changed, old: %d, new %d-%s", self._min_id, min_id, address)
        self._min_id = min_id
        self._changed(Address.parse(address) if min_id == MASTER_ID else None)
