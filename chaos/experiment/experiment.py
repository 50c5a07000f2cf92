"""One experiment: cluster up, workload, faults, end of faults, settling, final reads. The experiment only records; it
never judges.

    listen ─► links ─► start ─► topic routable ─┬─ steady ─ fault ─ … ─ heal ─ settle ─┬─ final reads ─ end
                                                 └─ producers send, consumers receive ──┘

Even after an error, no fault, process or proxy of the run is left, and all rows are merged into the run folder's
Parquet file.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ...actors.actor import ClosableRecorder, NodeSpec
from ...actors.cluster import Submitted
from ...actors.processes import signals_deferred
from ...actors.supervisor import AtASignal, at_a_signal
from ...actors.watch import ClusterError, NodeFailed
from ...remoting.errors import RocketMQError
from ...remoting.node.file_names import file_name
from ...remoting.node.network import Address
from ..apache.bypass import refuse_bypass
from ..apache.server import PATIENCE_S
from ..errors import ScenarioError
from ..faults.injector import LinkFaultInjector
from ..faults.process_faults import Absent, Restart
from ..faults.processes import ProcessFaults, not_done
from ..fronts.behaviour import Unreachable
from ..history.merge import to_parquet
from ..oracle.client_profiles import profile_of
from ..scenarios.action import ActionModel
from ..scenarios.defect import Defect
from ..scenarios.loading import parse
from ..scenarios.model import Scenario
from ..topology import Link, NodeKind, broker_name
from .actions import Actions, TimelineStep, steps_of
from .nodes import NodePlan, about, about_node, cold, listing, timers_of
from .outside_clients import ClientUnderTest, about_client
from .run_folder import RunFolder
from .stage import RunningNodes, Stage, Starts

ROUTABLE_LIMIT_S = 60.0
"""In this time, in RocketMQ seconds, every NameServer must list the topic at every broker."""
RECOVERY_S = 40.0
"""A process that stood still is a fault that has just ended: routes and messages may be late by R + C after it."""
HARNESS = "harness"
PROBER = "prober"
_IDLE_DEFECT = "the planted defect {} changes nothing in this scenario: without the defect, every row is the same"
_TARGETS_SHOWN = 4


def _quiet(_text: str) -> None:
    """Progress that nobody sees."""


@dataclass(slots=True, kw_only=True)
class Experiment:
    """One experiment on the given stage (real or virtual clock). Call `run` once. `say` gets each phase's text."""

    scenario: Scenario
    seed: int
    folder: RunFolder
    stage: Stage
    defect: Defect | None = None
    defect_acts: bool = True
    """False if the rehearsal showed that the planted defect does nothing here."""
    say: Callable[[str], None] = _quiet
    _recording: bool = field(init=False, default=False)
    record: ClosableRecorder = field(init=False)
    """Records the harness's own rows."""
    _cluster: RunningNodes = field(init=False)
    links: LinkFaultInjector = field(init=False)
    processes: ProcessFaults = field(init=False)
    _at: Whereabouts = field(init=False)
    _probing: Submitted | None = field(init=False, default=None)
    _timeline_s: float = field(init=False, default=0.0)
    _starts: Starts = field(init=False)
    _actions: Actions = field(init=False)
    _news: FaultNews | None = field(init=False, default=None)
    """Passes faults on to nodes that connect through their own fronts."""

    def run(self) -> None:
        """Run the experiment and write its history into the run folder. Raises HarnessError or ClusterError if the
        harness fails."""
        with self.running():
            begin_s = self.now_s
            self.follow(steps_of(self.scenario, self.seed, join=self.join, act=self.act), begin_s)
            if not self.scenario.timeline:
                self.stage.sleep_until(begin_s + self.scenario.steady_s)
            self.finish()

    def follow(self, steps: Iterable[TimelineStep], begin_s: float) -> None:
        """Execute each step at its time after `begin_s`; a step of a series waits for the series' previous step."""
        done_s: dict[int, float] = {}
        for step in steps:
            after_s = done_s.get(step.series, -math.inf) + step.after_s  # the one before may have taken its time
            self.stage.sleep_until(max(begin_s + step.at_s, after_s))
            step.do()
            done_s[step.series] = self.now_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the cluster and its workload running within the block. After the block the history is in the run folder.

        The block must call `finish` at its end; after a block without `finish`, the recorded rows can still be judged.
        Raises HarnessError or ClusterError if the harness failed.
        """
        stack = ExitStack()
        try:
            self._set_up(stack)
            self._begin()
            yield
        finally:
            with signals_deferred(patient=True):
                try:
                    stack.close()
                finally:
                    if self._recording:
                        to_parquet(self.folder.path)
                        at_a_signal(AtASignal.NOTHING_TO_KEEP)

    def _hear(self, event: str, fields: Mapping[str, object]) -> None:
        self.stage.heard(event, fields)
        if self._news is not None:
            self._news.heard(event, fields)

    # -- coming up

    def _set_up(self, stack: ExitStack) -> None:
        scenario, stage = self.scenario, self.stage
        topology = scenario.topology()
        stage.begin(self.folder, self.seed, scenario.timers.time_scale, self.say)
        self._starts = stage.starts(scenario, self.seed)
        self.record = Heard(stage.recorder_spec(HARNESS, HARNESS).open(), self._hear)
        stack.callback(self.record.close)
        self._recording = True
        at_a_signal(AtASignal.KEEPS_A_RECORD)
        self.record(
            "run_begin",
            value={
                "scenario": scenario.name,
                "seed": self.seed,
                **about(scenario),
                "defect": self.defect.name if self.defect else None,
                "clock": scenario.clock,
                "origin_wall_ms": round(stage.clock.now_ms() - stage.clock.monotonic_s() * 1000),
            },
        )
        if self.defect is not None and not self.defect_acts:
            not_done(self.record, HARNESS, "defect", _IDLE_DEFECT.format(self.defect.name) + self._where_it_acts())
        self._at = Whereabouts(scenario, stage)
        self._cluster, self.links = stage.set_up(stack, self.record, self._at.upstreams(), self.say)
        self._at.told(stage.advertised(self._at.listen))
        for name in topology.kinds:
            self._note_node(name)

        diallers = [one for one in scenario.implementations() if topology.kinds[one] is not NodeKind.NAME_SERVER]
        self._news = FaultNews(diallers, self._cluster.submit) if diallers else None
        stack.callback(self.links.heal_all)
        self.processes = ProcessFaults(self._cluster, self.record, self._works_again, self._moves, stage.clock)
        self._actions = Actions(
            scenario=scenario,
            nodes=self._cluster,
            links=self.links,
            processes=self.processes,
            record=self.record,
            advertised=self._at.advertised,
            now_s=stage.clock.monotonic_s,
            phase=self._phase,
            or_not_done=self._or_not_done,
        )
        self.say(f"starting {len(topology.nodes)} nodes")
        listen, advertised, later = self._at.listen, dict(self._at.advertised), self._at.of_processes()
        plan = NodePlan(scenario=scenario, listen=listen, advertised=advertised, later=later, defect=self.defect)
        self._cluster.listen(self._spec(plan, name, topology.kinds[name]) for name in topology.nodes)
        for name in topology.of(NodeKind.NAME_SERVER):
            if not self._there((name,)):
                self.processes.begin(Absent(), name)  # nobody can dial it before it joins
        first = (NodeKind.NAME_SERVER, NodeKind.ADDRESS_SERVER)
        for group in (first, (NodeKind.BROKER, NodeKind.SLAVE, NodeKind.PROBER, NodeKind.ADMIN)):
            if NodeKind.BROKER in group:
                self._give_topics()
            self._start(*self._there(topology.of(*group)))
        if scenario.workload.prober:
            brokers = {name: at for name, at in self._brokers().items() if name in self._there(self._brokers())}
            with self._or_not_done(PROBER, "create_topic"):
                begin_without = {name: at for name, at in brokers.items() if name not in scenario.electing_names()}
                self._cluster.call(PROBER, "create_topic", begin_without)
            self._await_routes(brokers)
            self._warm_up()
        self._start(*self._there(topology.of(NodeKind.CONSUMER, NodeKind.PRODUCER)))

    def _where_it_acts(self) -> str:
        """Return in which nodes the defect is, on what the timeline acts, and the command that shows the defect."""
        if self.defect is None:
            return ""
        where = " and ".join(self.defect.nodes or [f"every {kind}" for kind in self.defect.kinds])
        on = list(dict.fromkeys(n for one in self.scenario.timeline for n in (*one.links, *one.nodes, *one.hosts)))
        more = f" and {len(on) - _TARGETS_SHOWN} more" if len(on) > _TARGETS_SHOWN else ""
        acts = f"the timeline acts on {', '.join(on[:_TARGETS_SHOWN])}{more}" if on else "the timeline has no fault"
        said = f" (seed {self.seed}). The defect is in {where}; {acts}"
        if self.defect.scenario in ("", self.scenario.name):
            return said
        return f"{said}. Checks find the defect with this command: {self.defect.command}"

    def _note_node(self, name: str) -> None:
        self.record("node", **self._at.row(self.scenario, name, self.stage.host_name(name)))

    def _moves(self, name: str) -> None:
        self.links.move(name)
        self._at.move(name)
        self._note_node(name)

    def _start(self, *names: str) -> None:
        """Start all nodes at once, or each at the time that gives its timers the wanted phase."""
        at_s = self._starts.of
        for name in sorted(at_s.keys() & set(names), key=lambda name: at_s[name]):
            self.stage.sleep_until(at_s[name])
            self._cluster.start(name)
        if rest := [name for name in names if name not in at_s]:
            self._cluster.start(*rest)

    def _there(self, names: Iterable[str]) -> tuple[str, ...]:
        own = self.scenario.nodes
        return tuple(name for name in names if name not in own or own[name].joins_at_s is None)

    def join(self, name: str) -> None:
        """Let a node that joins during the run begin its work. If the workload has a prober, a broker that joins gets
        the workload's topics. A NameServer that joins starts as a new process."""
        kind = self.scenario.topology().kinds[name]
        self._phase("join", f"{name} joins")
        if kind is NodeKind.NAME_SERVER:
            self.processes.end(Restart(), name)
            return
        if kind is NodeKind.BROKER and self.scenario.workload.prober:
            self._cluster.call(name, "have_topics", self.scenario.topics())
        self._cluster.start(name)
        self._works_again(name)

    def _works_again(self, name: str) -> None:
        """Let a producer's next process continue to send, with keys of its own."""
        if name in self._producers:
            with self._or_not_done(name, "begin"):
                self._cluster.call(name, "begin")

    def _spec(self, plan: NodePlan, name: str, kind: NodeKind) -> NodeSpec:
        spec = NodeSpec(
            name=name,
            role=str(kind),
            factory=plan.factory(name, kind),
            clock=self.stage.clock,
            seed=self.seed,
            recorder_spec=self.stage.recorder_spec(name, str(kind)),
            probe=self.stage.probe,
            data_dir=self.folder.data.resolve() / file_name(name),
            log_file=self.folder.logs.resolve() / f"{file_name(name)}.log",
            links=self.stage.dials_of(name),
            patience_s=PATIENCE_S if name in self.scenario.implementations() else 0.0,
            moves=name in plan.later,
        )
        return self.stage.spec(spec)

    def _brokers(self) -> dict[str, Address]:
        return self._at.of(self.scenario.topology().of(NodeKind.BROKER))

    def _give_topics(self) -> None:
        """Give brokers their topics. The prober creates the workload's topic at each master. Brokers that elect their
        master all begin with the topic."""
        own, topics = self.scenario.workload.topic, self.scenario.topics()
        others = {topic: queues for topic, queues in topics.items() if topic != own}
        groups = self.scenario.electing_names()
        for broker in self._there(self._brokers()):
            if others and broker not in groups:
                self._cluster.call(broker, "have_topics", others)
        for broker in self._there(node for nodes in groups.values() for node in nodes):
            self._cluster.call(broker, "have_topics", topics)

    def _await_routes(self, brokers: dict[str, Address]) -> None:
        # The first registrations may come later than a start by R + C, and look-ups may be refused for W.
        limit_s = ROUTABLE_LIMIT_S + (timers_of(self.scenario).W_ms or 0.0) / 1000
        late = f"not every NameServer routed the topic to every broker within {limit_s:g} s of RocketMQ time"
        with self._or_not_done(PROBER, "await_routes", late):
            servers = self._there(self.scenario.topology().of(NodeKind.NAME_SERVER))
            wanted = {self._at.advertised[at]: listing(self.scenario, at, brokers) for at in servers}
            self._cluster.call(PROBER, "await_routes", wanted, limit_s, timeout_s=limit_s + 30)

    def _warm_up(self) -> None:
        """Send each of Apache's brokers a first message, because a JVM's first answer takes up to a second. In scaled
        time a client would not wait for so long a warm-up."""
        brokers = {node: (broker_name(node), at) for node, at in self._at.of(self._there(cold(self.scenario))).items()}
        if not brokers:
            return
        with self._or_not_done(PROBER, "warm_up"):
            limit_s = ROUTABLE_LIMIT_S
            answered = self._cluster.call(PROBER, "warm_up", brokers, limit_s, timeout_s=limit_s + 30)
            for name, took_s in answered.items():
                self.record("first_answer", source=name, duration_ms=took_s * 1000)
            late = [name for name in brokers if name not in answered]
            self.say(f"brokers answered their first send after {max(answered.values(), default=0.0):.1f} s at most")
            if late:
                self.say(f"{', '.join(late)}: no answer to a first send within {limit_s:g} s")

    @contextmanager
    def _or_not_done(self, node: str, what: str, why: str = "") -> Iterator[None]:
        """Run the block. If a node fails, or does not answer in time, record this as not done and go on."""
        try:
            yield
        except (NodeFailed, RocketMQError, TimeoutError) as exc:
            said = why or str(exc) or f"{node} did not answer `{what}` in time"
            not_done(self.record, node, what, said)
            self.say(said)

    # -- the experiment

    def _begin(self) -> None:
        self.stage.sleep_until(self._starts.timeline_s)
        self._phase("steady")
        for name in self._there(self._producers):
            with self._or_not_done(name, "begin"):
                self._cluster.call(name, "begin")
        if self.scenario.workload.client_starts:
            self._probing = self._cluster.submit(PROBER, "probe", self.scenario.workload.client_starts)

    @property
    def addresses(self) -> Mapping[str, Address]:
        """Return the address at which clients reach each server. If the scenario has outside clients, this is the
        address of the server's proxy for outside clients."""
        return self._at.advertised

    def client_under_test(self, name: str, profile: str | None = None) -> ClientUnderTest:
        """Return the client under test, whose fronts (proxies) accept connections. A client whose name the scenario
        does not have is added to the run. Raises ScenarioError for an impossible name or profile."""
        if name not in self.scenario.cluster.clients:
            document = self.scenario.model_dump(mode="json")
            document["cluster"]["clients"] = {**self.scenario.cluster.clients, name: profile}
            self.scenario = self._actions.scenario = parse(document, file="client")
            links = [link for link in self.scenario.topology().links if link.node == name]
            self.stage.join(name, {link: self._at.listen[link.peer] for link in links})
            self._note_node(name)
        elif profile is not None and profile != (self.scenario.cluster.clients[name] or profile):
            allowed = f"{self.scenario.cluster.clients[name]}, as it was declared"
            raise ScenarioError("client", "profile", repr(profile), allowed)
        rules = profile_of(self.scenario.cluster.clients[name], self.scenario.profile)
        return self.stage.client_under_test(name, rules, self._at.advertised, self.record)

    @property
    def now_s(self) -> float:
        """Return the seconds of RocketMQ time since the experiment began."""
        return self.stage.clock.monotonic_s()

    def wait(self, seconds: float) -> None:
        self.stage.sleep_until(self.now_s + seconds)

    def act(self, action: ActionModel) -> tuple[str, ...]:
        """Execute one action of a timeline now, whatever its `at_s`. Returns the ids of the faults that the action
        began."""
        return self._actions.do(action)

    def end_link_fault(self, fault_id: str) -> None:
        if fault_id in self.links.active:
            self._phase("heal", f"heal {fault_id}")
            self.links.end(fault_id)

    @property
    def pids(self) -> dict[str, int]:
        nodes = self.scenario.topology().nodes
        return {name: pid for name in nodes if (pid := self._cluster.pid(name)) is not None}

    def has_done(self, timeline: Sequence[ActionModel]) -> None:
        """Replace the scenario's timeline by the steps that a test has executed so far. The final reads of the queues
        compute the current masters from this timeline."""
        self.scenario = self._actions.scenario = self.scenario.model_copy(update={"timeline": tuple(timeline)})

    def finish(self) -> None:
        """End faults, settle, and end the workload. If the workload has a prober, the prober reads every queue."""
        scenario, cluster = self.scenario, self._cluster
        self._actions.end_all()
        self._phase("settle", f"settling {scenario.settle_s:g} s")
        self.wait(scenario.settle_s)
        if self._probing is not None:
            with self._or_not_done(PROBER, "probe"):
                self._probing.result(timeout=60)
        self._actions.finish_acts_by_hand()
        for name in self._producers:  # each has ended its last send then
            with self._or_not_done(name, "finish"):
                cluster.call(name, "finish")
        if self.stage.stood_still(self.now_s - RECOVERY_S):
            self.say(f"a process of this run stood still just now: settling {RECOVERY_S:g} s more")
            self.wait(RECOVERY_S)
        if scenario.workload.prober:
            self._phase("final_reads", "final reads")
            with self._or_not_done(PROBER, "read_all"):
                masters = {name: self._at.advertised[now] for name, now in self._actions.switched_masters().items()}
                groups = [tuple(found)] if (found := scenario.electing_names()) else []
                cluster.call(PROBER, "read_all", {**self._brokers(), **masters}, *groups, timeout_s=120)
        self.end()

    def end(self) -> None:
        """End the experiment without ending faults, settling or reading queues. Rows recorded after `end` are not
        judged. Raises HarnessError if a Java process of Apache's had a connection that avoided the proxies, because the
        run cannot be judged."""
        self.stage.last_writes()
        refuse_bypass(self.folder.data)
        self._phase("end")
        self.record("run_end")

    @property
    def _producers(self) -> tuple[str, ...]:
        return self.scenario.topology().of(NodeKind.PRODUCER)

    def _phase(self, phase: str, text: str | None = None) -> None:
        self.record("phase", phase=phase)
        if phase == "steady":
            self._timeline_s = self.now_s  # what people read counts from here, as the timeline's `at_s` do
        self.say(f"{self.now_s - self._timeline_s:6.1f} s  {text or phase}")


class FaultNews:
    """Tells the fronts (proxies before Apache's programs) which servers each program cannot reach now.

    A row `fault` of the harness ─► what each of these nodes now meets at every server ─► its method `faulted`

    `submit` calls a node's method without waiting. A paused or ended node gets this information only when its own fault
    ends.
    """

    def __init__(self, nodes: Iterable[str], submit: Callable[[str, str, Mapping[str, str]], object]) -> None:
        self._of = {node: Unreachable(node) for node in nodes}
        self._submit = submit

    def heard(self, event: str, fields: Mapping[str, Any]) -> None:
        if event != "fault":
            return
        ended = str(fields.get("source")) if fields.get("phase") == "end" and fields.get("target") is None else ""
        for node, unreachable in self._of.items():
            if unreachable.faulted(fields) or node == ended:
                with contextlib.suppress(ClusterError):
                    self._submit(node, "faulted", dict(unreachable.meets))


class Heard:
    """A recorder of history rows that also passes each row to a listener."""

    def __init__(self, record: ClosableRecorder, heard: Callable[[str, Mapping[str, object]], None]) -> None:
        self._record, self._heard = record, heard
        self.close = record.close

    def __call__(self, event: str, /, **fields: object) -> None:
        self._record(event, **fields)
        self._heard(event, fields)


class Whereabouts:
    """The addresses at which each server listens, and the address that each server advertises, also after a move.
    `advertised` changes when a server moves. `listen` has the addresses of all processes of each server."""

    def __init__(self, scenario: Scenario, stage: Stage) -> None:
        topology = scenario.topology()
        self._turns = scenario.addresses()
        self._later = {node: [*dict.fromkeys(at)][1:] for node, at in self._turns.items()}
        self.listen = stage.addresses([*topology.servers, *chain.from_iterable(self._later.values())])
        self.advertised: dict[str, Address] = {}
        self._told: Mapping[str, Address] = {}
        self._servers, self._links = topology.servers, topology.links

    def upstreams(self) -> dict[Link, Address]:
        """Return each link with its peer's address; a later address of a peer has a link of its own
        (`later_address`)."""
        found = {link: self.listen[link.peer] for link in self._links}
        return found | {
            Link(link.node, at): self.listen[at] for link in self._links for at in self._later.get(link.peer, ())
        }

    def told(self, advertised: Mapping[str, Address]) -> None:
        """Use, from now on, these advertised addresses: one for each address at which a server listens."""
        self._told = advertised
        self.advertised = {name: advertised[name] for name in self._servers}

    def of_processes(self) -> dict[str, list[tuple[Address, Address]]]:
        """Return the listening and the advertised address of each process of a server that moves, in order."""
        return {node: [(self.listen[at], self._told[at]) for at in turns] for node, turns in self._turns.items()}

    def move(self, node: str) -> None:
        self.advertised[node] = self._told[self._later[node].pop(0)]

    def row(self, scenario: Scenario, name: str, host: str | None) -> dict[str, object]:
        """Return the node's `node` row of the history, with its current address."""
        address, clients = self.advertised.get(name), scenario.cluster.clients
        if name in clients:
            value = about_client(name, profile_of(clients[name], scenario.profile), NodeKind.EXTERNAL)
        else:
            value = about_node(scenario, name, scenario.topology().kinds[name])
        if host is not None:
            value["host"] = host
        return {"source": name, "address": address and str(address), "value": value}

    def of(self, names: Iterable[str]) -> dict[str, Address]:
        return {name: self.advertised[name] for name in names}
