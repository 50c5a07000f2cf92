"""Spark for the checks: one quiet local session, the history as a DataFrame, and a run judged by named checks."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from .checkers import CHECKS
from .checkers.world import World
from .errors import HarnessError
from .history import SCHEMA, parquet_path, to_parquet
from .verdict import Verdict

log = logging.getLogger("nemesrv.spark")

_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "long": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
}

HISTORY_SCHEMA = StructType([StructField(c.name, _TYPES[c.type], c.nullable) for c in SCHEMA])

_SETTINGS = {
    "spark.app.name": "nemesrv",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    # A JVM that lives for seconds: the second compiler and a parallel collector cost more than they bring (cold, five
    # checks over 100,000 rows: 23 s of processor time without, 12 s with).
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # The histories are small: what costs time is planning and compiling, not rows.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.log.level": "ERROR",
}


def require_java() -> None:
    """HarnessError when there is no Java to run Spark."""
    java_home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java_home and Path(java_home, "bin", "java").exists()):
        raise HarnessError("no java on PATH: Spark needs a JDK 17 or later, e.g. apt install openjdk-17-jre-headless")


ONE_PARTITION_BYTES = 32 * 1024 * 1024
"""A history up to this size is one partition: then no step of a check needs a shuffle, which is most of its time."""


def session(master: str | None = None, *, log_file: Path | None = None) -> SparkSession:
    """The session of this process, started when there is none (about 5 s). HarnessError when Java is missing.

    `master` is a Spark cluster's URL; None is two threads of this process, which open no port but on 127.0.0.1.
    `log_file` gets what the JVM prints; None is nowhere. The JVM has the priority of the thread that calls this.
    """
    require_java()
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    conf = SparkConf().setMaster(master or "local[2]").setAll(list(_SETTINGS.items()))
    before = os.environ.get("SPARK_LOCAL_IP")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        with open(log_file or os.devnull, "ab") as said:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": said, "stderr": said})
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Exception as exc:
        lines = str(exc).strip().splitlines()
        raise HarnessError(f"Spark did not start: {lines[0] if lines else type(exc).__name__}") from exc
    finally:
        if before is None:
            del os.environ["SPARK_LOCAL_IP"]
        else:
            os.environ["SPARK_LOCAL_IP"] = before


def jvm_pid() -> int | None:
    """The process of the session's JVM; None when this process started none."""
    process = getattr(SparkContext._gateway, "proc", None)
    return None if process is None else int(process.pid)


def load(run_dir: Path | str, spark: SparkSession) -> DataFrame:
    """The run's history in its schema; merged first when the run ended before it could do so. HarnessError if none."""
    path = parquet_path(run_dir)
    if not path.exists():
        to_parquet(run_dir)
    history = spark.read.schema(HISTORY_SCHEMA).parquet(str(path))
    return history.coalesce(1) if path.stat().st_size < ONE_PARTITION_BYTES else history


def check_history(history: DataFrame, checks: Iterable[str]) -> list[Verdict]:
    """One verdict per named check, in order. A check that fails is UNKNOWN, with the error's text."""
    cached = history.cache()
    verdicts: list[Verdict] = []
    try:
        world = World.observe(cached)
        for name in checks:
            try:
                verdicts.append(CHECKS[name](cached, world))
            except Exception as exc:
                log.info("check %s failed", name, exc_info=True)  # its verdict says so to the person
                verdicts.append(Verdict.of_failed_check(name, exc))
    finally:
        cached.unpersist()
    return verdicts


def check_run(run_dir: Path | str, checks: Iterable[str], spark: SparkSession) -> list[Verdict]:
    """The verdicts of a recorded run, in the order of `checks`. KeyError for a check that does not exist."""
    names = list(checks)
    for name in names:
        CHECKS[name]
    return check_history(load(run_dir, spark), names)


def stop(spark: SparkSession) -> None:
    """End the session and its JVM; nothing of it is left when this returns."""
    gateway = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    spark.stop()
    if gateway is not None:
        gateway.shutdown()
        SparkContext._gateway = None
        SparkContext._jvm = None
    if process is not None:
        process.stdin.close()  # the JVM ends when its standard input does
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
