"""A slave's copy of its master's commit log, byte for byte at the same offsets.

    slave   FETCH_COMMIT_LOG from the end of its own log ─►  master   whole records from there, as they stand in its
            appends, indexes, asks again                  ◄─          log; where there are none, once there are, or 5 s

A slave's request names the end offset of the slave's copy; a SYNC_MASTER then answers the sends of messages below this
offset. Apache's brokers copy the log over a separate port (10912) and protocol. Here a slave copies the log by a
request on the broker's ordinary port, with Apache's time limits. If a slave's log differs from the beginning of the
master's log, the slave copies nothing and logs this every 5 s, as Apache's does. Upstream: `DefaultHAService`,
`DefaultHAConnection`, `DefaultHAClient`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ...remoting.bodies.admin import HAClientRuntimeInfo, HAConnectionRuntimeInfo, HARuntimeInfo
from ...remoting.codes import ResponseCode
from ...remoting.command import RemotingCommand, success
from ...remoting.errors import RocketMQError
from ...remoting.headers.fields import HeaderFields
from ...remoting.node.network import Address
from ...remoting.transport import Connection, RemotingClient
from .commit_log import StoreError
from .services import Services, refuse

FETCH_COMMIT_LOG = 10_912
"""No code of RocketMQ's: the number of the port where its brokers do this."""
BATCH_BYTES = 32 * 1024
HOLD_S = 5.0
"""How long a master that has nothing new waits before it says so (`haSendHeartbeatInterval`)."""
HOUSEKEEPING_S = 20.0
"""After so long without a word master and slave give each other up (`haHousekeepingInterval`)."""
RETRY_S = 5.0
FALL_BEHIND_MAX = 256 << 20
"""A SYNC_MASTER does not wait for a slave that lacks more bytes than this (`haSlaveFallbehindMax`)."""
SYNC_TIMEOUT_S = 5.0
"""`syncFlushTimeout`"""


class FetchCommitLogRequestHeader(HeaderFields):
    broker_name: str
    broker_id: int
    offset: int
    """The end of the slave's log."""


class FetchCommitLogResponseHeader(HeaderFields):
    max_offset: int
    """The end of the master's log."""


@dataclass(slots=True)
class Flow:
    """The number of bytes copied in the last whole second. Upstream: `FlowMonitor`."""

    second: int = 0
    now: int = 0
    last: int = 0

    def add(self, count: int, at_s: float) -> None:
        self.now = self.of(at_s)[0] + count

    def in_second(self, at_s: float) -> int:
        return self.of(at_s)[1]

    def of(self, at_s: float) -> tuple[int, int]:
        """Return how many bytes were copied so far in the second of `at_s`, and how many in the second before."""
        if (second := int(at_s)) != self.second:
            self.last = self.now if second == self.second + 1 else 0
            self.second, self.now = second, 0
        return self.now, self.last


@dataclass(slots=True)
class _Slave:
    """What a master knows of one slave, which it recognizes by the channel."""

    address: Address
    offset: int
    seen_s: float
    sent: Flow = field(default_factory=lambda: Flow())
    waits: asyncio.Future[RemotingCommand | None] | None = None


class LogServing:
    """The master's part of copying the commit log to slaves."""

    def __init__(self, services: Services, copying: LogCopying) -> None:
        """`copying` is the slave's side of the same broker."""
        self._services, self._copying = services, copying
        self._slaves: dict[int, _Slave] = {}
        self._copied: list[tuple[int, asyncio.Future[bool]]] = []

    def fetch(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | asyncio.Future[RemotingCommand | None]:
        """Answer a slave with the commit log from the slave's offset on. Returns a future of the answer if the log has
        nothing new."""
        services = self._services
        header = FetchCommitLogRequestHeader.from_ext_fields(request.ext_fields)
        if services.config.is_slave or header.broker_name != services.config.broker_name:
            return refuse(ResponseCode.SYSTEM_ERROR, f"{services.config.broker_name} here is no master of yours")
        slave = self._slaves.setdefault(connection.id, _Slave(connection.remote_address, header.offset, 0.0))
        slave.offset, slave.seen_s = header.offset, services.context.clock.monotonic_s()
        self._acknowledge()
        if header.offset < services.store.max_physical_offset:
            return self._answer(slave)
        slave.waits = asyncio.get_running_loop().create_future()
        services.context.clock.call_later(HOLD_S, self._over, slave, slave.waits)
        return slave.waits

    def status(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 907: how many bytes each slave is behind this master; on a slave, how far the slave has copied."""
        services = self._services
        if services.config.is_slave:
            info = HARuntimeInfo(master=False, ha_client_runtime_info=self._copying.status())
            return RemotingCommand.response(body=info.encode())
        now_s, end = services.context.clock.monotonic_s(), services.store.max_physical_offset
        slaves = tuple(
            HAConnectionRuntimeInfo(
                addr=str(slave.address),
                slave_ack_offset=slave.offset,
                diff=end - slave.offset,
                in_sync=now_s - slave.seen_s <= HOUSEKEEPING_S and end - slave.offset < FALL_BEHIND_MAX,
                transferred_byte_in_second=slave.sent.in_second(now_s),
                transfer_from_where=slave.offset,
            )
            for slave in self._slaves.values()
        )
        info = HARuntimeInfo(
            master=True,
            master_commit_log_max_offset=end,
            in_sync_slave_nums=sum(slave.in_sync for slave in slaves),
            ha_connection_info=slaves,
        )
        return RemotingCommand.response(body=info.encode())

    def appended(self) -> None:
        """Answer the waiting slaves, because the log has grown."""
        for slave in self._slaves.values():
            if slave.waits is not None and not slave.waits.done():
                waits, slave.waits = slave.waits, None
                waits.set_result(self._answer(slave))

    def connection_lost(self, connection: Connection) -> None:
        slave = self._slaves.pop(connection.id, None)
        if slave is not None and slave.waits is not None and not slave.waits.done():
            slave.waits.set_result(None)

    def stop(self) -> None:
        """Stop answering slaves, and end every send's wait for a slave."""
        for slave in self._slaves.values():
            if slave.waits is not None and not slave.waits.done():
                slave.waits.set_result(None)
        self._slaves.clear()
        for _, copied in self._copied:
            _settle(copied, False)

    async def copied(self, end: int) -> ResponseCode:
        """Wait until a slave has the log up to `end`. Returns SUCCESS, FLUSH_SLAVE_TIMEOUT or, without waiting,
        SLAVE_NOT_AVAILABLE."""
        clock = self._services.context.clock
        now_s = clock.monotonic_s()
        there = [slave for slave in self._slaves.values() if now_s - slave.seen_s <= HOUSEKEEPING_S]
        if not any(end - slave.offset < FALL_BEHIND_MAX for slave in there):
            return ResponseCode.SLAVE_NOT_AVAILABLE
        if any(slave.offset >= end for slave in there):
            return ResponseCode.SUCCESS
        copied: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._copied.append((end, copied))
        timer = clock.call_later(SYNC_TIMEOUT_S, _settle, copied, False)
        try:
            return ResponseCode.SUCCESS if await copied else ResponseCode.FLUSH_SLAVE_TIMEOUT
        finally:
            timer.cancel()
            self._copied = [one for one in self._copied if one[1] is not copied]

    def _acknowledge(self) -> None:
        has = max(slave.offset for slave in self._slaves.values())
        for end, copied in self._copied:
            if end <= has:
                _settle(copied, True)

    def _answer(self, slave: _Slave) -> RemotingCommand:
        store = self._services.store
        header = FetchCommitLogResponseHeader(max_offset=store.max_physical_offset)
        body = store.records(slave.offset, BATCH_BYTES)
        slave.sent.add(len(body), self._services.context.clock.monotonic_s())
        return RemotingCommand.response(header=header, body=body)

    def _over(self, slave: _Slave, waits: asyncio.Future[RemotingCommand | None]) -> None:
        if not waits.done():
            slave.waits = None
            waits.set_result(self._answer(slave))


def _settle(copied: asyncio.Future[bool], is_copied: bool) -> None:
    if not copied.done():
        copied.set_result(is_copied)


class LogCopying:
    """The slave's part of copying the commit log. `told(topic, queue_id)` is called after messages of that queue were
    copied."""

    def __init__(self, services: Services, client: RemotingClient, told: Callable[[str, int], None]) -> None:
        self._services, self._client, self._told = services, client, told
        self._master: Address | None = None
        self._found = asyncio.Event()
        self._came, self._read_ms, self._asked_ms = Flow(), 0, 0

    def status(self) -> HAClientRuntimeInfo:
        """What `mqadmin haStatus` shows of a slave."""
        services = self._services
        return HAClientRuntimeInfo(
            master_addr=None if self._master is None else str(self._master),
            transferred_byte_in_second=self._came.in_second(services.context.clock.monotonic_s()),
            max_offset=services.store.max_physical_offset,
            last_read_timestamp=self._read_ms,
            last_write_timestamp=self._asked_ms,
            activated=self._read_ms > 0,
        )

    def follow(self, master: Address) -> None:
        self._master = master
        self._found.set()

    async def run(self) -> None:
        clock, log = self._services.context.clock, self._services.context.log
        last: Address | None = None
        await self._found.wait()
        while True:
            master = self._master
            assert master is not None
            if master != last:
                self._services.context.record("copies", address=str(master))
                last = master
            try:
                if await self._copy(master):
                    continue
            except RocketMQError as exc:
                log.warning("HAClient, copying from master %s: %s", master, exc)
            except StoreError as exc:
                log.error("HAClient, what master %s sent cannot be appended: %s", master, exc)
            await clock.sleep(RETRY_S)

    async def _copy(self, master: Address) -> bool:
        """Ask once, and append what comes. Returns whether the log continues the master's. Raises RocketMQError,
        StoreError."""
        services, store = self._services, self._services.store
        at = store.max_physical_offset
        header = FetchCommitLogRequestHeader(
            broker_name=services.config.broker_name, broker_id=services.config.broker_id, offset=at
        )
        request = RemotingCommand.request(FETCH_COMMIT_LOG, header)
        self._asked_ms = services.now_ms
        response = success(await self._client.invoke(master, request, timeout_s=HOUSEKEEPING_S))
        self._read_ms = services.now_ms
        self._came.add(len(response.body), services.context.clock.monotonic_s())
        end = FetchCommitLogResponseHeader.from_ext_fields(response.ext_fields).max_offset
        if end < at:
            services.context.log.error("master pushed offset not equal the max phy offset in slave: %d, %d", end, at)
            return False
        if end > at and not response.body:
            raise StoreError(f"no record of the master's begins at {at}")
        for topic, queue_id in store.copy(response.body):
            self._told(topic, queue_id)
        return True
