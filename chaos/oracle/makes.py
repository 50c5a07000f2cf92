"""Whose clients a run had: how many of each kind, who made them, and by which client's rules they choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..verdict import Clients
from .world import World


def clients_of(world: World, kinds: Collection[str]) -> tuple[Clients, ...]:
    """Those of these kinds, in the order of their kinds and makes; none where the run had none."""
    of_kinds = world.of_kind(*kinds) if kinds else ()
    counts = Counter((node.kind, node.implementation, _profile(world, node.name)) for node in of_kinds)
    return tuple(
        Clients(kind=kind, count=count, implementation=made_by, profile=profile)
        for (kind, made_by, profile), count in sorted(
            counts.items(), key=lambda one: ([*kinds].index(one[0][0]), *one[0][1:])
        )
    )


def _profile(world: World, node: str) -> str:
    try:
        return world.client_profile_of(node).name
    except KeyError as exc:  # a profile that this version does not know
        return str(exc.args[0])
