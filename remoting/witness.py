"""What reached a server, recorded by its transport: requests that were read, and channels that ended.

    bytes ─► frame ─► request ─┬─► Witness: `request_read`         before the node has seen it
                               └─► the node's own handler          whose rows say what it made of it
    end of a channel ──────────┬─► Witness: `channel_ended`
                               └─► the node's own handler

A node that loses, invents or misreads what it was sent cannot hide that: these rows are not its own. Their columns:
docs/history.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .codes import RequestCode
from .command import RemotingCommand
from .node.recording import Recorder


class Channel(Protocol):
    """A channel of the server, as far as its witness looks at it."""

    id: int
    ended_by_peer: bool


OF_BROKERS = frozenset(
    {
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.QUERY_DATA_VERSION,
        RequestCode.BROKER_HEARTBEAT,
    }
)
"""What a NameServer's table of brokers is made of."""


def read_fields(request_code: int, fields: Mapping[str, str], channel: str) -> dict[str, object]:
    """The columns of a `request_read` row: of a request with this code and these header fields."""
    number = fields.get("brokerId", "")
    return {
        "f": RequestCode(request_code).name,
        "op_id": channel,
        "broker_name": fields.get("brokerName"),
        "broker_id": int(number) if number.isdigit() else None,
        "address": fields.get("brokerAddr"),
    }


class Witness:
    """Records for one server's transport. `codes`: the requests that are recorded."""

    def __init__(self, record: Recorder, codes: frozenset[RequestCode]) -> None:
        self._record, self._codes = record, codes
        self._told: set[int] = set()
        """The channels that brought any of these requests."""

    def received(self, connection: Channel, request: RemotingCommand) -> None:
        if request.code in self._codes:
            self._told.add(connection.id)
            self._record("request_read", **read_fields(request.code, request.ext_fields or {}, str(connection.id)))

    def ended(self, connection: Channel, reason: str) -> None:
        """`reason`: closed, exception or idle, as the transport gives it."""
        if connection.id in self._told:
            self._told.remove(connection.id)
            by = "peer" if connection.ended_by_peer else "self"
            self._record("channel_ended", op_id=str(connection.id), f=by, value={"reason": reason})
