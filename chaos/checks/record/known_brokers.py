"""The brokers that the run has: which addresses, under which names and ids, a route may name at all."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...oracle.promises import told_by_hand
from ...oracle.roles import may_be_shown
from ...oracle.world import World, once
from ...topology import broker_id, broker_name

MASTER_ID = "0"


Known = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Broker name → id → addresses, as routes write them: of `broker-a/1` the name is broker-a and the id 1."""


@once
def known_brokers(world: World) -> Known:
    """Every broker with all addresses that it has one after the other."""
    found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for node in world.of_kind("broker", "slave"):
        if node.addresses:
            found[broker_name(node.name)][str(broker_id(node.name))] = node.addresses
    return found


def is_misplaced(world: World, name: str, ids: Mapping[str, str]) -> bool:
    """Whether a route names a broker that the run has by an id, or at an address, that no broker of the name has, and
    that nobody registered by hand."""
    known, by_hand = known_brokers(world)[name], told_by_hand(world)
    return any(
        address not in known.get(id_, ())
        and not by_hand.may_name(name, id_, address)
        and not may_be_shown(world, name, id_, address)
        for id_, address in ids.items()
    )


def due_words(name: str, ids: Mapping[str, tuple[str, ...]]) -> str:
    """The addresses that routes may have of the name, in a line."""
    said = (
        " or ".join(addresses) if id_ == MASTER_ID else f"{id_}: {' or '.join(addresses)}"
        for id_, addresses in sorted(ids.items())
    )
    return f"{name} {', '.join(said)}"


def words(route: Mapping[str, Any] | None) -> str:
    """The route in a line: broker-a 127.0.0.1:10911 [4 read, 4 write, perm 6]."""
    if not route:
        return "no route"
    brokers, queues = route.get("brokers") or {}, route.get("queues") or {}
    return "; ".join(_broker(name, brokers.get(name), queues.get(name)) for name in sorted({*brokers, *queues}))


def _broker(name: str, addresses: Mapping[str, str] | None, row: Sequence[int] | None) -> str:
    at = [address if id_ == MASTER_ID else f"{id_}: {address}" for id_, address in sorted((addresses or {}).items())]
    at = ["without an address"] if addresses is None else at
    has = "without queues" if row is None else f"[{row[0]} read, {row[1]} write, perm {row[2]}]"
    return " ".join((name, *at, has))
