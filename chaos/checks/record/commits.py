"""The commits that need an explanation, one by one, and the number of all others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ...oracle.deliveries import Dues, Queue
from ...oracle.world import World
from ..check import Facts, joined, largest, least
from .control import Control, once

Place = tuple[str, str, int, str]
"""Topic, broker name, queue id, group."""
OfQueue_ = TypeVar("OfQueue_", bound="OfQueue")


@dataclass(frozen=True)
class OfQueue:
    """What is told of one offset of a queue, and of one group there; with broadcasting of a consumer."""

    topic: str
    broker_name: str
    queue_id: int
    group: str
    offset: int

    @property
    def queue(self) -> Queue:
        return self.topic, self.broker_name, self.queue_id

    @property
    def place(self) -> Place:
        return *self.queue, self.group

    def told(self, rule: str) -> dict[str, Any]:
        """What a finding by that rule has of it besides its times."""
        return {"rule": rule, "group": self.group, "queue_id": self.queue_id, "offset": self.offset}


@dataclass(frozen=True)
class Ahead(OfQueue):
    """A message of a queue that its group committed past before a member had received it, or that none has."""

    committed_ms: float
    """The first commit beyond it."""
    client: str | None
    """Whose commit that was: a client's id."""
    acked_ms: float | None
    received_ms: float | None


@dataclass(frozen=True)
class Back(OfQueue):
    """A commit of a lower offset than the one before."""

    before: int
    at_ms: float
    before_ms: float | None
    """When the one before was committed to this process of the broker; None: it was not, or nobody knows."""
    client: str | None
    is_repeated: bool = False
    """Whether no request of the client brought it: it came as the broker answered a pull that it had held."""


@dataclass(frozen=True)
class Older(OfQueue):
    """A queue taken at an offset below the one that had been committed last."""

    consumer: str
    taken_ms: float
    passed_ms: float
    """Since when the committed offset has been a higher one."""
    master_ms: float | None = None
    """Of a name with slaves: since when its master had a higher one, while they copied its offsets (Copied)."""
    answered: int | None = None
    """The offset that its consumer had been answered, where that is known."""


@dataclass(frozen=True)
class Forgotten(OfQueue):
    """A commit before which the broker had another offset than the same process of it had been told last; an answer
    beyond all that it had been told; or a broadcasting consumer's queue that began below its own last offset."""

    before: int
    """What it had."""
    at_ms: float
    told_ms: float
    is_answer: bool = False
    """Whether the broker answered it to a question."""
    slave: str = ""
    """Which slave of the broker name that was."""
    of_pull: bool = False
    """Whether a pull told the broker, which had the lower offset later."""


@dataclass(frozen=True)
class Behind(OfQueue):
    """The first of the messages that one holder of a queue worked off, with all before them, and that one commit,
    later than persistConsumerOffsetInterval, or than the queue was given up, was the first to cover."""

    consumer: str
    incarnation: int
    taken_ms: float
    """When the holding began."""
    worked_ms: float
    committed_ms: float | None
    dropped_ms: float | None = None
    """When its holder gave the queue up, where that is what had to commit it."""


@dataclass(frozen=True)
class GivenUp(OfQueue):
    """A commit of a consumer for a queue that it had given up and not taken again; or by a channel by which it had
    unregistered."""

    consumer: str
    at_ms: float
    dropped_ms: float
    left: bool = False
    """Whether it had unregistered, then."""


class Copied(NamedTuple):
    """The last time before a queue was taken in which its broker's slaves copied the master's offsets for certain."""

    from_ms: float
    to_ms: float


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
class CommitFacts(Facts):
    """What is gathered of a history."""

    commits: int = 0
    at_brokers: Mapping[str, int] = field(default_factory=dict)
    """With broadcasting, by client: its commits that a broker got, which is nobody's to keep there."""
    odd: tuple[OfQueue, ...] = joined()
    """Those that need an explanation."""
    at_slaves: Mapping[AtSlave, Committed] = field(default_factory=dict)


@once
def dues_of(control: Control, world: World) -> Dues:
    return Dues(world, control.rows)
