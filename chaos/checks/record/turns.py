"""Where sends fail, each try goes to the queue that follows the one of the try before in the route.

    broker-a 0 1 2 3   broker-b 0 1 2 3        a send's first try: the next queue, whatever failed before
               └─┘└─────────┘                  a try again: the next one of another broker, where the route has one
               next   tried again

Where nothing fails counts say it (living_are_used.py). Only pairs of tries of which that is certain: of one send, or of
two of which the earlier was stored (who gives a send up for its time has drawn a queue already), both begun after the
same change of a route. Upstream: `TopicPublishInfo.selectOneMessageQueue`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ...oracle.recorded import OURS
from ...oracle.time_outs import avoids
from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding
from ..findings import Rule, at_a_moment, finding
from .rings import Routes
from .uses import BrokerShares, Queue, Stray

TURN = "selectOneMessageQueue: the next queue of the route"


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
    ours = (node.name for node in world.of_kind("producer") if node.implementation == OURS)
    return [name for name in ours if not avoids(world, name)]


def judged(steps: Mapping[Step, Stepped], routes: Routes) -> tuple[int, tuple[Stray, ...]]:
    """How many went to the next queue, and those that did not, in order of time."""
    right, strays = 0, []
    for step, stepped in steps.items():
        ring = routes.ring(step.node, step.incarnation, step.topic, step.start_ms)
        if step.before not in ring:
            continue
        due = _next(ring, step.before, avoided=step.before[0] if step.again else "")
        if step.queue == due:
            right += stepped.times
        else:
            strays.append(Stray(step.node, step.incarnation, step.queue, due, step.before, *stepped))
    return right, tuple(sorted(strays, key=lambda one: one.first_ms))


def _next(ring: Sequence[Queue], before: Queue, *, avoided: str) -> Queue:
    at = ring.index(before) + 1
    following = [*ring[at:], *ring[:at]]
    return next((queue for queue in following if queue[0] != avoided), following[0])


def out_of_turn(shares: BrokerShares, world: World) -> Iterator[Finding]:
    """All that were in turn together, and each that was not."""
    if shares.in_turn:
        yield finding("producers", "sent to the next queue", (0.0, world.end_ms), Rule(TURN), examined=shares.in_turn)
    for one in islice(shares.strays, FINDINGS_MAX):
        queue, due, before = (f"{name} {queue_id}" for name, queue_id in (one.queue, one.due, one.before))
        kind, more = "sent to another queue than the next", {"queue": queue, "next": due, "after": before}
        yield at_a_moment(one.node, one.queue[0], kind, one.first_ms, TURN, more, one.times)
