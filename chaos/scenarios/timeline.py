"""What a timeline does one action after the other: the ids of its faults, and what of it cannot be done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..errors import ScenarioError, nearest
from ..faults.fault import Action
from ..faults.link_faults import Heal, LinkFault
from ..faults.process_faults import PROCESS_FAULTS
from ..topology import Link, Topology


class Step(Protocol):
    """An entry of the timeline."""

    @property
    def at_s(self) -> float: ...
    @property
    def do(self) -> str: ...
    @property
    def nodes(self) -> tuple[str, ...]: ...


class Entry(Step, Protocol):
    """The same, with what it does to links."""

    @property
    def what(self) -> Action: ...
    @property
    def links(self) -> tuple[str, ...]: ...
    @property
    def name(self) -> str | None: ...


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
                    under_it = f"{node} is under {did} since {at_s:g} s"
                    allowed = f"{ended_by} before it: {under_it}" if ended_by else f"a node that is there: {under_it}"
                    raise ScenarioError(file, key, f"{step.do} of {node} at {step.at_s:g} s", allowed)
                under[node] = step.do, step.at_s
            elif step.do == "resume" and under.get(node, ("", 0))[0] != "pause":
                raise ScenarioError(file, key, f"resume of {node} at {step.at_s:g} s", "a node that is paused then")
            elif step.do == "restart" and under.get(node, ("", 0))[0] == "remove":
                allowed = f"a node that is there: {node} was removed at {under[node][1]:g} s"
                raise ScenarioError(file, key, f"restart of {node} at {step.at_s:g} s", allowed)
            elif step.do == "restart" and under.get(node, ("", 0))[0] == "pause":
                raise ScenarioError(file, key, f"restart of {node} at {step.at_s:g} s", "resume: it is paused then")
            elif step.do in ("resume", "restart"):
                under.pop(node, None)


def is_chosen(expression: str) -> bool:
    """Whether the link expression means each client's link to the NameServer that it has chosen at that moment."""
    return expression.replace(" ", "") in ("clients<->chosen", "clients->chosen")


def fault_ids(timeline: Sequence[Entry]) -> list[str | None]:
    """By entry: its name, or its kind and its number among the faults of links; None for what is no such fault."""
    named = {entry.name for entry in timeline}
    found: list[str | None] = []
    begun = 0
    for entry in timeline:
        if not isinstance(entry.what, LinkFault):
            found.append(None)
            continue
        begun += 1
        number = begun
        while entry.name is None and f"{entry.do}-{number}" in named:
            number += 1
        found.append(entry.name or f"{entry.do}-{number}")
    return found


def refuse_idle_heals(timeline: Sequence[Entry], topology: Topology, *, file: str) -> None:
    """ScenarioError for a name that two faults have, and for a heal that would end nothing: a fault that is none, or is
    over by then; links that no fault is on."""
    on: dict[str, set[Link] | None] = {}
    """By fault that lasts: the links that it is on; None: only a run can tell."""
    over: dict[str, float] = {}
    for index, (entry, fault_id) in enumerate(zip(timeline, fault_ids(timeline), strict=True)):
        key = f"timeline.{index}"
        if fault_id is not None:
            if fault_id in on or fault_id in over:
                raise ScenarioError(file, f"{key}.name", fault_id, "a name of its own for each fault")
            known = not any(map(is_chosen, entry.links))
            on[fault_id] = set(topology.parse_links(*entry.links)) if known else None
        elif isinstance(entry.what, Heal):
            _refuse_heal(entry, entry.what, on, over, topology, file, key)
            for each in _ended(entry, entry.what, on, topology):
                del on[each]
                over[each] = entry.at_s


def _refuse_heal(
    entry: Entry,
    heal: Heal,
    on: dict[str, set[Link] | None],
    over: dict[str, float],
    topology: Topology,
    file: str,
    key: str,
) -> None:
    if heal.faults and entry.links:
        raise ScenarioError(file, key, "", "`do: heal` with links or with faults, not with both")
    for number, name in enumerate(heal.faults):
        if name not in on:
            ended = f"; {name} ended at {over[name]:g} s" if name in over else nearest(name, on)
            allowed = f"a fault of links that lasts then ({', '.join(on) or 'none does'}){ended}"
            raise ScenarioError(file, f"{key}.faults.{number}", name, allowed)
    for expression in entry.links:
        if is_chosen(expression):
            raise ScenarioError(
                file, f"{key}.links", expression, "the fault's name (faults: [NAME]): clients choose anew"
            )
        healed = topology.parse_links(expression)
        if not any(links is None or links & set(healed) for links in on.values()):
            raise ScenarioError(file, f"{key}.links", expression, "links that a fault is on at that time")


def _ended(entry: Entry, heal: Heal, on: dict[str, set[Link] | None], topology: Topology) -> list[str]:
    """The faults that this heal ends everywhere; what it ends in part has lost those links."""
    if heal.faults:
        return list(heal.faults)
    if not entry.links:
        return [*on]
    healed = set(topology.parse_links(*entry.links))
    for links in on.values():
        if links is not None:
            links -= healed
    return [name for name, links in on.items() if links is not None and not links]
