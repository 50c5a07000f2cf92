"""The same tests while links fail: a regression suite for a client, whose tests say what it must do all the same.

    JVM ──► front ns ──────► NameServer          each EVERY_S one front, drawn by the seed, fails for a while:
        ──► front broker-a ─► broker-a            slow answers, silence, connections closed or reset
        ──► front broker-b ─► broker-b            in between all is well

The NameServer's front gives out the brokers' fronts in its routes, so that nothing goes round them. Faults are such as
a client with its defaults gets over: shorter than its time-outs, and a send that fails has two more tries.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from nemesrv.chaos.fronts.behaviour import CLOSES_ONCE, PASSES, RESETS_ONCE, SILENT, Behaviour
from nemesrv.chaos.fronts.front import Front
from nemesrv.chaos.fronts.observed import Asked, Observation
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from ..interop import programs
from .suite import BROKER_SETTINGS, BROKERS

CLASSES = (
    "client.consumer.balance.NormalMsgStaticBalanceIT",
    "client.consumer.tag.TagMessageWith1ConsumerIT",
    "client.producer.async.AsyncSendWithMessageQueueSelectorIT",
    "smoke.NormalMessageSendAndRecvIT",
)
EVERY_S = 3.0
FAULTS: tuple[tuple[str, Behaviour, float], ...] = (
    ("answers 300 ms late", Behaviour(delay_ms=300.0), 1.5),
    ("is silent", SILENT, 1.0),
    ("closes its connections", CLOSES_ONCE, 0.0),
    ("resets its connections", RESETS_ONCE, 0.0),
)
LIMIT_S = 30.0


@dataclass
class Injected:
    """What was done so far, a line each: `broker-a is silent`."""

    said: list[str] = field(default_factory=list)
    asked: int = 0
    """Requests that passed the fronts."""


class _Fronts:
    """Fronts in a thread of their own."""

    def __init__(self, upstreams: dict[str, Address], seed: int) -> None:
        self._upstreams, self._rng = upstreams, random.Random(seed)
        self._fronts: dict[str, Front] = {}
        self.injected = Injected()
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fronts", daemon=True)

    def __enter__(self) -> _Fronts:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(LIMIT_S)
        self._chaos = asyncio.run_coroutine_threadsafe(self._misbehave(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self._chaos.cancel()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(LIMIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_S)
        self._loop.close()

    @property
    def name_server(self) -> str:
        return str(self._fronts["ns"].address)

    async def _open(self) -> None:
        for name, upstream in self._upstreams.items():
            front = self._fronts[name] = Front(name, upstream, self._saw, RealClock.starting_now())
            await front.open()
        told = {str(self._upstreams[name]): str(self._fronts[name].address) for name in BROKERS}
        self._fronts["ns"].addresses = told

    def _saw(self, seen: Observation) -> None:
        self.injected.asked += isinstance(seen, Asked)

    async def _misbehave(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            name = self._rng.choice(sorted(self._fronts))
            what, behaviour, for_s = self._rng.choice(FAULTS)
            self.injected.said.append(f"{name} {what}")
            await self._fronts[name].behave(behaviour)
            await asyncio.sleep(for_s)
            await self._fronts[name].behave(PASSES)

    async def _close(self) -> None:
        for front in self._fronts.values():
            await front.close()


@contextmanager
def servers(folder: Path, seed: int) -> Iterator[tuple[str, Injected]]:
    """A NameServer and two brokers of ours whose links fail from now on; the address to dial, and what was done."""
    with ExitStack() as stack:
        server, address = programs.name_server("ns", folder / "ns")
        stack.enter_context(server)
        upstreams = {"ns": Address.parse(address)}
        for name in BROKERS:
            broker, at = programs.broker(name, folder / name, [address], name, more=BROKER_SETTINGS)
            stack.enter_context(broker)
            upstreams[name] = Address.parse(at)
        fronts = stack.enter_context(_Fronts(upstreams, seed))
        yield fronts.name_server, fronts.injected
