"""Pulls that find nothing: held by the broker, answered `PULL_NOT_FOUND`, and asked again at once.

    queue    ──receive──┬── held 15 to 20 s ──┬── held ──┬─ message ──receive──        only where a queue is so seldom
    pulls               └ invoke           ok └ invoke   └ …                           written to that its pulls end so

Without them a consumer of a quiet topic would look as if it had stopped. A held pull that the end of a slice or a
change of the queue's owner cuts short is left out; of those that bring a message traffic.py makes the rows.
"""

from __future__ import annotations

import numpy as np

from nemesrv.remoting.codes import ResponseCode

from .outcome import UP, Control
from .plan import TRAFFIC_MS, Plan
from .timeline import Floats, Ints

HOLD_MIN_MS, HOLD_MAX_MS = 15_000.0, 20_000.0
"""`brokerSuspendMaxTimeMillis`, and the 5 s in which a broker looks at the pulls that it holds."""
_AGAIN_MS = 2.0
NOT_FOUND = int(ResponseCode.PULL_NOT_FOUND)
Pull = tuple[float, float, int, int]
"""When it was invoked, how long it was held, the consumer, and the queue's number."""


class HeldPulls:
    """Those of a whole run, one stretch of time after the other."""

    def __init__(self, plan: Plan, control: Control) -> None:
        self._rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((plan.seed, 2))))
        self._owned = [
            _both_up(owners, control.status[number // plan.queues % plan.brokers], plan.settled_ms)
            for number, owners in enumerate(control.owners)
        ]
        self._from_ms = TRAFFIC_MS
        self._later: list[Floats] = [np.empty(0)] * len(control.owners)

    def until(self, end_ms: float, queue: Ints, received_ms: Floats) -> list[Pull]:
        """The held pulls from where the call before ended up to `end_ms`; the messages received may be later."""
        found: list[Pull] = []
        order = np.lexsort((received_ms, queue))
        times = np.split(received_ms[order], np.searchsorted(queue[order], np.arange(1, len(self._owned))))
        for number, owned in enumerate(self._owned):
            received = np.concatenate((self._later[number], times[number]))
            now, self._later[number] = received[received < end_ms], received[received >= end_ms]
            edges = np.concatenate(([self._from_ms], now, [end_ms]))
            for place in np.flatnonzero(np.diff(edges) > HOLD_MIN_MS):
                for from_ms, to_ms, consumer in owned:
                    idle = max(from_ms, float(edges[place])), min(to_ms, float(edges[place + 1]))
                    found += self._held(*idle, consumer, number)
        self._from_ms = end_ms
        return found

    def _held(self, from_ms: float, to_ms: float, consumer: int, queue: int) -> list[Pull]:
        found: list[Pull] = []
        at_ms = from_ms + _AGAIN_MS
        while to_ms - at_ms > HOLD_MIN_MS:
            hold_ms = float(self._rng.uniform(HOLD_MIN_MS, HOLD_MAX_MS))
            if at_ms + hold_ms < to_ms:
                found.append((at_ms, hold_ms, consumer, queue))
            at_ms += hold_ms + _AGAIN_MS
        return found


def seldom(plan: Plan) -> bool:
    """Whether queues are so seldom written to that the broker holds pulls now and then."""
    queues = plan.topics * plan.brokers * plan.queues
    return plan.messages * HOLD_MIN_MS < 2 * queues * (plan.settled_ms - TRAFFIC_MS)


def rows_expected(plan: Plan) -> float:
    """How many rows of held pulls a run without any message has."""
    queues, held_ms = plan.topics * plan.brokers * plan.queues, (HOLD_MIN_MS + HOLD_MAX_MS) / 2
    return 2 * queues * (plan.settled_ms - TRAFFIC_MS) / held_ms


def _both_up(
    owners: list[tuple[float, int]], status: list[tuple[float, int]], end_ms: float
) -> list[tuple[float, float, int]]:
    """(from, to, consumer): while the queue has this owner and its broker answers."""
    found = []
    for (from_ms, consumer), (to_ms, _) in zip(owners, [*owners[1:], (end_ms, -1)], strict=True):
        for (up_ms, what), (down_ms, _) in zip(status, [*status[1:], (end_ms, UP)], strict=True):
            if consumer >= 0 and what == UP and max(from_ms, up_ms) < min(to_ms, down_ms):
                found.append((max(from_ms, up_ms), min(to_ms, down_ms), consumer))
    return found
