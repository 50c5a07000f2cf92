"""A scenario as data: its YAML with every default filled in, and what follows from the YAML, such as all node names.

Times are seconds of RocketMQ time; `timers.time_scale` is the rate of the run's clock. loading.py reads a scenario from
a file, rules.py refuses impossible scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, model_validator

from ...remoting.node.profile import Profile
from ..apache.distribution import OURS
from ..checks import CHECKS
from ..errors import NotAllowed
from ..faults.acts_by_hand import ByHand, Register
from ..faults.fault import Strict
from ..settings.resolve import settings_of
from ..settings.setting import ELECTS, Value
from ..topology import CONSUMER_GROUP, NodeKind, Topology, broker_name, is_slave
from .action import ActionModel, Name
from .host_actions import taken_apart
from .implementations import implementations_of, upgrades_of
from .incident import IncidentModel, PromisesModel
from .new_addresses import addresses_of
from .placement import Offer, PlacementModel, placed
from .series import PlannedTimeline, nodes_of, planned

CHECK_NAMES = tuple(CHECKS)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


ClientProfileName = Literal[
    "java-3.2",
    "java-4.3",
    "java-4.7",
    "java-4.9",
    "java-5.3",
    "go",
    "go-2.0",
    "cpp",
    "cpp-1",
    "cpp-2.1",
    "cpp-3",
    "node",
    "ons",
]


TOPICS_MAX = 20_000
_RANGE = re.compile(r"^(?P<before>.*)\{(?P<first>\d+)\.\.(?P<last>\d+)\}(?P<after>.*)$")
_TOPIC = re.compile(r"[A-Za-z0-9%|_-]{1,127}")


def _text_of_number(value: object) -> object:
    """Return the text of a number, because YAML reads 4.9 without quotes as a number."""
    return str(value) if isinstance(value, float) else value


class ClusterModel(Strict):
    name_servers: int = Field(3, ge=1, le=9)
    brokers: int = Field(3, ge=1, le=26)
    slaves: int = Field(0, ge=0, le=3)
    """Slaves of each broker: broker-a/1, broker-a/2, …; `nodes:` may name more."""
    profile: Annotated[Literal["4.9", "5.x"], BeforeValidator(_text_of_number)] = "4.9"
    """By default the implementation's."""
    implementation: str = OURS
    """Program of NameServers and brokers: ours, apache-VERSION, or apache:FOLDER."""
    name_server_list: tuple[str, ...] | None = Field(None, min_length=1, max_length=9)
    """First answer of an address server, which brokers and clients then ask for their lists by HTTP; None: everybody
    has a configured list."""
    warm_up: bool = True
    """Whether each of Apache's brokers gets a message before clients begin, so that no client meets a JVM that loads
    its classes."""
    external: bool = False
    """Whether clients outside the experiment may connect; every server then has a proxy for them, too."""
    operator: bool = False
    """Whether there is an operator node even without acts in the timeline, for a test that controls the experiment."""
    clients: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,39}$")], str | None] = Field({})
    """Clients under test by name, each with its profile (None: our own clients'): other people's programs with their
    own proxies and fronts (docs/clients-under-test.md)."""


class TimersModel(Strict):
    """The rate of the run's clock, and RocketMQ's timers that differ from their defaults."""

    time_scale: float = Field(10, gt=0, le=100)
    register_name_server_period_s: float | None = Field(None, ge=10, le=60)
    poll_name_server_interval_s: float | None = Field(None, ge=1, le=600)


class TopicModel(Strict):
    """A topic that every broker has from the start, besides the workload's topic."""

    queues: int = Field(4, ge=1, le=64)


class WorkloadModel(Strict):
    topic: Name = "orders"
    queues: int = Field(4, ge=1, le=64)
    topics: dict[str, TopicModel] = Field({})
    """Further topics by name, which every broker has from the start; `bulk-{1..2000}` is two thousand."""
    producers: int = Field(2, ge=0, le=32)
    consumers: int = Field(2, ge=0, le=32)
    sends_per_s: float = Field(4, gt=0, le=1000)
    body_bytes: int = Field(100, ge=0, le=4 * 1024 * 1024)
    latency_fault: bool = False
    broadcasting: bool = False
    ordered: bool = False
    """Messages with one sharding key go to one queue, and each consumer has one thread. order_kept then judges
    receipts, too."""
    ordered_keys: int = Field(24, ge=1, le=100_000)
    delayed_share: float = Field(0, ge=0, le=1)
    """Share of a producer's messages that are delayed, by level 1, 2 and 3 in turn (messageDelayLevel)."""
    failing_share: float = Field(0, ge=0, le=1)
    """Share of messages that the consumers' listeners fail at the first receipt, so that consumers send them back."""
    implementation: str = OURS
    """Program of producers and consumers: ours, apache-VERSION, or apache:FOLDER."""
    client_starts: int = Field(90, ge=0, le=100_000)
    client_profile: ClientProfileName | None = None
    """Profile by which `name_server_selection` judges clients; None: that of our own."""
    start_bias: float | None = Field(None, gt=0, le=1)
    """A bias of the first choice that the run must be able to find with power 0.99; None: none."""
    prober: bool = True
    """Whether a harness client creates the topic, waits for its routes, and reads every queue at the end."""

    @model_validator(mode="after")
    def _needs_its_prober(self) -> WorkloadModel:
        if self.delayed_share and (self.ordered or self.implementation != OURS):
            raise ValueError("`delayed_share` goes with our own producers, and not with `ordered`")
        if self.failing_share and (self.ordered or self.broadcasting or self.implementation != OURS):
            raise ValueError("`failing_share` goes with our own consumers, and not with `ordered` or `broadcasting`")
        if not self.prober and (self.producers or self.consumers or self.client_starts):
            raise ValueError("`prober: false` goes with producers: 0, consumers: 0 and client_starts: 0")
        return self

    def all_topics(self) -> dict[str, int]:
        """Return the number of queues of each topic, the workload's topic first. Raises NotAllowed for an invalid or
        duplicate name, or too many topics."""
        found = {self.topic: self.queues}
        for pattern, topic in self.topics.items():
            place = f"workload.topics.{pattern}"
            for name in _names_of_range(pattern, place):
                if not _TOPIC.fullmatch(name):
                    allowed = "letters, digits, %, |, _ and -, up to 127 of them, and {1..2000} for a range"
                    raise NotAllowed(place, repr(name), allowed)
                if name in found:
                    raise NotAllowed(place, name, "each topic once")
                if len(found) == TOPICS_MAX:
                    raise NotAllowed(place, f"more than {TOPICS_MAX} topics", f"up to {TOPICS_MAX} in all")
                found[name] = topic.queues
        return found


class NodeModel(Strict):
    """Settings of one node that differ from the settings of its kind."""

    joins_at_s: float | None = Field(None, gt=0, le=100_000)
    """When a NameServer, broker or client joins; None: it is there from the start."""
    name_servers: tuple[str, ...] | None = Field(None, min_length=1, max_length=9)
    """Its own list: NameServers by name in this order, or `host:port` where nobody listens; None: all."""
    in_order: bool = False
    """For our clients: use the list in this order, from its first entry; otherwise it is shuffled."""
    later_orders: tuple[tuple[str, ...], ...] = ()
    """With `in_order`: the list's order in each later process, the last for all further ones; empty: the same."""
    topic: Name | None = None
    """For a client: the topic that it sends to or reads; None: the workload's."""
    group: Name | None = None
    """For a consumer: its group; None: one for all readers of its topic."""
    client_profile: ClientProfileName | None = None
    """For a client: the profile by which it chooses NameServers and is judged; None: Java's, as the cluster's
    profile."""
    cluster_name: Name | None = None
    """For a broker: its cluster (brokerClusterName)."""
    implementation: str | None = None
    """Its program; None: the cluster's for servers, ours for clients."""


class Scenario(Strict):
    name: Name
    description: str = Field("", max_length=500)
    cluster: ClusterModel = ClusterModel()
    timers: TimersModel = TimersModel()
    config: dict[str, dict[str, Any]] = Field({})
    """Settings of groups and single nodes by RocketMQ's names (docs/settings.md)."""
    nodes: dict[str, NodeModel] = Field({})
    """Settings of single nodes."""
    zones: dict[Name, tuple[str, ...]] = Field({})
    """Zone to its nodes and groups; links of a fault may name `zone:NAME`."""
    placement: PlacementModel = PlacementModel()
    """The host of each node on a Ray cluster (--ray)."""
    workload: WorkloadModel = WorkloadModel()
    phases: dict[str, Annotated[float, Field(ge=0, le=100_000, strict=True)]] = Field({})
    """By node, on the virtual clock: how many seconds after the timeline's start its timer fires (a broker's
    registration, a client's poll, a NameServer's scan). By default drawn from the seed."""
    timeline: tuple[ActionModel, ...] = ()
    steady_s: float = Field(60, ge=0, le=100_000)
    settle_s: float = Field(70, ge=0, le=100_000)
    availability_floor: float | None = Field(None, ge=0, le=1)
    """Least share of operations that must succeed from the first fault to the end; None: no limit."""
    promises: PromisesModel = PromisesModel()
    incident: IncidentModel | None = None
    """The reported incident that this repeats."""
    checks: tuple[str, ...] = Field(min_length=1)
    seed: int | None = Field(None, ge=0, le=2**62)
    clock: Literal["real", "virtual"] | None = None
    """The clock of the run; None: as the command says."""
    defect: str | None = None
    """The planted defect of the self-test in the nodes; None: none."""
    versions: dict[str, str] = Field({})

    def topology(self) -> Topology:
        """Return all node names and the directed links between nodes."""
        everybody = Topology(
            name_servers=self.cluster.name_servers,
            brokers=self.cluster.brokers,
            slaves=_slaves_of(self.cluster.brokers, self.cluster.slaves, self.nodes),
            producers=self.workload.producers,
            consumers=self.workload.consumers,
            prober=self.workload.prober,
            admin=self.cluster.operator or any(isinstance(action.what, ByHand) for action in self.timeline),
            external=self.cluster.external,
            outside=tuple(self.cluster.clients),
            address_server=self.cluster.name_server_list is not None,
        )
        zones = {zone: tuple(nodes_of(members, everybody.members)) for zone, members in self.zones.items()}
        return replace(everybody, zones=zones) if zones else everybody

    def plan(self, seed: int | None) -> PlannedTimeline:
        """Return every single action of the timeline. Flapping, series and random restarts become single actions."""
        return planned(self.unfolded(), self.topology().members, seed)

    def hosts(self) -> dict[str, list[str]]:
        """Return each host's nodes, in order; an empty mapping if the scenario alone does not place the nodes."""
        if not self.placement.is_static:
            return {}
        found: dict[str, list[str]] = {host: [] for host in self.placement.hosts}
        offers = [Offer(host) for host in self.placement.hosts]
        for node, host in placed(self.topology(), self.placement, offers, file=self.name).items():
            found[host].append(node)
        return found

    def unfolded(self) -> tuple[ActionModel, ...]:
        """Return the timeline with ordinary actions in place of faults of hosts."""
        if not any(action.hosts for action in self.timeline):
            return self.timeline
        return tuple(action for _, action in taken_apart(self.timeline, self.topology(), self.hosts()))

    def joins_s(self) -> dict[str, float]:
        return {name: node.joins_at_s for name, node in self.nodes.items() if node.joins_at_s is not None}

    def ends_s(self) -> float:
        """Return when the run's settling phase begins: at the timeline's last entry or the last join; without entries,
        at `steady_s`."""
        return max(max((entry.at_s for entry in self.timeline), default=self.steady_s), *self.joins_s().values(), 0.0)

    def request_in_full(self, what: ByHand) -> dict[str, Any]:
        """Return the request's keys; for a registration without topics, the default topics are filled in."""
        said = what.model_dump(mode="json")
        if isinstance(what, Register) and what.topics is None:
            said["topics"] = {self.workload.topic: self.workload.queues, what.broker: 1}
        return said

    @property
    def promised(self) -> tuple[str, ...]:
        """Return the checks that judge the promises and the floor, whatever `checks` lists."""
        return (*self.promises.judged_by, *(() if self.availability_floor is None else ("availability",)))

    @property
    def profile(self) -> Profile:
        return Profile(self.cluster.profile)

    def settings(self) -> dict[str, dict[str, Value]]:
        """Return the settings that the scenario sets, by node and RocketMQ's name. Raises NotAllowed for an impossible
        setting."""
        return settings_of(self.config, self.topology().kinds, self.profile, before=self._older_keys())

    def _older_keys(self) -> dict[str, dict[str, Value]]:
        said: dict[str, dict[str, Value]] = {}
        if self.timers.register_name_server_period_s is not None:
            said["brokers"] = {"registerNameServerPeriod": round(self.timers.register_name_server_period_s * 1000)}
        if self.timers.poll_name_server_interval_s is not None:
            said["clients"] = {"pollNameServerInterval": round(self.timers.poll_name_server_interval_s * 1000)}
        if self.workload.latency_fault:
            said["producers"] = {"sendLatencyFaultEnable": True}
        if self.workload.ordered:
            said["consumers"] = {"consumeThreadMax": 1}
        return said

    def implementations(self) -> dict[str, str]:
        """Return the implementation of each node that does not run our own program."""
        own = {name: node.implementation for name, node in self.nodes.items() if node.implementation is not None}
        return implementations_of(self.cluster.implementation, self.workload.implementation, own, self.topology().kinds)

    def upgrades(self) -> dict[str, tuple[str, ...]]:
        """Return the implementation of each successive process, for nodes that change their implementation."""
        return upgrades_of(self.unfolded(), self.topology().members, self.implementations())

    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Return the address of each successive process, for nodes that change their address."""
        return addresses_of(self.unfolded(), self.topology().members)

    def implementation_of(self, node: str) -> str:
        """Return the node's implementation: nemesrv's own, apache-VERSION or apache:FOLDER."""
        return self.implementations().get(node, OURS)

    def electing_names(self) -> dict[str, list[str]]:
        """Return, for each broker name whose brokers elect their master, these brokers."""
        settings = self.settings()
        found: dict[str, list[str]] = {}
        for node in self.topology().of(NodeKind.BROKER, NodeKind.SLAVE):
            found.setdefault(broker_name(node), []).append(node)
        elect = {node for node, values in settings.items() if any(values.get(key) for key in ELECTS)}
        return {name: nodes for name, nodes in found.items() if elect & set(nodes)}

    def topics(self) -> dict[str, int]:
        """Return each topic's number of queues at a broker, the workload's topic included."""
        return self.workload.all_topics()

    def topic_of(self, client: str) -> str:
        own = self.nodes[client].topic if client in self.nodes else None
        return self.workload.topic if own is None else own

    def group_of(self, consumer: str) -> str:
        """Return the consumer's group: the group set for this node, else the group of its topic."""
        own = self.nodes[consumer].group if consumer in self.nodes else None
        if own is not None:
            return own
        topic = self.topic_of(consumer)
        return CONSUMER_GROUP if topic == self.workload.topic else f"{CONSUMER_GROUP}-{topic}"

    def to_yaml(self) -> str:
        """Return the scenario with every default filled in; loading it gives an equal scenario."""
        document = self.model_dump(mode="json")
        if self.checks == CHECK_NAMES:
            document["checks"] = "all"
        return str(yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))


def _names_of_range(pattern: str, place: str) -> Iterator[str]:
    """Return `bulk-{1..3}` as bulk-1, bulk-2 and bulk-3; other text unchanged."""
    match = _RANGE.match(pattern)
    if match is None:
        yield pattern
        return
    first, last = int(match["first"]), int(match["last"])
    if first > last:
        raise NotAllowed(place, f"{first}..{last}", "a range that ascends, such as {1..2000}")
    for number in range(first, last + 1):
        yield f"{match['before']}{number}{match['after']}"


def _slaves_of(brokers: int, of_each: int, named: Iterable[str]) -> tuple[str, ...]:
    masters = [f"broker-{chr(ord('a') + index)}" for index in range(brokers)]
    found = {f"{master}/{id_}" for master in masters for id_ in range(1, of_each + 1)}
    return tuple(sorted(found | {name for name in named if is_slave(name) and broker_name(name) in masters}))
