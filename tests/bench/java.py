"""Apache's own NameServer: which versions there are, and its process.

The process gets the JVM flags of RocketMQ's `runserver.sh` with half its heap, and logs at INFO to a file in its own
folder, as RocketMQ is set up to.
"""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nemesrv.chaos.apache.properties import logback_of_jar
from nemesrv.remoting.node.network import Address
from tests.ran import ran

from ..interop import programs
from ..interop.jars import Jars, class_path
from .measure import BenchError, Server

VERSIONS = (Jars.SERVERS_4_9, Jars.SERVERS_5_X)
"""One row each."""

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


@contextlib.contextmanager
def name_server(folder: Path, jars: Jars) -> Iterator[Server]:
    """Apache's NameServer, serving, with a home of its own in `folder`."""
    own = Path(tempfile.mkdtemp(dir=folder))
    logback = logback_of_jar(class_path(jars), "namesrv", own)
    properties = {} if logback is None else {"rmq.logback.configurationFile": str(logback)}
    program, address = programs.java_name_server(
        "java", own / "home", jars, properties=properties, flags=_FLAGS, logs=own
    )
    with program:
        yield Server(Address.parse(address), program.pid)


def heap_in_use(pid: int) -> int:
    """Bytes of all objects that live in a JVM after a full collection. BenchError without `jcmd`."""
    command = ["jcmd", str(pid), "GC.class_histogram"]
    try:
        done = ran(command, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as exc:
        raise BenchError(f"jcmd cannot ask Apache's NameServer for its heap: {exc}") from exc
    total = (done.stdout.strip().splitlines() or [""])[-1].split()  # Total <objects> <bytes>
    if len(total) != 3 or not total[2].isdigit():
        raise BenchError(f"jcmd GC.class_histogram was not understood: {done.stdout[-200:]}")
    return int(total[2])
