"""The waits of a process that nobody schedules: each ends when its own setting says, neither early nor late.

| timer         | measured                                                                 | rows              |
|---------------|--------------------------------------------------------------------------|-------------------|
| … time-out    | from the beginning of the call until nobody waits for its answer         | timed_out         |
| channel       | from when nobody waits for an answer until the channel is closed, at once| channel           |
| pull delay    | how long a queue's next pull was put off                                 | pull_delayed      |
| long poll     | held pulls: answered after the time they asked for, at the next check;   | scheduled_task    |
|               | and at once when a message comes                                         |                   |
| client expiry | from a client's last heartbeat at a broker until the broker forgets it   | client_heartbeat, |
|               |                                                                          | client_gone       |
| rebalance     | from when a broker forgets another of the group, or first hears of it on | client_gone,      |
|               | a channel, for those it knows are told                                   | client_heartbeat  |
| heartbeat     | each round reaches every broker that the round before did, and every one | client_heartbeat  |
|               | that the routes name; a producer's only masters                          |                   |
| isolation     | by the attempt's latency; and until the broker is sent to again          | broker_isolated   |

For how long is oracle/time_outs.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ....remoting.codes import RequestCode
from ....remoting.node.profile import Profile
from ...oracle.broker import CLIENT_SCAN_MS, HOLD_CHECK
from ...oracle.client_profiles import Outcome
from ...oracle.queue_owners import node_of_client
from ...oracle.recorded import OURS
from ...oracle.time_outs import (
    CLIENT_EXPIRED_MS,
    CONNECT,
    HEARTBEAT,
    REBALANCE,
    SEND,
    Wait,
    avoids,
    check_period,
    isolation_ms,
    look_up,
    pull_delay,
    send_cap_ms,
    time_out,
    tries,
)
from ...oracle.timers import Act
from ...topology import broker_name, is_slave
from ...verdict import Finding
from ..findings import at_no_time, finding
from ..record.control import Row
from ..record.known_brokers import MASTER_ID
from ..record.timer_acts import Process, Run, by_process

TIME_OUT, CHANNEL, PULL_DELAY, LONG_POLL, EXPIRY, ISOLATION = (
    "time-out",
    "channel of a call that ran out",
    "pull delay",
    "long poll",
    "client expiry",
    "isolation",
)
_ASYNC = "PULL_MESSAGE"
"""Nobody waits for its answer, and its time-out closes nothing."""
_SPARED_MS = 100.0
"""From 5.1.4 on an answer that had no longer to come costs no channel."""


class Waits(Process):
    """The waits of one process."""

    def findings(self) -> Iterator[Finding]:
        for what, acts in self._time_outs().items():
            row = "NettyRemotingClient: a call ends by its time-out, a send by sendMsgTimeout"
            yield from self.finding(f"{what} {TIME_OUT}", "runs out when its setting says", row, acts)
        if self.kind in ("producer", "consumer") and self.timers.Z:
            row = "NettyRemotingClient: a call that runs out closes its channel (clientCloseSocketIfTimeout)"
            yield from self.finding(CHANNEL, "is closed at once", row, self._closes())
        if self.kind == "consumer":
            row = "DefaultMQPushConsumerImpl: the next pull is put off"
            for why, acts in self._pull_delays().items():
                yield from self.finding(f"{PULL_DELAY}: {why}", "as long as its setting says", row, acts)
            row = "DefaultConsumerIdsChangeListener: a group is told at once that its members change, and rebalances"
            yield from self.finding(REBALANCE, "when a group's members change", row, self._tellings())
        if self.kind == "broker":
            row = "PullRequestHoldService: looks at held pulls each 5 s"
            yield from self.finding(HOLD_CHECK, "each 5 s after the last", row, self._hold_checks())
            yield from self.finding(LONG_POLL, "held until the check after its time", row, self._holds())
            if not is_slave(self.life.node):  # there a message may be late, and in 4.9 it wakes nobody
                yield from self.finding(LONG_POLL, "woken by a message at once", row, self._wakes())
            row = "ClientHousekeepingService: forgets a client 120 s after its last heartbeat, at the next scan"
            yield from self.finding(EXPIRY, "120 s after the last heartbeat", row, self._expiries())
        if self.kind == "producer":
            row = "LatencyFaultToleranceImpl: by latencyMax and notAvailableDuration"
            isolated, avoided = self._isolations()
            yield from self.finding(ISOLATION, "as long as its latency says", row, isolated)
            yield from self.finding(ISOLATION, "ends when it has passed", row, avoided)
            row = "MQFaultStrategy.updateFaultItem: every try without an answer isolates its broker"
            yield from self.finding(ISOLATION, "after each try without an answer", row, self._unanswered())
        if self.kind in ("producer", "consumer"):
            yield from self._heartbeats()

    def _rows(self, event: str) -> Sequence[Run]:
        return by_process(self.control, event).get(self.process, ())

    def _value(self, row: Row) -> Mapping[str, Any]:
        value = row.decoded
        return value if isinstance(value, dict) else {}

    # -- time-outs

    def _time_outs(self) -> Mapping[str, list[Act]]:
        found: dict[str, list[Act]] = defaultdict(list)
        for run in self._rows("timed_out"):
            what = str(run.row.f)
            wait = time_out(self.world, self.life.node, self.kind, what)
            if wait is not None:
                other = self._capped(run, wait.ms) if what == SEND else self._at_each_entry(run, wait)
                found[what].append(other or self._exactly(run, wait.ms, wait.symbol))
        return found

    def _at_each_entry(self, run: Run, wait: Wait) -> Act | None:
        """A look-up of a client whose language asks the next entry of its list, and waits anew, where one is silent."""
        node = self.life.node
        asks_on = Outcome.NO_ANSWER in self.world.client_profile_of(node).retries
        if run.row.f != RequestCode.GET_ROUTEINFO_BY_TOPIC.name or not asks_on:
            return None
        whole = look_up(self.world, node, len(self.world.addresses_of(node)))
        return self._exactly(run, whole.ms, whole.symbol)._replace(earliest_ms=wait.ms)

    def _exactly(self, run: Run, wait_ms: float, symbol: str) -> Act:
        latest_ms = self.after_pauses(run.began_ms + wait_ms) - run.began_ms
        return Act(run.began_ms, run.ended_ms - run.began_ms, wait_ms, latest_ms, symbol)

    def _capped(self, run: Run, budget_ms: float) -> Act | None:
        """One try of a send that has less time than is left of the call (sendMsgMaxTimeoutPerRequest)."""
        cap_ms, attempt_ms = send_cap_ms(self.world, self.life.node), self._value(run.row).get("attempt_ms")
        if cap_ms is None or attempt_ms is None or (run.row.attempt or 0) + 1 >= tries(self.world, self.life.node):
            return None
        before_ms = run.ended_ms - run.began_ms - attempt_ms
        if before_ms + cap_ms >= budget_ms:
            return None
        return self._exactly(Run(run.ended_ms - attempt_ms, run.ended_ms, run.row), cap_ms, "per request")

    def _closes(self) -> Iterator[Act]:
        """From the end of each call that ran out until the channel that it waited on was closed."""
        near_ms = self.timers.delivery_ms
        opened: dict[str, list[float]] = defaultdict(list)
        closed: dict[str, list[float]] = defaultdict(list)
        for run in self._rows("channel"):
            if run.row.f in ("open", "close"):
                (opened if run.row.f == "open" else closed)[run.row.address or ""].append(run.ended_ms)
        for run in self._rows("timed_out"):
            what, address, at_ms = str(run.row.f), run.row.address or "", run.ended_ms
            if what in (CONNECT, _ASYNC) or time_out(self.world, self.life.node, self.kind, what) is None:
                continue
            if self._within(opened[address], at_ms - _SPARED_MS - near_ms, at_ms):
                continue
            at = bisect_left(closed[address], at_ms - near_ms)
            if at < len(closed[address]):
                closed_ms = max(at_ms, closed[address][at])
                yield Act(at_ms, closed_ms - at_ms, None, self.after_pauses(at_ms) - at_ms, "at once")
            elif self.end_ms > at_ms + near_ms:
                latest_ms = self.after_pauses(at_ms) - at_ms
                yield Act(at_ms, self.end_ms - at_ms, None, latest_ms, "at once", missing=True)

    # -- pulls

    def _pull_delays(self) -> Mapping[str, list[Act]]:
        found: dict[str, list[Act]] = defaultdict(list)
        for run in self._rows("pull_delayed"):
            why, about = str(run.row.f), self._value(run.row)
            wait = pull_delay(self.world, self.life.node, why)
            if wait is None:
                continue
            longest = self._exactly(run, wait.ms, wait.symbol)
            times, shortest_ms = about.get("times", 1), about.get("shortest_ms", longest.measured_ms)
            since_ms = run.ended_ms - times * longest.measured_ms
            found[why].append(longest._replace(since_ms=since_ms))
            if times > 1:
                began_ms = run.ended_ms - shortest_ms
                found[why].append(Act(began_ms, shortest_ms, wait.ms, math.inf, wait.symbol, since_ms=since_ms))
        return found

    def _hold_checks(self) -> Iterator[Act]:
        """From the end of each check of held pulls until the next began; and the one that never came."""
        wait = check_period(self.world, self.life.node)
        checks = [run for run in self._rows("scheduled_task") if run.row.f == HOLD_CHECK]
        ends = [self.start_ms, *(run.ended_ms for run in checks)]
        for ended_ms, run in zip(ends, checks, strict=False):
            due_ms = self.after_pauses(ended_ms + wait.ms)
            yield Act(ended_ms, run.began_ms - ended_ms, wait.ms, due_ms - ended_ms, wait.symbol)
        last_ms = ends[-1]
        due_ms = self.after_pauses(last_ms + wait.ms)
        missing = Act(last_ms, self.end_ms - last_ms, None, due_ms - last_ms, wait.symbol, missing=True)
        if missing.over_ms > 0:
            yield missing

    def _holds(self) -> Iterator[Act]:
        """How long after its own time each held pull without a message was answered."""
        wait = check_period(self.world, self.life.node)
        for since_ms, run in self._checked():
            about = self._value(run.row)
            if about.get("timed_out"):
                for past_ms in {about["shortest_ms"], about["longest_ms"]}:
                    due_ms = run.ended_ms - past_ms
                    latest_ms = self.after_pauses(due_ms + wait.ms) - due_ms
                    yield Act(due_ms, past_ms, 0.0, latest_ms, f"0 .. {wait.symbol}", since_ms=since_ms)

    def _wakes(self) -> Iterator[Act]:
        """How long after it was stored the first message of each woken pull went out."""
        for since_ms, run in self._checked():
            slowest_ms = self._value(run.row).get("slowest_ms")
            if slowest_ms is not None and not self.held(since_ms, run.ended_ms):
                yield Act(run.ended_ms - slowest_ms, slowest_ms, None, 0.0, "at once", since_ms=since_ms)

    def _checked(self) -> Iterator[tuple[float, Run]]:
        """Each check, and since when its pulls were answered."""
        since_ms = self.start_ms
        for run in self._rows("scheduled_task"):
            if run.row.f == HOLD_CHECK:
                yield since_ms, run
                since_ms = run.ended_ms

    # -- clients of a broker

    def _expiries(self) -> Iterator[Act]:
        """Of each channel: how long after the last heartbeat its client expired; late ones, and what never did."""
        heard: dict[str, float] = {}
        for row in self.control.rows("client_heartbeat", "client_gone"):
            if row.process != self.process:
                continue
            last_ms = heard.pop(str(row.op_id), None)
            if row.event == "client_heartbeat":
                heard[str(row.op_id)] = row.time_ms
            if last_ms is not None:
                yield from self._expiry(last_ms, row.time_ms, "" if row.event == "client_heartbeat" else row.f or "")
        for last_ms in heard.values():
            yield from self._expiry(last_ms, self.end_ms, "")

    def _expiry(self, last_ms: float, at_ms: float, how: str) -> Iterator[Act]:
        """It expired then, or was there until then."""
        latest_ms, formula = self._expired_by(last_ms) - last_ms, "120 s .. 130 s"
        if how == "expired":
            yield Act(last_ms, at_ms - last_ms, CLIENT_EXPIRED_MS, latest_ms, formula)
        elif at_ms - last_ms > latest_ms:
            yield Act(last_ms, at_ms - last_ms, None, latest_ms, formula, missing=True)

    def _expired_by(self, heard_ms: float) -> float:
        return self.after_pauses(heard_ms + CLIENT_EXPIRED_MS + CLIENT_SCAN_MS)

    def _tellings(self) -> Iterator[Act]:
        """From when a broker has another member of the group more, or less, until this one, told by it, rebalances."""
        node = self.life.node
        rounds = [run for run in self._rows("scheduled_task") if run.row.f == REBALANCE]
        begun, apart_ms = [run.began_ms for run in rounds], self.timers.clocks_ms or 0.0
        for row in self._changes({name for name in self.world.members_of(node) if name != node}):
            at_ms = row.time_ms
            if not begun or at_ms - apart_ms <= begun[0] or at_ms >= self.end_ms:
                continue
            if not self.world.setting(row.node, "notifyConsumerIdsChangedEnable") or not self._is_known(
                row.node, at_ms
            ):
                continue
            number = bisect_left(begun, at_ms - apart_ms)
            told_ms = begun[number] if number < len(begun) else self.end_ms
            # Not before the round that runs is over; by two hosts' clocks it may begin before it was told.
            from_ms = min(max(at_ms, rounds[number - 1].ended_ms), told_ms)
            missing = number == len(begun)
            if missing and from_ms + self.timers.delivery_ms >= self.end_ms:
                continue
            yield Act(from_ms, told_ms - from_ms, None, 0.0, "at once", missing=missing, peers=[row.node])

    def _changes(self, others: Collection[str]) -> Iterator[Row]:
        """Where a broker forgot one of the others, or heard of it on a new channel."""
        for row in self.control.rows("client_gone"):
            if (row.decoded or {}).get("groups") and node_of_client(row) in others:
                yield row
        known: set[tuple[str, int, str | None]] = set()
        for row in self.control.rows("client_heartbeat"):
            channel = row.node, row.incarnation, row.op_id
            if channel not in known and node_of_client(row) in others:
                known.add(channel)
                yield row

    def _is_known(self, broker: str, at_ms: float) -> bool:
        """Whether the broker has a channel to this process then, and nothing is in the way.

        It has the one that the last heartbeat came on, unless it forgot it since; whatever was before that heartbeat
        (its own start, a fault) kept nothing from coming through.
        """
        near_ms = self.timers.delivery_ms
        from_ms, to_ms = max(at_ms - self.timers.H_ms - near_ms, self.start_ms), at_ms - near_ms
        heard = self._heard().get(broker, ())
        number = bisect_right(heard, to_ms) - 1
        if number < 0 or heard[number] < from_ms - 1.0 - (self.timers.clocks_ms or 0.0):
            return False
        if self._within(self._forgotten().get(broker, ()), heard[number], at_ms + near_ms):
            return False
        return not self.troubles.between(broker, heard[number], at_ms + near_ms) and not self.held(
            at_ms - near_ms, at_ms + near_ms
        )

    def _heartbeats(self) -> Iterator[Finding]:
        """Rounds that missed a broker which the routes name: it handled no heartbeat, and the client had none that
        failed there. A round that meets another one, of a rebalance, leaves it to that one, which may wait for each
        that hangs."""
        rounds = [run for run in self._rows("scheduled_task") if run.row.f == HEARTBEAT]
        if not rounds or not self.control.rows("client_heartbeat"):
            return
        heard, failed = self._heard(), self._failed()
        examined, missed = 0, []
        for run in rounds:
            # A round's row is stamped after it was measured: a process that stood still between seems to begin late.
            from_ms, until_ms = self._with_waits(run.began_ms - self.timers.lateness_cap_ms, run.ended_ms)
            until_ms += self.timers.delivery_ms
            if until_ms > self.end_ms or self.held(from_ms, until_ms):
                continue
            for broker in self._routed(from_ms - self.timers.delivery_ms, until_ms):
                blind = (of for of in self.world.blind if broker in of.nodes)
                if any(of.from_ms <= until_ms and from_ms <= of.to_ms for of in blind):
                    continue  # nobody knows what it handled
                examined += 1
                ends = heard.get(broker, ()), failed.get(broker, ())
                if not any(self._within(at_ms, from_ms, until_ms) for at_ms in ends):
                    missed.append(run.began_ms)
        if examined:
            yield finding(
                (self.life.node, HEARTBEAT),
                "reaches every broker",
                (rounds[0].began_ms, self.end_ms),
                at_no_time("MQClientInstance: each round goes to every broker of its routes"),
                out=(missed[0], self.end_ms) if missed else None,
                examined=examined,
                wrong=len(missed),
            )

    def _failed(self) -> Mapping[str, Sequence[float]]:
        """Node to when a call of this client there ran out, or its channel was refused or ended."""
        found: dict[str, list[float]] = defaultdict(list)
        for run in sorted((*self._rows("timed_out"), *self._rows("channel")), key=lambda run: run.ended_ms):
            if run.row.event == "timed_out" or run.row.f != "open":
                found[self.world.owners.get(run.row.address or "", "")].append(run.ended_ms)
        return found

    def _with_waits(self, from_ms: float, until_ms: float) -> tuple[float, float]:
        """That time, and the calls that ran out one behind the other as it began and ended."""
        near_ms, waits = self.timers.delivery_ms, self._rows("timed_out")
        for wait in reversed(waits):
            if wait.began_ms < from_ms <= wait.ended_ms + near_ms:
                from_ms = wait.began_ms - near_ms
        for wait in waits:
            if wait.began_ms - near_ms <= until_ms < wait.ended_ms:
                until_ms = wait.ended_ms
        return from_ms, until_ms

    def _routed(self, from_ms: float, to_ms: float) -> set[str]:
        """The brokers of ours that its heartbeats have to reach, whichever of its routes of that time they go by."""
        owners = (
            (address, self.world.owners.get(address))
            for address, of in self.told.items()
            if any(since_ms <= from_ms and to_ms < until_ms for since_ms, until_ms in of)
        )
        return {
            node for address, node in owners if node in self._ours and self.world.address_at(node, from_ms) == address
        }

    @cached_property
    def _ours(self) -> frozenset[str]:
        return frozenset(node.name for node in self.world.of_kind("broker", "slave") if node.implementation == OURS)

    def _within(self, at_ms: Sequence[float], from_ms: float, to_ms: float) -> bool:
        index = bisect_left(at_ms, from_ms - 1.0 - (self.timers.clocks_ms or 0.0))
        return index < len(at_ms) and at_ms[index] <= to_ms

    def _heard(self) -> Mapping[str, Sequence[float]]:
        """When each broker of ours handled a heartbeat of this node."""
        return self.at_brokers("client_heartbeat")

    def _forgotten(self) -> Mapping[str, Sequence[float]]:
        """When each broker of ours forgot a channel of this node."""
        return self.at_brokers("client_gone")

    # -- a producer's fault strategy

    def _isolations(self) -> tuple[Sequence[Act], Sequence[Act]]:
        """How long each attempt isolated its broker; and how long each broker was avoided."""
        isolated: list[Act] = []
        avoided: list[Act] = []
        from_ms: dict[str, float] = {}
        until_ms: dict[str, float] = {}
        for run in self._rows("broker_isolated"):
            row, at_ms, broker = run.row, run.ended_ms, run.row.broker_name or ""
            if row.f == "isolated":
                about = self._value(row)
                wait_ms = isolation_ms(
                    self.world, self.life.node, row.duration_ms or 0.0, failed=bool(about.get("failed"))
                )
                isolated.append(Act(at_ms, float(about["isolation_ms"]), wait_ms, wait_ms, "notAvailableDuration"))
                longest_ms = max(until_ms.get(broker, 0.0), at_ms + wait_ms)
                until_ms[broker] = at_ms + wait_ms if self.timers.profile is Profile.V4_9 else longest_ms
                from_ms[broker] = at_ms
            elif broker in from_ms:
                avoided.append(self._avoided(broker, from_ms.pop(broker), at_ms, until_ms))
        for broker, since_ms in from_ms.items():
            never = self._avoided(broker, since_ms, self.end_ms, until_ms)._replace(earliest_ms=None, missing=True)
            if never.over_ms > 0:
                avoided.append(never)
        return isolated, avoided

    def _unanswered(self) -> Iterator[Act]:
        """How long after each try that ran out its broker was isolated; sends that choose their queue by a key
        (`sendSelectImpl`) isolate nobody."""
        if not avoids(self.world, self.life.node) or self.world.workload.get("ordered"):
            return
        rows = [run for run in self._rows("broker_isolated") if run.row.f == "isolated"]
        at_ms, latest_ms = [run.ended_ms for run in rows], self.timers.delivery_ms
        for run in self._rows("timed_out"):
            broker = self.world.owners.get(run.row.address or "")
            if run.row.f != SEND or broker is None or run.ended_ms + latest_ms > self.end_ms:
                continue
            near = rows[bisect_left(at_ms, run.ended_ms - 1.0) : bisect_right(at_ms, run.ended_ms + latest_ms)]
            there = any(one.row.broker_name == broker_name(broker) for one in near)
            late_ms = 0.0 if there else self.end_ms - run.ended_ms
            if isolation_ms(self.world, self.life.node, run.row.duration_ms or 0.0, failed=True) > 0:
                yield Act(run.ended_ms, late_ms, None, latest_ms, "at once", missing=not there)

    def _avoided(self, broker: str, since_ms: float, at_ms: float, until_ms: Mapping[str, float]) -> Act:
        """Not sent to while another is there; and in its turn when it has passed, if nothing is in the way. A send goes
        by the route with which it began for all its tries (`sendDefaultImpl`), T ago at most."""
        passed_ms = until_ms[broker]
        there = self._writable(at_ms).keys() & self._writable(at_ms - self.timers.T_ms).keys()
        others = [name for name in there if name != broker and until_ms.get(name, 0.0) <= at_ms - 1.0]
        earliest_ms = passed_ms - since_ms if others else None
        rate = float(self.world.workload.get("sends_per_s") or 1.0)
        turn_ms = (sum(self._writable(at_ms).values()) + 1) * 1000.0 / rate
        stays = all(broker in self._writable(moment_ms) for moment_ms in (passed_ms, passed_ms + turn_ms, at_ms))
        undisturbed = not self.troubles.among([*self.name_servers, *self.brokers], passed_ms, passed_ms + turn_ms)
        latest_ms = math.inf
        if stays and undisturbed and not self.held(passed_ms, passed_ms + turn_ms):
            latest_ms = max(passed_ms, since_ms) + turn_ms - since_ms
        return Act(since_ms, at_ms - since_ms, earliest_ms, latest_ms, "notAvailableDuration, then in its turn")

    def _writable(self, at_ms: float) -> Mapping[str, int]:
        """The brokers of the route that the producer has then, with how many queues it may write."""
        topic, found = self.world.topic_of(self.life.node), {}
        for run in self._rows("route_changed"):
            if run.ended_ms > at_ms:
                break
            if run.row.topic == topic or not topic:
                route = self._value(run.row)
                without = {name for name, ids in (route.get("brokers") or {}).items() if ids and MASTER_ID not in ids}
                queues = route.get("queues") or {}
                found = {name: int(of[1]) for name, of in queues.items() if int(of[2]) & 2 and name not in without}
        return found
