"""`python -m tests.bench virtual`: what a virtual recording costs, where that goes, the least it could be.

    record ─► CPU seconds for so many simulated ones
    record again under Python's profiler ─► each part's share; what C functions take counts for who calls them
    the same turns, with the same chunks between two protocols that do nothing ─► CPU seconds of an empty loop

The profiler makes calls dearer than what happens within one, so shares are near, not exact; seconds are measured
without it.
"""

import asyncio
import cProfile
import pstats
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nemesrv.chaos.experiment.experiment import Experiment
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.virtual.loop import Scheduler
from nemesrv.chaos.experiment.virtual.network import MemoryNetwork
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.reports.terminal import print_fitting, standard_output
from nemesrv.chaos.scenarios.loading import find, parse
from nemesrv.chaos.scenarios.model import Scenario, TimersModel
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.network import Address

SEED = 1
ROUNDS = 3
CHUNK = bytes(300)
"""What the empty loop's protocols write: about as long as a send."""

LARGE = parse(
    {
        "description": "3 NameServers, 8 brokers and 40 clients with 80 sends a second in all.",
        "cluster": {"name_servers": 3, "brokers": 8},
        "workload": {"producers": 20, "consumers": 20, "sends_per_s": 4},
        "timeline": [{"at_s": 20, "do": "black_hole", "links": ["broker-a <-> ns-1"]}, {"at_s": 175, "do": "heal"}],
        "checks": ["no_acknowledged_loss"],
    },
    file="large.yaml",
)

PARTS = (
    ("event loop and tasks", ("virtual/loop.py", "asyncio/", "contextlib.py", "virtual/stage.py")),
    ("network in memory", ("virtual/network.py",)),
    ("headers and bodies", ("remoting/headers/", "remoting/bodies/", "remoting/fastjson.py")),
    ("messages and properties", ("remoting/message", "remoting/properties.py", "remoting/compression.py")),
    ("frames, commands and channels", ("remoting/",)),
    ("brokers and their stores", ("actors/broker/",)),
    ("NameServers", ("actors/namesrv/",)),
    ("clients", ("clients/",)),
    ("workload and prober", ("chaos/experiment/workloads/",)),
    ("recording", ("virtual/recording.py", "recorder.py:line", "recorder.py:_head", "recorder.py:check_fields")),
    ("merge to Parquet", ("history/", "pyarrow/")),
)
"""The first that fits a function counts; `:` comes before a function's name."""
REST = "coming up, going, other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One scenario recorded on the virtual clock. `parts` are shares of `cpu_s`, which add up to 1."""

    name: str
    simulated_s: float
    cpu_s: float
    events: int
    turns: int
    """Callbacks that the loop ran."""
    chunks: int
    """Writes that reached their peer."""
    calls: int
    """Of functions, C's included, as the profiler counts them: the same whatever else the machine does."""
    empty_cpu_s: float
    """Of a loop with as many turns and chunks whose nodes do nothing."""
    parts: dict[str, float]

    @property
    def times_real(self) -> float:
        return self.simulated_s / self.cpu_s


def run(scenarios: Sequence[Scenario] = (), *, rounds: int = ROUNDS, console: Console | None = None) -> list[Recorded]:
    """Measure, print and return; the best of `rounds` counts, for what else the machine does only adds."""
    console = console or standard_output()
    found = [_measured(scenario, rounds) for scenario in scenarios or (LARGE, find("broker-partition"))]
    _print(found, console)
    return found


def _measured(scenario: Scenario, rounds: int) -> Recorded:
    timers = TimersModel(**{**scenario.timers.model_dump(), "time_scale": 1.0})
    as_run = scenario.model_copy(update={"seed": SEED, "timers": timers})
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name:
        folders = [RunFolder.create(as_run.name, Path(name) / str(number)) for number in range(rounds + 1)]
        taken_s = []
        for folder in folders[:rounds]:
            begin_s = time.process_time()
            turns = _record(as_run, folder)
            taken_s.append(time.process_time() - begin_s)
        profile = cProfile.Profile(time.process_time)
        profile.runcall(_record, as_run, folders[rounds])
        rows = read_rows(folders[0].path)
    stats = pstats.Stats(profile)
    chunks = _calls(stats, "network.py", "_hand_on")
    return Recorded(
        name=as_run.name,
        simulated_s=rows[-1]["time_ms"] / 1000,
        cpu_s=min(taken_s),
        events=len(rows),
        turns=turns,
        chunks=chunks,
        calls=stats.total_calls,  # type: ignore[attr-defined]
        empty_cpu_s=min(empty_loop(chunks, turns - chunks) for _ in range(rounds)),
        parts=_shares(stats),
    )


def _record(scenario: Scenario, folder: RunFolder) -> int:
    """How many turns the loop made."""
    stage = VirtualStage()
    Experiment(scenario=scenario, seed=SEED, folder=folder, stage=stage).run()
    return stage.scheduler.turns


def empty_loop(chunks: int, others: int) -> float:
    """CPU seconds of a loop in which so many chunks go to and fro between two nodes that do nothing else, and as
    many other turns are timers that do nothing."""
    scheduler = Scheduler()
    network = MemoryNetwork(scheduler, random.Random(SEED))
    address, left = Address("10.0.1.1", 9876), [chunks]
    network.lay({Link("a", "b"): address})

    class Echo(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, _data: bytes) -> None:
            if left[0] > 0:
                left[0] -= 1
                self.transport.write(CHUNK)  # type: ignore[attr-defined]

    server, client = scheduler.process("b"), scheduler.process("a")
    network.listen(server, address, Echo)
    dialling = client.create_task(network.connect(client, "a", address, Echo))
    scheduler.run(1.0)
    begin_s = time.process_time()
    dialling.result().data_received(b"")
    for number in range(others):
        client.call_later(number * 0.001, _nothing)
    scheduler.run(1.0 + max(chunks, others) * 0.001)
    return time.process_time() - begin_s


def _nothing() -> None:
    """A turn with nothing to do."""


def _calls(stats: pstats.Stats, file: str, function: str) -> int:
    return sum(
        entry[1]
        for (path, _, name), entry in stats.stats.items()  # type: ignore[attr-defined]
        if path.endswith(file) and name == function
    )


def _shares(stats: pstats.Stats) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for (path, _, name), (_, _, own_s, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if path in ("~", "<string>"):  # a C function, or one that dataclasses wrote
            for (caller, _, calling), (_, _, for_it_s, _) in callers.items():
                seconds[_part(caller, calling)] += for_it_s
        else:
            seconds[_part(path, name)] += own_s
    whole_s = sum(seconds.values())
    return {part: seconds[part] / whole_s for part in (*(part for part, _ in PARTS), REST)}


def _part(path: str, function: str) -> str:
    where = f"{path}:{function}"
    recording = next(part for part, _ in PARTS if part == "recording")
    if any(place in where for place in dict(PARTS)[recording]):
        return recording
    return next((part for part, places in PARTS if any(place in where for place in places)), REST)


def _print(found: Sequence[Recorded], console: Console) -> None:
    table = Table(title="recordings on the virtual clock")
    table.add_column("what")
    for recorded in found:
        table.add_column(recorded.name, justify="right")
    lines = {
        "simulated s": [f"{r.simulated_s:,.0f}" for r in found],
        "CPU s": [f"{r.cpu_s:.2f}" for r in found],
        "times real time": [f"{r.times_real:,.0f}" for r in found],
        "events recorded": [f"{r.events:,}" for r in found],
        "turns of the loop, chunks among them": [f"{r.turns:,}, {r.chunks:,}" for r in found],
        "calls of functions, a turn": [f"{r.calls:,}, {r.calls / r.turns:.0f}" for r in found],
        "CPU µs a turn": [f"{r.cpu_s / r.turns * 1e6:.1f}" for r in found],
        "CPU s of an empty loop, turns and chunks the same": [f"{r.empty_cpu_s:.2f}" for r in found],
    }
    for what, values in lines.items():
        table.add_row(what, *values)
    table.add_section()
    for part in found[0].parts:
        table.add_row(f"share of {part}", *(f"{r.parts[part]:.0%}" for r in found))
    print_fitting(console, table)
