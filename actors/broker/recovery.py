"""Recovers the commit log when a broker starts: reads every record again and cuts off an incomplete last record.

An interrupted write leaves part of a record at the end of the log, and a power loss leaves zeros; recovery then ends
the log after the last whole record. Damage before the newest file makes the start fail, because cutting the log there
would lose acknowledged messages. Upstream: `CommitLog.recoverAbnormally`, `checkMessageAndReturnSize`.
"""

import mmap
import struct
from collections.abc import Callable
from pathlib import Path

from ...remoting import fastjson
from ...remoting.errors import RemoteProtocolError
from ...remoting.message import BLANK_MAGIC, StoredMessage
from .commit_log import CommitLog, StoreError
from .files import read_whole

FILLER = struct.Struct(">ii")
"""The end of a full file: the number of bytes left, then BLANK_MAGIC."""

Index = Callable[[StoredMessage, int], None]
"""Called with each whole record and its size, in order."""


def recover(log: CommitLog, index: Index) -> int:
    """Read every record of the log and cut off an incomplete last record. Returns how many bytes were cut off.
    StoreError, OSError."""
    truncated = 0
    for start in log.starts:
        end, full = _index_file(log, start, index)
        if start != log.starts[-1]:
            if not full:
                raise StoreError(f"commit log file {log.path(start)} is damaged at {end}, and later files follow it")
        elif full:
            log.fill_up()
        elif end != log.end:
            truncated = _torn_bytes(log, start, end)
            log.cut(end)
    return truncated


def read_deleted(path: Path) -> dict[str, int]:
    """Return each deleted topic, with the commit log's end when the topic was deleted. Raises StoreError if the file is
    unreadable."""
    content = read_whole(path)
    if content is None:
        return {}
    try:
        decoded = fastjson.loads(content)
        if not isinstance(decoded, dict):
            raise ValueError("not an object")
        return {str(topic): int(end) for topic, end in decoded.items()}
    except Exception as exc:
        raise StoreError(f"{path} is not a list of deleted topics: {exc}") from exc


def _index_file(log: CommitLog, start: int, index: Index) -> tuple[int, bool]:
    """Return the offset after the last whole record of one file, and whether its filler was found."""
    if log.size_of(start) == 0:
        return start, False
    with log.path(start).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        data = memoryview(mapped)
        try:
            return _index_records(data, start, log.file_size, index)
        finally:
            data.release()


def _index_records(data: memoryview, start: int, file_size: int, index: Index) -> tuple[int, bool]:
    position = 0
    while position + FILLER.size <= len(data):
        size, magic = FILLER.unpack_from(data, position)
        if magic == BLANK_MAGIC and position + size == file_size:
            return start + position, True
        try:
            message, end = StoredMessage.decode_at(data, position, strict=True)
        except RemoteProtocolError:
            break
        # Neither the topic nor the properties are under the CRC; zeros at their end are a page that never came.
        zeros = message.raw_properties.endswith(b"\0") or "\0" in message.topic or not message.topic
        if zeros or message.physical_offset != start + position:
            break
        index(message, end - position)
        position = end
    return start + position, False


def _torn_bytes(log: CommitLog, start: int, end: int) -> int:
    """Return the number of bytes written after `end`. In a file made at full size, trailing zeros were not written."""
    size = log.size_of(start)
    if size < log.file_size:
        return start + size - end
    with log.path(start).open("rb") as file:
        file.seek(end - start)
        torn = position = 0
        while chunk := file.read(1 << 20):
            written = len(chunk.rstrip(b"\0"))
            torn = position + written if written else torn
            position += len(chunk)
        return torn
