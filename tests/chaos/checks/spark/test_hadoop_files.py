"""A copy of a history that Spark's Hadoop client wrote is the one that `nemesrv check` finds there."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.apache.maven import JavaMissing, cache, require, resolve
from nemesrv.chaos.checks.spark.hadoop_files import opened_by
from nemesrv.chaos.checks.spark.storage import load_planned
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.history.rows import read_rows, write_parquet
from nemesrv.chaos.history.store import HistoryStore, is_hadoops
from tests.chaos.builder import cluster

HADOOP = "3.5.0"
"""As of the client that PySpark brings along: both are on one class path."""
POM = f"""
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>nemesrv</groupId><artifactId>hdfs</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId><version>{HADOOP}</version>
    <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
  </dependency></dependencies>
</project>
"""
MINI = """
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class Mini {
    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", args[0]);
        MiniDFSCluster dfs = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
        dfs.waitActive();
        System.out.println("hdfs://127.0.0.1:" + dfs.getNameNodePort());
        System.out.flush();
        while (System.in.read() >= 0) { }
        dfs.shutdown();
    }
}
"""


def run(folder: Path) -> Path:
    write_parquet(cluster().end(10).rows, folder)
    (folder / "scenario.yaml").write_text("name: smoke\n")
    return folder


def test_hdfs_is_hadoops_and_nothing_else_is() -> None:
    assert is_hadoops("hdfs://namenode:8020/chaos")
    assert not any(map(is_hadoops, ("/runs", "file:///runs", "s3://bucket/x", "s3a://bucket/x", "gs://bucket")))


def test_a_name_node_that_is_not_there_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    spark: Any = None  # nobody asks it
    with pytest.raises(ScenarioError) as refused:
        HistoryStore(f"hdfs://127.0.0.1:{port}/x", opened_by(spark))
    assert f"127.0.0.1:{port} does not answer: Connection refused" in str(refused.value)


@pytest.mark.spark
def test_what_hadoop_writes_is_in_place_of_what_was(spark: Any, tmp_path: Path) -> None:
    place = (tmp_path / "store").as_uri()
    store = HistoryStore(place, opened_by(spark))
    here = run(tmp_path / "run")
    assert store.keep(here, "smoke/1") == f"{place}/smoke/1"
    copy = tmp_path / "store/smoke/1"
    (copy / "history/part-00001.parquet").write_bytes(b"of a larger one")
    store.keep(here, "smoke/1")
    assert [path.name for path in (copy / "history").glob("*.parquet")] == ["part-00000.parquet"]
    assert read_rows(copy) == read_rows(here)
    assert (copy / "scenario.yaml").read_text() == "name: smoke\n"
    (tmp_path / "store/smoke/2").write_text("in the way")
    with pytest.raises(HarnessError, match=r"the history is in .*run only"):
        store.keep(here, "smoke/2")


@pytest.mark.spark
@pytest.mark.java
def test_a_history_is_written_to_hdfs_and_read_from_there(spark: Any, tmp_path: Path) -> None:
    try:
        require("java")
        jars = resolve("HDFS", POM, cache(f"hadoop-minicluster-{HADOOP}"))
    except JavaMissing as missing:
        pytest.skip(str(missing))
    (tmp_path / "Mini.java").write_text(MINI)
    import pyspark

    class_path = f"{jars}/*:{Path(pyspark.__file__).parent}/jars/*"
    command = ["java", "-cp", class_path, str(tmp_path / "Mini.java"), str(tmp_path / "dfs")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    ) as hdfs:
        try:
            assert hdfs.stdout is not None
            place = f"{hdfs.stdout.readline().strip()}/chaos"
            store, here = HistoryStore(place, opened_by(spark)), run(tmp_path / "run")
            there = store.keep(here, "smoke/1")
            assert store.keep(here, "smoke/1") == there == f"{place}/smoke/1"
            assert load_planned(there, spark)[0].count() == len(read_rows(here))
        finally:
            hdfs.kill()
