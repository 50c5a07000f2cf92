"""A small run on the real clock without Ray, Toxiproxy and Spark: our servers in this loop, Java clients as children.

    scenario ─► NodePlan ─► NodeActor for each node, dialled directly ─► history ─► checks, plainly (checkers/plain)

What happens meanwhile, the caller says.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from nemesrv.actors.actor import NodeActor, NodeSpec
from nemesrv.chaos.apache.distribution import class_path
from nemesrv.chaos.apache.maven import JavaMissing
from nemesrv.chaos.experiment.nodes import NodePlan, about, client_profile_of
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.merge import to_parquet
from nemesrv.chaos.history.recorder import HistoryWriter, LagProbe, RecorderSpec
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from tests.free_port import free_port

LIMIT_S = 120.0


def missing(implementation: str) -> str:
    """Why Apache's clients cannot be had here; "" when they can."""
    try:
        class_path(implementation)
    except JavaMissing as exc:
        return str(exc)
    return ""


class InOneProcess:
    """A run under way. `actors` by node; `harness` records what a harness does."""

    def __init__(self, scenario: Scenario, folder: Path, defect: str | None) -> None:
        self.scenario, self.clock = scenario, RealClock.starting_now()
        self.folder = RunFolder(folder)
        self.kinds = {n: k for n, k in scenario.topology().kinds.items() if k not in (NodeKind.ADMIN, NodeKind.PROBER)}
        at = self.addresses = {name: Address("127.0.0.1", free_port()) for name in scenario.topology().servers}
        planted = None if defect is None else DEFECTS[defect]
        self._plan = NodePlan(scenario=scenario, listen=at, advertised=at, defect=planted)
        self.harness = self._spec("harness", "harness").open()
        self.actors = {name: NodeActor(self._node(name)) for name in self.kinds}
        self._working: list[str] = []

    def _spec(self, name: str, role: str) -> RecorderSpec:
        return RecorderSpec.for_run(self.folder.path, name, role, 0, self.clock)

    def _node(self, name: str) -> NodeSpec:
        kind = self.kinds[name]
        return NodeSpec(
            name=name,
            role=str(kind),
            factory=self._plan.factory(name, kind),
            clock=self.clock,
            seed=1,
            recorder_spec=self._spec(name, str(kind)),
            probe=LagProbe,
            data_dir=self.folder.data.resolve() / name,
            log_file=self.folder.logs.resolve() / f"{name}.log",
            links=None,
        )

    async def up(self) -> None:
        """All are at work."""
        record, implementations = self.harness, self.scenario.implementations()
        record("run_begin", value={"scenario": self.scenario.name, "seed": 1, **about(self.scenario), "clock": "real"})
        for name, kind in self.kinds.items():
            value: dict[str, Any] = {"kind": str(kind)}
            if (made_by := implementations.get(name)) is not None:
                value["implementation"] = made_by
            if (profile := client_profile_of(self.scenario, name)) is not None:
                value["client_profile"] = profile
            record(
                "node", source=name, address=str(self.addresses[name]) if name in self.addresses else None, value=value
            )
        for name, actor in self.actors.items():
            self._working.append(name)
            await actor.listen()
            if self.kinds[name] is NodeKind.BROKER:
                await actor.call("have_topics", (self.scenario.topics(),), {})
        for kind in (NodeKind.NAME_SERVER, NodeKind.BROKER):
            await self._start(kind)
        await self._start(NodeKind.CONSUMER, NodeKind.PRODUCER)

    async def _start(self, *kinds: NodeKind) -> None:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(*(self.actors[name].start() for name, kind in self.kinds.items() if kind in kinds))

    async def down(self) -> None:
        """Clients have left first, everything is gone, and the history is whole."""
        for name in reversed(self._working):
            await self.actors[name].stop()
        self.harness.close()
        to_parquet(self.folder.path)

    def rows(self, event: str, node: str | None = None) -> list[dict[str, Any]]:
        """What has been recorded of that kind so far."""
        found = []
        for name, actor in self.actors.items():
            writer = actor._recorder
            if isinstance(writer, HistoryWriter) and (node is None or name == node):
                writer.flush()
                found += [row for row in read_raw(writer.path) if row is not None and row["event"] == event]
        return found

    async def until(self, what: str, done: Callable[[], bool]) -> None:
        """It is so. TimeoutError with `what` when it does not come to be."""
        try:
            async with asyncio.timeout(LIMIT_S):
                while not done():  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        except TimeoutError as exc:
            raise TimeoutError(f"{what} did not come to be within {LIMIT_S:g} s") from exc


def recorded(
    document: Mapping[str, Any],
    folder: Path,
    happens: Callable[[InOneProcess], Awaitable[None]],
    defect: str | None = None,
    settles_s: float = 1.0,
) -> list[dict[str, Any]]:
    """The rows of a run in which that happened while producers sent."""
    scenario = parse(document, file="java-clients")

    async def whole() -> None:
        run = InOneProcess(scenario, folder, defect)
        producers = scenario.topology().of(NodeKind.PRODUCER)
        try:
            await run.up()
            run.harness("phase", phase="steady")
            for name in producers:
                await run.actors[name].call("begin", (), {})
            await happens(run)
            run.harness("phase", phase="settle")
            for name in producers:
                await run.actors[name].call("finish", (), {})
            await asyncio.sleep(settles_s)
            run.harness("phase", phase="end")
            run.harness("run_end")
        finally:
            await run.down()

    asyncio.run(whole())
    return list(read_rows(folder))
