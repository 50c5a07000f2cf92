"""How many tries and pulls show that a fault had an effect: they failed, or took as long as a link was slow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...oracle.world import World
from ..check import Facts
from .part import Part, Reading, Together, floats, is_one_of

Asked = tuple[str, str | None, str | None, float, float, float]
"""fault_id, the address that is hit, who dials it (None: anybody), from when to when, slow_ms (0: no delay)."""


@dataclass(frozen=True)
class Effects(Facts):
    """fault_id → failed, or slow → rows."""

    of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def effects(asked: Callable[[World], Sequence[Asked]]) -> Reading[Effects]:
    """What is counted of the faults that are asked about."""

    def of(part: Part, world: World) -> Effects:
        import numpy as np
        import pyarrow.compute as pc

        faults = asked(world)
        rows = part.of("send_attempt", "pull") if faults else part.table.slice(0, 0)
        rows = rows.filter(pc.is_valid(pc.coalesce(rows["address"], rows["name_server"])))
        failed = is_one_of(rows["type"], ("fail", "info")).to_numpy() & pc.is_null(rows["code"]).to_numpy()
        took_ms = floats(rows["duration_ms"], 0.0)
        tells = failed | (took_ms >= min((slow_ms for *_, slow_ms in faults if slow_ms > 0), default=np.inf))
        rows, failed, took_ms = rows.filter(tells), failed[tells], took_ms[tells]
        at_ms, found = floats(rows["time_ms"]), dict[str, dict[str, int]]()
        address = pc.coalesce(rows["address"], rows["name_server"])
        for fault_id, hit, by, start_ms, until_ms, slow_ms in faults:
            of_fault = (start_ms <= at_ms) & (at_ms <= until_ms)
            if hit is None or not of_fault.any():
                continue
            of_fault &= pc.equal(address, hit).to_numpy()
            if by is not None:
                of_fault &= pc.equal(rows["node"], by).to_numpy()
            slow = of_fault & ~failed & (took_ms >= slow_ms) if slow_ms > 0 else of_fault & False
            for kind, shown in (("failed", of_fault & failed), ("slow", slow)):
                if count := int(shown.sum()):
                    of_kind = found.setdefault(fault_id, {})
                    of_kind[kind] = of_kind.get(kind, 0) + count
        return Effects(found)

    return Reading(
        Together.ROW, ("send_attempt", "pull"), ("type", "address", "name_server", "code", "duration_ms"), of
    )
