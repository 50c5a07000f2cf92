"""What the Spark queries of dataframes/ count of the traffic, in plain Python over a history's rows.

Counts and examples are the same (tests/chaos/test_engines.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...oracle.intervals import Stretch
from ...oracle.lost_brokers import Absence
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import FINDINGS_MAX
from ..record.broker_uses import Use, Uses, lost_at
from ..record.route_tables import exists
from ..record.timed import Timed, Who, level_of
from .history import PlainHistory, Row, Rows


def uses_of_rows(history: PlainHistory, world: World, absences: Sequence[Absence]) -> dict[int, Uses]:
    """The absence's id → what its client did. A retry chooses its broker from the route that its send began with."""
    rows = history.rows
    topic_of = {
        (row["node"], row["op_id"]): row["topic"] for row in rows if row["event"] == "send" and row["type"] == "invoke"
    }
    began = [row for row in rows if row["event"] in ("send_attempt", "pull") and row["type"] == "invoke"]
    held: dict[str, set[str]] = defaultdict(set)
    for topic in history.control.rows("topic"):
        if exists(topic.value) and topic.topic is not None:
            held[topic.node].add(topic.topic)
    found: dict[int, Uses] = {}
    for absence in absences:
        bounded = {topic for other in absence.others for topic in held.get(other, ())}
        uses = Uses()
        for row in began:
            at_ms = row["time_ms"]
            if row["node"] != absence.client or not absence.start_ms <= at_ms < absence.end_ms:
                continue
            chosen_ms = at_ms - (world.timers.T_ms if row.get("attempt") else 0.0)
            after = int(at_ms >= absence.from_ms)
            own = lost_at(absence, world)
            is_there = own is None or row.get("address") == own or (row.get("address") is None and not absence.address)
            if row["broker_name"] != broker_name(absence.broker) or not is_there:
                uses = uses.plus(Uses(after=after))
                continue
            reaches_ms = max(0.0, min(chosen_ms - absence.from_ms, absence.end_ms - at_ms))
            topic_ = row.get("topic") or topic_of.get((row["node"], row.get("op_id")))
            if not reaches_ms:
                uses = uses.plus(Uses(after=after, last_ms=chosen_ms))
            elif topic_ in bounded:
                worst = Use(reaches_ms, at_ms, str(topic_), row.get("op_id") or "", chosen_ms - absence.from_ms)
                uses = uses.plus(Uses(after=after, late=1, last_ms=chosen_ms, worst=worst))
            else:
                uses = uses.plus(Uses(after=after))
        found[absence.id] = uses
    return found


class SendFates(NamedTuple):
    """Acknowledged sends by what became of their messages."""

    received: list[Row]
    only_in_final_reads: list[Row]
    lost: list[Row]
    unread: list[Row]
    unsafe: list[Row]
    """Of them all: acknowledged while their broker had no slave."""


def fates_of_rows(history: PlainHistory, without_slaves: Mapping[str, Sequence[Stretch]]) -> SendFates:
    """What became of the acknowledged sends, each in the history's order."""
    rows = history.rows
    received = {row["msg_key"] for row in rows if row["event"] == "receive"}
    read = {row["msg_key"] for row in rows if row["event"] == "read"}
    whole = {(row.topic, row.broker_name, row.queue_id) for row in history.control.rows("read_done")}
    found = SendFates([], [], [], [], [])
    for row in rows:
        if row["event"] != "send" or row["type"] != "ok":
            continue
        if row["msg_key"] in received:
            found.received.append(row)
        elif row["msg_key"] in read:
            found.only_in_final_reads.append(row)
        else:
            is_lost = (row["topic"], row["broker_name"], row["queue_id"]) in whole
            (found.lost if is_lost else found.unread).append(row)
        if _is_unsafe(row, without_slaves):
            found.unsafe.append(row)
    return found


def first_of(sends: Sequence[Row]) -> list[Row]:
    """The first of these, one a message."""
    by_key = {row["msg_key"]: row for row in sends}
    return sorted(by_key.values(), key=lambda row: (row["time_ms"], row["msg_key"]))[:FINDINGS_MAX]


def _is_unsafe(send: Row, without_slaves: Mapping[str, Sequence[Stretch]]) -> bool:
    stretches = without_slaves.get(send["broker_name"], ())
    return any(s.start_ms <= _began_ms(send) and send["time_ms"] <= s.end_ms for s in stretches)


def order_of_rows(rows: Rows, *, ordered: bool) -> tuple[tuple[int, int, int], list[dict[str, Any]]]:
    """How many sends, and receipts where the workload is `ordered`, and how many are behind a later one: of one process
    to one queue, or of one holding; the first of those."""
    groups: dict[tuple[Any, ...], list[tuple[int, float, float, Row]]] = defaultdict(list)
    kinds = {"send": 0, "receipt": 0}
    for row in rows:
        place = row.get("topic"), row.get("broker_name"), row.get("queue_id")
        if row.get("offset") is None:
            continue
        if row["event"] == "send" and row["type"] == "ok":
            who = row["node"], row["incarnation"]
            groups["send", *who, *place].append((row["offset"], _began_ms(row), row["time_ms"], row))
            kinds["send"] += 1
        elif row["event"] == "receive" and ordered:
            holding = row["node"], row["incarnation"], row.get("op_id")
            groups["receipt", *holding, *place].append((row["offset"], row["seq"], row["seq"], row))
            kinds["receipt"] += 1
    wrong: list[tuple[str, float, Row]] = []
    for (what, *_), found in groups.items():
        ended, above = float("inf"), None
        for offset, began, end, row in sorted(found, key=lambda one: one[:3], reverse=True):
            if ended < began or (what == "send" and offset == above):
                wrong.append((what, began, row))
            ended, above = min(ended, end), offset
    first = sorted(wrong, key=lambda one: (*one[:2], one[2]["msg_key"]))[:FINDINGS_MAX]
    shown = [
        {**row, "what": what, "from_ms": _began_ms(row) if what == "send" else row["time_ms"], "to_ms": row["time_ms"]}
        for what, _, row in first
    ]
    return (kinds["send"], kinds["receipt"], len(wrong)), shown


def _began_ms(row: Row) -> float:
    return float(row["time_ms"] - (row.get("duration_ms") or 0.0))


def latencies_of_rows(
    rows: Rows, sends: Mapping[tuple[str, str], Sequence[Stretch]], delivery: Sequence[Stretch], least_ms: float
) -> dict[Who, Timed]:
    """What brokers' answers to sends, and the delivery of their messages, took in these stretches of each: of sends by
    producer and broker name."""
    found: dict[Who, Timed] = {}
    took: dict[Who, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row["event"] == "send_attempt" and row["type"] == "ok" and row.get("duration_ms") is not None:
            link = row["node"], row["broker_name"]
            since_ms = _since(row["time_ms"] - row["duration_ms"], row["time_ms"], sends.get(link, ()))
            if since_ms is not None:
                took[Who("send", row["broker_name"], since_ms)].append((row["duration_ms"], row["time_ms"]))
    if delivery:
        begins_ms, ends_ms = min(s.start_ms for s in delivery), max(s.end_ms for s in delivery)
        sent: dict[str, float] = {}
        got: dict[str, tuple[float, str]] = {}  # with the broker that handed it over
        for row in rows:
            if not begins_ms <= row["time_ms"] <= ends_ms:
                continue
            if row["event"] == "send" and row["type"] == "ok":
                sent.setdefault(row["msg_key"], row["time_ms"])
            elif row["event"] == "receive":
                receipt = row["time_ms"], row["broker_name"]
                got[row["msg_key"]] = min(receipt, got.get(row["msg_key"], receipt))
        for key, (at_ms, broker) in got.items():
            if key in sent:
                since_ms = _since(sent[key], max(at_ms, sent[key]), delivery)
                if since_ms is not None:
                    took[Who("delivery", broker, since_ms)].append((max(0.0, at_ms - sent[key]), at_ms))
    for who, each in took.items():
        over: dict[int, int] = defaultdict(int)
        for took_ms, _ in each:
            if (level := level_of(took_ms, least_ms)) >= 0:
                over[level] += 1
        slow = [at_ms for took_ms, at_ms in each if took_ms > least_ms]
        slowest_ms = max(took_ms for took_ms, _ in each)
        found[who] = Timed(len(each), dict(over), slowest_ms, min(slow, default=None))
    return found


def _since(began_ms: float, ended_ms: float, stretches: Sequence[Stretch]) -> float | None:
    inside = (s.start_ms for s in stretches if began_ms >= s.start_ms and ended_ms <= s.end_ms)
    return next(inside, None)
