"""One broker in this process, as `mqbroker` runs a broker: boot line on stdout, log on stderr, until a signal.

The stand-alone broker needs no Ray. Instead of ROCKETMQ_HOME and NAMESRV_ADDR, the broker reads the command line and
the `-c` file. Without brokerIP1, the broker registers the address of the machine's network interface towards the
NameServers. Upstream: `BrokerStartup`.
"""

import asyncio
import logging
from dataclasses import replace

from ...remoting.node.network import Address
from ...remoting.node.tasks import cancel_all
from ...remoting.node.this_machine import on_this_machine
from ..errors import ConfigError
from ..standalone import (
    BAD_CONFIG,
    CANNOT_RUN,
    LOOPBACK,
    OK,
    failed,
    log_on_stderr,
    read_settings,
    run_until_done,
    stop_on_signal,
)
from .commit_log import StoreError
from .config import BrokerConfig, parse_name_servers
from .server import Broker


def run(namesrv_addr: str, config_file: str | None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status: 0, 2 for wrong settings or an unreadable file of a table,
    4 if the port or the store cannot be opened. `namesrv_addr` (`host:port;host:port`), if not empty, overrides the
    settings file's list of NameServers."""
    try:
        config = load_config(namesrv_addr, config_file)
    except ValueError as exc:
        return failed("broker", str(exc), BAD_CONFIG)
    with log_on_stderr("RocketmqBroker") as log:
        return run_until_done(_serve(config, log))


def load_config(namesrv_addr: str, config_file: str | None) -> BrokerConfig:
    """Return the settings from the command line and a `-c` file. Raises ValueError with one sentence about what is
    wrong."""
    config = BrokerConfig.from_properties(read_settings(config_file), source=config_file or "properties")
    try:
        given = parse_name_servers(namesrv_addr)
    except ValueError as exc:
        raise ConfigError("command line", "-n", namesrv_addr, "host:port;host:port") from exc
    if given:
        config = replace(config, namesrv_addr=given)
    if not config.namesrv_addr:
        raise ConfigError("command line", "-n", namesrv_addr, "host:port;host:port, here or as namesrvAddr in the file")
    return config


async def _serve(config: BrokerConfig, log: logging.Logger) -> int:
    if not config.broker_ip1:
        config = replace(config, broker_ip1=await _local_host(config.namesrv_addr[0]))
    listen = Address(config.bind_address.strip() or config.broker_ip1, config.listen_port)
    stop = stop_on_signal()
    broker = Broker(on_this_machine(config.broker_name, log), config, listen=listen, vip=True)
    try:
        await broker.listen()
    except StoreError as exc:
        return failed("broker", f"{exc}; stop what uses it, or choose another with storePathRootDir", CANNOT_RUN)
    except OSError as exc:
        advice = "stop what uses the port, or choose another with listenPort in the -c file"
        return failed("broker", f"cannot listen on {listen}: {exc.strerror or exc}; {advice}", CANNOT_RUN)
    except ValueError as exc:
        return failed("broker", str(exc), BAD_CONFIG)
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
        await cancel_all((starting, stopping))
        await broker.stop()
    return OK


async def _local_host(peer: Address) -> str:
    """This machine's address on the route to `peer`; the loopback address if there is no route. Nothing is sent."""
    try:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(peer.host, peer.port or 9)
        )
    except OSError:
        return LOOPBACK
    host = str(transport.get_extra_info("sockname")[0])
    transport.close()
    return host
