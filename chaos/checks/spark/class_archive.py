"""Spark's classes as the JVM holds them in memory, in a file: a session starts in half the time.

    python -m nemesrv.chaos.checks.spark.make_class_archive     makes it, once for this Python environment (set-up does)

It is the JDK's class-data sharing. A session of a small history then starts the JVM itself, with the options that
Spark's own launcher gave when the archive was made, less the jars of parts that no check uses. Where the archive is
missing, of another Java or Spark, or unreadable, and where somebody has set Spark up himself (SPARK_CONF_DIR and the
like), Spark's launcher starts the JVM as ever. The JVM looks at every jar's time and size before it trusts the archive.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import IO, Any

import pyspark
from pyspark import SparkConf
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from ...errors import HarnessError
from .settings import settings

FOLDER = Path(sys.prefix).resolve() / "share" / "nemesrv" / "spark"
MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
DUMP_LIMIT_S = 180
"""The JVM writes the archive when it ends: about 10 s on an idle core."""

_SET_UP_BY_SOMEBODY = (
    "HADOOP_CONF_DIR",
    "JDK_JAVA_OPTIONS",
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_PREPEND_CLASSES",
    "SPARK_SUBMIT_OPTS",
    "SPARK_TESTING",
    "YARN_CONF_DIR",
)
UNUSED = re.compile(
    r"(spark-(mllib|graphx|hive|kubernetes|yarn|connect|pipelines|repl)|breeze|spire|cats-kernel|algebra_|arpack|lapack"
    r"|blas-|JTransforms|JLargeArrays|hive-(?!storage-api)|datanucleus|derby|jdo-api|javax\.jdo|kubernetes-|volcano-"
    r"|vertx-|zjsonpatch|scala-compiler|jline)"
)
"""Jars of machine learning, graphs, Hive, clusters' managers and shells. Spark looks through every jar for its
extensions, and that of machine learning alone costs a session half a second."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive, and what the JVM is started with to use it: all but Spark's own settings."""

    file: Path
    java: tuple[str, ...]

    def command(self, conf: SparkConf, *options: str) -> list[str]:
        """How to start the JVM of a session, with more options of Java's."""
        return submit([self.java[0], f"-XX:SharedArchiveFile={self.file}", *self.java[1:], *options], conf)


def find() -> ClassArchive | None:
    """The archive of this environment; None when there is none for this Java, this Spark and these settings."""
    if is_set_up_by_somebody():
        return None
    try:
        document = json.loads((FOLDER / "archive.json").read_text(encoding="utf-8"))
        found = ClassArchive(FOLDER / document["file"], tuple(document["java"]))
        return found if document["made_for"] == made_for() and found.file.is_file() else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def launch(command: list[str], said: IO[bytes], temporary: Path | None = None) -> Any:
    """A gateway to a new JVM, as PySpark's own launch_gateway gives. HarnessError when the JVM ends at once."""
    with tempfile.TemporaryDirectory(prefix="nemesrv-spark-", dir=temporary) as folder:
        address = Path(folder) / "address"
        env = {**os.environ, "SPARK_CONNECT_MODE": "0", "PYTHONHASHSEED": "0"}
        env |= {"SPARK_HOME": _find_spark_home(), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)}
        # A group of its own: a Ctrl-C at the terminal is this process's to answer.
        jvm = Popen(command, stdin=PIPE, stdout=said, stderr=said, env=env, process_group=0)
        while not address.is_file():
            with suppress(TimeoutExpired):
                jvm.wait(0.02)
                raise HarnessError(f"Spark's JVM ended at once, with status {jvm.returncode}")
        with address.open("rb") as info:
            port, secret = read_int(info), UTF8Deserializer().loads(info)
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    try:
        gateway = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    gateway.proc = jvm
    return gateway


def submit(java: list[str], conf: SparkConf) -> list[str]:
    told = [word for name, value in conf.getAll() for word in ("--conf", f"{name}={value}")]
    return [*java, MAIN_CLASS, *told, "pyspark-shell"]


def jars() -> list[Path]:
    return sorted(Path(_find_spark_home(), "jars").resolve().glob("*.jar"))


def is_set_up_by_somebody() -> bool:
    return (
        sys.platform != "linux"
        or any(os.environ.get(name) for name in _SET_UP_BY_SOMEBODY)
        or Path(_find_spark_home(), "conf").exists()
    )


def made_for() -> str:
    """Changes with the Java, with Spark's jars and with how we start the JVM."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    asked: list[object] = [pyspark.__version__, sorted(settings(None, large=False).items()), UNUSED.pattern]
    for file in (java.resolve(), *jars()):
        found = file.stat()
        asked.append((str(file), found.st_size, found.st_mtime_ns))
    return hashlib.sha256(repr(asked).encode()).hexdigest()
