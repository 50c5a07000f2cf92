"""Replaces timeline entries that stand for many actions: flapping, durations, restarts in a row or at random.

    {at_s: 20, do: cut, period_s: 10, duty: 0.3, …}     20 cut · 23 heal · 30 cut · 33 heal · …       until its own heal
    {at_s: 60, do: rolling_restart, pause_s: 30, …}     60 ns-0 · (it listens) + 30 ns-1 · (it listens) + 30 ns-2
    {at_s: 90, do: restart_storm, restarts: 5, …}       five of the nodes within for_s, drawn by the seed

History, oracle and `explain` know only single actions.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import NotAllowed
from ..faults.kinds import ACTIONS
from ..faults.link_faults import Heal, LinkFault
from ..faults.process_faults import Kill, Restart, RestartStorm, RollingRestart, Stop
from .action import ActionModel, ends_by_itself, fault_ids


def lasting(entries: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the entries, plus an ending entry for each `for_s`, and the number of each entry's original entry.

    {at_s: 20, do: cut, links: […], for_s: 30}          20 cut, named cut-1 · 50 heal of cut-1
    {at_s: 20, do: kill, nodes: [ns-0], for_s: 30}      20 kill · 50 restart of ns-0

    Raises NotAllowed for a `for_s` that is no time. An action that cannot be ended, or ends by itself, keeps its
    `for_s`.
    """
    found: list[tuple[float, int, Any]] = []
    begun, last_s = 0, -math.inf
    for index, entry in enumerate(entries):
        said = entry if isinstance(entry, dict) else {}
        kind = ACTIONS.get(str(said.get("do")))
        begun += kind is not None and issubclass(kind, LinkFault)
        last_s = float(at_s) if isinstance(at_s := said.get("at_s"), int | float) else last_s
        if kind is None or "for_s" not in said or not ends_by_itself(kind):
            found.append((last_s, index, entry))
            continue
        for_s = said["for_s"]
        if isinstance(for_s, bool) or not isinstance(for_s, int | float) or not for_s > 0:
            raise NotAllowed(f"timeline.{index}.for_s", repr(for_s), "a number above 0")
        rest = {key: value for key, value in said.items() if key != "for_s"}
        if issubclass(kind, LinkFault):
            rest.setdefault("name", f"{said['do']}-{begun}")
            end: dict[str, Any] = {"do": "heal", "faults": [rest["name"]]}
        else:
            end = {"do": getattr(kind, "ended_by", ""), "nodes": said.get("nodes", [])}
        found += [(last_s, index, rest), (last_s + for_s, index, {"at_s": last_s + for_s, **end})]
    if len(found) > len(entries):  # an end may come after later entries
        found.sort(key=lambda one: one[0])
    return [entry for _, _, entry in found], [index for _, index, _ in found]


Members = Callable[[str], Sequence[str]]
"""The nodes of a node's or a group's name; empty for other names."""


class Planned(NamedTuple):
    at_s: float
    action: ActionModel
    series: int = -1
    """The entry that it belongs to, if the entry's actions wait for one another."""
    after_s: float = -math.inf
    """Least time after the previous action of its series, if that is later than `at_s`."""


class PlannedTimeline(NamedTuple):
    actions: tuple[Planned, ...]
    unknown: tuple[str, ...]
    """What only the seed determines, in words."""


def planned(timeline: Sequence[ActionModel], members: Members, seed: int | None) -> PlannedTimeline:
    """Return every action of the timeline in order of time. Each fault of links has its fault id as its name."""
    found: list[Planned] = []
    unknown: list[str] = []
    for index, (entry, fault_id) in enumerate(zip(timeline, fault_ids(timeline), strict=True)):
        if entry.period_s is not None:
            found += _flapping(entry, str(fault_id), _healed_s(timeline, index, str(fault_id)))
        elif isinstance(entry.what, RollingRestart):
            found += [one._replace(series=index) for one in _rolling(entry, entry.what, members)]
        elif isinstance(entry.what, RestartStorm):
            if seed is None:
                unknown.append(f"{entry.do} of {', '.join(entry.nodes)} at {entry.at_s:g} s, which the seed draws")
            else:
                found += _storm(entry, entry.what, members, random.Random(f"{seed}/storm/{index}"))
        else:
            found.append(Planned(entry.at_s, entry.model_copy(update={"name": fault_id or entry.name})))
    return PlannedTimeline(tuple(sorted(found, key=lambda one: one.at_s)), tuple(unknown))


def _healed_s(timeline: Sequence[ActionModel], index: int, fault_id: str) -> float:
    for entry in timeline[index + 1 :]:
        if isinstance(entry.what, Heal) and (
            not entry.links and (not entry.what.faults or fault_id in entry.what.faults)
        ):
            return entry.at_s
    return max(entry.at_s for entry in timeline)


def _flapping(entry: ActionModel, fault_id: str, until_s: float) -> Iterable[Planned]:
    assert entry.period_s is not None
    on_s = entry.period_s * (0.5 if entry.duty is None else entry.duty)
    begin = {"period_s": None, "duty": None, "name": fault_id}
    at_s, cycle = entry.at_s, 0
    while at_s < until_s or not cycle:
        yield Planned(at_s, entry.model_copy(update={**begin, "at_s": at_s}))
        if at_s + on_s < until_s:
            yield Planned(at_s + on_s, ActionModel(at_s=at_s + on_s, what=Heal(faults=(fault_id,))))
        cycle += 1
        at_s = round(entry.at_s + cycle * entry.period_s, 6)


def _restarted(node: str, at_s: float, by: str, down_s: float, how: Restart) -> list[Planned]:
    restart = ActionModel(at_s=at_s + down_s, what=how, nodes=(node,))
    if by == "stop" and not down_s:
        return [Planned(at_s, restart)]
    down = ActionModel(at_s=at_s, what=Stop() if by == "stop" else Kill(), nodes=(node,))
    return [Planned(at_s, down), Planned(at_s + down_s, restart)]


def _rolling(entry: ActionModel, rolling: RollingRestart, members: Members) -> list[Planned]:
    found: list[Planned] = []
    for number, node in enumerate(nodes_of(entry.nodes, members)):
        at_s = round(entry.at_s + number * (rolling.pause_s + rolling.down_s), 6)
        how = Restart(implementation=rolling.implementation, new_address=rolling.new_address)
        first, *rest = _restarted(node, at_s, rolling.by, rolling.down_s, how)
        found.append(first._replace(after_s=rolling.pause_s))
        found += [one._replace(after_s=rolling.down_s) for one in rest]
    return found


def _storm(entry: ActionModel, storm: RestartStorm, members: Members, rng: random.Random) -> list[Planned]:
    nodes = nodes_of(entry.nodes, members)
    free_s = dict.fromkeys(nodes, 0.0)
    found: list[Planned] = []
    for offset_s in sorted(rng.uniform(0, storm.for_s) for _ in range(storm.restarts)):
        at_s = round(entry.at_s + offset_s, 3)
        up = [node for node in nodes if free_s[node] <= at_s]
        if up:
            node = rng.choice(up)
            free_s[node] = at_s + storm.down_s + 0.001
            found += _restarted(node, at_s, storm.by, storm.down_s, Restart())
    return found


def nodes_of(names: Iterable[str], members: Members) -> list[str]:
    """Return the nodes that these names of nodes and groups stand for, each node once."""
    return list(dict.fromkeys(node for name in names for node in members(name)))


def series_ends_s(entry: ActionModel, members: Members) -> float:
    """Return the time at which the last restart of this series is planned; of a restart storm, the latest possible
    time."""
    if isinstance(entry.what, RollingRestart):
        return _rolling(entry, entry.what, members)[-1].at_s
    assert isinstance(entry.what, RestartStorm)
    return entry.at_s + entry.what.for_s + entry.what.down_s
