"""Reads lines that a process writes into a pipe, in the event loop."""

import asyncio
import os
from collections.abc import Callable
from typing import IO

LINE_MAX = 1 << 20
_CHUNK = 1 << 16
_CHUNKS_MAX = 1000
"""So many are read of a pipe that another process goes on filling."""


class PipeLines:
    """Passes each line of a pipe to `line`, then closes the pipe and calls `ended`. Of a longer line only the first
    `longest` bytes are passed on."""

    def __init__(
        self,
        pipe: IO[bytes] | None,
        line: Callable[[bytes], None],
        *,
        longest: int = LINE_MAX,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        assert pipe is not None
        self._pipe, self._line, self._longest, self._ended = pipe, line, longest, ended
        self._rest = b""
        os.set_blocking(pipe.fileno(), False)
        asyncio.get_running_loop().add_reader(pipe.fileno(), self._read)

    def _read(self) -> bool:
        try:
            chunk = os.read(self._pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._end()
            return False
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[: self._longest]
        for line in lines:
            self._line(line[: self._longest])
        return True

    def _end(self) -> None:
        self.close()
        if self._rest:
            self._line(self._rest)
        self._ended()

    def drain(self) -> None:
        """Read what the pipe contains and close the pipe, even if another process can still write into the pipe."""
        for _ in range(_CHUNKS_MAX):
            if self._pipe.closed or not self._read():
                break
        if not self._pipe.closed:
            self._end()

    def close(self) -> None:
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()
