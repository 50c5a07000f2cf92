"""The World of a scenario that nobody has run: its faults take effect at the very times that the timeline says.

The oracle works on it as on a recorded one. Before the timeline starts every node has been up for long enough that all
tables are filled. A fault whose links only a run can tell (`clients <-> chosen`) is left out and named.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..faults.acts_by_hand import ByHand, Register, Unregister
from ..faults.clock_changes import ClockAction, ClockSync, changed
from ..faults.fault import Fault
from ..faults.kinds import NameServerList
from ..faults.link_faults import Heal, LinkFault
from ..faults.process_faults import Absent, ProcessFault, Restart, Stop
from ..oracle.world import World
from ..scenarios.action import ActionModel, is_chosen
from ..scenarios.model import Scenario
from ..topology import ADMIN, Link, NodeKind
from .nodes import about

_WARM_MS = 1_000_000.0
"""How long the cluster has been up: more than any window of any timer."""


class Expectation(NamedTuple):
    world: World
    unknown: tuple[str, ...]
    """The actions whose targets only a run can tell, in words."""


def expected_world(scenario: Scenario) -> Expectation:
    """The scenario's World, with times from the start of the timeline."""
    rows = _Rows(scenario)
    plan = scenario.plan(scenario.seed)
    rows.unknown += plan.unknown
    for planned in plan.actions:
        rows.join_until(1000 * planned.at_s)
        rows.act(planned.action)
    rows.join_until(math.inf)
    last_ms = 1000 * max(scenario.ends_s(), *(planned.at_s for planned in plan.actions), 0.0)
    rows.heal_everything(last_ms)
    rows.add(last_ms + 1000 * scenario.settle_s, "harness", "phase", phase="end")
    return Expectation(World.of_rows(rows.rows), tuple(rows.unknown))


class _Rows:
    """The rows of the environment, as an experiment would record them."""

    def __init__(self, scenario: Scenario) -> None:
        self.rows: list[dict[str, Any]] = []
        self.unknown: list[str] = []
        self._topology = scenario.topology()
        self._begun = 0
        self._links: dict[str, list[dict[str, Any]]] = {}
        self._processes: dict[str, tuple[ProcessFault, dict[str, Any]]] = {}
        self._lives: dict[str, int] = {}
        self._scenario, self._acts, self._clock_changes = scenario, 0, 0
        self._rates: dict[str, float] = {}
        self._registering: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._served = 0
        self._moved: dict[str, int] = {}
        joining = ((own.joins_at_s, name) for name, own in scenario.nodes.items() if own.joins_at_s is not None)
        servers = self._topology.of(NodeKind.NAME_SERVER)
        self._joining = sorted((1000 * at_s, name) for at_s, name in joining if name in servers)
        self.add(-_WARM_MS, "harness", "run_begin", value={"scenario": scenario.name, **about(scenario)})
        for name, kind in self._topology.kinds.items():
            self._node(-_WARM_MS, name, f"{name}:1" if name in self._topology.servers else None)
            own = scenario.nodes.get(name)
            joins_at_s = None if own is None else own.joins_at_s
            if joins_at_s is not None and kind is NodeKind.NAME_SERVER:
                self._process_fault(-_WARM_MS, Absent(), name)
                continue
            self.add(-_WARM_MS if joins_at_s is None else 1000 * joins_at_s, name, "started")
        self.add(0.0, "harness", "phase", phase="steady")

    def add(self, time_ms: float, node: str, event: str, /, **fields: Any) -> None:
        about_it = {"time_ms": time_ms, "seq": len(self.rows), "node": node, "role": node.split("-")[0]}
        self.rows.append({**about_it, "incarnation": self._lives.get(node, 0), "event": event, **fields})

    def _node(self, at_ms: float, name: str, address: str | None) -> None:
        value = {"kind": str(self._topology.kinds[name])}
        self.add(at_ms, "harness", "node", source=name, address=address, value=value)

    def join_until(self, until_ms: float) -> None:
        """NameServers that join before then, or at that time, do."""
        for at_ms, node in [one for one in self._joining if one[0] <= until_ms]:
            self._joining.remove((at_ms, node))
            self._end_process_fault(at_ms, node)

    def act(self, action: ActionModel) -> None:
        at_ms, what = 1000 * action.at_s, action.what
        self.add(at_ms, "harness", "phase", phase="fault" if isinstance(what, Fault) else "heal")
        if isinstance(what, LinkFault):
            self._link_fault(at_ms, what, action)
        elif isinstance(what, ProcessFault):
            for node in action.nodes:
                self._process_fault(at_ms, what, node)
        elif isinstance(what, ByHand):
            self._by_hand(action, what)
        elif isinstance(what, ClockAction):
            self._clock_changes += 1
            for node in action.nodes:
                self._change_clock(at_ms, what, node)
        elif isinstance(what, Heal):
            self._heal(at_ms, what, action)
        elif isinstance(what, NameServerList):
            self._served += 1
            change = f"{what.do}-{self._served}"
            self.add(at_ms, "harness", "served_list", fault_id=change, value=list(what.name_servers))
        else:
            for node in action.nodes:
                if isinstance(what, Restart) and node not in self._processes:
                    self._process_fault(at_ms, Stop(), node)
                if isinstance(what, Restart) and what.new_address:
                    self._moved[node] = self._moved.get(node, 1) + 1
                    self._node(at_ms, node, f"{node}:{self._moved[node]}")
                self._end_process_fault(at_ms, node)

    def _change_clock(self, at_ms: float, what: ClockAction, node: str) -> None:
        step_ms, rate = changed(what, self._rates.get(node, 1.0))
        self._rates[node] = rate
        if step_ms is None:
            del self._rates[node]
        value = {"step_ms": step_ms, "rate": rate}
        change_id = f"{what.do}-{self._clock_changes}"
        self.add(at_ms, "harness", "clock", source=node, f=what.do, fault_id=change_id, value=value)

    def _by_hand(self, action: ActionModel, what: ByHand) -> None:
        """Each is answered at once; a process that goes on registering does so until it is unregistered, or healed."""
        self._acts += 1
        said = self._scenario.request_in_full(what)
        address = said.get("address") or said.get("broker") or ""
        if address in self._topology.kinds:
            address = f"{address}:1"
        row = {"f": what.do, "type": "ok", "fault_id": f"{what.do}-{self._acts}", "topic": said.get("topic")}
        row |= {"broker_name": said.get("broker"), "broker_id": said.get("broker_id"), "address": address}
        for node in action.nodes:
            key = node, said.get("broker"), said.get("broker_id"), address
            self._registering.pop(key, None)
            if isinstance(what, Register):
                self._registering[key] = {**row, "target": node, "value": said}
            times_s = [action.at_s]
            if isinstance(what, Register) and what.every_s is not None:
                until_s = self._unregistered_s(action, key)
                times_s += [at_s for n in range(1, 1000) if (at_s := action.at_s + n * what.every_s) < until_s]
            for at_s in times_s:
                self.add(1000 * at_s + 1, ADMIN, "admin", target=node, duration_ms=1.0, value=said, **row)

    def _unregistered_s(self, action: ActionModel, key: tuple[Any, ...]) -> float:
        """When what this action registers is unregistered again; the end of the timeline where it is not."""
        later = [step for step in self._scenario.unfolded() if step.at_s > action.at_s]
        for step in later:
            one = step.what
            if isinstance(one, Unregister) and (key[0] in step.nodes, one.broker, one.broker_id) == (True, *key[1:3]):
                return step.at_s
        return later[-1].at_s if later else action.at_s

    def heal_everything(self, at_ms: float) -> None:
        self._end_link_faults(at_ms, tuple(self._links))
        for node in tuple(self._rates):
            self._change_clock(at_ms, ClockSync(), node)
        for registered in self._registering.values():
            self.add(at_ms, ADMIN, "admin", **{**registered, "f": "closed", "duration_ms": 0.0})
        for node, (fault, _) in tuple(self._processes.items()):
            if fault.ended_by and node not in self._scenario.switched_masters():
                self._end_process_fault(at_ms, node)

    def _link_fault(self, at_ms: float, fault: LinkFault, action: ActionModel) -> None:
        known = [expression for expression in action.links if not is_chosen(expression)]
        for expression in action.links:
            if expression not in known:
                self.unknown.append(f"{fault.do} of {expression} at {action.at_s:g} s")
        if not known:
            return
        fault_id = action.name or fault.do
        self._links[fault_id] = [
            _fault_row(
                fault_id,
                fault,
                link.node,
                target=link.peer,
                stream=fault.stream if stream == "both" else stream,
                value=fault.numbers,
            )
            for link, stream in self._topology.parse_streams(*known).items()
        ]
        for row in self._links[fault_id]:
            self.add(at_ms, "harness", "fault", phase="start", **row)

    def _process_fault(self, at_ms: float, fault: ProcessFault, node: str) -> None:
        self._begun += 1
        fault_id = f"{fault.do}-{self._begun}"
        row = _fault_row(fault_id, fault, node, target=None, stream=None, value={})
        self._processes[node] = fault, row
        if isinstance(fault, Stop):
            self.add(at_ms, node, "stopped")
        self.add(at_ms, "harness", "fault", phase="start", **row)
        if fault.ends_process:
            self.add(at_ms, "harness", "gone", fault_id=fault_id, source=node)

    def _heal(self, at_ms: float, heal: Heal, action: ActionModel) -> None:
        on = set(self._topology.parse_links(*action.links)) if action.links else None
        self._end_link_faults(at_ms, heal.faults or tuple(self._links), on)

    def _end_link_faults(self, at_ms: float, fault_ids: Sequence[str], on: Collection[Link] | None = None) -> None:
        for fault_id in reversed(fault_ids):
            rows = self._links.pop(fault_id, [])  # one whose links only a run can tell has none
            ending = [row for row in rows if on is None or Link(row["source"], row["target"]) in on]
            for row in ending:
                self.add(at_ms, "harness", "fault", phase="end", **row)
            if len(ending) < len(rows):
                self._links[fault_id] = [row for row in rows if row not in ending]

    def _end_process_fault(self, at_ms: float, node: str) -> None:
        fault, row = self._processes.pop(node)
        self.add(at_ms, "harness", "fault", phase="end", **row)
        if fault.ended_by == "restart":
            self._lives[node] = self._lives.get(node, 0) + 1
            self.add(at_ms, node, "started")


def _fault_row(
    fault_id: str, fault: Fault, source: str, *, target: str | None, stream: str | None, value: Mapping[str, Any]
) -> dict[str, Any]:
    injection = fault.recorded_injection if isinstance(fault, LinkFault) else fault.injection
    about_it = {"fault_id": fault_id, "fault": fault.do, "injection": injection}
    return {**about_it, "source": source, "target": target, "stream": stream, "value": dict(value)}
