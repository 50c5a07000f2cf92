"""Spark for the checks: one quiet local session, the history as a DataFrame, and a run judged by named checks."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from pyspark import SparkContext, StorageLevel
from pyspark.java_gateway import java_import, launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ..checkers import CHECKS
from ..checkers.dataframes.shared import TRAFFIC, shared_scan
from ..errors import HarnessError
from ..history.recorder import SCHEMA, arrow_schema
from ..oracle.world import World
from ..verdict import Verdict
from .settings import SMALL_PLANS, conf_of, is_local, plans_for, use
from .storage import stored

log = logging.getLogger("nemesrv.spark")

_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "long": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
}

HISTORY_SCHEMA = StructType([StructField(c.name, _TYPES[c.type], c.nullable) for c in SCHEMA])


def require_java() -> None:
    """HarnessError when there is no Java to run Spark."""
    java_home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java_home and Path(java_home, "bin", "java").exists()):
        raise HarnessError("no java on PATH: Spark needs a JDK 17 or later, e.g. apt install openjdk-17-jre-headless")


CONTROL_CHECKS = frozenset(
    {
        "routes_converge",
        "routes_are_true",
        "no_false_eviction",
        "no_resurrection",
        "dead_name_servers_left",
        "name_server_selection",
        "queue_ownership",
    }
)
"""The checks that read no traffic: however large the history, they are planned as for a small one."""


def session(master: str | None = None, *, log_file: Path | None = None, large: bool = False) -> SparkSession:
    """The session of this process, started when there is none (about 5 s). HarnessError when Java is missing.

    `master` is a Spark cluster's URL; None is two threads of this process, which open no port but on 127.0.0.1.
    `log_file` gets what the JVM prints; None is nowhere. `large`: it is started for more than SMALL_BYTES of history.
    The JVM has the priority of the thread that calls this.
    """
    require_java()
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    conf = conf_of(master, large=large)
    before = os.environ.get("SPARK_LOCAL_IP")
    if conf.contains("spark.driver.host"):
        os.environ["SPARK_LOCAL_IP"] = conf.get("spark.driver.host") or "127.0.0.1"
    try:
        with open(log_file or os.devnull, "ab") as said:
            gateway = launch_gateway(conf, popen_kwargs={"stdout": said, "stderr": said})
        # Named here it is found at once; PySpark's own wildcards let the JVM look through all jars at each mention.
        java_import(gateway.jvm, "org.apache.spark.api.python.PythonUtils")
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Exception as exc:
        lines = str(exc).strip().splitlines()
        raise HarnessError(f"Spark did not start: {lines[0] if lines else type(exc).__name__}") from exc
    finally:
        if before is None:
            os.environ.pop("SPARK_LOCAL_IP", None)
        else:
            os.environ["SPARK_LOCAL_IP"] = before


def jvm_pid() -> int | None:
    """The process of the session's JVM; None when this process started none."""
    process = getattr(SparkContext._gateway, "proc", None)
    return None if process is None else int(process.pid)


def load(run_dir: Path | str, spark: SparkSession) -> DataFrame:
    """The history of a run folder or of a URI, in its schema; merged first when the run ended before it could do so.

    Sets the session's plans for its size. HarnessError when there is none. On a cluster, a small history of this
    machine is sent there; a large one must be where every worker sees it under the same path.
    """
    return _load(run_dir, spark)[0]


def _load(run_dir: Path | str, spark: SparkSession) -> tuple[DataFrame, Mapping[str, str]]:
    """The history, and the plans that its checks need."""
    found = stored(run_dir, spark)
    plans = plans_for(spark, found.size)
    use(spark, plans)
    if plans is not SMALL_PLANS:
        return spark.read.schema(HISTORY_SCHEMA).parquet(found.uri), plans
    if found.path is not None and not is_local(spark.sparkContext.master):
        rows = pq.read_table(found.path, schema=arrow_schema())
        return spark.createDataFrame(rows, HISTORY_SCHEMA).coalesce(1), plans
    return spark.read.schema(HISTORY_SCHEMA).parquet(found.uri).coalesce(1), plans


def by_event(history: DataFrame, control: DataFrame) -> DataFrame:
    """The history again, such that a query of some events reads no others: `control` and one part an event of TRAFFIC.

    In each of those parts `event` is a constant, so Spark drops the parts that a filter on `event` excludes when it
    plans, and row groups of other events when it reads.
    """
    whole = control
    for event in TRAFFIC:
        part = history.where(F.col("event") == event).withColumn("event", F.lit(event))
        whole = whole.unionByName(part)
    return whole


def check_history(
    history: DataFrame,
    checks: Iterable[str],
    plans: Mapping[str, str] = SMALL_PLANS,
    world: World | None = None,
) -> list[Verdict]:
    """One verdict per named check, in order. A check that fails is UNKNOWN, with the error's text.

    A small history is kept in memory whole, but for one that comes with its `world`: who observed it keeps it. Of a
    large one (its own `plans`) only what is no traffic is, in one partition; and one row a message is kept on disk, so
    that the checks of messages share one shuffle.
    """
    spark, large = history.sparkSession, plans is not SMALL_PLANS
    spark.sparkContext.setLocalProperty("callSite.long", "a check")  # else each RDD walks the JVM's stack for it
    with ExitStack() as stack:
        judged = history
        if large:
            judged = stack.enter_context(_parts(history))
            stack.enter_context(shared_scan(judged, history))
            stack.callback(use, spark, plans)
            use(spark, SMALL_PLANS)
        elif world is None:
            judged = stack.enter_context(cached(history))
        if world is None:
            world = World.observe(judged)
        return [_verdict_of(name, judged, world, plans) for name in checks]


def _verdict_of(name: str, history: DataFrame, world: World, plans: Mapping[str, str]) -> Verdict:
    use(history.sparkSession, SMALL_PLANS if name in CONTROL_CHECKS else plans)
    try:
        return CHECKS[name](history, world)
    except Exception as exc:
        log.info("check %s failed", name, exc_info=True)  # its verdict says so to the person
        return Verdict.of_failed_check(name, exc)


@contextmanager
def cached(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, kept in memory meanwhile."""
    try:
        yield rows.persist(StorageLevel.MEMORY_AND_DISK)
    finally:
        rows.unpersist()


@contextmanager
def _parts(history: DataFrame) -> Iterator[DataFrame]:
    """The history by_event, with what is no traffic read once and kept in one partition."""
    control = history.where(~F.col("event").isin(*TRAFFIC)).repartition(1)
    with cached(control) as kept:
        kept.count()
        yield by_event(history, kept)


def check_run(run_dir: Path | str, checks: Iterable[str], spark: SparkSession) -> list[Verdict]:
    """The verdicts of a recorded run or of a URI's, in the order of `checks`. KeyError for one that does not exist."""
    names = list(checks)
    for name in names:
        CHECKS[name]
    history, plans = _load(run_dir, spark)
    return check_history(history, names, plans)


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
