"""What dataframes/uses.py counts, in plain Python over a history's rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...oracle.time_outs import STORED, avoidance, send_rules
from ...oracle.world import World
from ..record.control import Control
from ..record.turns import Routes, Step, Stepped, goes_round, judged
from ..record.uses import (
    PART_MS,
    BrokerShares,
    GivenUp,
    OddTry,
    Queue,
    Read,
    SameBroker,
    Segment,
    SlaveRead,
    edges,
    least_left_ms,
    ran_out,
    slave_addresses,
)
from .history import PlainHistory


def shares_of(history: PlainHistory, world: World) -> BrokerShares:
    """What clients used, by these rows."""
    rows, control = history.rows, history.control
    between, avoided = edges(control, world), avoidance(world)

    def edge(at_ms: float) -> float:
        return between[bisect_right(between, at_ms) - 1]

    sends: dict[Segment, Counter[Queue]] = defaultdict(Counter)
    failed: Counter[tuple[str, float]] = Counter()
    reads: dict[Read, Counter[int]] = defaultdict(Counter)
    of_slaves, slaves = defaultdict[SlaveRead, Counter[int]](Counter), set(slave_addresses(world))
    tried: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    ended: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    lost: list[Mapping[str, Any]] = []
    for row in rows:
        event, type_ = row["event"], row.get("type")
        begun_ms = row["time_ms"] - (row.get("duration_ms") or 0.0)
        if event == "send" and type_ == "ok":
            segment = Segment(row["node"], row["incarnation"], row["topic"], edge(begun_ms))
            sends[segment][row["broker_name"], row["queue_id"]] += 1
        if event in ("send", "send_attempt"):
            took_ms = (row.get("duration_ms") or 0.0) if event == "send_attempt" else 0.0
            if type_ in ("fail", "info") or (avoided is not None and took_ms >= avoided.slow_ms):
                for at_ms in {edge(begun_ms), edge(row["time_ms"])}:
                    failed[row["node"], at_ms] += 1
        if event == "send_attempt" and type_ == "invoke":
            tried[row["node"], row["incarnation"], row["op_id"], row["attempt"]] = row
        elif event == "send_attempt":
            ended[row["node"], row["incarnation"], row["op_id"], row["attempt"]] = row
        elif event == "send" and type_ in ("fail", "info"):
            lost.append(row)
        if event == "pull" and type_ == "invoke" and row["address"] in slaves:
            of_slaves[SlaveRead(row["node"], row["broker_name"], row["address"])][int(row["time_ms"] // PART_MS)] += 1
        if event == "receive" or (event == "pull" and type_ == "ok"):
            of = Read(row["node"], row["topic"], row["broker_name"], row["queue_id"])
            reads[of][int(row["time_ms"] // PART_MS)] += 1
    again = [key for key in tried if key[3] and (*key[:3], key[3] - 1) in tried]
    same = [
        SameBroker(node, incarnation, op_id, attempt, one["broker_name"], one["time_ms"])
        for (node, incarnation, op_id, attempt), one in ((key, tried[key]) for key in again)
        if one["broker_name"] == tried[node, incarnation, op_id, attempt - 1]["broker_name"]
    ]
    steps = _steps(rows, {at for at, times in failed.items() if times}, edge, goes_round(world))
    in_turn, strays = judged(steps, Routes(control))
    return BrokerShares(
        sends=sends,
        failed=failed,
        retries=len(again),
        same=tuple(sorted(same, key=lambda one: one.time_ms)),
        odd=_odd([(*key, tried[key]) for key in again], ended, control, world),
        given_up=_given_up(lost, ended, world),
        in_turn=in_turn,
        strays=strays,
        reads=reads,
        at_slaves=of_slaves,
    )


def _steps(
    rows: Sequence[Mapping[str, Any]],
    failing: Collection[tuple[str, float]],
    edge: Callable[[float], float],
    producers: Collection[str],
) -> dict[Step, Stepped]:
    """Those of these producers, between edges where something failed."""
    sends = [row for row in rows if row["event"] in ("send", "send_attempt") and row["node"] in producers]
    # A send that began before such an edge belongs to what was before it, whenever its first try was.
    began = ((row, edge(row["time_ms"] - (row["duration_ms"] or 0.0))) for row in sends if row["event"] == "send")
    of_send = [row for row, began_ms in began if (row["node"], began_ms) in failing]
    topics = {(row["node"], row["incarnation"], row["op_id"]): row["topic"] for row in of_send}
    stored = {(row["node"], row["incarnation"], row["op_id"]) for row in of_send if row["type"] == "ok"}
    last: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    begun: dict[tuple[Any, ...], float] = {}
    steps: dict[Step, Stepped] = {}
    for row in sends:
        at_ms = edge(row["time_ms"])
        if row["event"] == "send" or row["type"] != "invoke" or (row["node"], at_ms) not in failing:
            continue
        process = row["node"], row["incarnation"]
        op = *process, row["op_id"]
        if row["attempt"] == 0:
            begun[op] = at_ms
        if op not in topics:
            continue
        ring = *process, topics[op], at_ms
        before, last[ring] = last.get(ring), row
        former = op if before is None else (*process, before["op_id"])
        if before is None or (op != former and former not in stored):
            continue
        if begun.get(op) == begun.get(former) == at_ms:
            was, now = ((one["broker_name"], one["queue_id"]) for one in (before, row))
            step = Step(*process, topics[op], at_ms, was, now, op == former)
            times, first_ms = steps.get(step, Stepped(0, row["time_ms"]))
            steps[step] = Stepped(times + 1, first_ms)
    return steps


def _odd(
    again: Sequence[tuple[Any, ...]],
    ended: Mapping[tuple[Any, ...], Mapping[str, Any]],
    control: Control,
    world: World,
) -> tuple[OddTry, ...]:
    rules = send_rules(world)
    over = ran_out(control, rules)
    found = []
    for node, incarnation, op_id, attempt, row in again:
        before = node, incarnation, op_id, attempt - 1
        if node in rules and before in ended:
            how, code = ended[before]["type"], ended[before].get("code")
            kind = rules[node].odd(attempt, before=how, code=code, ran_out=before in over)
            if kind:
                found.append(OddTry(node, incarnation, op_id, attempt, row["broker_name"], row["time_ms"], kind))
    return tuple(sorted(found, key=lambda one: one.time_ms))


def _given_up(
    lost: Sequence[Mapping[str, Any]], ended: Mapping[tuple[Any, ...], Mapping[str, Any]], world: World
) -> tuple[GivenUp, ...]:
    rules = send_rules(world)
    last: dict[tuple[Any, ...], int] = {}
    for node, incarnation, op_id, attempt in ended:
        op = node, incarnation, op_id
        if attempt is not None:
            last[op] = max(attempt, last.get(op, 0))
    found = []
    for send in lost:
        node, incarnation, op_id = op = send["node"], send["incarnation"], send["op_id"]
        if op not in last or node not in rules:
            continue
        one, rule = ended[*op, last[op]], rules[node]
        left_ms = rule.time_ms - (one["time_ms"] - (send["time_ms"] - (send.get("duration_ms") or 0.0)))
        over = one["type"] == "ok" or one.get("code") in STORED or rule.ends(one.get("code"))
        if not over and last[op] + 1 < rule.tries and left_ms > least_left_ms(world):
            broker = one["broker_name"]
            found.append(GivenUp(node, incarnation, op_id, last[op], broker, one["time_ms"], left_ms))
    return tuple(sorted(found, key=lambda one: one.ended_ms))
