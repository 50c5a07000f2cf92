"""What a timeline asks by hand, held against who there is: whom each request can be asked of, and what it names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from ...remoting.node.network import Address
from ...remoting.node.profile import Profile
from ..errors import ScenarioError, nearest
from ..faults.by_hand import (
    AddWritePerm,
    ByHand,
    DeleteTopic,
    Register,
    Switch,
    Unregister,
    UpdateConfig,
    WipeWritePerm,
)
from ..faults.fault import Action
from ..settings.catalogue import settings_for
from ..settings.resolve import SettingError, settings_of
from ..topology import GROUPS, NodeKind, Topology, broker_name

AT_ITS_START = frozenset({"forceRegister", "needWaitForService", "waitSecondsForService"})
"""The settings of which windows are made beside those with a symbol: a node has them from its start on."""


class OfTimeline(Protocol):
    @property
    def at_s(self) -> float: ...
    @property
    def nodes(self) -> tuple[str, ...]: ...
    @property
    def what(self) -> Action: ...
    @property
    def do(self) -> str: ...


class OfWorkload(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def queues(self) -> int: ...


class OfScenario(Protocol):
    """What is looked at of a scenario."""

    @property
    def timeline(self) -> Sequence[OfTimeline]: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def workload(self) -> OfWorkload: ...
    def topology(self) -> Topology: ...


def check_by_hand(scenario: OfScenario, *, file: str) -> None:
    """ScenarioError for the first request of whom does not understand it, or with a broker, address or setting that
    there is none of."""
    topology = scenario.topology()
    brokers = topology.of(NodeKind.BROKER)
    by_hand: set[str] = set()
    for index, step in enumerate(scenario.timeline):
        what = step.what
        if not isinstance(what, ByHand):
            continue
        place = f"timeline.{index}"
        for node in step.nodes:
            kind = topology.kinds.get(node)
            if kind is not None and str(kind) not in what.asks:
                able = topology.of(*map(NodeKind, what.asks))
                allowed = f"{what.codes} is asked of {', '.join(able)}"
                raise ScenarioError(file, f"{place}.nodes", f"{what.do} of {node}", allowed)
        if isinstance(what, Register):
            by_hand.add(what.broker)
            _check_address(what.address, topology.of(*GROUPS["brokers"]), f"{place}.address", file)
        elif isinstance(what, Unregister):
            if what.address is not None:
                _check_address(what.address, topology.of(*GROUPS["brokers"]), f"{place}.address", file)
            elif what.broker not in brokers:
                allowed = f"the address that it has: {what.broker} is no broker of the scenario"
                raise ScenarioError(file, f"{place}.address", "nothing", allowed)
        elif isinstance(what, WipeWritePerm | AddWritePerm):
            known = [*brokers, *sorted(by_hand)]
            if what.broker not in known:
                allowed = f"one of {', '.join(known)}{nearest(what.broker, known)}"
                raise ScenarioError(file, f"{place}.broker", repr(what.broker), allowed)
        elif isinstance(what, Switch):
            _check_switch(scenario.timeline, index, file)
        elif isinstance(what, UpdateConfig):
            _check_settings(what, step.nodes, scenario, place, file)
        elif isinstance(what, DeleteTopic) and what.cluster_name and set(step.nodes) & set(brokers):
            allowed = "said where all nodes of the entry are NameServers"
            raise ScenarioError(file, f"{place}.cluster_name", what.cluster_name, allowed)


def _check_switch(timeline: Sequence[OfTimeline], index: int, file: str) -> None:
    """ScenarioError for two masters of one name."""
    at, place = timeline[index], f"timeline.{index}.nodes"
    if len(at.nodes) != 1:
        raise ScenarioError(file, place, f"switch of {', '.join(at.nodes)}", "one slave")
    (slave,) = at.nodes
    master = broker_name(slave)
    down = [step.do for step in timeline[:index] if step.do in ("kill", "stop", "restart") and master in step.nodes]
    again = [step for step in timeline[index:] if step.do == "restart" and master in step.nodes]
    if not down or down[-1] == "restart" or again:
        allowed = f"a slave whose master {master} was killed or stopped before, and is not restarted after"
        raise ScenarioError(file, place, f"switch of {slave} at {at.at_s:g} s", allowed)
    others = [step for step in timeline[:index] if step.do == "switch" and broker_name(step.nodes[0]) == master]
    if others:
        raise ScenarioError(file, place, f"switch of {slave}", f"one switch under the name {master}")
    wide = [step for step in timeline[index:] if step.do in ("rolling_restart", "restart_storm")]
    if wide:
        allowed = f"no {wide[0].do} after it: the master before stays away"
        raise ScenarioError(file, place, f"switch of {slave}", allowed)


def replaced_by(timeline: Sequence[OfTimeline]) -> dict[str, str]:
    """Master to the slave that the timeline makes master in its place."""
    switched = [step.nodes[0] for step in timeline if isinstance(step.what, Switch)]
    return {broker_name(slave): slave for slave in switched}


def said_by_hand(what: ByHand, scenario: OfScenario) -> dict[str, Any]:
    """The entry's keys with what was left out filled in: the topics of a registration."""
    said = what.model_dump(mode="json")
    if isinstance(what, Register) and what.topics is None:
        said["topics"] = {scenario.workload.topic: scenario.workload.queues, what.broker: 1}
    return said


def _check_address(address: str, brokers: Collection[str], place: str, file: str) -> None:
    if address in brokers:
        return
    try:
        Address.parse(address)
    except ValueError as exc:
        allowed = f"one of {', '.join(brokers)}, or host:port{nearest(address, brokers)}"
        raise ScenarioError(file, place, repr(address), allowed) from exc


def _check_settings(what: UpdateConfig, nodes: Collection[str], scenario: OfScenario, place: str, file: str) -> None:
    kinds = scenario.topology().kinds
    for node in nodes:
        try:
            taken = settings_of({node: what.settings}, kinds, scenario.profile, before={})
        except SettingError as exc:
            key = exc.place.rpartition(f"config.{node}")[2]
            raise ScenarioError(file, f"{place}.settings{key}", exc.value, exc.allowed) from exc
        for name, value in taken[node].items():
            if name in AT_ITS_START or settings_for(kinds[node])[name].symbol is not None:
                allowed = f"said in `config:` only: windows are made of what {node} has from its start on"
                raise ScenarioError(file, f"{place}.settings.{name}", str(value), allowed)
