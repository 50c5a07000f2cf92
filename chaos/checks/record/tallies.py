"""How many operations of clients succeeded and failed while availability_floor applies, from the counts of slots.py."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

from ...oracle.intervals import grouped
from ...oracle.quiet import calm_but_stalls
from ...oracle.reach import first_harm_ms
from ...oracle.world import World
from ..findings import rounded
from .control import Control
from .slots import OPERATIONS, TRY, Slot, Tally, bucket_ms, edges, of_clients

K = TypeVar("K", bound=Hashable)


class Tallies:
    """The operations of a run, added up by what each question asks about."""

    def __init__(self, slots: Mapping[Slot, Tally], world: World, control: Control) -> None:
        between, first_ms, clients = edges(world), first_harm_ms(world), of_clients(slots, world).items()
        quiet = [
            (still.start_ms, slot, of)
            for slot, of in slots.items()
            for still in calm_but_stalls(world)
            if slot.segment and between[slot.segment - 1] >= still.start_ms
            if slot.until < len(between) and between[slot.until] <= still.end_ms
        ]
        begun = ((between[slot.segment - 1], slot, of) for slot, of in clients if slot.segment)
        faulted = ((slot.operation, of) for at_ms, slot, of in begun if first_ms is not None and at_ms >= first_ms)
        buckets = grouped((slot.operation, (slot.bucket, of)) for slot, of in clients)
        sent = _of_each((slot.node, of) for slot, of in clients if slot.operation == "send")
        self.lateness = control.lateness
        self.whole = _of_each((slot.operation, of) for slot, of in clients)
        """By operation."""
        self.series = {operation: _of_each(of) for operation, of in buckets.items()}
        """By operation and bucket."""
        self.faulted = _of_each(faulted)
        """Those that began after the first fault, act by hand or full disk, by operation."""
        self.quiet = _of_each(((at, slot.operation, slot.node), of) for at, slot, of in quiet if slot.operation != TRY)
        """By the beginning of the quiet stretch that they began and ended in, operation, client."""
        self.tries = _of_each(((at, slot.node), of) for at, slot, of in quiet if slot.operation == TRY)
        """Tries of sends in quiet stretches, by the beginning of the stretch and broker."""
        self.first_sent_ms = {node: of.first_good_ms for node, of in sent.items() if of.first_good_ms is not None}
        """By producer: when its first good send ended."""
        self.silent = _silent(control, world)
        """The NameServers that left look-ups unanswered in quiet stretches."""

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


def _of_each(found: Iterable[tuple[K, Tally]]) -> dict[K, Tally]:
    return {key: Tally.total(parts) for key, parts in grouped(found).items()}


def _silent(control: Control, world: World) -> frozenset[str]:
    still = calm_but_stalls(world)
    failed = (
        row
        for row in control.rows("name_server_call")
        if row.code is None and any(s.start_ms <= row.began_ms and row.time_ms <= s.end_ms for s in still)
    )
    tried = (row.said.get("tried") or [{"name_server": row.name_server}] for row in failed)
    asked = {str(one.get("name_server")) for each in tried for one in each if one.get("outcome") != "answered"}
    return frozenset(world.owners[address] for address in asked if address in world.owners)
