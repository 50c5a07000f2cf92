"""The brokers that the run has: which addresses, under which names and ids, a route may name at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..oracle.world import World
from ..topology import broker_id, broker_name

MASTER_ID = "0"


def known_brokers(world: World) -> Mapping[str, Mapping[str, str]]:
    """Broker name → id → address, as routes write them: of `broker-a/1` the name is broker-a and the id 1."""

    def find() -> Mapping[str, Mapping[str, str]]:
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for node in world.of_kind("broker", "slave"):
            if node.address is not None:
                found[broker_name(node.name)][str(broker_id(node.name))] = node.address
        return found

    return world.memoized("known brokers", find)


def has_broker(
    route: Mapping[str, Any],
    broker: str,
    known: Mapping[str, Mapping[str, str]],
    ids: Collection[int] | None = None,
) -> bool:
    """Whether the route has the broker under its name and id, with the address that it really has; None: its own id."""
    name, own_id = broker_name(broker), broker_id(broker)
    own, held = known.get(name, {}).get(str(own_id)), (route.get("brokers") or {}).get(name, {})
    addresses = [held[str(id_)] for id_ in (ids or (own_id,)) if str(id_) in held]
    return any(own is None or address == own for address in addresses)


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
