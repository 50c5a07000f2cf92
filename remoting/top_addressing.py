"""Fetches the list of NameServers by HTTP from the address server, for clients and brokers without a configured list.

    GET http://<address>/rocketmq/nsaddr   ->   200, "10.0.0.1:9876;10.0.0.2:9876"

If a fetch fails, the error is logged, and the node keeps its list. Requests go through the node's own network, so that
a fault can cut the link to the address server, too. Upstream: `TopAddressing.fetchNSAddr`, `HttpTinyClient`,
`MQClientAPIImpl.fetchNameServerAddr`, `BrokerOuterAPI.fetchNameServerAddr`.
"""

import asyncio
from typing import cast

from .errors import ConnectError
from .node.network import Address
from .node.node import NodeContext
from .node.profile import Profile

PATH = "/rocketmq/nsaddr"
TIMEOUT_S = 3.0
FIRST_S = 10.0
CLIENT_PERIOD_S = 120.0
"""Of clients, and of brokers of 4.9: literals in Java."""
TASK = "fetchNameServerAddr"
_ANSWER_MAX = 64 * 1024


def broker_period_s(profile: Profile) -> float:
    """Return after how many seconds a broker asks the address server again: 5.x has a setting
    (`fetchNamesrvAddrInterval`), 4.9 a constant."""
    return CLIENT_PERIOD_S if profile is Profile.V4_9 else 10.0


class _Get(asyncio.Protocol):
    """One request. `answer` is all that came until the server closed."""

    def __init__(self, host: Address) -> None:
        self._request = f"GET {PATH} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()
        self._parts: list[bytes] = []
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)
        if sum(map(len, self._parts)) > _ANSWER_MAX and self.transport is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(b"".join(self._parts))


async def _first_line(context: NodeContext, server: Address) -> str | None:
    """Ask the address server. Returns the first line of its answer; without an answer, logs a line and returns None."""
    made = None
    try:
        async with context.clock.timeout(TIMEOUT_S):
            made = await context.network.connect(server, lambda: _Get(server))
            assert isinstance(made, _Get)
            answer = await made.answer
    except (ConnectError, TimeoutError) as exc:
        why = str(exc) or f"no answer within {TIMEOUT_S:g} s"
        context.log.error("fetch name server address exception %s", why)
        return None
    finally:
        if isinstance(made, _Get) and made.transport is not None:
            made.transport.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split()
    if len(status) < 2 or status[1] != b"200":
        context.log.error("fetch nameserver address failed. statusCode=%s", status[1:2])
        return None
    lines = body.decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else None


class TopAddressing:
    """Fetches the list from one address server, and reports changes of the list."""

    def __init__(self, context: NodeContext, server: Address) -> None:
        self._context, self._server = context, server
        self._last: str | None = None

    async def fetch(self) -> tuple[Address, ...] | None:
        """Return the list of NameServers if the server's answer differs from the server's last answer; else None."""
        text = await _first_line(self._context, self._server)
        if not text or text == self._last:
            return None
        try:
            addresses = tuple(Address.parse(part) for part in text.split(";") if part)
        except ValueError as exc:
            self._context.log.error("fetch name server address exception %s", exc)
            return None
        self._context.log.info("name server address changed, old=%s, new=%s", self._last, text)
        self._last = text
        return addresses
