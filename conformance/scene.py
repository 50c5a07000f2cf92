"""Runs one situation in its own test set-up (stand): starts the situation's processes, executes the steps, and keeps
each process's observations.

open ─► begin ─► at_work ─► go_on: steps ─► close ─► found
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..chaos.fronts.dials import DialWatch
from ..chaos.fronts.instances import ids_of
from ..chaos.fronts.observed import Asked, Dialled, Foreign, Observation, Opened
from ..chaos.fronts.process_lag import keep_measuring
from ..chaos.fronts.sockets import descendants, process_of
from ..chaos.topology import ADDRESS_SERVER
from ..remoting.node.clock import RealClock
from ..remoting.node.network import Address
from .capacity import LoopLateness, memory_of
from .situations import (
    GET_ROUTEINFO,
    KILL,
    POLL_LIMIT_S,
    POLL_OVER_S,
    Role,
    RouteAnswers,
    Situation,
    SituationStep,
    Target,
    Watched,
    slowest_answer_ms,
)
from .stand import GROUP, TOPIC, ConformPlan, Stand
from .subject import Instructions, Program, Subject, within

SEVERAL_S = 3.0
"""By then each client of a program with several has asked for the topic by which it is known."""
START_LIMIT_S = 60.0
"""By then the first process is at work, or its time in the situation begins all the same."""


class Scene:
    def __init__(
        self,
        plan: ConformPlan,
        situation: Situation,
        name: str,
        *,
        clock: RealClock,
        logs: Path,
        data: Path,
        several: asyncio.Event,
    ) -> None:
        """`several` is set once a process shows that the program has several clients."""
        self._plan, self._situation, self._name, self._clock, self._logs = plan, situation, name, clock, logs
        folder, log = data / name, logs / f"{name}.servers.log"
        self._stand = Stand(plan, situation, clock=clock, see=self._saw, data=folder, log=log, process=self._process_of)
        self._several = several
        self.in_a_hurry = False
        """Nobody wants to know any more: processes are killed and not asked to end."""
        self._seats: list[Seat] = []
        self._before: list[Observation] = []
        self._of_connection: dict[int, Seat] = {}
        self._look_ups = RouteAnswers()
        self._stopped_ms = defaultdict[int, float](float)
        """By process: for how long the machine, or somebody, stopped it, at most."""
        self._measuring: asyncio.Task[None] | None = None

    def _now_ms(self) -> float:
        return self._clock.monotonic_s() * 1000

    # --- what is seen, and of whom ------------------------------------------------------------------------------------

    def _process_of(self, peer: Address, own: Address) -> int | None:
        running = [seat for seat in self._seats if seat.subject.is_running]
        if len(running) == 1:
            return running[0].subject.process
        for seat in running:
            if process_of(peer, own, descendants(seat.subject.pid)) is not None:
                return seat.subject.process
        return None

    def _saw(self, seen: Observation) -> None:
        connection = getattr(seen, "connection", None)
        if isinstance(seen, Opened):
            seat = next((each for each in self._seats if seen.process and each.subject.process == seen.process), None)
            if seat is None:  # nobody's: another program of this machine dialled, or a process that is gone by now
                return
            self._of_connection[seen.connection] = seat
        if connection is not None:
            seat = self._of_connection.get(connection)
            if seat is not None:
                seat.saw(seen)
                self._look_up(seat, seen)
                if len(seat.ids) > 1:  # its heartbeats name two
                    self._several.set()
            return
        self._before.append(seen)
        for seat in self._seats:
            seat.seen.append(seen)

    def _look_up(self, seat: Seat, seen: Observation) -> None:
        """Whether the process now works: it has its first route, or asked its first question if there is no route."""
        if isinstance(seen, Asked) and seen.code == GET_ROUTEINFO:
            seat.asked.set()
            seat.asked_ms = seen.at_ms
        elif isinstance(seen, Foreign) and seen.front != ADDRESS_SERVER:
            seat.is_foreign.set()
        answer = self._look_ups.answer(seen)
        if answer is None:
            return
        seat.answered_ms = answer.at_ms
        if answer.code == 0 and seat.at_work_ms is None:
            seat.at_work_ms = answer.at_ms
            seat.at_work.set()

    # --- its course ---------------------------------------------------------------------------------------------------

    def _running(self) -> list[int]:
        return [seat.subject.process for seat in self._seats if seat.subject.is_running]

    def _was_late(self, process: int, row: Mapping[str, Any]) -> None:
        if row["f"] is None:
            self._stopped_ms[process] = max(self._stopped_ms[process], row["lag_ms"])

    async def open(self) -> None:
        self._measuring = asyncio.create_task(keep_measuring(self._running, self._clock, self._was_late))
        await self._stand.open()
        for step in self._situation.steps:
            if step.at_s is None:
                await self._stand.do(step)
        if self._situation.role is Role.CONSUMER:
            await self._stand.feed()

    async def begin(self, number: int, limit_s: float) -> None:
        """Start the situation's client processes, each when the previous process has connected or ended, or after
        `limit_s`."""
        told = Instructions(
            name_servers=self._stand.name_servers,
            address_server=self._stand.address_server,
            topic=TOPIC,
            group=GROUP,
            role=self._situation.role,
        )
        for at in range(self._situation.processes):
            log = self._logs / f"{self._name}{f'-{at}' * (self._situation.processes > 1)}.log"
            seat = Seat(number + at, [*self._before], self._plan.program, told, log, self._clock, self._stand.front_of)
            self._seats.append(seat)
            await seat.subject.start()
            if at + 1 < self._situation.processes:  # as many starts at once as there are lanes
                await within(limit_s, seat.is_up.wait(), seat.subject.ended())

    async def at_work(self, limit_s: float) -> None:
        """Wait at most `limit_s` until every process has got a route (in a situation without a topic: has asked for a
        route), has ended, or speaks another protocol."""
        events = [seat.at_work if self._situation.has_topic else seat.asked for seat in self._seats]
        waits = (
            within(limit_s, each.wait(), seat.is_foreign.wait(), seat.subject.ended())
            for each, seat in zip(events, self._seats, strict=True)
        )
        await asyncio.gather(*waits)

    async def go_on(self, start_limit_s: float) -> None:
        """Execute the situation's steps at their times. If a process has several clients, the situation `starts` takes
        longer."""
        await self.at_work(max(0.0, start_limit_s - (self._now_ms() - self._seats[0].subject.began_ms) / 1000))
        if (
            self._situation.has_topic
            and all(seat.at_work_ms is None for seat in self._seats)
            and not any(isinstance(seen, Opened) for seat in self._seats for seen in seat.seen)
        ):
            return  # nothing to be put through
        began_s = self._clock.monotonic_s()
        if self._situation.has_topic:
            at_work = [seat.at_work_ms for seat in self._seats if seat.at_work_ms is not None]
            if at_work:
                began_s = max(at_work) / 1000
        for step in (step for step in self._situation.steps if step.at_s is not None):
            assert step.at_s is not None
            if not await self._until(began_s + step.at_s) or (step.after_poll and not await self._polled()):
                return
            await self._do(step)
        await self._until(began_s + self._situation.for_s)
        if self._situation.many and (self._several.is_set() or self._may_have_several()):
            await self._until(began_s + SEVERAL_S)

    def _may_have_several(self) -> bool:
        fronts = {*self._stand.names}
        connected = ([seen for seen in seat.seen if isinstance(seen, Opened)] for seat in self._seats)
        return any(sum(seen.front in fronts for seen in of) > 1 for of in connected)

    def weigh(self) -> None:
        for seat in self._seats:
            seat.memory = memory_of(seat.subject.pid)

    async def _until(self, at_s: float) -> bool:
        """Wait. Returns False if every process has ended before."""
        ended = [asyncio.ensure_future(seat.subject.ended()) for seat in self._seats]
        try:
            async with asyncio.timeout(max(0.0, at_s - self._clock.monotonic_s())):
                await asyncio.gather(*ended)
        except TimeoutError:
            return True
        finally:
            for each in ended:
                each.cancel()
        return False

    async def _polled(self) -> bool:
        """Wait for the end of the next poll, POLL_LIMIT_S at most. Returns False if every process has ended before."""
        since_ms = self._now_ms()
        while True:
            now_ms = self._now_ms()
            asked_ms, answered_ms = max((seat.asked_ms, seat.answered_ms) for seat in self._seats)
            is_over = since_ms < asked_ms <= answered_ms <= now_ms - 1000 * POLL_OVER_S
            if is_over or now_ms - since_ms >= 1000 * POLL_LIMIT_S:
                return True
            if not await self._until(now_ms / 1000 + POLL_OVER_S / 5):
                return False

    async def _do(self, step: SituationStep) -> None:
        if step.target is not Target.CLIENT:
            await self._stand.do(step)
            return
        seat = self._seats[-1]
        self._stand.did(str(step.do), str(seat.number))
        seat.stopping_ms = self._now_ms()
        seat.ended = await seat.subject.stop(kill=step.do == KILL)

    async def close(self) -> None:
        try:
            await asyncio.gather(*(self._stop(seat) for seat in self._seats))
        finally:
            if self._measuring is not None:
                self._measuring.cancel()
            await self._stand.close()

    async def _stop(self, seat: Seat) -> None:
        if not seat.ended:
            now_ms = self._now_ms()
            seat.stopping_ms = now_ms if seat.subject.is_running else seat.subject.ended_ms or now_ms
            seat.ended = await seat.subject.stop(kill=self.in_a_hurry)

    def found(self, lateness: LoopLateness) -> list[Watched]:
        return [self._found(seat, lateness) for seat in self._seats]

    def _found(self, seat: Seat, lateness: LoopLateness) -> Watched:
        subject, dials = seat.subject, seat.dials
        ended_ms = subject.ended_ms or seat.stopping_ms
        late_ms = lateness.worst_ms(subject.began_ms, ended_ms)
        seen = sorted((_of(each, subject.process) for each in seat.seen), key=lambda one: one.at_ms)
        return Watched(
            situation=self._situation.name,
            number=seat.number,
            log=seat.log,
            name_servers=self._stand.names,
            brokers=self._stand.broker_names,
            topic=TOPIC,
            process=subject.process,
            began_ms=subject.began_ms,
            at_work_ms=seat.at_work_ms,
            stopping_ms=seat.stopping_ms,
            ended_ms=ended_ms,
            ended=seat.ended,
            dials_unseen=dials.why_unseen or (f"{dials.lost} were not told in time" if dials.lost else None),
            late_ms=max(late_ms, slowest_answer_ms(seen), self._stopped_ms[subject.process]),
            last_lines=subject.last_lines,
            memory=seat.memory,
            seen=tuple(seen),
        )


def _of(seen: Observation, process: int) -> Observation:
    """Return the process of an observation. A connection may come before the program's pid is known."""
    return replace(seen, process=process) if isinstance(seen, Opened) else seen


class Seat:
    """One process of the program under test in a situation."""

    def __init__(
        self,
        number: int,
        seen: list[Observation],
        program: Program,
        told: Instructions,
        log: Path,
        clock: RealClock,
        front_of: Mapping[Address, str],
    ) -> None:
        self.number, self.seen, self.log = number, seen, log.stem
        self.dials = DialWatch(self.saw, clock, front_of.get)
        self.subject = Subject(
            program, told, log=log, saw=seen.append, now_ms=lambda: clock.monotonic_s() * 1000, dials=self.dials
        )
        self.at_work, self.asked, self.is_foreign = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.is_up = asyncio.Event()
        self.ids: set[str] = set()
        """The clientIDs in the process's heartbeats."""
        self.at_work_ms: float | None = None
        self.asked_ms = 0.0
        """Time of the process's last look-up."""
        self.answered_ms = 0.0
        """When a look-up of the process was last answered."""
        self.stopping_ms = 0.0
        self.ended = ""
        self.memory = 0

    def saw(self, seen: Observation) -> None:
        self.seen.append(seen)
        if isinstance(seen, Dialled | Opened):
            self.is_up.set()
        elif isinstance(seen, Asked):
            self.ids |= ids_of(seen)
