"""Processes addressed by pidfd, because a signal to a pid could reach a later process with the same pid. Linux only."""

import ctypes
import fcntl
import os
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_PROC = Path("/proc")
FOLDER_PREFIX = "nsv-"
"""Of the folders for temporary files, whose names go on with the pid of the process that made them."""

# struct pidfd_info of linux/pidfd.h in its first size: mask, cgroupid, pid, tgid, ppid, eight ids, exit_code
_PIDFD_INFO_BYTES, _PIDFD_INFO_EXIT = 64, 1 << 3
_PIDFD_GET_INFO = 3 << 30 | _PIDFD_INFO_BYTES << 16 | 0xFF << 8 | 11
_STAT_EXIT_CODE = 49
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.PyDLL(None)
"""Loaded beforehand: between fork and exec nothing can be."""
_TRIES = 3


class Process:
    """A process, not necessarily a child of this process. `close` it after use."""

    def __init__(self, pid: int) -> None:
        """ProcessLookupError if the process does not exist."""
        self.pid = pid
        self.fd = os.pidfd_open(pid)
        """Readable when the process has ended."""

    def exit_code(self) -> int | None:
        """Return the exit status as subprocess does (negative for a signal), or None if the process runs or the status
        is unknown. The exit status of another process's child is known only while the child is a zombie; since Linux
        6.15 the pidfd tells it later, too."""
        if not self.gone():
            return None
        for _ in range(_TRIES):  # between the two it may have been asked for by its parent
            status = self._status_of_the_gone()
            if status is None:
                fields = stat_of(self.pid)
                if fields is not None and fields[0] in "ZX":
                    status = int(fields[_STAT_EXIT_CODE])
            if status is not None:
                return os.waitstatus_to_exitcode(status)
        return None

    def _status_of_the_gone(self) -> int | None:
        info = bytearray(_PIDFD_INFO_BYTES)
        struct.pack_into("Q", info, 0, _PIDFD_INFO_EXIT)
        try:
            fcntl.ioctl(self.fd, _PIDFD_GET_INFO, info)
        except OSError:
            return None
        told, status = struct.unpack_from("Q", info, 0)[0], struct.unpack_from("i", info, _PIDFD_INFO_BYTES - 4)[0]
        return int(status) if told & _PIDFD_INFO_EXIT else None

    def send(self, signum: signal.Signals) -> bool:
        """Send the signal. Returns False if the process has already ended."""
        try:
            signal.pidfd_send_signal(self.fd, signum)
        except ProcessLookupError:
            return False
        return True

    def gone(self, within_s: float = 0.0) -> bool:
        """Return whether the process has ended, after waiting at most `within_s`. A zombie counts as ended, because its
        sockets are closed."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(within_s * 1000))

    def stopped(self, within_s: float = 0.0) -> bool:
        """Return whether SIGSTOP has stopped every thread of the process, after waiting at most `within_s`."""
        deadline_s = time.monotonic() + within_s
        while not is_paused(self.pid):
            if time.monotonic() >= deadline_s or self.gone(0.001):
                return False
        return True

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def stat_of(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the name, from the state on; None if the process does not exist."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def is_paused(pid: int) -> bool:
    fields = stat_of(pid)
    return fields is not None and fields[0] == "T"


def command(pid: int) -> str:
    """Return the command line of a process, with spaces between; "" if the process does not exist."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def family(of: int, where: Callable[[str], bool]) -> list[Process]:
    """Return every child of `of` whose command line satisfies `where`, with all its descendants, the youngest
    generation last."""
    children: dict[int, list[int]] = {}
    for pid in (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()):
        fields = stat_of(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    wave = [pid for pid in children.get(of, []) if where(command(pid))]
    found: list[Process] = []
    while wave:
        for pid in wave:
            try:
                found.append(Process(pid))
            except ProcessLookupError:
                continue
        wave = [child for pid in wave for child in children.get(pid, [])]
    return found


def alive(pid: int) -> bool:
    return stat_of(pid) is not None


def die_with_parent() -> None:
    """Make the kernel kill this process, even while it is paused, as soon as its parent ends, or the parent's thread
    that started it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def renice(niceness: int) -> None:
    """Give every thread of this process this niceness; ignore a thread for which the system forbids it."""
    for thread in (_PROC / "self" / "task").iterdir():
        with suppress(OSError):  # a thread that has ended, or a user who may not raise a priority
            os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)


def temporary_folder(what: str) -> Path:
    """Create and return a temporary folder. If this process is killed, a later `sweep` removes the folder."""
    return Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-{what}-"))


def sweep() -> None:
    """Remove the temporary files of harness processes that were killed with SIGKILL."""
    for folder in {Path(tempfile.gettempdir()), Path("/tmp")}:
        for left in folder.glob(f"{FOLDER_PREFIX}[0-9]*-*"):
            owner = left.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
            with suppress(OSError):
                if left.stat().st_uid == os.getuid() and owner.isdigit() and not alive(int(owner)):
                    shutil.rmtree(left, ignore_errors=True)


@contextmanager
def signals_deferred(*, patient: bool = False) -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block ends; a second Ctrl-C takes effect at once. `patient`: a second Ctrl-C
    waits, too, so that a clean-up is never interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def keep(signum: int, _frame: FrameType | None) -> None:
        if signum in arrived and not patient:
            raise KeyboardInterrupt
        arrived.append(signum)

    before = {signum: signal.signal(signum, keep) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    for number in arrived:
        signal.raise_signal(number)


ENDING = """
import os, select, shutil, signal, sys
def end(fds, folder):
    for fd in fds:
        try:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(2000)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
"""
"""How the small programs begin that outlive us to end others: `end` kills by pidfd, then removes the folder. Not
imported, for they start in a moment and need nothing of ours."""

_REAPER_LOOKS_EACH_S = 0.5
_REAPER = f"""{ENDING}
import time
folder, grace_s, owner = sys.argv[1], float(sys.argv[2]), os.getppid()
def read(pid, what):
    with open("/proc/%s/%s" % (pid, what), "rb") as file:
        return file.read()
def writes_there(pid):
    for fd in os.listdir("/proc/%s/fd" % pid):
        try:
            if os.readlink("/proc/%s/fd/%s" % (pid, fd)).startswith(folder):
                return True
        except OSError:
            pass
    return False
def left():
    parents, found = {{}}, set()
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            try:
                parents[pid] = read(pid, "stat").rpartition(b")")[2].split()[1].decode()
                command = read(pid, "cmdline")
                of_ray = command.startswith(b"ray::") and writes_there(pid)
            except OSError:
                continue
            if of_ray or folder.encode() in command:
                found.add(pid)
    while more := {{pid for pid, parent in parents.items() if parent in found}} - found:
        found |= more
    for pid in found:
        try:
            yield os.pidfd_open(int(pid))
        except ProcessLookupError:
            pass
def end_all():
    until_s = time.monotonic() + 5
    while (fds := list(left())) and time.monotonic() < until_s:
        for fd in fds:
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            except ProcessLookupError:
                pass
        end(fds, None)
        for fd in fds:
            os.close(fd)
def is_gone():
    try:
        return read(owner, "stat").rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True
due_s = None
while not is_gone():
    left_s = {_REAPER_LOOKS_EACH_S} if due_s is None else max(0.0, due_s - time.monotonic())
    if select.select([0], [], [], min({_REAPER_LOOKS_EACH_S}, left_s))[0]:
        signals = os.read(0, 1024)
        if not signals:
            break
        if grace_s and signal.SIGINT in signals and due_s is None:
            due_s = time.monotonic() + grace_s
    if due_s and time.monotonic() >= due_s:
        end_all()
        due_s = time.monotonic() + 0.5
end_all()
end([], folder)
"""


class Reaper:
    """A small process that kills this process's helpers if this process ends without `close`. The reaper acts when its
    pipe closes or when the harness's main thread has ended, because on a busy machine a killed process's other threads
    can keep the pipe open for many seconds.

    The reaper is needed for processes that do not die with their parent: Ray's agents try for a minute to report the
    parent's death. The reaper kills every process that has `folder` in its command line, and Ray's processes that have
    a file open in `folder` (they overwrite their command line), with all their descendants. Then it removes `folder`.
    The reaper is started before all other processes, so that it also ends half-started processes. With `after_ctrl_c_s`
    the reaper also kills the helpers that many seconds after a Ctrl-C. The reaper learns of Ctrl-C at once
    (`set_wakeup_fd`), even if this process is busy in C code.
    """

    def __init__(self, folder: Path, after_ctrl_c_s: float | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _REAPER, str(folder), str(after_ctrl_c_s or 0.0)],
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is not for it
        )
        self._told = after_ctrl_c_s is not None and threading.current_thread() is threading.main_thread()
        if self._told:
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
            signal.set_wakeup_fd(self._process.stdin.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        """End the reaper without letting it kill anything."""
        self._process.kill()
        self._process.wait()
        if self._told and threading.current_thread() is not threading.main_thread():
            return  # signals are told to that pipe until the process ends, so its number must not be another file's
        if self._told:
            signal.set_wakeup_fd(-1)
        if self._process.stdin is not None:
            self._process.stdin.close()


def allow_open_files(count: int) -> None:
    """Raise this process's limit of open files to `count`, at most to the hard limit; children inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
