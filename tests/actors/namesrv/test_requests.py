"""Every request code over the wire, in both profiles (nameserver.md sections 2, 5, 6, 7; codes.md section 1)."""

import json
import zlib
from pathlib import Path

import pytest

from nemesrv.remoting.bodies.route import DataVersion, QueueData, TopicRouteData
from nemesrv.remoting.codes import LanguageCode, RequestCode, SerializeType
from nemesrv.remoting.errors import RequestTimeout
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import IDENTITY, LISTEN, V4, V5, World, body, topic, version


@pytest.mark.parametrize("kind", list(SerializeType))
async def test_a_route_comes_in_the_requests_header_type(world: World, profile: Profile, kind: SerializeType) -> None:
    registered = await world.call.register()
    assert (registered.code, registered.ext_fields, registered.body) == (0, {}, b"")
    for _ in range(3):  # the second and third come from the cache
        response = await world.call.route(serialize_type=kind)
        assert (response.language, response.version) == (LanguageCode.JAVA, profile.version)
        assert (response.serialize_type, response.flag, response.remark) == (kind, 1, None)
        assert response.ext_fields is None
        group = {"brokerAddrs": {"0": "10.0.0.1:10911"}, "brokerName": "broker-a", "cluster": "c"}
        assert body(response) == {
            "brokerDatas": [group if profile is V4 else group | {"enableActingMaster": False}],
            "filterServerTable": {},
            "queueDatas": [
                {"brokerName": "broker-a", "perm": 6, "readQueueNums": 4, "topicSysFlag": 0, "writeQueueNums": 4}
            ],
        }


async def test_the_dialect_follows_the_clients_version_or_its_wish(world: World, profile: Profile) -> None:
    await world.call.register()
    for version_, wish, quoted in ((401, "", True), (400, "", False), (317, "true", True), (317, "false", False)):
        fields = {"topic": "T", "acceptStandardJsonOnly": wish} if wish else {"topic": "T"}
        for _ in range(2):
            response = await world.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields, version=version_)
            assert (b'{"0":"10.0.0.1:10911"}' in response.body) is quoted
            assert (b'{0:"10.0.0.1:10911"}' in response.body) is not quoted


async def test_a_topic_without_a_route_is_code_17_with_the_profiles_help(world: World, profile: Profile) -> None:
    response = await world.client().route("nope")
    assert (response.code, response.body) == (17, b"")
    assert response.remark == (
        f"No topic route info in name server for the topic: nope\nSee {profile.faq_url} for further details."
    )


@pytest.mark.parametrize(
    ("profile", "brokers", "quoted"), [(V5, ["broker-a"], False), (V4, ["broker-a", "broker-b"], True)]
)
async def test_in_5_x_a_zone_gets_its_own_brokers(profile: Profile, brokers: list[str], quoted: bool) -> None:
    async with World(profile) as world:
        await world.call.register(header={"__ZONE_NAME": "z1"})
        await world.call.register("broker-b", addr="10.0.0.2:10911", header={"__ZONE_NAME": "z2"})
        asked = {"topic": "T", "__ZONE_MODE": "true", "__ZONE_NAME": "z1"}
        for _ in range(2):
            response = await world.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, asked)
            assert [data["brokerName"] for data in body(response)["brokerDatas"]] == brokers
            assert (b'"0"' in response.body) is quoted


async def test_a_5_x_server_that_waits_for_service_is_not_ready_at_first() -> None:
    async with World(V5, need_wait_for_service=True, wait_seconds_for_service=45) as world:
        await world.call.register()
        response = await world.call.route()
        assert (response.code, response.remark) == (1, "name server not ready")
        await world.clock.sleep(45)
        assert await world.call.has_route()
        assert await world.call.has_route()


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_order_conf_is_in_the_route_where_it_is_enabled(enabled: bool) -> None:
    async with World(V4, order_message_enable=enabled) as world:
        await world.call.register()
        assert "orderTopicConf" not in body(await world.call.route())
        item = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "broker-a:4"}
        await world.call(RequestCode.PUT_KV_CONFIG, item)
        assert body(await world.call.route()).get("orderTopicConf") == ("broker-a:4" if enabled else None)


async def test_topic_lists_over_the_wire(world: World, profile: Profile) -> None:
    assert body(await world.call(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)) == {"topicList": []}
    topics = [topic("plain"), topic("unit", flag=1), topic("sub", flag=2), topic("both", flag=3)]
    await world.call.register(topics=topics)
    others = [topic("plain"), topic("other")]
    await world.call.register("broker-b", addr="10.0.0.2:10911", header={"clusterName": "d"}, topics=others)
    listed = {
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: {"plain", "unit", "sub", "both", "other"},
        RequestCode.GET_TOPICS_BY_CLUSTER: {"plain", "other"},
        RequestCode.GET_UNIT_TOPIC_LIST: {"unit", "both"},
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: {"sub", "both"},
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: {"sub"},
    }
    for code, expected in listed.items():
        assert set(body(await world.call(code, {"cluster": "d"}))["topicList"]) == expected
    unknown = await world.call(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "nowhere"})
    assert body(unknown) == {"topicList": []}
    system = body(await world.call(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS))
    assert system == {"brokerAddr": "10.0.0.1:10911", "topicList": ["c", "broker-a", "d", "broker-b"]}


async def test_5_x_keeps_topic_lists_to_itself_where_it_is_told_so() -> None:
    async with World(V5, enable_all_topic_list=False, enable_topic_list=False) as world:
        for code in (206, 224, 311, 312, 313):
            response = await world.call(code, {"cluster": "c"})
            assert (response.code, response.remark) == (1, "disable")
        assert (await world.call(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)).code == 0


async def test_a_topic_is_deleted_with_code_0_known_or_not(world: World, profile: Profile) -> None:
    await world.call.register()
    assert (await world.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T", "clusterName": "no"})).code == 0
    assert await world.call.has_route()
    for _ in range(2):
        assert (await world.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T"})).code == 0
    assert not await world.call.has_route()


async def test_5_x_has_three_codes_that_4_9_has_not() -> None:
    async with World(V5) as world:
        await world.call.register()
        row = QueueData(broker_name="broker-a", read_queue_nums=1, write_queue_nums=1, perm=6)
        sent = TopicRouteData(queue_datas=(row,)).encode()
        assert (await world.call(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "X"}, sent)).code == 0
        assert (await world.call(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "Y"})).code == 0
        assert await world.call.has_route("X")
        asked = {"clusterName": "c", "brokerName": "broker-a"}
        group = await world.call(RequestCode.GET_BROKER_MEMBER_GROUP, asked)
        assert body(group) == {
            "brokerMemberGroup": {"brokerAddrs": {"0": "10.0.0.1:10911"}, "brokerName": "broker-a", "cluster": "c"}
        }
        nobody = await world.call(RequestCode.GET_BROKER_MEMBER_GROUP, {"clusterName": "c", "brokerName": "nobody"})
        assert body(nobody)["brokerMemberGroup"]["brokerAddrs"] == {}
        assert group.remark == nobody.remark == "not set any response code"  # as there
        assert (await world.call(RequestCode.BROKER_HEARTBEAT, IDENTITY)).code == 0


@pytest.mark.parametrize("profile", [V4, V5])
async def test_an_unknown_code_is_met_with_silence_in_4_9_and_code_3_in_5_x(profile: Profile) -> None:
    async with World(profile) as world:
        for code in (217, 901, 904, 12345) if profile is V4 else (12345,):
            if profile is V4:
                with pytest.raises(RequestTimeout):
                    await world.call(code)
            else:
                response = await world.call(code)
                assert (response.code, response.remark) == (3, " request type 12345 not supported")
        assert (await world.call.route()).code == 17  # and the server goes on


async def test_kv_config_is_kept_in_its_file(profile: Profile, tmp_path: Path) -> None:
    async with World(profile, data_dir=tmp_path) as world:
        call = world.client()
        for value in ("1", "2"):
            put = await call(RequestCode.PUT_KV_CONFIG, {"namespace": "ns", "key": "k", "value": value})
            assert put.code == 0
        got = await call(RequestCode.GET_KV_CONFIG, {"namespace": "ns", "key": "k"})
        assert got.ext_fields == {"value": "2"}
        missing = await call(RequestCode.GET_KV_CONFIG, {"namespace": "ns", "key": "x"})
        assert (missing.code, missing.remark) == (22, "No config item, Namespace: ns Key: x")
        nowhere = await call(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "x"})
        assert (nowhere.code, nowhere.remark) == (22, "No config item, Namespace: x")
        nameless = await call(RequestCode.PUT_KV_CONFIG, {"key": "k", "value": "v"})
        assert (nameless.code, nameless.remark) == (1, "namespace or key is null")
        assert json.loads((tmp_path / "kvConfig.json").read_text()) == {"configTable": {"ns": {"k": "2"}}}
        assert json.loads((tmp_path / "kvConfig.json.bak").read_text()) == {"configTable": {"ns": {"k": "1"}}}
    async with World(profile, data_dir=tmp_path) as world:
        call = world.client()
        assert body(await call(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "ns"})) == {"table": {"k": "2"}}
        for key in ("k", "never there"):
            assert (await call(RequestCode.DELETE_KV_CONFIG, {"namespace": "ns", "key": key})).code == 0
        assert body(await call(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": "ns"})) == {"table": {}}


async def test_settings_are_read_and_changed_over_the_wire(profile: Profile, tmp_path: Path) -> None:
    async with World(profile, data_dir=tmp_path, extra={"ours": "kept"}) as world:
        text = (await world.call(RequestCode.GET_NAMESRV_CONFIG)).body.decode()
        assert "listenPort=9876\n" in text
        assert "ours=kept\n" in text
        assert ("supportActingMaster=false\n" in text) is (profile is V5)
        assert (await world.call(RequestCode.UPDATE_NAMESRV_CONFIG)).code == 0
        changes = b"orderMessageEnable=true\nunknown=1\n"
        assert (await world.call(RequestCode.UPDATE_NAMESRV_CONFIG, None, changes)).code == 0
        assert world.server.config.order_message_enable
        text = (await world.call(RequestCode.GET_NAMESRV_CONFIG)).body.decode()
        assert "orderMessageEnable=true\n" in text
        assert "unknown" not in text
        assert "orderMessageEnable=true\n" in (tmp_path / "namesrv.properties").read_text()
        for black in (b"kvConfigPath=/etc/passwd", b"rocketmqHome=/", b"orderMessageEnable=false\nconfigBlackList="):
            refused = await world.call(RequestCode.UPDATE_NAMESRV_CONFIG, None, black)
            assert (refused.code, refused.remark) == (16, "Can not update config in black list.")
        wrong = await world.call(RequestCode.UPDATE_NAMESRV_CONFIG, None, b"orderMessageEnable=maybe")
        assert wrong.code == 1
        assert wrong.remark == "updateConfig: orderMessageEnable=maybe is not allowed; expected true or false"
        assert world.server.config.order_message_enable


REQUIRED = {
    RequestCode.GET_KV_CONFIG: ("namespace", "key"),
    RequestCode.DELETE_KV_CONFIG: ("namespace", "key"),
    RequestCode.UNREGISTER_BROKER: ("brokerName", "brokerAddr", "clusterName", "brokerId"),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: ("topic",),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: ("brokerName",),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: ("brokerName",),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: ("topic",),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: ("topic",),
    RequestCode.GET_KVLIST_BY_NAMESPACE: ("namespace",),
    RequestCode.GET_TOPICS_BY_CLUSTER: ("cluster",),
    RequestCode.QUERY_DATA_VERSION: ("brokerName", "brokerAddr", "clusterName", "brokerId"),
    RequestCode.GET_BROKER_MEMBER_GROUP: ("clusterName", "brokerName"),
    RequestCode.BROKER_HEARTBEAT: ("clusterName", "brokerAddr", "brokerName"),
    RequestCode.REGISTER_BROKER: ("brokerName", "brokerAddr", "clusterName", "haServerAddr", "brokerId"),
}


async def test_a_missing_required_field_is_refused_by_name_and_changes_nothing() -> None:
    async with World(V5) as world:
        await world.call.register()
        for code, names in REQUIRED.items():
            for missing in names:
                fields = {name: "1" for name in names if name != missing}
                response = await world.call(code, fields)
                assert (response.code, response.remark) == (1, f"header field {missing} is missing"), code
        unreadable = await world.call.register(header={"brokerId": "zero"})
        assert (unreadable.code, unreadable.remark) == (1, "header field brokerId cannot be read: 'zero'")
        assert await world.call.has_route()
        assert LISTEN in world.network.listening


# -- registrations and data versions


@pytest.mark.parametrize("version_", [409, 477])
async def test_a_compressed_registration_is_read(world: World, profile: Profile, version_: int) -> None:
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
