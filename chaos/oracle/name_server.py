"""One NameServer process: when a broker must be in its table, and when it must not; and which routes it shows.

    read     REGISTER_BROKER   HEARTBEAT, 322          its channel ends, UNREGISTER_BROKER      REGISTER_BROKER
                    │                  │                              │                               │
    table    ───────┤ must be there … until silence_ms after the last ──┤ must not be there ──────────┤ must …
                                       └ silent: gone by the scan after E, or by I ┘

| state of the broker | by                                                | of RouteInfoManager                      |
|---------------------|---------------------------------------------------|------------------------------------------|
| there               | a registration that was read and not refused      | registerBroker                           |
| heard               | a question (322; of 4.9 if answered "unchanged",  | updateBrokerInfoUpdateTimestamp          |
|                     | as it must be of the version that it has);        | isBrokerTopicConfigChanged               |
|                     | 5.x: a heartbeat (904)                            |                                          |
| gone                | 104, the end of the channel of its last           | unregisterBroker, onChannelDestroy       |
|                     | registration                                      |                                          |
| gone                | the first scan after E without a registration, or | scanNotActiveBroker, IdleStateHandler    |
|                     | the channel idle for I                            |                                          |
| may be either       | another broker registers under its name and id    | registerBroker: the last writer has it   |

Its routes (`RoutesRead`) are what those requests make of each other, one after the other:

| the rows of a broker's topics         | by                                                  | of RouteInfoManager   |
|---------------------------------------|-----------------------------------------------------|-----------------------|
| as its master registers them          | a registration that is new: of a name, of an id, or | registerBroker        |
|                                       | of another version; 5.x: missing rows, of any       |                       |
| as its first slave does, not writable | 5.x, enableActingMaster: while there is no master   | registerBroker        |
| not writable; to be read and written  | 205; 327: until the next registration that is new   | operateWritePerm…     |
| gone                                  | 216; with the last broker of the name               | deleteTopic, …        |
| refused, with code 1                  | 5.x: a name and id's first registration, if it has  | registerBroker        |
|                                       | a single topic                                      |                       |
| not writable                          | 5.x, enableActingMaster: its master is gone         | cleanTopicByUnReg…    |

What was read is the process's own transport's record (`request_read`, `channel_ended`); no fault is looked at. Where
nobody recorded that (Apache's servers, logs, histories of before), it follows from what the broker says that it sent
and from the way between (link.py): each arrival is a stretch then, and may be unsure.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from ...remoting.codes import MASTER_ID, PERM_READ, PERM_WRITE, ResponseCode
from ...remoting.node.profile import Profile
from ..faults.process_faults import Stop
from .by_hand import expires_ms
from .intervals import touching
from .link import Handled, Way, earliest_effect_ms
from .recorded import Life
from .timers import Schedule, Timers
from .world import World

REGISTERED, UNREGISTERED = "REGISTER_BROKER", "UNREGISTER_BROKER"
ASKED, BEAT = "QUERY_DATA_VERSION", "BROKER_HEARTBEAT"
SCAN = "scanNotActiveBroker"
FIRST_SCAN_MS = {Profile.V4_9: 5_000.0, Profile.V5_X: 5.0}
"""From the start of a process to its first scan."""
SYNC_BROKER_MEMBER_GROUP_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Of the topic of a broker name, of which no slave acts as master."""


def tasks(world: World, node: str) -> tuple[Schedule, ...]:
    """scanNotActiveBroker each S, first 5 s after the start (5.x: 5 ms)."""
    timers = world.timers_of(node)
    return (Schedule(SCAN, "S", FIRST_SCAN_MS[timers.profile], timers.S_ms, "NamesrvController: scan each S"),)


def may_refuse(world: World, lives: Iterable[Life], from_ms: float, to_ms: float) -> bool:
    """Whether one of these processes may answer code 1 then: while it waits for service (needWaitForService), by its
    wall clock, which may go back; and, in 5.x, from SIGTERM to its end (apache/rocketmq#11073)."""
    for life in lives:
        timers = world.timers_of(life.node)
        ages_ms = (world.age_ms(life.node, life.start_ms, at_ms) for at_ms in (from_ms, to_ms))
        up_ms = min(from_ms - life.start_ms, *ages_ms)
        if timers.W_ms is not None and up_ms <= timers.W_ms + timers.delivery_ms:
            return True
        if timers.profile is Profile.V5_X and is_stopping(world, life.node, from_ms, to_ms):
            return True
    return False


def must_refuse(world: World, lives: Sequence[Life], from_ms: float, to_ms: float) -> bool:
    """Whether each of these processes waits for service from then to then (needWaitForService), and answers code 1."""
    for life in lives:
        timers = world.timers_of(life.node)
        ages_ms = [world.age_ms(life.node, life.start_ms, at_ms) for at_ms in (from_ms, to_ms)]
        oldest_ms = max(to_ms - life.start_ms, *ages_ms) + timers.delivery_ms
        if timers.profile is not Profile.V5_X or timers.W_ms is None or oldest_ms >= timers.W_ms:
            return False
    return bool(lives) and all(world.is_ours(life.node) for life in lives)


def is_stopping(world: World, node: str, from_ms: float, to_ms: float) -> bool:
    """Whether it may have been between SIGTERM and its end at some time of these."""
    stops = (f for f in world.process_faults(node) if isinstance(f.kind, Stop))
    return any(earliest_effect_ms(world, f) <= to_ms and from_ms <= f.start_ms for f in stops)


class Sent(NamedTuple):
    """One registration of a broker at a NameServer, as the broker recorded it."""

    began_ms: float
    ended_ms: float
    is_ok: bool
    version: tuple[int, float]
    """The broker's process, and the version that it sent."""
    id_: int = 0
    """As whom, where that changes: of a name that elects its master."""
    is_single: bool = False
    """Whether it has one changed topic only; the others have all topics."""


class Read(NamedTuple):
    """What the transport of one NameServer process read of one broker, and what became of the channel."""

    at_ms: float
    f: str
    """REGISTER_BROKER, UNREGISTER_BROKER, QUERY_DATA_VERSION, BROKER_HEARTBEAT; replaced: another registered as it; or
    ended: the channel of its last registration, by the peer, or by the NameServer itself (closed)."""
    is_taken: bool = True
    """Whether it was registered, or heard, for certain."""
    channel: str = ""


class Registered(NamedTuple):
    """A registration, and when this process took it in."""

    came: Handled
    sent: Sent | None
    """As its broker says; None where it did not live to say."""
    channel: str = ""


class Kept(NamedTuple):
    """In the stretch the broker must be there, for this registration."""

    start_ms: float
    end_ms: float
    sent: Sent | None
    """None where nobody recorded it (promises.py)."""


class Silence(NamedTuple):
    """In the stretch the broker must not be there."""

    start_ms: float
    end_ms: float
    last_ms: float | None
    """When it was heard for the last time; None where nothing was before."""
    formula: str
    """By which rule it is gone: "" where it was never there, UNREGISTERED, "closed" or the rule of silence."""


class BrokerAtNameServer:
    """`sent`: the broker's registrations there, in order of their beginning. `read`: what the process's transport read
    of it, in order of time; None if nobody recorded that. `is_alone`: nobody registered, or unregistered, another
    name at its address, whose silence, or channel, RouteInfoManager takes for the broker's, and the other way round."""

    def __init__(
        self,
        world: World,
        life: Life,
        broker: str,
        sent: Sequence[Sent],
        read: Sequence[Read] | None,
        *,
        is_alone: bool = True,
    ) -> None:
        self.life, self._world, self.is_alone = life, world, is_alone
        self.is_witnessed = read is not None
        """Whether this process's transport recorded what it read."""
        self.timers: Timers = world.timers_of(broker, life.node)
        self.end_ms = min(life.end_ms, world.end_ms)
        self._is_idle_too = world.is_ours(broker) or self.timers.profile is not Profile.V5_X
        """Apache's 5.x broker asks the NameServer that it has chosen for its group each 5 s (`refreshMetadata`), so its
        channel is not idle since its last registration, and the scan is first."""
        self.sent = [one for one in sent if one.ended_ms > life.start_ms and one.began_ms < self.end_ms]
        self._way = Way(world, broker, life)
        if read is None:
            self.registered, self.heard = self._sent_here(), list[Read]()
            self._ends = [*self._way.ends(one.ended_ms for one in self.sent if not one.is_ok)]
        else:
            self.registered = self._read_here(read)
            self.heard = [r for r in read if r.f in (ASKED, BEAT)]
            self._ends = [Handled.at(r.at_ms) for r in read if r.f in ("ended", "replaced", UNREGISTERED)]
        self._registered_ms = sorted(one.came.last_ms for one in self.registered)
        self._by_others = {one.came.last_ms for one in self.registered if one.sent is None}
        self._left_ms = {r.at_ms for r in read or () if r.f == UNREGISTERED}
        self._own_ends = [Handled.at(r.at_ms) for r in read or () if r.f == "closed"]

    # -- what came

    def _sent_here(self) -> list[Registered]:
        """What the broker says that it sent, and when that is handled here."""
        found = [Registered(self._way.registered(one.began_ms, one.ended_ms, one.is_ok), one) for one in self.sent]
        return found + [Registered(came, None) for came in self._way.unrecorded()]

    def _read_here(self, read: Sequence[Read]) -> list[Registered]:
        """What the transport read. One that its broker saw acknowledged was not refused."""
        late_ms = self.timers.clocks_ms
        found: list[Registered] = []
        left = [*self.sent]
        for at_ms, _, is_taken, channel in (r for r in read if r.f == "REGISTER_BROKER"):
            of = next((s for s in left if s.began_ms - late_ms <= at_ms <= s.ended_ms + late_ms), None)
            if of is not None:
                left.remove(of)
            found.append(Registered(Handled.at(at_ms, sure=of is not None and of.is_ok and is_taken), of, channel))
        # What was acknowledged, and never read, somebody else answered: it stays what the broker says. One that began
        # before this process may have been the process's before.
        unread = (s for s in left if s.is_ok and s.began_ms >= self.life.start_ms)
        return found + [Registered(Handled(s.began_ms, s.ended_ms, True, s.began_ms), s) for s in unread]

    # -- what follows

    def must(self) -> Iterator[Kept]:
        """What was taken in stays until a channel may end, another may take its place, or it was silent for so long.
        What is heard on another channel than its registration's does not keep that from being idle."""
        for came, sent, channel in self.registered:
            if not came.sure or sent is None:
                continue
            ends_ms = [max(end.first_ms, came.first_ms) for end in self._ends if end.last_ms > came.first_ms]
            until_ms = min([self.end_ms, *ends_ms, *self._set_anew_ms(came)])
            silent_ms = self._silent_from_ms(came.first_ms)
            for one in self.heard[bisect_right(self.heard, came.last_ms, key=attrgetter("at_ms")) :]:
                if one.at_ms >= min(silent_ms, until_ms):
                    break
                if one.is_taken and one.channel == channel:
                    silent_ms = self._silent_from_ms(one.at_ms)
            until_ms = min(until_ms, silent_ms)
            if came.last_ms < until_ms:
                yield Kept(came.last_ms, until_ms, sent)

    def _set_anew_ms(self, came: Handled) -> Iterator[float]:
        """When the next registration sets its time anew, which a wall clock that was set may make an older one."""
        if self._changes():
            yield from (one.first_ms for one, *_ in self.registered if one.first_ms > came.last_ms)

    def must_not(self) -> Iterator[Silence]:
        """Nothing is there before a registration, behind the end of its channel, and behind too long a silence."""
        if not self.is_alone:
            return
        came = sorted(
            [one.came for one in self.registered] + [Handled.at(heard.at_ms, sure=False) for heard in self.heard]
        )
        last_ms: float | None = None
        from_ms, formula = self.life.start_ms, ""
        for one in (*came, Handled.at(self.end_ms, sure=False)):
            until_ms = min(one.first_ms, self.end_ms)
            if from_ms < until_ms and (self.is_witnessed or self._is_recorded(last_ms, from_ms, formula)):
                yield Silence(from_ms, until_ms, last_ms, formula)
            last_ms = one.last_ms if last_ms is None else max(last_ms, one.last_ms)
            from_ms, formula = self._gone_ms(one, last_ms)

    def _is_recorded(self, last_ms: float | None, due_ms: float, formula: str) -> bool:
        """Whether the silence is no gap of the broker's record: it was stopped or cut then, or failed to register."""
        if last_ms is None:
            return False
        failed = any(not one.is_ok and last_ms < one.began_ms <= due_ms for one in self.sent)
        return formula == "closed" or failed or self._way.is_shut(last_ms, due_ms)

    def _gone_ms(self, one: Handled, last_ms: float) -> tuple[float, str]:
        """By when the broker is gone that was heard for the last time by `last_ms`, and by which rule."""
        due_ms, formula = self._silent_by_ms(last_ms)
        closed = (
            max(end.last_ms, last_ms)
            for end in (*self._ends, *self._own_ends)
            if end.sure and end.sent_ms > one.sent_ms and end.last_ms >= one.last_ms
        )
        closed_ms = min(closed, default=math.inf)
        how = UNREGISTERED if closed_ms in self._left_ms else "closed"
        return (closed_ms, how) if closed_ms < due_ms else (due_ms, formula)

    # -- silence

    def _silent_from_ms(self, last_ms: float) -> float:
        """Until then the broker is kept that was heard then."""
        kept_ms = last_ms + self.timers.silence_ms
        if self._changes():
            scans = self._scans_from(last_ms)
            kept_ms = min(
                kept_ms, next(at_ms for at_ms in scans if at_ms >= kept_ms or self._is_expired(last_ms, at_ms))
            )
        return kept_ms

    def _silent_by_ms(self, last_ms: float) -> tuple[float, str]:
        """By then the broker is gone that was heard then, and by which rule. A process that stood still runs on first,
        and its scan with it."""
        if math.isinf(last_ms):
            return math.inf, ""
        due_ms, formula = self._scan_after(last_ms), "the scan after E"
        if not self._is_idle_too:
            due_ms, formula = last_ms + self._expiry_ms(last_ms) + self.timers.S_ms, "E + S"
        elif last_ms + self.timers.I_ms < due_ms:
            due_ms, formula = last_ms + self.timers.I_ms, "I"
        for pause in sorted(self._way.pauses, key=lambda one: one.start_ms):
            if pause.start_ms < due_ms < pause.end_ms + self.timers.S_ms:
                due_ms = pause.end_ms + self.timers.S_ms
        return due_ms, formula

    def _scan_after(self, last_ms: float) -> float:
        if not self._changes():
            return next(self._scans_from(last_ms + self._expiry_ms(last_ms)))
        idle_ms = last_ms + self.timers.I_ms + self.timers.S_ms
        return next(at_ms for at_ms in self._scans_from(last_ms) if at_ms > idle_ms or self._is_expired(last_ms, at_ms))

    def _expiry_ms(self, last_ms: float) -> float:
        """E of the last registration until then, which heartbeats keep. A registration that the broker did not send may
        name no time-out of its own: somebody registered it by hand."""
        own_ms, number = self.timers.E_ms, bisect_right(self._registered_ms, last_ms)
        said_ms = self._registered_ms[number - 1] if number else last_ms
        return max(own_ms, Timers.for_profile(self.timers.profile).E_ms) if said_ms in self._by_others else own_ms

    def _scans_from(self, at_ms: float) -> Iterator[float]:
        first_ms, period_ms = self.life.start_ms + FIRST_SCAN_MS[self.timers.profile], self.timers.S_ms
        scan_ms = first_ms + period_ms * max(0, math.ceil((at_ms - first_ms) / period_ms))
        while True:
            yield scan_ms
            scan_ms += period_ms

    def _changes(self) -> bool:
        """Whether somebody set its wall clock, by which it counts E."""
        return bool(self._world.clocks.get(self.life.node))

    def _is_expired(self, last_ms: float, at_ms: float) -> bool:
        return self._world.age_ms(self.life.node, last_ms, at_ms) > self._expiry_ms(last_ms)


def joined(kept: Iterable[Kept]) -> Iterator[Sequence[Kept]]:
    """Those that touch, together."""
    return touching(sorted(kept), attrgetter("start_ms"), attrgetter("end_ms"))


class Request(NamedTuple):
    """What one process's transport read, or what the process did, of what its routes are made of."""

    at_ms: float
    f: str
    """The name of a request's code; ended: a channel, by the peer, or (closed) by the process itself; dropped: a
    broker, as the process says; scanned: for silence."""
    channel: str = ""
    topic: str = ""
    name: str = ""
    id_: int = 0
    address: str = ""
    said: Mapping[str, Any] = {}
    """Of REGISTER_BROKER: version, topics, cluster, timeout_ms, acting; of QUERY_DATA_VERSION: version, cluster; of
    others: cluster; empty where nobody recorded it."""
    reason: str = ""
    """Of what ended, or was dropped."""


_Key = tuple[str, str]
"""Of brokerLiveTable: cluster and address in 5.x (BrokerAddrInfo), the address alone ("" before it) in 4.9."""


class _Live(NamedTuple):
    """As BrokerLiveInfo."""

    channel: str
    heard_ms: float
    timeout_ms: float
    version: Sequence[int]


Route = Mapping[str, Mapping[str, Any]]
"""As the history has it: brokers (name to id to address) and queues (name to read, write, perm, topicSysFlag)."""


class Notice(NamedTuple):
    """The smallest broker id of a name has changed."""

    at_ms: float
    name: str
    offline: str
    """The address that left; "" if one came."""
    ids: Mapping[int, str]
    """Those that stay; without any, nobody is told."""

    def due(self) -> Iterator[tuple[str, str, str, str]]:
        """Whom the NameServer must tell, and what: the least id, its address, and who left
        (`RouteInfoManager.chooseBrokerAddrsToNotify`)."""
        if not self.ids:
            return
        least = min(self.ids)
        for id_, address in self.ids.items():
            if self.offline or id_ != least or len(self.ids) == 1:
                yield address, str(least), self.ids[least], self.offline


class RoutesRead:
    """RouteInfoManager, fed with what was read. `shown`: topic → from when which route; `read`: name and address → what
    of that concerned this broker."""

    def __init__(self, world: World, life: Life) -> None:
        self._world, self._life, self._timers = world, life, world.timers_of(life.node)
        self._is_5 = self._timers.profile is Profile.V5_X
        shows = world.values(life.node, "supportActingMaster") if self._is_5 else [False]
        self.shows_acting, self.must_show_acting = any(shows), all(shows)
        self._brokers: dict[str, dict[int, str]] = {}
        self._clusters: dict[str, set[str]] = defaultdict(set)
        self._left_a_cluster: set[str] = set()
        """Names of several clusters that left: which cluster has the name no more, no row says."""
        self._first_cluster: dict[str, str] = {}
        """Name to BrokerData.cluster, which no later registration changes."""
        self._cluster_of: dict[tuple[str, str], str] = {}
        """Name and address to the cluster that was registered last."""
        self.acting: set[str] = set()
        """Names with enableActingMaster."""
        self._rows: dict[str, dict[str, Sequence[int]]] = defaultdict(dict)
        self._live: dict[_Key, _Live] = {}
        self._asked_ids: dict[tuple[str, _Key], int] = {}
        """5.x: which id an unregistration names; the address may be that of another id, or of none."""
        self._leaving: list[tuple[float, str, _Key]] = []
        """5.x: since when, the name, and cluster and address: a thread of its own takes them out."""
        self._said_gone: set[tuple[str, str]] = set()
        """Name and address of those that the process says that it dropped; rightly or not, others judge."""
        self._touched: set[str] = set()
        self.shown: dict[str, list[tuple[float, Route | None]]] = defaultdict(list)
        self.read: dict[tuple[str, str], list[Read]] = defaultdict(list)
        self.registered: set[tuple[str, str, str]] = set()
        """Name, id and address of all that registered."""
        self.unregistered: set[tuple[str, str]] = set()
        """Name and address of all that left: an address without brokerLiveInfo is never silent, and nobody's master."""
        self.answers: list[tuple[Request, int]] = []
        """What it must answer: to 205 and 327 how many topics; to a registration that it refuses the code."""
        self.compared: list[tuple[Request, bool | None]] = []
        """Whether it must answer "changed" to 322; None if nobody knows which version it has."""
        self.notices: list[Notice] = []
        """Changes of the smallest id of a name, of which it must tell (905)."""
        self._at_ms = life.start_ms
        self.expired: list[tuple[float, str]] = []
        """When it said that it dropped a broker for its silence, and the channel, which the scan closes."""
        self.offered: dict[tuple[str, str, bool], float] = {}
        """Topic, name and whether it may write rows (a master, or who acts for one) to when one first registered it."""
        self.unchanged: dict[str, list[tuple[float, Mapping[str, Sequence[int]], int]]] = defaultdict(list)
        """Name to when it registered which topics, and with which bits of their permissions, without a new version."""
        self.deleted: set[tuple[str, str]] = set()
        """Topic and name of the rows that a deletion (216) took out."""
        self.unknown: set[str] = set()
        """Topics whose rows nobody knows: registered without a broker (217), or of a name whose address leaves."""

    def at(self, topic: str, at_ms: float) -> Route | None:
        """What it must show then."""
        return next((route for since_ms, route in reversed(self.shown.get(topic, ())) if since_ms <= at_ms), None)

    def is_refused(self, name: str, address: str, at_ms: float) -> bool:
        """Whether the last registration from there was not taken in."""
        read = (one for one in reversed(self.read.get((name, address), ())) if one.f == "REGISTER_BROKER")
        return not next((one.is_taken for one in read if one.at_ms <= at_ms), True)

    def take(self, one: Request) -> None:
        for since_ms, name, key in [*self._leaving]:
            if since_ms + self._timers.delivery_ms < one.at_ms:
                self._at_ms = since_ms
                self._leave(name, key)
                self._note(since_ms)
        self._at_ms = one.at_ms
        match one.f:
            case "REGISTER_BROKER":
                is_taken = self._register(one)
                self.read[one.name, one.address].append(Read(one.at_ms, one.f, is_taken, one.channel))
            case "QUERY_DATA_VERSION" | "BROKER_HEARTBEAT":
                key = self._key(one.name, one.address, one.said.get("cluster"))
                live, version = self._live.get(key), one.said.get("version")
                is_heard = self._is_5 or not version or (live is not None and self._is_same(live.version, version))
                is_sure = live is not None and is_heard and (self._is_5 or bool(version))
                if key == self._key(one.name, one.address):  # else nobody is heard
                    self.read[one.name, one.address].append(Read(one.at_ms, one.f, is_sure, one.channel))
                known = None if (one.name, one.address) in self._said_gone else live
                is_changed = not self._is_same(known.version, version) if known and version else None
                self.compared.append((one, is_changed))
                if live is not None and is_heard:
                    self._live[key] = live._replace(heard_ms=one.at_ms)
            case "UNREGISTER_BROKER" if self._is_5:
                self.unregistered.add((one.name, one.address))
                self._end(one, one.name, one.address)
                key = self._key(one.name, one.address, one.said.get("cluster"))
                self._leaving.append((one.at_ms, one.name, key))
                if self._brokers.get(one.name):  # of a name without brokers nobody leaves
                    self._asked_ids[one.name, key] = one.id_
            case "UNREGISTER_BROKER":
                self._live.pop(self._key(one.name, one.address), None)
                self.unregistered.add((one.name, one.address))
                self._end(one, one.name, self._brokers.get(one.name, {}).get(one.id_, ""))
                self._remove(one.name, [one.id_])
            case "WIPE_WRITE_PERM_OF_BROKER":
                self.answers.append((one, self._permit(one.name, keep=~PERM_WRITE, put=0)))
            case "ADD_WRITE_PERM_OF_BROKER":
                self.answers.append((one, self._permit(one.name, keep=0, put=PERM_READ | PERM_WRITE)))
            case "DELETE_TOPIC_IN_NAMESRV":
                cluster = one.said.get("cluster")
                for name in [*self._rows[one.topic]]:
                    if cluster and cluster in self._clusters[name] and name in self._left_a_cluster:
                        self.unknown.add(one.topic)
                    if not cluster or cluster in self._clusters[name]:
                        del self._rows[one.topic][name]
                        self.deleted.add((one.topic, name))
                self._touched.add(one.topic)
            case "REGISTER_TOPIC_IN_NAMESRV":
                self.unknown.add(one.topic)
            case "closed" if not self._may_close(one):
                for key in [key for key, live in self._live.items() if live.channel == one.channel]:
                    self._ended(one, key)
            case "ended" | "closed":
                for _ in range(1 if one.reason == "closed" else 2):  # a reset, and an idle channel, are closed, too
                    self._lose(one)
            case "dropped":
                self._said_gone.add((one.name, one.address))
                since = [key for _, name, key in self._leaving if (name, key[1]) == (one.name, one.address)]
                key = next(iter(since), self._key(one.name, one.address))
                live = self._live.get(key)
                is_silent = live is not None and self._is_silent(live, one.at_ms, -self._timers.delivery_ms)
                if live is not None and is_silent and one.reason == "expired":
                    self.expired.append((one.at_ms, live.channel))
                if since or is_silent:
                    self._leave(one.name, key)
            case "scanned":
                late_ms = self._timers.delivery_ms
                for key in [key for key, live in self._live.items() if self._is_silent(live, one.at_ms, late_ms)]:
                    self._expire(one.at_ms, key)
        self._note(one.at_ms)

    # -- registrations

    def _register(self, one: Request) -> bool:
        """Whether it is taken in."""
        name, id_, address, said = one.name, one.id_, one.address, one.said
        self._said_gone.discard((name, address))
        version, topics, acting = said.get("version", ()), said.get("topics", {}), said.get("acting")
        is_new = name not in self._brokers
        ids = self._brokers.setdefault(name, {})
        is_leaving = any((left[1], left[2][1]) == (name, address) for left in self._leaving)
        if address not in ids.values():  # what left before takes nothing out any more
            self._leaving = [left for left in self._leaving if (left[1], left[2][1]) != (name, address)]
        self._clusters[name].add(str(said.get("cluster")))
        if is_new:
            self._first_cluster[name] = str(said.get("cluster"))
        self._cluster_of[name, address] = str(said.get("cluster"))
        key = self._key(name, address)
        self._touch(name)
        may_write = id_ == MASTER_ID or (self._is_5 and acting is not None)
        for topic in topics:
            self.offered.setdefault((topic, name, may_write), one.at_ms)
        least = min(ids, default=MASTER_ID)
        for other in [held for held, at in ids.items() if at == address and held != id_]:
            del ids[other]
        replaced = ids.get(id_, address)
        if self._is_5:
            (self.acting.add if acting else self.acting.discard)(name)
            stands = self._live.get((key[0], replaced)) if replaced != address else None
            if stands is not None and version and stands.version[0] > version[0]:
                self._live.pop(key, None)
                return False
            if id_ not in ids and len(topics) == 1:
                self.answers.append((one, ResponseCode.SYSTEM_ERROR))
                return False
        held = self._live.get(key)
        is_new = is_new or id_ not in ids or held is None or not self._is_same(held.version, version)
        ids[id_] = address
        if id_ < least:
            self.notices.append(Notice(one.at_ms, name, "", dict(ids)))
        if replaced != address:
            self.read[name, replaced].append(Read(one.at_ms, "replaced"))
        acts = may_write and id_ != MASTER_ID and id_ == min(ids)
        if id_ == MASTER_ID or acts:
            keep = ~PERM_WRITE if acts and name in self.acting else -1
            if not is_new:
                self.unchanged[name].append((one.at_ms, topics, keep))
            for topic, (read, write, perm, flag) in topics.items():
                row = [read, write, perm & keep, flag]
                if is_leaving and not is_new and self._rows[topic].get(name, row) != row:
                    self.unknown.add(topic)  # two threads: where it left first, its version is new
                if is_new or (self._is_5 and name not in self._rows[topic]):
                    self._rows[topic][name] = row
        timeout_ms = float((self._is_5 and said.get("timeout_ms")) or expires_ms(self._timers))
        self._live[key] = _Live(one.channel, one.at_ms, timeout_ms, version)
        self.registered.add((name, str(id_), address))
        self._touch(name)
        return True

    def _is_same(self, one: Sequence[int], other: Sequence[int]) -> bool:
        return one == other if self._is_5 else one[1:] == other[1:]

    def _permit(self, name: str, *, keep: int, put: int) -> int:
        """How many topics it has of the broker."""
        of = [rows for rows in self._rows.values() if name in rows]
        for rows in of:
            read, write, perm, flag = rows[name]
            rows[name] = [read, write, perm & keep | put, flag]
        self._touch(name)
        return len(of)

    # -- who leaves

    def _lose(self, one: Request) -> None:
        """One of those that registered by this channel."""
        key = next((key for key, live in self._live.items() if live.channel == one.channel), None)
        if key is not None:
            name = self._name_of(key)
            if any(other != name and at == key for _, other, at in self._leaving):
                # Two names share the address. Whoever takes the other name out may have forgotten the channel before.
                self.unknown.update(topic for topic, rows in self._rows.items() if name in rows)
            self._ended(one, key)
            self._expire(one.at_ms, key)

    def _key(self, name: str, address: str, cluster: object = None) -> _Key:
        """cluster: as a request says; None for that of the last registration."""
        return (str(cluster or self._cluster_of.get((name, address), "")), address) if self._is_5 else ("", address)

    def _name_of(self, key: _Key) -> str:
        """As setupUnRegisterRequest finds it."""
        names = (name for name, ids in self._brokers.items() if key[1] in ids.values())
        return next((name for name in names if not self._is_5 or key[0] == self._first_cluster[name]), "")

    def _ended(self, one: Request, key: _Key) -> None:
        self._end(one, self._name_of(key), key[1])

    def _end(self, one: Request, name: str, address: str) -> None:
        f = one.f if one.f in ("closed", UNREGISTERED) else "ended"
        self.read[name, address].append(Read(one.at_ms, f))

    def _expire(self, at_ms: float, key: _Key) -> None:
        name = self._name_of(key)
        if not self._is_5:
            self._leave(name, key)
        elif name:  # what is known of an address that no name has any more stays
            self._leaving.append((at_ms, name, key))

    def _leave(self, name: str, key: _Key) -> None:
        self._leaving = [left for left in self._leaving if left[1:] != (name, key)]
        self._live.pop(key, None)
        ids = self._brokers.get(name, {})
        least = min(ids, default=MASTER_ID)
        leaves = [id_ for id_, at in ids.items() if at == key[1]]
        asked = [self._asked_ids.pop((name, key))] if (name, key) in self._asked_ids else leaves
        self._remove(name, leaves)
        if least in asked and name in self.acting:
            self.notices.append(Notice(self._at_ms, name, key[1], dict(ids)))
        if self._is_5 and name in self.acting and min(ids, default=MASTER_ID) != MASTER_ID:
            self._permit(name, keep=~PERM_WRITE, put=0)

    def _remove(self, name: str, ids: Iterable[int]) -> None:
        held = self._brokers.get(name)
        if held is None:
            return
        self._touch(name)
        for id_ in ids:
            held.pop(id_, None)
        if not held:
            if len(self._clusters[name]) > 1:
                self._left_a_cluster.add(name)
            del self._brokers[name]
            for rows in self._rows.values():
                rows.pop(name, None)

    def _may_close(self, one: Request) -> bool:
        """Whether it heard nothing of those that registered by the channel for so long that it may end that."""
        of = (live.heard_ms for live in self._live.values() if live.channel == one.channel)
        return one.at_ms - max(of, default=0.0) > self._timers.silence_ms - self._timers.delivery_ms

    def _is_silent(self, live: _Live, at_ms: float, over_ms: float) -> bool:
        return self._world.age_ms(self._life.node, live.heard_ms, at_ms) > live.timeout_ms + over_ms

    # -- what is shown

    def _touch(self, name: str) -> None:
        self._touched.update(topic for topic, rows in self._rows.items() if name in rows)

    def _note(self, at_ms: float) -> None:
        for topic in self._touched:
            route, before = self._route(topic), self.shown[topic]
            if not before or before[-1][1] != route:
                before.append((at_ms, route))
        self._touched = set()

    def _route(self, topic: str) -> Route | None:
        rows = self._rows[topic]
        acts = self.shows_acting and not topic.startswith(SYNC_BROKER_MEMBER_GROUP_PREFIX)
        brokers = {name: self._ids(name, rows[name], acts) for name in rows if name in self._brokers}
        return {"brokers": brokers, "queues": dict(rows)} if brokers else None

    def _ids(self, name: str, row: Sequence[int], acts: bool) -> Mapping[str, str]:
        """As pickupTopicRouteData tells of them."""
        ids = {str(id_): address for id_, address in self._brokers[name].items()}
        if acts and name in self.acting and str(MASTER_ID) not in ids and not row[2] & PERM_WRITE:
            ids[str(MASTER_ID)] = ids.pop(str(min(self._brokers[name])))
        return ids
