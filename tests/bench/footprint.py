"""Memory for each route and for each idle connection.

Ours is the growth of what the process holds of the machine. A JVM takes its heap in advance and fills it with garbage,
so for Apache's it is the growth of what lives in the heap after a full collection: without what Netty keeps outside.
"""

import contextlib
import time
from collections.abc import Callable

from . import frames
from .figures import Figures
from .measure import BenchError, Server

SETTLE_S = 0.5


def footprint(
    figures: Figures, name: str, server: Server, held: Callable[[], int], *, brokers: int, topics: int, connections: int
) -> None:
    """Rows `bytes …` of one server that has just started; `held` is its memory now."""
    with contextlib.ExitStack() as stack:
        channel = stack.enter_context(frames.connected(server))
        for count in (connections // 10, connections):  # the first few make what all share
            held()  # a first full collection does not free all
            before = held()
            for _ in range(count):
                stack.enter_context(frames.connected(server))
            time.sleep(SETTLE_S)
        figures.add("bytes an idle connection", name, (held() - before) / connections, less_is_better=True)
        # what is given back here is not there to be used again below: they stay open
        frames.call(channel, frames.registration(9999, frames.body(frames.topics(topics, prefix="warm"))))
        before = held()
        for number in range(brokers):
            body = frames.body(frames.topics(topics, prefix=f"of-{number:03}"))
            frames.call(channel, frames.registration(number, body))
        figures.add("bytes a route", name, (held() - before) / (brokers * topics), less_is_better=True)


def resident(server: Server) -> Callable[[], int]:
    """How to read the memory of a process that holds no garbage. BenchError when it is gone."""

    def held() -> int:
        try:
            return server.resident()
        except OSError as exc:
            raise BenchError(f"the NameServer is gone: {exc}") from exc

    return held
