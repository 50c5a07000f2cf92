"""Which node is on which host: spread over all of them, so that nodes of one kind are apart as far as hosts go."""

from __future__ import annotations

from collections.abc import Sequence

from ..topology import NodeKind, Topology, broker_id, broker_name

_WITH_THE_DRIVER = (NodeKind.PROBER, NodeKind.ADMIN, NodeKind.EXTERNAL)
"""Who is the harness's own, and dialled or dials where the driver is."""


def spread(topology: Topology, hosts: Sequence[str], driver: str) -> dict[str, str]:
    """Node to host: those of a kind in turn, a slave never with its master where there is another host."""
    placed: dict[str, str] = {}
    turns: dict[NodeKind, int] = {}
    for name, kind in topology.kinds.items():
        if kind in _WITH_THE_DRIVER:
            placed[name] = driver
        elif kind is NodeKind.SLAVE:
            at = hosts.index(placed[broker_name(name)]) + broker_id(name)
            placed[name] = hosts[at % len(hosts)]
        else:
            turn = turns.get(kind, 0)
            placed[name] = hosts[turn % len(hosts)]
            turns[kind] = turn + 1
    return placed
