"""What dataframes/commits.py finds, in plain Python over a history's rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from ...oracle.deliveries import askers
from ...oracle.world import World
from ...topology import is_slave
from ..record.at_slaves import copied_before, slaves_that_tell
from ..record.commits import Ahead, AtSlave, Back, Behind, CommitFacts, Forgotten, Left, Older, asker_of
from ..record.control import Control
from ..record.handed_over import given_up
from ..record.uncommitted import brokers_that_tell, interval_ms
from ..record.uses import PART_MS
from .history import PlainHistory, value_of

Place = tuple[str, str, int, str]
"""Topic, broker name, queue id, group."""


def commit_facts(history: PlainHistory, world: World) -> CommitFacts:
    """What has to be explained of these rows."""
    rows, control = history.rows, history.control
    groups = askers(world)
    group_of = {member: group.name for group in groups for member in group.members}
    broadcasting = bool(world.workload.get("broadcasting"))
    commits: dict[Place, list[Mapping[str, Any]]] = defaultdict(list)
    at_brokers = 0
    for row in sorted((row for row in rows if row["event"] == "commit"), key=_order):
        if broadcasting and row["role"] != "consumer":
            at_brokers += 1
            continue
        said = row["node"] if broadcasting else value_of(row)["group"]
        for group in groups:
            if asker_of(group.name) == said and group.topic in ("", row["topic"]):
                commits[row["topic"], row["broker_name"], row["queue_id"], group.name].append(row)
    taken = 0
    older: list[Older] = []
    for row in rows:
        if row["event"] == "queue_taken" and not broadcasting and row["node"] in group_of:
            place = row["topic"], row["broker_name"], row["queue_id"], group_of[row["node"]]
            before = [one for one in commits.get(place, ()) if one["time_ms"] <= row["time_ms"]]
            taken += bool(before)
            low_ms = max((one["time_ms"] for one in before if one["offset"] <= row["offset"]), default=float("-inf"))
            higher = [one["time_ms"] for one in before if one["time_ms"] > low_ms]
            if higher:
                taken_at = place, row["node"], row["offset"], row["time_ms"], min(higher)
                older.append(_with_master(taken_at, before, low_ms, world))
    return CommitFacts(
        commits=sum(map(len, commits.values())),
        taken=taken,
        at_brokers=at_brokers,
        ahead=tuple(sorted(_ahead(rows, world, commits))),
        back=tuple(_back(commits)),
        older=tuple(older),
        forgotten=tuple(_forgotten(commits)),
        behind=tuple(_behind(rows, world, commits)),
        left=tuple(_left(rows, control, world, commits)),
        at_slaves=tuple(_at_slaves(world, commits)),
    )


def _ahead(
    rows: Sequence[Mapping[str, Any]], world: World, commits: Mapping[Place, Sequence[Mapping[str, Any]]]
) -> list[Ahead]:
    groups = askers(world)
    members = {member: group.name for group in groups for member in group.members}
    acked: dict[tuple[Place, int], float] = {}
    received: dict[tuple[Place, int], float] = {}
    for row in rows:
        if row.get("offset") is None or row["event"] not in ("send", "receive"):
            continue
        of_send = [group.name for group in groups if group.topic in ("", row["topic"])]
        names = of_send if row["event"] == "send" else [members[row["node"]]]
        into = acked if row["event"] == "send" else received
        for name in names:
            key = (row["topic"], row["broker_name"], row["queue_id"], name), row["offset"]
            into[key] = min(into.get(key, row["time_ms"]), row["time_ms"])
    found = []
    first_past = {place: _FirstPast(of_place) for place, of_place in commits.items()}
    for place, offset in {**acked, **received}:
        first = first_past[place].of(offset) if place in first_past else None
        if first is None:
            continue
        received_ms = received.get((place, offset))
        if received_ms is None or received_ms > first["time_ms"]:
            by = value_of(first).get("client")
            acked_ms = acked.get((place, offset))
            found.append(Ahead(*place, offset, first["time_ms"], by, acked_ms, received_ms))
    return found


def _behind(
    rows: Sequence[Mapping[str, Any]],
    world: World,
    commits: Mapping[Place, Sequence[Mapping[str, Any]]],
) -> list[Behind]:
    tell, late_ms = brokers_that_tell(world), interval_ms(world)
    groups = {member: group for group in askers(world) for member in group.members}
    # By holding and by the queue that a message came from: it is another than was taken where a consumer is wrong.
    received: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["event"] == "receive" and row.get("offset") is not None:
            of_queue = received[_holding(row)][row["broker_name"], row["queue_id"]]
            of_queue[row["offset"]] = min(of_queue.get(row["offset"], row["time_ms"]), row["time_ms"])
    past = {place: _FirstPast(of_place) for place, of_place in commits.items()}
    taken = sorted((row for row in rows if row["event"] == "queue_taken"), key=_order)
    found = []
    for row in taken:
        group = groups.get(row["node"])
        if row["broker_name"] not in tell or group is None or group.topic not in ("", row["topic"]):
            continue
        behind: list[tuple[float, int, Place, float | None]] = []
        for queue, of_queue in received[_holding(row)].items():
            place = row["topic"], *queue, group.name
            first_past = past[place].of if place in past else lambda _: None
            behind += [(*work, place, first_ms) for first_ms, work in _late(row, of_queue, first_past, late_ms)]
        for worked_ms, offset, place, first_ms in sorted(behind, key=lambda one: one[:2]):
            by = row["node"], row["incarnation"], row["time_ms"]
            found.append(Behind(*place, *by, offset, worked_ms, first_ms))
    return found


def _late(
    taken: Mapping[str, Any],
    received: Mapping[int, float],
    first_past: Callable[[int], Mapping[str, Any] | None],
    late_ms: float,
) -> Iterable[tuple[float | None, tuple[float, int]]]:
    """Of what a holding received of a queue, by offset: when each commit came that was too late for some of it (None:
    never), and what of that was worked off first, when and which offset."""
    firsts: dict[float | None, tuple[float, int]] = {}
    island: tuple[int, float | None, float] | None = None  # its last offset, since when it counts, worked off at
    for offset, received_ms in sorted(received.items()):
        first = first_past(offset)
        first_ms = None if first is None else first["time_ms"]
        if island is None or island[0] != offset - 1:
            begins = island is None and offset == (taken["offset"] or 0)
            island = offset, float("-inf") if begins else first_ms, received_ms
        island = offset, island[1], max(island[2], received_ms)
        if island[1] is None:
            continue
        worked_ms = max(island[1], island[2])
        if first_ms is None or first_ms - worked_ms > late_ms:
            firsts[first_ms] = min(firsts.get(first_ms, (worked_ms, offset)), (worked_ms, offset))
    return firsts.items()


def _left(
    rows: Sequence[Mapping[str, Any]],
    control: Control,
    world: World,
    commits: Mapping[Place, Sequence[Mapping[str, Any]]],
) -> list[Left]:
    received: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if row["event"] == "receive" and row.get("offset") is not None:
            key = *_holding(row), row["broker_name"], row["queue_id"], row["offset"]
            received[key] = min(received.get(key, row["time_ms"]), row["time_ms"])
    found = []
    for drop, group in given_up(control, world):
        queue = drop.topic or "", drop.broker_name or "", drop.queue_id or 0
        offset = drop.offset or 0
        worked_ms = received.get((drop.node, drop.incarnation, drop.op_id, *queue, offset - 1))
        covering = (one["time_ms"] for one in commits.get((*queue, group), ()) if one["offset"] >= offset)
        committed_ms = min(covering, default=None)
        if worked_ms is not None and (committed_ms is None or committed_ms > drop.time_ms):
            of = *queue, group, drop.node, drop.incarnation, offset
            found.append(Left(*of, drop.time_ms, worked_ms, committed_ms))
    return found


def _at_slaves(world: World, commits: Mapping[Place, Sequence[Mapping[str, Any]]]) -> list[AtSlave]:
    slaves, parts = slaves_that_tell(world), dict[tuple[str, str, str, str, int], list[float]]()
    for (_, broker_name, _, group), of_place in commits.items():
        for row in of_place:
            client = value_of(row).get("client")
            if row["node"] in slaves and client is not None:
                part = broker_name, group, row["node"], client, int(row["time_ms"] // PART_MS)
                parts.setdefault(part, []).append(row["time_ms"])
    return [AtSlave(*part[:4], min(of), max(of), len(of)) for part, of in sorted(parts.items())]


def _with_master(
    taken_at: tuple[Place, str, int, float, float], before: Sequence[Mapping[str, Any]], low_ms: float, world: World
) -> Older:
    place, consumer, offset, taken_ms, passed_ms = taken_at
    copied = copied_before(world, place[1], taken_ms)
    at_master = [
        one["time_ms"]
        for one in before
        if copied is not None and copied.from_ms <= one["time_ms"] <= copied.to_ms
        if one["time_ms"] > low_ms and one["node"] == place[1]
    ]
    return Older(*place, consumer, offset, taken_ms, passed_ms, min(at_master, default=None))


def _holding(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["node"], row["incarnation"], row["op_id"], row["topic"]


def _forgotten(commits: Mapping[Place, Sequence[Mapping[str, Any]]]) -> list[Forgotten]:
    """Of masters: a slave's table is its master's each 10 s, whatever it was told itself (`SlaveSynchronize`)."""
    found = []
    for place, of_place in commits.items():
        last: dict[tuple[str, int], Mapping[str, Any]] = {}
        for row in (row for row in of_place if not is_slave(row["node"])):
            told, before = last.get((row["node"], row["incarnation"])), value_of(row).get("before")
            if told is not None and before is not None and before < told["offset"]:
                found.append(Forgotten(*place, before, told["offset"], row["time_ms"], told["time_ms"]))
            last[row["node"], row["incarnation"]] = row
    return sorted(found, key=lambda one: (one.at_ms, one[:4]))


class _FirstPast:
    """The first commit of a queue past an offset; of those at one time the one of the first client."""

    def __init__(self, commits: Sequence[Mapping[str, Any]]) -> None:
        self._commits = sorted(commits, key=lambda row: (row["time_ms"], value_of(row).get("client") or ""))
        self._highest = list(accumulate((row["offset"] for row in self._commits), max))

    def of(self, offset: int) -> Mapping[str, Any] | None:
        first = bisect_right(self._highest, offset)
        return self._commits[first] if first < len(self._commits) else None


def _back(commits: Mapping[Place, Sequence[Mapping[str, Any]]]) -> list[Back]:
    found = []
    for place, of_place in commits.items():
        last: dict[tuple[str, int], float] = {}
        for row in of_place:
            process, value = (row["node"], row["incarnation"]), value_of(row)
            if (value.get("before") or -1) > row["offset"]:
                at_ms, before_ms = row["time_ms"], last.get(process)
                found.append(Back(*place, row["offset"], value["before"], at_ms, before_ms, value.get("client")))
            last[process] = row["time_ms"]
    return sorted(found, key=lambda one: (one.at_ms, one.offset))


def _order(row: Mapping[str, Any]) -> tuple[float, str, int, int]:
    return row["time_ms"], row["node"], row["incarnation"], row["seq"]
