"""Every periodic task of every node runs when its own setting says, and takes no longer than its calls may.

    started ─ first ─ run ──── period ──── run ──── period ──── run …          scheduleAtFixedRate: counted from the
                                                └ held up ┘run   run           first, so that small errors add up
    run ─────┤ended ─ waitInterval ─ run                                       RebalanceService: counted from the end

A run is late only behind what held its thread up: the run before it, its node's pause. It is never early, but for a
rebalance that a broker woke. How long a run takes is counted, too: where every peer answers, no longer than its calls
there and back; where one does not, as long as their time-outs. Who runs when is oracle/schedules.py; each run is a
`scheduled_task`, each look-up a `name_server_call`. What nothing has a client do is unasked_acts.py, and whom a broker
tells of what, at once, is register_rounds.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from ....remoting.node.profile import Profile
from ....remoting.top_addressing import FIRST_S, TIMEOUT_S
from ...oracle.recorded import OURS, Life
from ...oracle.schedules import (
    AFTER_THE_FIRST_REGISTRATION,
    FETCH,
    HEARTBEAT,
    OFFSET_CALL_MS,
    PERSIST,
    POLL,
    REBALANCE,
    REGISTER,
    SYNCHRONIZE,
    SYNCHRONIZE_CALL_MS,
    SYNCHRONIZED_TABLES,
    Schedule,
    schedules,
)
from ...oracle.world import World
from ...topology import ADDRESS_SERVER, broker_name
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import at_no_time, finding, verdict_of
from ..record.control import Control
from ..record.lateness import RESUME_GRACE_MS
from ..record.timer_acts import Act, Process, Run, by_process
from ..routes.promised import polls_within
from .register_rounds import RegisterRounds
from .timed_waits import Waits
from .unasked_acts import Unasked

NAME = "timers_kept"
_LONGEST_CALL_MS = 60_000.0
"""One that began in some time has ended so long after it; a longer one is found by its own length."""
_SHARED_TASKS = (POLL, HEARTBEAT, PERSIST)
_KINDS = ("name_server", "broker", "slave", "producer", "consumer")


class _Busy(NamedTuple):
    """One run behind the other: the thread was never free between."""

    from_ms: float
    to_ms: float

    def and_then(self, run: Run, slack_ms: float) -> _Busy:
        follows = run.began_ms <= self.to_ms + slack_ms
        return _Busy(self.from_ms if follows else run.began_ms, max(self.to_ms, run.ended_ms))


def judge(control: Control, world: World) -> Verdict:
    """Examined: runs of periodic tasks, the waits between rebalances, and look-ups. Violations: those out of time."""
    runs, registered = by_process(control, "scheduled_task"), by_process(control, "register")
    asked = by_process(control, "name_server_call")
    findings: list[Finding] = []
    for node in world.of_kind(*_KINDS) if runs else ():
        for life in world.lives_of(node.name) if node.implementation == OURS else ():
            kind = "broker" if node.kind == "slave" else node.kind  # the same program, and tasks of its own beside
            process, calls = (life.node, life.incarnation), registered if kind == "broker" else asked
            one = _Tasks(control, world, life, kind, runs.get(process, ()), calls.get(process, ()))
            findings += [*one.findings(), *Waits(control, world, life, kind).findings()]
            if kind in ("producer", "consumer"):
                findings += Unasked(control, world, life, kind).findings()
            if kind == "broker":
                findings += RegisterRounds(control, world, life, kind).findings()
    findings += polls_within(control, world)
    verdict = verdict_of(
        NAME,
        findings,
        measured={"tasks": len({(f.subject, f.object) for f in findings}), "acts": sum(f.examined for f in findings)},
        nothing="no node recorded a periodic task",
        noun="timed acts were early or late",
    )
    return replace(verdict, undecided=_untold(world)) if verdict.examined else verdict


def _untold(world: World) -> dict[str, str]:
    """The nodes whose timers nobody sees, by who made them."""
    made: dict[str, list[str]] = defaultdict(list)
    for node in world.of_kind(*_KINDS):
        if node.implementation != OURS and not node.is_under_test:
            made[node.implementation].append(node.name)
    return {f"timers of {', '.join(names)}": f"{by} does not say when they ran" for by, names in made.items()}


CHECK = Check(
    name=NAME,
    says="every node scans, registers, polls, heartbeats, commits, rebalances, waits and gives up when it is set to",
    group=Group.TIMERS,
    section=Section.CLIENTS,
    needs=(Needs.WIRE,),
    judge=judge,
    tells=lambda m: f"{m.get('acts', 0):,} acts of {m.get('tasks', 0):,} timers",
)


class _Tasks(Process):
    """The periodic tasks of one process, its look-ups and registrations."""

    def __init__(
        self, control: Control, world: World, life: Life, kind: str, runs: Sequence[Run], calls: Sequence[Run]
    ) -> None:
        super().__init__(control, world, life, kind)
        self.runs = [run for run in runs if run.began_ms >= self.start_ms - 1.0]
        self.calls, self.call_ends = calls, [call.ended_ms for call in calls]

    def findings(self) -> Iterator[Finding]:
        if self.world.asks_for_list(self.life.node) and self.troubles.between(
            ADDRESS_SERVER, self.life.start_ms, self.life.start_ms + 1000 * (FIRST_S + TIMEOUT_S)
        ):
            return  # it may not have come to its tasks, or not have had a list for them
        for schedule in schedules(self.world, self.life.node, self.kind):
            yield from self.finding(schedule.task, f"each {schedule.symbol}", schedule.row, self._ticks(schedule))
            yield from self.finding(
                schedule.task, "takes no longer than its calls", "a call ends by its time-out", self._lengths(schedule)
            )
        if self.kind == "broker":
            row = "BrokerOuterAPI: a registration ends by registerBrokerTimeoutMills"
            yield from self.finding("registration", "ends by its time-out", row, self._registrations())
        if self.kind == "consumer":
            row = "RebalanceService: waits Qr after each round"
            yield from self.finding(REBALANCE, "each Qr after the last", row, self._waits())
            yield from self.finding(REBALANCE, "takes no longer than its calls", row, self._rebalances())
        if self.kind in ("producer", "consumer"):
            yield from self._silent_polls()
            yield from self.finding(
                "look-up", "ends by its time-out", "a look-up ends by mqClientApiTimeout", self._look_ups()
            )

    # -- when

    def _ticks(self, schedule: Schedule) -> Iterator[Act]:
        """Each run of a fixed-rate task, counted from when the first was due; and the one that never came."""
        mine = [run for run in self.runs if run.row.f == schedule.task]
        thread = [run for run in self.runs if run.row.f != REBALANCE] if schedule.shared else mine
        if self.kind == "broker" and schedule.task in (REGISTER, FETCH):  # one thread has both
            thread = [run for run in self.runs if run.row.f in (REGISTER, FETCH)]
        first_ms = self.start_ms + schedule.first_ms
        base_ms: float | None = None if schedule.task in AFTER_THE_FIRST_REGISTRATION else first_ms
        number, busy, waited_ms = 0, _Busy(-math.inf, -math.inf), 0.0
        for run in thread:
            if run.row.f == schedule.task:
                if base_ms is None:
                    # What a pause held up says nothing of when it was due: the next run does.
                    is_held = self.held(self.life.start_ms, run.began_ms)
                    if not is_held and run is mine[0]:
                        yield self._first(run, first_ms)
                    is_held = self.held(run.began_ms, run.began_ms)
                    # Behind another task of its thread it was due at some moment of that one.
                    is_behind = busy.from_ms < run.began_ms - self.timers.delivery_ms <= busy.to_ms
                    waited_ms = run.began_ms - busy.from_ms if is_behind else 0.0
                    base_ms, number = (None, 0) if is_held else (run.began_ms - waited_ms, 0)
                else:
                    yield self._tick(schedule, base_ms, number, run.began_ms, busy, waited_ms)
                number += 1
            busy = busy.and_then(run, self.timers.delivery_ms)
        if base_ms is None and mine:
            return
        if not self.runs and self.troubles.among(self.name_servers, self.start_ms, self.end_ms):
            return  # it may not have come to its tasks: a start that meets no NameServer fails
        if base_ms is None:
            base_ms, number = first_ms + self.timers.B_ms, 0
        missing = self._tick(schedule, base_ms, number, self.end_ms, busy, waited_ms)._replace(missing=True)
        tasks = _SHARED_TASKS if schedule.shared else (schedule.task,)
        if not number and schedule.task in AFTER_THE_FIRST_REGISTRATION:
            tasks = (REGISTER,)
        busy_ms = max(self._bound_ms(one, missing.from_ms + missing.latest_ms, self.end_ms) for one in tasks)
        if schedule.shared or schedule.task == REGISTER:
            busy_ms += self._call_ms(len(self.name_servers))  # what was under way at the end has left no row
        missing = missing._replace(latest_ms=missing.latest_ms + busy_ms, earliest_ms=None)
        if missing.over_ms > 0:
            yield missing

    def _first(self, run: Run, first_ms: float) -> Act:
        """The first periodic registration, 10 s after the one at the start was over; the first 904 1 s after it."""
        wait_ms = self._bound_ms(REGISTER, self.life.start_ms, run.began_ms)
        due_ms = self.after_pauses(first_ms + wait_ms)
        early_ms = first_ms - self.life.start_ms
        first = f"{early_ms / 1000:g} s"
        return Act(self.life.start_ms, run.began_ms - self.life.start_ms, early_ms, due_ms - self.life.start_ms, first)

    def _tick(
        self, schedule: Schedule, base_ms: float, number: int, began_ms: float, busy: _Busy, waited_ms: float
    ) -> Act:
        from_ms = base_ms if number else self.start_ms
        earliest_ms = number * schedule.period_ms if number else base_ms - from_ms
        latest_ms = self.after_pauses(from_ms + earliest_ms + (waited_ms if number else 0.0))
        if busy.from_ms <= latest_ms + self.timers.delivery_ms:
            latest_ms = max(latest_ms, self.after_pauses(busy.to_ms))
        latest_ms = max(latest_ms - from_ms, earliest_ms)
        formula = f"{number}·{schedule.symbol}" if number else "its first delay"
        return Act(from_ms, began_ms - from_ms, earliest_ms, latest_ms, formula)

    def _waits(self) -> Iterator[Act]:
        """From the end of each round until the next began."""
        rounds = [run for run in self.runs if run.row.f == REBALANCE]
        timers = self.timers
        for before, run in pairwise(rounds):
            woken = (run.row.decoded or {}).get("woken", False)
            wait_ms, symbol = timers.Qr_ms, "Qr"
            if timers.profile is Profile.V5_X and not (before.row.decoded or {}).get("balanced", True):
                wait_ms, symbol = float(str(self.world.setting(self.life.node, "minInterval"))), "minInterval"
            due_ms = self.after_pauses(before.ended_ms + wait_ms)
            earliest_ms = None if woken else wait_ms
            yield Act(before.ended_ms, run.began_ms - before.ended_ms, earliest_ms, due_ms - before.ended_ms, symbol)
        ended_ms = rounds[-1].ended_ms if rounds else self.start_ms
        due_ms = self.after_pauses(ended_ms + timers.Qr_ms)
        missing = Act(ended_ms, self.end_ms - ended_ms, None, due_ms - ended_ms, "Qr", missing=True)
        if missing.over_ms > 0 and not self._any_trouble(ended_ms, self.end_ms):
            yield missing

    # -- how long

    def _lengths(self, schedule: Schedule) -> Iterator[Act]:
        for run in self.runs:
            if run.row.f == schedule.task:
                bound_ms = self._bound_ms(schedule.task, run.began_ms, run.ended_ms)
                yield self._length(run, bound_ms, "its calls", max(self._calls_of(schedule.task, run), 1))

    def _calls_of(self, task: str, run: Run) -> int:
        """How many calls it makes, one after the other."""
        of = {HEARTBEAT: len(self.brokers), SYNCHRONIZE: SYNCHRONIZED_TABLES, REGISTER: 2}
        return of[task] if task in of else len(self._calls_in(run.began_ms, run.ended_ms))

    def _rebalances(self) -> Iterator[Act]:
        """Rounds in which every peer answered; one that may have met a time-out may meet one for each queue."""
        for run in self.runs:
            if run.row.f == REBALANCE and not self._any_trouble(run.began_ms, run.ended_ms):
                bound_ms = self._bound_ms(REBALANCE, run.began_ms, run.ended_ms)
                queues = self._queues()  # of each topic the members are asked for, then one queue after the other
                calls = len({topic for _, topic, _ in queues}) + len(queues)
                yield self._length(run, bound_ms, "its calls", max(calls, 1))

    def _length(self, run: Run, bound_ms: float, formula: str, calls: int = 1) -> Act:
        if self.held(run.began_ms, run.ended_ms):
            bound_ms += sum(
                max(0.0, min(p.end_ms + RESUME_GRACE_MS, run.ended_ms) - max(p.start_ms, run.began_ms))
                for p in self.pauses
            )
        peers = self.name_servers if self.kind == "broker" else [*self.name_servers, *self.brokers]
        return Act(run.began_ms, run.ended_ms - run.began_ms, None, bound_ms, formula, peers=peers, calls=calls)

    def _bound_ms(self, task: str, from_ms: float, to_ms: float) -> float:
        """How long a run of the task may take that lasts from then to then."""
        lock_ms, each_ms = self._lock_ms, self.timers.delivery_ms
        silent = self.troubles.among(self.name_servers, from_ms, to_ms)
        # A NameServer that answers late is no delay of this node's; each call has a bound of its own.
        asking_ms = self._asking_ms(from_ms, to_ms) + (lock_ms if silent else 0.0)
        match task:
            case "registerBrokerAll":
                # Its turn behind another round, the question before (322), and the answers of all at once.
                return asking_ms + each_ms + (2 * self.timers.B_ms + (self.timers.F_ms or 0.0) if silent else 0.0)
            case "updateTopicRouteInfoFromNameServer":
                return asking_ms + (len(self._calls_in(from_ms, to_ms)) + 1) * (each_ms + (lock_ms if silent else 0.0))
            case "sendHeartbeatToAllBroker":
                hung = self.troubles.among(self.brokers, from_ms, to_ms)
                return asking_ms + self.timers.A_ms * len(hung) + (len(self.brokers) + 1) * each_ms
            case "persistAllConsumerOffset":
                hung = self.troubles.among(self.brokers, from_ms, to_ms)
                queues = self._queues()
                names = set(map(broker_name, hung))  # a slave has them where its master is gone
                waits_ms = OFFSET_CALL_MS * sum(broker in names for broker, _, _ in queues)
                if silent and hung:  # an address that is not known is asked for
                    waits_ms += len(queues) * (lock_ms + self._call_ms(len(self.name_servers)))
                return asking_ms + waits_ms + each_ms
            case "fetchNameServerAddr":
                lost = self.troubles.among([ADDRESS_SERVER], from_ms, to_ms)
                return 2 * each_ms + (1000 * TIMEOUT_S if lost else 0.0)
            case "SlaveSynchronize":
                lost = self.troubles.among(self.brokers, from_ms, to_ms)
                return SYNCHRONIZED_TABLES * (each_ms + (SYNCHRONIZE_CALL_MS if lost else 0.0))
            case "doRebalance":
                return asking_ms + (2 * len(self._queues()) + 2 * len(self.brokers) + 4) * each_ms
        return each_ms

    def _asking_ms(self, from_ms: float, to_ms: float) -> float:
        """For how long in that time a NameServer was being asked."""
        first = bisect_left(self.call_ends, from_ms)
        last = bisect_right(self.call_ends, to_ms + _LONGEST_CALL_MS)
        asked_ms, until_ms = 0.0, from_ms
        for call in sorted(self.calls[first:last], key=lambda call: call.began_ms):
            begin_ms, end_ms = max(call.began_ms, until_ms), min(call.ended_ms, to_ms)
            if end_ms > begin_ms:
                asked_ms, until_ms = asked_ms + end_ms - begin_ms, end_ms
        return asked_ms

    def _silent_polls(self) -> Iterator[Finding]:
        """Polls that asked for nothing, though the client had asked for a topic before, which it never forgets."""
        # A client that is being stopped has given up its groups, and with them their topics.
        polls = [run for run in self.runs if run.row.f == POLL and run.began_ms < self.end_ms]
        asked_ms = self.calls[0].ended_ms if self.calls else math.inf
        silent = [
            run
            for run in polls
            if run.began_ms > asked_ms
            and not self._calls_in(run.began_ms, run.ended_ms)
            and not self.troubles.among(self.name_servers, run.began_ms, run.ended_ms)
        ]
        if polls:
            last_ms = silent[-1].began_ms if silent else 0.0
            asks_ms = next((run.began_ms for run in polls if run.began_ms > last_ms), max(self.end_ms, last_ms))
            yield finding(
                (self.life.node, POLL),
                "asks for every topic",
                (polls[0].began_ms, self.end_ms),
                at_no_time("MQClientInstance: each round asks for every topic"),
                out=(silent[0].began_ms, asks_ms) if silent else None,
                examined=len(polls),
                wrong=len(silent),
            )

    def _calls_in(self, from_ms: float, to_ms: float) -> Sequence[Run]:
        within = self.calls[bisect_left(self.call_ends, from_ms) : bisect_right(self.call_ends, to_ms)]
        # How long a run took is measured before its row says when that was: a machine that has others' work to do comes
        # between. A round that asked for nothing takes no time, so that no call ends within it.
        return [call for call in within if call.began_ms >= from_ms - self.timers.at_once_ms]

    def _queues(self) -> set[tuple[str, str, int]]:
        """Every queue that the process ever held."""
        key = "queues of", self.life.node, self.life.incarnation
        found: set[tuple[str, str, int]] = self.control.memoized(
            key,
            lambda: {
                (row.broker_name or "", row.topic or "", row.queue_id or 0)
                for row in self.control.rows("queue_taken")
                if row.process == (self.life.node, self.life.incarnation)
            },
        )
        return found

    @property
    def _lock_ms(self) -> float:
        if self.kind not in ("producer", "consumer"):
            return 0.0
        return float(str(self.world.setting(self.life.node, "lockTimeoutMillis")))

    def _look_ups(self) -> Iterator[Act]:
        """Each look-up: its answer by A, or a connect by C for each NameServer that it met; and its turn before."""
        for number, call in enumerate(self.calls):
            tried = len((call.row.decoded or {}).get("tried") or ())
            bound_ms = self._call_ms(tried) + self.timers.delivery_ms
            beside = self.calls[max(0, number - 20) : number + 20]
            if any(o is not call and o.began_ms <= call.ended_ms and o.ended_ms >= call.began_ms for o in beside):
                bound_ms += self._lock_ms
            yield self._length(call, bound_ms, f"A, or {tried}·C")

    def _registrations(self) -> Iterator[Act]:
        """Each registration at one NameServer: its answer, or none, by B."""
        for call in self.calls:
            yield self._length(call, self._call_ms(1) + self.timers.delivery_ms, "B")

    def _call_ms(self, tried: int) -> float:
        """The longest that a call of so many NameServers may take."""
        return self.timers.B_ms if self.kind == "broker" else max(self.timers.A_ms, self.timers.C_ms * tried)

    def _any_trouble(self, from_ms: float, to_ms: float) -> bool:
        return bool(self.troubles.among([*self.name_servers, *self.brokers], from_ms, to_ms))
