"""Starts asyncio tasks for a node, and ends them."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks in the given order, and wait until all have ended. Errors of cancelled tasks are not raised."""
    ending = tuple(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


class Tasks(dict[asyncio.Task[Any], None]):
    """Running tasks in the order of their beginning, in which `cancel` ends them."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self[task] = None
        task.add_done_callback(lambda done: self.pop(done, None))
        return task

    async def cancel(self) -> None:
        await cancel_all(self)
