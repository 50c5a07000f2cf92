"""The brokers that the run has: which addresses, under which names and ids, a route may name at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ..oracle.world import World

MASTER_ID = "0"


def known_brokers(world: World) -> Mapping[str, Mapping[str, str]]:
    """Broker name → id → address, as routes write them: of `broker-a/1` the name is broker-a and the id 1."""

    def find() -> Mapping[str, Mapping[str, str]]:
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for node in world.of_kind("broker"):
            name, _, id_ = node.name.partition("/")
            if node.address is not None:
                found[name][id_ or MASTER_ID] = node.address
        return found

    return world.memoized("known brokers", find)


def has_master(route: Mapping[str, Any], broker: str, known: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the route has the broker, as a master, with the address that it really has."""
    address = (route.get("brokers") or {}).get(broker, {}).get(MASTER_ID)
    master = known.get(broker, {}).get(MASTER_ID)
    return address is not None and (master is None or address == master)


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
