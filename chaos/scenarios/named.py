"""The nodes, links, checks and clients that a scenario names are there, and its faults can be of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..checks import CHECKS
from ..errors import ScenarioError, nearest
from ..faults.link_faults import Cut, HalfOpen, SynDrop
from ..faults.process_faults import Remove, RestartStorm, RollingRestart
from ..oracle.client_profiles import PROFILES
from ..settings.values import Value
from ..topology import EXTERNAL, GROUPS, NodeKind, listed
from .action import ActionModel
from .timeline import is_chosen

if TYPE_CHECKING:
    from .model import Scenario

_RECORDS_TOO = ("harness", "toxiproxy")
"""Who has rows in a history besides the nodes."""


def _check_clients(scenario: Scenario, file: str) -> None:
    if not (clients := scenario.cluster.clients):
        return
    inside = replace(scenario.topology(), outside=())
    taken = {*GROUPS, *inside.kinds, *inside.processes, *_RECORDS_TOO, EXTERNAL}
    for name, profile in clients.items():
        if name in taken or any(name.startswith(f"{other}-") for other in clients if other != name):
            allowed = "a name that no node, no group and no other client of the run has, nor begins with"
            raise ScenarioError(file, f"cluster.clients.{name}", repr(name), allowed)
        if profile is not None and profile not in PROFILES:
            allowed = f"one of {', '.join(PROFILES)}{nearest(profile, PROFILES)}"
            raise ScenarioError(file, f"cluster.clients.{name}", repr(profile), allowed)
    if scenario.timers.time_scale != 1:
        allowed = "1 where there are clients under test, whose timers go as the machine's clock does"
        raise ScenarioError(file, "timers.time_scale", f"{scenario.timers.time_scale:g}", allowed)
    if scenario.clock == "virtual":
        raise ScenarioError(file, "clock", "virtual", "real where there are clients under test")


def check_names(scenario: Scenario, file: str) -> None:
    topology = scenario.topology()
    phased = topology.of(NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.SLAVE, NodeKind.PRODUCER, NodeKind.CONSUMER)
    for node in scenario.phases:
        if node not in phased:
            allowed = f"one of {listed(phased)}{nearest(node, phased)}"
            raise ScenarioError(file, "phases", repr(node), allowed)
    _check_clients(scenario, file)
    for index, check in enumerate(scenario.checks):
        if check not in CHECKS:
            raise ScenarioError(
                file, f"checks.{index}", repr(check), f"one of {', '.join(CHECKS)}{nearest(check, CHECKS)}"
            )
    for index, action in enumerate(scenario.timeline):
        for expression in action.links:
            try:
                if not is_chosen(expression):
                    streams = topology.parse_streams(expression)
                    _refuse_stream(action, expression, streams.values())
                    if isinstance(action.what, HalfOpen | SynDrop) and any(link.node == EXTERNAL for link in streams):
                        raise ValueError(
                            "links of the experiment's own nodes: nobody can tell an outside dialler where else to dial"
                        )
                elif not topology.of(NodeKind.PRODUCER, NodeKind.CONSUMER):
                    raise ValueError("a link of nodes, for there are no clients that choose")
            except ValueError as exc:
                raise ScenarioError(file, f"timeline.{index}.links", repr(expression), str(exc)) from exc
        hit = (*phased, *topology.of(NodeKind.ADDRESS_SERVER))  # not the harness's own client
        may_be = topology.of(NodeKind.NAME_SERVER) if isinstance(action.what, Remove) else hit
        for node in action.nodes:
            groups = ("name_servers", "brokers", "masters", "slaves", "producers", "consumers")
            wide = isinstance(action.what, RollingRestart | RestartStorm)
            known = (*may_be, *(one for one in groups if topology.members(one))) if wide else may_be
            if node not in known or not topology.members(node):
                allowed = f"one of {listed(known)}{nearest(node, known)}"
                raise ScenarioError(file, f"timeline.{index}.nodes", repr(node), allowed)
        if index and action.at_s < scenario.timeline[index - 1].at_s:
            raise ScenarioError(file, f"timeline.{index}.at_s", str(action.at_s), "times in ascending order")


def _refuse_stream(action: ActionModel, expression: str, streams: Iterable[str]) -> None:
    """ValueError for a shape of one direction under a fault of none, or of one of its own."""
    whole = isinstance(action.what, Cut | HalfOpen | SynDrop)
    if whole and not isinstance(action.what, Cut) and getattr(action.what, "stream", "both") != "both":
        raise ValueError(f"no `stream` of {action.do}, which is of both directions")
    if any(stream != "both" for stream in streams):
        if whole:
            raise ValueError(f"black_hole in place of {action.do}, which is of both directions: {expression} is of one")
        if getattr(action.what, "stream", "both") != "both":
            raise ValueError(f"no `stream` beside it: {expression} says the direction itself")


def refuse_kept_channels(scenario: Scenario, settings: Mapping[str, Mapping[str, Value]], file: str) -> None:
    """ScenarioError for packet loss on clients whose channels outlast a time-out: when a kernel sends again after it
    nothing bounds, so no check could judge what follows."""
    kept = [
        node
        for node in scenario.topology().clients
        if settings.get(node, {}).get("clientCloseSocketIfTimeout") is False
    ]
    for index, action in enumerate(scenario.timeline):
        if kept and action.do == "packet_loss":
            allowed = (
                f"black_hole instead: {kept[0]} has clientCloseSocketIfTimeout=false, and no window is made for both"
            )
            raise ScenarioError(file, f"timeline.{index}.do", action.do, allowed)
