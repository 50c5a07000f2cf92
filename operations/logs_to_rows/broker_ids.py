"""Which brokerId each broker of a name has, and had when: from its own log, where NameServers print none. Pure.

    brokerId=2 (4.9), register broker[2] … OK (4.9)          says it
    Begin to change to master, to slave … brokerId=2          a role that changed: DLedger, controller
    Update slave … from master, Update master address …       a slave, of an id that 5.x prints nowhere: the next free

The one that was master first keeps the name alone (`broker-a`), the others have their id behind it (`broker-a/2`), by
which a node is called from then on, whatever it becomes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .line import Line
from .sources import BROKER, NAME_SERVER, Source

MASTER = 0
_OF_SLAVES = frozenset({"slave_synced", "slave_sync_failed", "master_said"})
_EXACT_MS = 1_500.0
"""Servers' stamps are of whole seconds."""


class Became(NamedTuple):
    """From this line on a broker has the id."""

    source: Source
    line: Line
    id: int


@dataclass(slots=True)
class _Member:
    """A broker whose own log is there."""

    source: Source
    address: str
    says: list[Became] = field(default_factory=list)
    is_slave: bool = False
    """It says so, and not of which id."""
    changes: bool = False
    """Its role is one that changes."""

    @property
    def first_master_ms(self) -> float:
        return min((said.line.stamp_ms for said in self.says if said.id == MASTER), default=math.inf)

    @property
    def own_id(self) -> int | None:
        """The id that it has as a slave."""
        return next((said.id for said in self.says if said.id > MASTER), None)


def ids_of(
    sources: Sequence[Source], routes: Mapping[str, int]
) -> tuple[dict[str, tuple[str, int]], dict[str, list[Became]]]:
    """Address to the name and id by which its broker is called, and to the ids that it had, in order: of brokers of
    whom a log tells a slave, or a role that changed. `routes`: the ids by which clients' routes know addresses."""
    members: dict[str, list[_Member]] = defaultdict(list)
    for source in sources:
        if source.kind == BROKER and (found := _member(source)) is not None:
            members[found[0]].append(found[1])
    heard = {
        line.fields["address"]
        for source in sources
        if source.kind == NAME_SERVER
        for line in source.lines
        if line.event == "master_address"
    }
    called: dict[str, tuple[str, int]] = {}
    had: dict[str, list[Became]] = {}
    for name, of in members.items():
        if not any(one.is_slave or one.changes for one in of):
            continue
        first = min(of, key=lambda one: (one.is_slave, one.first_master_ms, one.address not in heard))
        taken = {MASTER, *(one.own_id for one in of if one is not first and one.own_id is not None)}
        for one in of:
            if one is not first and not (one.is_slave or one.changes):
                continue  # another that claims the name
            is_first = one is first and not (one.is_slave and not one.changes)
            id_ = MASTER if is_first else one.own_id or routes.get(one.address) or _free(taken)
            taken.add(id_)
            called[one.address] = name, id_
            had[one.address] = one.says if one.changes else []
    return called, had


def _free(taken: set[int]) -> int:
    return next(id_ for id_ in range(1, len(taken) + 2) if id_ not in taken)


def _member(source: Source) -> tuple[str, _Member] | None:
    """Name and what its log says of its ids; None where it does not say who it is."""
    name, address, set_id = "", "", MASTER
    says: list[Became] = []
    says_slave = changes = False
    began: Line | None = None
    for line in source.lines:
        fields = line.fields
        if line.event == "setting" and fields.get("key") in ("rocketmqHome", "namesrvAddr"):
            began = began or line  # a new process: what it is from here on is said later
        if line.event == "broker_boot":
            name, address = fields["broker"], fields["address"]
        elif line.event == "setting" and fields.get("key") == "brokerId" and fields.get("value", "").isdigit():
            set_id = int(fields["value"])
        elif line.event == "role_changes":
            changes = True
            id_ = MASTER if fields["role"] == "master" else int(fields.get("id") or -1)
            if id_ >= MASTER:
                says.append(Became(source, began or line, id_))
                began = None
        elif line.event == "registered" and fields.get("id", "").isdigit():
            if not says or says[-1].id != int(fields["id"]):
                says.append(Became(source, began or line, int(fields["id"])))
            began = None
        elif line.event in _OF_SLAVES:
            says_slave = True
    if not name:
        return None
    if not says and set_id > MASTER:
        says.append(Became(source, source.lines[0], set_id))
    ids = {said.id for said in says}
    changes = changes or len(ids) > 1
    is_slave = says_slave and not changes and MASTER not in ids
    return name, _Member(source, address, says, is_slave, changes)


def id_at(had: Sequence[Became], at_ms: float) -> int | None:
    """The id that a broker had at that moment; None before any is known."""
    found = [said.id for said in had if said.source.wall_ms(said.line) <= at_ms + _EXACT_MS]
    return found[-1] if found else had[0].id if had else None
