"""Whose programs a scenario's nodes are (`implementation`), and what those of Apache's cannot be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ...remoting.node.profile import Profile
from ..apache.distribution import ALLOWED, OURS, distribution
from ..apache.maven import JavaMissing
from ..errors import ScenarioError
from ..faults.by_hand import Switch
from ..faults.clocks import ClockAction
from ..settings.catalogue import settings_for
from ..settings.values import Value
from ..topology import NodeKind, Topology, broker_name
from .by_hand import OfTimeline

SERVERS = (NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.SLAVE)
CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER)
_NEVER_SENT = {"brokerNotActiveTimeoutMillis": "Java sends it with enableSlaveActingMaster only"}
_DIALS = {"notifyMinBrokerIdChanged": "it would dial brokers to tell them (905), where no link of a NameServer leads"}


TIME_SCALE = 3.0
"""Where nothing is said of it and a node is Apache's: a JVM takes as much of a core at ×10 as a whole run of ours."""


class OfNode(Protocol):
    @property
    def implementation(self) -> str | None: ...


class OfScenario(Protocol):
    @property
    def timeline(self) -> Sequence[OfTimeline]: ...
    @property
    def clock(self) -> str | None: ...
    @property
    def defect(self) -> str | None: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def nodes(self) -> Mapping[str, OfNode]: ...
    def topology(self) -> Topology: ...
    def implementations(self) -> dict[str, str]: ...
    def settings(self) -> dict[str, dict[str, Value]]: ...


def implementations_of(
    cluster: str, workload: str, nodes: Mapping[str, OfNode], kinds: Mapping[str, NodeKind]
) -> dict[str, str]:
    """Node to implementation, of all that are not ours: `cluster` says it of servers, `workload` of producers and
    consumers, `nodes` of single nodes."""
    found = {}
    for name, kind in kinds.items():
        own = nodes[name].implementation if name in nodes else None
        said = own if own is not None else cluster if kind in SERVERS else workload
        if said != OURS and kind in (*SERVERS, *CLIENTS):
            found[name] = said
    return found


def with_defaults(document: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The document in which, where it says nothing of them, the profile follows from the implementation of its servers,
    and the time scale from whether any node is Apache's."""
    found = dict(document)
    cluster = found.get("cluster")
    if isinstance(cluster, Mapping) and "profile" not in cluster and isinstance(cluster.get("implementation"), str):
        profile = profile_of(cluster["implementation"], "cluster.implementation", file)
        found["cluster"] = cluster if profile is None else {**cluster, "profile": str(profile)}
    timers = found.get("timers", {})
    if any(_said_of(found)) and isinstance(timers, Mapping) and "time_scale" not in timers:
        found["timers"] = {**timers, "time_scale": TIME_SCALE}
    return found


def _said_of(document: Mapping[str, Any]) -> Iterator[bool]:
    """Of each place that says an implementation, whether it says another than ours."""
    nodes = document.get("nodes")
    of_nodes = nodes.values() if isinstance(nodes, Mapping) else ()
    for place in (document.get("cluster"), document.get("workload"), *of_nodes):
        if isinstance(place, Mapping) and place.get("implementation") is not None:
            yield place["implementation"] != OURS


def said_by_command(cluster: Any, implementation: str) -> Any:
    """`cluster:` of a document with the implementation that the command says, and the profile that follows from it."""
    if cluster is not None and not isinstance(cluster, Mapping):
        return cluster  # no mapping: that is said where the file is checked
    rest = {key: value for key, value in (cluster or {}).items() if key != "profile" or implementation == OURS}
    profile = profile_of(implementation, "", "--implementation")
    return {**rest, "implementation": implementation, **({} if profile is None else {"profile": str(profile)})}


def profile_of(text: str, key: str, file: str) -> Profile | None:
    """Whose windows that implementation obeys; None for ours. ScenarioError for what is none."""
    try:
        found = distribution(text)
        return None if found is None else found.profile
    except (ValueError, JavaMissing) as exc:
        allowed = ALLOWED if isinstance(exc, ValueError) else f"a distribution of RocketMQ: {exc}"
        raise ScenarioError(file, key, repr(text), allowed) from exc


def check_implementations(scenario: OfScenario, *, file: str) -> None:
    """ScenarioError for the first that is none, or for what no program of Apache's can be asked."""
    found, kinds = scenario.implementations(), scenario.topology().kinds
    for node, said in found.items():
        try:
            distribution(said)
        except ValueError as exc:
            own = node in scenario.nodes and scenario.nodes[node].implementation is not None
            group = "cluster" if kinds[node] in SERVERS else "workload"
            key = f"nodes.{node}.implementation" if own else f"{group}.implementation"
            raise ScenarioError(file, key, repr(said), ALLOWED) from exc
    if not found:
        return
    if scenario.clock == "virtual":
        raise ScenarioError(file, "clock", "virtual", f"real where a node is {next(iter(found.values()))}")
    outside = str(scenario.defect).startswith("apache-")  # put into Apache's servers from outside
    if scenario.defect is not None and not outside and not set(kinds) - set(found):
        raise ScenarioError(file, "defect", scenario.defect, "nothing where no node is ours: a defect is planted there")
    for name in (name for name, kind in kinds.items() if kind is NodeKind.SLAVE):
        mine, masters = (scenario.implementations().get(one, OURS) for one in (name, broker_name(name)))
        if mine != masters and OURS in (mine, masters):
            allowed = f"{masters}, as its master: ours and Apache's copy the commit log each in a way of its own"
            raise ScenarioError(file, f"nodes.{name}.implementation", mine, allowed)
    if shared := [name for name in found if name in scenario.topology().process_of]:
        per_process = str(scenario.topology().clients_per_process)
        allowed = f"1 where a client is Apache's: {shared[0]} is {found[shared[0]]}, which has a process of its own"
        raise ScenarioError(file, "workload.clients_per_process", per_process, allowed)
    _check_settings(scenario, found, kinds, file)
    for index, step in enumerate(scenario.timeline):
        key = f"timeline.{index}.nodes"
        for node in step.nodes:
            if node in found and isinstance(step.what, ClockAction | Switch):
                allowed = f"a node of ours: {node} is {found[node]}, which has no such command"
                raise ScenarioError(file, key, f"{step.what.do} of {node}", allowed)
    if (hosts := _of(kinds, NodeKind.ADDRESS_SERVER)) and set(found) - set(_of(kinds, NodeKind.NAME_SERVER)):
        allowed = f"no list by HTTP ({hosts[0]}) where a broker or client is Apache's: say name_servers"
        raise ScenarioError(file, "cluster.name_server_list", "given", allowed)


def _of(kinds: Mapping[str, NodeKind], kind: NodeKind) -> list[str]:
    return [name for name, is_a in kinds.items() if is_a is kind]


def _check_settings(scenario: OfScenario, found: Mapping[str, str], kinds: Mapping[str, NodeKind], file: str) -> None:
    """ScenarioError for a setting that the node's own version has as a constant, or does not have."""
    for node, values in scenario.settings().items():
        if node not in found:
            continue
        made_by = distribution(found[node])
        try:
            profile = scenario.profile if made_by is None else made_by.profile
        except JavaMissing:  # a folder of another machine, on which the scenario was run
            profile = scenario.profile
        known = settings_for(kinds[node])
        for name, value in values.items():
            why = ""
            if profile in known[name].constant:
                why = "it is a constant there"
            elif profile not in known[name].profiles:
                why = "it has no such setting"
            elif name in _NEVER_SENT:
                why = _NEVER_SENT[name]
            elif value is True and name in _DIALS:
                why = _DIALS[name]
            if why:
                allowed = f"set of a node of ours: {node} is {found[node]}, and {why}"
                raise ScenarioError(file, f"config: {name} of {node}", str(value), allowed)
