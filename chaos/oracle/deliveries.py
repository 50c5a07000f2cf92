"""The queues of a group: which consumer must pull from which broker, and by when it must have each acknowledged
message.

    acknowledged ─► its queue is held, from an offset at or before it ─► nothing keeps its holder from pulling ─ D ─►
                    queue_taken ├─────────────────────────┤ queue_dropped                                      due

| a holder is kept from pulling                      | until                                    | of                   |
|----------------------------------------------------|------------------------------------------|----------------------|
| while its route names no master of the broker      | a pause after it does; where it named a  | PullAPIWrapper       |
|                                                    | slave, a pull held there is over, too    |                      |
| while the broker does not list it (code 24)        | its next heartbeat there, and a pause    | ConsumerManager      |
| when its queues have changed (code 25)             | the same                                 | ConsumerGroupInfo    |
| while a process stands still, or the way is shut   | what is sent again came, a dial, a pause | link.py              |
| while a pull waits that was lost then              | it has run out (30 s), and a pause       | PullMessageService   |
| while the topic may not be read there, by hand     | a pause                                  | PullMessageProcessor |

Everywhere else a message is due within D = 5 s: a pull that waits is woken at once, and where that is missed a broker
looks at its held pulls every 5 s (`PullRequestHoldService`). Due is also

| rule        | what                                                                                              |
|-------------|---------------------------------------------------------------------------------------------------|
| passed over | what a later holding starts beyond: its group has committed what nobody received                  |
| copied      | while the route has named the slave alone for P + C + 31 s: what it must have copied (slaves.py)  |
| delayed     | its level's time after it was acknowledged, and the same from there on; never before (`delivered`) |
| quiet       | in quiet times (quiet.py), whoever should hold the queue                                          |

That the consumer does heartbeat, and pulls run out, is `timers_kept`'s and `timed_waits`'. Where a broker does not tell
who it heard (somebody else's, older histories) a heartbeat may take H, and a fault is felt as long as routes and
members may differ. With broadcasting every consumer is a group of its own.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...actors.broker.config import parse_delay_levels
from ...remoting.codes import RequestCode
from ..topology import broker_name, is_slave
from .by_hand import unreadable
from .intervals import Stretch, grouped, merged, until_next, without
from .link import most_hung_brokers, resent_after_ms
from .queue_owners import Rows, heard_by, node_of_client, quiet_for_groups
from .quiet import BARELY_MS, aftermath_ms, felt, harmful, unnoticed
from .recorded import BY_HAND, Fault
from .roles import elects
from .slaves import COPIED_MS, SYNCHRONIZED_MS, made_masters, offsets_copied, slaves_of
from .time_outs import HEARTBEAT, ILLEGAL_OFFSET_MS
from .world import World, once

PROMPT_MS = 5_000.0
"""D. `PullRequestHoldService` looks at held pulls every 5 s, whatever woke them before."""
STORES_AGAIN_MS = 10_000.0
"""ScheduleMessageService.DELAY_FOR_A_PERIOD: after a message that could not be stored, its level waits so long."""
PULL_MS = 31_000.0
"""What a pull that a fault swallowed may keep its queue waiting: its time-out of 30 s, and a pause of 1 s."""
PAUSE_MS = 1_000.0
"""`pullTimeDelayMillsWhenException`."""
HELD_MS = 20_000.0 + PAUSE_MS
"""How long a pull under way at another broker may be held there: 15 s, and until the next look."""

Queue = tuple[str, str, int]
"""Topic, broker name, queue id."""


class Holding(NamedTuple):
    """One consumer process pulls the queue from `offset` on, in [start_ms, end_ms)."""

    start_ms: float
    end_ms: float
    node: str
    offset: int


class Asker(NamedTuple):
    """A group that must have every message of its topic; with broadcasting one consumer."""

    name: str
    topic: str
    """"": every topic, where the run does not say which."""
    members: frozenset[str]


class Due(NamedTuple):
    """By when a message must have been received, and why."""

    at_ms: float
    from_ms: float
    """When D began to count."""
    rule: str
    consumer: str = ""
    """Who held its queue; "": the whole group is asked."""


def askers(world: World) -> list[Asker]:
    """Every group of the run; with broadcasting every consumer. Those are left out whose topic somebody deleted by
    hand."""
    return [asker for asker in all_askers(world) if asker.topic not in world.deleted]


def all_askers(world: World) -> list[Asker]:
    """Those, too."""
    if world.workload.get("broadcasting"):
        nodes = world.of_kind("consumer")
        return [Asker(node.name, world.topic_of(node.name), frozenset([node.name])) for node in nodes]
    return [Asker(name, world.topic_of(of[0]), frozenset(of)) for name, of in sorted(world.groups.items())]


def holdings(world: World, rows: Rows) -> dict[Queue, list[Holding]]:
    """Who held each queue when, from `queue_taken` and `queue_dropped` rows; in order of time."""
    ends = {(row.node, row.incarnation, row.op_id): row.time_ms for row in rows("queue_dropped")}

    def held(row: Any) -> Holding:
        ended_ms = ends.get((row.node, row.incarnation, row.op_id), math.inf)
        end_ms = min(ended_ms, world.ended_ms(row.node, row.incarnation), world.end_ms)
        return Holding(row.time_ms, end_ms, row.node, row.offset)

    found = grouped(((row.topic, row.broker_name, row.queue_id), held(row)) for row in rows("queue_taken"))
    return {queue: sorted(of) for queue, of in found.items()}


def delivered(world: World, broker: str, level: str, sent_ms: float, acked_ms: float) -> Stretch | None:
    """From when on, and from when on for certain, the broker has delivered a message of this delay level to its topic;
    None where nobody can say: a message may be lost, or kept anew, where another broker becomes the master later."""
    made = made_masters(world).get(broker)
    return falls_due(world, broker, level, sent_ms, acked_ms) if made is None or sent_ms >= made.at_ms else None


def falls_due(world: World, broker: str, level: str, sent_ms: float, acked_ms: float) -> Stretch | None:
    """The same at the broker that is the master then; None where nobody can say: the due time is one of the broker's
    wall clock, and nobody knows which broker has a name that somebody registered by hand, or that elects its master.

    A store whose disk is full takes no message that becomes due, either: its level tries again every 10 s."""
    of_name = [node.name for node in world.of_kind("broker", "slave") if broker_name(node.name) == broker]
    if not of_name or elects(world, broker) or any(world.clocks.get(node) for node in of_name):
        return None
    levels_ms = parse_delay_levels(str(world.setting(of_name[0], "messageDelayLevel")))
    kept_ms = float(levels_ms[min(int(level), len(levels_ms)) - 1])
    from_ms, to_ms = sent_ms + kept_ms, acked_ms + kept_ms
    for disk in (one for one in world.full_disks if broker_name(one.broker) == broker):
        if disk.surely.start_ms <= from_ms < disk.surely.end_ms:
            from_ms = disk.surely.end_ms
        again_ms = disk.perhaps.end_ms + STORES_AGAIN_MS
        if disk.perhaps.start_ms - PROMPT_MS <= to_ms < again_ms:
            to_ms = again_ms
    return Stretch(from_ms, to_ms)


class Dues:
    """Answers for one run, from its control rows: `of` a message and who asks for it."""

    def __init__(self, world: World, rows: Rows) -> None:
        self.world, self.held = world, holdings(world, rows)
        routes = ((row, row.said.get("brokers") or {}) for row in rows("route_changed"))
        self._routed: Mapping[tuple[str, str], list[tuple[float, Mapping[str, Mapping[str, str]]]]] = grouped(
            ((row.node, row.topic), (row.time_ms, brokers)) for row, brokers in routes
        )
        """Of a consumer and a topic: from when on its route named which brokers, and which addresses by id."""
        telling = {node for node, _ in self._routed}
        told = telling & {node.name for node in world.of_kind("consumer")}
        ours = {node.name for node in world.ours("consumer")}
        self._tell_routes = told | ours if any(map(world.is_ours, telling)) else told
        """The consumers that say what their routes are; one of ours may have got none."""
        self._listed = heard_by(world, rows)
        """The channels by which a broker, or slave, had heard of the consumer."""
        self._heard = grouped((node_of_client(row), row) for row in rows("client_heartbeat"))
        """The heartbeats of it that brokers handled."""
        self._shared = grouped(((row.node, row.topic), row.time_ms) for row in rows("assigned"))
        """When the queues changed that a consumer has of a topic."""
        self._rounds = grouped((row.node, row) for row in rows("scheduled_task") if row.f == HEARTBEAT)
        self._lost = [row for row in rows("timed_out") if row.f == RequestCode.PULL_MESSAGE.name]
        self.memo: dict[Any, Any] = {}

    def of(self, queue: Queue, offset: int, acked_ms: float, asker: Asker) -> Due | None:
        """None: nothing makes it due before the run's end. Or a slave that was made master may lack it."""
        made = made_masters(self.world).get(queue[1])
        if made is not None and made.copied_ms - COPIED_MS <= acked_ms < made.at_ms:
            return None
        held = [h for h in self.held.get(queue, ()) if h.node in asker.members and self.world.permits(queue[1], h.node)]
        found = [
            due
            for number, holding in enumerate(held)
            if (due := self._of_holding(queue, holding, offset, acked_ms, is_first=not number))
        ]
        if made is None or acked_ms < made.at_ms:
            found += self._quietly(queue, acked_ms, asker, held)
        due = min(found, default=None)
        return None if due is None or self._is_skipped(queue, offset, asker, due) else due

    def _is_skipped(self, queue: Queue, offset: int, asker: Asker, due: Due) -> bool:
        """Whether an operator sent the group past it before it was due."""
        return any(
            reset.of(queue, asker.name) and reset.offset > offset and reset.at_ms <= due.at_ms
            for reset in self.world.resets
        )

    def _of_holding(
        self, queue: Queue, holding: Holding, offset: int, acked_ms: float, *, is_first: bool
    ) -> Due | None:
        made = made_masters(self.world).get(queue[1])
        is_of_made = made is not None and acked_ms >= made.at_ms
        if holding.offset > offset:
            if is_first or acked_ms > holding.start_ms or is_of_made:
                return None  # where a group begins is its consumeFromWhere's to say
            return Due(holding.start_ms, holding.start_ms, "passed over", holding.node)
        leaves_ms, found = self.leaving_ms(holding), list[Due]()
        # A made master may have given it the offset of a message that it lacks, and that the group had passed.
        reads = (one for one in self.free(queue, holding) if not is_of_made or one.start_ms <= acked_ms)
        free = ((max(start_ms, acked_ms), end_ms, "held") for start_ms, end_ms in reads)
        at_slave = self.at_slave(queue, holding) if self._is_copied(queue[1], acked_ms) else ()
        copied_ms = acked_ms + SYNCHRONIZED_MS
        copied = ((max(start_ms, copied_ms), end_ms, "copied") for start_ms, end_ms in at_slave)
        for from_ms, end_ms, rule in (*free, *copied):
            if from_ms + PROMPT_MS <= min(end_ms, leaves_ms):
                found.append(Due(from_ms + PROMPT_MS, from_ms, rule, holding.node))
        return min(found, default=None)

    def leaving_ms(self, holding: Holding) -> float:
        """From when on the consumer may have given the queue up: it says so when it has committed all that it drops,
        each with a broker that, with a fault about, it may have to look up and to connect to first."""
        timers = self.world.timers_of(holding.node)
        dropping_ms = (timers.C_ms + timers.A_ms) * len(self.world.of_kind("broker"))
        after_ms = timers.P_ms + timers.Qr_ms
        slowly = any(
            start_ms < holding.end_ms and end_ms + after_ms > holding.end_ms
            for start_ms, end_ms in (felt(self.world, fault) for fault in harmful(self.world))
        )
        return holding.end_ms - (dropping_ms if slowly else timers.delivery_ms)

    # -- at the master

    @once
    def free(self, queue: Queue, holding: Holding) -> list[Stretch]:
        """Where in the holding nothing keeps its consumer from pulling of this broker's master."""
        topic, broker, queue_id = queue
        closed = unreadable(self.world.acts, broker, topic, queue_id)
        closed = [Stretch(one.start_ms, one.end_ms + PAUSE_MS) for one in closed]
        if (holding.node, topic) not in self._routed:
            closed += self._routes_disturbed(holding.node, broker)
        return [
            left
            for (start_ms, end_ms), master in self._masters(holding.node, topic, broker)
            for left in without(
                max(start_ms, holding.start_ms),
                min(end_ms, holding.end_ms),
                [*closed, *self._unreached(holding.node, topic, master)],
            )
        ]

    def _masters(self, consumer: str, topic: str, broker: str) -> Iterator[tuple[Stretch, str]]:
        """When the consumer's route named which master, and a pull under way elsewhere is over: a slave holds pulls of
        what it has no copy of. Where nobody recorded routes: always."""
        (_, first), *later = self._routed.get((consumer, topic), [(0.0, {broker: {"0": ""}})])
        states = [(-math.inf, first), *later]
        before: Mapping[str, str] = {}
        made = made_masters(self.world).get(broker)
        for (at_ms, brokers), end_ms in until_next(states, self.world.end_ms):
            addresses = brokers.get(broker) or {}
            address = addresses.get("0", "")
            master = self.world.owners.get(address, "") if address else broker  # who registered by hand may be nobody
            is_made = made is not None and master == made.node
            if "0" in addresses and master and (not is_slave(master) or is_made or elects(self.world, broker)):
                late_ms = 0.0 if "0" in before else HELD_MS if before else PAUSE_MS
                late_ms += self._mended_ms(consumer) if is_made else 0.0
                yield Stretch(at_ms + late_ms, end_ms), master
            before = addresses

    def _mended_ms(self, consumer: str) -> float:
        """How long after its first pull a consumer that asked a new master for more than it has reads on from the new
        master's end: it takes the queue again at a rebalance."""
        timers = self.world.timers_of(consumer)
        return HELD_MS + ILLEGAL_OFFSET_MS + timers.Qr_ms + timers.A_ms

    @once
    def _unreached(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When pulls may not come to this broker, or slave, or be refused there."""
        return merged([*self.cut_off(consumer, broker), *self._unknown(consumer, topic, broker)])

    def is_whole(self, consumer: str, broker: str, from_ms: float, to_ms: float) -> bool:
        """Whether all that the consumer sends the broker, or slave, in that time comes there at once."""
        return not any(one.start_ms <= to_ms and from_ms <= one.end_ms for one in self.cut_off(consumer, broker))

    @once
    def cut_off(self, consumer: str, broker: str) -> list[Stretch]:
        """When what the consumer sends the broker, or slave, may be lost, or stand still; of a pull that was until it
        has run out. The end of its own process ends what it holds."""
        world = self.world
        dial_ms = world.timers_of(consumer).C_ms + PAUSE_MS
        faults = [fault for fault in world.process_faults(consumer) if not fault.ends_process]
        faults += [fault for fault in world.link_faults(consumer, broker) if not _barely(fault)]
        found = []
        for fault in (*faults, *world.process_faults(broker)):
            start_ms, end_ms = felt(world, fault)
            after_ms = 0.0 if end_ms - start_ms <= BARELY_MS else dial_ms + resent_after_ms(fault)
            found.append(Stretch(start_ms, end_ms + after_ms))
        waited = (
            Stretch(row.began_ms, row.time_ms + PAUSE_MS)
            for row in self._lost
            if row.node == consumer and world.owners.get(row.address) == broker
        )
        swallowed = [w for w in waited if any(w.start_ms < one.end_ms and one.start_ms < w.end_ms for one in found)]
        return merged(found + swallowed)

    def _unknown(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When the broker may not list the consumer, or not know of the last change of its queues."""
        world, untold = self.world, self._untold(consumer, topic, broker)
        if self._tells(consumer, broker):
            unlisted = without(-math.inf, world.end_ms, self._listed.get(broker, {}).get(consumer, ()))
            return untold + [Stretch(start_ms, end_ms + PAUSE_MS) for start_ms, end_ms in unlisted]
        after_ms = max(PULL_MS + world.timers_of(consumer).C_ms, aftermath_ms(world))
        faults = [*world.process_faults(broker), *world.link_faults(consumer, broker)]
        return untold + [Stretch(one.start_ms, one.end_ms + after_ms) for one in faults if not unnoticed(world, one)]

    def _untold(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When the broker may not know of the last change of the consumer's queues."""
        changes, timers = self._shared.get((consumer, topic), []), self.world.timers_of(consumer)
        if not self._tells(consumer, broker):
            heard_ms = timers.H_ms + timers.A_ms * most_hung_brokers(self.world) + PAUSE_MS
            return [Stretch(at_ms, at_ms + heard_ms) for at_ms in changes]
        return [Stretch(at_ms, self._told_ms(consumer, topic, broker, at_ms) + PAUSE_MS) for at_ms in changes]

    def _told_ms(self, consumer: str, topic: str, broker: str, at_ms: float) -> float:
        """When the broker handled the first heartbeat that tells of a change then: made after it, so with a subVersion
        that no heartbeat had before, and in no round that was under way."""
        heard = self._versions(consumer, topic)
        before = bisect_left(heard, at_ms, key=lambda one: one[0])
        known = max((version for _, _, version in heard[:before]), default=-math.inf)
        over_ms = self._round_over(consumer, at_ms)
        told = (
            heard_ms
            for heard_ms, node, version in heard[before:]
            if node == broker and heard_ms >= over_ms and (version > known or known == -math.inf)
        )
        return next(told, math.inf)

    @once
    def _versions(self, consumer: str, topic: str) -> Sequence[tuple[float, str, float]]:
        """When which broker handled a heartbeat of it, and the topic's subVersion in it; -inf where no row has that."""
        heard = ((row.time_ms, row.node, row.said.get("versions", {})) for row in self._heard.get(consumer, ()))
        return [(at_ms, node, float(of.get(topic, -math.inf))) for at_ms, node, of in heard]

    def _tells(self, consumer: str, broker: str) -> bool:
        return any(row.node == broker for row in self._heard.get(consumer, ())) and self.world.is_ours(broker)

    def _round_over(self, consumer: str, at_ms: float) -> float:
        """When the round of heartbeats is over that was under way then: what it says is older, and no other begins."""
        over_ms: list[float] = [r.time_ms for r in self._rounds.get(consumer, ()) if r.began_ms <= at_ms < r.time_ms]
        return max([at_ms, *over_ms])

    def _unrouted(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When a consumer that says what its route is had none of the broker: a process begins without any."""
        if consumer not in self._tell_routes:
            return []
        states = self._routed.get((consumer, topic), ())
        lives = ((life.start_ms, life.end_ms) for life in self.world.lives_of(consumer))
        first = ((since, next((at_ms for at_ms, _ in states if since <= at_ms), end)) for since, end in lives)
        named = [stretch for stretch, _ in self._masters(consumer, topic, broker)] if states else []
        return [*(Stretch(*one) for one in first), *without(-math.inf, self.world.end_ms, named)]

    def _routes_disturbed(self, consumer: str, broker: str) -> list[Stretch]:
        world, found = self.world, list[Fault]()
        for server in world.of_kind("name_server"):
            found += [*world.process_faults(server.name), *world.link_faults(consumer, server.name)]
            found += world.link_faults(broker, server.name)
        after_ms = aftermath_ms(world)
        found = [fault for fault in found if not fault.harmless(world.timers)]
        return [
            Stretch(felt(world, one).start_ms, felt(world, one).end_ms + (0.0 if unnoticed(world, one) else after_ms))
            for one in found
        ]

    # -- at a slave

    def _is_copied(self, master: str, acked_ms: float) -> bool:
        """Whether the only slave must have the message, and its topic, too. A master that has died may come back with a
        log that a slave's does not go on from: then it copies nothing any more."""
        lives = self.world.lives_of(master)
        return len(slaves_of(self.world, master)) == 1 and any(
            one.start_ms <= acked_ms <= one.end_ms - SYNCHRONIZED_MS and one.start_ms < lives[0].end_ms
            for one in offsets_copied(self.world, master)
        )

    def at_slave(self, queue: Queue, holding: Holding) -> list[Stretch]:
        """Where in the holding its consumer must read a slave of the broker, and nothing keeps it from that: its route
        has named slaves, any of which it may ask, and no master for so long that a pull of the master is over, and
        routes of other topics have followed. Where an address of the route is nobody's (registered by hand), its pulls
        may go there. A slave that stood still, or whose master was lost soon after the topic had been changed by hand,
        may never have copied the topic."""
        topic, broker, _ = queue
        family = (broker, *slaves_of(self.world, broker))
        changes = (act for act in self.world.acts if act.f == "update_topic" and act.topic == topic)
        copied_ms = [(act.began_ms, act.ended_ms + SYNCHRONIZED_MS) for act in changes if act.node in family]
        faults = (fault for fault in self.world.faults if fault.injection != BY_HAND)
        hit = [fault for fault in faults if {fault.source, fault.target} & {*family}]
        if any(fault.overlaps(*span) for span in copied_ms for fault in hit):
            return []
        stood_still = any(fault.stood_still and fault.source in family for fault in self.world.faults)
        if stood_still and not offsets_copied(self.world, broker):
            return []
        slaves = [slave for slave in slaves_of(self.world, broker) if self.world.permits(slave, holding.node)]
        states = until_next(self._routed.get((holding.node, topic), ()), self.world.end_ms)
        named = ((brokers.get(broker) or {}, Stretch(at_ms, end_ms)) for (at_ms, brokers), end_ms in states)
        without_master = ((of, stretch) for of, stretch in named if of and "0" not in of)
        owners = self.world.owners
        alone = grouped((frozenset(owners.get(at, "") for at in of.values()), one) for of, one in without_master)
        after_ms = self.world.timers_of(holding.node).P_ms + PULL_MS + self.world.timers.C_ms
        return [
            free
            for named_slaves, stretches in alone.items()
            if named_slaves <= {*slaves}
            for taken in [
                [
                    one
                    for slave in sorted(named_slaves)
                    for one in (*self._unreached(holding.node, topic, slave), *self._groupless(holding.node, slave))
                ]
            ]
            for one in merged(stretches)
            for free in without(max(one.start_ms + after_ms, holding.start_ms), min(one.end_ms, holding.end_ms), taken)
        ]

    def _groupless(self, consumer: str, slave: str) -> list[Stretch]:
        """When a slave that makes no groups by itself may not have the consumer's: until it has taken its master's over
        (`SlaveSynchronize.syncSubscriptionGroupConfig`)."""
        world, master = self.world, broker_name(slave)
        if all(world.values(slave, "autoCreateSubscriptionGroup")):
            return []
        heard = (row for member in world.members_of(consumer) for row in self._heard.get(member, ()))
        made_ms = min((row.time_ms for row in heard if row.node == master), default=math.inf)
        copied = ((max(one.start_ms, made_ms) + SYNCHRONIZED_MS, one.end_ms) for one in offsets_copied(world, master))
        return [Stretch(-math.inf, min((at_ms for at_ms, end_ms in copied if at_ms <= end_ms), default=math.inf))]

    # -- of the whole

    def _quietly(self, queue: Queue, acked_ms: float, asker: Asker, held: Sequence[Holding]) -> list[Due]:
        named = [{broker.name for broker in self.world.seen_by(member, "broker")} for member in asker.members]
        if not all(queue[1] in brokers for brokers in named):
            return []  # not everybody is told of this broker
        if held and held[0].offset and acked_ms <= held[0].start_ms:
            return []  # where a group begins is its consumeFromWhere's to say
        quiet_ = self.quiet(*queue[:2], asker)
        at = bisect_left(quiet_, acked_ms + PROMPT_MS, key=lambda stretch: stretch.end_ms)
        for start_ms, end_ms in quiet_[at:]:
            from_ms = max(start_ms, acked_ms)
            if from_ms + PROMPT_MS <= end_ms:
                return [Due(from_ms + PROMPT_MS, from_ms, "quiet")]
        return []

    @once
    def quiet(self, topic: str, broker: str, asker: Asker) -> Sequence[Stretch]:
        """When somebody of the group must be pulling from the queues of the topic at the broker, whoever holds them."""
        asked = [(member, topic, broker) for member in asker.members]
        taken = [one for each in asked for one in (*self._untold(*each), *self._unrouted(*each))]
        lives = (Stretch(one.start_ms, one.end_ms) for node in asker.members for one in self.world.lives_of(node))
        taken += without(-math.inf, math.inf, lives)
        return [left for stretch in quiet_for_groups(self.world) for left in without(*stretch, taken)]


def _barely(fault: Fault) -> bool:
    """Whether it is a latency that nothing here is slower by: pulls still bring 32 messages a turn, in their time."""
    latency_ms = fault.value.get("latency_ms")
    if fault.fault != "latency" or latency_ms is None:
        return False
    return float(latency_ms) + float(fault.value.get("jitter_ms") or 0.0) <= BARELY_MS
