"""Executes the entries of a timeline at their times, and ends all faults at the end."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ...actors.actor import ADJUST_CLOCK
from ...actors.cluster import Submitted
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..faults.acts_by_hand import ByHand, Switch
from ..faults.clock_changes import ClockAction, ClockSync, changed
from ..faults.fault import Fault
from ..faults.injector import LinkFaultInjector
from ..faults.kinds import NameServerList
from ..faults.link_faults import Heal, LinkFault
from ..faults.process_faults import DiskAction, FillDisk, FreeDisk, ProcessFault, Restart, Resume
from ..faults.processes import ProcessFaults, not_done
from ..scenarios.action import ActionModel, is_chosen
from ..scenarios.model import Scenario
from ..shapes import Stream
from ..topology import ADDRESS_SERVER, ADMIN, Link, NodeKind, broker_name
from .stage import AskedNodes


class TimelineStep(NamedTuple):
    """One action of a timeline, and the time of the action. A step of a series is executed at least `after_s` seconds
    after the series' previous step."""

    at_s: float
    do: Callable[[], object]
    series: int = -1
    after_s: float = -math.inf


def steps_of(
    scenario: Scenario, seed: int, *, join: Callable[[str], object], act: Callable[[ActionModel], object]
) -> list[TimelineStep]:
    """Return the timeline's steps in order of time; of simultaneous steps, joining nodes come first."""
    joins = sorted((of.joins_at_s, name) for name, of in scenario.nodes.items() if of.joins_at_s is not None)
    steps = [TimelineStep(at_s, partial(join, name)) for at_s, name in joins]
    steps += [
        TimelineStep(one.at_s, partial(act, one.action), one.series, one.after_s) for one in scenario.plan(seed).actions
    ]
    return sorted(steps, key=lambda step: step.at_s)


class _Shown(NamedTuple):
    at_ms: float
    ahead_ms: float
    """How far ahead the clock was then."""
    rate: float
    """The rate of the clock since then."""

    def ahead_at(self, now_ms: float) -> float:
        return self.ahead_ms + (now_ms - self.at_ms) * (self.rate - 1)


@dataclass(slots=True, kw_only=True)
class WallClocks:
    """The wall clocks that a timeline has changed. The state of each changed clock is remembered for the node's next
    process."""

    nodes: AskedNodes
    record: Recorder
    now_s: Callable[[], float]
    or_not_done: Callable[[str, str], AbstractContextManager[None]]
    _shown: dict[str, _Shown] = field(init=False, default_factory=dict)
    _changes: int = field(init=False, default=0)

    def change(self, what: ClockAction, nodes: tuple[str, ...]) -> None:
        self._changes += 1
        for node in nodes:
            self._change(what, node, f"{what.do}-{self._changes}")

    def restarted(self, node: str) -> None:
        """Give the node's new process the same wrong wall clock as its previous process."""
        if node in self._shown:
            shown = self._shown[node]
            with self.or_not_done(node, ADJUST_CLOCK):
                self.nodes.call(node, ADJUST_CLOCK, shown.ahead_at(1000 * self.now_s()), shown.rate)

    def end(self) -> None:
        for node, shown in tuple(self._shown.items()):
            if (shown.ahead_ms, shown.rate) != (0.0, 1.0):
                self._change(ClockSync(), node, "clock_sync-end")

    def _change(self, what: ClockAction, node: str, change_id: str) -> None:
        at_ms = 1000 * self.now_s()
        shown = self._shown.get(node, _Shown(at_ms, 0.0, 1.0))
        step_ms, rate = changed(what, shown.rate)
        with self.or_not_done(node, ADJUST_CLOCK):
            self.nodes.call(node, ADJUST_CLOCK, step_ms, rate)
            ahead_ms = 0.0 if step_ms is None else shown.ahead_at(at_ms) + step_ms
            self._shown[node] = _Shown(at_ms, ahead_ms, rate)
            value = {"step_ms": step_ms, "rate": rate}
            self.record("clock", source=node, f=what.do, fault_id=change_id, value=value)


_AT_ONCE_S = 0.05
"""In machine time."""


@dataclass(slots=True)
class LastFaults:
    """Finds faults that begin with the timeline's last entry and end only because the timeline ends. Such a fault lasts
    0 s, and is recorded as not done, so that the run is not VALID."""

    _ids: tuple[str, ...] = ()
    _at_s: float = float("-inf")

    def began(self, fault_ids: Iterable[str], now_s: float) -> None:
        """Note the faults that began now. Without ids: note that another action was executed now, so that the noted
        faults have a duration."""
        self._ids = (*(self._ids if now_s - self._at_s <= _AT_ONCE_S else ()), *fault_ids)
        self._at_s = now_s

    def tell(
        self, record: Recorder, now_s: float, processes: ProcessFaults, links: LinkFaultInjector, scenario: Scenario
    ) -> None:
        """Record each noted fault as not done if the fault is still in force but began just now. Faults of clients are
        left out, because a client that has just left comes back at the end."""
        if now_s - self._at_s > _AT_ONCE_S * scenario.timers.time_scale:
            return
        clients = scenario.topology().of(NodeKind.PRODUCER, NodeKind.CONSUMER)
        for who, fault_id, ended_by in _in_force(processes, links, but=clients):
            if fault_id in self._ids:
                why = (
                    f"{fault_id} lasted 0 s, for everything is healed behind the timeline's last entry: "
                    f"an entry that ends it ({ended_by}) says how long it lasts"
                )
                not_done(record, who, "last", why)


def _in_force(
    processes: ProcessFaults, links: LinkFaultInjector, *, but: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Return what each fault affects, its id, and what ends it. Faults that nothing ends, and faults of the processes
    in `but`, are left out."""
    ids = processes.ids
    for node, fault in processes.active.items():
        if fault.ended_by and node not in but:
            yield node, ids[node], fault.ended_by
    for fault_id, (_, hit) in links.active.items():
        if hit:  # who records faults by hand may begin one of no links
            yield str(hit[0].node), fault_id, "heal"


@dataclass(slots=True, kw_only=True)
class Actions:
    """Executes a timeline's actions. `phase` is called with the text of each action that begins. `or_not_done(node,
    what)` records a node's failure as a finding, so that the run continues."""

    scenario: Scenario
    nodes: AskedNodes
    links: LinkFaultInjector
    processes: ProcessFaults
    record: Recorder
    advertised: Mapping[str, Address]
    """The advertised address of each server at this moment."""
    now_s: Callable[[], float]
    phase: Callable[[str, str], None]
    or_not_done: Callable[[str, str], AbstractContextManager[None]]
    _clocks: WallClocks = field(init=False)
    _last: LastFaults = field(init=False, default_factory=LastFaults)
    _full_disks: set[str] = field(init=False, default_factory=set)
    _asked_by_hand: list[Submitted] = field(init=False, default_factory=list)
    _switches: dict[str, Submitted] = field(init=False, default_factory=dict)
    """The slaves that were asked to become masters."""
    _lists_served: int = field(init=False, default=0)
    _disks: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._clocks = WallClocks(nodes=self.nodes, record=self.record, now_s=self.now_s, or_not_done=self.or_not_done)

    def do(self, action: ActionModel) -> tuple[str, ...]:
        """Execute the action now, whatever its `at_s`. Returns the ids of the faults that the action began."""
        begun = self._do(action)
        self._last.began(begun, self.now_s())
        return begun

    def _do(self, action: ActionModel) -> tuple[str, ...]:
        what = action.what
        is_act = isinstance(what, ByHand | ClockAction | FillDisk)
        self.phase("fault" if isinstance(what, Fault) else "act" if is_act else "heal", what.do)
        if isinstance(what, LinkFault):
            return (self.links.begin(what, self._chosen_links(action), fault_id=action.name),)
        if isinstance(what, ByHand):
            return (self._ask_by_hand(what, action.nodes),)
        if isinstance(what, ProcessFault):
            return tuple([self.processes.begin(what, node) for node in action.nodes])
        if isinstance(what, Heal):
            self._heal(what, action)
        elif isinstance(what, ClockAction):
            self._clocks.change(what, action.nodes)
        elif isinstance(what, DiskAction):
            self._disks += 1
            for node in action.nodes:
                self._change_disk(node, what, f"{what.do}-{self._disks}")
        elif isinstance(what, NameServerList):
            self._serve(what)
        elif isinstance(what, Resume | Restart):
            for node in action.nodes:
                self.processes.end(what, node)
                if isinstance(what, Restart):
                    self._clocks.restarted(node)
        return ()

    def _heal(self, heal: Heal, action: ActionModel) -> None:
        if action.links:
            self.links.heal(self._chosen_links(action))
        elif heal.faults:
            for fault_id in heal.faults:
                self.links.end(fault_id)
        else:
            self.links.heal_all()

    def _serve(self, what: NameServerList) -> None:
        self._lists_served += 1
        addresses = [self.advertised.get(entry) or Address.parse(entry) for entry in what.name_servers]
        with self.or_not_done(ADDRESS_SERVER, "serve"):
            self.nodes.call(ADDRESS_SERVER, "serve", addresses)
            self.record("served_list", fault_id=f"{what.do}-{self._lists_served}", value=list(what.name_servers))

    def _change_disk(self, node: str, what: DiskAction, act_id: str) -> None:
        asked_ms, is_full = 1000 * self.now_s(), isinstance(what, FillDisk)
        with self.or_not_done(node, what.do):
            self.nodes.call(node, FillDisk().do, is_full)
            self.record("disk", source=node, f=what.do, fault_id=act_id, value={"asked_ms": asked_ms})
            (self._full_disks.add if is_full else self._full_disks.discard)(node)

    def _ask_by_hand(self, what: ByHand, nodes: tuple[str, ...]) -> str:
        """Send the request without waiting for the answer, so that a hung server does not stop the timeline. The act's
        id."""
        act_id = f"{what.do}-{len(self._asked_by_hand) + 1}"
        act = self.scenario.request_in_full(what)
        asked = self.nodes.submit(ADMIN, "act", act, list(nodes), act_id)
        self._asked_by_hand.append(asked)
        if isinstance(what, Switch):
            self._switches |= dict.fromkeys(nodes, asked)
        return act_id

    def switched_masters(self) -> dict[str, str]:
        """Return, for each broker name whose slave may have been made master, the slave."""
        found = {}
        for slave, asked in self._switches.items():
            with self.or_not_done(ADMIN, "act"):
                if asked.result(timeout=60):
                    found[broker_name(slave)] = slave
        return found

    def _chosen_links(self, action: ActionModel) -> dict[Link, Stream]:
        """Return an action's links with their directions: named links, and links to the NameServers in use. Nodes that
        a fault has stopped cannot say which NameServer they use."""
        topology = self.scenario.topology()
        known = [expression for expression in action.links if not is_chosen(expression)]
        links = topology.parse_streams(*known)
        if len(known) == len(action.links):
            return links
        names = {address: name for name, address in self.advertised.items()}
        for client in topology.of(NodeKind.PRODUCER, NodeKind.CONSUMER):
            chosen = None
            if client in self.processes.active:
                continue
            with self.or_not_done(client, "chosen_name_server"):
                chosen = self.nodes.call(client, "chosen_name_server")
            if chosen in names:  # an entry that is no NameServer of the run has no link
                links[Link(client, names[chosen])] = "both"
        return links

    def end_all(self) -> None:
        """End every fault, correct every clock, free every disk, and close the connections of registrations by hand. A
        master that `switch` replaced is not restarted."""
        self._last.tell(self.record, self.now_s(), self.processes, self.links, self.scenario)
        self.heal_all()

    def heal_all(self) -> None:
        """End all faults as `end_all` does, but record no fault as not done, even if the fault began just now."""
        self.links.heal_all()
        self.processes.heal_all(but=self.switched_masters())  # another has its name
        self._clocks.end()
        for node in sorted(self._full_disks):
            self._change_disk(node, FreeDisk(), "free_disk-end")
        if self._asked_by_hand:
            with self.or_not_done(ADMIN, "leave"):
                self.nodes.call(ADMIN, "leave")

    def finish_acts_by_hand(self) -> None:
        for act in self._asked_by_hand:
            with self.or_not_done(ADMIN, "act"):
                act.result(timeout=60)
