"""A producer's topics: where it may write, and its place in going round the queues.

Upstream: `DefaultMQProducerImpl.topicPublishInfoTable`, `tryToFindTopicPublishInfo`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from ...remoting.errors import ClientError, ProtocolError, TransportError
from ...remoting.node.profile import Profile
from ...remoting.topics import TBW102
from ..client_instance import MQClientInstance
from ..config import ProducerConfig
from ..route_cache import TopicPublishInfo
from .queue_selection import QueueRing
from .send_result import RouteQueryFailed


@dataclass(frozen=True, slots=True)
class Publish:
    """A topic's publish info and the ring of its queues; both are new with each route taken."""

    info: TopicPublishInfo
    ring: QueueRing


class PublishTable:
    """What the client instance asks of a producer (ProducerInner), and what a send asks."""

    def __init__(self, client: MQClientInstance, config: ProducerConfig, rng: random.Random) -> None:
        self._client = client
        self._config = config
        self._rng = rng
        self._table: dict[str, Publish | None] = {}

    def want(self, topic: str) -> None:
        """Keep the topic's route fresh from now on; nothing is asked for yet."""
        self._table.setdefault(topic, None)

    def publish_topics(self) -> Iterable[str]:
        return tuple(self._table)

    def is_publish_info_missing(self, topic: str) -> bool:
        publish = self._table.get(topic)
        return publish is None or not publish.info.ok

    def update_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        self._table[topic] = Publish(info, QueueRing(info.queues, self._rng))

    async def find(self, topic: str) -> Publish:
        """Where to write `topic`: as cached, else as the NameServer says, else by the template topic's route.

        Raises ClientError when there is no queue to write to, RouteQueryFailed when the NameServer did not answer.
        """
        await self.refresh_if_missing(topic)
        publish = self._table.get(topic)
        if publish is None or not publish.info.ok:
            raise ClientError(f"No route info of this topic: {topic}")
        return publish

    async def refresh_if_missing(self, topic: str) -> None:
        """Ask for the topic's route when no queue of it is known, and borrow the template's when it has none."""
        if not self.is_publish_info_missing(topic):
            return
        self.want(topic)
        try:
            await self._client.update_route(topic)
            if self._table[topic] is None:
                template = self._config.create_topic_key if self._config.profile is Profile.V4_9 else TBW102
                await self._client.borrow_route(topic, template, self._config.default_topic_queue_nums)
        except (TransportError, ProtocolError) as exc:
            raise RouteQueryFailed(f"no route of topic {topic}: {exc}") from exc
