"""Parts that the stand-alone NameServer and broker share: settings file, log lines, signals, event loop, exit
statuses."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any, TextIO

from ..remoting.properties import parse_properties

CONFIG_MAX = 1024 * 1024

OK, BAD_CONFIG, CANNOT_RUN = 0, 2, 4
"""Exit statuses; what failed is one line on stderr."""

LOOPBACK = "127.0.0.1"

LINES_MAX = 1000
"""Most log lines that wait to be written."""

_LEVELS = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "ERROR",
}
_GMT_8 = timezone(timedelta(hours=8))


class LineLogger(logging.Logger):
    """Writes log lines like `2026-11-20 20:17:34 INFO main - text`, always in GMT+8, as RocketMQ's servers do. For
    speed LineLogger makes no `logging.LogRecord`, because the registration of ten thousand topics logs as many lines at
    once. All lines logged in one iteration of the event loop are written together.
    """

    def __init__(self, name: str, stream: TextIO) -> None:
        super().__init__(name)
        self._stream = stream
        self._texts: list[str] = []
        self._waiting = 0
        self._second, self._heads = -1, dict[int, str]()
        self._exceptions = logging.Formatter()

    def log(self, level: int, msg: object, *args: object, **more: Any) -> None:
        """Log as `logging.Logger.log` does, but quicker, because parent loggers and handlers are not looked up."""
        if level >= self.level and not self.disabled:
            self._log(level, msg, args, **more)

    def _log(
        self,
        level: int,
        msg: object,
        args: Any,
        exc_info: Any = None,
        extra: Mapping[str, object] | None = None,
        stack_info: bool = False,
        stacklevel: int = 1,
    ) -> None:
        text = str(msg) % args if args else str(msg)
        if exc_info:
            found = sys.exc_info() if exc_info is True else (type(exc_info), exc_info, exc_info.__traceback__)
            text = f"{text}\n{self._exceptions.formatException(found)}"
        self._wait(f"{self._head(level)}{text}\n", 1)

    def log_each(self, level: int, msg: str, items: Sequence[str], *args: object) -> None:
        """Log the same as `log(level, msg, item, *args)` for each of `items`, but quicker."""
        if level < self.level or self.disabled:
            return
        before, _, after = msg.partition("%s")
        begin, end = f"{self._head(level)}{before % ()}", f"{after % args}\n"
        for at in range(0, len(items), LINES_MAX):
            some = items[at : at + LINES_MAX]
            self._wait(f"{begin}{f'{end}{begin}'.join(some)}{end}", len(some))

    def _head(self, level: int) -> str:
        second = int(time.time())
        if second != self._second:
            shown = datetime.fromtimestamp(second, _GMT_8).strftime("%Y-%m-%d %H:%M:%S")
            self._second = second
            self._heads = {level: f"{shown} {name} main - " for level, name in _LEVELS.items()}
        return self._heads[level]

    def _wait(self, text: str, lines: int) -> None:
        """Write so many lines at the end of this turn of the event loop, or now if too many wait."""
        self._texts.append(text)
        self._waiting += lines
        if self._waiting >= LINES_MAX:
            self.flush()
        elif len(self._texts) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # no loop runs
                self.flush()

    def flush(self) -> None:
        texts, self._texts, self._waiting = self._texts, [], 0
        if texts:
            self._stream.write("".join(texts))
            self._stream.flush()


def read_settings(config_file: str | None) -> dict[str, str]:
    """Return the properties of a `-c` file; empty without a file. ValueError names the file and the mistake."""
    if config_file is None:
        return {}
    try:
        with open(config_file, "rb") as file:
            content = file.read(CONFIG_MAX + 1)
        if len(content) > CONFIG_MAX:
            raise ValueError(f"it is longer than {CONFIG_MAX} B")
        if b"\0" in content:
            raise ValueError("it is not text")
        return parse_properties(content)
    except OSError as exc:
        raise ValueError(f"{config_file}: cannot be read: {exc.strerror or exc}") from exc
    except ValueError as exc:
        raise ValueError(f"{config_file}: {exc}") from exc


@contextmanager
def log_on_stderr(name: str) -> Iterator[logging.Logger]:
    """Yield a LineLogger that writes to stderr; until the caller lowers its level, it writes only warnings."""
    log = LineLogger(name, sys.stderr)
    log.setLevel(logging.WARNING)  # nothing of a start that fails is worth a line but its reason
    try:
        yield log
    finally:
        log.flush()


def run_until_done(serve: Coroutine[Any, Any, int]) -> int:
    """Run `serve`, on uvloop if it is installed, and return its result."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(serve)


def stop_on_signal() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def failed(command: str, why: str, status: int) -> int:
    print(f"nemesrv {command}: {' '.join(why.split())}", file=sys.stderr)
    return status


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
