"""The doors of Apache's servers, one address for all of them, and what brokers of one name are told of each other.

A broker has three doors: its port, two below it the same for who is in a hurry (VIP), and above it the one at which
its slaves fetch the commit log (HA). Peers are told one address, so that whatever is done to a link meets all three.
The front there tells by the first bytes who dials: a frame of RocketMQ begins with its length, never so small; a
slave with the offset that it has, of which these are the upper half, or (5.x, controller) with its state. Members of a
DLedger group say frames, too, of codes that nobody else has.

    slave's JVM ─► its front of broker-a ─► link broker-a/1 -> broker-a ─► front at broker-a's address ─┬► port
                   port and port - 2                                                                   ├► + 1 (HA)
                                                                                                       └► + 2 (DLedger)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ...remoting.node.network import Address
from ..settings.server_settings import ELECTS

HA = 1
"""How far above a broker's port its HA port is."""
DLEDGER = 2
"""How far above it the port is at which members of its DLedger group dial it."""
FIRST_BYTES = 4
_SHORTEST_FRAME = 16
_HEADER = 8
"""Before a frame's header: its length, and that of the header."""
CONTROLLER = 1
"""How far above a NameServer's port that of the controller inside it is."""
_OF_CONTROLLER = range(1_001, 1_015)
_HEARTBEAT = 904
_LONGEST_HEADER = 64 * 1024
_CODES = range(50_000, 52_000)
"""Of DLedger's requests (DLedgerRequestCode)."""
_CODE = re.compile(rb'"code":\s*(\d+)')


def is_slaves(first: bytes) -> bool:
    """Whether who says this first is a slave that fetches the commit log."""
    return len(first) >= FIRST_BYTES and int.from_bytes(first[:FIRST_BYTES], "big") < _SHORTEST_FRAME


def tells(first: bytes) -> bool:
    """Whether it is enough to tell by it who dials: an offset, or a frame's whole header."""
    return is_slaves(first) or (len(first) >= _HEADER and len(first) >= _HEADER + _header_bytes(first))


def door(first: bytes) -> int:
    """How far above the broker's port the door is of who says this first."""
    if is_slaves(first):
        return HA
    code = _CODE.search(first[_HEADER : _HEADER + _header_bytes(first)])
    return DLEDGER if code is not None and int(code[1]) in _CODES else 0


def _header_bytes(first: bytes) -> int:
    return min(int.from_bytes(first[5:_HEADER], "big"), _LONGEST_HEADER)  # its first byte says how it is written


def as_told(own: Address, told: Address) -> Mapping[str, str]:
    """What a broker says of its doors, to what everybody is told."""
    return {str(own): str(told), str(Address(own.host, own.port + HA)): str(told)}


def elects(settings: Mapping[str, object]) -> bool:
    """Whether the brokers of the name elect their master."""
    return any(settings.get(key) is True for key in ELECTS)


def role(broker_id: int, settings: Mapping[str, object]) -> dict[str, object]:
    """brokerId and brokerRole; a master's may be said in the scenario, and of a DLedger group neither is."""
    if elects(settings):  # as every such file has it: the broker itself begins as -1
        return {"brokerId": 0, "brokerRole": "ASYNC_MASTER"}
    if broker_id:
        return {"brokerId": broker_id, "brokerRole": "SLAVE"}
    return {"brokerId": 0, "brokerRole": settings.get("brokerRole", "ASYNC_MASTER")}


def door_of_controller(first: bytes) -> int:
    """How far above a NameServer's port the door is of who says this first: at the controller's, for a request that is
    none to a NameServer, or a heartbeat that says which epoch its broker is of."""
    header = first[_HEADER : _HEADER + _header_bytes(first)]
    code = _CODE.search(header)
    if code is None:
        return 0
    return CONTROLLER if int(code[1]) in _OF_CONTROLLER or (int(code[1]) == _HEARTBEAT and b'"epoch"' in header) else 0


def controller(port: int, folder: Path) -> dict[str, object]:
    """Of a NameServer that is the only controller, too, at the port above its own; it keeps its log in `folder`. It
    tells brokers of a new master when they ask: here no NameServer dials anybody."""
    return {
        "controllerDLegerGroup": "controllers",
        "controllerDLegerPeers": f"n0-127.0.0.1:{port + CONTROLLER}",
        "controllerDLegerSelfId": "n0",
        "controllerStorePath": folder / "controller",
        "mappedFileSize": 16 * 1024 * 1024,
        "notifyBrokerRoleChanged": False,
    }


def dledger_group(own: int, name: str, members: Mapping[int, Address]) -> dict[str, object]:
    """What a member of the DLedger group is told of it: each by its number and where this one dials it."""
    peers = ";".join(f"n{number}-{at}" for number, at in sorted(members.items()))
    return {"dLegerGroup": name, "dLegerSelfId": f"n{own}", "dLegerPeers": peers}
