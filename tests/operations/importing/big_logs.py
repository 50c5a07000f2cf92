"""A folder of logs of any size with one incident in its middle.

    python -m tests.operations.importing.big_logs FOLDER --megabytes 1000

A cluster of three NameServers, three brokers and four Java clients of 4.9 runs for as long as it takes, over and over
the same five quiet minutes, with what such logs are full of: connections that come and go, queue watermarks, committed
offsets. In the middle a broker cannot reach one NameServer for 155 s. Written at some 50 MB/s.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nemesrv.chaos.scenarios.loading import parse

from .recording import Incident, recorded
from .writing import HostClock, Source, lines_of, sources_of

QUIET_S = 300
"""Of RocketMQ's period of 30 s a multiple, so that the repeated minutes follow each other as if they were others."""
SCENARIO = {
    "description": "A broker cannot reach one NameServer for 155 s, after five quiet minutes.",
    "cluster": {"name_servers": 3, "brokers": 3},
    "workload": {"producers": 2, "consumers": 2, "client_starts": 0, "sends_per_s": 1},
    "timeline": [
        {"at_s": QUIET_S + 30, "do": "black_hole", "links": ["broker-a <-> ns-0"]},
        {"at_s": QUIET_S + 185, "do": "heal"},
    ],
    "settle_s": 115,
    "checks": ["routes_are_true"],
}
_STAMP = "%Y-%m-%d %H:%M:%S"


def written(folder: Path, size: int) -> int:
    """Writes about `size` bytes below the folder; how many seconds of a cluster they are."""
    with tempfile.TemporaryDirectory() as place:
        run = recorded(Incident(1, "pair partition", parse(SCENARIO, file="big.yaml")), Path(place) / "run")
        of, sources = sources_of(run)
    steady_ms = next(row["time_ms"] for row in of.rows if row["event"] == "phase" and row["phase"] == "steady")
    a_round = sum(len(_noise(source, second, "0" * 19)) for source in sources for second in range(5))
    times = max(1, int(size / (1.02 * a_round / 5)) // QUIET_S // 2)
    for source in sources:
        path = folder / source.file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb", buffering=1 << 20) as file:
            for text in _texts(source, of.origin_wall_ms, steady_ms, times):
                file.write(text)
    return (2 * times + 1) * QUIET_S


def _texts(source: Source, origin_ms: float, start: float, times: int) -> Iterator[bytes]:
    """The file from its boot to its end, noise included: quiet minutes, the incident, quiet minutes."""
    yield from _plain(source, origin_ms, float("-inf"), start, 0)
    for number in range(2 * times + 1):
        begin = start + 1000 * QUIET_S * (number == times)
        at_ms = start + 1000 * QUIET_S * number
        lines = [*_plain(source, origin_ms, begin, begin + 1000 * QUIET_S, at_ms - begin)]
        yield from _with_noise(source, lines, origin_ms + at_ms)


def _plain(source: Source, origin_ms: float, begin_ms: float, end_ms: float, later_ms: float) -> Iterator[bytes]:
    kept = [entry for entry in source.entries if begin_ms <= entry.at_ms < end_ms]
    later = [entry._replace(at_ms=entry.at_ms + later_ms) for entry in kept]
    for line in lines_of(replace(source, entries=later), origin_ms, HostClock()):
        yield line.encode() + b"\n"


def _with_noise(source: Source, lines: list[bytes], wall_ms: float) -> Iterator[bytes]:
    """The lines of five minutes, and each second's noise between them."""
    zone = timedelta(hours=8 if source.writer == "server" else 0)
    begin = datetime.fromtimestamp(int(wall_ms // 1000), UTC) + zone
    at = 0
    for second in range(QUIET_S):
        stamp = (begin + timedelta(seconds=second)).strftime(_STAMP)
        yield _noise(source, int(wall_ms // 1000) + second, stamp)
        coming = stamp.encode()
        while at < len(lines) and (not lines[at][:1].isdigit() or lines[at][:19] <= coming):
            yield lines[at]
            at += 1
    yield from lines[at:]


def _noise(source: Source, second: int, stamp: str) -> bytes:
    """What one second of this log is full of."""
    name = source.file.rpartition("/")[2]
    if name == "namesrv.log":
        return b"".join(_NAME_SERVER[number](stamp, 32768 + (5 * second + number) % 28000) for number in range(5))
    if name == "broker.log":
        return _BROKER.format(stamp=stamp, size=second % 40).encode()
    if name == "rocketmq_client.log" and second % 5 == 0:
        return _CLIENT.format(stamp=stamp, offset=second).encode()
    return b""


def _come_and_gone(number: int) -> Callable[[str, int], bytes]:
    texts = (
        "channelRegistered 10.0.4.{n}:{port}",
        "channelActive, the channel[10.0.4.{n}:{port}]",
        "channelInactive, the channel[10.0.4.{n}:{port}]",
        "channelUnregistered, the channel[10.0.4.{n}:{port}]",
    )
    thread = f"NettyServerCodecThread_{1 + number}"
    said = "".join(f"{{stamp}} INFO {thread} - NETTY SERVER PIPELINE: {text}\n" for text in texts)
    return lambda stamp, port: said.format(stamp=stamp, port=port, n=10 + number).encode()


_NAME_SERVER = [_come_and_gone(number) for number in range(5)]
_BROKER = "".join(
    f"{{stamp}} INFO BrokerControllerScheduledThread1 - [WATERMARK] {queue} Queue Size: {{size}} SlowTimeMills: 0\n"
    for queue in ("Send", "Pull", "Query", "Transaction")
) + (
    "{stamp} INFO BrokerStatsThread1 - [GROUP_GET_LATENCY] [1@orders@nemesrv-consumers] Stats In One Minute, "
    "TIMES: {size} AVGRT: 0.80\n"
)
_CLIENT = "".join(
    "{stamp},693 INFO RocketmqClient - [persistAll] Group: nemesrv-consumers ClientId: 10.0.3.2@consumer-0#1700 "
    f"updateConsumeOffsetToBroker MessageQueue [topic=orders, brokerName=broker-{broker}, queueId={queue}] {{offset}}\n"
    for broker in "abc"
    for queue in range(4)
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    began = time.perf_counter()
    seconds = written(options.folder, options.megabytes * 1_000_000)
    size = sum(path.stat().st_size for path in options.folder.rglob("*.log"))
    took_s = time.perf_counter() - began
    print(f"{size / 1e6:.0f} MB, {seconds / 3600:.1f} hours of a cluster, written in {took_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
