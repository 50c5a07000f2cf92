"""How Spark is set: for a small history in this process, for a large one, and on a cluster that is there already.

A small history (a run of minutes) costs planning and compiling, not rows: one partition, no generated code, no adaptive
planning, a JVM that starts quickly. A large one costs rows, so it gets all of that. The settings of planning can be
changed while a session lasts; those of the JVM cannot, so who starts a session for a large history says so.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkConf
from pyspark.sql import SparkSession

from ...history.stored import SMALL_BYTES as SMALL_BYTES

SMALL_DRIVER_MEMORY, LARGE_DRIVER_MEMORY = "1g", "2g"
SMALL_RESULTS, LARGE_RESULTS = "256m", "1g"
"""Checks collect counts, examples, and each row that is no traffic, of some 250 bytes: four million registrations,
look-ups and the like. 20 GB of logs have 1.2 million. More than this ends the query."""

PARTITION_BYTES = 128 * 1024 * 1024

_ANY = {
    "spark.app.name": "nemesrv",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    # Where a column was made is of use to people at a prompt; to note it is two thirds of all calls into the JVM.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",  # what a worker gets at once: each batch has its cost
}
_HERE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
# Where a thread that fetches results dies for want of memory, its query waits for ever: the JVM is to end with it.
_ANY_JVM = "-XX:+ExitOnOutOfMemoryError"
# A JVM that lives for seconds: the second compiler and a parallel collector cost more than they bring (cold, five
# checks over 100,000 rows: 23 s of processor time without, 12 s with).
# Room for what such a session makes, given at once: else it collects some twenty times in its first seconds.
_QUICK_JVM = f"{_ANY_JVM} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms320m -Xmn192m -XX:MetaspaceSize=192m"
_LASTING_JVM = f"{_ANY_JVM} -XX:+UseParallelGC"

SMALL_PLANS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # in one partition any join is without a shuffle, and without a job
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LARGE_PLANS = {
    "spark.sql.autoBroadcastJoinThreshold": "10m",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.files.maxPartitionBytes": str(PARTITION_BYTES),
}


CLASSES = Path(sys.prefix).resolve() / "share" / "nemesrv" / "spark-classes.jsa"
"""Spark's classes as the JVM holds them in memory (tests/spark_classes.py, which `make setup` runs)."""


def class_options() -> list[str]:
    """Of a JVM that starts with these classes; none where they are not there."""
    return [f"-XX:SharedArchiveFile={CLASSES}"] if CLASSES.is_file() else []


def is_local(master: str | None) -> bool:
    """Whether Spark runs in this machine's own process, not on a cluster."""
    return master is None or master.startswith("local")


def _on_loopback(master: str | None) -> bool:
    if is_local(master):
        return True
    return (urlsplit(master or "").hostname or "") in ("127.0.0.1", "localhost", "::1")


def settings(master: str | None, *, large: bool) -> Mapping[str, str]:
    """What a new session is started with. A cluster away from this machine keeps its own idea of addresses."""
    large = large or not is_local(master)
    found = dict(_ANY)
    if _on_loopback(master):
        found |= _HERE
    found["spark.driver.memory"] = LARGE_DRIVER_MEMORY if large else SMALL_DRIVER_MEMORY
    found["spark.driver.maxResultSize"] = LARGE_RESULTS if large else SMALL_RESULTS
    found["spark.driver.extraJavaOptions"] = _LASTING_JVM if large else _QUICK_JVM
    if is_local(master):
        found["spark.default.parallelism"] = "2"
    return {**found, **(_LARGE_PLANS if large else SMALL_PLANS)}


def conf_of(master: str | None, *, large: bool) -> SparkConf:
    """The configuration of a new session."""
    return SparkConf().setMaster(master or "local[2]").setAll(list(settings(master, large=large).items()))


def plans_for(spark: SparkSession, size: int) -> Mapping[str, str]:
    """How to plan for a history of `size` bytes: SMALL_PLANS, or those of a large one. A partition of a shuffle then
    gets about 8 MB of the history, for which a worker takes some 300 MB, and every core has one."""
    if size <= SMALL_BYTES:
        return SMALL_PLANS
    cores = spark.sparkContext.defaultParallelism
    return {**_LARGE_PLANS, "spark.sql.shuffle.partitions": str(max(2 * cores, size // (PARTITION_BYTES // 16)))}


def use(spark: SparkSession, plans: Mapping[str, str]) -> None:
    """From now on this session plans so."""
    for name, value in plans.items():
        spark.conf.set(name, value)
