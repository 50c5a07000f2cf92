"""Offsets that a broker, or a broadcasting consumer's own file, was told and did not have later.

commit 5 ───── commit 7, and the broker had 5 before it: right; it had none, or 3: it has forgotten
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ....remoting.node.profile import Profile
from ...arrow import Floats, np, pa
from ...oracle.recorded import Life
from ...oracle.roles import elects
from ...oracle.slaves import SYNCHRONIZED_MS, keeps_own_offsets, made_masters, offsets_vary
from ...oracle.time_outs import OFFSET_CALL_MS
from ...topology import is_slave
from ...verdict import Finding
from ..findings import Rule, finding
from ..record.commits import Place
from .commits_by_place import Commits, committer, queue_of
from .part import Row, floats, rows_in

READ_MS = 100.0
"""Within it a broker has read a pull."""
_KEPT, _LOST = "did not keep a committed offset", "lost its own offset"
_ANSWERED, _TAKES = "answered a higher offset", "takes what pulls commit"
_UNCOPIED = "answered a lower offset than was copied"
_ROWS = {
    _TAKES: "PullMessageProcessor: a master stores the offset that a pull commits",
    _UNCOPIED: "SlaveSynchronize: a slave that is made master has the offsets that it copied",
}

Unkept = tuple[Place, Finding]


class _Worked(NamedTuple):
    """What one holding of a queue worked off without a gap, from where it began; until it ended."""

    process: tuple[str, int]
    begins_at: int
    times: Floats
    until_ms: float


def _lowest_since(kept: Sequence[int], told: Sequence[Row]) -> int:
    """The lowest offset of `told` from the last one on that was kept for certain, by its number; -1 without any."""
    return min(one["offset"] for one in told[kept[-1] :]) if kept else -1


class OffsetsKept(Commits):
    """Of one part."""

    def unkept(self) -> Iterator[Unkept]:
        """Each with its place."""
        at_brokers = self._invented, self._uncopied, self._over_restarts, self._not_by_pulls
        of_kind = (self._begun_below,) if self.broadcasting else at_brokers
        return chain(self._replaced(), *(each() for each in of_kind))

    def _unkept(
        self,
        kind: str,
        place: Place,
        offset: int,
        before: int,
        at_ms: float,
        told_ms: float,
        slave: str = "",
        *,
        rule: str = "forgotten",
    ) -> Iterator[Unkept]:
        """Of an offset that was told then, and `before`, which was there later, or answered; of this slave of the
        broker name. Nothing where an operator, a deletion or a copy of another broker explains it. `rule`: "deleted"
        after a deletion of the topic, which left none."""
        rules, (topic, broker, _, group) = self.rules, place
        varies, emptied = not slave and offsets_vary(self.world, broker, at_ms), rule == "deleted"
        is_deleted = place[:2] in rules.deleted and not emptied
        if is_deleted or varies or rules.was_reset(place.queue, group, told_ms, at_ms):
            return
        holder, of_pull = rules.holder(place.queue, group, at_ms) or group, kind == _TAKES
        is_answer = kind in (_ANSWERED, _UNCOPIED)
        because = f"{offset} was {'to be ' if of_pull else ''}stored, {before} was there later"
        because = f"{before}, {offset} was committed" if is_answer else because
        because += " since the topic was deleted" * emptied
        span = (at_ms if is_answer else told_ms), at_ms
        yield (
            place,
            finding(
                (*((group, broker) if self.broadcasting else (slave or broker, holder)), topic),
                kind,
                span,
                Rule(_ROWS.get(kind, "ConsumerOffsetManager: an offset stays until the next commit")),
                out=span,
                wrong=1,
                times={"committed": told_ms},
                more={
                    **place.told(rule, offset),
                    "answered" if is_answer else "before": before,
                    "because": because,
                },
            ),
        )

    def _replaced(self) -> Iterator[Unkept]:
        """Of masters, and of slaves whose master is gone: else a slave's table is its master's each 10 s, whatever it
        was told itself (`SlaveSynchronize`)."""
        for place, row, told in self.in_turn():
            before, node = row["value"].get("before"), row["node"]
            if before in (None, told["offset"]):
                continue
            slave = node if is_slave(node) else ""
            if not slave or keeps_own_offsets(self.world, slave, told["time_ms"], row["time_ms"]):
                about = place, told["offset"], before, row["time_ms"], told["time_ms"]
                yield from self._unkept(_LOST if self.broadcasting else _KEPT, *about, slave)

    def _over_restarts(self) -> Iterator[Unkept]:
        """Offsets that a master had told its file before its process ended, and that its next process did not have."""
        brokers = {one.name for one in self.world.ours("broker") if not elects(self.world, one.name)}
        brokers -= {disk.broker for disk in self.world.full_disks}
        for place, of_place in self.of_place.items():
            seen = set[tuple[str, int]]()
            for at, row in enumerate(of_place):
                if (row["node"], row["incarnation"]) in seen or row["node"] not in brokers:
                    continue
                seen.add((row["node"], row["incarnation"]))
                told = [one for one in of_place[:at] if one["node"] == row["node"]]
                processes = {one["incarnation"] for one in told}
                kept_ms = {number: self._kept_ms(row["node"], number) for number in processes}
                kept = [number for number, one in enumerate(told) if one["time_ms"] <= kept_ms[one["incarnation"]]]
                before, least = row["value"].get("before"), _lowest_since(kept, told)
                if before is not None and before < least:
                    yield from self._unkept(_KEPT, place, least, before, row["time_ms"], told[kept[-1]]["time_ms"])

    def _kept_ms(self, broker: str, incarnation: int) -> float:
        """When the process wrote its offsets for the last time, at the earliest."""
        by_ms = self.world.ended_ms(broker, incarnation) - self.world.number(broker, "flushConsumerOffsetInterval")
        return by_ms - self.control.lateness.tolerance(self.world, (broker,), by_ms, np.inf, 2).valid_up_to_ms

    def _begun_below(self) -> Iterator[Unkept]:
        """Queues that a broadcasting consumer began below the offset that its own file had."""
        for place, row in self.taken():
            offset = row.offset
            own = [one for one in self.of_place.get(place, ()) if one["time_ms"] <= row.time_ms][-1:]
            for one in own:
                if offset < one["offset"]:
                    yield from self._unkept(_LOST, place, one["offset"], offset, row.time_ms, one["time_ms"])

    def _invented(self) -> Iterator[Unkept]:
        """Offsets that a process of a broker answered (14), beyond all that it had been told. Others' brokers do not
        say of a pull that they hold what it commits."""
        world = self.world
        for place, row in self.taken():
            answered, life = row.said.get("answered"), world.life_at(place.broker_name, row.time_ms)
            if answered is None or life is None or not world.is_ours(place.broker_name):
                continue
            by_ms = row.time_ms + world.timers.delivery_ms
            told = [one for one in self.of_place.get(place, ()) if (one["node"], one["incarnation"]) == life.process]
            # What the taker itself commits a moment later follows from the answer.
            told = [o for o in told if o["time_ms"] <= (row.time_ms if committer(o) == row.node else by_ms)]
            if not told:  # the commits are in another part
                continue
            if (since_ms := self._emptied_ms(place, life, row.time_ms)) is not None:
                offset = max((one["offset"] for one in told if one["time_ms"] >= since_ms), default=0)
                if answered > offset:
                    yield from self._unkept(_ANSWERED, place, offset, answered, row.time_ms, since_ms, rule="deleted")
            elif answered > max(max(one["offset"], one["value"].get("before") or 0) for one in told):
                last = max(told, key=lambda one: (one["offset"], -one["time_ms"]))
                told_ms = min(last["time_ms"], row.time_ms)
                yield from self._unkept(_ANSWERED, place, last["offset"], answered, row.time_ms, told_ms)

    def _uncopied(self) -> Iterator[Unkept]:
        """Offsets that a slave made master answered, below what the slave had copied while nothing was done to it and
        its master, and what was committed since (`SlaveSynchronize`)."""
        for place, row in self.taken():
            made, answered = made_masters(self.world).get(place.broker_name), row.said.get("answered")
            asked_ms = row.time_ms - OFFSET_CALL_MS - self.world.timers.clocks_ms
            if made is None or answered is None or asked_ms < made.at_ms or not self.world.is_ours(made.node):
                continue
            old = self.world.lives_of(place.broker_name)
            if any(life.start_ms <= row.time_ms and life.end_ms >= asked_ms for life in old):
                continue  # it may have answered
            told = [one for one in self.of_place.get(place, ()) if one["time_ms"] <= row.time_ms]
            copied = [n for n, one in enumerate(told) if one["time_ms"] <= made.copied_ms - SYNCHRONIZED_MS]
            if answered < (least := _lowest_since(copied, told)):
                about = least, answered, row.time_ms, told[copied[-1]]["time_ms"]
                yield from self._unkept(_UNCOPIED, place, *about, made.node, rule="uncopied")

    def _emptied_ms(self, place: Place, life: Life, at_ms: float) -> float | None:
        """When an operator last deleted the topic at this process, and with the topic all its offsets, before this was
        asked. 5.x: `AdminBrokerProcessor.deleteTopicInBroker`, cleanOffsetByTopic; 4.9 keeps them."""
        asked_ms = at_ms - OFFSET_CALL_MS - self.world.timers.clocks_ms
        acts, is_5 = self.world.acts, self.world.timers_of(life.node).profile is Profile.V5_X
        if not is_5 or any(act.f in ("register", "switch") for act in acts):  # after these, another may have answered
            return None
        done = (act for act in acts if act.f == "delete_topic" and act.is_done and act.topic == place.topic)
        here = (act for act in done if act.node == life.node and act.ended_ms <= asked_ms)
        return max((act.began_ms for act in here if act.began_ms >= life.start_ms), default=None)

    def _not_by_pulls(self) -> Iterator[Unkept]:
        """Offsets that a master did not take from a pull, by what it had at the consumer's next commit. A pull commits
        what is worked off as it begins, before it is answered (PullMessageProcessor). Slaves take nothing from pulls.
        Consumers of others may record a message sooner than it is worked off."""
        world = self.world
        if any(act.f == "switch" for act in world.acts):
            return
        held, masters = self._worked(), {one.name for one in world.ours("broker")}
        # Whom somebody registers by hand may be a slave in its consumers' routes.
        by_hand = {world.owners.get(act.address) for act in world.acts if act.f == "register"}
        masters -= {name for name in masters if elects(world, name) or name in by_hand}
        late_ms = world.timers.clocks_ms
        for place, row, told in self.in_turn():
            before, client = row["value"].get("before"), committer(row)
            is_raised = told["offset"] == before < row["offset"] and row["f"] != "pull"
            if not is_raised or row["node"] not in masters or not world.is_ours(client):
                continue
            for one in held.get((client, place.queue), ()):
                number = before - one.begins_at
                if not 0 <= number < len(one.times):
                    continue
                from_ms = max(float(one.times[number]), told["time_ms"] + late_ms) + READ_MS
                to_ms = min(row["time_ms"] - late_ms, one.until_ms)
                if (answered_ms := self._answered(place, one.process, row["node"], from_ms, to_ms)) is not None:
                    yield from self._unkept(_TAKES, place, before + 1, before, row["time_ms"], answered_ms)
                    break

    def _worked(self) -> Mapping[tuple[str, tuple[str, str, int]], Sequence[_Worked]]:
        """By consumer and queue."""
        received = {(row["node"], row["incarnation"], row["op_id"], of.queue): of for row, of in self.by_holding}
        found: dict[tuple[str, tuple[str, str, int]], list[_Worked]] = defaultdict(list)
        ends: dict[Any, float] = {}
        for row in reversed(self.control.rows("queue_taken", "queue_dropped")):
            holder = *row.process, queue_of(row)
            of = received.get((*row.process, row.op_id, queue_of(row)))
            if row.event == "queue_taken" and of is not None and of.offsets[0] == row.offset:
                whole = int(np.sum(of.offsets == of.offsets[0] + np.arange(len(of.offsets))))
                times, until_ms = np.maximum.accumulate(of.times[:whole]), ends.get(holder, np.inf)
                found[row.node, queue_of(row)].append(_Worked(row.process, row.offset, times, until_ms))
            ends[holder] = row.time_ms
        return found

    def _answered(
        self, place: Place, process: tuple[str, int], broker: str, from_ms: float, to_ms: float
    ) -> float | None:
        """When the broker answered the first pull of the consumer that began and ended in that time."""
        if from_ms >= to_ms:
            return None
        pulls = self.pulls_of(place)
        ended_ms = floats(pulls["time_ms"])
        is_within = (ended_ms - floats(pulls["duration_ms"]) > from_ms) & (ended_ms < to_ms)
        for row in rows_in(pulls.filter(pa.array(is_within))):
            is_there = self.world.owners.get(row["address"] or "") == broker
            if (row["node"], row["incarnation"]) == process and is_there:
                return float(row["time_ms"])
        return None
