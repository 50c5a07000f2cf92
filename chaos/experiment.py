"""One experiment: cluster up, workload, faults, heal, settle, final reads. It records; it never judges.

    listen ─► links ─► start ─► topic routable ─┬─ steady ─ fault ─ … ─ heal ─ settle ─┬─ final reads ─ end
                                                 └─ producers send, consumers receive ──┘

Whatever happens, on the way out every fault is healed, every process and proxy of the run is gone, and what was
recorded has been merged into the run folder's Parquet file.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from ..actors.actor import NodeSpec
from ..actors.cluster import Cluster
from ..actors.processes import signals_deferred
from ..remoting.clock import RealClock
from ..remoting.network import Address
from .defects import Defect
from .errors import HarnessError
from .faults.links import Bandwidth, BlackHole, Cut, Latency, LinkFault, LinkFaults, Reset
from .faults.process import ProcessFaults
from .faults.toxiproxy import ToxiproxyServer
from .harness import Harness
from .history import HistoryWriter, LagProbe, RecorderSpec, to_parquet
from .nodes import NodePlan, timers_of
from .run_folder import RunFolder
from .scenarios.model import ActionModel, Scenario, is_chosen
from .topology import Link, NodeKind

log = logging.getLogger("nemesrv.experiment")

ROUTABLE_LIMIT_S = 60.0
"""RocketMQ seconds that the fresh cluster may take until every NameServer routes the topic to every broker."""
LAST_WRITE_S = 0.1
"""Of the machine's time: longer than a node may keep an event in memory."""
HARNESS = "harness"
PROBER = "prober"


def _quiet(_text: str) -> None:
    """The progress of a run that nobody watches."""


@dataclass(slots=True, kw_only=True)
class Experiment:
    """`run` does it once. `say` is told each phase, for a person who waits."""

    scenario: Scenario
    seed: int
    folder: RunFolder
    harness: Harness
    defect: Defect | None = None
    say: Callable[[str], None] = _quiet
    _recording: bool = field(init=False, default=False)
    _clock: RealClock = field(init=False)
    _record: HistoryWriter = field(init=False)
    _cluster: Cluster = field(init=False)
    _links: LinkFaults = field(init=False)
    _processes: ProcessFaults = field(init=False)
    _told: dict[str, Address] = field(init=False)

    def run(self) -> None:
        """The history is in the run folder. HarnessError or ClusterError when the experiment itself failed."""
        stack = ExitStack()
        try:
            self._set_up(stack)
            self._conduct()
        finally:
            with signals_deferred(patient=True):
                try:
                    stack.close()
                finally:
                    if self._recording:
                        to_parquet(self.folder.path)

    # -- coming up

    def _set_up(self, stack: ExitStack) -> None:
        scenario, harness = self.scenario, self.harness
        topology = scenario.topology()
        harness.start_spark()
        self.say("starting Ray")
        harness.ray.start()
        self._clock = RealClock.starting_now(scenario.timers.time_scale)
        self._record = RecorderSpec.for_run(self.folder.path, HARNESS, HARNESS, 0, self._clock).open()
        stack.callback(self._record.close)
        self._recording = True
        timers = timers_of(scenario)
        self._record(
            "run_begin",
            value={
                "scenario": scenario.name,
                "seed": self.seed,
                "profile": scenario.cluster.profile,
                "time_scale": scenario.timers.time_scale,
                "timers": timers.to_json(),
                "workload": scenario.workload.model_dump(mode="json"),
                "timeline": [action.do for action in scenario.timeline],
                "availability_floor": scenario.availability_floor,
                "defect": self.defect.name if self.defect else None,
            },
        )
        self._told = {name: harness.ports.take() for name in topology.servers}
        for name, kind in topology.kinds.items():
            address = self._told.get(name)
            self._record("node", source=name, address=address and str(address), value={"kind": str(kind)})

        self.say("starting Toxiproxy and its links")
        api = stack.enter_context(ToxiproxyServer(self.folder.logs / "toxiproxy.log", ports=harness.ports))
        self._links = LinkFaults(api, self._clock, self._record)
        self._links.open({link: self._told[link.peer] for link in topology.links}, harness.ports)

        self._cluster = stack.enter_context(Cluster(harness.ray, self._clock))
        stack.callback(self._links.heal_all)
        self._processes = ProcessFaults(self._cluster, self._record)
        self.say(f"starting {len(topology.nodes)} nodes")
        plan = NodePlan(scenario=scenario, listen=self._told, told=self._told, defect=self.defect)
        self._cluster.listen(self._spec(plan, name, topology.kinds[name]) for name in topology.nodes)
        for group in ((NodeKind.NAME_SERVER,), (NodeKind.BROKER, NodeKind.PROBER)):
            self._cluster.start(*topology.of(*group))
        brokers = self._brokers()
        self._cluster.call(PROBER, "create_topic", brokers)
        self._await_routes(brokers)
        self._cluster.start(*topology.of(NodeKind.CONSUMER, NodeKind.PRODUCER))

    def _spec(self, plan: NodePlan, name: str, kind: NodeKind) -> NodeSpec:
        return NodeSpec(
            name=name,
            role=str(kind),
            factory=plan.factory(name, kind),
            clock=self._clock,
            seed=self.seed,
            recorder_spec=RecorderSpec.for_run(self.folder.path.resolve(), name, str(kind), 0, self._clock),
            probe=LagProbe,
            data_dir=self.folder.data.resolve() / name,
            log_file=self.folder.logs.resolve() / f"{name}.log",
            links=self._links.dials_of(name),
        )

    def _brokers(self) -> dict[str, Address]:
        return {name: self._told[name] for name in self.scenario.topology().of(NodeKind.BROKER)}

    def _await_routes(self, brokers: dict[str, Address]) -> None:
        if self.defect is not None:
            return  # a planted defect may keep a broker from ever being routable; the checkers will say so
        try:
            self._cluster.call(PROBER, "await_routes", brokers, ROUTABLE_LIMIT_S, timeout_s=ROUTABLE_LIMIT_S + 30)
        except TimeoutError as exc:
            raise HarnessError(
                f"not every NameServer routed the topic to every broker within {ROUTABLE_LIMIT_S:g} s of RocketMQ "
                f"time: see {self.folder.logs}"
            ) from exc

    # -- the experiment

    def _conduct(self) -> None:
        scenario, cluster = self.scenario, self._cluster
        topology = scenario.topology()
        self._phase("steady")
        begin_s = self._clock.monotonic_s()
        producers = topology.of(NodeKind.PRODUCER)
        for name in producers:
            cluster.call(name, "begin")
        if scenario.workload.client_starts:
            probing = cluster.submit(PROBER, "probe", scenario.workload.client_starts)
        for action in scenario.timeline:
            self._sleep_until(begin_s + action.at_s)
            self._phase("heal" if action.do in ("heal", "resume", "restart") else "fault", f"{action.do}")
            self._act(action)
        if not scenario.timeline:
            self._sleep_until(begin_s + scenario.steady_s)
        self._links.heal_all()
        self._processes.heal_all()
        self._phase("settle", f"settling {scenario.settle_s:g} s")
        self._sleep_until(self._clock.monotonic_s() + scenario.settle_s)
        if scenario.workload.client_starts:
            probing.result(timeout=60)
        for name in producers:
            cluster.call(name, "finish")
        self._phase("final_reads", "final reads")
        cluster.call(PROBER, "read_all", self._brokers(), timeout_s=120)
        time.sleep(LAST_WRITE_S)
        self._phase("end")
        self._record("run_end")

    def _phase(self, phase: str, text: str | None = None) -> None:
        self._record("phase", phase=phase)
        self.say(f"{self._clock.monotonic_s():6.1f} s  {text or phase}")

    def _sleep_until(self, at_s: float) -> None:
        left_s = at_s - self._clock.monotonic_s()
        if left_s > 0:
            time.sleep(left_s / self._clock.scale)

    def _act(self, action: ActionModel) -> None:
        if action.do == "heal":
            self._links.heal_all()
        elif action.links:
            self._links.begin(_link_fault(action), self._chosen_links(action))
        else:
            for node in action.nodes:
                getattr(self._processes, action.do)(node)

    def _chosen_links(self, action: ActionModel) -> tuple[Link, ...]:
        links: dict[Link, None] = {}
        for expression in action.links:
            found = (
                self._links_to_chosen() if is_chosen(expression) else self.scenario.topology().parse_links(expression)
            )
            links |= dict.fromkeys(found)
        return tuple(links)

    def _links_to_chosen(self) -> list[Link]:
        names = {address: name for name, address in self._told.items()}
        links = []
        for client in self.scenario.topology().of(NodeKind.PRODUCER, NodeKind.CONSUMER):
            chosen = self._cluster.call(client, "chosen_name_server")
            if chosen is not None:
                links.append(Link(client, names[chosen]))
        return links


def _link_fault(action: ActionModel) -> LinkFault:
    if action.do == "cut":
        return Cut(stream=action.stream)
    if action.do == "black_hole":
        return BlackHole(stream=action.stream)
    if action.do == "latency":
        assert action.latency_ms is not None
        return Latency(stream=action.stream, latency_ms=action.latency_ms, jitter_ms=action.jitter_ms)
    if action.do == "bandwidth":
        assert action.rate_kb_s is not None
        return Bandwidth(stream=action.stream, rate_kb_s=action.rate_kb_s)
    return Reset(stream=action.stream)
