"""RocketMQ's own properties file, and the KV file (nameserver.md sections 7 and 8)."""

from pathlib import Path

import pytest

from nemesrv.actors.errors import ConfigError
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.kv_config import KVConfig
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.properties import format_properties, parse_properties


def test_the_defaults_are_rocketmqs() -> None:
    config = NamesrvConfig()
    assert (config.profile, config.listen_port, config.scan_interval_s) == (Profile.V4_9, 9876, 10.0)
    assert config.server_channel_max_idle_time_seconds == 120
    assert NamesrvConfig(profile=Profile.V5_X).scan_interval_s == 5.0


def test_a_file_is_read_under_rocketmqs_names() -> None:
    config = NamesrvConfig.from_properties(
        {
            "profile": "5.x",
            "listenPort": "9999",
            "supportActingMaster": "TRUE",
            "unRegisterBrokerQueueCapacity": "7",
            "kvConfigPath": "/data/kv.json ",
            "ourOwn": "x",
        }
    )
    assert (config.listen_port, config.kv_config_path, config.extra) == (9999, "/data/kv.json", {"ourOwn": "x"})
    assert config.route_options.support_acting_master
    assert config.route_options.unregister_queue_capacity == 7


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("listenPort", "99999", "a whole number from 0 to 65535"),
        ("listenPort", "9999 ", "a whole number from 0 to 65535"),  # which Java would ignore
        ("listenPort", "http", "a whole number from 0 to 65535"),
        ("orderMessageEnable", "yes", "true or false"),
        ("serverChannelMaxIdleTimeSeconds", "-1", "a whole number from 1 to 2147483647"),
        ("profile", "3.2", "4.9 or 5.x"),
    ],
)
def test_a_bad_value_is_named_with_file_key_value_and_what_is_allowed(key: str, value: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NamesrvConfig.from_properties({key: value}, source="ns.conf")
    assert str(caught.value) == f"ns.conf: {key}={value} is not allowed; expected {allowed}"


@pytest.mark.parametrize("key", ["clusterTest", "enableControllerInNamesrv"])
def test_a_feature_that_this_name_server_does_not_have_is_refused(key: str) -> None:
    assert NamesrvConfig.from_properties({"profile": "5.x", key: "false"})
    with pytest.raises(ConfigError, match="expected false: this NameServer does not have that feature"):
        NamesrvConfig.from_properties({"profile": "5.x", key: "true"})


def test_a_5_x_setting_means_nothing_to_4_9() -> None:
    config = NamesrvConfig.from_properties({"supportActingMaster": "true", "scanNotActiveBrokerInterval": "1"})
    assert not config.route_options.support_acting_master
    assert config.scan_interval_s == 10.0
    assert config.properties()["supportActingMaster"] == "true"  # listed, as any key of the file


def test_an_unknown_key_is_told_with_its_nearest_neighbour() -> None:
    config = NamesrvConfig.from_properties({"listenprot": "1", "zzz": "1"})
    assert config.unknown_key_lines("ns.conf") == [
        "ns.conf: listenprot is no setting of a 4.9 NameServer and is ignored, did you mean listenPort?",
        "ns.conf: zzz is no setting of a 4.9 NameServer and is ignored",
    ]


@pytest.mark.parametrize("profile", list(Profile))
def test_what_is_stored_reads_back_equal(profile: Profile) -> None:
    config = NamesrvConfig(profile=profile, product_env_name="# a\\b\nc", listen_port=1, extra={"k": "v"})
    assert NamesrvConfig.from_properties(parse_properties(format_properties(config.stored_properties()))) == config


def test_a_setting_made_empty_stays_empty_when_stored_and_half_a_surrogate_pair_can_be_stored() -> None:
    """Found by fuzzing: the default came back, and 319 could not be encoded any more."""
    config = NamesrvConfig().updated(parse_properties("productEnvName=\nconfigBlackList=\\ud800"))
    stored = format_properties(config.stored_properties()).encode()
    assert NamesrvConfig.from_properties(parse_properties(stored)) == config
    assert (config.product_env_name, config.config_black_list) == ("", "?")


@pytest.mark.parametrize(
    "content", [b"", b"}{", b"[1]", b'{"configTable":[1]}', b'{"configTable":{"ns":7}}', b"\xff\xfe\x00"]
)
def test_a_kv_file_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a KV config file"):
        KVConfig(path).load()


def test_a_kv_file_of_fastjson_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_bytes(b'{\'configTable\':{"ns":{"k":"v",},},}')
    config = KVConfig(path)
    config.load()
    assert config.namespace("ns") == {"k": "v"}


def test_a_disk_that_fails_loses_the_file_and_not_the_value(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    config = KVConfig(tmp_path / "file" / "kv.json", say=lambda level, msg, /, *args: said.append(msg % args))
    config.load()
    config.put("ns", "k", "v")
    assert config.get("ns", "k") == "v"
    assert said[-1].startswith("persist kvconfig Exception, ")
