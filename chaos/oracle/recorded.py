"""The harness's nodes and acts, from the rows of a history: nodes, their lifetimes, faults, lists by HTTP.

What a broker that came back at another address is to clients that may be told of the one before: lost to them.

    broker at x ──┤ ended ├── at y ── registers         NameServers that it reaches name y within R + C: no fault
    NameServer  x ────────────────────┤ E + S ┤         one that it did not reach may name x so long: a fault of the
                                                        client's link, which nobody injected and no row tells of

When each NameServer must have forgotten it is lost_brokers.py's; here nothing is asked for as long as any of them may
not.

A node's wall clock where a timeline has changed it, and which brokers a NameServer may therefore drop.

    wall clock     ───────┐ step by D                 A registration's age is the difference of two readings:
                          └──────────                 D more for all that were taken before the step.
    D > E          every broker is dropped at the next scan, and back at its own next registration
    D > E − R − B  those whose age and D pass E before they register again
    faster         those whose age passes E: none while (R + B)·rate ≤ E
    back, slower   silence is seen later; the channel that is idle for I is closed all the same

Timers, and channels that are idle, go by a clock that nobody steps.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ...remoting.top_addressing import TIMEOUT_S, broker_period_s
from ..faults.fault import Fault as FaultKind
from ..faults.fault import Loss
from ..faults.kinds import recorded
from ..faults.process_faults import Pause
from ..history.schema import list_of, object_of
from .intervals import Stretch, grouped, until_next
from .timers import Timers

if TYPE_CHECKING:
    from .world import World

BY_HAND = "by_hand"
"""How it is `injected` that somebody asked for it (oracle/by_hand.py)."""
WRONG_CLOCK = "clock"
"""How it is `injected` that a node's wall clock is another one."""
OLD_ADDRESS = "old_address"
"""How it is `injected` that a client may be told of an address of before."""
FULL_DISK = "full_disk"
"""How it is `injected` that a broker refuses a producer's messages, for its disk is full."""
STOOD_STILL = "timer_lag"
"""How it is `injected` that the machine did not run a process, as its timers say."""
STALL = "stood-still"
"""What the ids of these faults begin with."""
PROXIES = "toxiproxy"
"""The node whose lateness concerns everybody: every byte goes through it (chaos/faults/proxy_lag.py)."""
OURS = "ours"
"""Who made the nodes, where no row says otherwise."""


class Move(NamedTuple):
    """A node's process has another address than the one before from then on."""

    from_ms: float
    address: str


@dataclass(frozen=True, slots=True)
class NodeInfo:
    name: str
    kind: str
    address: str | None
    implementation: str = OURS
    """Who made the program: ours, or whose and which version."""
    client_profile: str | None = None
    """Of a client under test, or one with rules of its own: by whose it is judged. None: by the run's."""
    dialler: str | None = None
    """Of a client under test: the node whose links are its own."""
    host: str | None = None
    """Where it runs; None where the run has one host."""
    moves: tuple[Move, ...] = ()
    """Its later addresses, in order of time; `address` is the first."""
    unclear: str = ""
    """Of a client under test: why what it does cannot be told from what another one does; "": it can."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every address that it ever has."""
        return tuple(dict.fromkeys(at for at in (self.address, *(move.address for move in self.moves)) if at))

    def address_at(self, at_ms: float) -> str | None:
        """The address of its process then, or, where it has none, of the one before."""
        return next((move.address for move in reversed(self.moves) if move.from_ms <= at_ms), self.address)

    @property
    def is_ours(self) -> bool:
        return self.implementation == OURS

    @property
    def is_under_test(self) -> bool:
        """Whether it is a program of somebody else, seen from outside."""
        return self.dialler is not None


@dataclass(frozen=True, slots=True)
class Life:
    """One process of a node: from the moment it was started until it ended (inf: it did not)."""

    node: str
    incarnation: int
    start_ms: float
    end_ms: float

    @property
    def process(self) -> tuple[str, int]:
        return self.node, self.incarnation


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a process (`target` None) or of a directed link, `source` being the one that dials."""

    fault_id: str
    fault: str
    injection: str
    source: str
    target: str | None
    stream: str | None
    start_ms: float
    end_ms: float
    value: Mapping[str, Any] = field(default_factory=dict)
    heal_asked_ms: float | None = None
    """When its end was asked for, which `end_ms` says was complete; None where nobody recorded it."""
    gone_ms: float | None = None
    """When the process that it ended was gone, with its connections; None where nobody recorded it."""
    began_with: int = field(default=0, compare=False)
    ended_with: int = field(default=0, compare=False)
    """Which of the timeline's actions began it, and which ended it: a heal may end a part of its links only."""
    ended_by_others: bool = False
    """Whether the process ran again before the harness resumed it."""
    lossy_from_ms: float | None = None
    """Since when its link has lost packets in turn, where it is not the first; see `in_series`."""
    kind: FaultKind = field(init=False, repr=False, compare=False)
    """What it is, known again by its injection."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", recorded(self.fault, self.injection, self.stream, self.value))

    def loss(self, timers: Timers) -> Loss:
        return self.kind.loss(timers)

    def harmless(self, timers: Timers) -> bool:
        """Whether it is far from every time-out, so that no rule asks for it."""
        return self.loss(timers) is Loss.HARMLESS

    def overlaps(self, from_ms: float, to_ms: float) -> bool:
        """Whether it may be in force at some time of these."""
        return self.begins_from_ms < to_ms and self.end_ms > from_ms

    @property
    def begins_from_ms(self) -> float:
        """From when on it may be in force: its row comes when it is complete, which was asked for before."""
        return min(self.start_ms, float(self.value.get("asked_ms", self.start_ms)))

    @property
    def heals_from_ms(self) -> float:
        """From when on it may be over: an end takes from its asking until it is complete."""
        return self.end_ms if self.heal_asked_ms is None else min(self.heal_asked_ms, self.end_ms)

    @property
    def lost_for_ms(self) -> float:
        """For how long its link has lost packets when it ends."""
        return self.end_ms - (self.start_ms if self.lossy_from_ms is None else self.lossy_from_ms)

    @property
    def by_hand(self) -> bool:
        """Whether somebody asked for it (oracle/by_hand.py), or it follows (`old_addresses`), and nothing failed."""
        return self.injection in (BY_HAND, WRONG_CLOCK, OLD_ADDRESS, FULL_DISK)

    @property
    def stood_still(self) -> bool:
        """Whether nobody did it: the machine did not run the process."""
        return self.injection == STOOD_STILL

    @property
    def injected(self) -> bool:
        """Whether the harness injected it."""
        return not self.by_hand and not self.stood_still

    @property
    def ends_process(self) -> bool:
        """Whether the process is gone afterwards, and does not merely stand still."""
        return self.target is None and self.kind.ends_process


@dataclass(frozen=True, slots=True)
class Served:
    """What the address server answers with from then on; -inf for its first list."""

    from_ms: float
    entries: tuple[str, ...]
    """NameServers by name, and host:port where nobody listens."""
    change_id: str = ""


def served_in(run: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> tuple[Served, ...]:
    """From `served_list` rows."""
    if not run.get("name_server_list"):
        return ()
    later = [
        Served(float(row["time_ms"]), tuple(list_of(row.get("value"))), str(row.get("fault_id") or "")) for row in rows
    ]
    return (Served(-math.inf, tuple(run["name_server_list"])), *later)


def nodes_in(rows: Iterable[Mapping[str, Any]]) -> dict[str, NodeInfo]:
    """By name, as the last `node` row says of each; an address after the first is where it moved."""
    found: dict[str, NodeInfo] = {}
    for row in rows:
        now, before = node_of(row), found.get(str(row["source"]))
        if before is not None and before.address and now.address:
            moves = before.moves
            if now.address != (moves[-1].address if moves else before.address):
                moves = (*moves, Move(float(row["time_ms"]), now.address))
            now = replace(now, address=before.address, moves=moves)
        found[now.name] = now
    return found


def node_of(row: Mapping[str, Any]) -> NodeInfo:
    about = object_of(row.get("value"))
    name, kind = str(row["source"]), str(about.get("kind", ""))
    return NodeInfo(
        name,
        kind,
        row.get("address"),
        str(about.get("implementation") or OURS),
        about.get("client_profile"),
        about.get("dialler"),
        about.get("host"),
        unclear=str(about.get("unclear") or ""),
    )


def in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """By time, and what is at one time by name."""
    return tuple(sorted(faults, key=lambda fault: (fault.start_ms, fault.fault_id, fault.source, fault.target or "")))


def in_series(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults that lose packets, one after the other on a link, are one to a kernel: it waits twice as long each time,
    so it may not have sent again in what lies between two of them, if that is shorter than all before."""
    found, series = [], dict[tuple[str, str | None], tuple[float, float]]()
    for fault in in_order(faults):
        if fault.kind.loses_packets:
            link, since_ms = (fault.source, fault.target), fault.start_ms
            began_ms, ended_ms = series.get(link, (since_ms, since_ms))
            if fault.start_ms - ended_ms <= ended_ms - began_ms:
                since_ms = began_ms
            series[link] = since_ms, max(fault.end_ms, ended_ms)
            fault = fault if since_ms == fault.start_ms else replace(fault, lossy_from_ms=since_ms)
        found.append(fault)
    return tuple(found)


def shared_by_dialler(faults: Sequence[Fault], nodes: Iterable[NodeInfo]) -> tuple[Fault, ...]:
    """The faults, and those of each client's links that are called by its dialler's name, under its own."""
    clients = [node for node in nodes if node.dialler is not None and node.dialler != node.name]
    links = [fault for fault in faults if fault.target is not None]
    own = (replace(f, source=client.name) for client in clients for f in links if f.source == client.dialler)
    return in_order((*faults, *own))


def faults_in(rows: Sequence[Mapping[str, Any]]) -> tuple[Fault, ...]:
    """Each `start` row until the next row of its fault_id, source and target, when that is an `end` row."""
    changes: dict[tuple[Any, ...], list[tuple[Mapping[str, Any], int]]] = defaultdict(list)
    """The rows of each, and how many of the timeline's actions had begun."""
    actions = 0
    for row in rows:
        actions += row["event"] == "phase"
        if row["event"] == "fault":
            changes[row.get("fault_id"), row["source"], row.get("target")].append((row, actions))
    gone = [row for row in rows if row["event"] == "gone"]
    found: list[Fault] = []
    for (fault_id, source, target), of in changes.items():
        for (row, began_with), (after, ended_with) in pairwise([*of, ({}, actions)]):
            if row.get("phase") != "start":
                continue
            is_ended = after.get("phase") == "end"
            start_ms, end_ms = row["time_ms"], float(after["time_ms"]) if is_ended else math.inf
            asked_ms = object_of(after.get("value")).get("asked_ms") if is_ended else None
            gone_ms = (
                one["time_ms"]
                for one in gone
                if (one.get("fault_id"), one["source"]) == (fault_id, source) and start_ms <= one["time_ms"] <= end_ms
            )
            found.append(
                Fault(
                    fault_id=fault_id or "",
                    fault=row.get("fault") or "",
                    injection=row.get("injection") or "",
                    source=source,
                    target=target,
                    stream=row.get("stream"),
                    start_ms=float(start_ms),
                    end_ms=end_ms,
                    value=object_of(row.get("value")),
                    heal_asked_ms=None if asked_ms is None else float(asked_ms),
                    gone_ms=next(gone_ms, None),
                    began_with=began_with,
                    ended_with=ended_with,
                )
            )
    return in_order(found)


def as_long_as_they_held(faults: Sequence[Fault], lags: Iterable[Mapping[str, Any]], timers: Timers) -> Iterator[Fault]:
    """The faults; a pause ends where its process wrote `timer_lag` rows again, behind the longest time without such a
    row: somebody else resumed the process (`kill -CONT`, a debugger, a container's unpause). Rows before that time say
    that the process went on a little, as a busy machine lets it."""
    paused = {fault.source for fault in faults if isinstance(fault.kind, Pause)}
    rows = grouped((row["node"], float(row["time_ms"])) for row in lags if row["node"] in paused)
    for fault in faults:
        if isinstance(fault.kind, Pause):
            until_ms = fault.heals_from_ms - timers.delivery_ms
            ran = sorted(ms for ms in rows.get(fault.source, ()) if fault.start_ms + timers.delivery_ms < ms < until_ms)
            silences = pairwise((fault.start_ms, *ran, fault.end_ms))
            end_ms = max(silences, key=lambda silence: silence[1] - silence[0])[1]
            fault = replace(fault, end_ms=end_ms, ended_by_others=end_ms < fault.end_ms)
        yield fault


def stalls_in(rows: Iterable[Mapping[str, Any]], world: World) -> Iterator[Fault]:
    """When a process stood still, by its `timer_lag` rows, for so long that what it asked, and was asked, may time out.

    It did not run from when its timer was due until the timer fired. While Toxiproxy stood still, no node heard
    another: to whoever asks, each node stood still. A process that is killed while it stands still
    writes no such row any more: it did not run from its last row on. Left out: what a fault stopped; and rows that
    say how long one thread waited, or how inexact the logs of a server are.
    """
    shortest_ms = stall_ms(world.timers)
    timed = [one.name for one in world.nodes]
    spans: list[tuple[str, float, float]] = []
    last: dict[tuple[str, int], tuple[float, float]] = {}
    for row in rows:
        lag_ms, end_ms, node = float(row.get("lag_ms") or 0.0), float(row["time_ms"]), row["node"]
        process = node, int(row.get("incarnation") or 0)
        last[process] = max(
            last.get(process, (-math.inf, 0.0)), (end_ms, float(row.get("duration_ms") or 0.0) - lag_ms)
        )
        if lag_ms >= shortest_ms and not row.get("f"):
            still = timed if node == PROXIES else (node,)
            spans += [(one, end_ms - lag_ms, end_ms) for one in still]
    killed = {(one.source, one.start_ms) for one in world.faults if one.ends_process}
    for life in world.lives:
        last_ms, step_ms = last.get(life.process, (math.inf, 0.0))
        if (life.node, life.end_ms) in killed and life.end_ms - last_ms - step_ms >= shortest_ms:
            spans.append((life.node, last_ms, life.end_ms))
    number = 0
    for node, start_ms, end_ms in spans:
        paused = (fault for fault in world.process_faults(node) if not fault.ends_process)
        if node in timed and not any(fault.overlaps(start_ms, end_ms) for fault in paused):
            number += 1
            yield Fault(f"{STALL}-{number}", "stand_still", STOOD_STILL, node, None, None, start_ms, end_ms)


LONG_LAG_MS = 200.0
"""Less is no stall, whatever the timers."""


def stall_ms(timers: Timers) -> float:
    """The shortest time in which both ends of a call stand still, so that it may time out; more than "at once"."""
    return max((timers.A_ms - timers.delivery_ms) / 2, timers.delivery_ms, LONG_LAG_MS)


def lives_in(rows: Iterable[Mapping[str, Any]], faults: Sequence[Fault], clocks_ms: float) -> tuple[Life, ...]:
    """Each `started` until `stopped`, the next `started`, or the fault that ended the process, whichever is first.

    A fault ends one process: a restart of what still runs stops one and starts the next in the same moment. By clocks
    that are `clocks_ms` apart the next may seem to start before the end of the one before.
    """
    of_node = grouped((row["node"], row) for row in rows if row["event"] in ("started", "stopped"))
    lives: list[Life] = []
    for node, changes in sorted(of_node.items()):
        deaths = sorted(one.start_ms for one in faults if one.ends_process and one.source == node)
        starts = [*(float(row["time_ms"]) for row in changes if row["event"] == "started"), math.inf]
        for row, end_ms in until_next(changes, math.inf, itemgetter("time_ms")):
            if row["event"] != "started":
                continue
            start_ms = starts.pop(0)
            deaths = [at_ms for at_ms in deaths if at_ms >= start_ms]
            if deaths and deaths[0] <= starts[0] + clocks_ms:
                end_ms = min(end_ms, deaths.pop(0))
            lives.append(Life(node, int(row.get("incarnation") or 0), start_ms, float(end_ms)))
    return tuple(lives)


class Moved(NamedTuple):
    """A broker's process at another address than the one before it."""

    broker: str
    before: str
    left_ms: float
    """When the process before it had ended."""
    came_ms: float
    """When it was started."""


def moved(world: World) -> Iterator[Moved]:
    """Every such process, by broker and time."""
    for broker in world.of_kind("broker", "slave"):
        lives = world.lives_of(broker.name)
        for before, move in zip(broker.addresses, broker.moves, strict=False):
            came = next((life.start_ms for life in lives if life.start_ms >= move.from_ms), None)
            if came is not None:
                left_ms = max((life.end_ms for life in lives if life.start_ms < came), default=came)
                yield Moved(broker.name, before, min(left_ms, came), came)


def old_addresses(world: World) -> Iterator[Fault]:
    """The faults that old addresses are to clients."""
    for of in moved(world):
        about = f"{of.broker} at {of.before}", "old address", OLD_ADDRESS
        for client in world.of_kind("producer", "consumer", "prober"):
            untils = [_named_until(world, of, server.name) for server in world.listed(client.name)]
            until_ms = max((until_ms for until_ms in untils if until_ms is not None), default=None)
            if until_ms is not None:
                yield Fault(*about, client.name, of.broker, None, of.came_ms, until_ms)


def _named_until(world: World, of: Moved, name_server: str) -> float | None:
    """Until when this NameServer may name the old address; None if nothing kept it from hearing of the end of the
    process there, or of the new one."""
    timers = world.timers_of(of.broker, name_server)
    soon_ms = of.came_ms + timers.R_ms + timers.C_ms
    hit = [*world.link_faults(of.broker, name_server), *world.process_faults(name_server)]
    hit = [fault for fault in hit if fault.overlaps(of.left_ms - timers.R_ms, soon_ms) and not world.harmless(fault)]
    if not hit:
        return None
    runs_ms = max((fault.end_ms for fault in hit if fault.target is None), default=of.left_ms)
    return max(of.left_ms + timers.E_ms, runs_ms) + timers.S_ms + timers.R_ms + timers.C_ms


class ClockChange(NamedTuple):
    """From then on the node's wall clock is `offset_ms` ahead, and goes `rate` times as fast."""

    change_id: str
    node: str
    time_ms: float
    offset_ms: float
    rate: float
    step_ms: float


def changes_of(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Sequence[ClockChange]]:
    """By node, in order of time, from `clock` rows."""
    found: dict[str, list[ClockChange]] = {}
    for row in rows:
        node, value, at_ms = str(row.get("source")), object_of(row.get("value")), float(row["time_ms"])
        before = found.setdefault(node, [])
        was_ms = _offset_ms(before, at_ms)
        step_ms = value.get("step_ms")
        step_ms = -was_ms if step_ms is None else float(step_ms)
        change_id = row.get("fault_id") or ""
        before.append(ClockChange(change_id, node, at_ms, was_ms + step_ms, float(value.get("rate", 1.0)), step_ms))
    return found


def _offset_ms(changes: Sequence[ClockChange], at_ms: float) -> float:
    last = next((one for one in reversed(changes) if one.time_ms <= at_ms), None)
    return 0.0 if last is None else last.offset_ms + (at_ms - last.time_ms) * (last.rate - 1)


def wall_ms(changes: Sequence[ClockChange], at_ms: float) -> float:
    """What a clock with these changes shows, which showed the time itself before the first of them."""
    return at_ms + _offset_ms(changes, at_ms)


def wrong_times(world: World, clocks: Mapping[str, Sequence[ClockChange]]) -> Iterator[Fault]:
    """When nobody knows whether a NameServer with these clocks holds a broker: faults of the broker's link."""
    for server in world.of_kind("name_server"):
        for broker in world.of_kind("broker", "slave"):
            timers, changes = world.timers_of(broker.name, server.name), clocks.get(server.name, ())
            for number, change in enumerate(changes):
                until_ms = changes[number + 1].time_ms if number + 1 < len(changes) else world.end_ms
                after_ms = _held_again_ms(changes[: number + 1], until_ms, timers)
                for begin_ms, over_ms in _unheard(world, broker.name, server.name):
                    if begin_ms < until_ms + timers.E_ms and over_ms > change.time_ms - timers.E_ms:
                        after_ms = max(after_ms, min(over_ms, world.end_ms))
                if after_ms > change.time_ms:
                    f = change.change_id.rpartition("-")[0] or "clock"
                    at = broker.name, server.name, None, change.time_ms, after_ms
                    yield Fault(change.change_id, f, WRONG_CLOCK, *at)


def _unheard(world: World, broker: str, name_server: str) -> Iterator[tuple[float, float]]:
    """From when to when the NameServer may not hear of the broker: faults of the way, and served lists without it, each
    to when the broker has fetched the next list."""
    yield from ((fault.start_ms, fault.end_ms) for fault in world.way_faults(broker, name_server))
    if world.asks_for_list(broker):
        fetched_ms = 1000 * (broker_period_s(world.timers.profile) + TIMEOUT_S)
        for served, later in zip(world.served, [*world.served[1:], None], strict=True):
            if name_server not in served.entries:
                yield served.from_ms, later.from_ms + fetched_ms if later else world.end_ms


def not_ready(world: World, clocks: Mapping[str, Sequence[ClockChange]]) -> Iterator[Fault]:
    """When a NameServer with these clocks, set back, waits for service again (needWaitForService) and answers clients'
    look-ups with code 1: faults of the clients' links."""
    for server in world.of_kind("name_server"):
        wait_ms, changes = world.timers_of(server.name).W_ms, clocks.get(server.name, ())
        if wait_ms is None:
            continue
        for life, change in product(world.lives_of(server.name), changes):
            age_ms = wall_ms(changes, change.time_ms) - wall_ms(changes, life.start_ms)
            if life.start_ms < change.time_ms < life.end_ms and age_ms < wait_ms and change.step_ms < 0:
                back = (one.time_ms for one in changes if one.time_ms > change.time_ms and one.step_ms > 0)
                until_ms = min(*back, life.end_ms, change.time_ms + (wait_ms - age_ms) / min(change.rate, 1.0))
                for client in world.of_kind("producer", "consumer", "prober"):
                    at = client.name, server.name, None, change.time_ms, until_ms
                    yield Fault(change.change_id, "clock", WRONG_CLOCK, *at)


def _held_again_ms(changes: Sequence[ClockChange], until_ms: float, timers: Timers) -> float:
    """When a NameServer is sure to hold its brokers after the last of these changes, which is in force until then; the
    time of that change itself where it cannot drop any."""
    last, age_ms = changes[-1], timers.R_ms + timers.B_ms
    lately = [one for one in changes if one.time_ms > last.time_ms - age_ms]
    fastest = max(1.0, *(one.rate for one in lately))
    if sum(max(one.step_ms, 0.0) for one in lately) + age_ms * fastest <= timers.E_ms:
        return last.time_ms
    if last.step_ms > timers.E_ms and fastest == 1.0:
        return last.time_ms + timers.S_ms + timers.delivery_ms
    return (until_ms if age_ms * last.rate > timers.E_ms else last.time_ms) + age_ms + timers.S_ms


class FullDisk(NamedTuple):
    """A broker's disk is full: surely in `surely`, and at most in `perhaps`, which has the harness's requests, too."""

    broker: str
    act_ids: tuple[str, ...]
    """Of what filled the disk, and of what freed it."""
    surely: Stretch
    perhaps: Stretch


def full_disks_in(rows: Iterable[Mapping[str, Any]], end_ms: float) -> tuple[FullDisk, ...]:
    """In order of time, from `disk` rows."""
    filled: dict[str, tuple[str, float, float]] = {}
    found = []
    for row in rows:
        broker, act_id = str(row["source"]), str(row["fault_id"])
        asked_ms, at_ms = float(object_of(row.get("value"))["asked_ms"]), float(row["time_ms"])
        if row["f"] == "fill_disk":
            filled.setdefault(broker, (act_id, asked_ms, at_ms))
        elif broker in filled:
            by, from_ms, full_ms = filled.pop(broker)
            found.append(FullDisk(broker, (by, act_id), Stretch(full_ms, asked_ms), Stretch(from_ms, at_ms)))
    for broker, (by, from_ms, full_ms) in filled.items():
        found.append(FullDisk(broker, (by,), Stretch(full_ms, end_ms), Stretch(from_ms, end_ms)))
    return tuple(sorted(found, key=lambda one: one.perhaps))


def refuse_producers(world: World) -> Iterator[Fault]:
    """The faults that full disks are to producers."""
    for disk in world.full_disks:
        for producer in world.of_kind("producer"):
            yield Fault(disk.act_ids[0], "fill_disk", FULL_DISK, producer.name, disk.broker, None, *disk.perhaps)
