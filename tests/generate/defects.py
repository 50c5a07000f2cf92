"""Planted defects of a generated history: one message of the recorded run, and so every copy of it, goes wrong.

Defects of nodes are the self-test's (chaos/proof/defects); these are in the rows themselves, at any size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nemesrv.chaos.history.schema import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A defect: what it is, the checks that say INVALID of it, and the change of the recorded rows."""

    what: str
    found_by: frozenset[str]
    change: Callable[[Sequence[Row]], list[Row]]


def defect_of(name: str | None) -> Planted | None:
    """The defect of that name; None for None. ValueError for one that does not exist."""
    if name is None:
        return None
    if name not in DEFECTS:
        raise ValueError(f"defect {name!r} is not allowed; expected one of {', '.join(DEFECTS)}")
    return DEFECTS[name]


def _received(rows: Sequence[Row]) -> Row:
    """The receipt of a message that was sent before every fault."""
    return [row for row in rows if row["event"] == "receive"][20]


def _lost_message(rows: Sequence[Row]) -> list[Row]:
    key = _received(rows)["msg_key"]
    return [row for row in rows if row["event"] not in ("receive", "read") or row["msg_key"] != key]


def _skipped_message(rows: Sequence[Row]) -> list[Row]:
    skipped = _received(rows)
    return [row for row in rows if row is not skipped]


def _order_broken(rows: Sequence[Row]) -> list[Row]:
    """Two messages that one producer sent to one queue, one after the other, have each other's offset."""
    of_producer: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if row["event"] == "send" and row["type"] == "ok":
            of_producer.setdefault((row["node"], row["broker_name"], row["queue_id"]), []).append(row)
    earlier, later = next(pair for sends in of_producer.values() for pair in pairwise(sends))
    offset = {earlier["msg_key"]: later["offset"], later["msg_key"]: earlier["offset"]}
    return [
        {**row, "offset": offset[row["msg_key"]]} if row.get("msg_key") in offset and "offset" in row else row
        for row in rows
    ]


def _received_twice(rows: Sequence[Row]) -> list[Row]:
    again = _received(rows)
    return [copy for row in rows for copy in ((row, row) if row is again else (row,))]


DEFECTS: Mapping[str, Planted] = {
    "lost_message": Planted(
        what="an acknowledged message is neither received nor read",
        found_by=frozenset({"no_acknowledged_loss", "messages_delivered", "commits_follow_work"}),
        change=_lost_message,
    ),
    "skipped_message": Planted(
        what="a consumer goes on without having received a message that its broker keeps",
        found_by=frozenset({"commits_follow_work", "messages_delivered"}),
        change=_skipped_message,
    ),
    "order_broken": Planted(
        what="a producer's later message has the lower offset",
        found_by=frozenset({"order_kept", "commits_follow_work"}),
        change=_order_broken,
    ),
    "received_twice": Planted(
        what="a consumer is handed a message twice from one holding of its queue",
        found_by=frozenset({"duplicates"}),
        change=_received_twice,
    ),
}
