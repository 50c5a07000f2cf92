"""Delayed messages: stored in SCHEDULE_TOPIC_XXXX, one queue per delay level, and delivered to their real topic when
due.

In SCHEDULE_TOPIC_XXXX a consume-queue entry's tags code is the message's due time. Each queue of SCHEDULE_TOPIC_XXXX is
in order of due time, because all its messages have the same delay. The file delayOffset.json says how far each level
has been delivered. After a crash, messages delivered since delayOffset.json was last written are delivered again, as in
RocketMQ. Upstream: `ScheduleMessageService`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from ...remoting import fastjson
from ...remoting.node.clock import Timer
from ...remoting.topics import SCHEDULE_TOPIC
from .files import KeptTable
from .services import Services
from .stored import MessageIllegal, PutMessage, StoreFull, set_aside, taken_up

BATCH = 500
RETRY_S = 10.0


def parked(
    message: PutMessage, properties: Mapping[str, str], level: int, levels_ms: Sequence[int], *, now_ms: int
) -> PutMessage:
    """Return the message in the form in which it is stored until its delay is over. The delay of level 1 is
    `levels_ms[0]`; a level that is too high counts as the highest."""
    level = min(level, len(levels_ms))
    waiting = set_aside(message, SCHEDULE_TOPIC, level - 1, properties)
    return replace(waiting, tags_code=now_ms + levels_ms[level - 1])


class ScheduleService(KeptTable):
    """Delivers delayed messages: one timer for each level, set to the first message that is not due yet."""

    def __init__(self, services: Services, path: Path | None) -> None:
        super().__init__(path)
        self._services = services
        self._timers: dict[int, Timer] = {}
        content = self.kept()
        self._delivered: dict[int, int] = {} if content is None else _decode(content, str(path))
        self._running = False

    def start(self) -> None:
        """Deliver the messages that became due while the broker was down, and from now on each message when it is
        due."""
        self._running = True
        for level in range(1, len(self._services.config.delay_levels_ms) + 1):
            newest = self._services.store.max_offset(SCHEDULE_TOPIC, level - 1)
            # After a loss of the log the file may be ahead of the queue, and would skip what comes next.
            self._delivered[level] = min(self._delivered.get(level, 0), newest)
            self._set(level, 0.0)

    def stop(self) -> None:
        self._running = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def arrived(self, queue_id: int) -> None:
        """Start the delay level's timer, if none runs, because a message was stored in the level's queue."""
        if self._running and queue_id + 1 not in self._timers:
            self._set(queue_id + 1, 0.0)

    def encode(self) -> bytes:
        """Return how far each delay level has been delivered, as request 45's answer and delayOffset.json have it."""
        return orjson.dumps({"offsetTable": {str(level): offset for level, offset in self._delivered.items()}})

    def take(self, body: bytes) -> None:
        """Copy from a master how far it has delivered each delay level. Raises ValueError, OSError."""
        delivered = _decode(body, "code 45's body")
        if delivered != self._delivered:
            self._delivered, self._dirty = delivered, True
            self.persist()

    def _set(self, level: int, delay_s: float) -> None:
        self._timers[level] = self._services.context.clock.call_later(delay_s, self._deliver, level)

    def _deliver(self, level: int) -> None:
        del self._timers[level]
        store, now_ms = self._services.store, self._services.now_ms
        before = self._delivered.get(level, 0)
        offset = max(before, store.min_offset(SCHEDULE_TOPIC, level - 1))
        wait_s: float | None = 0.0
        for _ in range(BATCH):
            entry = store.entry(SCHEDULE_TOPIC, level - 1, offset)
            if entry is None:
                wait_s = None  # the next arrival sets the timer
                break
            physical_offset, _, due_ms = entry
            if due_ms > now_ms:
                wait_s = (due_ms - now_ms) / 1000
                break
            if not self._put(physical_offset):
                wait_s = RETRY_S
                break
            offset += 1
        if offset != before:
            self._delivered[level] = offset
            self._dirty = True
        if wait_s is not None:
            self._set(level, wait_s)

    def _put(self, physical_offset: int) -> bool:
        """Deliver one message, or drop a message that cannot be delivered. False if the store takes no message
        now."""
        log = self._services.context.log
        stored = self._services.store.look(physical_offset)
        message = None if stored is None else taken_up(stored)
        if message is None or message.topic not in self._services.topics:
            log.warning("delayed message at %d has nowhere to go and is dropped", physical_offset)
            return True
        try:
            self._services.put([message])
        except StoreFull as exc:
            log.warning("delayed message at %d cannot be delivered yet: %s", physical_offset, exc)
            return False
        except MessageIllegal as exc:
            log.warning("delayed message at %d is dropped: %s", physical_offset, exc)
        return True


def _decode(content: bytes, where: str) -> dict[int, int]:
    try:
        decoded = fastjson.loads(content)
        table = decoded["offsetTable"] if isinstance(decoded, dict) else {}
        return {int(level): int(offset) for level, offset in table.items()}
    except Exception as exc:
        raise ValueError(f"{where} is not a delay offset file: {exc}") from exc
