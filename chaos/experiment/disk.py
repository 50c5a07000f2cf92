"""The disk of a run folder, watched: an experiment ends while there is still room to keep what it recorded."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

from ...actors.watch import Alarm
from ..errors import HarnessError

LOW_BYTES = 24 * 1024 * 1024
"""Room for the merged history of a run of minutes, and for what all nodes record until they have ended."""
LOOK_EVERY_S = 1.0


def free_bytes(folder: Path) -> int:
    """What we may still write there."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def full(folder: Path, free: int) -> HarnessError:
    """What is to be said of it."""
    return HarnessError(
        f"the disk of {folder} has {free / 1024**2:.0f} MB left, too little to record on: free some of it, or name a "
        "folder on another disk with --out; what was recorded is kept, and nothing is judged"
    )


class DiskWatch:
    """Context manager: the alarm rings when fewer than LOW_BYTES are left."""

    def __init__(self, folder: Path, alarm: Alarm) -> None:
        self._folder, self._alarm = folder, alarm
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disk-watch", daemon=True)

    def look(self) -> None:
        """Once."""
        free = free_bytes(self._folder)
        if free < LOW_BYTES:
            self._alarm.ring(full(self._folder, free))

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.look()

    def __enter__(self) -> DiskWatch:
        self.look()
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
