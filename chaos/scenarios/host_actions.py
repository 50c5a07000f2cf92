"""Replaces faults of whole hosts by ordinary actions on nodes and links.

{at_s: 20, do: lose_host, hosts: [b]}       20 black_hole (name: lose_host-1) of every link between b and the others
                                            20 kill of every node on b
{at_s: 90, do: return_host, hosts: [b]}     90 heal lose_host-1 · restart of every node on b
"""

from collections.abc import Mapping, Sequence

from ..errors import NotAllowed, nearest
from ..faults.fault import Action
from ..faults.link_faults import BlackHole, Heal
from ..faults.process_faults import (
    HostAction,
    IsolateHost,
    Kill,
    LoseHost,
    Pause,
    PauseHost,
    Restart,
    Resume,
    ReturnHost,
)
from ..topology import NodeKind, Topology
from .action import ActionModel

AFTER_S = 0.001
"""Time between the actions of a host's loss: the black hole comes first, so that nobody sees the killed nodes'
connections close."""
_OURS = (NodeKind.PROBER, NodeKind.ADMIN)


def taken_apart(
    timeline: Sequence[ActionModel], topology: Topology, hosts: Mapping[str, Sequence[str]]
) -> list[tuple[int, ActionModel]]:
    """Return the timeline with each fault of a host replaced by actions on nodes and links. Each action comes with the
    index of the timeline's entry from which it was made. `hosts` has the nodes on each host. Raises NotAllowed for an
    impossible fault."""
    found: list[tuple[int, ActionModel]] = []
    under: dict[str, tuple[str, str | None]] = {}
    """By host: what was done to it, and the name of its black hole."""
    done = 0
    for index, entry in enumerate(timeline):
        what = entry.what
        if not isinstance(what, HostAction):
            found.append((index, entry))
            continue
        done += 1
        for number, host in enumerate(entry.hosts):
            key = f"timeline.{index}.hosts.{number}"
            _refuse(what, host, topology, hosts, under, key)
            nodes = tuple(node for node in hosts[host] if topology.kinds[node] not in _OURS)
            made: list[ActionModel] = []

            def add(action: Action, made: list[ActionModel] = made, at: ActionModel = entry, **on: object) -> None:
                at_s = round(at.at_s + AFTER_S * len(made), 6)
                made.append(ActionModel.model_validate({"at_s": at_s, "what": action, **on}))

            if isinstance(what, ReturnHost):
                did, name = under.pop(host)
                if name is not None:
                    add(Heal(faults=(name,)))
                if nodes and did != "isolate_host":
                    add(Resume() if did == "pause_host" else Restart(), nodes=nodes)
                found += [(index, one) for one in made]
                continue
            name = None
            links = links_between(nodes, topology) if isinstance(what, LoseHost | IsolateHost) else ()
            if links:
                name = f"{what.do}-{done}" if len(entry.hosts) == 1 else f"{what.do}-{done}-{number + 1}"
                add(BlackHole(), links=links, name=name)
            if nodes and isinstance(what, LoseHost | PauseHost):
                add(Kill() if isinstance(what, LoseHost) else Pause(), nodes=nodes)
            under[host] = what.do, name
            found += [(index, one) for one in made]
    return found


def links_between(nodes: Sequence[str], topology: Topology) -> tuple[str, ...]:
    """Return the links between these nodes and all others."""
    return tuple(
        f"{link.node} -> {link.peer}" for link in topology.links if (link.node in nodes) != (link.peer in nodes)
    )


def _refuse(
    what: HostAction,
    host: str,
    topology: Topology,
    hosts: Mapping[str, Sequence[str]],
    under: Mapping[str, tuple[str, str | None]],
    key: str,
) -> None:
    if host not in hosts:
        known = f"one of {', '.join(hosts)}{nearest(host, hosts)}" if hosts else "one of `placement: {hosts: […]}`"
        raise NotAllowed(key, host, f"{known}, each with nodes that are placed there by `host`")
    if isinstance(what, ReturnHost):
        if host not in under:
            raise NotAllowed(key, host, "a host that was lost, isolated or paused before")
        return
    if host in under:
        raise NotAllowed(key, host, f"return_host before it: {under[host][0]} of {host} has not ended")
    ours = [node for node in hosts[host] if topology.kinds[node] in _OURS]
    if ours:
        allowed = f"another host: {ours[0]}, who is the harness's own, is there (the first of placement.hosts)"
        raise NotAllowed(key, host, allowed)
