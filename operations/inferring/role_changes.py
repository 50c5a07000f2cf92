"""Who of a broker name was made master, and who its slave: one change of roles, and no fault beside another. Pure.

broker-a     id 0 ────────┤ lost                     ┌ id 1 ───   "… it was made master by an election (term 2);
broker-a/2   id 2 ──────────── id 0 ───────────────────────────      broker-a is its slave, id 1, from 240.0 s on"
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..logs_to_rows.signs import Row, Seen, value_of

_SETTLES_MS = 5_000.0
"""What one server's log says so soon after another's is of the same change."""


@dataclass(slots=True)
class RoleChange:
    """`node` has the id from `at_ms` on."""

    node: str
    id: int
    at_ms: float
    rows: list[Row]
    others: list[RoleChange] = field(default_factory=list)
    """Of the same name, that became slaves with it."""

    @property
    def is_master(self) -> bool:
        return self.id == 0

    @property
    def term(self) -> int:
        """Of the election by which it changed; 0: no log tells of one."""
        return max((int(value_of(row).get("term", 0)) for row in self.rows), default=0)

    @property
    def sentence(self) -> str:
        name = self.node.partition("/")[0]
        at = sorted({str(row["node"]) for row in self.rows if row["event"] == "registration"})
        where = f" at {', '.join(at)}" if at else ""
        made = "master" if self.is_master else f"id {self.id}"
        registers = name if self.is_master else f"{name}/{self.id}"
        by = f" by an election (term {self.term})" if self.term and self.is_master else ""
        said = f"{self.node} registers as {registers}{where} from {self.at_ms / 1000:.1f} s on: it was made {made}{by}"
        return "; ".join(
            [said, *(f"{one.node} is its slave, id {one.id}, from {one.at_ms / 1000:.1f} s on" for one in self.others)]
        )


def role_changes(seen: Seen) -> list[RoleChange]:
    """In order of time; of each name, who became a slave after a new master with that master's change."""
    found: list[RoleChange] = []
    for node, told in _told(seen).items():
        found += _changes(node, told)
    found.sort(key=lambda one: one.at_ms)
    kept: list[RoleChange] = []
    masters: dict[str, RoleChange] = {}
    for one in found:
        name = one.node.partition("/")[0]
        if one.is_master:
            masters[name] = one
        elif name in masters and masters[name].node != one.node:
            masters[name].others.append(one)
            continue
        kept.append(one)
    return kept


class Roles:
    """Which id each broker had when, as far as anybody's log tells its registrations."""

    def __init__(self, seen: Seen) -> None:
        self._told = {node: ([at_ms for at_ms, _, _ in told], told) for node, told in _told(seen).items()}

    def is_slave(self, node: str, at_ms: float) -> bool:
        times, told = self._told.get(node, ([], []))
        return bool(told) and told[max(0, bisect_right(times, at_ms) - 1)][1] > 0


def _told(seen: Seen) -> Mapping[str, list[tuple[float, int, Row]]]:
    """Broker to the ids under which it registered, by NameServers' logs and its own, in order of time."""
    brokers = {*seen.brokers}
    found: dict[str, list[tuple[float, int, Row]]] = defaultdict(list)
    for row in seen.rows:
        node, id_ = "", None
        if row["event"] == "registration" and row.get("broker_name") and row.get("code") in (0, None):
            node, id_ = seen.addresses.get(str(row.get("address")), ""), row.get("broker_id") or 0
            if node.partition("/")[0] != row["broker_name"]:
                continue
        elif row["event"] == "register" and row.get("type") == "ok" and value_of(row).get("id") is not None:
            node, id_ = str(row["node"]), int(value_of(row)["id"])
        if node in brokers and id_ is not None and id_ >= 0:
            found[node].append((float(row["time_ms"]), int(id_), row))
    return found


def _changes(node: str, told: Sequence[tuple[float, int, Row]]) -> Iterator[RoleChange]:
    had = told[0][1]
    change: RoleChange | None = None
    for at_ms, id_, row in told:
        if change is not None and at_ms <= change.at_ms + _SETTLES_MS:
            if id_ == change.id:
                change.rows.append(row)
            continue
        if id_ != had:
            if change is not None:
                yield change
            change, had = RoleChange(node, id_, at_ms, [row]), id_
    if change is not None:
        yield change
