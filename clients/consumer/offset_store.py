"""A consumer group's offset in each queue, stored by the broker in clustering and in the client's own file in
broadcasting.

Consuming updates a table in memory; `persist` writes the table to the broker or the file. After a lost write, messages
are consumed again. Upstream: `RemoteBrokerOffsetStore`, `LocalFileOffsetStore` (whose JSON has objects as keys).
"""

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path

from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.command import RemotingCommand, success
from ...remoting.errors import ClientError, RocketMQError
from ...remoting.headers.broker import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from ...remoting.message import MessageQueue
from ...remoting.node.recording import Recorder, ignore
from ..client_instance import MQClientInstance

CALL_TIMEOUT_S = 5.0


class OffsetStore(ABC):
    """The offsets in memory. A subclass stores offsets at the broker or in a file."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._read: dict[MessageQueue, int | None] = {}

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = True) -> None:
        """Note in memory that all messages before `offset` are consumed. With `increase_only`, an offset below the
        known offset is ignored."""
        if increase_only:
            offset = max(offset, self._offsets.get(queue, offset))
        self._offsets[queue] = offset

    def in_memory(self, queue: MessageQueue) -> int | None:
        """Return the queue's offset in memory; None if it is unknown."""
        return self._offsets.get(queue)

    def forget(self, queue: MessageQueue) -> None:
        """Delete the queue's offset from memory, so that a later commit cannot overwrite the next owner's offset."""
        self._offsets.pop(queue, None)
        self._read.pop(queue, None)

    async def read(self, queue: MessageQueue) -> int | None:
        """Read the queue's stored offset into memory and return the offset; None if no offset is stored. Raises
        RocketMQError if the broker does not answer."""
        offset = self._read[queue] = await self._stored(queue)
        if offset is not None:
            self.update(queue, offset, increase_only=False)
        return offset

    def answered(self, queue: MessageQueue) -> dict[str, int | None]:
        """Return `{"answered": offset}` with the last result of `read`; an empty dict without a successful `read`."""
        return {"answered": self._read[queue]} if queue in self._read else {}

    @abstractmethod
    async def _stored(self, queue: MessageQueue) -> int | None: ...

    @abstractmethod
    async def persist(self, queues: Collection[MessageQueue]) -> None:
        """Write the offsets of `queues` from memory to the broker or the file. A failed write is logged, not raised."""


class RemoteBrokerOffsetStore(OffsetStore):
    """In clustering, stores a queue's offset at the master of the queue's broker. Commits are oneway requests, so the
    client does not learn whether a commit arrived."""

    def __init__(self, instance: MQClientInstance, group: str, *, log: logging.Logger) -> None:
        super().__init__()
        self._instance, self._group, self._log = instance, group, log

    async def _stored(self, queue: MessageQueue) -> int | None:
        broker = await self._instance.find_broker(queue)
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id
        )
        request = RemotingCommand.request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        response = await self._instance.remoting.invoke(broker.address, request, timeout_s=CALL_TIMEOUT_S)
        if response.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return QueryConsumerOffsetResponseHeader.from_ext_fields(success(response).ext_fields).offset

    async def persist(self, queues: Collection[MessageQueue]) -> None:
        for queue in queues:
            offset = self._offsets.get(queue)
            if offset is None:
                continue
            try:
                await self._send(queue, offset)
            except RocketMQError as exc:
                self._log.warning("group %s: offset %d of %s not committed: %s", self._group, offset, queue, exc)

    async def _send(self, queue: MessageQueue, offset: int) -> None:
        broker = await self._instance.find_broker(queue)
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
        )
        request = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, header, oneway=True)
        await self._instance.remoting.oneway(broker.address, request, timeout_s=CALL_TIMEOUT_S)


class LocalFileOffsetStore(OffsetStore):
    """In broadcasting, stores the group's offsets in one JSON file, which each write replaces. Without a path, the
    offsets are kept only in memory."""

    def __init__(self, path: Path | None, *, log: logging.Logger, group: str = "", record: Recorder = ignore) -> None:
        super().__init__()
        self._path, self._log, self._group, self._record = path, log, group, record
        self._persisted: dict[MessageQueue, int] = self._load()
        self._offsets.update(self._persisted)

    def _load(self) -> dict[MessageQueue, int]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            rows = json.loads(self._path.read_bytes())["offsets"]
            return {MessageQueue(row["topic"], row["brokerName"], row["queueId"]): int(row["offset"]) for row in rows}
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise ClientError(f"consumer offsets in {self._path} cannot be read: {exc!r}") from exc

    async def _stored(self, queue: MessageQueue) -> int | None:
        return self._persisted.get(queue)

    async def persist(self, queues: Collection[MessageQueue]) -> None:
        for queue in queues:
            offset, before = self._offsets.get(queue), self._persisted.get(queue)
            if offset is not None and offset != before:
                self._persisted[queue] = offset
                self._record_commit(queue, offset, before)
        if self._path is None:
            return
        rows = [
            {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset}
            for queue, offset in sorted(self._persisted.items())
        ]
        scratch = self._path.with_suffix(".tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            scratch.write_text(json.dumps({"offsets": rows}, indent=1))
            os.replace(scratch, self._path)
        except OSError as exc:
            self._log.warning("consumer offsets not written to %s: %s", self._path, exc)

    def _record_commit(self, queue: MessageQueue, offset: int, before: int | None) -> None:
        value = {"group": self._group, "before": -1 if before is None else before}
        self._record("commit", f="persist", **queue._asdict(), offset=offset, value=value)
