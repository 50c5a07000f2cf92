"""Signals during start-up: importing this module makes SIGINT and SIGTERM end the command at once.

    Python starts, with its own handlers (20 ms) ─► this module ─► other imports (100 ms) ─► main: ending.py's handlers

The command imports this module before all others, because Ctrl-C before this import prints a stack trace. In other
programs that import nemesrv, this module does not change the signal handlers.
"""

import os
import signal
import sys

_WORDS = {signal.SIGINT: b"nemesrv: interrupted\n", signal.SIGTERM: b"nemesrv: terminated\n"}


def is_the_command() -> bool:
    """Whether this process was started as `nemesrv` or `python -m nemesrv.chaos`."""
    folder, name = os.path.split(sys.argv[0])
    return name == "nemesrv" or (name == "__main__.py" and os.path.basename(folder) == "chaos")


def _end(signum: int, _frame: object) -> None:
    try:
        os.write(2, (b"\r\x1b[2K" if os.isatty(2) else b"") + _WORDS[signal.Signals(signum)])
    except OSError:  # a terminal that is gone
        pass
    os._exit(128 + signum)


if is_the_command():
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a shell's background job ignores it
        signal.signal(signal.SIGINT, _end)
