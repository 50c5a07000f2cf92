"""A process that receives the signals meant for the work (a command in a child process), and makes sure that no process
of the work is left. Linux only.

    shell ── SIGINT, SIGTERM, SIGHUP ──► supervisor ── SIGINT, once ──► the work ──► Ray, a JVM, Toxiproxy, nodes
                                             └── SIGKILL to every descendant: at a second signal, after GRACE_S,
                                                 and to whatever is left when the work has ended

The supervisor is a separate process, because the work cannot guarantee its own end. In the work, `ray.init` installs
C++ handlers for SIGTERM, exceptions from signal handlers can be lost in destructors, and C code may not return. As a
child subreaper (prctl(2)) the supervisor becomes the parent of the work's orphans, so its descendants are exactly the
processes of the work. The supervisor imports no large package and starts no thread, so it forks safely and reacts at
once.
"""

import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from .processes import die_with_parent, family, sweep

GRACE_S, QUICK_S = 7.0, 3.0
SAME_SIGNAL_S = 0.5
"""`timeout` and some shells send a signal to the process and to its group: two so close together are one."""
KILL_LIMIT_S = 3.0
EXIT_HARNESS = 4

_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the supervised work ended, and the first signal that asked for the work's end."""

    status: int | None = None
    """Its own exit status; None when it ended by a signal."""
    killed_by: signal.Signals | None = None
    asked: signal.Signals | None = None

    @property
    def exit_status(self) -> int:
        """The exit status of the command: the work's own; 128 + the signal's number if the work ended because of a
        signal that the supervisor got; 4 if somebody else killed the work."""
        if self.asked is not None and (self.status is None or self.status >= 128):
            return 128 + self.asked
        return EXIT_HARNESS if self.status is None else self.status


class AtASignal(IntEnum):
    """How the work reacts to a signal that asks the work to end. A second signal ends the work at once."""

    NOTHING_TO_KEEP = 0
    """QUICK_S, to end its processes in order."""
    KEEPS_A_RECORD = 1
    """GRACE_S, to heal and to write down what it recorded."""
    CTRL_C_IS_ITS_END = 2
    """All the time it takes after Ctrl-C, which is its regular end (`nemesrv up`), and GRACE_S after SIGTERM."""


_needs: mmap.mmap | None = None
"""One byte shared by work and supervisor; None in an unsupervised process."""


def at_a_signal(need: AtASignal) -> None:
    """Tell the supervisor how this process reacts to a signal from now on. Without a supervisor the call does
    nothing."""
    if _needs is not None:
        _needs[0] = need


def supervise(say: Callable[[str], None]) -> Ended | None:
    """Fork. In the child process, which does the work, `supervise` returns None at once. In the calling process, the
    supervisor, `supervise` returns how the work ended, once the work has ended. The supervisor stops the work by one
    SIGINT, whatever signal came. `say` gets a line for the person who sent the signal.
    """
    global _needs
    _needs = needs = mmap.mmap(-1, 1)
    ours = {number for number in _STOP if signal.getsignal(number) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*ours, signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as a parent may hand it down, it would hide the end
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    _inherits_orphans(True)
    supervisor = os.getpid()
    work = os.fork()
    if work == 0:
        _inherits_orphans(False)
        die_with_parent()
        if os.getppid() != supervisor:
            os._exit(1)
        os.setpgid(0, 0)  # a terminal's Ctrl-C and a signal to our group are for the supervisor alone
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    with suppress(OSError):
        os.setpgid(work, work)
    try:
        return _Supervisor(work, ours, say, needs).stand_by()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Supervisor:
    def __init__(self, work: int, ours: set[signal.Signals], say: Callable[[str], None], needs: mmap.mmap) -> None:
        self._work, self._ours, self._say, self._needs = work, ours, say, needs
        self._code: int | None = None

    def stand_by(self) -> Ended:
        """Wait until the work ends; a signal limits the wait. Afterwards no descendant is left."""
        asked: signal.Signals | None = None
        cut_short = False
        asked_s = deadline_s = float("inf")
        while self._code is None and time.monotonic() < deadline_s:
            left_s = min(deadline_s - time.monotonic(), 3600.0)
            info = signal.sigtimedwait({*self._ours, signal.SIGCHLD}, max(left_s, 0.0))
            if info is None or info.si_signo == signal.SIGCHLD:
                self._reap()
            elif asked is None:
                asked, asked_s = signal.Signals(info.si_signo), time.monotonic()
                deadline_s = asked_s + self._grace_s(asked)
                cut_short = self._needs[0] == AtASignal.CTRL_C_IS_ITS_END and asked is not signal.SIGINT
                self._say("stopping (a second signal, e.g. Ctrl-C, ends it at once)")
                with suppress(ProcessLookupError):
                    os.kill(self._work, signal.SIGINT)
            elif time.monotonic() - asked_s > SAME_SIGNAL_S:
                break
        code = -signal.SIGKILL if self._code is None else self._code
        self._kill_all()
        if code < 0:
            return Ended(killed_by=signal.Signals(-code), asked=asked)
        if cut_short and asked is not None:  # what ends so in order has a status of its own after Ctrl-C only
            code = 128 + asked
        return Ended(status=code, asked=asked)

    def _grace_s(self, asked: signal.Signals) -> float:
        need = AtASignal(self._needs[0])
        if need is AtASignal.CTRL_C_IS_ITS_END and asked is signal.SIGINT:
            return float("inf")
        return QUICK_S if need is AtASignal.NOTHING_TO_KEEP else GRACE_S

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._work:
                self._code = os.waitstatus_to_exitcode(status)

    def _kill_all(self) -> None:
        """Kill all descendants. A descendant that the kernel cannot end (it waits for a disk) is waited for up to
        KILL_LIMIT_S."""
        limit_s = time.monotonic() + KILL_LIMIT_S
        found = False
        while processes := family(os.getpid(), lambda _: True):
            found = True
            for process in processes:
                process.send(signal.SIGKILL)
            for process in processes:
                process.gone(max(0.0, limit_s - time.monotonic()))
                process.close()
            self._reap()
            if time.monotonic() > limit_s:
                break
        if found:
            sweep()


def _inherits_orphans(yes: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0)
