"""A broker's obligations towards NameServers: what it must register with which NameServer, and by when.

    started ── registers everywhere ── 10 s ── registers ── R ── registers ── R ── …
    a topic changes ── registers everywhere at once, that version, behind the round under way

| it                                                        | when                         | of                        |
|-----------------------------------------------------------|------------------------------|---------------------------|
| registers at each NameServer of its list, and no other    | at its start; 10 s later; R  | BrokerController.start    |
|                                                           | after the last was due       |                           |
| begins that everywhere, whoever answers                   | at one moment                | BrokerOuterAPI            |
| asks each first (322), where forceRegister is false;      | for B at the longest;        | needRegister              |
| registers everywhere if one says "changed", or nothing    | at once                      |                           |
| registers a topic, or brokerPermission, that changed      | at once, behind the round    | registerBrokerAll         |
|                                                           | under way                    | (synchronized)            |
| gives a registration up                                   | after B                      | BrokerOuterAPI            |
| registers its own name, an id that it has, its address,   | each time                    | registerBrokerAll         |
| and all topics that it has at the version that it names;  |                              |                           |
| unregisters the same                                      |                              |                           |
| sends a light heartbeat (904), where a slave may act for  | 1 s after it has registered, | sendHeartbeat             |
| it                                                        | then each h                  |                           |
| fetches its list, where an address server has it          | after 10 s, then each N      | fetchNameServerAddr       |
| forgets silent clients                                    | each 10 s                    | ClientHousekeepingService |
| copies its master's tables, as a slave                    | after 3 s, then each 10 s    | handleSlaveSynchronize    |

One thread registers and fetches the list. What it read of its topics, and its registrations, are its own rows; whom it
has to tell is its list's.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter

from ...clients.config import DEFAULT_TOPIC_QUEUE_NUMS
from ...remoting.codes import PERM_INHERIT, TABLES_OF_SLAVES
from ...remoting.node.profile import Profile
from ...remoting.top_addressing import TASK as FETCH
from ...remoting.top_addressing import TIMEOUT_S
from ...remoting.topics import SCHEDULE_TOPIC, TBW102, is_own
from ..topology import ADDRESS_SERVER, broker_name, is_slave
from .link import Stops, Troubles
from .lists import fetches
from .name_server import ASKED, BEAT, UNREGISTERED, Request, Sent
from .recorded import Life
from .roles import elects, members_of
from .timers import Act, Schedule
from .world import World

REGISTER, LIGHT_HEARTBEAT, SYNCHRONIZE = "registerBrokerAll", "sendHeartbeat", "SlaveSynchronize"
HOLD_CHECK, CLIENT_SCAN = "checkHoldRequest", "scanExceptionChannel"
CLIENT_SCAN_MS = 10_000.0
"""Of `ClientHousekeepingService`: no setting's."""
_SYNCHRONIZE_CALL_MS = 3_000.0
"""Of each table: no setting's."""


def tasks(world: World, node: str) -> tuple[Schedule, ...]:
    """What it does at fixed rates; checkHoldRequest waits 5 s after each (time_outs.py)."""
    timers = world.timers_of(node)
    row = "BrokerController: registers each R"
    found = [
        Schedule(REGISTER, "R", 10_000.0, timers.R_ms, row, shared=True, after_registering=True),
        Schedule(CLIENT_SCAN, "10 s", CLIENT_SCAN_MS, CLIENT_SCAN_MS, "ClientHousekeepingService: each 10 s"),
    ]
    if world.timers.profile is Profile.V5_X and world.setting(node, "enableSlaveActingMaster"):
        period_ms = world.number(node, "brokerHeartbeatInterval")
        row = "BrokerController: 904 each h"
        found.append(Schedule(LIGHT_HEARTBEAT, "h", 1_000.0, period_ms, row, after_registering=True))
    if is_slave(node) and not any(act.f == "switch" and act.node == node for act in world.acts):
        row = "BrokerController: a slave synchronizes its tables each 10 s"
        found.append(Schedule(SYNCHRONIZE, "10 s", 3_000.0, 10_000.0, row))
    return *found, *fetches(world, node, "BrokerController: fetches its list each N")


class Broker(Stops):
    """One process of a broker. `sent`: its registrations, by NameServer in order of time. `changes`: when a topic of
    its became another, and with which version. `asked`: when a round of questions (322) was over, and whether one
    NameServer said "changed", or nothing. `lists`: when it fetched which list; None if it has a fixed one."""

    def __init__(
        self,
        world: World,
        life: Life,
        sent: Mapping[str, Sequence[Sent]],
        changes: Mapping[float, float],
        asked: Sequence[tuple[float, bool]],
        lists: Sequence[tuple[float, Sequence[str]]] | None,
    ) -> None:
        super().__init__(world, life)
        has_one_list = lists is None and world.is_ours(life.node)
        listed = [of.name for of in world.listed(life.node)] if has_one_list else []
        self._begun = {server: [one.began_ms for one in of] for server, of in sent.items() if of or server in listed}
        self._sent = sorted((one for of in sent.values() for one in of), key=attrgetter("began_ms"))
        self._changes, self._asked, self._lists = changes, asked, lists
        self._troubles = Troubles(world, life.node)
        self._name_servers = [node.name for node in world.of_kind("name_server")]

    # -- how long

    def longest_ms(self, task: str, from_ms: float, to_ms: float, asked_ms: float) -> float:
        """How long a run of the task may take from then to then, in which NameServers were asked for so long."""
        each_ms, among = self.timers.delivery_ms, self._troubles.among
        if task == REGISTER:  # its turn behind another round, the question before (322), and the answers of all at once
            silent = among(self._name_servers, from_ms, to_ms)
            return asked_ms + each_ms + (2 * self.timers.B_ms + (self.timers.F_ms or 0.0) if silent else 0.0)
        if task == FETCH:
            return 2 * each_ms + (1000 * TIMEOUT_S if among([ADDRESS_SERVER], from_ms, to_ms) else 0.0)
        if task == SYNCHRONIZE:
            lost = among([node.name for node in self.world.of_kind("broker", "slave")], from_ms, to_ms)
            return len(TABLES_OF_SLAVES) * (each_ms + (_SYNCHRONIZE_CALL_MS if lost else 0.0))
        return each_ms

    # -- everywhere

    def everywhere(self, end_ms: float) -> Iterator[Act]:
        """Of each registration, how far from it is the one of the NameServer that had its own the furthest from it."""
        for one in self._sent:
            if self._recorded_ms(one.began_ms) < end_ms:
                begun = (self._begun[server] for server in self._told(one.began_ms))
                acts = (self._apart(one.began_ms, _nearest(times, one.began_ms, end_ms)) for times in begun)
                yield from sorted(acts, key=attrgetter("over_ms"))[-1:]

    def elsewhere(self) -> Iterator[tuple[str, list[tuple[float, bool]]]]:
        """When it registered with each NameServer, and whether the list that it had fetched had that NameServer."""
        for server, begun in self._begun.items() if self._lists else ():
            lists = ((at_ms, self._told(at_ms)) for at_ms in begun)
            yield server, [(at_ms, not told or server in told) for at_ms, told in lists]

    def _apart(self, one_ms: float, other_ms: float) -> Act:
        from_ms, to_ms = min(one_ms, other_ms), max(one_ms, other_ms)
        return Act(from_ms, to_ms - from_ms, None, self.after_pauses(from_ms) - from_ms, "at once")

    def _recorded_ms(self, began_ms: float) -> float:
        """When a registration that began then has left its row, whoever answers."""
        return self.after_pauses(began_ms + self.timers.B_ms) + self.timers.delivery_ms

    def _told(self, at_ms: float) -> Sequence[str]:
        """Whom it has to tell then: all on its list, or those on the list that it had fetched; of one that was
        just being replaced nobody knows."""
        if self._lists is None:
            return [*self._begun]
        near_ms, before = self.timers.delivery_ms, list[str]()
        for fetched_ms, listed in self._lists:
            if at_ms - near_ms <= fetched_ms <= at_ms + near_ms and {*before} != {*listed}:
                return ()
            before = [*listed] if fetched_ms <= at_ms + near_ms else before
        return [server for server in before if server in self._begun]

    # -- at its start, and of each change

    def first(self, end_ms: float) -> Iterator[Act]:
        """From its start, or its first list, until it registers all topics for the first time: nothing else keeps it
        from that."""
        began_ms = self.life.start_ms if self._lists is None else next((at_ms for at_ms, _ in self._lists), None)
        if began_ms is None or not self._sent or elects(self.world, self.life.node):
            return
        due_ms = self._asked_ms(began_ms)
        told_ms = next((one.began_ms for one in self._sent if not one.is_single), end_ms)
        if self._recorded_ms(due_ms) < end_ms:
            yield Act(began_ms, told_ms - began_ms, None, due_ms - began_ms, "at once")

    def changes(self, end_ms: float) -> Iterator[Act]:
        """From when a topic of its is another until it begins to tell that. What it has before it registered first is
        told with that."""
        for at_ms, version in self._changes.items():
            due_ms = self._behind_ms(self._asked_ms(at_ms))
            if not self._sent or at_ms <= self._sent[0].ended_ms or self._recorded_ms(due_ms) >= end_ms:
                continue
            begun = (one.began_ms for one in self._sent if one.began_ms >= at_ms - 1.0 and one.version[1] >= version)
            told_ms = next(begun, None)
            measured_ms = (end_ms if told_ms is None else max(told_ms, at_ms)) - at_ms
            yield Act(at_ms, measured_ms, None, due_ms - at_ms, "at once", missing=told_ms is None)

    def answers(self, end_ms: float) -> Iterator[Act]:
        """From when it was answered that its version has changed until it begins to register."""
        for at_ms, is_changed in self._asked:
            due_ms = self._behind_ms(self.after_pauses(at_ms))
            if is_changed and self._recorded_ms(due_ms) < end_ms:
                told_ms = next((one.began_ms for one in self._sent if one.began_ms >= at_ms - 1.0), None)
                measured_ms = (end_ms if told_ms is None else told_ms) - at_ms
                yield Act(at_ms, measured_ms, None, due_ms - at_ms, "at once", missing=told_ms is None)

    def _behind_ms(self, at_ms: float) -> float:
        """When the round that is under way then has ended (`synchronized`)."""
        for one in self._sent:
            if one.began_ms <= at_ms + self.timers.delivery_ms and one.ended_ms > at_ms:
                at_ms = self.after_pauses(one.ended_ms)
        return at_ms

    def _asked_ms(self, at_ms: float) -> float:
        """When no pause keeps it from a registration, and no question before that (322, with forceRegister=false)."""
        at_ms = self.after_pauses(at_ms)
        if self.timers.F_ms is None:
            return at_ms
        silent = self._troubles.among(self._name_servers, at_ms, at_ms + self.timers.F_ms)
        return at_ms + (self.timers.F_ms if silent else self.timers.delivery_ms)


Had = Callable[[float, Mapping[str, tuple[int, int, int]], float], bool]
"""Whether the broker had exactly these topics at that version (the counter); of one topic, then or later, until when
it was read."""


_DOES = {UNREGISTERED: "unregisters", ASKED: "names in questions (322)", BEAT: "names in heartbeats (904)"}


def misregistered(world: World, broker: str, one: Request, name_server: str, had: Had | None) -> str:
    """In words, what is wrong with what a broker says of itself in a request that the NameServer read, registrations
    and others; "" for nothing. `had`: None if nobody recorded what it had."""
    node, timers = world.node(broker), world.timers_of(broker)
    does = _DOES.get(one.f, "registers")
    if node is None or one.name != broker_name(broker):
        return f"{does} a name that no broker has" if one.name not in members_of(world) else f"{does} another's name"
    if one.f not in (ASKED, BEAT) and not world.lists(broker, name_server):
        return f"{does} at a NameServer that is on no list of the broker"
    if one.address not in node.addresses:
        return f"{does} an address that it does not have"
    if elects(world, broker):
        return ""
    sent_ms = one.at_ms - timers.R_ms
    held = (fault.start_ms for fault in world.way_faults(broker, name_server) if fault.overlaps(sent_ms, one.at_ms))
    if one.f != BEAT and one.id_ not in world.ids_of(broker, min(held, default=one.at_ms) - timers.R_ms, one.at_ms):
        return f"{does} an id that it does not have"
    if node.is_ours and one.said.get("cluster", world.cluster_of(broker)) != world.cluster_of(broker):
        return f"{does} another clusterName than its own"
    if node.is_ours and one.said.get("ha", ha_address(one.address)) != ha_address(one.address):
        return "registers another haServerAddr than its own"
    timeout_ms = one.said.get("timeout_ms")
    if timers.profile is Profile.V5_X and timeout_ms and float(timeout_ms) != timers.E_ms:
        return "registers another heartbeatTimeoutMillis than its own"
    if timers.profile is Profile.V5_X and node.is_ours and "timeout_ms" in one.said and not timeout_ms:
        return "registers without its heartbeatTimeoutMillis"
    span = one.at_ms - timers.R_ms, one.at_ms
    acting = world.values(broker, "enableSlaveActingMaster", *span) if timers.profile is Profile.V5_X else [False]
    if node.is_ours and "acting" in one.said and bool(one.said["acting"]) not in map(bool, acting):
        return "registers another enableActingMaster than it has"
    topics = one.said.get("topics")
    if is_slave(broker) or had is None or topics is None:
        return ""
    in_units = world.of_kind("external") or world.run.get("scenario") == "up"  # their clients may set unitMode
    if node.is_ours and not in_units and any(row[3] for row in topics.values()):
        return "registers a topicSysFlag, though no client has set unitMode"
    if node.is_ours and (wrong := _unlike_apaches(world, broker, topics)):
        return wrong
    rows = {topic: (row[0], row[1], row[2]) for topic, row in topics.items()}
    is_its_own = had(one.said["version"][2], rows, one.at_ms)
    return "" if is_its_own else "registers other topics than it has at that data version"


def ha_address(address: str) -> str:
    """Where a broker of this address waits for slaves: haListenPort is listenPort + 1 (`BrokerStartup`)."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}"


def _unlike_apaches(world: World, broker: str, topics: Mapping[str, Sequence[int]]) -> str:
    """In words, what of these topics RocketMQ makes otherwise (`TopicConfigManager`); "" for nothing. An operator's
    topics are as the operator says."""
    by_hand, templates = {act.topic for act in world.acts}, {broker_name(broker), world.cluster_of(broker)}
    of_template = int(str(world.setting(broker, "defaultTopicQueueNums")))
    own = {TBW102: of_template, "SELF_TEST_TOPIC": 1, SCHEDULE_TOPIC: 18}
    deleted = by_hand - {act.topic for act in world.acts if act.f != "delete_topic"}
    made = {world.topic_of(one.name): world.queues_of(one.name) for one in world.ours("producer")}
    for topic in topics.keys() & made.keys() & deleted:  # created again by a first send
        read, write = topics[topic][:2]
        if made[topic] and read == write and read not in (made[topic], min(DEFAULT_TOPIC_QUEUE_NUMS, of_template)):
            return "registers another number of queues than a first send gives a topic"
    for topic, (read, write, perm, *_) in ((name, row) for name, row in topics.items() if name not in by_hand):
        if topic in own and (read, write) != (own[topic], own[topic]):
            return f"registers {topic} with another number of queues than RocketMQ gives it"
        if perm & PERM_INHERIT and topic not in templates and not is_own(topic):
            return "registers a topic with the inherit permission, which only templates of topics have"
    return ""


def _nearest(times_ms: Sequence[float], at_ms: float, end_ms: float) -> float:
    """end_ms: without any time."""
    at = bisect_left(times_ms, at_ms)
    return min(times_ms[max(at - 1, 0) : at + 1], key=lambda time_ms: abs(time_ms - at_ms), default=end_ms)
