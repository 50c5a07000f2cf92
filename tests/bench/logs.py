"""`python -m tests.bench logs`: how fast logs become events, beside who only counts their lines.

    made up: three NameServers, three brokers, two clients ─► folder of logs
    wc -l │ a loop over the lines in Python │ one process, to events in memory │ Spark, to the rows that an import needs

Megabytes a second of wall time, and of one core's CPU; Spark's are beyond its session's start.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from nemesrv.chaos.logs.reading import read_plain, skimmed
from nemesrv.chaos.reports.terminal import standard_output
from nemesrv.operations.logs_to_rows.gather import USED

from .figures import Aim, Figures
from .measure import BenchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = 256_000_000
PLAIN_SIZE = 32_000_000
"""Of the one process: its events stand in memory."""
WANTED_PER_S = 1000 / 60
"""Megabytes: a gigabyte in a minute."""
WHAT, CPU = "MB/s of logs", "MB/s of CPU"
READER = "Spark, 2 threads"

_BEGIN = datetime(2026, 11, 20, 20, 17, 34, tzinfo=UTC)
_NAME_SERVER = (
    "INFO NettyServerCodecThread_{n8} - NETTY SERVER PIPELINE: channelRegistered 10.0.3.{n8}:{port}",
    "INFO NettyServerCodecThread_{n8} - NETTY SERVER PIPELINE: channelActive, the channel[10.0.3.{n8}:{port}]",
    "INFO RemotingExecutorThread_{n8} - cluster [DefaultCluster] brokerName [broker-{abc}] master address change from "
    "10.0.2.1:10911 to 10.0.2.1:10911",
    "INFO NettyServerCodecThread_{n8} - NETTY SERVER PIPELINE: channelInactive, the channel[10.0.3.{n8}:{port}]",
    "INFO NettyServerCodecThread_{n8} - NETTY SERVER PIPELINE: channelUnregistered, the channel[10.0.3.{n8}:{port}]",
)
_BROKER = (
    "INFO BrokerControllerScheduledThread1 - [WATERMARK] Send Queue Size: {n8} SlowTimeMills: 0",
    "INFO brokerOutApi_thread_{n8} - register broker[0]to name server 10.0.1.{n8}:9876 OK",
    "INFO BrokerControllerScheduledThread1 - [WATERMARK] Pull Queue Size: 0 SlowTimeMills: {n8}",
    "INFO AdminBrokerThread_{n8} - somebody asked for what nobody knows: {port}",
    "INFO BrokerControllerScheduledThread1 - dispatch behind commit log {port} bytes",
)
_CLIENT = (
    ",122 INFO RocketmqClient - send heart beat to broker[broker-{abc} 0 10.0.2.1:10911] success",
    ",122 INFO RocketmqRemoting - createChannel: begin to connect remote host[10.0.2.{n8}:10911] asynchronously",
    ",122 INFO RocketmqClient - [persistAll] Group: g ClientId: 10.0.3.1@{port} updateConsumeOffsetToBroker "
    "MessageQueue [topic=orders, brokerName=broker-{abc}, queueId={n8}] {port}",
    ",122 WARN RocketmqClient - updateTopicRouteInfoFromNameServer Exception\n"
    "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info in name server for "
    "the topic: orders\nSee http://rocketmq.apache.org/docs/faq/ for further details.\n"
    "\tat org.apache.rocketmq.client.impl.MQClientAPIImpl.getTopicRouteInfoFromNameServer(MQClientAPIImpl.java:1)",
)
_LOGS = (
    *((f"ns-{number}/namesrv.log", _NAME_SERVER) for number in range(3)),
    *((f"broker-{letter}/broker.log", _BROKER) for letter in "abc"),
    *((f"client-{number}/rocketmq_client.log", _CLIENT) for number in range(2)),
)


def run(size: int = SIZE, *, spark: SparkSession | None = None, console: Console | None = None) -> Figures:
    """Measure, print and return. BenchError where a line is not accounted for."""
    console = console or standard_output()
    figures = Figures(ours=READER)
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name:
        folder, little = Path(name) / "logs", Path(name) / "little"
        lines = write(folder, size)
        _count_lines(figures, folder)
        write(little, min(size, PLAIN_SIZE))
        with _measured(figures, "one process, events in memory", _size(little)):
            read_plain([little])
        with _session(spark) as using, _measured(figures, READER, _size(folder), cpu=False):
            logs = skimmed(using, [folder], USED, lambda rows: ())
    read, events = sum(file.lines for file in logs.files), len(logs.rows)
    if read != lines or not events:
        raise BenchError(f"of {lines:,} lines {read:,} were read, {events:,} rows came of them")
    figures.aims.append(Aim(what=WHAT, of=None, at_least=WANTED_PER_S))
    figures.print(console)
    console.print(f"{_mb(size):,.0f} MB, {lines:,} lines, {events:,} rows")
    return figures


@contextmanager
def _session(spark: SparkSession | None) -> Iterator[SparkSession]:
    from nemesrv.chaos.checks.spark.session import session, stop

    using = spark or session()
    try:
        yield using
    finally:
        if spark is None:
            stop(using)


def write(folder: Path, size: int) -> int:
    """Logs of about so many bytes in all; how many lines they have."""
    lines = 0
    for name, shapes in _LOGS:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", buffering=1 << 20) as file:
            written = 0
            for text in _texts(shapes):
                written += file.write(text)
                lines += text.count("\n")
                if written >= size / len(_LOGS):
                    break
    return lines


def _texts(shapes: tuple[str, ...]) -> Iterator[str]:
    second = 0
    while True:
        stamp = f"{_BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"
        for number in range(40):
            turn = second * 40 + number
            said = shapes[turn % len(shapes)].format(n8=turn % 8, port=10_000 + turn % 50_000, abc="abc"[turn % 3])
            yield f"{stamp}{'' if said[0] == ',' else ' '}{said}\n"
        second += 1


def _count_lines(figures: Figures, folder: Path) -> None:
    files = [str(path) for path in folder.rglob("*.log")]
    if (wc := shutil.which("wc")) is not None:
        with _measured(figures, "wc -l", _size(folder), cpu=False):
            subprocess.run([wc, "-l", *files], check=True, capture_output=True)
    with _measured(figures, "a loop over lines in Python", _size(folder)):
        for path in files:
            with Path(path).open(encoding="utf-8") as file:
                for _line in file:
                    pass


class _measured:
    """Adds what a block took to the figures."""

    def __init__(self, figures: Figures, who: str, size: int, *, cpu: bool = True) -> None:
        self._figures, self._who, self._size, self._cpu = figures, who, size, cpu

    def __enter__(self) -> None:
        self._begin_s, self._cpu_s = time.perf_counter(), time.process_time()

    def __exit__(self, *_exc: object) -> None:
        self._figures.add(WHAT, self._who, _mb(self._size) / (time.perf_counter() - self._begin_s))
        if self._cpu:
            self._figures.add(CPU, self._who, _mb(self._size) / (time.process_time() - self._cpu_s))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.log"))


def _mb(size: float) -> float:
    return size / 1e6
