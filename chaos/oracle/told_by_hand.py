"""What a NameServer may hold because somebody registered it by hand, and need not because somebody took it out."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

from ...remoting.node.profile import Profile
from ..topology import broker_name
from .by_hand import Act
from .world import World


class Span(NamedTuple):
    from_ms: float
    to_ms: float


class ToldByHand:
    """By NameServer, as the acts say. Made once for a World (`told_by_hand`)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.registered: dict[str, list[Act]] = defaultdict(list)
        """NameServer → registrations that it may have taken."""
        self._deleted: dict[tuple[str, str], list[Span]] = defaultdict(list)
        named: dict[str, set[tuple[str, str]]] = defaultdict(set)
        addresses = {node.name: node.address for node in world.of_kind("slave")}
        for act in world.acts:
            if act.f == "register" and act.may_be_done:
                self.registered[act.node].append(act)
                named[act.broker].add((str(act.broker_id), act.address))
            elif act.f == "switch" and act.may_be_done:
                named[broker_name(act.node)].add(("0", addresses.get(act.node) or ""))
            elif act.f == "delete_topic" and act.may_be_done:
                self._deleted[act.node, act.topic].append(Span(act.began_ms, self._until_ms(act)))
        self.named: dict[str, frozenset[tuple[str, str]]] = {name: frozenset(of) for name, of in named.items()}
        """Broker name → (id, address) that somebody registered for it, anywhere."""

    def _until_ms(self, act: Act) -> float:
        """By when brokers have told the NameServer of the topic again: a 5.x one takes it from any registration, a 4.9
        one only with a change of something, or after it was restarted; and a broker that asks first (322) hears that it
        need not register."""
        brokers = [node.name for node in self._world.of_kind("broker", "slave")]
        asks_first = any(self._world.timers_of(broker).F_ms is not None for broker in brokers)
        if self._world.timers.profile is Profile.V5_X and not asks_first:
            timers = self._world.timers
            return act.ended_ms + timers.R_ms + timers.B_ms + timers.C_ms
        return next((life.end_ms for life in self._world.lives_of(act.node) if life.end_ms > act.began_ms), math.inf)

    def deleted(self, name_server: str, topic: str) -> list[Span]:
        """When nobody says whether the topic is there, because somebody had it deleted there."""
        return self._deleted.get((name_server, topic), [])

    def is_deleted(self, name_server: str, topic: str, from_ms: float, to_ms: float) -> bool:
        return any(span.from_ms < to_ms and span.to_ms > from_ms for span in self.deleted(name_server, topic))

    def may_name(self, broker: str, id_: str, address: str) -> bool:
        """Whether somebody registered the broker so."""
        return (id_, address) in self.named.get(broker, ())

    def told_of(self, *name_servers: str) -> dict[str, float]:
        """The brokers that somebody registered at any of these, and since when they may be there."""
        found: dict[str, float] = {}
        for name_server in name_servers:
            for act in self.registered.get(name_server, ()):
                found[act.broker] = min(found.get(act.broker, act.began_ms), act.began_ms)
        return found


def told_by_hand(world: World) -> ToldByHand:
    return world.memoized("told by hand", lambda: ToldByHand(world))
