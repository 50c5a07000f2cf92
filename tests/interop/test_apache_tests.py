"""Apache's own integration tests (tests/apache) at our servers: a few each time, all of them nightly."""

from pathlib import Path

import pytest

from ..apache.suite import classes, run, servers
from .conftest import World, need
from .jars import Jars

pytestmark = pytest.mark.java

FAST = (
    "client.producer.async.AsyncSendWithMessageQueueIT",
    "client.producer.exception.msg.MessageExceptionIT",
    "smoke.NormalMessageSendAndRecvIT",
)
"""Seconds each, and hardly any work: most of the others wait."""


CLIENTS_OF = (Jars.CLIENTS_4_9,)


def test_a_few_of_apaches_tests_pass(world: World, tmp_path: Path) -> None:
    need(Jars.TESTS_4_9)
    outcomes = run(FAST, world.name_server, tmp_path / "java")
    assert [(one.name, one.failed) for one in outcomes] == [(name, []) for name in sorted(FAST)]
    assert all(one.tests > 0 for one in outcomes)


@pytest.mark.nightly("test_a_few_of_apaches_tests_pass")
def test_all_of_apaches_tests_pass(tmp_path: Path) -> None:
    need(Jars.TESTS_4_9)
    with servers(tmp_path) as name_server:
        outcomes = run(classes(), name_server, tmp_path / "java", jvms=3)
    assert {one.name: one.failed for one in outcomes if one.failed} == {}
    assert [one.name for one in outcomes] == classes()
    assert all(one.tests > 0 for one in outcomes)
