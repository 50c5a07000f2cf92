"""Lists of NameServers by HTTP (`cluster.name_server_list`, `do: name_server_list`), held against who there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..errors import ScenarioError
from ..faults.fault import Action
from ..faults.kinds import NameServerList
from ..topology import Topology
from .nodes import check_list


class Entry(Protocol):
    """An entry of the timeline."""

    @property
    def what(self) -> Action: ...


def check_lists(first: Sequence[str] | None, timeline: Sequence[Entry], topology: Topology, *, file: str) -> None:
    """ScenarioError for a list that names nobody, and for one that is changed where nobody asks for it."""
    check_list(first or (), topology, "cluster.name_server_list", file)
    for index, entry in enumerate(timeline):
        if not isinstance(entry.what, NameServerList):
            continue
        if first is None:
            allowed = "an action where `cluster.name_server_list` says what the address server answers with at first"
            raise ScenarioError(file, f"timeline.{index}.do", entry.what.do, allowed)
        check_list(entry.what.name_servers, topology, f"timeline.{index}.name_servers", file)
