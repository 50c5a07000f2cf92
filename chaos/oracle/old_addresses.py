"""What a broker that came back at another address is to clients that may be told of the one before: lost to them.

    broker at x ──┤ ended ├── at y ── registers         NameServers that it reaches name y within R + C: no fault
    NameServer  x ────────────────────┤ E + S ┤         one that it did not reach may name x so long: a fault of the
                                                        client's link, which nobody injected and no row tells of

When each NameServer must have forgotten it is moved.py's; here nothing is asked for as long as any of them may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from .recorded import OLD_ADDRESS, Fault, Life, NodeInfo
from .timers import Timers


class Environment(Protocol):
    """What it depends on, of a World."""

    def of_kind(self, *kinds: str) -> tuple[NodeInfo, ...]: ...
    def lives_of(self, node: str) -> tuple[Life, ...]: ...
    def process_faults(self, node: str) -> tuple[Fault, ...]: ...
    def link_faults(self, source: str, target: str) -> tuple[Fault, ...]: ...
    def listed(self, node: str) -> tuple[NodeInfo, ...]: ...
    def timers_of(self, *nodes: str) -> Timers: ...
    def harmless(self, fault: Fault) -> bool: ...


class Moved(NamedTuple):
    """A broker's process at another address than the one before it."""

    broker: str
    before: str
    left_ms: float
    """When the process before it had ended."""
    came_ms: float
    """When it was started."""


def moved(world: Environment) -> Iterator[Moved]:
    """Every such process, by broker and time."""
    for broker in world.of_kind("broker", "slave"):
        lives = world.lives_of(broker.name)
        for before, move in zip(broker.addresses, broker.moves, strict=False):
            came = next((life.start_ms for life in lives if life.start_ms >= move.from_ms), None)
            if came is not None:
                left_ms = max((life.end_ms for life in lives if life.start_ms < came), default=came)
                yield Moved(broker.name, before, min(left_ms, came), came)


def old_addresses(world: Environment) -> Sequence[Fault]:
    """The faults that old addresses are to clients, in order of time."""
    found: list[Fault] = []
    for of in moved(world):
        about = f"{of.broker} at {of.before}", "old address", OLD_ADDRESS
        for client in world.of_kind("producer", "consumer", "prober"):
            untils = [_named_until(world, of, server.name) for server in world.listed(client.name)]
            until_ms = max((until_ms for until_ms in untils if until_ms is not None), default=None)
            if until_ms is not None:
                found.append(Fault(*about, client.name, of.broker, None, of.came_ms, until_ms))
    return found


def _named_until(world: Environment, of: Moved, name_server: str) -> float | None:
    """Until when this NameServer may name the old address; None where nothing kept it from hearing of the end of the
    process there, or of the new one."""
    timers = world.timers_of(of.broker, name_server)
    soon_ms = of.came_ms + timers.R_ms + timers.C_ms
    hit = [*world.link_faults(of.broker, name_server), *world.process_faults(name_server)]
    hit = [fault for fault in hit if fault.overlaps(of.left_ms - timers.R_ms, soon_ms) and not world.harmless(fault)]
    if not hit:
        return None
    runs_ms = max((fault.end_ms for fault in hit if fault.target is None), default=of.left_ms)
    return max(of.left_ms + timers.E_ms, runs_ms) + timers.S_ms + timers.R_ms + timers.C_ms
