"""Makes stdout and stderr never fail, even if the reader of a pipe has ended or the encoding lacks a character.

After the reader of a pipe has ended (`| head -1`), output is dropped, so the exit status still tells the verdict. A
character that the encoding lacks becomes a question mark. (click.echo would write UTF-8 if the encoding is ASCII.)
"""

import io
import os
import sys
from typing import TextIO


class _Fd(io.FileIO):
    """A file descriptor that becomes /dev/null once nobody reads it."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes  # type: ignore[arg-type]


def use_lasting_streams() -> None:
    """Replace sys.stdout and sys.stderr by streams that never fail. A stream that is closed or was replaced before is
    not replaced."""
    sys.stdout = _lasting(sys.stdout, 1)
    sys.stderr = _lasting(sys.stderr, 2)


def _lasting(stream: TextIO | None, fd: int) -> TextIO:
    try:
        if not isinstance(stream, io.TextIOWrapper) or stream.fileno() != fd:
            return stream  # type: ignore[return-value]
    except (OSError, ValueError):  # in memory, or closed
        return stream  # type: ignore[return-value]
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Fd(fd, "wb", closefd=False)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
