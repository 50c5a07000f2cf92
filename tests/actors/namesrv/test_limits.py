"""No peer can grow a NameServer's memory without end."""

from typing import Any

import pytest

from nemesrv.actors.namesrv import kv_config, route_table
from nemesrv.actors.namesrv.kv_config import KVConfig
from nemesrv.remoting.bodies.route import QueueData
from nemesrv.remoting.node.profile import Profile
from tests.actors.namesrv.helpers import World, register, registration, table_with, topic, version


def test_names_without_end_are_refused(profile: Profile) -> None:
    table = table_with(profile)
    long = "x" * (route_table.NAME_MAX + 1)
    hows: list[dict[str, Any]] = [
        {"broker": long},
        {"addr": long},
        {"cluster": long},
        {"filter_servers": (long,)},
        {"zone_name": long},
    ]
    for how in hows:
        assert "longer than 1024 characters" in (register(table, **how).refused or "")
    assert "topic's name" in (register(table, topics=(topic(long), topic("U"))).refused or "")
    assert "filter servers" in (register(table, filter_servers=("f",) * 300).refused or "")
    assert not table.broker_addr_table
    assert not table.cluster_addr_table


def test_full_tables_refuse_more_and_keep_what_they_have(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with(profile, registration())

    def refused(limit: str, most: int, **how: Any) -> str:
        with monkeypatch.context() as limited:
            limited.setattr(route_table, limit, most)
            return register(table, **how).refused or ""

    assert "1 broker names" in refused("GROUPS_MAX", 1, broker="b", addr="2")
    assert not refused("GROUPS_MAX", 1, id_=1, addr="3")
    assert "has 2 brokers" in refused("IDS_MAX", 2, id_=2, addr="4")
    assert not refused("IDS_MAX", 2, id_=1, addr="3")
    assert "2 brokers" in refused("LIVE_MAX", 2, addr="5")
    assert not refused("LIVE_MAX", 2)
    assert not refused("ROWS_MAX", 2, data_version=version(2))  # the same rows again
    assert "2 topic rows" in refused("ROWS_MAX", 2, topics=(topic("T"), topic("V")))
    with monkeypatch.context() as limited:
        limited.setattr(route_table, "ROWS_MAX", 2)
        table.register_topic("W", [QueueData(broker_name="broker-a")])
    assert "static topics" in refused("MAPPINGS_MAX", 10, queue_mappings={"T": {"bname": "broker-a"}})
    assert set(table.topics()) == {"T", "U"}


async def test_a_refusal_is_a_code_1_with_its_reason() -> None:
    async with World(Profile.V4_9) as world:
        response = await world.call.register("x" * 2000)
        assert response.code == 1
        assert response.remark == "a name or address of the registration is longer than 1024 characters"
        for name in ("brokerName", "brokerAddr"):
            fields = {"brokerName": "a", "brokerAddr": "a:1", "clusterName": "c", "haServerAddr": "", "brokerId": "0"}
            empty = await world.call(103, fields | {name: ""})
            assert (empty.code, empty.remark) == (1, f"header field {name} is missing")


def test_a_kv_config_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_config, "TABLE_MAX", 20)
    config = KVConfig()
    config.put("ns", "k", "v" * 10)
    with pytest.raises(ValueError, match="exceed 20 characters"):
        config.put("ns", "l", "v" * 10)
    assert config.namespace("ns") == {"k": "v" * 10}
