"""A lock that is waited for only so long, as Java's `tryLock(timeout)`."""

from __future__ import annotations

import asyncio

from ..remoting.node.clock import Clock

LOCK_TIMEOUT_S = 3.0
"""`MQClientInstance.LOCK_TIMEOUT_MILLIS`, `NettyRemotingClient.LOCK_TIMEOUT_MILLIS`."""


async def try_lock(lock: asyncio.Lock, clock: Clock, timeout_s: float = LOCK_TIMEOUT_S) -> bool:
    """Whether `lock` was acquired within `timeout_s`; the caller releases it."""
    if not lock.locked():
        return await lock.acquire()
    try:
        async with clock.timeout(timeout_s):
            return await lock.acquire()
    except TimeoutError:
        return False
