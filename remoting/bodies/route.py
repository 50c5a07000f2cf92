"""The bodies of NameServers' requests and answers, except the registration (register.py). Upstream: `protocol/route/*`,
`protocol/body/*`, `DataVersion`, `TopicConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from .. import fastjson
from ..codes import PERM_READ, PERM_WRITE
from ..errors import RemoteProtocolError
from ..node.profile import Profile
from .fields import Body, Long

SINGLE_TAG = "SINGLE_TAG"
MULTI_TAG = "MULTI_TAG"


class DataVersion(Body):
    """The version of a broker's topic table. `==` compares all fields, as 5.x does; `same` compares what the profile's
    version compares. The field stateVersion is written only if it is not 0, because 4.9 lacks the field and readers
    take 0 for an absent field."""

    state_version: Long = 0
    timestamp: Long = 0
    counter: Long = 0

    def same(self, other: DataVersion, profile: Profile) -> bool:
        """Whether a NameServer of `profile` treats the two versions as equal."""
        if profile is Profile.V4_9:
            return (self.timestamp, self.counter) == (other.timestamp, other.counter)
        return self == other

    def next(self, *, now_ms: int, state_version: int | None = None) -> DataVersion:
        state = self.state_version if state_version is None else state_version
        return DataVersion(state_version=state, timestamp=now_ms, counter=self.counter + 1)

    def to_json(self) -> dict[str, object]:
        version: dict[str, object] = {"counter": self.counter, "timestamp": self.timestamp}
        if self.state_version:
            version["stateVersion"] = self.state_version
        return version


class TopicConfig(Body):
    """The settings of one topic at one broker. The field `attributes` exists in 5.x only, and is left out if None."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = SINGLE_TAG
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] | None = None

    def to_line(self) -> str:
        """Return the topic as a line of a compressed registration; the line lacks topicSysFlag and order."""
        line = f"{self.topic_name} {self.read_queue_nums} {self.write_queue_nums} {self.perm} {self.topic_filter_type}"
        return line if self.attributes is None else f"{line} {fastjson.dumps(dict(self.attributes)).decode()}"

    @classmethod
    def from_line(cls, line: str) -> TopicConfig:
        """Read the topic from a line that `to_line` wrote. Raises RemoteProtocolError for any other line; unreadable
        attributes are ignored, as in Java."""
        name, *rest = line.split(" ")
        if len(rest) < 4:
            raise RemoteProtocolError(f"topic line {line[:80]!r:.80} has {len(rest) + 1} parts, not 5 or 6")
        attributes: object = None
        if len(rest) > 4:
            try:
                attributes = fastjson.loads(rest[4])
            except RemoteProtocolError:
                attributes = None
        return cls.from_json(
            {
                "topicName": name,
                "readQueueNums": rest[0],
                "writeQueueNums": rest[1],
                "perm": rest[2],
                "topicFilterType": rest[3],
                "attributes": attributes if isinstance(attributes, Mapping) else None,
            }
        )


class QueueData(Body):
    """A topic's entry in a route for one broker: number of queues and permission."""

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


Row = tuple[str, QueueData]
"""A topic's name and how one broker holds it."""


class BrokerData(Body):
    """The brokers of one broker name: id (0 = master) to "host:port". The last two fields exist in 5.x only (None: left
    out)."""

    cluster: str | None = None
    broker_name: str
    broker_addrs: Mapping[int, str] = field(default_factory=dict)
    enable_acting_master: bool | None = None
    zone_name: str | None = None


class TopicQueueMappingInfo(Body):
    """For a static topic (5.x), the mapping of logical queues to physical queues at broker `bname`."""

    topic: str | None = None
    scope: str = "__global__"
    total_queues: int = 0
    bname: str | None = None
    epoch: Long = 0
    dirty: bool = False
    curr_id_map: Mapping[int, int] = field(default_factory=dict)


class TopicRouteData(Body):
    """The route of one topic. The order of queue data and brokers has no meaning."""

    queue_datas: tuple[QueueData, ...] = ()
    broker_datas: tuple[BrokerData, ...] = ()
    filter_server_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: Mapping[str, object] | None = None

    def encode(self, standard_json: bool = False) -> bytes:
        """Encode in standard JSON (every key quoted, `\\/`, `\\uXXXX`) for clients that ask for standard JSON or are
        V4_9_4 or later, else in fastjson's own dialect with `brokerAddrs:{0:"..."}`."""
        return fastjson.dumps(self.to_json(), browser_compatible=standard_json)


class ClusterInfo(Body):
    """The addresses of every broker name, and the broker names of each cluster."""

    broker_addr_table: Mapping[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class TopicList(Body):
    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


class KVTable(Body):
    """Keys and values. A key with a null value means the same as a missing key."""

    table: Mapping[str, str | None] = field(default_factory=dict)


class BrokerMemberGroup(Body):
    cluster: str | None = None
    broker_name: str
    broker_addrs: Mapping[int, str] = field(default_factory=dict)


class GetBrokerMemberGroupResponseBody(Body):
    broker_member_group: BrokerMemberGroup


def canonical(route: TopicRouteData) -> dict[str, object]:
    """Return the route in the form of the history, which is the same for equal routes: {"brokers": {name: {id: addr}},
    "queues": {name: [numbers]}}, and "order" if the route has an order configuration."""
    order = {"order": route.order_topic_conf} if route.order_topic_conf else {}
    return {
        "brokers": {
            data.broker_name: {str(id_): data.broker_addrs[id_] for id_ in sorted(data.broker_addrs)}
            for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
        },
        "queues": {
            row.broker_name: [row.read_queue_nums, row.write_queue_nums, row.perm, row.topic_sys_flag]
            for row in sorted(route.queue_datas, key=lambda row: row.broker_name)
        },
        **order,
    }
