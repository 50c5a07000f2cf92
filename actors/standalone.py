"""What the stand-alone NameServer and broker share: settings file, log lines, signals, event loop, exit statuses."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from ..remoting.properties import parse_properties
from .config_error import ConfigError

CONFIG_MAX = 1024 * 1024

OK, BAD_CONFIG, CANNOT_RUN = 0, 2, 4
"""Exit statuses; what failed is one line on stderr."""

LOOPBACK = "127.0.0.1"

_LEVELS = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_GMT_8 = timezone(timedelta(hours=8))


class LogLine(logging.Formatter):
    """`2026-11-20 20:17:34 INFO main - text`, in GMT+8 wherever it is, as RocketMQ's own server logs have it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s main - %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.levelname = _LEVELS.get(record.levelno, record.levelname)
        return super().format(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, _GMT_8).strftime("%Y-%m-%d %H:%M:%S")


def read_settings(config_file: str | None) -> dict[str, str]:
    """The properties of a `-c` file, none without one. ValueError names the file and what is wrong with it."""
    if config_file is None:
        return {}
    try:
        with open(config_file, "rb") as file:
            content = file.read(CONFIG_MAX + 1)
        if len(content) > CONFIG_MAX:
            raise ValueError(f"it is longer than {CONFIG_MAX} B")
        return parse_properties(content)
    except OSError as exc:
        raise ValueError(f"{config_file}: cannot be read: {exc.strerror or exc}") from exc
    except ValueError as exc:
        raise ValueError(f"{config_file}: {exc}") from exc


def checked_port(listen_port: int) -> int:
    """The port of the command line. ConfigError when it is none."""
    if not 0 <= listen_port <= 65535:
        raise ConfigError("command line", "--listen-port", str(listen_port), "a port from 0 to 65535")
    return listen_port


@contextmanager
def log_on_stderr(name: str) -> Iterator[logging.Logger]:
    """RocketMQ's logger of that name, its lines on stderr. Warnings only, until its owner says that it runs."""
    log = logging.getLogger(name)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine())
    log.addHandler(handler)
    log.setLevel(logging.WARNING)  # nothing of a start that fails is worth a line but its reason
    log.propagate = False
    try:
        yield log
    finally:
        log.removeHandler(handler)


def run_until_done(serve: Coroutine[Any, Any, int]) -> int:
    """What `serve` returns, on uvloop where it is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(serve)


def stop_on_signal() -> asyncio.Event:
    """Set at the first SIGTERM or SIGINT."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def failed(command: str, why: str, status: int) -> int:
    """`status`, after one line on stderr."""
    print(f"nemesrv {command}: {' '.join(why.split())}", file=sys.stderr)
    return status


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
