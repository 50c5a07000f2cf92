"""The commits that have to be explained: beyond what was received, below the one before, or not what was read later.

commit ──┬─ counted; those below the one before, or before which the broker had another ────────► back, forgotten
         ├─ beside queue_taken: was an offset answered that nobody had committed? ──────────────► forgotten
         ├─ beside queue_taken: was the offset that was read passed before? ────────────────────► older
         ├─ beside the receipts of each holding: was it covered in time? ───────────────────────► behind
         ├─ beside answered pulls: had the broker taken what they committed? ───────────────────► forgotten
send ok ─┼─► by queue: the first commit beyond each message ──┐
receive ─┘                         received by then? ── no ───┴─────────────────────────────────► ahead
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from ....remoting.codes import ResponseCode
from ....remoting.node.profile import Profile
from ...arrow import np, pc
from ...oracle.deliveries import Holding, all_askers
from ...oracle.intervals import grouped
from ...oracle.link import EXACT_MS
from ...oracle.queue_owners import node_of_client
from ...oracle.reach import unrecorded
from ...oracle.slaves import SYNCHRONIZED_MS, offsets_vary, slaves_of
from ...oracle.time_outs import OFFSET_CALL_MS, REBALANCE, SUSPEND_MS, pull_delay
from ...oracle.world import World
from ...verdict import Finding
from ..check import foremost
from ..findings import Rule, at_no_time, finding, wrong_or_late
from ..record.at_slaves import ANSWERED_MS, copied_before, slaves_that_tell
from ..record.commits import AtSlave, Behind, CommitFacts, Committed, Place, unread
from ..record.control import Row as ControlRow
from ..record.timer_acts import Run
from ..record.uncommitted import GivenUp, behind, brokers_that_tell, given_up, runs_of
from ..record.uses import PART_MS
from .commits_by_place import FirstPast, Received, by_queue, committer, queue_of, times_of
from .offsets_kept import READ_MS, OffsetsKept
from .part import Part, Reading, Row, Together, floats, is_one_of, rows_in, value_of

ROW = "an offset is committed when all messages before it are consumed"
_MOVED_ROW = "DefaultMQPushConsumerImpl.pullMessage: after code 21 a consumer goes on at nextBeginOffset"
REPEATED = "set back by a pull"
KEPT, UNSHARED = "kept after a wrong offset", "no rebalance after a wrong offset"
_HANDS_OVER = 2
"""The old holder's last commit, and the broker's turn."""


def commits(part: Part, world: World) -> CommitFacts:
    """Of all consumer groups of the run; with broadcasting of every consumer."""
    if not all_askers(world):
        return CommitFacts()
    of = _Explained(part, world)
    findings = [*of.findings()]
    counts = {"commits": sum(map(len, of.of_place.values())), "unsure": sum(not one.wrong for one in findings)}
    counts |= Counter(one.more["rule"] for one in findings)
    return CommitFacts(counts, foremost(findings), of.at_brokers, of.at_slaves())


COMMITS = Reading(
    Together.QUEUE,
    ("commit", "send", "receive", "sent_back", "pull"),
    ("type", "f", "role", "op_id", "offset", "address", "code", "duration_ms", "value"),
    commits,
    types=("ok",),
)


class _Explained(OffsetsKept):
    """The commits of one part beside what explains them."""

    def __init__(self, part: Part, world: World) -> None:
        super().__init__(part, world)
        self._lateness, self._forgotten = part.control.lateness, [*self.unkept()]
        self._elsewhere = {place for place, _ in self._forgotten}
        """Where the broker has another offset, no consumer can help it."""

    def findings(self) -> Iterator[Finding]:
        yield from self._ahead()
        yield from self._back()
        yield from behind(self._behind(), self.rules, self.control)
        yield from (found for _, found in self._forgotten)
        yield from self._moved()
        if not self.broadcasting:
            yield from self._older()
            yield from self._given_up()

    def _is_out(self, place: Place) -> bool:
        """Whether nothing is asked of consumers there."""
        return place in self._elsewhere or place[:2] in self.rules.deleted

    def _there(self) -> Iterator[tuple[Place, list[Row]]]:
        return (one for one in self.of_place.items() if one[0] not in self._elsewhere)

    # -- beyond what was received

    def _ahead(self) -> Iterator[Finding]:
        acked = {found.queue: found for _, found in by_queue(self.sends)}
        for group in all_askers(self.world):
            of_group = self.receipts.filter(is_one_of(self.receipts["node"], sorted(group.members)))
            received = {found.queue: found for _, found in by_queue(of_group)}
            for place in (Place(*queue, group.name) for queue in {**acked, **received}):
                past, both = self.first.get(place), [of.get(place.queue) for of in (acked, received)]
                if past is None or self._is_out(place):
                    continue
                offsets = np.unique(np.concatenate([one.offsets for one in both if one is not None]))
                committed_ms = past.times_of(offsets)
                acked_ms, received_ms = (times_of(one, offsets) for one in both)
                for at in np.flatnonzero(np.isfinite(committed_ms) & ~(received_ms <= committed_ms)):
                    times = (None if np.isnan(of[at]) else float(of[at]) for of in (acked_ms, received_ms))
                    yield from self._skipped(place, int(offsets[at]), float(committed_ms[at]), *times)

    def _skipped(
        self, place: Place, offset: int, at_ms: float, acked_ms: float | None, received_ms: float | None
    ) -> Iterator[Finding]:
        """Of a message that its group committed past then, before a member had received it, or that none has."""
        rules, queue, group = self.rules, place.queue, place.group
        began_at = rules.began_at(queue, group, at_ms)
        if began_at is None or offset < began_at:
            return  # where a group begins is its consumeFromWhere's to say
        if received_ms is not None and received_ms - at_ms <= self.world.timers.clocks_ms:
            return  # by the clocks of two hosts, which are that far apart
        if rules.died_after(place.broker_name, at_ms, at_ms if acked_ms is None else acked_ms) is not None:
            return  # the broker has lost what was there, and given the offset to another message
        if rules.was_reset(queue, group, at_ms, at_ms, offset):
            return
        node = committer(self.first[place].of(offset)) or rules.holder(queue, group, at_ms)
        lag_ms = self._lateness.largest(self.world, (node,), at_ms - 1000.0, at_ms) or 0.0
        members = rules.groups[group].members if received_ms is None else ()
        unwritten = (gap for member in members for gap in unrecorded(self.world, member, lag_ms))
        span = at_ms, self.world.end_ms if received_ms is None else received_ms
        yield finding(
            (node or group, place.broker_name, place.topic),
            "committed, never received" if received_ms is None else "committed before receipt",
            span,
            at_no_time(ROW),
            out=span,
            **wrong_or_late(not any(gap.start_ms <= at_ms <= gap.end_ms for gap in unwritten)),
            times={} if acked_ms is None else {"acknowledged": acked_ms},
            more=place.told("ahead", offset),
        )

    # -- below the one before

    def _back(self) -> Iterator[Finding]:
        for place, of_place in self.of_place.items():
            if self._is_out(place):
                continue
            last: dict[tuple[str, int], Row] = {}
            for row in of_place:
                process = row["node"], row["incarnation"]
                before = last.get(process)
                is_known = before and (_is_older(row, before) or self._is_overtaken(row, before))
                if (row["value"].get("before") or -1) > row["offset"] and not is_known:
                    yield from self._went_back(place, row, before["time_ms"] if before else None)
                last[process] = row

    def _is_overtaken(self, row: Row, before: Row) -> bool:
        """Whether a pull of the same client committed while the client looked the broker up for this commit, which has
        the offset of before (`RemoteBrokerOffsetStore.updateConsumeOffsetToBroker`)."""
        client, near_ms = committer(row), self.world.timers.delivery_ms
        if (row["f"], before["f"], committer(before)) != ("update", "pull", client):
            return False
        looked = (one for one in self.control.rows("name_server_call") if one.node == client and one.f == "route")
        return any(
            one.began_ms <= before["time_ms"] and 0.0 <= row["time_ms"] - one.time_ms + EXACT_MS <= near_ms
            for one in looked
        )

    def _went_back(self, place: Place, row: Row, before_ms: float | None) -> Iterator[Finding]:
        """`before_ms`: when the one before was committed to this process of the broker; None: it was not, or nobody
        knows."""
        rules, world, at_ms, offset = self.rules, self.world, row["time_ms"], row["offset"]
        queue, group, broker = place.queue, place.group, place.broker_name
        hands = queue, group, offset, before_ms, at_ms
        if offsets_vary(world, broker, at_ms) or rules.may_go_back(*hands):
            return
        if rules.was_reset(queue, group, at_ms, at_ms):
            return
        span = (before_ms or at_ms) - 1000.0, at_ms
        allowed = self._lateness.tolerance(world, (*rules.groups[group].members, broker), *span, _HANDS_OVER)
        if rules.may_go_back(*hands, lag_ms=allowed.valid_up_to_ms - allowed.delivery_ms):
            return
        holder = committer(row) or rules.holder(queue, group, at_ms)
        is_repeated = row["f"] == "pull" and self._is_repeated(place, row)
        yield finding(
            (holder or group, broker, place.topic),
            REPEATED if is_repeated else "went back",
            (at_ms, at_ms),
            Rule(ROW),
            out=(at_ms, at_ms),
            **wrong_or_late(not rules.may_go_back(*hands, lag_ms=allowed.lateness_ms)),
            lag_ms=allowed.lag_ms,
            times={} if before_ms is None else {"committed before": before_ms},
            more={**place.told("back", offset), "before": row["value"]["before"]},
        )

    def _is_repeated(self, place: Place, row: Row) -> bool:
        """Whether the broker held a pull of the commit's client then, and read none: of a link without a fault."""
        client, at_ms, world = committer(row), row["time_ms"], self.world
        if any(fault.overlaps(at_ms - SUSPEND_MS, at_ms) for fault in world.way_faults(client, row["node"])):
            return False
        pulls = self.pulls_of(place)
        pulls = pulls.filter(pc.equal(pulls["node"], client))
        ended_ms = floats(pulls["time_ms"])
        began_ms, near_ms = ended_ms - floats(pulls["duration_ms"]), world.timers.delivery_ms
        is_held = (began_ms < at_ms - READ_MS) & (at_ms - near_ms < ended_ms)
        is_read = (began_ms <= at_ms + world.timers.clocks_ms) & (at_ms - began_ms <= READ_MS)
        return bool(is_held.any() and not is_read.any())

    # -- taken at an older offset than was committed

    def _older(self) -> Iterator[Finding]:
        for place, row in self.taken():
            if self._is_out(place):
                continue
            before = [one for one in self.of_place.get(place, ()) if one["time_ms"] <= row.time_ms]
            low_ms = max((one["time_ms"] for one in before if one["offset"] <= row.offset), default=-np.inf)
            if higher := [one for one in before if one["time_ms"] > low_ms]:
                yield from self._taken_low(place, row, higher)

    def _taken_low(self, place: Place, row: ControlRow, higher: Sequence[Row]) -> Iterator[Finding]:
        """`higher`: the commits, beyond what was taken, since which the committed offset was a higher one. Of a name
        with slaves those count that its master had while the slaves copied its offsets."""
        world, rules, broker, taken_ms = self.world, self.rules, place.broker_name, row.time_ms
        passed_ms = min(one["time_ms"] for one in higher)
        stopped = (fault for fault in world.process_faults(row.node) if not fault.ends_process)
        if any(fault.overlaps(passed_ms, taken_ms) for fault in stopped):
            return
        copied, slaves = copied_before(world, broker, taken_ms), slaves_of(world, broker)
        # Nobody asked before the consumer's process began, and nobody was asked before the broker's.
        lives = (world.life_at(node, taken_ms) for node in (row.node, broker))
        asked_ms = max([taken_ms - ANSWERED_MS, *(life.start_ms for life in lives if life is not None)])
        kind, since_ms, measured_ms, bound_ms = "age of the query", passed_ms, taken_ms - passed_ms, taken_ms - asked_ms
        answered = broker
        if offsets_vary(world, broker, taken_ms):
            at_master = (one["time_ms"] for one in higher if one["node"] == broker)
            if copied is None:
                return
            since_ms = min((ms for ms in at_master if copied.start_ms <= ms <= copied.end_ms), default=np.inf)
            if since_ms == np.inf:
                return
            kind, measured_ms, bound_ms = "SlaveSynchronize: 10 s + 3 s", copied.end_ms - since_ms, SYNCHRONIZED_MS
            answered = slaves[0]
        is_reset = rules.was_reset(place.queue, place.group, passed_ms, taken_ms)
        if is_reset or rules.may_have_lost(broker, passed_ms, taken_ms):
            return
        nodes = row.node, broker, *slaves
        allowed = self._lateness.tolerance(world, nodes, taken_ms - 2 * ANSWERED_MS, taken_ms, 1)
        said = row.said.get("answered")
        is_begun = (row.node, taken_ms) in unread(self.control) or said not in (None, row.offset)
        if measured_ms - bound_ms <= allowed.valid_up_to_ms or is_begun:
            return  # that it began without, or against, an answer commits_follow_work says
        yield finding(
            (answered, row.node, place.topic),
            "answered a lower offset",
            (since_ms, taken_ms),
            Rule(ROW, kind, bound_ms),
            out=(taken_ms, taken_ms),
            tolerance=allowed,
            measured_ms=measured_ms,
            over_ms=measured_ms - bound_ms,
            more=place.told("older", row.offset),
        )

    # -- told that its offset is wrong

    def _moved(self) -> Iterator[Finding]:
        """Queues that a consumer kept after code 21, or gave up at another offset than the broker had answered with it.
        What a rebalance gives up meanwhile is committed as it is; 4.9 waits 10 s before it gives the queue up."""
        world, rules = self.world, self.rules
        rows = (row for row in self.control.rows("queue_dropped") if world.is_ours(row.node))
        drops = grouped(((*row.process, queue_of(row)), row) for row in rows)
        group_of = {member: group.name for group in all_askers(world) for member in group.members}
        is_moved = pc.equal(self.pulls["code"], int(ResponseCode.PULL_OFFSET_MOVED))
        for pull in rows_in(self.pulls.filter(is_moved)):
            consumer, told_ms = pull["node"], pull["time_ms"]
            place = Place(pull["topic"], pull["broker_name"], pull["queue_id"], group_of.get(consumer, ""))
            of = drops.get((consumer, pull["incarnation"], place.queue), [])
            drop = next((drop for drop in of if drop.time_ms >= told_ms), None)
            wait = pull_delay(world, consumer, "illegal_offset") if world.timers.profile is Profile.V4_9 else None
            due_ms = told_ms + (wait.ms if wait else 0.0)
            began_ms = told_ms - (pull["duration_ms"] or 0.0) + EXACT_MS  # it may take the queue again as it is told
            for holding in rules.dues.held.get(place.queue, ()):
                if holding.node == consumer and holding.start_ms <= began_ms and told_ms <= holding.end_ms:
                    yield from self._kept(place, holding, pull, due_ms)
            if drop is None or drop.time_ms < due_ms:
                continue
            next_, by_rebalance = value_of(pull)["next"], given_up(self.control, drop).by_rebalance
            is_reset = rules.was_reset(place.queue, place.group, told_ms, drop.time_ms)
            taken = self._taken_again(drop) if self.broadcasting else None  # nobody else commits for it
            is_elsewhere = drop.offset != next_ or (taken is not None and taken.offset != next_)
            if is_elsewhere and not by_rebalance and not is_reset:
                yield finding(
                    (consumer, place.broker_name, place.topic),
                    "went on at another offset",
                    (told_ms, drop.time_ms),
                    at_no_time(_MOVED_ROW),
                    out=(drop.time_ms, drop.time_ms + 1.0),
                    wrong=1,
                    more={**place.told("moved", next_), "before": drop.offset},
                )

    def _taken_again(self, drop: ControlRow) -> ControlRow | None:
        """When this process took the queue next."""
        rows = (row for row in self.control.rows("queue_taken") if row.process == drop.process)
        return next((row for row in rows if row.seq > drop.seq and queue_of(row) == queue_of(drop)), None)

    def _kept(self, place: Place, holding: Holding, pull: Row, due_ms: float) -> Iterator[Finding]:
        """Of a holding that had to end then: that it lasted, or in 5.x that no rebalance followed at once."""
        world, consumer, ended_ms = self.world, holding.node, holding.end_ms
        process = consumer, pull["incarnation"]
        rounds = runs_of(self.control, process, REBALANCE)
        waits = [(due_ms, ended_ms, KEPT)]
        if world.timers.profile is Profile.V5_X and ended_ms < world.ended_ms(*process):
            under_way = (run.ended_ms for run in rounds if run.began_ms < ended_ms - EXACT_MS)
            later = (run.began_ms for run in rounds if run.began_ms >= ended_ms - EXACT_MS)
            until_ms = next(later, min(world.ended_ms(*process), world.end_ms))
            waits.append((max([ended_ms, *under_way]), until_ms, UNSHARED))
        for from_ms, to_ms, kind in waits:
            nodes = [world.owners.get(pull["address"], ""), *(node.name for node in world.of_kind("name_server"))]
            faults = [*world.process_faults(consumer), *(f for node in nodes for f in world.way_faults(consumer, node))]
            allowed = self._lateness.tolerance(world, (consumer,), due_ms, to_ms, _HANDS_OVER)
            if to_ms - from_ms > allowed.valid_up_to_ms and not any(f.overlaps(due_ms, to_ms) for f in faults):
                yield finding(
                    (consumer, place.broker_name, place.topic),
                    kind,
                    (due_ms, to_ms),
                    Rule(_MOVED_ROW, "at once", 0.0),
                    out=(from_ms, to_ms),
                    tolerance=allowed,
                    measured_ms=to_ms - from_ms,
                    over_ms=to_ms - from_ms,
                    more=place.told("moved", holding.offset),
                )

    # -- not committed in time

    def _behind(self) -> Iterator[Behind]:
        tell = brokers_that_tell(self.world)
        of_member = {member: group for group in all_askers(self.world) for member in group.members}
        rows = (row for row in self.control.rows("queue_dropped") if self.world.is_ours(row.node))
        drops = {(*r.process, r.op_id): r for r in rows if not self.broadcasting or self._is_of_its_stop(r)}
        by_holding = (((r["node"], r["incarnation"], r["op_id"], r["topic"]), found) for r, found in self.by_holding)
        received = grouped(by_holding)
        for taken in self.control.rows("queue_taken"):
            group = of_member.get(taken.node)
            if taken.broker_name not in tell or group is None or group.topic not in ("", taken.topic):
                continue
            for found in received.get((*taken.process, taken.op_id, taken.topic), ()):
                place = Place(*found.queue, group.name)
                if place in self._elsewhere:
                    continue
                drop = drops.get((*taken.process, taken.op_id))
                gives = given_up(self.control, drop) if drop is not None and found.queue == queue_of(drop) else None
                runs = runs_of(self.control, taken.process)
                late = _late(found, taken.offset, self.first.get(place), runs, gives)
                for first_ms, (worked_ms, offset, is_left) in late.items():
                    committed_ms = first_ms if np.isfinite(first_ms) else None
                    dropped_ms = gives.at_ms if gives is not None and is_left else None
                    by = *taken.process, taken.time_ms
                    yield Behind(place, offset, *by, worked_ms, committed_ms, dropped_ms)

    def _is_of_its_stop(self, drop: ControlRow) -> bool:
        """Whether an orderly stop gave the queue up: with broadcasting a rebalance writes no offsets."""
        stopped = self.control.by_process("stopped").get(drop.process)
        return bool(stopped) and not given_up(self.control, drop).by_rebalance

    # -- after the queue was given up

    def _given_up(self) -> Iterator[Finding]:
        """Commits that came later than at once after their consumer had dropped the queue, which it says when it has
        committed its last; or that a broker read off a channel after the consumer's unregistration."""
        held = grouped(((one.node, queue_of(one)), one) for one in self.control.rows("queue_taken", "queue_dropped"))
        rows = self.control.rows("client_heartbeat", "client_gone")
        said = grouped(((*one.process, one.op_id), one) for one in rows)
        for place, row in ((place, row) for place, of_place in self._there() for row in of_place):
            consumer, at_ms = committer(row), row["time_ms"]
            of = held.get((consumer, place.queue), [])
            for last in of[: bisect_right(of, at_ms, key=lambda one: one.time_ms)][-1:]:
                if last.event == "queue_dropped" and at_ms - last.time_ms > self.world.timers.delivery_ms:
                    yield from self._after(place, row, consumer, last.time_ms, left=False)
            channel = said.get((row["node"], row["incarnation"], row["op_id"]), [])
            for last in channel[: bisect_left(channel, row["seq"], key=lambda one: one.seq)][-1:]:
                if last.f == "unregistered":
                    yield from self._after(place, row, node_of_client(last), last.time_ms, left=True)

    def _after(self, place: Place, row: Row, consumer: str, dropped_ms: float, *, left: bool) -> Iterator[Finding]:
        """But for what may have kept the consumer's own last commit on its way, or held it up while it looked for the
        broker; by a channel by which it had unregistered (`left`), a round of commits that was under way, too."""
        world, broker, at_ms = self.world, place.broker_name, row["time_ms"]
        brokers = [node.name for node in world.of_kind("broker", "slave")]
        nodes = [server.name for server in world.of_kind("name_server")]
        nodes += brokers if left else (broker, *slaves_of(world, broker))
        from_ms = dropped_ms - (OFFSET_CALL_MS if left else 0.0)
        if not all(self.rules.dues.is_whole(consumer, node, from_ms, at_ms) for node in nodes):
            return
        pair, span = (consumer, broker), (dropped_ms, at_ms)
        allowed = self._lateness.tolerance(world, pair, *span, _HANDS_OVER)
        (way_ms,) = world.round_trips_ms(consumer, (broker,), *span)
        over_ms = at_ms - dropped_ms - way_ms
        if over_ms <= allowed.valid_up_to_ms and not left:
            return
        rule = "RebalanceImpl: a queue's offset is persisted before it is removed"
        if left:
            rule = "DefaultMQPushConsumerImpl.shutdown: persistConsumerOffset, then unregisterConsumer"
        yield finding(
            (*pair, place.topic),
            "committed after unregistering" if left else "committed without the queue",
            span,
            Rule(rule, "at once", 0.0),
            out=(at_ms, at_ms),
            **({"wrong": 1} if left else {}),
            tolerance=allowed,
            measured_ms=at_ms - dropped_ms,
            over_ms=over_ms,
            more=place.told("given_up", row["offset"]),
        )

    # -- at a slave

    def at_slaves(self) -> dict[AtSlave, Committed]:
        slaves, found = slaves_that_tell(self.world), dict[AtSlave, Committed]()
        for place, row in ((place, row) for place, of_place in self.of_place.items() for row in of_place):
            client = row["value"].get("client")
            if row["node"] in slaves and client is not None:
                part = AtSlave(place.broker_name, place.group, row["node"], client, int(row["time_ms"] // PART_MS))
                one = Committed(1, row["time_ms"], row["time_ms"])
                found[part] = found.get(part, Committed()).plus(one)
        return found


def _late(
    received: Received, begins_at: int, past: FirstPast | None, runs: Sequence[Run], gives: GivenUp | None
) -> dict[float, tuple[float, int, bool]]:
    """When each commit came that was later than the next of the holder's `runs` for some of what a holding received of
    a queue (inf: never), and what of that was worked off first, when and which offset; and whether it was later than
    when the holder gave the queue up (`gives`).

    Worked off is a message when all before it are, from the holding's first message, or from a commit, on.
    """
    offsets, times = received.offsets, received.times
    first_ms = np.full(len(offsets), np.inf) if past is None else past.times_of(offsets)
    found: dict[float, tuple[float, int, bool]] = {}
    begun_ms = np.array([run.began_ms for run in runs])
    ended_ms = np.array([*(run.ended_ms for run in runs), np.inf])
    is_left = np.zeros(len(offsets), bool)
    says = gives is not None and gives.offset - 1 in offsets  # or it has skipped what nobody wants
    for island in np.split(np.arange(len(offsets)), np.flatnonzero(np.diff(offsets) != 1) + 1):
        begins = island[0] == 0 and offsets[0] == begins_at
        since_ms = -np.inf if begins else first_ms[island[0]]
        if since_ms == np.inf:
            continue
        worked_ms = np.maximum(since_ms, np.maximum.accumulate(times[island]))
        due_ms = ended_ms[np.searchsorted(begun_ms, worked_ms, "right")]
        if gives is not None:
            had_to = (worked_ms < gives.begun_ms) | (says & (offsets[island] < gives.offset))
            is_left[island] = had_to & (first_ms[island] > gives.at_ms)
        late = np.flatnonzero((first_ms[island] > due_ms) | is_left[island])
        for commit_ms, at in zip(*np.unique(first_ms[island][late], return_index=True), strict=True):
            left = bool(is_left[island][first_ms[island] == commit_ms].any())
            one = float(worked_ms[late[at]]), int(offsets[island[late[at]]]), left
            found[float(commit_ms)] = min(found.get(float(commit_ms), one), one)
    return found


def _is_older(commit: Row, other: Row) -> bool:
    """Whether the commit came by a channel of the same client that began before that of the other: what comes late has
    no order. Numbers of channels rise at a broker of ours. A channel without a heartbeat may be of any client."""
    channels = commit["op_id"] or "", other["op_id"] or ""
    clients = {committer(commit), committer(other)} - {""}
    return len(clients) < 2 and all(map(str.isdigit, channels)) and int(channels[0]) < int(channels[1])
