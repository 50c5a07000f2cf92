"""Ends asyncio tasks that a node has started."""

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks in the given order, and wait until all have ended. Errors of cancelled tasks are not raised."""
    ending = tuple(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
