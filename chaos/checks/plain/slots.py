"""Slots counted in plain Python over a history's rows; dataframes/operations.py counts the same."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...oracle.slaves import CODES as STORED_ALONE
from ...oracle.slaves import unreplicated
from ...oracle.world import World
from ..record.slots import OPERATIONS, TRY, Slot, Slots, bucket_ms, counted_nodes, edges
from .history import PlainHistory, Rows


def slots_of_rows(history: PlainHistory, world: World) -> Slots:
    """Between every fault, heal and bound of a quiet stretch: one pass for all checks that ask."""

    def count() -> Slots:
        between = edges(world)
        return Slots(between, slots(history.rows, world, between), history.control.lateness)

    return history.memoized("slots", count)


def slots(rows: Rows, world: World, between: Sequence[float]) -> list[Slot]:
    """All slots of the run's clients and its prober, `between` these edges, ascending."""
    nodes = set(counted_nodes(world))
    groups: dict[tuple[str, str, int, int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        ended = row["event"] in (*OPERATIONS, TRY) and row.get("type") in ("ok", "fail", "info")
        if not ended or row["node"] not in nodes or row["time_ms"] > world.end_ms:
            continue
        began_ms = row["time_ms"] - (row.get("duration_ms") or 0.0)
        passed = bisect_right(between, began_ms), bisect_right(between, row["time_ms"])
        who = (row.get("broker_name") or "") if row["event"] == TRY else row["node"]
        groups[who, row["event"], int(row["time_ms"] // bucket_ms(world)), *passed].append(row)
    return [_slot(key, those, world) for key, those in sorted(groups.items())]


def _slot(key: tuple[str, str, int, int, int], rows: Sequence[Mapping[str, Any]], world: World) -> Slot:
    good_ms, bad_ms = list[float](), list[float]()
    for row in rows:
        (good_ms if _is_good(row, world) else bad_ms).append(row["time_ms"])
    return Slot(
        *key,
        good=len(good_ms),
        bad=len(bad_ms),
        first_good_ms=min(good_ms, default=None),
        last_ms=max([*good_ms, *bad_ms]),
        last_bad_ms=max(bad_ms, default=None),
        first_bad_ms=min(bad_ms, default=None),
    )


def _is_good(row: Mapping[str, Any], world: World) -> bool:
    if row["event"] not in ("send", TRY):
        return row["type"] == "ok" or row.get("code") is not None
    return row["type"] == "ok" or (row.get("code") in STORED_ALONE and _may_be_alone(row, world))


def _may_be_alone(row: Mapping[str, Any], world: World) -> bool:
    began_ms, ended_ms = row["time_ms"] - (row.get("duration_ms") or 0.0), row["time_ms"]
    stretches = unreplicated(world).get(row.get("broker_name") or "", ())
    return any(ended_ms > start_ms and began_ms < end_ms for start_ms, end_ms in stretches)
