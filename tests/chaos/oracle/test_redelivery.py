"""In which times a message may come to a group again."""

from nemesrv.chaos.oracle.commits import Redelivery
from nemesrv.chaos.oracle.quiet import aftermath_ms
from tests.chaos.builder import cluster


def test_until_all_have_shared_out_the_queues_of_a_broker_that_joined_two_may_have_one() -> None:
    nodes = {"broker-a": {"joins_at_s": 100}}
    builder = cluster(brokers=("broker-b",), clients=("consumer-0", "consumer-1"), nodes=nodes)
    _, world = builder.at(100).topic("broker-a", "orders").node("broker-a").end(400).facts()
    assert Redelivery.of(world).disturbed == [(85_000, 100_000 + aftermath_ms(world))]
    assert Redelivery.of(cluster(clients=("consumer-0",)).end(400).facts()[1]).disturbed == []
