"""How long a queue's next pull was put off, as the history has it: one row a second at most, however short each is.

Upstream: `DefaultMQPushConsumerImpl.executePullRequestLater`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...remoting.message import MessageQueue
from ...remoting.node.node import NodeContext

ROW_EACH_MS = 1_000.0


class PullDelays:
    """Of one queue. Each `put_off` waits; those of one reason that follow each other are one row."""

    def __init__(self, context: NodeContext, queue: MessageQueue) -> None:
        self._context, self._queue = context, queue
        self._why = ""
        self._took_ms: list[float] = []

    async def put_off(self, why: str, sleep: Callable[[], Awaitable[None]]) -> None:
        """Wait, for this reason."""
        if why != self._why:
            self.over()
        self._why, begin_s = why, self._context.clock.monotonic_s()
        await sleep()
        self._took_ms.append((self._context.clock.monotonic_s() - begin_s) * 1000)
        if sum(self._took_ms) >= ROW_EACH_MS:
            self.over()

    def over(self) -> None:
        """The queue is pulled again, or no longer: what was put off is recorded."""
        took_ms, self._took_ms = self._took_ms, []
        if took_ms:
            self._context.record(
                "pull_delayed",
                f=self._why,
                topic=self._queue.topic,
                broker_name=self._queue.broker_name,
                queue_id=self._queue.queue_id,
                duration_ms=max(took_ms),
                value={"times": len(took_ms), "shortest_ms": min(took_ms)},
            )
