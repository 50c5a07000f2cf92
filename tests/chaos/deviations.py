"""Small deviations of timers: how a node gets them, and the small runs that show them (deviations.yaml)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.actors.namesrv.tables import Registered, Registration
from nemesrv.chaos.defects import around, in_its_parts, replace_part, with_settings
from nemesrv.chaos.experiment.workloads.producer import ProducerNode
from nemesrv.chaos.oracle.broker import FETCH
from nemesrv.chaos.proof.defects import Defect, timers
from nemesrv.chaos.proof.defects.name_server_table import dropped_by
from nemesrv.chaos.proof.defects.planting import BROKER_A, CONSUMER_0, NS_0, PRODUCER_0, instance_of
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.clients.route_cache import TopicPublishInfo
from nemesrv.remoting.bodies.route import TopicRouteData
from nemesrv.remoting.node.node import Node

SHARE = 0.02
WHERE = {where.nodes[0]: where for where in (NS_0, BROKER_A, PRODUCER_0, CONSUMER_0)}


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """A node that is not as it should be, and the small run that shows it; as in deviations.yaml."""

    name: str
    node: str
    plant: str
    scenario: Mapping[str, Any]

    def defect(self, factor: float) -> Defect:
        """The node's timer is so many times as long."""
        kinds, nodes = WHERE[self.node]
        plant = PLANTS[self.plant]
        # `source`: a defect of somebody's own is planted by what it is, one of the self-test's by its name.
        return Defect(
            name="deviation",
            what="",
            kinds=kinds,
            nodes=nodes,
            plant=lambda node: plant(node, factor),
            source=Path(__file__),
        )

    def parsed(self, phases: Mapping[str, float]) -> Scenario:
        return parse(
            {"name": "deviation", "checks": ["timers_kept"], **self.scenario, "phases": phases}, file="deviation"
        )


@dataclass(frozen=True, kw_only=True)
class Timer(Deviation):
    task: str = ""
    period_ms: int
    longer: Mapping[str, float] = field(default_factory=dict)
    shorter: Mapping[str, float] = field(default_factory=dict)
    only_longer: str = ""
    is_exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Limit(Deviation):
    says: str
    check: str
    limit_ms: float
    early: bool = False
    is_measured: bool = True
    timer_ms: float = 0.0
    beyond_ms: float = 0.0
    inside: Mapping[str, float]
    outside: Mapping[str, float] | None = None

    @property
    def factor(self) -> float:
        """2 % beyond the limit."""
        share = -SHARE if self.early else SHARE
        timer_ms = self.timer_ms or self.limit_ms
        return 1 + (share * self.limit_ms + self.beyond_ms) / timer_ms if timer_ms else 1 + share


@in_its_parts
def registers_within(broker: Broker, factor: float) -> None:
    longer_ms = round(broker.services.config.register_timeout_s * 1000 * factor)
    with_settings(broker.services, "config", register_broker_timeout_mills=longer_ms)


@in_its_parts
def says_it_lives_every(broker: Broker, factor: float) -> None:
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
def wakes_pulls_after(broker: Broker, factor: float) -> None:
    """A broker that wakes held pulls so much of its check's 5 s after a message has come."""
    clock, late_s = broker._context.clock, 5 * (factor - 1)
    around(broker._pull, "arrived")(lambda arrived, *queue: clock.call_later(late_s, arrived, *queue))


def drops_after(server: NameServer, factor: float) -> None:
    """A NameServer that acts on a closed channel so much of 10 s later."""
    clock = server._context.clock
    around(server, "_channel_lost")(lambda lost, *about: clock.call_later(10 * (factor - 1), lost, *about))


def asks_another_after(node: ProducerNode, factor: float) -> None:
    """A client whose poll is so much of P late when its NameServer's channel is gone."""
    instance = instance_of(node)

    @around(instance, "poll_routes")
    async def poll_late(poll: Any) -> None:
        chosen = instance.name_server.chosen
        if chosen is not None and not instance.remoting.is_active(chosen):
            await instance._context.clock.sleep(30 * (factor - 1))
        await poll()


def waits_for_service(server: NameServer, factor: float) -> None:
    """A NameServer that waits so many times W before it answers look-ups."""
    longer_s = server.processor.config.wait_seconds_for_service * factor
    with_settings(server.processor, "config", wait_seconds_for_service=longer_s)


PLANTS: Mapping[str, Callable[[Any, float], None]] = {
    **{
        plant.__name__: plant
        for plant in (
            *(asks_another_after, drops_after, expires_after, fetches_lists_every, idles_for, leaves_brokers_after),
            *(registers_within, says_it_lives_every, takes_brokers_back_after, takes_routes_after, wakes_pulls_after),
            *(waits_for_service, timers.connects_within, timers.isolates, timers.pulls_again_after),
            *(timers.rebalances_every, timers.scans_every, timers.sends_within, timers.waits_for_answers),
            *map(in_its_parts, (timers.forgets_clients_after, timers.holds_pulls, timers.registers_every)),
        )
    },
    **{
        setting: lambda node, factor, setting=setting: timers.client_setting(node, setting, factor)
        for setting in (
            *("heartbeat_broker_interval_ms", "persist_consumer_offset_interval_ms", "poll_name_server_interval_ms"),
        )
    },
    "ends_isolations_after": lambda node, factor: timers.ends_isolations(node, round(30_000 * (1 - factor))),
}
_ALL = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
TIMERS = tuple(Timer(**one) for one in _ALL["timers"])
LIMITS = tuple(Limit(**one) for one in _ALL["limits"])


def table() -> str:
    """The limits by the check that finds a run just outside, for docs/oracle.md."""
    limits: dict[str, list[str]] = {}
    for limit in LIMITS:
        limits.setdefault(limit.check, []).append(limit.says)
    rows = (f"| `{check}` | {'; '.join(said)} |" for check, said in limits.items())
    return "\n".join(["| check | limits |", "|---|---|", *rows])
