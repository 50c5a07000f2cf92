"""Channels, timers and the history of a NameServer on a virtual clock (nameserver.md sections 4 and 10)."""

import json
import zlib

import pytest

from nemesrv.actors.namesrv.tables import Unregistration
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.transport import Connection, RemotingServer
from tests.actors.namesrv.helpers import IDENTITY, LISTEN, V4, V5, World, topic, version


def reasons(world: World) -> list[object]:
    return [event["value"]["reason"] for event in world.events("broker_dropped")]  # type: ignore[index]


async def test_a_broker_behind_a_silent_link_leaves_with_the_first_scan_past_its_timeout(profile: Profile) -> None:
    async with World(profile, server_channel_max_idle_time_seconds=1000) as world:
        await world.clock.sleep(7)
        broker, client = world.client(idle_s=1000), world.client()
        await broker.register()
        world.network.hold(LISTEN)
        # 4.9 scans at 5, 15, … 125, 135 s; 5.x at 5, 10, … 125, 130 s; silent since 7 s is expired after 127 s
        await world.clock.sleep((135 if profile is V4 else 130) - 7 - 0.5)
        assert reasons(world) == []
        await world.clock.sleep(1)
        assert reasons(world) == ["expired"]
        world.network.release(LISTEN)
        assert not await client.has_route()
        assert not broker.client.is_active(LISTEN)  # it was closed, which the broker learns when the link is back


async def test_an_idle_channel_takes_two_of_its_brokers_in_4_9_because_it_is_also_closed(profile: Profile) -> None:
    """Found by tests/differential; in 5.x the second event finds the first broker still there."""
    async with World(profile, server_channel_max_idle_time_seconds=60) as world:
        client = world.client(idle_s=1000)
        for number in range(3):
            await client.register(f"broker-{number}", addr=f"10.0.0.{number}:10911")
        await world.clock.sleep(61)
        assert reasons(world) == ["idle"] * (2 if profile is V4 else 1)


async def test_a_broker_that_registers_every_30_s_stays(world: World, profile: Profile) -> None:
    broker = world.client()
    for _ in range(20):
        await broker.register()
        await world.clock.sleep(30)
    assert await broker.has_route()
    assert reasons(world) == []
    assert len(world.events("route")) == 2  # T and U once: nothing changed since


async def test_a_5_x_heartbeat_is_enough_to_stay_alive() -> None:
    async with World(V5) as world:
        broker = world.client()
        await broker.register(header={"heartbeatTimeoutMillis": "10000"})
        for _ in range(30):
            await broker(RequestCode.BROKER_HEARTBEAT, IDENTITY)
            await world.clock.sleep(5)
        assert await broker.has_route()
        await world.clock.sleep(15.1)
        assert reasons(world) == ["expired"]


async def test_the_history_has_each_change_of_a_route_once(world: World, profile: Profile) -> None:
    broker = world.client()
    await broker.register(topics=[topic("T"), topic("U")])
    await broker.register(topics=[topic("T"), topic("U")], data_version=version(2))
    await broker.register(topics=[topic("T", queues=8), topic("U")], data_version=version(3))
    broker.client.close_channel(LISTEN)
    await world.clock.sleep(0.01)
    a = {"broker-a": {"0": "10.0.0.1:10911"}}
    assert world.events("route") == [
        {"topic": "T", "value": {"brokers": a, "queues": {"broker-a": [4, 4, 6, 0]}}},
        {"topic": "U", "value": {"brokers": a, "queues": {"broker-a": [4, 4, 6, 0]}}},
        {"topic": "T", "value": {"brokers": a, "queues": {"broker-a": [8, 8, 6, 0]}}},
        {"topic": "T", "value": None},
        {"topic": "U", "value": None},
    ]
    assert world.events("registration")[0] == {
        "broker_name": "broker-a",
        "broker_id": 0,
        "address": "10.0.0.1:10911",
        "code": 0,
    }
    assert world.events("broker_dropped") == [
        {"broker_name": "broker-a", "broker_id": 0, "address": "10.0.0.1:10911", "value": {"reason": "closed"}}
    ]
    json.dumps(world.history)


async def test_stopping_drops_no_broker_from_the_history() -> None:
    world = World(V4)
    async with world:
        await world.client().register()
        await world.server.stop()
    assert reasons(world) == []
    assert len(world.events("route")) == 2


async def test_hooks_that_are_replaced_on_the_instance_are_the_ones_called() -> None:
    async with World(V4) as world:
        calls: list[object] = []
        world.server._expire_brokers = lambda: calls.append("scan")  # type: ignore[method-assign]
        world.server._channel_lost = lambda connection, reason: calls.append(reason)  # type: ignore[method-assign]
        broker = world.client()
        await broker.register()
        broker.client.close_channel(LISTEN)
        await world.clock.sleep(16)
        assert calls == ["closed", "scan", "scan"]


async def test_a_scan_that_fails_is_not_the_last() -> None:
    async with World(V4) as world:
        calls: list[int] = []

        def fail() -> None:
            calls.append(1)
            raise RuntimeError("planted")

        world.server._expire_brokers = fail  # type: ignore[method-assign]
        await world.clock.sleep(26)
        assert len(calls) == 3


async def test_group_members_are_told_of_a_new_smallest_id_in_5_x() -> None:
    async with World(V5, notify_min_broker_id_changed=True) as world:
        told: list[RemotingCommand] = []

        def handle(connection: Connection, request: RemotingCommand) -> None:
            told.append(request)

        slave = RemotingServer(clock=world.clock, network=world.network, handler=handle, log=world.log)
        address = await slave.listen(Address("10.0.0.2", 10911))
        await world.call.register(id_=1, addr=str(address), header={"enableActingMaster": "true"})
        await world.call.register(id_=0, header={"enableActingMaster": "true"})
        await world.clock.sleep(1)
        await world.call(RequestCode.UNREGISTER_BROKER, IDENTITY)
        await world.clock.sleep(1)
        await slave.close()
        assert [(request.code, request.is_oneway) for request in told] == [(905, True), (905, True)]
        assert [(request.ext_fields or {}).get("minBrokerId") for request in told] == ["0", "1"]
        assert (told[1].ext_fields or {})["offlineBrokerAddr"] == "10.0.0.1:10911"


async def test_unregistrations_beyond_5_xs_queue_are_refused_with_a_bare_code_1() -> None:
    async with World(V5, un_register_broker_queue_capacity=1) as world:
        await world.call.register()
        waiting = Unregistration(cluster_name="c", broker_name="x", broker_addr="1.1.1.1:1", broker_id=0)
        world.server.table.submit_unregister(waiting)
        response = await world.call(RequestCode.UNREGISTER_BROKER, IDENTITY)
        assert (response.code, response.remark) == (1, None)


# -- bad input ---------------------------------------------------------------------------------------------------------

BODIES: dict[str, bytes | None] = {
    "not JSON": b"}{",
    "not zlib": b"\x78\x9cnonsense",
    "a zlib stream cut short": zlib.compress(b'{"a":1}' * 100)[:20],
    "a zlib bomb": None,  # made where it is sent: it takes a second
    "lengths that lie": zlib.compress(b"\x7f\xff\xff\xff"),
    "negative lengths": zlib.compress(b"\xff\xff\xff\xff"),
    "a list": b"[1,2,3]",
    "numbers for objects": b'{"topicConfigSerializeWrapper":7}',
    "words for numbers": b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":"T","perm":"much"}}}}',
    "numbers too large": b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"topicName":"T","perm":1e300}}}}',
    "deep nesting": b'{"topicConfigSerializeWrapper":' * 50_000,
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize("name", list(BODIES))
async def test_a_malformed_registration_is_refused(world: World, profile: Profile, name: str) -> None:
    await world.call.register()
    body = BODIES[name] or zlib.compress(b"\0" * (64 * 1024 * 1024), 9)
    response = await world.call.register("broker-b", addr="10.0.0.2:10911", body=body)
    assert response.code == 1
    assert (response.remark or "").startswith("Failed to decode RegisterBrokerBody, ")
    assert len(response.remark or "") < 1000
    assert "broker-b" not in world.server.table.broker_addr_table
    assert await world.call.has_route()


@pytest.mark.parametrize("code", [217, 322, 318])
async def test_other_malformed_bodies_are_refused_too(world: World, profile: Profile, code: int) -> None:
    fields = {"brokerName": "a", "brokerAddr": "a:1", "clusterName": "c", "brokerId": "0", "topic": "T"}
    sent = b"key=\\u12" if code == 318 else b"}{"
    if (code, profile) == (217, V4):
        return
    response = await world.call(code, fields, sent)
    assert response.code == 1
    assert response.remark


async def test_absurd_names_are_served_and_not_echoed_in_full(world: World, profile: Profile) -> None:
    response = await world.call.route("x" * 8_000_000)
    assert response.code == 17
    assert len(response.remark or "") < 2000
    assert len(world.server.cache) == 0


async def test_a_oneway_request_is_served_and_not_answered(world: World, profile: Profile) -> None:
    await world.call.register()
    await world.call.client.oneway(LISTEN, RemotingCommand.request(RequestCode.UNREGISTER_BROKER, IDENTITY))
    await world.call.client.oneway(LISTEN, RemotingCommand.request(105, {"topic": "T"}))
    await world.clock.sleep(0.01)
    assert not await world.call.has_route()
