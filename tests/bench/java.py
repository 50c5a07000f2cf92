"""Apache's own NameServer: which versions there are, and its process.

The process gets the JVM flags of RocketMQ's `runserver.sh` with half its heap, and logs at INFO to a file in its own
folder, as RocketMQ is set up to.
"""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nemesrv.chaos.apache.maven import JavaMissing, cache, require, resolve

from . import measure
from .measure import BenchError, Server

VERSIONS = (("4.9.8", "4.9.7"), ("5.3.3",))
"""One row each; the first version of it that Maven has. 4.9.8 was published without its NameServer."""

MAIN = "org.apache.rocketmq.namesrv.NamesrvStartup"
START_TIMEOUT_S = 60

_FLAGS = (
    "-server",
    "-Xms2g",
    "-Xmx2g",
    "-Xmn1g",
    "-XX:MetaspaceSize=128m",
    "-XX:MaxMetaspaceSize=320m",
    "-XX:+UseG1GC",
    "-XX:G1HeapRegionSize=16m",
    "-XX:G1ReservePercent=25",
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:SoftRefLRUPolicyMSPerMB=0",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:-UseLargePages",
    "-Djava.net.preferIPv4Stack=true",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
)

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>nemesrv</groupId>
  <artifactId>bench</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.rocketmq</groupId>
      <artifactId>rocketmq-namesrv</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""

_LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>${user.home}/namesrv.log</file>
    <encoder><pattern>%d{yyy-MM-dd HH:mm:ss,GMT+8} %p %t - %m%n</pattern></encoder>
  </appender>
  <appender name="queue" class="ch.qos.logback.classic.AsyncAppender">
    <discardingThreshold>0</discardingThreshold>
    <appender-ref ref="file"/>
  </appender>
  <root level="INFO"><appender-ref ref="queue"/></root>
</configuration>
"""


def jars(versions: tuple[str, ...]) -> tuple[str, Path]:
    """The first of `versions` that can be had, and the folder with its jars. JavaMissing."""
    require("java")
    folders = {version: cache("bench") / f"namesrv-{version}" for version in versions}
    for version, folder in folders.items():
        if folder.is_dir():
            return version, folder
    reasons = []
    for version, folder in folders.items():
        try:
            return version, resolve(f"rocketmq-namesrv {version}", _POM.format(version=version), folder)
        except JavaMissing as exc:
            reasons.append(str(exc))
    raise JavaMissing("; ".join(reasons))


@contextlib.contextmanager
def name_server(folder: Path, jar_folder: Path) -> Iterator[Server]:
    """Apache's NameServer, serving, with a home of its own in `folder`. BenchError when it does not start."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    (folder / "conf").mkdir()
    (folder / "conf" / "logback_namesrv.xml").write_text(_LOGBACK)  # 5.x has its own inside its jar
    address = measure.free_address()
    config = folder / "namesrv.conf"
    config.write_text(
        f"listenPort={address.port}\nbindAddress={address.host}\nkvConfigPath={folder / 'kvConfig.json'}\n"
    )
    defines = [f"-Duser.home={folder}", f"-Drocketmq.home.dir={folder}"]
    command = ["java", *_FLAGS, *defines, "-cp", f"{jar_folder}/*", MAIN, "-c", str(config)]
    with open(folder / "stdout", "w+b") as out:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "ROCKETMQ_HOME": str(folder)}, stdout=out, stderr=out
        )
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while b"boot success" not in (said := (folder / "stdout").read_bytes()):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise BenchError(f"Apache's NameServer did not start: {said.decode(errors='replace')[-500:]}")
                time.sleep(0.05)
            yield Server(address, process.pid)
        finally:
            process.kill()
            process.wait()


def heap_in_use(pid: int) -> int:
    """Bytes of all objects that live in a JVM after a full collection. BenchError without `jcmd`."""
    command = ["jcmd", str(pid), "GC.class_histogram"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as exc:
        raise BenchError(f"jcmd cannot ask Apache's NameServer for its heap: {exc}") from exc
    total = (done.stdout.strip().splitlines() or [""])[-1].split()  # Total <objects> <bytes>
    if len(total) != 3 or not total[2].isdigit():
        raise BenchError(f"jcmd GC.class_histogram was not understood: {done.stdout[-200:]}")
    return int(total[2])
