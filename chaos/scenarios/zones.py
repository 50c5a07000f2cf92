"""Which nodes are in which zone (`zones:`), by their own names or by groups, so that faults can name `zone:east`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ScenarioError, nearest
from ..topology import GROUPS, Topology, listed


def nodes_of_zones(zones: Mapping[str, Sequence[str]], topology: Topology) -> dict[str, tuple[str, ...]]:
    """Zone to the names of its nodes, each once, in the order said; what is neither node nor group is left out."""
    return {zone: tuple(dict.fromkeys(_all(members, topology))) for zone, members in zones.items()}


def _all(members: Sequence[str], topology: Topology) -> list[str]:
    return [node for member in members for node in topology.members(member)]


def check_zones(zones: Mapping[str, Sequence[str]], topology: Topology, *, file: str) -> None:
    """ScenarioError for a member that is nobody, and for a node that is in two zones."""
    zone_of: dict[str, str] = {}
    for zone, members in zones.items():
        for index, member in enumerate(members):
            place, names = f"zones.{zone}.{index}", (*topology.kinds, *GROUPS)
            found = topology.members(member)
            if not found:
                none = ", and this cluster has none" if member in GROUPS else nearest(member, names)
                raise ScenarioError(file, place, repr(member), f"a node or a group, one of {listed(names)}{none}")
            for node in found:
                if zone_of.setdefault(node, zone) != zone:
                    raise ScenarioError(file, place, node, f"each node in one zone: it is in {zone_of[node]}, too")
