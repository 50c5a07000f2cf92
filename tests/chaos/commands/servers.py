"""Two NameServers and two brokers of ours on a loop in another thread, for commands that ask a live cluster."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from tenacity import retry, stop_after_delay, wait_fixed

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.node.node import NodeContext

LIMIT_S = 20.0
ANY_PORT = Address("127.0.0.1", 0)


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def row(self, *words: object) -> list[str]:
        """The words of the one line that starts with these."""
        start = list(map(str, words))
        (row,) = [row for line in self.lines if (row := line.split())[: len(start)] == start]
        return row


class Servers:
    """`name_servers` and `brokers` (in cluster `chaos`) by name, where they listen; `n` is what -n takes."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._loop = folder, asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="servers", daemon=True)
        self._thread.start()
        self.nodes: dict[str, NameServer | Broker] = {}
        self.name_servers: dict[str, Address] = {}
        self.brokers: dict[str, Address] = {}
        self.do(self._start)

    @property
    def n(self) -> str:
        return ";".join(map(str, self.name_servers.values()))

    def do(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(LIMIT_S)

    def context(self, name: str) -> NodeContext:
        return NodeContext(
            name=name,
            clock=RealClock.starting_now(),
            network=TcpNetwork(),
            rng=random.Random(name),
            data_dir=self._folder / name,
            log=logging.getLogger("tests.admin.servers"),
        )

    async def _start(self) -> None:
        for name in ("ns-0", "ns-1"):
            server = NameServer(self.context(name), NamesrvConfig(), listen=ANY_PORT)
            self.nodes[name], self.name_servers[name] = server, await server.listen()
            await server.start()
        for name in ("broker-a", "broker-b"):
            config = BrokerConfig(
                broker_name=name,
                cluster_name="chaos",
                namesrv_addr=tuple(self.name_servers.values()),
                mapped_file_size_commit_log=8 << 20,
            )
            broker = Broker(self.context(name), config, listen=ANY_PORT)
            self.nodes[name], self.brokers[name] = broker, await broker.listen()
            await broker.start()

    def close(self) -> None:
        async def stop() -> None:
            for node in reversed(self.nodes.values()):
                await node.stop()

        self.do(stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)
        self._loop.close()


Admin = Callable[..., Done]
"""A command's words to what it did."""


@retry(stop=stop_after_delay(5), wait=wait_fixed(0.02), reraise=True)
def routes(servers: Servers, topic: str, *, brokers: int) -> list[Any]:
    """Each NameServer's route once it has that many brokers; a broker announces a topic after it has answered."""

    async def look() -> list[Any]:
        return [servers.nodes[name].table.route(topic) for name in servers.name_servers]  # type: ignore[union-attr]

    found: list[Any] = servers.do(look)
    assert [0 if route is None else len(route.queue_datas) for route in found] == [brokers, brokers]
    return found


def failed(done: Done, status: int, *says: object) -> None:
    assert done.status == status, done
    assert len(done.err.splitlines()) == 1, done.err
    assert all(str(text) in done.err for text in says), done.err
