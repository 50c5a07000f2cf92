"""A copy of a run's history where others can read it: a folder that many hosts share, S3, HDFS, Google's store.

    --history s3://bucket/chaos  ─►  s3://bucket/chaos/SCENARIO/RUN/scenario.yaml
                                                                   /history/part-00000.parquet …

`nemesrv check` of that place judges it, on a Spark cluster too. Written with Arrow's file systems: rights and endpoints
are taken from the environment, as they say (AWS_*, …), or from the URI's query. HDFS is written by the client that
Spark brings along (checks/spark/hadoop_files.py), with the settings by which it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from ..errors import HarnessError, ScenarioError
from .schema import parquet_path

if TYPE_CHECKING:
    from pyarrow import fs

OPTION = "--history"
ALLOWED = "a folder, file:///…, s3://BUCKET/…, hdfs://HOST:PORT/… or gs://BUCKET/…, which can be written"
_COPY_BYTES = 8 * 1024 * 1024


def is_hadoops(where: str) -> bool:
    """Whether Spark's Hadoop client writes there."""
    return urlsplit(where).scheme == "hdfs"


class Files(Protocol):
    """A file system. What cannot be done is an OSError."""

    def make(self, folder: str) -> None:
        """The folder is there, and all above it."""

    def empty(self, folder: str) -> None:
        """Nothing is in it."""

    def put(self, path: Path, to: str) -> None:
        """A file of this machine is there, too."""


class ArrowFiles:
    """Of this machine, and those that Arrow knows."""

    def __init__(self, system: fs.FileSystem) -> None:
        self._system = system

    @classmethod
    def opened(cls, where: str) -> tuple[Files, str]:
        """The file system of that place, and the place's path in it."""
        from pyarrow import fs

        if not urlsplit(where).scheme:
            return cls(fs.LocalFileSystem()), str(Path(where).resolve())
        uri = where.replace("s3a://", "s3://", 1) if where.startswith("s3a://") else where
        found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
        return cls(found[0]), found[1]

    def make(self, folder: str) -> None:
        self._system.create_dir(folder, recursive=True)

    def empty(self, folder: str) -> None:
        self._system.delete_dir_contents(folder)

    def put(self, path: Path, to: str) -> None:
        with path.open("rb") as source, self._system.open_output_stream(to) as target:
            while data := source.read(_COPY_BYTES):
                target.write(data)


class HistoryStore:
    """A place to which histories are copied. ScenarioError, in one sentence, for one that cannot be written."""

    def __init__(self, where: str, opened: Callable[[str], tuple[Files, str]] = ArrowFiles.opened) -> None:
        self._where = where
        try:
            self._files, self._folder = opened(where)
            self._files.make(self._folder)
        except (OSError, ValueError, TypeError, NotImplementedError, ImportError) as exc:
            raise ScenarioError(OPTION, "", repr(where), f"{ALLOWED} ({_said(exc)})") from exc

    def keep(self, run_dir: Path, name: str) -> str:
        """The history and scenario.yaml of a run are there under that name, in place of what was; where that is.

        HarnessError when it cannot be written.
        """
        folder = f"{self._folder.rstrip('/')}/{name}"
        parts = sorted(parquet_path(run_dir).parent.glob("part-*.parquet"))
        copies = [(path, f"{folder}/history/{path.name}") for path in parts]
        copies += [(path, f"{folder}/{path.name}") for path in [run_dir / "scenario.yaml"] if path.is_file()]
        try:
            self._files.make(f"{folder}/history")
            self._files.empty(f"{folder}/history")
            for path, to in copies:
                self._files.put(path, to)
        except OSError as exc:
            why = f"the history is in {run_dir} only, for {self._where} could not be written: {_said(exc)}"
            raise HarnessError(why) from exc
        return _below(self._where, name)


def _below(where: str, name: str) -> str:
    """The place of that name, without what the query says of the store."""
    parts = urlsplit(where)
    if not parts.scheme:
        return str(Path(where).resolve() / name)
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{name}", "", ""))


def _said(exc: BaseException) -> str:
    text = " ".join(str(exc).split())
    return text[:200] or type(exc).__name__
