"""What clients did while brokers were lost to them: attempts and pulls, at their beginning. Whose topic an attempt was
for only its send says, and only for late uses does it matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from ...arrow import Flags, np, pa, pc
from ...oracle.lost_brokers import Absence
from ...oracle.world import World
from ...topology import broker_name
from ..check import Table
from ..record.broker_uses import Key, Use, Uses, key_of, lost_at
from ..record.control import Control
from ..record.route_tables import exists
from .part import Part, Reading, Together, floats, is_one_of, rows_in


def broker_uses(absences: Callable[[Control, World], Sequence[Absence]]) -> Reading[Table[Key, Uses]]:
    """What the clients did in these absences."""

    def of(part: Part, world: World) -> Table[Key, Uses]:
        found = absences(part.control, world)
        if not found:
            return Table()
        began, held = part.of("send_attempt", "pull", types=("invoke",)), _held(part.control)
        at_ms, retried = floats(began["time_ms"]), floats(began["attempt"], 0.0) > 0
        # A retry chooses its broker from the route that its send began with.
        chosen_ms = at_ms - np.where(retried, world.timers.T_ms, 0.0)
        uses: dict[tuple[str, str, float], Uses] = {}
        for absence in found:
            within = pc.equal(began["node"], absence.client).to_numpy()
            within &= (absence.start_ms <= at_ms) & (at_ms < absence.end_ms)
            lost = within & _is_lost(began, absence, world)
            reaches_ms = np.minimum(chosen_ms - absence.from_ms, absence.end_ms - at_ms)
            in_time = chosen_ms[lost & (reaches_ms <= 0)]
            after = int((within & (at_ms >= absence.from_ms)).sum())
            seen = Uses(after=after, last_ms=float(in_time.max()) if len(in_time) else None)
            bounded = {topic for other in absence.others for topic in held.get(other, ())}
            late = lost & (reaches_ms > 0)
            rows = rows_in(began.filter(late))
            topic_of = _topics(part, [row["op_id"] for row in rows if not row["topic"] and row["op_id"]])
            for row, reach_ms, chose_ms in zip(rows, reaches_ms[late], chosen_ms[late], strict=True):
                topic = row["topic"] or topic_of.get((row["node"], row["op_id"]))
                if topic in bounded:
                    use = row["time_ms"], str(topic), row["op_id"] or ""
                    last = Use(float(chose_ms) - absence.from_ms, *use)
                    worst = Use(float(reach_ms), *use)
                    seen = seen.plus(Uses(late=1, last_ms=float(chose_ms), worst=worst, last=last))
            uses[key_of(absence)] = seen
        return Table(uses)

    columns = ("type", "op_id", "topic", "broker_name", "address", "attempt")
    return Reading(Together.OPERATION, ("send", "send_attempt", "pull"), columns, of)


def _is_lost(began: pa.Table, absence: Absence, world: World) -> Flags:
    """Of each use, whether it was of the lost broker: of a name with slaves, or of a broker that came back at another
    address, it is the address that says so."""
    found: Flags = pc.fill_null(pc.equal(began["broker_name"], broker_name(absence.broker)), False).to_numpy()
    own = lost_at(absence, world)
    if own is None:
        return found
    there = pc.fill_null(pc.equal(began["address"], own), not absence.address)
    found = found & there.to_numpy()
    return found


def _topics(part: Part, op_ids: Sequence[str]) -> dict[tuple[str, str], str]:
    sends = part.of("send", types=("invoke",))
    rows = rows_in(sends.filter(is_one_of(sends["op_id"], op_ids)).select(["node", "op_id", "topic"]))
    return {(row["node"], row["op_id"]): row["topic"] for row in rows}


def _held(control: Control) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in control.rows("topic"):
        if exists(row.value) and row.topic is not None:
            found[row.node].add(row.topic)
    return found
