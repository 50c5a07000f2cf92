"""The implementation of each node, and the actions and settings that Apache's programs do not support."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...remoting.node.profile import Profile
from ..apache.distribution import ALLOWED, OURS, distribution
from ..apache.maven import JavaMissing
from ..errors import ScenarioError
from ..faults.process_faults import Restart, RollingRestart
from ..topology import NodeKind
from .action import ActionModel
from .series import Members, nodes_of, planned

SERVERS = (NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.SLAVE)
CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER)

TIME_SCALE = 3.0
"""Default time scale with a node of Apache's: at ×10 one JVM uses as much CPU as a whole run of ours."""


def implementations_of(
    cluster: str, workload: str, nodes: Mapping[str, str], kinds: Mapping[str, NodeKind]
) -> dict[str, str]:
    """Return the implementation of each node that does not run nemesrv's own program. `cluster` sets the implementation
    of servers, `workload` of producers and consumers, `nodes` of single nodes."""
    found = {}
    for name, kind in kinds.items():
        said = nodes.get(name, cluster if kind in SERVERS else workload)
        if said != OURS and kind in (*SERVERS, *CLIENTS):
            found[name] = said
    return found


def with_defaults(document: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return the document with two defaults: the profile that fits the servers' implementation, and a lower time scale
    if any node is Apache's."""
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
    nodes = document.get("nodes")
    of_nodes = nodes.values() if isinstance(nodes, Mapping) else ()
    for place in (document.get("cluster"), document.get("workload"), *of_nodes):
        if isinstance(place, Mapping) and place.get("implementation") is not None:
            yield place["implementation"] != OURS


def said_by_command(cluster: Any, implementation: str) -> Any:
    """Return the document's `cluster:` with the command line's implementation, and that implementation's profile."""
    if cluster is not None and not isinstance(cluster, Mapping):
        return cluster  # no mapping: that is said where the file is checked
    rest = {key: value for key, value in (cluster or {}).items() if key != "profile" or implementation == OURS}
    profile = profile_of(implementation, "", "--implementation")
    return {**rest, "implementation": implementation, **({} if profile is None else {"profile": str(profile)})}


def profile_of(text: str, key: str, file: str) -> Profile | None:
    """Return the profile of the implementation; None for our own implementation. ScenarioError for an unknown
    implementation."""
    try:
        found = distribution(text)
        return None if found is None else found.profile
    except (ValueError, JavaMissing) as exc:
        allowed = ALLOWED if isinstance(exc, ValueError) else f"a distribution of RocketMQ: {exc}"
        raise ScenarioError(file, key, repr(text), allowed) from exc


def upgrades_of(
    timeline: Sequence[ActionModel], members: Members, at_first: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the implementation of each successive process, for nodes that change their implementation."""
    if not any(new_version(entry) for entry in timeline):
        return {}
    found = {node: [made_by] for node, made_by in at_first.items()}
    for one in planned(timeline, members, None).actions:
        if isinstance(one.action.what, Restart):
            for node in nodes_of(one.action.nodes, members):
                if node in found:
                    found[node].append(one.action.what.implementation or found[node][-1])
    return {node: tuple(made_by) for node, made_by in found.items() if len(set(made_by)) > 1}


def new_version(entry: ActionModel) -> str | None:
    """Return the implementation that a restart gives its nodes; None if the nodes keep their implementation.

    {at_s: 20, do: rolling_restart, nodes: [name_servers], pause_s: 40, implementation: apache-5.3.3}
    """
    return entry.what.implementation if isinstance(entry.what, Restart | RollingRestart) else None
