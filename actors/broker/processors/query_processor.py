"""Queries of stored messages: offsets (30, 31), times (29, 32), single messages (33), messages by key (12).

The broker has no index file: a query by key reads the topic's messages of the time range, the newest first, and other
requests are served meanwhile. Upstream: `AdminBrokerProcessor`, `QueryMessageProcessor`.
"""

from collections.abc import Awaitable

from ....remoting.codes import ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.headers import broker as headers
from ....remoting.message import StoredMessage
from ....remoting.transport import Connection
from ..services import Services, refuse

MAX_QUERY_RESULTS = 64
"""Most messages that one query by key gives (`defaultQueryMaxNum` 32 is what is given when fewer are not asked for)."""
QUERY_CHUNK = 200
MAX_QUERY_BYTES = 8 << 20


class QueryProcessor:
    def __init__(self, services: Services) -> None:
        self._services = services

    def max_offset(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        header = headers.GetMaxOffsetRequestHeader.from_ext_fields(request.ext_fields)
        offset = self._services.store.max_offset(header.topic, header.queue_id)
        return RemotingCommand.response(header=headers.GetMaxOffsetResponseHeader(offset=offset))

    def min_offset(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 31: a queue's first offset that still exists."""
        header = headers.GetMinOffsetRequestHeader.from_ext_fields(request.ext_fields)
        offset = self._services.store.min_offset(header.topic, header.queue_id)
        return RemotingCommand.response(header=headers.GetMinOffsetResponseHeader(offset=offset))

    def search_offset(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 29: a queue's first message stored at the requested time or later (boundaryType UPPER: the last
        message at that time or earlier)."""
        header = headers.SearchOffsetRequestHeader.from_ext_fields(request.ext_fields)
        upper = (header.boundary_type or "").upper() == "UPPER"
        offset = self._services.store.offset_by_time(header.topic, header.queue_id, header.timestamp, upper=upper)
        return RemotingCommand.response(header=headers.SearchOffsetResponseHeader(offset=offset))

    def earliest_store_time(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 32: when a queue's oldest message was stored; -1 for an empty queue."""
        header = headers.GetEarliestMsgStoretimeRequestHeader.from_ext_fields(request.ext_fields)
        store = self._services.store
        timestamp = store.store_time(header.topic, header.queue_id, store.min_offset(header.topic, header.queue_id))
        return RemotingCommand.response(header=headers.GetEarliestMsgStoretimeResponseHeader(timestamp=timestamp))

    def view_message(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        header = headers.ViewMessageRequestHeader.from_ext_fields(request.ext_fields)
        stored = self._services.store.look(header.offset)
        if stored is None:
            return refuse(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {header.offset}")
        return RemotingCommand.response(body=stored.encode())

    def query_message(self, _: Connection, request: RemotingCommand) -> Awaitable[RemotingCommand]:
        """QUERY_MESSAGE (12): messages of a topic with a key, or a uniq key, newest first."""
        return self._query(headers.QueryMessageRequestHeader.from_ext_fields(request.ext_fields))

    async def _query(self, header: headers.QueryMessageRequestHeader) -> RemotingCommand:
        limit = max(1, min(header.max_num, MAX_QUERY_RESULTS))
        found: list[StoredMessage] = []
        size = 0
        for queue_id in self._services.store.queue_ids(header.topic):
            for stored in await self._matches(header, queue_id, limit):
                found.append(stored)
        found.sort(key=lambda stored: stored.physical_offset, reverse=True)
        records: list[bytes] = []
        for stored in found[:limit]:
            record = stored.encode()
            size += len(record)
            if records and size > MAX_QUERY_BYTES:
                break
            records.append(record)
        if not records:
            return refuse(ResponseCode.QUERY_NOT_FOUND, "can not find message, maybe time range not correct")
        newest = found[0]
        fields = headers.QueryMessageResponseHeader(
            index_last_update_timestamp=newest.store_timestamp, index_last_update_phyoffset=newest.physical_offset
        )
        return RemotingCommand.response(header=fields, body=b"".join(records))

    async def _matches(
        self, header: headers.QueryMessageRequestHeader, queue_id: int, limit: int
    ) -> list[StoredMessage]:
        store, topic = self._services.store, header.topic
        first = store.offset_by_time(topic, queue_id, header.begin_timestamp)
        offset = min(store.max_offset(topic, queue_id), store.offset_by_time(topic, queue_id, header.end_timestamp + 1))
        found: list[StoredMessage] = []
        size = looked = 0
        while offset > first and len(found) < limit and size < MAX_QUERY_BYTES:
            offset -= 1
            entry = store.entry(topic, queue_id, offset)
            stored = None if entry is None else store.look(entry[0])
            if stored is not None and _has_key(stored, header.key, unique=bool(header.unique_key_query)):
                found.append(stored)
                size += len(stored.body)
            looked += 1
            if looked % QUERY_CHUNK == 0:
                await self._services.context.clock.sleep(0)
        return found


def _has_key(stored: StoredMessage, key: str, *, unique: bool) -> bool:
    return stored.uniq_key == key or (not unique and key in (stored.keys or "").split())
