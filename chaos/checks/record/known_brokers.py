"""The brokers that the run has: which addresses, under which names and ids, a route may name at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...oracle.world import World
from ...topology import broker_id, broker_name

MASTER_ID = "0"


Known = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Broker name → id → addresses, as routes write them: of `broker-a/1` the name is broker-a and the id 1."""


def known_brokers(world: World) -> Known:
    """Every broker with all addresses that it has one after the other."""

    def find() -> Known:
        found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        for node in world.of_kind("broker", "slave"):
            if node.addresses:
                found[broker_name(node.name)][str(broker_id(node.name))] = node.addresses
        return found

    return world.memoized("known brokers", find)


def brokers_at(world: World, at_ms: float) -> Known:
    """Every broker with the address that it has then."""
    if not any(node.moves for node in world.nodes):
        return known_brokers(world)
    found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for node in world.of_kind("broker", "slave"):
        if (address := node.address_at(at_ms)) is not None:
            found[broker_name(node.name)][str(broker_id(node.name))] = (address,)
    return found


def due_words(name: str, ids: Mapping[str, tuple[str, ...]]) -> str:
    """The addresses that routes may have of the name, in a line."""
    said = (
        " or ".join(addresses) if id_ == MASTER_ID else f"{id_}: {' or '.join(addresses)}"
        for id_, addresses in sorted(ids.items())
    )
    return f"{name} {', '.join(said)}"


def has_broker(
    route: Mapping[str, Any],
    broker: str,
    known: Known,
    ids: Collection[int] | None = None,
) -> bool:
    """Whether the route has the broker under its name and id, at an address that is its own; None: its own id."""
    name, own_id = broker_name(broker), broker_id(broker)
    own, held = known.get(name, {}).get(str(own_id)), (route.get("brokers") or {}).get(name, {})
    addresses = [held[str(id_)] for id_ in (ids or (own_id,)) if str(id_) in held]
    return any(own is None or address in own for address in addresses)


def words(route: Mapping[str, Any] | None) -> str:
    """The route in a line: broker-a 127.0.0.1:10911 [4 read, 4 write, perm 6]."""
    if not route:
        return "no route"
    brokers, queues = route.get("brokers") or {}, route.get("queues") or {}
    return "; ".join(_broker(name, brokers.get(name), queues.get(name)) for name in sorted({*brokers, *queues}))


def _broker(name: str, addresses: Mapping[str, str] | None, row: Sequence[int] | None) -> str:
    said = [name]
    if addresses is not None:
        said += [address if id_ == MASTER_ID else f"{id_}: {address}" for id_, address in sorted(addresses.items())]
    else:
        said.append("without an address")
    if row is not None:
        said.append(f"[{row[0]} read, {row[1]} write, perm {row[2]}]")
    else:
        said.append("without queues")
    return " ".join(said)
