"""A Spark standalone cluster on this machine's loopback: one master, some workers of one core, gone afterwards.

Started from pyspark's own `spark-class`, as `sbin/start-master.sh` would; no script, no daemon, no file outside of
`folder`. For trying `--spark-master`, not for work: all of it shares this machine.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pyspark

from ..free_port import free_port
from .measure import BenchError

HOST = "127.0.0.1"
START_LIMIT_S = 120
STOP_LIMIT_S = 20
_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def standalone(folder: Path, *, workers: int = 2, memory: str = "2g") -> Iterator[str]:
    """The master's URL, once every worker has joined. BenchError when that takes longer than START_LIMIT_S."""
    master, pages = free_port(), free_port()
    with ExitStack() as stack:
        run = [_DEPLOY + ".master.Master", "--host", HOST, "--port", str(master)]
        stack.enter_context(_java(folder, "master", [*run, "--webui-port", str(pages)]))
        url = f"spark://{HOST}:{master}"
        deadline_s = time.monotonic() + START_LIMIT_S
        _await_workers(f"http://{HOST}:{pages}/json/", 0, folder, deadline_s)
        for number in range(workers):
            run = [_DEPLOY + ".worker.Worker", "--host", HOST, "--cores", "1", "--memory", memory]
            run += ["--webui-port", str(free_port()), "--work-dir", str(folder / f"work-{number}"), url]
            stack.enter_context(_java(folder, f"worker-{number}", run))
        _await_workers(f"http://{HOST}:{pages}/json/", workers, folder, deadline_s)
        yield url


@contextmanager
def _java(folder: Path, name: str, arguments: list[str]) -> Iterator[None]:
    command = Path(pyspark.__file__).parent / "bin" / "spark-class"
    settings = {"SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [str(command), *arguments], stdout=log, stderr=log, env=os.environ | settings, cwd=folder
        )
        try:
            yield
        finally:
            process.terminate()  # a worker ends its executors
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_workers(page: str, wanted: int, folder: Path, deadline_s: float) -> None:
    assert urlsplit(page).scheme == "http"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline_s:
        try:
            with opener.open(page, timeout=5) as answer:
                if json.load(answer).get("aliveworkers", -1) >= wanted:
                    return
        except (OSError, urllib.error.URLError, ValueError):
            pass
        time.sleep(0.3)
    said = " ".join((folder / "master.log").read_text(errors="replace").split())[-300:]
    raise BenchError(f"the Spark cluster did not come up within {START_LIMIT_S} s: {said}")
