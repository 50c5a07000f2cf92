"""Traffic of a Java program round its fronts: its connections, of which the other end is nobody's of ours.

JVM ── dials ──► a front of its node's own          right
JVM ◄─ dialled by its node's process                right: the server front, and who polls
JVM ── both ends its own ── JVM                     right
JVM ── anything else                                goes through no proxy, so no fault of a link would meet it
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from ...remoting.node.network import Address
from ..errors import HarnessError
from ..fronts.sockets import Socket, sockets

LOOKS_EACH_S = 1.0
"""Of the machine's time."""
_ESTABLISHED = 1
FILE = "round-the-proxies"
"""Of a node's data folder: what was seen, a line each."""


class StrayConnection(NamedTuple):
    local: Address
    remote: Address

    def __str__(self) -> str:
        return f"{self.local} with {self.remote}"


def inodes_of(process: int | str) -> frozenset[int]:
    """Of the sockets that the process has open; none of one that is gone."""
    found = set()
    try:
        for entry in os.scandir(f"/proc/{process}/fd"):
            try:
                target = os.readlink(entry.path)
            except OSError:  # closed meanwhile
                continue
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    except OSError:
        pass
    return frozenset(found)


def strays(
    table: Iterable[Socket], java: Collection[int], own: Collection[int], fronts: Collection[Address]
) -> list[StrayConnection]:
    """What goes round. `java`, `own`: inodes of the program's sockets and of its node's; `fronts`: where these accept.

    The other end of a connection that is being closed may be gone from the table of this machine already: where it was
    on a loopback address nobody can tell then whose it was, and nothing is said.
    """
    every = list(table)
    ends = {(one.local, one.remote): one for one in every}
    found = []
    for one in every:
        if one.state != _ESTABLISHED or one.inode not in java or one.remote in fronts:
            continue
        other = ends.get((one.remote, one.local))
        if other is None:
            if not one.remote.host.startswith("127."):
                found.append(StrayConnection(one.local, one.remote))
        elif other.inode and other.inode not in java and other.inode not in own:
            found.append(StrayConnection(one.local, one.remote))
    return found


def look(java: int, fronts: Collection[Address]) -> list[StrayConnection]:
    """What of this program goes round now; we are its node's process."""
    every = list(sockets())  # before the inodes: what was opened since has none of these
    return strays(every, inodes_of(java), inodes_of("self"), fronts)


def noted(folder: Path, found: Iterable[StrayConnection]) -> None:
    """It is told of in the node's data folder, which outlives the process."""
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{one}\n" for one in found)


async def keep_looking(
    programs: Callable[[], Iterable[int]], fronts: Collection[Address], folder: Path, log: logging.Logger
) -> None:
    """Until it is cancelled: what goes round is noted in the node's `folder`, once, and in its log."""
    known: set[StrayConnection] = set()
    while True:
        for pid in programs():
            fresh = set(look(pid, fronts)) - known
            if fresh:
                known |= fresh
                noted(folder, fresh)
                log.error("the JVM goes round its proxies: %s", ", ".join(map(str, fresh)))
        await asyncio.sleep(LOOKS_EACH_S)


def refuse_bypass(data: Path) -> None:
    """HarnessError when any node's program had a connection round its proxies; `data`: the run's, with one folder a
    node."""
    for file in sorted(data.glob(f"*/{FILE}")):
        seen = file.read_text(encoding="utf-8").splitlines() or ["a connection"]
        more = f" ({len(seen) - 1} more)" if len(seen) > 1 else ""
        raise HarnessError(
            f"{file.parent.name}'s Java process went round its proxies: {seen[0]}{more}; no fault would have met that, "
            "and nothing is judged"
        )
