"""Where a history lies: a run folder here, or any folder of Parquet files that Spark can read, by its URI.

    /runs/x, file:///runs/x      a run folder, its history/, or one Parquet file; raw rows are merged when need be
    hdfs://…, s3a://…, …         the same, through Hadoop's file systems, as this Spark is set up for them

Names and sizes are read, and rows when somebody asks the DataFrame. A scheme that Spark has no file system for is a
HarnessError that says what to add.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

from ...arrow import pq
from ...errors import HarnessError
from ...history.schema import SCHEMA, arrow_schema
from ...history.stored import local_path, merged_files
from .settings import SMALL_PLANS, is_local, plans_for, use

_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "long": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
}

HISTORY_SCHEMA = StructType([StructField(c.name, _TYPES[c.type], c.nullable) for c in SCHEMA])


class Stored(NamedTuple):
    """A history's files: one URI to read, how many bytes, and the path when it is on this machine."""

    uri: str
    size: int
    path: Path | None = None


def stored(where: Path | str, spark: SparkSession) -> Stored:
    """The history there; merged first when the run ended before it could do so. HarnessError if there is none."""
    path = local_path(where)
    if path is None:
        return _elsewhere(str(where), spark)
    files = merged_files(path)
    root = path if path.is_file() else files[0].parent
    # Spark takes a path as it is, and would look for a name with %20 in it.
    return Stored(f"file://{root.resolve()}", sum(file.stat().st_size for file in files), root)


def spark_uri(uri: str, spark: SparkSession) -> str:
    """The URI as this Spark knows it: s3:// is Hadoop's s3a://, but where somebody has set up a file system for it."""
    jsc: Any = spark.sparkContext._jsc
    if not uri.startswith("s3://") or jsc.hadoopConfiguration().get("fs.s3.impl"):
        return uri
    return f"s3a://{uri.removeprefix('s3://')}"


def _elsewhere(uri: str, spark: SparkSession) -> Stored:
    uri = spark_uri(uri, spark)
    try:
        for candidate in (f"{uri.rstrip('/')}/history", uri):
            found = _listed(candidate, spark)
            if found is not None:
                return found
    except Exception as exc:
        raise _unreadable(uri, exc) from exc
    raise HarnessError(f"{uri} holds no history: no Parquet file in it or in its folder history")


def _unreadable(uri: str, exc: Exception) -> HarnessError:
    why = " ".join(str(getattr(exc, "java_exception", exc)).split())[:300]
    needs = "Spark needs that file system's library and rights, e.g. hadoop-aws for s3a, in spark-defaults.conf"
    return HarnessError(f"{uri} cannot be read: {why} ({needs})")


def _listed(uri: str, spark: SparkSession) -> Stored | None:
    system, path = _hadoops(uri, spark)
    if not system.exists(path):
        return None
    names = [(status.getPath().getName(), status) for status in system.listStatus(path) if status.isFile()]
    sizes = [status.getLen() for name, status in names if name.endswith(".parquet") and name[0] not in "._"]
    return Stored(uri, sum(sizes)) if sizes else None


def _hadoops(uri: str, spark: SparkSession) -> tuple[Any, Any]:
    """Hadoop's file system of the URI, and its path there."""
    path = cast(Any, spark.sparkContext._jvm).org.apache.hadoop.fs.Path(uri)
    return path.getFileSystem(cast(Any, spark.sparkContext._jsc).hadoopConfiguration()), path


def read_text(uri: str, spark: SparkSession) -> str | None:
    """A small text file that is not on this machine, e.g. a run's scenario.yaml; None if it is not there."""
    uri = spark_uri(uri, spark)
    try:
        system, path = _hadoops(uri, spark)
        if not system.exists(path):
            return None
    except Exception as exc:
        raise _unreadable(uri, exc) from exc
    rows = spark.read.text(uri, wholetext=True).collect()
    return str(rows[0][0]) if rows else ""


def load_planned(run_dir: Path | str, spark: SparkSession) -> tuple[DataFrame, Mapping[str, str]]:
    """The history of a run folder or of a URI, in its schema, and the plans that its checks need, which are set.

    HarnessError if there is none. On a cluster, a small history of this machine is sent there; a large one must be
    where every worker sees it under the same path.
    """
    found = stored(run_dir, spark)
    plans = plans_for(spark, found.size)
    use(spark, plans)
    if plans is not SMALL_PLANS:
        return spark.read.schema(HISTORY_SCHEMA).parquet(found.uri), plans
    if found.path is not None and not is_local(spark.sparkContext.master):
        rows = pq.read_table(found.path, schema=arrow_schema())
        return spark.createDataFrame(rows, HISTORY_SCHEMA).coalesce(1), plans
    return spark.read.schema(HISTORY_SCHEMA).parquet(found.uri).coalesce(1), plans
