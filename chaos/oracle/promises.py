"""RocketMQ's promises for a quiet run with one fault at a time: when a NameServer must have a broker again, or must not
have it any more.

    one fault         ├──────────────── up ──────────────┤         ├───────────────── up
                                                          └─ away ──┘
    promise           … RETURN, must hold ────────────────┤ KEEP ┤  ├ DROP, ─┤         ├─ RETURN …
                                                          └ earliest └ latest, must not └ R + C ┘

    several at once   nothing is promised from the second on until the broker is sure to be back after the last: what
                      each part must do then is judged part by part (name_server.py)

The windows are those of windows.py, chosen by the injection of each fault. Where the table promises nothing (NEVER),
and while the NameServer is paused, nothing is demanded.

What a NameServer may hold because somebody registered it by hand, and need not because somebody took it out.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from ...remoting.node.profile import Profile
from ..faults.fault import Loss
from ..topology import broker_name, is_slave
from .by_hand import Act
from .intervals import Stretch, grouped, touching
from .link import MOMENT_MS, Cause, healed_from_ms, link_causes, process_causes, resend_ms, timers_of_rounds
from .name_server import Kept, Read, Registered, Silence
from .reach import MEETS_MS
from .recorded import Life
from .roles import elects, taken_over
from .windows import NEVER, Window, drop_window, return_window
from .world import World, once


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
    window: Window
    """From the beginning of the stretch."""
    label: FaultEdge

    @property
    def settled_ms(self) -> float:
        """When the table of the NameServer must have followed; NEVER where nothing bounds it."""
        return self.start_ms + self.window.latest_ms

    @property
    def judged(self) -> bool:
        """False while the NameServer is paused, several faults meet, or the table bounds nothing."""
        return self.window.latest_ms < NEVER


class ObligationKind(StrEnum):
    RETURN = "return"
    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """In [from_ms, to_ms) the NameServer must hold the broker (RETURN, KEEP), or must not (DROP)."""

    demand: ObligationKind
    name_server: str
    incarnation: int
    broker: str
    at_ms: float
    from_ms: float
    to_ms: float
    window: Window
    label: FaultEdge


_MEMBERS_CALL_MS = 3_000.0
"""BrokerController.syncBrokerMemberGroup, with acting masters: a question (901) that runs out closes the channel."""
_UNSTEADY = frozenset({Loss.BACKWARD_PROXY, Loss.SLOW, Loss.STALE, Loss.OTHER})
"""Registrations get through now and then, or for a moment: presence comes and goes while the fault lasts."""


def _unsteady(cause: Cause) -> bool:
    return cause.loss in _UNSTEADY or (cause.loss is Loss.RESET and cause.stream == "downstream")


class _Episode(NamedTuple):
    """Causes that follow each other so soon that the broker was not sure to be back between them."""

    causes: Sequence[Cause]

    @property
    def start_ms(self) -> float:
        return self.causes[0].start_ms

    @property
    def end_ms(self) -> float:
        return max(cause.end_ms for cause in self.causes)

    @property
    def first(self) -> Cause:
        return self.causes[0]

    @property
    def together(self) -> Sequence[Cause]:
        """Those that began with the first, as when a host is lost: its processes end, and its links are cut."""
        return [one for one in self.causes if one.start_ms <= self.start_ms + MOMENT_MS]

    @property
    def alone_until_ms(self) -> float:
        """Until when these are alone: from then on nothing is promised."""
        first, together = self.first, self.together
        others = [one for one in self.causes if (one.fault_id or first.fault_id) != first.fault_id]
        others += [one for one in self.causes if one.end_ms > first.end_ms and one not in others]
        return min([first.end_ms, *(one.end_ms if one in together else one.start_ms for one in others)])


class _Pair:
    """One NameServer process and one broker: what is promised of them around each fault that comes alone."""

    def __init__(self, world: World, life: Life, broker: str) -> None:
        self.world, self.life, self.broker = world, life, broker
        self.timers = timers_of_rounds(world, broker, life.node)
        self.of: Mapping[str, Any] = {"name_server": life.node, "incarnation": life.incarnation, "broker": broker}
        self.end_ms = min(life.end_ms, world.end_ms)
        self.elected = elects(world, broker)
        pauses = (cause for cause in process_causes(world, life.node, "name_server") if not cause.loss.closes)
        causes = [*process_causes(world, broker), *link_causes(world, broker, life.node), *pauses]
        causes += [Cause(*one, "link", Loss.OTHER, "") for one in taken_over(world, broker)]
        causes = [c for c in causes if c.start_ms <= c.end_ms and not self._changes_nothing(c)]
        causes = [*self._but_stalls_within(causes)]
        if unlisted := [c for c in causes if c.is_for_ever and not self.elected]:
            by_hand = {fault.fault_id for fault in world.link_faults(broker, life.node) if fault.by_hand}
            # The broker never registers there, whatever else happens, but somebody may register it by hand.
            causes = [*unlisted, *(cause for cause in causes if cause.fault_id in by_hand)]
        ordered = sorted(causes, key=lambda cause: (cause.start_ms, -cause.end_ms))
        episodes = map(_Episode, touching(ordered, attrgetter("start_ms"), self._over_ms))
        self.episodes = [one for one in episodes if not self._is_unnoticed(one)]
        ended = [f for f in world.process_faults(life.node) if f.start_ms < life.start_ms and f.end_ms < NEVER]
        self.beginning = FaultEdge(ended[-1].fault_id, "end") if ended else BEGIN

    def _changes_nothing(self, cause: Cause) -> bool:
        """Whether registrations go on landing and being answered, so that the broker must stay in the table. What makes
        answers late at one time adds up."""
        if cause.loss is Loss.BACKWARD_PROXY and not self.timers.Z and self.timers.F_ms is None:
            return True
        (late_ms,) = self.world.round_trips_ms(self.broker, (self.life.node,), cause.start_ms, cause.end_ms)
        members_ms = math.inf if self.timers.h_ms is None else _MEMBERS_CALL_MS
        return cause.delay is not None and late_ms < min(self.timers.B_ms, self.timers.C_ms, members_ms)

    def _but_stalls_within(self, causes: Sequence[Cause]) -> Iterator[Cause]:
        """What a fault keeps away is no further away while the machine does not run it; how late that makes a drop is
        measured."""
        stalls = {fault.fault_id for fault in self.world.faults if fault.stood_still}
        others = [c for c in causes if c.fault_id not in stalls and c.on != "name_server" and not _unsteady(c)]
        for cause in causes:
            within = any(other.start_ms <= cause.start_ms and cause.end_ms <= other.end_ms for other in others)
            if cause.fault_id not in stalls or not within:
                yield cause

    def _is_unnoticed(self, episode: _Episode) -> bool:
        """Whether it is a pause of the NameServer that no registration outlasts: what it missed waits in its sockets; a
        longer one makes brokers close theirs. With acting masters they ask each second for the members of their group
        (901), which runs out sooner."""
        is_pause = episode.first.on == "name_server" and episode.alone_until_ms == episode.end_ms
        is_short = episode.end_ms - episode.start_ms <= self.timers.B_ms - self.timers.C_ms
        return is_pause and is_short and self.timers.h_ms is None

    def _over_ms(self, cause: Cause) -> float:
        """By when nothing of the cause is under way any more: at once, where its process only had not begun."""
        return cause.end_ms if cause.start_ms == -math.inf and cause.on != "link" else self._back_ms(cause)

    def _back_ms(self, cause: Cause) -> float:
        """By when the broker is back for sure."""
        return cause.end_ms + self._back(cause).latest_ms

    def _back(self, cause: Cause) -> Window:
        """From the end of a cause: the broker is back on its own tick, behind what its kernel sends again, and, with a
        list by HTTP, behind what it has to fetch first."""
        window = return_window(self.timers, round_ms=self.timers.R_ms)
        if cause.ends_late_ms:
            window = window._replace(latest_ms=window.latest_ms + cause.ends_late_ms, formula=f"N + {window.formula}")
            if self._meets_idle_close(cause, window):
                window = window.plus(self.timers.R_ms, "R, for a registration that meets the idle close")
        return window.plus(resend_ms(cause, cause.end_ms), "TCP's resending")

    def _meets_idle_close(self, cause: Cause, window: Window) -> bool:
        """Whether the NameServer, off the list and on it again, closes the idle channel just as the broker registers: I
        is a multiple of R."""
        R_ms, I_ms, last_ms = self.timers.R_ms, self.timers.I_ms, cause.start_ms + cause.begins_late_ms
        apart_ms = min(I_ms % R_ms, -I_ms % R_ms)
        in_window = cause.end_ms <= last_ms + I_ms and cause.start_ms - R_ms + I_ms <= cause.end_ms + window.latest_ms
        return apart_ms <= MEETS_MS and in_window

    def states(self) -> Iterator[RouteState]:
        """Every stretch in which nothing changed, in order of time, up to the end of what is judged."""
        at_ms, window, label = self.life.start_ms, return_window(self.timers, round_ms=self.timers.R_ms), self.beginning
        for episode in self.episodes:
            if episode.end_ms <= self.life.start_ms:  # what it leaves behind may last: a list that is not fetched yet
                latest_ms = max(self._back_ms(cause) for cause in episode.causes) - at_ms
                window = max(window, window._replace(latest_ms=latest_ms), key=lambda one: one.latest_ms)
                continue
            if episode.start_ms >= self.end_ms:
                continue
            if at_ms < episode.start_ms:
                yield self._state(at_ms, episode.start_ms, window, label, up=True)
            yield from self._away(episode)
            last = max(episode.causes, key=lambda cause: cause.end_ms)
            slowest = max(episode.causes, key=self._back_ms)
            at_ms, window = last.end_ms, self._back(slowest)
            window = window._replace(latest_ms=self._back_ms(slowest) - at_ms)
            label = FaultEdge(last.ended_by, "start") if last.ended_by else FaultEdge(last.fault_id, "end")
        if at_ms < self.end_ms:
            yield self._state(at_ms, self.end_ms, window, label if label.fault_id else BEGIN, up=True)

    def _away(self, episode: _Episode) -> Iterator[RouteState]:
        start_ms, cause = max(episode.start_ms, self.life.start_ms), episode.first
        end_ms, alone_ms = min(episode.end_ms, self.end_ms), min(episode.alone_until_ms, self.end_ms)
        label = FaultEdge(cause.fault_id, "start")
        if start_ms < alone_ms:
            drops = [self.drop(one) for one in episode.together if one.on != "name_server"]
            window = max(
                drops, key=lambda drop: drop.latest_ms, default=Window(0, NEVER, "not bounded", str(cause.loss))
            )
            if episode.start_ms < self.life.start_ms:  # its table is empty, and this broker cannot get into it
                label = self.beginning
                late_ms = cause.start_ms + cause.begins_late_ms - start_ms
                if late_ms > 0:  # it may still get into it
                    window = Window(0, window.latest_ms + cause.start_ms - start_ms, window.formula, window.row)
                else:
                    empty = "the NameServer is on no list of the broker" if cause.is_for_ever else "NameServer restart"
                    window = Window(0, max(resend_ms(cause, start_ms), 0.0), "empty table", empty)
            if any(_unsteady(one) or one.on == "name_server" for one in episode.together):
                window = window._replace(latest_ms=NEVER)
            yield self._state(start_ms, alone_ms, window, label, up=False)
        if max(start_ms, alone_ms) < end_ms:
            window = Window(0, NEVER, "not bounded", "several faults at once: judged part by part")
            yield self._state(max(start_ms, alone_ms), end_ms, window, label, up=False)

    def _state(self, start_ms: float, end_ms: float, window: Window, label: FaultEdge, *, up: bool) -> RouteState:
        return RouteState(**self.of, start_ms=start_ms, end_ms=end_ms, up=up, window=window, label=label)

    def drop(self, cause: Cause) -> Window:
        """When the NameServer drops a broker that only this keeps away."""
        if cause.loss is Loss.RESET and cause.stream == "downstream":
            return Window(0, NEVER, "not bounded", str(cause.loss))
        if cause.loss is Loss.GRACEFUL:
            dead = sum(self._is_lost(other.name, cause.start_ms) for other in self.world.of_kind("name_server"))
            window = drop_window(self.timers, cause.loss, dead_name_servers=dead)
            return window._replace(latest_ms=window.latest_ms + cause.begins_late_ms)
        return drop_window(self.timers, cause.loss).plus(cause.begins_late_ms, "N")

    def _is_lost(self, other: str, at_ms: float) -> bool:
        """Whether a broker that stops waits for this NameServer in vain."""
        lost = (*process_causes(self.world, other), *link_causes(self.world, self.broker, other))
        return other != self.life.node and any(cause.active(at_ms) for cause in lost)

    def kept_ms(self, cause: Cause) -> float:
        """For how long after its beginning the cause cannot have made the broker leave the table."""
        if cause.on == "name_server" or self.elected:  # whoever is elected in its place has its id
            return 0.0
        return min(self.drop(cause).earliest_ms, cause.end_ms - cause.start_ms)


@once
def route_states(world: World) -> Sequence[RouteState]:
    """Every stretch of every (NameServer process, broker), in order of time per pair."""
    return [state for _, states in _pairs(world) for state in states]


@once
def _pairs(world: World) -> Sequence[tuple[_Pair, Sequence[RouteState]]]:
    pairs = (
        _Pair(world, life, broker.name)
        for life in world.lives_of_kind("name_server")
        for broker in world.of_kind("broker", "slave")
        if life.start_ms < min(life.end_ms, world.end_ms)
    )
    return [(pair, [*pair.states()]) for pair in pairs]


class Segment(NamedTuple):
    """NameServer processes that the same brokers can reach between two changes: equal in [from_ms, to_ms)."""

    members: Sequence[tuple[str, int]]
    """NameServer and incarnation, at least two."""
    start_ms: float
    from_ms: float
    to_ms: float
    latest: RouteState
    """The pair whose window ends last: it decides the bound."""
    label: FaultEdge
    label_ms: float
    """When the change began that this segment belongs to; a fault of several links takes several moments."""
    slaves_only: Collection[str]
    """The names of which only slaves reach these NameServers: their rows are the last that each had from a master."""


def segments(world: World) -> list[Segment]:
    """Every class of at least two NameServer processes between two changes, in order of time; without a NameServer of
    which nobody has a record."""
    missing = (one for one in world.blind if one.missing and one.from_ms < 1.0 and one.to_ms >= world.end_ms)
    unread = {node for one in missing for node in one.nodes}
    starting = grouped((state.start_ms, state) for state in route_states(world))
    times = sorted({*starting, *(state.end_ms for state in route_states(world))})
    lost = {f.start_ms: f for node in world.of_kind("name_server") for f in world.process_faults(node.name)}
    found: list[Segment] = []
    label, label_ms, current = BEGIN, times[0] if times else 0.0, list[RouteState]()
    for start_ms, to_ms in pairwise(times):
        current = [state for state in current if state.end_ms > start_ms] + starting.get(start_ms, [])
        began = [state.label for state in current if state.start_ms == start_ms and state.label.fault_id]
        began += [FaultEdge(lost[start_ms].fault_id, "start")] if start_ms in lost else []
        if began and began[0] != label:
            label, label_ms = began[0], start_ms
        ordered = sorted(current, key=lambda one: (one.name_server, one.incarnation, one.broker))
        of = grouped(
            ((state.name_server, state.incarnation), state) for state in ordered if state.name_server not in unread
        )
        judged = ((process, pairs) for process, pairs in of.items() if all(state.judged for state in pairs))
        classes = grouped((frozenset(s.broker for s in pairs if s.up), process) for process, pairs in judged)
        for up, members in classes.items():
            if len(members) > 1:
                latest = max((s for member in members for s in of[member]), key=lambda s: s.settled_ms)
                slaves_only = {broker_name(broker) for broker in up if is_slave(broker)} - up
                span = start_ms, max(start_ms, latest.settled_ms), to_ms
                found.append(Segment(members, *span, latest, label, label_ms, slaves_only))
    return found


class PromisedAtNameServer:
    """As BrokerAtNameServer (name_server.py), of a broker whose registrations nobody recorded: what it must do follows
    from what RocketMQ promises after one fault."""

    is_witnessed = False
    is_alone = True
    registered: Sequence[Registered] = ()
    heard: Sequence[Read] = ()

    def __init__(self, world: World, life: Life, broker: str) -> None:
        self.timers = world.timers_of(broker, life.node)
        key = *life.process, broker
        self._here = [o for o in obligations(world) if (o.name_server, o.incarnation, o.broker) == key]

    def must(self) -> Iterator[Kept]:
        yield from (Kept(o.from_ms, o.to_ms, None) for o in self._here if o.demand is not ObligationKind.DROP)

    def must_not(self) -> Iterator[Silence]:
        for o in self._here:
            if o.demand is ObligationKind.DROP:
                yield Silence(o.from_ms, o.to_ms, o.at_ms, o.window.formula)


@once
def obligations(world: World) -> Sequence[Obligation]:
    """What each NameServer process's table had to hold, or not, and from when until when."""
    found: list[Obligation] = []
    for pair, states in _pairs(world):
        for state, demand, from_ms, to_ms in _demands(pair, states):
            if from_ms < to_ms:
                of: dict[str, Any] = {"window": state.window, "label": state.label, "at_ms": state.start_ms}
                found.append(Obligation(demand=demand, from_ms=from_ms, to_ms=to_ms, **pair.of, **of))
    return found


def _demands(pair: _Pair, states: Iterable[RouteState]) -> Iterator[tuple[RouteState, ObligationKind, float, float]]:
    """What each state of the pair demands, from when until when."""
    held_from_ms = NEVER
    by_start = {max(episode.start_ms, pair.life.start_ms): episode for episode in pair.episodes}
    for state in states:
        if state.up:
            yield state, ObligationKind.RETURN, state.settled_ms, state.end_ms
            held_from_ms = state.settled_ms
            continue
        if (episode := by_start.get(state.start_ms)) is None or state.start_ms >= episode.alone_until_ms:
            continue
        if held_from_ms <= state.start_ms:
            kept_ms = min(state.start_ms + min(map(pair.kept_ms, episode.together)), state.end_ms)
            yield state, ObligationKind.KEEP, state.start_ms, kept_ms
        if state.judged:
            yield state, ObligationKind.DROP, state.settled_ms, healed_from_ms(episode.causes, state.end_ms)


class ToldByHand:
    """By NameServer, as the acts say."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.changed: dict[str, dict[str, float]] = defaultdict(dict)
        """NameServer → broker name that somebody registered, or permitted otherwise, there → since when."""
        self._deleted: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
        named: dict[str, set[tuple[str, str]]] = defaultdict(set)
        addresses = {node.name: node.address for node in world.of_kind("slave")}
        for act in (act for act in world.acts if act.f == "register"):  # also one that was read, and refused
            named[act.broker].add((str(act.broker_id), act.address))
        for act in (act for act in world.acts if act.may_be_done):
            if act.f in ("register", "wipe_write_perm", "add_write_perm"):
                self.changed[act.node].setdefault(act.broker, act.began_ms)
            if act.f == "switch":
                named[broker_name(act.node)].add(("0", addresses.get(act.node) or ""))
            elif act.f == "delete_topic":
                self._deleted[act.node, act.topic].append(Stretch(act.began_ms, self._until_ms(act)))
        self.named: dict[str, frozenset[tuple[str, str]]] = {name: frozenset(of) for name, of in named.items()}
        """Broker name → (id, address) that somebody registered for it, anywhere."""

    def _until_ms(self, act: Act) -> float:
        """By when brokers have told the NameServer of the topic again: a 5.x one takes it from any registration, a 4.9
        one only with a change of something, or after it was restarted; and a broker that asks first (322) hears that it
        need not register."""
        brokers, timers = self._world.of_kind("broker", "slave"), self._world.timers
        asks_first = any(self._world.timers_of(broker.name).F_ms is not None for broker in brokers)
        if timers.profile is Profile.V5_X and not asks_first:
            return act.ended_ms + timers.registers_ms
        return next((life.end_ms for life in self._world.lives_of(act.node) if life.end_ms > act.began_ms), math.inf)

    def deleted(self, name_server: str, topic: str) -> list[Stretch]:
        """When nobody says whether the topic is there, because somebody had it deleted there."""
        return self._deleted.get((name_server, topic), [])

    def is_deleted(self, name_server: str, topic: str, from_ms: float, to_ms: float) -> bool:
        return any(one.start_ms < to_ms and one.end_ms > from_ms for one in self.deleted(name_server, topic))

    def may_name(self, broker: str, id_: str, address: str) -> bool:
        """Whether somebody registered the broker so."""
        return (id_, address) in self.named.get(broker, ())


told_by_hand = once(ToldByHand)
