"""Makes a Java program's clocks follow the run's clock, by preloading libfaketime, if RocketMQ's time is scaled.

The JVM's wall clock and monotonic clock show `RealClock.now_ms`, and the JVM's waits follow these clocks (measured:
docs/apache.md). The library reads the origin of its clocks from shared memory, whose name is in an environment
variable. This module creates the shared memory for each program and removes it once the program is up. Shared memory
that libfaketime creates itself would remain after a kill.
"""

import ctypes
import os
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from struct import pack

from ...actors.processes import alive
from ...remoting.node.clock import RealClock
from ..errors import HarnessError

VARIABLE = "NEMESRV_FAKETIME"
"""Names libfaketimeMT.so.1 if it is not in a usual place."""

PLACES = ("/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
FILE = "libfaketimeMT.so.1"
SHARED = Path("/dev/shm")
_PREFIX = "nemesrv-"
_TOLERANCE_MS = 5


def found(places: Iterable[str] = PLACES) -> Path | None:
    """Return the path of libfaketime for programs with threads; None if libfaketime is not installed."""
    if named := os.environ.get(VARIABLE):
        return Path(named) if Path(named).is_file() else None
    paths = (path for place in places for path in sorted(Path("/").glob(f"{place[1:]}/{FILE}")))
    return next(paths, None)


class FakedTime:
    """The environment variables that make a program's clocks follow `clock`; none at normal speed. Call `forget` once
    the program is up or has ended, so that no shared memory remains. `name` must be unique on this machine."""

    def __init__(self, clock: RealClock, name: str) -> None:
        self.environment: dict[str, str] = {}
        self._name = f"{_PREFIX}{os.getpid()}-{name}"
        if clock.scale == 1:
            return
        library = found()
        if library is None:
            raise HarnessError(missing(clock.scale))
        self.forget()
        starts_ns = _share(clock, self._name)
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME": f"{clock.origin_wall_ms / 1000 - starts_ns / 1e9:+.6f} x{clock.scale:g}",
            "FAKETIME_SHARED": f"/{self._name} /{self._name}",
            "FAKETIME_DONT_RESET": "1",
        }

    def forget(self) -> None:
        """Remove the shared memory of libfaketime; a running program that uses it continues."""
        for file in (SHARED / self._name, SHARED / f"sem.{self._name}"):
            file.unlink(missing_ok=True)


def sweep() -> None:
    """Remove the shared memory of nodes that were killed with SIGKILL before their program was up."""
    for file in (*SHARED.glob(f"{_PREFIX}[0-9]*-*"), *SHARED.glob(f"sem.{_PREFIX}[0-9]*-*")):
        owner = file.name.removeprefix("sem.").removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError):
            if file.stat().st_uid == os.getuid() and owner.isdigit() and not alive(int(owner)):
                file.unlink()


def missing(scale: float) -> str:
    named = os.environ.get(VARIABLE)
    where = f"{VARIABLE} names {named}, which is no file" if named else f"{FILE} is not on this machine"
    return (
        f"timers.time_scale: {scale:g}: Apache's programs go at another pace than the machine's by libfaketime only, "
        f"and {where}; allowed: time_scale 1, or install it (Debian: apt-get install faketime)"
    )


def wrong(clock: RealClock) -> str | None:
    """Test with the program `date` whether its clock follows `clock`. Returns None if the clock of `date` follows, else
    a sentence that says what is wrong."""
    if clock.scale == 1:
        return None
    if found() is None:
        return missing(clock.scale)
    sweep()
    faked = FakedTime(clock, "probe")
    began_ms = clock.now_ms()
    try:
        asked = subprocess.run(
            ["date", "+%s%N"], env={**os.environ, **faked.environment}, capture_output=True, text=True, timeout=30
        )
    finally:
        faked.forget()
    ended_ms = clock.now_ms()
    shown = asked.stdout.strip()
    shown_ms = int(shown) / 1e6 if shown.isdigit() else float("nan")
    if began_ms - _TOLERANCE_MS <= shown_ms <= ended_ms + _TOLERANCE_MS:
        return None
    told = f"shows {shown_ms - ended_ms:.0f} ms more than the run's clock" if shown.isdigit() else asked.stderr.strip()
    return (
        f"timers.time_scale: {clock.scale:g}: under {found()} a program's clock does not go as the run's ({told}); "
        "allowed: time_scale 1, or libfaketime 0.9.7 or newer"
    )


def _share(clock: RealClock, name: str) -> int:
    """Create the shared memory and semaphore that libfaketime looks for. Returns the origin on the machine's wall
    clock.

    The memory is `struct ft_shared_s`: two counters, and the origin by CLOCK_REALTIME, _MONOTONIC, _MONOTONIC_RAW and
    _BOOTTIME.
    """
    now = [time.clock_gettime_ns(each) for each in _CLOCKS]
    since_ns = now[1] - clock.origin_monotonic_ns
    origins = [ns - since_ns for ns in now]
    seconds = (part for ns in origins for part in divmod(ns, 1_000_000_000))
    file = SHARED / name
    file.touch(mode=0o600)
    file.write_bytes(pack("=QQ8q", 0, 0, *seconds))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sem_open.restype = ctypes.c_void_p
    semaphore = libc.sem_open(f"/{name}".encode(), os.O_CREAT | os.O_EXCL, ctypes.c_uint(0o600), ctypes.c_uint(1))
    if not semaphore:
        error = ctypes.get_errno()
        file.unlink()
        raise OSError(error, os.strerror(error), str(SHARED / f"sem.{name}"))
    libc.sem_close(ctypes.c_void_p(semaphore))
    return origins[0]


_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW, time.CLOCK_BOOTTIME)
