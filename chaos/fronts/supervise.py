"""Runs a program and reports each connect() of the program and its descendants before the kernel executes the call.
Stdlib only.

    python -I -S supervise.py FD CMD ARGS…

    this process ── fork ──► child: installs a seccomp filter, hands its listener back, execs CMD
        │                        every connect() of it and its descendants waits for our answer
        └── for each: reads the address and the process, says CONTINUE, writes a line to FD ──► dials.py

supervise.py is CMD's parent, because Yama lets only ancestors read a process's memory. supervise.py is a subreaper, so
it also becomes the parent of CMD's daemons. supervise.py ignores the signals of its process group. supervise.py ends
with CMD's exit status once all processes that CMD started have ended. Writing to FD never blocks; a line is lost if the
pipe is full. supervise.py is run by its path, so that CMD does not wait for nemesrv's imports.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
import time
from typing import NamedTuple

_PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 38, 36
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE_RECV = 1 << 3, 1 << 5
_NOTIF_RECV, _NOTIF_SEND = 0xC0502100, 0xC0182101
_RET_USER_NOTIF, _RET_ALLOW = 0x7FC00000, 0x7FFF0000
_FLAG_CONTINUE = 1
_NOTIF = struct.Struct("=QIIiIQ6Q")  # id, pid, flags; data: nr, arch, instruction pointer, args
_TCP_CLOSE = 7
_SYS_PIDFD_OPEN, _SYS_PIDFD_GETFD = 434, 438  # the same on every architecture


class _Machine(NamedTuple):
    arch: int
    seccomp: int
    connect: int


_MACHINES = {"x86_64": _Machine(0xC000003E, 317, 42), "aarch64": _Machine(0xC00000B7, 277, 203)}


class NotHere(Exception):
    """The kernel or the sandbox does not let this process observe connect() calls."""


# --- the child ------------------------------------------------------------------------------------------------------


def install(libc: ctypes.CDLL) -> int:
    """Make each connect() of this process and its descendants wait until supervise.py lets it continue. Returns the
    filter's listener. Raises NotHere."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise NotHere(f"connect() calls are not known on {platform.machine()}")
    load, equal, give = 0x20, 0x15, 0x06
    code = (
        (load, 0, 0, 4),  # another architecture's calls (32-bit programs) have other numbers: they are let alone
        (equal, 0, 3, machine.arch),
        (load, 0, 0, 0),
        (equal, 0, 1, machine.connect),
        (give, 0, 0, _RET_USER_NOTIF),
        (give, 0, 0, _RET_ALLOW),
    )
    raw = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(raw)))
    why = 0
    for privileged in (True, False):  # with rights of its own it needs not give up those of setuid programs
        if not privileged:
            libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # WAIT_KILLABLE_RECV (5.19): a signal, such as those of Go's scheduler, does not have the call made again
        for flags in (_NEW_LISTENER | _WAIT_KILLABLE_RECV, _NEW_LISTENER):
            listener = int(libc.syscall(machine.seccomp, _SET_MODE_FILTER, flags, program))
            if listener >= 0:
                return listener
            why = ctypes.get_errno()
    raise NotHere(f"seccomp's user notification cannot be had: {os.strerror(why)}")


def _become(command: list[str], libc: ctypes.CDLL, back: socket.socket, told: int) -> None:
    """Exec CMD behind the filter. Returns only if that fails, with the reason written to `back`."""
    try:
        listener = install(libc)
    except NotHere as exc:
        back.sendall(b"-" + str(exc).encode())
    else:
        socket.send_fds(back, [b"+"], [listener])
        os.close(listener)
        back.recv(1)  # who is to look at our dials is ready
    with contextlib.suppress(OSError):
        os.close(told)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as exc:
        back.sendall(struct.pack("=i", exc.errno or errno.ENOENT))
    os._exit(127)


# --- the parent -----------------------------------------------------------------------------------------------------


class Supervisor:
    def __init__(self, libc: ctypes.CDLL, told: int) -> None:
        self._libc, self._told, self._lost = libc, told, 0
        os.set_blocking(told, False)

    def tell(self, **line: object) -> None:
        """Write a line for the observer. A line is lost if the pipe is full."""
        if self._told < 0:
            return
        try:
            os.write(self._told, json.dumps(line).encode() + b"\n")
        except BlockingIOError:
            self._lost += 1
        except OSError:  # nobody is there any more: CMD goes on all the same
            self._told = -1

    def answer(self, listener: int) -> None:
        """Report one connect() and let the kernel execute it."""
        raw = bytearray(_NOTIF.size)
        try:
            fcntl.ioctl(listener, _NOTIF_RECV, raw)
        except OSError:  # its caller is gone, or a signal has taken it away from the call
            return
        at_ns = time.monotonic_ns()
        number, thread, _flags, _nr, _arch, _ip, fd, address, length, *_rest = _NOTIF.unpack(raw)
        process, taken = thread, None
        try:
            process = _process_of(thread)
            seen = _address_in(thread, address, length)
            taken = None if seen is None else self._taken(process, fd)
            if taken is not None and not _is_dial(taken):
                seen = None
        except OSError:
            seen = None
        with contextlib.suppress(OSError):  # it is gone
            fcntl.ioctl(listener, _NOTIF_SEND, bytearray(struct.pack("=QqiI", number, 0, 0, _FLAG_CONTINUE)))
        if seen is not None:
            local = 0 if taken is None or thread == process else _port_of(taken)
            self.tell(at_ns=at_ns, host=seen[0], port=seen[1], process=process, thread=thread, local=local)
        if taken is not None:
            taken.close()

    def _taken(self, process: int, fd: int) -> socket.socket | None:
        """Return the process's own socket; None if this sandbox does not give it."""
        theirs = self._libc.syscall(_SYS_PIDFD_OPEN, process, 0)
        if theirs < 0:
            return None
        try:
            ours = self._libc.syscall(_SYS_PIDFD_GETFD, theirs, ctypes.c_int(fd & 0xFFFFFFFF), 0)
        finally:
            os.close(theirs)
        return None if ours < 0 else socket.socket(fileno=ours)

    def run(self, child: int, listener: int | None) -> int:
        """Report and continue each connect() until all processes that CMD started have ended. Returns CMD's wait
        status."""
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        if listener is not None:
            poll.register(listener, select.POLLIN)
        status = 0
        while True:
            try:
                while (gone := os.waitpid(-1, os.WNOHANG))[0]:
                    if gone[0] == child:
                        status = gone[1]
                        self.tell(ended=os.waitstatus_to_exitcode(status), lost=self._lost)
            except ChildProcessError:
                return status
            for fd, event in poll.poll(1000):
                if fd == wake:
                    os.read(wake, 4096)
                elif event & select.POLLIN:
                    self.answer(fd)
                else:  # POLLHUP: nobody has the filter any more
                    poll.unregister(fd)


def _is_dial(taken: socket.socket) -> bool:
    """Whether this is a new TCP connect: no datagram socket's, no second call on a non-blocking socket."""
    if taken.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) != socket.SOCK_STREAM:
        return False
    return taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSE


def _port_of(taken: socket.socket) -> int:
    """Return the port that the kernel gives the socket as connect() begins; 0 if it was not seen within 1 ms."""
    for _ in range(4):
        with contextlib.suppress(OSError):
            if port := int(taken.getsockname()[1]):
                return port
        time.sleep(0.00025)
    return 0


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb") as file:
        for line in file:
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    return thread


def _address_in(thread: int, at: int, length: int) -> tuple[str, int] | None:
    """Return the IPv4 or IPv6 address in these bytes; None for another family or too few bytes."""
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        raw = os.pread(memory, min(length & 0xFFFFFFFF, 28), at)
    finally:
        os.close(memory)
    if len(raw) < 8:
        return None
    (family,) = struct.unpack_from("=H", raw)
    (port,) = struct.unpack_from("!H", raw, 2)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[4:8]), port
    if family == socket.AF_INET6 and len(raw) >= 24:
        host = raw[8:24]
        if host[:12] == b"\x00" * 10 + b"\xff\xff":  # an IPv4 address as Java and Go dial it
            return socket.inet_ntop(socket.AF_INET, host[12:]), port
        return socket.inet_ntop(socket.AF_INET6, host), port
    return None


def main(told: int, command: list[str]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor = Supervisor(libc, told)
    here, there = socket.socketpair()
    here.set_inheritable(False)
    child = os.fork()
    if child == 0:
        here.close()
        _become(command, libc, there, told)
    there.close()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda _number, _frame: None)  # they are CMD's: it gets them itself
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # so that CMD's end is seen at its pipes
        os.dup2(nothing, stream)
    said, fds, _flags, _address = socket.recv_fds(here, 4096, 1)
    listener = fds[0] if fds else None
    if listener is not None:
        here.sendall(b".")
    failed = here.recv(4)  # "": it was exec'd, and its end closed
    if failed:
        os.waitpid(child, 0)
        supervisor.tell(not_started=struct.unpack("=i", failed)[0])
        return 127
    supervisor.tell(process=child, seen=listener is not None, why=said[1:].decode("utf-8", "replace") or None)
    status = os.waitstatus_to_exitcode(supervisor.run(child, listener))
    if status < 0:  # as CMD, so that who waits for us sees the same; but CMD's core is enough
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
