"""Messages that came twice, counted in plain Python over a history's rows: dataframes/repeats.py holds the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ...oracle.commits import Redelivery
from ...verdict import FINDINGS_MAX
from ..record.repeats import TOO_LATE, Again
from ..tolerance import Tolerance
from .history import Row, Rows


def repeats_of_rows(
    rows: Rows, rules: Redelivery, tolerance: Tolerance, *, each_alone: bool
) -> tuple[int, Again, Again]:
    """How many messages were received, what of them again, and what was stored again.

    `each_alone`: every consumer is a group of its own.
    """
    taken = _first_of_holdings(rows, "queue_taken")
    receipts: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["event"] == "receive" and row["msg_key"] is not None:
            receipts[row["msg_key"], *_place(row), row["node"] if each_alone else ""].append(row)
    again = 0
    wrong, late = list[dict[str, Any]](), list[dict[str, Any]]()
    oldest_ms: float | None = None
    for each in receipts.values():
        in_order = sorted(each, key=lambda row: (row["time_ms"], row["node"], row["seq"]))
        times: dict[tuple[Any, ...], int] = defaultdict(int)
        for number, row in enumerate(in_order):
            times[_holding(row)] += row["op_id"] is not None
            if not number or _sent_back(rules, in_order[number - 1], row):
                continue
            again += 1
            before = in_order[number - 1]
            over_ms, age_ms, changed_ms = _over(rules, before, row, taken)
            if age_ms is not None:
                oldest_ms = age_ms if oldest_ms is None else max(oldest_ms, age_ms)
            twice = times[_holding(row)] > 1
            shown = {
                **row,
                "at_ms": before["time_ms"],
                "to_ms": row["time_ms"],
                "what": _what(twice=twice, over_ms=over_ms),
                "client": row["node"],
                "first_client": before["node"],
                "changed_ms": changed_ms,
                "over_ms": over_ms,
            }
            if twice or (over_ms is not None and over_ms > tolerance.unknown_up_to_ms):
                wrong.append(shown)
            elif over_ms is None or over_ms > tolerance.valid_up_to_ms:
                late.append(shown)
    messages = len({key for key, *_ in receipts})
    return messages, Again(again, len(wrong), len(late), oldest_ms, _first(wrong or late)), _copies(rows)


def received_too_late(rows: Rows, tolerance: Tolerance) -> Again:
    """Receipts of a queue that its consumer had given up."""
    ended = _first_of_holdings(rows, "queue_dropped")
    wrong, late = list[dict[str, Any]](), list[dict[str, Any]]()
    for row in rows:
        if row["event"] != "receive" or row["op_id"] is None or _holding(row) not in ended:
            continue
        ended_ms = ended[_holding(row)]
        over_ms = row["time_ms"] - ended_ms
        if over_ms > tolerance.valid_up_to_ms:
            times = {"at_ms": ended_ms, "to_ms": row["time_ms"], "over_ms": over_ms}
            shown = {**row, "what": TOO_LATE, "client": row["node"], **times}
            (wrong if over_ms > tolerance.unknown_up_to_ms else late).append(shown)
    return Again(0, len(wrong), len(late), None, _first(wrong or late))


def _first_of_holdings(rows: Rows, event: str) -> dict[tuple[Any, ...], float]:
    """When each holding of a queue had its first row of this event."""
    first: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if row["event"] == event:
            first.setdefault(_holding(row), row["time_ms"])
    return first


def _what(*, twice: bool, over_ms: float | None) -> str:
    if twice:
        return "received twice from one holding of its queue"
    if over_ms is None:
        return "nothing says when its queue was taken"
    return "received again, and no change of hands explains it"


def _first(found: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple(sorted(found, key=lambda one: (one["at_ms"], one["msg_key"], one["to_ms"]))[:FINDINGS_MAX])


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
) -> tuple[float | None, float | None, float | None]:
    """How far the older holding's receipt lies outside of all that explains it, how long before the change of hands,
    and when that was."""
    taken_ms, first_ms = taken.get(_holding(row)), taken.get(_holding(before))
    older_now = taken_ms is not None and first_ms is not None and taken_ms < first_ms
    changed_ms, old_ms = (first_ms, row["time_ms"]) if older_now else (taken_ms, before["time_ms"])
    if changed_ms is None:
        return None, None, None
    ways = [max(changed_ms - old_ms - rules.uncommitted_ms, old_ms - changed_ms - rules.owners_ms, 0.0)]
    for start_ms, end_ms in rules.disturbed:
        ways.append(max(start_ms - old_ms, old_ms - end_ms, changed_ms - end_ms, 0.0))
    return None if taken_ms is None or first_ms is None else min(ways), changed_ms - old_ms, changed_ms


def _copies(rows: Rows) -> Again:
    """Copies beyond the first of each message; wrong is one that is stored oftener than it was tried."""
    tries: dict[str, int] = defaultdict(int)
    stored: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        is_send = row["event"] == "send" and row["type"] in ("ok", "info")
        if is_send:
            tries[row["msg_key"]] += row["attempt"] or 1
        if row["event"] == "read" or (is_send and row["type"] == "ok"):
            stored[row["msg_key"]].append(row)
    again, wrong = 0, list[dict[str, Any]]()
    for key, copies in stored.items():
        places, times = {_place(row) for row in copies}, [row["time_ms"] for row in copies]
        again += len(places) - 1
        tried = max(1, tries[key])
        if len(places) > tried:
            what = f"stored {len(places)} times by {tried} tries"
            shown = dict(zip(_PLACE, max(places), strict=True))
            wrong.append({**shown, "msg_key": key, "what": what, "at_ms": min(times), "to_ms": max(times)})
    return Again(again, len(wrong), 0, None, _first(wrong))


_PLACE = ("topic", "broker_name", "queue_id", "offset")


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _PLACE)


def _holding(row: Row) -> tuple[Any, ...]:
    return row["node"], row["incarnation"], row["op_id"]
