"""What people met who had not written the checks: a defect that was VALID, and a right run that was INVALID."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.defect import Defect
from nemesrv.chaos.scenarios.loading import find, parse, refuse_nowhere
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind
from nemesrv.chaos.verdict import Validity, Verdict
from nemesrv.remoting.codes import ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.node.network import Address

LOST_AND_BACK = [{"at_s": 60, "do": "stop", "nodes": ["broker-b"], "for_s": 90}]
ROLLED = [{"at_s": 60, "do": "rolling_restart", "nodes": ["name_servers"], "by": "stop", "down_s": 5, "pause_s": 50}]
FEW_SENDS = ("workload.client_starts=0", "workload.sends_per_s=1")


def scenario(timeline: list[dict[str, Any]], settle_s: float = 90, **more: Any) -> Scenario:
    """Clients send little, because sends take most of a run's time."""
    workload = {"client_starts": 0, "sends_per_s": 1, **more.pop("workload", {})}
    document = {"timeline": timeline, "settle_s": settle_s, "checks": ["routes_are_true"], "workload": workload, **more}
    return parse({"cluster": {"name_servers": 2, "brokers": 2}, **document}, file="stranger.yaml")


def judged(of: Scenario, path: Path, defect: Defect | None = None, seed: int = 1, *checks: str) -> dict[str, Verdict]:
    """The verdicts of these checks; without names, of all."""
    folder = record_virtual(of, seed, path / "run", defect).path
    return {verdict.name: verdict for verdict in verdicts(folder, checks or None)}


def verdict(check: str, of: Scenario, path: Path, defect: Defect | None = None, seed: int = 1) -> Verdict:
    return judged(of, path, defect, seed, check)[check]


def planted(plant: Callable[[Any], None], *kinds: NodeKind, nodes: tuple[str, ...] = ()) -> Defect:
    return Defect(name="of-a-stranger", what="", kinds=kinds, nodes=nodes, plant=plant, source=Path(__file__))


def wrong(found: dict[str, Verdict]) -> set[str]:
    return {name for name, verdict in found.items() if verdict.verdict is Validity.INVALID}


def never_takes_again(consumer: Any) -> None:
    rebalance = consumer.client._rebalancer
    had, take = set(), rebalance._take

    async def once(queue: Any) -> bool:
        if queue in had:
            return True
        had.add(queue)
        return bool(await take(queue))

    rebalance._take = once


@pytest.mark.parametrize("settle_s", [70, 110])
def test_messages_that_wait_at_the_end_are_undecided_with_a_settle_time(tmp_path: Path, settle_s: float) -> None:
    cluster, workload = {"name_servers": 2, "brokers": 3}, {"producers": 1, "consumers": 1}
    of = scenario(LOST_AND_BACK, settle_s, cluster=cluster, workload=workload)
    found = verdict("messages_delivered", of, tmp_path, planted(never_takes_again, NodeKind.CONSUMER))
    assert found.verdict is Validity.UNKNOWN
    assert found.why.endswith(
        "were not received when the history ended, and were not due yet: `settle_s: 122` decides them"
    )
    clean = verdict("messages_delivered", of, tmp_path / "clean")
    assert (clean.verdict, clean.measured["waiting"]) == (Validity.VALID, 0)


def registers_beyond_its_list(broker: Broker) -> None:
    own, clock = broker._registration_targets, broker._context.clock

    def targets() -> tuple[Any, ...]:
        listed = tuple(own())
        other = Address(listed[0].host[:-1] + "2", listed[0].port)
        return (*listed, other) if clock.monotonic_s() > 145 else listed

    broker._registration_targets = targets  # type: ignore[method-assign]


def test_a_name_server_on_no_list_of_a_broker_must_not_have_it_whatever_else_happened(tmp_path: Path) -> None:
    paused = [{"at_s": 60, "do": "pause", "nodes": ["broker-a"], "for_s": 2}]
    lists = {"broker-a": {"name_servers": ["ns-0"]}, "broker-b": {"name_servers": ["ns-1"]}}
    of = scenario(paused, 70, nodes=lists)
    assert wrong(judged(of, tmp_path / "clean")) == set()
    found = judged(of, tmp_path, planted(registers_beyond_its_list, NodeKind.BROKER, nodes=("broker-a",)))
    assert "routes_are_true" in wrong(found)


def test_brokers_that_register_the_loopback_by_their_settings_are_named(tmp_path: Path) -> None:
    of = scenario([], 40, steady_s=10, config={"broker-a": {"brokerIP1": "127.0.0.1"}})
    found = verdict("routes_as_registered", of, tmp_path)
    assert found.verdict is Validity.INVALID
    assert {(one.who, one.more["kind"]) for one in found.examples} == {
        ("broker-a", "registers an address that it does not have")
    }


def is_not_ready(name_server: NameServer) -> None:
    """As 5.5.1's, which answers code 1 from SIGTERM to its end (apache/rocketmq#11073)."""
    stop, route, cached = name_server.stop, name_server.processor.route_info_by_topic, name_server.cache.answer
    going: list[bool] = []

    def answered(caller: Any, request: Any) -> Any:
        if going:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "name server not ready")
        return route(caller, request)

    async def slow_stop() -> None:
        going.append(True)
        await asyncio.sleep(12)
        await stop()

    name_server.processor.route_info_by_topic = answered  # type: ignore[method-assign]
    name_server.cache.answer = lambda frame: None if going else cached(frame)  # type: ignore[method-assign]
    name_server.stop = slow_stop  # type: ignore[method-assign]


def loses_brokers_first(name_server: NameServer) -> None:
    """As before that: code 17 for topics that there are."""
    stop = name_server.stop

    async def slow_stop() -> None:
        for connection in list(name_server._server.connections.values()):
            name_server._channel_lost(connection, "closed")
        await asyncio.sleep(12)
        await stop()

    name_server.stop = slow_stop  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("profile", "plant", "is_wrong"),
    [("5.x", is_not_ready, False), ("4.9", is_not_ready, True), ("5.x", loses_brokers_first, True)],
)
def test_a_name_server_of_5_x_that_is_being_stopped_may_say_that_it_is_not_ready_and_nothing_else(
    tmp_path: Path, profile: str, plant: Callable[[Any], None], is_wrong: bool
) -> None:
    of = scenario(ROLLED, cluster={"name_servers": 3, "brokers": 2, "profile": profile})
    found = judged(of, tmp_path, planted(plant, NodeKind.NAME_SERVER))
    assert bool({"answers_are_true", "no_false_eviction"} & wrong(found)) == is_wrong


def test_a_defect_for_a_kind_or_a_node_that_the_scenario_has_not_is_refused() -> None:
    of_slaves = planted(lambda _node: None, NodeKind.BROKER, NodeKind.SLAVE)
    with pytest.raises(ScenarioError, match="it is for slave"):
        refuse_nowhere(of_slaves, find("smoke"), "mine.yaml")
    nobody = planted(lambda _node: None, *NodeKind, nodes=("ns-0", "ns-9"))
    with pytest.raises(ScenarioError, match="it is for ns-9"):
        refuse_nowhere(nobody, find("smoke"), "mine.yaml")


def commits_once_more(consumer: Any) -> None:
    """8 s after it gave a queue up."""
    rebalancer, offsets, clock = consumer.client._rebalancer, consumer.client._offsets, consumer.instance._context.clock
    drop = rebalancer.drop

    async def dropping(queue: Any) -> None:
        at = offsets.in_memory(queue)
        await drop(queue)
        if at is not None:
            clock.call_later(8, lambda: asyncio.ensure_future(offsets._send(queue, at)))

    rebalancer.drop = dropping


PAUSED_AND_LOST = [
    {"at_s": 40, "do": "pause", "nodes": ["consumer-1"], "for_s": 3},
    {"at_s": 60, "do": "kill", "nodes": ["consumer-2"], "for_s": 90},
]


def test_a_commit_for_a_queue_that_was_given_up_is_found(tmp_path: Path) -> None:
    of = scenario(PAUSED_AND_LOST, 150, workload={"producers": 1, "consumers": 3})
    assert wrong(judged(of, tmp_path / "clean")) == set()
    found = judged(of, tmp_path, planted(commits_once_more, NodeKind.CONSUMER, nodes=("consumer-0",)))
    assert "commits_follow_work" in wrong(found)
    assert found["commits_follow_work"].examples[0].who == "consumer-0"


def heartbeats_past_broker_a(client: Any) -> None:
    """From 90 s after its start for 90 s."""
    instance = client.instance
    send, clock = instance._send_heartbeat, instance._context.clock
    began_s = clock.monotonic_s()

    async def sending(name: str, address: Any, body: bytes) -> None:
        if name != "broker-a" or not 90 < clock.monotonic_s() - began_s < 180:
            await send(name, address, body)

    instance._send_heartbeat = sending


@pytest.mark.nightly_but("0")
@pytest.mark.parametrize("seed", range(3))
def test_a_client_that_heartbeats_past_a_healthy_broker_is_found(tmp_path: Path, seed: int) -> None:
    timeline = [
        {"at_s": at_s, "do": do, "nodes": ["broker-b"]}
        for at_s, do in ((20, "stop"), (45, "restart"), (75, "stop"), (100, "restart"), (130, "stop"), (155, "restart"))
    ]
    of = scenario(timeline, 150, workload={"producers": 1, "consumers": 2})
    assert wrong(judged(of, tmp_path / "clean", seed=seed)) == set()
    found = judged(of, tmp_path, planted(heartbeats_past_broker_a, NodeKind.PRODUCER), seed)
    assert "timers_kept" in wrong(found)


@pytest.mark.parametrize(
    ("name", "seed", "sets"),
    [
        # a call that outlasts the next poll
        ("name-server-partition", 1, ("clients.mqClientApiTimeout=40000",)),
        # what a killed broker forgets is what it has not written
        ("broker-crash", 19, ("clients.pollNameServerInterval=15000", "brokers.flushConsumerOffsetInterval=20000")),
        # a NameServer closes an idle channel as the poll comes
        ("broker-hang", 3, ("clients.pollNameServerInterval=120000", "settle_s=400", *FEW_SENDS)),
        # a slave that makes no group for its readers, either
        ("slave-reads", 170, ("cluster.profile=5.x", "brokers.autoCreateSubscriptionGroup=false", *FEW_SENDS)),
    ],
)
def test_a_setting_unlike_its_default_is_no_fault(tmp_path: Path, name: str, seed: int, sets: tuple[str, ...]) -> None:
    assert wrong(judged(find(name, sets), tmp_path, seed=seed)) == set()


def test_who_keeps_its_channel_after_a_time_out_may_stay_with_a_silent_name_server(tmp_path: Path) -> None:
    of = find("name-server-partition", ("clients.clientCloseSocketIfTimeout=false", *FEW_SENDS))
    found = verdict("dead_name_servers_left", of, tmp_path)
    assert found.verdict is Validity.UNKNOWN
    assert "producer-1 may stay with a silent NameServer (clientCloseSocketIfTimeout=false)" in found.why
