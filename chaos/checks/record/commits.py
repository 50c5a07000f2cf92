"""A group's place in a queue; what is told of commits there, and the rules for them."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....remoting.codes import RequestCode
from ...oracle.commits import CommitRules
from ...oracle.deliveries import Dues, Queue
from ...oracle.world import World
from ..check import Facts, Found, largest, least
from .control import Control, once
from .route_tables import exists


class Place(NamedTuple):
    """A queue, and a group there; with broadcasting a consumer."""

    topic: str
    broker_name: str
    queue_id: int
    group: str

    @property
    def queue(self) -> Queue:
        return self[:3]

    def told(self, rule: str, offset: int) -> dict[str, Any]:
        """What a finding by that rule says of an offset there, besides its times."""
        return {"rule": rule, "group": self.group, "queue_id": self.queue_id, "offset": offset}


class Behind(NamedTuple):
    """The first of the messages that one holder of a queue worked off, with all before them, and that one commit,
    later than persistConsumerOffsetInterval, or than the queue was given up, was the first to cover."""

    place: Place
    offset: int
    consumer: str
    incarnation: int
    taken_ms: float
    """When the holding began."""
    worked_ms: float
    committed_ms: float | None
    dropped_ms: float | None = None
    """When its holder gave the queue up, where that is what had to commit it."""


class AtSlave(NamedTuple):
    """Of a consumer's commits at a slave: in which part of the time (PART_MS)."""

    broker_name: str
    group: str
    slave: str
    client: str
    part: int


@dataclass(frozen=True)
class Committed(Facts):
    """How many commits, and when the first and the last of them was."""

    commits: int = 0
    first_ms: float | None = least()
    last_ms: float | None = largest()


@dataclass(frozen=True)
class CommitFacts(Found):
    """How many commits there were, and by rule how many nothing explains, or the machine's lateness alone; of these,
    the latter (unsure)."""

    at_brokers: Mapping[str, int] = field(default_factory=dict)
    """With broadcasting, by client: its commits that a broker got, which is nobody's to keep there."""
    at_slaves: Mapping[AtSlave, Committed] = field(default_factory=dict)


@once
def dues_of(control: Control, world: World) -> Dues:
    return Dues(world, control.rows)


@once
def commit_rules(control: Control, world: World) -> CommitRules:
    deleted = {(row.topic, row.node) for row in control.rows("topic") if not exists(row.value)}
    ended = {row.source for row in control.rows("not_done")}
    stops = (row for row in control.rows("stopped") if world.is_ours(row.node) and row.node not in ended)
    return CommitRules(dues_of(control, world), deleted, {row.process for row in stops})


@once
def unread(control: Control) -> Set[tuple[str, float]]:
    """Consumers, and when each took a queue though its question for the queue's offset had no answer. The consumer's
    row says that, or the row of its transport."""
    questions = (row for row in control.rows("timed_out") if row.f == RequestCode.QUERY_CONSUMER_OFFSET.name)
    waited = {(row.node, round(row.time_ms, 1)) for row in questions}
    return {
        (row.node, row.time_ms)
        for row in control.rows("queue_taken")
        if row.decoded is not None and ("answered" not in row.decoded or (row.node, round(row.time_ms, 1)) in waited)
    }
