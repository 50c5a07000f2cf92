"""`python -m tests.bench clients`: what each of some hundreds of clients costs a machine, at RocketMQ's own timers.

    3 NameServers, 8 brokers, N clients in shared processes ── up ── calm ──┬── STEADY_S of it ──┬── end
                                          CPU and memory of every process ──┴──── and again ─────┘

Half of the clients produce and half consume, in groups of GROUP with a topic each; each producer sends SENDS_PER_S.
CPU is what the processes took (user and system), so what else the machine does hardly counts; memory is the
proportional set size, which shares out what processes share.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nemesrv.actors.processes import command, family
from nemesrv.chaos.experiment.experiment import Experiment
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.stage import RealStage
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.preflight import MachineNeeds, require
from nemesrv.chaos.reports.terminal import print_fitting, standard_output
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

COUNTS = (50, 100, 200, 500)
SENDS_PER_S = 0.2
GROUP = 25
PER_PROCESS = 125
CALM_S, STEADY_S = 40.0, 60.0
PARTS = ("clients", "NameServers", "brokers", "Toxiproxy", "Ray", "harness")
_MB = 1024 * 1024


def crowd(count: int, *, per_process: int = PER_PROCESS) -> Scenario:
    """3 NameServers, 8 brokers and so many clients."""
    producers, consumers = count // 2, count - count // 2
    nodes = {
        f"{kind}-{number}": {"topic": f"crowd-{number // GROUP}"}
        for kind, of in (("producer", producers), ("consumer", consumers))
        for number in range(of)
    }
    return parse(
        {
            "description": f"{count} clients at RocketMQ's own timers.",
            "cluster": {"name_servers": 3, "brokers": 8},
            "timers": {"time_scale": 1},
            "nodes": nodes,
            "workload": {
                "topic": "crowd",
                "topics": {f"crowd-{number}": {"queues": 4} for number in range(math.ceil(consumers / GROUP))},
                "producers": producers,
                "consumers": consumers,
                "clients_per_process": per_process,
                "sends_per_s": SENDS_PER_S,
                "client_starts": 0,
            },
            "steady_s": CALM_S + STEADY_S,
            "checks": ["no_acknowledged_loss"],
        },
        file="clients.yaml",
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """What the processes of each part have taken so far."""

    cpu_s: Mapping[str, float]
    bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One population. CPU is in cores: seconds of a processor a second."""

    clients: int
    proxies: int
    cores: Mapping[str, float]
    bytes: Mapping[str, int]
    up_cpu_s: float
    """All that was taken until everybody worked and the calm was over."""
    events_per_s: float
    lag_ms: tuple[float, float]
    """How late the timers of clients' processes fired, the median row and the latest, beyond what no step can see."""
    proxy_lag_ms: tuple[float, float]


def run(
    counts: Sequence[int] = COUNTS, *, console: Console | None = None, say: Callable[[str], None] = lambda _: None
) -> list[Measured]:
    """Measure, print and return."""
    found = []
    for count in counts:
        found.append(measured(crowd(count), say=say))
    _print(found, console or standard_output())
    return found


def measured(scenario: Scenario, *, say: Callable[[str], None] = lambda _: None) -> Measured:
    topology = scenario.topology()
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as name:
        require(MachineNeeds.of_run(scenario, spark=False), Path(name))
        workers = len(topology.nodes) - len(topology.process_of) + len(topology.processes)
        folder = RunFolder.create("clients", Path(name) / "run")
        with Harness(workers=workers) as harness:
            experiment = Experiment(scenario=scenario, seed=1, folder=folder, stage=RealStage(harness), say=say)
            with experiment.running():
                experiment.wait(CALM_S)
                before, from_s = _taken(experiment), experiment.now_s
                experiment.wait(STEADY_S)
                after, to_s = _taken(experiment), experiment.now_s
                experiment.end()
        rows = [row for row in read_rows(folder.path) if from_s * 1000 <= row["time_ms"] <= to_s * 1000]
    clients = topology.process_of
    return Measured(
        clients=len(clients),
        proxies=len(topology.links),
        cores={part: (after.cpu_s[part] - before.cpu_s[part]) / (to_s - from_s) for part in PARTS},
        bytes={part: after.bytes[part] for part in PARTS},
        up_cpu_s=sum(before.cpu_s.values()),
        events_per_s=len(rows) / (to_s - from_s),
        lag_ms=_lags([row["lag_ms"] for row in rows if row["event"] == "timer_lag" and row["node"] in clients]),
        proxy_lag_ms=_lags([r["lag_ms"] for r in rows if r["event"] == "timer_lag" and r["node"] == "toxiproxy"]),
    )


def _lags(lags: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(lags)
    return (ordered[len(ordered) // 2], ordered[-1]) if ordered else (math.nan, math.nan)


def _taken(experiment: Experiment) -> Taken:
    part_of = {os.getpid(): "harness"}
    for node, pid in experiment.pids.items():
        of_server = "NameServers" if node.startswith("ns-") else "brokers"
        part_of[pid] = of_server if node.startswith(("ns-", "broker-")) else "harness"
    for node in experiment.scenario.topology().process_of:
        if node in experiment.pids:
            part_of[experiment.pids[node]] = "clients"
    cpu_s: dict[str, float] = defaultdict(float)
    held: dict[str, int] = defaultdict(int)
    found = family(os.getpid(), lambda _: True)
    for pid in [os.getpid(), *(process.pid for process in found)]:
        part = part_of.get(pid) or ("Toxiproxy" if "toxiproxy" in command(pid) else "Ray")
        with suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            cpu_s[part] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            pss = next(x for x in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if x.startswith("Pss:"))
            held[part] += int(pss.split()[1]) * 1024
    for process in found:
        process.close()
    return Taken(cpu_s, held)


def _print(found: Sequence[Measured], console: Console) -> None:
    table = Table(title="clients at RocketMQ's own timers: 3 NameServers, 8 brokers")
    table.add_column("what")
    for one in found:
        table.add_column(f"{one.clients:,} clients", justify="right")
    lines = {
        "proxies": [f"{one.proxies:,}" for one in found],
        **{f"cores: {part}": [f"{one.cores[part]:.3f}" for one in found] for part in PARTS},
        "cores: all": [f"{sum(one.cores.values()):.3f}" for one in found],
        "CPU ms a second and client, all": [f"{1000 * sum(one.cores.values()) / one.clients:.2f}" for one in found],
        **{f"MB: {part}": [f"{one.bytes[part] / _MB:,.0f}" for one in found] for part in PARTS},
        "MB: all": [f"{sum(one.bytes.values()) / _MB:,.0f}" for one in found],
        "CPU s until all work and it is calm": [f"{one.up_cpu_s:,.0f}" for one in found],
        "rows recorded a second": [f"{one.events_per_s:,.0f}" for one in found],
        "lateness of clients, ms: median, largest": [f"{one.lag_ms[0]:.0f}, {one.lag_ms[1]:.0f}" for one in found],
        "of Toxiproxy": [f"{one.proxy_lag_ms[0]:.0f}, {one.proxy_lag_ms[1]:.0f}" for one in found],
    }
    for what, values in lines.items():
        table.add_row(what, *values)
    if len(found) > 1:
        few, many = found[0], found[-1]
        more = many.clients - few.clients
        cores = (sum(many.cores.values()) - sum(few.cores.values())) / more
        held = (sum(many.bytes.values()) - sum(few.bytes.values())) / more
        table.caption = f"one client more: {1000 * cores:.2f} ms of CPU a second, {held / _MB:.2f} MB"
    print_fitting(console, table)
