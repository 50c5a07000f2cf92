"""When a consumer group's committed offset may go back, and which messages may have been consumed unrecorded.

    holding A ├────────────┤ commits 10 at its end
    holding B       ├── began at 8 ──── commits 9 …      back by one: B had read the older offset; that is right

| an offset goes back                                      | right, because                                            |
|----------------------------------------------------------|-----------------------------------------------------------|
| between two holders, one of which begins at or below it  | the new owner had read what was stored when it took over  |
| while the way is not whole, and a dial after it          | what was under way arrives when it is again               |
| at the first commit after the broker was started again   | its table is as old as its last write, 5 s at most; one   |
|                                                          | that was stopped in order has written all of it           |
| when an operator set it back, until consumers go by it   | oracle/by_hand.py                                         |

How far from the taking of its queue a message may be received again: what was not committed comes again.

older holding's receipt ── commit (first after 10 s, then every 5 s) ──┬── younger holding taken ── its receipt
                   └────────── at most U before it was taken ──────────┘
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .by_hand import Reset
from .deliveries import Asker, Dues, Holding, Queue, all_askers
from .intervals import Stretch, merged
from .quiet import aftermath_ms, brokers_joined, disturbed, members_ms
from .world import World

FIRST_PERSIST_MS = 10_000.0
"""`BrokerController`: a broker writes its table of offsets first after 10 s, then every flushConsumerOffsetInterval."""


@dataclass(slots=True, eq=False)
class CommitRules:
    """Answers for one run."""

    dues: Dues
    deleted: Collection[tuple[str, str]] = field(default=())
    """Topic and broker name where the topic was deleted: with it go all offsets."""
    stopped: Collection[tuple[str, int]] = field(default=())
    """The processes of brokers, node and incarnation, that have ended in order."""
    groups: Mapping[str, Asker] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = {group.name: group for group in all_askers(self.world)}

    @property
    def world(self) -> World:
        return self.dues.world

    def of_group(self, queue: Queue, group: str) -> list[Holding]:
        """The holdings of the queue by members of the group, in order of time."""
        return [holding for holding in self.dues.held.get(queue, ()) if holding.node in self.groups[group].members]

    def began_at(self, queue: Queue, group: str, at_ms: float) -> int | None:
        """The lowest offset that those began at who held it then, or all before: what lies below is not theirs to work
        on, for another one's commit, or where the group begins, has passed it. None: nobody held it."""
        held, late_ms = self.of_group(queue, group), self.world.timers.delivery_ms
        then = [h.offset for h in held if h.start_ms <= at_ms <= h.end_ms + late_ms]
        return min(then or (h.offset for h in held), default=None)

    def may_go_back(
        self, queue: Queue, group: str, offset: int, before_ms: float | None, at_ms: float, lag_ms: float = 0.0
    ) -> bool:
        """Whether a commit of `offset` at `at_ms` may follow that of a higher one at `before_ms`; None: who committed
        that is not known, for it was before this process of the broker. A holder's last commit arrives at once, or
        `lag_ms` later."""
        members = self.groups[group].members
        if before_ms is None or not all(self.dues.is_whole(member, queue[1], at_ms, at_ms) for member in members):
            return True
        held, late_ms = self.of_group(queue, group), self.world.timers.delivery_ms + lag_ms
        then = [h for h in held if h.start_ms <= before_ms <= h.end_ms + late_ms]
        now = [h for h in held if h.start_ms <= at_ms <= h.end_ms + late_ms and h.offset <= offset]
        return any(one is not other for one in then for other in now)

    def was_reset(self, queue: Queue, group: str, from_ms: float, to_ms: float, offset: int | None = None) -> bool:
        """Whether an operator set the group's offset of the queue in that time, or just before it; beyond `offset`
        where one is given."""
        return any(
            reset.of(queue, group) and reset.near(from_ms, to_ms) and (offset is None or reset.offset > offset)
            for reset in self.world.resets
        )

    def holder(self, queue: Queue, group: str, at_ms: float) -> str:
        """Who held the queue then, or last; "" for nobody."""
        held = [holding for holding in self.of_group(queue, group) if holding.start_ms <= at_ms]
        return max(held, key=lambda h: (h.end_ms > at_ms, h.start_ms)).node if held else ""

    def died_after(self, broker: str, at_ms: float, until_ms: float) -> float | None:
        """When a process of the broker first ended in (at_ms, until_ms]; None: none did."""
        ends = [life.end_ms for life in self.world.lives_of(broker)]
        starts = [life.start_ms for life in self.world.lives_of(broker)[1:]]
        return min((ms for ms in (*ends, *starts) if at_ms < ms <= until_ms), default=None)

    def may_have_lost(self, broker: str, at_ms: float, until_ms: float) -> bool:
        """Whether what the broker was told then may be gone: it died before it had written it. One that is stopped in
        order writes its table last of all (`BrokerController.shutdown`: consumerOffsetManager.persist)."""
        died_ms = self.died_after(broker, at_ms, until_ms)
        if died_ms is None:
            return False
        lives = [life for life in self.world.lives_of(broker) if life.start_ms <= at_ms]
        first_ms = lives[-1].start_ms + FIRST_PERSIST_MS if lives else 0.0
        flush = flush_ms(self.world)
        persisted_ms = max(first_ms, at_ms + flush) + flush / 2  # it may be at work on the write before
        for pause in self.world.paused(broker):
            if at_ms <= pause.end_ms and pause.start_ms <= died_ms:
                persisted_ms += pause.end_ms - pause.start_ms
        return died_ms <= persisted_ms and (not lives or (broker, lives[-1].incarnation) not in self.stopped)


COMMIT_MS = 10_000.0
"""`MQClientInstance` persists offsets first after 10 s, then every `persistConsumerOffsetInterval` of 5 s."""
FLUSH_MS = 5_000.0
"""`BrokerConfig.flushConsumerOffsetInterval`: what a broker that is killed forgets of the offsets it was told."""


def commit_ms(world: World) -> float:
    """How long a receipt may stay uncommitted, by the slowest consumer."""
    return max([COMMIT_MS, *_longest(world, "consumer", "persistConsumerOffsetInterval")])


def flush_ms(world: World) -> float:
    """How much of what it was told a killed broker forgets, by the slowest broker."""
    return max(_longest(world, "broker", "flushConsumerOffsetInterval"), default=FLUSH_MS)


def _longest(world: World, kind: str, name: str) -> list[float]:
    """The setting at each node of the kind."""
    return [float(str(world.setting(node.name, name))) for node in world.of_kind(kind)]


class Redelivery(NamedTuple):
    """How far from the taking of its queue a first receipt may lie, outside of disturbances and within them."""

    uncommitted_ms: float
    owners_ms: float
    disturbed: Sequence[Stretch]
    resets: Sequence[Reset] = ()
    """What an operator sent a group back to comes again."""

    @classmethod
    def of(cls, world: World) -> Redelivery:
        """`disturbed` reaches from U + flush before each fault, and broker that joins, until its aftermath is over:
        consumers see a new broker one poll apart, and share out its queues by what they see."""
        before_ms, after_ms = commit_ms(world) + flush_ms(world), aftermath_ms(world)
        joined = (Stretch(at_ms - before_ms, end_ms) for at_ms, end_ms in brokers_joined(world, after_ms))
        stretches = merged([*disturbed(world, before_ms, after_ms), *joined])
        return cls(commit_ms(world), members_ms(world.timers), stretches, world.resets)
