"""The made-up run's messages, a slice at a time, as numpy rows: sent, tried, stored, pulled, received and read.

    message n ─ send ─ send_attempt (a broker that the producer knows) ─┬─ up: stored at the next offset of its queue
                                                                        ├─ closed: refused, another broker is tried
                                                                        └─ silent: indeterminate after T
    stored ─ pull, receive (by the queue's owner, as soon as there is one) ─ read at the end

Every slice continues the one before: offsets, sequence numbers and rows that are late. What is kept between slices is
as large as the cluster, not as the history.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .held_pulls import NOT_FOUND, HeldPulls, Pull, seldom
from .outcome import CLOSED, SILENT, UP, Control
from .plan import TRAFFIC_MS, Plan
from .timeline import Floats, Ints, Timelines

INVOKE, OK, FAIL, INFO = range(4)
TYPES = ("invoke", "ok", "fail", "info")

ROW = np.dtype(
    [
        ("time_ms", "f8"),
        ("seq", "i8"),
        ("who", "i4"),
        ("type", "i1"),
        ("msg", "i8"),
        ("topic", "i2"),
        ("broker", "i2"),
        ("queue", "i2"),
        ("offset", "i8"),
        ("attempt", "i1"),
        ("code", "i2"),
        ("duration_ms", "f8"),
        ("lag_ms", "f8"),
        ("holding", "i4"),
    ]
)
"""`who` is a process (node and incarnation) by its number; -1 and NaN stand for null."""

_EMPTY: dict[str, Any] = {
    "time_ms": 0.0,
    "seq": -1,
    "who": -1,
    "type": -1,
    "msg": -1,
    "topic": -1,
    "broker": -1,
    "queue": -1,
    "offset": -1,
    "attempt": -1,
    "code": -1,
    "duration_ms": np.nan,
    "lag_ms": np.nan,
    "holding": -1,
}

Rows = NDArray[Any]
"""A structured array of ROW."""

_NONE = np.empty(0)
COMMITTED_OF = 16
"""Every so many messages of a queue its group's offset is committed, and the last of each COMMITTED_MS; of a quiet
queue each."""
COMMITTED_MS = 2_500.0
"""Less than persistConsumerOffsetInterval, within which what was consumed has to be committed."""
PRODUCER_SHIFT = 40
"""A message's number: its producer's, shifted, and its place among the producer's."""


def rows(n: int, **columns: Any) -> Rows:
    """`n` rows with these columns; the others are null."""
    made = np.empty(n, dtype=ROW)
    for name in ROW.names or ():
        made[name] = columns[name] if name in columns else _EMPTY[name]
    return made


@dataclass(slots=True)
class Messages:
    """What became of a slice's messages, one element each. A planted defect changes it before rows are made."""

    number: Ints
    """Among all messages of the run."""
    msg: Ints
    producer: Ints
    topic: Ints
    queue: Ints
    """That of its last attempt."""
    first: Ints
    """The broker of the first attempt; -1: the producer knew none."""
    first_queue: Ints
    first_type: Ints
    first_ms: Floats
    """When the first attempt began; the send began at `sent_ms`."""
    first_took_ms: Floats
    second: Ints
    """The broker of the second attempt; -1: there was none."""
    second_type: Ints
    stored: NDArray[np.bool_]
    stored_on: Ints
    sent_ms: Floats
    acked_ms: Floats
    """When the send ended, in whatever way."""
    ended: Ints
    offset: Ints
    receiver: Ints
    """The consumer; -1: nobody."""
    received_ms: Floats
    holding: Ints
    """Of its queue by its consumer: the step of the owners' timelines; -1: nobody's."""
    kept: NDArray[np.bool_]
    """Whether the final reads find it."""
    again: Ints
    """How many times it is received beyond the first."""


Plant = Callable[[Messages], None]


@dataclass(slots=True)
class Traffic:
    """Makes the messages of a plan. `who` gives the number of a node's process 0."""

    plan: Plan
    control: Control
    who: dict[str, int]
    plant: Plant | None = None
    processes: dict[tuple[str, int], int] = field(default_factory=dict)
    """Of every node and incarnation, its number."""
    ends: Ints = field(init=False)
    """Of every queue: the next offset."""
    read: int = 0
    """How many messages the final reads have found so far."""
    taken: Ints = field(init=False)
    """Of every holding: how many messages went to it."""
    _phases: Floats = field(init=False)
    """Of every producer: where between two of the run's messages it sends. Its pace is even, as real ones' is."""
    _wanted_ms: Floats = field(init=False)
    _received_ms: Floats = field(init=False)
    _brokers_of: Ints = field(init=False)
    _count_of: Ints = field(init=False)
    _passed_over: Ints = field(init=False)
    """By each producer and topic: how many queues it has not sent to in its turn, for their broker refused."""
    _status: Timelines = field(init=False)
    _known: Timelines = field(init=False)
    _owners: Timelines = field(init=False)
    _held: HeldPulls = field(init=False)
    _brokers: Timelines = field(init=False)
    """Of every broker: the number of its process; -1: it has none then."""

    def __post_init__(self) -> None:
        plan = self.plan
        queues = plan.topics * plan.brokers * plan.queues
        self.ends = np.zeros(queues, dtype=np.int64)
        phase = random.Random(f"{plan.seed} phases").random
        self._phases = np.array([phase() for _ in range(plan.producers)])
        self._passed_over = np.zeros(plan.producers * plan.topics, dtype=np.int64)
        self._wanted_ms, self._received_ms = np.zeros(queues), np.zeros(queues)
        masks = 1 << plan.brokers
        self._brokers_of = np.full((masks, plan.brokers), -1, dtype=np.int64)
        self._count_of = np.zeros(masks, dtype=np.int64)
        for mask in range(masks):
            named = [broker for broker in range(plan.brokers) if mask >> broker & 1]
            self._brokers_of[mask, : len(named)] = named
            self._count_of[mask] = len(named)
        self._status = Timelines(self.control.status)
        self._known = Timelines([[(0.0, 0), *steps] for steps in self.control.known])
        self._owners = Timelines(self.control.owners)
        self.taken = np.zeros(self._owners.steps, dtype=np.int64)
        self._held = HeldPulls(plan, self.control)
        lives = [(name, self.control.lives[name]) for name in plan.broker_names]
        self._brokers = Timelines(
            [[(ms, self.processes.get((name, life), -1)) for ms, life in of] for name, of in lives]
        )

    def time_of(self, number: int) -> float:
        """When the message of that number is sent at the earliest; numbers from `messages` on: when traffic ends."""
        return TRAFFIC_MS + min(number, self.plan.messages) * self.plan.step_ms

    def messages(self, first: int, until: int) -> Messages:
        """The messages with numbers in [first, until), which must follow on the ones before."""
        plan = self.plan
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((plan.seed, first))))
        number = np.arange(first, until, dtype=np.int64)
        n = len(number)
        producer, turn = number % plan.producers, number // plan.producers
        sent_ms = TRAFFIC_MS + (number + self._phases[producer]) * plan.step_ms
        topic, turn = turn % plan.topics, turn // plan.topics + producer
        known = self._known.at(producer, sent_ms)
        turn = self._in_turn(turn, producer * plan.topics + topic, known, sent_ms)
        first_queue = turn % plan.queues
        one = self._pick(known, turn // plan.queues)
        status = self._status_of(one, sent_ms)
        # A refused connection is known in a moment, and the send goes to the next queue of another broker.
        refused = (status == CLOSED) & (self._count_of[known] > 1)
        other = np.where(refused, self._pick(known, turn // plan.queues + 1), -1)
        queue = np.where(refused, 0, first_queue)
        other_status = self._status_of(other, sent_ms)
        took_ms = rng.uniform(0.8, 4.0, n)
        first_ms = sent_ms + 0.05
        first_took_ms = np.where(status == UP, took_ms, np.where(refused, 1.0, plan.timers.T_ms))
        second_ms = np.where(other_status == UP, took_ms, np.where(other_status == CLOSED, 1.0, plan.timers.T_ms - 1.1))
        first_type = np.choose(status, (OK, FAIL, INFO))
        second_type = np.choose(other_status, (OK, FAIL, INFO))
        retried = other >= 0
        ended = np.where(retried, second_type, np.where(one >= 0, first_type, FAIL))
        acked_ms = first_ms + first_took_ms + np.where(retried, 0.05 + second_ms, 0.0) + 0.02
        stored = ended == OK
        stored_on = np.where(stored, np.where(retried, other, one), -1)
        made = Messages(
            number=number,
            msg=producer << PRODUCER_SHIFT | number // plan.producers,
            producer=producer,
            topic=topic,
            queue=queue,
            first=one,
            first_queue=first_queue,
            first_type=first_type,
            first_ms=first_ms,
            first_took_ms=first_took_ms,
            second=other,
            second_type=second_type,
            stored=stored,
            stored_on=stored_on,
            sent_ms=sent_ms,
            acked_ms=acked_ms,
            ended=ended,
            offset=np.full(n, -1, dtype=np.int64),
            receiver=np.full(n, -1, dtype=np.int64),
            received_ms=np.full(n, np.inf),
            holding=np.full(n, -1, dtype=np.int64),
            kept=stored.copy(),
            again=np.zeros(n, dtype=np.int64),
        )
        self._deliver(made, rng)
        if self.plant is not None:
            self.plant(made)
        return made

    def _in_turn(self, turn: Ints, goes_round: Ints, known: Ints, sent_ms: Floats) -> Ints:
        """`turn`, and as many more as tries of that producer and topic have passed over since the run began."""
        brokers = range(self.plan.brokers)
        closed = np.stack([self._status_of(np.full_like(known, broker), sent_ms) == CLOSED for broker in brokers])
        if not closed.any():
            return turn + self._passed_over[goes_round]
        places, queues = [], self.plan.queues
        for at, (place, who, names) in enumerate(zip(turn.tolist(), goes_round.tolist(), known.tolist(), strict=True)):
            places.append(place := place + int(self._passed_over[who]))
            count = int(self._count_of[names])
            if count > 1 and closed[self._brokers_of[names, place // queues % count], at]:
                self._passed_over[who] += queues - place % queues
        return np.array(places, dtype=np.int64)

    def _pick(self, known: Ints, turn: Ints) -> Ints:
        count = self._count_of[known]
        return self._brokers_of[known, turn % np.maximum(count, 1)]

    def _status_of(self, broker: Ints, times_ms: Floats) -> Ints:
        return np.where(broker >= 0, self._status.at(np.maximum(broker, 0), times_ms), UP)

    def _deliver(self, made: Messages, rng: np.random.Generator) -> None:
        """Offsets in order of sending, and each queue's messages received in order of offset."""
        plan = self.plan
        at = np.flatnonzero(made.stored)
        if not at.size:
            return
        queue = (made.topic[at] * plan.brokers + made.stored_on[at]) * plan.queues + made.queue[at]
        order = np.argsort(queue.astype(np.int16), kind="stable")
        at, queue = at[order], queue[order]
        counts = np.bincount(queue, minlength=len(self.ends))
        begins = np.concatenate(([0], np.cumsum(counts)[:-1]))
        made.offset[at] = self.ends[queue] + np.arange(len(at)) - begins[queue]
        self.ends += counts
        wanted_ms = made.acked_ms[at] + rng.uniform(2.0, 6.0, len(at))
        wanted_ms = _one_after_another(queue, np.minimum(wanted_ms, 2 * plan.end_ms), self._wanted_ms, plan.end_ms)
        holding, since_ms = self._owners.step_at_or_next(queue, wanted_ms)
        self.taken += np.bincount(holding[holding >= 0], minlength=len(self.taken))
        # Who takes over a queue that nobody had gets what waits there within four milliseconds, in order.
        waited = since_ms > wanted_ms
        received_ms = np.where(waited, since_ms + 2.0 + wanted_ms / plan.end_ms * 2.0, wanted_ms)
        received_ms = np.minimum(received_ms, 2 * plan.end_ms)
        received_ms = _one_after_another(queue, received_ms, self._received_ms, plan.end_ms)
        lost = (received_ms >= plan.settled_ms - 1_000.0) | (holding < 0)
        made.receiver[at] = np.where(lost, -1, self._owners.values(holding))
        made.holding[at] = np.where(lost, -1, holding)
        made.received_ms[at] = np.where(lost, np.inf, received_ms)

    def holdings(self) -> list[tuple[float, int, str, int, int]]:
        """Each taking and dropping of a queue: (at_ms, consumer, event, queue, holding), in order of time."""
        found: list[tuple[float, int, str, int, int]] = []
        for queue, steps in enumerate(self.control.owners):
            held: tuple[int, int] | None = None
            for place, (at_ms, consumer) in enumerate(steps):
                if held is not None:
                    found.append((at_ms, held[0], "queue_dropped", queue, held[1]))
                held = None
                if consumer >= 0:
                    held = (consumer, self._owners.step_number(queue, place))
                    found.append((at_ms + 0.001, consumer, "queue_taken", queue, held[1]))
        return sorted(found)

    def taken_before(self, queue: int, holding: int) -> int:
        """How many of the queue's messages went to its earlier holdings: the offset that this one begins at."""
        return int(self.taken[self._owners.step_number(queue, 0) : holding].sum())

    def rows(self, made: Messages, end_ms: float) -> dict[str, Rows]:
        """Event → rows, in no order, without `seq`; those of `read` have one. The next call begins at `end_ms`."""
        plan, who = self.plan, self.who
        producers = np.array([who[name] for name in plan.producer_names], dtype=np.int64)
        consumers = np.array([who[name] for name in plan.consumer_names] or [-1], dtype=np.int64)
        n, sender = len(made.number), producers[made.producer]
        shared = {"who": sender, "msg": made.msg}
        ok = made.ended == OK
        invoked = rows(n, time_ms=made.sent_ms, type=INVOKE, topic=made.topic, **shared)
        ended = rows(
            n,
            time_ms=made.acked_ms,
            type=made.ended,
            topic=made.topic,
            broker=np.where(ok, made.stored_on, -1),
            queue=np.where(ok, made.queue, -1),
            offset=np.where(ok, made.offset, -1),
            code=np.where(ok, 0, -1),
            attempt=_may_have_stored(made),
            duration_ms=made.acked_ms - made.sent_ms,
            **shared,
        )
        first = made.first, made.first_queue, made.first_type
        tried = self._attempts(made, *first, made.first_ms, made.first_took_ms, 0, sender)
        second_ms = made.first_ms + made.first_took_ms + 0.05
        took_ms = made.acked_ms - 0.02 - second_ms
        tried += self._attempts(made, made.second, made.queue, made.second_type, second_ms, took_ms, 1, sender)
        got = np.flatnonzero(made.receiver >= 0)
        where = {"topic": made.topic[got], "broker": made.stored_on[got], "queue": made.queue[got]}
        where |= {"offset": made.offset[got], "who": consumers[made.receiver[got]]}
        holding = made.holding[got]
        received = [rows(len(got), time_ms=made.received_ms[got], msg=made.msg[got], holding=holding, **where)]
        received += [np.repeat(received[0], made.again[got])] if made.again.any() else []
        pulling = (made.offset[got] % 2 == 0) | seldom(plan)  # of a quiet queue every pull, or two would look like one
        pulled = rows(len(got), time_ms=made.received_ms[got], type=INVOKE, **where)[pulling]
        answered = pulled.copy()
        pulled["time_ms"] -= 1.5
        answered["time_ms"] -= 0.2
        answered["type"], answered["code"], answered["duration_ms"] = OK, 0, 1.3
        queue = (made.topic[got] * plan.brokers + made.stored_on[got]) * plan.queues + made.queue[got]
        held = self._held.until(min(end_ms, plan.settled_ms - 1_000.0), queue, made.received_ms[got])
        return {
            "commit": self._commits(made, got),
            "send": np.concatenate((invoked, ended)),
            "send_attempt": np.concatenate(tried),
            "pull": np.concatenate((pulled, answered, *self._pulled_in_vain(held, consumers))),
            "receive": np.concatenate(received),
            "read": self._reads(made),
        }

    def _commits(self, made: Messages, got: Ints) -> Rows:
        """As the brokers record them that are there."""
        committed = (made.offset[got] % COMMITTED_OF == COMMITTED_OF - 1) | seldom(self.plan)
        queue = (made.topic[got] * self.plan.brokers + made.stored_on[got]) * self.plan.queues + made.queue[got]
        order = np.lexsort((made.offset[got], queue))
        period = made.received_ms[got[order]] // COMMITTED_MS
        committed[order[:-1]] |= (np.diff(queue[order]) != 0) | (np.diff(period) != 0)
        committed[order[-1:]] = True
        at = got[committed]
        times_ms = made.received_ms[at] + 0.4
        broker = made.stored_on[at]
        where = {"topic": made.topic[at], "broker": broker, "queue": made.queue[at], "offset": made.offset[at] + 1}
        made_rows = rows(len(at), time_ms=times_ms, who=self._brokers.at(broker, times_ms), **where)
        return made_rows[made_rows["who"] >= 0]

    def _pulled_in_vain(self, held: Sequence[Pull], consumers: Ints) -> tuple[Rows, Rows]:
        """The beginnings of these pulls, and their ends; the offset is not known, and nobody asks for it."""
        plan = self.plan
        at_ms, took_ms, owner, queue = (np.array(column) for column in zip(*held, strict=True)) if held else [_NONE] * 4
        queue = queue.astype(np.int64)
        topic, rest = np.divmod(queue, plan.brokers * plan.queues)
        broker, queue_id = np.divmod(rest, plan.queues)
        where = {"who": consumers[owner.astype(np.int64)], "topic": topic, "broker": broker, "queue": queue_id}
        invoked = rows(len(held), time_ms=at_ms, type=INVOKE, **where)
        ended = rows(len(held), time_ms=at_ms + took_ms, type=OK, code=NOT_FOUND, duration_ms=took_ms, **where)
        return invoked, ended

    def _attempts(
        self,
        made: Messages,
        broker: Ints,
        queue: Ints,
        type_: Ints,
        begins_ms: Floats,
        took_ms: Floats,
        attempt: int,
        sender: Ints,
    ) -> list[Rows]:
        at = np.flatnonzero(broker >= 0) if (broker < 0).any() else slice(None)
        shared = {"broker": broker[at], "queue": queue[at], "who": sender[at], "msg": made.msg[at]}
        n = len(shared["broker"])
        invoked = rows(n, time_ms=begins_ms[at], type=INVOKE, attempt=attempt, **shared)
        ended = rows(
            n,
            time_ms=begins_ms[at] + took_ms[at],
            type=type_[at],
            attempt=attempt,
            code=np.where(type_[at] == OK, 0, -1),
            duration_ms=took_ms[at],
            **shared,
        )
        return [invoked, ended]

    def _reads(self, made: Messages) -> Rows:
        """Found by the final reads, which take a second of the ten that they have for each tenth of the messages."""
        at = np.flatnonzero(made.kept)
        places = self.read + np.arange(len(at))
        self.read += len(at)
        return rows(
            len(at),
            time_ms=self.plan.settled_ms + 1.0 + places * (9_000.0 / max(self.plan.messages, 1)),
            seq=places,
            who=self.who["prober"],
            msg=made.msg[at],
            topic=made.topic[at],
            broker=made.stored_on[at],
            queue=made.queue[at],
            offset=made.offset[at],
        )


def _may_have_stored(made: Messages) -> Ints:
    """How many of each send's tries may have stored it."""
    first = (made.first >= 0) & (made.first_type != FAIL)
    second = (made.second >= 0) & (made.second_type != FAIL)
    tries: Ints = first.astype(np.int64) + second.astype(np.int64)
    return tries


def _one_after_another(queue: Ints, times_ms: Floats, latest_ms: Floats, span_ms: float) -> Floats:
    """Each time, or that of the one ahead of it in its queue if that is later; `latest_ms` is carried on, per queue.

    `queue` must be in order, and no time be beyond two `span_ms`.
    """
    lift = queue * (4 * span_ms)
    ahead: Floats = np.maximum.accumulate(np.maximum(times_ms, latest_ms[queue]) + lift) - lift
    last = np.flatnonzero(np.append(queue[1:] != queue[:-1], True))
    latest_ms[queue[last]] = ahead[last]
    return ahead


__all__ = ["CLOSED", "INFO", "INVOKE", "OK", "ROW", "SILENT", "TYPES", "UP", "Messages", "Rows", "Traffic", "rows"]
