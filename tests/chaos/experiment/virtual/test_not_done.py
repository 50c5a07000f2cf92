"""What a node does not do for the harness is a finding of the run: it is recorded, and the run goes on to its end."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.checks.finishing import with_joining
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.experiment.experiment import Experiment
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.virtual import loop
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.proof.defects import Defect
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.topology import NodeKind
from tests.chaos.builder import HistoryBuilder, cluster

STOPS = [{"at_s": 20, "do": "stop", "nodes": ["broker-a"]}, {"at_s": 60, "do": "restart", "nodes": ["broker-a"]}]


def never_stops(broker: Broker) -> None:
    async def stop() -> None:
        await asyncio.get_running_loop().create_future()

    broker.stop = stop  # type: ignore[method-assign]


def fails_to_stop(broker: Broker) -> None:
    async def stop() -> None:
        raise OSError("the store cannot be written")

    broker.stop = stop  # type: ignore[method-assign]


def answers_late(server: NameServer) -> None:
    """After 4 s, while its clients wait for 3 s."""
    endpoint = server._server
    handler = endpoint.handler

    async def late(*args: Any) -> Any:
        await asyncio.sleep(4)
        return handler(*args)

    endpoint.handler, endpoint.fast_path = late, None


def rows_of(tmp_path: Path, kind: NodeKind, plant: Any, **scenario: Any) -> list[dict[str, Any]]:
    nodes = ("broker-a",) if kind is NodeKind.BROKER else ()
    defect = Defect(name="of-a-test", what="", kinds=(kind,), nodes=nodes, plant=plant, source=Path(__file__))
    workload = {"client_starts": 0, "sends_per_s": 1, **scenario.pop("workload", {})}
    document = {"checks": ["routes_are_true"], "settle_s": 30, "workload": workload, **scenario}
    as_run = parse(document, file="mine.yaml")
    folder = RunFolder.create("mine", tmp_path / "run")
    folder.scenario_file.write_text(as_run.to_yaml(), encoding="utf-8")
    Experiment(scenario=as_run, seed=1, folder=folder, stage=VirtualStage(), defect=defect).run()
    return list(read_rows(folder.path))


@pytest.mark.parametrize(
    ("plant", "why", "killed_s"),
    [
        (never_stops, "broker-a did not answer `stop` within 300 virtual s; it was killed", 320),
        (fails_to_stop, "broker-a failed to stop: OSError: the store cannot be written; it was killed", 20),
    ],
)
def test_a_node_that_does_not_stop_is_killed(tmp_path: Path, plant: Any, why: str, killed_s: float) -> None:
    rows = rows_of(tmp_path, NodeKind.BROKER, plant, timeline=STOPS)
    (not_done,) = [row for row in rows if row["event"] == "not_done"]
    assert (not_done["source"], not_done["value"]) == ("broker-a", {"f": "stop", "why": why})
    world = World.of_rows(rows)
    (fault,) = world.faults
    assert (fault.fault, round((fault.start_ms - world.timeline_ms) / 1000)) == ("stop", killed_s)
    assert fault.end_ms < world.end_ms
    assert [life.incarnation for life in world.lives_of("broker-a")] == [0, 1]


@pytest.mark.nightly("test_a_node_that_does_not_stop_is_killed")
def test_name_servers_too_slow_for_the_prober_end_no_run(tmp_path: Path) -> None:
    """300 starts wait for 3 s each, which takes longer than the harness waits."""
    rows = rows_of(tmp_path, NodeKind.NAME_SERVER, answers_late, steady_s=20, workload={"client_starts": 300})
    (not_done,) = [row for row in rows if row["event"] == "not_done"]
    assert not_done["value"] == {"f": "probe", "why": "prober did not answer `probe` within 600 virtual s"}
    assert [row["event"] for row in rows].count("run_end") == 1


def never_yields(broker: Broker) -> None:
    """From its start on it asks again and again whether there is something to do."""
    start = broker.start

    async def start_and_spin() -> None:
        await start()
        broker._tasks.spawn(spin())

    async def spin() -> None:
        await asyncio.sleep(30)
        while True:  # noqa: ASYNC110 - that it waits for nothing is what is wrong with it
            await asyncio.sleep(0)

    broker.start = start_and_spin  # type: ignore[method-assign]


def test_a_node_that_never_yields_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SPIN_TURNS", 20_000)
    rows = rows_of(tmp_path, NodeKind.BROKER, never_yields, steady_s=60)
    (spun,) = [row["value"] for row in rows if row["event"] == "not_done" and row["value"]["f"] == "yield"]
    assert spun["why"].startswith("broker-a never yields: 20,000 callbacks within 1 ms at ")
    assert spun["why"].endswith("; it was stopped for good")
    assert [row["event"] for row in rows].count("run_end") == 1
    at_ms = next(row["time_ms"] for row in rows if row["event"] == "not_done")
    dropped_ms = [r["time_ms"] for r in rows if r["event"] == "broker_dropped" and r["broker_name"] == "broker-a"]
    assert min(dropped_ms) > at_ms + 85_000  # by the expiry, as one that hangs: its connections stay


def never_returns(broker: Broker) -> None:
    """30 s after its start it computes for ever."""
    start = broker.start

    async def start_and_hang() -> None:
        await start()
        asyncio.get_running_loop().call_later(30, hang)

    def hang() -> None:
        while True:
            with suppress(Exception):
                pass

    broker.start = start_and_hang  # type: ignore[method-assign]


def test_a_callback_that_never_returns_stops_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "HANGS_CPU_S", 0.3)
    rows = rows_of(tmp_path, NodeKind.BROKER, never_returns, steady_s=60)
    (hung,) = [row["value"] for row in rows if row["event"] == "not_done" and row["value"]["f"] == "yield"]
    assert hung["why"].startswith("broker-a never yields: one callback does not return at ")
    assert hung["why"].endswith("; it was stopped for good")
    assert [row["event"] for row in rows].count("run_end") == 1


def control_of(builder: HistoryBuilder) -> Control:
    return builder.end(50).facts()[0]


def test_such_a_run_is_never_valid_whatever_it_is_judged_by() -> None:
    late = cluster().at(20).event("harness", "not_done", source="broker-a", value={"f": "stop", "why": "x"})
    assert with_joining(["order_kept"], control_of(late)) == ["order_kept", "exercised"]
    assert with_joining(["exercised", "order_kept"], control_of(late)) == ["exercised", "order_kept"]
    assert with_joining(["order_kept"], control_of(cluster())) == ["order_kept"]
