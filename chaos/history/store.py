"""A copy of a run's history where others can read it: a folder that many hosts share, S3, HDFS, Google's store.

    --history s3://bucket/chaos  ─►  s3://bucket/chaos/SCENARIO/RUN/scenario.yaml
                                                                   /history/part-00000.parquet …

`nemesrv check` of that place judges it, on a Spark cluster too. Written with Arrow's file systems: rights and endpoints
are taken from the environment, as they say (AWS_*, HADOOP_HOME, …), or from the URI's query.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ..errors import HarnessError, ScenarioError
from .schema import parquet_path

if TYPE_CHECKING:
    from pyarrow import fs

OPTION = "--history"
ALLOWED = "a folder, file:///…, s3://BUCKET/…, hdfs://HOST:PORT/… or gs://BUCKET/…, which can be written"
_COPY_BYTES = 8 * 1024 * 1024


class HistoryStore:
    """A place that histories are copied to. ScenarioError, in one sentence, for one that cannot be written."""

    def __init__(self, where: str) -> None:
        self._where = where
        try:
            self._system, self._folder = _opened(where)
            self._system.create_dir(self._folder, recursive=True)
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
            self._system.create_dir(f"{folder}/history", recursive=True)
            self._system.delete_dir_contents(f"{folder}/history")
            for path, to in copies:
                self._copy(path, to)
        except OSError as exc:
            why = f"the history is in {run_dir} only, for {self._where} could not be written: {_said(exc)}"
            raise HarnessError(why) from exc
        return _below(self._where, name)

    def _copy(self, path: Path, to: str) -> None:
        with path.open("rb") as source, self._system.open_output_stream(to) as target:
            while data := source.read(_COPY_BYTES):
                target.write(data)


def _opened(where: str) -> tuple[fs.FileSystem, str]:
    from pyarrow import fs

    if not urlsplit(where).scheme:
        return fs.LocalFileSystem(), str(Path(where).resolve())
    uri = where.replace("s3a://", "s3://", 1) if where.startswith("s3a://") else where
    found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
    return found


def _below(where: str, name: str) -> str:
    """The place of that name, without what the query says of the store."""
    parts = urlsplit(where)
    if not parts.scheme:
        return str(Path(where).resolve() / name)
    return urlunsplit((parts.scheme, parts.netloc, f"{parts.path.rstrip('/')}/{name}", "", ""))


def _said(exc: BaseException) -> str:
    text = " ".join(str(exc).split())
    return text[:200] or type(exc).__name__
