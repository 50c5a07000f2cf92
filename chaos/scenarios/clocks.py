"""What a timeline does to wall clocks, held against who has one that matters, and who runs then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..errors import ScenarioError, nearest
from ..faults.clocks import ClockAction, ClockSync
from ..faults.process_faults import PROCESS_FAULTS
from ..topology import NodeKind, Topology
from .by_hand import OfTimeline


class OfScenario(Protocol):
    @property
    def timeline(self) -> Sequence[OfTimeline]: ...
    def topology(self) -> Topology: ...


def check_clocks(scenario: OfScenario, *, file: str) -> None:
    """ScenarioError for the first change of a clock that no window is made for, of a node that does not run then, or
    that sets right what is right."""
    servers = scenario.topology().of(NodeKind.NAME_SERVER)
    down: dict[str, str] = {}
    wrong: set[str] = set()
    for index, step in enumerate(scenario.timeline):
        key, did = f"timeline.{index}.nodes", step.what.do
        for node in step.nodes:
            if did in PROCESS_FAULTS:
                down[node] = did
            elif did in ("resume", "restart"):
                down.pop(node, None)
            if not isinstance(step.what, ClockAction):
                continue
            said = f"{did} of {node} at {step.at_s:g} s"
            if node not in servers:
                allowed = f"one of {', '.join(servers)}, which alone go by a wall clock{nearest(node, servers)}"
                raise ScenarioError(file, key, said, allowed)
            if node in down:
                raise ScenarioError(file, key, said, f"a node that runs then: {node} is under {down[node]}")
            if isinstance(step.what, ClockSync) and node not in wrong:
                raise ScenarioError(file, key, said, "a node whose clock was changed before")
            wrong.add(node)
