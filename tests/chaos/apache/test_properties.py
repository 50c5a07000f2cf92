"""Configuration files as Java reads them, and as our own programs do."""

import json
import zipfile
from pathlib import Path

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.chaos.apache import properties
from nemesrv.chaos.apache.maven import JavaMissing
from nemesrv.remoting.properties import parse_properties


def test_what_is_set_comes_over_what_every_broker_has(tmp_path: Path) -> None:
    path = properties.write(
        tmp_path / "conf" / "broker.conf",
        properties.broker(30911, tmp_path, "broker-a", ["127.0.0.1:1", "127.0.0.1:2"], {"flushDiskType": "SYNC_FLUSH"}),
    )
    said = parse_properties(path.read_text())
    assert said["namesrvAddr"] == "127.0.0.1:1;127.0.0.1:2"
    assert (said["listenPort"], said["haListenPort"], said["brokerName"]) == ("30911", "30912", "broker-a")
    assert said["flushDiskType"] == "SYNC_FLUSH"
    assert said["timerWheelEnable"] == "false"


def test_our_own_broker_reads_the_same_file(tmp_path: Path) -> None:
    settings = properties.broker(30911, tmp_path, "broker-a", ["127.0.0.1:1"])
    said = parse_properties(properties.write(tmp_path / "broker.conf", settings).read_text())
    assert BrokerConfig().updated(said, source="broker.conf").broker_name == "broker-a"


def test_topics_are_there_before_a_broker_starts() -> None:
    said = json.loads(properties.topics_file({"orders": 4}, 1_700_000_000_000))
    assert said["topicConfigTable"]["orders"]["writeQueueNums"] == 4
    assert said["dataVersion"] == {"counter": 1, "timestamp": 1_700_000_000_000}


def test_the_logs_of_a_part_are_set_as_its_own_jar_says(tmp_path: Path) -> None:
    """5.x, of whose class path with broker and NameServer each would take the broker's; 4.9 has none in its jars."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "conf").mkdir()
    for part in ("broker", "namesrv"):
        with zipfile.ZipFile(tmp_path / "lib" / f"rocketmq-{part}-5.3.3.jar", "w") as jar:
            jar.writestr(f"rmq.{part}.logback.xml", f"<{part}/>")
    found = properties.logback_of_jar(f"{tmp_path}/lib/*", "namesrv", tmp_path / "conf")
    assert found == tmp_path / "conf" / "rmq.namesrv.logback.xml"
    assert found.read_text() == "<namesrv/>"
    with zipfile.ZipFile(tmp_path / "lib" / "rocketmq-namesrv-5.3.3.jar", "w") as jar:
        jar.writestr("another", "")
    assert properties.logback_of_jar(f"{tmp_path}/lib/*", "namesrv", tmp_path / "conf") is None


def test_a_jar_that_is_none_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "rocketmq-namesrv-5.3.3.jar").write_bytes(b"half of it")
    with pytest.raises(JavaMissing, match=r"rocketmq-namesrv-5\.3\.3\.jar is no jar .*unpack the distribution again"):
        properties.logback_of_jar(f"{tmp_path}/lib/*", "namesrv", tmp_path / "conf")
