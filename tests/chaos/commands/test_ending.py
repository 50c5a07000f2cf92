"""Whatever a command raises is an exit status and one line that says how to mend it."""

import errno
import os
import signal

import click
import pytest

from nemesrv.chaos.commands.ending import Stopped, explain
from nemesrv.chaos.errors import HarnessError, ScenarioError


def failed(number: int, file: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), file) if file else OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("exc", "status", "says"),
    [
        (ScenarioError("a.yaml", "seed", "-1", "0 or more"), 2, "a.yaml: seed: -1 is not allowed; expected 0 or more"),
        (click.UsageError("no such option"), 2, "no such option"),
        (HarnessError("Ray did\n not start"), 4, "Ray did not start"),
        (KeyboardInterrupt(), 128 + signal.SIGINT, "interrupted"),
        (Stopped(), 128 + signal.SIGINT, "interrupted"),
        (failed(errno.ENOSPC, "/runs/x"), 4, "the disk is full at /runs/x: free some of it, or name a folder on"),
        (failed(errno.ENOSPC), 4, "the disk is full: free some of it"),
        (failed(errno.EMFILE), 4, "ulimit -n 4096"),
        (failed(errno.EROFS, "/runs"), 4, "no permission at /runs: Read-only file system"),
        (MemoryError(), 4, "memory ran out"),
        (KeyError("x"), 4, "internal error: KeyError: 'x'"),
    ],
)
def test_what_was_raised_is_a_status_and_one_line(exc: BaseException, status: int, says: str) -> None:
    found, text = explain(exc)
    assert found == status
    assert says in text
    assert "\n" not in text


def test_a_status_that_was_chosen_stays() -> None:
    assert explain(SystemExit(3)) == (3, "")


def test_what_can_no_longer_say_what_it_was_is_told_by_its_kind() -> None:
    class OfAnEndedJVM(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    status, text = explain(OfAnEndedJVM())
    assert status == 4
    assert text.startswith("internal error: OfAnEndedJVM: OfAnEndedJVM")
