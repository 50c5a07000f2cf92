"""Names whose brokers elect their master: which these are in a scenario, and what they need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..apache.roles import ELECTS
from ..errors import ScenarioError
from ..settings.catalogue import settings_for
from ..settings.values import Value
from ..topology import NodeKind, Topology, broker_name

FEWEST = 3
"""Of fewer than three the loss of one leaves no majority that could elect another."""


class OfScenario(Protocol):
    def topology(self) -> Topology: ...
    def implementations(self) -> dict[str, str]: ...
    def settings(self) -> dict[str, dict[str, Value]]: ...


def elected(scenario: OfScenario) -> Mapping[str, Sequence[str]]:
    """Broker name to its brokers, of the names of which any is told to elect."""
    settings, of = scenario.settings(), _by_name(scenario.topology())
    told = {node for node, values in settings.items() if any(values.get(key) for key in ELECTS)}
    return {name: nodes for name, nodes in of.items() if told & set(nodes)}


def check_elections(scenario: OfScenario, *, file: str) -> None:
    """ScenarioError for what nodes of ours are told that only Apache's have, and for a group that could not elect."""
    made_by, settings, kinds = scenario.implementations(), scenario.settings(), scenario.topology().kinds
    for node, values in settings.items():
        known = settings_for(kinds[node])
        for key, value in values.items():
            if known[key].of_apache and node not in made_by:
                allowed = f"set of a broker of Apache's: {node} is ours (say implementation: apache-4.9.7)"
                raise ScenarioError(file, f"config: {key} of {node}", str(value), allowed)
    controllers = [node for node, values in settings.items() if values.get("enableControllerInNamesrv")]
    under = [node for node, values in settings.items() if values.get("enableControllerMode")]
    if len(controllers) > 1:
        allowed = f"said of one NameServer: {' and '.join(controllers)} would have to dial each other"
        raise ScenarioError(file, f"config: enableControllerInNamesrv of {controllers[1]}", "True", allowed)
    if under and not controllers:
        allowed = "set where a NameServer is the controller (config: {ns-0: {enableControllerInNamesrv: true}})"
        raise ScenarioError(file, f"config: enableControllerMode of {under[0]}", "True", allowed)
    if both := [node for node in under if settings[node].get("enableDLegerCommitLog")]:
        allowed = f"one of enableControllerMode and enableDLegerCommitLog of {both[0]}"
        raise ScenarioError(file, f"config: enableControllerMode of {both[0]}", "True", allowed)
    for name, nodes in elected(scenario).items():
        for key in ELECTS:
            said = [node for node in nodes if settings.get(node, {}).get(key)]
            without = [node for node in nodes if node not in said]
            if said and without:
                allowed = f"said of all brokers of {name}: {without[0]} is not told of it"
                raise ScenarioError(file, f"config: {key} of {said[0]}", "True", allowed)
            if said and len(nodes) < FEWEST:
                allowed = f"said of a name of {FEWEST} brokers or more (slaves: {FEWEST - 1}); {name} has {len(nodes)}"
                raise ScenarioError(file, f"config: {key} of {said[0]}", "True", allowed)


def _by_name(topology: Topology) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for node in topology.of(NodeKind.BROKER, NodeKind.SLAVE):
        found[broker_name(node)].append(node)
    return found
