"""Waiting for what another process does, always with an end, and asking servers through our own client."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.errors import ResponseError
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.this_machine import on_this_machine

T = TypeVar("T")


def context(name: str) -> NodeContext:
    """A node on real time and real sockets."""
    return on_this_machine(name, logging.getLogger(f"interop.{name}"))


def eventually(check: Callable[[], T], *, within_s: float = 20.0) -> T:
    """What `check` returns once it does not raise AssertionError or ResponseError; its last error otherwise."""
    again = retry_if_exception_type((AssertionError, ResponseError))
    return Retrying(stop=stop_after_delay(within_s), wait=wait_fixed(0.05), retry=again, reraise=True)(check)


async def soon(check: Callable[[], T], *, within_s: float = 20.0) -> T:
    """As `eventually`, while the tasks of this loop go on."""

    async def checked() -> T:
        return check()

    again = retry_if_exception_type(AssertionError)
    retrying = AsyncRetrying(stop=stop_after_delay(within_s), wait=wait_fixed(0.05), retry=again, reraise=True)
    return await retrying(checked)


def ask(name_server: str, question: Callable[[AdminClient], Awaitable[T]]) -> T:
    """What our admin client gets from that NameServer."""

    async def body() -> T:
        async with AdminClient(context("reader"), [Address.parse(name_server)]) as admin:
            return await question(admin)

    return asyncio.run(body())
