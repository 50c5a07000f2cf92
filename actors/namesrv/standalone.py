"""One NameServer in this process, as `mqnamesrv` runs one: boot line on stdout, log on stderr, until a signal.

No Ray, and no environment: what upstream takes from ROCKETMQ_HOME it takes from the `-c` file or not at all. The log
has the line shape and the fixed GMT+8 of RocketMQ's own namesrv.log, so whatever reads that file reads this stream.

Upstream: `NamesrvStartup`.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

from ...remoting.clock import RealClock
from ...remoting.network import Address, TcpNetwork
from ...remoting.node import NodeContext
from ...remoting.profile import Profile
from ...remoting.properties import parse_properties
from .config import ConfigError, NamesrvConfig
from .server import NameServer

CONFIG_MAX = 1024 * 1024
LOOPBACK = "127.0.0.1"
"""Where it listens unless bindAddress says otherwise: a NameServer believes whoever reaches it."""

FILES_MAX = 1_048_576

OK, BAD_CONFIG, CANNOT_RUN = 0, 2, 4
"""Exit statuses; what failed is one line on stderr."""

_LEVELS = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_GMT_8 = timezone(timedelta(hours=8))


class _LogLine(logging.Formatter):
    """`2026-11-20 20:17:34 INFO main - text`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s main - %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.levelname = _LEVELS.get(record.levelno, record.levelname)
        return super().format(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, _GMT_8).strftime("%Y-%m-%d %H:%M:%S")


def run(config_file: str | None = None, listen_port: int | None = None) -> int:
    """Serve until SIGTERM or SIGINT, then 0. 2: wrong settings; 4: the port cannot be had; one line says why."""
    try:
        config = load_config(config_file, listen_port)
    except ValueError as exc:
        return _failed(str(exc), BAD_CONFIG)
    log = logging.getLogger("RocketmqNamesrv")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogLine())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_serve(config, config_file, log))
    finally:
        log.removeHandler(handler)


def load_config(config_file: str | None, listen_port: int | None) -> NamesrvConfig:
    """The settings of a `-c` file (or none), with RocketMQ's own places for files. ValueError is one clear sentence."""
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
    config = NamesrvConfig.from_properties(properties, source=config_file or "properties")
    if listen_port is not None:
        if not 0 <= listen_port <= 65535:
            raise ConfigError("command line", "--listen-port", str(listen_port), "a port from 0 to 65535")
        config = replace(config, listen_port=listen_port)
    home = Path.home() / "namesrv"
    store_path = config_file or config.config_store_path or str(home / "namesrv.properties")
    kv_path = config.kv_config_path or str(home / "kvConfig.json")
    return replace(config, config_store_path=str(Path(store_path).absolute()), kv_config_path=kv_path)


async def _serve(config: NamesrvConfig, config_file: str | None, log: logging.Logger) -> int:
    _allow_many_files()
    listen = Address(config.bind_address.strip() or LOOPBACK, config.listen_port)
    context = NodeContext(name="namesrv", clock=RealClock.starting_now(), network=TcpNetwork(), rng=Random(), log=log)
    server = NameServer(context, config, listen=listen)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    log.setLevel(logging.WARNING)  # nothing of a start that fails is worth a line but its reason
    try:
        address = await server.listen()
    except OSError as exc:
        advice = "stop what uses the port, or choose another with --listen-port"
        return _failed(f"cannot listen on {listen}: {exc.strerror or exc}; {advice}", CANNOT_RUN)
    except ValueError as exc:
        return _failed(str(exc), BAD_CONFIG)
    log.setLevel(logging.INFO)
    for line in config.unknown_key_lines(config_file or "properties"):
        log.warning("%s", line)
    for key, value in config.properties().items():
        log.info("%s=%s", key, value)
    try:
        await server.start()
        boot = "The Name Server boot success. serializeType=JSON"
        if config.profile is Profile.V5_X:
            boot += f", address {address}"
        log.info("%s", boot)
        print(boot, flush=True)
        await stop.wait()
    finally:
        await server.stop()
    return OK


def _allow_many_files() -> None:
    """A channel is a file: take as many as the system lets this process have (the usual soft limit is 1,024)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _failed(why: str, status: int) -> int:
    print(f"nemesrv namesrv: {' '.join(why.split())}", file=sys.stderr)
    return status
