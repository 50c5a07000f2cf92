"""`python -m tests.bench collect`: how long it takes until what three hosts recorded is in the run folder.

A Ray cluster of three nodes on this machine, each with its agent, which has a third of the events in files of its own
as its nodes would have written them. Collected as a run does it at its end (hosts/collect.py: compressed, all hosts
side by side), and beside it as the bytes are, one host after the other. Here all share this machine's cores and no
network is between them, so compressing gains nothing; how much is on the way tells what it gains elsewhere.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from nemesrv.actors.hosts import RemoteHost
from nemesrv.actors.joined_ray import JoinedRay
from nemesrv.chaos.experiment.hosts.collect import CollectedHost, Collector, FilePiece
from nemesrv.chaos.history.files import raw_name
from nemesrv.chaos.history.recorder import EventLines
from nemesrv.chaos.history.schema import raw_dir
from nemesrv.chaos.reports.terminal import standard_output
from nemesrv.remoting.node.clock import RealClock

from .figures import Aim, Figures
from .measure import BenchError
from .recorder import client_rows

EVENTS = 1_000_000
HOSTS = 3
NODES = 4
"""On each host."""
MAX_S = 5.0
MOST_OF_IT = 0.25
"""Of what was recorded."""
COLLECTED, AS_IT_IS = "LZ4, hosts side by side", "as it is, one after the other"
_READ_BYTES = 16 * 1024 * 1024


def run(events: int = EVENTS, *, rounds: int = 3, console: Console | None = None) -> Figures:
    """Measure, print and return. BenchError when what was collected is not what was recorded."""
    figures = Figures(ours=COLLECTED)
    what = f"s until {events:,} events of {HOSTS} hosts are here"
    with tempfile.TemporaryDirectory(prefix="nemesrv-bench-") as place, _hosts() as hosts:
        folders = {host: host.ask("begin_run", RealClock.starting_now()) for host in hosts}
        for host, folder in folders.items():
            host.ask("run", write, folder, events // HOSTS, timeout_s=120.0)
        size = sum(of for host in hosts for name, of in host.ask("files") if name.endswith(".jsonl"))
        ways: dict[str, Callable[[Path], int]] = {
            COLLECTED: lambda to: _collected(folders, to),
            AS_IT_IS: lambda to: _as_it_is(hosts, to),
        }
        for _ in range(rounds):
            for way, collect in ways.items():
                to = Path(place) / "run"
                began_s = time.perf_counter()
                sent = collect(to)
                figures.add(what, way, time.perf_counter() - began_s, less_is_better=True)
                figures.add("MB on the way", way, sent / 1e6, less_is_better=True)
                here = sum(path.stat().st_size for path in to.rglob("*.jsonl"))
                if here != size:
                    raise BenchError(f"{way}: {here} bytes are here, of {size}")
                shutil.rmtree(to)
    figures.aims.append(Aim(what=what, of=None, at_most=MAX_S * events / EVENTS))
    figures.aims.append(Aim(what="MB on the way", of=AS_IT_IS, at_most=MOST_OF_IT))
    figures.print(console or standard_output())
    return figures


@contextmanager
def _hosts() -> Iterator[tuple[RemoteHost, ...]]:
    """Three nodes of a Ray cluster on this machine, joined."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(HOSTS - 1):
            cluster.add_node(num_cpus=1)
        with JoinedRay(cluster.address) as joined:
            yield joined.hosts
    finally:
        cluster.shutdown()


def write(run_dir: str, events: int) -> None:
    """What NODES clients on this host recorded."""
    rows = client_rows(1000)
    for number in range(NODES):
        node = f"producer-{number}"
        lines = EventLines(node, "producer", 0, RealClock.starting_now())
        with (raw_dir(run_dir) / raw_name(node, 0)).open("wb") as file:
            for position in range(events // NODES + (number < events % NODES)):
                event, fields = rows[position % len(rows)]
                file.write(lines.line(event, dict(fields)))


class _Counted:
    """A host of which is counted how much it sends."""

    def __init__(self, host: RemoteHost, folder: str) -> None:
        self.name, self.sent, self._there = host.name, 0, CollectedHost(host, folder)

    def pieces(self, known: Mapping[str, int]) -> Iterator[FilePiece]:
        for piece in self._there.pieces(known):
            self.sent += len(piece.data)
            yield piece


def _collected(folders: dict[RemoteHost, str], to: Path) -> int:
    far = [_Counted(host, folder) for host, folder in folders.items()]
    # Each host's clients have the same names here, as those of a run have not.
    collectors = [Collector([one], to / f"{number}", lambda: 0.0) for number, one in enumerate(far)]
    for collector in collectors:
        collector.__enter__()
    for collector in collectors:
        collector.finish()
        if collector.gone:
            raise BenchError(f"a host was lost: {collector.gone}")
    return sum(one.sent for one in far)


def _as_it_is(hosts: tuple[RemoteHost, ...], to: Path) -> int:
    sent = 0
    for number, host in enumerate(hosts):
        for name, size in host.ask("files"):
            path = to / f"{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                while file.tell() < size:
                    sent += file.write(host.ask("read", name, file.tell(), _READ_BYTES, timeout_s=60.0))
    return sent
