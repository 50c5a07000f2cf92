"""What logs would have left of a recorded history: the rows that a line tells, as exact as lines are. Pure.

Faults, phases, traffic and everything that only the harness knows is taken away; of the rest what no log of RocketMQ's
says (docs: observability.md's shapes): answers to polls, heartbeats after a channel's first, registrations that a 5.x
NameServer already knew. Times are the middle of their whole second, as `nemesrv import` has them. With it the inference
is measured on recorded runs whose faults are known.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from nemesrv.operations.logs_to_rows.signs import HARNESS, value_of

SECOND_MS = 1_000.0
_NEVER = frozenset({
    "fault", "phase", "gone", "probe", "link", "verified", "clock", "admin", "served_list", "not_done", "host_clock",
    "rows_missing", "timer_lag", "send", "send_attempt", "pull", "receive", "commit", "read", "read_done", "assigned",
    "queue_taken", "queue_dropped", "pull_delayed", "broker_isolated", "route_answer", "unasked_answer", "offset_reset",
    "run_end",
})  # fmt: skip


def seen_in_logs(
    rows: Iterable[Mapping[str, Any]],
    *,
    missing: Collection[str] = (),
    ends: Mapping[str, float] | None = None,
    whole_seconds: bool = True,
) -> list[dict[str, Any]]:
    """The rows that logs tell, in order of time; `missing` nodes have no log, `ends` says whose log ends early."""
    left: list[dict[str, Any]] = []
    is_5x = False
    servers: set[str] = set()
    known: set[tuple[str, str]] = set()
    greeted: set[tuple[str, Any]] = set()
    for given in sorted(rows, key=lambda row: (row["time_ms"], row["node"], row.get("seq") or 0)):
        row = dict(given)
        node, event = str(row["node"]), row["event"]
        value: Mapping[str, Any] = value_of(row)
        if event == "run_begin":
            is_5x = value.get("profile") == "5.x"
            kept = ("profile", "timers", "node_timers", "time_scale", "settings", "origin_wall_ms")
            row["value"] = {key: value[key] for key in kept if key in value} | {"imported": True}
            left.append(row)
            continue
        if event == "node":
            if row.get("source") not in HARNESS:
                left.append(row)
                servers |= {str(row["source"])} if value.get("kind") in ("name_server", "broker", "slave") else set()
            continue
        if event in _NEVER or node in HARNESS or node in missing:
            continue
        if ends and row["time_ms"] > ends.get(node, math.inf):
            continue
        if event == "started" and node in servers:
            known -= {key for key in known if key[0] == node}
        if event == "registration":
            key = (node, str(row.get("address")))
            if is_5x and key in known:
                continue
            known.add(key)
        elif event == "broker_dropped":
            known.discard((node, str(row.get("address"))))
        elif _unsaid(row, is_5x):
            continue
        elif event == "client_heartbeat":
            if (node, row.get("op_id")) in greeted:
                continue
            greeted.add((node, row.get("op_id")))
        elif event == "stopped" and value_kind(left, node) in ("name_server",):
            continue  # no line says it
        if event == "register" and row.get("type") == "ok":
            row["duration_ms"] = None
        if whole_seconds and node in servers:
            row["time_ms"] = math.floor(row["time_ms"] / SECOND_MS) * SECOND_MS + SECOND_MS / 2
        if not isinstance(row.get("value"), list):
            row["value"] = {**value, "learnt": "log"}
        left.append(row)
    return left


def _unsaid(row: Mapping[str, Any], is_5x: bool) -> bool:
    """A periodic task but a 5.x NameServer's scan; a poll that was answered."""
    if row["event"] == "scheduled_task":
        return not (is_5x and row.get("f") == "scanNotActiveBroker")
    return row["event"] == "name_server_call" and row.get("type") == "ok"


def value_kind(rows: Iterable[Mapping[str, Any]], node: str) -> str:
    """What kind of node a `node` row says it is."""
    found = (row for row in rows if row["event"] == "node" and row.get("source") == node)
    return next((str((row.get("value") or {}).get("kind", "")) for row in found), "")
