"""Collects rows and logs from other hosts into the run folder through Ray, during the run and at its end.

    host   history/_raw/*.jsonl, logs/* ── new data, in pieces, compressed (LZ4) ──► Ray's object store ─┐
    driver one thread per host asks each FOLLOW_S ◄────────────────────────────────────────────┘
           run folder/history/_raw/*.jsonl, logs/*

If a host is lost, the rows since the host's last answer are lost, too. A `rows_missing` row has the time from which
rows are lost. Readers skip a lost host's last line if it is incomplete.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import lz4.frame

from ....actors.hosts import RemoteHost
from ....remoting.node.recording import Recorder
from ...apache.jvm import LAST_WORDS
from ...errors import HarnessError
from ...history.files import number_of, process_of

log = logging.getLogger("nemesrv.hosts")

PIECE_BYTES = 8 * 1024 * 1024
PIECES = 4
"""Pieces in one answer of a host."""
ANSWER_LIMIT_S = 30.0
FOLLOW_S = 2.0
FILES = ("history/_raw/**/*", "logs/**/*", f"data/*/{LAST_WORDS}")


class FilePiece(NamedTuple):
    """Bytes of a file from `offset` on, as one LZ4 frame."""

    name: str
    """Path within the run's folder."""
    offset: int
    data: bytes


def new_pieces(folder: str, known: Mapping[str, int]) -> Iterator[FilePiece]:
    """Return the bytes of the run's files on this host after the offsets that the driver already has (`known`). If a
    process continues in a new file, the process's older file comes first, and is deleted once the driver has all its
    bytes."""
    for pattern in FILES:
        paths = sorted(Path(folder).glob(pattern), key=_in_turn)
        for path, following in zip_longest(paths, paths[1:]):
            name = str(path.relative_to(folder))
            offset = known.get(name, 0)
            if not path.is_file():
                continue
            if path.stat().st_size <= offset:
                if following is not None and _goes_on(path, following):
                    path.unlink()
                continue
            with path.open("rb") as file:
                file.seek(offset)
                while data := file.read(PIECE_BYTES):
                    yield FilePiece(name, offset, lz4.frame.compress(data))
                    offset += len(data)


def _in_turn(path: Path) -> tuple[str, str, int]:
    """Return a sort key that puts a process's raw files in the order of writing."""
    if path.suffix != ".jsonl":
        return str(path), "", 0
    node, incarnation = process_of(path)
    return str(path.parent), f"{node}.{incarnation}", number_of(path)


def _goes_on(path: Path, following: Path) -> bool:
    if path.suffix != ".jsonl" or following.suffix != ".jsonl" or path.parent != following.parent:
        return False
    return process_of(path) == process_of(following) and number_of(path) < number_of(following)


def some_pieces(folder: str, known: Mapping[str, int], count: int = PIECES) -> list[FilePiece]:
    return [*islice(new_pieces(folder, known), count)]


class CollectedHost(NamedTuple):
    host: RemoteHost
    folder: str

    @property
    def name(self) -> str:
        return self.host.name

    def pieces(self, known: Mapping[str, int]) -> Iterator[FilePiece]:
        """Return the host's new pieces of files. The caller adds each piece's length to the file's offset in `known`
        before taking the next piece. Raises HarnessError if the host is lost."""
        while found := self.host.ask("run", some_pieces, self.folder, dict(known), timeout_s=ANSWER_LIMIT_S):
            yield from found


class Gone(NamedTuple):
    """The loss of a host. Rows that the host recorded after `since_ms` are lost."""

    since_ms: float
    why: str


class Collector:
    """Context manager that collects rows and logs from all hosts. When the block ends, the run folder has all rows of
    the hosts that were not lost. `gone` has the lost hosts. If logs of two hosts have equal names, the host's name is
    put before the log's name."""

    def __init__(
        self, hosts: Iterable[CollectedHost], run_dir: Path, now_ms: Callable[[], float], follow_s: float = FOLLOW_S
    ) -> None:
        self._hosts, self._run_dir, self._now_ms, self._follow_s = tuple(hosts), run_dir, now_ms, follow_s
        self._known: dict[str, dict[str, int]] = {host.name: {} for host in self._hosts}
        self._owners: dict[str, str] = {}
        self._since_ms: dict[str, float] = {}
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(host,), name=f"collect-{host.name}", daemon=True)
            for host in self._hosts
        ]
        self.gone: dict[str, Gone] = {}
        self.failed: OSError | None = None
        """Why nothing could be written here."""

    def _run(self, host: CollectedHost) -> None:
        try:
            while not self._ended.wait(self._follow_s):
                self._take(host)
            self._take(host)
        except HarnessError as exc:
            log.warning("what was recorded on %s is missing: %s", host.name, exc)
            self.gone[host.name] = Gone(self._since_ms.get(host.name, 0.0), str(exc))
        except OSError as exc:
            self.failed = exc

    def _take(self, host: CollectedHost) -> None:
        asked_ms, known = self._now_ms(), self._known[host.name]
        for piece in host.pieces(known):
            data = lz4.frame.decompress(piece.data)
            with self._here(host, piece.name).open("ab") as file:
                file.write(data)
            known[piece.name] = piece.offset + len(data)
        self._since_ms[host.name] = asked_ms

    def _here(self, host: CollectedHost, name: str) -> Path:
        path = self._run_dir / name
        if name.startswith("logs/"):
            with self._lock:
                owner = self._owners.setdefault(name, "" if path.exists() else host.name)
            path = path if owner == host.name else path.with_name(f"{host.name}-{path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def __enter__(self) -> Collector:
        for thread in self._threads:
            thread.start()
        return self

    def finish(self) -> None:
        """Fetch the remaining rows and logs from all hosts. After `finish`, `gone` says why a lost host's rows are
        missing. Raises OSError if a file cannot be written."""
        self._ended.set()
        for thread in self._threads:
            with suppress(RuntimeError):  # it never began
                thread.join()
        if self.failed is not None:
            raise self.failed

    def __exit__(self, *_: object) -> None:
        self.finish()


def record_missing(record: Recorder, gone: Mapping[str, Gone], nodes: Mapping[str, str]) -> None:
    """Record a `rows_missing` row for each node of a lost host. `nodes` gives the host of each node."""
    for node, host in sorted(nodes.items()):
        if host in gone:
            value: dict[str, Any] = {"host": host, "why": gone[host].why, "since_ms": gone[host].since_ms}
            record("rows_missing", source=node, value=value)
