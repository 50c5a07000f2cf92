"""What every `nemesrv admin` command shares: whom it asks, what becomes of those that do not answer, how it prints.

    ask    the first NameServer, in the order given, that can be reached      all that only reads
    each   every address at once; one that fails is named at the end          all that mqadmin sends to each

Exit status through `main`: 2 (click.ClickException) when a peer refuses what was asked, 4 (HarnessError) when a peer
could not be reached. One line names every peer that failed; what the others answered has been printed by then.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import click

from ...clients.admin import AdminClient
from ...remoting.bodies.route import BrokerData, ClusterInfo, TopicRouteData
from ...remoting.codes import MASTER_ID, ResponseCode
from ...remoting.errors import ClientError, ResponseError, RocketMQError
from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from ..errors import HarnessError

T = TypeVar("T")


class AdminSession:
    """One command's questions. `client` takes the address of whom it asks; `failed` is what `each` has met."""

    def __init__(self, client: AdminClient, name_servers: Sequence[Address], clock: Clock) -> None:
        self.client, self.name_servers, self.clock = client, tuple(name_servers), clock
        self.failed: list[tuple[Address, RocketMQError]] = []
        self._left = list(name_servers)

    async def ask(self, question: Callable[[Address], Awaitable[T]]) -> T:
        """The answer of one NameServer, the same for every question until it cannot be reached any more.

        Raises ClickException for a refusal, HarnessError when none is left.
        """
        gone: list[tuple[Address, RocketMQError]] = []
        while self._left:
            try:
                return await question(self._left[0])
            except (ResponseError, ClientError) as exc:
                raise click.ClickException(_why(self._left[0], exc)) from exc
            except RocketMQError as exc:
                gone.append((self._left.pop(0), exc))
        raise HarnessError(f"no name server can be reached: {_all(gone)}")

    async def each(self, addresses: Iterable[Address], question: Callable[[Address], Awaitable[T]]) -> dict[Address, T]:
        """The answers, in the order of `addresses`. Who failed is missing, and named by `settle`."""
        asked = tuple(dict.fromkeys(addresses))
        answers = await asyncio.gather(*(self._one(address, question) for address in asked))
        return {address: answer[0] for address, answer in zip(asked, answers, strict=True) if answer is not None}

    async def _one(self, address: Address, question: Callable[[Address], Awaitable[T]]) -> tuple[T] | None:
        try:
            return (await question(address),)
        except RocketMQError as exc:
            self.failed.append((address, exc))
            return None

    async def cluster_info(self) -> ClusterInfo:
        return await self.ask(lambda ns: self.client.cluster_info(name_server=ns))

    async def route(self, topic: str) -> TopicRouteData:
        """The topic's route; ClickException when it has none."""
        return await self.ask(lambda ns: self.client.topic_route(topic, name_server=ns))

    async def brokers(self, cluster: str | None) -> list[Address]:
        """Masters and slaves of the cluster; ClickException when there is no such cluster."""
        datas = brokers_of(await self.cluster_info(), cluster)
        return [parsed(text) for data in datas for text in data.broker_addrs.values()]

    async def masters(self, cluster: str | None) -> list[Address]:
        """The cluster's masters; ClickException when it has none."""
        found = masters_of(brokers_of(await self.cluster_info(), cluster))
        if not found:
            raise click.ClickException(f"-c: cluster {cluster} has no master now")
        return found

    def settle(self, then: str = "") -> None:
        """Raise when anything failed so far; `then` says what was left undone because of it."""
        if not self.failed:
            return
        text = _all(self.failed) + (f"; {then}" if then else "")
        if all(isinstance(exc, ResponseError | ClientError) for _, exc in self.failed):
            raise click.ClickException(text)
        raise HarnessError(text)


def run(name_servers: Sequence[Address], work: Callable[[AdminSession], Awaitable[None]]) -> None:
    """Do `work`, then settle. Whoever reads our output may leave early."""

    async def session() -> None:
        context = on_this_machine("admin")
        async with AdminClient(context, name_servers) as client:
            asked = AdminSession(client, name_servers, context.clock)
            await work(asked)
            asked.settle()

    try:
        asyncio.run(session())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered must not fail at exit


def brokers_of(info: ClusterInfo, cluster: str | None) -> list[BrokerData]:
    """The cluster's brokers by name; ClickException when there is no such cluster."""
    if cluster is None or cluster not in info.cluster_addr_table:
        known = ", ".join(sorted(info.cluster_addr_table)) or "none"
        raise click.ClickException(f"-c: there is no cluster {cluster}; known: {known}")
    names = sorted(set(info.cluster_addr_table[cluster]) & info.broker_addr_table.keys())
    return [info.broker_addr_table[name] for name in names]


def masters_of(datas: Iterable[BrokerData]) -> list[Address]:
    return [parsed(data.broker_addrs[MASTER_ID]) for data in datas if MASTER_ID in data.broker_addrs]


def parsed(text: str) -> Address:
    """An address that a broker registered. HarnessError when it is none."""
    try:
        return Address.parse(text)
    except ValueError as exc:
        raise HarnessError(f"a broker registered what cannot be dialled: {exc}") from exc


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be; an empty cell is `-`, so that every row has as many words as columns."""
    cells = [list(header), *([str(cell) or "-" for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _all(failed: Iterable[tuple[Address, RocketMQError]]) -> str:
    return "; ".join(_why(address, exc) for address, exc in failed)


def _why(address: Address, exc: RocketMQError) -> str:
    """What went wrong, with the address of whom it went wrong with."""
    if isinstance(exc, ResponseError):
        known = {int(code): code.name for code in ResponseCode}
        return f"{address} answers {known.get(exc.code, 'code')} ({exc.code:d}): {exc.remark or 'without a remark'}"
    text = str(exc)
    return text if str(address) in text else f"{address}: {text}"
