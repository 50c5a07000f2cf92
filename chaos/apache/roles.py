"""What Apache's brokers of one name have to do with each other: who is which, and one address for all that they offer.

A broker has three doors: its port, two below it the same for who is in a hurry (VIP), and above it the one at which
its slaves fetch the commit log (HA). Peers are told one address, so that whatever is done to a link meets all three.
The front there tells by the first four bytes who dials: a frame of RocketMQ begins with its length, never so small; a
slave with the offset that it has, of which these are the upper half, or (5.x, controller) with its state.

    slave's JVM ─► its front of broker-a ─► link broker-a/1 -> broker-a ─► front at broker-a's address ─┬► port
                   port and port - 2                                                                   └► port + 1 (HA)
"""

from __future__ import annotations

from collections.abc import Mapping

from ...remoting.node.network import Address

HA = 1
"""How far above a broker's port its HA port is."""
FIRST_BYTES = 4
_SHORTEST_FRAME = 16


def is_slaves(first: bytes) -> bool:
    """Whether who says this first is a slave that fetches the commit log."""
    return len(first) >= FIRST_BYTES and int.from_bytes(first[:FIRST_BYTES], "big") < _SHORTEST_FRAME


def doors(own: Address, told: Address) -> Mapping[str, str]:
    """What a broker says of its doors, to what everybody is told."""
    return {str(own): str(told), str(Address(own.host, own.port + HA)): str(told)}


def role(broker_id: int, settings: Mapping[str, object]) -> dict[str, object]:
    """brokerId and brokerRole; a master's may be said in the scenario."""
    if broker_id:
        return {"brokerId": broker_id, "brokerRole": "SLAVE"}
    return {"brokerId": 0, "brokerRole": settings.get("brokerRole", "ASYNC_MASTER")}
