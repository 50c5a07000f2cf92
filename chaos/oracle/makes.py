"""Whose clients a run had: how many of each kind, who made them, and by which client's rules they choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..verdict import Clients
from .client_profiles import profile_of
from .world import World


def clients_of(world: World, kinds: Collection[str]) -> tuple[Clients, ...]:
    """Those of these kinds, in the order of their kinds and makes; none where the run had none."""
    name = world.workload.get("client_profile")
    try:
        profile = profile_of(name, world.timers.profile).name
    except KeyError:  # a profile that this version does not know
        profile = str(name)
    counts = Counter((node.kind, node.implementation) for node in world.of_kind(*kinds)) if kinds else Counter()
    return tuple(
        Clients(kind=kind, count=count, implementation=made_by, profile=profile)
        for (kind, made_by), count in sorted(counts.items(), key=lambda one: ([*kinds].index(one[0][0]), one[0][1]))
    )
