"""HDFS, written by the Hadoop client that Spark brings along: what `nemesrv check hdfs://…` reads, it can write.

No libhdfs and no HADOOP_HOME is needed; settings and rights are Spark's own (spark-defaults.conf, HADOOP_CONF_DIR).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ...history.store import Files

DIAL_LIMIT_S = 5.0
"""A NameNode that is not there is asked by Hadoop itself for up to a quarter of an hour."""


def opened_by(spark: SparkSession) -> Callable[[str], tuple[Files, str]]:
    """For HistoryStore."""

    def opened(where: str) -> tuple[Files, str]:
        _require_there(where)
        with _as_os_error():
            return HadoopFiles(where, spark), where.rstrip("/")

    return opened


def _require_there(where: str) -> None:
    at = urlsplit(where)
    if at.hostname is not None and at.port is not None:  # else a name of HADOOP_CONF_DIR's
        try:
            socket.create_connection((at.hostname, at.port), DIAL_LIMIT_S).close()
        except OSError as exc:
            raise OSError(f"{at.hostname}:{at.port} does not answer: {exc.strerror or exc}") from exc


class HadoopFiles:
    """Folders and files are named by their URIs."""

    def __init__(self, where: str, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._system = self._path(where).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def make(self, folder: str) -> None:
        with _as_os_error():
            self._system.mkdirs(self._path(folder))

    def empty(self, folder: str) -> None:
        with _as_os_error():
            for status in self._system.listStatus(self._path(folder)):
                self._system.delete(status.getPath(), True)

    def put(self, path: Path, to: str) -> None:
        with _as_os_error():
            self._system.copyFromLocalFile(False, True, self._path(path.resolve().as_uri()), self._path(to))


@contextmanager
def _as_os_error() -> Iterator[None]:
    """What Java throws, with the first line that it says."""
    try:
        yield
    except Py4JJavaError as exc:
        raise OSError(str(exc.java_exception.getMessage()).splitlines()[0]) from exc
