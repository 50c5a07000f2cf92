"""How late each node's timers were, and when: what the nodes and the harness measured, for any window at once.

Each node records how late its own timers fired (`timer_lag`), and the harness how late Toxiproxy is, through which all
bytes go. A process that a fault ends measures nothing any more: how long it took to be gone (`gone`) counts as its
lateness. Rows of a node that was paused are no measure of the machine: they are left out, up to one second past its
resume. A process that the machine did not run for long (`Fault.stood_still`) was paused to whoever asks what it had
then; its lateness counts all the same. One that stood still for half of a window or longer, in however many pieces, was
late by all of the window: what takes several steps meets a piece at each, and a row has only the largest piece of its
second, so that the pieces added up are less than what the process stood still.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....remoting.node.profile import Profile
from ...arrow import Floats, np
from ...oracle.intervals import Stretch, grouped
from ...oracle.link import RESUME_GRACE_MS
from ...oracle.recorded import PROXIES
from ...oracle.windows import Timers
from ...oracle.world import World, once
from ..tolerance import Tolerance, tolerance

DYING_MS = 1000.0
_ASKED_MS = 3_000.0


@dataclass(frozen=True, slots=True)
class Measurements:
    """One node's measurements in order of their ends: each is about [since, until]."""

    since: Floats
    until: Floats
    lag_ms: Floats

    def but(self, spans: Iterable[tuple[float, float]]) -> Measurements:
        """Those that overlap none of the spans."""
        counts = np.full(len(self.lag_ms), True)
        for from_ms, to_ms in spans:
            counts &= ~((self.since < to_ms) & (self.until > from_ms))
        return self if counts.all() else Measurements(self.since[counts], self.until[counts], self.lag_ms[counts])

    def within(self, from_ms: float, to_ms: float) -> Floats:
        """The lateness of each that reaches into [from_ms, to_ms]."""
        return self.lag_ms[(self.until >= from_ms) & (self.since <= to_ms)]

    def latest(self, from_ms: float, to_ms: float) -> float | None:
        """The largest lateness of those that reach into [from_ms, to_ms]; its length where several cover half of it;
        None without any."""
        first = int(np.searchsorted(self.until, from_ms, side="left"))
        # Measurements of a node follow each other, but one may have been made while another was: look at all that end
        # later, as long as any of them can have begun in time.
        within = self.since[first:] <= to_ms
        found = self.lag_ms[first:][within]
        if not len(found):
            return None
        largest_ms, length_ms = float(found.max()), to_ms - from_ms
        if largest_ms < length_ms <= 2 * found.sum():
            covered_ms = _covered(self.until[first:][within], found, from_ms, to_ms)
            return length_ms if covered_ms > largest_ms and 2 * covered_ms >= length_ms else largest_ms
        return largest_ms


@dataclass(frozen=True, slots=True, eq=False)
class Lateness:
    """All measurements of a history, by node."""

    of_node: Mapping[str, Measurements] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_columns(cls, nodes: Sequence[str], since: Floats, until: Floats, lag_ms: Floats) -> Lateness:
        """From columns of equal length, one entry a measurement."""
        names, places = np.unique(np.array(nodes, dtype=object).astype(str), return_inverse=True)
        table = np.stack([until, since, lag_ms], axis=1) if len(nodes) else np.empty((0, 3))
        return cls({str(name): _measurements(table[places == place]) for place, name in enumerate(names)})

    def with_stalls(self, world: World) -> Lateness:
        """The same, and how long killed processes had stood still, which they did not live to write (`stalls_in`)."""
        of_node = dict(self.of_node)
        for fault in world.faults:
            known = of_node.get(fault.source)
            if fault.stood_still and known is not None and known.latest(fault.end_ms, fault.end_ms) is None:
                more = np.array([[fault.end_ms, fault.start_ms, fault.end_ms - fault.start_ms]])
                of_node[fault.source] = _measurements(
                    np.concatenate([np.stack([known.until, known.since, known.lag_ms], axis=1), more])
                )
        return Lateness(of_node)

    def stood_still(self, node: str, shortest_ms: float) -> list[Stretch]:
        """When the node stood still for so long, or longer, by its own measurements."""
        if node not in self.of_node:
            return []
        of = self.of_node[node]
        return [Stretch(end - lag, end) for end, lag in zip(of.until, of.lag_ms, strict=True) if lag >= shortest_ms]

    def largest(self, world: World, nodes: Iterable[str], from_ms: float, to_ms: float) -> float | None:
        """The largest lateness, in RocketMQ milliseconds, of these nodes and of Toxiproxy in that time; None if none of
        the nodes measured it."""
        lags = (self._of_one(world, node, from_ms, to_ms) for node in nodes)
        return max((lag_ms for lag_ms in lags if lag_ms is not None), default=None)

    def tolerance(self, world: World, nodes: Iterable[str], from_ms: float, to_ms: float, chained: int) -> Tolerance:
        """The tolerance of a window in that time whose formula chains so many timers of these nodes."""
        return tolerance(world.timers, self.largest(world, nodes, from_ms, to_ms), chained)

    def _of_one(self, world: World, node: str, from_ms: float, to_ms: float) -> float | None:
        of_node = self._counted(world)
        own = of_node[node].latest(from_ms, to_ms) if node in of_node else None
        ends = [one for one in world.process_faults(node) if one.ends_process and from_ms <= one.start_ms <= to_ms]
        if own is None and not any(fault.gone_ms is not None for fault in ends):
            return None  # what nobody measured at the node itself is not measured
        proxies = of_node[PROXIES].latest(from_ms, to_ms) if PROXIES in of_node else None
        lag_ms = max(own or 0.0, proxies or 0.0)
        for fault in ends:
            if fault.gone_ms is not None:
                lag_ms = max(lag_ms, fault.gone_ms - fault.start_ms)
            else:  # nobody recorded it: the latest of all nodes in the second that followed stands for it
                lag_ms = max(lag_ms, self._of_anybody(world, of_node, fault.start_ms))
        return lag_ms

    def _of_anybody(self, world: World, of_node: Mapping[str, Measurements], at_ms: float) -> float:
        found = (of_node[n.name].latest(at_ms, at_ms + DYING_MS) for n in world.nodes if n.name in of_node)
        return max((lag_ms for lag_ms in found if lag_ms is not None), default=0.0)

    @once
    def _counted(self, world: World) -> Mapping[str, Measurements]:
        """Without what paused nodes measured."""
        pauses = grouped((f.source, (f.start_ms, f.end_ms + RESUME_GRACE_MS)) for f in world.pauses())
        return {node: of.but(pauses.get(node, ())) for node, of in self.of_node.items()}

    def explains(self, world: World, nodes: Sequence[str], from_ms: float, to_ms: float) -> bool:
        """Whether the lateness of these nodes is why a registration was not there for so long: again and again the
        machine stood still as long as a registration waits.

        The broker then gives the registration up and closes its channel, and the NameServer rightly drops it. But the
        next one follows within R, so one stall explains no more than R + B + C: a longer stretch needs another one in
        each.
        """
        timers = world.timers
        period_ms = timers.registers_ms
        periods = max(1, math.ceil((to_ms - from_ms) / period_ms))
        begins = (from_ms + (number - 1) * period_ms for number in range(periods))
        lags = (self.largest(world, nodes, begin_ms, begin_ms + 2 * period_ms) for begin_ms in begins)
        return all(may_time_out(timers, lag_ms, patience_ms(world, *nodes)) for lag_ms in lags)


def _measurements(table: Floats) -> Measurements:
    """until, since, lag_ms a row; in any order."""
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Measurements(table[:, 1].copy(), table[:, 0].copy(), table[:, 2].copy())


def _covered(until: Floats, lag_ms: Floats, from_ms: float, to_ms: float) -> float:
    """How much of [from_ms, to_ms] the process stood still: each measurement says it of its last `lag_ms`."""
    covered_ms, reached_ms = 0.0, from_ms
    for began_ms, ended_ms in sorted(zip(until - lag_ms, until, strict=True)):
        covered_ms += max(min(ended_ms, to_ms) - max(began_ms, reached_ms), 0.0)
        reached_ms = max(reached_ms, ended_ms)
    return float(covered_ms)


def patience_ms(world: World, *nodes: str) -> float:
    """How long a call of these nodes waits until its channel to a NameServer is closed: a registration B; what Apache's
    5.x brokers ask the one that they have chosen each 5 s (106, 901), 3 s."""
    is_apaches = world.timers.profile is Profile.V5_X and any(
        not world.is_ours(node.name) for node in world.of_kind("broker", "slave") if node.name in nodes
    )
    return min(_ASKED_MS, world.timers.B_ms) if is_apaches else world.timers.B_ms


def may_time_out(timers: Timers, lag_ms: float | None, patience_ms: float) -> bool:
    """Whether both ends of a healthy pair were together so late that a time-out of `patience_ms` may have run out."""
    return lag_ms is not None and 2 * lag_ms + timers.delivery_ms >= patience_ms
