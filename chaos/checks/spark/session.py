"""The one Spark session of this process: its JVM started quietly, found again, ended without a trace."""

import atexit
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import java_import, launch_gateway
from pyspark.sql import SparkSession

from ....actors.processes import Reaper, sweep, temporary_folder
from ....actors.ray_host import environment
from ...errors import HarnessError
from ...machine import require_java
from .settings import class_options, conf_of, is_local


def session(master: str | None = None, *, large: bool = False, options: Sequence[str] | None = None) -> SparkSession:
    """The session of this process, started when there is none (about 5 s). HarnessError when Java is missing.

    `master` is a Spark cluster's URL; None is two threads of this process, which open no port but on 127.0.0.1.
    `large`: it is started for more than SMALL_BYTES of history. `options`: more of the JVM's; None: those of the class
    archive, for a small history. It has the priority of the thread that calls this.
    """
    require_java()
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    conf = conf_of(master, large=large)
    quieten_py4j()
    temporary = _new_temporary()
    if options is None:
        options = class_options() if is_local(master) and not large else ()
    said_options = " ".join(f'"{option}"' for option in (*options, *_own_options(temporary)))
    conf.set("spark.driver.extraJavaOptions", f"{conf.get('spark.driver.extraJavaOptions')} {said_options}")
    try:
        with environment(_surroundings(conf)), open(os.devnull, "ab") as nowhere:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": nowhere, "stderr": nowhere})
            # Named here it is found at once; PySpark's own wildcards let the JVM look through all jars at each mention.
            java_import(gateway.jvm, "org.apache.spark.api.python.PythonUtils")
            if not _has_name():
                _give_name(gateway.jvm)
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Exception as exc:
        _remove_temporary()
        raise HarnessError(f"Spark did not start: {_why(exc)}") from exc


def quieten_py4j() -> None:
    """That the JVM is gone a person is told once, in a sentence, and by no traceback of py4j's; unless he debugs."""
    if not logging.root.isEnabledFor(logging.INFO):
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.root.addFilter(_is_not_of_py4j)  # on which py4j says that a command was not answered


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _why(exc: Exception) -> str:
    if "JAVA_GATEWAY_EXITED" in str(exc):
        return (
            "its JVM ended before it could be used, killed for want of memory or by an option that it does not know: "
            "see JDK_JAVA_OPTIONS, JAVA_TOOL_OPTIONS and `nemesrv preflight`"
        )
    lines = str(exc).strip().splitlines()
    return lines[0] if lines else type(exc).__name__


def jvm_death(within_s: float) -> str:
    """How the session's JVM ended, for a person; empty while it runs, and where this process started none."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return ""
    try:
        code = process.wait(within_s)
    except subprocess.TimeoutExpired:
        return ""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended by itself with exit status {code}"
    return f"Spark's JVM (pid {process.pid}) {how}"


_temporary: tuple[int, Path, Reaper] | None = None
"""The process that made it, the folder, and who ends the JVM if this process is killed: a JVM that is about to start
may not see for minutes that its standard input has ended."""


def _new_temporary() -> Path:
    """Where the JVM puts what it would leave in /tmp if it were killed: libraries it unpacks, blocks it spills."""
    global _temporary
    sweep()
    _remove_temporary()
    folder = temporary_folder("spark")
    _temporary = os.getpid(), folder, Reaper(folder)
    return folder


@atexit.register
def _remove_temporary() -> None:
    if _temporary is not None and _temporary[0] == os.getpid():
        _temporary[2].close()
        shutil.rmtree(_temporary[1], ignore_errors=True)


def _own_options(temporary: Path) -> list[str]:
    """The options of this process's JVM: where it puts files, and a home for a user without a name, which is `?` to
    Java, so that Spark ends."""
    options = [f"-Djava.io.tmpdir={temporary}"]
    return options if _has_name() else [*options, f"-Duser.home={temporary}"]


def _has_name() -> bool:
    """Whether our user is in passwd, as a container's that is given any user id, as in OpenShift, is not."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def _give_name(jvm: Any) -> None:
    """Hadoop knows our user by a name; it asks passwd otherwise."""
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(os.environ.get("HADOOP_USER_NAME") or "nemesrv"))


def _surroundings(conf: SparkConf) -> dict[str, str]:
    """What stands in the JVM's environment besides what stands in ours."""
    found = {}
    if conf.contains("spark.driver.host"):
        found["SPARK_LOCAL_IP"] = conf.get("spark.driver.host") or "127.0.0.1"
    # What counts in its workers is found where it is installed here, unless somebody says where else.
    found["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    named = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    if "utf" not in named.lower():  # or it finds no file whose name has other letters than English
        found["LC_ALL"] = "C.UTF-8"
    return found


def jvm_pid() -> int | None:
    """The process of the session's JVM; None if this process started none."""
    process = getattr(SparkContext._gateway, "proc", None)
    return None if process is None else int(process.pid)


def stop(spark: SparkSession, *, limit_s: float = 10) -> None:
    """End the session and its JVM, by force after `limit_s`; nothing of it is left when this returns."""
    gateway = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # the supervisor may have killed the JVM
        spark.stop()
    if gateway is not None:
        gateway.shutdown()
        SparkContext._gateway = None
        SparkContext._jvm = None
    if process is not None:
        process.stdin.close()  # the JVM ends when its standard input does
        try:
            process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    _remove_temporary()
