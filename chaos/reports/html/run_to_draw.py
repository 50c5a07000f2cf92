"""Prepares one run for report.html: the history in columns, the lanes (plot rows), and where each verdict and example
is shown."""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ....remoting.node.file_names import file_name, of_file_name
from ...checks import CHECKS
from ...checks.cause import guilty_nodes
from ...checks.check import Group
from ...history.schema import object_of
from ...oracle.intervals import grouped
from ...oracle.time_outs import HEARTBEAT
from ...oracle.world import World
from ...scenarios.model import Scenario
from ...topology import node_of_client_id
from ...verdict import Example, Verdict, length, worst
from .. import columns
from ..ci import read_incident
from ..columns import Recorded
from ..cost import Cost
from ..flow import MessageFlow, read_flow
from ..groups import WORST_FIRST
from ..imported import formless
from ..text import all_of
from .canvas import Band
from .found import OF_CHECKS, Place, accused, drawn_on, place_of_example, place_of_verdict, wrongs
from .node_lanes import client_lanes, pair_lanes, queue_lanes
from .run_in_words import Names, by_fault, fault_title
from .stretches import Lane

GUILTY_MAX = 6
"""Most nodes that the first screen names as guilty."""
ROWS_MAX = 120
"""Most lanes of a plot; those with violations come first."""


# -- what nodes wrote into their logs: with WARNING or worse as events of the time line, all around one moment.
#
# A line says the machine's time, or on the virtual clock that of the node; `origin_wall_ms` of the run's beginning is
# what both count from. Without it nobody knows when a line was written, and none is shown.

LINES_MAX = 300
"""Most lines of one node, from its end, because a node in trouble repeats itself."""

TEXT_MAX = 200

BYTES_MAX = 8_000_000
"""Most bytes of one file, from its end."""

NEAR_MS = 2000.0
"""Lines this near to the begin or end of a violation, in RocketMQ time, are shown beside it,"""

NEAR_MAX = 8
"""and at most so many, the nearest."""

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ([A-Z]+) (?:nemesrv\.)?[^:]*: (.*)")

_GRAVE = ("WARNING", "ERROR", "CRITICAL")


class LogLine(NamedTuple):
    time_ms: float
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The facts about a run that the page shows and the history does not have."""

    name: str
    description: str = ""
    seed: int | None = None
    profile: str = ""
    time_scale: float | None = None
    versions: Mapping[str, str] | None = None
    again: str = ""
    """The command that repeats it."""
    explain: str = ""
    """The command that shows which routes each NameServer must have."""
    scenario: Scenario | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The checks that had nothing to examine, and why."""
    cost: Cost | None = None
    """None: no client worked."""


class RunToDraw:
    """A run with its verdicts, ready to be drawn. Times count from the start of the scenario's timeline."""

    def __init__(self, run: Run, verdicts: Sequence[Verdict], run_dir: Path) -> None:
        self.run, self.run_dir = run, run_dir
        self.recorded: Recorded = columns.read(run_dir)
        self.world = World.of_rows(self.recorded.world_rows, last_ms=self.recorded.last_ms)
        timeline_ms = self.recorded.timeline_ms
        since = [v.since_timeline(timeline_ms) for v in verdicts]
        self.verdicts = sorted(since, key=lambda v: WORST_FIRST.index(v.verdict))
        self.overall = worst(v.verdict for v in verdicts)
        self.start_ms = min((life.start_ms for life in self.world.lives), default=0.0)
        self.end_ms = max(self.world.end_ms, self.start_ms + 1)
        self.names = Names(self.world)
        self.lanes: dict[str, list[Lane]] = self._lanes()
        self._logs: dict[str, list[LogLine]] = {}
        self.of_verdict, self.of_examples = self._placed()
        named = {place.lane for place in self.places}
        self.shown = {section: fewer(lanes, named) for section, lanes in self.lanes.items()}

    def _lanes(self) -> dict[str, list[Lane]]:
        recorded, world = self.recorded, self.world
        routes = pair_lanes(recorded, world, self.verdicts)
        clients = client_lanes(recorded, world, self.start_ms)
        own = drawn_on([*routes, *clients], wrongs(self.verdicts, world))
        return {OF_CHECKS: own, "routes": routes, "clients": clients, "queues": queue_lanes(recorded, world)}

    def _placed(self) -> tuple[Mapping[str, Place], Mapping[str, list[Place]]]:
        keys = {lane.key: section for section in (OF_CHECKS, "routes", "clients") for lane in self.lanes[section]}
        return (
            {v.name: place_of_verdict(v, self.world, keys) for v in self.verdicts},
            {
                v.name: [self._evident(v.name, place_of_example(v, e, self.world, keys), e) for e in v.examples]
                for v in self.verdicts
            },
        )

    def _evident(self, check: str, place: Place, e: Example) -> Place:
        """Return the place with what the node logged then, and with the history's evidence: the runs of a timer's task,
        or a wrong answer."""
        if check in CHECKS and CHECKS[check].group is Group.TIMERS:
            place = replace(place, recorded=runs_around(self.recorded, e))
        elif {"came", "due"} <= e.more.keys():
            place = replace(place, recorded=(f"came: {e.more['came']}", f"due:  {e.more['due']}"))
        logs = {
            name: self.run_dir / "logs" / f"{file_name(name)}.log"
            for name in (accused(check, e), e.who, e.what)
            if name
        }
        node = next((name for name, log in logs.items() if log.is_file()), None)
        if node is None or e.from_ms is None:
            return place
        if node not in self._logs:
            self._logs[node] = list(self._lines(logs[node]))
        lines = self._logs[node]
        about = [line for line in lines if any(name in line.text for name in {e.what, e.topic} - {"", node})]
        moments = [e.from_ms, *([] if e.to_ms is None else [e.to_ms])]
        return replace(place, log=tuple(near(about, moments) or near(lines, moments)), logged_by=node)

    @property
    def guilty(self) -> list[tuple[str, str]]:
        """Return at most GUILTY_MAX nodes that broke a guarantee, each with the INVALID checks, the node nearest to the
        cause first."""
        nodes = [(node, ", ".join(checks)) for node, checks in guilty_nodes(self.verdicts).items()]
        more = len(nodes) - GUILTY_MAX
        return nodes[:GUILTY_MAX] + ([(f"{more} more", "see below")] if more > 0 else [])

    @property
    def places(self) -> list[Place]:
        return [*self.of_verdict.values(), *(place for some in self.of_examples.values() for place in some)]

    @cached_property
    def flow(self) -> MessageFlow:
        return read_flow(self.recorded)

    @cached_property
    def logged(self) -> list[dict[str, Any]]:
        """The last LINES_MAX log lines of each node that have level WARNING or worse, within the time that the page
        shows."""
        found: list[dict[str, Any]] = []
        for log in sorted((self.run_dir / "logs").glob("*.log")):
            about = {"node": of_file_name(log.stem), "event": "log"}
            for line in deque(self._lines(log, _GRAVE), maxlen=LINES_MAX):
                if self.start_ms <= line.time_ms <= self.end_ms:
                    found.append({"time_ms": line.time_ms, **about, "type": line.level, "value": _short(line.text)})
        return found

    def _lines(self, log: Path, levels: Collection[str] | None = None) -> Iterator[LogLine]:
        """Return the lines of a node's log; none if nobody knows when they were written."""
        origin_ms, scale = self.world.run.get("origin_wall_ms"), 1.0 if self.virtual else self.scale
        if not isinstance(origin_ms, int | float):
            return
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - BYTES_MAX, 0))
            for line in file:
                found = _LINE.match(line.decode("utf-8", "replace"))
                if found and (levels is None or found[3] in levels):
                    at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S")
                    at = at.replace(tzinfo=UTC) if self.virtual else at.astimezone()
                    at_ms = (at.timestamp() * 1000 + int(found[2]) - origin_ms) * scale - self.recorded.timeline_ms
                    yield LogLine(at_ms, found[3], found[4].rstrip())

    @property
    def virtual(self) -> bool:
        return bool(self.world.run.get("clock") == "virtual")

    @property
    def defect(self) -> str:
        return str(self.world.run.get("defect") or "")

    @property
    def wall_ms(self) -> float | None:
        """The time of day when the scenario's timeline began, in milliseconds since 1970; None if unknown."""
        origin_ms = self.world.run.get("origin_wall_ms")
        if self.virtual or not isinstance(origin_ms, int | float):
            return None
        return float(origin_ms) + self.recorded.timeline_ms / self.scale

    @property
    def scale(self) -> float:
        return float(self.world.run.get("time_scale") or self.run.time_scale or 1.0)

    @cached_property
    def bands(self) -> list[Band]:
        """The faults in order: the faults in the history, and an import's likely faults whose form is not known."""
        found = [
            Band(
                fault_id=rows[0].fault_id,
                title=fault_title(rows),
                brief=fault_title(rows, brief=True),
                start_ms=min(f.start_ms for f in rows),
                end_ms=min(max(f.end_ms for f in rows), self.end_ms),
                is_likely=rows[0].value.get("certainty") == "likely",
            )
            for rows in by_fault(self.world)
        ]
        for fault_id, title, nodes, episode in formless(read_incident(self.run_dir) or {"episodes": ()}):
            said = {"fault_id": fault_id, "title": f"likely, form not known: {title}", "brief": f"likely: {title}"}
            start_ms, end_ms = episode["from_ms"], min(episode["to_ms"] or self.end_ms, self.end_ms)
            found.append(Band(**said, start_ms=start_ms, end_ms=end_ms, is_likely=True, nodes=nodes))
        return sorted(found, key=lambda band: band.start_ms)


def fewer(lanes_: Sequence[Lane], named: set[str | None]) -> list[Lane]:
    """Return at most ROWS_MAX (120) lanes, in whole groups, groups with trouble first. Lanes of a group with a
    violation are always returned."""
    if len(lanes_) <= ROWS_MAX:
        return list(lanes_)
    groups = grouped((lane.group, lane) for lane in lanes_)

    def trouble(group: str) -> tuple[bool, bool]:
        return not any(x.key in named for x in groups[group]), not any(x.troubled for x in groups[group])

    kept: set[str] = set()
    for group in sorted(groups, key=trouble):
        over = any(w.kind == "over" for lane in groups[group] for w in lane.windows) or not trouble(group)[0]
        if over or sum(len(groups[name]) for name in (*kept, group)) <= ROWS_MAX:
            kept.add(group)
    return [lane for lane in lanes_ if lane.group in kept]


def near(lines: list[LogLine], moments: Sequence[float]) -> list[str]:
    """Return the log lines of the node within 2 s of these moments, at most 8; equal lines in a row are one line."""

    def distance_ms(line: LogLine) -> float:
        return min(abs(line.time_ms - at_ms) for at_ms in moments)

    alike = groupby((line for line in lines if distance_ms(line) <= NEAR_MS), key=lambda line: line[1:])
    told = [_as_one(list(group)) for _, group in alike]
    nearest = sorted(told, key=distance_ms)[:NEAR_MAX]
    return [f"{line.time_ms / 1000:.3f} s {line.level} {line.text}" for line in told if line in nearest]


def _as_one(lines: Sequence[LogLine]) -> LogLine:
    again = f" ({len(lines)} times)" if len(lines) > 1 else ""
    return lines[0]._replace(text=_short(lines[0].text) + again)


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


# -- the recorded runs of a node's periodic task around a violation of a timer, as lines like those of a log
#
# 96.670 s consumer-0 ended sendHeartbeatToAllBroker (2 ms); its heartbeats reached broker-b and broker-c

BESIDE = 2
"""Runs shown before the violation, and as many after it."""
RUNS_MAX = 10
"""Most runs shown: those around the longest time between two runs."""
ARRIVES_MS = 1000.0
"""A broker has handled a heartbeat so long after the end of the client's round at the latest."""


def runs_around(recorded: Recorded, e: Example) -> tuple[str, ...]:
    """Return the runs of the example's task by its node: two before the violation, all during it, two after it."""
    tasks = recorded.rows_of("scheduled_task").select(["time_ms", "node", "f", "duration_ms"]).to_pylist()
    runs = [(row["time_ms"], row["duration_ms"] or 0.0) for row in tasks if (row["node"], row["f"]) == (e.who, e.what)]
    if not runs or e.from_ms is None:
        return ()
    ends = [ended_ms for ended_ms, _ in runs]
    last = bisect_right(ends, e.from_ms if e.to_ms is None else e.to_ms) + BESIDE
    shown = range(max(bisect_left(ends, e.from_ms) - BESIDE, 0), min(last, len(runs)))
    if len(shown) > RUNS_MAX:
        at = max(shown[1:], key=lambda at: ends[at] - ends[at - 1])
        shown = range(max(at - RUNS_MAX // 2, shown[0]), min(at + RUNS_MAX // 2, shown[-1] + 1))
    heard = _heard(recorded, e.who) if e.what == HEARTBEAT else []
    return tuple(
        f"{ended_ms / 1000:.3f} s {e.who} ended {e.what} ({length(took_ms)}){_reached(heard, ended_ms, took_ms)}"
        for ended_ms, took_ms in (runs[at] for at in shown)
    )


def _heard(recorded: Recorded, client: str) -> list[tuple[float, str]]:
    """Return when which broker handled a heartbeat of the client."""
    rows = recorded.rows_of("client_heartbeat").select(["time_ms", "node", "value"]).to_pylist()
    return [
        (row["time_ms"], row["node"])
        for row in rows
        if node_of_client_id(object_of(row["value"]).get("client")) == client
    ]


def _reached(heard: Sequence[tuple[float, str]], ended_ms: float, took_ms: float) -> str:
    """Return the brokers that a round's heartbeats reached; "" if no broker recorded heartbeats of the client."""
    if not heard:
        return ""
    brokers = {broker for at_ms, broker in heard if ended_ms - took_ms - 1.0 <= at_ms <= ended_ms + ARRIVES_MS}
    return f"; its heartbeats reached {all_of(sorted(brokers or {'no broker'}))}"
