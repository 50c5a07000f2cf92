"""Records in a server's transport which requests reached the server, and which channels ended.

    bytes ─► frame ─► request ─┬─► Witness: `request_read`         before the node has seen it
                               └─► the node's own handler          whose rows say what it made of it
    end of a channel ──────────┬─► Witness: `channel_ended`
                               └─► the node's own handler

The transport writes these history rows (docs/history.md), so that a node that loses, invents or misreads requests is
found.
"""

import zlib
from collections.abc import Mapping
from typing import Protocol

from .bodies.register_rows import read_rows
from .bodies.route import DataVersion
from .codes import TABLES_OF_SLAVES, RequestCode
from .command import RemotingCommand
from .errors import ProtocolError
from .message_properties import KEYS, UNIQ_KEY, parse_properties
from .node.recording import Recorder


class Channel(Protocol):
    """The attributes of a server's channel that `Witness` reads."""

    id: int
    ended_by_peer: bool


OF_ROUTES = frozenset(
    {
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.QUERY_DATA_VERSION,
        RequestCode.BROKER_HEARTBEAT,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV,
    }
)
"""What a NameServer's tables are made of."""


def said_by(request: RemotingCommand, fields: Mapping[str, str]) -> dict[str, object] | None:
    """Return the contents of a REGISTER_BROKER, without the broker's identity; None for an unreadable body."""
    crc32 = fields.get("bodyCrc32", "0")
    if crc32 not in ("0", str(zlib.crc32(request.body) & 0x7FFFFFFF)):
        return None
    try:
        read = read_rows(request.body, fields.get("brokerName", ""), version=request.version)
    except ProtocolError:
        return None
    acting = fields.get("enableActingMaster")
    return {
        "version": _numbers(read.body.data_version),
        "topics": {
            topic: [row.read_queue_nums, row.write_queue_nums, row.perm, row.topic_sys_flag] for topic, row in read.rows
        },
        "cluster": fields.get("clusterName"),
        "ha": fields.get("haServerAddr"),
        "timeout_ms": fields.get("heartbeatTimeoutMillis"),
        "acting": None if acting is None else acting == "true",
    }


def asked_by(request: RemotingCommand) -> dict[str, object]:
    """Return the version that a QUERY_DATA_VERSION asks about; empty for an unreadable body."""
    try:
        return {"version": _numbers(DataVersion.decode(request.body))}
    except ProtocolError:
        return {}


def _numbers(version: DataVersion) -> list[int]:
    return [version.state_version, version.timestamp, version.counter]


class Witness:
    """Records requests and channel ends in one server's transport. `codes` has the request codes that are recorded."""

    def __init__(self, record: Recorder, codes: frozenset[RequestCode]) -> None:
        self._record, self._codes = record, codes
        self._told: set[int] = set()
        """The channels that brought any of these requests."""
        self._said: dict[tuple[object, ...], int] = {}
        """Of each broker, what identifies the last thing that it registered."""

    def received(self, connection: Channel, request: RemotingCommand) -> None:
        if request.code not in self._codes:
            return
        self._told.add(connection.id)
        fields = request.ext_fields or {}
        number = fields.get("brokerId", "")
        broker = (
            fields.get("brokerName"),
            int(number) if number.removeprefix("-").isdigit() else None,
            fields.get("brokerAddr"),
        )
        said: dict[str, object] | None = {"cluster": fields["clusterName"]} if "clusterName" in fields else None
        if request.code == RequestCode.REGISTER_BROKER:
            same = hash((request.body, *sorted(fields.items())))
            said = None if self._said.get(broker) == same else {"registers": said_by(request, fields)}
            self._said[broker] = same
        elif request.code == RequestCode.QUERY_DATA_VERSION:
            said = (said or {}) | asked_by(request) or None
        self._record(
            "request_read",
            f=RequestCode(request.code).name,
            op_id=str(connection.id),
            topic=fields.get("topic"),
            broker_name=broker[0],
            broker_id=broker[1],
            address=broker[2],
            value=said,
        )

    def ended(self, connection: Channel, reason: str) -> None:
        """Record that a channel ended, if the channel brought a request that is recorded. The transport's `reason` is
        closed, exception or idle."""
        if connection.id in self._told:
            self._told.remove(connection.id)
            by = "peer" if connection.ended_by_peer else "self"
            self._record("channel_ended", op_id=str(connection.id), f=by, value={"reason": reason})


_SENDS = frozenset({RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2})
_SENT_BACK = {"group": "group", "level": "delayLevel", "limit": "maxReconsumeTimes"}
"""What is recorded of a CONSUMER_SEND_MSG_BACK: key in the row to field of the request."""


class BrokerWitness(Witness):
    """Records in a broker's transport what slaves ask for, what consumers send back, and each send that repeats the
    previous message of the same channel."""

    def __init__(self, record: Recorder) -> None:
        super().__init__(record, frozenset())
        self._last: dict[int, str] = {}
        """Of each channel, the properties of the message that it brought last."""

    def received(self, connection: Channel, request: RemotingCommand) -> None:
        fields = request.ext_fields or {}
        if request.code in _SENDS:
            self._sent(connection, fields.get("i" if request.code == RequestCode.SEND_MESSAGE_V2 else "properties", ""))
        elif request.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            self._read(connection, request, {key: fields.get(name) for key, name in _SENT_BACK.items()})
        elif request.code in TABLES_OF_SLAVES:
            self._read(connection, request, None)

    def _sent(self, connection: Channel, text: str) -> None:
        if text and self._last.get(connection.id) == text:
            properties = parse_properties(text)
            msg_key = properties.get(KEYS) or properties.get(UNIQ_KEY)
            self._record("send_read_again", op_id=str(connection.id), msg_key=msg_key)
        self._last[connection.id] = text

    def _read(self, connection: Channel, request: RemotingCommand, said: Mapping[str, str | None] | None) -> None:
        self._record("request_read", f=RequestCode(request.code).name, op_id=str(connection.id), value=said)

    def ended(self, connection: Channel, reason: str) -> None:
        self._last.pop(connection.id, None)
