"""A port for a process that is started with it."""

import socket
from contextlib import ExitStack

from nemesrv.chaos.faults.ports import FIRST, PortHolder

PORTS = range(10_000, FIRST)
"""Below the ports of experiments: those beside this test would take one while its process starts."""
_given: set[int] = set()


def free_port(*distances: int) -> int:
    """A port of 127.0.0.1 that nobody uses, and neither those at `distances` from it; no port twice.

    It is below Linux's ephemeral range, from which anybody's next connection may take what was free a moment ago.
    """
    for _ in range(100):
        with PortHolder(ports=PORTS) as holder, ExitStack() as held:
            port = holder.take().port
            if port in _given:
                continue
            try:
                for distance in distances:
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port + distance))
            except OSError:
                continue
            _given.add(port)
            return port
    raise AssertionError("no free ports")
