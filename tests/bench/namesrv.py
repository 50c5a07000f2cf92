"""`python -m tests.bench namesrv`: our NameServer beside Apache's and beside echoes of the same bytes, in one run.

    look_ups.py        rate and latency of route requests, alone and beside registrations
    registrations.py   the rate of one broker's, and what a thousand brokers' cost
    footprint.py       memory

The load generator is a C program outside all of them (loadgen.c), on a core of its own. What has one thread, as ours,
has the other core; Apache's is left to use both, as it may on a machine of its own.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from nemesrv.chaos.apache.maven import JavaMissing
from nemesrv.chaos.reports.terminal import standard_output
from nemesrv.remoting.node.network import Address

from ..interop.jars import class_path
from ..interop.programs import name_server
from . import java, measure
from .figures import OURS, Figures
from .footprint import footprint, resident
from .look_ups import look_ups, look_ups_beside_registrations
from .measure import Server, Tools
from .registrations import heartbeats, registrations

PARTS = ("look-ups", "registrations", "beside", "footprint", "heartbeats")
JAVA = "Java"
"""What the names of Apache's begin with."""

Target = Callable[[], AbstractContextManager[Server]]
"""Starts an empty NameServer, and stops it at the end; e.g. one in a Ray actor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything; the defaults are what is reported, tests take less."""

    rounds: int = 6
    in_flight: tuple[int, ...] = (1, 16)
    topics: int = 10_000
    heartbeat_brokers: int = 1000
    heartbeat_topics: int = 1000
    footprint_brokers: int = 10
    connections: int = 2000
    warm_up_s: float = 5


def run(
    seconds: float = 3,
    *,
    targets: Mapping[str, Target] | None = None,
    with_java: bool = True,
    parts: frozenset[str] = frozenset(PARTS),
    size: Size | None = None,
    console: Console | None = None,
) -> Figures:
    """Measure, print and return. `targets` are further NameServers by name. BenchError.

    Each figure is measured in several rounds, in turn with the other servers, together for `seconds`.
    """
    size = size or Size()
    console = console or standard_output(180)
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name:
        folder = Path(name)
        tools = measure.build(folder)
        all_targets: dict[str, Target] = {OURS: partial(own_process, folder), **(targets or {})}
        if with_java:
            all_targets |= _java(folder, console)
        if not parts.isdisjoint(PARTS[:3]):
            with contextlib.ExitStack() as running:
                servers = {name: running.enter_context(target()) for name, target in all_targets.items()}
                _together(figures, servers, tools, seconds, size, parts)
        for name, target in all_targets.items():
            if "footprint" in parts:
                with target() as server:
                    held = partial(java.heap_in_use, server.pid) if name.startswith(JAVA) else resident(server)
                    sizes = {"brokers": size.footprint_brokers, "topics": size.topics, "connections": size.connections}
                    footprint(figures, name, server, held, **sizes)
            if "heartbeats" in parts:
                with target() as server:
                    counts = {"brokers": size.heartbeat_brokers, "topics": size.heartbeat_topics}
                    heartbeats(figures, name, server, tools, seconds=4 * seconds, **counts)
    figures.print(console)
    return figures


def _together(
    figures: Figures, servers: Mapping[str, Server], tools: Tools, seconds: float, size: Size, parts: Collection[str]
) -> None:
    """What is measured of all servers in turn."""
    apache = {name: server for name, server in servers.items() if name.startswith(JAVA)}
    if "look-ups" in parts:
        measure_look_ups = partial(look_ups, tools=tools, connections=16)
        if apache and size.warm_up_s:  # until the JVM has compiled what it runs
            some = {OURS: servers[OURS], **apache}
            for in_flight in size.in_flight:
                measure_look_ups(Figures(), some, seconds=size.warm_up_s / 2, in_flight=in_flight, rounds=1)
        for in_flight in size.in_flight:
            measure_look_ups(figures, servers, seconds=seconds, in_flight=in_flight, rounds=size.rounds)
    long = 2 * seconds
    if "registrations" in parts:
        if apache and size.warm_up_s:
            registrations(Figures(), apache, tools, seconds=size.warm_up_s, rounds=1, topics=size.topics)
        registrations(figures, servers, tools, seconds=long, rounds=size.rounds, topics=size.topics)
    if "beside" in parts:
        rounds, topics = size.rounds, size.topics
        look_ups_beside_registrations(figures, servers, tools, seconds=long, rounds=rounds, topics=topics)


def _java(folder: Path, console: Console) -> dict[str, Target]:
    """Apache's NameServers that can be had; one line for each that cannot."""
    targets: dict[str, Target] = {}
    for jars in java.VERSIONS:
        try:
            class_path(jars)
        except JavaMissing as exc:
            console.print(f"No row for Apache's NameServer {jars.version}: {exc}")
        else:
            targets[f"{JAVA} {jars.version}"] = partial(java.name_server, folder, jars)
    return targets


@contextlib.contextmanager
def own_process(folder: Path) -> Iterator[Server]:
    """Our stand-alone NameServer on a core of its own."""
    program, address = name_server("ours", Path(tempfile.mkdtemp(dir=folder)) / "home")
    with program:
        measure.pin(program.pid, measure.cpus()[0])
        yield Server(Address.parse(address), program.pid)


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else 3)
