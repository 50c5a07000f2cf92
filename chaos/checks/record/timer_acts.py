"""Common parts of the checks of timers: one act of a timer with its measured and allowed time, and the findings of all
acts.

from ──── earliest ════ latest ────►        measured is early before the one, late after the other
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ...faults.fault import Loss
from ...oracle.intervals import grouped
from ...oracle.link import Stops, Troubles, leave_ms
from ...oracle.queue_owners import node_of_client
from ...oracle.recorded import Life
from ...oracle.time_outs import OFFSET_CALL_MS, look_up
from ...oracle.timers import Act
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Done, Rule, counted, finding, of_done
from ..tolerance import Tolerance, tolerance
from .control import Control, Row, once
from .known_brokers import MASTER_ID
from .lateness import may_time_out

LEAVE = "unregister"
_Brokers = Mapping[str, Mapping[str, str]]
"""Broker name → id → address, of one route."""


class Run(NamedTuple):
    """One run of a task."""

    began_ms: float
    ended_ms: float
    row: Row

    @property
    def value(self) -> Mapping[str, Any]:
        """The object of its row; empty without any."""
        value = self.row.decoded
        return value if isinstance(value, dict) else {}


@once
def by_process(control: Control, event: str) -> Mapping[tuple[str, int], Sequence[Run]]:
    of = control.by_process(event).items()
    return {process: [Run(row.began_ms, row.time_ms, row) for row in rows] for process, rows in of}


@once
def of_client(control: Control, event: str) -> Mapping[str, Sequence[Row]]:
    """Client to such rows of brokers about it."""
    return grouped((node_of_client(row), row) for row in control.rows(event))


@once
def _at_brokers(control: Control, client: str, event: str) -> Mapping[str, Sequence[float]]:
    return grouped((row.node, row.time_ms) for row in of_client(control, event).get(client, ()))


class Process(Stops):
    """One process, its settings, what held it up, and what is found of its timers."""

    def __init__(self, control: Control, world: World, life: Life, kind: str) -> None:
        super().__init__(world, life)
        self.control, self.kind = control, kind
        self.process = life.process
        # A client whose start failed is made anew within its process: each takes its list and begins its tasks.
        rows = control.by_process("name_server_list").get(self.process, ())
        lists = (row.time_ms for row in rows if row.f is None)  # one with f was fetched in mid-run
        self.start_ms = max((*lists, life.start_ms)) if kind in ("producer", "consumer") else life.start_ms
        self.troubles = Troubles(world, life.node)
        self.name_servers = [node.name for node in world.of_kind("name_server")]
        self.brokers = [node.name for node in world.of_kind("broker", "slave")]
        self.end_ms = min(life.end_ms, world.end_ms)
        crashes = [f for f in world.process_faults(life.node) if f.loss(world.timers) is Loss.CRASH]
        # A crash of the moment in which it had stopped is of the next process.
        is_crashed = any(f.start_ms == life.end_ms for f in crashes) and not control.by_process("stopped").get(
            self.process
        )
        if life.end_ms < world.end_ms and not is_crashed:
            self.end_ms -= leave_ms(world) + self.timers.A_ms * len(self.brokers)  # it stops in peace
        measured = control.lateness.of_node.get(life.node)
        if life.end_ms >= world.end_ms and measured is not None and len(measured.until):
            self.end_ms = min(self.end_ms, float(measured.until[-1]))  # a history that grows has no more of it yet

    @property
    def near_ms(self) -> float:
        """How far apart two nodes' rows of one thing may be."""
        return self.timers.delivery_ms + self.timers.clocks_ms

    def rows(self, event: str) -> Sequence[Run]:
        """Those that this process wrote."""
        return by_process(self.control, event).get(self.process, ())

    def runs_of(self, task: str) -> Sequence[Run]:
        """The runs of a task of its (`scheduled_task`)."""
        return [run for run in self.rows("scheduled_task") if run.row.f == task]

    def within(self, at_ms: Sequence[float], from_ms: float, to_ms: float) -> bool:
        """Whether one of these times, ascending, is in that time, by the clock of another host, too."""
        index = bisect_left(at_ms, from_ms - 1.0 - self.timers.clocks_ms)
        return index < len(at_ms) and at_ms[index] <= to_ms

    @cached_property
    def named(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Address → from when until when some route that it had named it; ascending."""
        return self.spans(lambda routes: {at for brokers in routes for ids in brokers.values() for at in ids.values()})

    @cached_property
    def told(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """The same of those that its heartbeats go to, a producer's to masters alone.

        Its table has a broker name's addresses of the route that it took last of those that named it
        (`MQClientInstance.brokerAddrTable`); a route taken anew, but not changed, leaves no row. So those that this
        route and each of its present routes have.
        """
        last: dict[str, Mapping[str, str]] = {}
        return self.spans(lambda routes: self.addresses(routes, last), last)

    def addresses(self, routes: Collection[_Brokers], last: _Brokers | None = None) -> set[str]:
        """Those that its heartbeats go to: of each broker name what its routes, and the last that named it, agree
        on."""
        named = ((name, ids) for brokers in routes for name, ids in brokers.items())
        by_name = grouped((name, ids.items() & (last or {}).get(name, ids).items()) for name, ids in named)
        agreed = (one for those in by_name.values() for one in set.intersection(*those))
        return {address for id_, address in agreed if self.kind == "consumer" or id_ == MASTER_ID}

    def spans(
        self, addresses: Callable[[Collection[_Brokers]], set[str]], last: dict[str, Mapping[str, str]] | None = None
    ) -> Mapping[str, list[tuple[float, float]]]:
        """`last` gets each broker name's addresses as the route that was taken last had them."""
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        since: dict[str, float] = {}
        routes: dict[str, _Brokers] = {}
        for run in self.rows("route_changed"):
            taken = routes[run.row.topic] = run.value.get("brokers") or {}
            if last is not None:
                last |= taken
            now = addresses(routes.values())
            for address in now - since.keys():
                since[address] = run.ended_ms
            for address in since.keys() - now:
                found[address].append((since.pop(address), run.ended_ms))
        for address, start_ms in since.items():
            found[address].append((start_ms, math.inf))
        return found

    # -- rounds of a rebalance

    @cached_property
    def queues(self) -> set[tuple[str, str, int]]:
        """Broker, topic and id of every queue that the process ever held."""
        taken = (run.row for run in self.rows("queue_taken"))
        return {(row.broker_name, row.topic, row.queue_id) for row in taken}

    @cached_property
    def calls_of_a_round(self) -> int:
        """Of each topic the members are asked for, then one queue after the other. A consumer subscribes to its retry
        topic, too."""
        topics = {topic for _, topic, _ in self.queues} | {run.row.topic for run in self.rows("route_changed")}
        return max(len(topics), 2) + len(self.queues)

    @cached_property
    def lock_ms(self) -> float:
        """How long a look-up waits for its turn."""
        return self.world.number(self.life.node, "lockTimeoutMillis")

    def round_runs_out_ms(self, from_ms: float, to_ms: float) -> float:
        """How much longer a round of then may take beside a fault: each of its calls looks an address up and runs out,
        of a new queue both its offset and the newest."""
        if not self.troubles.among([*self.name_servers, *self.brokers], from_ms, to_ms):
            return 0.0
        look_up_ms = self.lock_ms + look_up(self.world, self.life.node, len(self.name_servers)).ms
        return self.calls_of_a_round * (look_up_ms + self.timers.A_ms + OFFSET_CALL_MS)

    def at_brokers(self, event: str) -> Mapping[str, Sequence[float]]:
        """When each broker of ours wrote such a row of this client, `client_heartbeat` or `client_gone`."""
        return _at_brokers(self.control, self.life.node, event)

    def finding(self, task: str, kind: str, row: str, acts: Iterable[Act], *, of: str = "") -> Iterator[Finding]:
        """One of all acts of a timer; measured is the worst that was out of time by the same formula as the first that
        was (drift adds up: the first shows it best), else the one nearest to it. `of`: of which node, where that is
        another."""
        judged = [(act, self.tolerance(act)) for act in acts]
        if not judged:
            return
        marks = [counted(act.over_ms, tolerance_) for act, tolerance_ in judged]
        wrong, late = sum(mark["wrong"] for mark in marks), sum(mark["late"] for mark in marks)
        named = "wrong" if wrong else "late" if late else None
        if named:
            out_of_time = [one for one, mark in zip(judged, marks, strict=True) if mark[named]]
            alike = [one for one in out_of_time if one[0].formula == out_of_time[0][0].formula]
            act, tolerance_ = max(alike, key=lambda one: round(one[0].over_ms, -2))
        else:
            act, tolerance_ = max(judged, key=lambda one: _margin_ms(one[0]))
        out = bool(wrong or late)
        yield finding(
            (of or self.life.node, task),
            kind,
            (act.from_ms, self.end_ms),
            Rule(row, act.formula, act.latest_ms, earliest_ms=act.earliest_ms),
            out=(min(act.at_ms, act.due_ms), max(act.at_ms, act.due_ms)) if out else None,
            tolerance=tolerance_,
            measured_ms=act.measured_ms,
            over_ms=act.over_ms,
            examined=len(judged),
            wrong=wrong,
            late=late,
            more={"never": True} if act.missing else {},
        )

    def done(
        self, what: str, kind: str, row: str, every: Iterable[Done], *, of: str = "", **more: Any
    ) -> Iterator[Finding]:
        """One of all that the process did; `of`: which node did it, where that is another."""
        about, span = (of or self.life.node, what), (self.start_ms, self.end_ms)
        return of_done(about, kind, row, sorted(every), span=span, **more)

    def of_brokers(self, kind: str, row: str, every: Iterable[tuple[str, Done]]) -> Iterator[Finding]:
        """One of each broker, of what the broker told this client."""
        for broker, done in grouped(every).items():
            yield from of_done((broker, self.life.node), kind, row, done)

    def wait(self, from_ms: float, to_ms: float, wait_ms: float, formula: str) -> Act:
        """From then until then, which has to be that long: pauses alone make it longer."""
        return Act(from_ms, to_ms - from_ms, wait_ms, self.after_pauses(from_ms + wait_ms) - from_ms, formula)

    def never(self, from_ms: float, wait_ms: float, formula: str) -> Iterator[Act]:
        """What had not come at the end of the process; nothing if it need not have come yet."""
        act = self.wait(from_ms, self.end_ms, wait_ms, formula)._replace(earliest_ms=None, missing=True)
        if act.over_ms > 0:
            yield act

    def leave(
        self,
        gone: Iterable[tuple[Row, str]],
        peers: Collection[str],
        row: str,
        kind: str = "unregisters everywhere",
        *,
        of: str = "",
    ) -> Iterator[Finding]:
        """Of a process that stopped in order: whether these peers say of its end that it unregistered, or only that its
        channel ended. `gone`: their rows about it, and how it went; of another process nobody looks at these rows.
        `of`: whose doing it is, where it is another's."""
        from_ms, to_ms = max(self.end_ms, self.life.start_ms), self.life.end_ms + self.timers.delivery_ms
        if not self.rows("stopped") or not from_ms < to_ms < self.world.end_ms or self.held(from_ms, to_ms):
            return
        lag_ms = self.control.lateness.largest(self.world, (self.life.node, *peers), from_ms, to_ms)
        if lag_ms is None or may_time_out(self.timers, lag_ms, self.timers.A_ms):
            return
        troubled = self.troubles.among(peers, from_ms - self.timers.R_ms, to_ms)
        left = {  # of each peer how it went last: when the stop began, nobody recorded
            one.node: Done(one.time_ms, how == "unregistered")
            for one, how in gone
            if one.node in peers and one.node not in troubled and from_ms <= one.time_ms <= to_ms
            if how in ("unregistered", "closed")
        }
        about = of or self.life.node, LEAVE
        yield from of_done(about, kind, row, left.values(), span=(from_ms, to_ms), to_ms=to_ms)

    def tolerance(self, act: Act) -> Tolerance:
        """By how late its timers were around its own time, and around the one that it counts from."""
        node, delivery_ms = self.life.node, self.timers.delivery_ms
        if act.over_ms <= delivery_ms:
            return tolerance(self.timers, 0.0, 1)
        latest_ms = min(act.from_ms + act.latest_ms, act.at_ms)
        asked = [(node, at_ms - delivery_ms, at_ms + delivery_ms) for at_ms in (act.from_ms, latest_ms)]
        asked += [(node, at_ms, act.at_ms) for at_ms in (latest_ms, act.since_ms) if at_ms is not None]
        asked += [(peer, act.from_ms, act.at_ms) for peer in act.peers]
        lags = [self.control.lateness.largest(self.world, [who], *span) for who, *span in asked]
        return tolerance(self.timers, max((lag for lag in lags if lag is not None), default=None), 1 + act.calls)


def _margin_ms(act: Act) -> float:
    short_ms = -math.inf if act.earliest_ms is None else act.earliest_ms - act.measured_ms
    return max(act.measured_ms - act.latest_ms, short_ms)
