"""The small files of a broker: tables that the broker loads when it starts and writes when they have changed.

A file is replaced whole, so that a reader (or the next start) sees the old content or the new, never half.

If the process is killed while it writes, the file stays intact, and a `.tmp` file can remain. Upstream:
`ConfigManager`, which writes in place and keeps a `.bak`.
"""

import logging
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from ...remoting.bodies.route import DataVersion


def write_whole(path: Path, data: bytes) -> None:
    """Replace the content of `path` by `data`. Raises OSError, for example if the disk is full; the old content then
    stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def read_whole(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


class KeptTable(ABC):
    """A table that is saved in a file. Without a path the table is only in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._dirty = False

    @abstractmethod
    def encode(self) -> bytes:
        """Return the table as the file's content, which is also the answer's body when a slave asks for the table."""

    def kept(self) -> bytes | None:
        return None if self._path is None else read_whole(self._path)

    def persist(self) -> None:
        """Write the file if the table has changed since the last write. Raises OSError; the next call of `persist`
        tries again."""
        if self._dirty and self._path is not None:
            write_whole(self._path, self.encode())
            self._dirty = False


class VersionedTable(KeptTable):
    """A table with a version (DataVersion), which writes its file at each change."""

    what: ClassVar[str]

    def __init__(self, path: Path | None, *, now_ms: int, log: logging.Logger | None) -> None:
        super().__init__(path)
        self.data_version = DataVersion(timestamp=now_ms)
        self._log = log or logging.getLogger("nemesrv.broker")

    def touch(self, *, now_ms: int) -> None:
        self.data_version = self.data_version.next(now_ms=now_ms)
        self._dirty = True

    def _changed(self, now_ms: int) -> None:
        self.touch(now_ms=now_ms)
        try:
            self.persist()
        except OSError as exc:
            self._log.error(
                "cannot write %s: %s; %s changed since will be lost by a restart", self._path, exc, self.what
            )

    def _taken(self, version: DataVersion) -> None:
        self.data_version, self._dirty = version, True
        self.persist()
