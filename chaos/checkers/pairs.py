"""For each NameServer process and broker: when the broker must be in its table, when it must not, and when neither.

    link, broker and NameServer        up ──────────────┐                         ┌────────────── up
    (faults, lives)                                     └───────── down ──────────┘
    obligation        … RETURN, must hold ──────────────┤ KEEP ┤      ├─ DROP, ───┤        ├─ RETURN …
                                                        └ earliest drop   must not └ R + C ┘
                                                        └─ latest drop ┘  hold

Plain functions over `World`: no Spark, no clock. The windows are those of windows.py, chosen by the injection of each
fault. Where the table promises nothing (NEVER), and while the NameServer is paused, nothing is demanded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from ..windows import NEVER, Delay, Loss, Timers, Window, drop_window, return_window
from .world import Fault, Life, World


class Label(NamedTuple):
    """The change that began a state: which fault, and whether it began or was healed."""

    fault_id: str
    phase: str

    def __str__(self) -> str:
        return f"{self.fault_id} {self.phase}"


BEGIN = Label("", "begin")


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a broker not to reach a NameServer (or a client)."""

    start_ms: float
    end_ms: float
    on: str
    """broker, link or name_server"""
    loss: Loss
    fault_id: str
    injection: str = ""
    stream: str | None = None
    delay: Delay | None = None
    """How late a latency fault makes what passes."""

    @classmethod
    def of(cls, fault: Fault, on: str, timers: Timers) -> Cause:
        delay = Delay.of(fault.injection, fault.stream, fault.value)
        loss = fault.loss(timers)
        return cls(fault.start_ms, fault.end_ms, on, loss, fault.fault_id, fault.injection, fault.stream, delay)

    def active(self, at_ms: float) -> bool:
        return self.start_ms <= at_ms < self.end_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A stretch in which nothing changed for one pair."""

    name_server: str
    incarnation: int
    broker: str
    start_ms: float
    end_ms: float
    up: bool
    judged: bool
    """False while the NameServer is paused, or while the table bounds nothing."""
    at_ms: float
    """The change that the window counts from."""
    settled_ms: float
    """When the table of the NameServer must have followed; NEVER where nothing bounds it."""
    window: Window
    label: Label


class Demand(StrEnum):
    RETURN = "return"
    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """In [from_ms, to_ms) the NameServer must hold the broker (RETURN, KEEP), or must not (DROP)."""

    id: int
    demand: Demand
    name_server: str
    incarnation: int
    broker: str
    at_ms: float
    from_ms: float
    to_ms: float
    window: Window
    label: Label


def leave_ms(world: World) -> float:
    """How long a clean stop may have been under way when it is recorded: it unregisters at each NameServer in turn."""
    return world.timers.A_ms * len(world.of_kind("name_server"))


def process_causes(world: World, node: str, on: str = "broker") -> list[Cause]:
    """When this node's process is not running or not answering: its faults, and the gaps between its lives.

    A clean stop of a broker begins `leave_ms` before its row. The end of the run is not one of them.
    """
    causes = _process_causes(world, node, on)
    if on != "broker":
        return causes
    early_ms = leave_ms(world)
    return [
        replace(c, start_ms=c.start_ms - early_ms) if c.loss is Loss.GRACEFUL and c.start_ms < world.end_ms else c
        for c in causes
    ]


def _process_causes(world: World, node: str, on: str) -> list[Cause]:
    causes = [Cause.of(fault, on, world.timers) for fault in world.process_faults(node)]
    gap_ms = -math.inf
    for start_ms, end_ms in [*((life.start_ms, life.end_ms) for life in world.lives_of(node)), (math.inf, math.inf)]:
        if start_ms > gap_ms:
            ended_by = next((cause for cause in causes if cause.start_ms == gap_ms), None)
            loss, fault_id = (ended_by.loss, ended_by.fault_id) if ended_by else (Loss.GRACEFUL, "")
            causes.append(Cause(gap_ms, start_ms, on, loss, fault_id))
        gap_ms = end_ms
    return causes


def link_causes(world: World, source: str, target: str) -> list[Cause]:
    """When the link by which `source` dials `target` is not as it should be."""
    causes = [Cause.of(fault, "link", world.timers) for fault in world.link_faults(source, target)]
    return [cause for cause in causes if cause.loss is not Loss.HARMLESS]


_UNSTEADY = frozenset({Loss.BACKWARD_PROXY, Loss.RESET, Loss.SLOW, Loss.OTHER})
"""Registrations get through now and then, or for a moment: presence comes and goes while the fault lasts."""


class Pair:
    """One NameServer process and one broker: walks through the changes between them."""

    def __init__(self, world: World, life: Life, broker: str) -> None:
        self.timers, self.life, self.broker = world.timers, life, broker
        self.end_ms = min(life.end_ms, world.end_ms)
        pauses = [c for c in process_causes(world, life.node, "name_server") if not c.loss.closes]
        self.causes = [*process_causes(world, broker), *link_causes(world, broker, life.node), *pauses]
        self.leave_ms = leave_ms(world)
        ended = [f for f in world.process_faults(life.node) if f.start_ms < life.start_ms and f.end_ms < NEVER]
        self.beginning = Label(ended[-1].fault_id, "end") if ended else BEGIN
        self._others = [
            [*process_causes(world, other.name), *link_causes(world, broker, other.name)]
            for other in world.of_kind("name_server")
            if other.name != life.node
        ]

    def states(self) -> list[State]:
        """Every stretch in which nothing changed, in order of time, up to the end of what is judged."""
        start_ms = self.life.start_ms
        if start_ms >= self.end_ms:
            return []
        changes = {start_ms}
        for cause in self.causes:
            changes |= {at_ms for at_ms in (cause.start_ms, cause.end_ms) if start_ms < at_ms < self.end_ms}
        times = [*sorted(changes), self.end_ms]
        states: list[State] = []
        for begin_ms, end_ms in pairwise(times):
            states.append(self._state(begin_ms, end_ms, states[-1] if states else None))
        return states

    def keep(self, run: Sequence[State]) -> Window:
        """How long after the beginning of `run`, all of it down, no cause can have made the broker leave the table."""
        begin_ms, until_ms = run[0].start_ms, run[-1].end_ms
        window = run[0].window
        for cause in self.causes:
            if begin_ms <= cause.start_ms < until_ms:
                drop = self._drop(cause, cause.start_ms)
                earliest_ms = 0.0 if cause.on == "name_server" else drop.earliest_ms
                if cause.start_ms + earliest_ms < until_ms:
                    until_ms, window = cause.start_ms + earliest_ms, drop
            if begin_ms < cause.end_ms < until_ms:  # what a link held, or a stopped process missed, arrives now
                until_ms = cause.end_ms
        return window._replace(earliest_ms=until_ms - begin_ms)

    def _drop(self, cause: Cause, at_ms: float) -> Window:
        dead = sum(any(cause.active(at_ms) for cause in causes) for causes in self._others)
        window = drop_window(self.timers, cause.loss, dead_name_servers=dead)
        if cause.loss is Loss.GRACEFUL:
            window = window._replace(latest_ms=window.latest_ms + self.leave_ms)
        return window

    def _state(self, begin_ms: float, end_ms: float, before: State | None) -> State:
        active = [cause for cause in self.causes if cause.active(begin_ms)]
        if not active:
            window = return_window(self.timers)
            at_ms, settled_ms = begin_ms, begin_ms + window.latest_ms
        elif before is None:  # a NameServer process starts with an empty table, and this broker cannot get into it
            window, at_ms, settled_ms = Window(0, 0, "empty table", "NameServer restart"), begin_ms, begin_ms
        else:
            at_ms, settled_ms, window = self._dropping(begin_ms, before, active)
        if any(cause.loss in _UNSTEADY for cause in active):
            settled_ms = NEVER
        return State(
            name_server=self.life.node,
            incarnation=self.life.incarnation,
            broker=self.broker,
            start_ms=begin_ms,
            end_ms=end_ms,
            up=not active,
            judged=settled_ms < NEVER and all(cause.on != "name_server" for cause in active),
            at_ms=at_ms,
            settled_ms=settled_ms,
            window=window,
            label=self._label(begin_ms),
        )

    def _label(self, at_ms: float) -> Label:
        changed = [Label(cause.fault_id, "start") for cause in self.causes if cause.start_ms == at_ms]
        changed += [Label(cause.fault_id, "end") for cause in self.causes if cause.end_ms == at_ms]
        if at_ms == self.life.start_ms:
            changed.append(self.beginning)
        return max(changed, key=lambda label: label.fault_id != "", default=BEGIN)

    def _dropping(self, now_ms: float, before: State, active: list[Cause]) -> tuple[float, float, Window]:
        """When the broker must have left the table: the first of all causes that can make it leave."""
        ended = {cause.on for cause in self.causes if cause.end_ms == now_ms}
        began = [cause for cause in active if cause.start_ms == now_ms]
        at_ms, settled_ms, window = before.at_ms, before.settled_ms, before.window
        if before.up or "link" in ended:
            # What the link held arrives at its heal, registrations included, so every window starts again.
            at_ms, settled_ms, began = now_ms, NEVER, active
        for cause in began:
            drop = self._drop(cause, now_ms)
            # A dying process's close cannot pass a link that holds everything: that link's own window stays.
            held = (
                cause.on == "broker"
                and cause.loss.closes
                and any(
                    other.on == "link" and other.loss.swallows_closes and other.start_ms < cause.start_ms
                    for other in active
                )
            )
            if cause.on != "name_server" and not held and (settled_ms == NEVER or now_ms + drop.latest_ms < settled_ms):
                at_ms, settled_ms, window = now_ms, now_ms + drop.latest_ms, drop
        if "name_server" in ended and settled_ms < now_ms + self.timers.S_ms:
            row = "NameServer paused while the broker was lost"
            at_ms, settled_ms, window = now_ms, now_ms + self.timers.S_ms, Window(0, self.timers.S_ms, "S", row)
        return at_ms, settled_ms, window


def pair_states(world: World) -> list[State]:
    """Every stretch of every (NameServer process, broker), in order of time per pair."""
    return [state for pair in _pairs(world) for state in pair.states()]


def _pairs(world: World) -> list[Pair]:
    return [
        Pair(world, life, broker.name)
        for name_server in world.of_kind("name_server")
        for life in world.lives_of(name_server.name)
        for broker in world.of_kind("broker")
    ]


def obligations(world: World) -> list[Obligation]:
    """What each NameServer process's table had to hold, or not, and from when until when."""
    found: list[Obligation] = []
    for pair in _pairs(world):
        runs = [list(run) for _, run in groupby(pair.states(), key=lambda state: state.up)]
        for index, run in enumerate(runs):
            if run[0].up:
                (state,) = run
                _demand(found, Demand.RETURN, state, state.settled_ms, state.end_ms, state.window)
                continue
            held_before = index > 0 and runs[index - 1][0].settled_ms <= run[0].start_ms
            if held_before:
                keep = pair.keep(run)
                _demand(found, Demand.KEEP, run[0], run[0].start_ms, run[0].start_ms + keep.earliest_ms, keep)
            for state in run:
                if state.judged:
                    _demand(
                        found, Demand.DROP, state, max(state.settled_ms, state.start_ms), state.end_ms, state.window
                    )
    return found


def _demand(
    found: list[Obligation], demand: Demand, state: State, from_ms: float, to_ms: float, window: Window
) -> None:
    if from_ms < to_ms:
        found.append(
            Obligation(
                id=len(found),
                demand=demand,
                name_server=state.name_server,
                incarnation=state.incarnation,
                broker=state.broker,
                at_ms=state.start_ms if demand is Demand.KEEP else state.at_ms,
                from_ms=from_ms,
                to_ms=to_ms,
                window=window,
                label=state.label,
            )
        )
