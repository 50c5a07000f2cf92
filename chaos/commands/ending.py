"""How a command ends: any exception becomes an exit status and one line for a person.

Exit status: 0 VALID, 1 INVALID, 2 a wrong argument or file, 3 UNKNOWN, 4 harness failure; 129, 130, 143 after SIGHUP,
Ctrl-C, SIGTERM.
"""

import errno
import functools
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import ParamSpec, TypeVar

import click

from ...actors.supervisor import Ended, supervise
from ..errors import HarnessError, ScenarioError
from ..installation import mend_import

EXIT_WRONG_INPUT = 2
EXIT_HARNESS = 4
_STOPPED = {128 + signal.SIGHUP: "terminated", 128 + signal.SIGINT: "interrupted", 128 + signal.SIGTERM: "terminated"}

P = ParamSpec("P")
R = TypeVar("R")


class Stopped(BaseException):
    """Raised to end the command after SIGTERM, or after a Ctrl-C that no other code handled."""


class CtrlC(KeyboardInterrupt):
    """Raised for Ctrl-C instead of a plain KeyboardInterrupt. If code run by `exec()` raises a plain KeyboardInterrupt,
    Python later ends by SIGINT, even if the exception was caught, and ignores the exit status."""


_arrived: list[int] = []
"""Signals received. C code may replace the exception of a handler by another one."""
_from_a_shell = False
_is_the_work = False


def from_a_shell() -> None:
    """Declare that this process is the command `nemesrv`, so that nemesrv handles SIGINT, SIGTERM and SIGHUP."""
    global _from_a_shell
    _from_a_shell = True
    signal.signal(signal.SIGTERM, _on_signal)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as a shell's background job has it
        signal.signal(signal.SIGINT, _on_signal)


def _on_signal(signum: int, _frame: FrameType | None) -> None:
    _arrived.append(signum)
    if signum == signal.SIGINT:
        raise CtrlC
    raise Stopped


def supervised(command: Callable[P, R]) -> Callable[P, R]:
    """Run the command in a child process. Within 10 s of a signal all processes of the command have ended
    (actors/supervisor.py). Use `supervised` for every command that starts Ray, a JVM, Toxiproxy or other programs.
    `supervised` has no effect if nemesrv was called from Python.
    """

    @functools.wraps(command)
    def work(*args: P.args, **kwargs: P.kwargs) -> R:
        global _is_the_work
        if _from_a_shell and not _is_the_work and sys.platform == "linux":
            ended = supervise(say)
            if ended is not None:
                _tell(ended)
                sys.exit(ended.exit_status)
            _is_the_work = True
            signal.signal(signal.SIGINT, _on_signal)  # its supervisor's way to say stop, even in a shell's background
        return command(*args, **kwargs)

    return work


def _tell(ended: Ended) -> None:
    if ended.exit_status in _STOPPED:
        say(_STOPPED[ended.exit_status])
    elif ended.killed_by is not None:
        say(
            f"the process that conducts the run was ended by {ended.killed_by.name} from outside; nothing is left, and "
            "nothing is judged (a SIGKILL that nobody sent is the kernel's when memory ran out: see dmesg)"
        )


def say(text: str) -> None:
    """Print one line on stderr, after erasing a progress line."""
    with suppress(OSError, ValueError):  # a terminal that is gone
        click.echo(f"{_clear()}nemesrv: {text}", err=True)


def _clear() -> str:
    return "\r\x1b[2K" if sys.stderr is not None and sys.stderr.isatty() else ""


def end(exc: BaseException | None) -> int | str | None:
    """Print why the command ended, and return its exit status; `exc` is what the command raised, if anything."""
    status, text = (0, "") if exc is None else explain(exc)
    if _is_the_work:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left takes no time, and its supervisor has one
    if text:
        say(text)
    return status


def explain(exc: BaseException) -> tuple[int | str | None, str]:
    """Return the exit status for this exception, and a line for a person."""
    if isinstance(exc, SystemExit):
        return exc.code, ""
    if _arrived or isinstance(exc, click.Abort | KeyboardInterrupt | Stopped):
        status = 128 + (_arrived[0] if _arrived else signal.SIGINT)
        return status, "" if _is_the_work else _STOPPED[status]
    if isinstance(exc, ScenarioError):
        return EXIT_WRONG_INPUT, _one_line(exc)
    if isinstance(exc, HarnessError):
        return EXIT_HARNESS, _one_line(exc)
    if isinstance(exc, click.ClickException):
        return EXIT_WRONG_INPUT, " ".join(exc.format_message().split())
    if isinstance(exc, ModuleNotFoundError) and (mend := mend_import(exc.name)):
        return EXIT_HARNESS, mend
    if mend := _of_the_machine(exc):
        return EXIT_HARNESS, mend
    logging.getLogger("nemesrv").debug("internal error", exc_info=exc)
    what = f"internal error: {type(exc).__name__}: {_one_line(exc)}"
    return EXIT_HARNESS, f"{what} (NEMESRV_LOG=debug shows where; please report it)"


def _of_the_machine(exc: BaseException) -> str:
    """Return the line for a resource that the machine lacks or forbids; "" for anything else."""
    if isinstance(exc, MemoryError) or (isinstance(exc, OSError) and exc.errno == errno.ENOMEM):
        return "memory ran out: end other programs, or give nemesrv more memory"
    if not isinstance(exc, OSError):
        return ""
    where = f" at {exc.filename}" if exc.filename else ""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}: free some of it, or name a folder on another disk with --out"
    if exc.errno in (errno.EMFILE, errno.ENFILE):
        return f"no more files may be opened{where}: allow more with `ulimit -n 4096`"
    if exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission{where}: {exc.strerror}; change the rights of the file, or name another folder with --out"
    return ""


def _one_line(exc: BaseException) -> str:
    try:
        return " ".join(str(exc).split()) or type(exc).__name__
    except Exception:  # py4j asks the JVM what it threw, which may have ended since
        return type(exc).__name__
