"""Part of living_are_used: each group reads each queue of a living broker; a consumer pulls what it took at once.

    a queue that somebody holds, and nothing keeps that one from its broker     its holder pulls, of a slave where its
                                                                                route has no master
    a queue in a quiet time (oracle/deliveries.py)                              whoever should hold it pulls

A consumer asks for each of its queues every 20 s: a held pull is answered within 15 s, looked at every 5 s. Reads are
counted in parts of 10 s. Who refused the pulls of an unread queue is guilty, else who held the queue.

    queue_taken ─ at once, 5.x 500 ms ─► the first pull     later: while a look-up of the broker's route was under way
    an answer ─ at once ─► the next pull                    later: the same, or for as long as pull_delayed says
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ....remoting.codes import PERM_READ
from ....remoting.node.profile import Profile
from ...oracle.deliveries import Asker, Dues, Queue, all_askers
from ...oracle.intervals import Stretch, grouped, until_next
from ...oracle.link import MOMENT_MS
from ...oracle.quiet import aftermath_ms, clients_began_ms
from ...oracle.timers import Act
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, finding
from ..record.commits import dues_of
from ..record.control import Control, Row
from ..record.timer_acts import Process
from ..record.uses import PART_MS, Begun, BrokerShares

_ROW = "a broker checks held pulls every 5 s, and answers a pull that was held for 15 s"
_ASKED_MS = 20_000.0
_PARTS = 3
"""So many parts of 10 s without a pull are a queue that nobody reads."""


def reads(shares: BrokerShares, control: Control, world: World) -> Iterator[Finding]:
    """One for each group and queue that had to be read."""
    if world.views_differ:
        return
    due_by = dues_of(control, world)
    for group, queue, stretches in _due(due_by, control):
        pulled = [parts for of, parts in shares.reads.items() if of[1:4] == queue and of.node in group.members]
        due = {first for stretch in stretches for first in _whole_parts(stretch)}
        unread = [first for first in sorted(due) if not any(p.get(first + n) for p in pulled for n in range(_PARTS))]
        if due:
            spans = (min(due) * PART_MS, (max(due) + _PARTS) * PART_MS), _longest(unread)
            yield _finding(group, queue, *spans, shares, control, due_by)


def begun_pulls(shares: BrokerShares, control: Control, world: World) -> Iterator[Finding]:
    """One for each consumer process that took a queue and pulled it, and for each that pulled again late."""
    row = "PullMessageService: a queue that was taken is pulled at once, in 5.x after 500 ms"
    again = "DefaultMQPushConsumerImpl.pullMessage: after an answer the queue is pulled again at once"
    first_ms, formula = (500.0, "500 ms") if world.timers.profile is Profile.V5_X else (0.0, "at once")
    for node, begun in grouped((one.node, one) for one in sorted(shares.begun)).items():
        for life in world.lives_of(node):
            process = Process(control, world, life, "consumer")
            firsts, nexts = list[Act](), list[Act]()
            for one in begun:
                if not life.start_ms <= one.since_ms < life.end_ms or _held_up(one, process):
                    continue
                if one.is_next:
                    nexts.append(process.wait(one.since_ms, one.began_ms, 0.0, "at once"))
                else:
                    firsts.append(process.wait(one.since_ms, one.began_ms, first_ms, formula))
            yield from process.finding("first pull", "pulls what it took", row, firsts)
            yield from process.finding("next pull", "pulls again", again, nexts)


def _held_up(one: Begun, process: Process) -> bool:
    """Whether the consumer looked the broker's route up, or put the queue's next pull off: for how long is
    timers_kept's question."""
    looked = (run for run in process.rows("name_server_call") if run.ended_ms >= one.since_ms)
    delays = (run for run in process.rows("pull_delayed") if one.is_next and _queue_of(run.row) == one.queue)
    return any(run.began_ms <= one.began_ms for run in looked) or any(
        one.since_ms <= run.ended_ms <= one.began_ms + MOMENT_MS for run in delays
    )


def _queue_of(row: Row) -> tuple[str | None, str | None, int | None]:
    return row.topic, row.broker_name, row.queue_id


def _due(due_by: Dues, control: Control) -> Iterator[tuple[Asker, Queue, list[Stretch]]]:
    """Each group and queue, and when somebody of the group must be pulling from it."""
    world = due_by.world
    for group in all_askers(world):
        held = {queue: [h for h in of if h.node in group.members] for queue, of in due_by.held.items()}
        for queue, from_ms, until_ms in _queues(control, world, group):
            free = (stretch for h in held.get(queue, ()) for stretch in due_by.free(queue, h))
            those = [*due_by.quiet(*queue[:2], group), *free]
            yield group, queue, [Stretch(max(s.start_ms, from_ms), min(s.end_ms, until_ms)) for s in those]
        for queue, of in held.items():
            mine = [h for h in of if queue[0] == world.topic_of(h.node)]
            yield group, queue, [stretch for h in mine for stretch in due_by.at_slave(queue, h)]


def _queues(control: Control, world: World, group: Asker) -> Iterator[tuple[Queue, float, float]]:
    """Each queue, from when to when: of each living broker that all members may be told of."""
    for broker in world.of_kind("broker"):
        if not all(broker in world.seen_by(member, "broker") for member in group.members):
            continue
        for life in world.lives_of(broker.name):
            rows = control.by_process("topic").get(life.process, ())
            states = [(row.time_ms, row.decoded) for row in rows if row.topic == group.topic]
            for (at_ms, state), end_ms in until_next(states, min(life.end_ms, world.end_ms)):
                if at_ms > clients_began_ms(world):  # routes, members and shares have to follow first
                    at_ms += aftermath_ms(world)
                if isinstance(state, Mapping) and state.get("perm", 0) & PERM_READ:
                    for queue_id in range(int(state.get("read", 0))):
                        yield (group.topic, broker.name, queue_id), at_ms, end_ms


def _whole_parts(stretch: Stretch) -> range:
    first = int(-(-stretch.start_ms // PART_MS))
    return range(first, max(first, int(stretch.end_ms // PART_MS) - _PARTS + 1))


def _longest(unread: Sequence[int]) -> tuple[float, float] | None:
    starts = [at for before, at in pairwise([-1, *unread]) if at != before + 1 or before < 0]
    ends = [before for before, at in pairwise([*unread, -1]) if at != before + 1]
    spans = [(first * PART_MS, (last + _PARTS) * PART_MS) for first, last in zip(starts, ends, strict=True)]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


def _finding(
    group: Asker,
    queue: Queue,
    due: tuple[float, float],
    unread: tuple[float, float] | None,
    shares: BrokerShares,
    control: Control,
    due_by: Dues,
) -> Finding:
    if unread is None:
        return finding(
            (group.name, queue[1], queue[0]), "read by the group", due, Rule(_ROW), more={"queue_id": queue[2]}
        )
    from_ms, to_ms = unread
    refused, code = _refused(group, queue, unread, shares, due_by.world)
    held = (h.node for h in due_by.held.get(queue, ()) if h.start_ms < to_ms and h.end_ms > from_ms)
    return finding(
        (group.name, queue[1], queue[0]),
        "refused to its readers" if refused else "read by nobody",
        due,
        Rule(_ROW, "15 s + 5 s, counted in parts of 10 s", _ASKED_MS),
        out=unread,
        tolerance=control.lateness.tolerance(due_by.world, (*group.members, queue[1]), *unread, 1),
        measured_ms=to_ms - from_ms,
        over_ms=to_ms - from_ms - _ASKED_MS,
        more={"queue_id": queue[2], "holder": refused or next(held, ""), **({"because": code} if code else {})},
    )


def _refused(
    group: Asker, queue: Queue, unread: tuple[float, float], shares: BrokerShares, world: World
) -> tuple[str, str]:
    """Who refused the group's pulls of the queue for most of the time, in this part or the one before, and with which
    code most often; "" where nobody did, or where a pull has no code."""
    found: dict[str, set[int]] = defaultdict(set)
    codes: dict[str, Counter[int]] = defaultdict(Counter)
    for of, parts in shares.refused.items():
        if of[1:4] == queue and of.node in group.members:
            who = world.owners.get(of.address or "", "")
            covered = {one for part in parts for one in (part, part + 1)}
            refused = {part for part in covered if unread[0] <= part * PART_MS < unread[1]}
            found[who] |= refused
            if of.code is not None:
                codes[who][of.code] += len(refused)
    longest = max(found, key=lambda who: len(found[who]), default="")
    if 2 * PART_MS * len(found.get(longest, ())) <= unread[1] - unread[0]:
        return "", ""
    return longest, ", ".join(f"code {code}" for code, _times in codes[longest].most_common(1))
