"""The ports of Apache's servers behind one address, and the settings by which brokers of one name find each other.

A broker has three ports: its own, the VIP port two below it, and the HA port above it, at which slaves fetch the commit
log. Peers get one address for the three ports, so that a fault of a link affects all ports. The front (the proxy before
the broker) recognizes the caller by the first bytes. A RocketMQ frame begins with its length. A slave first sends the
upper half of its offset, which is smaller than any frame's length. With a controller (5.x) a slave first sends its
state. Members of a DLedger group send frames with DLedger's own request codes.

    slave's JVM ─► its front of broker-a ─► link broker-a/1 -> broker-a ─► front at broker-a's address ─┬► port
                   port and port - 2                                                                   ├► + 1 (HA)
                                                                                                       └► + 2 (DLedger)
"""

import re
from collections.abc import Mapping
from pathlib import Path

from ...remoting.node.network import Address
from ..settings.setting import ELECTS

HA = 1
"""Distance of the HA port above the broker's port."""
DLEDGER = 2
"""Distance above the broker's port of the port for its DLedger group."""
FIRST_BYTES = 4
_SHORTEST_FRAME = 16
_HEADER = 8
"""Before a frame's header: the lengths of the frame and of the header."""
CONTROLLER = 1
"""Distance of the controller's port above its NameServer's."""
_OF_CONTROLLER = range(1_001, 1_015)
_HEARTBEAT = 904
_LONGEST_HEADER = 64 * 1024
_CODES = range(50_000, 52_000)
"""Codes of DLedger's requests (DLedgerRequestCode)."""
_CODE = re.compile(rb'"code":\s*(\d+)')


def is_slaves(first: bytes) -> bool:
    return len(first) >= FIRST_BYTES and int.from_bytes(first[:FIRST_BYTES], "big") < _SHORTEST_FRAME


def tells(first: bytes) -> bool:
    """Whether these first bytes contain a slave's offset or a frame's whole header, which identifies the caller."""
    return is_slaves(first) or (len(first) >= _HEADER and len(first) >= _HEADER + _header_bytes(first))


def door(first: bytes) -> int:
    """Return the distance from the broker's port to the port for a caller with these first bytes."""
    if is_slaves(first):
        return HA
    code = _CODE.search(first[_HEADER : _HEADER + _header_bytes(first)])
    return DLEDGER if code is not None and int(code[1]) in _CODES else 0


def _header_bytes(first: bytes) -> int:
    return min(int.from_bytes(first[5:_HEADER], "big"), _LONGEST_HEADER)  # its first byte says how it is written


def as_told(own: Address, told: Address) -> Mapping[str, str]:
    """Return, for each of the broker's own addresses, the advertised address that replaces it in frames."""
    return {str(own): str(told), str(Address(own.host, own.port + HA)): str(told)}


def elects(settings: Mapping[str, object]) -> bool:
    return any(settings.get(key) is True for key in ELECTS)


def role(broker_id: int, settings: Mapping[str, object]) -> dict[str, object]:
    """Return brokerId and brokerRole of a broker. A scenario may set a master's role. Brokers that elect their master
    all get id 0 and ASYNC_MASTER; the election then decides."""
    if elects(settings):  # as every such file has it: the broker itself begins as -1
        return {"brokerId": 0, "brokerRole": "ASYNC_MASTER"}
    if broker_id:
        return {"brokerId": broker_id, "brokerRole": "SLAVE"}
    return {"brokerId": 0, "brokerRole": settings.get("brokerRole", "ASYNC_MASTER")}


def door_of_controller(first: bytes) -> int:
    """Return the distance from a NameServer's port to the port for a caller with these first bytes. The controller's
    port gets the request codes that only controllers have, and heartbeats with an epoch."""
    header = first[_HEADER : _HEADER + _header_bytes(first)]
    code = _CODE.search(header)
    if code is None:
        return 0
    return CONTROLLER if int(code[1]) in _OF_CONTROLLER or (int(code[1]) == _HEARTBEAT and b'"epoch"' in header) else 0


def controller(port: int, folder: Path) -> dict[str, object]:
    """Return the settings of a NameServer that is also the only controller. The controller listens at the next higher
    port. The controller's log is in `folder`. Brokers ask the controller for the new master."""
    return {
        "controllerDLegerGroup": "controllers",
        "controllerDLegerPeers": f"n0-127.0.0.1:{port + CONTROLLER}",
        "controllerDLegerSelfId": "n0",
        "controllerStorePath": folder / "controller",
        "mappedFileSize": 16 * 1024 * 1024,
        "notifyBrokerRoleChanged": False,
    }


def dledger_group(own: int, name: str, members: Mapping[int, Address]) -> dict[str, object]:
    """Return the settings of one member of a DLedger group: the number and address of every member."""
    peers = ";".join(f"n{number}-{at}" for number, at in sorted(members.items()))
    return {"dLegerGroup": name, "dLegerSelfId": f"n{own}", "dLegerPeers": peers}
