"""Rules for a timeline: possible actions, targets and order. A rule raises NotAllowed for the first error."""

import re
from collections.abc import Iterable, Mapping, Sequence

from ...remoting.node.network import Address
from ..apache.distribution import ALLOWED, OURS, distribution
from ..errors import NotAllowed, nearest, one_of
from ..faults.acts_by_hand import (
    AddWritePerm,
    ByHand,
    DeleteTopic,
    Register,
    Switch,
    Unregister,
    UpdateConfig,
    WipeWritePerm,
)
from ..faults.clock_changes import ClockAction, ClockSync
from ..faults.link_faults import Cut, HalfOpen, Heal, SynDrop
from ..faults.process_faults import (
    PROCESS_FAULTS,
    DiskAction,
    FillDisk,
    PortTaken,
    ProcessFault,
    Remove,
    Restart,
    RestartStorm,
    Resume,
    RollingRestart,
)
from ..settings.catalogue import settings_for
from ..settings.resolve import settings_of
from ..topology import EXTERNAL, GROUPS, Link, NodeKind, Topology, broker_name, listed
from .action import ActionModel, fault_ids, is_chosen
from .host_actions import taken_apart
from .implementations import CLIENTS, SERVERS, new_version
from .model import Scenario
from .new_addresses import moves
from .series import Members, nodes_of, series_ends_s

CYCLES_MAX = 1_000
AT_ITS_START = frozenset({"forceRegister", "needWaitForService", "waitSecondsForService"})
"""Settings with windows that a node has from its start on, beside those with a symbol."""
_OF_PROCESSES = (ProcessFault, ClockAction, DiskAction, Resume, Restart, RollingRestart, RestartStorm)


def targets_of_actions(scenario: Scenario) -> None:
    """The links and nodes of each entry exist, the fault is possible on them, and times ascend."""
    topology = scenario.topology()
    for index, action in enumerate(scenario.timeline):
        for expression in action.links:
            try:
                _links(action, expression, topology)
            except ValueError as exc:
                raise NotAllowed(f"timeline.{index}.links", repr(expression), str(exc)) from exc
        may_be = (*topology.of(*SERVERS, *CLIENTS), *topology.of(NodeKind.ADDRESS_SERVER))  # not the harness's client
        if isinstance(action.what, Remove):
            may_be = topology.of(NodeKind.NAME_SERVER)
        elif isinstance(action.what, PortTaken):
            may_be = topology.of(*SERVERS)
        elif isinstance(action.what, RollingRestart | RestartStorm):
            groups = ("name_servers", "brokers", "masters", "slaves", "producers", "consumers")
            may_be = (*may_be, *(group for group in groups if topology.members(group)))
        for node in action.nodes:
            if node not in may_be or not topology.members(node):
                allowed = f"one of {listed(may_be)}{nearest(node, may_be)}"
                raise NotAllowed(f"timeline.{index}.nodes", repr(node), allowed)
        if index and action.at_s < scenario.timeline[index - 1].at_s:
            raise NotAllowed(f"timeline.{index}.at_s", str(action.at_s), "times in ascending order")


def _links(action: ActionModel, expression: str, topology: Topology) -> None:
    """Raise ValueError for links that do not exist, or that this fault cannot be on."""
    if is_chosen(expression):
        if not topology.of(*CLIENTS):
            raise ValueError("a link of nodes, for there are no clients that choose")
        return
    streams = topology.parse_streams(expression)
    of_dials = isinstance(action.what, HalfOpen | SynDrop)
    whole = of_dials or isinstance(action.what, Cut)
    said = getattr(action.what, "stream", "both")
    if of_dials and said != "both":
        raise ValueError(f"no `stream` of {action.do}, which is of both directions")
    if any(stream != "both" for stream in streams.values()):
        if whole:
            raise ValueError(f"black_hole in place of {action.do}, which is of both directions: {expression} is of one")
        if said != "both":
            raise ValueError(f"no `stream` beside it: {expression} says the direction itself")
    if of_dials and any(link.node == EXTERNAL for link in streams):
        raise ValueError("links of the experiment's own nodes: nobody can tell an outside dialler where else to dial")


def order_of_actions(scenario: Scenario) -> None:
    """Each node is in the right state for a kill, pause, resume or restart. A heal that names faults or links ends at
    least one fault. During a rolling restart or restart storm no other action on processes or wall clocks hits the same
    nodes. Faults of hosts must be replaced by ordinary actions before (host_actions.py). Errors name an entry by its
    number in the file."""
    topology, hosts = scenario.topology(), scenario.hosts()
    entries = taken_apart(scenario.timeline, topology, hosts)
    timeline = [action for _, action in entries]
    try:
        _states(timeline)
        _series(timeline, topology.members, scenario.joins_s())
        _heals(timeline, topology)
    except NotAllowed as exc:
        number = re.match(r"timeline\.(\d+)", exc.key)
        assert number is not None
        key = f"timeline.{entries[int(number[1])][0]}{exc.key[number.end() :]}"
        raise NotAllowed(key, exc.value, exc.allowed) from exc


def _states(timeline: Iterable[ActionModel]) -> None:
    """Refuse a kill of a node that is down, and a resume of a node that is not paused."""
    under: dict[str, tuple[str, float]] = {}
    for index, entry in enumerate(timeline):
        for node in dict.fromkeys(entry.nodes):
            key, said = f"timeline.{index}.nodes", f"{entry.do} of {node} at {entry.at_s:g} s"
            did, at_s = under.get(node, ("", 0.0))
            if entry.do in PROCESS_FAULTS:
                if did:
                    ended_by = PROCESS_FAULTS[did].ended_by
                    under_it = f"{node} was {PROCESS_FAULTS[did].title} at {at_s:g} s"
                    allowed = f"{ended_by} before it: {under_it}" if ended_by else f"a node that is there: {under_it}"
                    raise NotAllowed(key, said, allowed)
                under[node] = entry.do, entry.at_s
            elif entry.do == "resume" and did != "pause":
                raise NotAllowed(key, said, "a node that is paused then")
            elif entry.do == "restart" and did == "remove":
                raise NotAllowed(key, said, f"a node that is there: {node} was removed at {at_s:g} s")
            elif entry.do == "restart" and did == "pause":
                raise NotAllowed(key, said, "resume: it is paused then")
            elif entry.do in ("resume", "restart"):
                under.pop(node, None)


def _series(timeline: Sequence[ActionModel], members: Members, joins_s: Mapping[str, float]) -> None:
    """Flapping and series of restarts have a limit of turns, no partial heal, and no other action on their nodes.
    Refuse a series of restarts if one of its nodes is down or has not joined."""
    flapping = next((name for entry, name in zip(timeline, fault_ids(timeline), strict=True) if entry.period_s), None)
    for index, entry in enumerate(timeline):
        key = f"timeline.{index}"
        if entry.period_s is not None and (timeline[-1].at_s - entry.at_s) / entry.period_s > CYCLES_MAX:
            raise NotAllowed(f"{key}.period_s", f"{entry.period_s:g}", f"up to {CYCLES_MAX:,} turns of it")
        if isinstance(entry.what, Heal) and entry.links and flapping:
            allowed = f"faults: [{flapping}], or a heal of everything: what flaps does so on all its links"
            raise NotAllowed(f"{key}.links", ", ".join(entry.links), allowed)
        if not isinstance(entry.what, RollingRestart | RestartStorm):
            continue
        mine, ends_s, at = set(nodes_of(entry.nodes, members)), series_ends_s(entry, members), f"{entry.at_s:g} s"
        for other_index, other in enumerate(timeline):
            hit = mine & set(nodes_of(other.nodes, members) if isinstance(other.what, _OF_PROCESSES) else ())
            if other is not entry and hit and entry.at_s <= other.at_s <= ends_s:
                did = f"{other.do} of {min(hit)} at {other.at_s:g} s"
                allowed = f"a time before {at} or after {ends_s:g} s: it is in a {entry.do} until then"
                raise NotAllowed(f"timeline.{other_index}.nodes", did, allowed)
        if late := next((node for node in sorted(mine) if joins_s.get(node, 0.0) > entry.at_s), None):
            allowed = f"from {joins_s[late]:g} s on, when {late} joins"
            raise NotAllowed(f"{key}.nodes", f"{entry.do} at {at}", allowed)
        if hit := mine & _not_running(timeline[:index], members):
            allowed = f"nodes that run then: {min(hit)} is down, paused or removed"
            raise NotAllowed(f"{key}.nodes", f"{entry.do} at {at}", allowed)


def _not_running(timeline: Sequence[ActionModel], members: Members) -> set[str]:
    under: set[str] = set()
    for entry in timeline:
        nodes = set(nodes_of(entry.nodes, members))
        if entry.do in PROCESS_FAULTS:
            under |= nodes
        elif entry.do in ("resume", "restart"):
            under -= nodes
    return under


def _heals(timeline: Sequence[ActionModel], topology: Topology) -> None:
    on: dict[str, set[Link] | None] = {}
    """By fault that lasts: the links that it is on; None: only a run can tell."""
    over: dict[str, float] = {}
    for index, (entry, fault_id) in enumerate(zip(timeline, fault_ids(timeline), strict=True)):
        key = f"timeline.{index}"
        if fault_id is not None:
            if fault_id in on or fault_id in over:
                raise NotAllowed(f"{key}.name", fault_id, "a name of its own for each fault")
            known = not any(map(is_chosen, entry.links))
            on[fault_id] = set(topology.parse_links(*entry.links)) if known else None
        elif isinstance(entry.what, Heal):
            _heal(entry, entry.what, on, over, topology, key)
            for each in _ended(entry, entry.what, on, topology):
                del on[each]
                over[each] = entry.at_s


def _heal(
    entry: ActionModel,
    heal: Heal,
    on: Mapping[str, set[Link] | None],
    over: Mapping[str, float],
    topology: Topology,
    key: str,
) -> None:
    if heal.faults and entry.links:
        raise NotAllowed(key, "", "`do: heal` with links or with faults, not with both")
    for number, name in enumerate(heal.faults):
        if name not in on:
            ended = f"; {name} ended at {over[name]:g} s" if name in over else nearest(name, on)
            allowed = f"a fault of links that lasts then ({', '.join(on) or 'none does'}){ended}"
            raise NotAllowed(f"{key}.faults.{number}", name, allowed)
    for expression in entry.links:
        if is_chosen(expression):
            raise NotAllowed(f"{key}.links", expression, "the fault's name (faults: [NAME]): clients choose anew")
        healed = set(topology.parse_links(expression))
        if not any(links is None or links & healed for links in on.values()):
            raise NotAllowed(f"{key}.links", expression, "links that a fault is on at that time")


def _ended(entry: ActionModel, heal: Heal, on: Mapping[str, set[Link] | None], topology: Topology) -> list[str]:
    """Return the faults that this `heal` ends on all their links. A fault ended on some links only loses these links in
    `on`."""
    if heal.faults:
        return list(heal.faults)
    if not entry.links:
        return [*on]
    healed = set(topology.parse_links(*entry.links))
    for links in on.values():
        if links is not None:
            links -= healed
    return [name for name, links in on.items() if links is not None and not links]


def acts_by_hand(scenario: Scenario) -> None:
    """Each node supports the admin request sent to it, and the request's brokers, addresses and settings exist."""
    topology = scenario.topology()
    brokers, addresses = topology.of(NodeKind.BROKER), topology.of(*GROUPS["brokers"])
    by_hand: set[str] = set()
    for index, entry in enumerate(scenario.timeline):
        what, place = entry.what, f"timeline.{index}"
        if not isinstance(what, ByHand):
            continue
        for node in entry.nodes:
            kind = topology.kinds.get(node)
            if kind is not None and str(kind) not in what.asks:
                able = topology.of(*map(NodeKind, what.asks))
                allowed = f"{what.codes} is asked of {', '.join(able)}"
                raise NotAllowed(f"{place}.nodes", f"{what.do} of {node}", allowed)
        if isinstance(what, Register):
            by_hand.add(what.broker)
            _address(what.address, addresses, place)
        elif isinstance(what, Unregister):
            if what.address is not None:
                _address(what.address, addresses, place)
            elif what.broker not in brokers:
                allowed = f"the address that it has: {what.broker} is no broker of the scenario"
                raise NotAllowed(f"{place}.address", "nothing", allowed)
        elif isinstance(what, WipeWritePerm | AddWritePerm):
            known = [*brokers, *sorted(by_hand)]
            if what.broker not in known:
                raise NotAllowed(f"{place}.broker", repr(what.broker), one_of(known, what.broker))
        elif isinstance(what, Switch):
            _switch(scenario.timeline, index)
        elif isinstance(what, UpdateConfig):
            _settings(what, entry.nodes, scenario, place)
        elif isinstance(what, DeleteTopic) and what.cluster_name and set(entry.nodes) & set(brokers):
            allowed = "said where all nodes of the entry are NameServers"
            raise NotAllowed(f"{place}.cluster_name", what.cluster_name, allowed)


def _switch(timeline: Sequence[ActionModel], index: int) -> None:
    """No broker name ever has two masters."""
    at, place = timeline[index], f"timeline.{index}.nodes"
    if len(at.nodes) != 1:
        raise NotAllowed(place, f"switch of {', '.join(at.nodes)}", "one slave")
    (slave,) = at.nodes
    master = broker_name(slave)
    down = [entry.do for entry in timeline[:index] if entry.do in ("kill", "stop", "restart") and master in entry.nodes]
    again = [entry for entry in timeline[index:] if entry.do == "restart" and master in entry.nodes]
    if not down or down[-1] == "restart" or again:
        allowed = f"a slave whose master {master} was killed or stopped before, and is not restarted after"
        raise NotAllowed(place, f"switch of {slave} at {at.at_s:g} s", allowed)
    if any(entry.do == "switch" and broker_name(entry.nodes[0]) == master for entry in timeline[:index]):
        raise NotAllowed(place, f"switch of {slave}", f"one switch under the name {master}")
    if wide := [entry for entry in timeline[index:] if entry.do in ("rolling_restart", "restart_storm")]:
        allowed = f"no {wide[0].do} after it: the master before stays away"
        raise NotAllowed(place, f"switch of {slave}", allowed)


def _address(address: str, brokers: Sequence[str], place: str) -> None:
    if address in brokers:
        return
    try:
        Address.parse(address)
    except ValueError as exc:
        allowed = f"one of {', '.join(brokers)}, or host:port{nearest(address, brokers)}"
        raise NotAllowed(f"{place}.address", repr(address), allowed) from exc


def _settings(what: UpdateConfig, nodes: Sequence[str], scenario: Scenario, place: str) -> None:
    """Each node has these settings, and no window depends on them."""
    kinds = scenario.topology().kinds
    for node in nodes:
        try:
            taken = settings_of({node: what.settings}, kinds, scenario.profile, before={})
        except NotAllowed as exc:
            key = exc.key.rpartition(f"config.{node}")[2]
            raise NotAllowed(f"{place}.settings{key}", exc.value, exc.allowed) from exc
        for name, value in taken[node].items():
            if name in AT_ITS_START or settings_for(kinds[node])[name].symbol is not None:
                allowed = f"said in `config:` only: windows are made of what {node} has from its start on"
                raise NotAllowed(f"{place}.settings.{name}", str(value), allowed)


def restarts_as_another_version(scenario: Scenario) -> None:
    """Only an Apache server that runs from the start can be restarted as another version, and no restart storm hits
    this server."""
    made_by, topology, joins_s = scenario.implementations(), scenario.topology(), scenario.joins_s()
    changed: set[str] = set()
    for index, entry in enumerate(scenario.timeline):
        if (asked := new_version(entry)) is None:
            continue
        key = f"timeline.{index}.implementation"
        try:
            known = distribution(asked)
        except ValueError as exc:
            raise NotAllowed(key, repr(asked), ALLOWED) from exc
        for node in nodes_of(entry.nodes, topology.members):
            if known is None or topology.kinds[node] not in SERVERS or node not in made_by:
                is_now = made_by.get(node, OURS)
                allowed = f"another version of a server that is Apache's from the start: {node} is {is_now}"
                raise NotAllowed(key, repr(asked), allowed)
            if node in joins_s:
                allowed = f"of a node that is there from the start: {node} joins at {joins_s[node]:g} s"
                raise NotAllowed(key, repr(asked), allowed)
            changed.add(node)
    for index, entry in enumerate(scenario.timeline):
        for node in nodes_of(entry.nodes, topology.members) if isinstance(entry.what, RestartStorm) else ():
            if node in changed:
                allowed = f"not of {node}, whose implementation changes: only the seed tells how often it was started"
                raise NotAllowed(f"timeline.{index}.nodes", entry.do, allowed)


def restarts_at_new_addresses(scenario: Scenario) -> None:
    """Only brokers restart at another address, and only if all nodes are nemesrv's own; NameServers' restarts at
    another address were replaced before (`readdressed`). NotAllowed otherwise."""
    topology = scenario.topology()
    moved: set[str] = set()
    for index, entry in enumerate(scenario.timeline):
        if not moves(entry):
            continue
        key = f"timeline.{index}.new_address"
        for node in nodes_of(entry.nodes, topology.members):
            if topology.kinds[node] not in (NodeKind.BROKER, NodeKind.SLAVE):
                raise NotAllowed(key, "true", f"a restart of brokers or of NameServers: {node} is neither")
            moved.add(node)
        if others := {**scenario.implementations(), **scenario.cluster.clients}:
            allowed = f"brokers and clients that are all ours: {next(iter(others))} is not"
            raise NotAllowed(key, "true", allowed)
    for index, entry in enumerate(scenario.timeline) if moved else ():
        nodes = set(nodes_of(entry.nodes, topology.members))
        named = {getattr(entry.what, "broker", None), getattr(entry.what, "address", None)}
        if isinstance(entry.what, RestartStorm) and (hit := moved & nodes):
            allowed = f"not of {min(hit)}, which gets another address: only the seed tells how often it was started"
            raise NotAllowed(f"timeline.{index}.nodes", entry.do, allowed)
        if isinstance(entry.what, ByHand) and (hit := moved & (nodes | named)):
            allowed = f"an act that is not about {min(hit)}, which gets another address"
            raise NotAllowed(f"timeline.{index}", entry.do, allowed)


def clock_changes(scenario: Scenario) -> None:
    """Only a running NameServer's wall clock can be changed, and only a clock that was changed before can be set
    right."""
    servers = scenario.topology().of(NodeKind.NAME_SERVER)
    down: dict[str, str] = {}
    wrong: set[str] = set()
    for index, entry in enumerate(scenario.timeline):
        for node in entry.nodes:
            if entry.do in PROCESS_FAULTS:
                down[node] = f"{node} was {PROCESS_FAULTS[entry.do].title} before"
            elif entry.do in ("resume", "restart"):
                down.pop(node, None)
            if not isinstance(entry.what, ClockAction):
                continue
            key, said = f"timeline.{index}.nodes", f"{entry.do} of {node} at {entry.at_s:g} s"
            if node not in servers:
                allowed = f"one of {', '.join(servers)}, which alone go by a wall clock{nearest(node, servers)}"
                raise NotAllowed(key, said, allowed)
            if node in down:
                raise NotAllowed(key, said, f"a node that runs then: {down[node]}")
            if isinstance(entry.what, ClockSync) and node not in wrong:
                raise NotAllowed(key, said, "a node whose clock was changed before")
            wrong.add(node)


def full_disks(scenario: Scenario) -> None:
    """Only a running master's disk can be full, and the master's process does not end before the disk is free again."""
    brokers = scenario.topology().of(NodeKind.BROKER)
    down: dict[str, str] = {}
    full: set[str] = set()
    for index, entry in enumerate(scenario.timeline):
        for node in entry.nodes:
            key, said = f"timeline.{index}.nodes", f"{entry.do} of {node} at {entry.at_s:g} s"
            if isinstance(entry.what, DiskAction) and node not in brokers:
                raise NotAllowed(key, said, f"one of {', '.join(brokers)}{nearest(node, brokers)}")
            if isinstance(entry.what, FillDisk) and (node in full or node in down):
                allowed = f"a broker that runs then, and has room: {down.get(node, 'its disk is full already')}"
                raise NotAllowed(key, said, allowed)
            if entry.do == "free_disk" and node not in full:
                raise NotAllowed(key, said, "a broker whose disk is full then")
            if node in full and entry.do in (*PROCESS_FAULTS, "restart", "rolling_restart", "restart_storm"):
                raise NotAllowed(key, said, f"free_disk before it: the disk of {node} is full")
            if entry.do in PROCESS_FAULTS:
                down[node] = f"{node} was {PROCESS_FAULTS[entry.do].title} before"
            elif entry.do in ("resume", "restart"):
                down.pop(node, None)
            elif isinstance(entry.what, DiskAction):
                (full.add if isinstance(entry.what, FillDisk) else full.discard)(node)
