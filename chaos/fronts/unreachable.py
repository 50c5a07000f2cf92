"""Which servers one who dials fronts cannot reach, by the harness's `fault` rows: fronts do what proxies cannot.

A proxy of Toxiproxy refuses, and cannot drop a SYN; but a front before it has let the dial in by then. So the front
itself refuses while its server's process is gone or the link to it is cut, and drops SYNs where the link does. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from .behaviour import PASSES, Behaviour, Connected, Dials

_REFUSED_WHILE = frozenset({"kill", "stop", "remove"})
_DIALS_OF_LINKS = {"cut": Dials.REFUSED, "syn_drop": Dials.DROPPED}


class Unreachable:
    """Of the node called `dialler`: how the front of a server is to behave after each row."""

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
