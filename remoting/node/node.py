"""The context that every node gets from its harness, and the methods by which the harness controls a node.

A node has no source of time, connections or randomness besides its context (a test checks the code). The same node code
therefore runs in a Ray actor, with other nodes in one process, and on a virtual clock.
"""

import logging
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict

from .clock import Clock
from .network import Address, Network
from .recording import Recorder, ignore, recorded_at

LOG = logging.getLogger("nemesrv")


class Seams(TypedDict):
    clock: Clock
    network: Network
    log: logging.Logger


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    name: str
    clock: Clock
    network: Network
    rng: random.Random
    record: Recorder = ignore
    log: logging.Logger = LOG
    data_dir: Path | None = None
    """Where this node may keep files; the same folder after a restart."""
    logs: Path | None = None
    """Where a program that is this node writes its own logs; None: among its files."""
    incarnation: int = 0
    """How many processes of this node there were before."""

    @property
    def seams(self) -> Seams:
        """What each RemotingServer and RemotingClient of the node gets."""
        return {"clock": self.clock, "network": self.network, "log": self.log}

    def record_ended(self, began_s: float, event: str, /, **fields: object) -> None:
        """Record an event that began at `began_s` and ends now. The row's time and `duration_ms` are of one reading of
        the clock: if the process stood still between two readings, the row would tell a later beginning."""
        ended_s = self.clock.monotonic_s()
        recorded_at(self.record, ended_s * 1000, event, {**fields, "duration_ms": (ended_s - began_s) * 1000})


class Node(Protocol):
    """A node's lifecycle: listen, then start, then stop. A restart makes a new Node with the same data_dir."""

    async def listen(self) -> Address | None:
        """Listen, and return the address to advertise; a node that only connects returns None."""
        return None

    async def start(self) -> None:
        """Begin work: timers, registrations, clients. Returns once the node is working."""
        return None

    async def stop(self) -> None:
        """Unregister and stop, as the Java process does on shutdown."""
        return None
