"""Messages that came twice, counted in plain Python over a history's rows: dataframes/repeats.py holds the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ...oracle.commits import Redelivery
from ..tolerance import Tolerance
from .history import Rows

Row = Mapping[str, Any]


def repeats_of_rows(
    rows: Rows, rules: Redelivery, tolerance: Tolerance, *, each_alone: bool
) -> tuple[int, int, int, int, int, float | None]:
    """Messages received; receipts of a stored copy, and copies of a message, beyond the first; of both how many nothing
    explains, and how many only lateness does; how long before its queue changed hands the earliest came.

    `each_alone`: every consumer is a group of its own.
    """
    taken: dict[tuple[Any, ...], float] = {}
    receipts: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["event"] == "queue_taken":
            taken.setdefault(_holding(row), row["time_ms"])
        elif row["event"] == "receive" and row["msg_key"] is not None:
            receipts[row["msg_key"], *_place(row), row["node"] if each_alone else ""].append(row)
    again = wrong = late = 0
    oldest_ms: float | None = None
    for each in receipts.values():
        in_order = sorted(each, key=lambda row: (row["time_ms"], row["node"], row["seq"]))
        times: dict[tuple[Any, ...], int] = defaultdict(int)
        for number, row in enumerate(in_order):
            times[_holding(row)] += row["op_id"] is not None
            if not number or _sent_back(rules, in_order[number - 1], row):
                continue
            again += 1
            over_ms, age_ms = _over(rules, in_order[number - 1], row, taken)
            if age_ms is not None:
                oldest_ms = age_ms if oldest_ms is None else max(oldest_ms, age_ms)
            if times[_holding(row)] > 1 or (over_ms is not None and over_ms > tolerance.unknown_up_to_ms):
                wrong += 1
            elif over_ms is None or over_ms > tolerance.valid_up_to_ms:
                late += 1
    copies, too_many = _copies(rows)
    keys = {key for key, *_ in receipts}
    return len(keys), again, copies, wrong + too_many, late, oldest_ms


def _sent_back(rules: Redelivery, before: Row, row: Row) -> bool:
    """Whether an operator sent the group back to it after the receipt before."""
    return any(
        (one.topic, one.broker_name, one.queue_id) == _place(row)[:3]
        and one.offset <= row["offset"]
        and before["time_ms"] <= one.at_ms <= row["time_ms"]
        for one in rules.resets
    )


def _over(
    rules: Redelivery, before: Row, row: Row, taken: Mapping[tuple[Any, ...], float]
) -> tuple[float | None, float | None]:
    """How far the older holding's receipt lies outside of all that explains it, and how long before the change."""
    taken_ms, first_ms = taken.get(_holding(row)), taken.get(_holding(before))
    older_now = taken_ms is not None and first_ms is not None and taken_ms < first_ms
    changed_ms, old_ms = (first_ms, row["time_ms"]) if older_now else (taken_ms, before["time_ms"])
    if changed_ms is None:
        return None, None
    ways = [max(changed_ms - old_ms - rules.uncommitted_ms, old_ms - changed_ms - rules.owners_ms, 0.0)]
    for start_ms, end_ms in rules.disturbed:
        ways.append(max(start_ms - old_ms, old_ms - end_ms, changed_ms - end_ms, 0.0))
    return None if taken_ms is None or first_ms is None else min(ways), changed_ms - old_ms


def _copies(rows: Rows) -> tuple[int, int]:
    """Copies beyond the first of each message, and how many messages are stored oftener than they were tried."""
    tries: dict[str, int] = defaultdict(int)
    copies: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for row in rows:
        is_send = row["event"] == "send" and row["type"] in ("ok", "info")
        if is_send:
            tries[row["msg_key"]] += row["attempt"] or 1
        if row["event"] == "read" or (is_send and row["type"] == "ok"):
            copies[row["msg_key"]].add(_place(row))
    many = {key: len(places) for key, places in copies.items() if len(places) > 1}
    return sum(count - 1 for count in many.values()), sum(count > max(1, tries[key]) for key, count in many.items())


def _place(row: Row) -> tuple[Any, ...]:
    return row["topic"], row["broker_name"], row["queue_id"], row["offset"]


def _holding(row: Row) -> tuple[Any, ...]:
    return row["node"], row["incarnation"], row["op_id"]
