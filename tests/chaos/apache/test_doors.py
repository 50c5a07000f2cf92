"""Apache's brokers of one name: who is who, which door a dial is led to, and whose addresses they are told."""

import asyncio
from pathlib import Path

import pytest

from nemesrv.chaos.apache import doors
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.fronts.answers import told
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.codes import FLAG_RESPONSE
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.node.network import Address
from tests.chaos.fronts.world import World, in_world, request, response

SCENARIO = {
    "cluster": {"name_servers": 1, "brokers": 1, "slaves": 1, "implementation": "apache-5.3.3"},
    "checks": ["one_master"],
}


def test_a_slave_is_told_apart_by_the_first_it_says() -> None:
    assert doors.is_slaves((0).to_bytes(8, "big"))
    assert doors.is_slaves((123_456_789).to_bytes(8, "big"))
    assert not doors.is_slaves(request(103, 1))
    assert not doors.is_slaves(b"\0\0")  # too little to tell


def test_a_member_of_its_dledger_group_is_told_apart_by_the_code_of_its_first_frame() -> None:
    heartbeat = request(50_002, 1, group="broker-a")
    assert [doors.door(heartbeat), doors.door(request(103, 1)), doors.door(bytes(8))] == [doors.DLEDGER, 0, doors.HA]
    assert doors.door(request(105, 50_001, topic='"code":50001')) == 0  # said in another place
    needed = next(n for n in range(len(heartbeat) + 1) if doors.tells(heartbeat[:n]))
    assert doors.door(heartbeat[:needed]) == doors.DLEDGER
    assert not any(doors.tells(heartbeat[:n]) for n in range(needed))


def test_what_a_controller_is_asked_is_told_apart_from_what_its_name_server_is() -> None:
    beat = {"clusterName": "c", "brokerAddr": "127.0.0.1:1", "brokerName": "broker-a"}
    assert doors.door_of_controller(request(1_005, 1)) == doors.CONTROLLER
    assert doors.door_of_controller(request(904, 1, **beat, brokerId="1", epoch="2")) == doors.CONTROLLER
    assert [doors.door_of_controller(one) for one in (request(904, 1, **beat), request(103, 1), request(105, 1))] == [
        0,
        0,
        0,
    ]


def test_a_name_server_that_is_the_controller_is_so_alone() -> None:
    said = doors.controller(10_200, Path("home"))
    assert (said["controllerDLegerSelfId"], said["controllerDLegerPeers"]) == ("n0", "n0-127.0.0.1:10201")
    assert said["controllerStorePath"] == Path("home/controller")


def test_a_broker_under_a_controller_is_told_where_it_dials_that(tmp_path: Path) -> None:
    scenario = parse(
        {
            "cluster": {"name_servers": 2, "brokers": 1, "slaves": 2, "implementation": "apache-5.3.3"},
            "config": {"ns-1": {"enableControllerInNamesrv": True}, "brokers": {"enableControllerMode": True}},
            "checks": ["one_master"],
        },
        file="x.yaml",
    )
    at = {name: Address("127.0.0.1", 20_000 + n) for n, name in enumerate(scenario.topology().servers)}
    plan = NodePlan(scenario=scenario, listen=at, advertised=at)
    (of_broker,) = (plan.factory("broker-a/1", NodeKind.SLAVE).args,)  # type: ignore[attr-defined]
    assert of_broker[0].controllers == {"ns-1": at["ns-1"]}
    (of_server,) = (plan.factory("ns-1", NodeKind.NAME_SERVER).args,)  # type: ignore[attr-defined]
    assert of_server[0].controllers == {}


def test_what_is_no_frame_is_led_to_the_brokers_port() -> None:
    assert doors.tells(b"GET / HTTP/1.1\r\n" * 10_000)
    assert doors.door(b"GET / HTTP/1.1\r\n" * 10_000) == 0


def test_a_member_knows_itself_at_its_own_port_and_the_others_where_it_dials_them() -> None:
    members = {1: Address("127.0.0.1", 10_102), 0: Address("127.0.0.1", 40_001), 2: Address("127.0.0.1", 40_002)}
    assert doors.dledger_group(1, "broker-a", members) == {
        "dLegerGroup": "broker-a",
        "dLegerSelfId": "n1",
        "dLegerPeers": "n0-127.0.0.1:40001;n1-127.0.0.1:10102;n2-127.0.0.1:40002",
    }
    assert doors.role(1, {"enableDLegerCommitLog": True})["brokerRole"] == "ASYNC_MASTER"  # and not SLAVE


def test_all_doors_of_a_broker_are_one_address_for_its_peers() -> None:
    told = doors.as_told(Address("127.0.0.1", 10_100), Address("127.0.0.1", 20_000))
    assert told == {"127.0.0.1:10100": "127.0.0.1:20000", "127.0.0.1:10101": "127.0.0.1:20000"}


def test_a_slave_has_its_id_and_a_master_the_role_that_the_scenario_says() -> None:
    assert doors.role(2, {"brokerRole": "SYNC_MASTER"}) == {"brokerId": 2, "brokerRole": "SLAVE"}
    assert doors.role(0, {}) == {"brokerId": 0, "brokerRole": "ASYNC_MASTER"}


def test_a_slave_of_apaches_begins_with_its_masters_address() -> None:
    scenario = parse(SCENARIO, file="x.yaml")
    at = {name: Address("127.0.0.1", 20_000 + n) for n, name in enumerate(scenario.topology().servers)}
    made = NodePlan(scenario=scenario, listen=at, advertised=at).factory("broker-a/1", NodeKind.SLAVE)
    plan = made.args[0]  # type: ignore[attr-defined]
    assert (plan.broker_name, plan.broker_id, plan.members) == ("broker-a", 1, {"broker-a": at["broker-a"]})


def test_ours_and_apaches_under_one_name_are_refused() -> None:
    mixed = {**SCENARIO, "nodes": {"broker-a/1": {"implementation": "ours"}}}
    with pytest.raises(ScenarioError, match="as its master"):
        parse(mixed, file="x.yaml")


@pytest.mark.parametrize("first", [bytes(8), request(105, 7, topic="T")])
@in_world
async def test_a_dial_waits_for_its_first_bytes_and_is_led_by_them(world: World, first: bytes) -> None:
    asked: list[bytes] = []

    async def leads(said: bytes) -> Address | None:
        asked.append(said)
        assert isinstance(upstream, Address)
        return upstream

    upstream = world.front.upstream
    world.front.leads, world.front.tells_by = leads, doors.tells
    client = await world.dial()
    assert world.accepted.empty()
    client.say(first[:2])
    client.say(first[2:])
    server = await world.server()
    assert await server.hear(len(first)) == first  # nothing is lost, and nothing altered
    assert first.startswith(asked[0])
    assert len(asked[0]) >= doors.FIRST_BYTES
    server.say(response(7))
    assert await client.hear(len(response(7))) == response(7)


async def nowhere(_: bytes) -> Address | None:
    return None


@in_world
async def test_a_dial_that_ends_before_it_says_anything_ends(world: World) -> None:
    world.front.leads = nowhere
    client = await world.dial()
    client.writer.close()
    assert await client.end() == "fin"
    await world.until(lambda: not world.front._connections)


def test_the_masters_addresses_in_the_header_of_an_answer_are_put_in_place() -> None:
    command = RemotingCommand.response(0)
    command.opaque, command.flag = 3, FLAG_RESPONSE
    command.ext_fields = {"masterAddr": "127.0.0.1:20000", "haServerAddr": "127.0.0.1:20000"}
    frame = encode_frame(command)
    given = told(frame, {"127.0.0.1:20000": "127.0.0.1:40001"}, answers=True)
    assert set((decode_frame(given).ext_fields or {}).values()) == {"127.0.0.1:40001"}
    assert told(frame, {"127.0.0.1:20000": "127.0.0.1:40001"}) == frame  # no request


@in_world
async def test_who_waits_for_the_first_bytes_is_not_left_waiting_when_the_front_closes(world: World) -> None:
    world.front.leads = nowhere
    client = await world.dial()
    await world.until(lambda: world.front._connections)
    await asyncio.wait_for(world.front.close(), 10)
    assert await client.end() in ("fin", "rst")
