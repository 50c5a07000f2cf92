"""How many operations of clients succeeded and failed while availability_floor applies, from the counts of slots.py."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...oracle.intervals import grouped
from ...oracle.quiet import calm_but_stalls
from ...oracle.reach import first_harm_ms
from ...oracle.world import World
from ..findings import rounded
from .control import Control
from .lateness import Lateness
from .slots import OPERATIONS, TRY, Slots, Tally, bucket_ms, of_clients

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Tallies:
    """The operations of a run."""

    whole: Mapping[str, Tally] = field(default_factory=dict)
    """By operation."""
    series: Mapping[str, Mapping[int, Tally]] = field(default_factory=dict)
    """By operation and bucket."""
    faulted: Mapping[str, Tally] = field(default_factory=dict)
    """Those that began after the first fault, act by hand or full disk, by operation."""
    quiet: Mapping[tuple[float, str, str], Tally] = field(default_factory=dict)
    """By the beginning of the quiet stretch that they began and ended in, operation, client."""
    tries: Mapping[tuple[float, str], Tally] = field(default_factory=dict)
    """Tries of sends in quiet stretches, by the beginning of the stretch and broker."""
    first_sent_ms: Mapping[str, float] = field(default_factory=dict)
    """By producer: when its first good send ended."""
    silent: frozenset[str] = frozenset()
    """The NameServers that left look-ups unanswered in quiet stretches."""
    lateness: Lateness = field(default_factory=Lateness)

    def measured(self, world: World) -> Mapping[str, Any]:
        """Ratios of the whole run and of its quiet times, and per bucket [ended, failed] of each operation."""
        series: dict[str, list[list[int]]] = {}
        for operation in (name for name in OPERATIONS if name in self.whole):
            buckets = self.series.get(operation, {})
            counts = [buckets.get(bucket, Tally()) for bucket in range(max(buckets, default=-1) + 1)]
            series[operation] = [[tally.ended, tally.bad] for tally in counts]
        quiet = Tally.total([Tally(), *self.quiet.values()])
        return {
            **{operation: self.whole[operation].ratio for operation in series},
            "quiet": quiet.ratio if quiet.ended else None,
            "quiet_operations": quiet.ended,
            "quiet_stretches": [[rounded(start_ms), rounded(end_ms)] for start_ms, end_ms in calm_but_stalls(world)],
            "bucket_ms": bucket_ms(world),
            "series": series,
        }


def tallies(seen: Slots, world: World, control: Control) -> Tallies:
    """What the slots add up to where a floor may hold."""
    still = calm_but_stalls(world)
    first_ms = first_harm_ms(world)
    first_ms = math.inf if first_ms is None else first_ms
    clients = of_clients(seen.slots, world).items()
    within = [(s.start_ms, slot, tally) for slot, tally in seen.slots.items() for s in still if seen.is_within(slot, s)]
    faulted = ((slot, of) for slot, of in clients if slot.segment and seen.begins_ms(slot) >= first_ms)
    buckets = grouped((slot.operation, (slot.bucket, of)) for slot, of in clients)
    sent = _of_each((slot.node, of) for slot, of in clients if slot.operation == "send")
    return Tallies(
        whole=_of_each((slot.operation, of) for slot, of in clients),
        series={operation: _of_each(of) for operation, of in buckets.items()},
        faulted=_of_each((slot.operation, of) for slot, of in faulted),
        quiet=_of_each(((at, slot.operation, slot.node), of) for at, slot, of in within if slot.operation != TRY),
        tries=_of_each(((at, slot.node), of) for at, slot, of in within if slot.operation == TRY),
        first_sent_ms={node: of.first_good_ms for node, of in sent.items() if of.first_good_ms is not None},
        silent=_silent(control, world),
        lateness=seen.lateness,
    )


def _of_each(found: Iterable[tuple[K, Tally]]) -> dict[K, Tally]:
    return {key: Tally.total(parts) for key, parts in grouped(found).items()}


def _silent(control: Control, world: World) -> frozenset[str]:
    still = calm_but_stalls(world)
    failed = (
        row
        for row in control.rows("name_server_call")
        if row.code is None and any(s.start_ms <= row.began_ms and row.time_ms <= s.end_ms for s in still)
    )
    tried = ((row.decoded or {}).get("tried") or [{"name_server": row.name_server}] for row in failed)
    asked = {str(one.get("name_server")) for each in tried for one in each if one.get("outcome") != "answered"}
    return frozenset(world.owners[address] for address in asked if address in world.owners)
