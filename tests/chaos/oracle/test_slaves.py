"""What slaves change: rows that stay with a name, and offsets that differ."""

import pytest

from nemesrv.chaos.oracle.deliveries import Dues, Holding
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.slaves import held_names, offsets_vary
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder, address_of, cluster

BROKERS = ("broker-a", "broker-b", "broker-a/1")


def story(**more: object) -> HistoryBuilder:
    return cluster(brokers=BROKERS, clients=("producer-0", "consumer-0"), **more)  # type: ignore[arg-type]


def killed(node: str, at_s: float, until_s: float, of: HistoryBuilder) -> HistoryBuilder:
    of.at(at_s).fault("kill-1", "kill", "sigkill", node)
    return of.at(until_s).fault("kill-1", "kill", "sigkill", node, end=True).restarted(node)


def world(of: HistoryBuilder, end_s: float = 500) -> World:
    return of.end(end_s).facts()[1]


def test_a_slave_must_be_held_and_dropped_as_any_broker():
    demands = [o for o in obligations(world(killed("broker-a/1", 100, 200, story()))) if o.broker == "broker-a/1"]
    of_ns_0 = [(o.demand, o.from_ms, o.to_ms) for o in demands if o.name_server == "ns-0"]
    assert of_ns_0 == [
        (ObligationKind.RETURN, 33_000, 100_000),
        (ObligationKind.DROP, 100_000, 200_000),
        (ObligationKind.RETURN, 233_000, 500_000),
    ]


def test_a_name_is_held_as_long_as_any_of_its_brokers_is():
    held = held_names(world(killed("broker-a", 100, 300, story())))
    assert [(s.start_ms, s.end_ms) for s in held["ns-0", 0, "broker-a"]] == [(33_000, 500_000)]
    alone = held_names(world(killed("broker-b", 100, 300, story())))
    assert [(s.start_ms, s.end_ms) for s in alone["ns-0", 0, "broker-b"]] == [(33_000, 100_000), (333_000, 500_000)]


def test_offsets_may_vary_from_the_first_fault_on_where_there_is_a_slave():
    of = world(killed("broker-b", 100, 200, story()))
    assert not offsets_vary(of, "broker-a", 50_000)
    assert offsets_vary(of, "broker-a", 150_000)
    assert not offsets_vary(of, "broker-b", 150_000)


@pytest.mark.parametrize(("changed_s", "is_asked"), [(None, True), (80, True), (95, False)])
def test_a_slave_need_not_have_what_a_topic_got_just_before_the_loss(changed_s: int | None, is_asked: bool) -> None:
    of, master, slave = story(), address_of("broker-a"), address_of("broker-a/1")
    if changed_s is not None:
        value = {"read_queues": 8, "write_queues": 8, "perm": 6}
        of.at(changed_s).act("update_topic", "broker-a", topic="orders", value=value)
    for at_s, ids in ((10, {"0": master, "1": slave}), (110, {"1": slave})):
        of.at(at_s).event(
            "consumer-0", "route_changed", topic="orders", value={"brokers": {"broker-a": ids}, "queues": {}}
        )
    control, run = killed("broker-a", 100, 400, of).end(500).facts()
    asked = Dues(run, control.rows).at_slave(("orders", "broker-a", 0), Holding(10_000.0, 400_000.0, "consumer-0", 0))
    assert bool(asked) == is_asked
