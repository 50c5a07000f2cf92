"""What `nemesrv watch` costs: `python -m tests.operations.cluster.cost --brokers 100 --topics 10000`.

Three NameServers and the brokers are real ones in this process; the watch is a process of its own, whose CPU time is
read at the end of each of `--until`'s times. Its start, imports included, is in the first.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.node.node import NodeContext

NAME_SERVERS = 3
REPLICAS = 10
"""So many brokers have each topic."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Cost:
    until_s: float
    """Since the watch began."""
    cpu_s: float


async def cluster(folder: Path, brokers: int, topics: int) -> list[Address]:
    """Its NameServers; the servers live as long as the process."""
    listed: list[Address] = []
    for number in range(NAME_SERVERS):
        server = NameServer(_context(folder, f"ns-{number}"), NamesrvConfig(), listen=Address("127.0.0.1", 0))
        listed.append(await server.listen())
        await server.start()
    for number in range(brokers):
        name = f"broker-{number}"
        config = BrokerConfig(broker_name=name, namesrv_addr=tuple(listed))
        broker = Broker(_context(folder, name), config, listen=Address("127.0.0.1", 0))
        await broker.listen()
        own = (topic for topic in range(topics) if (number - topic) % brokers < REPLICAS)
        broker.have_topics({f"topic-{topic}": 8 for topic in own})
        await broker.start()
    return listed


def _context(folder: Path, name: str) -> NodeContext:
    (folder / name).mkdir()
    return NodeContext(
        name=name,
        clock=RealClock.starting_now(),
        network=TcpNetwork(),
        rng=random.Random(name),
        data_dir=folder / name,
    )


async def measured(
    name_servers: Sequence[Address], options: Sequence[str], until_s: Sequence[float]
) -> AsyncIterator[Cost]:
    listed = ";".join(map(str, name_servers))
    command = [sys.executable, "-m", "nemesrv.chaos", "watch", "-n", listed, *options]
    loop = asyncio.get_running_loop()
    with subprocess.Popen(command, stdout=sys.stderr) as program:  # noqa: ASYNC220 - once, before anything is measured
        try:
            began_s = loop.time()
            for until in until_s:
                await asyncio.sleep(began_s + until - loop.time())
                yield Cost(until, _cpu_s(program.pid))
        finally:
            program.terminate()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def line_of(one: Cost, before: Cost) -> str:
    """From when to when, and what share of a core."""
    cpu_s, lasted_s = one.cpu_s - before.cpu_s, one.until_s - before.until_s
    share = 100 * cpu_s / lasted_s
    return f"{before.until_s:.0f} to {one.until_s:.0f} s: {cpu_s:.2f} s of CPU, {share:.2f} % of a core"


async def _main(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place:
        name_servers = await cluster(Path(place), options.brokers, options.topics)
        before = Cost(0.0, 0.0)
        async for one in measured(name_servers, options.options, options.until):
            print(line_of(one, before), flush=True)
            before = one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--until", type=float, nargs="+", default=[180.0, 300.0], help="seconds, one after the other")
    parser.add_argument("options", nargs="*", help="of the watch")
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
