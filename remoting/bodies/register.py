"""The body of REGISTER_BROKER (103): a broker's topics and its filter servers, as JSON or compressed.

A compressed body is a zlib stream; in the inflated body every length and count is a 4-byte big-endian int.

    len · DataVersion JSON      count · (len · topic line)…      len · filterServerList JSON
    from version 413 (V5_0_0) on also: count · (len · TopicQueueMappingInfo JSON)…

Upstream: `RegisterBrokerBody`, `TopicConfigSerializeWrapper`, `TopicConfigAndMappingSerializeWrapper`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Self

from .. import fastjson
from ..codes import V3_0_11, V5_0_0, V5_3_2
from ..compression import INFLATED_MAX, inflate_zlib
from ..errors import RemoteProtocolError
from .fields import Body, plain
from .route import DataVersion, TopicConfig

TOPICS_MAX = 500_000
"""Most topics of one registration; upstream has no such limit."""

_ZLIB = 0x78
_LENGTH = struct.Struct(">i")


class TopicConfigSerializeWrapper(Body):
    """A broker's topic table with the table's version; also the answer to GET_ALL_TOPIC_CONFIG (21).
    `topic_queue_mapping_info_map` has 5.x's static topics: topic to TopicQueueMappingInfo as received."""

    data_version: DataVersion = field(default_factory=DataVersion)
    topic_config_table: Mapping[str, TopicConfig] = field(default_factory=dict)
    topic_queue_mapping_info_map: Mapping[str, Mapping[str, object]] | None = None

    @classmethod
    def of(cls, topics: tuple[TopicConfig, ...], data_version: DataVersion) -> TopicConfigSerializeWrapper:
        return cls(data_version=data_version, topic_config_table={topic.topic_name: topic for topic in topics})

    @classmethod
    def _prepared(cls, fields: Mapping[Any, object]) -> Mapping[Any, object]:
        """A topic without a name of its own has its key as name."""
        table = fields.get("topicConfigTable")
        if not isinstance(table, Mapping):
            return fields
        check_count(len(table))
        if None in table.values():
            raise RemoteProtocolError("a topic of the topicConfigTable is null")
        named = {
            key: {**topic, "topicName": topic.get("topicName") or key} if isinstance(topic, Mapping) else topic
            for key, topic in table.items()
        }
        return {**fields, "topicConfigTable": named}


class RegisterBrokerBody(Body):
    """The body of REGISTER_BROKER (103). With `filter_server_list` None (null, or before V3_0_11) the NameServer keeps
    the broker's filter servers; () removes them."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper = field(default_factory=TopicConfigSerializeWrapper)
    filter_server_list: tuple[str, ...] | None = None

    @classmethod
    def _prepared(cls, fields: Mapping[Any, object]) -> Mapping[Any, object]:
        """A list that is left out is empty; one that is null stays None."""
        return fields if "filterServerList" in fields else {**fields, "filterServerList": ()}

    @property
    def data_version(self) -> DataVersion:
        return self.topic_config_serialize_wrapper.data_version

    @property
    def topics(self) -> tuple[TopicConfig, ...]:
        return tuple(self.topic_config_serialize_wrapper.topic_config_table.values())

    @property
    def queue_mappings(self) -> Mapping[str, Mapping[str, object]]:
        return self.topic_config_serialize_wrapper.topic_queue_mapping_info_map or {}

    def encode(self, *, compressed: bool = False, version: int = V5_3_2) -> bytes:
        """Return the body as JSON, or compressed as a broker of `version` compresses the body."""
        if compressed:
            return self._compress(version)
        written = fastjson.dumps(self.to_json())
        return written if self.filter_server_list is not None else b'{"filterServerList":null,' + written[1:]

    @classmethod
    def decode(cls, data: bytes, *, version: int = V5_3_2) -> Self:
        """Read the body that a broker of `version` sent; an empty body has no topics and a DataVersion of zeros.

        The first byte shows whether a body is compressed, because 5.x brokers set the header's flag wrongly. Raises
        RemoteProtocolError for a body that cannot be read or inflates to more than INFLATED_MAX bytes.
        """
        if not data:
            return cls(filter_server_list=())
        if data[0] == _ZLIB:
            return cls._inflate(data, version)
        if version < V3_0_11:
            return cls(topic_config_serialize_wrapper=TopicConfigSerializeWrapper.decode(data))
        return cls.from_json(fastjson.loads(data))

    def _compress(self, version: int) -> bytes:
        wrapper = self.topic_config_serialize_wrapper
        parts = [_sized(wrapper.data_version.encode()), _LENGTH.pack(len(wrapper.topic_config_table))]
        parts += [_sized(topic.to_line().encode()) for topic in self.topics]
        parts.append(_sized(fastjson.dumps(list(self.filter_server_list or ()))))
        if version >= V5_0_0:
            parts.append(_LENGTH.pack(len(self.queue_mappings)))
            parts += [_sized(fastjson.dumps(plain(mapping))) for mapping in self.queue_mappings.values()]
        return zlib.compress(b"".join(parts), 9)

    @classmethod
    def _inflate(cls, data: bytes, version: int) -> Self:
        reader = _Reader(inflate_zlib(data, INFLATED_MAX))
        data_version = DataVersion.decode(reader.sized())
        count = reader.count()
        check_count(count)
        topics = [TopicConfig.from_line(reader.text()) for _ in range(count)]
        filter_servers = fastjson.loads(reader.sized())
        mappings = None
        if version >= V5_0_0 and not reader.at_end:
            mappings = [fastjson.loads(reader.sized()) for _ in range(reader.count())]
        rest = TopicConfigSerializeWrapper.from_json({"topicQueueMappingInfoMap": _by_topic(mappings)})
        wrapper = TopicConfigSerializeWrapper(
            data_version=data_version,
            topic_config_table={topic.topic_name: topic for topic in topics},
            topic_queue_mapping_info_map=rest.topic_queue_mapping_info_map,
        )
        filters = cls.from_json({"filterServerList": filter_servers}).filter_server_list
        return cls(topic_config_serialize_wrapper=wrapper, filter_server_list=filters)


def _by_topic(mappings: list[object] | None) -> dict[str, object] | None:
    if mappings is None:
        return None
    return {str(mapping.get("topic")): mapping for mapping in mappings if isinstance(mapping, Mapping)}


def check_count(topics: int) -> None:
    """Raise RemoteProtocolError for more than TOPICS_MAX topics."""
    if topics > TOPICS_MAX:
        raise RemoteProtocolError(f"registration of {topics} topics exceeds {TOPICS_MAX}")


def _sized(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


class _Reader:
    """The inflated bytes, item by item; RemoteProtocolError if one says more than there is."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def count(self) -> int:
        try:
            (count,) = _LENGTH.unpack_from(self._data, self._at)
        except struct.error:
            raise RemoteProtocolError(f"compressed registration is cut short at byte {self._at}") from None
        left = len(self._data) - self._at - 4
        if not 0 <= count <= left:
            raise RemoteProtocolError(f"compressed registration says {count} at byte {self._at}, {left} B are left")
        self._at += 4
        return int(count)

    def sized(self) -> bytes:
        size = self.count()
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        return self.sized().decode("utf-8", "replace")
