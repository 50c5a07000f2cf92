"""For each NameServer process and broker: when the broker must be in its table, when it must not, and when neither.

    link, broker and NameServer        up ──────────────┐                         ┌────────────── up
    (faults, lives)                                     └───────── down ──────────┘
    obligation        … RETURN, must hold ──────────────┤ KEEP ┤      ├─ DROP, ───┤        ├─ RETURN …
                                                        └ earliest drop   must not └ R + C ┘
                                                        └─ latest drop ┘  hold

Plain functions over `World`: no Spark, no clock. The windows are those of windows.py, chosen by the injection of each
fault. Where the table promises nothing (NEVER), and while the NameServer is paused, nothing is demanded. Where it
promises that the broker comes and goes, there are `turns` to take instead.

What a NameServer may hold because somebody registered it by hand, and need not because somebody took it out.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

from ...remoting.node.profile import Profile
from ..faults.fault import Loss
from ..topology import broker_name
from .by_hand import Act
from .intervals import Stretch, without
from .link import Cause, healed_from_ms, leave_ms, link_causes, process_causes, resend_ms, timers_of_rounds
from .name_server import Kept, Registered, Silence
from .recorded import Life
from .roles import elects, taken_over
from .windows import NEVER, Flapping, Timers, Window, drop_window, flapping_of, return_window
from .world import World


class FaultEdge(NamedTuple):
    """The change that began a state: which fault, and whether it began or was healed."""

    fault_id: str
    phase: str

    def __str__(self) -> str:
        return f"{self.fault_id} {self.phase}" if self.fault_id else "begin"


BEGIN = FaultEdge("", "begin")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteState:
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
    label: FaultEdge


class ObligationKind(StrEnum):
    RETURN = "return"
    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """In [from_ms, to_ms) the NameServer must hold the broker (RETURN, KEEP), or must not (DROP)."""

    id: int
    demand: ObligationKind
    name_server: str
    incarnation: int
    broker: str
    at_ms: float
    from_ms: float
    to_ms: float
    window: Window
    label: FaultEdge


_UNSTEADY = frozenset({Loss.BACKWARD_PROXY, Loss.SLOW, Loss.STALE, Loss.OTHER})
"""Registrations get through now and then, or for a moment: presence comes and goes while the fault lasts."""


_AT_THE_NEXT_BYTES = frozenset({Loss.RESET, Loss.DROPPED})
"""What shows once the broker sends something again, which it does each R."""


def _unsteady(cause: Cause) -> bool:
    return cause.loss in _UNSTEADY or (cause.loss is Loss.RESET and cause.stream == "downstream")


def _changes_nothing(cause: Cause, timers: Timers) -> bool:
    """Whether registrations go on landing and being answered, so that the broker must stay in the table."""
    if cause.loss is Loss.BACKWARD_PROXY and not timers.Z:
        return True
    if cause.on == "name_server":  # what it missed waits in its sockets; a longer pause makes brokers close theirs
        return not cause.loss.closes and cause.end_ms - cause.start_ms <= timers.B_ms - timers.C_ms
    return cause.delay is not None and cause.delay.round_trip_max_ms < min(timers.B_ms, timers.C_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlappingRoute:
    """In [from_ms, to_ms) the NameServer holds the broker for a while, misses it for a while, and so on."""

    name_server: str
    incarnation: int
    broker: str
    from_ms: float
    to_ms: float
    pulse: Flapping
    fault_id: str


class RouteObligations:
    """One NameServer process and one broker: walks through the changes between them."""

    def __init__(self, world: World, life: Life, broker: str) -> None:
        self.world, self.life, self.broker = world, life, broker
        self.timers = timers_of_rounds(world, broker, life.node)
        self.end_ms = min(life.end_ms, world.end_ms)
        self.pauses = [c for c in process_causes(world, life.node, "name_server") if not c.loss.closes]
        causes = [*process_causes(world, broker), *link_causes(world, broker, life.node), *self.pauses]
        self.elected = elects(world, broker)
        causes += [Cause(*one, "link", Loss.OTHER, "") for one in taken_over(world, broker)]
        causes = [c for c in causes if c.start_ms < c.end_ms and not _changes_nothing(c, self.timers)]
        if unlisted := [c for c in causes if c.is_for_ever and not self.elected]:
            causes = unlisted  # what is never sent cannot arrive, whatever else happens
        self.causes = sorted(causes, key=lambda cause: cause.start_ms)
        self._starting: dict[float, list[Cause]] = defaultdict(list)
        self._ending: dict[float, list[Cause]] = defaultdict(list)
        for cause in self.causes:
            self._starting[cause.start_ms].append(cause)
            self._ending[cause.end_ms].append(cause)
        self.leave_ms = leave_ms(world)
        ended = [f for f in world.process_faults(life.node) if f.start_ms < life.start_ms and f.end_ms < NEVER]
        self.beginning = FaultEdge(ended[-1].fault_id, "end") if ended else BEGIN

    def states(self) -> list[RouteState]:
        """Every stretch in which nothing changed, in order of time, up to the end of what is judged."""
        start_ms = self.life.start_ms
        if start_ms >= self.end_ms:
            return []
        times = {at_ms for at_ms in (*self._starting, *self._ending) if start_ms < at_ms < self.end_ms}
        ordered = [start_ms, *sorted(times), self.end_ms]
        states: list[RouteState] = []
        active = [cause for cause in self.causes if cause.active(start_ms)]
        for begin_ms, end_ms in pairwise(ordered):
            if begin_ms > start_ms:
                active = [cause for cause in active if cause.end_ms > begin_ms]
                active += [cause for cause in self._starting.get(begin_ms, ()) if cause.end_ms > begin_ms]
            states.append(self._state(begin_ms, end_ms, active, states[-1] if states else None))
        return states

    def heals_from_ms(self, at_ms: float) -> float:
        """From when on what kept the broker away until then may be over."""
        return healed_from_ms(self.causes, at_ms)

    def _left_ms(self, at_ms: float, active: Iterable[Cause]) -> float:
        """From when on the broker registers no more: a clean stop is recorded when it is over, and until then it may
        still register; a list without this NameServer is fetched later; and a kernel sends again what a link lost."""
        active = list(active)
        stops = (cause.start_ms for cause in active if cause.on == "broker" and cause.loss is Loss.GRACEFUL)
        lists = (cause.start_ms + cause.begins_late_ms for cause in active if cause.begins_late_ms)
        return max([at_ms + self._resent_ms(at_ms), *(begun_ms + self.leave_ms for begun_ms in stops), *lists])

    def _resent_ms(self, at_ms: float) -> float:
        """How long after `at_ms` what links have lost before may still arrive."""
        return max((resend_ms(cause, at_ms) for cause in self.causes if cause.on == "link"), default=0.0)

    def _lets_out(self, at_ms: float) -> bool:
        """Whether what a link held, or what a stopped process had not read yet, arrives now."""
        return any(cause.on != "broker" or not cause.loss.closes for cause in self._ending.get(at_ms, ()))

    def _stops_again(self, at_ms: float) -> bool:
        """Whether the broker's process was started then, and stopped cleanly so soon that it may be leaving already."""
        leaves = any(c.on == "broker" and c.loss is Loss.GRACEFUL for c in self._starting.get(at_ms, ()))
        return leaves and any(cause.on == "broker" for cause in self._ending.get(at_ms, ()))

    def _runs_on(self, at_ms: float) -> bool:
        """Whether the broker's process, which stood still, runs on then."""
        return any(cause.on == "broker" and not cause.loss.closes for cause in self._ending.get(at_ms, ()))

    def _registers_unread(self, at_ms: float) -> bool:
        """Whether the broker could send a registration while the NameServer stood still, as it did until then."""
        away = [
            Stretch(c.start_ms + c.begins_late_ms, c.end_ms)
            for c in self.causes
            if c.on != "name_server" and c.start_ms + c.begins_late_ms < c.end_ms
        ]
        pauses = (cause for cause in self._ending.get(at_ms, ()) if cause.on == "name_server")
        return any(without(max(one.start_ms, self.life.start_ms), one.end_ms, away) for one in pauses)

    def turns(self) -> list[FlappingRoute]:
        """The stretches of which the table says how long the broker is held and missing by turns."""
        found: list[FlappingRoute] = []
        for cause in self.causes:
            pulse = flapping_of(self.timers, cause.loss, cause.stream, cause.delay) if cause.on == "link" else None
            from_ms, to_ms = max(cause.start_ms, self.life.start_ms), min(cause.end_ms, self.end_ms)
            # Another cause in between, or so shortly before that the broker was not back yet, leaves nothing to tell.
            # At the run's own beginning the record says whether it was there.
            since_ms = from_ms - return_window(self.timers, round_ms=self.timers.R_ms).latest_ms
            others = (
                other
                for other in self.causes
                if other is not cause and -NEVER < other.start_ms < to_ms and other.end_ms > since_ms
            )
            settled = since_ms >= self.life.start_ms or self.life == self.world.lives_of(self.life.node)[0]
            if pulse is not None and from_ms < to_ms and settled and not any(others):
                found.append(
                    FlappingRoute(
                        name_server=self.life.node,
                        incarnation=self.life.incarnation,
                        broker=self.broker,
                        from_ms=from_ms,
                        to_ms=to_ms,
                        pulse=pulse,
                        fault_id=cause.fault_id,
                    )
                )
        return found

    def keep(self, run: Sequence[RouteState]) -> Window:
        """How long after the beginning of `run`, all of it down, no cause can have made the broker leave the table."""
        begin_ms, until_ms = run[0].start_ms, run[-1].end_ms
        window = run[0].window
        first = bisect_left(self.causes, begin_ms, key=lambda cause: cause.start_ms)
        for cause in self.causes[first:]:
            if cause.start_ms >= until_ms:
                break
            if begin_ms <= cause.start_ms < until_ms:
                drop = self._drop(cause, cause.start_ms)
                # Whoever is elected in its place has its id.
                earliest_ms = 0.0 if cause.on == "name_server" or self.elected else drop.earliest_ms
                if cause.start_ms + earliest_ms < until_ms:
                    until_ms, window = cause.start_ms + earliest_ms, drop
        for state in run[1:]:  # what a link held, or a stopped process missed, arrives when that ends
            if state.start_ms < until_ms and self._ending.get(state.start_ms):
                until_ms = state.start_ms
        return window._replace(earliest_ms=until_ms - begin_ms)

    def _drop(self, cause: Cause, at_ms: float) -> Window:
        if cause.loss is not Loss.GRACEFUL:
            if cause.loss is Loss.RESET and cause.stream == "downstream":
                return Window(0, NEVER, "not bounded", str(cause.loss))
            window = drop_window(self.timers, cause.loss)
            if cause.loss in _AT_THE_NEXT_BYTES and self._says_nothing(cause, at_ms, at_ms + window.latest_ms):
                latest_ms, formula = self.timers.E_ms + self.timers.S_ms, "E + S (it says nothing meanwhile)"
                window = window._replace(latest_ms=latest_ms, formula=formula)
            return self._fetched_first(self._resent(window, cause, at_ms), cause, at_ms)
        window = drop_window(self.timers, cause.loss, dead_name_servers=self._dead_name_servers(at_ms))
        return self._resent(window._replace(latest_ms=window.latest_ms + self.leave_ms), cause, at_ms)

    def _says_nothing(self, cause: Cause, from_ms: float, to_ms: float) -> bool:
        """Whether something besides `cause` may keep the broker's bytes from the link at some time in [from_ms, to_ms):
        it hangs, its list of NameServers leaves this one out, or what it sends is lost."""
        return any(
            other.start_ms < to_ms and other.end_ms > from_ms
            for other in self.causes
            if other.on != "name_server" and other.loss in (Loss.SILENT, Loss.DROPPED) and other.loss is not cause.loss
        )

    def _fetched_first(self, window: Window, cause: Cause, at_ms: float) -> Window:
        """Later by as long as the broker may take to fetch the list that leaves this NameServer out."""
        late_ms = cause.start_ms + cause.begins_late_ms - at_ms if cause.begins_late_ms else 0.0
        if late_ms <= 0:
            return window
        return window._replace(latest_ms=window.latest_ms + late_ms, formula=f"{window.formula} + N")

    def _resent(self, window: Window, cause: Cause, at_ms: float) -> Window:
        """Later by as long as a kernel may wait until it sends again what was lost: a close comes behind that."""
        if cause.on != "broker" or not cause.loss.closes:
            return window
        losing = (c for c in self.causes if c.on == "link" and c.packets and c.active(at_ms))
        late_ms = max([self._resent_ms(at_ms), *(c.end_ms - at_ms + resend_ms(c, c.end_ms) for c in losing)])
        if not late_ms:
            return window
        return window._replace(latest_ms=window.latest_ms + late_ms, formula=f"{window.formula} + TCP's resending")

    def _dead_name_servers(self, at_ms: float) -> int:
        world = self.world
        return sum(
            any(
                cause.active(at_ms)
                for cause in (*process_causes(world, other.name), *link_causes(world, self.broker, other.name))
            )
            for other in world.of_kind("name_server")
            if other.name != self.life.node
        )

    def _state(self, begin_ms: float, end_ms: float, active: list[Cause], before: RouteState | None) -> RouteState:
        if not active:
            window = self._returning(begin_ms)
            at_ms, settled_ms = begin_ms, begin_ms + window.latest_ms
        elif before is None:  # a NameServer process starts with an empty table, and this broker cannot get into it
            at_ms, settled_ms = begin_ms, self._left_ms(begin_ms, active)
            empty = "the NameServer is on no list of the broker" if active[0].is_for_ever else "NameServer restart"
            window = Window(0, settled_ms - begin_ms, "empty table", empty)
            for cause in active:  # unless the broker has not fetched the list without it yet
                if cause.begins_late_ms and cause.start_ms + cause.begins_late_ms > begin_ms:
                    window = self._drop(cause, begin_ms)
                    settled_ms = begin_ms + window.latest_ms
        else:
            at_ms, settled_ms, window = self._dropping(begin_ms, before, active)
        if any(_unsteady(cause) for cause in active):
            settled_ms = NEVER
        resumed_ms = next((c.end_ms for c in self.pauses if c.active(settled_ms)), settled_ms)
        if resumed_ms > settled_ms:  # what it has not read yet it reads then
            settled_ms, window = resumed_ms, window.plus(resumed_ms - settled_ms, "until the NameServer runs on")
        return RouteState(
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

    def _returning(self, at_ms: float) -> Window:
        """Until its kernel sends again what was lost, a channel that outlasts time-outs is not used; behind one that
        was closed (Z) comes the registration that it was closed for, and then the close: the broker is dropped, and is
        back on its next tick."""
        window = return_window(self.timers, round_ms=self.timers.R_ms)
        fetched_ms = max(
            (c.end_ms + c.ends_late_ms for c in self.causes if c.ends_late_ms and c.end_ms <= at_ms), default=-NEVER
        )
        if fetched_ms > at_ms:
            window = window._replace(latest_ms=window.latest_ms + fetched_ms - at_ms, formula=f"N + {window.formula}")
        late_ms = self._resent_ms(at_ms)
        if not late_ms:
            return window
        return window._replace(latest_ms=window.latest_ms + late_ms, formula=f"{window.formula} + TCP's resending")

    def _label(self, at_ms: float) -> FaultEdge:
        changed = [FaultEdge(cause.fault_id, "start") for cause in self._starting.get(at_ms, ())]
        ended = self._ending.get(at_ms, ())
        changed += [FaultEdge(c.ended_by or c.fault_id, "start" if c.ended_by else "end") for c in ended]
        if at_ms == self.life.start_ms:
            changed.append(self.beginning)
        return max(changed, key=lambda label: label.fault_id != "", default=BEGIN)

    def _is_held(self, cause: Cause, now_ms: float) -> bool:
        """Whether a dying process's close may meet a link that holds everything: then that link's own window stays.

        A clean stop may take `leave_ms` from its beginning on, and closes last.
        """
        closes_ms = cause.start_ms + (self.leave_ms if cause.loss is Loss.GRACEFUL else 0.0)
        return any(
            other.on == "link" and other.loss.swallows_closes and other.start_ms < closes_ms and other.end_ms > now_ms
            for other in self.causes
        )

    def _dropping(self, now_ms: float, before: RouteState, active: list[Cause]) -> tuple[float, float, Window]:
        """When the broker must have left the table: the first of all causes that can make it leave."""
        ended = {cause.on for cause in self._ending.get(now_ms, ())}
        began = [cause for cause in active if cause.start_ms == now_ms]
        at_ms, settled_ms, window = before.at_ms, before.settled_ms, before.window
        read_now = "name_server" in ended and self._registers_unread(now_ms)
        if before.up or "link" in ended or self._stops_again(now_ms) or self._runs_on(now_ms) or read_now:
            # What the link held arrives at its heal, registrations included, so every window starts again, as it does
            # with what a NameServer reads that stood still; and who runs on, if only to stop, may register first.
            at_ms, settled_ms, began = now_ms, NEVER, active
        for cause in began:
            drop = self._drop(cause, now_ms)
            held = cause.on == "broker" and cause.loss.closes and self._is_held(cause, now_ms)
            if cause.on != "name_server" and not held and (settled_ms == NEVER or now_ms + drop.latest_ms < settled_ms):
                at_ms, settled_ms, window = now_ms, now_ms + drop.latest_ms, drop
        if "name_server" in ended and settled_ms < now_ms + self.timers.S_ms:
            row = "NameServer paused while the broker was lost"
            at_ms, settled_ms, window = now_ms, now_ms + self.timers.S_ms, Window(0, self.timers.S_ms, "S", row)
        return at_ms, settled_ms, window


def route_states(world: World) -> Sequence[RouteState]:
    """Every stretch of every (NameServer process, broker), in order of time per pair."""
    return world.memoized("pair states", lambda: [state for _, states in _route_obligations(world) for state in states])


def _route_obligations(world: World) -> Sequence[tuple[RouteObligations, Sequence[RouteState]]]:
    def walk() -> Sequence[tuple[RouteObligations, Sequence[RouteState]]]:
        pairs = (
            RouteObligations(world, life, broker.name)
            for name_server in world.of_kind("name_server")
            for life in world.lives_of(name_server.name)
            for broker in world.of_kind("broker", "slave")
        )
        return [(pair, pair.states()) for pair in pairs]

    return world.memoized("pairs", walk)


def flapping_routes(world: World) -> Sequence[FlappingRoute]:
    """Where a broker comes and goes, and for how long each time."""
    return world.memoized("turns", lambda: [turns for pair, _ in _route_obligations(world) for turns in pair.turns()])


def obligations(world: World) -> Sequence[Obligation]:
    """What each NameServer process's table had to hold, or not, and from when until when."""
    return world.memoized("obligations", lambda: _obligations(world))


class PromisedAtNameServer:
    """As BrokerAtNameServer (name_server.py), of a broker whose registrations nobody recorded: what it must do follows
    from what RocketMQ promises after one fault."""

    is_witnessed = False
    registered: Sequence[Registered] = ()

    def __init__(self, world: World, life: Life, broker: str) -> None:
        self.timers = world.timers_of(broker, life.node)
        key = life.node, life.incarnation, broker
        self._here = [o for o in obligations(world) if (o.name_server, o.incarnation, o.broker) == key]

    def must(self) -> Iterator[Kept]:
        yield from (Kept(o.from_ms, o.to_ms, None) for o in self._here if o.demand is not ObligationKind.DROP)

    def must_not(self) -> Iterator[Silence]:
        for o in self._here:
            if o.demand is ObligationKind.DROP:
                yield Silence(o.from_ms, o.to_ms, o.at_ms, o.window.formula)


def _obligations(world: World) -> list[Obligation]:
    found: list[Obligation] = []
    for pair, states in _route_obligations(world):
        runs = [list(run) for _, run in groupby(states, key=lambda state: state.up)]
        for index, run in enumerate(runs):
            if run[0].up:
                (state,) = run
                _demand(found, ObligationKind.RETURN, state, state.settled_ms, state.end_ms, state.window)
                continue
            held_before = index > 0 and runs[index - 1][0].settled_ms <= run[0].start_ms
            if held_before:
                keep = pair.keep(run)
                _demand(found, ObligationKind.KEEP, run[0], run[0].start_ms, run[0].start_ms + keep.earliest_ms, keep)
            for state in run:
                if state.judged:
                    from_ms = max(state.settled_ms, state.start_ms)
                    to_ms = pair.heals_from_ms(state.end_ms)
                    _demand(found, ObligationKind.DROP, state, from_ms, to_ms, state.window)
    return found


def _demand(
    found: list[Obligation], demand: ObligationKind, state: RouteState, from_ms: float, to_ms: float, window: Window
) -> None:
    if from_ms < to_ms:
        found.append(
            Obligation(
                id=len(found),
                demand=demand,
                name_server=state.name_server,
                incarnation=state.incarnation,
                broker=state.broker,
                at_ms=state.start_ms if demand is ObligationKind.KEEP else state.at_ms,
                from_ms=from_ms,
                to_ms=to_ms,
                window=window,
                label=state.label,
            )
        )


class Span(NamedTuple):
    from_ms: float
    to_ms: float


class ToldByHand:
    """By NameServer, as the acts say. Made once for a World (`told_by_hand`)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.registered: dict[str, list[Act]] = defaultdict(list)
        """NameServer → registrations that it may have taken."""
        self._deleted: dict[tuple[str, str], list[Span]] = defaultdict(list)
        named: dict[str, set[tuple[str, str]]] = defaultdict(set)
        addresses = {node.name: node.address for node in world.of_kind("slave")}
        for act in world.acts:
            if act.f == "register" and act.may_be_done:
                self.registered[act.node].append(act)
                named[act.broker].add((str(act.broker_id), act.address))
            elif act.f == "switch" and act.may_be_done:
                named[broker_name(act.node)].add(("0", addresses.get(act.node) or ""))
            elif act.f == "delete_topic" and act.may_be_done:
                self._deleted[act.node, act.topic].append(Span(act.began_ms, self._until_ms(act)))
        self.named: dict[str, frozenset[tuple[str, str]]] = {name: frozenset(of) for name, of in named.items()}
        """Broker name → (id, address) that somebody registered for it, anywhere."""

    def _until_ms(self, act: Act) -> float:
        """By when brokers have told the NameServer of the topic again: a 5.x one takes it from any registration, a 4.9
        one only with a change of something, or after it was restarted; and a broker that asks first (322) hears that it
        need not register."""
        brokers = [node.name for node in self._world.of_kind("broker", "slave")]
        asks_first = any(self._world.timers_of(broker).F_ms is not None for broker in brokers)
        if self._world.timers.profile is Profile.V5_X and not asks_first:
            timers = self._world.timers
            return act.ended_ms + timers.R_ms + timers.B_ms + timers.C_ms
        return next((life.end_ms for life in self._world.lives_of(act.node) if life.end_ms > act.began_ms), math.inf)

    def deleted(self, name_server: str, topic: str) -> list[Span]:
        """When nobody says whether the topic is there, because somebody had it deleted there."""
        return self._deleted.get((name_server, topic), [])

    def is_deleted(self, name_server: str, topic: str, from_ms: float, to_ms: float) -> bool:
        return any(span.from_ms < to_ms and span.to_ms > from_ms for span in self.deleted(name_server, topic))

    def may_name(self, broker: str, id_: str, address: str) -> bool:
        """Whether somebody registered the broker so."""
        return (id_, address) in self.named.get(broker, ())

    def told_of(self, *name_servers: str) -> dict[str, float]:
        """The brokers that somebody registered at any of these, and since when they may be there."""
        found: dict[str, float] = {}
        for name_server in name_servers:
            for act in self.registered.get(name_server, ()):
                found[act.broker] = min(found.get(act.broker, act.began_ms), act.began_ms)
        return found


def told_by_hand(world: World) -> ToldByHand:
    return world.memoized("told by hand", lambda: ToldByHand(world))
