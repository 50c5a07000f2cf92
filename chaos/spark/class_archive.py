"""Spark's classes as the JVM holds them in memory, in a file: a session starts in half the time.

    python -m nemesrv.chaos.spark.class_archive       makes it, once for this Python environment (set-up does)

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

from ..errors import HarnessError
from .settings import conf_of, settings

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
_UNUSED = re.compile(
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

    def command(self, conf: SparkConf) -> list[str]:
        return _submit([self.java[0], f"-XX:SharedArchiveFile={self.file}", *self.java[1:]], conf)


def find() -> ClassArchive | None:
    """The archive of this environment; None when there is none for this Java, this Spark and these settings."""
    if _is_set_up_by_somebody():
        return None
    try:
        document = json.loads((FOLDER / "archive.json").read_text(encoding="utf-8"))
        found = ClassArchive(FOLDER / document["file"], tuple(document["java"]))
        return found if document["made_for"] == _made_for() and found.file.is_file() else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def launch(command: list[str], said: IO[bytes]) -> Any:
    """A gateway to a new JVM, as PySpark's own launch_gateway gives. HarnessError when the JVM ends at once."""
    with tempfile.TemporaryDirectory(prefix="nemesrv-spark-") as folder:
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


def make() -> Path:
    """The new archive's file, of this environment, in place of the last one; what runs with that one goes on.

    A session of a process of its own judges the rehearsal's rows with every check, so that all they need is loaded.
    HarnessError with the reason when there can be none; everything then works as without.
    """
    if _is_set_up_by_somebody():
        raise HarnessError("Spark is set up by its environment variables or a folder conf: its own launcher is used")
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER, prefix="making-") as making:
            file = Path(making) / "classes.jsa"
            java = _launcher_command()
            _train([java[0], f"-XX:ArchiveClassesAtExit={file}", *java[1:]])
            if not file.is_file():
                raise HarnessError("this Java wrote no class-data archive")
            kept = FOLDER / f"classes-{os.getpid()}.jsa"
            document = {"made_for": _made_for(), "file": kept.name, "java": java}
            (Path(making) / "archive.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
            file.replace(kept)
            (Path(making) / "archive.json").replace(FOLDER / "archive.json")
    except OSError as exc:
        raise HarnessError(f"the class-data archive cannot be written to {FOLDER}: {exc.strerror}") from exc
    for other in FOLDER.glob("classes-*.jsa"):
        if other != kept:
            with suppress(OSError):
                other.unlink()
    return kept


def _train(java: list[str]) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from .session import stop
    from .warm_up import rehearse

    conf = conf_of(None, large=False)
    with open(os.devnull, "ab") as said:
        gateway = launch(_submit(java, conf), said)
    spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
    rehearse(spark)
    stop(spark, limit_s=DUMP_LIMIT_S)


def _launcher_command() -> list[str]:
    """How Spark's launcher starts the JVM of a small history, up to its main class, less the unused jars."""
    with open(os.devnull, "ab") as said:
        gateway = launch_gateway(conf_of(None, large=False), popen_kwargs={"stdout": said, "stderr": said})
    try:
        command = Path(f"/proc/{gateway.proc.pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    java = command[: command.index(MAIN_CLASS)]
    jars = [str(jar) for jar in _jars() if not _UNUSED.match(jar.name)]
    java[java.index("-cp") + 1] = os.pathsep.join(jars)
    return java


def _submit(java: list[str], conf: SparkConf) -> list[str]:
    told = [word for name, value in conf.getAll() for word in ("--conf", f"{name}={value}")]
    return [*java, MAIN_CLASS, *told, "pyspark-shell"]


def _jars() -> list[Path]:
    return sorted(Path(_find_spark_home(), "jars").resolve().glob("*.jar"))


def _is_set_up_by_somebody() -> bool:
    return (
        sys.platform != "linux"
        or any(os.environ.get(name) for name in _SET_UP_BY_SOMEBODY)
        or Path(_find_spark_home(), "conf").exists()
    )


def _made_for() -> str:
    """Changes with the Java, with Spark's jars and with how we start the JVM."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    asked: list[object] = [pyspark.__version__, sorted(settings(None, large=False).items()), _UNUSED.pattern]
    for file in (java.resolve(), *_jars()):
        found = file.stat()
        asked.append((str(file), found.st_size, found.st_mtime_ns))
    return hashlib.sha256(repr(asked).encode()).hexdigest()


if __name__ == "__main__":
    try:
        print(f"Spark's classes are in {make()}")
    except HarnessError as error:
        print(f"nemesrv: Spark starts without an archive of its classes: {error}", file=sys.stderr)
