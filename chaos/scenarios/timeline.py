"""What a timeline does to processes one action after the other, so that what cannot be done is found in the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ..errors import ScenarioError
from ..faults.process_faults import PROCESS_FAULTS


class Step(Protocol):
    """An entry of the timeline."""

    @property
    def at_s(self) -> float: ...
    @property
    def do(self) -> str: ...
    @property
    def nodes(self) -> tuple[str, ...]: ...


def refuse_impossible(timeline: Iterable[Step], *, file: str) -> None:
    """ScenarioError for the first action on a node that is not in the state for it: a kill of a node that is down, a
    resume of one that is not paused."""
    under: dict[str, tuple[str, float]] = {}
    for index, step in enumerate(timeline):
        for node in dict.fromkeys(step.nodes):
            key = f"timeline.{index}.nodes"
            if step.do in PROCESS_FAULTS:
                if node in under:
                    did, at_s = under[node]
                    ended_by = PROCESS_FAULTS[did].ended_by
                    allowed = f"{ended_by} before it: {node} is under {did} since {at_s:g} s"
                    raise ScenarioError(file, key, f"{step.do} of {node} at {step.at_s:g} s", allowed)
                under[node] = step.do, step.at_s
            elif step.do == "resume" and under.get(node, ("", 0))[0] != "pause":
                raise ScenarioError(file, key, f"resume of {node} at {step.at_s:g} s", "a node that is paused then")
            elif step.do == "restart" and under.get(node, ("", 0))[0] == "pause":
                raise ScenarioError(file, key, f"restart of {node} at {step.at_s:g} s", "resume: it is paused then")
            elif step.do in ("resume", "restart"):
                under.pop(node, None)
