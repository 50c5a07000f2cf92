"""The living are used: each queue of a held route in its turn, another broker after a failure, and all queues read.

    a producer's sends while nothing fails and its route stays     rule: round robin, so exact
      broker-a 0 1 2 3 │ broker-b 0 1 2 3     n sends over q queues: ⌊n/q⌋ or ⌈n/q⌉ each
    its tries while some fail                                       each at the queue behind that of the try before
                                                                    (turns.py)
    a try that follows a failed one                                 on another broker, where its route has one (with
                                                                    sendLatencyFaultEnable: that is not isolated), and
                                                                    only while the send has tries and time
    a queue of a living broker, in a quiet time                     somebody of each group asks for it every 20 s
    a queue whose master is gone, and a slave there                 so does whoever holds it, at the slave, and goes
                                                                    back to the master when the route has it again

What is in turn is counted, not tested: one send beyond those bounds is found. q sends in a row decide whether each
queue is used; a producer with fewer is named as not decided. A broker that is back is in its producer's route again
and so among the q (with sendLatencyFaultEnable, when its isolation is over). Whether NameServers are chosen evenly is
name_server_selection's question, and whether each queue has one owner is queue_ownership's.

Which brokers such a producer avoids when is by its `broker_isolated` rows; which try may follow which is
oracle/time_outs.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any, NamedTuple

from ....remoting.node.profile import Profile
from ...oracle.deliveries import Asker, Dues, Holding, askers
from ...oracle.deliveries import Queue as Queue3
from ...oracle.intervals import Stretch, until_next
from ...oracle.quiet import aftermath_ms, clients_began_ms
from ...oracle.recorded import OURS
from ...oracle.time_outs import avoidance, avoids, isolation_ms
from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding, Verdict
from ..check import Check, Group, Needs, Reads, Section
from ..findings import Rule, at_a_moment, finding, verdict_of
from ..plain.part import Gathering
from ..plain.uses import READS, SHARES, STEPS, TRIES
from ..record.at_slaves import read_there
from ..record.commits import dues_of
from ..record.control import Control
from ..record.timer_acts import by_process
from ..record.turns import TURN, Routes, judged, out_of_turn
from ..record.uses import PART_MS, BrokerShares, GivenUp, Queue, SameBroker, Segment, edges
from ..tolerance import tolerance

NAME = "living_are_used"
_OTHER = "selectOneMessageQueue: a retry avoids the broker that failed"
_READ = "a held pull is answered within 15 s, looked at every 5 s"
_READABLE = 4
ASKED_MS = 20_000.0
"""A consumer asks for each of its queues so often: a held pull is answered within 15 s, looked at every 5 s."""
_ROUNDING_MS = 1.0
READ_PARTS = 3
"""So many parts of 10 s without a pull are a queue that nobody reads."""


@dataclass(frozen=True)
class Used:
    """Counts, and the rows that say what there was to use."""

    shares: BrokerShares = field(default_factory=BrokerShares)
    control: Control = field(default_factory=lambda: Control.of_rows(()))


def gather(gathering: Gathering, world: World) -> Used:
    """Sends by queue and segment, retries, and reads by queue and time: counted, but for what is wrong."""
    in_turn, strays = judged(gathering.counted(STEPS, world).of, Routes(gathering.control))
    shares = gathering.counted(SHARES, world)
    for reading in (TRIES, READS):
        shares = shares.plus(gathering.counted(reading, world))
    shares = replace(
        shares,
        same=tuple(sorted(shares.same, key=lambda one: one.time_ms)),
        odd=tuple(sorted(shares.odd, key=lambda one: one.time_ms)),
        given_up=tuple(sorted(shares.given_up, key=lambda one: one.ended_ms)),
        in_turn=in_turn,
        strays=strays,
    )
    return Used(shares, gathering.control)


def judge(used: Used, world: World) -> Verdict:
    """Examined: producers' turns, retries, and queues that had to be read. Violations: queues that were used more or
    less often than in turn, retries on the broker that had failed, and queues that nobody read for 30 s."""
    shares, control = used.shares, used.control
    routes = Routes(control)
    turns = list(_turns(shares, world, routes, edges(control, world)))
    tries = [*_retries(shares, routes, control, world), *odd_tries(shares, control), *out_of_turn(shares, world)]
    found = [*turns, *tries, *_reads(shares, control, world), *read_there(shares, world, control)]
    open_ = _undecided(turns, world)
    measured: dict[str, Any] = {
        "sends": sum(finding.more.get("sends", 0) for finding in turns),
        "turns": sum(finding.examined for finding in turns),
        "retries": shares.retries,
        "reads": sum(finding.examined for finding in found if finding.kind.startswith("read")),
    }
    nothing = "no producer sent in turn, no send was tried again, and no queue had to be read"
    if open_:
        nothing = "; ".join(f"{what}: {why}" for what, why in open_.items())
    said = verdict_of(
        NAME, found, measured=measured, nothing=nothing, noun="uses of the living were not as the rules say"
    )
    return _with(said, open_)


CHECK = Check(
    name=NAME,
    says="producers send to their routes' queues in turn and retry elsewhere while allowed; every queue is read",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    needs=(Needs.MESSAGES,),
    reads=Reads.OPERATIONS,
    gather=gather,
    readings=(SHARES, TRIES, READS, STEPS),
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 sends in turn, 3 retries, 12 queues read" """
    sends, retries, reads = (measured.get(name, 0) for name in ("sends", "retries", "reads"))
    return f"{sends:,} sends in turn, {retries:,} retries on another broker, {reads:,} queues read"


def _with(said: Verdict, undecided: Mapping[str, str]) -> Verdict:
    return replace(said, undecided=dict(undecided)) if said.examined and undecided else said


def _turns(shares: BrokerShares, world: World, routes: Routes, all_edges: Sequence[float]) -> Iterator[Finding]:
    """One for each process and segment that is judged: the queue that is furthest from its turn."""
    if world.workload.get("ordered"):
        return  # sharding keys choose the queue
    avoided = avoidance(world)
    after_ms = avoided.longest_ms if avoided else 0.0
    for segment, counts in sorted(shares.sends.items()):
        failed = [
            start_ms
            for (node, start_ms), number in shares.failed.items()
            if number and node == segment.node and _end(all_edges, start_ms) + after_ms > segment.start_ms >= start_ms
        ]
        ring = routes.ring(segment.node, segment.incarnation, segment.topic, segment.start_ms)
        if failed or not ring:
            continue
        yield _turn(segment, counts, ring, _end(all_edges, segment.start_ms, world.end_ms))


def _end(edges_: Sequence[float], start_ms: float, last_ms: float = float("inf")) -> float:
    at = bisect_right(edges_, start_ms)
    return edges_[at] if at < len(edges_) else last_ms


def _turn(segment: Segment, counts: Mapping[Queue, int], ring: tuple[Queue, ...], until_ms: float) -> Finding:
    sends, queues = sum(counts.values()), len(ring)
    fewest, most = sends // queues, -(-sends // queues)
    strange = sorted(queue for queue in counts if queue not in ring)
    off = {queue: max(fewest - counts.get(queue, 0), counts.get(queue, 0) - most) for queue in ring}
    worst = max(ring, key=lambda queue: (off[queue], -counts.get(queue, 0)))
    if strange:
        worst = strange[0]
    wrong = bool(strange) or off[worst] > 0
    decided = sends >= queues
    kind = "out of its route" if strange else "used in turn" if not wrong else "not used in turn"
    unused = sorted({broker for broker, _ in ring} - {broker for broker, _ in counts}) if decided else []
    return finding(
        (segment.node, worst[0], segment.topic),
        f"never used in {sends} sends" if worst[0] in unused and wrong else kind,
        (segment.start_ms, until_ms),
        Rule(TURN, f"{fewest} to {most} of {sends} sends over {queues} queues"),
        out=(segment.start_ms, until_ms) if wrong else None,
        examined=int(decided or wrong),
        wrong=int(wrong),
        more={
            "queue_id": worst[1],
            "sends": sends,
            "of": queues,
            "its_sends": counts.get(worst, 0),
            "off_by": max(off.values()),
        },
    )


def _undecided(turns: list[Finding], world: World) -> dict[str, str]:
    """What to call each producer's turns that are not decided → how many sends decide them."""
    if world.workload.get("ordered"):
        return {}
    found = {}
    for node in world.of_kind("producer"):
        mine = [finding for finding in turns if finding.subject == node.name]
        if any(finding.examined for finding in mine):
            continue
        needed = max((finding.more["of"] for finding in mine), default=None)
        said = "as many sends in a row as its route has queues decide them" if needed is None else ""
        found[f"turns of {node.name}"] = said or f"{needed} sends in a row decide them"
    return found


def _retries(shares: BrokerShares, routes: Routes, control: Control, world: World) -> Iterator[Finding]:
    """All that were on another broker together, and each that was not though there was one.

    With the fault strategy on, one that is not isolated, while the one that failed is: reachability, and which of the
    isolated is the least bad, decide the rest. Whom an outside client isolates nobody knows.
    """
    isolated = Isolated(control, world)

    def has_another(one: SameBroker) -> bool:
        # At the earliest; for all its tries a send goes by the route that it began with.
        began_ms = one.time_ms - world.timers_of(one.node).T_ms
        named = (routes.brokers(one.node, one.incarnation, at_ms) for at_ms in (began_ms, one.time_ms))
        others = set.intersection(*named) - {one.broker_name}
        if not avoids(world, one.node):
            return bool(others)
        until_ms = isolated.until_ms(one.node, one.incarnation, one.time_ms)
        is_isolated = until_ms.get(one.broker_name, 0.0) > one.time_ms + _ROUNDING_MS
        return is_isolated and any(until_ms.get(name, 0.0) < one.time_ms - _ROUNDING_MS for name in others)

    wrong = [one for one in shares.same if has_another(one)]
    right = shares.retries - len(wrong)
    unknown = any(avoids(world, node.name) and node.implementation != OURS for node in world.of_kind("producer"))
    if right > 0 and not unknown:
        yield finding("producers", "tried another broker", (0.0, world.end_ms), Rule(_OTHER), examined=right)
    for one in sorted(wrong, key=lambda of: of.time_ms)[:FINDINGS_MAX]:
        more = {"op_id": one.op_id, "attempt": one.attempt}
        kind = "tried again on the broker that had failed"
        yield at_a_moment(one.node, one.broker_name, kind, one.time_ms, _OTHER, more)


def _reads(shares: BrokerShares, control: Control, world: World) -> Iterator[Finding]:
    """One for each group and queue that had to be read: while somebody holds it and nothing keeps that one from it,
    be it from a slave, as the route has no master; and in quiet times whoever should hold it."""
    if world.views_differ:
        return
    due_by = dues_of(control, world)
    read_in: dict[tuple[str, str, int], list[tuple[str, Mapping[int, int]]]] = defaultdict(list)
    for of, parts in shares.reads.items():
        read_in[of.topic, of.broker_name, of.queue_id].append((of.node, parts))
    for group, queue, stretches in _due(due_by, control):
        windows = sorted({window for stretch in stretches for window in _windows(stretch)})
        pulled = [parts for node, parts in read_in[queue] if node in group.members]
        unread = [at for at in windows if not any(parts.get(at + n) for parts in pulled for n in range(READ_PARTS))]
        if windows:
            yield _read(group, queue, windows, unread, control, world, due_by.held.get(queue, ()))


def _due(due_by: Dues, control: Control) -> Iterator[tuple[Asker, Queue3, list[Stretch]]]:
    """Each group and queue, and when somebody of the group must be pulling from it."""
    world = due_by.world
    for group in askers(world):
        held = {queue: [h for h in of if h.node in group.members] for queue, of in due_by.held.items()}
        for queue, from_ms, until_ms in _queues(control, world, group):
            free = (stretch for h in held.get(queue, ()) for stretch in due_by.free(queue, h))
            those = [*due_by.quiet(queue, group), *free]
            yield group, queue, [Stretch(max(s.start_ms, from_ms), min(s.end_ms, until_ms)) for s in those]
        for queue, of in held.items():
            mine = [h for h in of if queue[0] == world.topic_of(h.node)]
            yield group, queue, [stretch for h in mine for stretch in due_by.at_slave(queue, h)]


def _queues(control: Control, world: World, group: Asker) -> Iterator[tuple[Queue3, float, float]]:
    """Each queue, from when to when: of each living broker that all members may be told of."""
    for broker in world.of_kind("broker"):
        if not all(broker in world.seen_by(member, "broker") for member in group.members):
            continue
        for life in world.lives_of(broker.name):
            rows = [r for r in control.rows("topic") if r.process == (broker.name, life.incarnation)]
            for topic in sorted({row.topic for row in rows if row.topic and group.topic in ("", row.topic)}):
                if topic not in {world.topic_of(member) for member in group.members}:
                    continue
                states = [(row.time_ms, row.decoded) for row in rows if row.topic == topic]
                for (at_ms, state), end_ms in until_next(states, min(life.end_ms, world.end_ms)):
                    if at_ms > clients_began_ms(world):  # routes, members and shares have to follow first
                        at_ms += aftermath_ms(world)
                    if isinstance(state, Mapping) and state.get("perm", 0) & _READABLE:
                        for queue_id in range(int(state.get("read", 0))):
                            yield (topic, broker.name, queue_id), at_ms, end_ms


def _windows(stretch: Stretch) -> range:
    """The first parts of each READ_PARTS that lie in it whole."""
    first = int(-(-stretch.start_ms // PART_MS))
    return range(first, max(first, int(stretch.end_ms // PART_MS) - READ_PARTS + 1))


def _read(
    group: Asker,
    queue: Queue3,
    windows: list[int],
    unread: list[int],
    control: Control,
    world: World,
    held: Sequence[Holding],
) -> Finding:
    out, allowed, over_ms = None, None, 0.0
    more: dict[str, object] = {"queue_id": queue[2]}
    if unread:
        first, parts = _longest(unread)
        from_ms, to_ms = first * PART_MS, (first + parts) * PART_MS
        nodes = (*sorted(group.members), queue[1])
        allowed = tolerance(world.timers, control.lateness.largest(world, nodes, from_ms, to_ms), 1)
        over_ms = to_ms - from_ms - ASKED_MS
        out = from_ms, to_ms
        more["holder"] = next((h.node for h in held if h.start_ms < to_ms and h.end_ms > from_ms), "")
    return finding(
        (group.name, queue[1], queue[0]),
        "read by nobody" if unread else "read by the group",
        (windows[0] * PART_MS, (windows[-1] + READ_PARTS) * PART_MS),
        Rule(_READ, "15 s + 5 s, counted in parts of 10 s", ASKED_MS if out else None),
        out=out,
        tolerance=allowed,
        measured_ms=out and out[1] - out[0],
        over_ms=over_ms,
        more=more,
    )


def _longest(unread: Sequence[int]) -> tuple[int, int]:
    """The longest time without a read: its first part, and how many they are."""
    longest = first = unread[0]
    most = 0
    for before, at in pairwise([unread[0] - 1, *unread]):
        if at != before + 1:
            first = at
        if at - first + READ_PARTS > most:
            longest, most = first, at - first + READ_PARTS
    return longest, most


class _Isolation(NamedTuple):
    at_ms: float
    broker_name: str
    until_ms: float


class Isolated:
    """How long each attempt isolates its broker is counted by the producer's table, and not by what it says."""

    def __init__(self, control: Control, world: World) -> None:
        self._longest_counts = world.timers.profile is not Profile.V4_9  # 5.x never shortens one
        self._of: dict[tuple[str, int], list[_Isolation]] = defaultdict(list)
        for row in control.rows("broker_isolated"):
            if row.f == "isolated":
                failed = bool((row.decoded or {}).get("failed"))
                for_ms = isolation_ms(world, row.node, row.duration_ms or 0.0, failed=failed)
                one = _Isolation(row.time_ms, row.broker_name or "", row.time_ms + for_ms)
                self._of[row.node, row.incarnation].append(one)

    def until_ms(self, node: str, incarnation: int, at_ms: float) -> dict[str, float]:
        """Each broker that the process had isolated by then, and until when."""
        found: dict[str, float] = {}
        for one in self._of.get((node, incarnation), ()):
            if one.at_ms <= at_ms:
                before_ms = found.get(one.broker_name, 0.0) if self._longest_counts else 0.0
                found[one.broker_name] = max(before_ms, one.until_ms)
        return found


_TRIED_ROW = "sendDefaultImpl: tried again while it is not stored, has a try left, and its time is not over"
_NEAR_MS = 50.0


def odd_tries(shares: BrokerShares, control: Control) -> Iterator[Finding]:
    """One for each try that should not have been, and for each that was missing."""
    for odd in shares.odd[:FINDINGS_MAX]:
        more = {"op_id": odd.op_id, "attempt": odd.attempt}
        yield at_a_moment(odd.node, odd.broker_name, odd.kind, odd.time_ms, _TRIED_ROW, more)
    missing = (one for one in shares.given_up if not _asked_in_vain(one, control))
    for one in islice(missing, FINDINGS_MAX):
        more = {"op_id": one.op_id, "attempt": one.attempt, "left_ms": round(one.left_ms, 3)}
        yield at_a_moment(
            one.node, one.broker_name, "given up with a try and time left", one.ended_ms, _TRIED_ROW, more
        )


def _asked_in_vain(one: GivenUp, control: Control) -> bool:
    """Whether a look-up failed just then: a send that needs an address ends with it."""
    calls = by_process(control, "name_server_call").get((one.node, one.incarnation), ())
    until_ms = one.ended_ms + one.left_ms + _NEAR_MS
    return any(one.ended_ms - _NEAR_MS <= call.ended_ms <= until_ms and call.row.type != "ok" for call in calls)
