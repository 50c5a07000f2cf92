"""Writes RocketMQ's configuration files for Apache's programs: namesrv.conf, broker.conf and logback's.

The keys in these files are RocketMQ's own. `name_server` and `broker` return the default settings, which a scenario's
or a test's settings override. Store files are small enough for a dozen brokers on one machine.
"""

import contextlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...remoting.bodies.register import TopicConfigSerializeWrapper
from ...remoting.bodies.route import DataVersion, TopicConfig
from ...remoting.properties import format_properties
from ...remoting.topics import DEFAULT_CLUSTER
from .maven import JavaMissing

Properties = Mapping[str, object]

SMALL_STORE: Properties = {
    "mappedFileSizeCommitLog": 16 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 20_000,
    "maxIndexNum": 20_000,
    "maxHashSlotNum": 10_000,
    "mappedFileSizeTimerLog": 1024 * 1024,
    "timerWheelEnable": False,
    "diskMaxUsedSpaceRatio": 95,
    "flushDiskType": "ASYNC_FLUSH",
}
"""Settings of a broker with small store files."""
_LOGS = ("namesrv", "broker", "tools", "proxy", "controller")


def name_server(port: int, folder: Path, more: Properties | None = None) -> dict[str, object]:
    """Return the settings of a NameServer at 127.0.0.1:port (4.9: at all addresses of the machine) with its files in
    `folder`."""
    own = {"listenPort": port, "bindAddress": "127.0.0.1", "kvConfigPath": folder / "kvConfig.json"}
    return {**own, **(more or {})}


def broker(
    port: int, folder: Path, name: str, name_servers: Sequence[object], more: Properties | None = None
) -> dict[str, object]:
    """Return the settings of a master that registers 127.0.0.1:port and has its store in `folder`."""
    store = folder / "store"
    own = {
        "brokerClusterName": DEFAULT_CLUSTER,
        "brokerName": name,
        "brokerId": 0,
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "bindAddress": "127.0.0.1",
        "listenPort": port,
        "haListenPort": port + 1,
        "namesrvAddr": ";".join(map(str, name_servers)),
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
    }
    return {**own, **SMALL_STORE, **(more or {})}


def write(path: Path, settings: Properties) -> Path:
    """Write the settings into a file for RocketMQ's option `-c`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(format_properties({key: said(value) for key, value in settings.items()}), encoding="utf-8")
    return path


def said(value: object) -> str:
    """Return a setting's value as Java reads it, several numbers separated by commas."""
    if isinstance(value, tuple):
        return ",".join(map(said, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_logback(conf: Path, logs: Path | None) -> None:
    """Write the logback file of 4.9 (ROCKETMQ_HOME/conf): INFO goes to `logs`/namesrv.log or broker.log; None: no log.
    Version 5.x has its own logback file in its jars and logs below ${user.home}/logs/rocketmqlogs."""
    conf.mkdir(parents=True, exist_ok=True)
    for part in _LOGS:
        body = "<root level='OFF'/>" if logs is None else _LOGBACK.format(file=logs / f"{part}.log")
        (conf / f"logback_{part}.xml").write_text(f"<configuration>{body}</configuration>", encoding="utf-8")


_LOGBACK = """
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{file}</file>
    <encoder><pattern>%d{{yyy-MM-dd HH:mm:ss,GMT+8}} %p %t - %m%n</pattern></encoder>
  </appender>
  <appender name="queue" class="ch.qos.logback.classic.AsyncAppender">
    <discardingThreshold>0</discardingThreshold>
    <appender-ref ref="file"/>
  </appender>
  <root level="INFO"><appender-ref ref="queue"/></root>
"""


def logback_of_jar(class_path: str, part: str, conf: Path) -> Path | None:
    """Copy 5.x's own log settings of a `part` (namesrv, broker) from its jar into `conf`; None for 4.9.

    The logback file must be named explicitly: with both jars on the class path, the NameServer would use the broker's
    logback file. Raises JavaMissing if the jar cannot be unpacked.
    """
    name = f"rmq.{part}.logback.xml"
    for jar in sorted(Path(class_path.removesuffix("/*")).glob(f"rocketmq-{part}-*.jar")):
        try:
            with zipfile.ZipFile(jar) as opened, contextlib.suppress(KeyError):
                (conf / name).write_bytes(opened.read(name))
                return conf / name
        except zipfile.BadZipFile as exc:
            raise JavaMissing(f"{jar} is no jar ({exc}): unpack the distribution again") from exc
    return None


def topics_file(topics: Mapping[str, int], now_ms: int) -> bytes:
    """Return the content of a broker's store/config/topics.json with these topics (name to queues), for the broker's
    first start."""
    configs = [TopicConfig(topic_name=name, read_queue_nums=n, write_queue_nums=n) for name, n in topics.items()]
    version = DataVersion(counter=len(configs), timestamp=now_ms)
    return TopicConfigSerializeWrapper.of(tuple(configs), version).encode()
