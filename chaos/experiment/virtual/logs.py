"""A log file for each node of a virtual run, with virtual times, so that logs repeat byte for byte."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from ....actors.actor import LOG_FORMAT, NodeSpec
from ....remoting.node.clock import Clock


class _VirtualTime(logging.Formatter):
    def __init__(self, clock: Clock) -> None:
        super().__init__(LOG_FORMAT)
        self._clock = clock

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        seconds, ms = divmod(self._clock.now_ms(), 1000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S},{ms:03d}"


class _File(logging.StreamHandler[TextIO]):
    """A full disk costs lines of the log and nothing else: the run itself says so once, and not each line."""

    def flush(self) -> None:
        """Not for each line: that would cost more than the run."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError | ValueError):  # ValueError: written after the file was closed
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):
            self.stream.close()
        super().close()


def node_logger(spec: NodeSpec, clock: Clock) -> tuple[logging.Logger, Callable[[], None]]:
    """The node's logger, known to nobody else, and what closes its file."""
    log = logging.Logger(f"nemesrv.{spec.name}", logging.INFO)
    if spec.log_file is None:
        log.addHandler(logging.NullHandler())
        return log, lambda: None
    spec.log_file.parent.mkdir(parents=True, exist_ok=True)
    handler = _File(spec.log_file.open("a", encoding="utf-8"))
    handler.setFormatter(_VirtualTime(clock))
    log.addHandler(handler)

    def close() -> None:
        log.addHandler(logging.NullHandler())  # a logger without any writes to stderr
        log.removeHandler(handler)
        handler.close()

    return log, close
