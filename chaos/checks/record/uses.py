"""Counts of what clients used: each producer's sends by queue, retries by broker, reads by queue and time.

They add up over parts of a history: the edges between segments are rows that stay where they are (a route taken, a
fault that begins or ends), and buckets are equal parts of all time.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....remoting.node.profile import Profile
from ...oracle.intervals import Stretch, merged
from ...oracle.link import MOMENT_MS
from ...oracle.time_outs import SEND, SendRules, avoidance, avoids, isolation_ms
from ...oracle.world import World
from ..check import Facts
from .control import Control, once

PART_MS = 10_000.0
"""What is read, and what is committed at a slave, is counted in such parts of all time."""
Queue = tuple[str, int]
"""Broker name and queue id."""


class Segment(NamedTuple):
    """One process's sends to a topic that began between two edges."""

    node: str
    incarnation: int
    topic: str
    start_ms: float
    shard: int = -1
    """Of an ordered workload: whose number the messages have that one sharding key has."""


class Read(NamedTuple):
    """A queue and who read it, or asked for it."""

    node: str
    topic: str
    broker_name: str
    queue_id: int
    address: str | None = None
    """Who refused."""
    code: int | None = None
    """With which response code."""


class Begun(NamedTuple):
    """A pull of a queue that its holder began some time after it took the queue, or after the answer of the pull
    before (`is_next`)."""

    node: str
    queue: tuple[str, str, int]
    since_ms: float
    began_ms: float
    is_next: bool


class SlaveRead(NamedTuple):
    """A consumer and the slave that it pulled from."""

    node: str
    broker_name: str
    address: str


@dataclass(frozen=True)
class BrokerShares(Facts):
    """What clients used; see the module."""

    sends: Mapping[Segment, Mapping[Queue, int]] = field(default_factory=dict)
    """Acknowledged ones, by the queue that each went to."""
    failed: Mapping[tuple[str, float], int] = field(default_factory=dict)
    """Of each producer and segment's start: sends and tries that failed in it, and slow ones where those count."""
    reads: Mapping[Read, Mapping[int, int]] = field(default_factory=dict)
    """How many of its pulls were answered, and of its messages came, in each PART_MS of all time."""
    refused: Mapping[Read, Mapping[int, int]] = field(default_factory=dict)
    """How many of its pulls were answered with a code that says no, in each PART_MS."""
    begun: tuple[Begun, ...] = ()
    """The first pull of each taking of a queue, and those that did not follow at once on an answer."""
    at_slaves: Mapping[SlaveRead, Mapping[int, int]] = field(default_factory=dict)
    """How many pulls it began in each PART_MS."""


def slave_addresses(world: World) -> Sequence[str]:
    """Where slaves of ours are, or were."""
    return sorted({address for node in world.ours("slave") for address in node.addresses})


def ran_out(control: Control, rules: Mapping[str, SendRules]) -> frozenset[tuple[str, int, str, int]]:
    """The tries, by process, send and number, that were not answered in all the time that their sends had."""
    return frozenset(
        (row.node, row.incarnation, row.op_id or "", row.attempt or 0)
        for row in control.rows("timed_out")
        if row.f == SEND and row.node in rules and (row.duration_ms or 0.0) >= rules[row.node].time_ms
    )


def least_left_ms(world: World) -> float:
    """A send with less time left than this may have had none when it looked."""
    return 2 * world.timers.delivery_ms + MOMENT_MS


def detects(world: World, producer: str) -> bool:
    """Whether the producer probes brokers that failed, and forgets those without an address
    (`LatencyFaultToleranceImpl.detectByOneRound`)."""
    is_5x = world.timers.profile is Profile.V5_X
    return is_5x and avoids(world, producer) and bool(world.setting(producer, "startDetectorEnable"))


class Isolated:
    """Until when each try that failed, or was slow, isolates its broker."""

    def __init__(self, control: Control, world: World) -> None:
        self._longest_counts = world.timers.profile is not Profile.V4_9  # 5.x never shortens one
        self._of: dict[tuple[str, int], list[tuple[float, str, float]]] = defaultdict(list)
        self._left: dict[tuple[str, int], list[tuple[float, str]]] = defaultdict(list)
        self._latency: dict[tuple[str, int], list[tuple[int, str, float]]] = defaultdict(list)
        for row in control.rows("broker_isolated", "route_changed"):
            if row.event == "route_changed":
                gone = {broker for _, broker, _ in self._of.get(row.process, ())} - {*row.said.get("queues", ())}
                if not self._longest_counts:  # 4.9 forgets what has no queue to write to
                    self._of[row.process] += [(row.time_ms, broker, row.time_ms) for broker in gone]
                elif gone and detects(world, row.node):
                    self._left[row.process] += [(row.time_ms, broker) for broker in gone]
            elif row.f == "isolated" and avoids(world, row.node):
                failed = bool(row.said.get("failed"))
                for_ms = isolation_ms(world, row.node, row.duration_ms or 0.0, failed=failed)
                self._of[row.process].append((row.time_ms, row.broker_name, row.time_ms + for_ms))
                self._latency[row.process].append((row.seq, row.broker_name, row.duration_ms or 0.0))

    def until_ms(self, node: str, incarnation: int, by_ms: float, *, surely: bool = False) -> dict[str, float]:
        """Each broker that the process had isolated by then, and until when; `surely`: but for those that its detector
        may have forgotten since, because no route named them."""
        found: dict[str, float] = {}
        left = self._left.get((node, incarnation), ()) if surely else ()
        for at_ms, broker, until_ms in self._of.get((node, incarnation), ()):
            if at_ms <= by_ms and not any(name == broker and at_ms <= left_ms <= by_ms for left_ms, name in left):
                found[broker] = max(found.get(broker, 0.0) if self._longest_counts else 0.0, until_ms)
        return found

    def latency_ms(self, node: str, incarnation: int, seq: int) -> dict[str, float]:
        """How long the last try took that isolated each broker, or ended its isolation, before this row."""
        return {broker: took_ms for number, broker, took_ms in self._latency[node, incarnation] if number < seq}

    def spans(self) -> Iterator[tuple[str, str, float, float]]:
        """Producer, broker, and from when until when a try isolated it, whatever came after."""
        for (node, _), of in self._of.items():
            yield from ((node, broker, at_ms, until_ms) for at_ms, broker, until_ms in of)

    def is_any(self, node: str, incarnation: int, from_ms: float, to_ms: float) -> bool:
        """Whether the process had a broker isolated at some time in between."""
        of = self._of.get((node, incarnation), ())
        return any(max(at_ms, from_ms) < min(until_ms, to_ms) for at_ms, _, until_ms in of)

    def ends_ms(self) -> Iterator[float]:
        """When a process had no broker isolated any more."""
        for of in self._of.values():
            yield from (one.end_ms for one in merged(Stretch(at_ms, until_ms) for at_ms, _, until_ms in of))


isolated = once(Isolated)


def edges(control: Control, world: World) -> Sequence[float]:
    """Between which sends are counted: whenever a producer took a route, at each begin and end of a fault, and when a
    producer has no broker isolated any more."""
    producers = {node.name for node in world.of_kind("producer")}
    found = {row.time_ms for row in control.rows("route_changed") if row.node in producers}
    found |= {at_ms for at_ms in isolated(control, world).ends_ms() if at_ms < world.end_ms}
    avoided = avoidance(world)
    after_ms = avoided.longest_ms if avoided else 0.0
    for fault in world.faults:
        found |= {at_ms for at_ms in (fault.start_ms, fault.end_ms, fault.end_ms + after_ms) if at_ms < world.end_ms}
    return [0.0, *sorted(at_ms for at_ms in found if at_ms > 0.0)]
