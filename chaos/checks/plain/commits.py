"""The commits that have to be explained: beyond what was received, below the one before, or not what was read later.

commit ──┬─ counted; those below the one before, or before which the broker had another ────────► Back, Forgotten
         ├─ beside queue_taken: was an offset answered that nobody had committed? ──────────────► Forgotten
         ├─ beside queue_taken: was the offset that was read passed before? ────────────────────► Older
         ├─ beside the receipts of each holding: was it covered in time? ───────────────────────► Behind
         ├─ beside answered pulls: had the broker taken what they committed? ───────────────────► Forgotten
send ok ─┼─► by queue: the first commit beyond each message ──┐
receive ─┘                         received by then? ── no ───┴─────────────────────────────────► Ahead
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...arrow import Floats, Numbers, np, pa, pc
from ...history.schema import row_order
from ...oracle.deliveries import askers
from ...oracle.intervals import grouped
from ...oracle.queue_owners import node_of_client
from ...oracle.recorded import OURS
from ...oracle.roles import elects
from ...oracle.slaves import keeps_own_offsets
from ...oracle.time_outs import SUSPEND_MS
from ...oracle.world import World
from ...topology import is_slave, node_of_client_id
from ..record.at_slaves import copied_before, slaves_that_tell
from ..record.commits import (
    Ahead,
    AtSlave,
    Back,
    Behind,
    CommitFacts,
    Committed,
    Forgotten,
    GivenUp,
    OfQueue,
    Older,
    Place,
)
from ..record.control import Control
from ..record.control import Row as ControlRow
from ..record.uncommitted import brokers_that_tell, interval_ms
from ..record.uses import PART_MS
from .part import (
    QUEUE,
    Part,
    Reading,
    Row,
    Together,
    codes,
    floats,
    groups,
    is_one_of,
    rows_in,
    value_of,
    with_offset,
)

_READ_MS = 100.0
"""Within it a broker has read a pull."""


def commits(part: Part, world: World) -> CommitFacts:
    """Of all consumer groups of the run; with broadcasting of every consumer."""
    if not askers(world):
        return CommitFacts()
    broadcasting = bool(world.workload.get("broadcasting"))
    of_place, at_brokers = _by_place(part, world, broadcasting=broadcasting)
    first = {place: FirstPast(found) for place, found in of_place.items()}
    sends = with_offset(part.of("send", types=("ok",)))
    receipts = with_offset(part.of("receive", "sent_back"))
    # By holding and by the queue that a message came from: it is another than was taken where a consumer is wrong.
    by_holding = list(_by_queue(receipts, "node", "incarnation", "op_id"))
    odd: list[OfQueue] = [
        *_ahead(sends, receipts, world, first),
        *_back(of_place, part.of("pull", types=("ok",)), world),
    ]
    odd += [*_forgotten(world, of_place), *_behind(by_holding, part.control, world, first)]
    if broadcasting:
        odd += _begun_below(part.control, world, of_place)
    else:
        odd += [*_older(part.control, world, of_place), *_invented(part.control, world, of_place)]
        odd += _not_by_pulls(by_holding, part, world, of_place)
        odd += [*_given_up(part.control, world, of_place), *_left(part.control, of_place)]
    return CommitFacts(sum(map(len, of_place.values())), at_brokers, tuple(odd), _at_slaves(world, of_place))


COMMITS = Reading(
    Together.QUEUE,
    ("commit", "send", "receive", "sent_back", "pull"),
    ("type", "f", "role", "op_id", "offset", "address", "duration_ms", "value"),
    commits,
    types=("ok",),
)


def _by_place(part: Part, world: World, *, broadcasting: bool) -> tuple[dict[Place, list[Row]], dict[str, int]]:
    """The commits of the groups, each place's in order of time; and by client those of broadcasters at brokers."""
    found: dict[Place, list[Row]] = defaultdict(list)
    at_brokers: dict[str, int] = defaultdict(int)
    for row in sorted(rows_in(part.of("commit")), key=row_order):
        if broadcasting and row["role"] != "consumer":
            at_brokers[node_of_client_id(value_of(row).get("client"))] += 1
            continue
        row = {**row, "value": value_of(row)}
        said = row["node"] if broadcasting else row["value"]["group"]
        for group in askers(world):
            if group.name == said and group.topic in ("", row["topic"]):
                found[row["topic"], row["broker_name"], row["queue_id"], group.name].append(row)
    return found, at_brokers


class FirstPast:
    """The first commit of a queue past an offset; of those at one time the one of the first client."""

    def __init__(self, commits: Sequence[Row]) -> None:
        self._commits = sorted(commits, key=lambda row: (row["time_ms"], row["value"].get("client") or ""))
        self._highest = np.maximum.accumulate([row["offset"] for row in self._commits])
        self._times = np.array([*(row["time_ms"] for row in self._commits), np.inf])

    def times_of(self, offsets: Numbers) -> Floats:
        """When each offset was first committed past; inf for never."""
        found: Floats = self._times[np.searchsorted(self._highest, offsets, "right")]
        return found

    def of(self, offset: int) -> Row:
        """That commit, which there is."""
        return self._commits[int(np.searchsorted(self._highest, offset, "right"))]


class _Received(NamedTuple):
    """Receipts of one queue: each offset once, rising, and when it first came."""

    queue: tuple[str, str, int]
    offsets: Numbers
    times: Floats


def _by_queue(rows: pa.Table, *more: str) -> Iterator[tuple[Row, _Received]]:
    """The rows of each queue that agree in these columns too, with the first of them."""
    offsets, times = rows["offset"].to_numpy(), floats(rows["time_ms"])
    for at in groups(codes(rows, *QUEUE, *more)):
        row = rows.slice(int(at[0]), 1).to_pylist()[0]
        at = at[np.lexsort((times[at], offsets[at]))]
        each, first = np.unique(offsets[at], return_index=True)
        yield row, _Received((row["topic"], row["broker_name"], row["queue_id"]), each, times[at][first])


def _ahead(sends: pa.Table, receipts: pa.Table, world: World, first: Mapping[Place, FirstPast]) -> Iterator[Ahead]:
    acked = {found.queue: found for _, found in _by_queue(sends)}
    for group in askers(world):
        of_group = receipts.filter(is_one_of(receipts["node"], sorted(group.members)))
        received = {found.queue: found for _, found in _by_queue(of_group)}
        for queue in {**acked, **received}:
            past = first.get((*queue, group.name))
            if past is None:
                continue
            known = [of[queue] for of in (acked, received) if queue in of]
            offsets = np.unique(np.concatenate([one.offsets for one in known]))
            committed_ms, received_ms = past.times_of(offsets), _times_of(received.get(queue), offsets)
            acked_ms = _times_of(acked.get(queue), offsets)
            for at in np.flatnonzero(np.isfinite(committed_ms) & ~(received_ms <= committed_ms)):
                offset = int(offsets[at])
                by = past.of(offset)["value"].get("client")
                times = (None if np.isnan(of[at]) else float(of[at]) for of in (acked_ms, received_ms))
                yield Ahead(*queue, group.name, offset, float(committed_ms[at]), by, *times)


def _times_of(found: _Received | None, offsets: Numbers) -> Floats:
    """When each of these offsets came; NaN for one that did not."""
    times = np.full(len(offsets), np.nan)
    if found is not None:
        times[np.searchsorted(offsets, found.offsets)] = found.times
    return times


def _behind(
    by_holding: Sequence[tuple[Row, _Received]], control: Control, world: World, first: Mapping[Place, FirstPast]
) -> Iterator[Behind]:
    tell, late_ms = brokers_that_tell(world), interval_ms(world)
    of_member = {member: group for group in askers(world) for member in group.members}
    drops: dict[tuple[Any, ...], ControlRow] = {}
    if not world.workload.get("broadcasting"):
        rows = control.rows("queue_dropped")
        drops = {(r.node, r.incarnation, r.op_id): r for r in rows if world.made_by(r.node) == OURS}
    received = grouped(((r["node"], r["incarnation"], r["op_id"], r["topic"]), found) for r, found in by_holding)
    for taken in control.rows("queue_taken"):
        group = of_member.get(taken.node)
        if taken.broker_name not in tell or group is None or group.topic not in ("", taken.topic):
            continue
        for found in received.get((taken.node, taken.incarnation, taken.op_id, taken.topic), ()):
            place = *found.queue, group.name
            drop = drops.get((taken.node, taken.incarnation, taken.op_id))
            gives = (drop.time_ms, drop.offset or 0) if drop is not None and found.queue == _queue(drop) else None
            late = _late(found, taken.offset or 0, first.get(place), late_ms, gives)
            for first_ms, (worked_ms, offset, is_left) in late.items():
                by = taken.node, taken.incarnation, taken.time_ms
                committed_ms = first_ms if np.isfinite(first_ms) else None
                dropped_ms = gives[0] if gives is not None and is_left else None
                yield Behind(*place, offset, *by, worked_ms, committed_ms, dropped_ms)


def _late(
    received: _Received, begins_at: int, past: FirstPast | None, late_ms: float, gives: tuple[float, int] | None
) -> dict[float, tuple[float, int, bool]]:
    """When each commit came that was too late for some of what a holding received of a queue (inf: never), and what of
    that was worked off first, when and which offset; and whether it was later than when the holder gave the queue up
    (`gives`: when, and what it had worked off).

    Worked off is a message when all before it are, from the holding's first message, or from a commit, on.
    """
    offsets, times = received.offsets, received.times
    first_ms = np.full(len(offsets), np.inf) if past is None else past.times_of(offsets)
    found: dict[float, tuple[float, int, bool]] = {}
    is_left = np.zeros(len(offsets), bool)
    if gives is not None and gives[1] - 1 in offsets:  # or it has skipped what nobody wants
        is_left = (first_ms > gives[0]) & (offsets < gives[1])
    for island in np.split(np.arange(len(offsets)), np.flatnonzero(np.diff(offsets) != 1) + 1):
        begins = island[0] == 0 and offsets[0] == begins_at
        since_ms = -np.inf if begins else first_ms[island[0]]
        if since_ms == np.inf:
            continue
        worked_ms = np.maximum(since_ms, np.maximum.accumulate(times[island]))
        late = np.flatnonzero((first_ms[island] - worked_ms > late_ms) | is_left[island])
        for commit_ms, at in zip(*np.unique(first_ms[island][late], return_index=True), strict=True):
            left = bool(is_left[island][first_ms[island] == commit_ms].any())
            one = float(worked_ms[late[at]]), int(offsets[island[late[at]]]), left
            found[float(commit_ms)] = min(found.get(float(commit_ms), one), one)
    return found


def _older(control: Control, world: World, commits: Mapping[Place, Sequence[Row]]) -> Iterator[Older]:
    """Queues that were taken at an older offset than was committed."""
    for place, row in _taken(control, world):
        offset = row.offset or 0
        before = [one for one in commits.get(place, ()) if one["time_ms"] <= row.time_ms]
        low_ms = max((one["time_ms"] for one in before if one["offset"] <= offset), default=-np.inf)
        higher = [one for one in before if one["time_ms"] > low_ms]
        if higher:
            copied = copied_before(world, place[1], row.time_ms)
            at_master = [
                one["time_ms"]
                for one in higher
                if copied is not None and copied.from_ms <= one["time_ms"] <= copied.to_ms and one["node"] == place[1]
            ]
            passed_ms = min(one["time_ms"] for one in higher)
            answered = (row.decoded or {}).get("answered")
            yield Older(*place, offset, row.node, row.time_ms, passed_ms, min(at_master, default=None), answered)


def _taken(control: Control, world: World) -> Iterator[tuple[Place, ControlRow]]:
    """Where each member of a group took a queue; with broadcasting each consumer is a group."""
    group_of = {member: group.name for group in askers(world) for member in group.members}
    taken = (row for row in control.rows("queue_taken") if row.node in group_of)
    return (((*_queue(row), group_of[row.node]), row) for row in taken)


def _at_slaves(world: World, commits: Mapping[Place, Sequence[Row]]) -> dict[AtSlave, Committed]:
    slaves, found = slaves_that_tell(world), dict[AtSlave, Committed]()
    for (_, broker_name, _, group), of_place in commits.items():
        for row in of_place:
            client = row["value"].get("client")
            if row["node"] in slaves and client is not None:
                part = AtSlave(broker_name, group, row["node"], client, int(row["time_ms"] // PART_MS))
                one = Committed(1, row["time_ms"], row["time_ms"])
                found[part] = found.get(part, Committed()).plus(one)
    return found


def _given_up(control: Control, world: World, commits: Mapping[Place, Sequence[Row]]) -> Iterator[GivenUp]:
    """Commits that came later than at once after their consumer had dropped the queue; it says so when it has committed
    its last."""
    held = grouped(((one.node, _queue(one)), one) for one in control.rows("queue_taken", "queue_dropped"))
    for place, of_place in commits.items():
        for row in of_place:
            consumer, at_ms = _committer(row), row["time_ms"]
            of = held.get((consumer, place[:3]), [])
            for last in of[: bisect_right(of, at_ms, key=lambda one: one.time_ms)][-1:]:
                if last.event == "queue_dropped" and at_ms - last.time_ms > world.timers.delivery_ms:
                    yield GivenUp(*place, row["offset"], consumer, at_ms, last.time_ms)


def _left(control: Control, commits: Mapping[Place, Sequence[Row]]) -> Iterator[GivenUp]:
    """Commits that a broker read off a channel after the consumer's unregistration."""
    said = grouped(((*one.process, one.op_id), one) for one in control.rows("client_heartbeat", "client_gone"))
    for place, of_place in commits.items():
        for row in of_place:
            channel = said.get((row["node"], row["incarnation"], row["op_id"]), [])
            last = channel[bisect_left(channel, row["seq"], key=lambda one: one.seq) - 1 :][:1]
            for one in last if channel and channel[0].seq < row["seq"] else ():
                if one.f == "unregistered":
                    yield GivenUp(*place, row["offset"], node_of_client(one), row["time_ms"], one.time_ms, left=True)


def _forgotten(world: World, commits: Mapping[Place, Sequence[Row]]) -> Iterator[Forgotten]:
    """Of masters, and of slaves whose master is gone: else a slave's table is its master's each 10 s, whatever it was
    told itself (`SlaveSynchronize`)."""
    for place, of_place in commits.items():
        last: dict[tuple[str, int], Row] = {}
        for row in of_place:
            process, before = (row["node"], row["incarnation"]), row["value"].get("before")
            told, last[process] = last.get(process), row
            if told is None or before in (None, told["offset"]):
                continue
            slave = row["node"] if is_slave(row["node"]) else ""
            if not slave or keeps_own_offsets(world, slave, told["time_ms"], row["time_ms"]):
                yield Forgotten(*place, told["offset"], before, row["time_ms"], told["time_ms"], slave=slave)


def _begun_below(control: Control, world: World, commits: Mapping[Place, Sequence[Row]]) -> Iterator[Forgotten]:
    """Queues that a broadcasting consumer began below the offset that its own file had."""
    for place, row in _taken(control, world):
        offset = row.offset or 0
        own = [one for one in commits.get(place, ()) if one["time_ms"] <= row.time_ms][-1:]
        for one in own:
            if offset < one["offset"]:
                yield Forgotten(*place, one["offset"], offset, row.time_ms, one["time_ms"])


def _invented(control: Control, world: World, commits: Mapping[Place, Sequence[Row]]) -> Iterator[Forgotten]:
    """Offsets that a process of a broker answered (14), beyond all that it had been told. Others' brokers do not say of
    a pull that they hold what it commits."""
    for place, row in _taken(control, world):
        answered = (row.decoded or {}).get("answered")
        life = world.life_at(place[1], row.time_ms)
        if answered is None or life is None or world.made_by(place[1]) != OURS:
            continue
        process, by_ms = life.process, row.time_ms + world.timers.delivery_ms
        told = [one for one in commits.get(place, ()) if (one["node"], one["incarnation"]) == process]
        # What the taker itself commits a moment later follows from the answer.
        told = [o for o in told if o["time_ms"] <= (row.time_ms if _committer(o) == row.node else by_ms)]
        if told and answered > max(max(one["offset"], one["value"].get("before") or 0) for one in told):
            last = max(told, key=lambda one: (one["offset"], -one["time_ms"]))
            told_ms = min(last["time_ms"], row.time_ms)
            yield Forgotten(*place, last["offset"], answered, row.time_ms, told_ms, is_answer=True)


class _Worked(NamedTuple):
    """What one holding of a queue worked off without a gap, from where it began; until it ended."""

    process: tuple[str, int]
    begins_at: int
    times: Floats
    until_ms: float


def _not_by_pulls(
    by_holding: Sequence[tuple[Row, _Received]], part: Part, world: World, commits: Mapping[Place, Sequence[Row]]
) -> Iterator[Forgotten]:
    """Offsets that a master did not take from a pull, by what it had at the consumer's next commit. A pull commits what
    is worked off as it begins, before it is answered (PullMessageProcessor). Slaves take nothing from pulls. Consumers
    of others may record a message sooner than it is worked off."""
    if any(act.f == "switch" for act in world.acts):
        return
    held, masters = _worked(by_holding, part.control), {one.name for one in world.ours("broker")}
    # Whom somebody registers by hand may be a slave in its consumers' routes.
    by_hand = {world.owners.get(act.address) for act in world.acts if act.f == "register"}
    masters -= {name for name in masters if elects(world, name) or name in by_hand}
    pulls, late_ms = part.of("pull", types=("ok",)), world.timers.clocks_ms or 0.0
    for place, of_place in commits.items():
        last: dict[tuple[str, int], Row] = {}
        of_queue: pa.Table | None = None
        for row in of_place:
            process, before = (row["node"], row["incarnation"]), row["value"].get("before")
            told, last[process] = last.get(process), row
            is_raised = told is not None and told["offset"] == before < row["offset"] and row["f"] != "pull"
            client = _committer(row)
            if told is None or not is_raised or row["node"] not in masters or world.made_by(client) != OURS:
                continue
            for one in held.get((client, place[:3]), ()):
                number = before - one.begins_at
                if not 0 <= number < len(one.times):
                    continue
                of_queue = _of_queue(pulls, place) if of_queue is None else of_queue
                from_ms = max(float(one.times[number]), told["time_ms"] + late_ms) + _READ_MS
                to_ms = min(row["time_ms"] - late_ms, one.until_ms)
                if (answered_ms := _answered(of_queue, one.process, row["node"], world, from_ms, to_ms)) is not None:
                    yield Forgotten(*place, before + 1, before, row["time_ms"], answered_ms, of_pull=True)
                    break


def _worked(
    by_holding: Sequence[tuple[Row, _Received]], control: Control
) -> Mapping[tuple[str, tuple[str, str, int]], Sequence[_Worked]]:
    """By consumer and queue."""
    received = {(row["node"], row["incarnation"], row["op_id"], of.queue): of for row, of in by_holding}
    found: dict[tuple[str, tuple[str, str, int]], list[_Worked]] = defaultdict(list)
    ends: dict[Any, float] = {}
    for row in reversed(control.rows("queue_taken", "queue_dropped")):
        holder = *row.process, _queue(row)
        of = received.get((*row.process, row.op_id, _queue(row)))
        if row.event == "queue_taken" and of is not None and of.offsets[0] == (row.offset or 0):
            whole = int(np.sum(of.offsets == of.offsets[0] + np.arange(len(of.offsets))))
            worked = np.maximum.accumulate(of.times[:whole])
            found[row.node, _queue(row)].append(_Worked(row.process, row.offset or 0, worked, ends.get(holder, np.inf)))
        ends[holder] = row.time_ms
    return found


def _answered(
    pulls: pa.Table, process: tuple[str, int], broker: str, world: World, from_ms: float, to_ms: float
) -> float | None:
    """When the broker answered the first pull of the consumer that began and ended in that time."""
    if from_ms >= to_ms:
        return None
    ended_ms = floats(pulls["time_ms"])
    is_within = (ended_ms - floats(pulls["duration_ms"]) > from_ms) & (ended_ms < to_ms)
    for row in rows_in(pulls.filter(pa.array(is_within))):
        if (row["node"], row["incarnation"]) == process and world.owners.get(row["address"] or "") == broker:
            return float(row["time_ms"])
    return None


def _committer(commit: Row) -> str:
    return node_of_client_id(commit["value"].get("client"))


def _back(commits: Mapping[Place, Sequence[Row]], pulls: pa.Table, world: World) -> Iterator[Back]:
    for place, of_place in commits.items():
        last: dict[tuple[str, int], Row] = {}
        of_queue: pa.Table | None = None
        for row in of_place:
            process, value = (row["node"], row["incarnation"]), row["value"]
            before = last.get(process)
            if (value.get("before") or -1) > row["offset"] and not (before and _is_older(row, before)):
                at_ms, before_ms = row["time_ms"], before["time_ms"] if before else None
                of_queue = _of_queue(pulls, place) if of_queue is None else of_queue
                again = row["f"] == "pull" and _is_repeated(row, of_queue, world)
                yield Back(*place, row["offset"], value["before"], at_ms, before_ms, value.get("client"), again)
            last[process] = row


def _is_older(commit: Row, other: Row) -> bool:
    """Whether the commit came by a channel of the same client that began before that of the other: what comes late has
    no order. Numbers of channels rise at a broker of ours. A channel without a heartbeat may be of any client."""
    channels = commit["op_id"] or "", other["op_id"] or ""
    clients = {_committer(commit), _committer(other)} - {""}
    return len(clients) < 2 and all(map(str.isdigit, channels)) and int(channels[0]) < int(channels[1])


def _of_queue(pulls: pa.Table, place: Place) -> pa.Table:
    for name, value in zip(QUEUE, place, strict=False):
        pulls = pulls.filter(pc.equal(pulls[name], value))
    return pulls


def _is_repeated(row: Row, pulls: pa.Table, world: World) -> bool:
    """Whether the broker held a pull of the commit's client then, and read none: of a link without a fault."""
    client, at_ms = _committer(row), row["time_ms"]
    if any(fault.overlaps(at_ms - SUSPEND_MS, at_ms) for fault in world.way_faults(client, row["node"])):
        return False
    of_client = pulls.filter(pc.equal(pulls["node"], client))
    ended_ms = floats(of_client["time_ms"])
    began_ms, near_ms = ended_ms - floats(of_client["duration_ms"]), world.timers.delivery_ms
    is_held = (began_ms < at_ms - _READ_MS) & (at_ms - near_ms < ended_ms)
    is_read = (began_ms <= at_ms + (world.timers.clocks_ms or 0.0)) & (at_ms - began_ms <= _READ_MS)
    return bool(is_held.any() and not is_read.any())


def _queue(row: ControlRow) -> tuple[str, str, int]:
    return row.topic or "", row.broker_name or "", row.queue_id or 0
