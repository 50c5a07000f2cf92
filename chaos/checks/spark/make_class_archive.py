"""`python -m nemesrv.chaos.checks.spark.make_class_archive`: the class-data archive of class_archive.py, made anew.

With `--if-missing` only where there is none that fits.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ...errors import HarnessError
from . import class_archive
from .class_archive import DUMP_LIMIT_S, MAIN_CLASS, UNUSED, is_set_up_by_somebody, jars, launch, made_for, submit
from .session import stop
from .settings import conf_of
from .warm_up import rehearse


def make() -> Path:
    """The new archive's file, of this environment, in place of the last one; what runs with that one goes on.

    A session of a process of its own judges the rehearsal's rows with every check, so that all they need is loaded.
    HarnessError with the reason when there can be none; everything then works as without.
    """
    if is_set_up_by_somebody():
        raise HarnessError("Spark is set up by its environment variables or a folder conf: its own launcher is used")
    try:
        class_archive.FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=class_archive.FOLDER, prefix="making-") as making:
            file = Path(making) / "classes.jsa"
            java = _launcher_command()
            _train([java[0], f"-XX:ArchiveClassesAtExit={file}", *java[1:]])
            if not file.is_file():
                raise HarnessError("this Java wrote no class-data archive")
            kept = class_archive.FOLDER / f"classes-{os.getpid()}.jsa"
            document = {"made_for": made_for(), "file": kept.name, "java": java}
            (Path(making) / "archive.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
            file.replace(kept)
            (Path(making) / "archive.json").replace(class_archive.FOLDER / "archive.json")
    except OSError as exc:
        raise HarnessError(
            f"the class-data archive cannot be written to {class_archive.FOLDER}: {exc.strerror}"
        ) from exc
    for other in class_archive.FOLDER.glob("classes-*.jsa"):
        if other != kept:
            with suppress(OSError):
                other.unlink()
    return kept


def _train(java: list[str]) -> None:
    conf = conf_of(None, large=False)
    with open(os.devnull, "ab") as said:
        gateway = launch(submit(java, conf), said)
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
    used = [str(jar) for jar in jars() if not UNUSED.match(jar.name)]
    java[java.index("-cp") + 1] = os.pathsep.join(used)
    return java


if __name__ == "__main__":
    if sys.argv[1:] == ["--if-missing"] and class_archive.find() is not None:
        sys.exit()
    try:
        print(f"Spark's classes are in {make()}")
    except HarnessError as error:
        print(f"nemesrv: Spark starts without an archive of its classes: {error}", file=sys.stderr)
