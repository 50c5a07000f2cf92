"""How many tries and pulls show that a fault had an effect: they failed, or took as long as a link was slow."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...arrow import np, pc
from ...oracle.world import World
from ..check import Table
from .part import Part, Reading, Together, floats, is_one_of


class Asked(NamedTuple):
    """What of a fault a row may show."""

    fault_id: str
    address: str | None
    """That is hit."""
    by: str | None
    """Who dials it, or drops it; None: anybody."""
    only: str
    """The kind of effect that counts; empty: all, those of tries and pulls among them."""
    start_ms: float
    until_ms: float
    slow_ms: float
    """How long a call over the link must take at least to show it; 0 for a fault that does not delay."""
    again_ms: float = 0.0
    """Until when the start of a next process shows it, which may take as long as a program needs to come up."""


def effects(asked: Callable[[World], Iterable[Asked]]) -> Reading[Table[str, Mapping[str, int]]]:
    """What is counted of the faults that are asked about: fault_id → failed, or slow → rows."""

    def of(part: Part, world: World) -> Table[str, Mapping[str, int]]:
        faults = [one for one in asked(world) if not one.only]
        rows = part.of("send_attempt", "pull") if faults else part.table.slice(0, 0)
        rows = rows.filter(pc.is_valid(pc.coalesce(rows["address"], rows["name_server"])))
        failed = is_one_of(rows["type"], ("fail", "info")).to_numpy() & pc.is_null(rows["code"]).to_numpy()
        took_ms = floats(rows["duration_ms"], 0.0)
        tells = failed | (took_ms >= min((one.slow_ms for one in faults if one.slow_ms > 0), default=np.inf))
        rows, failed, took_ms = rows.filter(tells), failed[tells], took_ms[tells]
        at_ms, found = floats(rows["time_ms"]), dict[str, dict[str, int]]()
        address = pc.coalesce(rows["address"], rows["name_server"])
        for one in faults:
            of_fault = (one.start_ms <= at_ms) & (at_ms <= one.until_ms)
            if one.address is None or not of_fault.any():
                continue
            of_fault &= pc.equal(address, one.address).to_numpy()
            if one.by is not None:
                of_fault &= pc.equal(rows["node"], one.by).to_numpy()
            slow = of_fault & ~failed & (took_ms >= one.slow_ms) if one.slow_ms > 0 else of_fault & False
            for kind, shown in (("failed", of_fault & failed), ("slow", slow)):
                if count := int(shown.sum()):
                    of_kind = found.setdefault(one.fault_id, {})
                    of_kind[kind] = of_kind.get(kind, 0) + count
        return Table(found)

    return Reading(
        Together.ROW, ("send_attempt", "pull"), ("type", "address", "name_server", "code", "duration_ms"), of
    )
