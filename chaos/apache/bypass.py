"""Finds connections of a Java program that avoid the fronts (the proxies) of its node.

JVM ── connects ──► a front of its own node       right
JVM ◄─ its node's process connects               right: the server front, and the poller
JVM ── both ends its own ── JVM                  right
JVM ── anything else                             passes no proxy, so faults of links would not affect it
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from ...remoting.node.network import Address
from ..errors import HarnessError
from ..fronts.sockets import Socket, inodes_of, sockets

LOOKS_EACH_S = 1.0
"""Looks per second of machine time."""
_ESTABLISHED = 1
FILE = "round-the-proxies"
"""File in a node's data folder, one line per connection found."""


def strays(
    table: Iterable[Socket], java: Collection[int], own: Collection[int], fronts: Collection[Address]
) -> list[str]:
    """Return the connections that avoid the fronts, as text such as `10.0.0.1:5 with 10.0.0.2:6`. `java`, `own`: socket
    inodes of the program and of its node. `fronts`: addresses of the fronts.

    A closing connection on loopback whose other end is no longer in the socket table is not reported, because its owner
    is unknown.
    """
    every = list(table)
    ends = {(one.local, one.remote): one for one in every}
    found = []
    for one in every:
        if one.state != _ESTABLISHED or one.inode not in java or one.remote in fronts:
            continue
        other = ends.get((one.remote, one.local))
        if other is None:
            is_stray = not one.remote.host.startswith("127.")
        else:
            is_stray = bool(other.inode) and other.inode not in java and other.inode not in own
        if is_stray:
            found.append(f"{one.local} with {one.remote}")
    return found


def look(java: int, fronts: Collection[Address]) -> list[str]:
    """Return the Java program's current connections that avoid the fronts. Call `look` in the process of the program's
    node."""
    every = list(sockets())  # before the inodes: what was opened since has none of these
    return strays(every, inodes_of(java), inodes_of("self"), fronts)


def noted(folder: Path, found: Iterable[str]) -> None:
    """Write a connection that avoids the fronts into the node's data folder, which remains after the process ends."""
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{one}\n" for one in found)


async def keep_looking(
    programs: Callable[[], Iterable[int]], fronts: Collection[Address], folder: Path, log: logging.Logger
) -> None:
    """Until cancelled, write each connection that avoids the fronts once into `folder` and the node's log."""
    known: set[str] = set()
    while True:
        for pid in programs():
            fresh = set(look(pid, fronts)) - known
            if fresh:
                known |= fresh
                noted(folder, fresh)
                log.error("the JVM goes round its proxies: %s", ", ".join(fresh))
        await asyncio.sleep(LOOKS_EACH_S)


def refuse_bypass(data: Path) -> None:
    """Raise HarnessError if a Java process had a connection that passed none of its node's fronts (proxies). `data` is
    the run's folder with one folder per node."""
    for file in sorted(data.glob(f"*/{FILE}")):
        seen = file.read_text(encoding="utf-8").splitlines() or ["a connection"]
        more = f" ({len(seen) - 1} more)" if len(seen) > 1 else ""
        raise HarnessError(
            f"{file.parent.name}'s Java process went round its proxies: {seen[0]}{more}; no fault would have met that, "
            "and nothing is judged"
        )
