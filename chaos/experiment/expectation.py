"""Makes the history that a scenario would give without a run, and the oracle's World (its view of that history). Faults
take effect exactly at the timeline's times.

    timeline ──► Actions, as in a run (actions.py) ──► nodes and links that obey at once ──► rows

The oracle uses an expected history like a recorded history. All nodes start long before the timeline, so all tables are
full. Faults whose links are known only in a run (`clients <-> chosen`) are left out and listed in `unknown`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any, NamedTuple

from ...actors.cluster import Submitted
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..faults.acts_by_hand import Unregister
from ..faults.injector import LinkFaultInjector
from ..faults.link_faults import LinkFault, LinkState
from ..faults.process_faults import Absent, Restart
from ..faults.processes import ProcessFaults
from ..oracle.world import World
from ..scenarios.action import ActionModel, is_chosen
from ..scenarios.model import Scenario
from ..topology import ADMIN, Link, NodeKind
from .actions import Actions
from .nodes import about

_WARM_MS = 1_000_000.0
"""How long the cluster has been up: longer than any window."""


class Expectation(NamedTuple):
    world: World
    unknown: tuple[str, ...]
    """The actions whose targets are known only in a run, in words."""


def expected_world(scenario: Scenario) -> Expectation:
    """Return the scenario's World, the oracle's view of a history. Times in the World count from the start of the
    timeline."""
    expected = _Expected(scenario)
    plan = scenario.plan(scenario.seed)
    expected.unknown += plan.unknown
    for planned in plan.actions:
        expected.join_until(planned.at_s)
        expected.act(planned.action)
    expected.join_until(math.inf)
    last_s = max(scenario.ends_s(), *(planned.at_s for planned in plan.actions), 0.0)
    expected.end(last_s)
    return Expectation(World.of_rows(expected.rows), tuple(expected.unknown))


class _Expected:
    """Nodes that obey at once, and the rows that an experiment with such nodes would record."""

    scale = 1.0

    def __init__(self, scenario: Scenario) -> None:
        self.rows: list[dict[str, Any]] = []
        self.unknown: list[str] = []
        self._scenario, self._topology = scenario, scenario.topology()
        self._now_ms = -_WARM_MS
        self._lives: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self._registering: dict[tuple[Any, ...], dict[str, Any]] = {}
        links = _OpenLinks(self, self.record, self._topology.links)
        self._processes = ProcessFaults(self, self.record, moves=self._moves)
        self._actions = Actions(
            scenario=scenario,
            nodes=self,
            links=links,
            processes=self._processes,
            record=self.record,
            advertised={name: Address(name, 1) for name in self._topology.servers},
            now_s=self.monotonic_s,
            phase=lambda phase, _text: self.record("phase", phase=phase),
            or_not_done=lambda _node, _what: nullcontext(),
        )
        servers = self._topology.of(NodeKind.NAME_SERVER)
        joins_s = scenario.joins_s()
        self._joining = sorted((at_s, name) for name, at_s in joins_s.items() if name in servers)
        self.record("run_begin", value={"scenario": scenario.name, **about(scenario)})
        for name in self._topology.kinds:
            self._note_node(name, f"{name}:1" if name in self._topology.servers else None)
            if name in servers and name in joins_s:
                self._processes.begin(Absent(), name)
            else:
                self._add(1000 * joins_s[name] if name in joins_s else self._now_ms, name, "started")
        self._now_ms = 0.0
        self.record("phase", phase="steady")

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def record(self, event: str, /, **fields: object) -> None:
        self._add(self._now_ms, "harness", event, **fields)

    def _add(self, time_ms: float, node: str, event: str, /, **fields: object) -> None:
        about_it = {"time_ms": time_ms, "seq": len(self.rows), "node": node, "role": node.split("-")[0]}
        self.rows.append({**about_it, "incarnation": self._lives.get(node, 0), "event": event, **fields})

    def _note_node(self, name: str, address: str | None) -> None:
        self.record("node", source=name, address=address, value={"kind": str(self._topology.kinds[name])})

    def _moves(self, name: str) -> None:
        self._moved[name] = self._moved.get(name, 1) + 1
        self._note_node(name, f"{name}:{self._moved[name]}")

    # -- the timeline

    def join_until(self, until_s: float) -> None:
        while self._joining and self._joining[0][0] <= until_s:
            at_s, node = self._joining.pop(0)
            self._now_ms = 1000 * at_s
            self._processes.end(Restart(), node)

    def act(self, action: ActionModel) -> None:
        self._now_ms = 1000 * action.at_s
        known = tuple(expression for expression in action.links if not is_chosen(expression))
        for expression in action.links:
            if expression not in known:
                self.unknown.append(f"{action.do} of {expression} at {action.at_s:g} s")
        if known or not isinstance(action.what, LinkFault):
            self._actions.do(action.model_copy(update={"links": known}))

    def end(self, at_s: float) -> None:
        self._now_ms = 1000 * at_s
        self._actions.heal_all()
        self.record("phase", phase="settle")
        self._now_ms += 1000 * self._scenario.settle_s
        self.record("phase", phase="end")

    # -- what is asked of its nodes

    def kill(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        if on_effect is not None:
            on_effect()
        return self._now_ms

    pause = resume = kill

    def stop(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        self._add(self._now_ms, name, "stopped")
        return self.kill(name, on_effect=on_effect)

    def restart(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        self.kill(name, on_effect=on_effect)
        self._lives[name] = self._lives.get(name, 0) + 1
        self._add(self._now_ms, name, "started")
        return self._now_ms

    def call(self, name: str, method: str, *args: Any, timeout_s: float = 30.0, **kwargs: Any) -> Any:
        if (name, method) == (ADMIN, "leave"):
            for registered in self._registering.values():
                self._add(self._now_ms, ADMIN, "admin", **{**registered, "f": "closed", "duration_ms": 0.0})

    def submit(self, name: str, method: str, *args: Any, **kwargs: Any) -> Submitted:
        assert (name, method) == (ADMIN, "act")
        self._by_hand(*args)
        done: Future[bool] = Future()
        done.set_result(True)
        return done

    def _by_hand(self, act: Mapping[str, Any], nodes: Sequence[str], act_id: str) -> None:
        """Answer each act at once. A process that keeps registering does so until it is unregistered or the end."""
        address = act.get("address") or act.get("broker") or ""
        if address in self._topology.kinds:
            address = f"{address}:1"
        row = {"f": act["do"], "type": "ok", "fault_id": act_id, "topic": act.get("topic"), "value": act}
        row |= {"broker_name": act.get("broker"), "broker_id": act.get("broker_id"), "address": address}
        for node in nodes:
            key = node, act.get("broker"), act.get("broker_id"), address
            self._registering.pop(key, None)
            if act["do"] == "register":
                self._registering[key] = {**row, "target": node}
            times_ms = [self._now_ms]
            if every_s := act.get("every_s"):
                until_ms = self._unregistered_ms(*key[:3])
                later = (self._now_ms + 1000 * n * every_s for n in range(1, 1000))
                times_ms += [at_ms for at_ms in later if at_ms < until_ms]
            for at_ms in times_ms:
                self._add(at_ms + 1, ADMIN, "admin", target=node, duration_ms=1.0, **row)

    def _unregistered_ms(self, node: str, broker: str | None, broker_id: int | None) -> float:
        """Return when the current registration there is unregistered; the end of the timeline if it never is."""
        later = [step for step in self._scenario.unfolded() if 1000 * step.at_s > self._now_ms]
        for step in later:
            what, said = step.what, (broker, broker_id)
            if isinstance(what, Unregister) and node in step.nodes and (what.broker, what.broker_id) == said:
                return 1000 * step.at_s
        return 1000 * later[-1].at_s if later else self._now_ms


class _OpenLinks(LinkFaultInjector):
    loses_packets = True

    def __init__(self, expected: _Expected, record: Recorder, links: Iterable[Link]) -> None:
        super().__init__(expected, record)
        for link in links:
            self._add(link)

    def _prepare(self, link: Link) -> None: ...

    def _inject(self, link: Link, now: LinkState | None, wanted: LinkState) -> None: ...
