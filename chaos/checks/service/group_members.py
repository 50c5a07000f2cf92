"""Part of timers_kept: how brokers learn a group's members, and how the members learn of each other.

    client ── heartbeat, each H ──► every broker of its routes                               MQClientInstance
    broker ── at once, when a member goes, or comes by a channel or with topics ──► group    ConsumerManager
    member ── told so, at once ──► rebalance                                                 RebalanceService
    client ── unregisters (35), as it stops in order ──► every broker of its routes          MQClientInstance
    broker ── takes out who unregisters, before its channel ends                             ClientManageProcessor

That a broker told a member, the member's transport says (`members_changed`): who did not tell is guilty, else who was
told and did not rebalance. Of a client that left by the end of its channel the broker is guilty which had answered that
it unregistered (`unregistered`), else the client. A producer's heartbeats go to masters alone. What brokers answer
about a group is group_answers.py's.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from ...faults.fault import Loss
from ...oracle.intervals import Stretch, grouped
from ...oracle.link import MOMENT_MS
from ...oracle.queue_owners import node_of_client
from ...oracle.time_outs import HEARTBEAT, REBALANCE
from ...oracle.timers import Act
from ...verdict import Finding
from ..findings import Done, of_done
from ..record.control import Control, Row, once
from ..record.timer_acts import Process, Run, of_client
from .expired_channels import CHANNEL
from .group_answers import heard_by_brokers

NOTICE = "notifyConsumerIdsChanged"
_EACH, _MOVED = "heartbeats reach every broker", "heartbeats at new queues"
_ROUNDS = {
    _EACH: "MQClientInstance: each round goes to every broker of its routes",
    _MOVED: "RebalancePushImpl.messageQueueChanged: sendHeartbeatToAllBrokerWithLock",
}
"""Rounds of heartbeats, by what asks for them, and the rule's row."""


@once
def changes_of(control: Control, members: frozenset[str]) -> Sequence[Row]:
    """When a broker forgot one of these, or heard of one on a new channel, or with other topics than its group had; not
    when it forgot one for its silence, of which it tells nobody (`ConsumerManager.scanNotActiveChannel`)."""
    found, known, topics = list[Row](), set[tuple[str, int, str | None]](), dict[tuple[str, int], frozenset[str]]()
    for row in control.rows("client_gone", "client_heartbeat"):
        if node_of_client(row) not in members:
            continue
        value, channel = row.said, (*row.process, row.op_id)
        if row.event == "client_gone":
            known.discard(channel)
            is_change = bool(value.get("groups")) and row.f != "expired"
        else:
            subscribed = frozenset(value.get("versions") or ())
            is_change = channel not in known or topics[row.process] != subscribed
            known.add(channel)
            topics[row.process] = subscribed
        if is_change:
            found.append(row)
    return found


class Members(Process):
    """What one process of a client sends brokers, and what these tell it."""

    def findings(self) -> Iterator[Finding]:
        if self.kind == "consumer":
            changes = list(self._changes())
            row = "ConsumerManager: a group is notified at once when its members change"
            for broker, of in sorted(grouped((change.node, change) for change in changes).items()):
                yield from self.finding(NOTICE, "reports a change at once", row, self._notices(of), of=broker)
            row = "DefaultConsumerIdsChangeListener: a consumer that is notified rebalances at once"
            yield from self.finding(REBALANCE, "rebalances at changes", row, self._rebalances())
        if rounds := [*self._rounds()] if self.control.rows("client_heartbeat") else []:
            about, span = (self.life.node, HEARTBEAT), (rounds[0][2], self.end_ms)
            for kind, done in grouped(self._heartbeats(rounds)).items():
                yield from of_done(about, kind, _ROUNDS[kind], sorted(done), span=span)
        gone = [(row, row.f or "") for row in of_client(self.control, "client_gone").get(self.life.node, ())]
        brokers = self._routed(self.end_ms, self.life.end_ms)
        row = "MQClientInstance: a client that stops unregisters at every broker of its routes"
        answered = self._by_peer(self.rows("unregistered")).keys() & brokers
        yield from self.leave(gone, brokers - answered, row)
        row = "ClientManageProcessor.unregisterClient: a client that unregisters is a member no longer"
        for broker in sorted(answered):
            yield from self.leave(gone, [broker], row, "forgets unregistered clients", of=broker)
        row = "ConsumerManager, ProducerManager: doChannelCloseEvent"
        for broker, act in self._killed():
            yield from self.finding(CHANNEL, "forgets killed clients", row, [act], of=broker)

    def _killed(self) -> Iterator[tuple[str, Act]]:
        """Broker to how long after this process was killed, when the kernel closed its channel, it still had it."""
        at_ms, near_ms = self.life.end_ms, self.timers.delivery_ms
        faults = self.world.process_faults(self.life.node)
        if not any(one.start_ms == at_ms and one.loss(self.timers) is Loss.CRASH for one in faults):
            return
        for broker, of in heard_by_brokers(self.control, self.world).items():
            had = max((one for one in of.get(self.life.node, ()) if one.start_ms <= at_ms), default=None)
            if had is None or had.end_ms < at_ms or at_ms + near_ms >= self.world.end_ms:
                continue
            if not self.troubles.between(broker, had.start_ms, at_ms + near_ms):
                is_missing = had.end_ms >= self.world.end_ms
                yield broker, Act(at_ms, had.end_ms - at_ms, None, 0.0, "at once", missing=is_missing, peers=[broker])

    # -- what brokers tell

    def _changes(self) -> Iterator[Row]:
        """The changes at brokers that tell their groups, while the broker had a channel to this process; its own
        heartbeats on a new channel, too: a group's newest member is told like the others."""
        for row in changes_of(self.control, frozenset(self.world.members_of(self.life.node))):
            span = self._made_ms(row) - self.near_ms, row.time_ms
            tells = all(self.world.values(row.node, "notifyConsumerIdsChangedEnable", *span))
            is_own = node_of_client(row) == self.life.node
            if is_own and not (row.event == "client_heartbeat" and self.rows("members_changed")):
                continue
            if tells and self._is_known(row.node, row.time_ms, heard_now=is_own):
                yield row

    def _notices(self, changes: Sequence[Row]) -> Iterator[Act]:
        """How long after each change the broker told this process."""
        apart_ms = self.timers.clocks_ms
        for change in changes if self.runs_of(REBALANCE) else ():
            at_ms = change.time_ms
            told = self._noticed.get(change.node, ())
            number = bisect_left(told, self._made_ms(change) - apart_ms)
            missing = number == len(told)
            if at_ms - apart_ms <= self.start_ms or at_ms + self.timers.delivery_ms >= self.end_ms:
                continue
            told_ms = self.end_ms if missing else max(told[number], at_ms)
            yield Act(at_ms, told_ms - at_ms, None, 0.0, "at once", missing=missing, peers=[change.node])

    def _made_ms(self, change: Row) -> float:
        """From when on the broker may have told of it: what was learnt from the wire was made before its answer passed,
        which a busy front passes late."""
        if change.event == "client_heartbeat":
            return change.began_ms
        if self.world.is_ours(change.node):
            return change.time_ms
        lag_ms = self.control.lateness.largest(self.world, (change.node,), change.time_ms, change.time_ms)
        return change.time_ms - (lag_ms or 0.0)

    def _rebalances(self) -> Iterator[Act]:
        """From when a broker told it so until it rebalances: not before the round that runs is over."""
        rounds = self.runs_of(REBALANCE)
        begun = [run.began_ms for run in rounds]
        for at_ms in sorted(at_ms for of in self._noticed.values() for at_ms in of):
            number = bisect_left(begun, at_ms - MOMENT_MS)  # when it began is reckoned from its row and its length
            if not number or at_ms >= self.end_ms:
                continue
            missing = number == len(begun)
            began_ms = self.end_ms if missing else begun[number]
            if missing:  # the round that was under way at the end has left no row
                began_ms = max(at_ms, began_ms - self.round_runs_out_ms(at_ms, began_ms))
            from_ms = min(max(at_ms, rounds[number - 1].ended_ms), began_ms)
            if not missing or from_ms + self.timers.delivery_ms < self.end_ms:
                latest_ms = self.after_pauses(from_ms) - from_ms
                yield Act(from_ms, began_ms - from_ms, None, latest_ms, "at once", missing=missing)

    @cached_property
    def _noticed(self) -> Mapping[str, Sequence[float]]:
        """Broker to when this process read from it that the members of its group had changed."""
        return self._by_peer(self.rows("members_changed"))

    def _is_known(self, broker: str, at_ms: float, *, heard_now: bool = False) -> bool:
        """Whether the broker has a channel to this process then, and nothing is in the way.

        It has the channel of the last heartbeat, or of the heartbeat that it hears now, unless it forgot it since;
        whatever was before that heartbeat (its own start, a fault) kept nothing from coming through.
        """
        near_ms = self.timers.delivery_ms
        from_ms, to_ms = max(at_ms - self.timers.H_ms - near_ms, self.start_ms), at_ms - near_ms
        heard = self.at_brokers("client_heartbeat").get(broker, ())
        number = bisect_right(heard, to_ms) - 1
        since_ms = at_ms if heard_now else heard[number] if number >= 0 else -math.inf
        if since_ms < from_ms - 1.0 - self.timers.clocks_ms:
            return False
        if self.within(self.at_brokers("client_gone").get(broker, ()), since_ms, at_ms + near_ms):
            return False
        disturbed = self.troubles.between(broker, since_ms, at_ms + near_ms)
        return not disturbed and not self.held(at_ms - near_ms, at_ms + near_ms)

    # -- heartbeats

    def _heartbeats(self, rounds: Iterable[tuple[str, float, float, float]]) -> Iterator[tuple[str, Done]]:
        """What asked for each round, once for each broker which the routes name; wrong where it missed the broker: it
        handled no heartbeat, and the client had none that failed there. A round that meets another one leaves it to
        that one, which may have reached the broker before, and may wait for each broker that hangs, and for each that a
        slow link answers late."""
        heard = self.at_brokers("client_heartbeat")
        for kind, named_ms, began_ms, ended_ms in rounds:
            from_ms, until_ms = self._with_waits(began_ms, ended_ms)
            until_ms += self.timers.delivery_ms
            slow_ms = sum(self.world.round_trips_ms(self.life.node, self.brokers, from_ms, until_ms))
            waited_ms = began_ms - from_ms + slow_ms
            from_ms, until_ms = from_ms - slow_ms, until_ms + slow_ms
            if until_ms > self.end_ms or self.held(from_ms, until_ms):
                continue
            for broker in self._routed(named_ms - waited_ms, until_ms):
                blind = (of for of in self.world.blind if broker in of.nodes)
                if any(of.from_ms <= until_ms and from_ms <= of.to_ms for of in blind):
                    continue  # nobody knows what it handled
                ends = [heard.get(broker, ()), self._failed.get(broker, ())]
                reached = any(self.within(at_ms, from_ms, until_ms) for at_ms in ends)
                if not reached and ended_ms - began_ms >= min(self.timers.C_ms, self.timers.A_ms):
                    # a call is given up while its dial is under way
                    dialled_ms = max(until_ms, ended_ms + self.timers.C_ms)
                    ends = [self._opened.get(broker, ()), self._failed.get(broker, ())]
                    reached = any(self.within(at_ms, ended_ms, dialled_ms) for at_ms in ends)
                yield kind, Done(began_ms, reached, broker)

    def _rounds(self) -> Iterator[tuple[str, float, float, float]]:
        """Each round of heartbeats: which rule asks for it, since when a route must have named a broker before, when
        it began, and ended. Each H, between a consumer's first routes and its first rebalance, and whenever its queues
        have changed."""
        scheduled, near_ms = list[Stretch](), self.timers.delivery_ms
        moved, longest_ms = [run.ended_ms for run in self.rows("assigned")], self.timers.A_ms * len(self.brokers)
        routes = [run.ended_ms for run in self.rows("route_changed") if run.ended_ms >= self.start_ms]
        others = [*routes[:1], *moved]  # its start makes a round, too
        for run in self.runs_of(HEARTBEAT):
            # A round's row is stamped after it was measured: a process that stood still between seems to begin late.
            lag_ms = self.control.lateness.largest(self.world, (self.life.node,), run.began_ms, run.ended_ms + near_ms)
            cap_ms = self.timers.lateness_cap_ms
            began_ms = run.began_ms - near_ms - (cap_ms if lag_ms is None else min(lag_ms, cap_ms))
            scheduled.append(Stretch(began_ms, run.ended_ms))
            met = [at_ms for at_ms in others if at_ms <= run.ended_ms <= at_ms + longest_ms]
            from_ms = min([began_ms, *(at_ms for at_ms in met if self._is_under_way(at_ms, began_ms))])
            yield _EACH, from_ms, from_ms, max([run.ended_ms, *(at_ms + longest_ms for at_ms in met)])
        for first in self.runs_of(REBALANCE)[:1]:
            if routes and routes[0] < first.began_ms:
                yield _EACH, routes[0], self.start_ms, first.began_ms
        for at_ms in moved:
            if not any(one.start_ms <= at_ms <= one.end_ms for one in scheduled):
                yield _MOVED, at_ms, at_ms, at_ms + longest_ms  # no row has the round's end

    def _is_under_way(self, began_ms: float, at_ms: float) -> bool:
        """Whether a round that began then may not have been over: a broker had not handled its heartbeat, or the
        rebalance that made it, and waits for the answers, too, went on."""
        brokers, heard = self._routed(at_ms, at_ms), self.at_brokers("client_heartbeat")
        waits = any(run.began_ms <= began_ms and at_ms < run.ended_ms for run in self.runs_of(REBALANCE))
        return waits or any(not self.within(heard.get(broker, ()), began_ms, at_ms) for broker in brokers)

    def _with_waits(self, from_ms: float, until_ms: float) -> tuple[float, float]:
        """That time, and the calls that ran out one behind the other as it began and ended."""
        near_ms, waits = self.timers.delivery_ms, self.rows("timed_out")
        for wait in reversed(waits):
            if wait.began_ms < from_ms <= wait.ended_ms + near_ms:
                from_ms = wait.began_ms - near_ms
        for wait in waits:
            if wait.began_ms - near_ms <= until_ms < wait.ended_ms:
                until_ms = wait.ended_ms
        return from_ms, until_ms

    def _routed(self, from_ms: float, to_ms: float) -> set[str]:
        """The brokers of ours that its heartbeats have to reach, whichever of its routes of that time they go by."""
        ours = {node.name for node in self.world.ours("broker", "slave")}
        spans = ((address, span) for address, of in self.told.items() for span in of)
        named = {address for address, (since_ms, end_ms) in spans if since_ms <= from_ms and to_ms < end_ms}
        owners = ((address, self.world.owners.get(address, "")) for address in named)
        return {node for address, node in owners if node in ours and self.world.address_at(node, from_ms) == address}

    @cached_property
    def _opened(self) -> Mapping[str, Sequence[float]]:
        """Node to when a connection of this client to it came about."""
        return self._by_peer(run for run in self.rows("channel") if run.row.f == "open")

    @cached_property
    def _failed(self) -> Mapping[str, Sequence[float]]:
        """Node to when a call of this client there ran out, or its channel was refused or ended."""
        runs = sorted((*self.rows("timed_out"), *self.rows("channel")), key=lambda run: run.ended_ms)
        return self._by_peer(run for run in runs if run.row.event == "timed_out" or run.row.f != "open")

    def _by_peer(self, runs: Iterable[Run]) -> Mapping[str, list[float]]:
        return grouped((self.world.owners.get(run.row.address, ""), run.ended_ms) for run in runs)
