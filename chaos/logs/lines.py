"""A line of RocketMQ's own logs becomes an event: what Apache's servers and clients write of themselves. Pure.

    2026-11-22 20:17:34 INFO NettyEventExecutor - remove brokerAddr[0, 10.0.0.1:10911] from brokerAddrTable, because …
    └ stamp, one second ┘ level  └ thread       └ text ──► LogEvent(event="address_removed", fields={"id": "0", …})

4.9 and 5.x, namesrv.log, broker.log, remoting.log and rocketmq_client.log, each as its layout writes it. Stamps of
servers and of 5.x clients are GMT+8 whatever the machine's zone; those of 4.9 clients, and of programs that write
RocketMQ's messages into a log of their own, are in a zone that no line names. What has no known shape is no event: who
reads counts it (`Counted`). A line without a stamp goes on with the one before: a stack trace, a long remark.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

SERVERS_ZONE = timezone(timedelta(hours=8))
"""GMT+8: the zone of every stamp that a server, or a 5.x client, writes."""


class LogEvent(NamedTuple):
    file: str
    line: int
    """From 1."""
    time: datetime | None
    """In UTC; None: its zone is not known, or its digits are no time."""
    event: str
    fields: Mapping[str, str]


class LogRecord(NamedTuple):
    """A line that begins a record of the log."""

    stamp: str
    level: str
    thread: str
    """Or the logger, where the layout has that in its place."""
    text: str
    is_servers: bool
    """Whether the stamp is GMT+8 by the layout."""


@dataclass(slots=True)
class Counted:
    """What became of the lines of a file."""

    events: int = 0
    other: int = 0
    """Records of no known shape."""
    continued: int = 0
    """Lines without a stamp."""


_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?P<digits>[.,]\d{1,6})?)"
_LAYOUTS = (
    re.compile(_STAMP + r" (?P<level>[A-Z]+) +\[\d+\] \[(?P<thread>[^\]]*)\] \[[^\]]*\] - (?P<text>.*)"),  # 5.x client
    re.compile(_STAMP + r" (?P<level>[A-Z]+) +(?P<thread>\S.*?) - (?P<text>.*)"),  # servers; with digits: 4.9 client
    re.compile(rf"\[{_STAMP}\] ?\[(?P<level>[A-Z]+) *\] ?\[(?P<thread>[^\]]*?) *\] (?P<text>.*)"),  # slf4j hosts
)


def record_of(line: str) -> LogRecord | None:
    """None: the line goes on with the record before."""
    if line[:1] not in "0123456789[" or not line:
        return None
    for number, layout in enumerate(_LAYOUTS):
        if (found := layout.match(line)) is not None:
            is_servers = number == 0 or (number == 1 and found["digits"] is None)
            return LogRecord(found["stamp"], found["level"], found["thread"], found["text"], is_servers)
    return None


_ADDRESS = (
    r"(?:BrokerIdentityInfo \[clusterName=(?P<cluster>[^,\]]*), brokerAddr=(?P<address>[^\]]*)\]|(?P<address_>\S+))"
)
_RESULT = r"(?P<result>OK|Failed)"
_WHY = ", because channel destroyed"
_CHANNEL = r"(?:channel\[addr=(?P<address>[^,\]]*)[^\]]*\]|\[?(?P<address_>[^\s\],]+)\]?)"
_SERVER, _CLIENT = "NETTY SERVER PIPELINE: ", "NETTY CLIENT PIPELINE: "

_SHAPES: tuple[tuple[str, str], ...] = (
    # The NameServer
    (
        "name_server_boot",
        r"The Name Server boot success\. serializeType=(?P<serialize>\w+)(?:, address (?P<address>\S+))?",
    ),
    ("broker_registered", rf"new broker registered, {_ADDRESS} HA(?:Server|Service): (?P<ha>\S*)"),
    (
        "master_address",
        r"cluster \[(?P<cluster>[^\]]*)\] brokerName \[(?P<broker>[^\]]*)\] master address change from (?P<old>\S+) "
        r"to (?P<address>\S+)",
    ),
    ("topic_registered", r"new topic registered, (?P<topic>\S+) (?P<row>QueueData \[.*\])"),
    ("topic_changed", r"topic changed, (?P<topic>\S+) OLD: (?P<old>QueueData \[.*\]) NEW: (?P<row>QueueData \[.*\])"),
    ("crc_mismatch", r"receive registerBroker request,crc32 not match,from (?P<address>\S+)"),
    (
        "conflict_ignored",
        r"Registering Broker conflicts with the existed one, just ignore\.: *Cluster:(?P<cluster>[^,]*), "
        r"BrokerName:(?P<broker>[^,]*), BrokerId:(?P<id>[^,]*), Old BrokerAddr:(?P<old>[^,]*), .*"
        r"New BrokerAddr:(?P<address>[^,]*),.*",
    ),
    (
        "topic_refused",
        r"Can't register topicConfigWrapper=.* because broker\[(?P<id>[^\]]*)\]=(?P<address>\S+) has not .*",
    ),
    ("broker_expired", rf"The broker channel expired, {_ADDRESS} (?P<timeout_ms>\d+)ms"),
    ("scanned", r"start scanNotActiveBroker"),
    (
        "channel_destroyed",
        r"the broker's channel destroyed, (?:submit the unregister request at once, broker info: (?P<broker_info>.*), "
        r"submit result: (?P<result>\w+)|(?P<address>\S+), clean it's data structure at once)",
    ),
    ("address_removed", rf"remove brokerAddr\[(?P<id>-?\d+), (?P<address>[^\]]+)\] from brokerAddrTable{_WHY}"),
    ("name_removed", rf"remove brokerName\[(?P<broker>[^\]]*)\] from brokerAddrTable{_WHY}"),
    (
        "cluster_name_removed",
        rf"remove brokerName\[(?P<broker>[^\]]*)\], clusterName\[(?P<cluster>[^\]]*)\] from clusterAddrTable{_WHY}",
    ),
    ("cluster_removed", rf"remove the clusterName\[(?P<cluster>[^\]]*)\] from clusterAddrTable{_WHY}.*"),
    ("topic_gone", rf"remove topic\[(?P<topic>\S+)\] all queue, from topicQueueTable{_WHY}"),
    ("topic_removed", rf"remove topic\[(?P<topic>\S+) (?P<row>QueueData \[.*\]|null)\], from topicQueueTable{_WHY}"),
    ("live_removed", rf"unregisterBroker, remove from brokerLiveTable {_RESULT}, {_ADDRESS}"),
    ("address_removed", rf"unregisterBroker, remove addr from brokerAddrTable {_RESULT}, {_ADDRESS}"),
    ("name_removed", r"unregisterBroker, remove name from brokerAddrTable OK, (?P<broker>\S+)"),
    ("cluster_name_removed", rf"unregisterBroker, remove name from clusterAddrTable {_RESULT}, (?P<broker>\S+)"),
    ("cluster_removed", r"unregisterBroker, remove cluster from clusterAddrTable (?P<cluster>\S+)"),
    (
        "topic_removed",
        r"removeTopicByBrokerName, remove one broker's topic (?P<topic>\S+) (?P<row>QueueData \[.*\])",
    ),
    ("topic_gone", r"removeTopicByBrokerName, remove the topic all queue (?P<topic>\S+)"),
    (
        "unregistrations_full",
        r"Couldn't submit the unregister broker request to handler, broker info: (?P<broker_info>.*)",
    ),
    (
        "min_broker_id_changed",
        r"min broker id changed to (?P<id>-?\d+), notify \[(?P<notified>[^\]]*)\], "
        r"offline broker addr (?P<address>\S+)",
    ),
    (
        "write_perm_wiped",
        r"wipe write perm of broker\[(?P<broker>[^\]]*)\], client: (?P<address>\S+), (?P<topics>\d+)",
    ),
    ("write_perm_added", r"add write perm of broker\[(?P<broker>[^\]]*)\], client: (?P<address>\S+), (?P<topics>\d+)"),
    (
        "topic_deleted",
        r"deleteTopic, remove one broker's topic (?P<broker>\S+) (?P<topic>\S+) (?P<row>QueueData \[.*\])",
    ),
    ("topic_gone", r"deleteTopic, remove the topic all queue (?:(?P<cluster>\S+) )?(?P<topic>\S+)"),
    (
        "kv_put",
        r"putKVConfig (?P<how>create new|update) config item, Namespace: (?P<namespace>\S*) Key: (?P<key>\S*) "
        r"Value: (?P<value>.*)",
    ),
    ("kv_deleted", r"deleteKVConfig delete a config item, Namespace: (?P<namespace>\S*) Key: (?P<key>\S*).*"),
    ("config_updated", r"updateConfig called by (?P<address>\S+)"),
    ("config_replaced", r"Replace, key: (?P<key>[^,]*), value: (?P<old>.*) -> (?P<value>.*)"),
    ("not_ready", r"name server not ready\. request code (?P<code>\d+) ?"),
    # Channels of any server
    ("channel_registered", rf"{_SERVER}channelRegistered (?P<address>\S+)"),
    ("channel_unregistered", rf"{_SERVER}channelUnregistered, the channel\[(?P<address>[^\]]*)\]"),
    ("channel_active", rf"{_SERVER}channelActive, the channel\[(?P<address>[^\]]*)\]"),
    ("channel_inactive", rf"{_SERVER}channelInactive, the channel\[(?P<address>[^\]]*)\]"),
    ("channel_idle", rf"{_SERVER}IDLE exception \[(?P<address>[^\]]*)\]"),
    ("channel_failed", rf"{_SERVER}exceptionCaught (?!exception\.)(?P<address>\S+)"),
    (
        "channel_closing",
        r"closeChannel: close the connection to remote address\[(?P<address>[^\]]*)\] result: (?P<result>\w+)",
    ),
    # The broker
    (
        "broker_boot",
        r"The broker\[(?P<broker>[^,]*), (?P<address>[^\]]*)\] boot success\. serializeType=(?P<serialize>\w+)"
        r"(?: and name server is (?P<name_servers>\S+))?",
    ),
    ("registered", r"register broker ?\[(?P<id>-?\d+)\] ?to name server (?P<name_server>\S+) OK"),
    ("registered", r"Registering current broker to name server completed\. TargetHost=(?P<name_server>\S+)"),
    ("register_failed", r"registerBroker Exception, (?P<name_server>[^\s:]+:\d+).*"),
    (
        "register_failed",
        r"Failed to register current broker to name server\. TargetHost=(?P<name_server>[^\s:]+:\d+).*",
    ),
    (
        "registration_slow",
        r"Registration to one or more name servers does NOT complete within deadline\. Timeout threshold: "
        r"(?P<timeout_ms>\d+)ms",
    ),
    (
        "data_version_asked",
        r"Query data version from name server (?P<name_server>\S+) OK, ?changed (?P<changed>\w+), ?broker "
        r"(?P<version>DataVersion ?\[[^\]]*\]), ?name server ?(?P<theirs>.*)",
    ),
    ("data_version_failed", r"Query data version from name server (?P<name_server>\S+) +[Ee]xception.*"),
    ("unregistered", r"unregisterBroker OK, NamesrvAddr: (?P<name_server>\S+)"),
    ("unregister_failed", r"unregisterBroker Exception, (?:NamesrvAddr: )?(?P<name_server>[^\s:]+:\d+).*"),
    ("heartbeat_failed", r"sendHeartbeat Exception (?P<name_server>\S+)"),
    (
        "topic_created",
        r"Create new topic by default topic: ?\[(?P<default>[^\]]*)\] config: ?\[(?P<config>.*)\] "
        r"producer: ?\[(?P<address>[^\]]*)\]",
    ),
    ("topic_missing", r"the topic (?P<topic>\S+) not exist, producer: (?P<address>\S+)"),
    (
        "consumer_connected",
        r"new consumer connected, group: (?P<group>\S+) (?P<type>\S+) (?P<model>\S+) channel: (?P<channel>.*)",
    ),
    ("producer_connected", r"new producer connected, group: (?P<group>\S+) channel: (?P<channel>.*)"),
    (
        "consumer_expired",
        r"SCAN: remove expired channel from ConsumerManager consumerTable\. channel=(?P<channel>[^,]*), "
        r"consumerGroup=(?P<group>\S+)",
    ),
    (
        "producer_expired",
        r"(?:ProducerManager#scanNotActiveChannel: |SCAN: )?remove expired channel ?\[(?P<channel>[^\]]*)\] from "
        r"ProducerManager groupChannelTable, producer group name: (?P<group>\S+)",
    ),
    (
        "offset_fixed",
        r"the request offset: (?P<offset>-?\d+) over flow badly, fix to (?P<fixed>-?\d+), broker max offset: "
        r"(?P<max>-?\d+), consumer: (?P<address>\S+)",
    ),
    # Clients, and what a broker dials
    ("name_servers_set", r"name server address updated\. NEW : \[(?P<new>[^\]]*)\] , OLD: (?P<old>.*)"),
    ("name_servers_said", r"[Uu]ser specified name server address: (?P<new>.*)"),
    ("name_servers_said", r"Set user specified name server address: (?P<new>.*)"),
    (
        "name_server_chosen",
        r"new name server is chosen\. OLD: (?P<old>\S+) , NEW: (?P<new>\S+?)\. namesrvIndex = (?P<index>-?\d+)",
    ),
    ("name_server_removed", r"scanAvailableNameSrv remove (?P<why>unconnected|invalid) address (?P<address>\S+)"),
    ("connecting", r"createChannel: begin to connect remote host\[(?P<address>[^\]]*)\] asynchronously"),
    ("connected", r"createChannel: connect remote host\[(?P<address>[^\]]*)\] success.*"),
    ("connected", rf"{_CLIENT}ACTIVE, (?P<address>[^\s,]+).*"),
    ("connect_failed", r"createChannel: connect remote host\[(?P<address>[^\]]*)\] failed.*"),
    ("connect_timeout", r"createChannel: connect remote host\[(?P<address>[^\]]*)\] timeout (?P<timeout_ms>\d+)ms.*"),
    ("closed", rf"{_CLIENT}CLOSE {_CHANNEL}.*"),
    ("idle", rf"{_CLIENT}IDLE exception {_CHANNEL}.*"),
    ("request_timeout", rf"invokeSync: wait response timeout exception, the (?:channel)?{_CHANNEL}.*"),
    ("closed_on_timeout", rf"invokeSync: close socket because of timeout, (?P<timeout_ms>\d+)ms, {_CHANNEL}.*"),
    (
        "route_changed",
        r"the topic\[(?P<topic>[^\]]*)\] route info changed, old\[(?P<old>.*)\] ?, ?new\[(?P<new>.*)\]",
    ),
    ("broker_offline", r"the broker addr\[(?P<broker>\S+) (?P<address>[^\]]*)\] is offline, remove it"),
    ("client_created", r"Created a new client Instance, InstanceIndex:(?P<index>[^,]*), ClientID:(?P<client>[^,]*),.*"),
    ("client_started", r"the client factory \[(?P<client>[^\]]*)\] start OK"),
    (
        "rebalanced",
        r"(?:client )?rebalanced result changed\. allocateMessageQueueStrategyName=(?P<strategy>[^,]*), "
        r"group=(?P<group>[^,]*), topic=(?P<topic>[^,]*), clientId=(?P<client>[^,]*),.*",
    ),
)

EVENTS: tuple[str, ...] = tuple(dict.fromkeys(event for event, _ in _SHAPES))
"""Every kind of event there is."""


class _Shape(NamedTuple):
    event: str
    matches: re.Pattern[str]


def _by_word() -> Mapping[str, tuple[_Shape, ...]]:
    """First word of a text → the shapes that begin with it."""
    found: dict[str, list[_Shape]] = defaultdict(list)
    for event, text in _SHAPES:
        shape = _Shape(event, re.compile(text, re.DOTALL))
        for word in _FIRST_WORDS.get(event, (text.replace("\\", "").split(" ")[0],)):
            found[word].append(shape)
    return {word: tuple(shapes) for word, shapes in found.items()}


_FIRST_WORDS: Mapping[str, tuple[str, ...]] = {
    "name_servers_said": ("User", "user", "Set"),
    "producer_expired": ("ProducerManager#scanNotActiveChannel:", "SCAN:", "remove"),
    "rebalanced": ("client", "rebalanced"),
    "registered": ("register", "Registering"),
    "broker_boot": ("The",),
    "route_changed": ("the",),
}
_SHAPES_OF = _by_word()


def event_of(text: str) -> tuple[str, dict[str, str]] | None:
    """The event of a record's text with its fields; None: no known shape."""
    for shape in _SHAPES_OF.get(text.partition(" ")[0], ()):
        if (found := shape.matches.fullmatch(text.rstrip("\r\n"))) is not None:
            # a field that stands in one of two places has the second name with an underscore
            return shape.event, {name.rstrip("_"): said for name, said in found.groupdict().items() if said is not None}
    return None


def time_of(record: LogRecord, zone: tzinfo | None = None) -> datetime | None:
    """In UTC. `zone`: of layouts that do not say theirs."""
    of = SERVERS_ZONE if record.is_servers else zone
    if of is None:
        return None
    try:
        return (
            datetime.fromisoformat(record.stamp.replace(",", ".").replace("T", " ")).replace(tzinfo=of).astimezone(UTC)
        )
    except ValueError:
        return None


def parsed(file: str, number: int, line: str, counted: Counted, zone: tzinfo | None = None) -> LogEvent | None:
    """The event of one line; None, and counted, where it is none."""
    record = record_of(line)
    found = None if record is None else event_of(record.text)
    if record is None:
        counted.continued += 1
    elif found is None:
        counted.other += 1
    else:
        counted.events += 1
        return LogEvent(file, number, time_of(record, zone), *found)
    return None


def events_of(
    file: str, lines: Iterable[str], counted: Counted | None = None, zone: tzinfo | None = None
) -> Iterator[LogEvent]:
    """The events of a file's lines, in their order."""
    counted = Counted() if counted is None else counted
    for number, line in enumerate(lines, 1):
        if (event := parsed(file, number, line, counted, zone)) is not None:
            yield event


@dataclass(slots=True)
class Tail:
    """The lines of a file that grows: what is new since the last look, but for a line that is not whole yet."""

    file: str
    number: int = 0
    """Of the last whole line."""
    _rest: bytes = field(default=b"", init=False)

    def fed(self, data: bytes) -> Iterator[tuple[int, str]]:
        """Number and text of each line that `data`, which came behind all before, makes whole."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self.number += 1
            yield self.number, line.decode("utf-8", "replace").rstrip("\r")
