"""Configuration files as Java reads them, and as our own programs do."""

from __future__ import annotations

import json
from pathlib import Path

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.chaos.apache import properties
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
    said = parse_properties(properties.text(properties.broker(30911, tmp_path, "broker-a", ["127.0.0.1:1"])))
    assert BrokerConfig().updated(said, source="broker.conf").broker_name == "broker-a"


def test_topics_are_there_before_a_broker_starts() -> None:
    said = json.loads(properties.topics_file({"orders": 4}, 1_700_000_000_000))
    assert said["topicConfigTable"]["orders"]["writeQueueNums"] == 4
    assert said["dataVersion"] == {"counter": 1, "timestamp": 1_700_000_000_000}
