"""The commits of one part of a history by queue and group, beside what was sent, received and pulled there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ....clients.consumer.config import retry_topic
from ....clients.consumer.consume_service import KEPT
from ...arrow import Floats, Numbers, np, pa, pc
from ...history.schema import row_order
from ...oracle.deliveries import all_askers
from ...oracle.world import World
from ...topology import node_of_client_id
from ..record.commits import Place, commit_rules
from ..record.control import Row as ControlRow
from .part import QUEUE, Part, Row, codes, floats, groups, rows_in, value_of, with_offset


class FirstPast:
    """The first commit of a queue past an offset; of those at one time the one of the first client."""

    def __init__(self, commits: Sequence[Row]) -> None:
        self._commits = sorted(commits, key=lambda row: (row["time_ms"], row["value"].get("client") or ""))
        self._highest = np.maximum.accumulate([row["offset"] for row in self._commits])
        self._times = np.array([*(row["time_ms"] for row in self._commits), np.inf])

    def times_of(self, offsets: Numbers) -> Floats:
        """When each offset was first committed past; inf for never."""
        return self._times[np.searchsorted(self._highest, offsets, "right")]

    def of(self, offset: int) -> Row:
        """That commit, which there is."""
        return self._commits[int(np.searchsorted(self._highest, offset, "right"))]


class Received(NamedTuple):
    """Receipts of one queue: each offset once, rising, and when it first came."""

    queue: tuple[str, str, int]
    offsets: Numbers
    times: Floats


def by_queue(rows: pa.Table, *more: str) -> Iterator[tuple[Row, Received]]:
    """The rows of each queue that agree in these columns too, with the first of them."""
    offsets, times = rows["offset"].to_numpy(), floats(rows["time_ms"])
    for at in groups(codes(rows, *QUEUE, *more)):
        row = rows.slice(int(at[0]), 1).to_pylist()[0]
        at = at[np.lexsort((times[at], offsets[at]))]
        each, first = np.unique(offsets[at], return_index=True)
        yield row, Received((row["topic"], row["broker_name"], row["queue_id"]), each, times[at][first])


def times_of(found: Received | None, offsets: Numbers) -> Floats:
    """When each of these offsets came; NaN for one that did not."""
    times = np.full(len(offsets), np.nan)
    if found is not None:
        times[np.searchsorted(offsets, found.offsets)] = found.times
    return times


class Commits:
    """The commits of one part, by place."""

    def __init__(self, part: Part, world: World) -> None:
        self.control, self.world = part.control, world
        self.broadcasting, self.rules = bool(world.workload.get("broadcasting")), commit_rules(part.control, world)
        self.of_place: dict[Place, list[Row]] = defaultdict(list)
        """The commits of the groups, in order of time."""
        self.at_brokers: dict[str, int] = defaultdict(int)
        """By client those of broadcasters at brokers."""
        for row in sorted(rows_in(part.of("commit")), key=row_order):
            self._sort(row)
        self.first = {place: FirstPast(found) for place, found in self.of_place.items()}
        self.sends = with_offset(part.of("send", types=("ok",)))
        back = part.of("sent_back")
        is_done = pc.fill_null(pc.not_equal(back["f"], KEPT), True)  # a consumer is not done with what it keeps
        back = back.filter(is_done)
        self.receipts = with_offset(pa.concat_tables([part.of("receive"), back]))
        # By holding and by the queue that a message came from: it is another than was taken where a consumer is wrong.
        self.by_holding = [*by_queue(self.receipts, "node", "incarnation", "op_id")]
        self.pulls = part.of("pull", types=("ok",))

    def _sort(self, row: Row) -> None:
        if self.broadcasting and row["role"] != "consumer":
            self.at_brokers[node_of_client_id(value_of(row).get("client"))] += 1
            return
        row = {**row, "value": value_of(row)}
        said = row["node"] if self.broadcasting else row["value"]["group"]
        for group in all_askers(self.world):
            if group.name == said and (group.topic in ("", row["topic"]) or row["topic"] == retry_topic(said)):
                self.of_place[Place(row["topic"], row["broker_name"], row["queue_id"], group.name)].append(row)

    def taken(self) -> Iterator[tuple[Place, ControlRow]]:
        """Where each member of a group took a queue; with broadcasting each consumer is a group."""
        group_of = {member: group.name for group in all_askers(self.world) for member in group.members}
        taken = (row for row in self.control.rows("queue_taken") if row.node in group_of)
        return ((Place(*queue_of(row), group_of[row.node]), row) for row in taken)

    def pulls_of(self, place: Place) -> pa.Table:
        return self._pulls_by_queue.get(place.queue, self.pulls.slice(0, 0))

    @cached_property
    def _pulls_by_queue(self) -> Mapping[tuple[str, str, int], pa.Table]:
        found = {}
        for at in groups(codes(self.pulls, *QUEUE)):
            row = self.pulls.slice(int(at[0]), 1).to_pylist()[0]
            found[row["topic"], row["broker_name"], row["queue_id"]] = self.pulls.take(pa.array(at))
        return found

    def in_turn(self) -> Iterator[tuple[Place, Row, Row]]:
        """Each commit, and the one before it that the same process of the broker was told there."""
        for place, of_place in self.of_place.items():
            last: dict[tuple[str, int], Row] = {}
            for row in of_place:
                process = row["node"], row["incarnation"]
                if process in last:
                    yield place, row, last[process]
                last[process] = row


def committer(commit: Row) -> str:
    return node_of_client_id(commit["value"].get("client"))


def queue_of(row: ControlRow) -> tuple[str, str, int]:
    return row.topic, row.broker_name, row.queue_id
