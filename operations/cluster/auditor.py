"""Finds problems in a live cluster by comparing successive readings of all NameServers (`Look`, looks.py). Pure: no
clock.

    looked(look) -> changes      a problem is `found` once it has lasted for its window, and `over` once it is gone

Healthy NameServers disagree for a while. A registration reaches one NameServer first, a restarted NameServer has an
empty table, and two NameServers drop a dead broker up to a scan period (S) apart. Each kind of problem has a time
limit, and a problem is reported only after it has lasted that long. A NameServer is not judged while it fills after a
restart.
"""

import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...chaos.oracle.intervals import grouped
from ...chaos.reports.text import all_of
from ...remoting.codes import MASTER_ID
from .looks import BrokerId, BrokerLook, Look, Member, Route, TopicRow

SETTLES_S = 3.0
"""Brokers register with all NameServers at once, so all must have a registration within this time of the first."""
CONNECT_S = 3.0
SCANS_S = 15.0
"""One NameServer drops a silent host this much later than another: idle close against scan, S = 10 s (5 in 5.x), plus
the interval of looks."""
SILENT_S = 5.0
PERIOD_S = 30.0
"""registerNameServerPeriod, until a broker has answered with its own."""
LISTS_S = 120.0 + CONNECT_S
"""A client that gets its list of NameServers by HTTP has a new one within this time."""
FLIPS = 2
TOLD_S = 600.0
"""How long a dataVersion that went back is reported; it is seen once."""
SHOWN = 5


class Problem(NamedTuple):
    """A problem of a cluster: its kind, and its nodes. Equal values in two readings mean the same problem."""

    kind: str
    about: tuple[str, ...]


Sightings = Iterator[tuple[Problem, tuple[float, str]]]
"""The problems that one look shows, each with its sentence and the time for which it must last before it is
reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemChange:
    at_s: float
    problem: Problem
    found: bool
    """False: the problem is over."""
    since_s: float
    sentence: str

    @property
    def lasted_s(self) -> float:
        return self.at_s - self.since_s


KINDS: Mapping[str, str] = {
    "name-server-silent": "a NameServer gives no answer",
    "broker-missing": "a NameServer lacks a broker that lives and that another one holds",
    "broker-not-listing": "a broker's own list lacks a NameServer, which will never hold it",
    "name-server-unlisted": "a broker registers with a NameServer that is not watched",
    "address-differs": "NameServers hold one broker at different addresses",
    "claimed-twice": "two addresses take turns as one broker",
    "one-address-two-names": "one address is registered as two brokers",
    "no-master": "a NameServer holds slaves of a broker name and no master, so that nobody can write to it",
    "id-of-nobody": "a NameServer holds a broker under an id that no broker keeps",
    "client-unlisted-name-server": "a consumer's own list has a NameServer that is not watched",
    "client-not-listing": "a consumer's own list lacks a NameServer, which it will never ask",
    "topics-differ": "NameServers that hold the same brokers have different topics",
    "route-differs": "NameServers answer different queues or permissions of a topic",
    "version-backwards": "a broker's dataVersion is older than it was",
}
"""Each kind and its meaning."""


@dataclass(slots=True)
class _Raw:
    since_s: float
    window_s: float
    sentence: str
    named: bool = False

    def change(self, at_s: float, problem: Problem, *, found: bool) -> ProblemChange:
        return ProblemChange(at_s=at_s, problem=problem, found=found, since_s=self.since_s, sentence=self.sentence)


@dataclass(slots=True)
class Auditor:
    """Compares successive readings of a live cluster. `watched` has the NameServers' addresses, in order."""

    watched: tuple[str, ...]
    _raw: dict[Problem, _Raw] = field(default_factory=dict)
    _silent_until: dict[str, float] = field(default_factory=dict)
    """NameServer to the time when it answered again or lost its whole table; it fills from then on."""
    _tables: dict[str, Mapping[BrokerId, str]] = field(default_factory=dict)
    _topics: dict[str, frozenset[str]] = field(default_factory=dict)
    _routes: dict[str, dict[str, Route | None]] = field(default_factory=lambda: defaultdict(dict))
    _brokers: dict[str, BrokerLook] = field(default_factory=dict)
    _addresses: dict[tuple[str, BrokerId], list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    _versions_of: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _clients: dict[Member, frozenset[str]] = field(default_factory=dict)
    """Each consumer's own list, from its last answer."""
    _went_back: dict[str, tuple[float, str]] = field(default_factory=dict)
    _fresh: set[str] = field(default_factory=set)
    """Topics with new information, and disputed ones."""
    _now_s: float = 0.0
    _first: bool = True

    @property
    def problems(self) -> dict[Problem, str]:
        """The cluster's problems that are reported now, each with its sentence."""
        return {problem: raw.sentence for problem, raw in self._raw.items() if raw.named}

    @property
    def since_s(self) -> dict[Problem, float]:
        """The time, in seconds, at which each reported problem was first seen."""
        return {problem: raw.since_s for problem, raw in self._raw.items() if raw.named}

    @property
    def pending(self) -> dict[Problem, float]:
        """Problems that are not reported yet, each with the time when it will be reported."""
        return {problem: raw.since_s + raw.window_s for problem, raw in self._raw.items() if not raw.named}

    @property
    def fills(self) -> bool:
        """Whether some NameServer answered again, or lost its whole table, so recently that brokers can still be
        missing in its table."""
        return any(map(self._fills, self._lacking))

    @property
    def _lacking(self) -> list[str]:
        everybody = {broker for table in self._tables.values() for broker in table}
        return [at for at, table in self._tables.items() if table.keys() != everybody]

    @property
    def suspects(self) -> frozenset[str]:
        """The addresses of brokers that only some NameServers list, which are asked next."""
        held = [frozenset(table.values()) for table in self._tables.values()]
        return frozenset() if not held else frozenset.union(*held) - frozenset.intersection(*held)

    @property
    def disputed(self) -> frozenset[str]:
        """Topics whose routes differ between NameServers, which are looked up again."""
        return frozenset(problem.about[0] for problem in self._raw if problem.kind == "route-differs")

    @property
    def fills_s(self) -> float:
        """The longest time until every broker has registered with a restarted NameServer: registration period plus call
        time (R + C)."""
        return max((b.period_s for b in self._brokers.values() if b.period_s), default=PERIOD_S) + CONNECT_S

    def looked(self, look: Look) -> list[ProblemChange]:
        """Compare this reading with earlier readings. Returns the cluster's new problems, and the problems that are
        over."""
        self._take(look)
        now = dict(self._found(look))
        changes = []
        for problem in [problem for problem in self._raw if problem not in now]:
            if (raw := self._raw.pop(problem)).named:
                changes.append(raw.change(look.at_s, problem, found=False))
        for problem, (window_s, sentence) in now.items():
            raw = self._raw.setdefault(problem, _Raw(look.at_s, window_s, sentence))
            raw.window_s, raw.sentence = window_s, sentence
            if not raw.named and look.at_s - raw.since_s >= raw.window_s:
                raw.named = True
                changes.append(raw.change(look.at_s, problem, found=True))
        self._first = False
        return changes

    # --- what was seen ------------------------------------------------------------------------------------------------

    def _take(self, look: Look) -> None:
        self._now_s = look.at_s
        self._fresh = set(self.disputed)
        for at, server in look.name_servers.items():
            if server.why is not None:
                self._tables.pop(at, None)
                self._topics.pop(at, None)
                self._routes.pop(at, None)
                self._silent_until[at] = look.at_s
                continue
            if self._tables.get(at) and not server.brokers:
                self._silent_until[at] = look.at_s
            self._tables[at] = server.brokers
            if server.topics is not None:
                self._topics[at] = server.topics
            self._routes[at].update(server.routes)
            self._fresh.update(server.routes)
            for broker, address in server.brokers.items():
                turns = self._addresses[at, broker]
                if not turns or turns[-1][1] != address:
                    turns.append((look.at_s, address))
        self._brokers.update(look.brokers)
        self._clients.update(look.clients)
        for member in look.gone:
            self._clients.pop(member, None)
        if self._first:  # nobody knows since when it is there
            self._silent_until |= dict.fromkeys(self._lacking, look.at_s)

    @property
    def _held(self) -> dict[str, str]:
        return {address: str(broker) for table in self._tables.values() for broker, address in table.items()}

    def _fills(self, at: str) -> bool:
        since_s = self._silent_until.get(at)
        return since_s is not None and self._now_s - since_s <= self.fills_s

    def _speaks_our_names(self, address: str, lists: frozenset[str]) -> bool:
        held = [at for at, table in self._tables.items() if address in table.values()]
        return bool(lists) and bool(held) and all(at in lists for at in held)

    # --- what is wrong ------------------------------------------------------------------------------------------------

    def _found(self, look: Look) -> Sightings:
        for at, server in look.name_servers.items():
            if server.why is not None:
                yield Problem("name-server-silent", (at,)), (SILENT_S, f"NameServer {at} gives no answer: {server.why}")
        yield from self._brokers_missing()
        yield from self._lists()
        yield from self._clients_lists()
        yield from self._roles_wrong()
        yield from self._addresses_wrong()
        yield from self._topics_wrong()
        yield from self._versions(look)

    def _brokers_missing(self) -> Sightings:
        held: dict[BrokerId, dict[str, str]] = defaultdict(dict)
        for at, table in self._tables.items():
            for broker, address in table.items():
                held[broker][at] = address
        for broker, by in sorted(held.items()):
            if len(set(by.values())) > 1:
                said = ", ".join(f"{at} has {address}" for at, address in sorted(by.items()))
                sentence = f"NameServers hold {broker} at different addresses: {said}"
                yield Problem("address-differs", (str(broker),)), (self.fills_s, sentence)
                continue
            (address,) = set(by.values())
            seen = self._brokers.get(address)
            for at in self._tables:
                if at in by or self._fills(at):
                    continue
                if seen is not None and self._speaks_our_names(address, seen.lists) and at not in seen.lists:
                    continue  # told by _lists
                lives = seen is not None and seen.why is None
                why = "it answers us" if lives else "it gives us no answer" if seen is not None else "not asked yet"
                hold = "holds" if len(by) == 1 else "hold"
                sentence = f"NameServer {at} does not hold {broker} ({address}), {all_of(by)} {hold} it; {why}"
                yield Problem("broker-missing", (str(broker), at)), (SETTLES_S if lives else SCANS_S, sentence)

    def _lists(self) -> Sightings:
        held = self._held
        for address, broker in sorted(self._brokers.items()):
            if address not in held or not self._speaks_our_names(address, broker.lists):
                continue
            listed = ";".join(sorted(broker.lists))
            for at in self.watched:
                if at not in broker.lists:
                    sentence = f"{held[address]} ({address}) does not list NameServer {at}: its namesrvAddr is {listed}"
                    yield Problem("broker-not-listing", (held[address], at)), (0.0, sentence)
            for at in sorted(broker.lists - set(self.watched)):
                sentence = f"{held[address]} ({address}) registers with NameServer {at}, which is not watched"
                yield Problem("name-server-unlisted", (at, held[address])), (0.0, sentence)

    def _clients_lists(self) -> Sightings:
        watched = frozenset(self.watched)
        for (group, client_id), listed in sorted(self._clients.items()):
            known = frozenset(filter(_is_numeric, listed))
            if not known & watched:
                continue  # it has them by other names than ours
            who, said = f"consumer {client_id} of group {group}", ";".join(sorted(listed))
            for at in sorted(known - watched):
                sentence = f"{who} lists NameServer {at}, which is not watched: its list is {said}"
                yield Problem("client-unlisted-name-server", (at, group, client_id)), (LISTS_S, sentence)
            if known == listed:
                for at in sorted(watched - listed):
                    sentence = f"{who} does not list NameServer {at}: its list is {said}"
                    yield Problem("client-not-listing", (at, group, client_id)), (LISTS_S, sentence)

    def _roles_wrong(self) -> Sightings:
        for at, table in self._tables.items():
            ids = grouped((broker.name, broker.number) for broker in table)
            for name, numbers in sorted(ids.items()):
                if MASTER_ID not in numbers and not self._fills(at):
                    has = all_of([f"{name}/{number}" for number in sorted(numbers)])
                    sentence = f"NameServer {at} has no master of {name}, only {has}: nobody can write to it"
                    yield Problem("no-master", (name, at)), (self.fills_s, sentence)
                for number in sorted(number for number in numbers if number < MASTER_ID):
                    address = table[BrokerId(name, number)]
                    sentence = f"NameServer {at} holds {address} as {name} with id {number}, which no broker keeps"
                    yield Problem("id-of-nobody", (name, at)), (self.fills_s, sentence)

    def _addresses_wrong(self) -> Sightings:
        for (at, broker), turns in self._addresses.items():
            recent = [turn for turn in turns if self._now_s - turn[0] <= 3 * self.fills_s]
            turns[:] = recent or turns[-1:]
            came_back = len(recent) > FLIPS and len({address for _, address in recent}) < len(recent)
            if came_back and broker in self._tables.get(at, {}):
                addresses = all_of(sorted({address for _, address in recent}))
                sentence = f"two addresses take turns as {broker} at NameServer {at}: {addresses}"
                yield Problem("claimed-twice", (str(broker), at)), (0.0, sentence)
        for at, table in self._tables.items():
            by_address = grouped((address, str(broker)) for broker, address in table.items())
            for address, names in by_address.items():
                if len(names) > 1:
                    sentence = f"NameServer {at} holds one address, {address}, as {all_of(sorted(names))}"
                    yield Problem("one-address-two-names", (address, at)), (self.fills_s, sentence)

    def _topics_wrong(self) -> Sightings:
        tables = {frozenset(table.items()) for table in self._tables.values()}
        if len(tables) > 1 or any(self._fills(at) for at in self._tables):
            return  # of course they do: brokers are missing, which is told
        differ = len(set(map(id, self._topics.values()))) > 1  # mostly all are one and the same object (watcher.py)
        known = frozenset[str]().union(*self._topics.values()) if differ else frozenset()
        for at, topics in self._topics.items():
            if lacking := sorted(known - topics):
                more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
                sentence = f"NameServer {at} has no {all_of(lacking[:SHOWN])}{more}, though it holds the same brokers"
                yield Problem("topics-differ", (at,)), (self.fills_s, sentence)
        by_topic: dict[str, dict[str, Route | None]] = defaultdict(dict)
        for at, routes in self._routes.items():
            for topic in self._fresh:
                if topic in routes:
                    by_topic[topic][at] = routes[topic]
        for topic, by in by_topic.items():
            found = {at: route for at, route in by.items() if route is not None}
            if len(set(found.values())) > 1:
                said = "; ".join(f"{at} has {_rows(route, found)}" for at, route in sorted(found.items()))
                sentence = f"NameServers answer different routes of {topic}: {said}"
                yield Problem("route-differs", (topic,)), (self.fills_s, sentence)

    def _versions(self, look: Look) -> Sightings:
        held = self._held
        for address, broker in look.brokers.items():
            before = self._versions_of.get(address)
            if broker.version is None:
                continue
            self._versions_of[address] = broker.version
            if before is not None and broker.version < before:
                name = held.get(address, address)
                sentence = (
                    f"{name} ({address}) has a dataVersion older than it had: counter {broker.version[2]} of "
                    f"{broker.version[1]}, after {before[2]} of {before[1]}: its topics were put back"
                )
                self._went_back[name] = look.at_s, sentence
        for name, (at_s, sentence) in self._went_back.items():
            if look.at_s - at_s <= TOLD_S:
                yield Problem("version-backwards", (name,)), (0.0, sentence)


def _is_numeric(address: str) -> bool:
    """Whether the address has an IP address as its host. A host name may mean any address."""
    try:
        ipaddress.ip_address(address.rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    return True


def _rows(route: Route, found: Mapping[str, Route]) -> str:
    common = frozenset[TopicRow].intersection(*found.values())
    rows = [f"{row.broker_name} {row.read_queues}/{row.write_queues} perm {row.perm}" for row in sorted(route - common)]
    return ", ".join(rows) or "none of these"
