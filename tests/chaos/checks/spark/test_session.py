"""What the session's JVM leaves to say when it is gone, and where it has to live."""

import json
import logging
import os
import shutil
import socket
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from nemesrv.chaos.checks.spark import session
from nemesrv.chaos.checks.spark.session import quieten_py4j, stop
from tests import generate
from tests.chaos.programs import NEMESRV
from tests.ran import ran


@pytest.fixture
def logs_as_the_command_does() -> Iterator[None]:
    """The loggers' levels and filters are as before afterwards."""
    root, py4j = logging.root, logging.getLogger("py4j")
    before = root.level, py4j.level, root.filters[:]
    root.setLevel(logging.ERROR)
    py4j.setLevel(logging.NOTSET)
    root.filters.clear()
    yield
    root.setLevel(before[0])
    py4j.setLevel(before[1])
    root.filters[:] = before[2]


def ask_a_jvm_that_is_killed() -> None:
    """Its connection is reset while it owes an answer."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1_000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        jvm = threading.Thread(target=serve)
        jvm.start()
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=listener.getsockname()[1]))
        with suppress(Py4JError):
            gateway.jvm.java.lang.System.gc()
        jvm.join()


@pytest.mark.usefixtures("logs_as_the_command_does")
def test_that_the_jvm_is_gone_is_not_told_by_a_traceback_of_py4j(caplog: pytest.LogCaptureFixture) -> None:
    ask_a_jvm_that_is_killed()
    assert [(record.name, record.levelname) for record in caplog.records] == [("root", "ERROR")]
    caplog.clear()
    quieten_py4j()
    ask_a_jvm_that_is_killed()
    assert caplog.records == []
    logging.error("others' errors are told")
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("logs_as_the_command_does")
def test_who_debugs_is_told(caplog: pytest.LogCaptureFixture) -> None:
    logging.root.setLevel(logging.DEBUG)
    quieten_py4j()
    ask_a_jvm_that_is_killed()
    assert "Exception while sending command." in caplog.messages


def test_the_end_of_a_session_whose_jvm_was_killed_prints_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_temporary", None)  # other tests' JVM keeps its folder
    warn = partial(warnings.warn, "Unable to cleanly shutdown Spark JVM process.", RuntimeWarning, stacklevel=2)
    dead = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=None), stop=warn)
    stop(cast(SparkSession, dead))


@pytest.mark.nightly("none: it needs a JVM of its own, as a user who has no name")
@pytest.mark.spark
@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_user_without_name_and_locale_gets_a_verdict(tmp_path: Path) -> None:
    """As a container has them that runs with any user id, and a machine without a locale."""
    folder = tmp_path / "运行" / "一"
    folder.mkdir(parents=True)
    generate.write(folder, events=2_000, seed=1)
    env = {name: value for name, value in os.environ.items() if name not in ("LANG", "LC_CTYPE")}
    done = ran(
        ["unshare", "--user", "--map-user=12345", *NEMESRV, "check", "一", "--checks=order_kept", "--engine=spark"],
        cwd=folder.parent,
        env={**env, "LC_ALL": "C", "HOME": "/"},
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))["engine"] == "spark"
