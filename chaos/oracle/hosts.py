"""What is unknown in a run on several hosts: the error of their clocks, and rows that were not recorded or collected.

    bound known, no larger than what "at once" may take    ─► part of every tolerance (`Timers.clocks_ms`)
    larger, never measured, or the clock jumped            ─► Blind: what depends on that host then is UNKNOWN
    the last rows of a node could not be collected         ─► Blind, from what was collected last until it was lost

The times in a history are corrected already (history/host_clocks.py); this is what remains.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from ..history.host_clocks import Bound, ClockReading, HostClock, reading_of
from ..history.schema import object_of
from .recorded import Fault, NodeInfo


class Blind(NamedTuple):
    """In this time nobody knows what these nodes did, or when."""

    nodes: frozenset[str]
    from_ms: float
    to_ms: float
    why: str
    missing: bool = False
    """Whether there are no rows of that time; else there are, and their times may be wrong."""


class Hosts(NamedTuple):
    """What is known of the hosts of a run."""

    clocks_ms: float
    """The most by which times of two hosts may be wrong against each other, where nobody is blind; 0: one host."""
    blind: tuple[Blind, ...]


def hosts_in(
    rows: Iterable[Mapping[str, Any]],
    nodes: Sequence[NodeInfo],
    limit_ms: float,
    end_ms: float,
    faults: Iterable[Fault] = (),
) -> Hosts:
    """From `host_clock` and `rows_missing` rows.

    A bound above `limit_ms` is worse than none: it would forgive more than any machine's lateness.
    """
    readings: dict[str, list[ClockReading]] = defaultdict(list)
    missing: dict[tuple[str, str, float], set[str]] = defaultdict(set)
    blind: list[Blind] = []
    for row in rows:
        if row["event"] == "host_clock":
            readings[str(row["source"])].append(reading_of(object_of(row.get("value"))))
        elif row["event"] == "rows_missing":
            value = object_of(row.get("value"))
            since_ms = float(value.get("since_ms") or -math.inf)
            if value.get("until_ms") is not None:
                nodes_, until_ms = frozenset({str(row["source"])}), float(value["until_ms"])
                missing_only = not value.get("reaches")
                blind.append(Blind(nodes_, since_ms, until_ms, str(value.get("says")), missing=missing_only))
                continue
            missing[str(value.get("host")), str(value.get("why")), since_ms].add(str(row["source"]))
    ended = [(fault.source, fault.start_ms) for fault in faults if fault.ends_process and fault.end_ms >= end_ms]
    on: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        if node.host is not None:
            on[node.host].add(node.name)
    for (host, why, since_ms), names in sorted(missing.items()):
        for_good = (min((ms for of, ms in ended if of == name and ms >= since_ms), default=math.inf) for name in names)
        last = "" if math.isinf(since_ms) else "last "
        said = f"the {last}rows of {_names(names)} on {host} are missing: {why}"
        blind.append(Blind(frozenset(names), since_ms, max(for_good), said, missing=True))
    worst = [0.0, 0.0]
    for host, names in sorted(on.items()):
        clock = HostClock.of(readings.get(host, ()))
        bounds = clock.bounds(0.0, end_ms)
        for why, same in groupby(bounds, partial(_why, host, clock, limit_ms)):
            of = [*same]
            if why:
                blind.append(Blind(frozenset(names), of[0].from_ms, of[-1].to_ms, why))
        worst.append(max((one.bound_ms for one in bounds if one.bound_ms <= limit_ms), default=0.0))
    return Hosts(sum(sorted(worst)[-2:]), tuple(blind))


def _why(host: str, clock: HostClock, limit_ms: float, bound: Bound) -> str:
    """Why times of the host are not known then; "" where they are."""
    if bound.bound_ms <= limit_ms:
        return ""
    if not clock.stretches:
        return f"nobody measured the clock of host {host}"
    if math.isinf(bound.bound_ms):
        return f"the clock of host {host} jumped"
    return f"the clock of host {host} is known too badly"


def _names(names: Iterable[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
