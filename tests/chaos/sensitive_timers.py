"""The timers whose sensitivity is measured: whose each is, how a node gets another, and the small run that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.actors.namesrv.tables import Dropped, DropReason, Registered, Registration
from nemesrv.chaos.experiment.workloads.producer import ProducerNode
from nemesrv.chaos.oracle.schedules import FETCH, HEARTBEAT, LIGHT_HEARTBEAT, PERSIST, POLL, REBALANCE, REGISTER, SCAN
from nemesrv.chaos.proof.defects import timers as planted
from nemesrv.chaos.proof.defects import waits
from nemesrv.chaos.proof.defects.client import instance_of
from nemesrv.chaos.scenarios.defect import in_its_parts, replace_part
from nemesrv.chaos.topology import NodeKind
from nemesrv.clients.route_cache import TopicPublishInfo
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.node.node import Node

RUN_S = 120
Plant = Callable[[float], Callable[[Any], None]]
QUIET = {
    "cluster": {"name_servers": 2, "brokers": 1},
    "workload": {"producers": 1, "consumers": 1, "sends_per_s": 0.2, "client_starts": 0, "queues": 1},
    "steady_s": RUN_S,
    "settle_s": 0,
}
TWO_BROKERS = {**QUIET, "cluster": {"name_servers": 2, "brokers": 2}}


@dataclass(frozen=True, kw_only=True)
class Timer:
    """One timer: its setting, whose it is, and how a node gets another."""

    name: str
    node: str
    kind: NodeKind
    task: str = ""
    """What `timers_kept` calls it; empty: every check counts."""
    period_ms: int
    """What the deviation is a share of."""
    plant: Plant
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
    return lambda factor: planted.client_setting(name, factor)


def _registers_within(factor: float) -> Callable[[Broker], None]:
    def change(broker: Broker) -> None:
        config = broker.services.config
        longer_ms = round(config.register_timeout_s * 1000 * factor)
        replace_part(broker.services, "config", replace(config, register_broker_timeout_mills=longer_ms))

    return in_its_parts(change)


def _says_it_lives_every(factor: float) -> Callable[[Broker], None]:
    def change(broker: Broker) -> None:
        members = broker._members
        at_a_rate, beat_all = members._at_a_rate, members._beat_all

        async def at_another_rate(period_s: Callable[[], float], work: Any) -> None:
            longer = factor if work == beat_all else 1.0
            await at_a_rate(lambda: period_s() * longer, work)

        replace_part(members, "_at_a_rate", at_another_rate)

    return in_its_parts(change)


def expires_after(factor: float) -> Callable[[NameServer], None]:
    def plant(server: NameServer) -> None:
        expire, later_ms = server.table.expire, round(120_000 * (factor - 1))
        replace_part(server.table, "expire", lambda *, now_ms: expire(now_ms=now_ms - later_ms))

    return plant


def idles_for(factor: float) -> Callable[[NameServer], None]:
    def plant(server: NameServer) -> None:
        endpoint = server._server._endpoint
        replace_part(endpoint, "idle_s", endpoint.idle_s * factor)

    return plant


def takes_brokers_back_after(factor: float) -> Callable[[NameServer], None]:
    """A registration of a broker that was dropped counts only so much of R later."""

    def plant(server: NameServer) -> None:
        table, clock, gone = server.table, server._context.clock, set[str]()
        register, destroy = table.register, table.on_channel_destroy

        def later(registration: Registration) -> None:
            register(registration, now_ms=clock.now_ms())
            server._settle(())

        def register_late(registration: Registration, *, now_ms: int) -> Registered:
            if registration.broker_name not in gone:
                return register(registration, now_ms=now_ms)
            gone.discard(registration.broker_name)
            clock.call_later(30 * (factor - 1), later, registration)
            return Registered()

        def on_channel_destroy(channel_id: int, remote_address: str, reason: DropReason) -> tuple[Dropped, ...]:
            dropped = destroy(channel_id, remote_address, reason)
            gone.update(broker.broker_name for broker in dropped)
            return dropped

        replace_part(table, "register", register_late)
        replace_part(table, "on_channel_destroy", on_channel_destroy)

    return plant


def takes_routes_after(factor: float) -> Callable[[Node], None]:
    """A route that has changed is taken only so much of P after the answer."""

    def plant(node: Node) -> None:
        instance = instance_of(node)
        cache, clock = instance.route_cache, instance._context.clock
        take = cache.take

        def take_late(topic: str, route: TopicRouteData, *, needed: bool = False) -> bool:
            if needed or cache.route(topic) is None:
                return take(topic, route, needed=needed)
            clock.call_later(30 * (factor - 1), take, topic, route)
            return False

        replace_part(cache, "take", take_late)

    return plant


def leaves_brokers_after(factor: float) -> Callable[[ProducerNode], None]:
    """The route is taken in time, and sends go by the one before for so much of P."""

    def plant(node: ProducerNode) -> None:
        table, clock = node.client._publish_table, instance_of(node)._context.clock
        update = table.update_publish_info
        first = set[str]()

        def update_late(topic: str, info: TopicPublishInfo) -> None:
            if topic in first:
                clock.call_later(30 * (factor - 1), update, topic, info)
            else:
                first.add(topic)
                update(topic, info)

        replace_part(table, "update_publish_info", update_late)

    return plant


def fetches_lists_every(factor: float) -> Callable[[Node], None]:
    """A client that asks for its list by HTTP every so much of N."""

    def plant(node: Node) -> None:
        scheduler = instance_of(node)._scheduler
        add = scheduler.add

        def add_task(task: str, run: Any, *, initial_s: float, period_s: float) -> None:
            add(task, run, initial_s=initial_s, period_s=period_s * factor if task == FETCH else period_s)

        replace_part(scheduler, "add", add_task)

    return plant


_LOST_FROM_CLIENTS = ({"at_s": 40, "do": "black_hole", "links": ["clients <-> chosen"]}, {"at_s": RUN_S, "do": "heal"})
_HUNG = ({"at_s": 40, "do": "pause", "nodes": ["broker-a"]}, {"at_s": 100, "do": "resume", "nodes": ["broker-a"]})
_CRASHED = ({"at_s": 40, "do": "kill", "nodes": ["broker-a"]}, {"at_s": 100, "do": "restart", "nodes": ["broker-a"]})
_SILENT = ({"at_s": 40, "do": "black_hole", "links": ["broker-a <-> ns-0"]}, {"at_s": 240, "do": "heal"})
_UNREACHABLE = (
    {"at_s": 40, "do": "packet_loss", "links": ["clients <-> name_servers"]},
    {"at_s": RUN_S, "do": "heal"},
)
_SLOW = (
    {"at_s": 40, "do": "latency", "links": ["producers <-> broker-a"], "latency_ms": 350},
    {"at_s": 50, "do": "heal"},
)
_CUT_OFF = ({"at_s": 40, "do": "black_hole", "links": ["consumers <-> brokers"]}, {"at_s": 190, "do": "heal"})
_LONG = {"steady_s": 260}
_SETTLES = {"settle_s": 60}
_BUSY = {"workload": {**QUIET["workload"], "sends_per_s": 4}}

TIMERS: tuple[Timer, ...] = (
    Timer(
        name="S: scan",
        node="ns-0",
        kind=NodeKind.NAME_SERVER,
        task=SCAN,
        period_ms=10_000,
        plant=planted.scans_every,
    ),
    Timer(
        name="E: expiry",
        node="ns-0",
        kind=NodeKind.NAME_SERVER,
        period_ms=120_000,
        plant=expires_after,
        timeline=_SILENT,
        phases=({"broker-a": 4, "ns-0": 4.2}, {"broker-a": 4, "ns-0": 3.8}),  # a scan just after E, or just before
        more={**_LONG, "config": {"name_servers": {"serverChannelMaxIdleTimeSeconds": 300}}},
    ),
    Timer(
        name="I: idle close of a broker's channel",
        node="ns-0",
        kind=NodeKind.NAME_SERVER,
        period_ms=60_000,
        plant=idles_for,
        timeline=_SILENT,
        more={**_LONG, "config": {"name_servers": {"serverChannelMaxIdleTimeSeconds": 60}}},
    ),
    Timer(
        name="broker taken back by a NameServer, of R",
        node="ns-0",
        kind=NodeKind.NAME_SERVER,
        period_ms=30_000,
        plant=takes_brokers_back_after,
        base=TWO_BROKERS,
        timeline=_CRASHED,
        more=_SETTLES,
        only_longer="at once",
    ),
    Timer(
        name="R: registration",
        node="broker-a",
        kind=NodeKind.BROKER,
        task=REGISTER,
        period_ms=30_000,
        plant=planted.registers_every,
    ),
    Timer(
        name="B: patience with a NameServer, of a broker",
        node="broker-a",
        kind=NodeKind.BROKER,
        task="REGISTER_BROKER time-out",
        period_ms=6_000,
        plant=_registers_within,
        timeline=_SILENT,
        more=_LONG,
    ),
    Timer(
        name="h: light heartbeat of a broker whose slave may act for it",
        node="broker-a",
        kind=NodeKind.BROKER,
        task=LIGHT_HEARTBEAT,
        period_ms=1_000,
        plant=_says_it_lives_every,
        base={**QUIET, "cluster": {"name_servers": 1, "brokers": 1, "slaves": 1, "profile": "5.x"}},
        more={"config": {"name_servers": {"supportActingMaster": True}, "brokers": {"enableSlaveActingMaster": True}}},
    ),
    Timer(
        name="P: route poll",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task=POLL,
        period_ms=30_000,
        plant=_of_client("poll_name_server_interval_ms"),
    ),
    Timer(
        name="N: list of NameServers by HTTP",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task=FETCH,
        period_ms=120_000,
        plant=fetches_lists_every,
        base={**QUIET, "cluster": {"name_servers": 2, "brokers": 1, "name_server_list": ["ns-0", "ns-1"]}},
        more={"steady_s": 140},
    ),
    Timer(
        name="route taken by a client, of P",
        node="producer-0",
        kind=NodeKind.PRODUCER,
        period_ms=30_000,
        plant=takes_routes_after,
        base=TWO_BROKERS,
        timeline=_CRASHED,
        more=_SETTLES,
        only_longer="at once",
    ),
    Timer(
        name="dead broker left by a producer, of P",
        node="producer-0",
        kind=NodeKind.PRODUCER,
        period_ms=30_000,
        plant=leaves_brokers_after,
        base={**TWO_BROKERS, **_BUSY},
        timeline=_CRASHED,
        phases=({"producer-0": 9.9}, {}),
        more=_SETTLES,
        only_longer="at once",
    ),
    Timer(
        name="A: patience with a NameServer, of a client",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task="GET_ROUTEINFO_BY_TOPIC time-out",
        period_ms=3_000,
        plant=planted.waits_for_answers,
        timeline=_LOST_FROM_CLIENTS,
    ),
    Timer(
        name="C: connect",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task="connect time-out",
        period_ms=3_000,
        plant=waits.connects_within,
        base={**QUIET, "cluster": {"name_servers": 1, "brokers": 1}},
        timeline=_UNREACHABLE,
    ),
    Timer(
        name="T: send with all its tries",
        node="producer-0",
        kind=NodeKind.PRODUCER,
        task="send time-out",
        period_ms=3_000,
        plant=waits.sends_within,
        base=TWO_BROKERS,
        timeline=_HUNG,
    ),
    Timer(
        name="H: heartbeat",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task=HEARTBEAT,
        period_ms=30_000,
        plant=_of_client("heartbeat_broker_interval_ms"),
    ),
    Timer(
        name="client expiry at a broker",
        node="broker-a",
        kind=NodeKind.BROKER,
        task="client expiry",
        period_ms=120_000,
        plant=waits.forgets_clients_after,
        timeline=_CUT_OFF,
        phases=({"consumer-0": 9, "broker-a": 0.2}, {"consumer-0": 9, "broker-a": 9.8}),  # as for E
        more={**_LONG, "config": {"brokers": {"serverChannelMaxIdleTimeSeconds": 300}}},
    ),
    Timer(
        name="persistConsumerOffsetInterval: commit",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task=PERSIST,
        period_ms=5_000,
        plant=_of_client("persist_consumer_offset_interval_ms"),
    ),
    Timer(
        name="Qr: rebalance",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task=REBALANCE,
        period_ms=20_000,
        plant=planted.rebalances_every,
    ),
    Timer(
        name="long poll: held",
        node="broker-a",
        kind=NodeKind.BROKER,
        task="long poll",
        period_ms=15_000,
        plant=waits.holds_pulls,
        # a message each 20.3 s: held pulls begin at other moments of the check's 5 s each time
        more={"steady_s": 320, "workload": {**QUIET["workload"], "sends_per_s": 1 / 20.3}},
    ),
    Timer(
        name="long poll: woken by a message, of the check's 5 s",
        node="broker-a",
        kind=NodeKind.BROKER,
        task="long poll",
        period_ms=5_000,
        plant=lambda factor: waits.wakes_pulls_after(5 * (factor - 1)),
        only_longer="at once",
    ),
    Timer(
        name="pull put off after one that failed",
        node="consumer-0",
        kind=NodeKind.CONSUMER,
        task="pull delay: exception",
        period_ms=1_000,
        plant=waits.pulls_again_after,
        timeline=_CRASHED,
    ),
    Timer(
        name="isolation by latency",
        node="producer-0",
        kind=NodeKind.PRODUCER,
        task="isolation",
        period_ms=30_000,
        plant=waits.isolates,
        base={**TWO_BROKERS, **_BUSY},
        timeline=_SLOW,
        more={**_SETTLES, "config": {"producers": {"sendLatencyFaultEnable": True}}},
    ),
    Timer(
        name="isolation: until the broker is used again",
        node="producer-0",
        kind=NodeKind.PRODUCER,
        task="isolation",
        period_ms=30_000,
        plant=lambda factor: waits.ends_isolations(round(30_000 * (1 - factor))),
        base={**TWO_BROKERS, **_BUSY},
        timeline=_SLOW,
        more={**_SETTLES, "config": {"producers": {"sendLatencyFaultEnable": True}}},
    ),
)
