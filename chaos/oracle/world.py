"""What the harness did in a run: the lifetime of each node, and the time of each fault of a process or link.

From the rows of the environment (`run_begin`, `phase`, `node`, `started`, `fault` …), in plain Python (`of_rows`). What
rules ask for by node, link and kind is indexed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from threading import RLock
from typing import Any, ParamSpec, TypeVar, cast

from ...remoting.node.profile import Profile
from ...remoting.topics import DEFAULT_CLUSTER
from ..faults.fault import Loss
from ..history.schema import Group, named, object_of
from ..settings.catalogue import settings_for
from ..settings.setting import Value
from ..topology import CONSUMER_GROUP, NodeKind, broker_id, broker_name
from .by_hand import Act, Reset, acts_of, affected, resets_in
from .client_profiles import ClientProfile, profile_of, timers_under_test
from .hosts import Blind, hosts_in
from .intervals import Stretch, grouped, merged
from .recorded import (
    ClockChange,
    Fault,
    FullDisk,
    Life,
    NodeInfo,
    Served,
    as_long_as_they_held,
    changes_of,
    faults_in,
    full_disks_in,
    in_order,
    in_series,
    lives_in,
    nodes_in,
    not_ready,
    old_addresses,
    refuse_producers,
    served_in,
    shared_by_dialler,
    stalls_in,
    wall_ms,
    wrong_times,
)
from .timers import Timers

ENVIRONMENT_EVENTS = named(Group.ENVIRONMENT)
"""The events that say what the harness did; the rows of all others are traffic."""

P = ParamSpec("P")
T = TypeVar("T")

MEMO = RLock()
"""Held while something is computed once for all who ask: checks gather in two threads, and compare by identity."""


def once(make: Callable[P, T]) -> Callable[P, T]:
    """The same, made once for all who ask for it of the same World, or facts, its first argument, which keeps it in its
    `memo`. Treat it as read-only."""

    @wraps(make)
    def made(*of: P.args, **named: P.kwargs) -> T:
        memo: dict[Hashable, Any] = cast(Any, of[0]).memo
        asked = (id(one) if isinstance(one, World) else one for one in of[1:])
        key = make.__module__, make.__qualname__, *asked, *named.items()
        with MEMO:
            if key not in memo:
                memo[key] = of[1:], make(*of, **named)  # another World with it, so that its id stays its own
            found: T = memo[key][1]
        return found

    return made


class _Index:
    """The World's tables by the keys that rules ask for, and what was computed from them once."""

    __slots__ = ("by_name", "faults", "lives", "memo")

    def __init__(self, world: World) -> None:
        self.by_name = {node.name: node for node in world.nodes}
        lives = grouped((life.node, life) for life in world.lives)
        faults = grouped(((fault.source, fault.target), fault) for fault in world.faults)
        self.lives = {node: tuple(of) for node, of in lives.items()}
        self.faults = {way: tuple(of) for way, of in faults.items()}
        self.memo: dict[Hashable, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The environment of one run."""

    timers: Timers
    nodes: tuple[NodeInfo, ...] = ()
    lives: tuple[Life, ...] = ()
    faults: tuple[Fault, ...] = ()
    """Those that were injected, what acts by hand leave open (`Fault.by_hand`), and when a process stood still."""
    acts: tuple[Act, ...] = ()
    """What was done by hand, in order of time."""
    resets: tuple[Reset, ...] = ()
    """Offsets that an operator set for a group, in order of time."""
    clocks: Mapping[str, Sequence[ClockChange]] = field(default_factory=dict)
    """By node what was done to its wall clock, in order of time."""
    full_disks: tuple[FullDisk, ...] = ()
    """When brokers' disks were full, in order of time."""
    end_ms: float = 0.0
    """Where judging ends: before the harness takes the cluster down."""
    timeline_ms: float = 0.0
    settling_ms: float | None = None
    """When the run began to settle; None: no row says so."""
    """Where the scenario's timeline starts; what is shown to people counts from there."""
    served: tuple[Served, ...] = ()
    """The lists of the address server, the first one first; none where there is none."""
    blind: tuple[Blind, ...] = ()
    """When nobody knows what nodes on other hosts did, or when they did it."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """What `run_begin` says of the run: scenario, seed, profile, client_profile …"""
    _index: _Index = field(init=False, repr=False, compare=False)

    @property
    def memo(self) -> dict[Hashable, Any]:
        """What was made of it (`once`)."""
        return self._index.memo

    @property
    def workload(self) -> Mapping[str, Any]:
        """What the run says of its workload; empty where it says nothing."""
        return self.run.get("workload") or {}

    def promised(self, name: str) -> Any:
        """What the scenario promises beyond RocketMQ's windows (`promises`); None if it promises nothing."""
        return (self.run.get("promises") or {}).get(name)

    def promised_ms(self, name: str) -> float | None:
        """The same of a time, which the scenario has in seconds."""
        promised_s = self.promised(name)
        return None if promised_s is None else float(promised_s) * 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", _Index(self))

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]], *, last_ms: float | None = None) -> World:
        """From rows as `read_rows` or Spark give them, in any order; a row's `value` may be an object or its JSON text.
        Where nothing says that the run has ended, judging ends at `last_ms`, or at the last of these rows."""
        rows = [*rows]
        latest_ms = max((row["time_ms"] for row in rows), default=0.0)
        lags = [row for row in rows if row["event"] == "timer_lag"]
        picked = [row for row in rows if row["event"] in ENVIRONMENT_EVENTS]
        picked.sort(key=lambda row: (row["time_ms"], row.get("incarnation") or 0, row["seq"]))
        of = defaultdict[str, list[Mapping[str, Any]]](list, grouped((row["event"], row) for row in picked))
        run = object_of(of["run_begin"][0].get("value")) if of["run_begin"] else {}
        nodes = nodes_in(of["node"])
        under_test = [node for node in nodes.values() if node.is_under_test]
        faults = shared_by_dialler(in_series(faults_in(picked)), under_test)
        if under_test:
            run["node_timers"] = {**(run.get("node_timers") or {}), **timers_under_test(under_test)}
        timers = Timers.from_json(run)
        ends = [*of["run_end"], *(row for row in of["phase"] if row.get("phase") == "end")]
        began_ms = {str(row.get("phase")): float(row["time_ms"]) for row in reversed(of["phase"])}
        end_ms = min((float(row["time_ms"]) for row in ends), default=float(latest_ms if last_ms is None else last_ms))
        hosts = hosts_in(picked, list(nodes.values()), timers.at_once_ms, end_ms, faults)
        timers = timers.with_(clocks_ms=hosts.clocks_ms)
        faults = tuple(as_long_as_they_held(faults, lags, timers))
        made = cls(
            timers=timers,
            nodes=tuple(node for _, node in sorted(nodes.items())),
            lives=lives_in(picked, faults, timers.clocks_ms),
            faults=faults,
            blind=hosts.blind,
            end_ms=end_ms,
            timeline_ms=began_ms.get("steady", 0.0),
            settling_ms=began_ms.get("settle"),
            served=served_in(run, of["served_list"]),
            resets=resets_in(of["offset_reset"]),
            full_disks=full_disks_in(of["disk"], end_ms),
            run=run,
        )
        acts, clocks = acts_of(made, of["admin"]), changes_of(of["clock"])
        made = replace(made._with_faults(affected(made, acts)), acts=acts)
        made = replace(made._with_faults((*wrong_times(made, clocks), *not_ready(made, clocks))), clocks=clocks)
        made = made._with_faults((*old_addresses(made), *refuse_producers(made)))
        return made if run.get("imported") else made._with_faults(stalls_in(lags, made))

    def _with_faults(self, more: Iterable[Fault]) -> World:
        return replace(self, faults=in_order((*self.faults, *more)))

    @property
    @once
    def owners(self) -> Mapping[str, str]:
        """Every address that any node ever has → the node."""
        return {at: node.name for node in self.nodes for at in node.addresses}

    def node(self, name: str) -> NodeInfo | None:
        """The node of that name."""
        return self._index.by_name.get(name)

    def kind_of(self, name: str) -> str:
        """The node's kind; "" for a name that no node has."""
        return node.kind if (node := self.node(name)) else ""

    def address_at(self, name: str, at_ms: float) -> str | None:
        """The node's address then; None for who has none."""
        return node.address_at(at_ms) if (node := self.node(name)) else None

    def had_before(self, name: str, address: str | None, at_ms: float) -> bool:
        """Whether the address was the node's, and another is by then."""
        node = self.node(name)
        return node is not None and address in node.addresses and address != node.address_at(at_ms)

    def wall_ms(self, node: str, at_ms: float) -> float:
        """What the node's wall clock showed then."""
        return wall_ms(self.clocks.get(node, ()), at_ms)

    def age_ms(self, node: str, since_ms: float, at_ms: float) -> float:
        """How old what the node noted at `since_ms` is at `at_ms` by its wall clock."""
        return self.wall_ms(node, at_ms) - self.wall_ms(node, since_ms)

    @once
    def timers_of(self, *nodes: str) -> Timers:
        """The timers as these nodes have them: a broker and a NameServer, or a client; the run's own for the rest."""
        differing = self.run.get("node_timers")
        if not differing:
            return self.timers
        return self.timers.with_(**{k: v for node in nodes for k, v in differing.get(node, {}).items()})

    def harmless(self, fault: Fault) -> bool:
        """Whether it is far from every time-out, those of who dials over its link among them."""
        is_fast = fault.harmless(self.timers) and fault.harmless(self.timers_of(fault.source))
        return is_fast and not self._outlasts_a_try(fault)

    def _outlasts_a_try(self, fault: Fault) -> bool:
        """Whether a try of its producer may run out over its link: within T, or sendMsgMaxTimeoutPerRequest."""
        if fault.kind.delay is None or self.kind_of(fault.source) != "producer":
            return False
        cap_ms, T_ms = self.send_cap_ms(fault.source), self.timers_of(fault.source).T_ms
        return 2 * fault.kind.delay.round_trip_max_ms >= (T_ms if cap_ms is None else min(T_ms, cap_ms))

    def send_cap_ms(self, producer: str) -> float | None:
        """How long one try of a send may take, but the last; None: as long as the send."""
        if self.timers.profile is not Profile.V5_X:
            return None
        cap_ms = self.number(producer, "sendMsgMaxTimeoutPerRequest")
        return None if cap_ms < 0 else cap_ms

    def setting(self, node: str, name: str) -> Value:
        """What this node has for a setting of RocketMQ's (docs/settings.md). KeyError: nodes of its kind have none."""
        said = (self.run.get("settings") or {}).get(node, {})
        setting = settings_for(NodeKind(self.kind_of(node)))[name]
        return said[name] if name in said else setting.default(self.timers.profile)

    def number(self, node: str, name: str) -> float:
        """The same of a setting that is a number."""
        return float(str(self.setting(node, name)))

    def values(self, node: str, name: str, from_ms: float = -math.inf, to_ms: float = math.inf) -> list[Value]:
        """What this node may have had in that time for a setting that RocketMQ reads at each use, and that an
        `update_config` may have changed. A process that is started again may have the first value, or the last."""
        first, apart_ms, changed_ms = self.setting(node, name), self.timers.clocks_ms, math.inf
        found = [first]
        for act in (one for one in self.acts if one.node == node and one.may_be_done and name in one.settings):
            if act.began_ms - apart_ms <= to_ms:
                if act.is_done and act.ended_ms + apart_ms <= from_ms:
                    found.clear()
                value = act.settings[name]
                found.append(str(value).lower() == "true" if isinstance(first, bool) else value)
                changed_ms = min(changed_ms, act.began_ms)
        again = any(changed_ms < life.start_ms <= to_ms for life in self.lives_of(node))
        return [*found, first] if again else found

    def numbers(self, node: str, name: str, from_ms: float = -math.inf, to_ms: float = math.inf) -> list[float]:
        """The same of a setting that is a number."""
        return [float(str(value)) for value in self.values(node, name, from_ms, to_ms)]

    def under_test(self) -> tuple[NodeInfo, ...]:
        """Programs of somebody else that were seen from outside, and those that nothing was seen of."""
        return tuple(node for node in self.nodes if node.is_under_test)

    @once
    def of_ours(self) -> World:
        """The same for a check that knows nothing of programs seen from outside: they are nobody's producers there."""
        if not any(node.is_under_test for node in self.nodes):
            return self
        kind = str(NodeKind.EXTERNAL)
        nodes = tuple(replace(node, kind=kind) if node.is_under_test else node for node in self.nodes)
        return replace(self, nodes=nodes)

    @once
    def but_stalls(self) -> World:
        """The same as if the machine had run every process at all times."""
        others = tuple(fault for fault in self.faults if not fault.stood_still)
        return self if others == self.faults else replace(self, faults=others)

    def client_profile_of(self, node: str) -> ClientProfile:
        """By whose rules this client is judged. KeyError for a profile that this version does not know."""
        own = client.client_profile if (client := self.node(node)) else None
        return profile_of(own or self.workload.get("client_profile"), self.timers.profile)

    def _own(self, node: str) -> Mapping[str, Any]:
        """What the scenario says of this node alone (`nodes:`)."""
        return (self.run.get("nodes") or {}).get(node) or {}

    def cluster_of(self, broker: str) -> str:
        """The cluster of this broker, or slave."""
        return self._own(broker_name(broker)).get("cluster_name") or DEFAULT_CLUSTER

    def has_own_list(self, node: str) -> bool:
        """Whether its list of NameServers is not all of them in the order of their names."""
        return bool(self._own(node).get("name_servers"))

    def listed(self, node: str) -> tuple[NodeInfo, ...]:
        """The NameServers on the list of this broker or client, in its order; on any that it may fetch, by HTTP."""
        listed = map(self.node, self._entries(node))
        return tuple(one for one in listed if one is not None and one.kind == "name_server")

    def lists(self, node: str, name_server: str) -> bool:
        """Whether the NameServer is on the list of this broker or client, or on any that it may fetch."""
        return any(server.name == name_server for server in self.listed(node))

    def addresses_of(self, node: str) -> list[str]:
        """The addresses on its list, those where nobody listens among them."""
        return self.addresses(self._entries(node))

    def addresses(self, entries: Iterable[str]) -> list[str]:
        """Of NameServers by name, and of what is host:port already."""
        by_name = {server.name: server.address for server in self.of_kind("name_server")}
        return [by_name.get(entry) or entry for entry in entries]

    def dead_entries(self, node: str) -> int:
        """How many addresses of its list nobody listens at."""
        return len(self._entries(node)) - len(self.listed(node))

    def asks_for_list(self, node: str) -> bool:
        """Whether this broker or client has no list of its own and fetches one from the address server."""
        fetches = self.kind_of(node) in ("broker", "slave", "producer", "consumer")
        return bool(self.served) and fetches and not self.has_own_list(node)

    def _entries(self, node: str) -> list[str]:
        """Of its own list, or of all lists that it may fetch; where it has neither, all NameServers."""
        own = [*(self._own(node).get("name_servers") or ())]
        if self.served and not own:
            lists = self.served if self.asks_for_list(node) else self.served[:1]
            own = [*dict.fromkeys(entry for one in lists for entry in one.entries)]
        return own or [one.name for one in self.of_kind("name_server")]

    def seen_by(self, client: str, kind: str) -> tuple[NodeInfo, ...]:
        """The NameServers on the client's list, or the brokers that one of these can name to it."""
        if kind == "name_server":
            return self.listed(client)
        if kind != "broker" or self._all_alike:
            return self.of_kind(kind)
        mine = {server.name for server in self.listed(client)}
        return tuple(
            one
            for one in self.of_kind(kind)
            if self.permits(one.name, client) and mine & {server.name for server in self.listed(one.name)}
        )

    @property
    def _all_alike(self) -> bool:
        """Whether no node has a list, a setting or a beginning of its own."""
        by_hand = any(act.f == "update_config" for act in self.acts)
        return not self.run.get("nodes") and not self.run.get("settings") and not self.served and not by_hand

    def permits(self, broker: str, client: str) -> bool:
        """Whether the broker lets a producer write, or a consumer read, by its permission (brokerPermission), and has
        the consumer's group; or its master has, from which slaves take groups."""
        return self._names(broker, client) and self._has_group(broker_name(broker), client)

    def _names(self, broker: str, client: str) -> bool:
        said = (self.run.get("settings") or {}).get(broker) or {}
        if "brokerPermission" not in said:
            return True
        needed = {"producer": 2, "consumer": 4}.get(self.kind_of(client), 0)
        return int(str(self.setting(broker, "brokerPermission"))) & needed == needed

    @once
    def _has_group(self, master: str, client: str) -> bool:
        """Whether it makes the consumer's group at a heartbeat (autoCreateSubscriptionGroup), which nothing else here
        makes; a group that was there from the start stays when somebody forbids that by hand."""
        name = "autoCreateSubscriptionGroup"
        if self.kind_of(client) != "consumer" or self.kind_of(master) != "broker" or all(self.values(master, name)):
            return True
        forbidden_ms = min(
            (act.began_ms for act in self.acts if act.node == master and name in act.settings), default=0.0
        )
        from_the_start = (
            -math.inf in map(self.joined_ms, self.members_of(client)) and self.joined_ms(master) == -math.inf
        )
        return bool(self.setting(master, name)) and from_the_start and 0.0 < self.timeline_ms < forbidden_ms

    def topic_of(self, client: str) -> str:
        """The topic that this client sends to, or reads."""
        topic = self.workload.get("topic")
        return str((self.run.get("topic_of") or {}).get(client) or topic or "")

    @property
    def topics(self) -> frozenset[str]:
        """Those that producers or consumers use."""
        return frozenset(self.topic_of(client.name) for client in self.of_kind("producer", "consumer"))

    def queues_of(self, client: str) -> int | None:
        """How many queues its topic has at each broker; None if the run does not say."""
        found = (self.run.get("topics") or {}).get(self.topic_of(client), self.workload.get("queues"))
        return None if found is None else int(found)

    def group_of(self, consumer: str) -> str:
        """Its group; the workload's where the run names none."""
        return str((self.run.get("group_of") or {}).get(consumer) or CONSUMER_GROUP)

    def members_of(self, consumer: str) -> tuple[str, ...]:
        """All consumers of its group, itself among them."""
        group = self.group_of(consumer)
        return tuple(one.name for one in self.of_kind("consumer") if self.group_of(one.name) == group)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Group to its consumers."""
        found = grouped((self.group_of(one.name), one.name) for one in self.of_kind("consumer"))
        return {group: tuple(members) for group, members in found.items()}

    def joined_ms(self, node: str) -> float:
        """When it joined; -inf for one that was there from the start, inf for one that never did."""
        if self._own(node).get("joins_at_s") is None:
            return -math.inf
        return min((life.start_ms for life in self.lives_of(node)), default=math.inf)

    def views_of(self, *clients: str, refuse_groups: bool = True) -> set[frozenset[str]]:
        """The sets of brokers that the NameServers on these clients' lists may name to them; one where all agree.
        `refuse_groups`: without those that have no group of theirs."""
        permits = self.permits if refuse_groups else self._names
        if self._all_alike:
            return {frozenset(one.name for one in self.of_kind("broker"))} if clients else set()
        found = set()
        for client in clients:
            for server in self.listed(client):
                named = [
                    one.name
                    for one in self.of_kind("broker")
                    if server in self.listed(one.name) and permits(one.name, client)
                ]
                found.add(frozenset(named))
                if self.served and not self.asks_for_list(client):  # brokers may fetch lists that it knows nothing of
                    found.add(frozenset(name for name in named if self._always_lists(name, server.name)))
        return found

    def _always_lists(self, node: str, name_server: str) -> bool:
        return not self.asks_for_list(node) or all(name_server in one.entries for one in self.served)

    def settle_s_until(self, at_ms: float, since_ms: float) -> int:
        """Return the `settle_s` with which the run lasts until then. `since_ms`: when it began to settle, where no row
        says so."""
        return math.ceil((at_ms - (since_ms if self.settling_ms is None else self.settling_ms)) / 1000) + 1

    @property
    def views_differ(self) -> bool:
        """Whether consumers may see different brokers, so that each shares out the queues of its own view."""
        return len(self.views_of(*(one.name for one in self.of_kind("consumer")), refuse_groups=False)) > 1

    @property
    def unclear(self) -> str:
        """Why nothing is said of who owns which queue, and of what comes twice or not at all; "" where something is."""
        differ = "by the lists of `nodes:` consumers may see different brokers, so each shares out queues of its own"
        return differ if self.views_differ else self.mixed_up_by_hand

    @property
    def lost_by_hand(self) -> str:
        """What was done by hand so that an acknowledged message, its offset or its broker may be lost; "" for
        nothing."""
        for act in self.acts:
            if act.f == "switch" and act.may_be_done:
                return f"{act.act_id} gave {broker_name(act.node)} a master that may lack messages of the one before"
        return self.first_deletion or self.mixed_up_by_hand

    @property
    def deleted(self) -> Mapping[str, str]:
        """The topics of clients whose messages somebody deleted by hand, each with a sentence that says so."""
        used = self.topics if self.acts else frozenset[str]()
        brokers = {broker.name for broker in self.of_kind("broker")}
        deletions = (act for act in self.acts if act.f == "delete_topic" and act.may_be_done and act.node in brokers)
        return {
            str(act.topic): f"{act.act_id} deleted the messages of {act.topic} at {act.node}"
            for act in deletions
            if act.topic in used
        }

    @property
    def first_deletion(self) -> str:
        """The first of these sentences; "" for none."""
        return next(iter(self.deleted.values()), "")

    @property
    def mixed_up_by_hand(self) -> str:
        """What was done by hand so that a message's queue does not tell its broker, or that it is gone; "" for
        nothing."""
        used = self.topics if self.acts else frozenset[str]()
        own = {broker.name: broker.address for broker in self.of_kind("broker")}
        for act in self.acts:
            if not act.may_be_done:
                continue
            told = used & (act.value.get("topics") or {}).keys()
            of = broker_name(self.owners.get(act.address, act.broker))
            is_anothers = act.broker in own and of in own and of != act.broker
            if act.f == "register" and (told or is_anothers) and own.get(act.broker) != act.address:
                return f"by {act.act_id} consumers may see different brokers, or one broker's queues under two names"
        return self.first_deletion if used <= self.deleted.keys() else ""

    @once
    def of_kind(self, *kinds: str) -> tuple[NodeInfo, ...]:
        return tuple(node for node in self.nodes if node.kind in kinds)

    def ours(self, *kinds: str) -> tuple[NodeInfo, ...]:
        """Those of these kinds that run nemesrv's own programs."""
        return tuple(node for node in self.of_kind(*kinds) if node.is_ours)

    def is_ours(self, name: str) -> bool:
        """Whether the node runs nemesrv's own program; also a node that no row describes."""
        return (node := self.node(name)) is None or node.is_ours

    def ids_of(self, broker: str, from_ms: float, to_ms: float) -> tuple[int, ...]:
        """Under which brokerIds the broker may stand at some time in [from_ms, to_ms]: 0 from when it was made master
        on, and its own until every NameServer must have heard."""
        own, switch = broker_id(broker), self._switch_of(broker)
        if switch is None:
            return (own,)
        began_ms, heard_ms = switch
        return (*((own,) if from_ms < heard_ms else ()), *((0,) if to_ms >= began_ms else ()))

    def heard_ms(self, broker: str) -> float:
        """By when every NameServer must have heard that the broker was made master; inf where it never was."""
        switch = self._switch_of(broker)
        return math.inf if switch is None else switch[1]

    def _switch_of(self, broker: str) -> tuple[float, float] | None:
        if not broker_id(broker):
            return None
        done = (act for act in self.acts if act.f == "switch" and act.node == broker and act.may_be_done)
        return next(((act.began_ms, act.ended_ms + self.timers.registers_ms) for act in done), None)

    def lives_of(self, node: str) -> tuple[Life, ...]:
        """The node's processes, in their order: when each began and ended."""
        return self._index.lives.get(node, ())

    def lives_of_kind(self, *kinds: str) -> list[Life]:
        """The processes of each node of these kinds."""
        return [life for node in self.of_kind(*kinds) for life in self.lives_of(node.name)]

    def ended_ms(self, node: str, incarnation: int) -> float:
        """When that process of the node ended; inf where it did not, or nobody recorded it."""
        return next((life.end_ms for life in self.lives_of(node) if life.incarnation == incarnation), math.inf)

    def life_at(self, node: str, at_ms: float) -> Life | None:
        """The process that the node had then."""
        return next((life for life in self.lives_of(node) if life.start_ms <= at_ms < life.end_ms), None)

    def process_faults(self, node: str) -> tuple[Fault, ...]:
        return self._index.faults.get((node, None), ())

    def round_trips_ms(self, source: str, targets: Iterable[str], from_ms: float, to_ms: float) -> list[float]:
        """How late slow links, harmless ones too, made the answers of each of these at most in that time. What waits
        behind other bytes on a narrow link is given up at the call's time-out (A)."""

        def late_ms(target: str) -> float:
            faults = [fault for fault in self.link_faults(source, target) if fault.overlaps(from_ms, to_ms)]
            if any(fault.kind.delay is None and fault.loss(self.timers) is Loss.SLOW for fault in faults):
                return self.timers.A_ms
            return sum(fault.kind.delay.round_trip_max_ms for fault in faults if fault.kind.delay is not None)

        return [late_ms(target) for target in targets]

    def way_faults(self, source: str, target: str) -> tuple[Fault, ...]:
        """Those of either process, and of the link by which the source dials the target."""
        return *self.process_faults(source), *self.process_faults(target), *self.link_faults(source, target)

    def link_faults(self, source: str, target: str) -> tuple[Fault, ...]:
        return self._index.faults.get((source, target), ())

    def pauses(self) -> tuple[Fault, ...]:
        """The faults that stop a process without ending it: its timers are late by design."""
        return tuple(
            f for f in self.faults if f.target is None and f.loss(self.timers) is Loss.SILENT and not f.stood_still
        )

    def paused(self, node: str) -> list[Stretch]:
        """When these faults stopped the node's process; in order of time."""
        return merged(Stretch(fault.start_ms, fault.end_ms) for fault in self.pauses() if fault.source == node)
