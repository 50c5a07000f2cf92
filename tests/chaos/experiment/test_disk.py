"""The disk of a run folder: an experiment ends while there is room to keep what it recorded."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from nemesrv.actors.watch import Alarm
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.experiment.stage import LOW_BYTES, disk_watch
from nemesrv.chaos.machine import free_bytes


def disk(free: int) -> SimpleNamespace:
    return SimpleNamespace(f_bavail=free // 4096, f_frsize=4096)


def test_free_is_what_we_may_write(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    assert free_bytes(tmp_path) == pytest.approx(found.f_bavail * found.f_frsize, rel=0.1)


def test_nothing_rings_while_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: disk(LOW_BYTES))
    alarm = Alarm()
    with disk_watch(tmp_path, alarm):
        alarm.check()


def test_a_disk_that_fills_up_ends_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alarm = Alarm()
    with disk_watch(tmp_path, alarm):
        monkeypatch.setattr(os, "statvfs", lambda _: disk(2 * 1024 * 1024))
        with pytest.raises(HarnessError) as caught:
            alarm.sleep(10)
    assert str(caught.value).startswith(
        f"the disk of {tmp_path} has 2 MB left, too little to record on: free some of it"
    )
