"""A producer's topics: the queues that it may write to, and its position in the round-robin over them. Upstream:
`DefaultMQProducerImpl.topicPublishInfoTable`, `tryToFindTopicPublishInfo`."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...remoting.errors import ClientError, ProtocolError, TransportError
from ...remoting.message import MessageQueue
from ..client_instance import MQClientInstance
from ..route_cache import TopicPublishInfo
from .send_result import RouteQueryFailed

_INT31 = 1 << 31


class QueueRing:
    """Round-robin over one or more queues, in the order of the publish info, from a random start.

    A producer has one ring per topic, and makes a new ring for each new route. Each send continues in the ring where
    the last send stopped. Upstream: `TopicPublishInfo.selectOneMessageQueue`, `ThreadLocalIndex` (Java has one index
    per thread; here a producer is one thread).
    """

    def __init__(self, queues: Sequence[MessageQueue], rng: random.Random) -> None:
        self.queues = tuple(queues)
        self._rng = rng
        self._index = 0
        self.reset()

    def reset(self) -> None:
        """Continue at a new random place in the ring."""
        self._index = self._rng.randrange(_INT31)

    def next_number(self) -> int:
        """Increase the ring's running counter by one, and return the counter's new value."""
        self._index = (self._index + 1) % _INT31
        return self._index

    def next(self) -> MessageQueue:
        return self.queues[self.next_number() % len(self.queues)]

    def next_that(self, accept: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        """Return the next queue that `accept` accepts; None if `accept` refuses all queues. The ring's counter moves
        past the refused queues."""
        for _ in self.queues:
            queue = self.next()
            if accept(queue):
                return queue
        return None

    def ahead_that(self, accept: Callable[[MessageQueue], bool]) -> MessageQueue | None:
        """Return the next queue that `accept` accepts, but increase the ring's counter by only one (4.9's latency-aware
        choice). Returns None if `accept` refuses all queues."""
        start = self.next_number()
        for step in range(len(self.queues)):
            queue = self.queues[(start + step) % len(self.queues)]
            if accept(queue):
                return queue
        return None

    def next_on_another_broker(self, last_broker_name: str | None) -> MessageQueue:
        """Return the next queue at a broker other than `last_broker_name`; without another broker, the next queue."""
        if last_broker_name is None:
            return self.next()
        return self.next_that(lambda queue: queue.broker_name != last_broker_name) or self.next()


@dataclass(frozen=True, slots=True)
class Publish:
    """A topic's publish info and the ring of its queues. The producer makes a new Publish for each new route."""

    info: TopicPublishInfo
    ring: QueueRing


class PublishTable:
    """A producer's topics, with the methods that the client instance (ProducerInner) and sends need."""

    def __init__(self, client: MQClientInstance, rng: random.Random) -> None:
        self._client = client
        self._rng = rng
        self._table: dict[str, Publish | None] = {}

    def want(self, topic: str) -> None:
        """Poll the topic's route from now on. `want` itself does not query the route."""
        self._table.setdefault(topic, None)

    def publish_topics(self) -> Iterable[str]:
        return tuple(self._table)

    def is_publish_info_missing(self, topic: str) -> bool:
        publish = self._table.get(topic)
        return publish is None or not publish.info.ok

    def update_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        self._table[topic] = Publish(info, QueueRing(info.queues, self._rng))

    async def find(self, topic: str) -> Publish:
        """Return the publish info of `topic`: from the cache, else from the NameServer, else from the template topic's
        route. Raises ClientError if the topic has no writable queue, RouteQueryFailed if the NameServer gives no
        readable answer."""
        await self.refresh_if_missing(topic)
        publish = self._table.get(topic)
        if publish is None or not publish.info.ok:
            raise ClientError(f"No route info of this topic: {topic}")
        return publish

    async def refresh_if_missing(self, topic: str) -> None:
        """Query the route of `topic` if no queue of the topic is known; if the topic has no route, borrow the template
        topic's route."""
        if not self.is_publish_info_missing(topic):
            return
        self.want(topic)
        try:
            await self._client.update_route(topic)
            if self._table[topic] is None:
                await self._client.borrow_route(topic)
        except (TransportError, ProtocolError) as exc:
            raise RouteQueryFailed(f"no route of topic {topic}: {exc}") from exc
