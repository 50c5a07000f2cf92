"""The actor around a node, driven without Ray."""

import asyncio
import dataclasses
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.actor import NodeActor, NodeSpec
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.recorder import LagProbe, RecorderSpec
from nemesrv.remoting.errors import ConnectError
from nemesrv.remoting.node.clock import Clock, RealClock
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.recording import Recorder

from .nodes import TinyNode

ANY = Address("127.0.0.1", 0)


def spec_of(tmp_path: Path, **changes: Any) -> NodeSpec:
    clock = RealClock.starting_now(10)
    spec = NodeSpec(
        name="ns-0",
        role="name_server",
        factory=partial(TinyNode, listen=ANY),
        clock=clock,
        seed=7,
        recorder_spec=RecorderSpec.for_run(tmp_path, "ns-0", "name_server", 0, clock),
        data_dir=tmp_path / "data",
    )
    return dataclasses.replace(spec, **changes)


def events(tmp_path: Path, incarnation: int = 0) -> list[str]:
    rows = read_raw(tmp_path / "history" / "_raw" / f"ns-0.{incarnation}.jsonl")
    return [row["event"] for row in rows if row is not None]


def test_a_node_is_started_before_it_works_and_stopped_after_it_has_left(tmp_path: Path):
    async def body() -> None:
        actor = NodeActor(spec_of(tmp_path))
        listening = await actor.listen()
        assert listening.address is not None
        assert listening.address.port > 0
        await actor.start()
        await actor.stop()

    asyncio.run(body())
    assert events(tmp_path) == ["started", "topic", "stopped"]


class NoisyProbe:
    def start(self, record: Recorder, clock: Clock) -> None:
        self._record = record
        record("timer_lag", lag_ms=0)

    async def stop(self) -> None:
        self._record("timer_lag", lag_ms=1)


def test_the_probe_runs_for_as_long_as_the_node_does(tmp_path: Path):
    async def body() -> None:
        actor = NodeActor(spec_of(tmp_path, probe=NoisyProbe))
        await actor.listen()
        await actor.start()
        await actor.stop()

    asyncio.run(body())
    assert events(tmp_path) == ["started", "timer_lag", "topic", "timer_lag", "stopped"]


def test_chance_follows_seed_name_and_incarnation(tmp_path: Path):
    async def number(spec: NodeSpec) -> float:
        actor = NodeActor(spec)
        await actor.listen()
        try:
            result: float = await actor.call("number", (), {})
            return result
        finally:
            await actor.stop()

    spec = spec_of(tmp_path)
    memoized = asyncio.run(number(spec))
    assert asyncio.run(number(spec)) == memoized
    assert asyncio.run(number(dataclasses.replace(spec, seed=8))) != memoized
    assert asyncio.run(number(spec.next_incarnation())) != memoized


def test_the_next_incarnation_keeps_everything_but_its_number_and_history_file(tmp_path: Path):
    spec = spec_of(tmp_path)
    after = spec.next_incarnation()
    assert (after.incarnation, after.name, after.data_dir, after.factory) == (1, "ns-0", spec.data_dir, spec.factory)
    assert isinstance(after.recorder_spec, RecorderSpec)
    assert after.recorder_spec == RecorderSpec.for_run(tmp_path, "ns-0", "name_server", 1, spec.clock)


def test_a_spec_can_be_pickled(tmp_path: Path):
    spec = spec_of(tmp_path, probe=LagProbe)
    copy = pickle.loads(pickle.dumps(spec))
    assert (copy.name, copy.clock, copy.recorder_spec, copy.probe) == (
        spec.name, spec.clock, spec.recorder_spec, spec.probe,
    )  # fmt: skip


def test_a_node_dials_nobody_until_its_links_are_set(tmp_path: Path):
    async def body() -> None:
        server, client = NodeActor(spec_of(tmp_path)), NodeActor(spec_of(tmp_path, recorder_spec=None))
        address = (await server.listen()).address
        await client.listen()
        assert address is not None
        with pytest.raises(ConnectError, match="no link"):
            await client.call("dial", (address,), {})
        known_as = Address("10.0.0.1", 9876)
        await client.set_links({known_as: address})
        await client.call("dial", (known_as,), {})
        assert await client.call("ask", (b"hi",), {}) == b"hi"
        with pytest.raises(ConnectError, match="no link"):
            await client.call("dial", (address,), {})
        await client.stop()
        await server.stop()

    asyncio.run(body())


def test_a_stopped_node_can_be_asked_nothing(tmp_path: Path):
    async def body() -> None:
        actor = NodeActor(spec_of(tmp_path))
        await actor.listen()
        await actor.stop()
        with pytest.raises(RuntimeError, match="ns-0 does not run"):
            await actor.call("number", (), {})

    asyncio.run(body())
