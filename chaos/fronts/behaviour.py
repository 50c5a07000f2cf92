"""What a front (the proxy before a server) does to connection attempts, connections and requests. To a client the
front's behaviour looks like a fault of the server.

attempts    accepted, refused, dropped (SYN without an answer), closed right after they were accepted
connected   what happens to open connections at the moment of the change
requests    passed on, or swallowed: received by TCP and never answered
codes       requests of these codes the front answers itself, with that response code
delay_ms    answers wait so long
routes      route answers with some brokers left out, or with other addresses
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Dials(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    DROPPED = "dropped"
    """The accept queue is full, so the kernel drops SYNs (docs/faults.md)."""
    CLOSED = "closed"


class Connected(StrEnum):
    KEPT = "kept"
    CLOSED = "closed"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    dials: Dials = Dials.ACCEPTED
    connected: Connected = Connected.KEPT
    swallows: bool = False
    """Requests are received and not passed on. Nor are the server's answers and its close, until this ends. A frame
    that has been passed on in part is passed on to its end."""
    codes: Mapping[int, int] = field(default_factory=dict)
    """Request code to the response code with which the front answers. Oneway requests pass."""
    delay_ms: float = 0.0
    """Delay in RocketMQ milliseconds of all that the server sends, in order, including its close."""
    without: frozenset[str] = frozenset()
    """Broker names left out of route answers (request code 105). If no broker is left, the front answers code 17."""


PASSES = Behaviour()
REFUSES = Behaviour(dials=Dials.REFUSED, connected=Connected.CLOSED)
"""Looks like a crashed process."""
DROPS_SYNS = Behaviour(dials=Dials.DROPPED, connected=Connected.CLOSED)
BLACK_HOLE = Behaviour(dials=Dials.DROPPED, swallows=True)
"""Looks like a cut network: open connections go silent, and new connection attempts get no answer."""
SILENT = Behaviour(swallows=True)
"""Looks like a stopped process: the kernel accepts connections, and nothing answers."""
CLOSES_ONCE = Behaviour(connected=Connected.CLOSED)
RESETS_ONCE = Behaviour(connected=Connected.RESET)
CLOSES_EACH = Behaviour(dials=Dials.CLOSED, connected=Connected.CLOSED)


_REFUSED_WHILE = frozenset({"kill", "stop", "remove"})
_DIALS_OF_LINKS = {"cut": Dials.REFUSED, "syn_drop": Dials.DROPPED}


class Unreachable:
    """Learns from `fault` rows which servers the node `dialler` cannot reach."""

    def __init__(self, dialler: str) -> None:
        self._dialler = dialler
        self._why: dict[str, set[tuple[str, str, Dials]]] = defaultdict(set)

    def faulted(self, fields: Mapping[str, Any]) -> bool:
        """Take a `fault` row. Returns whether `meets` may have changed."""
        source, target, fault = fields.get("source"), fields.get("target"), str(fields.get("fault"))
        if target is None and fault in _REFUSED_WHILE:
            server, dials = str(source), Dials.REFUSED
        elif source == self._dialler and fault in _DIALS_OF_LINKS:
            server, dials = str(target), _DIALS_OF_LINKS[fault]
        else:
            return False
        why = str(fields.get("fault_id")), fault, dials
        reasons = self._why[server]
        (reasons.add if fields.get("phase") == "start" else reasons.discard)(why)
        return True

    @property
    def meets(self) -> dict[str, Dials]:
        """Return each server that does not accept connection attempts now, with REFUSED or DROPPED."""
        dials_of = {server: {dials for _id, _fault, dials in why} for server, why in self._why.items() if why}
        return {name: Dials.DROPPED if Dials.DROPPED in of else Dials.REFUSED for name, of in dials_of.items()}
