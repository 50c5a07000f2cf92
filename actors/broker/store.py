"""Messages on disk: append, read by queue offset, look up, and recover after any death of the process.

Everything is in the commit log, in RocketMQ's record layout; consume queues are built from the commit log. A message
counts as stored when its bytes have been handed to the kernel, so the message survives SIGKILL of the process. A
message survives a power loss only with flushDiskType SYNC_FLUSH. Recovery reads every record again, cuts off an
incomplete last record, and refuses a log with damage before the newest file. Upstream: `DefaultMessageStore`,
`CommitLog`, `ConsumeQueue`.
"""

import errno
import logging
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from ...remoting.errors import LocalProtocolError, RemoteProtocolError
from ...remoting.message import BLANK_MAGIC, StoredMessage, encode_record
from ...remoting.message_properties import DELAY, TAGS, tags_code
from ...remoting.node.network import Address
from .commit_log import CommitLog, StoreError
from .files import write_whole
from .recovery import FILLER, read_deleted, recover
from .stored import (
    STORE_TIME,
    SYS_FLAG_AT,
    Append,
    Found,
    GetStatus,
    MessageIllegal,
    PutMessage,
    Recovery,
    StoreFull,
    store_time_at,
)

ENTRY = struct.Struct(">qiq")
"""An entry of a consume queue: the message's commit-log offset, its size, its tags code."""


class ConsumeQueue:
    """One queue of one topic: the commit-log offsets of its messages. A consume queue is rebuilt from the commit log at
    every start. A consume queue has one entry of 20 bytes in memory for each queue offset from `first` to `end` (not
    included)."""

    __slots__ = ("_entries", "first")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self._entries = bytearray()

    @property
    def end(self) -> int:
        return self.first + len(self._entries) // ENTRY.size

    def add(self, physical_offset: int, size: int, tags_code: int) -> None:
        self._entries += ENTRY.pack(physical_offset, size, tags_code)

    def entry(self, offset: int) -> tuple[int, int, int]:
        """Return commit-log offset, size and tags code of the message at `offset`. Raises IndexError for an offset
        outside `first` to `end`."""
        if not self.first <= offset < self.end:
            raise IndexError(f"queue offset {offset} is not in {self.first}..{self.end - 1}")
        found: tuple[int, int, int] = ENTRY.unpack_from(self._entries, (offset - self.first) * ENTRY.size)
        return found

    def entries(self, offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Return up to `count` entries of the consume queue from `offset` on; `offset` must not be below `first`."""
        position = (max(offset, self.first) - self.first) * ENTRY.size
        chunk = bytes(self._entries[position : position + count * ENTRY.size])
        return ENTRY.iter_unpack(chunk)


_LOCALHOST = Address("127.0.0.1", 10911)
SCAN_LIMIT = 800
"""How many entries one pull looks at (`maxFilterMessageSize` 16000 B)."""

Takes = Callable[[Mapping[str, str]], bool]
"""Whether a message with these properties is wanted."""
TagsCode = Callable[[StoredMessage], int]
"""What the consume queue has beside each message: the hash of its tag, or a delayed message's due time."""


class MessageStore:
    """One broker's messages under `directory` (`commitlog/`, `config/deletedTopics.json`)."""

    def __init__(
        self,
        directory: Path,
        *,
        file_size: int = 1 << 30,
        max_message_size: int = 4 << 20,
        sync_flush: bool = False,
        store_host: Address = _LOCALHOST,
        tags_code_of: TagsCode | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.store_host = store_host
        """Written into every record from now on: the address that clients reach this broker at."""
        self.stored_messages = 0
        """Messages appended since the start."""
        self.disk_is_full = False
        """Whether no message is stored, as if the disk had no room."""
        self._max_batch = max_message_size + 65_536
        self._sync_flush = sync_flush
        self._tags_code_of = tags_code_of or default_tags_code
        self._log = log or logging.getLogger("nemesrv.broker")
        self._commit_log = CommitLog(directory / "commitlog", file_size=file_size)
        self._queues: dict[str, dict[int, ConsumeQueue]] = {}
        self._deleted_path = directory / "config" / "deletedTopics.json"
        self._deleted: dict[str, int] = {}
        self._broken: str | None = None

    def open(self) -> Recovery:
        """Lock the store and recover it. Raises StoreError if another process has locked the store, or a file is
        unreadable or damaged."""
        try:
            self._commit_log.open()
            return self._recover()
        except OSError as exc:
            self.close()
            raise StoreError(
                f"store {self._commit_log.directory.parent} cannot be read: {exc.strerror or exc}"
            ) from exc
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Write everything to disk and close the files. The store cannot be used afterwards."""
        try:
            self._commit_log.sync()
        except OSError as exc:
            self._log.error("cannot flush the commit log: %s", exc)
        self._commit_log.close()

    def abandon(self) -> None:
        """Close the files as the kernel does when the process has died, without writing. The store cannot be used
        afterwards."""
        self._commit_log.close()

    # Appending

    def append(self, messages: Sequence[PutMessage], *, now_ms: int) -> Append:
        """Store `messages` of one queue in order. When `append` returns, the messages survive SIGKILL. When `append`
        raises MessageIllegal or StoreFull, no message is stored."""
        if self._broken is not None:
            raise StoreFull(self._broken)
        if self.disk_is_full:
            raise StoreFull(_DISK_FULL)
        topic, queue_id = messages[0].topic, messages[0].queue_id
        queue = self._queues.get(topic, {}).get(queue_id)
        queue_offset = 0 if queue is None else queue.end
        log = self._commit_log
        records = self._encode(messages, queue_offset, now_ms)
        size = sum(map(len, records))
        if size > self._max_batch:
            raise MessageIllegal(f"records of {size} B exceed {self._max_batch} B")
        if size + FILLER.size > log.room:
            if size + FILLER.size > log.file_size:
                raise MessageIllegal(f"records of {size} B do not fit a commit log file of {log.file_size} B")
            self._roll()
            records = self._encode(messages, queue_offset, now_ms)  # physical offsets have moved
        base = log.end
        self._hand_over(records[0] if len(records) == 1 else b"".join(records), base)

        if queue is None:
            queue = self._queues.setdefault(topic, {})[queue_id] = ConsumeQueue()
        offsets = []
        for message, record in zip(messages, records, strict=True):
            offsets.append(base)
            queue.add(base, len(record), message.tags_code)
            base += len(record)
        log.end = base
        self.stored_messages += len(records)
        return Append(queue_offset, tuple(offsets))

    def _write(self, data: bytes) -> None:
        """Hand `data` to the kernel (os.write), before any acknowledgement. Raises OSError."""
        self._commit_log.write(data)

    def _hand_over(self, data: bytes, base: int) -> None:
        try:
            self._write(data)
            if self._sync_flush:
                self._commit_log.sync()
        except OSError as exc:
            self._take_back(base)
            raise StoreFull(_disk_text(exc)) from exc

    def _take_back(self, base: int) -> None:
        """Cut off what a failed write left, because no record may come after half a record."""
        try:
            self._commit_log.cut(base)
        except OSError as exc:
            self._broken = f"the commit log cannot be cut back after a failed write: {exc.strerror or exc}"
            self._log.error("%s; refusing messages until a restart", self._broken)

    def _roll(self) -> None:
        log = self._commit_log
        base = log.end
        try:
            if log.room:
                self._write(FILLER.pack(log.room, BLANK_MAGIC))
            log.add_file()
        except OSError as exc:
            if log.room and log.end == base:
                self._take_back(base)
            raise StoreFull(_disk_text(exc)) from exc

    def _encode(self, messages: Sequence[PutMessage], queue_offset: int, now_ms: int) -> list[bytes]:
        records = []
        physical_offset = self._commit_log.end
        try:
            for index, message in enumerate(messages):
                if message.properties.endswith(b"\0"):
                    raise MessageIllegal(
                        "properties end in a zero byte, which recovery could not tell from a torn write"
                    )
                record = encode_record(
                    topic=message.topic,
                    body=message.body,
                    properties=message.properties,
                    queue_id=message.queue_id,
                    queue_offset=queue_offset + index,
                    physical_offset=physical_offset,
                    born_timestamp=message.born_timestamp,
                    born_host=message.born_host,
                    store_timestamp=now_ms,
                    store_host=self.store_host,
                    flag=message.flag,
                    sys_flag=message.sys_flag,
                    reconsume_times=message.reconsume_times,
                    prepared_transaction_offset=message.prepared_transaction_offset,
                )
                records.append(record)
                physical_offset += len(record)
        except LocalProtocolError as exc:
            raise MessageIllegal(str(exc)) from exc
        return records

    # Copying

    def records(self, physical_offset: int, max_bytes: int) -> bytes:
        """Return whole records of the commit log from `physical_offset` on, byte for byte, at least one if the log has
        one.

        At a file's end the result includes the filler record, after which the next file begins. The result is b"" at
        the log's end, and where no record begins.
        """
        log, found = self._commit_log, bytearray()
        while physical_offset < log.end:
            head = log.read(physical_offset, FILLER.size)
            if len(head) < FILLER.size:
                break
            size, magic = FILLER.unpack(head)
            if magic == BLANK_MAGIC:
                return bytes(found) or head
            if not 0 < size <= self._max_batch or (found and len(found) + size > max_bytes):
                break
            found += log.read(physical_offset, size)
            physical_offset += size
        return bytes(found)

    def copy(self, records: bytes) -> list[tuple[str, int]]:
        """Append records that another store's `records` returned, at the same offsets. Returns (topic, queue id) of
        each record. Raises StoreError at a record that does not continue this log; earlier records stay."""
        log, position, stored = self._commit_log, 0, []
        if not log.starts:
            log.add_file()
        while position < len(records):
            size, magic = FILLER.unpack_from(records, position)
            if magic == BLANK_MAGIC:
                if size != log.room:
                    raise StoreError(f"a file of the master's ends {size} B after {log.end}, here {log.room} B")
                self._roll()
                position += FILLER.size
                continue
            try:
                message, end = StoredMessage.decode_at(records, position, strict=True)
            except RemoteProtocolError as exc:
                raise StoreError(f"no record follows on {log.end}: {exc}") from exc
            if message.physical_offset != log.end:
                raise StoreError(f"the record of {message.physical_offset} does not follow on {log.end}")
            self._hand_over(records[position:end], log.end)
            self._index_record(message, end - position)
            log.end += end - position
            position = end
            stored.append((message.topic, message.queue_id))
        return stored

    # Reading

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_messages: int,
        max_bytes: int,
        tags_codes: frozenset[int] | None = None,
        takes: Takes | None = None,
    ) -> Found:
        """Return the messages from `offset` on that match the consumer's tags codes and property filter (None: any).
        Returns at most `max_messages`, and at most `max_bytes` unless the first message alone is larger."""
        queue = self._queues.get(topic, {}).get(queue_id)
        if queue is None:
            return Found(GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        first, end = queue.first, queue.end
        if offset < first:
            return Found(GetStatus.OFFSET_TOO_SMALL, first, first, end)
        if offset == end:
            return Found(GetStatus.OFFSET_OVERFLOW_ONE, offset, first, end)
        if offset > end:
            return Found(GetStatus.OFFSET_OVERFLOW_BADLY, end, first, end)
        spans: list[list[int]] = []  # [physical offset, size] of what lies back to back
        next_offset, count, total = offset, 0, 0
        for physical_offset, size, code in queue.entries(offset, max(SCAN_LIMIT, max_messages)):
            if (tags_codes is None or code in tags_codes) and (takes is None or self._takes(physical_offset, takes)):
                if count and (count >= max_messages or total + size > max_bytes):
                    break
                if spans and sum(spans[-1]) == physical_offset:
                    spans[-1][1] += size
                else:
                    spans.append([physical_offset, size])
                count, total = count + 1, total + size
            next_offset += 1
        if not count:
            return Found(GetStatus.NO_MATCHED_MESSAGE, next_offset, first, end)
        data = b"".join(self._commit_log.read(physical_offset, size) for physical_offset, size in spans)
        if len(data) != total:
            # The file is shorter than what was acknowledged: something other than this process cut it.
            self._log.error("%s queue %d: commit log lacks %d B of what was stored", topic, queue_id, total - len(data))
            return Found(GetStatus.OFFSET_FOUND_NULL, offset, first, end)
        return Found(GetStatus.FOUND, next_offset, first, end, data, count)

    def look(self, physical_offset: int) -> StoredMessage | None:
        """Return the message whose record starts at `physical_offset`; None if no record starts there."""
        try:
            size, _ = FILLER.unpack(self._commit_log.read(physical_offset, FILLER.size))
            if not 0 < size <= self._max_batch:
                return None
            message, _ = StoredMessage.decode_at(self._commit_log.read(physical_offset, size), strict=True)
        except (struct.error, RemoteProtocolError):
            return None
        return message if message.physical_offset == physical_offset else None

    def wanted_in(
        self, topic: str, queue_id: int, offset: int, tags_codes: frozenset[int] | None, takes: Takes | None = None
    ) -> tuple[bool, int]:
        """Return whether the consumer wants a message at `offset` or later, and the offset up to which messages were
        checked."""
        queue = self._queues.get(topic, {}).get(queue_id)
        if queue is None or offset >= queue.end:
            return False, offset
        if tags_codes is None and takes is None:
            return True, offset
        end = min(queue.end, offset + SCAN_LIMIT)
        entries = queue.entries(offset, end - offset)
        by_tag = (physical_offset for physical_offset, _, code in entries if tags_codes is None or code in tags_codes)
        return any(takes is None or self._takes(physical_offset, takes) for physical_offset in by_tag), end

    def _takes(self, physical_offset: int, takes: Takes) -> bool:
        stored = self.look(physical_offset)
        return stored is not None and takes(stored.properties)

    def min_offset(self, topic: str, queue_id: int) -> int:
        queue = self._queues.get(topic, {}).get(queue_id)
        return 0 if queue is None else queue.first

    def max_offset(self, topic: str, queue_id: int) -> int:
        queue = self._queues.get(topic, {}).get(queue_id)
        return 0 if queue is None else queue.end

    def topics(self) -> tuple[str, ...]:
        return tuple(self._queues)

    def queue_ids(self, topic: str) -> tuple[int, ...]:
        return tuple(sorted(self._queues.get(topic, {})))

    def entry(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        queue = self._queues.get(topic, {}).get(queue_id)
        return queue.entry(offset) if queue is not None and queue.first <= offset < queue.end else None

    def store_time(self, topic: str, queue_id: int, offset: int) -> int:
        entry = self.entry(topic, queue_id, offset)
        if entry is None:
            return -1
        sys_flag = self._commit_log.read(entry[0] + SYS_FLAG_AT, 1)
        data = self._commit_log.read(entry[0] + store_time_at(sys_flag[0] if sys_flag else 0), STORE_TIME.size)
        return int(STORE_TIME.unpack(data)[0]) if len(data) == STORE_TIME.size else -1

    def earliest_store_time(self) -> int:
        stored = self.look(self.min_physical_offset)
        return -1 if stored is None else stored.store_timestamp

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False) -> int:
        """Return the offset of the first message stored at `timestamp_ms` or later; if there is no such message, the
        queue's end. With `upper`: of the last message stored at `timestamp_ms` or earlier; if there is no such message,
        the queue's first offset."""
        low = first = self.min_offset(topic, queue_id)
        high = self.max_offset(topic, queue_id)
        while low < high:
            middle = (low + high) // 2
            stored = self.store_time(topic, queue_id, middle)
            if stored < timestamp_ms or (upper and stored == timestamp_ms):
                low = middle + 1
            else:
                high = middle
        return max(first, low - 1) if upper else low

    @property
    def min_physical_offset(self) -> int:
        return self._commit_log.start

    @property
    def max_physical_offset(self) -> int:
        return self._commit_log.end

    @property
    def directory(self) -> Path:
        return self._commit_log.directory.parent

    # Topics and recovery

    def delete_topic(self, topic: str) -> None:
        """Delete the messages of `topic`; a restart does not bring the messages back. Raises OSError."""
        if self._queues.pop(topic, None) is not None:
            self._deleted[topic] = self._commit_log.end
            write_whole(self._deleted_path, orjson.dumps(self._deleted))

    def _recover(self) -> Recovery:
        self._deleted = read_deleted(self._deleted_path)
        truncated = recover(self._commit_log, self._index_record)
        recovered = {
            topic: {queue_id: queue.end for queue_id, queue in sorted(queues.items())}
            for topic, queues in self._queues.items()
        }
        return Recovery(recovered, truncated)

    def _index_record(self, message: StoredMessage, size: int) -> None:
        if message.physical_offset < self._deleted.get(message.topic, 0):
            return
        queues = self._queues.setdefault(message.topic, {})
        queue = queues.get(message.queue_id)
        if queue is None or queue.end != message.queue_offset:
            # The first record kept of this queue, or of a topic made again after it was deleted.
            queue = queues[message.queue_id] = ConsumeQueue(message.queue_offset)
        queue.add(message.physical_offset, size, self._tags_code_of(message))


def default_tags_code(message: StoredMessage) -> int:
    """The hash of the message's tag; 0 for a message without a tag."""
    return tags_code(message.properties.get(TAGS))


def scheduled_tags_code(schedule_topic: str, delay_ms: Sequence[int]) -> TagsCode:
    """Return the due time (wall-clock ms) of a message of `schedule_topic`; for other messages the hash of the tag."""

    def code(message: StoredMessage) -> int:
        properties = message.properties
        if message.topic != schedule_topic or DELAY not in properties:
            return tags_code(properties.get(TAGS))
        level = min(max(message.queue_id, 0), len(delay_ms) - 1)
        return message.store_timestamp + delay_ms[level]

    return code


_DISK_FULL = "the broker's disk is full"


def _disk_text(exc: OSError) -> str:
    if exc.errno == errno.ENOSPC:
        return _DISK_FULL
    return f"the broker's disk failed: {exc.strerror or exc}"
