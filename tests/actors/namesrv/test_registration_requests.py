"""Registrations, unregistrations and data versions over the wire, in both profiles (nameserver.md, 2, 5, 6, 7)."""

import json
import zlib

import pytest

from nemesrv.remoting.bodies.route import DataVersion
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import IDENTITY, V5, World, body, version


@pytest.mark.parametrize("version_", [409, 477])
async def test_a_compressed_registration_is_read_whatever_its_header_says(
    world: World, profile: Profile, version_: int
) -> None:
    header = {"compressed": "false"} if version_ == 477 else None
    response = await world.call.register(compressed=True, header=header, version=version_)
    assert (response.code, response.remark) == (0, None)
    assert await world.call.has_route()


async def test_a_broker_older_than_filter_servers_sends_its_topics_alone(world: World, profile: Profile) -> None:
    wrapper = {
        "dataVersion": {"counter": 1, "timestamp": 1},
        "topicConfigTable": {name: {"perm": 6, "readQueueNums": 1, "topicName": name} for name in "TU"},
    }
    assert (await world.call.register(body=json.dumps(wrapper).encode(), version=36)).code == 0
    assert await world.call.has_route()


async def test_a_registration_without_a_body_has_no_topics(world: World, profile: Profile) -> None:
    assert (await world.call.register(body=b"")).code == 0
    cluster = body(await world.call(RequestCode.GET_BROKER_CLUSTER_INFO))
    assert cluster["clusterAddrTable"] == {"c": ["broker-a"]}
    held = await world.call(RequestCode.QUERY_DATA_VERSION, IDENTITY, version().encode())
    assert DataVersion.decode(held.body) == DataVersion()


async def test_a_body_with_the_wrong_crc_is_refused_and_the_right_one_taken(world: World, profile: Profile) -> None:
    refused = await world.call.register(header={"bodyCrc32": "12345"})
    assert (refused.code, refused.remark) == (1, "crc32 not match")
    assert (await world.call.route()).code == 17
    sent = b'{"topicConfigSerializeWrapper":{}}'
    crc = str(zlib.crc32(sent) & 0x7FFFFFFF)
    assert (await world.call.register(header={"bodyCrc32": crc}, body=sent)).code == 0


async def test_a_registration_answers_with_the_master_and_the_order_conf(world: World, profile: Profile) -> None:
    await world.call.register()
    await world.call(RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "broker-a:4"})
    slave = await world.call.register(id_=1, addr="10.0.0.2:10911")
    assert slave.ext_fields == {"masterAddr": "10.0.0.1:10911", "haServerAddr": "10.0.0.1:10912"}
    assert body(slave) == {"table": {"T": "broker-a:4"}}


async def test_5_x_keeps_the_order_conf_to_itself_where_it_is_told_so() -> None:
    async with World(V5, return_order_topic_config_to_broker=False) as world:
        await world.call(RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "x"})
        assert (await world.call.register()).body == b""


async def test_an_unregistered_broker_is_gone(world: World, profile: Profile) -> None:
    await world.call.register()
    assert await world.call.has_route()
    assert (await world.call(RequestCode.UNREGISTER_BROKER, IDENTITY)).code == 0
    await world.clock.sleep(0.01)  # 5.x answers as soon as it is queued
    assert (await world.call.route()).code == 17
    assert world.events("broker_dropped")[0]["value"] == {"reason": "unregistered"}


async def test_query_data_version_gives_the_version_held(world: World, profile: Profile) -> None:
    unknown = await world.call(RequestCode.QUERY_DATA_VERSION, IDENTITY, version(3).encode())
    assert (unknown.ext_fields, unknown.body) == ({"changed": "true"}, b"")
    await world.call.register(data_version=version(3))
    same = await world.call(RequestCode.QUERY_DATA_VERSION, IDENTITY, version(3).encode())
    assert same.ext_fields == {"changed": "false"}
    state = ',"stateVersion":0' if profile is V5 else ""
    assert same.body.decode() == f'{{"counter":3{state},"timestamp":1000}}'
    other = await world.call(RequestCode.QUERY_DATA_VERSION, IDENTITY, version(2).encode())
    assert other.ext_fields == {"changed": "true"}
