"""A client's cached routes and broker addresses, and the rules by which a new route replaces a cached route.

The tables, with Java's names: topic_route_table (topic to route) and broker_addr_table (broker name to id to address).
A route gives the queues that a producer may write (publish info) and a consumer may read (subscribe set). The cache
keeps the last route of a topic that no longer exists. A broker address that no cached route names is forgotten.
Upstream: `MQClientInstance`, `TopicRouteData.topicRouteDataChanged`, `TopicPublishInfo`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..remoting.bodies.route import TopicRouteData, canonical
from ..remoting.codes import MASTER_ID, PERM_READ, PERM_WRITE
from ..remoting.message import MessageQueue
from ..remoting.node.network import Address
from ..remoting.node.recording import Recorder
from .config import DEFAULT_TOPIC_QUEUE_NUMS


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPublishInfo:
    """A topic's queues that a producer may write to, in the order in which the producer uses them."""

    queues: tuple[MessageQueue, ...] = ()
    write_queue_nums: Mapping[str, int] = field(default_factory=dict)
    """Of the writable rows by broker name, whether or not the broker has a master."""

    @property
    def ok(self) -> bool:
        return bool(self.queues)


def publish_info(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """Return the publish info of `route`: the writable queues of brokers that have a master, by broker name. If the
    route has an order configuration (`broker-a:4;broker-b:4`), the queues come from the order configuration."""
    writable = [row for row in sorted(route.queue_datas, key=lambda row: row.broker_name) if row.perm & PERM_WRITE]
    write_queue_nums = {row.broker_name: row.write_queue_nums for row in writable}
    if route.order_topic_conf:
        ordered: list[MessageQueue] = []
        for item in route.order_topic_conf.split(";"):
            broker_name, _, queue_nums = item.partition(":")
            ordered += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(queue_nums))]
        return TopicPublishInfo(queues=tuple(ordered), write_queue_nums=write_queue_nums)
    masters = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    queues = [
        MessageQueue(topic, row.broker_name, queue_id)
        for row in writable
        if row.broker_name in masters
        for queue_id in range(row.write_queue_nums)
    ]
    return TopicPublishInfo(queues=tuple(queues), write_queue_nums=write_queue_nums)


def subscribe_set(topic: str, route: TopicRouteData) -> frozenset[MessageQueue]:
    """Return every readable queue of the route, even if the route has no address of the queue's broker."""
    return frozenset(
        MessageQueue(topic, row.broker_name, queue_id)
        for row in route.queue_datas
        if row.perm & PERM_READ
        for queue_id in range(row.read_queue_nums)
    )


def borrowed_route(template: TopicRouteData) -> TopicRouteData:
    """Return the template topic's route for an unknown topic, with at most DEFAULT_TOPIC_QUEUE_NUMS queues at each
    broker."""
    rows = tuple(
        replace(
            row,
            read_queue_nums=min(DEFAULT_TOPIC_QUEUE_NUMS, row.read_queue_nums),
            write_queue_nums=min(DEFAULT_TOPIC_QUEUE_NUMS, row.read_queue_nums),
        )
        for row in template.queue_datas
    )
    return replace(template, queue_datas=rows)


def route_changed(old: TopicRouteData | None, new: TopicRouteData) -> bool:
    """Whether two routes differ by Java's test: order is ignored, and only a broker's name and addresses are
    compared."""
    return old is None or _comparable(old) != _comparable(new)


def _comparable(route: TopicRouteData) -> object:
    rows = sorted(
        (row.broker_name, row.read_queue_nums, row.write_queue_nums, row.perm, row.topic_sys_flag)
        for row in route.queue_datas
    )
    brokers = sorted((broker.broker_name, sorted(broker.broker_addrs.items())) for broker in route.broker_datas)
    return route.order_topic_conf, rows, brokers, route.filter_server_table, route.topic_queue_mapping_by_broker


def dialable_addresses(broker_addrs: Mapping[int, str]) -> dict[int, Address]:
    """Return only the addresses of the form host:port; a broker can register any text."""
    addresses: dict[int, Address] = {}
    for broker_id, text in broker_addrs.items():
        try:
            addresses[broker_id] = Address.parse(text)
        except ValueError:
            continue
    return addresses


class RouteCache:
    """A client's tables of routes and broker addresses. `on_applied(topic, route)` is called for each new route."""

    def __init__(self, record: Recorder, on_applied: Callable[[str, TopicRouteData], None]) -> None:
        self._record = record
        self._on_applied = on_applied
        self._recorded: dict[str, object] = {}
        self.topic_route_table: dict[str, TopicRouteData] = {}
        self.broker_addr_table: dict[str, Mapping[int, Address]] = {}

    def route(self, topic: str) -> TopicRouteData | None:
        return self.topic_route_table.get(topic)

    def take(self, topic: str, route: TopicRouteData, *, needed: bool = False) -> bool:
        """Store `route` if it differs from the cached route or is `needed`; return whether the route was stored."""
        if not needed and not route_changed(self.topic_route_table.get(topic), route):
            return False
        self._apply(topic, route)
        return True

    def _apply(self, topic: str, route: TopicRouteData) -> None:
        """Take `route`: replace each broker's address map, and inform the topic's users."""
        for broker in route.broker_datas:
            self.broker_addr_table[broker.broker_name] = dialable_addresses(broker.broker_addrs)
        self._on_applied(topic, route)
        self.topic_route_table[topic] = route
        value = canonical(route)
        if self._recorded.get(topic) != value:
            self._recorded[topic] = value
            self._record("route_changed", topic=topic, value=value)

    def _before_poll(self) -> None:
        """Called at the start of each poll round; tests and planted defects may replace it."""

    def clean_offline_brokers(self) -> tuple[Address, ...]:
        """Forget the addresses that no cached route names any more, and return them."""
        named = {
            address
            for route in self.topic_route_table.values()
            for broker in route.broker_datas
            for address in broker.broker_addrs.values()
        }
        gone: list[Address] = []
        for broker_name, addresses in list(self.broker_addr_table.items()):
            kept = {id_: address for id_, address in addresses.items() if str(address) in named}
            gone += [address for address in addresses.values() if str(address) not in named]
            if kept:
                self.broker_addr_table[broker_name] = kept
            else:
                del self.broker_addr_table[broker_name]
        return tuple(gone)
