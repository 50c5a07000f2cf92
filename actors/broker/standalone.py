"""One broker in this process, as `mqbroker` runs one: boot line on stdout, log on stderr, until a signal.

No Ray, and no environment: what upstream takes from ROCKETMQ_HOME or NAMESRV_ADDR it takes from the command line, the
`-c` file, or not at all. Without brokerIP1 it tells NameServers the address of this machine that they are reached from.
Upstream: `BrokerStartup`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from ...remoting.clock import RealClock
from ...remoting.network import Address, TcpNetwork
from ...remoting.node import NodeContext
from ...remoting.properties import parse_properties
from .config import BrokerConfig, ConfigError, parse_name_servers
from .server import Broker
from .store import StoreError

CONFIG_MAX = 1024 * 1024

OK, BAD_CONFIG, CANNOT_RUN = 0, 2, 4
"""Exit statuses; what failed is one line on stderr."""

_GMT_8 = timezone(timedelta(hours=8))


class _LogLine(logging.Formatter):
    """`2026-11-20 20:17:34 INFO main - text`, as RocketMQ's broker.log has it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s main - %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.levelname = "WARN" if record.levelno == logging.WARNING else record.levelname
        return super().formatMessage(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, _GMT_8).strftime("%Y-%m-%d %H:%M:%S")


def run(namesrv_addr: str, config_file: str | None, listen_port: int | None = None) -> int:
    """Serve until SIGTERM or SIGINT, then 0. 2: wrong settings; 4: the port or the store cannot be had.

    `namesrv_addr` is `host:port;host:port` and comes before the file's; empty leaves the file's.
    """
    try:
        config = load_config(namesrv_addr, config_file, listen_port)
    except ValueError as exc:
        return _failed(str(exc), BAD_CONFIG)
    log = logging.getLogger("RocketmqBroker")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogLine())
    log.addHandler(handler)
    log.propagate = False
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_serve(config, log))
    finally:
        log.removeHandler(handler)


def load_config(namesrv_addr: str, config_file: str | None, listen_port: int | None) -> BrokerConfig:
    """The settings of the command line and a `-c` file. ValueError is one clear sentence."""
    properties: dict[str, str] = {}
    if config_file is not None:
        try:
            with open(config_file, "rb") as file:
                content = file.read(CONFIG_MAX + 1)
            if len(content) > CONFIG_MAX:
                raise ValueError(f"it is longer than {CONFIG_MAX} B")
            properties = parse_properties(content)
        except OSError as exc:
            raise ValueError(f"{config_file}: cannot be read: {exc.strerror or exc}") from exc
        except ValueError as exc:
            raise ValueError(f"{config_file}: {exc}") from exc
    config = BrokerConfig.from_properties(properties, source=config_file or "properties")
    try:
        given = parse_name_servers(namesrv_addr)
    except ValueError as exc:
        raise ConfigError("command line", "-n", namesrv_addr, "host:port;host:port") from exc
    if given:
        config = replace(config, namesrv_addr=given)
    if not config.namesrv_addr:
        raise ConfigError("command line", "-n", namesrv_addr, "host:port;host:port, here or as namesrvAddr in the file")
    if listen_port is not None:
        if not 0 <= listen_port <= 65535:
            raise ConfigError("command line", "--listen-port", str(listen_port), "a port from 0 to 65535")
        config = replace(config, listen_port=listen_port)
    return config


async def _serve(config: BrokerConfig, log: logging.Logger) -> int:
    if not config.broker_ip1:
        config = replace(config, broker_ip1=await _local_host(config.namesrv_addr[0]))
    listen = Address("0.0.0.0", config.listen_port)
    context = NodeContext(
        name=config.broker_name, clock=RealClock.starting_now(), network=TcpNetwork(), rng=random.Random(), log=log
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    log.setLevel(logging.WARNING)  # nothing of a start that fails is worth a line but its reason
    broker = Broker(context, config, listen=listen)
    try:
        await broker.listen()
    except StoreError as exc:
        return _failed(f"{exc}; stop what uses it, or choose another with storePathRootDir", CANNOT_RUN)
    except OSError as exc:
        advice = "stop what uses the port, or choose another with listenPort in the -c file"
        return _failed(f"cannot listen on {listen}: {exc.strerror or exc}; {advice}", CANNOT_RUN)
    except ValueError as exc:
        return _failed(str(exc), BAD_CONFIG)
    log.setLevel(logging.INFO)
    starting = asyncio.create_task(broker.start())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            names = ";".join(map(str, config.namesrv_addr))
            print(f"{broker.boot_line} and name server is {names}", flush=True)
        await stopping
    finally:
        for task in (starting, stopping):
            task.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await broker.stop()
    return OK


async def _local_host(peer: Address) -> str:
    """The address of this machine on the way to `peer`; the loopback's when there is no way. Nothing is sent."""
    try:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(peer.host, peer.port or 9)
        )
    except OSError:
        return "127.0.0.1"
    host = str(transport.get_extra_info("sockname")[0])
    transport.close()
    return host


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _failed(why: str, status: int) -> int:
    print(f"nemesrv broker: {' '.join(why.split())}", file=sys.stderr)
    return status
