"""The timers whose sensitivity is measured: whose each is, how a node gets another, and the small run that shows it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.actors.namesrv.tables import Registered, Registration
from nemesrv.chaos.defects import around, in_its_parts, replace_part, with_settings
from nemesrv.chaos.experiment.workloads.producer import ProducerNode
from nemesrv.chaos.oracle.broker import FETCH, LIGHT_HEARTBEAT, REGISTER
from nemesrv.chaos.oracle.name_server import SCAN
from nemesrv.chaos.oracle.time_outs import HEARTBEAT, PERSIST, POLL, REBALANCE
from nemesrv.chaos.proof.defects import timers
from nemesrv.chaos.proof.defects.name_server_table import dropped_by
from nemesrv.chaos.proof.defects.planting import BROKER_A, CONSUMER_0, NS_0, PRODUCER_0, Where, instance_of
from nemesrv.chaos.proof.defects.timers import client_setting
from nemesrv.clients.route_cache import TopicPublishInfo
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.node.node import Node

RUN_S = 120
Plant = Callable[[Any, float], None]
"""Changes the node: its timer is so many times as long."""
QUIET = {
    "cluster": {"name_servers": 2, "brokers": 1},
    "workload": {"producers": 1, "consumers": 1, "sends_per_s": 0.2, "client_starts": 0, "queues": 1},
    "steady_s": RUN_S,
    "settle_s": 0,
}
TWO_BROKERS = {**QUIET, "cluster": {"name_servers": 2, "brokers": 2}}


@dataclass(frozen=True)
class Timer:
    """One timer: its setting, whose it is, and how a node gets another."""

    name: str
    where: Where
    task: str
    """What `timers_kept` calls it; empty: every check counts."""
    period_ms: int
    """What the deviation is a share of."""
    plant: Plant
    _: KW_ONLY
    base: Mapping[str, Any] = field(default_factory=lambda: QUIET)
    timeline: Sequence[Mapping[str, Any]] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})
    """At which phases one that is too long meets the nearest edge, and one that is too short."""
    only_longer: str = ""
    """Why none is planted that is too short."""

    def document(self, *, longer: bool) -> dict[str, Any]:
        """The scenario."""
        phases = dict(self.phases[0 if longer else 1])
        document = {"name": "sensitivity", **self.base, "timeline": list(self.timeline), "phases": phases, **self.more}
        return {**document, "checks": ["timers_kept"]}


def _of_client(name: str) -> Plant:
    return lambda node, factor: client_setting(node, name, factor)


@in_its_parts
def _registers_within(broker: Broker, factor: float) -> None:
    longer_ms = round(broker.services.config.register_timeout_s * 1000 * factor)
    with_settings(broker.services, "config", register_broker_timeout_mills=longer_ms)


@in_its_parts
def _says_it_lives_every(broker: Broker, factor: float) -> None:
    beat_all = broker._members._beat_all

    @around(broker._members, "_at_a_rate")
    async def at_another_rate(at_a_rate: Any, period_s: Callable[[], float], work: Any) -> None:
        longer = factor if work == beat_all else 1.0
        await at_a_rate(lambda: period_s() * longer, work)


def expires_after(server: NameServer, factor: float) -> None:
    later_ms = round(120_000 * (factor - 1))
    around(server.table, "expire")(lambda expire, *, now_ms: expire(now_ms=now_ms - later_ms))


def idles_for(server: NameServer, factor: float) -> None:
    endpoint = server._server
    replace_part(endpoint, "idle_s", endpoint.idle_s * factor)


def takes_brokers_back_after(server: NameServer, factor: float) -> None:
    """A registration of a broker that was dropped counts only so much of R later."""
    table, clock, gone = server.table, server._context.clock, dropped_by(server.table)
    right = table.register

    def later(registration: Registration) -> None:
        right(registration, now_ms=clock.now_ms())
        server._settle(())

    @around(table, "register")
    def register_late(register: Any, registration: Registration, *, now_ms: int) -> Any:
        if registration.broker_name not in gone:
            return register(registration, now_ms=now_ms)
        gone.discard(registration.broker_name)
        clock.call_later(30 * (factor - 1), later, registration)
        return Registered()


def takes_routes_after(node: Node, factor: float) -> None:
    """A route that has changed is taken only so much of P after the answer."""
    cache, clock = instance_of(node).route_cache, instance_of(node)._context.clock

    @around(cache, "take")
    def take_late(take: Any, topic: str, route: TopicRouteData, *, needed: bool = False) -> Any:
        if needed or cache.route(topic) is None:
            return take(topic, route, needed=needed)
        clock.call_later(30 * (factor - 1), take, topic, route)
        return False


def leaves_brokers_after(node: ProducerNode, factor: float) -> None:
    """The route is taken in time, and sends go by the one before for so much of P."""
    clock, first = instance_of(node)._context.clock, set[str]()

    @around(node.client._publish_table, "update_publish_info")
    def update_late(update: Any, topic: str, info: TopicPublishInfo) -> None:
        if topic in first:
            clock.call_later(30 * (factor - 1), update, topic, info)
        else:
            first.add(topic)
            update(topic, info)


def fetches_lists_every(node: Node, factor: float) -> None:
    """A client that asks for its list by HTTP every so much of N."""

    @around(instance_of(node)._scheduler, "add")
    def add_task(add: Any, task: str, run: Any, *, initial_s: float, period_s: float) -> None:
        add(task, run, initial_s=initial_s, period_s=period_s * factor if task == FETCH else period_s)


@in_its_parts
def wakes_pulls_after(broker: Broker, late_s: float) -> None:
    """A broker that wakes held pulls so late after a message has come."""
    clock = broker._context.clock
    around(broker._pull, "arrived")(lambda arrived, *queue: clock.call_later(late_s, arrived, *queue))


_LOST_FROM_CLIENTS = ({"at_s": 40, "do": "black_hole", "links": ["clients <-> chosen"]}, {"at_s": RUN_S, "do": "heal"})
_HUNG = ({"at_s": 40, "do": "pause", "nodes": ["broker-a"]}, {"at_s": 100, "do": "resume", "nodes": ["broker-a"]})
_CRASHED = ({"at_s": 40, "do": "kill", "nodes": ["broker-a"]}, {"at_s": 100, "do": "restart", "nodes": ["broker-a"]})
_SILENT = ({"at_s": 40, "do": "black_hole", "links": ["broker-a <-> ns-0"]}, {"at_s": 240, "do": "heal"})
_UNREACHABLE = ({"at_s": 40, "do": "packet_loss", "links": ["clients <-> name_servers"]}, {"at_s": RUN_S, "do": "heal"})
_SLOW = (
    {"at_s": 40, "do": "latency", "links": ["producers <-> broker-a"], "latency_ms": 350},
    {"at_s": 50, "do": "heal"},
)
_CUT_OFF = ({"at_s": 40, "do": "black_hole", "links": ["consumers <-> brokers"]}, {"at_s": 190, "do": "heal"})
_LONG = {"steady_s": 260}
_SETTLES = {"settle_s": 60}
_BUSY = {"workload": {**QUIET["workload"], "sends_per_s": 4}}

TIMERS: tuple[Timer, ...] = (
    Timer("S: scan", NS_0, SCAN, 10_000, timers.scans_every),
    # a scan just after E, or just before
    Timer(
        "E: expiry",
        NS_0,
        "",
        120_000,
        expires_after,
        timeline=_SILENT,
        phases=({"broker-a": 4, "ns-0": 4.2}, {"broker-a": 4, "ns-0": 3.8}),
        more={**_LONG, "config": {"name_servers": {"serverChannelMaxIdleTimeSeconds": 300}}},
    ),
    Timer(
        "I: idle close of a broker's channel",
        NS_0,
        "",
        60_000,
        idles_for,
        timeline=_SILENT,
        more={**_LONG, "config": {"name_servers": {"serverChannelMaxIdleTimeSeconds": 60}}},
    ),
    Timer(
        "broker taken back by a NameServer, of R",
        NS_0,
        "",
        30_000,
        takes_brokers_back_after,
        base=TWO_BROKERS,
        timeline=_CRASHED,
        more=_SETTLES,
        only_longer="at once",
    ),
    Timer("R: registration", BROKER_A, REGISTER, 30_000, in_its_parts(timers.registers_every)),
    Timer(
        "B: patience with a NameServer, of a broker",
        BROKER_A,
        "REGISTER_BROKER time-out",
        6_000,
        _registers_within,
        timeline=_SILENT,
        more=_LONG,
    ),
    Timer(
        "h: light heartbeat of a broker whose slave may act for it",
        BROKER_A,
        LIGHT_HEARTBEAT,
        1_000,
        _says_it_lives_every,
        base={**QUIET, "cluster": {"name_servers": 1, "brokers": 1, "slaves": 1, "profile": "5.x"}},
        more={"config": {"name_servers": {"supportActingMaster": True}, "brokers": {"enableSlaveActingMaster": True}}},
    ),
    Timer("P: route poll", CONSUMER_0, POLL, 30_000, _of_client("poll_name_server_interval_ms")),
    Timer(
        "N: list of NameServers by HTTP",
        CONSUMER_0,
        FETCH,
        120_000,
        fetches_lists_every,
        base={**QUIET, "cluster": {"name_servers": 2, "brokers": 1, "name_server_list": ["ns-0", "ns-1"]}},
        more={"steady_s": 140},
    ),
    Timer(
        "route taken by a client, of P",
        PRODUCER_0,
        "",
        30_000,
        takes_routes_after,
        base=TWO_BROKERS,
        timeline=_CRASHED,
        more=_SETTLES,
        only_longer="at once",
    ),
    Timer(
        "dead broker left by a producer, of P",
        PRODUCER_0,
        "",
        30_000,
        leaves_brokers_after,
        base={**TWO_BROKERS, **_BUSY},
        timeline=_CRASHED,
        phases=({"producer-0": 9.9}, {}),
        more=_SETTLES,
        only_longer="at once",
    ),
    Timer(
        "A: patience with a NameServer, of a client",
        CONSUMER_0,
        "GET_ROUTEINFO_BY_TOPIC time-out",
        3_000,
        timers.waits_for_answers,
        timeline=_LOST_FROM_CLIENTS,
    ),
    Timer(
        "C: connect",
        CONSUMER_0,
        "connect time-out",
        3_000,
        timers.connects_within,
        base={**QUIET, "cluster": {"name_servers": 1, "brokers": 1}},
        timeline=_UNREACHABLE,
    ),
    Timer(
        "T: send with all its tries",
        PRODUCER_0,
        "send time-out",
        3_000,
        timers.sends_within,
        base=TWO_BROKERS,
        timeline=_HUNG,
    ),
    Timer("H: heartbeat", CONSUMER_0, HEARTBEAT, 30_000, _of_client("heartbeat_broker_interval_ms")),
    # as for E
    Timer(
        "client expiry at a broker",
        BROKER_A,
        "client expiry",
        120_000,
        in_its_parts(timers.forgets_clients_after),
        timeline=_CUT_OFF,
        phases=({"consumer-0": 9, "broker-a": 0.2}, {"consumer-0": 9, "broker-a": 9.8}),
        more={**_LONG, "config": {"brokers": {"serverChannelMaxIdleTimeSeconds": 300}}},
    ),
    Timer(
        "persistConsumerOffsetInterval: commit",
        CONSUMER_0,
        PERSIST,
        5_000,
        _of_client("persist_consumer_offset_interval_ms"),
    ),
    Timer("Qr: rebalance", CONSUMER_0, REBALANCE, 20_000, timers.rebalances_every),
    # a message each 20.3 s: held pulls begin at other moments of the check's 5 s each time
    Timer(
        "long poll: held",
        BROKER_A,
        "long poll",
        15_000,
        in_its_parts(timers.holds_pulls),
        more={"steady_s": 320, "workload": {**QUIET["workload"], "sends_per_s": 1 / 20.3}},
    ),
    Timer(
        "long poll: woken by a message, of the check's 5 s",
        BROKER_A,
        "long poll",
        5_000,
        lambda node, factor: wakes_pulls_after(node, 5 * (factor - 1)),
        only_longer="at once",
    ),
    Timer(
        "pull put off after one that failed",
        CONSUMER_0,
        "pull delay: exception",
        1_000,
        timers.pulls_again_after,
        timeline=_CRASHED,
    ),
    Timer(
        "isolation by latency",
        PRODUCER_0,
        "isolation",
        30_000,
        timers.isolates,
        base={**TWO_BROKERS, **_BUSY},
        timeline=_SLOW,
        more={**_SETTLES, "config": {"producers": {"sendLatencyFaultEnable": True}}},
    ),
    Timer(
        "isolation: until the broker is used again",
        PRODUCER_0,
        "isolation",
        30_000,
        lambda node, factor: timers.ends_isolations(node, round(30_000 * (1 - factor))),
        base={**TWO_BROKERS, **_BUSY},
        timeline=_SLOW,
        more={**_SETTLES, "config": {"producers": {"sendLatencyFaultEnable": True}}},
    ),
)
