"""What is asked of both servers: the commands, written out here rather than with the code under test."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from nemesrv.remoting.codes import RequestCode, SerializeType
from nemesrv.remoting.command import RemotingCommand

V4_9_3, V4_9_4, V5_3_3 = 399, 401, 479
V3_0_10 = 35


def command(
    code: int,
    fields: Mapping[str, object] | None = None,
    body: bytes = b"",
    *,
    version: int = V5_3_3,
    binary: bool = False,
) -> RemotingCommand:
    """A request; `fields` that are None are left out."""
    ext = None if fields is None else {key: _text(value) for key, value in fields.items() if value is not None}
    kind = SerializeType.ROCKETMQ if binary else SerializeType.JSON
    return RemotingCommand(int(code), version=version, ext_fields=ext, body=body, serialize_type=kind)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class Topic:
    name: str
    queues: tuple[int, int] = (4, 4)
    perm: int = 6
    flag: int = 0
    sparse: bool = False
    """In JSON, only what is not the default."""

    def json(self, five: bool) -> dict[str, object]:
        read, write = self.queues
        more = {"attributes": {}} if five else {}
        if self.sparse:
            written = {"readQueueNums": (read, 16), "writeQueueNums": (write, 16), "perm": (self.perm, 6)}
            changed = {key: value for key, (value, default) in written.items() if value != default}
            return {"topicName": self.name, **changed, **({"topicSysFlag": self.flag} if self.flag else {})}
        return {
            "topicName": self.name,
            "readQueueNums": read,
            "writeQueueNums": write,
            "perm": self.perm,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": self.flag,
            "order": False,
            **more,
        }

    def line(self, five: bool) -> str:
        read, write = self.queues
        return f"{self.name} {read} {write} {self.perm} SINGLE_TAG" + (" {}" if five else "")


@dataclass(frozen=True, kw_only=True)
class Register:
    """One REGISTER_BROKER."""

    cluster: str = "c0"
    broker: str = "b0"
    id: int = 0
    addr: str = "10.0.0.0:10911"
    ha: str = "10.0.0.0:10912"
    topics: tuple[Topic, ...] = ()
    counter: int = 1
    timestamp: int = 1000
    state: int = 0
    form: str = "json"
    """json, compressed, wrapper (before V3_0_11), none (no body at all)"""
    crc: str = "right"
    """right, wrong, none"""
    acting: bool | None = None
    zone: str | None = None
    timeout_ms: int | None = None
    filters: tuple[str, ...] | None = None
    filters_null: bool = False
    mapping: tuple[str, ...] = ()
    """5.x: topics that are static at this broker"""
    version: int = V5_3_3
    binary: bool = False
    spelling: str = "plain"
    """plain, upper (TRUE), odd (+1; anything but true is false)"""
    five: bool = True
    """Whether the sender writes what only 5.x knows."""

    def command(self) -> RemotingCommand:
        body = self.body()
        right = zlib.crc32(body) & 0x7FFFFFFF
        fields: dict[str, object] = {
            "clusterName": self.cluster,
            "brokerName": self.broker,
            "brokerAddr": self.addr,
            "brokerId": self.id,
            "haServerAddr": self.ha,
            "compressed": self.form == "compressed",
            "bodyCrc32": {"right": right, "wrong": right ^ 1 or 2, "none": 0}[self.crc],
            "enableActingMaster": self.acting,
            "heartbeatTimeoutMillis": self.timeout_ms,
            "__ZONE_NAME": self.zone,
        }
        if self.spelling != "plain":
            words = {True: "True", False: "FALSE"} if self.spelling == "upper" else {True: "true", False: "yes"}
            fields = {key: words[value] if isinstance(value, bool) else value for key, value in fields.items()}
            fields["brokerId"] = f"{self.id:+04}"
        version = V3_0_10 if self.form == "wrapper" else self.version
        return command(RequestCode.REGISTER_BROKER, fields, body, version=version, binary=self.binary)

    def body(self) -> bytes:
        if self.form == "none":
            return b""
        if self.form == "compressed":
            return zlib.compress(b"".join(self._compressed_parts()), 9)
        wrapper = {
            "dataVersion": self.data_version(),
            "topicConfigTable": {t.name: t.json(self.five) for t in self.topics},
        }
        if self.mapping:
            wrapper["topicQueueMappingInfoMap"] = {name: self._mapping(name) for name in self.mapping}
        if self.form == "wrapper":
            return orjson.dumps(wrapper, option=orjson.OPT_SORT_KEYS)
        whole: dict[str, object] = {"topicConfigSerializeWrapper": wrapper}
        if self.filters is not None or self.filters_null:
            whole["filterServerList"] = self.filters
        return orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)

    def data_version(self) -> dict[str, object]:
        state = {"stateVersion": self.state} if self.five else {}
        return {"counter": self.counter, "timestamp": self.timestamp, **state}

    def _compressed_parts(self) -> list[bytes]:
        parts = [_sized(orjson.dumps(self.data_version())), struct.pack(">i", len(self.topics))]
        parts += [_sized(topic.line(self.five).encode()) for topic in self.topics]
        parts.append(_sized(orjson.dumps(self.filters or ())))
        if self.version >= 413:
            parts.append(struct.pack(">i", len(self.mapping)))
            parts += [_sized(orjson.dumps(self._mapping(name))) for name in self.mapping]
        return parts

    def _mapping(self, topic: str) -> dict[str, object]:
        return {
            "topic": topic,
            "scope": "__global__",
            "totalQueues": 2,
            "bname": self.broker,
            "epoch": self.timestamp,
            "dirty": False,
            "currIdMap": {"0": 0, "1": 1},
        }

    def but(self, **changes: object) -> Register:
        return replace(self, **changes)  # type: ignore[arg-type]


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def unregister(cluster: str, broker: str, id_: int, addr: str) -> RemotingCommand:
    fields = {"clusterName": cluster, "brokerName": broker, "brokerId": id_, "brokerAddr": addr}
    return command(RequestCode.UNREGISTER_BROKER, fields)


def query_version(cluster: str, addr: str, data_version: Mapping[str, object] | None = None) -> RemotingCommand:
    fields = {"clusterName": cluster, "brokerName": "any", "brokerId": 0, "brokerAddr": addr}
    held = {"counter": 1, "timestamp": 1000, "stateVersion": 0} if data_version is None else data_version
    return command(RequestCode.QUERY_DATA_VERSION, fields, orjson.dumps(held))


def route(
    topic: str,
    *,
    version: int = V5_3_3,
    standard: bool | str | None = None,
    zone: str | None = None,
    zone_mode: bool | str | None = None,
    binary: bool = False,
) -> RemotingCommand:
    fields = {"topic": topic, "acceptStandardJsonOnly": standard, "__ZONE_MODE": zone_mode, "__ZONE_NAME": zone}
    return command(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields, version=version, binary=binary)


def member_group(cluster: str, broker: str) -> RemotingCommand:
    return command(RequestCode.GET_BROKER_MEMBER_GROUP, {"clusterName": cluster, "brokerName": broker})


def register_topic(topic: str, rows: Sequence[tuple[str, Topic]]) -> RemotingCommand:
    body = {
        "queueDatas": [
            {
                "brokerName": broker,
                "readQueueNums": row.queues[0],
                "writeQueueNums": row.queues[1],
                "perm": row.perm,
                "topicSysFlag": row.flag,
            }
            for broker, row in rows
        ],
        "brokerDatas": [],
    }
    return command(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": topic}, orjson.dumps(body))


def kv(code: int, namespace: str | None, key: str | None = None, value: str | None = None) -> RemotingCommand:
    return command(code, {"namespace": namespace, "key": key, "value": value})
