"""`python -m tests.bench`: the benchmarks by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from nemesrv.actors.actor import NodeSpec
from nemesrv.actors.cluster import Cluster, ClusterError
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.actors.ray_host import RayHost
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.machine import require_java
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext

from . import checks, namesrv
from .measure import BenchError, Server, cpus, pin


def run_benchmarks(name: str | None, seconds: float, events: Sequence[int] = checks.EVENTS) -> int:
    """Run one benchmark, or all; 0. `events` are the sizes for `checks`. HarnessError when a measurement fails."""
    if name is not None and name not in BENCHMARKS:
        raise ScenarioError("bench", "NAME", repr(name), f"one of {', '.join(BENCHMARKS)}")
    try:
        for benchmark in [BENCHMARKS[name]] if name else BENCHMARKS.values():
            benchmark(seconds, events)
    except (BenchError, ClusterError) as exc:
        raise HarnessError(f"bench: {exc}") from exc
    return 0


def _look_ups(seconds: float, _events: Sequence[int]) -> None:
    with RayHost(workers=1) as host, PortHolder() as ports:
        target = partial(_in_an_actor, host, ports)
        namesrv.run(seconds, targets={"Ray actor": target})


@contextmanager
def _in_an_actor(host: RayHost, ports: PortHolder) -> Iterator[Server]:
    """A NameServer in a Ray actor of its own, dialled directly."""
    clock, listen = RealClock.starting_now(), ports.take()
    with Cluster(clock) as cluster:
        spec = NodeSpec(name="ns-0", role="name_server", factory=partial(_name_server, listen), clock=clock, links=None)
        cluster.listen([spec])
        cluster.start("ns-0")
        pid = cluster.pid("ns-0")
        if pid is None:
            raise BenchError("the NameServer actor is gone")
        pin(pid, cpus()[0])
        yield Server(listen, pid)


def _name_server(listen: Address, context: NodeContext) -> NameServer:
    return NameServer(context, NamesrvConfig(), listen=listen)


def _checks(_seconds: float, events: Sequence[int]) -> None:
    require_java()
    checks.run(events)


BENCHMARKS: Mapping[str, Callable[[float, Sequence[int]], object]] = {"namesrv": _look_ups, "checks": _checks}
