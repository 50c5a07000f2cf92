"""One node of several in a process ends as a killed one does, and the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.actor import NodeSpec
from nemesrv.actors.shared_process import SharedProcess
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.recorder import RecorderSpec, SharedLagProbe
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext

from .nodes import TinyNode

CLOCK = RealClock.starting_now(10)
LIMIT_S = 30


class _Busy(TinyNode):
    """A node with all that may outlive a careless end: a task that catches its end, timers, and work begun by bytes."""

    def __init__(self, context: NodeContext, seen: asyncio.Queue[str]) -> None:
        super().__init__(context)
        self._seen = seen

    async def start(self) -> None:
        self._task = asyncio.create_task(self._work())
        self._tick()

    async def _work(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self._context.record("topic")
            self._after = asyncio.create_task(self._go_on())

    async def _go_on(self) -> None:
        self._seen.put_nowait("a task of the dead went on")

    def _tick(self) -> None:
        self._seen.put_nowait(self._context.name)
        self._context.clock.call_later(0.01, self._tick)


class _Stubborn(TinyNode):
    yields = False

    async def start(self) -> None:
        self._task = asyncio.create_task(self._work())
        await asyncio.sleep(0)

    async def _work(self) -> None:
        while not self.yields:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()


def spec(folder: Path, name: str, factory: Callable[[NodeContext], Any] = TinyNode, **more: Any) -> NodeSpec:
    return NodeSpec(
        name=name,
        role="producer",
        factory=factory,
        clock=CLOCK,
        recorder_spec=RecorderSpec.for_run(folder, name, "producer", 0, CLOCK),
        data_dir=folder / "data" / name,
        log_file=folder / "logs" / f"{name}.log",
        process="clients-0",
        links=None,
        **more,
    )


def events(folder: Path, name: str, incarnation: int = 0) -> list[str]:
    path = folder / "history" / "_raw" / f"{name}.{incarnation}.jsonl"
    return [row["event"] for row in read_raw(path) if row is not None]


class _Server(asyncio.Protocol):
    """What a peer sees of each connection: by the name that was sent first, whether it ended, and how."""

    ends: dict[str, asyncio.Future[Exception | None]]

    def __init__(self, ends: dict[str, asyncio.Future[Exception | None]]) -> None:
        self._ends, self._name = ends, ""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._name:
            self._name = data.decode()
            self._ends[self._name] = asyncio.get_running_loop().create_future()
        self._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._name:
            self._ends[self._name].set_result(exc)


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Address, dict[str, asyncio.Future[Exception | None]]]]:
    ends: dict[str, asyncio.Future[Exception | None]] = {}
    server = await asyncio.get_running_loop().create_server(lambda: _Server(ends), "127.0.0.1", 0)
    try:
        yield Address(*server.sockets[0].getsockname()[:2]), ends
    finally:
        server.close()


def run(work: Callable[[], Any]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await work()

    asyncio.run(limited())


def test_a_peer_sees_the_connection_of_the_killed_one_end_and_the_others_stay(tmp_path: Path) -> None:
    async def work() -> None:
        process = SharedProcess("clients-0")
        async with served() as (address, ends):
            for name in ("a", "b"):
                await process.listen(spec(tmp_path, name))
                await process.ask(name, "start")
                await process.ask(name, "call", "dial", (address,), {})
                assert await process.ask(name, "call", "ask", (name.encode(),), {}) == name.encode()
            await process.die("a")
            assert await ends["a"] is None  # FIN, as of a killed process that had read everything
            assert await process.ask("b", "call", "ask", (b"still here",), {}) == b"still here"
            assert not ends["b"].done()
            await process.die("b")

    run(work)
    assert events(tmp_path, "a") == ["started"]


def test_nothing_of_a_killed_one_runs_or_records_any_more(tmp_path: Path) -> None:
    async def work() -> None:
        seen: asyncio.Queue[str] = asyncio.Queue()
        process = SharedProcess("clients-0")
        for name in ("a", "b"):
            await process.listen(spec(tmp_path, name, partial(_Busy, seen=seen)))
            await process.ask(name, "start")
        assert {await seen.get() for _ in range(6)} == {"a", "b"}
        await process.die("a")
        while not seen.empty():
            seen.get_nowait()
        assert {await seen.get() for _ in range(6)} == {"b"}
        await process.die("b")

    run(work)
    assert events(tmp_path, "a") == ["started"]


def test_a_call_that_a_killed_one_has_not_answered_ends_and_later_ones_are_refused(tmp_path: Path) -> None:
    async def work() -> None:
        process = SharedProcess("clients-0")
        await process.listen(spec(tmp_path, "a"))
        await process.ask("a", "start")
        waits = asyncio.create_task(process.ask("a", "call", "never", (), {}))
        await asyncio.sleep(0)
        await process.die("a")
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(RuntimeError, match="its life is over"):
            await process.ask("a", "call", "number", (), {})

    run(work)


def test_the_next_life_is_a_new_node_over_the_same_files(tmp_path: Path) -> None:
    async def work() -> None:
        process = SharedProcess("clients-0")
        first = spec(tmp_path, "a")
        await process.listen(first)
        await process.ask("a", "start")
        with pytest.raises(RuntimeError, match="a is in clients-0 already"):
            await process.listen(first)
        before = await process.ask("a", "call", "number", (), {})
        await process.die("a")
        await process.listen(first.next_incarnation())
        await process.ask("a", "start")
        assert await process.ask("a", "call", "starts", (), {}) == 2
        assert await process.ask("a", "call", "number", (), {}) != before
        await process.ask("a", "stop")
        await process.die("a")

    run(work)
    assert events(tmp_path, "a") == ["started"]
    assert events(tmp_path, "a", 1) == ["started", "topic", "stopped"]
    assert (tmp_path / "logs" / "a.log").read_text().count("a works") == 2


def test_one_that_does_not_end_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nemesrv.actors.shared_process.END_LIMIT_S", 0.05)

    async def work() -> None:
        process = SharedProcess("clients-0")
        await process.listen(spec(tmp_path, "a", _Stubborn))
        await process.ask("a", "start")
        with pytest.raises(TimeoutError, match="1 tasks of a do not end"):
            await process.die("a")
        monkeypatch.setattr(_Stubborn, "yields", True)
        await process.die("a")

    run(work)


def test_how_late_timers_fire_is_recorded_as_of_each_and_goes_on_when_one_dies(tmp_path: Path) -> None:
    async def work() -> None:
        process = SharedProcess("clients-0")
        for name in ("a", "b"):
            await process.listen(spec(tmp_path, name, probe=SharedLagProbe))
            await process.ask(name, "start")
        await process.die("a")
        await asyncio.sleep(0.05)
        await process.ask("b", "stop")
        await process.die("b")

    run(work)
    assert events(tmp_path, "a") == ["started"]
    assert events(tmp_path, "b") == ["started", "topic", "timer_lag", "stopped"]
