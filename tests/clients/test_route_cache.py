"""What a client makes of a route."""

from dataclasses import replace
from typing import Any

import pytest

from nemesrv.clients.route_cache import (
    RouteCache,
    borrowed_route,
    canonical,
    publish_info,
    route_changed,
    subscribe_set,
)
from nemesrv.remoting.bodies.route import BrokerData, QueueData, TopicRouteData
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.network import Address

A = BrokerData(cluster="c", broker_name="broker-a", broker_addrs={0: "10.0.0.1:1"})
B = BrokerData(cluster="c", broker_name="broker-b", broker_addrs={0: "10.0.0.1:2", 1: "10.0.0.1:3"})


def row(broker_name: str, read: int = 2, write: int = 2, perm: int = 6) -> QueueData:
    return QueueData(broker_name=broker_name, read_queue_nums=read, write_queue_nums=write, perm=perm)


ROUTE = TopicRouteData(queue_datas=(row("broker-b"), row("broker-a")), broker_datas=(B, A))


def queues(*pairs: tuple[str, int]) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("orders", name, queue_id) for name, queue_id in pairs)


def test_a_producer_goes_by_broker_name_then_queue_id() -> None:
    info = publish_info("orders", ROUTE)
    assert info.queues == queues(("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1))


def test_a_producer_needs_a_writable_row_and_a_master() -> None:
    slave_only = replace(B, broker_addrs={1: "10.0.0.1:3"})
    assert publish_info("orders", replace(ROUTE, broker_datas=(A, slave_only))).queues == queues(
        ("broker-a", 0), ("broker-a", 1)
    )
    assert publish_info("orders", replace(ROUTE, broker_datas=(B,))).queues == queues(("broker-b", 0), ("broker-b", 1))
    read_only = replace(ROUTE, queue_datas=(row("broker-a", perm=4), row("broker-b")))
    assert publish_info("orders", read_only).queues == queues(("broker-b", 0), ("broker-b", 1))


def test_an_order_configuration_replaces_the_rows_in_its_own_order() -> None:
    info = publish_info("orders", replace(ROUTE, order_topic_conf="broker-b:1;broker-a:2"))
    assert info.queues == queues(("broker-b", 0), ("broker-a", 0), ("broker-a", 1))


def test_a_consumer_takes_readable_rows_even_without_a_broker() -> None:
    route = TopicRouteData(queue_datas=(row("broker-a", perm=4), row("gone", read=1), row("broker-b", perm=2)))
    assert subscribe_set("orders", route) == set(queues(("broker-a", 0), ("broker-a", 1), ("gone", 0)))


def test_a_borrowed_route_has_at_most_four_queues_a_broker() -> None:
    template = TopicRouteData(queue_datas=(row("broker-a", 8, 8, 7), row("broker-b", 3, 8, 7)))
    nums = [(r.read_queue_nums, r.write_queue_nums) for r in borrowed_route(template).queue_datas]
    assert nums == [(4, 4), (3, 3)]


def test_order_and_cluster_are_no_change() -> None:
    other = TopicRouteData(queue_datas=ROUTE.queue_datas[::-1], broker_datas=(A, replace(B, cluster="other")))
    assert not route_changed(ROUTE, other)
    assert route_changed(None, ROUTE)


@pytest.mark.parametrize(
    "other",
    [
        replace(ROUTE, queue_datas=(row("broker-a"),)),
        replace(ROUTE, queue_datas=(row("broker-a", perm=4), row("broker-b"))),
        replace(ROUTE, queue_datas=(row("broker-a", read=3), row("broker-b"))),
        replace(ROUTE, queue_datas=(replace(row("broker-a"), topic_sys_flag=1), row("broker-b"))),
        replace(ROUTE, broker_datas=(A,)),
        replace(ROUTE, broker_datas=(A, replace(B, broker_addrs={0: "10.0.0.1:2"}))),
        replace(ROUTE, order_topic_conf="broker-a:1"),
        replace(ROUTE, filter_server_table={"10.0.0.1:1": ("x",)}),
    ],
)
def test_everything_else_is_a_change(other: TopicRouteData) -> None:
    assert route_changed(ROUTE, other)


class Kept:
    def __init__(self) -> None:
        self.rows: list[tuple[str, Any]] = []
        self.applied: list[str] = []
        self.cache = RouteCache(self._record, lambda topic, route: self.applied.append(topic))

    def _record(self, event: str, /, **fields: Any) -> None:
        self.rows.append((event, fields))


def test_a_route_is_taken_once_and_recorded_in_the_canonical_form() -> None:
    kept = Kept()
    assert kept.cache.take("orders", ROUTE)
    assert not kept.cache.take("orders", ROUTE)
    assert kept.applied == ["orders"]
    value = {
        "brokers": {"broker-a": {"0": "10.0.0.1:1"}, "broker-b": {"0": "10.0.0.1:2", "1": "10.0.0.1:3"}},
        "queues": {"broker-a": [2, 2, 6, 0], "broker-b": [2, 2, 6, 0]},
    }
    assert kept.rows == [("route_changed", {"topic": "orders", "value": value})]
    assert canonical(ROUTE) == value


def test_an_unchanged_route_that_somebody_lacks_is_applied_and_not_recorded_again() -> None:
    kept = Kept()
    kept.cache.take("orders", ROUTE)
    assert kept.cache.take("orders", ROUTE, needed=True)
    assert kept.applied == ["orders", "orders"]
    assert len(kept.rows) == 1


def test_a_brokers_address_map_is_replaced_whole() -> None:
    kept = Kept()
    kept.cache.take("orders", ROUTE)
    kept.cache.take("orders", replace(ROUTE, broker_datas=(A, replace(B, broker_addrs={1: "10.0.0.1:3"}))))
    assert kept.cache.broker_addr_table == {
        "broker-a": {0: Address("10.0.0.1", 1)},
        "broker-b": {1: Address("10.0.0.1", 3)},
    }


def test_addresses_that_no_route_names_are_forgotten() -> None:
    kept = Kept()
    kept.cache.take("orders", ROUTE)
    kept.cache.take("orders", TopicRouteData(queue_datas=(row("broker-a"),), broker_datas=(A,)))
    assert set(kept.cache.broker_addr_table) == {"broker-a", "broker-b"}
    assert kept.cache.clean_offline_brokers() == (Address("10.0.0.1", 2), Address("10.0.0.1", 3))
    assert set(kept.cache.broker_addr_table) == {"broker-a"}
    assert kept.cache.clean_offline_brokers() == ()


def test_an_address_that_cannot_be_dialled_does_not_spoil_the_route() -> None:
    kept = Kept()
    kept.cache.take("orders", replace(ROUTE, broker_datas=(A, replace(B, broker_addrs={0: "nonsense"}))))
    assert kept.cache.broker_addr_table == {"broker-a": {0: Address("10.0.0.1", 1)}, "broker-b": {}}


def test_a_replaced_apply_can_ignore_new_routes() -> None:
    kept = Kept()
    kept.cache._apply = lambda topic, route: None  # type: ignore[method-assign]
    kept.cache.take("orders", ROUTE)
    assert kept.cache.route("orders") is None
