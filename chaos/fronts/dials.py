"""Observes each connect() of a program and its descendants, refused and unanswered connects included. Linux, without
root.

    DialWatch(see, clock, front_of)          supervise.py runs CMD behind a seccomp filter and tells each connect()
      command(CMD) + pass_fds  ──► subprocess, in a process group of its own (start_new_session=True)
      watch()                  ◄── lines ──► Dialled
                               ◄── /proc ──► GaveUp: an unanswered connect to a front is over

Works for Java, Go, Node and static binaries, because the kernel reports the call. Connects by io_uring, by sendto()
(TCP fast open) and by 32-bit programs on a 64-bit kernel are not seen. If the kernel or a sandbox forbids the seccomp
filter, `why_unseen` says so. Without the seccomp filter, unanswered connects are found in /proc/net/tcp, but refused
connects are not seen.

A connect can be reported some milliseconds after its result, so callers must sort observations by `at_ms`.
"""

import asyncio
import contextlib
import fcntl
import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from .observed import Dialled, GaveUp
from .pipes import PipeLines
from .sockets import DiallingLately, sockets

_SUPERVISE = Path(__file__).with_name("supervise.py")
_LOOKS_EACH_S = 0.05
_ANSWERED_WITHIN_S = 0.15
"""On loopback an answer comes at once; a connect that takes longer is looked up in /proc."""
_LATELY = DiallingLately()
"""Shared, so that one look covers all programs of this process."""
_SET_PIPE_SIZE, _PIPE_SIZE = 1031, 1 << 20


class DialWatch:
    """Observes the connects of one program. `front_of` returns the name of the front at an address; None: no front has
    the address."""

    def __init__(
        self, see: Callable[[Dialled | GaveUp], None], clock: Clock, front_of: Callable[[Address], str | None]
    ) -> None:
        self._see, self._clock, self._front_of = see, clock, front_of
        read, self._write = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(read, _SET_PIPE_SIZE, _PIPE_SIZE)
        self._pipe = io.FileIO(read)
        self._heard_ms = float("-inf")  # connects are told in their order
        self._lines: PipeLines | None = None
        self._looking: asyncio.Task[None] | None = None
        self._told = asyncio.Event()
        self._ended = asyncio.Event()
        self.process: int | None = None
        """The program's own process, once `told`."""
        self.why_unseen: str | None = None
        """Why connect() calls are not seen, once `told`; None: they are."""
        self.not_started: OSError | None = None
        """Why the program could not be executed, once `told`."""
        self.exit_code: int | None = None
        """The exit code of the program once it has ended; after the end by a signal, minus the signal's number."""
        self.lost = 0
        """Dials that could not be told because nobody read them in time."""

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs `command` under supervise.py; start it with `pass_fds`. supervise.py exits
        with the exit status of `command`."""
        return [sys.executable, "-I", "-S", str(_SUPERVISE), str(self._write), *command]

    @property
    def pass_fds(self) -> tuple[int, ...]:
        return (self._write,)

    def watch(self) -> None:
        """Observe connects from now on. Call `watch` after the command was started."""
        os.close(self._write)
        self._write = -1
        self._lines = PipeLines(self._pipe, lambda line: self._heard(json.loads(line)), ended=self._stop)

    async def told(self) -> None:
        """Wait until the command runs or has failed to start."""
        await self._told.wait()

    async def ended(self) -> None:
        """Wait until the command and all its descendants have ended and every connect was reported."""
        await self._ended.wait()

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
        self._pipe.close()
        self._stop()
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def _stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._told.set()
        self._ended.set()

    def _heard(self, line: dict[str, object]) -> None:
        match line:
            case {
                "host": str(host),
                "port": int(port),
                "at_ns": int(at_ns),
                "process": int(process),
                "thread": int(thread),
                "local": int(local),
            }:
                scale = float(getattr(self._clock, "scale", 1.0))
                at_ms = self._clock.monotonic_s() * 1000.0 - (time.monotonic_ns() - at_ns) / 1e6 * scale
                self._heard_ms = at_ms = max(at_ms, self._heard_ms)  # both clocks are not read at one moment
                self._dialled(Address(host, port), at_ms, process, thread if thread != process else None, local or None)
            case {"not_started": int(number)}:
                self.not_started = OSError(number, os.strerror(number))
                self._told.set()
            case {"ended": int(code), "lost": int(lost)}:
                self.exit_code, self.lost = code, lost
            case {"process": int(process), "seen": seen, "why": why}:
                self.process = process
                if not seen:
                    self.why_unseen = str(why)
                    self._look_on()
                self._told.set()

    def _dialled(
        self, address: Address, at_ms: float, process: int, thread: int | None = None, local: int | None = None
    ) -> None:
        front = self._front_of(address)
        self._see(Dialled(at_ms=at_ms, address=address, front=front, process=process, thread=thread, local=local))
        if front is not None:
            self._dialled_last_s = self._clock.monotonic_s()
            self._look_on()

    _dialled_last_s = 0.0

    def _look_on(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        """Report unanswered connects to fronts, and their end. Without the filter it looks all the time."""
        known: set[tuple[Address, Address]] = set()
        looked_ms = 0.0
        while True:
            await asyncio.sleep(_LOOKS_EACH_S if known or self.why_unseen is not None else _ANSWERED_WITHIN_S)
            ago_s, pairs = _LATELY.look()
            now = {pair for pair in pairs if self._front_of(pair[1]) is not None}
            now_ms = (self._clock.monotonic_s() - ago_s) * 1000.0
            if self.why_unseen is not None:
                for _local, remote in sorted(now - known):
                    self._dialled(remote, now_ms, self.process or 0)
            if gone := known - now:
                for local, remote in sorted(gone):
                    if not any((each.local, each.remote) == (local, remote) for each in sockets(local.port)):
                        at_ms = (looked_ms + now_ms) / 2
                        self._see(GaveUp(at_ms=at_ms, address=remote, front=self._front_of(remote)))
            known, looked_ms = now, now_ms
            waits = now_ms / 1000.0 - self._dialled_last_s < 2 * _ANSWERED_WITHIN_S
            if not known and not waits and self.why_unseen is None:
                return
