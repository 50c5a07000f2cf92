"""A producer's queues have their turns: counted where nothing fails, try by try where something does, and around polls.

    broker-a 0 1 2 3   broker-b 0 1 2 3        a send's first try: the next queue, whatever failed before
               └─┘└─────────┘                  a try again: the next one of another broker, where the route has one
               next   tried again

Of tries only pairs of which that is certain: of one send, or of two of which the earlier was stored (who gives a send
up for its time has drawn a queue already), both begun after the same change of a route. The queues that a producer
goes round are by the routes that it took. Upstream: `TopicPublishInfo.selectOneMessageQueue`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ....remoting.codes import PERM_WRITE
from ....remoting.topics import TBW102
from ...oracle.intervals import grouped
from ...oracle.time_outs import avoidance, avoids
from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding
from ..findings import Rule, at_a_moment, finding
from .control import Control, once
from .uses import BrokerShares, Queue, Segment, isolated

TURN = "selectOneMessageQueue: a send goes to the next queue of the route"
KEY = "sendSelectImpl: a send goes to the queue that its MessageQueueSelector selects, by the hash of its sharding key"


class Step(NamedTuple):
    """From one try's queue to the queue of the next, of one process and topic, begun between two edges."""

    node: str
    incarnation: int
    topic: str
    start_ms: float
    before: Queue
    queue: Queue
    again: bool
    """Of one send."""


class Stepped(NamedTuple):
    """How often, and when first."""

    times: int
    first_ms: float


def goes_round(world: World) -> list[str]:
    """The producers whose every try has its queue by turns: of ours, without sharding keys and the fault strategy."""
    if world.workload.get("ordered"):
        return []
    return [node.name for node in world.ours("producer") if not avoids(world, node.name)]


def _next(ring: Sequence[Queue], before: Queue, *, avoided: str) -> Queue:
    at = ring.index(before) + 1
    following = [*ring[at:], *ring[:at]]
    return next((queue for queue in following if queue[0] != avoided), following[0])


def turns(
    shares: BrokerShares, world: World, routes: Routes, all_edges: Sequence[float], control: Control
) -> Iterator[Finding]:
    """One for each process and segment that is judged: the queue that is furthest from its turn. Of a producer that
    isolates brokers the time is judged in which none is isolated; of somebody else's, nobody says until when."""
    if world.workload.get("ordered"):
        yield from _of_keys(shares, world, routes, all_edges)
        return
    avoided, away = avoidance(world), isolated(control, world)
    ours = {node.name for node in world.ours("producer")}
    for segment, counts in sorted(shares.sends.items()):
        after_ms = avoided.longest_ms if avoided and segment.node not in ours else 0.0
        until_ms = _end(all_edges, segment.start_ms, world.end_ms)
        failed = away.is_any(segment.node, segment.incarnation, segment.start_ms, until_ms) or any(
            number and node == segment.node and _end(all_edges, start_ms) + after_ms > segment.start_ms >= start_ms
            for (node, start_ms), number in shares.failed.items()
        )
        ring = routes.ring(segment.node, segment.incarnation, segment.topic, segment.start_ms)
        if ring and not failed:
            yield _turn(segment, counts, ring, until_ms)
        elif ring and segment.node in ours and avoids(world, segment.node):
            began_ms = segment.start_ms - world.timers_of(segment.node).T_ms  # with which route a send goes on to try
            written = {queue for at_ms in (began_ms, segment.start_ms) for queue in routes.written(segment, at_ms)}
            yield _on_route(segment, counts, ring, until_ms, written)


def _of_keys(shares: BrokerShares, world: World, routes: Routes, all_edges: Sequence[float]) -> Iterator[Finding]:
    """One for each process, segment and sharding key: the workload's selector takes the queue of the key's number."""
    for segment, counts in sorted(shares.sends.items()):
        ring = routes.ring(segment.node, segment.incarnation, segment.topic, segment.start_ms)
        if not ring or segment.shard < 0:
            continue
        due, times = ring[segment.shard % len(ring)], sum(counts.values())
        others = sorted(counts.keys() - {due})
        span = segment.start_ms, _end(all_edges, segment.start_ms, world.end_ms)
        yield finding(
            (segment.node, others[0][0] if others else due[0], segment.topic),
            "not its key's queue" if others else "the queue of its key",
            span,
            Rule(KEY),
            out=span if others else None,
            examined=times,
            wrong=times - counts.get(due, 0),
            more={"sends": times, "key": segment.shard, "its": f"{due[0]} {due[1]}"},
        )


def _end(edges_: Sequence[float], start_ms: float, last_ms: float = float("inf")) -> float:
    at = bisect_right(edges_, start_ms)
    return edges_[at] if at < len(edges_) else last_ms


def _turn(segment: Segment, counts: Mapping[Queue, int], ring: tuple[Queue, ...], until_ms: float) -> Finding:
    sends, queues = sum(counts.values()), len(ring)
    fewest, most = sends // queues, -(-sends // queues)
    strange = sorted(queue for queue in counts if queue not in ring)
    off = {queue: max(fewest - counts.get(queue, 0), counts.get(queue, 0) - most) for queue in ring}
    worst = strange[0] if strange else max(ring, key=lambda queue: (off[queue], -counts.get(queue, 0)))
    wrong = bool(strange) or off[worst] > 0
    decided = sends >= queues
    kind = "out of its route" if strange else "not used in turn" if wrong else "used in turn"
    if wrong and decided and worst[0] not in {broker for broker, _ in counts}:
        kind = f"never used in {sends} sends"
    return finding(
        (segment.node, worst[0], segment.topic),
        kind,
        (segment.start_ms, until_ms),
        Rule(TURN, f"{fewest} to {most} of {sends} sends over {queues} queues"),
        out=(segment.start_ms, until_ms) if wrong else None,
        examined=int(decided or wrong),
        wrong=int(wrong),
        more={
            "queue_id": worst[1],
            "sends": sends,
            "of": queues,
            "its_sends": counts.get(worst, 0),
            "off_by": max(off.values()),
        },
    )


def _on_route(
    segment: Segment, counts: Mapping[Queue, int], ring: Sequence[Queue], until_ms: float, written: Collection[Queue]
) -> Finding:
    """Of a producer that avoids brokers: whether it sent only to queues that its route, or the one before, lets it
    write to. Where all are isolated, 4.9 picks one of them, also without a master (`getQueueIdByBroker`)."""
    strange = sorted(queue for queue in counts if queue not in written)
    return finding(
        (segment.node, (strange or ring)[0][0], segment.topic),
        "out of its route" if strange else "on its route",
        (segment.start_ms, until_ms),
        Rule("MQFaultStrategy: selects a queue that the route lets it write to"),
        out=(segment.start_ms, until_ms) if strange else None,
        examined=1,
        wrong=int(bool(strange)),
    )


def out_of_turn(
    steps: Mapping[Step, Stepped], routes: Routes, world: World, told: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """All that were in turn together, and each that was not, but for retries on the same broker of whose producer and
    broker it is told already."""
    in_turn, strays = 0, list[Finding]()
    for step, (times, first_ms) in sorted(steps.items(), key=lambda one: one[1].first_ms):
        ring = routes.ring(step.node, step.incarnation, step.topic, step.start_ms)
        if step.before not in ring:
            continue
        due = _next(ring, step.before, avoided=step.before[0] if step.again else "")
        is_on_same = step.again and step.queue[0] == step.before[0] != due[0]
        if step.queue == due:
            in_turn += times
        elif not (is_on_same and (step.node, step.queue[0]) in told):
            queue, next_, before = (f"{name} {queue_id}" for name, queue_id in (step.queue, due, step.before))
            kind = "sent to a wrong queue" if step.queue in ring else "sent to an unwritable queue"
            more = {"queue": queue, "due": next_, "because": f"queue {queue} after {before}, and not {next_}"}
            strays.append(at_a_moment(step.node, step.queue[0], kind, first_ms, TURN, more, times))
    if in_turn:
        yield finding("producers", "sent to the next queue", (0.0, world.end_ms), Rule(TURN), examined=in_turn)
    yield from strays[:FINDINGS_MAX]


class Routes:
    """What each client held when, from `route_changed` rows."""

    def __init__(self, control: Control) -> None:
        rows = control.rows("route_changed")
        self._of = grouped(((*row.process, row.topic), (row.time_ms, row.decoded)) for row in rows)

    def at(self, node: str, incarnation: int, topic: str, at_ms: float) -> Mapping[str, Any]:
        """The route that it had then; empty for none."""
        found = self._of.get((node, incarnation, topic), [])
        at = bisect_right(found, at_ms, key=lambda one: one[0])
        return (found[at - 1][1] or {}) if at else {}

    def ring(self, node: str, incarnation: int, topic: str, at_ms: float) -> tuple[Queue, ...]:
        """The queues that a producer goes round: the writable ones of brokers with a master; () for no route."""
        return _ring(self.at(node, incarnation, topic, at_ms))

    def written(self, segment: Segment, at_ms: float) -> tuple[Queue, ...]:
        """The queues that the route of then lets it write to, also of brokers without a master."""
        return _ring(self.at(segment.node, segment.incarnation, segment.topic, at_ms), only_masters=False)

    def masters(self, node: str, incarnation: int, by_ms: float) -> set[str]:
        """The addresses that its routes have named under id 0 by then."""
        rows = (row for (*process, _), of in self._of.items() if process == [node, incarnation] for row in of)
        routes = (route or {} for at_ms, route in rows if at_ms <= by_ms)
        named = (ids.get("0") for route in routes for ids in (route.get("brokers") or {}).values())
        return {address for address in named if address}

    def brokers(self, node: str, incarnation: int, at_ms: float) -> set[str]:
        """The brokers that it may write to, of every topic that it has a route of; createTopicKey is none that is sent
        to."""
        topics = [topic for name, life, topic in self._of if (name, life) == (node, incarnation)]
        rings = [self.ring(node, incarnation, topic, at_ms) for topic in topics if topic != TBW102]
        return set.intersection(*({broker for broker, _ in ring} for ring in rings)) if rings else set()


client_routes = once(Routes)


def _ring(route: Mapping[str, Any], *, only_masters: bool = True) -> tuple[Queue, ...]:
    masters = {name for name, addresses in (route.get("brokers") or {}).items() if "0" in addresses}
    return tuple(
        (name, queue_id)
        for name, (_, write, perm, *_rest) in sorted((route.get("queues") or {}).items())
        if (name in masters or not only_masters) and perm & PERM_WRITE
        for queue_id in range(write)
    )
