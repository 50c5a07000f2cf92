"""What a front does to dials, connections and requests: the faults of a service that an outside client meets.

dials       accepted, refused, dropped (SYN without an answer), closed or reset right after they were accepted
connected   what happens, at the moment of the change, to the connections that are there
requests    passed on, or swallowed: the peer's TCP takes them and nobody answers
codes       requests of these codes the front answers itself, with that response code
delay_ms    answers wait so long
routes      changes in route answers: brokers that are left out, other addresses
"""

from __future__ import annotations

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
    RESET = "reset"


class Connected(StrEnum):
    KEPT = "kept"
    CLOSED = "closed"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    dials: Dials = Dials.ACCEPTED
    connected: Connected = Connected.KEPT
    swallows: bool = False
    """Requests on every connection are taken and not passed on, nor is what the server says, its close included
    (that is told when this ends). A frame of which a part has been passed on is passed on to its end."""
    codes: Mapping[int, int] = field(default_factory=dict)
    """Request code to the response code that the front answers in place of the server. Oneway requests pass."""
    delay_ms: float = 0.0
    """RocketMQ milliseconds by which all that the server says comes later, in order, its close behind it."""
    without: frozenset[str] = frozenset()
    """Broker names that are left out of route answers (105); no broker left: the front answers code 17."""

    def __str__(self) -> str:
        said = {
            "dials": self.dials if self.dials is not Dials.ACCEPTED else "",
            "connections": self.connected if self.connected is not Connected.KEPT else "",
            "requests": "swallowed" if self.swallows else "",
            "answers": ", ".join(f"{code} for {asked}" for asked, code in sorted(self.codes.items())),
            "delay": f"{self.delay_ms:g} ms" if self.delay_ms else "",
            "routes": f"without {', '.join(sorted(self.without))}" if self.without else "",
        }
        return "; ".join(f"{what} {how}" for what, how in said.items() if how) or "passes everything on"


PASSES = Behaviour()
REFUSES = Behaviour(dials=Dials.REFUSED, connected=Connected.CLOSED)
"""What a crashed process looks like."""
DROPS_SYNS = Behaviour(dials=Dials.DROPPED, connected=Connected.CLOSED)
BLACK_HOLE = Behaviour(dials=Dials.DROPPED, swallows=True)
"""What a cut network looks like: what is connected goes silent, new dials get no answer."""
SILENT = Behaviour(swallows=True)
"""What a stopped process looks like: the kernel accepts, nobody answers."""
CLOSES_ONCE = Behaviour(connected=Connected.CLOSED)
RESETS_ONCE = Behaviour(connected=Connected.RESET)
CLOSES_EACH = Behaviour(dials=Dials.CLOSED, connected=Connected.CLOSED)


_REFUSED_WHILE = frozenset({"kill", "stop", "remove"})
_DIALS_OF_LINKS = {"cut": Dials.REFUSED, "syn_drop": Dials.DROPPED}


class Unreachable:
    """How the front of a server has to behave after each row, for the node `dialler`."""

    def __init__(self, dialler: str) -> None:
        self._dialler = dialler
        self._why: dict[str, set[tuple[str, str, Dials]]] = defaultdict(set)

    def faulted(self, fields: Mapping[str, Any]) -> tuple[str, Behaviour] | None:
        """A row `fault`: the server whose front may have to behave in another way, and how; None: nobody's does."""
        source, target, fault = fields.get("source"), fields.get("target"), str(fields.get("fault"))
        if target is None and fault in _REFUSED_WHILE:
            server, dials = str(source), Dials.REFUSED
        elif source == self._dialler and fault in _DIALS_OF_LINKS:
            server, dials = str(target), _DIALS_OF_LINKS[fault]
        else:
            return None
        why = str(fields.get("fault_id")), fault, dials
        reasons = self._why[server]
        (reasons.add if fields.get("phase") == "start" else reasons.discard)(why)
        return server, behaviour_of(self._meets(server))

    @property
    def meets(self) -> dict[str, Dials]:
        """Server to what its dials meet now, of those that do not accept."""
        return {server: dials for server in self._why if (dials := self._meets(server)) is not Dials.ACCEPTED}

    def _meets(self, server: str) -> Dials:
        meets = {dials for _id, _fault, dials in self._why[server]}
        return Dials.DROPPED if Dials.DROPPED in meets else Dials.REFUSED if meets else Dials.ACCEPTED


def behaviour_of(dials: Dials) -> Behaviour:
    """What a front does so that dials meet that; a server that refuses has ended its connections, too."""
    if dials is Dials.REFUSED:
        return Behaviour(dials=dials, connected=Connected.CLOSED)
    return PASSES if dials is Dials.ACCEPTED else Behaviour(dials=dials)
