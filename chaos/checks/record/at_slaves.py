"""A consumer commits to the master in its route and pulls from it; it uses a slave only while the route has no master.

    its route   ├─ without id 0, with id 1 ──┤ with id 0 again ─────────────
    commits              at broker-a/1       │ at broker-a: right
                                             │ at broker-a/1: the next who asks the master begins at an older offset

`RemoteBrokerOffsetStore.updateConsumeOffsetToBroker` looks for id 0 each time, and takes another one where there is
none. A slave that has become master, or acts for it, stands in the route as id 0.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from ...oracle.deliveries import PULL_MS, Dues
from ...oracle.intervals import Stretch, grouped
from ...oracle.roles import elects
from ...oracle.slaves import offsets_copied
from ...oracle.world import World
from ...topology import node_of_client_id
from ...verdict import Finding
from ..findings import Rule, finding
from .commits import AtSlave, Committed, dues_of
from .control import Control
from .known_brokers import MASTER_ID
from .uses import PART_MS, BrokerShares

ANSWERED_MS = 5_000.0
"""A consumer asks for a committed offset with this time-out: what it got was right at most so long ago."""
_ROW = "RemoteBrokerOffsetStore: commits go to the master that the route has"
_PULLED = "PullAPIWrapper: pulls go to the route's master, unless a broker suggests a slave (slaveReadEnable)"
_SENT_MS = 1_000.0
"""What was on its way when the route came."""


def slaves_that_tell(world: World) -> list[str]:
    return [node.name for node in world.ours("slave")]


def misplaced(at_slaves: Mapping[AtSlave, Committed], dues: Dues, control: Control) -> Iterator[Finding]:
    """Parts of the time in which a consumer went on committing at a slave though it had the master."""
    world = dues.world
    if not at_slaves or world.mixed_up_by_hand or world.deleted:
        return
    routes = _Routes(control, world)
    for one, of in sorted(at_slaves.items(), key=lambda part: part[0]):
        consumer, first_ms, last_ms = node_of_client_id(one.client), of.first_ms or 0.0, of.last_ms or 0.0
        is_ours = world.is_ours(consumer) and not elects(world, one.slave)
        if not is_ours or not dues.is_whole(consumer, one.slave, first_ms, last_ms):
            continue
        since_ms = routes.another_since(consumer, one.broker_name, one.slave, last_ms)
        over_ms, who = last_ms - since_ms - _SENT_MS, (consumer, one.slave)
        allowed = control.lateness.tolerance(world, who, first_ms - 1000.0, last_ms, 2)
        if over_ms > allowed.valid_up_to_ms:
            yield finding(
                who,
                "committed at a slave",
                (since_ms, last_ms),
                Rule(_ROW, "at once", _SENT_MS),
                out=(max(since_ms, first_ms), last_ms),
                tolerance=allowed,
                measured_ms=last_ms - since_ms,
                over_ms=over_ms,
                more={"rule": "misplaced", "group": one.group, "commits": of.commits},
            )


def read_there(shares: BrokerShares, world: World, control: Control) -> Iterator[Finding]:
    """One for each consumer and slave: parts of the time in which it pulled there though it had the master.

    Nobody may send it there: without slaveReadEnable a master suggests itself for the next pull, and so does a slave.
    Where one did suggest the slave, that one is guilty.
    """
    if not shares.at_slaves or world.mixed_up_by_hand or world.deleted:
        return
    routes, dues = _Routes(control, world), dues_of(control, world)
    suggested = {
        (row.node, row.broker_name): world.owners.get(row.address, "")
        for row in control.rows("pull_suggested")
        if row.decoded != int(MASTER_ID)
    }
    for (consumer, broker, address), parts in sorted(shares.at_slaves.items()):
        slave = world.owners[address]
        if not world.is_ours(consumer) or not world.is_ours(broker) or elects(world, slave):
            continue
        found = []
        for from_ms, to_ms in ((part * PART_MS, (part + 1) * PART_MS) for part in sorted(parts)):
            if dues.is_whole(consumer, slave, from_ms - PULL_MS, to_ms):
                since_ms = routes.another_since(consumer, broker, slave, to_ms)
                found.append((from_ms, to_ms, since_ms + _SENT_MS < from_ms))
        wrong = [one for one in found if one[2]]
        by = suggested.get((consumer, broker), "")
        if shown := wrong or found:
            span = shown[0][0], shown[-1][1]
            yield finding(
                (by or consumer, slave),
                "suggested a slave" if by else "pulled from a slave",
                span,
                Rule(_PULLED),
                out=span if wrong else None,
                examined=len(found),
                wrong=len(wrong),
            )


def copied_before(world: World, master: str, taken_ms: float) -> Stretch | None:
    """The last time before a queue was taken in which its broker's slaves copied the master's offsets for certain;
    None: there are no slaves, or nothing is certain of them."""
    until_ms = taken_ms - ANSWERED_MS
    found = [one for one in offsets_copied(world, master) if one.start_ms < until_ms]
    return Stretch(found[-1].start_ms, min(found[-1].end_ms, until_ms)) if found else None


class _Routes:
    """Which address each consumer's routes had for id 0 of a broker name, from `route_changed` rows."""

    def __init__(self, control: Control, world: World) -> None:
        self._slaves = {node.name: node.addresses for node in world.of_kind("slave")}
        self._of = grouped((row.node, row) for row in control.rows("route_changed"))

    def another_since(self, consumer: str, broker_name: str, slave: str, by_ms: float) -> float:
        """Since when, by then, all of its routes that name the broker have had another node than this slave as id 0;
        inf: they have not."""
        rows = self._of.get(consumer, [])
        rows = rows[: bisect_right(rows, by_ms, key=lambda row: row.time_ms)]
        since_ms, held = math.inf, dict[str, bool]()
        for row in rows:
            if row.incarnation != rows[-1].incarnation:
                continue
            addresses = (row.said.get("brokers") or {}).get(broker_name)
            held.pop(row.topic, None)
            if addresses:
                held[row.topic] = addresses.get(MASTER_ID, "") not in ("", *self._slaves.get(slave, ()))
            if not held or not all(held.values()):
                since_ms = math.inf
            elif since_ms == math.inf:
                since_ms = row.time_ms
        return since_ms
