"""A node's process and its children share signals: stopped together, continued together, gone when all are."""

import signal
import subprocess
from collections.abc import Iterator

import pytest

from nemesrv.actors.hosts import Family
from nemesrv.actors.processes import Process

LIMIT_S = 20.0


@pytest.fixture
def two() -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    both = subprocess.Popen(["sleep", "600"]), subprocess.Popen(["sleep", "600"])
    try:
        yield both
    finally:
        for each in both:
            each.kill()
            each.wait()


def test_a_signal_is_sent_to_all_of_them(two: tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]) -> None:
    parent, child = two
    family = Family(Process(parent.pid))
    family.take([child.pid], Process)
    assert (family.pid, family.children) == (parent.pid, (child.pid,))
    family.send(signal.SIGSTOP)
    assert family.stopped(LIMIT_S)
    family.send(signal.SIGCONT)
    alone = Process(child.pid)
    assert not alone.stopped()
    family.send(signal.SIGKILL)
    assert family.gone(LIMIT_S)
    assert (parent.wait(), child.wait()) == (-signal.SIGKILL, -signal.SIGKILL)
    alone.close()
    family.close()


def test_it_is_not_gone_while_a_child_is_there(two: tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]) -> None:
    parent, child = two
    family = Family(Process(parent.pid))
    family.take([child.pid], Process)
    parent.kill()
    parent.wait()
    assert not family.gone(0.05)
    family.take([], Process)  # the child has left the family: its own end is planned elsewhere
    assert family.gone(LIMIT_S)
    family.close()


def test_a_child_that_has_ended_is_none(two: tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]) -> None:
    parent, child = two
    child.kill()
    child.wait()
    family = Family(Process(parent.pid))
    family.take([child.pid], Process)
    assert family.children == ()
    family.close()
