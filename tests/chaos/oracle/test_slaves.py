"""What slaves change: rows that stay with a name, and who must be pulled from when a master is gone."""

from __future__ import annotations

from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.slaves import held_names, offsets_vary, served_by_slaves
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder, cluster

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


def test_a_consumer_must_pull_from_the_slave_once_the_master_is_out_of_its_routes():
    (served,) = served_by_slaves(world(killed("broker-a", 100, 400, story())), "consumer-0", "broker-a")
    # removed at once, P; then P + A + two pulls that are held, at last, until the master is back
    assert (served.start_ms, served.end_ms) == (100_000 + 30_000 + 30_000 + 3_000 + 30_000, 400_000)


def test_a_slave_that_is_lost_too_or_a_master_without_one_is_pulled_from_by_nobody():
    both = killed("broker-a", 100, 400, story())
    both.at(90).fault("kill-2", "kill", "sigkill", "broker-a/1")
    assert served_by_slaves(world(both), "consumer-0", "broker-a") == []
    assert served_by_slaves(world(killed("broker-b", 100, 400, story())), "consumer-0", "broker-b") == []


def test_a_name_server_that_began_while_the_master_was_gone_has_no_rows_for_the_slave():
    of = story()
    of.at(100).fault("kill-1", "kill", "sigkill", "broker-a")
    of.at(150).fault("kill-2", "kill", "sigkill", "ns-0")
    of.at(151).fault("kill-2", "kill", "sigkill", "ns-0", end=True).restarted("ns-0")
    assert served_by_slaves(world(of), "consumer-0", "broker-a") == []


def test_offsets_may_vary_from_the_first_fault_on_where_there_is_a_slave():
    of = world(killed("broker-b", 100, 200, story()))
    assert not offsets_vary(of, "broker-a", 50_000)
    assert offsets_vary(of, "broker-a", 150_000)
    assert not offsets_vary(of, "broker-b", 150_000)
