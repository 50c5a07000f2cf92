"""A port for a process that is started with it."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack

FIRST, LAST = 10_000, 19_999
"""Below Linux's ephemeral range, from which anybody's next connection may take what was free a moment ago, and below
`chaos.faults.ports`."""


def free_port(*distances: int) -> int:
    """A port of 127.0.0.1 that nobody uses, and neither those at `distances` from it."""
    for _ in range(200):
        port = FIRST + secrets.randbelow(LAST - FIRST + 1)
        with ExitStack() as held:
            try:
                for distance in (0, *distances):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port + distance))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port was found between {FIRST} and {LAST}")
