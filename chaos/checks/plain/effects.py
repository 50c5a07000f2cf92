"""Effects of faults on tries and pulls, counted over a history's rows; dataframes/effects.py counts the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from .history import Rows

_CALLS = ("send_attempt", "pull")
Asked = tuple[str, str | None, str | None, float, float, float]
"""fault_id, the address that is hit, who dials it (None: anybody), from when to when, slow_ms (0: no delay)."""


def effects_of_rows(rows: Rows, asked: Sequence[Asked]) -> dict[str, dict[str, int]]:
    """fault_id → failed, or slow → rows."""
    by_address: dict[str | None, list[Asked]] = defaultdict(list)
    for one in asked:
        by_address[one[1]].append(one)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["event"] not in _CALLS:
            continue
        address = row.get("address") or row.get("name_server")
        for one in by_address.get(address, ()) if address is not None else ():
            if kind := _shown(row, one):
                found[one[0]][kind] += 1
    return {fault_id: dict(kinds) for fault_id, kinds in found.items()}


def _shown(row: Mapping[str, Any], one: Asked) -> str:
    """The kind of effect that this row shows of the fault; "": none."""
    _, _, by, start_ms, until_ms, slow_ms = one
    took_ms: float = row.get("duration_ms") or 0.0
    at_ms: float = row["time_ms"]
    if not start_ms <= at_ms <= until_ms or by not in (None, row["node"]):
        return ""
    if row.get("type") in ("fail", "info") and row.get("code") is None:
        return "failed"
    return "slow" if 0 < slow_ms <= took_ms else ""
