"""Gives pulled messages to the listener and acts on the listener's result.

At most `consume_thread_max` listener calls run at once. Messages that failed go back to the broker for a later retry in
clustering, and are dropped in broadcasting. If a rebalance drops a queue, the queue's next owner consumes the remaining
messages. Upstream: `ConsumeMessageConcurrentlyService`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from ...remoting import message_properties
from ...remoting.errors import RemoteProtocolError
from ...remoting.message import MessageQueue, StoredMessage
from ...remoting.message_properties import message_digest
from ...remoting.node.node import NodeContext
from ...remoting.node.tasks import Tasks, cancel_all
from .config import ConsumerConfig, retry_topic
from .offset_store import OffsetStore
from .process_queue import ProcessQueue

Listener = Callable[[list[StoredMessage]], Awaitable[bool] | bool]
"""True when the messages are consumed; False or an exception when they shall come again. Bodies come as stored: a
listener reads `inflated_body`."""

SendBack = Callable[[MessageQueue, StoredMessage], Awaitable[str]]
"""How the group will get the message again; "" if it will not."""

DROPPED, KEPT = "dropped", "kept"

CONSUME_AGAIN_DELAY_S = 5.0
"""After a failed send-back the same process tries the message again."""


@dataclass(frozen=True, slots=True)
class _Batch:
    queue: MessageQueue
    process_queue: ProcessQueue
    messages: list[StoredMessage]


class ConsumeService:
    """Gives messages to the listener. `send_back` (None in broadcasting) sends failed messages back to the broker."""

    def __init__(
        self,
        context: NodeContext,
        config: ConsumerConfig,
        listener: Listener,
        offsets: OffsetStore,
        send_back: SendBack | None,
    ) -> None:
        self._context, self._config, self._listener = context, config, listener
        self._offsets, self._send_back = offsets, send_back
        self._batches: asyncio.Queue[_Batch] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._retries = Tasks()
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False

    def start(self) -> None:
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._config.consume_thread_max)]

    async def stop(self) -> None:
        """Start no more listener calls. Wait until running calls have ended, at most
        awaitTerminationMillisWhenShutdown; then cancel the rest."""
        self._stopping = True
        if self._config.await_termination_when_shutdown_ms:
            try:
                async with self._context.clock.timeout(self._config.await_termination_when_shutdown_ms / 1000):
                    await self._idle.wait()
            except TimeoutError:
                self._context.log.warning("%d listener calls still run at shutdown", self._running)
        await cancel_all((*self._workers, *self._retries))

    def submit(self, queue: MessageQueue, process_queue: ProcessQueue, messages: list[StoredMessage]) -> None:
        """Queue messages for the listener, in batches of at most `consume_message_batch_max_size`."""
        size = self._config.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            self._batches.put_nowait(_Batch(queue, process_queue, messages[start : start + size]))

    async def _work(self) -> None:
        while True:
            batch = await self._batches.get()
            if self._stopping or batch.process_queue.dropped:
                continue
            self._running += 1
            self._idle.clear()
            try:
                await self._consume(batch)
            except Exception:
                self._context.log.exception("consuming %s failed", batch.queue)
            finally:
                self._running -= 1
                if not self._running:
                    self._idle.set()

    async def _consume(self, batch: _Batch) -> None:
        consumed = await self._call_listener(batch)
        if consumed:
            self._record_received(batch)
        if batch.process_queue.dropped:
            self._context.log.warning("%s was dropped while its messages were consumed", batch.queue)
            return
        finished = batch.messages
        if not consumed:
            finished = await self._settle_failure(batch)
        batch.process_queue.last_consume_ms = self._context.clock.now_ms()
        offset = batch.process_queue.finish(message.queue_offset for message in finished)
        if offset is not None and not batch.process_queue.dropped:
            self._offsets.update(batch.queue, offset)

    async def _call_listener(self, batch: _Batch) -> bool:
        messages = [restore_topic(message, self._config.consumer_group) for message in batch.messages]
        try:
            outcome = self._listener(messages)
            return bool(await outcome if outcome is not True and inspect.isawaitable(outcome) else outcome)
        except Exception:
            self._context.log.warning("the listener failed on %s", batch.queue, exc_info=True)
            return False

    def _record_received(self, batch: _Batch) -> None:
        for message in batch.messages:
            self._record(batch, message, "receive", duration_ms=message.store_timestamp - message.born_timestamp)

    def _record(self, batch: _Batch, message: StoredMessage, event: str, **more: object) -> None:
        clock = self._context.clock
        # Before and after the wall clock: a process that stands still between the two would shift the birth.
        before_ms, wall_ms, after_ms = 1000 * clock.monotonic_s(), clock.now_ms(), 1000 * clock.monotonic_s()
        if after_ms - before_ms < 1:
            more["born_ms"] = before_ms - (wall_ms - message.born_timestamp)
        self._context.record(
            event,
            msg_key=message.keys,
            **batch.queue._asdict(),
            offset=message.queue_offset,
            op_id=batch.process_queue.op_id,
            digest=_digest(restore_topic(message, self._config.consumer_group)),
            **more,
        )

    async def _settle_failure(self, batch: _Batch) -> list[StoredMessage]:
        """Handle messages that the listener failed. Returns the messages that this process has finished with; this
        process tries the other messages again later."""
        finished, again = [], []
        for message in batch.messages:
            began_s, times = self._context.clock.monotonic_s(), message.reconsume_times + 1
            how = DROPPED if self._send_back is None else await self._send_back(batch.queue, message)
            took_ms = 1000 * (self._context.clock.monotonic_s() - began_s)
            self._record(batch, message, "sent_back", f=how or KEPT, attempt=times, duration_ms=took_ms)
            if how:
                finished.append(message)
            else:
                again.append(replace(message, reconsume_times=times))
        if self._send_back is None:
            self._context.log.warning("broadcasting: %d failed messages of %s dropped", len(finished), batch.queue)
        if again:
            self._retries.spawn(self._submit_later(replace(batch, messages=again)))
        return finished

    async def _submit_later(self, batch: _Batch) -> None:
        await self._context.clock.sleep(CONSUME_AGAIN_DELAY_S)
        self._batches.put_nowait(batch)


def _digest(message: StoredMessage) -> int:
    try:
        body = message.inflated_body
    except RemoteProtocolError:  # as it is, it is not what was sent
        body = message.body
    return message_digest(message.topic, body, message.properties)


def restore_topic(message: StoredMessage, group: str) -> StoredMessage:
    """Return a message of the group's retry topic with its original topic; return any other message unchanged."""
    if message.topic == retry_topic(group):
        original = message.properties.get(message_properties.RETRY_TOPIC)
        if original:
            return replace(message, topic=original)
    return message
