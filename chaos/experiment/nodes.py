"""From a scenario to its nodes: which program each name is, with which settings. Everything here can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ...actors.broker.config import BrokerConfig
from ...actors.broker.server import Broker
from ...actors.namesrv.config import NamesrvConfig
from ...actors.namesrv.server import NameServer
from ...clients.config import ClientConfig, ProducerConfig
from ...clients.consumer.config import ConsumeFromWhere, ConsumerConfig, MessageModel
from ...remoting.node.network import Address
from ...remoting.node.node import Node, NodeContext
from ...remoting.node.profile import Profile
from ..defects import Defect
from ..oracle.windows import Timers
from ..scenarios.model import Scenario
from ..topology import NodeKind
from ..workloads.consumer import ConsumerNode
from ..workloads.prober import ProberNode, ProberWorkload
from ..workloads.producer import ProducerNode, ProducerWorkload

Factory = Callable[[NodeContext], Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """What all factories are made from. `listen`: where each server binds; `advertised`: what its peers dial."""

    scenario: Scenario
    listen: Mapping[str, Address]
    advertised: Mapping[str, Address]
    defect: Defect | None = None

    def factory(self, name: str, kind: NodeKind) -> Factory:
        """The program of the node, with the planted defect in it where one is meant for it."""
        made = _MAKERS[kind](self, name)
        if self.defect is not None and self.defect.is_for(name, kind):
            return partial(_planted, made, self.defect.name)
        return made

    @property
    def profile(self) -> Profile:
        return Profile(self.scenario.cluster.profile)

    @property
    def name_servers(self) -> tuple[Address, ...]:
        """The list that every broker and client is configured with."""
        return tuple(address for name, address in self.advertised.items() if name.startswith("ns-"))

    def _client_settings(self) -> dict[str, object]:
        settings: dict[str, object] = {"namesrv_addr": self.name_servers, "profile": self.profile}
        poll_s = self.scenario.timers.poll_name_server_interval_s
        if poll_s is not None:
            settings["poll_name_server_interval_ms"] = round(poll_s * 1000)
        return settings

    def _name_server(self, name: str) -> Factory:
        return partial(_make_name_server, NamesrvConfig(profile=self.profile), self.listen[name])

    def _broker(self, name: str) -> Factory:
        settings: dict[str, object] = {}
        period_s = self.scenario.timers.register_name_server_period_s
        if period_s is not None:
            settings["register_name_server_period"] = round(period_s * 1000)
        config = BrokerConfig(
            broker_name=name,
            namesrv_addr=self.name_servers,
            profile=self.profile,
            **settings,  # type: ignore[arg-type]
        )
        return partial(_make_broker, config, self.listen[name], self.advertised[name])

    def _producer(self, _name: str) -> Factory:
        workload = self.scenario.workload
        config = ProducerConfig(
            producer_group="nemesrv-producers",
            send_latency_fault_enable=workload.latency_fault,
            **self._client_settings(),  # type: ignore[arg-type]
        )
        return partial(
            ProducerNode,
            workload=ProducerWorkload(
                topic=workload.topic,
                sends_per_s=workload.sends_per_s,
                body_bytes=workload.body_bytes,
                config=config,
                ordered_keys=workload.ordered_keys if workload.ordered else 0,
            ),
        )

    def _consumer(self, _name: str) -> Factory:
        workload = self.scenario.workload
        settings = self._client_settings()
        if workload.ordered:
            settings["consume_thread_max"] = 1
        config = ConsumerConfig(
            consumer_group="nemesrv-consumers",
            subscriptions=((workload.topic, "*"),),
            message_model=MessageModel.BROADCASTING if workload.broadcasting else MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
            **settings,  # type: ignore[arg-type]
        )
        return partial(ConsumerNode, config=config)

    def _prober(self, _name: str) -> Factory:
        workload = self.scenario.workload
        config = ClientConfig(**self._client_settings())  # type: ignore[arg-type]
        return partial(ProberNode, workload=ProberWorkload(topic=workload.topic, queues=workload.queues, config=config))


_MAKERS: Mapping[NodeKind, Callable[[NodePlan, str], Factory]] = {
    NodeKind.NAME_SERVER: NodePlan._name_server,
    NodeKind.BROKER: NodePlan._broker,
    NodeKind.PRODUCER: NodePlan._producer,
    NodeKind.CONSUMER: NodePlan._consumer,
    NodeKind.PROBER: NodePlan._prober,
}


def _make_name_server(config: NamesrvConfig, listen: Address, context: NodeContext) -> Node:
    return NameServer(context, config, listen=listen)


def _make_broker(config: BrokerConfig, listen: Address, advertised: Address, context: NodeContext) -> Node:
    return Broker(context, config, listen=listen, advertised=advertised)


def _planted(factory: Factory, defect: str, context: NodeContext) -> Node:
    from ..defects import DEFECTS

    node = factory(context)
    DEFECTS[defect].plant(node)
    return node


def timers_of(scenario: Scenario) -> Timers:
    """The timers that the run's nodes will obey, from which the checkers compute the windows."""
    timers = scenario.timers
    register_s, poll_s = timers.register_name_server_period_s, timers.poll_name_server_interval_s
    return Timers.for_profile(
        scenario.cluster.profile,
        R_ms=None if register_s is None else register_s * 1000,
        P_ms=None if poll_s is None else poll_s * 1000,
        time_scale=timers.time_scale,
    )
