"""What dataframes/deliveries.py finds, in plain Python over a history's rows: for tests, and for whole virtual runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nemesrv.chaos.checkers.messages_delivered import Slow
from nemesrv.chaos.oracle.deliveries import PROMPT_MS
from nemesrv.chaos.oracle.world import World


def slow_of(rows: Iterable[Mapping[str, Any]], world: World) -> tuple[list[float], list[Slow]]:
    """How long each prompt message took, and the others; once a group."""
    alone = bool((world.run.get("workload") or {}).get("broadcasting"))
    sends: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    got: dict[tuple[tuple[Any, ...], str], list[Mapping[str, Any]]] = {}
    for row in rows:
        message = tuple(row.get(name) for name in ("topic", "broker_name", "queue_id", "offset", "msg_key"))
        if row["event"] == "send" and row.get("type") == "ok":
            sends.setdefault(message, row)
        elif row["event"] == "receive":
            got.setdefault((message, row["node"] if alone else ""), []).append(row)
    prompt: list[float] = []
    slow: list[Slow] = []
    for (topic, broker_name, queue_id, offset, msg_key), send in sends.items():
        for member in [node.name for node in world.of_kind("consumer")] if alone else [""]:
            receipts = got.get(((topic, broker_name, queue_id, offset, msg_key), member), [])
            first = min(receipts, key=lambda row: row["time_ms"], default=None)
            digests = {send.get("digest"), *(row.get("digest") for row in receipts)} - {None}
            changed = send.get("digest") is not None and len(digests) > 1
            if first is not None and not changed and first["time_ms"] - send["time_ms"] <= PROMPT_MS:
                prompt.append(first["time_ms"] - send["time_ms"])
                continue
            where = topic, broker_name, queue_id, offset, member
            when = (None, None) if first is None else (first["time_ms"], first["node"])
            slow.append(Slow(send["time_ms"], msg_key, send["node"], *where, *when, changed))
    return prompt, slow
