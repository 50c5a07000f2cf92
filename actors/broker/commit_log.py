"""The commit log: one growing sequence of bytes, divided into files. A file's name is the offset of its first byte.

    00000000000000000000   records, then a filler      exactly file_size bytes
    00000000001073741824   records                     as long as what was appended

This module appends, reads, and cuts off an incomplete last record. Only one process can open the log. store.py defines
the records. A commit-log file of this broker grows with each record; RocketMQ gives each file its full size at once.
Upstream: `MappedFileQueue`, `MappedFile`.
"""

import fcntl
import os
from pathlib import Path

NAME_DIGITS = 20


class StoreError(Exception):
    """The message store cannot be used; the text says which file is the cause, and why."""


class CommitLog:
    """The open commit log under `directory`. `end` is the offset at which the next record begins."""

    def __init__(self, directory: Path, *, file_size: int) -> None:
        self.directory = directory
        self.file_size = file_size
        self.end = 0
        self._starts: list[int] = []
        self._fds: dict[int, int] = {}
        self._write_fd = -1
        self._lock_fd = -1

    def open(self) -> None:
        """Lock the commit log's folder and list its files. Raises StoreError if another process has locked the folder,
        or a file is missing."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.directory.parent / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            # A record lock: it goes with its process, however that dies, and a node rebuilt in this process gets it.
            fcntl.lockf(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            names = sorted(name for name in os.listdir(self.directory) if len(name) == NAME_DIGITS and name.isdigit())
        except BlockingIOError as exc:
            raise StoreError(f"store {self.directory.parent} is in use by another broker") from exc
        except OSError as exc:
            raise StoreError(f"store {self.directory.parent} cannot be opened: {exc.strerror or exc}") from exc
        self._starts = [int(name) for name in names]
        for before, start in zip(self._starts, self._starts[1:], strict=False):
            if start - before != self.file_size:
                raise StoreError(
                    f"commit log file {self.path(start)} does not follow {before}: files are {self.file_size} B "
                    f"(mappedFileSizeCommitLog), or one is missing"
                )
        for start in self._starts[:-1]:
            size = self.size_of(start)
            if size != self.file_size:
                raise StoreError(f"commit log file {self.path(start)} is {size} B, not {self.file_size} B")
        if self._starts:
            self.end = self._starts[-1] + self.size_of(self._starts[-1])

    @property
    def start(self) -> int:
        """The lowest offset whose bytes the log still has."""
        return self._starts[0] if self._starts else 0

    @property
    def starts(self) -> tuple[int, ...]:
        return tuple(self._starts)

    def path(self, start: int) -> Path:
        return self.directory / f"{start:0{NAME_DIGITS}d}"

    def size_of(self, start: int) -> int:
        return os.stat(self.path(start)).st_size

    @property
    def room(self) -> int:
        """Free bytes in the newest file; 0 if the next record needs a new file."""
        return self._starts[-1] + self.file_size - self.end if self._starts else 0

    def write(self, data: bytes) -> None:
        """Write `data` at the end of the newest file. After an OSError a part of `data` can be in the file."""
        fd = self._writable()
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def sync(self) -> None:
        """Make the kernel write the newest file to the disk (fsync)."""
        if self._write_fd >= 0:
            os.fsync(self._write_fd)

    def add_file(self) -> None:
        """Begin the next file; extend the previous file to its full size, as its last (filler) record declares."""
        if self._starts:
            os.ftruncate(self._writable(), self.file_size)
            self._close_writable()
            self.end = self._starts[-1] + self.file_size
        fd = os.open(self.path(self.end), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._starts.append(self.end)
        self._write_fd = fd

    def cut(self, end: int) -> None:
        """Truncate the newest file at the log offset `end`. Raises OSError."""
        os.ftruncate(self._writable(), end - self._starts[-1])
        self.end = end

    def fill_up(self) -> None:
        """Extend the newest file to its full size. Recovery calls `fill_up` if the process died after writing the
        filler record and before extending the file."""
        os.ftruncate(self._writable(), self.file_size)
        self.end = self._starts[-1] + self.file_size

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on, not beyond the end of the file that contains `offset`."""
        if not self._starts or offset < self._starts[0] or offset >= self.end:
            return b""
        start = self._starts[0] + (offset - self._starts[0]) // self.file_size * self.file_size
        fd = self._fds.get(start)
        if fd is None:
            fd = self._fds[start] = os.open(self.path(start), os.O_RDONLY)
        return os.pread(fd, size, offset - start)

    def close(self) -> None:
        self._close_writable()
        for fd in (*self._fds.values(), self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._fds.clear()
        self._lock_fd = -1

    def _writable(self) -> int:
        if self._write_fd < 0:
            self._write_fd = os.open(self.path(self._starts[-1]), os.O_WRONLY | os.O_APPEND)
        return self._write_fd

    def _close_writable(self) -> None:
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1
