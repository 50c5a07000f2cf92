"""The pulled and unfinished messages of one queue decide which offset is committed, and when pulling must pause.

The offset to commit is the smallest unfinished offset, so a crash repeats messages and never skips a message. Upstream:
`ProcessQueue`, limits of `DefaultMQPushConsumer`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

from ...remoting.message import StoredMessage

PULL_MAX_IDLE_MS = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """Limits of a queue's unfinished messages, above which pulling pauses (`pullThresholdForQueue`, `…SizeForQueue`,
    `…MaxSpan`)."""

    messages: int = 1000
    size_bytes: int = 100 * 1024 * 1024
    span: int = 2000


class ProcessQueue:
    """Unfinished messages of a queue, by offset. A dropped ProcessQueue is never used again."""

    def __init__(self, *, now_ms: int, op_id: str | None = None) -> None:
        self.dropped = False
        self.op_id = op_id
        """Names this holding of the queue in the history: what it received, from taking it to dropping it."""
        self.last_pull_ms = self.last_consume_ms = now_ms
        self._messages: dict[int, StoredMessage] = {}
        self._offsets: list[int] = []  # the keys of _messages, sorted
        self.size_bytes = 0
        self._max_offset = -1

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def span(self) -> int:
        """Distance between the smallest and the largest unfinished offset."""
        return self._offsets[-1] - self._offsets[0] if self._offsets else 0

    @property
    def in_flight(self) -> tuple[int, int]:
        """Return the smallest and the largest unfinished offset; (0, 0) without unfinished messages."""
        return (self._offsets[0], self._offsets[-1]) if self._offsets else (0, 0)

    def put(self, messages: Iterable[StoredMessage]) -> None:
        """Add the messages of one pull. If two messages have the same offset, the newer message replaces the older."""
        for message in messages:
            old = self._messages.get(message.queue_offset)
            if old is None:
                insort(self._offsets, message.queue_offset)
            self._messages[message.queue_offset] = message
            self.size_bytes += len(message.body) - (len(old.body) if old is not None else 0)
            self._max_offset = max(self._max_offset, message.queue_offset)

    def finish(self, queue_offsets: Iterable[int]) -> int | None:
        """Remove finished messages, and return the offset to commit; None if there were no messages. The offset to
        commit is the smallest unfinished offset, or the offset after the largest if all messages are finished."""
        if not self._messages:
            return None
        for queue_offset in queue_offsets:
            message = self._messages.pop(queue_offset, None)
            if message is not None:
                del self._offsets[bisect_left(self._offsets, queue_offset)]
                self.size_bytes -= len(message.body)
        return self._offsets[0] if self._offsets else self._max_offset + 1

    def over_limit(self, limits: FlowLimits) -> bool:
        """Whether the unfinished messages exceed a limit of number, size or span, so that pulling must pause."""
        return len(self._messages) > limits.messages or self.size_bytes > limits.size_bytes or self.span > limits.span

    def is_pull_expired(self, *, now_ms: int) -> bool:
        """Whether the queue was not pulled for 120 s, so that the consumer must drop the queue and take it again."""
        return now_ms - self.last_pull_ms > PULL_MAX_IDLE_MS
