"""Runs all situations in parallel, each in its own test set-up (stand).

    first process (does it work at all?) ─► situations, in capacity.py's order ─┬─► again? ─► Trial
                                             `--starts` processes in lanes ──────┘

As many processes start at once as there are cores, because starts need CPU. As many processes run at once as fit into a
third of the free memory. The event loop that runs all stands measures how late it is; rules that measure time compare
the lateness with their tolerance. A situation in which the machine was too slow (`again`) is repeated once, and the run
with the smaller lateness counts.
"""

import asyncio
import itertools
import shutil
import signal
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from ..chaos.errors import HarnessError
from ..chaos.experiment.progress import Progress
from ..chaos.fronts.observed import Asked, Dialled, Foreign, Opened, Protocol
from ..chaos.machine import processors
from ..chaos.topology import ADDRESS_SERVER
from ..remoting.node.clock import RealClock
from ..remoting.node.network import Address
from ..remoting.node.tasks import cancel_all
from .capacity import LoopLateness, Places, at_once, end_s, planned
from .scene import START_LIMIT_S, Scene
from .situations import GET_ROUTEINFO, SITUATIONS, Situation, Watched
from .stand import TOPIC, ConformPlan
from .subject import STOP_S, told_of

LANE_LIMIT_S = 10.0
"""So long a start is waited for before the next one may begin; LANE_STARTS times as long as the first process took,
where that is more: else the slow ones that go on would make the next ones slower still."""
LANE_STARTS, LIMIT_STARTS = 3.0, 6.0
"""And so many times as long a process has to be at work, where that is more than the first one had."""
FIRST = "starts"
LISTED = 3
_STOP = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The observations of the program in all situations, or why there are none."""

    watched: tuple[Watched, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Situation to why it was not run, or shows nothing."""
    hindered: str = ""
    """One sentence if nothing could be examined."""
    notes: tuple[str, ...] = ()
    """Further notes for the user, one sentence each."""


Again = Callable[[Sequence[Watched]], Collection[str]]
"""The situations to repeat, by all observations."""


class Conducting:
    """Executes one run of `nemesrv conform`. `logs` is the folder for each process's output; `data` is a work folder
    that is empty afterwards."""

    def __init__(
        self, plan: ConformPlan, *, logs: Path, data: Path, again: Again | None = None, progress: Progress | None = None
    ) -> None:
        self._plan, self._logs, self._data, self._again = plan, logs, data, again
        self._progress = progress or Progress("", 0.0, quiet=True)
        self._clock = RealClock.starting_now()
        self._lateness = LoopLateness(self._now_ms)
        self._starting = asyncio.Semaphore(processors())
        self._places = Places(1)
        self._several = asyncio.Event()
        """A process of the program has shown that it has several clients."""
        self._first_s = 0.0
        """How long the first process took, alone."""
        self._ends: dict[str, tuple[dict[str, None], str]] = {}
        self._notes: list[str] = []
        self._left_out: dict[str, str] = {}
        self._elsewhere: dict[Address, None] = {}

    def _now_ms(self) -> float:
        return self._clock.monotonic_s() * 1000

    # --- the whole

    async def conduct(self) -> Trial:
        """Run all situations. No process of the program is left when `conduct` returns or raises. Raises HarnessError
        if nemesrv itself fails."""
        looking = asyncio.create_task(self._lateness.look())
        try:
            return await self._conduct()
        finally:
            await cancel_all((looking,))

    async def _conduct(self) -> Trial:
        program = self._plan.program
        chosen = [SITUATIONS[name] for name in self._plan.situations]
        if program.takes_list_by_argument:
            for each in [each for each in chosen if each.by_http]:
                chosen.remove(each)
                self._left_out[each.name] = (
                    "the program takes its list by argument; with {namesrv_http} or {namesrv_domain} there it would be "
                    "served by HTTP"
                )
        self._progress.say(f"starting {program.words[0]}")
        first = await self._put_through(SITUATIONS[FIRST], weighed=True)
        (began,) = first
        if why := hindered(began, program.words[0]):
            return Trial(watched=(), hindered=why, left_out=self._left_out)
        self._first_s = ((began.at_work_ms or began.stopping_ms) - began.began_ms) / 1000
        self._places = Places(at_once(began.memory))
        told = self._of_use(SITUATIONS[FIRST], first)
        watched = told if any(each.many for each in chosen) else []
        watched += await self._all(chosen)
        if self._again is not None:
            self._progress.say("judging what was seen")
            watched = await self._repeat(watched, self._again(watched))
        return Trial(watched=tuple(watched), left_out=self._left_out, notes=self._told())

    async def _repeat(self, watched: list[Watched], names: Collection[str]) -> list[Watched]:
        """Run these situations once more. For each repeated situation, the run in which the machine was less late
        counts."""
        if not names:
            return watched
        logs = self._logs
        self._logs = logs / "again"
        self._logs.mkdir()
        said: list[str] = []
        try:
            repeated = await self._all([SITUATIONS[name] for name in names], "again, because this machine was late: ")
            for name in names:
                late_ms, less_ms = (_late_ms(of, name) for of in (watched, repeated))
                said.append(f"`{name}` ({late_ms / 1000:.2f} s, then {less_ms / 1000:.2f} s)")
                if less_ms < late_ms and (_ended_by_itself(watched, name) or not _ended_by_itself(repeated, name)):
                    watched = [each for each in watched if each.situation != name]
                    watched += (each for each in repeated if each.situation == name)
                    for file in (*self._logs.glob(f"{name}.*"), *self._logs.glob(f"{name}-[0-9].*")):
                        file.replace(logs / file.name)
        finally:
            shutil.rmtree(self._logs, ignore_errors=True)
            self._logs = logs
        self._notes.append(f"repeated, because this machine was late: {', '.join(said)}; the less late of both counts")
        return _in_order(watched)

    async def _all(self, chosen: Sequence[Situation], which: str = "") -> list[Watched]:
        jobs, expected_s = planned(
            chosen, self._plan.starts, self._first_s, self._places.free, processors(), self._plan.repeats
        )
        self._progress.expect(expected_s)
        many = sum(each.many for each, _ in jobs)
        lasting = _counted(len(jobs) - many, "situation")
        lasting += f" of up to {max(each.for_s for each in chosen):g} s" if lasting else ""
        what = which + " and ".join(filter(None, (lasting, _counted(many, "start"))))
        self._progress.say(what)
        watched: list[Watched] = []
        planned_end_s, ended_s, done = self._clock.monotonic_s() + expected_s, list[float](), itertools.count(1)

        async def job(situation: Situation, number: int) -> None:
            found = await self._put_through(situation, number)
            self._progress.say(f"{what}: {next(done)} of {len(jobs)} done")
            if situation.many:
                now_s = self._clock.monotonic_s()
                ended_s.append(now_s)
                self._progress.expect(end_s(planned_end_s, ended_s, many) - now_s)
            watched.extend(self._of_use(situation, found))

        async with asyncio.TaskGroup() as group:
            for situation, number in jobs:
                group.create_task(job(situation, number))
        return _in_order(watched)

    def _of_use(self, situation: Situation, found: list[Watched]) -> list[Watched]:
        for each in found:
            if each.ended not in ("stopped", "killed"):
                how = _HUNG if each.ended == "hung" else f"ended by itself ({each.ended})"
                situations, _ = self._ends.setdefault(how, ({}, told_of(each.last_lines)))
                situations[f"`{situation.name}`"] = None
        opened = (one.front for each in found for one in each.of(Opened))
        if situation.by_http and ADDRESS_SERVER not in opened:
            self._left_out[situation.name] = "the program never asked the address server for its list"
            return []
        return found

    def _told(self) -> tuple[str, ...]:
        notes = [f"in {_listed(list(where))} the program {how}{said}" for how, (where, said) in self._ends.items()]
        notes += self._notes
        if self._elsewhere:
            where = ", ".join(sorted(map(str, self._elsewhere))[:5])
            notes.append(f"it also connected to {where}: what goes there goes round the fronts, and is not watched")
        return tuple(notes)

    # --- one situation

    async def _put_through(self, situation: Situation, number: int = 0, *, weighed: bool = False) -> list[Watched]:
        """Take each process of the situation from start to end. `weighed`: measure its memory, too."""
        async with self._places.taken(situation.processes), AsyncExitStack() as starting:
            await starting.enter_async_context(self._starting)
            which = f"-{number:03d}" if situation.many else f".{number + 1}" if number else ""
            name = f"{situation.name}{which}"
            scene = Scene(
                self._plan, situation, name, clock=self._clock, logs=self._logs, data=self._data, several=self._several
            )
            try:
                await scene.open()
                lane_s = max(LANE_LIMIT_S, LANE_STARTS * self._first_s)
                await scene.begin(number * situation.processes, lane_s)
                await scene.at_work(lane_s)
                await starting.aclose()  # the next one may begin
                if weighed:
                    scene.weigh()
                limit_s = max(START_LIMIT_S, LIMIT_STARTS * self._first_s)
                await scene.go_on(limit_s)
            except BaseException:
                scene.in_a_hurry = True
                raise
            finally:
                await scene.close()
        found = scene.found(self._lateness)
        for each in found:
            self._elsewhere |= dict.fromkeys(elsewhere(each))
        return found


def _in_order(watched: Sequence[Watched]) -> list[Watched]:
    order = {name: at for at, name in enumerate(SITUATIONS)}
    return sorted(watched, key=lambda each: (order[each.situation], each.number))


_HUNG = f"hung at its end: it was there {STOP_S:g} s after SIGTERM, and was killed"


def _late_ms(watched: Sequence[Watched], situation: str) -> float:
    """Return the machine's largest lateness in that situation; infinite without observations."""
    return max((each.late_ms for each in watched if each.situation == situation), default=float("inf"))


def _ended_by_itself(watched: Sequence[Watched], situation: str) -> bool:
    return any(each.situation == situation and each.ended_by_itself for each in watched)


def _counted(number: int, noun: str) -> str:
    return "" if not number else f"{number} {noun}{'s' if number != 1 else ''}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {_counted(len(names) - LISTED, 'other')}"


# --- a program that cannot be examined


def hindered(watched: Watched, cmd: str) -> str:
    """Return why the program cannot be examined, as its first process shows; "" if it can be examined."""
    if watched.at_work_ms is not None:
        return ""
    foreign = next((each for each in watched.of(Foreign) if each.front != ADDRESS_SERVER), None)
    after_s = (watched.ended_ms - watched.began_ms) / 1000
    topics = sorted({each.fields.get("topic", "") for each in watched.of(Asked) if each.code == GET_ROUTEINFO})
    if foreign is not None:
        why = _foreign_sentence(foreign)
    elif watched.ended not in ("stopped", "hung"):
        why = f"ended ({watched.ended}) after {after_s:.1f} s, before a NameServer gave it a route"
    elif not any(watched.of(Opened)):
        where = ", ".join(map(str, elsewhere(watched)[:3]))
        did = f"connected to {where}" if where else f"made no connection within {START_LIMIT_S:g} s"
        but = " and to none of its NameServers: it is told them" if where else ": it is told its NameServers"
        why = f"{did}{but} by NAMESRV_ADDR, ROCKETMQ_NAMESRV_ADDR, or {{namesrv}} in its arguments"
    elif topics:
        why = (
            f"asked for the route of {', '.join(topics)} and got none: its topic is told by NEMESRV_TOPIC, or "
            f"{{topic}} in its arguments ({TOPIC})"
        )
    else:
        why = f"connected, and asked for no route within {START_LIMIT_S:g} s"
    return f"{cmd} {why}{told_of(watched.last_lines)}"


def elsewhere(watched: Watched) -> list[Address]:
    """Return the addresses to which the process connected and at which no front listens."""
    return list(dict.fromkeys(each.address for each in watched.of(Dialled) if each.front is None))


_SPOKEN = {
    Protocol.TLS: ("TLS", "switch TLS off in the client (Java: -Dtls.enable=false, or useTLS)"),
    Protocol.GRPC: ("gRPC (HTTP/2)", "gRPC clients talk to a Proxy, never to a NameServer, and choose none"),
    Protocol.HTTP: ("HTTP", "it was told NameServers of the remoting protocol, and no address server"),
}


def _foreign_sentence(foreign: Foreign) -> str:
    if foreign.protocol not in _SPOKEN:
        began = foreign.began[:8].hex(" ")
        return f"does not speak RocketMQ's remoting protocol to {foreign.front}: its first bytes are {began}"
    spoken, fix = _SPOKEN[foreign.protocol]
    return f"speaks {spoken} to {foreign.front}, and only RocketMQ's remoting protocol can be watched: {fix}"


# --- in an event loop of its own


def run(
    plan: ConformPlan, *, logs: Path, data: Path, again: Again | None = None, progress: Progress | None = None
) -> Trial:
    """Run all situations in a new event loop. Raises HarnessError if nemesrv itself fails. Ctrl-C and SIGTERM end the
    run and its processes at once; the signal is then raised again for its previous handler."""
    arrived: list[int] = []

    async def work() -> Trial:
        conducting = asyncio.create_task(
            Conducting(plan, logs=logs, data=data, again=again, progress=progress).conduct()
        )

        def stop(number: int) -> None:
            arrived.append(number)
            conducting.cancel()

        if threading.current_thread() is threading.main_thread():
            for number in _STOP:
                asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await conducting

    before = {number: signal.getsignal(number) for number in _STOP}
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work())
    except BaseExceptionGroup as exc:
        error: BaseException = exc.subgroup(HarnessError) or exc
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from exc
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])
