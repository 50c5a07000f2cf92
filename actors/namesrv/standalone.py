"""One NameServer in this process, as `mqnamesrv` runs a NameServer: boot line on stdout, log on stderr, until a signal.

The stand-alone NameServer needs no Ray. Settings that RocketMQ reads below ROCKETMQ_HOME come from the `-c` file or do
not exist. Log lines have the form and the fixed GMT+8 of RocketMQ's namesrv.log, so programs that read namesrv.log can
read this log, too.

Upstream: `NamesrvStartup`.
"""

import logging
from dataclasses import replace
from pathlib import Path

from ...remoting.node.network import Address
from ...remoting.node.profile import Profile
from ...remoting.node.this_machine import on_this_machine
from ..processes import allow_open_files
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
from .config import NamesrvConfig
from .server import NameServer

FILES_MAX = 1_048_576
"""Each channel is an open file; the usual soft limit is 1,024."""


def run(config_file: str | None = None, listen_port: int | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status: 0, 2 for wrong settings or an unreadable KV file, 4 if
    the port is taken. A line on stderr gives the reason for 2 or 4."""
    try:
        config = load_config(config_file, listen_port)
    except ValueError as exc:
        return failed("namesrv", str(exc), BAD_CONFIG)
    with log_on_stderr("RocketmqNamesrv") as log:
        return run_until_done(_serve(config, config_file, log))


def load_config(config_file: str | None, listen_port: int | None) -> NamesrvConfig:
    """Return the settings of a `-c` file, or the defaults. Changed settings are stored in the `-c` file; without a `-c`
    file in ~/namesrv/namesrv.properties. kvConfigPath is ~/namesrv/kvConfig.json by default. Raises ValueError with one
    sentence about what is wrong."""
    config = NamesrvConfig.from_properties(read_settings(config_file), source=config_file or "properties")
    if listen_port is not None:
        config = replace(config, listen_port=listen_port)
    home = Path.home() / "namesrv"
    store_path = config_file or config.config_store_path or str(home / "namesrv.properties")
    kv_path = config.kv_config_path or str(home / "kvConfig.json")
    return replace(config, config_store_path=str(Path(store_path).absolute()), kv_config_path=kv_path)


async def _serve(config: NamesrvConfig, config_file: str | None, log: logging.Logger) -> int:
    allow_open_files(FILES_MAX)
    # On the loopback unless bindAddress says otherwise: a NameServer believes whoever reaches it.
    listen = Address(config.bind_address.strip() or LOOPBACK, config.listen_port)
    context = on_this_machine("namesrv", log)
    stop = stop_on_signal()
    try:
        server = NameServer(context, config, listen=listen)
        address = await server.listen()
    except OSError as exc:
        advice = "stop what uses the port, or choose another with --listen-port"
        return failed("namesrv", f"cannot listen on {listen}: {exc.strerror or exc}; {advice}", CANNOT_RUN)
    except ValueError as exc:
        return failed("namesrv", str(exc), BAD_CONFIG)
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
