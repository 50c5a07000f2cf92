"""Makes a scenario's nodes: the program and settings of each node.

The function that makes a node (its factory) is pickled here and loaded in the node's own process. A factory uses only
modules that are quick to import: programs.py, experiment/workloads/ and settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...actors.broker.config import BrokerConfig
from ...actors.broker.processors.send_processor import DLQ_QUEUE_NUMS
from ...actors.namesrv.config import NamesrvConfig
from ...clients.config import ClientConfig, ProducerConfig
from ...clients.consumer.config import ConsumerConfig, MessageModel, dead_letter_topic
from ...clients.name_servers import AS_LISTED
from ...remoting.codes import MASTER_ID
from ...remoting.node.network import Address
from ...remoting.node.profile import Profile
from ...remoting.topics import DEFAULT_CLUSTER
from ..apache.client import JavaClientConfig
from ..apache.distribution import Distribution, distribution
from ..apache.server import ServerPlan
from ..oracle.client_profiles import OF_CLUSTER, PROFILES, profile_of
from ..oracle.timers import Timers, timers_of_nodes
from ..scenarios.defect import Defect
from ..scenarios.implementations import SERVERS
from ..scenarios.model import Scenario
from ..settings.resolve import Settings, config_fields
from ..topology import ADDRESS_SERVER, PRODUCER_GROUP, NodeKind, broker_id, broker_name
from . import programs
from .outside_clients import rules_of
from .programs import Factory
from .workloads.address_server import AddressServerNode
from .workloads.admin import AdminNode
from .workloads.consumer import ConsumerNode
from .workloads.prober import ProberNode, ProberWorkload
from .workloads.producer import ProducerNode, ProducerWorkload

_CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """The data from which the factories of all nodes are made. `listen`: each server's own address; `advertised`: the
    server's address that peers get."""

    scenario: Scenario
    listen: Mapping[str, Address]
    advertised: Mapping[str, Address]
    later: Mapping[str, Sequence[tuple[Address, Address]]] = field(default_factory=dict)
    """Both addresses of each process of a moving server, in order."""
    defect: Defect | None = None
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.scenario.settings())

    def factory(self, name: str, kind: NodeKind) -> Factory:
        """Return the factory of the node's program. The program has the planted defect if the defect is for this node
        and for this program: nemesrv's own, or an Apache server (`of_apache`)."""
        if (by_turns := self.scenario.upgrades().get(name)) is not None:
            plans = (self._apache_server(name, kind, made_by) for made_by in by_turns)
            return partial(programs.in_turn, tuple(partial(programs.apache_server, plan) for plan in plans))
        if (made_by := self.scenario.implementations().get(name)) is not None and kind in SERVERS:
            server = partial(programs.apache_server, self._apache_server(name, kind, made_by))
            if self.defect is not None and self.defect.of_apache and self.defect.is_for(name, kind):
                return partial(programs.planted, server, self.defect.name)
            return server
        if (version := distribution(self.scenario.implementation_of(name))) is not None and kind in _CLIENTS:
            return self._apache_client(name, kind, version)
        made = self._in_turn(name, kind)
        if self.defect is not None and self.defect.is_for(name, kind):
            return partial(programs.planted, made, self.defect.plant if self.defect.source else self.defect.name)
        return made

    def _in_turn(self, name: str, kind: NodeKind) -> Factory:
        """Return the programs of the node's processes; a single one if their address and the order of their list never
        change."""
        said = self.scenario.nodes.get(name)
        if name in self.later:
            each = (
                replace(self, listen={**self.listen, name: listen}, advertised={**self.advertised, name: advertised})
                for listen, advertised in self.later[name]
            )
            return partial(programs.in_turn, tuple(_MAKERS[kind](plan, name) for plan in each))
        made = _MAKERS[kind](self, name)
        if said is None or not said.later_orders:
            return made
        later = []
        for order in said.later_orders:
            nodes = {**self.scenario.nodes, name: said.model_copy(update={"name_servers": order})}
            then = replace(self, scenario=self.scenario.model_copy(update={"nodes": nodes}))
            later.append(_MAKERS[kind](then, name))
        return partial(programs.in_turn, (made, *later))

    @property
    def profile(self) -> Profile:
        return self.scenario.profile

    def name_servers(self, node: str) -> tuple[Address, ...]:
        """Return the NameServers with which a broker or client is configured: the NameServers of its own list, or all
        NameServers. If an address server gives the list, return none; but for the prober, return the address server's
        first list."""
        own = self.scenario.nodes.get(node)
        if own is not None and own.name_servers is not None:
            return self.addresses(own.name_servers)
        if (first := self.scenario.cluster.name_server_list) is not None:
            return self.addresses(first) if self.scenario.topology().kinds[node] is NodeKind.PROBER else ()
        return tuple(address for name, address in self.advertised.items() if name.startswith("ns-"))

    def _listed(self, node: str) -> dict[str, Address]:
        names = {address: server for server, address in self.advertised.items()}
        return {names.get(at, str(at)): at for at in self.name_servers(node)}

    def addresses(self, entries: Iterable[str]) -> tuple[Address, ...]:
        """Return the addresses of these NameServers, given by name or as host:port."""
        return tuple(self.advertised.get(entry) or Address.parse(entry) for entry in entries)

    def _settings(self, name: str, kind: NodeKind, **own: object) -> dict[str, Any]:
        return {**own, **config_fields(self.settings.get(name, {}), kind, self.profile), "profile": self.profile}

    def _client_settings(self, name: str, kind: NodeKind, **own: object) -> dict[str, Any]:
        lists = {"namesrv_addr": self.name_servers(name), "address_server": self.advertised.get(ADDRESS_SERVER)}
        said = self.scenario.nodes.get(name)
        if said is not None and said.client_profile is not None:
            own["selection"] = PROFILES[said.client_profile].selection()
        elif said is not None and said.in_order:
            own["selection"] = AS_LISTED
        return self._settings(name, kind, **lists, **own)

    def _name_server(self, name: str) -> Factory:
        config = NamesrvConfig(**self._settings(name, NodeKind.NAME_SERVER))
        return partial(programs.name_server, config, self.listen[name])

    def _broker(self, name: str) -> Factory:
        own = self.scenario.nodes.get(broker_name(name))
        named: dict[str, object] = {"broker_name": broker_name(name)}
        if own is not None and own.cluster_name:
            named["cluster_name"] = own.cluster_name
        kind = self.scenario.topology().kinds[name]
        if kind is NodeKind.SLAVE:
            named |= {"broker_id": broker_id(name), "broker_role": "SLAVE"}
        config = BrokerConfig(**self._client_settings(name, kind, **named))
        return partial(programs.broker, config, self.listen[name], self.advertised[name])

    def _apache_server(self, name: str, kind: NodeKind, made_by: str) -> ServerPlan:
        own = self.scenario.nodes.get(broker_name(name))
        is_broker = kind is not NodeKind.NAME_SERVER
        return ServerPlan(
            implementation=str(distribution(made_by)),
            kind=kind,
            listen=self.listen[name],
            advertised=self.advertised[name],
            settings=dict(self.settings.get(name, {})),
            name_servers=self._listed(name) if is_broker else {},
            broker_name=broker_name(name) if is_broker else "",
            broker_id=broker_id(name) if is_broker else 0,
            members=self._members(name) if is_broker else {},
            controllers=self._controllers(name) if is_broker else {},
            cluster_name=(own.cluster_name if own is not None else None) or DEFAULT_CLUSTER,
        )

    def _controllers(self, name: str) -> dict[str, Address]:
        if self.settings.get(name, {}).get("enableControllerMode") is not True:
            return {}
        servers = self.scenario.topology().of(NodeKind.NAME_SERVER)
        told = (one for one in servers if self.settings.get(one, {}).get("enableControllerInNamesrv") is True)
        return {one: self.advertised[one] for one in told}

    def _members(self, name: str) -> dict[str, Address]:
        brokers = self.scenario.topology().of(NodeKind.BROKER, NodeKind.SLAVE)
        own = [one for one in brokers if broker_name(one) == broker_name(name) and one != name]
        return {one: self.advertised[one] for one in own}

    def _producer(self, name: str) -> Factory:
        workload = self.scenario.workload
        sends = ProducerWorkload(
            topic=self.scenario.topic_of(name),
            sends_per_s=workload.sends_per_s,
            body_bytes=workload.body_bytes,
            config=ProducerConfig(**self._client_settings(name, NodeKind.PRODUCER, producer_group=PRODUCER_GROUP)),
            ordered_keys=workload.ordered_keys if workload.ordered else 0,
            delayed_share=workload.delayed_share,
        )
        return partial(ProducerNode, workload=sends)

    def _consumer(self, name: str) -> Factory:
        workload = self.scenario.workload
        settings = self._client_settings(
            name,
            NodeKind.CONSUMER,
            consumer_group=self.scenario.group_of(name),
            subscriptions=((self.scenario.topic_of(name), "*"),),
            message_model=MessageModel.BROADCASTING if workload.broadcasting else MessageModel.CLUSTERING,
        )
        return partial(ConsumerNode, config=ConsumerConfig(**settings), failing_share=workload.failing_share)

    def _apache_client(self, name: str, kind: NodeKind, made_by: Distribution) -> Factory:
        workload, produces = self.scenario.workload, kind is NodeKind.PRODUCER
        brokers = self.scenario.topology().of(NodeKind.BROKER, NodeKind.SLAVE)
        listed = self._listed(name)
        config = JavaClientConfig(
            implementation=str(made_by),
            role=str(kind),
            topic=self.scenario.topic_of(name),
            group=PRODUCER_GROUP if produces else self.scenario.group_of(name),
            name_servers=listed,
            brokers={one: self.advertised[one] for one in brokers},
            rules=rules_of(profile_of(client_profile_of(self.scenario, name), self.profile), len(listed)),
            settings=self.settings.get(name, {}),
            sends_per_s=workload.sends_per_s,
            body_bytes=workload.body_bytes,
            ordered_keys=workload.ordered_keys if workload.ordered and produces else 0,
            broadcasting=workload.broadcasting,
        )
        return partial(programs.apache_client, config)

    def _prober(self, name: str) -> Factory:
        workload = self.scenario.workload
        config = ClientConfig(**self._client_settings(name, NodeKind.PROBER))
        topics, producers = self.scenario.topics(), self.scenario.topology().of(NodeKind.PRODUCER)
        used = dict.fromkeys(map(self.scenario.topic_of, producers))
        others = tuple((topic, topics[topic]) for topic in used if topic != workload.topic)
        if workload.failing_share:
            groups = dict.fromkeys(map(self.scenario.group_of, self.scenario.topology().of(NodeKind.CONSUMER)))
            others += tuple((dead_letter_topic(group), DLQ_QUEUE_NUMS) for group in groups)
        probed = ProberWorkload(topic=workload.topic, queues=workload.queues, others=others, config=config)
        return partial(ProberNode, workload=probed)

    def _admin(self, _name: str) -> Factory:
        return partial(AdminNode, addresses=dict(self.advertised), profile=self.profile)

    def _address_server(self, name: str) -> Factory:
        first = self.scenario.cluster.name_server_list or ()
        return partial(AddressServerNode, listen=self.listen[name], name_servers=self.addresses(first))


_MAKERS: Mapping[NodeKind, Callable[[NodePlan, str], Factory]] = {
    NodeKind.NAME_SERVER: NodePlan._name_server,
    NodeKind.BROKER: NodePlan._broker,
    NodeKind.SLAVE: NodePlan._broker,
    NodeKind.PRODUCER: NodePlan._producer,
    NodeKind.CONSUMER: NodePlan._consumer,
    NodeKind.PROBER: NodePlan._prober,
    NodeKind.ADMIN: NodePlan._admin,
    NodeKind.ADDRESS_SERVER: NodePlan._address_server,
}


def client_profile_of(scenario: Scenario, name: str) -> str | None:
    """Return the profile that the client has in the scenario, or the profile of its version of Apache's client; None if
    the client has the run's profile."""
    said = scenario.nodes.get(name)
    if said is not None and said.client_profile is not None:
        return said.client_profile
    made_by = distribution(scenario.implementation_of(name))
    if made_by is None or scenario.topology().kinds[name] not in _CLIENTS:
        return None
    is_the_runs = scenario.workload.client_profile is None and made_by.profile is scenario.profile
    return None if is_the_runs else OF_CLUSTER[made_by.profile]


def about_node(scenario: Scenario, name: str, kind: NodeKind) -> dict[str, object]:
    """Return the value of a node's `node` row in the history. For a client under test, call `about_client` instead."""
    value: dict[str, object] = {"kind": str(kind)}
    if (profile := client_profile_of(scenario, name)) is not None:
        value["client_profile"] = profile
    if (made_by := scenario.implementations().get(name)) is not None:
        value["implementation"] = made_by
    return value


def listing(scenario: Scenario, name_server: str, brokers: Iterable[str]) -> tuple[str, ...]:
    """Return the brokers whose list of NameServers contains this NameServer."""
    common = scenario.cluster.name_server_list or (name_server,)
    own = {name: plan.name_servers for name, plan in scenario.nodes.items() if plan.name_servers}
    return tuple(broker for broker in brokers if name_server in own.get(broker, common))


def cold(scenario: Scenario) -> tuple[str, ...]:
    """Return the Apache brokers that get a message before clients begin: masters, and brokers that can become master.
    Return none if the scenario sets `warm_up: false`."""
    if not scenario.cluster.warm_up:
        return ()
    groups, brokers = scenario.electing_names(), scenario.topology().of(NodeKind.BROKER, NodeKind.SLAVE)
    serving = (name for name in brokers if broker_id(name) == MASTER_ID or broker_name(name) in groups)
    return tuple(name for name in serving if name in scenario.implementations())


def timers_of(scenario: Scenario) -> Timers:
    return timers_and_differing(scenario)[0]


def timers_and_differing(scenario: Scenario) -> tuple[Timers, dict[str, dict[str, float | bool]]]:
    kinds = scenario.topology().kinds
    return timers_of_nodes(scenario.profile, scenario.timers.time_scale, scenario.settings(), kinds)


def about(scenario: Scenario) -> dict[str, Any]:
    """Return the part of the scenario that checks need, for the row `run_begin`: profile, timers, workload,
    settings."""
    timers, differing = timers_and_differing(scenario)
    where_said = {
        "promises": scenario.promises.model_dump(exclude_defaults=True),
        "nodes": nodes_of(scenario),
        "name_server_list": list(scenario.cluster.name_server_list or ()),
        "zones": dict(scenario.topology().zones),
        "settings": scenario.settings() if scenario.config else {},
        "node_timers": differing,
    }
    return {
        "profile": scenario.cluster.profile,
        "time_scale": scenario.timers.time_scale,
        "timers": timers.to_json(),
        "workload": scenario.workload.model_dump(mode="json", exclude={"topics"}),
        "timeline": [action.do for action in scenario.timeline],
        "availability_floor": scenario.availability_floor,
        **_topics_of(scenario),
        **{key: value for key, value in where_said.items() if value},
    }


def nodes_of(scenario: Scenario) -> dict[str, dict[str, Any]]:
    found = {name: node.model_dump(mode="json", exclude_none=True) for name, node in scenario.nodes.items()}
    return {name: {key: value for key, value in said.items() if value is not False} for name, said in found.items()}


def _topics_of(scenario: Scenario) -> dict[str, Any]:
    """Return topics with queues, their users, and each consumer's group. Empty if all use the workload's topic."""
    own = any(node.topic or node.group for node in scenario.nodes.values())
    if not scenario.workload.topics and not own:
        return {}
    topology = scenario.topology()
    clients, consumers = topology.of(NodeKind.PRODUCER, NodeKind.CONSUMER), topology.of(NodeKind.CONSUMER)
    return {
        "topics": scenario.topics(),
        "topic_of": {client: scenario.topic_of(client) for client in clients},
        "group_of": {consumer: scenario.group_of(consumer) for consumer in consumers},
    }
