"""The broker's topics: a table with its DataVersion, the rules of creating topics, and RocketMQ's file topics.json.

    topic_config_table: topic -> TopicConfig
    data_version:       changes with every change of the table; a NameServer compares it to skip unchanged payloads

Every change of the topic table increases its version, writes the file and calls the listener. The processors decide
whether a client may use a topic; registration.py informs NameServers. Upstream: `TopicConfigManager`, `TopicValidator`,
`MixAll`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...remoting.bodies.register import TopicConfigSerializeWrapper
from ...remoting.bodies.route import DataVersion, TopicConfig
from ...remoting.codes import PERM_INHERIT, PERM_READ, PERM_WRITE
from ...remoting.errors import RocketMQError
from ...remoting.topics import HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC, SYSTEM_TOPICS, TBW102, is_system_topic
from .config import BrokerConfig
from .files import VersionedTable

TOPIC_MAX_LENGTH = 127
SCHEDULE_QUEUE_NUMS = 18
MAX_TOPICS = 100_000
"""The most topics of a broker. A client that names ever new topics must not fill the memory of brokers and
NameServers."""
NAME_CHARACTERS = frozenset("%|_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

TopicListener = Callable[[str, TopicConfig | None], None]
"""Told (topic, its new config or None) after each change."""


def topic_name_error(topic: str) -> str | None:
    """Return why `topic` cannot be a topic's name; None if it can."""
    if not topic.strip():
        return "The specified topic is blank."
    if not NAME_CHARACTERS.issuperset(topic):
        return f"The specified topic: {topic}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(topic) > TOPIC_MAX_LENGTH:
        # 5.x allows a retry topic 255, in a V2 record that 4.9 clients cannot read; here every record is V1.
        return f"The specified topic is longer than topic max length: {TOPIC_MAX_LENGTH}"
    return None


class TopicTable(VersionedTable):
    """The topics of one broker, loaded from the file `path` if it exists."""

    what = "topics"

    def __init__(
        self,
        config: BrokerConfig,
        *,
        now_ms: int,
        path: Path | None = None,
        on_change: TopicListener | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        super().__init__(path, now_ms=now_ms, log=log)
        self._on_change = on_change
        self.topic_config_table: dict[str, TopicConfig] = {topic.topic_name: topic for topic in _initial_topics(config)}
        self.system_topics = SYSTEM_TOPICS | self.topic_config_table.keys()
        if (content := self.kept()) is not None:
            try:
                wrapper = TopicConfigSerializeWrapper.decode(content)
            except RocketMQError as exc:
                raise ValueError(f"{path} is not a topic file: {exc}") from exc
            self.topic_config_table.update(wrapper.topic_config_table)
            self.data_version = wrapper.data_version

    def __contains__(self, topic: str) -> bool:
        return topic in self.topic_config_table

    def get(self, topic: str) -> TopicConfig | None:
        return self.topic_config_table.get(topic)

    def is_system(self, topic: str) -> bool:
        """Return whether the topic is RocketMQ's own, as the topics named after the cluster and the broker are."""
        return topic in self.system_topics or is_system_topic(topic)

    def begin_with(self, topic: TopicConfig, *, now_ms: int) -> None:
        """Add the topic, if it does not exist, as if it and its data version had been in topics.json. The NameServers
        learn of the topic at the broker's next registration."""
        if topic.topic_name not in self.topic_config_table:
            self.topic_config_table[topic.topic_name] = topic
            self.touch(now_ms=now_ms)

    def put(self, topic: TopicConfig, *, now_ms: int) -> bool:
        """Create or replace the topic. Returns False if nothing changed."""
        if self.topic_config_table.get(topic.topic_name) == topic:
            return False
        self.topic_config_table[topic.topic_name] = topic
        self._tell(topic.topic_name, topic, now_ms)
        return True

    def delete(self, topic: str, *, now_ms: int) -> bool:
        if self.topic_config_table.pop(topic, None) is None:
            return False
        self._tell(topic, None, now_ms)
        return True

    def create_by_default(
        self, topic: str, default_topic: str, queue_nums: int, *, topic_sys_flag: int = 0, now_ms: int
    ) -> TopicConfig | None:
        """Return `topic`, created from `default_topic` if it does not exist. The result is None if the default topic
        does not exist or has no inherit permission, or if the topic table is full. The new topic gets the default
        topic's permission without the inherit bit. The new topic has as many read and write queues as the default topic
        has write queues, but at most `queue_nums` (`createTopicInSendMessageMethod`)."""
        existing = self.topic_config_table.get(topic)
        if existing is not None:
            return existing
        default = self.topic_config_table.get(default_topic)
        if default is None or not default.perm & PERM_INHERIT or len(self.topic_config_table) >= MAX_TOPICS:
            return None
        nums = max(0, min(queue_nums, default.write_queue_nums))
        perm = default.perm & ~PERM_INHERIT
        created = _topic(topic, nums, perm, topic_filter_type=default.topic_filter_type, topic_sys_flag=topic_sys_flag)
        self.put(created, now_ms=now_ms)
        return created

    def create_for_group(
        self, topic: str, queue_nums: int, *, topic_sys_flag: int = 0, now_ms: int
    ) -> TopicConfig | None:
        """Return a group's retry or dead-letter topic, created with read and write permission if it does not exist. The
        result is None if the topic table is full."""
        existing = self.topic_config_table.get(topic)
        if existing is not None or len(self.topic_config_table) >= MAX_TOPICS:
            return existing
        created = _topic(topic, queue_nums, topic_sys_flag=topic_sys_flag)
        self.put(created, now_ms=now_ms)
        return created

    def take(self, topics: Mapping[str, TopicConfig], version: DataVersion) -> None:
        """Replace this slave's topics and DataVersion by the master's, without a registration."""
        self.topic_config_table = dict(topics)
        self._taken(version)

    def set_order(self, ordered: Iterable[str], *, now_ms: int) -> None:
        """Mark exactly these topics as ordered (namespace ORDER_TOPIC_CONFIG in the NameServers' KV configuration)."""
        names = frozenset(ordered)
        for topic in list(self.topic_config_table.values()):
            if topic.order != (topic.topic_name in names):
                self.put(replace(topic, order=not topic.order), now_ms=now_ms)

    def encode(self) -> bytes:
        """Return `{"dataVersion": …, "topicConfigTable": {…}}`: the answer to request 21, and topics.json."""
        return TopicConfigSerializeWrapper(
            data_version=self.data_version, topic_config_table=self.topic_config_table
        ).encode()

    def _tell(self, name: str, topic: TopicConfig | None, now_ms: int) -> None:
        self._changed(now_ms)
        if self._on_change is not None:
            self._on_change(name, topic)


_RW = PERM_READ | PERM_WRITE


def _topic(name: str, queues: int, perm: int = _RW, **more: Any) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, **more)


def _initial_topics(config: BrokerConfig) -> list[TopicConfig]:
    """The topics that every broker has before anybody creates one (`TopicConfigManager.init`)."""
    topics = [
        _topic("SELF_TEST_TOPIC", 1),
        _topic("BenchmarkTest", 1024),
        _topic(config.cluster_name, 16, PERM_INHERIT | (_RW if config.cluster_topic_enable else 0)),
        _topic(config.broker_name, 1, PERM_INHERIT | (_RW if config.broker_topic_enable else 0)),
        _topic("OFFSET_MOVED_EVENT", 1),
        _topic(SCHEDULE_TOPIC, SCHEDULE_QUEUE_NUMS),
        _topic(f"{config.cluster_name}_REPLY_TOPIC", 1),
    ]
    if config.auto_create_topic_enable:
        topics.append(_topic(TBW102, config.default_topic_queue_nums, _RW | PERM_INHERIT))
    if config.trace_topic_enable:
        topics.append(_topic(config.msg_trace_topic_name, 1))
    if config.is_5x:
        topics += [
            _topic(f"rmq_sys_REVIVE_LOG_{config.cluster_name}", 8),
            _topic(f"rmq_sys_SYNC_BROKER_MEMBER_{config.broker_name}", 1, PERM_INHERIT),
            _topic(HALF_TOPIC, 1),
            _topic(OP_TOPIC, 1),
        ]
    return topics
