"""A log file for each node of a virtual run, with virtual times, so that logs repeat byte for byte."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from ....actors.actor import LOG_FORMAT, NodeSpec
from ....remoting.node.clock import Clock


class _VirtualTime(logging.Formatter):
    def __init__(self, clock: Clock) -> None:
        super().__init__(LOG_FORMAT)
        self._clock = clock

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        seconds, ms = divmod(self._clock.now_ms(), 1000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S},{ms:03d}"


def node_logger(spec: NodeSpec, clock: Clock) -> tuple[logging.Logger, Callable[[], None]]:
    """The node's logger, known to nobody else, and what closes its file."""
    log = logging.Logger(f"nemesrv.{spec.name}", logging.INFO)
    if spec.log_file is None:
        log.addHandler(logging.NullHandler())
        return log, lambda: None
    spec.log_file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.StreamHandler(spec.log_file.open("a", encoding="utf-8"))
    handler.setFormatter(_VirtualTime(clock))
    handler.flush = lambda: None  # type: ignore[method-assign]  # a flush for each line would cost more than the run
    log.addHandler(handler)

    def close() -> None:
        log.removeHandler(handler)
        handler.stream.close()

    return log, close
