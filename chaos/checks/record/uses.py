"""Counts of what clients used: each producer's sends by queue, retries by broker, reads by queue and time.

They add up over parts of a history: the edges between segments are rows that stay where they are (a route taken, a
fault that begins or ends), and buckets are equal parts of all time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
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
        self._is_4_9 = world.timers.profile is Profile.V4_9
        self._of: dict[tuple[str, int], list[tuple[float, str, float]]] = defaultdict(list)
        self._named: dict[tuple[str, int], list[tuple[float, set[str]]]] = defaultdict(list)
        self._latency: dict[tuple[str, int], list[tuple[int, str, float]]] = defaultdict(list)
        routes = defaultdict[tuple[str, int], dict[str, set[str]]](dict)
        producers = {node.name for node in world.ours("producer") if self._is_4_9 or detects(world, node.name)}
        for row in control.rows("broker_isolated", "route_changed"):
            if row.event == "route_changed" and row.node in producers:
                of = routes[row.process]
                of[row.topic] = {*row.said.get("queues", ())}
                # 4.9 forgets a broker that has no queue of the topic that is sent to, 5.x one without an address.
                named = set.intersection(*of.values()) if self._is_4_9 else set.union(*of.values())
                self._named[row.process].append((row.time_ms, named))
            elif row.f == "isolated" and avoids(world, row.node):
                failed = bool(row.said.get("failed"))
                for_ms = isolation_ms(world, row.node, row.duration_ms or 0.0, failed=failed)
                self._of[row.process].append((row.time_ms, row.broker_name, row.time_ms + for_ms))
                self._latency[row.process].append((row.seq, row.broker_name, row.duration_ms or 0.0))

    def until_ms(self, node: str, incarnation: int, by_ms: float, *, surely: bool = False) -> dict[str, float]:
        """Each broker that the process had isolated by then, and until when; `surely`: but for those that it may have
        forgotten since, because a route did not name them. 5.x never shortens an isolation."""
        found: dict[str, float] = {}
        named = self._named.get((node, incarnation), ()) if surely else ()
        last = bisect_right(named, by_ms, key=itemgetter(0))
        for at_ms, broker, until_ms in self._of.get((node, incarnation), ()):
            first = max(bisect_right(named, at_ms, key=itemgetter(0)) - 1, 0)
            if at_ms <= by_ms and all(broker in names for _, names in named[first:last]):
                found[broker] = max(0.0 if self._is_4_9 else found.get(broker, 0.0), until_ms)
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
