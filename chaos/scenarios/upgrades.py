"""A restart with another implementation: Apache's servers from one version to the next, one by one under load.

{at_s: 20, do: rolling_restart, nodes: [name_servers], pause_s: 40, implementation: apache-5.3.3}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..apache.distribution import ALLOWED, OURS, distribution
from ..errors import ScenarioError
from ..faults.process_faults import Restart, RestartStorm, RollingRestart
from ..topology import Topology
from .implementations import SERVERS
from .series import planned

if TYPE_CHECKING:
    from .action import ActionModel

Members = Callable[[str], Sequence[str]]


class OfNode(Protocol):
    @property
    def joins_at_s(self) -> float | None: ...


class OfScenario(Protocol):
    @property
    def timeline(self) -> Sequence[ActionModel]: ...
    @property
    def nodes(self) -> Mapping[str, OfNode]: ...
    def topology(self) -> Topology: ...
    def implementations(self) -> dict[str, str]: ...


def upgrades_of(
    timeline: Sequence[ActionModel], members: Members, at_first: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Node to the implementation of its first process, its second, …; of those that are not the same all the time."""
    if not any(_asked(entry) for entry in timeline):
        return {}
    found = {node: [made_by] for node, made_by in at_first.items()}
    for one in planned(timeline, members, None).actions:
        if isinstance(one.action.what, Restart):
            for node in one.action.nodes:
                for each in members(node):
                    if each in found:
                        found[each].append(one.action.what.implementation or found[each][-1])
    return {node: tuple(made_by) for node, made_by in found.items() if len(set(made_by)) > 1}


def check_upgrades(scenario: OfScenario, *, file: str) -> None:
    """ScenarioError for the first restart with an implementation that cannot be."""
    found, topology = scenario.implementations(), scenario.topology()
    changed: dict[str, str] = {}
    for index, entry in enumerate(scenario.timeline):
        if (asked := _asked(entry)) is None:
            continue
        key = f"timeline.{index}.implementation"
        try:
            known = distribution(asked)
        except ValueError as exc:
            raise ScenarioError(file, key, repr(asked), ALLOWED) from exc
        for node in (each for name in entry.nodes for each in topology.members(name)):
            if known is None or topology.kinds[node] not in SERVERS or node not in found:
                allowed = (
                    f"another version of a server that is Apache's from the start: {node} is {found.get(node, OURS)}"
                )
                raise ScenarioError(file, key, repr(asked), allowed)
            if node in scenario.nodes and scenario.nodes[node].joins_at_s is not None:
                allowed = (
                    f"of a node that is there from the start: {node} joins at {scenario.nodes[node].joins_at_s:g} s"
                )
                raise ScenarioError(file, key, repr(asked), allowed)
            changed[node] = key
    for index, entry in enumerate(scenario.timeline):
        if isinstance(entry.what, RestartStorm):
            for node in (each for name in entry.nodes for each in topology.members(name)):
                if node in changed:
                    allowed = (
                        f"not of {node}, whose implementation changes: only the seed tells how often it was started"
                    )
                    raise ScenarioError(file, f"timeline.{index}.nodes", entry.do, allowed)


def _asked(entry: ActionModel) -> str | None:
    return entry.what.implementation if isinstance(entry.what, Restart | RollingRestart) else None
