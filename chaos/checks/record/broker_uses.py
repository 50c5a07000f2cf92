"""The facts of dead_brokers_avoided: what clients did while brokers were lost to them, or gone from their routes.

| a client has                                      | and may go on using an address of a broker                       |
|---------------------------------------------------|------------------------------------------------------------------|
| a route that names it                             | for ever                                                         |
| none any more: a producer                         | with retries of sends that began before, T                       |
| none any more: a consumer                         | until a run of doRebalance that began since has rebalanced the   |
|                                                   | topics that it was of: their queues and members were known       |

Upstream: `MQClientInstance.updateTopicRouteInfoFromNameServer`, `DefaultMQProducerImpl.sendDefaultImpl`,
`RebalanceImpl.updateProcessQueueTableInRebalance`. That a client takes what it is told is client_routes_are_true's.

Of two parts of a history they add up to those of the whole: an absence is told by its client, its broker and when it
began, which stay the same whenever a growing history is judged.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...oracle.intervals import grouped
from ...oracle.lost_brokers import Absence
from ...oracle.reach import undisturbed
from ...oracle.recorded import Life
from ...oracle.time_outs import REBALANCE
from ...oracle.windows import Window
from ...oracle.world import World
from ..check import Facts, largest
from .control import Control


class Use(NamedTuple):
    """A use of the lost broker after the window."""

    over_ms: float
    """How far out of bounds: from the nearer end of the time after the window, or how long after it it was chosen."""
    time_ms: float
    topic: str
    op_id: str
    """Empty for a pull that has none."""


@dataclass(frozen=True, slots=True)
class Uses(Facts):
    """What a client did while a broker was lost to it."""

    after: int = 0
    """Uses of any broker after the window."""
    late: int = 0
    """Uses of the lost one after it, for topics that another broker had as well."""
    last_ms: float | None = largest()
    """When the last use of the lost one was chosen that was in time, or late for such a topic."""
    worst: Use | None = largest()  # noqa: RUF009
    """Of the late ones, that which reaches furthest from the nearer end: what lateness may explain."""
    last: Use | None = largest()  # noqa: RUF009
    """Of the late ones, that which was chosen longest after the window."""


Key = tuple[str, str, float]
"""Client, broker, and when the broker was lost: what tells an absence from others, whenever a history is judged."""


_GONE_ROW = "a broker's address that no route of the client names"


def departures(control: Control, world: World) -> Iterator[Absence]:
    """Each address of a broker that left the last of a client's routes, until one names it again."""
    others = tuple(node.name for node in world.of_kind("broker"))
    for client in world.of_kind("producer", "consumer"):
        rebalanced = _rebalanced(control, client.name) if client.kind == "consumer" else None
        for life in world.lives_of(client.name):
            end_ms = min(life.end_ms, world.end_ms)
            for address, topics, gone_ms, back_ms in _gone(control, life):
                from_ms, formula = gone_ms, "at once"
                if rebalanced is not None:
                    runs = [rebalanced[topic] for topic in topics if topic in rebalanced]
                    acted = (next((e for b, e in of if b >= gone_ms), math.inf) for of in runs)
                    from_ms, formula = max(acted, default=math.inf), "its next rebalance"
                broker, until_ms = world.owners.get(address), min(back_ms, end_ms)
                if broker is not None and from_ms < until_ms and undisturbed(world, client.name, gone_ms, until_ms):
                    yield Absence(
                        client=client.name,
                        broker=broker,
                        fault_id="",
                        start_ms=gone_ms,
                        route_from_ms=gone_ms,
                        from_ms=from_ms,
                        window=Window(0, from_ms - gone_ms, formula, _GONE_ROW),
                        end_ms=until_ms,
                        others=others,
                        address=address,
                    )


def _gone(control: Control, life: Life) -> Iterator[tuple[str, frozenset[str], float, float]]:
    """Address, topics whose routes named it, since when none of this process does, and until when (inf: to its end)."""
    named: dict[str, frozenset[str]] = {}
    of: dict[str, set[str]] = defaultdict(set)
    gone: dict[str, float] = {}
    for row in control.by_process("route_changed").get(life.process, ()):
        before: frozenset[str] = frozenset().union(*named.values())
        topic, brokers = row.topic, row.said.get("brokers") or {}
        named[topic] = frozenset(address for ids in brokers.values() for address in ids.values())
        now: frozenset[str] = frozenset().union(*named.values())
        gone.update(dict.fromkeys(before - now, row.time_ms))
        for address in named[topic]:
            of[address].add(topic)
        for address in sorted(now & gone.keys()):
            yield address, frozenset(of[address]), gone.pop(address), row.time_ms
    yield from ((address, frozenset(of[address]), at_ms, math.inf) for address, at_ms in gone.items())


def _rebalanced(control: Control, consumer: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Topic to the runs of doRebalance that knew its queues and members: when each began and ended."""
    rounds = (row for row in control.rows("scheduled_task") if row.node == consumer and row.f == REBALANCE)
    shared = ((row, topic) for row in rounds for topic in row.said.get("shared") or ())
    return grouped((topic, (row.began_ms, row.time_ms)) for row, topic in shared)


def lost_at(absence: Absence, world: World) -> str | None:
    """By which address uses of the lost broker are told from others of its name; None: there are no others."""
    return absence.address or (world.address_at(absence.broker, absence.start_ms) if world.of_kind("slave") else None)


def key_of(absence: Absence) -> Key:
    return absence.client, absence.broker, absence.start_ms
