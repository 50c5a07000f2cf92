"""How many of a producer's sends may fail while brokers are lost to it: each lost queue in its turn. Plain."""

from __future__ import annotations

import math

from .world import World


def passed_over(brokers: int, lost: int, queues: int) -> float:
    """The share of sends that fail at most when each that fails on a lost broker takes one good queue of the round.

    One of each lost broker's queues is met a round, because a retry goes to another broker's; 1 where no queue is left.
    Source: `DefaultMQProducerImpl.sendDefaultImpl`, which picks the queue of the next try before it looks at the time.
    """
    return 1.0 if queues * (brokers - lost) <= lost else lost / (queues * (brokers - lost))


def turns_lost(world: World, brokers: int, lost: int, queues: int) -> int:
    """How many sends in a row may meet `lost` of the brokers: each of their queues in its turn.

    Messages of a sharding key keep to their queue, so there it is each key whose queue is lost: all keys, where they
    are few.
    """
    workload = world.workload
    keys = int(workload.get("ordered_keys") or 0) if workload.get("ordered") else 0
    return lost * queues * max(1, math.ceil(keys / (queues * brokers)))


def share_lost(world: World, brokers: int, lost: int, queues: int) -> float:
    """The share of sends that may fail while so many brokers are lost: 1 where all may."""
    workload = world.workload
    of_keys = 0.0
    if workload.get("ordered"):
        of_keys = turns_lost(world, brokers, lost, queues) / max(1, int(workload.get("ordered_keys") or 1))
    return min(1.0, max(lost / brokers, passed_over(brokers, lost, queues), of_keys))
