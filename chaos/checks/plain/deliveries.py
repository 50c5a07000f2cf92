"""What dataframes/deliveries.py finds, in plain Python over a history's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...oracle.deliveries import PROMPT_MS, askers
from ...oracle.world import World
from ..record.slow_messages import Slow
from .history import Rows


def slow_of(rows: Rows, world: World) -> tuple[list[float], list[Slow]]:
    """How long each prompt message took, and the others; once a group."""
    groups = askers(world)
    group_of = {member: group.name for group in groups for member in group.members}
    sends: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    got: dict[tuple[tuple[Any, ...], str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["event"] == "send" and row.get("type") == "ok":
            sends.setdefault(_message(row), row)
        elif row["event"] == "receive":
            got.setdefault((_message(row), group_of[row["node"]]), []).append(row)
    prompt: list[float] = []
    slow: list[Slow] = []
    for (topic, broker_name, queue_id, offset, msg_key), send in sends.items():
        for group in (one for one in groups if one.topic in ("", topic)):
            receipts = got.get(((topic, broker_name, queue_id, offset, msg_key), group.name), [])
            first = min(receipts, key=lambda row: row["time_ms"], default=None)
            digests = {send.get("digest"), *(row.get("digest") for row in receipts)} - {None}
            changed = send.get("digest") is not None and len(digests) > 1
            if first is not None and not changed and first["time_ms"] - send["time_ms"] <= PROMPT_MS:
                prompt.append(first["time_ms"] - send["time_ms"])
                continue
            one = Slow(send["time_ms"], msg_key, send["node"], topic, broker_name, queue_id, offset, group.name)
            if first is not None:
                one = one._replace(received_ms=first["time_ms"], receiver=first["node"])
            slow.append(one._replace(changed=changed))
    return prompt, slow


def _message(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("topic", "broker_name", "queue_id", "offset", "msg_key"))
