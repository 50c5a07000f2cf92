"""When a send may fail in a quiet time: a producer's own list has a NameServer that no broker need know."""

import pytest

from nemesrv.chaos.checks.record.shortfalls import lets_fail
from tests.chaos.builder import HistoryBuilder


@pytest.mark.parametrize(("at_s", "may_fail"), [(50, True), (900, False)])
def test_a_send_may_fail_until_brokers_fetch_the_producers_list(at_s: float, may_fail: bool) -> None:
    own = {"producer-0": {"name_servers": ["ns-1"]}, "broker-b": {"name_servers": ["ns-1"], "joins_at_s": 600.0}}
    builder = HistoryBuilder(profile="4.9", time_scale=1, name_server_list=["ns-0"], nodes=own)
    for name in ("ns-0", "ns-1", "broker-a", "producer-0"):
        builder.node(name)
    builder.at(100).event("harness", "served_list", value=["ns-0", "ns-1"])
    builder.at(600).node("broker-b")
    _, world = builder.end(1000).facts()
    assert lets_fail(world, at_s * 1000, "send", "producer-0") is may_fail
