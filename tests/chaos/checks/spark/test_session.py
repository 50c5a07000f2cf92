"""What the session's JVM leaves to say when it is gone. No JVM is started here."""

from __future__ import annotations

import logging
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from nemesrv.chaos.checks.spark.session import quieten_py4j


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
