"""`python -m tests.bench fronts`: what a front before a server costs, beside Toxiproxy and nothing, in one run.

    load generator ──────────────────► our NameServer        nothing
                   ──► Toxiproxy ────►
                   ──► pass-through ─►                       two asyncio ends and nothing else
                   ──► front ────────►                       decodes each frame, both ways, and keeps what it saw
                   ──► front ──► Toxiproxy ──►               as `nemesrv up --client` has it

16 connections, in turn and in several rounds, of which the best counts: with one route request in flight on each, as
fast as answers come, and at a steady pace, which is more than any client under test asks. Front, Toxiproxy and
NameServer are processes of their own that share what the load generator leaves. A request and its answer are two
frames. Beside rates, which say little on a busy machine, stands the CPU that whoever is in between takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from rich.console import Console

from nemesrv.chaos.errors import ToxiproxyError
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.fronts.front import Front
from nemesrv.chaos.fronts.observed import Observation
from nemesrv.chaos.reports.terminal import standard_output
from nemesrv.remoting.codes import SerializeType
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from . import frames, measure
from .figures import Aim, Figures
from .look_ups import TOPICS, Brokers
from .measure import BenchError, Server
from .namesrv import own_process

CONNECTIONS = 16
ROUNDS = 5
PACED_PER_S = 5_000
FRAME_MAX_US, RATE_KEPT = 30.0, 0.85
NOTHING, TOXIPROXY, PASS_THROUGH, FRONT, BOTH = "nothing", "Toxiproxy", "pass-through", "front", "both"
_KEPT = 10_000
"""Observations, as a process that judges them later keeps more and more of them; but memory is not measured here."""
_SERVE = "import sys; from tests.bench.fronts import {0}; {0}(int(sys.argv[1]))"


def run(seconds: float = 3, *, rounds: int = ROUNDS, console: Console | None = None) -> Figures:
    """Measure, print and return. BenchError; without a Toxiproxy its columns are missing."""
    console = console or standard_output()
    figures = Figures(ours=FRONT)
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        tools = measure.build(folder)
        server = running.enter_context(own_process(folder))
        brokers = running.enter_context(contextlib.closing(Brokers(server)))
        between = {
            NOTHING: server,
            PASS_THROUGH: running.enter_context(_process("serve_pass_through", server.address)),
            FRONT: running.enter_context(_process("serve", server.address)),
        }
        try:
            between[TOXIPROXY] = running.enter_context(_toxiproxy(folder, server.address))
        except ToxiproxyError as exc:
            console.print(f"No row for Toxiproxy: {exc}")
        else:
            between[BOTH] = running.enter_context(_process("serve", between[TOXIPROXY].address))
        for topic, count in TOPICS.items():
            what = f"JSON, {count} broker{'s' if count > 1 else ''}, {CONNECTIONS}x1"
            shot = frames.shot(brokers.connection, what, frames.route_request(topic, SerializeType.JSON))
            spent_s, answered = defaultdict[str, float](float), Counter[str]()
            for _ in range(rounds):
                brokers.refresh()
                for who, one in between.items():
                    before_s = one.cpu_s()
                    load = tools.load(
                        one.address.port, shot, seconds=seconds / rounds, connections=CONNECTIONS
                    ).checked(f"{who}: {what}")
                    if who != NOTHING:
                        spent_s[who] += one.cpu_s() - before_s
                        answered[who] += load.requests
                    figures.add(f"look-ups/s, {what}", who, load.per_s)
                    figures.add(f"p99 µs, {what}", who, load.p99_us, less_is_better=True)
                    paced = tools.load(
                        one.address.port, shot, seconds=seconds / rounds, connections=CONNECTIONS, per_s=PACED_PER_S
                    ).checked(f"{who}: {what}")
                    figures.add(f"look-ups/s at {PACED_PER_S:,}, {what}", who, paced.per_s)
                    figures.add(f"p99 µs at {PACED_PER_S:,}, {what}", who, paced.p99_us, less_is_better=True)
            for who, cpu_s in spent_s.items():
                if not answered[who]:
                    raise BenchError(f"no look-up was answered through {who} in {seconds:g} s")
                figures.add(f"CPU µs a frame, {what}", who, cpu_s / answered[who] / 2 * 1e6, less_is_better=True)
            figures.aims.append(Aim(what=f"CPU µs a frame, {what}", of=None, at_most=FRAME_MAX_US))
            for rate in (f"look-ups/s, {what}", f"look-ups/s at {PACED_PER_S:,}, {what}"):
                figures.aims += [Aim(what=rate, of=of, at_least=RATE_KEPT) for of in (NOTHING, PASS_THROUGH, TOXIPROXY)]
    figures.print(console)
    return figures


def serve(upstream: int) -> None:
    """A front before a port of this machine, until it is killed; prints its own."""
    import uvloop

    kept = deque[Observation](maxlen=_KEPT)

    async def forever() -> None:
        front = Front("ns-0", Address("127.0.0.1", upstream), kept.append, RealClock.starting_now())
        print((await front.open()).port, flush=True)
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(forever())


class _PassThrough(asyncio.Protocol):
    """One end of a connection: what comes goes to the other, which a client's end dials."""

    def __init__(self, upstream: int, other: _PassThrough | None = None) -> None:
        self._upstream, self.other = upstream, other
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.other is None:
            self.other = _PassThrough(self._upstream, self)
            loop, other = asyncio.get_running_loop(), self.other
            self._dial = loop.create_task(loop.create_connection(lambda: other, "127.0.0.1", self._upstream))
        else:
            self.transport.writelines(self.other._early)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)
        else:
            self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


def serve_pass_through(upstream: int) -> None:
    """What only passes bytes on, before a port of this machine, until it is killed; prints its own."""
    import uvloop

    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: _PassThrough(upstream), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(forever())


def _process(serves: str, upstream: Address) -> AbstractContextManager[Server]:
    return measure.served_by([sys.executable, "-c", _SERVE.format(serves), str(upstream.port)], pinned=False)


@contextlib.contextmanager
def _toxiproxy(folder: Path, upstream: Address) -> Iterator[Server]:
    from nemesrv.chaos.faults.toxiproxy import ToxiproxyServer

    with PortHolder() as ports:
        server = ToxiproxyServer(folder / "toxiproxy.log", ports=ports)
        with server as api:
            listen = ports.take()
            api.create({"bench": (listen, upstream)})
            assert server.pid is not None
            yield Server(listen, server.pid)
